package postgres

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji/driver"
)

// courses has what this process knows of each realm, whoever has it open.
type courses struct {
	dir    string // of marks; "": none
	logger *slog.Logger
	tell   atomic.Pointer[func(string, driver.Cursor)]

	mu     sync.Mutex
	byName map[string]*course
}

// of returns a realm's course.
func (cs *courses) of(realm string) *course {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byName[realm]
	if c == nil {
		c = newCourse(realm)
		c.marks.dir, c.marks.logger = cs.dir, cs.logger
		cs.byName[realm] = c
	}
	return c
}

func newCourse(realm string) *course {
	return &course{realm: realm, lane: newLane(2), fences: newLane(1), changed: make(chan struct{}), flights: map[*flight]cargo{}}
}

// course is what this process knows of a realm.
type course struct {
	realm  string
	lane   lane // of appends
	fences lane

	mu      sync.Mutex // guards what follows
	id      int32      // the realm's number; 0: it was not opened yet
	flights map[*flight]cargo
	durable driver.Cursor // the last entry that is known to survive
	last    driver.Cursor // the last entry that was acknowledged or read here,
	sum     int32         // its checksum,
	exact   bool          // and whether there is one
	changed chan struct{} // closed when the log may have changed
	marks   marks
}

// flying returns a flight that carries the same, unless it takes suspiciously long.
func (c *course) flying(what cargo) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f, other := range c.flights {
		if other == what && time.Since(f.began) < old {
			return f
		}
	}
	return nil
}

// fly starts a flight and remembers it until it ends.
func (c *course) fly(what cargo, start func(end func(*flight)) *flight) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := start(func(f *flight) {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.flights, f)
	})
	c.flights[f] = what
	return f
}

// busy reports whether an append is under way.
func (c *course) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.flights) > 0
}

// sumAt returns the checksum of an entry, or nil if it is not the last one that is known.
func (c *course) sumAt(at driver.Cursor) *int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.exact || c.last != at {
		return nil
	}
	sum := c.sum
	return &sum
}

// lastSum returns the last known entry and its checksum, or nil.
func (c *course) lastSum() (driver.Cursor, *int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.exact {
		return 0, nil
	}
	sum := c.sum
	return c.last, &sum
}

// forget drops the last known entry, which was trimmed.
func (c *course) forget(at driver.Cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == at {
		c.exact = false
	}
}

// reset forgets all but the marks: the realm is another one, or was cut. The caller holds mu.
func (c *course) reset() { c.durable, c.last, c.exact = 0, 0, false }

// passed notes an entry that survives.
func (c *course) passed(at driver.Cursor, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.exact || at > c.last {
		c.last, c.sum, c.exact = at, sumOf(data), true
	}
	c.marks.pass(at, data)
	c.wake(at)
}

// survives notes that an entry, and so all before it, survive.
func (c *course) survives(at driver.Cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wake(at)
}

// wake is survives for one who holds mu.
func (c *course) wake(at driver.Cursor) {
	if at > c.durable {
		c.durable = at
		c.change()
	}
}

// change wakes the readers. The caller holds mu.
func (c *course) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// look makes the readers look.
func (c *course) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change()
}

// mark returns this process's own mark; cursor 0: there is none.
func (c *course) mark() driver.Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.marks.own
}

func (c *course) durableTo() driver.Cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.durable
}

// next returns a channel that is closed at the next change.
func (c *course) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// OnAppend implements [driver.Nudged].
func (d *Driver) OnAppend(tell func(realm string, at driver.Cursor)) { d.courses.tell.Store(&tell) }

// Nudge implements [driver.Nudged].
func (d *Driver) Nudge(realm string, at driver.Cursor) { d.courses.of(realm).survives(at) }
