package kuji

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/store"
)

// TestClock is a clock that its owner moves, to test what takes days or a season. Give its Now to
// Options.Now, of an engine in memory or one opened for tests. The zero value shows the machine's
// time. It runs on from where it is moved to. All methods can be called at the same time.
type TestClock struct{ ahead atomic.Int64 }

// Now returns the machine's time, moved. It has no monotonic reading: realms follow every move forward, and one
// back after [Realm.SetClock].
func (c *TestClock) Now() time.Time { return time.Now().Round(0).Add(time.Duration(c.ahead.Load())) }

// Move moves the clock by a duration, back if it is negative.
func (c *TestClock) Move(by time.Duration) { c.ahead.Add(int64(by)) }

// MoveTo makes the clock show a time, and run on from there.
func (c *TestClock) MoveTo(at time.Time) { c.ahead.Store(int64(time.Until(at))) }

// Settle carries out all that is due by now, and returns once that is durable. A realm does so by itself, within
// seconds after its clock was moved: a test need not wait for that.
//
// Errors: those of Do.
func (r *Realm) Settle(ctx context.Context) error {
	for {
		var s settling
		if _, err := r.w.carry(ctx, &s, nil); err != nil || !s.some {
			return err
		}
	}
}

// settling adds one event of the sweep, if anything is due.
type settling struct{ some bool }

func (s *settling) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	s.some = w.draft.sweep.step(b, event)
	return nil, nil
}

func (s *settling) entered(w *writer, _ *ledger.Batch) { w.draft.sweep.swept() }
