package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/step"
)

// Shared keeps realms in memory for tests. Several nodes can have the same realm open, each by its
// own driver. What they say goes over a network that the test controls: it loses, doubles and delays
// messages by odds, or holds those of one node until the test lets them go. Its board stands on a
// log like those of its realms.
//
// Everything it does follows from its options, if its Runner is deterministic.
type Shared struct {
	steps step.Runner
	o     SharedOptions

	mu     sync.Mutex
	realms map[string]*realm
	board  *realm // the log that the board stands on
	net    network
	grown  chan struct{} // closed and made anew when a reader may have something to look at
	full   bool          // nothing more can be written
}

// SharedOptions say how a [Shared] behaves. The zero value is a network without faults.
type SharedOptions struct {
	// Rand draws the faults. Nil: there are none but those that the test makes.
	Rand *rand.Rand
	// Faults are the odds of each fault.
	Faults Faults
	// Unconditional is a log that cannot refuse an entry: Append appends it behind whatever stands
	// there, and looks back.
	Unconditional bool
	// Dense is a log whose cursors have no gaps.
	Dense bool
	// MaxEntry is the size of the largest entry, in bytes. 0: 64 KiB, the least that is allowed.
	MaxEntry int

	steps step.Runner // runs what would be goroutines, one for each message; nil: goroutines
}

func init() {
	hook.Shared = func(options any, steps step.Runner) { options.(*SharedOptions).steps = steps }
}

// Faults are odds in thousandths.
type Faults struct {
	Lose   int // of a message to get lost; its sender gets a time-out
	Double int // of a request to arrive twice
	Late   int // of a message to arrive some messages later, after its sender got a time-out
	Lag    int // of a reader to see the end of the log late
}

// NewShared returns a Shared without realms.
func NewShared(o SharedOptions) *Shared {
	if o.MaxEntry == 0 {
		o.MaxEntry = minEntry
	}
	return &Shared{
		steps:  o.steps,
		o:      o,
		realms: map[string]*realm{},
		board:  &realm{},
		net:    network{links: map[int]*link{}},
		grown:  make(chan struct{}),
	}
}

// minEntry is the least that [driver.Log.MaxEntry] may be.
const minEntry = 64 << 10

// realm is what is kept of one realm. Its Shared's mu guards it.
type realm struct {
	entries []entry
	last    driver.Cursor // of the newest entry there ever was
	trimmed driver.Cursor // of the newest entry that was trimmed
	files   map[string][]byte
}

type entry struct {
	driver.Entry
	damaged bool
}

// errLost is in the error of a call whose request or answer got lost.
var errLost = errors.New("no answer came")

// append appends data behind after, or wherever the log ends if after is nil.
func (s *Shared) append(r *realm, after *driver.Cursor, data []byte) (driver.Cursor, error) {
	if s.full {
		return 0, driver.ErrFull
	}
	var deposed error
	if after != nil && *after != r.last {
		deposed = fmt.Errorf("append behind %d: %w: the log ends at %d", *after, driver.ErrDeposed, r.last)
		if !s.o.Unconditional {
			return 0, deposed
		}
		if !slices.ContainsFunc(r.behind(*after), func(e entry) bool { return !bytes.Equal(e.Data, data) }) {
			deposed = nil // nothing but copies
		}
	}
	r.last++
	if !s.o.Dense {
		r.last += (r.last - 1) % 3
	}
	r.entries = append(r.entries, entry{Entry: driver.Entry{Cursor: r.last, Data: slices.Clone(data)}})
	s.wake()
	if deposed != nil {
		return 0, deposed
	}
	return r.last, nil
}

// first returns the cursor of the oldest entry, or of the next one.
func (r *realm) first() driver.Cursor {
	if len(r.entries) > 0 {
		return r.entries[0].Cursor
	}
	return r.last + 1
}

// behind returns the entries behind a cursor.
func (r *realm) behind(after driver.Cursor) []entry {
	i, found := slices.BinarySearchFunc(r.entries, after, func(e entry, c driver.Cursor) int {
		return int(int64(e.Cursor) - int64(c))
	})
	if found {
		i++
	}
	return r.entries[i:]
}

func (r *realm) trim(before driver.Cursor) {
	n := 0
	for n < len(r.entries) && r.entries[n].Cursor < before {
		r.trimmed = r.entries[n].Cursor
		n++
	}
	r.entries = slices.Clone(r.entries[n:])
}

// wake lets readers look again. s.mu is held.
func (s *Shared) wake() {
	close(s.grown)
	s.grown = make(chan struct{})
}

// chance reports whether something with odds of n in 1000 happens. s.mu is held.
func (s *Shared) chance(n int) bool { return s.o.Rand != nil && s.o.Rand.IntN(1000) < n }

// SetFull makes every write fail, as on a full disk, until it is called again with false.
func (s *Shared) SetFull(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

// Damage damages an entry.
func (s *Shared) Damage(name string, at driver.Cursor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.realms[name]; r != nil {
		for i := range r.entries {
			if r.entries[i].Cursor == at {
				r.entries[i].damaged = true
				return nil
			}
		}
	}
	return fmt.Errorf("realm %q has no entry at %d", name, at)
}

// Node returns a driver for a node. Each one is an instance of its own.
func (s *Shared) Node(n int) driver.Shared {
	log := &handle{shared: s, node: n, name: "_board", realm: s.board, max: driver.MaxBoard + recordHead}
	return &node{shared: s, id: n, log: log, board: &board{log: log, steps: s.steps}}
}

// node is a node's driver.
type node struct {
	shared *Shared
	id     int
	log    *handle // the board's
	*board
	closed bool // guarded by shared.mu
}

// Realms implements [driver.Driver].
func (n *node) Realms(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.shared.mu.Lock()
	defer n.shared.mu.Unlock()
	if n.closed {
		return nil, driver.ErrClosed
	}
	names := make([]string, 0, len(n.shared.realms))
	for name := range n.shared.realms {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Open implements [driver.Driver].
func (n *node) Open(ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := driver.CheckRealm(name); err != nil {
		return nil, err
	}
	n.shared.mu.Lock()
	defer n.shared.mu.Unlock()
	if n.closed {
		return nil, driver.ErrClosed
	}
	r := n.shared.realms[name]
	if r == nil {
		if o.MustExist || o.ReadOnly || o.Check {
			return nil, fmt.Errorf("realm %q %w", name, driver.ErrNotExist)
		}
		r = &realm{files: map[string][]byte{}}
		n.shared.realms[name] = r
	}
	return &handle{shared: n.shared, node: n.id, name: name, realm: r, readOnly: o.ReadOnly || o.Check,
		max: n.shared.o.MaxEntry, durable: r.last}, nil
}

// Close implements [driver.Driver].
func (n *node) Close() error {
	n.shared.mu.Lock()
	closed := n.closed
	n.closed = true
	n.shared.mu.Unlock()
	if closed {
		return driver.ErrClosed
	}
	return n.log.Close() // it ends updates under way
}
