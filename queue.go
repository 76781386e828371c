package kuji

import (
	"sync/atomic"
	"unsafe"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// Draws that come one by one, by Submit, wait for the log together. Where players and
// request ids are too many for the processor's caches, draws stop for memory, too, each of
// them several times, and many at a time stop hardly longer than one. So they queue until
// they are many:
//
//	Submit:                       puts a draw behind those that queue, if there is an event
//	                              in the open batch
//	who brings the last of many, or a request that does not queue, and the flusher, before it
//	takes the open batch:         carries out what queues, in order
//
// For a batch that has an event the flusher comes by itself, so that what queues is in that
// batch. A draw is answered when it would be otherwise; of what turns out to be none, as its id is
// known or there is no room for it, the callback is called with the batch's.

const (
	// queueLen is how many draws queue until they are carried out: as many as memory is
	// fetched for at a time.
	queueLen = 64
	// drawLeast is the fewest bytes that the event of a draw has besides a request id.
	drawLeast = 6
	// drawText is the most bytes that the ids in a draw have together.
	drawText = 2*MaxID + catalog.MaxID
)

// queue is draws that were submitted and are yet to be carried out, in the open batch.
type queue struct {
	on     bool // for the open batch
	n      int
	bytes  int // that their events will have, at least
	draws  [queueLen]queuedDraw
	hashes [queueLen]economy.IDHashes // of their ids
	text   []byte                     // their ids, of fixed capacity: callers may use theirs again
	used   atomic.Bool                // the last that could have queued did; may be looked at without mu
}

type queuedDraw struct {
	draw economy.Draw
	done func(Result, error)
}

// useQueue says whether draws queue in a batch that has just been opened: where memory is
// what they wait for, and in the simulator. The caller holds mu.
func (r *Realm) useQueue() { r.queue.on = r.state.Large() || r.o.Steps != nil }

// enqueue puts a draw of a single outcome into the queue and reports whether it has. When
// it has not, nothing queues any more. The caller holds mu, and has seen that the realm has
// not stopped, that the queue is on, and that there is an event in the open batch.
func (r *Realm) enqueue(draw *economy.Draw, h economy.IDHashes, done func(Result, error)) bool {
	q := &r.queue
	use := r.roomForReplays()
	if q.used.Load() != use {
		q.used.Store(use)
	}
	if !use {
		r.carryOut()
		return false
	}
	q.draws[q.n], q.hashes[q.n] = queuedDraw{draw: q.own(draw), done: done}, h
	q.n++
	q.bytes += drawLeast + len(draw.ID)
	// The flusher that gathers is roused when the batch is large.
	if q.n == queueLen || len(r.open.buf)+q.bytes >= r.enough || len(r.open.pending)+q.n == gatherCallbacks {
		r.carryOut()
	}
	return true
}

// own returns a draw whose ids are the queue's own, until it is cleared.
func (q *queue) own(draw *economy.Draw) economy.Draw {
	if q.text == nil {
		q.text = make([]byte, 0, queueLen*drawText)
	}
	at := len(q.text)
	q.text = append(append(append(q.text, draw.ID...), draw.Player...), draw.Pool...)
	text := unsafe.String(&q.text[at], len(q.text)-at)
	id, player := len(draw.ID), len(draw.ID)+len(draw.Player)
	return economy.Draw{ID: text[:id], Player: text[id:player], Pool: text[player:], Count: draw.Count}
}

// carryOut carries out what queues, and keeps the answers. The caller holds mu.
func (r *Realm) carryOut() {
	n := r.queue.n
	if n == 0 {
		return
	}
	hashes := r.queue.hashes[:n]
	r.state.Warm(hashes)
	for i := range r.queue.draws[:n] {
		d := &r.queue.draws[i]
		var at economy.At
		if r.err == nil {
			if given, ok := r.inOneGo(&d.draw, nil, hashes[i], &at); ok {
				r.keep(d.done, given, &at)
				continue
			}
		}
		r.keepDecided(d)
	}
	r.clearQueue()
	if len(r.open.pending) >= gatherCallbacks && r.o.Steps == nil {
		r.wake.Signal() // the flusher may be gathering
	}
}

// keepDecided decides a queued draw that is not plain, and keeps its answer until the batch
// that it rests on is durable. Where it rests on none, it goes out with the open batch,
// whatever becomes of that. The caller holds mu.
func (r *Realm) keepDecided(d *queuedDraw) {
	var cmd economy.Command
	var res Result
	fillDraw((*Draw)(&d.draw), &cmd)
	b, err := r.decide(&cmd, &res)
	if b == nil {
		r.open.keepSettled(d.done, &res, err)
		return
	}
	b.keepAnswer(d.done, &res, err)
}

// dropQueue has those who queue told why the realm has stopped: nothing of theirs was carried
// out. The caller holds mu.
func (r *Realm) dropQueue() {
	for i := range r.queue.draws[:r.queue.n] {
		r.open.keepSettled(r.queue.draws[i].done, &Result{}, r.err)
	}
	r.clearQueue()
}

func (r *Realm) clearQueue() {
	clear(r.queue.draws[:r.queue.n]) // and keep none of the callers' memory
	r.queue.n, r.queue.bytes, r.queue.text = 0, 0, r.queue.text[:0]
}
