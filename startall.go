package kuji

import (
	"context"
	"runtime"
	"sync"

	"github.com/kuji-dev/kuji/internal/economy"
)

// Many requests in one call are carried out one after the other while the realm's
// lock is held, and become durable together:
//
//	lock; carry out each, with a note of what plain draws gave; unlock
//	if the flusher was idle: let it run before anything else, so that the log is at work
//	make the results of plain draws, and the memory for all
//	wait for the batch

// DoAll carries out requests, each independent of the others, and returns one
// result each, in order, once all are durable. A request that is malformed,
// reuses an id or has no room refuses only itself: its result has the status
// Refused and an Err. The error is not nil only when no result is known: see Do; at most
// MaxBatch requests are allowed.
func (r *Realm) DoAll(ctx context.Context, reqs []Request) ([]Result, error) {
	results, c, err := r.startAll(ctx, reqs, nil)
	if err != nil {
		return nil, err
	}
	if err := c.Wait(ctx); err != nil {
		return nil, err
	}
	return results, nil
}

// StartAll is DoAll in two steps, for callers that prepare the next requests
// while these become durable. It carries reqs out, in order and before
// anything that is started later, writes a result for each to results, which
// has the same length, and returns. The results may be shown to nobody before
// Wait has returned nil. An error is DoAll's: no result is known.
func (r *Realm) StartAll(ctx context.Context, reqs []Request, results []Result) (Commit, error) {
	if len(results) != len(reqs) {
		return Commit{}, errf(CodeInvalid, "results", "%d for %d requests; want one for each", len(results), len(reqs))
	}
	clear(results)
	_, c, err := r.startAll(ctx, reqs, results)
	return c, err
}

// startAll is StartAll with results that are zero, or with nil for results to be made.
func (r *Realm) startAll(ctx context.Context, reqs []Request, results []Result) ([]Result, Commit, error) {
	if len(reqs) > MaxBatch {
		return nil, Commit{}, errf(CodeInvalid, "requests", "%d; at most %d are allowed", len(reqs), MaxBatch)
	}
	w := works.Get().(*work)
	w.realm, w.results, w.count, w.alone = r, results, len(reqs), r.o.Sync == SyncOff
	defer w.end()
	if err := w.lock(ctx); err != nil {
		return nil, Commit{}, err
	}
	c := Commit{steps: r.o.Steps}
	accepted := false
	for from := 0; from < len(reqs); from += len(w.cmds) {
		some := reqs[from:min(from+len(w.cmds), len(reqs))]
		ahead := r.state.Large() // with few players there is no memory to look at before
		if ahead {
			for i, req := range some {
				w.prepare(from+i, req, &w.cmds[i])
				w.hashes[i] = r.state.HashIDs(w.cmds[i].ID, w.cmds[i].Player)
			}
			r.state.Warm(w.hashes[:len(some)])
		}
		for i, req := range some {
			if len(r.open.buf) >= r.o.MaxPending {
				w.unlock()
				w.fill() // which ends the run: others come between now
				if err := w.lock(ctx); err != nil {
					if accepted {
						err = &Error{Code: CodeUnknownOutcome, Message: "part of the batch was accepted; send the same request ids again to learn what became of each", Err: err}
					}
					return nil, Commit{}, err
				}
			}
			var hashes *economy.IDHashes
			if ahead {
				hashes = &w.hashes[i]
			}
			b := w.one(from+i, req, &w.cmds[i], hashes)
			accepted = accepted || b != nil
			if b != nil && (c.batch == nil || b.position > c.batch.position) {
				c.batch, c.done = b, r.waitFor(b) // now: once mu has been let go it may be durable, and wait too late
			}
		}
	}
	if w.unlock() && r.o.Steps == nil {
		runtime.Gosched() // to the flusher
	}
	w.fill()
	return w.all(), c, nil
}

// work is what a startAll works with.
type work struct {
	realm   *Realm
	locked  bool                 // mu and turn are held
	begins  bool                 // and no event was in the open batch when it was taken
	alone   bool                 // without a log every event is a batch of its own, and durable
	count   int                  // of the requests
	results []Result             // nil until one is needed
	cmds    [64]economy.Command  // so few that they, and the memory that they need, stay in the nearest caches
	hashes  [64]economy.IDHashes // of the commands' ids

	// run is plain requests in a row whose results are to be filled in.
	run struct {
		from    int        // the first's index among the requests
		at      economy.At // where it stands; each of the others stands right behind the one before it
		version uint64     // of the catalog
		given   []*[]Outcome
	}
}

var works = sync.Pool{New: func() any { return new(work) }}

// end gives w back.
func (w *work) end() {
	if w.locked { // whatever a request that its caller changes meanwhile leads to
		w.unlock()
	}
	used := w.cmds[:min(w.count, len(w.cmds))]
	for i := range used {
		release(&used[i])
	}
	clear(used) // and keep none of the caller's memory
	clear(w.run.given)
	w.run.given = w.run.given[:0]
	w.realm, w.results = nil, nil
	works.Put(w)
}

// lock is lockForRoom, in turn with others who have many requests.
func (w *work) lock(ctx context.Context) error {
	r := w.realm
	for {
		if !r.turn.TryLock() {
			w.all() // who has to wait makes them meanwhile
			r.turn.Lock()
		}
		room, err := r.lockIfRoom(ctx)
		if room == nil && err == nil {
			w.locked, w.begins = true, r.open.events == 0
			return nil
		}
		r.turn.Unlock()
		if err != nil {
			return err
		}
		awaitRoom(ctx, room)
	}
}

// unlock lets mu go, and reports whether the flusher now takes what was put into an
// empty batch: it was roused, and nothing else is in flight.
func (w *work) unlock() bool {
	r := w.realm
	begins := w.begins && r.open.events > 0 && r.inflight == nil
	w.locked = false
	r.mu.Unlock()
	r.turn.Unlock()
	return begins
}

// all returns the results, of which those of the run are not filled in.
func (w *work) all() []Result {
	if w.results == nil {
		w.results = make([]Result, w.count)
	}
	return w.results
}

// prepare turns the request at i into a command, which is zero or was prepared
// before. One that is malformed is refused in its result, and its command is zero.
func (w *work) prepare(i int, req Request, cmd *economy.Command) {
	release(cmd)
	*cmd = economy.Command{}
	if err := command(req, cmd); err != nil {
		w.all()[i] = Result{Status: Refused, Err: err}
		*cmd = economy.Command{} // however large it is, Warm must not look at it
	}
}

// one is execute for the request at i: as a command, with the hashes of its ids, if it is
// prepared already, and otherwise without hashes.
func (w *work) one(i int, req Request, cmd *economy.Command, hashes *economy.IDHashes) *batch {
	r := w.realm
	var at economy.At
	if hashes == nil {
		if given, ok := r.drawNow(req, &at); ok {
			return w.gave(i, given, &at)
		}
		w.prepare(i, req, cmd)
		h := r.state.HashIDs(cmd.ID, cmd.Player)
		hashes = &h
	}
	if cmd.Kind != 0 {
		if given, ok := r.plain(cmd, *hashes, &at); ok {
			return w.gave(i, given, &at)
		}
	}
	w.fill() // which ends the run
	if cmd.Kind == 0 {
		return nil
	}
	res := &w.all()[i]
	b, err := r.decide(cmd, res)
	if err != nil {
		*res = Result{Status: Refused, Err: err}
	} else if w.alone {
		return nil
	}
	return b
}

// gave notes what the plain draw, or grant, at i gave, and returns the batch that
// makes it durable.
func (w *work) gave(i int, given *[]Outcome, at *economy.At) *batch {
	if len(w.run.given) == 0 || at.Time != w.run.at.Time {
		w.fill()
		w.run.from, w.run.at, w.run.version = i, *at, w.realm.state.Version()
	}
	w.run.given = append(w.run.given, given)
	if w.alone {
		return nil
	}
	return w.realm.open
}

// fill fills in the results of the run, and ends it.
func (w *work) fill() {
	given := w.run.given
	if len(given) == 0 {
		return
	}
	results := w.all()[w.run.from:][:len(given)]
	var rc Receipt
	w.realm.ownReceipt(&rc, &w.run.at, w.run.version)
	for i := range results {
		res := &results[i]
		res.Outcomes, res.Receipt = *given[i], rc
		if w.alone {
			res.Receipt.Position += uint64(i)
		} else {
			res.Receipt.Index += i
		}
	}
	clear(given)
	w.run.given = given[:0]
}
