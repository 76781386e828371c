package kuji

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
)

// Group commit, in short:
//
//	a request, under mu:  add the event to r.open; start the flusher unless it runs
//	the flusher:          lock; move r.open to r.inflight, open an empty batch; unlock
//	                      seal the batch and append it to the log, which makes it durable
//	                      lock; publish its position; unlock
//	                      wake its waiters and run its callbacks
//	                      repeat while the open batch has events
//
// Batches form by themselves while one is being written, and hold one event when the realm is
// idle. The first append that fails stops the realm: the state then holds effects that the log
// may lack, but nobody has seen them yet.

// maxCatalogEvent is the largest catalog event in the log, in bytes. Even behind MaxPending bytes
// of other events, it keeps the entry below the 64 MiB limit of a log record.
const maxCatalogEvent = 40 << 20

// maxPending is the largest MaxPending: no entry of the log has more bytes of events before its last
// event.
const maxPending = 16 << 20

// batch holds the events that become durable together: one entry of the log. Its payload is the
// time stamp (8 bytes, Unix milliseconds), the number of events (4 bytes), then the events.
type batch struct {
	position uint64
	time     int64
	events   int
	version  uint64 // of the catalog in force behind it; set when it is taken
	full     bool   // it takes no more events: its last one has set the clock
	asked    bool   // somebody who added to it has no more to add, and waits
	buf      []byte // the whole entry; seal fills in its head

	done    chan struct{} // made by waitFor; closed when err is final
	hash    *[32]byte     // of the state after this batch, for StateHash; nil: nobody asked
	err     *Error        // why the outcome is unknown; final once done is closed
	pending []pending     // Submit's callbacks
	waiting int           // bytes that these and their results take, about
}

// pending is a callback and what it is called with once the batch is durable.
type pending struct {
	done func(Result, error)
	res  Result
	err  error
}

// bytes returns about how much memory a waiting callback takes.
func (p *pending) bytes() int {
	n := 192 + 64*len(p.res.Outcomes)
	for i := range p.res.Members {
		n += 192 + 64*len(p.res.Members[i].Outcomes)
	}
	return n
}

const batchHeader = 12

// reset empties b for a new position.
func (r *Realm) reset(b *batch, position uint64) {
	head := ledger.HeadSize(r.name) + batchHeader
	if cap(b.buf) > 2*r.o.MaxPending { // a catalog made it this large
		b.buf = nil
	}
	if cap(b.buf) < head {
		b.buf = make([]byte, head, 64<<10)
	}
	*b = batch{position: position, buf: b.buf[:head], pending: b.pending[:0]}
}

// lockForRoom locks mu once the open batch has room, and waits for that if it must. The caller
// holds mu if the error is nil.
func (r *Realm) lockForRoom(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return &Error{Code: CodeCanceled, Message: "the context ended before the request was accepted; nothing was logged", Err: ctx.Err()}
		}
		r.mu.Lock()
		if err := r.usable(); err != nil {
			r.mu.Unlock()
			return err
		}
		if !r.full() {
			return nil
		}
		taken := r.taken
		r.mu.Unlock()
		// If the context has ended, the check above returns.
		_ = step.Wait(ctx, r.world.steps, taken)
	}
}

// full reports whether the open batch takes no more events. The caller holds mu.
func (r *Realm) full() bool { return r.open.full || len(r.open.buf) >= r.o.MaxPending }

// unlock unlocks mu for somebody who adds no more.
func (r *Realm) unlock() {
	r.ask()
	r.mu.Unlock()
}

// ask starts the flusher if there is something to flush. The caller holds mu.
func (r *Realm) ask() {
	r.open.asked = r.open.events > 0
	if !r.flushing && r.due() {
		r.flushing = true
		step.Go(r.world.steps, r.flush)
	}
}

// due reports whether the flusher has something to do: somebody waits for the open batch, or a
// defect was found and whoever waits is to be told. The caller holds mu.
func (r *Realm) due() bool {
	return r.open.asked || r.err != nil && r.open.position != math.MaxUint64
}

// batchAt returns the batch at a position, or nil if that position is already acknowledged. The
// caller holds mu.
func (r *Realm) batchAt(pos uint64) *batch {
	switch {
	case pos <= r.acked.Load():
		return nil
	case pos == r.open.position:
		return r.open
	}
	return r.inflight
}

// waitFor returns a channel that is closed when b is durable or has failed. The caller holds mu.
func (r *Realm) waitFor(b *batch) <-chan struct{} {
	if b.done == nil {
		b.done = make(chan struct{})
	}
	return b.done
}

// flush makes the open batch durable. Only one runs at a time. It starts itself again while there
// are events.
func (r *Realm) flush() {
	// Let other goroutines run first: under load they add requests that share this fsync. If none
	// can run, this costs nothing.
	step.Yield(r.world.steps)
	r.mu.Lock()
	if r.err != nil { // stopped by a defect
		unknown := r.stop(r.open, r.err)
		r.flushed(unknown)
		return
	}
	b := r.takeOpen()
	if b.hash != nil {
		*b.hash = r.state.Hash()
	}
	r.beginSnapshot(b.position)
	r.mu.Unlock()

	r.seal(b)
	err := r.ledger.Commit(b.buf)

	r.mu.Lock()
	r.inflight = nil
	if err != nil {
		unknown := r.stop(b, err)
		r.flushed(unknown, b)
		return
	}
	r.answered.Add(uint64(b.events))
	r.stats.Batches++
	r.stats.LogBytes += uint64(len(b.buf))
	r.snap.bytes += int64(len(b.buf))
	r.sealSnapshot(r.ledger.At())
	if r.feeds.passed(len(b.buf)) {
		r.feeds.add(r.ledger.At(), b.version)
	}
	r.advance(r.ledger.At())
	r.mu.Unlock()
	defer func() { // also if a callback ends this goroutine
		r.mu.Lock()
		r.waiting -= b.waiting
		r.recycle(b)
		r.flushed(nil)
	}()
	b.finish(nil)
}

// flushed ends a run of the flusher, and starts the next one if there are events. The caller holds
// mu; flushed unlocks it. If unknown is not nil, the realm has stopped: the given batches and the
// open one have an unknown outcome.
func (r *Realm) flushed(unknown *Error, batches ...*batch) {
	if unknown != nil {
		batches = append(batches, r.open)
		r.open = &batch{position: math.MaxUint64} // stays empty: usable refuses
	}
	again := r.due()
	r.flushing = again
	if !again && r.idle != nil {
		defer close(r.idle)
		r.idle = nil
	}
	if again {
		step.Go(r.world.steps, r.flush)
	}
	r.mu.Unlock()
	for _, b := range batches {
		b.finish(unknown)
	}
}

// takeOpen puts the open batch in flight and opens the next one. The caller holds mu.
func (r *Realm) takeOpen() *batch {
	b, next := r.open, r.spare
	r.spare = nil
	if next == nil {
		next = &batch{}
	}
	r.reset(next, b.position+1)
	b.version = r.state.Catalog().Version
	r.open, r.inflight = next, b
	close(r.taken)
	r.taken = make(chan struct{})
	return b
}

// recycle keeps the memory of a finished batch. Waiters may still read b itself, so it reuses only
// the fields that they do not read.
func (r *Realm) recycle(b *batch) {
	const most = 1 << 10
	if cap(b.pending) > most {
		b.pending = nil
	}
	r.spare = &batch{buf: b.buf, pending: b.pending}
}

// seal fills in the head of a batch. The ledger fills in that of its entry.
func (r *Realm) seal(b *batch) {
	head := ledger.HeadSize(r.name)
	binary.LittleEndian.PutUint64(b.buf[head:], uint64(b.time))
	binary.LittleEndian.PutUint32(b.buf[head+8:], uint32(b.events))
}

// fail records why the realm stopped. The caller holds mu.
func (r *Realm) fail(err *Error) {
	r.err = err
	r.stopped.Store(err)
}

// showDurable lowers the acknowledged position to what is known to be on disk, because a write has
// failed. Only a relaxed policy had acknowledged more. Reads then show no more than that. The caller
// holds mu and is the writer.
func (r *Realm) showDurable() {
	r.acked.Store(min(r.acked.Load(), r.ledger.Durable()))
}

// stop stops the realm after an append of b failed, or after a defect. The outcome of b and of
// everything after it is unknown. The caller holds mu.
func (r *Realm) stop(b *batch, cause error) (unknown *Error) {
	if r.err == nil && codeOfLedger(cause) == CodeNotLeader {
		r.fail(&Error{Code: CodeNotLeader, Message: fmt.Sprintf("realm %q stopped at position %d", r.name, b.position), Err: cause})
	} else if r.err == nil {
		r.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q stopped at position %d: writing the log failed; reopen the engine to recover", r.name, b.position), Err: cause})
	}
	r.showDurable()
	r.loseSnapshot()
	r.wake()
	close(r.taken)
	r.taken = make(chan struct{})
	return &Error{Code: CodeUnknownOutcome, Message: fmt.Sprintf("realm %q stopped before the request was durable; after reopening, send the same request id again to learn what became of it", r.name), Err: cause}
}

// finish wakes the waiters and runs the callbacks of b: with err if it is not nil, otherwise with
// their results.
func (b *batch) finish(err *Error) {
	b.err = err
	if b.done != nil {
		close(b.done)
	}
	b.call(err, 0)
}

// call runs the callbacks from number i on, each once, even if one of them ends the goroutine.
func (b *batch) call(err *Error, i int) {
	defer func() {
		if i < len(b.pending) {
			b.call(err, i)
		}
	}()
	for i < len(b.pending) {
		p := b.pending[i]
		b.pending[i] = pending{} // the memory is reused: keep nothing alive
		i++
		if err != nil {
			p.done(Result{}, err)
		} else {
			p.done(p.res, p.err)
		}
	}
}

// decodeBatch splits the payload of a batch.
func decodeBatch(payload []byte) (time int64, events uint32, rest []byte, err error) {
	if len(payload) < batchHeader {
		return 0, 0, nil, fmt.Errorf("batch of %d bytes, want at least %d", len(payload), batchHeader)
	}
	t := binary.LittleEndian.Uint64(payload)
	if t > rules.MaxTime {
		return 0, 0, nil, fmt.Errorf("time stamp %d is out of range", t)
	}
	if events = binary.LittleEndian.Uint32(payload[8:]); events == 0 {
		return 0, 0, nil, fmt.Errorf("batch without events")
	}
	return int64(t), events, payload[batchHeader:], nil
}
