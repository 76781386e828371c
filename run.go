package kuji

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
)

// Every request takes one way:
//
//	run:     lock; carryOut each request; unlock; wait for the batch that they joined
//	carryOut, under mu:
//	         if the id is known, return the first answer again
//	         decide: the rules write the event into the open batch
//	         apply: the store reads those very bytes, as recovery will
//	         describe: the result is read from the same bytes
//
// Do runs one request, DoAll and StartAll run many, Submit runs one and does not wait.

// Do carries out one request and returns its result once that is durable under the realm's policy.
// A refusal that depends on the state (sold out, too poor …) is a Result with a Status, not an
// error. Errors are *Error:
//
//	CodeInvalid, CodeIDReused    refused; nothing was logged
//	CodeNotFound                 the catalog in force has no such pool, item or track; nothing was
//	                             logged, and the request id can be used again
//	CodeOverloaded               the idempotency window has no room for another id;
//	                             nothing was logged: send it again later
//	CodeConflict                 the realm has no room for another player; nothing was logged
//	CodeTooOld                   the id carries its time and may have been forgotten; nothing was
//	                             logged
//	CodeCanceled                 ctx ended before the request was accepted; nothing was logged
//	CodeUnknownOutcome           it may or may not have happened: send the same id again
//	CodeFailed, CodeClosed       the realm has stopped or is closed; nothing was logged
func (r *Realm) Do(ctx context.Context, req Request) (Result, error) {
	var res [1]Result
	c, err := r.run(ctx, []Request{req}, res[:])
	if err == nil {
		err = c.Wait(ctx)
	}
	switch {
	case err != nil:
		return Result{}, err
	case res[0].Status == Refused:
		return Result{}, res[0].Err
	}
	return res[0], nil
}

// DoAll carries out requests, each independent of the others, and returns one result for each, in
// order, once all are durable. A request that is malformed, reuses an id, names what there is not
// or finds no room is the only one refused: its result has the status Refused and an Err. The error
// is not nil only if no result is known; for its codes see Do. At most MaxBatch requests are
// allowed.
func (r *Realm) DoAll(ctx context.Context, reqs []Request) ([]Result, error) {
	results := make([]Result, min(len(reqs), MaxBatch))
	c, err := r.run(ctx, reqs, results)
	if err == nil {
		err = c.Wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

// StartAll is DoAll in two steps, for callers that prepare the next requests while these become
// durable. It carries out reqs in order, before anything that is started later. It writes one
// result for each into results, which must have the same length, and returns. Show the results to
// nobody before Wait has returned nil. Errors are those of DoAll: no result is known.
func (r *Realm) StartAll(ctx context.Context, reqs []Request, results []Result) (Commit, error) {
	if len(results) != len(reqs) {
		return Commit{}, errf(CodeInvalid, "results", "%d for %d requests; want one for each request", len(results), len(reqs))
	}
	clear(results)
	return r.run(ctx, reqs, results)
}

// Submit carries out one request and returns at once. It calls done exactly once, with what Do
// would have returned. If the answer is known at once, it calls done before it returns. Otherwise
// the realm's flusher calls it and does nothing else meanwhile: done must not block and must not
// call the realm. done gets CodeOverloaded if Options.MaxPending bytes of events, or too many
// callbacks, wait for the log. Requests are carried out in the order of submission.
func (r *Realm) Submit(req Request, done func(Result, error)) {
	if done == nil {
		panic("kuji: Submit without a callback")
	}
	w := works.Get().(*work)
	defer w.end()
	err := w.prepare(0, req)
	if err != nil {
		done(Result{}, err)
		return
	}
	var res Result
	if b, err := r.submit(&w.cmds[0], &res, done); b == nil { // refused or already durable
		done(res, err)
	}
}

// submit carries out a command. The batch has done among its callbacks; nil if the answer is known.
func (r *Realm) submit(cmd *rules.Command, res *Result, done func(Result, error)) (b *ledger.Batch, err error) {
	r.mu.Lock()
	defer r.unlock()
	if err := r.usable(); err != nil {
		return nil, err
	}
	if r.group.Full() || r.group.Calls() >= r.o.MaxPending {
		return nil, errf(CodeOverloaded, "", "%d bytes of events and %d bytes of results wait for the log", len(r.group.Open().Buf), r.group.Calls())
	}
	b, err = r.carryOut(cmd, r.state.Hashes(cmd.ID, cmd.Player), res)
	if err != nil {
		*res = Result{}
	}
	if b != nil {
		p := &pending{done: done, res: *res, err: err}
		r.group.Call(b, p.call, p.bytes())
	}
	return b, err
}

// Commit is what the caller of StartAll waits for: that the last of the requests is durable.
type Commit struct {
	batch *ledger.Batch // nil: already durable
	done  <-chan struct{}
	steps step.Runner
}

// Wait returns nil once everything that was started is durable. Its error is CodeUnknownOutcome.
func (c Commit) Wait(ctx context.Context) error {
	if c.batch == nil {
		return nil
	}
	if err := step.Wait(ctx, c.steps, c.done); err != nil {
		return &Error{Code: CodeUnknownOutcome, Message: "the request was accepted, but the context ended before it was durable; send the same request id again to learn what became of it", Err: err}
	}
	return c.batch.Err()
}

// run carries out requests and fills in their results, which must be zero. The Commit says when
// they are durable.
func (r *Realm) run(ctx context.Context, reqs []Request, results []Result) (Commit, error) {
	if len(reqs) > MaxBatch {
		return Commit{}, errf(CodeInvalid, "requests", "%d; at most %d are allowed", len(reqs), MaxBatch)
	}
	w := works.Get().(*work)
	defer r.endRun(w)
	c := Commit{steps: r.world.steps}
	for from := 0; from < len(reqs); from += len(w.cmds) {
		some := reqs[from:min(from+len(w.cmds), len(reqs))]
		known, refused := results[from:], 0
		for i, req := range some {
			if err := w.prepare(i, req); err != nil {
				known[i] = Result{Status: Refused, Err: err}
				refused++
			}
		}
		if refused == len(some) {
			continue // each has its answer, even if the realm has stopped
		}
		w.last = from+len(some) == len(reqs)
		for done := 0; done < len(some); {
			n, err := r.carryOutSome(ctx, w, done, known[:len(some)], &c)
			if err != nil && c.batch != nil {
				err = &Error{Code: CodeUnknownOutcome, Message: "part of the batch was accepted; send the same request ids again to learn what became of each", Err: err}
			}
			if err != nil {
				return Commit{}, err
			}
			done = n
		}
	}
	return c, nil
}

// carryOutSome carries out the prepared requests that were not refused, from one on, until the open
// batch is full. It returns which one is next. The flusher begins behind the call's last requests, or
// when the batch is full: one batch with all of them takes a fifth less work than several.
func (r *Realm) carryOutSome(ctx context.Context, w *work, from int, results []Result, c *Commit) (next int, err error) {
	if err := r.lockForRoom(ctx); err != nil {
		return from, err
	}
	defer func() {
		if w.unflushed = !w.last && !r.group.Full(); w.unflushed {
			r.mu.Unlock()
		} else {
			r.unlock()
		}
	}()
	for i := from; i < len(results); i++ {
		w.hashes[i] = r.state.Hashes(w.cmds[i].ID, w.cmds[i].Player)
	}
	if len(results) > 1 && r.state.Large() {
		r.state.Warm(w.hashes[from:len(results)])
	}
	for i := from; i < len(results); i++ {
		if w.cmds[i].Kind == 0 {
			continue // refused
		}
		if r.group.Full() {
			return i, nil
		}
		b, err := r.carryOut(&w.cmds[i], w.hashes[i], &results[i])
		if err != nil {
			results[i] = Result{Status: Refused, Err: err}
		}
		if b != nil && (c.batch == nil || b.Position > c.batch.Position) {
			c.batch, c.done = b, b.Done() // while mu is held: later the batch may be durable and reused
		}
	}
	return len(results), nil
}

// endRun ends a call of run. If the call ended early, it lets the flusher begin.
func (r *Realm) endRun(w *work) {
	if w.unflushed {
		r.mu.Lock()
		r.unlock()
	}
	w.end()
}

// carryOut runs a checked command, or finds the first answer to its request id, and fills in res.
// It returns the batch that makes the result durable, nil if it already is. With an error, b is
// the batch that the refusal depends on. The caller holds mu.
func (r *Realm) carryOut(cmd *rules.Command, h store.Hashes, res *Result) (b *ledger.Batch, err error) {
	if r.err != nil { // an earlier request of the same call stopped the realm
		return nil, r.err
	}
	finished := false
	defer r.ended(&finished, &b, &err)
	a, known := r.state.Begin(cmd.ID, cmd.Player, h)
	if known {
		b, err = r.replay(cmd, a, res)
	} else {
		b, err = r.decide(cmd, res)
	}
	r.state.End()
	finished = true
	return b, err
}

// decide carries out a command whose request id is not remembered. The caller holds mu.
func (r *Realm) decide(cmd *rules.Command, res *Result) (b *ledger.Batch, err error) {
	b = r.group.Open()
	r.stamp(b)
	if err := cmd.Allow(r.state.Level()); err != nil {
		return nil, &Error{Code: CodeFormat, Err: err}
	}
	if err := r.refused(cmd, b.Time); err != nil { // by a catalog that may not be durable yet
		return r.batchAt(r.state.Catalog().Position), err
	}
	if err := r.admit(cmd, b.Time); err != nil {
		return nil, err
	}
	r.event.Buf = b.Buf
	if status := r.rules.Decide(cmd, b.Time, &r.source, &r.event); status != rules.OK {
		r.stats.Failures++
	} else {
		r.stats.Draws += r.rules.Drawn(r.drawn)
	}
	return b, r.commit(b, r.event.Buf, res)
}

// commit applies the event at the end of buf, which extends b.Buf, adds it to b and fills in its
// result. The caller holds mu.
func (r *Realm) commit(b *ledger.Batch, buf []byte, res *Result) error {
	var ev store.Event
	if _, err := store.Decode(buf[len(b.Buf):], &ev); err != nil {
		return r.defect(err)
	}
	at := store.At{Position: b.Position, Index: uint32(b.Events), Time: b.Time}
	version := r.state.Catalog().Version
	if err := r.state.Apply(&ev, at); err != nil {
		return r.defect(err) // the rules and the store disagree
	}
	b.Buf = buf
	b.Events++
	r.clock.last = r.state.Now()
	r.stats.Events++
	return r.answer(&ev, res, at, version)
}

// answer fills in res from an event that was applied. The caller holds mu.
func (r *Realm) answer(ev *store.Event, res *Result, at store.At, version uint64) (err error) {
	if err = describe(r.state, &r.outcomes, ev, res); err != nil {
		return &Error{Code: CodeCorrupt, Message: "a remembered answer", Err: err}
	}
	r.receipt(&res.Receipt, at.Position, int(at.Index), at.Time, version)
	for i := range res.Members {
		res.Members[i].Receipt = res.Receipt
	}
	return nil
}

// admit refuses a command if the state has no room for what it may add: a request id or players.
// The caller holds mu.
func (r *Realm) admit(cmd *rules.Command, now int64) error {
	s := r.state
	if cmd.ID != "" && s.WindowFull(now) {
		r.stats.RefusedIDs++
		w := s.WindowSize()
		return errf(CodeOverloaded, "id", "%d request ids are remembered and the catalog allows %d within its window; none is forgotten early: "+
			"send it again later, or raise idempotency.count in the catalog", w.Remembered, w.Limit)
	}
	if most := 2 * max(1, len(cmd.Members)); !s.RoomForPlayers(most) && !s.RoomForPlayers(cmd.NewPlayers(s)) {
		return errf(CodeConflict, "player", "the realm has %d players, the most it can have; there is no room for a new one", s.Players())
	}
	if s.MemoryFull() {
		return errf(CodeConflict, "player", "the realm's %d players take all the memory that they may", s.Players())
	}
	return nil
}

// replay returns a remembered answer again. The caller holds mu.
func (r *Realm) replay(cmd *rules.Command, a store.Answer, res *Result) (*ledger.Batch, error) {
	var ev store.Event
	if _, err := store.Decode(a.Event, &ev); err != nil {
		return nil, &Error{Code: CodeCorrupt, Message: "a remembered answer", Err: err}
	}
	b := r.batchAt(a.Position)
	same, err := rules.Same(r.state, cmd, &ev)
	if err != nil {
		return nil, &Error{Code: CodeCorrupt, Message: "a remembered answer", Err: err}
	}
	if !same {
		return b, errf(CodeIDReused, "id", "%q was used for another request, at position %d; use a request id again only with the same arguments", cmd.ID, a.Position)
	}
	r.stats.Replays++
	err = r.answer(&ev, res, store.At{Position: a.Position, Index: a.Index, Time: a.Time}, a.Version)
	res.Replayed = true
	return b, err
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

// work is reusable memory for carrying out requests.
type work struct {
	used    int
	cmds    [64]rules.Command // few enough that they and the memory they touch stay in the nearest caches
	hashes  [64]store.Hashes
	members []rules.Command // of groups

	last      bool // the commands are the last ones of their call
	unflushed bool // the flusher was not told of what was carried out
}

var works = sync.Pool{New: func() any { return new(work) }}

// end puts w back into the pool, without references to the caller's memory.
func (w *work) end() {
	clear(w.cmds[:w.used])
	clear(w.members)
	w.used, w.members, w.last, w.unflushed = 0, w.members[:0], false, false
	works.Put(w)
}

// prepare turns a request into command i. If it is refused, the command's kind stays 0.
func (w *work) prepare(i int, req Request) error {
	if i == 0 {
		clear(w.members)
		w.members = w.members[:0]
	}
	cmd := &w.cmds[i]
	w.used = max(w.used, i+1)
	*cmd = rules.Command{}
	err := w.fill(req, cmd)
	if err == nil {
		err = invalid(cmd.Check())
	}
	if err != nil {
		*cmd = rules.Command{}
	}
	return err
}
