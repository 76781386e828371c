package kuji

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kuji-dev/kuji/internal/economy"
)

// Recovery, in short:
//
//	the opener:      read an entry of the log; check it; fold the chain
//	                 copy its events' bytes into a stretch; decode them
//	                 when the stretch is full: hand it on, take an empty one
//	the applier:     apply a stretch's events in order, but for their request ids; hand it on
//	the rememberer:  remember its request ids; give it back
//
// The applier and the rememberer are goroutines that begin with the first full stretch: a
// short log is applied by the opener. Few stretches go round, so that memory is bounded
// whatever the log's size. Each may have gone on behind an error that another is yet to meet:
// what is reported is the first error in the order of the log, and everything before it
// was applied.

const (
	// stretchBytes is how many bytes of events a stretch has room for. Of a larger
	// batch, which has memory of its own, about as many go into each.
	stretchBytes = 64 << 10
	// stretches is how many go round: each of three has one, and some wait.
	stretches = 6
	// settleEvery is how many events are applied before it is looked at whether what
	// they said was new was new. The more, the less it costs for each, but for
	// memory: up to 56 bytes for each of so many. The stretches together must have fewer
	// events, or places would not reach back to what is yet to be remembered; an event has
	// 4 bytes or more, so that they have a quarter of it at most.
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
	every  int  // settleEvery, if 0

	open *stretch
	made int
	full chan *stretch // to the applier; nil while there is none
	free chan *stretch // back from the rememberer
	stop chan struct{} // closed by the first of the two who has met an error
	once sync.Once     // for stop
	work sync.WaitGroup

	// Whoever applies, the applier's until it has ended:
	applied uint64  // events
	since   int     // of them: since players were settled
	places  []place // of the batches of those, and of as many before them
	fresh   int     // of the places: of batches before those
	misfit  error   // the first event that does not fit
	at      economy.At
	clash   bool // somebody who was said to be new was not, and must not be moved

	// Likewise, the rememberer's:
	remembered int // events since request ids were settled

	panicked [2]any
}

// errStopped says that the applier or the rememberer has met an error.
var errStopped = errors.New("stopped")

// run calls read, which gives batches to batch until an error, and returns the first
// error in the order of the log.
func (in *intake) run(read func() error) error {
	if in.every == 0 {
		in.every = settleEvery
	}
	defer in.end()
	err := read()
	in.end()
	for _, p := range in.panicked {
		if p != nil {
			panic(p)
		}
	}
	if in.open != nil && in.misfit == nil && !in.clash {
		in.takeIn(in.open)
	}
	if at, again := in.state.Settle(); again != nil {
		return in.wrong(at, again)
	}
	if in.misfit != nil {
		return in.wrong(in.at, in.misfit)
	}
	return err
}

// end waits for the applier and the rememberer, and is the last that they hear of.
func (in *intake) end() {
	if in.full != nil {
		close(in.full)
		in.work.Wait()
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
		if !in.takeIn(in.open) {
			in.open = nil
			return nil, errStopped
		}
		return in.open, nil
	}
	if in.full == nil {
		in.start()
	}
	in.full <- in.open // never waits, as nobody does who hands one on: there is room for all that there are
	in.open = nil
	if in.made < stretches {
		in.open = in.make()
		return in.open, nil
	}
	select {
	case in.open = <-in.free:
		return in.open, nil
	case <-in.stop:
		return nil, errStopped
	}
}

// start starts the applier and the rememberer.
func (in *intake) start() {
	in.full, in.free, in.stop = make(chan *stretch, stretches), make(chan *stretch, stretches), make(chan struct{})
	applied := make(chan *stretch, stretches)
	in.work.Go(func() {
		defer close(applied)
		defer in.met(&in.panicked[0])
		for s := range in.full {
			ok := in.apply(s)
			applied <- s
			if !ok {
				return
			}
		}
	})
	in.work.Go(func() {
		defer in.met(&in.panicked[1])
		for s := range applied {
			if !in.remember(s) {
				return
			}
			in.free <- s
		}
	})
}

// met ends the applier or the rememberer, because of an error or as there is nothing left
// to do, and keeps a panic for the opener to go on with.
func (in *intake) met(panicked *any) {
	*panicked = recover()
	in.once.Do(func() { close(in.stop) })
}

// takeIn is apply and remember. It reports false when an event does not fit.
func (in *intake) takeIn(s *stretch) bool {
	ok := in.apply(s)
	return in.remember(s) && ok
}

// apply applies a stretch's events but for their request ids.
func (in *intake) apply(s *stretch) bool {
	in.places = append(in.places, s.places...)
	if in.at, in.misfit = in.state.ApplyGroup(s.group); in.misfit != nil {
		return false
	}
	in.applied += uint64(s.group.Len())
	in.since += s.group.Len()
	if in.since < in.every {
		return true
	}
	// The rememberer, who is some stretches behind, may yet find that one of those does not
	// fit which have just been settled.
	in.places = slices.Delete(in.places, 0, in.fresh)
	in.since, in.fresh = 0, len(in.places)
	in.clash = !in.state.SettlePlayers()
	return !in.clash
}

// remember remembers a stretch's request ids, and empties it.
func (in *intake) remember(s *stretch) bool {
	if !in.state.RememberGroup(s.group) {
		return false
	}
	in.remembered += s.group.Len()
	s.group.Reset(s.bytes == 0)
	s.buf, s.bytes, s.places = s.buf[:0], 0, s.places[:0]
	if in.remembered < in.every {
		return true
	}
	in.remembered = 0
	return in.state.SettleIDs()
}

// wrong says which entry has an event that does not fit.
func (in *intake) wrong(at economy.At, err error) error {
	i, _ := slices.BinarySearchFunc(in.places, at.Position, func(p place, position uint64) int { return cmp.Compare(p.position, position) })
	e := replayed{envelope: envelope{realm: in.realm, index: at.Position}, offset: in.places[i].offset}
	return e.corrupt(err)
}
