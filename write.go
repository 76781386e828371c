package kuji

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// proposal is something that may enter the log: a request, a catalog, codes, a clock, a format level.
type proposal interface {
	// propose looks at the state and writes an event to w, after those of the open batch. With an
	// error it writes none. It also writes none if an earlier event answers. Then, and with an error,
	// it returns what the answer depends on.
	propose(r *Realm, b *ledger.Batch, w *store.Writer) (earlier, error)
	// entered follows once the event counts. It cannot fail.
	entered(r *Realm, b *ledger.Batch)
}

// earlier is an event that a proposal found, or only its place. Position 0: nothing.
type earlier struct {
	event   *store.Event // nil: there is no more to say than where it is
	at      store.At
	version uint64 // of the catalog in force then
}

// until returns what depends on everything up to a position.
func until(position uint64) earlier { return earlier{at: store.At{Position: position}} }

// enter is the one way into the log. It fills in res, from the event of the proposal or from an earlier
// one, and returns the batch that makes res durable, nil if it already is. With an error, b is the batch
// that the refusal depends on. The caller holds mu.
func (r *Realm) enter(p proposal, res *Result) (b *ledger.Batch, err error) {
	if r.err != nil { // an earlier request of the same call stopped the realm
		return nil, r.err
	}
	finished := false
	defer r.ended(&finished, &b, &err)
	b = r.group.Open()
	r.event.Buf = b.Buf
	found, err := p.propose(r, b, &r.event)
	switch {
	case err != nil:
		b = r.batchAt(found.at.Position)
	case len(r.event.Buf) == len(b.Buf):
		b = r.batchAt(found.at.Position)
		err = r.again(&found, res)
	default:
		if err = r.commit(b, r.event.Buf, res); err != nil {
			b = nil
		} else {
			p.entered(r, b)
		}
	}
	r.state.End()
	finished = true
	return b, err
}

// again fills in res from an earlier event.
func (r *Realm) again(found *earlier, res *Result) error {
	if found.event == nil {
		if found.at.Position > 0 {
			r.receipt(&res.Receipt, found.at, found.version)
		}
		return nil
	}
	r.stats.Replays++
	res.Replayed = true
	if err := r.answer(found.event, res, found.at, found.version); err != nil {
		return rememberedWrong(err)
	}
	return nil
}

// commit adds the event at the end of buf to b, whose events come before it in buf. It fills in res.
// What goes wrong here is a defect: the rules may have used random values, and no log says so. So the
// event does not count, nor does anything else in the open batch. The caller holds mu.
func (r *Realm) commit(b *ledger.Batch, buf []byte, res *Result) error {
	ev := &r.decoded
	if _, err := store.Decode(buf[len(b.Buf):], ev); err != nil {
		return r.defect(err)
	}
	at := store.At{Position: b.Position, Index: uint32(b.Events), Time: b.Time}
	if err := r.answer(ev, res, at, r.state.Catalog().Version); err != nil {
		return r.defect(err)
	}
	if err := r.state.Apply(ev, at); err != nil {
		return r.defect(err) // the rules and the store disagree
	}
	b.Buf = buf
	b.Events++
	r.clock.last = r.state.Now()
	r.stats.Events++
	return nil
}

// answer fills in res from an event: one that is applied next, or one that was. The caller holds mu.
func (r *Realm) answer(ev *store.Event, res *Result, at store.At, version uint64) error {
	if err := describe(r.state, &r.outcomes, ev, res); err != nil {
		return err
	}
	r.receipt(&res.Receipt, at, version)
	for i := range res.Members {
		res.Members[i].Receipt = res.Receipt
	}
	return nil
}

// stamp sets the time of b if b has no events yet. The caller holds mu.
func (r *Realm) stamp(b *ledger.Batch) {
	if b.Events == 0 {
		b.Time = r.now()
	}
}

// defect stops the realm because of a bug. Nothing in the open batch may be answered or written,
// and the state must not be used again. The caller holds mu.
func (r *Realm) defect(err error) error {
	r.state.Abandon()
	r.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q stopped at position %d by a defect of this build", r.name, r.group.Open().Position), Err: err})
	r.gone.Store(r.err)
	r.group.GiveUp(r.err)
	return r.err
}

// ended, deferred, turns a panic of the rules, the store or the caller's clock into a defect, and
// so a clock that ends its goroutine. finished says that there was neither.
func (r *Realm) ended(finished *bool, b **ledger.Batch, err *error) {
	if !*finished {
		*b, *err = nil, r.defect(fmt.Errorf("panic: %v\n%s", recover(), debug.Stack()))
	}
}

// start lets a proposal enter. The Commit says when that is durable. With an error it says when what the
// refusal depends on is.
func (r *Realm) start(ctx context.Context, p proposal, res *Result) (c Commit, err error) {
	if err := r.lockForRoom(ctx); err != nil {
		return c, err
	}
	defer r.unlock()
	c.steps = r.world.steps
	if c.batch, err = r.enter(p, res); c.batch != nil {
		c.done = c.batch.Done()
	}
	return c, err
}

// finish waits for what start has returned.
func (r *Realm) finish(ctx context.Context, c Commit, err error) error {
	if err != nil && c.batch != nil {
		return cmp.Or(r.settled(ctx, c.batch, c.done), err)
	}
	if err != nil {
		return err
	}
	return c.Wait(ctx)
}

// request is a checked command, with the hashes of its request id and player.
type request struct {
	cmd *rules.Command
	ids store.Hashes
}

// asked returns the proposal of a command. There is one at a time, so that it takes no memory. The caller
// holds mu.
func (r *Realm) asked(cmd *rules.Command, ids store.Hashes) *request {
	r.request = request{cmd, ids}
	return &r.request
}

func (q *request) propose(r *Realm, b *ledger.Batch, w *store.Writer) (found earlier, err error) {
	if a, known := r.state.Begin(q.cmd.ID, q.cmd.Player, q.ids); known {
		found = earlier{&r.decoded, store.At{Position: a.Position, Index: a.Index, Time: a.Time}, a.Version}
		return found, q.same(r, &a)
	}
	r.stamp(b)
	if err := q.cmd.Allow(r.state.Level()); err != nil {
		return found, &Error{Code: CodeFormat, Err: err}
	}
	if err := r.refused(q.cmd, b.Time); err != nil { // by a catalog that may not be durable yet
		return until(r.state.Catalog().Position), err
	}
	if err := q.admit(r, b.Time); err != nil {
		return found, err
	}
	if status := r.rules.Decide(q.cmd, b.Time, &r.source, w); status != rules.OK {
		r.stats.Failures++
	} else {
		r.stats.Draws += r.rules.Drawn(r.drawn)
	}
	return found, nil
}

func (q *request) entered(*Realm, *ledger.Batch) {}

// same decodes a remembered answer, and refuses it to a command that asks for something else.
func (q *request) same(r *Realm, a *store.Answer) error {
	if _, err := store.Decode(a.Event, &r.decoded); err != nil {
		return rememberedWrong(err)
	}
	switch same, err := rules.Same(r.state, q.cmd, &r.decoded); {
	case err != nil:
		return rememberedWrong(err)
	case !same:
		return errf(CodeIDReused, "id", "%q was used for another request, at position %d; use a request id again only with the same arguments", q.cmd.ID, a.Position)
	}
	return nil
}

// admit refuses a command if the state has no room for what it may add: a request id or players.
func (q *request) admit(r *Realm, now int64) error {
	s := r.state
	if q.cmd.ID != "" && s.WindowFull(now) {
		r.stats.RefusedIDs++
		w := s.WindowSize()
		return errf(CodeOverloaded, "id", "%d request ids are remembered and the catalog allows %d within its window; none is forgotten early: "+
			"send it again later, or raise idempotency.count in the catalog", w.Remembered, w.Limit)
	}
	if most := 2 * max(1, len(q.cmd.Members)); !s.RoomForPlayers(most) && !s.RoomForPlayers(q.cmd.NewPlayers(s)) {
		return errf(CodeConflict, "player", "the realm has %d players, the most it can have; there is no room for a new one", s.Players())
	}
	if s.MemoryFull() {
		return errf(CodeConflict, "player", "the realm's %d players take all the memory that they may", s.Players())
	}
	return nil
}

// rememberedWrong says that the answer to a request id, which a snapshot may hold, cannot be read.
func rememberedWrong(err error) error {
	return &Error{Code: CodeCorrupt, Message: "a remembered answer", Err: err}
}
