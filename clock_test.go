package kuji_test

import (
	"math"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestOddClocks: whatever the clock says, stamps never decrease, over restarts
// neither, limits hold, and the log verifies.
func TestOddClocks(t *testing.T) {
	c, err := catalog.Parse([]byte(`kuji: 1
items: {gem: {}}
pools:
  day: {limits: [{per: day, draws: 1}], entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
  week: {limits: [{per: week, draws: 1}], entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
  window: {limits: [{per: window, window: 1h, draws: 1}], entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	disk, now, last := vfs.NewMem(), int64(0), int64(0)
	for _, at := range []int64{-5, 1_700_000_000_000, 1_600_000_000_000, math.MinInt64, 1 << 45, 1<<46 - 1, 1 << 46, 1<<46 + 1, 1_700_000_000_000, 1 << 55, math.MaxInt64 / 1000} {
		now = at
		e, err := openWorld("data", worldOptions{FS: disk, Now: func() time.Time { return time.UnixMilli(now) }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Realm("a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for _, pool := range []string{"day", "week", "window"} {
			for i := range 3 { // the second and third are over the limit, whatever came before
				res, err := r.Do(t.Context(), kuji.Draw{Player: "ann", Pool: pool})
				if err != nil {
					t.Fatal(err)
				}
				if res.Receipt.Time < last {
					t.Errorf("clock at %d: stamp %d after %d", at, res.Receipt.Time, last)
				}
				if last = res.Receipt.Time; i > 0 && res.Status != kuji.LimitReached {
					t.Errorf("clock at %d, pool %s: %v", at, pool, res)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := verifyIn(disk, "data", "a", nil); err != nil {
			t.Fatalf("clock at %d: %v", at, err)
		}
	}
}
