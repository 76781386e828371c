package history

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kuji-dev/kuji"
)

// condition is how a history is, for those who read it and those who wait for it.
type condition struct {
	realm     string
	known     atomic.Pointer[State]
	following atomic.Bool

	mu     sync.Mutex
	fault  error         // why nothing is served: it is the history of another log
	damage error         // the same: it is damaged
	down   error         // why Run has ended
	end    func()        // ends the Run that goes on; nil: none does
	built  int           // how often it was built again
	moved  chan struct{} // closed when it has come further, or will not
}

func newCondition(realm string) condition {
	return condition{realm: realm, moved: make(chan struct{})}
}

// unfit returns how often it was built again, and why nothing is served.
func (c *condition) unfit() (built int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.built, cmp.Or(c.fault, c.damage)
}

// isDown returns why it is not kept up to date.
func (c *condition) isDown() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.fault, c.damage, c.down)
}

// next returns what closes when something changes, why nothing is served, and why Run has ended.
func (c *condition) next() (moved <-chan struct{}, unfit, down error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved, cmp.Or(c.fault, c.damage), c.down
}

// wake wakes who waits. The caller holds mu.
func (c *condition) wake() {
	close(c.moved)
	c.moved = make(chan struct{})
}

// move notes how far the history has come, and wakes who waits for that.
func (c *condition) move(p progress) {
	c.known.Store(new(p.state()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wake()
}

// begin notes that a Run goes on, and how to end it.
func (c *condition) begin(end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = end
}

// ended notes why a Run has ended, and returns it.
func (c *condition) ended(err error) error {
	if damageOf(err) != nil {
		c.hurt(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.damage != nil && kuji.CodeOf(err) == kuji.CodeCanceled { // by a reader that met it
		err = c.damage
	}
	if c.end = nil; kuji.CodeOf(err) != kuji.CodeCanceled {
		c.down = err
		if kuji.CodeOf(err) == kuji.CodeCorrupt && damageOf(err) == nil { // the history is well, but the log is not
			c.down = &kuji.Error{Code: kuji.CodeFailed, Message: "following the log", Err: err}
		}
	}
	c.wake()
	return err
}

// accept notes that the history is that of the log.
func (c *condition) accept() {
	c.mu.Lock()
	c.fault, c.down = nil, nil
	c.mu.Unlock()
	c.following.Store(true)
}

// refuse notes that the history is that of another log.
func (c *condition) refuse(why error) error {
	err := &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the history of realm %q is that of another log: delete it, and Kuji builds it again", c.realm), Err: why}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = err
	c.wake()
	return err
}

// hurt notes damage, and ends the Run that goes on.
func (c *condition) hurt(err error) {
	c.unserve(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		c.end()
	}
}

// unserve notes damage: nothing is served until healed.
func (c *condition) unserve(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.damage == nil {
		c.damage = err
	}
	c.wake()
}

// met notes damage that a reader has met, unless the history was built again since it began.
func (c *condition) met(err error, built int) {
	if damageOf(err) == nil {
		return
	}
	if now, _ := c.unfit(); now == built {
		c.hurt(err)
	}
}

// healed notes that a history was built again as far as it was damaged, and how far it is now. Who
// waits must not see that it is served before seeing that it has fewer events.
func (c *condition) healed(p progress) {
	c.known.Store(new(p.state()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.damage = nil
	c.built++
	c.wake()
}

// damageKnown returns what was noted.
func (c *condition) damageKnown() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.damage
}

// DamagedError says that a history has rows that Run has not written so, or that its database is
// damaged. It comes in a [kuji.Error] of CodeCorrupt. The history serves nothing more until the next
// Run has built it again.
type DamagedError struct {
	What     string
	Err      error // of the database; nil: its rows are wrong
	database bool
}

func (e *DamagedError) Error() string {
	if e.Err != nil {
		return e.What + ": " + e.Err.Error()
	}
	return e.What
}

// Unwrap returns the error of the database.
func (e *DamagedError) Unwrap() error { return e.Err }

const damagedText = "the history is damaged, and Kuji builds it again from the log"

func damaged(format string, args ...any) error {
	return &kuji.Error{Code: kuji.CodeCorrupt, Message: damagedText, Err: &DamagedError{What: fmt.Sprintf(format, args...)}}
}

// damageOf returns the damage in an error; nil: there is none.
func damageOf(err error) *DamagedError {
	d, _ := errors.AsType[*DamagedError](err)
	return d
}
