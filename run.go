package kuji

import (
	"context"
	"sync"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
)

// Do carries out one request and returns its result once that is durable under the realm's policy. A
// refusal that depends on the state (sold out, too poor …) is a Status of the Result. Errors are *Error;
// with all but CodeUnknownOutcome, nothing was logged:
//
//	CodeInvalid, CodeIDReused   refused
//	CodeNotFound                the catalog in force has no such pool, item or track;
//	                            the request id can be used again
//	CodeOverloaded              the idempotency window is full: send it again later
//	CodeConflict                the realm has no room for another player
//	CodeTooOld                  the id carries its time and may have been forgotten
//	CodeCanceled                ctx ended before the request was accepted
//	CodeUnknownOutcome          it may or may not have happened: send the same id again
//	CodeFailed, CodeClosed      the realm has stopped or is closed
func (r *Realm) Do(ctx context.Context, req Request) (Result, error) {
	var res [1]Result
	c, err := r.w.run(ctx, []Request{req}, res[:])
	if err == nil {
		err = c.Wait(ctx)
	}
	if err == nil && res[0].Status == Refused {
		err = res[0].Err
	}
	if err != nil {
		return Result{}, err
	}
	return res[0], nil
}

// DoAll carries out at most MaxBatch independent requests, and returns a result for each, in order, once
// all are durable. One that gets an error has a result with the status Refused and an Err. DoAll's own
// error says that no result is known; for its codes see Do.
func (r *Realm) DoAll(ctx context.Context, reqs []Request) ([]Result, error) {
	results := make([]Result, min(len(reqs), MaxBatch))
	c, err := r.w.run(ctx, reqs, results)
	if err == nil {
		err = c.Wait(ctx)
	}
	return value(results, err)
}

// StartAll is DoAll in two steps, for callers that prepare the next requests meanwhile. It carries out
// reqs before anything that is started later, and writes their results into results, of the same length.
// Show them to nobody before Wait has returned nil.
func (r *Realm) StartAll(ctx context.Context, reqs []Request, results []Result) (Commit, error) {
	if len(results) != len(reqs) {
		return Commit{}, errf(CodeInvalid, "results", "%d for %d requests; want one for each request", len(results), len(reqs))
	}
	clear(results)
	return r.w.run(ctx, reqs, results)
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

// run carries out requests and fills in their results, which must be zero, durable once Commit says so.
func (w *writer) run(ctx context.Context, reqs []Request, results []Result) (Commit, error) {
	if len(reqs) > MaxBatch {
		return Commit{}, errf(CodeInvalid, "requests", "%d; at most %d are allowed", len(reqs), MaxBatch)
	}
	mem, tables := works.Get().(*work), w.tables.Load()
	defer w.endRun(mem)
	c := Commit{steps: w.world.steps}
	for from := 0; from < len(reqs); from += len(mem.cmds) {
		some := reqs[from:min(from+len(mem.cmds), len(reqs))]
		known, refused := results[from:], 0
		for i, req := range some {
			if err := mem.prepare(i, req, tables); err != nil {
				known[i] = Result{Status: Refused, Err: err}
				refused++
			}
		}
		if refused == len(some) {
			continue // each has its answer, even if the realm has stopped
		}
		mem.last = from+len(some) == len(reqs)
		for done := 0; done < len(some); {
			n, err := w.runSome(ctx, mem, done, known[:len(some)], &c)
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

// runSome carries out the prepared requests from one on, until the open batch is full, and returns
// the next one. Then, or after the last, the flusher begins: more batches take a fifth more work.
func (w *writer) runSome(ctx context.Context, mem *work, from int, results []Result, c *Commit) (next int, err error) {
	if err := w.lockForRoom(ctx); err != nil {
		return from, err
	}
	defer func() {
		defer w.mu.Unlock()
		if mem.unflushed = !mem.last && !w.group.Full(); !mem.unflushed {
			w.group.Ask()
		}
		w.group.Help()
	}()
	if len(results) > 1 {
		mem.warm(w.state, from, len(results))
	}
	for i := from; i < len(results); i++ {
		if mem.cmds[i].Kind == 0 {
			continue // refused
		}
		if w.group.Full() {
			return i, nil
		}
		b, err := w.enter(w.draft.asked(&mem.cmds[i]), &results[i])
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
func (w *writer) endRun(mem *work) {
	if mem.unflushed {
		w.mu.Lock()
		w.unlock()
	}
	mem.end()
}

// work is reusable memory for carrying out requests.
type work struct {
	used    int
	cmds    [64]rules.Command // few enough that they and the memory they touch stay in the nearest caches
	hashes  [64]store.Hashes
	members []rules.Command // of groups
	finder  rules.Finder

	// Of the queue:
	dones [64]func(Result, error)
	picks uint64
	items []Stack // of commands that outlive their call, as do the texts
	texts store.Texts
	res   Result

	// Of run:
	last      bool // the commands are the last ones of their call
	unflushed bool // the flusher was not told of what was carried out
}

var works = sync.Pool{New: func() any { return new(work) }}

// end puts w back into the pool, without references to the caller's memory.
func (w *work) end() {
	w.clear()
	works.Put(w)
}

func (w *work) clear() {
	for i := range w.cmds[:w.used] {
		w.cmds[i].Clear()
	}
	clear(w.dones[:w.used])
	clear(w.items)
	w.texts.Clear()
	w.forgetMembers()
	w.used, w.picks, w.items, w.last, w.unflushed = 0, 0, w.items[:0], false, false
}

func (w *work) forgetMembers() {
	for i := range w.members {
		w.members[i].Clear()
	}
	w.members = w.members[:0]
}

// warm fetches the memory that some of the commands need, if they probably wait for it.
func (w *work) warm(s *store.State, from, to int) {
	if !s.Large() {
		return
	}
	for i := from; i < to; i++ {
		w.hashes[i] = s.Hashes(w.cmds[i].ID, w.cmds[i].Player)
	}
	s.Warm(w.hashes[from:to])
}

// keep copies what the caller of Submit may use again: texts, too, as they may share memory.
func (w *work) keep(cmd *rules.Command) {
	cmd.EachText(func(s *string) { *s = w.texts.Keep(*s) })
	if len(cmd.Items) > 0 {
		from := len(w.items)
		for _, it := range cmd.Items {
			w.items = append(w.items, Stack{Item: w.texts.Keep(it.Item), Quantity: it.Quantity})
		}
		cmd.Items = w.items[from:len(w.items):len(w.items)]
	}
	for i := range cmd.Members {
		w.keep(&cmd.Members[i])
	}
}

// prepare turns a request into command i, and looks up what it names. If it is refused, the command's kind stays 0.
func (w *work) prepare(i int, req Request, t *rules.Tables) error {
	if i == 0 {
		w.forgetMembers()
	}
	cmd := &w.cmds[i]
	if i < w.used {
		cmd.Clear()
	}
	w.used = max(w.used, i+1)
	err := w.fill(req, cmd)
	if err == nil {
		err = invalid(cmd.Check())
	}
	if err != nil {
		cmd.Clear()
		return err
	}
	w.finder.Resolve(t, cmd) // if it names something unknown, propose says so
	return nil
}
