package kuji

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/step"
)

// A follower carries out what others append, under the realm's lock, once it survives a crash. To lead, it
// appends its epoch-begin and carries on through that: a takeover costs what the log has gained since. A
// deposed leader's state may have what the log lacks: it has stopped, and must be opened again.

// Replica is a realm as one of the nodes that carry out its log: it follows, or it leads.
type Replica struct {
	w     *writer
	m     machine
	snaps *snapshots

	ctx  context.Context // of the following
	stop context.CancelFunc
	lead bool          // it is to lead; guarded by the realm's lock
	done chan struct{} // closed when the realm leads, has stopped or is closed; nil: it led from the start
}

const followAgain = 100 * time.Millisecond // until a follower reads a log again that cannot be read for now

func (p *Replica) follow() {
	p.done = make(chan struct{})
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.w.gate.marks = new(marks)
	p.w.gate.note(p.w.ledger.At)
	p.w.gate.stopped.Store(p.w.gate.onlyFollows())
	step.Go(p.w.world.steps, p.keepUp)
}

func (p *Replica) end() error {
	if p.done == nil {
		return nil
	}
	p.stop()
	return step.Wait(context.Background(), p.w.world.steps, p.done)
}

// Lead makes the realm lead, deposing the leader before, and returns when it carries out requests. It does
// nothing to a realm that leads already, as all do without Options.Follow.
//
// CodeCanceled: ctx ended, but the takeover goes on until Engine.Close. Other errors say why the realm has
// stopped. CodeCorrupt: the log is damaged. CodeNotLeader: another node took over. CodeClock: as at
// opening.
func (p *Replica) Lead(ctx context.Context) error {
	if p.done != nil {
		p.w.mu.Lock()
		p.lead = true
		p.w.mu.Unlock()
		p.stop()
		if err := step.Wait(ctx, p.w.world.steps, p.done); err != nil {
			return &Error{Code: CodeCanceled, Message: "while realm " + p.w.name + " takes over", Err: err}
		}
	}
	return p.w.gate.usable()
}

// Leads reports whether the realm leads, or did until it stopped.
func (p *Replica) Leads() bool { return p.w.gate.leads.Load() }

// Await waits until the realm has come to a position. A read from [Stale] then shows all of it. Errors:
// CodeCanceled, and why the realm has stopped.
func (p *Replica) Await(ctx context.Context, position uint64) error {
	w, g := p.w, &p.w.gate
	for {
		w.mu.Lock()
		g.heard = max(g.heard, position)
		if g.acked.Load() >= position {
			w.mu.Unlock()
			return nil
		}
		if err := cmp.Or(orNil(g.err), g.readable()); err != nil { // it will acknowledge nothing more
			w.mu.Unlock()
			return err
		}
		if g.moved == nil {
			g.moved = make(chan struct{})
		}
		moved := g.moved
		w.mu.Unlock()
		if err := step.Wait(ctx, w.world.steps, moved); err != nil {
			return &Error{Code: CodeCanceled, Message: fmt.Sprintf("while realm %s waits for position %d", w.name, position), Err: err}
		}
	}
}

// mark is where the chain stands after a position: the same on all nodes that carry out one log.
type mark struct {
	position uint64
	hash     [32]byte
}

// marks are a follower's last marks, by position.
type marks [1024]mark

// Compare compares a follower's chain with another node's [Stats.Chain] at a position, unless it is ahead
// or more than 1024 back. If they differ, one of the two has read or written what the log does not have:
// the realm stops as at damage, with CodeCorrupt, and does not lead.
func (p *Replica) Compare(node string, position uint64, hash [32]byte) error {
	p.w.mu.Lock()
	known := p.w.gate.marks
	if known == nil || p.lead || hash == ([32]byte{}) {
		p.w.mu.Unlock()
		return nil
	}
	own := known[position%uint64(len(known))]
	p.w.mu.Unlock()
	if own.position != position || own.hash == hash {
		return nil
	}
	err := p.w.failed("comparing chains", &driver.CorruptError{
		Place: fmt.Sprintf("position %d", position),
		Err:   fmt.Errorf("the chain has hash %x here, and %x at node %s", own.hash, hash, node),
	})
	p.stop()
	p.halt(err)
	p.w.mu.Lock()
	p.w.counts.stats.Differs = 1
	p.w.mu.Unlock()
	return err
}

// keepUp carries out what others append until the realm leads, is closed or fails.
func (p *Replica) keepUp() {
	defer close(p.done)
	var err error
	for p.ctx.Err() == nil && err == nil {
		if err = p.carryOnTail(); errors.Is(err, driver.ErrUnavailable) {
			err = nil
			step.Sleep(p.w.world.steps, followAgain)
		}
	}
	p.w.mu.Lock()
	lead := p.lead && p.w.gate.readable() == nil
	p.w.mu.Unlock()
	if err == nil && lead {
		err = p.startLeading()
	}
	if err != nil {
		p.halt(err)
	}
}

// carryOnTail carries out what others append until the follower is told to stop, or cannot read on.
func (p *Replica) carryOnTail() error {
	for e, err := range p.w.ledger.Follow(p.ctx) {
		if err != nil && p.ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = p.m.carryOn(&e)
		}
		_, trimmed := errors.AsType[*driver.TrimmedError](err)
		switch {
		case err == nil:
		case errors.Is(err, driver.ErrUnavailable):
			return err
		case trimmed || errors.Is(err, driver.ErrNotExist): // an entry, or the payload of one
			return &Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q was too slow: the log that it followed was trimmed; open the engine again", p.w.name), Err: err}
		default:
			return p.w.failed("following the log", err)
		}
	}
	return nil
}

// halt stops a realm that cannot follow, or cannot lead. Its state may be spoilt.
func (p *Replica) halt(err error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.gate.halt(err)
	p.snaps.stop()
}

func (p *Replica) startLeading() error {
	p.w.mu.Lock()
	p.w.clock.known = false // time has passed since it was read for the first time
	err := p.w.clock.start(p.w.name)
	p.w.mu.Unlock()
	if err == nil {
		err = p.m.takeOver()
	}
	if err != nil {
		return err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	// Other leaders have written and removed snapshots, every so often.
	p.w.ledger.Forget()
	p.snaps.extent = nil
	if p.w.o.SnapshotEvery > 0 {
		p.snaps.bytes %= p.w.o.SnapshotEvery
	}
	p.serve()
	return nil
}

// serve makes a realm that has taken the log over carry out requests. The caller holds mu or has it alone.
func (p *Replica) serve() {
	p.w.proofs = proofsOf(p.w.ledger)
	p.w.source = p.w.ledger.Source()
	if p.w.counts.stats.RecoveredEvents > p.m.loaded { // somebody else wrote meanwhile
		p.w.rules.Reset(p.w.tables.Load())
	}
	p.w.gate.advance(p.w.ledger.At)
	p.w.group.Begin()
	p.w.gate.leads.Store(true)
	if p.w.gate.readable() == nil { // it was not closed meanwhile
		p.w.gate.stopped.Store(nil)
		p.w.draft.sweep.begin()
	}
}

// carryOn carries out a whole entry while others read the state.
func (m *machine) carryOn(e *ledger.Entry) error {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := m.Change(e); err != nil {
		return err
	}
	if err := m.Remember(e); err != nil {
		return err
	}
	if e.Kind() == ledger.KindBatch {
		w.counts.stats.Recovered = e.Position
	} else {
		w.proofs.epochs = slices.Clone(w.ledger.Epochs())
	}
	w.world.levels.note(w.name, w.state)
	if w.state.Catalog().Version != w.tables.Load().Version {
		if err := m.load(); err != nil {
			return err
		}
	}
	w.gate.advance(e.At())
	return nil
}

// tail is the machine of a realm whose state others read.
type tail struct{ *machine }

func (m tail) Change(e *ledger.Entry) error { return m.carryOn(e) }
func (m tail) Remember(*ledger.Entry) error { return nil } // carryOn has done it
