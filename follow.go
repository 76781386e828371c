package kuji

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/step"
)

// Following is recovery that does not end:
//
//	open:     load the newest snapshot, replay the log behind it, as ever
//	follow:   carry out each entry that others append, whole, under the realm's lock
//	lead:     follow no more; append the epoch-begin; carry on through it; take requests
//
// So a takeover costs what the log has gained since the last entry that was carried out. A follower
// has nothing that could still be lost: only what survives a crash reaches it. A leader that was
// deposed does not follow again. Its state has what the log may lack: it has stopped, and is opened
// anew.

// follower is a realm that does not lead yet.
type follower struct {
	ctx   context.Context // of the following
	stop  context.CancelFunc
	lead  bool          // it is to lead; guarded by the realm's mu
	marks marks         // guarded by the realm's mu
	done  chan struct{} // closed when the realm leads, has stopped or is closed
}

// followAgain is how long a follower waits when the log cannot be read for now.
const followAgain = 100 * time.Millisecond

// startFollowing makes a realm that was recovered follow.
func (r *Realm) startFollowing() {
	r.follower = &follower{done: make(chan struct{})}
	r.follower.ctx, r.follower.stop = context.WithCancel(context.Background())
	r.note(r.ledger.At())
	r.stopped.Store(r.onlyFollows())
	step.Go(r.world.steps, r.keepUp)
}

// onlyFollows is the refusal of a realm that does not lead.
func (r *Realm) onlyFollows() *Error {
	return errf(CodeNotLeader, "", "realm %q follows here: another node may lead it", r.name)
}

// Lead makes the realm lead, and returns when it does: from then on it carries out requests. The
// leader before is deposed. A realm that leads already goes on; without Options.Follow all do.
//
// CodeCanceled: ctx ended, but the realm goes on to take over; Engine.Close gives that up. Other
// errors say why the realm has stopped: close the engine and open it again. CodeCorrupt: the log is
// damaged. CodeNotLeader: yet another node has taken over. CodeClock: as at opening.
func (r *Realm) Lead(ctx context.Context) error {
	if f := r.follower; f != nil {
		r.mu.Lock()
		f.lead = true
		r.mu.Unlock()
		f.stop()
		if err := step.Wait(ctx, r.world.steps, f.done); err != nil {
			return &Error{Code: CodeCanceled, Message: "while realm " + r.name + " takes over", Err: err}
		}
	}
	return r.usable()
}

// Leads reports whether the realm leads, or did until it stopped.
func (r *Realm) Leads() bool { return r.leads.Load() }

// Await waits until the realm has come to a position that another node has told of. A read from
// [Stale] shows all of it then. Errors: CodeCanceled, and why the realm has stopped.
func (r *Realm) Await(ctx context.Context, position uint64) error {
	for {
		r.mu.Lock()
		r.heard = max(r.heard, position)
		if r.acked.Load() >= position {
			r.mu.Unlock()
			return nil
		}
		if err := r.halted(); err != nil {
			r.mu.Unlock()
			return err
		}
		if r.moved == nil {
			r.moved = make(chan struct{})
		}
		moved := r.moved
		r.mu.Unlock()
		if err := step.Wait(ctx, r.world.steps, moved); err != nil {
			return &Error{Code: CodeCanceled, Message: fmt.Sprintf("while realm %s waits for position %d", r.name, position), Err: err}
		}
	}
}

// halted returns why the realm will acknowledge nothing more, or nil. The caller holds mu.
func (r *Realm) halted() error {
	if r.err != nil {
		return r.err
	}
	return r.readable()
}

// advance shows that everything up to a place is acknowledged. The caller holds mu.
func (r *Realm) advance(at ledger.At) {
	r.note(at)
	r.acked.Store(at.Position())
	r.wake()
}

// wake wakes who waits for a position. The caller holds mu.
func (r *Realm) wake() {
	if r.moved != nil {
		close(r.moved)
		r.moved = nil
	}
}

// keepUp carries out what others append, until the realm is to lead, is closed, or cannot go on.
func (r *Realm) keepUp() {
	f := r.follower
	defer close(f.done)
	var err error
	for f.ctx.Err() == nil && err == nil {
		if err = r.carryOnTail(); errors.Is(err, driver.ErrUnavailable) {
			err = nil
			step.Sleep(r.world.steps, followAgain)
		}
	}
	r.mu.Lock()
	lead := f.lead && r.readable() == nil
	r.mu.Unlock()
	if err == nil && lead {
		err = r.startLeading()
	}
	if err != nil {
		r.halt(err)
	}
}

// carryOnTail carries out what others append until the follower is told to stop, which is no error,
// or until the log cannot be read on.
func (r *Realm) carryOnTail() error {
	f := r.follower
	for e, err := range r.ledger.Follow(f.ctx) {
		switch {
		case f.ctx.Err() != nil && err != nil:
			return nil
		case err == nil:
			err = (*machine)(r).carryOn(&e)
		}
		if err != nil {
			return r.lostTrack(err)
		}
	}
	return nil
}

// lostTrack says why a follower cannot go on. What was trimmed before it was read is no damage.
func (r *Realm) lostTrack(err error) error {
	_, trimmed := errors.AsType[*driver.TrimmedError](err)
	switch {
	case errors.Is(err, driver.ErrUnavailable):
		return err
	case trimmed || errors.Is(err, driver.ErrNotExist): // an entry, or the payload of one
		return &Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q was too slow: the log that it followed was trimmed; open the engine again", r.name), Err: err}
	}
	return r.failed("following the log", err)
}

// halt stops a realm that cannot follow, or cannot lead. Its state may be spoilt.
func (r *Realm) halt(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			e = &Error{Code: codeOfLedger(err), Message: "realm " + r.name, Err: err}
		}
		r.fail(e)
	}
	r.gone.CompareAndSwap(nil, r.err)
	r.snap.stop()
	r.wake()
}

// startLeading makes a follower lead.
func (r *Realm) startLeading() error {
	r.mu.Lock()
	r.clock.known = false // time has passed since it was read for the first time
	err := r.startClock()
	r.mu.Unlock()
	if err == nil {
		err = r.takeOver()
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Other leaders have written and removed snapshots, every so often.
	r.ledger.Forget()
	r.snap.mark = nil
	if r.o.SnapshotEvery > 0 {
		r.snap.bytes %= r.o.SnapshotEvery
	}
	r.serve()
	return nil
}

// serve makes a realm that has taken the log over carry out requests. The caller holds mu, or nobody
// else has the realm.
func (r *Realm) serve() {
	r.epochs, r.epoch, r.seedsErr = r.ledger.Epochs(), r.ledger.Epoch(), r.ledger.SeedsErr()
	r.source = r.ledger.Source()
	if r.stats.RecoveredEvents > r.loaded { // somebody else wrote meanwhile
		r.rules.Reset(r.tables.Load())
	}
	r.advance(r.ledger.At())
	r.group.Begin()
	r.leads.Store(true)
	if r.readable() == nil { // it was not closed meanwhile
		r.stopped.Store(nil)
	}
}

// carryOn carries out a whole entry while others read the state.
func (m *machine) carryOn(e *ledger.Entry) error {
	r := (*Realm)(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := m.Change(e); err != nil {
		return err
	}
	if err := m.Remember(e); err != nil {
		return err
	}
	if e.Kind() == ledger.KindBatch {
		r.stats.Recovered = e.Position
	} else {
		r.epochs = slices.Clone(r.ledger.Epochs())
	}
	r.world.levels.note(r.name, r.state)
	if r.state.Catalog().Version != r.tables.Load().Version {
		if err := r.load(); err != nil {
			return err
		}
	}
	r.advance(e.At())
	return nil
}

// tail is the machine of a realm whose state others read.
type tail struct{ *machine }

func (m tail) Change(e *ledger.Entry) error { return m.carryOn(e) }
func (m tail) Remember(*ledger.Entry) error { return nil } // carryOn has done it
