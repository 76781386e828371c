package kuji

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/kuji-dev/kuji/internal/ledger"
)

// gate says what may be asked of a realm now. The realm's lock guards all but the atomic fields.
type gate struct {
	name string

	err   *Error        // why the realm stopped; nil while healthy
	heard uint64        // the highest position that Await was asked for
	mark  mark          // of the newest acknowledged batch
	marks *marks        // of a follower; nil: the realm leads from the start
	moved chan struct{} // closed when acked moves, or never will again; nil: nobody waits

	acked   atomic.Uint64         // position of the newest acknowledged batch
	stopped atomic.Pointer[Error] // why the realm refuses requests
	gone    atomic.Pointer[Error] // why it refuses reads too: it was closed, or a defect may have spoilt the state
	leads   atomic.Bool           // it has taken the log over; stays so when it stops
}

// usable returns why the realm refuses requests, or nil.
func (g *gate) usable() error { return orNil(g.stopped.Load()) }

// readable returns why the realm refuses reads, or nil.
func (g *gate) readable() error { return orNil(g.gone.Load()) }

// answers is readable for a read with a context: a realm that follows answers only those from Stale.
func (g *gate) answers(ctx context.Context) error {
	if err := g.readable(); err != nil {
		return err
	}
	if !g.leads.Load() && ctx.Value(staleKey{}) == nil {
		return g.onlyFollows()
	}
	return nil
}

func (g *gate) onlyFollows() *Error {
	return errf(CodeNotLeader, "", "realm %q follows here: another node may lead it", g.name)
}

// fail records why the realm stopped. The caller holds mu.
func (g *gate) fail(err *Error) {
	g.err = err
	g.stopped.Store(err)
}

// close refuses everything from now on. The caller holds mu.
func (g *gate) close() {
	refusal := cmp.Or(g.err, errf(CodeClosed, "", "realm %q is closed", g.name))
	g.stopped.Store(refusal)
	g.gone.Store(refusal)
	g.wake()
}

// halt stops a realm whose state may be spoilt. The caller holds mu.
func (g *gate) halt(err error) {
	if g.err == nil {
		e, _ := errors.AsType[*Error](ErrorOf("realm "+g.name, err))
		g.fail(e)
	}
	g.gone.CompareAndSwap(nil, g.err)
	g.wake()
}

// advance shows that everything up to a place is acknowledged. The caller holds mu.
func (g *gate) advance(at ledger.At) {
	g.note(at)
	g.acked.Store(at.Position())
	g.wake()
}

// note notes where the chain stands. The caller holds mu, or nobody else has the realm.
func (g *gate) note(at ledger.At) {
	g.mark = mark{at.Position(), at.ChainHash()}
	if g.marks != nil {
		g.marks[g.mark.position%uint64(len(g.marks))] = g.mark
	}
}

// lower lowers the acknowledged position, after a failed write, to what is on disk. The caller holds mu.
func (g *gate) lower(durable uint64) { g.acked.Store(min(g.acked.Load(), durable)) }

// wake wakes those who wait for a position. The caller holds mu.
func (g *gate) wake() {
	if g.moved != nil {
		close(g.moved)
		g.moved = nil
	}
}
