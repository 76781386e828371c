package kuji

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"syscall"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// rulesVersion numbers what decisions depend on: how they use the epoch's random values, and what
// rules make of the state. It stands in each epoch-begin. Only the verifier asks for it: see
// decidedVersions.
const rulesVersion = 6

// A time stamp that the rules allow has a place in the log, and the other way round.
var (
	_ [rules.MaxTime - ledger.MaxTime]struct{}
	_ [ledger.MaxTime - rules.MaxTime]struct{}
)

// openRealm opens a realm, creating it if needed, and replays its log. Then it begins an epoch, or
// follows.
//
// If there is no room to begin an epoch, or to repair the end of the log, the realm is opened all
// the same: stopped, as after a write that failed, so that what is durable can be read.
func openRealm(w world, name string, o Options) (*Realm, error) {
	log, full, err := openLog(w, name, o)
	if err != nil {
		return nil, err
	}
	r := &Realm{name: name, o: o, world: w, state: store.New()}
	r.ledger = ledger.New(ledger.Options{
		Realm: name, Log: log, Steps: w.steps, Entropy: func(p []byte) { w.entropy(name, p) },
		Key: w.key, OldKeys: w.oldKeys, KeyErr: w.keyErr, Rules: rulesVersion,
	})
	r.feeds.log, r.feeds.versions.turn = log, make(chan struct{}, 1)
	r.snap.ctx, r.snap.stop = context.WithCancel(context.Background())
	r.group = ledger.NewGroup(r.ledger, &r.mu, (*owner)(r), o.MaxPending)
	err = r.recover()
	if err == nil && !o.Follow {
		err = r.startClock()
	}
	if err == nil && !o.Follow && full == nil {
		full = r.takeOver()
		if !errors.Is(full, driver.ErrFull) {
			err, full = full, nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.ledger.Close())
	}
	switch {
	case full != nil:
		r.openFull(full)
	case o.Follow:
		r.startFollowing()
	default:
		r.serve()
	}
	return r, nil
}

// openFull opens a realm for reading only, because the disk is full.
func (r *Realm) openFull(err error) {
	r.epochs, r.epoch, r.seedsErr = r.ledger.Epochs(), r.ledger.Epoch(), r.ledger.SeedsErr()
	r.acked.Store(r.ledger.Position())
	r.leads.Store(true)
	r.showDurable()
	r.snap.stop()
	r.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q can only be read: the disk is full; make room and restart the server (in Go: close the engine and open it again)", r.name), Err: err})
}

// openLog opens what the driver keeps of a realm. If there is no room to repair the log's end, it
// opens it for reading only, and full says so.
func openLog(w world, name string, o Options) (log driver.Realm, full, err error) {
	ctx := context.Background()
	log, err = w.driver.Open(ctx, name, driver.Options{MustExist: o.MustExist})
	if errors.Is(err, driver.ErrFull) {
		full = err
		if log, err = w.driver.Open(ctx, name, driver.Options{ReadOnly: true}); errors.Is(err, driver.ErrNotExist) {
			err = full // there was no log yet
		}
	}
	_, damaged := errors.AsType[*driver.CorruptError](err)
	switch {
	case err == nil:
		return log, full, nil
	case errors.Is(err, driver.ErrNotExist) && o.MustExist && !damaged:
		return nil, nil, &Error{Code: CodeNotFound, Field: "realm", Message: "realm " + name + " has no log, and Options.MustExist forbids to create one", Err: err}
	}
	return nil, nil, &Error{Code: codeOfLedger(err), Message: "log of realm " + name, Err: err}
}

// recover loads the newest snapshot and replays the log behind it.
func (r *Realm) recover() error {
	var loaded *store.Loader
	seal, damaged, err := r.ledger.LoadNewest(context.Background(), func() ledger.Loader {
		loaded = store.NewLoader()
		return loader{loaded}
	})
	if err != nil {
		return r.failed("reading snapshots", err)
	}
	r.snap.err = damaged
	if seal != nil {
		state, mark, err := loaded.State()
		if err != nil {
			return r.failed("reading snapshots", &ledger.CorruptError{Where: "state", Err: err})
		}
		r.state, r.clock.last = state, seal.Last
		r.feeds.add(seal.At, state.Catalog().Version, seal.Last)
		if damaged == nil {
			r.snap.mark = &mark
		}
	}
	r.state.Alone(true)
	defer r.state.Alone(false)
	if err := r.ledger.Recover((*machine)(r), seal); err != nil {
		return r.lost(err, damaged)
	}
	r.stats.Recovered = r.ledger.Position()
	r.epochs = slices.Clone(r.ledger.Epochs())
	r.acked.Store(r.ledger.Position())
	return r.load()
}

// lost says why a log cannot be replayed. damaged is what is wrong with snapshots.
func (r *Realm) lost(err, damaged error) error {
	if _, ok := errors.AsType[*driver.TrimmedError](err); !ok {
		return r.failed("reading the log", err)
	}
	err = errors.Join(fmt.Errorf("%w, and no intact snapshot covers that", err), damaged)
	return &Error{Code: damage(err), Message: "snapshots of realm " + r.name, Err: err}
}

// load makes the tables of the catalog in force.
func (r *Realm) load() error {
	tables, err := rules.Load(r.state, r.state.Catalog())
	if err != nil {
		return &Error{Code: CodeCorrupt, Message: "realm " + r.name, Err: err}
	}
	r.rules = rules.New(r.state, tables)
	r.world.levels.note(r.name, r.state)
	r.loaded = r.stats.RecoveredEvents
	r.tables.Store(tables)
	r.countPools()
	r.outcomes.secret = r.state.Code
	return nil
}

// takeOver begins an epoch, and carries on through what others have appended before it.
func (r *Realm) takeOver() error {
	now := func() int64 {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.now()
	}
	if err := r.ledger.TakeOver(tail{(*machine)(r)}, now); err != nil {
		return r.failed("beginning an epoch", err)
	}
	return nil
}

// damage returns the code of a file that cannot be used. What the disk does not give is not
// damaged: it may give it later.
func damage(err error) Code {
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return CodeFailed
	}
	return CodeCorrupt
}

// machine is a realm as the ledger sees it: what the entries of the log make.
type machine Realm

// Change applies an entry to the state, except for its request ids.
func (m *machine) Change(e *ledger.Entry) error {
	switch e.Kind() {
	case ledger.KindEpochBegin:
		_, m.clock.last = e.Begun()
	case ledger.KindBatch:
		for le, err := range eventsOf(e, m.state.WarmChange) {
			if err == nil {
				err = e.Corrupt(m.state.Change(le.event, le.at))
			}
			if err != nil {
				return err
			}
			m.stats.RecoveredEvents++
		}
		m.clock.last = m.state.Now()
	}
	m.snap.bytes += int64(e.Size())
	if m.feeds.passed(e.Size()) {
		m.feeds.add(e.At(), m.state.Catalog().Version, m.clock.last)
	}
	return nil
}

// Remember remembers an entry's request ids.
func (m *machine) Remember(e *ledger.Entry) error {
	if e.Kind() != ledger.KindBatch {
		return nil
	}
	for le, err := range eventsOf(e, m.state.WarmRemember) {
		if err == nil {
			err = e.Corrupt(m.state.Remember(le.event, le.at))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// loggedEvent is one event of a batch.
type loggedEvent struct {
	event *store.Event // valid until the next iteration
	at    store.At
	last  bool // of its batch
}

// eventsAtOnce is the number of events whose memory is fetched together.
const eventsAtOnce = 64

// events iterates over the events of a batch. It calls warm with the next few of them before it
// yields them.
func eventsOf(e *ledger.Entry, warm func([]store.Event)) iter.Seq2[loggedEvent, error] {
	return func(yield func(loggedEvent, error) bool) {
		time, n, rest, err := ledger.OpenBatch(e.Payload())
		if err != nil {
			yield(loggedEvent{}, e.Corrupt(err))
			return
		}
		var some [eventsAtOnce]store.Event
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
			warm(some[:m])
			for j := range some[:m] {
				if !yield(loggedEvent{event: &some[j], at: store.At{Position: e.Position, Index: i + uint32(j), Time: time}, last: i+uint32(j)+1 == n}, nil) {
					return
				}
			}
			i += m
		}
		if err == nil && len(rest) != 0 {
			err = e.Corrupt(fmt.Errorf("%d bytes after the last of %d events", len(rest), n))
		}
		if err != nil {
			yield(loggedEvent{}, err)
		}
	}
}
