package kuji

import (
	"context"
	"errors"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/step"
)

// Realm is one game or campaign: one ordered log, one state, one writer. All methods may be called
// concurrently. [Realm.Catalogs], [Realm.Codes], [Realm.Pools], [Realm.Feed] and [Realm.Replica] have more.
type Realm struct {
	w        *writer
	snaps    *snapshots
	batches  *batches
	feed     *Feed
	catalogs *Catalogs
	replica  *Replica
}

// Catalogs returns the view of the realm's catalogs: to put one in force, and to read them.
func (r *Realm) Catalogs() *Catalogs { return r.catalogs }

// Codes returns the view of the realm's lists of codes.
func (r *Realm) Codes() Codes { return Codes{r.w} }

// Pools returns the view of the realm's pools: their stock, and what a draw gives a player.
func (r *Realm) Pools() Pools { return Pools{r.w} }

// Feed returns the feed of the realm's events.
func (r *Realm) Feed() *Feed { return r.feed }

// Replica returns the view of the realm as one of the nodes that carry out its log.
func (r *Realm) Replica() *Replica { return r.replica }

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
	LogKept         uint64 // size of the log as it is kept now; 0: the driver does not know
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
	SnapshotBytes   uint64 // size of the newest, and of those that it builds on
	SnapshotErr     error  // of the last attempt since opening; nil: it succeeded
	Clock           ClockView
	Readers         int      // of the feed: see Feed.Events
	ReaderLag       uint64   // how many positions the slowest of them has still to read
	SeedsErr        error    // which epochs cannot be proven, or which seeds fitted none, at opening; nil: none
	Epoch           uint64   // of this writer; 0: the realm follows
	Behind          uint64   // how many positions are missing to what Await was asked for
	Differs         uint64   // 1: the realm's chain differs from another node's, see Replica.Compare
	Chain           [32]byte // the hash of the log's chain at Position; zero: not known
}

// Name returns the realm's name.
func (r *Realm) Name() string { return r.w.name }

// Err returns nil while the realm is healthy, and otherwise why it stopped.
func (r *Realm) Err() error {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return orNil(r.w.gate.err)
}

// StateHash returns the hash of the realm's state and its position, once durable. Verification reports the
// same hash for that position, on every machine and build. The realm waits while it hashes the state.
func (r *Realm) StateHash(ctx context.Context) (hash [32]byte, position uint64, err error) {
	return r.batches.stateHash(ctx)
}

// Stats returns counters and sizes.
func (r *Realm) Stats() Stats {
	w := r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.counts.stats
	s.Position = w.gate.acked.Load()
	s.LastEvent = min(s.Position, w.state.Position())
	s.Players = uint64(w.state.Players())
	ids := w.state.WindowSize()
	s.RequestIDs, s.RequestIDLimit, s.RequestIDBytes, s.OldestRequestID = ids.Remembered, ids.Limit, ids.Bytes, ids.Oldest
	s.CatalogVersion = w.state.Catalog().Version
	s.Level, s.NewestLevel = uint8(w.state.Level()), uint8(w.newestLevel())
	s.Epoch, s.SeedsErr = w.proofs.epoch, w.proofs.seedsErr
	s.SnapshotErr = r.snaps.err
	s.Clock = w.clockView()
	s.YoungRequestIDs = uint64(w.state.Young(s.Clock.Time))
	if w.gate.mark.position == s.Position {
		s.Chain = w.gate.mark.hash
	}
	s.Behind = w.gate.heard - min(w.gate.heard, s.Position)
	s.Readers, s.ReaderLag = r.feed.lag(s.Position)
	if newest, ok := w.ledger.Newest(); ok {
		s.Snapshot, s.SnapshotBytes = newest.Position, w.ledger.SeriesBytes()
	}
	if sized, ok := r.feed.log.(driver.Sized); ok {
		s.LogKept = uint64(sized.Size())
	}
	s.PendingBytes = w.group.Pending()
	return s
}

func orNil(err *Error) error {
	if err == nil {
		return nil
	}
	return err
}

// closeRealm answers what was accepted, reveals the epoch's seed if the realm leads, and closes the log.
func closeRealm(r *Realm) error {
	w := r.w
	w.mu.Lock()
	w.carryOut(false)
	w.gate.close()
	w.group.Ask() // also for a call that is not over
	idle, swept := w.group.Idle(), w.draft.sweep.end()
	w.mu.Unlock()
	w.ledger.GiveUp()
	if err := step.Wait(context.Background(), w.world.steps, swept); err != nil {
		return err
	}
	if err := r.replica.end(); err != nil {
		return err
	}
	err := step.Wait(context.Background(), w.world.steps, idle)
	err = errors.Join(err, r.snaps.endAll())
	if stopped := r.Err(); stopped != nil {
		err = errors.Join(err, stopped)
	} else if err == nil && w.gate.leads.Load() {
		err = w.failed("closing", w.ledger.EndEpoch())
	}
	return errors.Join(err, w.failed("closing the log", w.ledger.Close()))
}

// cut closes the log at once: what is under way there ends with an error, and close need not wait.
func cut(r *Realm) { _ = r.feed.log.Close() } // close reports the error

// Hold makes durable what was acknowledged, and returns the realm's log and files, to be read only. Nothing
// of them is removed until release is called. CodeConflict: a realm in memory has no log. CodeNotLeader:
// another node leads, and knows what was acknowledged. CodeCanceled, CodeClosed, CodeFailed.
func (r *Realm) Hold(ctx context.Context) (kept driver.Realm, release func(), err error) {
	gone, stopped := r.w.gate.readable(), r.Err()
	switch {
	case gone != nil:
		return nil, nil, gone
	case !r.w.keepsLog():
		return nil, nil, errf(CodeConflict, "", "realm %q is in memory: it has no log that could be copied", r.w.name)
	case !r.w.gate.leads.Load():
		return nil, nil, r.w.gate.onlyFollows()
	case CodeOf(stopped) == CodeNotLeader:
		return nil, nil, stopped
	}
	if err := r.snaps.hold(ctx); err != nil {
		return nil, nil, err
	}
	if stopped == nil { // of a realm that has stopped, what is durable can still be read
		err = r.w.failed("making the log durable for a copy", r.feed.log.Sync(ctx))
	}
	if err != nil {
		r.snaps.release()
		return nil, nil, err
	}
	return held{r.feed.log}, r.snaps.release, nil
}

// held is a log that somebody reads while the realm goes on writing it.
type held struct{ driver.Realm }

var errHeld = errors.New("held to be read; only its realm changes it")

func (held) Append(context.Context, driver.Cursor, []byte) (driver.Cursor, error) { return 0, errHeld }
func (held) Begin(context.Context, []byte) (driver.Cursor, error)                 { return 0, errHeld }
func (held) Create(context.Context) (driver.FileWriter, error)                    { return nil, errHeld }
func (held) Remove(context.Context, string) error                                 { return errHeld }
func (held) Trim(context.Context, driver.Cursor) error                            { return errHeld }
func (held) Close() error                                                         { return errHeld }
