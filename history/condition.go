package history

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/kuji-dev/kuji"
)

// condition is how a history is, for those who read it and those who wait for it.
type condition struct {
	realm string
	mu    sync.Mutex
	s     standing
}

// standing is what a condition says at a moment.
type standing struct {
	known    State
	compared bool          // with the log
	fault    error         // why nothing is served: it is the history of another log
	damage   error         // the same: it is damaged
	down     error         // why Run has ended
	end      func()        // ends the Run under way; nil: none is
	built    int           // how often it was built again
	moved    chan struct{} // closed when something changes, or events have come
}

// unfit returns why nothing is served.
func (s *standing) unfit() error { return cmp.Or(s.fault, s.damage) }

// now returns how the history stands.
func (c *condition) now() standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s
}

// change changes how the history stands, and wakes those who wait.
func (c *condition) change(how func(s *standing)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	how(&c.s)
	if c.s.moved != nil {
		close(c.s.moved)
	}
	c.s.moved = make(chan struct{})
}

// move notes how far the history goes now.
func (c *condition) move(p progress) { c.change(func(s *standing) { s.known = p.state() }) }

// ended notes why a Run has ended, and returns it.
func (c *condition) ended(err error) error {
	if damageOf(err) != nil {
		c.hurt(err)
	}
	c.change(func(s *standing) {
		s.end = nil
		if kuji.CodeOf(err) == kuji.CodeCanceled {
			if s.damage != nil { // a reader met it
				err, s.down = s.damage, s.damage
			}
			return
		}
		s.down = err
		if kuji.CodeOf(err) == kuji.CodeCorrupt && damageOf(err) == nil { // the log is damaged, not the history
			s.down = &kuji.Error{Code: kuji.CodeFailed, Message: "following the log", Err: err}
		}
	})
	return err
}

// accept notes that the history is that of the log.
func (c *condition) accept() {
	c.change(func(s *standing) { s.fault, s.down, s.compared = nil, nil, true })
}

// refuse notes that the history is that of another log.
func (c *condition) refuse(why error) error {
	err := &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the history of realm %q is that of another log: delete it, and Kuji builds it again", c.realm), Err: why}
	c.change(func(s *standing) { s.fault = err })
	return err
}

// hurt notes damage, and ends the Run under way.
func (c *condition) hurt(err error) {
	c.change(func(s *standing) {
		s.damage = cmp.Or(s.damage, err)
		if s.end != nil {
			s.end()
		}
	})
}

// healed notes that a history was built again as far as it was damaged, and how far it is now.
func (c *condition) healed(p progress) {
	c.change(func(s *standing) {
		s.known, s.damage = p.state(), nil
		s.built++
	})
}

// DamagedError, in a [kuji.Error] of CodeCorrupt, says that rows are not as Run wrote them, or that the
// database is damaged. The history serves nothing more until the next Run has built it again.
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

// damageOf returns the damage in an error, or nil.
func damageOf(err error) *DamagedError {
	d, _ := errors.AsType[*DamagedError](err)
	return d
}
