package kuji

import (
	"sync/atomic"

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
// batch, and is answered when it would be otherwise.

// queueLen is how many draws queue until they are carried out: as many as memory is
// fetched for at a time.
const queueLen = 64

// queue is draws that were submitted and are yet to be carried out, in the open batch.
type queue struct {
	n      int
	draws  [queueLen]queuedDraw
	hashes [queueLen]economy.IDHashes // of their ids
	used   atomic.Bool                // the last one that could have queued did; may be looked at without mu
}

type queuedDraw struct {
	draw economy.Draw
	done func(Result, error)
}

// enqueue puts a draw of a single outcome into the queue and reports whether it has. The
// caller holds mu, and has seen that the realm has not stopped.
func (r *Realm) enqueue(draw *economy.Draw, h economy.IDHashes, done func(Result, error)) bool {
	q := &r.queue
	use := r.open.events > 0 && r.o.Sync != SyncOff && (r.state.Large() || r.o.Steps != nil) && r.roomForReplays()
	if q.used.Load() != use {
		q.used.Store(use)
	}
	if !use {
		return false
	}
	q.draws[q.n], q.hashes[q.n] = queuedDraw{draw: *draw, done: done}, h
	if q.n++; q.n == queueLen {
		r.carryOut()
	}
	return true
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
}

// keepDecided decides a queued draw that is not plain, and keeps its answer. What it rests
// on is in the open batch or before it. The caller holds mu.
func (r *Realm) keepDecided(d *queuedDraw) {
	cmd := economy.Command{Kind: economy.KindDraw, ID: d.draw.ID, Player: d.draw.Player, Pool: d.draw.Pool, Count: 1}
	var res Result
	_, err := r.decide(&cmd, &res)
	r.open.keepAnswer(d.done, &res, err)
}

// dropQueue has the callbacks of what queues, and is never carried out, called with the
// open batch's. The caller holds mu.
func (r *Realm) dropQueue() {
	for i := range r.queue.draws[:r.queue.n] {
		r.open.pending = append(r.open.pending, pending{done: r.queue.draws[i].done, given: &nothing})
	}
	r.clearQueue()
}

func (r *Realm) clearQueue() {
	clear(r.queue.draws[:r.queue.n]) // and keep none of the callers' memory
	r.queue.n = 0
}
