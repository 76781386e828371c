package kuji

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
)

// Realm is one game or campaign: one ordered log, one state, one writer. All methods may be called
// concurrently.
type Realm struct {
	name  string
	o     Options
	world world

	// Owned by openRealm, then by keepUp, then by the flusher, then by close: never by two at once.
	ledger *ledger.Ledger

	// catalogs is held while a catalog is prepared and put in force, or planned. That takes long
	// and mostly runs without mu. Lock it before mu.
	catalogs sync.Mutex

	mu       sync.Mutex
	state    *store.State
	rules    *rules.Rules
	clock    clock
	source   ledger.Source
	event    store.Writer   // of the event being decided
	request  request        // that asks for it
	decoded  store.Event    // it, or the one that answers it
	epochs   []ledger.Epoch // the ledger's, once its own has begun
	group    *ledger.Group  // makes events durable
	version  uint64         // of the catalog in force behind the batch being written
	hash     *[32]byte      // of the state behind the open batch, for StateHash; nil: nobody asked
	err      *Error         // why the realm stopped; nil while healthy
	stats    Stats
	drawn    []uint64 // by pool number: single draws that ended OK, since opening
	outcomes outcomes
	snap     snapshots
	feeds    feeds
	epoch    uint64        // of this writer; 0: none yet
	seedsErr error         // which seeds are lost
	heard    uint64        // the highest position that Await was asked for
	mark     mark          // of the newest acknowledged batch
	moved    chan struct{} // closed when acked moves, or never will again; nil: nobody waits
	loaded   uint64        // the events that were recovered when the rules were made

	follower *follower // nil: the realm leads from the start; fixed once it is open

	tables   atomic.Pointer[rules.Tables] // the catalog in force, for readers without mu
	acked    atomic.Uint64                // position of the newest acknowledged batch
	answered atomic.Uint64                // events acknowledged since opening
	stopped  atomic.Pointer[Error]        // why the realm refuses requests, for readers without mu
	gone     atomic.Pointer[Error]        // why it refuses reads too: it was closed, or a defect may have spoilt the state
	leads    atomic.Bool                  // it has taken the log over; stays so when it stops
}

// Stats holds a realm's counters since it was opened, and current sizes.
type Stats struct {
	Position        uint64 // of the newest acknowledged batch
	LastEvent       uint64 // position of the newest acknowledged event: the feed has come so far
	Batches         uint64 // appended since opening
	Events          uint64 // appended since opening
	Draws           uint64 // single draws that ended OK, since opening
	Failures        uint64 // events with a status other than OK, since opening
	Replays         uint64 // first answers returned again, since opening
	LogBytes        uint64 // appended since opening
	Players         uint64 // seen so far
	RequestIDs      uint64 // remembered now
	YoungRequestIDs uint64 // of them, those within the idempotency window's age: at RequestIDLimit, new ids are refused
	RequestIDLimit  uint64 // the most that can be younger than the idempotency window's age
	RequestIDBytes  uint64 // approximate memory that they take
	OldestRequestID int64  // when the oldest remembered one was answered, Unix milliseconds; 0: none
	RefusedIDs      uint64 // requests refused because the limit was reached, since opening
	PendingBytes    uint64 // of events that wait for the log now
	Recovered       uint64 // position found at opening
	RecoveredEvents uint64 // events replayed at opening
	CatalogVersion  uint64 // in force
	Level           uint8  // the realm's format level: see Realm.FinishUpgrade
	NewestLevel     uint8  // that FinishUpgrade would raise it to, by what this build and Options.FormatLevel know
	Snapshots       uint64 // taken since opening
	Snapshot        uint64 // position of the newest; 0: none
	SnapshotErr     error  // of the last attempt since opening; nil: it succeeded
	Clock           ClockView
	Readers         int      // of the feed: see Realm.Events
	ReaderLag       uint64   // by how many positions the slowest of them is behind Position
	SeedsErr        error    // which epochs cannot be proven, or which seeds fitted none, at opening; nil: none
	Epoch           uint64   // of this writer; 0: the realm follows
	Behind          uint64   // by how many positions the realm is behind what Await was asked for
	Differs         uint64   // 1: the realm's chain differs from another node's, see Realm.Compare
	Chain           [32]byte // the hash of the log's chain at Position; zero: not known
}

// Name returns the realm's name.
func (r *Realm) Name() string { return r.name }

// Err returns nil while the realm is healthy, and otherwise why it stopped.
func (r *Realm) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return orNil(r.err)
}

// Stats returns counters and sizes.
func (r *Realm) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Position = r.acked.Load()
	s.LastEvent = min(s.Position, r.state.Position())
	s.Players = uint64(r.state.Players())
	ids := r.state.WindowSize()
	s.RequestIDs, s.RequestIDLimit, s.RequestIDBytes, s.OldestRequestID = ids.Remembered, ids.Limit, ids.Bytes, ids.Oldest
	s.CatalogVersion = r.state.Catalog().Version
	s.Level, s.NewestLevel = uint8(r.state.Level()), uint8(r.newestLevel())
	s.Epoch = r.epoch
	s.SnapshotErr = r.snap.err
	s.Clock = r.clockView()
	s.YoungRequestIDs = uint64(r.state.Young(s.Clock.Time))
	s.SeedsErr = r.seedsErr
	if r.mark.position == s.Position {
		s.Chain = r.mark.hash
	}
	s.Behind = r.heard - min(r.heard, s.Position)
	s.Readers, s.ReaderLag = r.feeds.lag(s.Position)
	if newest, ok := r.ledger.Newest(); ok {
		s.Snapshot = newest.Position
	}
	s.PendingBytes = r.group.Pending()
	return s
}

// receipt fills in the proof of a result. The caller holds mu.
func (r *Realm) receipt(rc *Receipt, at store.At, version uint64) {
	rc.Realm, rc.Position, rc.Index, rc.Time, rc.CatalogVersion = r.name, at.Position, int(at.Index), at.Time, version
	for i := len(r.epochs) - 1; i >= 0; i-- { // nearly always the last
		if e := &r.epochs[i]; e.First <= at.Position {
			rc.Epoch, rc.Commitment = e.Number, e.Commitment
			return
		}
	}
}

// usable returns why the realm refuses requests, or nil.
func (r *Realm) usable() error { return orNil(r.stopped.Load()) }

// readable returns why the realm refuses reads, or nil.
func (r *Realm) readable() error { return orNil(r.gone.Load()) }

// answers is readable for a read with a context: one that follows answers only those from Stale.
func (r *Realm) answers(ctx context.Context) error {
	if err := r.readable(); err != nil {
		return err
	}
	if !r.leads.Load() && ctx.Value(staleKey{}) == nil {
		return r.onlyFollows()
	}
	return nil
}

func orNil(err *Error) error {
	if err == nil {
		return nil
	}
	return err
}

// close closes the realm. It answers what was accepted, reveals the epoch's seed if it leads, and
// closes the log.
func (r *Realm) close() error {
	r.mu.Lock()
	refusal := r.err
	if refusal == nil {
		refusal = errf(CodeClosed, "", "realm %q is closed", r.name)
	}
	r.stopped.Store(refusal)
	r.gone.Store(refusal)
	r.wake()
	r.group.Ask() // also for a call that is not over
	idle := r.group.Idle()
	r.mu.Unlock()
	r.ledger.GiveUp()
	if f := r.follower; f != nil {
		f.stop()
		if err := step.Wait(context.Background(), r.world.steps, f.done); err != nil {
			return err
		}
	}
	err := step.Wait(context.Background(), r.world.steps, idle)
	err = errors.Join(err, r.endSnapshots())
	if stopped := r.Err(); stopped != nil {
		err = errors.Join(err, stopped)
	} else if err == nil && r.leads.Load() {
		err = r.failed("closing", r.ledger.EndEpoch())
	}
	return errors.Join(err, r.failed("closing the log", r.ledger.Close()))
}

// cut ends what the realm has under way at its log. To close it takes no time then.
func (r *Realm) cut() { _ = r.feeds.log.Close() } // whoever closes the realm learns of it

// failed says what was being done when an error of the ledger came. A nil err stays nil.
func (r *Realm) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: codeOfLedger(err), Message: "realm " + r.name + ": " + doing, Err: err}
}

// codeOfLedger classifies an error of the ledger or of its driver.
func codeOfLedger(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	_, unsound := errors.AsType[*ledger.CorruptError](err)
	_, damaged := errors.AsType[*driver.CorruptError](err)
	_, trimmed := errors.AsType[*driver.TrimmedError](err)
	_, deposed := errors.AsType[*ledger.DeposedError](err)
	_, newer := errors.AsType[*format.NewerError](err)
	switch {
	case newer:
		return CodeFormat
	case unsound, damaged, trimmed:
		return CodeCorrupt
	case deposed:
		return CodeNotLeader
	case errors.Is(err, driver.ErrLocked):
		return CodeLocked
	case errors.Is(err, driver.ErrExist):
		return CodeConflict
	}
	return CodeFailed
}
