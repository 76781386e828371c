package kuji

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/kuji-dev/kuji/internal/economy"
	"github.com/kuji-dev/kuji/internal/step"
)

// Do carries out one request and returns its result once that is durable as
// the realm's policy says. What depends on the state (sold out, too poor …) is
// a Result with a Status, not an error. Errors are *Error:
//
//	CodeInvalid, CodeIDReused    refused; nothing was logged
//	CodeOverloaded               the idempotency window has no room for another id;
//	                             nothing was logged: send it again later
//	CodeConflict                 the realm has no room for another player; nothing was logged
//	CodeCanceled                 ctx ended before the request was accepted; nothing was logged
//	CodeUnknownOutcome           it may or may not have happened: send the same id again
//	CodeFailed, CodeClosed       the realm is not there; nothing was logged
func (r *Realm) Do(ctx context.Context, req Request) (Result, error) {
	var cmd economy.Command
	if err := command(req, &cmd); err != nil {
		return Result{}, err
	}
	h := r.state.Fetch(cmd.ID, cmd.Player)
	if err := r.lockForRoom(ctx); err != nil {
		err = malformedOr(&cmd, err)
		release(&cmd)
		return Result{}, err
	}
	var res Result
	b, refused := r.execute(&cmd, h, &res)
	release(&cmd)
	if err := r.await(ctx, b); err != nil {
		return Result{}, err
	}
	if refused != nil {
		return Result{}, refused
	}
	return res, nil
}

// Commit is what requests that were started wait for: the moment in which the
// last of them is durable.
type Commit struct {
	batch *batch // nil: durable already
	done  <-chan struct{}
	steps step.Runner
}

// Wait returns nil once everything started is durable. Its errors are DoAll's
// for requests that were accepted: an unknown outcome.
func (c Commit) Wait(ctx context.Context) error {
	if c.batch == nil {
		return nil
	}
	if err := step.Wait(ctx, c.steps, c.done); err != nil {
		return &Error{Code: CodeUnknownOutcome, Message: "the request was accepted, but the context ended before it was durable; send the same request id again to learn what became of it", Err: err}
	}
	if c.batch.err != nil {
		return c.batch.err
	}
	return nil
}

// submit is the rest of Submit for requests of any kind. The caller holds mu, which
// it unlocks.
func (r *Realm) submit(cmd *economy.Command, done func(Result, error)) {
	var res Result
	b, err := r.decide(cmd, &res)
	release(cmd)
	if r.o.Sync == SyncOff {
		b = nil
	}
	if b == nil { // refused, or durable already
		r.mu.Unlock()
		if err != nil {
			res = Result{}
		}
		done(res, err)
		return
	}
	if (err != nil || res.Replayed) && !r.roomForReplays() {
		r.mu.Unlock()
		done(Result{}, errf(CodeOverloaded, "", "%d callbacks that put nothing into the log wait for it already", r.o.MaxPending/replayBytes))
		return
	}
	b.keepAnswer(done, &res, err)
	if len(b.pending) >= gatherCallbacks && r.o.Steps == nil {
		r.wake.Signal() // the flusher may be gathering
	}
	r.mu.Unlock()
}

// keepAnswer adds a callback with what decide has returned.
func (b *batch) keepAnswer(done func(Result, error), res *Result, err error) {
	if err != nil || res.Replayed {
		b.replays++
	}
	switch {
	case err != nil:
		b.pending = append(b.pending, refusal(done, err))
	case res.Status != OK || res.Members != nil || res.Replayed:
		b.keepWhole(done, res)
	default:
		if b.receipt.Position == 0 {
			b.receipt = res.Receipt
		}
		given := &nothing
		if res.Outcomes != nil {
			some := res.Outcomes
			given = &some
		}
		b.keep(pending{done: done, given: given, index: uint32(res.Receipt.Index)}, res.Receipt.CatalogVersion)
	}
}

// keepSettled adds a callback with what is known whatever becomes of the batch.
func (b *batch) keepSettled(done func(Result, error), res *Result, err error) {
	b.replays++
	known := *res
	if err != nil {
		known = Result{}
	}
	b.pending = append(b.pending, pending{given: &nothing, done: func(Result, error) { done(known, err) }})
}

// replayBytes is what a callback of a request that puts nothing into the log, an answer
// given again or a refusal, counts as among Options.MaxPending.
const replayBytes = 256

// roomForReplays reports whether another such callback may wait. What queues may turn out
// to be one. The caller holds mu.
func (r *Realm) roomForReplays() bool {
	n := r.open.replays + r.queue.n
	if r.inflight != nil {
		n += r.inflight.replays
	}
	return n < r.o.MaxPending/replayBytes
}

// refusal returns a callback that gets a refusal once what it rests on is durable.
func refusal(done func(Result, error), refused error) pending {
	return pending{given: &nothing, done: func(_ Result, err error) {
		if err == nil {
			err = refused
		}
		done(Result{}, err)
	}}
}

// execute runs a checked command, with the hashes of its ids, or finds what its
// request id was answered before, and fills in res, which is zero. The batch is the
// one that makes the result durable, nil when it is already; with an error it is what
// the refusal rests on. The caller holds mu.
func (r *Realm) execute(cmd *economy.Command, h economy.IDHashes, res *Result) (b *batch, err error) {
	b = r.open
	var at economy.At
	if given, ok := r.plain(cmd, h, &at); ok {
		res.Outcomes = *given
		r.receipt(&res.Receipt, at.Position, int(at.Index), at.Time, r.state.Version())
	} else if b, err = r.decide(cmd, res); err != nil {
		return b, err
	}
	if r.o.Sync == SyncOff {
		return nil, nil
	}
	return b, nil
}

// decide runs any command; see execute.
func (r *Realm) decide(cmd *economy.Command, res *Result) (b *batch, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, r.broken(p)
		}
	}()
	if err := malformedOr(cmd, nil); err != nil {
		return nil, err
	}
	if r.err != nil { // by a request before this one in the same call
		return nil, r.err
	}
	if cmd.ID != "" {
		if a, ok := r.state.Remembered(cmd.ID); ok {
			return r.replay(cmd, a, res)
		}
	}
	b = r.open
	if full := r.state.Admit(cmd, r.stamp(b)); full != nil {
		return nil, r.refuse(full)
	}
	if err := r.commit(b, r.state.Decide(cmd, b.time, &r.source), res); err != nil {
		return nil, err
	}
	return b, nil
}

// broken stops the realm because of a panic. The caller holds mu.
func (r *Realm) broken(panicked any) error {
	return r.defect(fmt.Errorf("panic: %v\n%s", panicked, debug.Stack()))
}

// refuse turns what the state has no room for into an error. The caller holds mu.
func (r *Realm) refuse(full *economy.FullError) error {
	if full.IDs {
		r.stats.RefusedIDs++
		return errf(CodeOverloaded, "id", "%s", full.Message)
	}
	return errf(CodeConflict, "player", "%s", full.Message)
}

// stamp returns the time that the next event of b gets. The caller holds mu.
func (r *Realm) stamp(b *batch) int64 {
	if b.events > 0 || r.o.coarse && r.fresh.Load() {
		return b.time
	}
	b.time = max(min(r.o.Now().UnixMilli(), economy.MaxTime), r.state.Now())
	if r.o.coarse {
		r.fresh.Store(true)
		time.AfterFunc(time.Millisecond, func() { r.fresh.Store(false) })
	}
	return b.time
}

// replay gives a remembered answer again. The caller holds mu.
func (r *Realm) replay(cmd *economy.Command, a economy.Answer, res *Result) (*batch, error) {
	var ev economy.Event
	if err := a.Decode(&ev); err != nil {
		return nil, &Error{Code: CodeCorrupt, Message: "a remembered answer", Err: err}
	}
	if !r.state.Same(cmd, &ev) {
		return r.batchAt(a.Position), errf(CodeIDReused, "id", "%q was used for another request, at position %d; a request id stands for one request with the same arguments", cmd.ID, a.Position)
	}
	r.stats.Replays++
	r.receipt(&res.Receipt, a.Position, int(a.Index), a.Time, a.Version)
	r.describe(&ev, res)
	res.Replayed = true
	return r.batchAt(a.Position), nil
}

// describe fills in what an event says under the catalog version of res's
// receipt. The caller holds mu.
func (r *Realm) describe(ev *economy.Event, res *Result) {
	version := res.Receipt.CatalogVersion
	res.Status = ev.Status
	if ev.Status != OK {
		res.Subject = strings.Clone(r.state.Subject(ev))
	} else if ev.Kind == economy.KindDraw && ev.Count > 1 {
		res.Outcomes = r.state.AppendOutcomes(r.outcomes.take(int(ev.Count)), ev, version)
	} else if ev.Kind == economy.KindDraw {
		res.Outcomes = r.state.Outcomes(ev, version)
	}
	if ev.Kind != economy.KindAtomic {
		return
	}
	res.Members = make([]Result, len(ev.Members))
	all := r.outcomes.take(int(ev.Draws())) // of all members, one behind the other
	for i := range ev.Members {
		m := &res.Members[i]
		m.Receipt = res.Receipt
		switch {
		case ev.Status == OK && ev.Members[i].Kind == economy.KindDraw:
			from := len(all)
			if some := r.state.AppendOutcomes(all, &ev.Members[i], version); some != nil {
				all, m.Outcomes = some, some[from:len(some):len(some)]
			}
		case ev.Status == OK:
		case i == int(ev.Failed):
			m.Status, m.Subject = res.Status, res.Subject
		default:
			m.Status = Aborted
		}
	}
}

// command turns a request into the form that the rules work on and checks it, but for
// a Grant's items: economy.GrantPlain checks them where it looks at them anyway, and
// who does anything else with the command asks malformedOr first.
func command(req Request, cmd *economy.Command) error {
	if !fill(req, cmd) {
		release(cmd)
		return unfit(req)
	}
	if cmd.Kind == economy.KindGrant {
		return invalid(cmd.CheckHead())
	}
	err := cmd.Check()
	if err != nil {
		release(cmd)
	}
	return invalid(err)
}

// unfit says why fill does not take a request.
func unfit(req Request) error {
	var q Atomic
	switch a := req.(type) {
	case Atomic:
		q = a
	case *Atomic:
		if a != nil {
			q = *a
		}
	}
	if len(q.Members) <= MaxAtomic {
		for i, member := range q.Members {
			var cmd economy.Command
			if !fill(member, &cmd) {
				return noRequest(fmt.Sprintf("members[%d]", i), member)
			}
			release(&cmd)
		}
		return noRequest("", req)
	}
	cmd := economy.Command{Kind: economy.KindAtomic, ID: q.ID}
	if err := cmd.CheckHead(); err != nil {
		return invalid(err)
	}
	return invalid(economy.CheckMembers(len(q.Members)))
}

func noRequest(field string, req Request) error {
	if v := reflect.ValueOf(req); v.Kind() == reflect.Pointer && v.IsNil() {
		return errf(CodeInvalid, field, "a nil %T; want a request", req)
	}
	return errf(CodeInvalid, field, "%T is not a request; want Draw, Grant, Consume, Transfer or Atomic", req)
}

func invalid(err *economy.CommandError) error {
	if err != nil {
		return &Error{Code: CodeInvalid, Field: err.Field, Message: err.Message}
	}
	return nil
}

// malformedOr makes up for what command has not checked: it returns what is
// malformed in cmd, and otherwise err.
func malformedOr(cmd *economy.Command, err error) error {
	if cmd.Kind != economy.KindGrant {
		return err
	}
	if bad := invalid(cmd.Check()); bad != nil {
		return bad
	}
	return err
}

// fill copies a request into cmd, which is zero, and reports whether it is one.
func fill(req Request, cmd *economy.Command) bool {
	switch q := req.(type) {
	case Draw:
		fillDraw(&q, cmd)
	case *Draw:
		if q == nil {
			return false
		}
		fillDraw(q, cmd)
	case Grant:
		fillGrant(&q, cmd)
	case *Grant:
		if q == nil {
			return false
		}
		fillGrant(q, cmd)
	case Consume:
		*cmd = economy.Command{Kind: economy.KindConsume, ID: q.ID, Player: q.Player, Items: q.Items}
	case *Consume:
		return q != nil && fill(*q, cmd)
	case Transfer:
		*cmd = economy.Command{Kind: economy.KindTransfer, ID: q.ID, Player: q.From, To: q.To, Items: q.Items}
	case *Transfer:
		return q != nil && fill(*q, cmd)
	case Atomic:
		return fillAtomic(&q, cmd)
	case *Atomic:
		return q != nil && fillAtomic(q, cmd)
	default:
		return false
	}
	return true
}

func fillDraw(q *Draw, cmd *economy.Command) {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Pool, cmd.Count = economy.KindDraw, q.ID, q.Player, q.Pool, q.Count
	if q.Count == 0 {
		cmd.Count = 1
	}
}

func fillGrant(q *Grant, cmd *economy.Command) {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Items = economy.KindGrant, q.ID, q.Player, q.Items
}

// group is what the members of an Atomic are filled into.
type group [MaxAtomic]economy.Command

var groups = sync.Pool{New: func() any { return new(group) }}

// release gives back what fill took for a command, which must not be used any more.
func release(cmd *economy.Command) {
	if cmd.Members == nil {
		return
	}
	clear(cmd.Members) // and keep none of the caller's memory
	groups.Put((*group)(cmd.Members[:len(group{})]))
	cmd.Members = nil
}

// fillAtomic fills in an Atomic, whose members release gives back; not one of more
// than are allowed, whatever it holds.
func fillAtomic(q *Atomic, cmd *economy.Command) bool {
	if len(q.Members) > MaxAtomic {
		return false
	}
	cmd.Kind, cmd.ID, cmd.Members = economy.KindAtomic, q.ID, groups.Get().(*group)[:len(q.Members)]
	for i, m := range q.Members {
		switch m.(type) {
		case Atomic, *Atomic: // refused by Check; not followed, for it may hold itself
			cmd.Members[i].Kind = economy.KindAtomic
		default:
			if m == nil || !fill(m, &cmd.Members[i]) {
				return false
			}
		}
	}
	return true
}

// String of a Result, for logs and tests: the status, and what it is about.
func (r Result) String() string {
	if r.Subject != "" {
		return fmt.Sprintf("%v (%s) at %d", r.Status, r.Subject, r.Receipt.Position)
	}
	return fmt.Sprintf("%v at %d", r.Status, r.Receipt.Position)
}
