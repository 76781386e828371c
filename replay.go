package kuji

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/internal/economy"
)

// Recovery, in short:
//
//	the opener:   read an entry of the log; check it; fold the chain
//	              copy its events' bytes into a stretch; decode them
//	              when the stretch is full: hand it on, take an empty one
//	the applier:  apply a stretch's events in order; give it back
//
// The applier is a goroutine that begins with the first full stretch: a short log
// is applied by the opener. Few stretches go round, so that memory is bounded
// whatever the log's size. An error of the applier comes before every error of the
// opener, which has read on: what is reported is the first error in the order of the log,
// and everything before it was applied.

const (
	// stretchBytes is how many bytes of events a stretch has room for. Of a larger
	// batch, which has memory of its own, about as many go into each.
	stretchBytes = 64 << 10
	// stretches is how many go round: one is filled and one is applied, and some wait.
	stretches = 4
	// settleEvery is how many events are applied before it is looked at whether what
	// they said was new was new. The more, the less it costs for each, but for
	// memory: up to 40 bytes for each of so many.
	settleEvery = 1 << 19
)

// stretch is events of some batches, on their way from the log into the state.
type stretch struct {
	group  *economy.Group
	buf    []byte  // what the events alias; of fixed capacity
	bytes  int     // of events that are not in buf
	places []place // of the batches that it has events of
}

// place is where an entry of the log stands.
type place struct{ position, offset uint64 }

// intake takes the batches of a log into a state.
type intake struct {
	realm  string
	state  *economy.State
	single bool // no goroutine is started

	open *stretch
	made int
	full chan *stretch // to the applier; nil while there is none
	free chan *stretch // and back

	// Whoever applies:
	applied   uint64  // events
	unsettled int     // of them
	places    []place // of their batches

	// The applier's, until done is closed:
	done     chan struct{}
	err      error
	panicked any
}

// errStopped says that the applier has met an error.
var errStopped = errors.New("stopped")

// run calls read, which gives batches to batch until an error, and returns the first
// error in the order of the log.
func (in *intake) run(read func() error) error {
	defer in.end()
	err := read()
	in.end()
	if in.panicked != nil {
		panic(in.panicked)
	}
	if in.err != nil {
		return in.err
	}
	if in.open != nil {
		if err := in.apply(in.open); err != nil {
			return err
		}
	}
	if err := in.settle(); err != nil {
		return err
	}
	return err
}

// end waits for the applier, and is the last that it hears of.
func (in *intake) end() {
	if in.full != nil {
		close(in.full)
		<-in.done
		in.full = nil
	}
}

// batch takes the events of a batch in. An error is one of the batch's form or errStopped.
func (in *intake) batch(e *replayed) error {
	time, n, rest, err := decodeBatch(e.payload)
	if err != nil {
		return e.corrupt(err)
	}
	s, err := in.room(len(rest))
	if err != nil {
		return err
	}
	own := len(rest) > stretchBytes
	if own {
		rest = slices.Clone(rest)
	} else {
		at := len(s.buf)
		s.buf = append(s.buf, rest...)
		rest = s.buf[at:]
	}
	at := economy.At{Position: e.index, Time: time}
	s.begin(e, at)
	for i := range n {
		if s.bytes >= stretchBytes {
			if s, err = in.next(); err != nil {
				return err
			}
			at.Index = i
			s.begin(e, at)
		}
		size, err := s.group.Add(rest)
		if err != nil {
			return e.corrupt(fmt.Errorf("event %d of %d, with %d bytes left: %w", i, n, len(rest), err))
		}
		if own {
			s.bytes += size
		}
		rest = rest[size:]
	}
	if len(rest) != 0 {
		return e.corrupt(fmt.Errorf("%d bytes after the last of %d events", len(rest), n))
	}
	return nil
}

func (s *stretch) begin(e *replayed, at economy.At) {
	s.group.Begin(at)
	s.places = append(s.places, place{e.index, e.offset})
}

// room returns a stretch with room for so many bytes, or with none for what is too much for any.
func (in *intake) room(bytes int) (*stretch, error) {
	switch {
	case in.open == nil:
		in.open = in.make()
	case len(in.open.buf)+in.open.bytes+min(bytes, stretchBytes) > stretchBytes && in.open.group.Len() > 0:
		return in.next()
	}
	return in.open, nil
}

func (in *intake) make() *stretch {
	in.made++
	return &stretch{group: in.state.NewGroup(), buf: make([]byte, 0, stretchBytes)}
}

// next hands the open stretch on and returns an empty one.
func (in *intake) next() (*stretch, error) {
	if in.single {
		if err := in.apply(in.open); err != nil {
			in.open = nil
			in.err = err
			return nil, errStopped
		}
		return in.open, nil
	}
	if in.full == nil {
		in.full, in.free, in.done = make(chan *stretch, stretches), make(chan *stretch, stretches), make(chan struct{})
		go in.applier()
	}
	in.full <- in.open // never waits: there is room for all that there are
	in.open = nil
	if in.made < stretches {
		in.open = in.make()
		return in.open, nil
	}
	select {
	case in.open = <-in.free:
		return in.open, nil
	case <-in.done:
		return nil, errStopped
	}
}

// applier applies stretches until there are no more, or to the first error.
func (in *intake) applier() {
	defer close(in.done)
	defer func() { in.panicked = recover() }() // for the opener to go on with
	for s := range in.full {
		if in.err = in.apply(s); in.err != nil {
			return
		}
		in.free <- s
	}
}

// apply applies a stretch's events and empties it.
func (in *intake) apply(s *stretch) error {
	in.places = append(in.places, s.places...)
	if at, err := in.state.ApplyGroup(s.group); err != nil {
		return in.misfit(at, err)
	}
	in.applied += uint64(s.group.Len())
	in.unsettled += s.group.Len()
	s.group.Reset()
	s.buf, s.bytes, s.places = s.buf[:0], 0, s.places[:0]
	if in.unsettled < settleEvery {
		return nil
	}
	return in.settle()
}

func (in *intake) settle() error {
	if at, err := in.state.Settle(); err != nil {
		return in.misfit(at, err)
	}
	in.unsettled, in.places = 0, in.places[:0]
	return nil
}

// misfit says which entry has an event that does not fit.
func (in *intake) misfit(at economy.At, err error) error {
	i, _ := slices.BinarySearchFunc(in.places, at.Position, func(p place, position uint64) int { return cmp.Compare(p.position, position) })
	e := replayed{envelope: envelope{realm: in.realm, index: at.Position}, offset: in.places[i].offset}
	return e.corrupt(err)
}
