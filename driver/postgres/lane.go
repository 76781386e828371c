package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji/driver"
)

// A commit that waits for a standby is not cancelled: it would be there without the standby. Who asked
// for it goes when there is no more time, and the statement ends by itself. As long as it runs, the same
// statement again would only wait behind it on the server. So statements run in lanes, each of which has
// room for a few.

// lane is room for statements that are not cancelled.
type lane struct {
	room  chan struct{}
	hangs *atomic.Int32 // statements in a row that were given up
}

func newLane(n int) lane { return lane{make(chan struct{}, n), new(atomic.Int32)} }

// A connection whose statement does not end in hang is closed: nobody may be at its other end. If the
// database waits for a standby instead, it has one more session that waits. So the bound grows.
const (
	hang    = time.Minute
	maxHang = 16 * time.Minute
)

// flight is a statement under way in a lane.
type flight struct {
	began time.Time
	done  chan struct{} // closed when at and err are set
	at    driver.Cursor
	err   error
}

// fly runs op on a connection, apart from who asks for it. op's context never ends, and op is not called
// without a connection. end is called with the outcome before anybody learns it.
func (d *database) fly(l lane, op func(context.Context, *conn) (driver.Cursor, error), end func(*flight)) *flight {
	f := &flight{began: time.Now(), done: make(chan struct{})}
	finish := func(at driver.Cursor, err error) {
		f.at, f.err = at, err
		end(f)
		<-l.room
		close(f.done)
	}
	flying := d.run(func() {
		ctx, cancel := context.WithTimeout(d.life, d.o.Timeout)
		defer cancel()
		select {
		case d.appends <- struct{}{}:
		case <-ctx.Done():
			finish(0, fmt.Errorf("no connection: all wait for the database: %w", context.Cause(ctx)))
			return
		}
		defer func() { <-d.appends }()
		c, err := d.acquire(ctx)
		if err != nil {
			finish(0, err)
			return
		}
		bound := time.AfterFunc(min(hang<<l.hangs.Load(), maxHang), func() {
			l.hangs.Store(min(l.hangs.Load()+1, 4))
			d.o.Logger.Warn("PostgreSQL: a statement does not end: its connection is closed")
			c.abort()
		})
		at, err := op(context.Background(), c)
		if bound.Stop() {
			l.hangs.Store(0)
		}
		d.release(c, err)
		finish(at, err)
	})
	if !flying {
		go finish(0, driver.ErrClosed) // whoever asks may hold what end needs
	}
	return f
}

// enter takes a place in the lane, which fly gives back.
func (l lane) enter(ctx context.Context) error {
	select {
	case l.room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("earlier statements are under way: %w", context.Cause(ctx))
	}
}

// leave gives the place back, if nothing flies.
func (l lane) leave() { <-l.room }

// wait waits for a flight's end, or for that of ctx.
func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return fmt.Errorf("under way for %v: %w", time.Since(f.began).Round(time.Millisecond), context.Cause(ctx))
	}
}
