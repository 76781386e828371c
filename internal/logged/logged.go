// Package logged reads what is kept of a realm: entries as events, snapshots as a state. Engine,
// followers and verifier use it. No decision and no result of a request may enter.
package logged

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// MaxPending is the most bytes of events that an entry of the log has before its last event.
const MaxPending = 16 << 20

type Event struct {
	*store.Event // valid until the next iteration
	At           store.At
	Last         bool // of its batch
}

const eventsAtOnce = 64 // whose memory is fetched together

// rooms are for the events that an iteration has decoded: most batches are small, and this is not.
var rooms = sync.Pool{New: func() any { return new([eventsAtOnce]store.Event) }}

// Events iterates over the events of a batch. warm, if not nil, is called with the next few of them.
func Events(e *ledger.Entry, warm func([]store.Event)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		time, n, rest, err := ledger.OpenBatch(e.Payload())
		if err != nil {
			yield(Event{}, e.Corrupt(err))
			return
		}
		some := rooms.Get().(*[eventsAtOnce]store.Event)
		defer rooms.Put(some)
		for i := uint32(0); i < n && err == nil; {
			m := uint32(0)
			for m < uint32(len(some)) && i+m < n {
				size := 0
				if size, err = store.Decode(rest, &some[m]); err != nil {
					err = e.Corrupt(fmt.Errorf("event %d of %d, with %d bytes left: %w", i+m, n, len(rest), err))
					break
				}
				rest = rest[size:]
				if m++; rules.Kind(some[m-1].Kind) == rules.KindClock && i+m < n {
					err = e.Corrupt(fmt.Errorf("event %d of %d sets the clock; only the last one may", i+m-1, n))
					break
				}
			}
			if warm != nil {
				warm(some[:m])
			}
			for j := range some[:m] {
				if !yield(Event{Event: &some[j], At: store.At{Position: e.Position, Index: i + uint32(j), Time: time}, Last: i+uint32(j)+1 == n}, nil) {
					return
				}
			}
			i += m
		}
		if err == nil && len(rest) != 0 {
			err = e.Corrupt(fmt.Errorf("%d bytes after the last of %d events", len(rest), n))
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// Catalogs returns how many catalogs an event puts in force.
func Catalogs(ev *store.Event) (n uint64) {
	if kind := rules.Kind(ev.Kind); kind != rules.KindCatalog && kind != rules.KindApprove {
		return 0
	}
	var e store.Effect
	for effects := ev.Changes(); effects.Next(&e); {
		if e.Verb == store.Catalog {
			n++
		}
	}
	return n
}

// Draws returns how many single draws an event made. s has its names.
func Draws(s rules.Numbered, ev *store.Event) (uint64, error) {
	switch kind := rules.Kind(ev.Kind); {
	case ev.Status != 0, kind == rules.KindCatalog, kind == rules.KindClock, kind == rules.KindCodes, kind == rules.KindUpgrade, kind == rules.KindDue,
		kind.Proposes():
		return 0, nil
	case kind == rules.KindRedeem:
		used, err := rules.RedeemedOf(ev)
		return used.Draws, err
	}
	cmd, _, err := rules.CommandOf(s, ev)
	return cmd.Draws(), err
}

// Describe returns what makes a kuji.Record of each event. s is the state after the event, version that of
// the catalog in force before it. Package kuji sets it.
var Describe func(s *store.State) func(e *Event, version uint64) (record any, err error)

// IsNew reports whether a realm has yet to begin: its first catalog says at which format level.
func IsNew(s *store.State) bool { return s.Catalog().Version == 0 && s.Level() == format.First }

// Loader loads the blocks of snapshots into a store.
type Loader struct{ *store.Loader }

func (l Loader) Block(kind byte, data []byte) error {
	return l.Loader.Block(store.BlockKind(kind), data)
}

// Trimmed returns how far a log was trimmed, or nil.
func Trimmed(ctx context.Context, log driver.Realm) (*driver.TrimmedError, error) {
	first, err := log.First(ctx)
	if err != nil || first <= 1 {
		return nil, err
	}
	for _, err := range log.Read(ctx, 0, first) {
		if t, ok := errors.AsType[*driver.TrimmedError](err); ok {
			return t, nil
		}
		break // other errors come again
	}
	return nil, nil
}
