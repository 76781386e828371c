package kuji

import (
	"github.com/kuji-dev/kuji/internal/ledger"
)

// Requests that come one by one wait for the log together. While a batch is written, they wait for each other
// too: many that are carried out in a row find code and data in the processor's caches, and fetch together what
// is not there.
//
//	Submit:                                puts a request into the queue
//	Submit, if the flusher is idle or the queue is full;
//	any other write, and the flusher before it takes the next batch:
//	                                       carries out what is in the queue, in order
//
// What waits in the queue would not be durable before the next batch anyway. It is full with 64 requests, or with
// queuePicks entries that its draws may take: Options.MaxPending limits results only once they are known.

// Submit carries out one request and returns at once. It calls done once, with what Do would return: before
// it returns if the answer is known, otherwise from the realm's flusher, which does nothing else meanwhile.
// done must not block or call the realm. CodeOverloaded: Options.MaxPending bytes of events or results wait
// for the log. Requests are carried out in the order of submission, while a batch is written a little later:
// until done is called, a stale read may not see what they change.
func (r *Realm) Submit(req Request, done func(Result, error)) {
	if done == nil {
		panic("kuji: Submit without a callback")
	}
	if a := submit(r.w, req, done); a != nil {
		done(a.res, a.err)
	}
}

// submit returns a request's answer, if it is known. If not, done is told later.
func submit(w *writer, req Request, done func(Result, error)) *answer {
	w.mu.Lock()
	defer w.unlock()
	if w.draft.queue == nil {
		w.draft.queue = works.Get().(*work)
	}
	q := w.draft.queue
	err := q.prepare(q.used, req, w.tables.Load())
	if err == nil {
		err = w.gate.usable()
	}
	if err == nil && (w.group.Full() || w.group.Waiting() >= w.o.MaxPending) {
		err = errf(CodeOverloaded, "", "%d bytes of events and %d bytes of results wait for the log", len(w.group.Open().Buf), w.group.Waiting())
	}
	if err != nil {
		q.used--
		q.cmds[q.used].Clear()
		return &answer{err: err}
	}
	cmd := &q.cmds[q.used-1]
	q.dones[q.used-1] = done
	if q.picks += cmd.Picks(); w.group.Busy() && q.used < len(q.cmds) && q.picks < queuePicks {
		q.keep(cmd)
		return nil
	}
	return w.carryOut(true)
}

// carryOut carries out what is in the queue. If the last request is that of the caller, it returns the answer if
// that is known. All others are told later. The caller holds mu.
func (w *writer) carryOut(mine bool) *answer {
	q := w.draft.queue
	if q == nil || q.used == 0 {
		return nil
	}
	i := 0
	defer func() { // the clock may end the goroutine
		for ; i < q.used; i++ {
			tellLater(w, nil, q.dones[i], &Result{}, orNil(w.gate.err))
		}
		q.clear()
	}()
	if q.used > 1 {
		q.warm(w.state, 0, q.used)
	}
	for ; i < q.used; i++ {
		b, err := w.enter(w.draft.asked(&q.cmds[i]), &q.res)
		if err != nil {
			q.res = Result{}
		}
		if b == nil && mine && i == q.used-1 {
			a := &answer{q.res, err, true}
			i, q.res = i+1, Result{}
			return a
		}
		tellLater(w, b, q.dones[i], &q.res, err)
		q.res = Result{}
	}
	return nil
}

// tellLater has a callback told of an answer once b is durable. nil: the answer is known.
func tellLater(w *writer, b *ledger.Batch, done func(Result, error), res *Result, err error) {
	known := b == nil
	if known {
		b = w.group.Open()
	}
	w.group.Wait(b, callsOf(b).add(done, res, err, known))
}

// calls are the callbacks of Submit that wait for a batch.
type calls struct {
	all     []call
	receipt Receipt // of the first event; those of others differ in the index only, unless the call has an answer
}

// call is a callback, with what it is told.
type call struct {
	done     func(Result, error)
	outcomes []Outcome
	paid     []Stack
	index    int     // of the event
	other    *answer // the whole answer; nil: the fields above are all of it
}

type answer struct {
	res   Result
	err   error
	known bool // whatever becomes of the batch
}

func callsOf(b *ledger.Batch) *calls {
	if b.Told == nil {
		b.Told = new(calls)
	}
	return b.Told.(*calls)
}

// add adds a callback, and returns about how many bytes are kept for it. Most results say little that others of
// the batch do not.
func (c *calls) add(done func(Result, error), res *Result, err error, known bool) int {
	rc := &res.Receipt
	more := known || err != nil || res.Status != OK || res.Replayed || res.Members != nil || res.Redeemed != "" || res.rare != nil
	if !more && c.receipt.Position == 0 {
		c.receipt = *rc
	}
	if more || rc.CatalogVersion != c.receipt.CatalogVersion {
		c.all = append(c.all, call{done: done, other: &answer{*res, err, known}})
		return callBytes + sizeOf(res)
	}
	c.all = append(c.all, call{done: done, outcomes: res.Outcomes, paid: res.Paid, index: rc.Index})
	return callBytes + 64*len(res.Outcomes)
}

// sizeOf returns about how much memory a result takes.
func sizeOf(res *Result) int {
	n := resultBytes + 64*len(res.Outcomes) + claimBytes*len(res.Claims()) + 64*(len(res.Beyond())+len(res.Collected()))
	for i := range res.Members {
		n += sizeOf(&res.Members[i])
	}
	return n
}

// Tell calls each callback once, even if one of them ends the goroutine, and then forgets them all.
func (c *calls) Tell(lost error) { c.tell(lost, 0) }

func (c *calls) tell(lost error, i int) {
	defer func() {
		if i < len(c.all) {
			c.tell(lost, i)
			return
		}
		clear(c.all)
		c.all, c.receipt = c.all[:0], Receipt{}
	}()
	for i < len(c.all) {
		it := &c.all[i]
		i++
		switch {
		case lost != nil && (it.other == nil || !it.other.known):
			it.done(Result{}, lost)
		case it.other != nil:
			it.done(it.other.res, it.other.err)
		default:
			res := Result{Outcomes: it.outcomes, Paid: it.paid, Receipt: c.receipt}
			res.Receipt.Index = it.index
			it.done(res, nil)
		}
	}
}

const (
	queuePicks = 1000

	callBytes   = 80  // of a call
	resultBytes = 320 // of an answer
	claimBytes  = 160 // of a tier that was claimed, with its items
)
