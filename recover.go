package kuji

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// A time stamp that the rules allow has a place in the log, and the other way round.
var (
	_ [rules.MaxTime - ledger.MaxTime]struct{}
	_ [ledger.MaxTime - rules.MaxTime]struct{}
)

// openRealm opens or creates a realm, replays its log and begins an epoch, or follows. On a full disk the
// realm is stopped, so that it can be read.
func openRealm(w world, name string, o Options) (*Realm, error) {
	log, full, err := openLog(w, name, o)
	if err != nil {
		return nil, err
	}
	r := newRealm(home{name, o, w}, log)
	err = r.replica.m.recover()
	if err == nil && !o.Follow {
		err = r.w.clock.start(name)
	}
	if err == nil && !o.Follow && full == nil {
		full = r.replica.m.takeOver()
		if !errors.Is(full, driver.ErrFull) {
			err, full = full, nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.w.ledger.Close())
	}
	switch {
	case full != nil:
		r.replica.openFull(full)
	case o.Follow:
		r.replica.follow()
	default:
		r.replica.serve()
	}
	return r, nil
}

func newRealm(h home, log driver.Realm) *Realm {
	w := &writer{home: h, state: store.New(), clock: clock{read: h.o.Now, steps: h.world.steps, confirmed: h.o.ClockConfirmed}}
	w.gate.name, w.draft.sweep.w = h.name, w
	w.ledger = ledger.New(ledger.Options{
		Realm: h.name, Log: log, Steps: h.world.steps, Entropy: func(p []byte) { h.world.entropy(h.name, p) },
		Key: h.world.key, OldKeys: h.world.oldKeys, KeyErr: h.world.keyErr, Rules: rules.Version,
	})
	places := &places{w: w, log: log}
	snaps := &snapshots{w: w}
	snaps.ctx, snaps.stop = context.WithCancel(context.Background())
	b := &batches{w: w, snaps: snaps, places: places}
	w.group = ledger.NewBatches(w.ledger, &w.mu, b, h.o.MaxPending)
	return &Realm{
		w: w, snaps: snaps, batches: b,
		feed:     &Feed{w: w, log: log, places: places, readers: map[*feedReader]struct{}{}},
		catalogs: &Catalogs{w: w, places: places, turn: make(chan struct{}, 1)},
		replica:  &Replica{w: w, snaps: snaps, m: machine{w: w, snaps: snaps, places: places}},
	}
}

// openFull opens a realm for reading only, because the disk is full.
func (p *Replica) openFull(err error) {
	w := p.w
	w.proofs = proofsOf(w.ledger)
	w.gate.acked.Store(w.ledger.Position())
	w.gate.leads.Store(true)
	w.gate.lower(w.ledger.Durable())
	p.snaps.stop()
	w.gate.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q can only be read: the disk is full; make room and restart the server (in Go: close the engine and open it again)", w.name), Err: err})
}

// openLog opens what the driver keeps of a realm. full: only for reading, with no room left to repair it.
func openLog(w world, name string, o Options) (log driver.Realm, full, err error) {
	ctx := context.Background()
	log, err = w.driver.Open(ctx, name, driver.Options{MustExist: o.MustExist})
	if errors.Is(err, driver.ErrFull) {
		full = err
		if log, err = w.driver.Open(ctx, name, driver.Options{ReadOnly: true}); errors.Is(err, driver.ErrNotExist) {
			err = full // there was no log yet
		}
	}
	if err == nil {
		return log, full, nil
	}
	if _, damaged := errors.AsType[*driver.CorruptError](err); errors.Is(err, driver.ErrNotExist) && o.MustExist && !damaged {
		return nil, nil, &Error{Code: CodeNotFound, Field: "realm", Message: "realm " + name + " has no log, and Options.MustExist forbids to create one", Err: err}
	}
	return nil, nil, &Error{Code: codeOfLedger(err), Message: "log of realm " + name, Err: err}
}

// recover loads the newest snapshot and replays the log after it.
func (m *machine) recover() error {
	var loaded *store.Loader
	footer, damaged, err := m.w.ledger.LoadNewest(context.Background(), func() ledger.Loader {
		loaded = store.NewLoader()
		return logged.Loader{Loader: loaded}
	})
	if err != nil {
		return m.w.failed("reading snapshots", err)
	}
	m.snaps.err = damaged
	if footer != nil {
		state, extent, err := loaded.State()
		if err != nil {
			return m.w.failed("reading snapshots", &ledger.CorruptError{Where: "state", Err: err})
		}
		m.w.state, m.w.clock.last = state, footer.Last
		m.places.add(place{at: footer.At, version: state.Catalog().Version, time: footer.Last})
		if damaged == nil {
			m.snaps.extent = &extent
		}
	}
	m.w.state.Alone(true)
	defer m.w.state.Alone(false)
	if err := m.w.ledger.Recover(m, footer); err != nil {
		return m.lost(err, damaged)
	}
	m.w.counts.stats.Recovered = m.w.ledger.Position()
	m.w.proofs.epochs = slices.Clone(m.w.ledger.Epochs())
	m.w.gate.acked.Store(m.w.ledger.Position())
	return m.load()
}

// lost says why a log cannot be replayed. damaged is what is wrong with snapshots.
func (m *machine) lost(err, damaged error) error {
	if _, ok := errors.AsType[*driver.TrimmedError](err); !ok {
		return m.w.failed("reading the log", err)
	}
	err = errors.Join(fmt.Errorf("%w, and no intact snapshot covers that", err), damaged)
	return &Error{Code: damage(err), Message: "snapshots of realm " + m.w.name, Err: err}
}

// load makes the tables of the catalog in force.
func (m *machine) load() error {
	tables, err := rules.Load(m.w.state, m.w.state.Catalog())
	if err != nil {
		return &Error{Code: CodeCorrupt, Message: "realm " + m.w.name, Err: err}
	}
	m.w.rules = rules.New(m.w.state, tables)
	m.w.world.levels.note(m.w.name, m.w.state)
	m.loaded = m.w.counts.stats.RecoveredEvents
	m.w.tables.Store(tables)
	m.w.countPools()
	m.w.outcomes.secret = m.w.state.Code
	return nil
}

// takeOver begins an epoch, and applies what others have appended before it.
func (m *machine) takeOver() error {
	now := func() int64 {
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		return m.w.now()
	}
	if err := m.w.ledger.TakeOver(tail{m}, now); err != nil {
		return m.w.failed("beginning an epoch", err)
	}
	return nil
}

// damage returns the code of a file that cannot be used. What the disk does not give now is not damaged.
func damage(err error) Code {
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return CodeFailed
	}
	return CodeCorrupt
}

// machine makes a realm of the entries of its log.
type machine struct {
	w      *writer
	snaps  *snapshots
	places *places
	loaded uint64 // the events that were recovered when the rules were made
}

// Change applies an entry to the state, except for its request ids.
func (m *machine) Change(e *ledger.Entry) error {
	w := m.w
	switch e.Kind() {
	case ledger.KindEpochBegin:
		_, w.clock.last = e.Begun()
	case ledger.KindBatch:
		for le, err := range logged.Events(e, w.state.WarmChange) {
			if err != nil {
				return err
			}
			if err := w.state.Change(le.Event, le.At, nil); err != nil {
				return e.Corrupt(err)
			}
			w.counts.stats.RecoveredEvents++
		}
		w.clock.last = w.state.Now()
	}
	m.snaps.bytes += int64(e.Size())
	m.places.passed(e.Size(), e.At(), w.state.Catalog().Version, w.clock.last)
	return nil
}

// Remember remembers an entry's request ids.
func (m *machine) Remember(e *ledger.Entry) error {
	if e.Kind() != ledger.KindBatch {
		return nil
	}
	for le, err := range logged.Events(e, m.w.state.WarmRemember) {
		if err != nil {
			return err
		}
		if err := m.w.state.Remember(le.Event, le.At); err != nil {
			return e.Corrupt(err)
		}
	}
	return nil
}
