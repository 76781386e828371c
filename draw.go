package kuji

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// The commonest request by far is one draw with nothing to it. It has a way of its
// own through Submit: no command is made of it, and no event. What is not of that
// kind is left, untouched, to the way that all requests can take.

// Submit carries out one request and returns at once; done is called exactly
// once, with what Do would have returned: before Submit returns when it is known
// then that the request is refused or its answer durable already, and otherwise from the
// realm's flusher, which does nothing else meanwhile: done must not block, and
// must not call the realm. Under SyncInterval and SyncNone, when many callbacks came
// at a time and nobody else waits for the same batch, the next ones may be called up to a
// millisecond or so later than they could be, many at a time; that is tried ever more
// seldom where it brings nothing. When the log has fallen behind by
// Options.MaxPending, or as many answers given again and refusals wait as that has room
// for at 256 bytes each, done gets CodeOverloaded.
//
// Requests are carried out in the order in which they were submitted, and before any other
// that is brought later. Where a realm has many players or request ids, single draws are
// carried out some dozens at a time, when the batch that they join is written at the
// latest: Stats, and a read right behind Submit, may not see the draw yet, and it is only then
// known that its id was used before or that there is no room for it.
func (r *Realm) Submit(req Request, done func(Result, error)) {
	if done == nil {
		panic("kuji: Submit without a callback")
	}
	switch q := req.(type) {
	case *Draw:
		if q != nil && r.submitDraw(q, done) {
			return
		}
	case Draw:
		if r.submitDraw(&q, done) {
			return
		}
	}
	var cmd economy.Command
	if err := command(req, &cmd); err != nil {
		done(Result{}, err)
		return
	}
	h := r.state.Fetch(cmd.ID, cmd.Player)
	r.mu.Lock()
	r.carryOut()
	err := r.usable()
	if err == nil && len(r.open.buf) >= r.o.MaxPending {
		err = errf(CodeOverloaded, "", "%d bytes of events wait for the log already", r.o.MaxPending)
	}
	if err != nil {
		r.mu.Unlock()
		err = malformedOr(&cmd, err)
		release(&cmd)
		done(Result{}, err)
		return
	}
	if cmd.Kind == economy.KindGrant {
		var at economy.At
		if given, ok := r.inOneGo(nil, &cmd, h, &at); ok {
			r.answer(done, given, &at)
			return
		}
	}
	r.submit(&cmd, done)
}

// submitDraw is Submit of a Draw. It reports false, and has done nothing, unless that is
// plain and there is room for it.
func (r *Realm) submitDraw(req *Draw, done func(Result, error)) bool {
	q := *req // its caller may change it meanwhile
	if !q.single() {
		return false
	}
	var h economy.IDHashes
	if r.queue.used.Load() { // and by this one most likely, too
		h = r.state.HashIDs(q.ID, q.Player)
	} else {
		h = r.state.Fetch(q.ID, q.Player)
	}
	r.mu.Lock()
	if r.stopped.Load() != nil || len(r.open.buf) >= r.o.MaxPending {
		r.mu.Unlock()
		return false
	}
	if r.queue.on && r.open.events > 0 { // otherwise nothing queues
		queued := r.enqueue((*economy.Draw)(&q), h, done)
		if queued || r.err != nil {
			r.mu.Unlock()
			return queued
		}
	}
	var at economy.At
	given, ok := r.inOneGo((*economy.Draw)(&q), nil, h, &at)
	if !ok {
		r.mu.Unlock()
		return false
	}
	r.answer(done, given, &at)
	return true
}

// single reports whether a Draw is one of a single outcome, and not malformed.
func (q *Draw) single() bool {
	return uint(q.Count) <= 1 && len(q.ID) <= MaxID && uint(len(q.Player)-1) < MaxID && uint(len(q.Pool)-1) < catalog.MaxID
}

// drawNow is inOneGo for a request that may be a plain draw. The caller holds mu.
func (r *Realm) drawNow(req Request, at *economy.At) (given *[]Outcome, ok bool) {
	var q Draw // its caller may change it meanwhile
	switch d := req.(type) {
	case *Draw:
		if d != nil {
			q = *d
		}
	case Draw:
		q = d
	}
	if r.err != nil || !q.single() {
		return nil, false
	}
	return r.inOneGo((*economy.Draw)(&q), nil, r.state.HashIDs(q.ID, q.Player), at)
}

// ownReceipt is receipt for an event of this writer. The caller need not hold mu.
func (r *Realm) ownReceipt(rc *Receipt, at *economy.At, version uint64) {
	rc.Realm, rc.Position, rc.Index, rc.Time = r.name, at.Position, int(at.Index), at.Time
	rc.CatalogVersion, rc.Epoch, rc.Commitment = version, r.epoch, r.commitment
}

// answer gives a callback what an event that has just been applied gave, or keeps it
// until that is durable. The caller holds mu, which it unlocks.
func (r *Realm) answer(done func(Result, error), given *[]Outcome, at *economy.At) {
	if r.o.Sync == SyncOff {
		res := Result{Outcomes: *given}
		r.ownReceipt(&res.Receipt, at, r.state.Version())
		r.mu.Unlock()
		done(res, nil)
		return
	}
	r.keep(done, given, at)
	r.mu.Unlock()
}

// keep keeps a callback for what an event that has just been applied gave, until that is
// durable. The caller holds mu.
func (r *Realm) keep(done func(Result, error), given *[]Outcome, at *economy.At) {
	b, version := r.open, r.state.Version()
	if b.receipt.Position == 0 {
		r.receipt(&b.receipt, at.Position, 0, at.Time, version)
	}
	b.keep(pending{done: done, given: given, index: at.Index}, version)
}

// plain carries out a command, unless it is of a kind that decide is for, and reports
// whether it has. The caller holds mu.
func (r *Realm) plain(cmd *economy.Command, h economy.IDHashes, at *economy.At) (given *[]Outcome, ok bool) {
	switch {
	case r.err != nil: // by a request before this one in the same call
	case cmd.Kind == economy.KindDraw && cmd.Count == 1:
		return r.inOneGo(&economy.Draw{ID: cmd.ID, Player: cmd.Player, Pool: cmd.Pool}, nil, h, at)
	case cmd.Kind == economy.KindGrant:
		return r.inOneGo(nil, cmd, h, at)
	}
	return nil, false
}

// inOneGo carries out a plain draw, or a plain grant, with the hashes of its ids, and
// returns what it gave and where its event stands; or it reports false and has done
// nothing. The caller holds mu, and has seen that the realm has not stopped.
func (r *Realm) inOneGo(draw *economy.Draw, grant *economy.Command, h economy.IDHashes, at *economy.At) (given *[]Outcome, ok bool) {
	through := false
	defer func() {
		if !through { // a panic of the rules, or of the caller's clock
			ok = false
			r.broken(recover())
		}
	}()
	b := r.open
	at.Position, at.Index, at.Time = b.position, uint32(b.events), r.stamp(b)
	var buf []byte
	var err error
	draws := uint64(0)
	if draw != nil {
		draws = 1
		buf, given, ok, err = r.state.DrawPlain(draw, h, &r.source, at, b.buf)
	} else {
		given = &nothing
		buf, ok, err = r.state.GrantPlain(grant, h, at, b.buf)
	}
	if err != nil {
		r.defect(err)
		ok = false
	} else if ok {
		r.committed(b, buf, draws)
	}
	through = true
	return given, ok
}
