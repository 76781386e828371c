package kuji_test

import (
	"runtime"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestMemoryOfABusyTimeIsGivenBack: what waited for one large batch, or for two in a
// row, takes no memory any more some hundred small batches later.
func TestMemoryOfABusyTimeIsGivenBack(t *testing.T) {
	const burst = 300_000 // of some 8 bytes of log each: as much as may wait
	draw := &kuji.Draw{Player: "ann", Pool: "free"}
	poor := &kuji.Draw{Player: "bob", Pool: "paid"} // whose answers are kept whole
	const mb = 1 << 20
	for _, c := range []struct {
		name             string
		req              *kuji.Draw
		bursts, each     int
		least, busy, end int // bytes: a burst leaves at least and at most so many, and small batches after it this
	}{
		{"callbacks of one batch", draw, 1, burst, 8 * mb, 16 * mb, 6 * mb},
		{"callbacks of two batches", draw, 2, burst, 16 * mb, 32 * mb, 9 * mb},
		{"whole answers", poor, 2, burst / 4, 0, 14 * mb, 7 * mb},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSteps()
			e, r := open(t, t.TempDir(), kuji.Options{Sync: kuji.SyncNone, Steps: s, SnapshotEvery: -1})
			answered := 0
			done := func(_ kuji.Result, err error) {
				if err != nil {
					t.Error(err)
				}
				answered++
			}
			batch := func(n int) {
				answered = 0
				for range n {
					r.Submit(c.req, done)
				}
				for len(s.tasks) > 0 {
					s.Step()
				}
				if answered != n {
					t.Fatalf("a batch answered %d of %d", answered, n)
				}
			}
			for range 4 {
				batch(1)
			}
			before := heap()
			for range c.bursts {
				batch(c.each)
			}
			busy := heap() - before
			for range 600 {
				batch(1)
			}
			end := heap() - before
			t.Logf("%d bytes more after large batches, %d after small ones", busy, end)
			if busy < c.least || busy > c.busy || end > c.end {
				t.Errorf("want %d to %d, and at most %d", c.least, c.busy, c.end)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// heap returns the bytes in use, without garbage.
func heap() int {
	runtime.GC()
	runtime.GC() // for what a sync.Pool keeps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
