package enginetest

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// TestCallbackThatEndsItsGoroutine: so does t.Fatal. The callbacks behind it are called all the
// same, and the realm goes on.
func TestCallbackThatEndsItsGoroutine(t *testing.T) {
	e, r := open(t, t.TempDir(), worldOptions{})
	var called atomic.Int32
	for range 20 {
		r.Submit(kuji.Draw{Player: "ann", Pool: "free"}, func(kuji.Result, error) {
			called.Add(1)
			runtime.Goexit()
		})
	}
	do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if n := called.Load(); n != 20 {
		t.Errorf("%d of 20 callbacks were called", n)
	}
}

// TestClockThatEndsItsGoroutine: nobody is left waiting behind it.
func TestClockThatEndsItsGoroutine(t *testing.T) {
	var ends atomic.Bool
	_, r := open(t, t.TempDir(), worldOptions{Now: func() time.Time {
		if ends.Load() {
			runtime.Goexit()
		}
		return time.Now()
	}})
	ends.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Do(context.Background(), kuji.Draw{Player: "ann", Pool: "free"})
	}()
	<-done
	if err := r.Err(); kuji.CodeOf(err) != kuji.CodeFailed {
		t.Errorf("the realm says %v, want %v", err, kuji.CodeFailed)
	}
	_, err := r.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "free"})
	wantCode(t, err, kuji.CodeFailed)
}

// TestLargeResultsThatWait: results that wait for the log count by what they take, not by their
// number.
func TestLargeResultsThatWait(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{MaxPending: 1 << 20})
	if _, err := r.Apply(t.Context(), parse(t, "kuji: 1\nitems: {a: {}}\npools: {p: {max_count: 1000, entries: [{id: e, weight: 1}, {id: f, weight: 1}]}}\n")); err != nil {
		t.Fatal(err)
	}
	gate, reached := make(chan struct{}), make(chan struct{}, 1)
	r.Submit(kuji.Draw{Player: "ann", Pool: "p"}, func(kuji.Result, error) { reached <- struct{}{}; <-gate })
	<-reached // the flusher waits, and nothing else is answered
	accepted := 0
	var over atomic.Bool
	for ; !over.Load() && accepted < 1000; accepted++ {
		r.Submit(kuji.Draw{Player: "ann", Pool: "p", Count: 1000}, func(_ kuji.Result, err error) {
			if kuji.CodeOf(err) == kuji.CodeOverloaded { // before Submit returns
				over.Store(true)
			}
		})
	}
	close(gate)
	if most := 1<<20/64_000 + 2; accepted > most {
		t.Errorf("%d results of a thousand draws wait, want at most %d", accepted, most)
	}
	do(t, r, kuji.Draw{Player: "ann", Pool: "p"})
	do(t, r, kuji.Draw{Player: "ann", Pool: "p"}) // behind all callbacks
	for range 100 {                               // what was called waits no more
		called := make(chan error)
		r.Submit(kuji.Draw{Player: "ann", Pool: "p", Count: 1000}, func(_ kuji.Result, err error) { go func() { called <- err }() })
		if err := <-called; err != nil {
			t.Fatal(err)
		}
		do(t, r, kuji.Draw{Player: "ann", Pool: "p"})
	}
}
