package kuji

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/kuji-dev/kuji/internal/economy"
)

// Group commit, in short:
//
//	a request, under mu:  decide; append the event to r.open; apply it (some queue before that: see queue.go)
//	                      wake the flusher if it sleeps; unlock; wait for the batch
//	the flusher, forever: lock; sleep while r.open is empty, or, where nobody waits but
//	                      callbacks, and for no fsync, until it is large or a millisecond has passed
//	                      take r.open as r.inflight, put an empty batch in its place; unlock
//	                      seal it, append it to the log, which makes it durable
//	                      lock; publish its position, take its callbacks; unlock
//	                      wake its waiters, run its callbacks
//
// The first append that fails stops the realm: the state holds effects that
// the log may not, and nobody has been told of them yet.

// maxCatalogEvent is the largest catalog in the log, in bytes. With the largest
// MaxPending before it, an entry stays below the log's 64 MiB for a record.
const maxCatalogEvent = 40 << 20

// batch is the events that become durable together: one entry of the log. The
// payload: time stamp (8 bytes, Unix milliseconds), number of events (4 bytes),
// the events.
type batch struct {
	position uint64
	time     int64
	events   int
	buf      []byte // the whole entry; its head is filled in when it is sealed

	done    chan struct{} // made by waitFor; closed when err is final
	hash    *[32]byte     // of the state behind it, for StateHash; nil: nobody asks for it
	err     *Error        // why the outcome is unknown; final once done is closed
	pending []pending     // Submit's callbacks
	replays int           // of them: of requests that put nothing into the log
	wholes  results       // of those whose result is more than outcomes
	receipt Receipt       // of the first event that has a callback: but for the index, of all that are not whole
	calm    int           // how many batches in a row needed little of the memory that pending has
	laid    bool          // buf is a catalog's, see layOut: memory in front of it is kept with it
}

// pending is a callback with what its result does not share with the batch.
// Most results are a draw's outcomes alone. Many wait at a time, and one
// processor writes what another reads: they are small.
type pending struct {
	done  func(Result, error)
	given *[]Outcome // nil: the result is one of the batch's wholes
	index uint32     // of the event, or of the result in wholes
}

// result returns the result that a callback gets.
func (p *pending) result(b *batch) Result {
	if p.given == nil {
		return *b.wholes.at(p.index)
	}
	res := Result{Outcomes: *p.given, Receipt: b.receipt}
	res.Receipt.Index = int(p.index)
	return res
}

// nothing is what requests that are no draws give.
var nothing []Outcome

// keep adds a callback with a result that may share b's receipt, which is set, but for
// the index and the version of the catalog.
func (b *batch) keep(p pending, version uint64) {
	if b.receipt.CatalogVersion != version { // a catalog came into force within the batch
		res := p.result(b)
		res.Receipt.CatalogVersion = version
		b.keepWhole(p.done, &res)
		return
	}
	b.pending = append(b.pending, p)
}

// keepWhole adds a callback with a result of any kind.
func (b *batch) keepWhole(done func(Result, error), res *Result) {
	b.pending = append(b.pending, pending{done: done, index: b.wholes.add(res)})
}

// results is a list of results that grows without moving them.
type results struct {
	chunks []*resultChunk // in use or not
	n      uint32
}

type resultChunk [128]Result

func (r *results) at(i uint32) *Result {
	return &r.chunks[i/uint32(len(resultChunk{}))][i%uint32(len(resultChunk{}))]
}

// add appends a copy of a result and returns its index.
func (r *results) add(res *Result) uint32 {
	n := r.n
	if n == uint32(len(r.chunks)*len(resultChunk{})) {
		r.chunks = append(r.chunks, new(resultChunk))
	}
	r.n++
	*r.at(n) = *res
	return n
}

// reset forgets all results, and gives the memory of more than a few back.
func (r *results) reset() {
	const most = 32 // chunks
	r.chunks = slices.Delete(r.chunks, min(most, len(r.chunks)), len(r.chunks))
	for i := range min(r.n, uint32(len(r.chunks)*len(resultChunk{}))) {
		*r.at(i) = Result{}
	}
	r.n = 0
}

const batchHeader = 12

// reset empties b for the next position.
func (r *Realm) reset(b *batch, position uint64) {
	head := envelopeSize(r.name) + batchHeader
	if cap(b.buf) > 2*r.o.MaxPending { // a catalog was here
		b.buf = nil
	}
	if cap(b.buf) < head {
		b.buf = make([]byte, head, 64<<10)
	}
	*b = batch{position: position, buf: b.buf[:head], pending: b.pending[:0], wholes: b.wholes, calm: b.calm}
}

// lockForRoom takes mu when the open batch has room, waiting for that if need
// be. Without an error the caller holds mu.
func (r *Realm) lockForRoom(ctx context.Context) error {
	for {
		room, err := r.lockIfRoom(ctx)
		if room == nil {
			return err
		}
		awaitRoom(ctx, room)
	}
}

// lockIfRoom takes mu, unless it returns an error, or, when the open batch has no
// room, a channel that is closed when it may have some.
func (r *Realm) lockIfRoom(ctx context.Context) (room <-chan struct{}, err error) {
	if ctx.Err() != nil {
		return nil, &Error{Code: CodeCanceled, Message: "the context ended before the request was accepted; nothing was logged", Err: ctx.Err()}
	}
	r.mu.Lock()
	r.carryOut()
	if err := r.usable(); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	if len(r.open.buf) < r.o.MaxPending {
		return nil, nil
	}
	room = r.room
	r.mu.Unlock()
	return room, nil
}

// awaitRoom waits for what lockIfRoom returned, or for the end of the context.
func awaitRoom(ctx context.Context, room <-chan struct{}) {
	select {
	case <-room:
	case <-ctx.Done():
	}
}

// commit puts a decided event into the open batch, applies it, and fills in
// res. The caller holds mu.
func (r *Realm) commit(b *batch, ev *economy.Event, res *Result) error {
	return r.commitEncoded(b, ev, economy.AppendEvent(b.buf, ev), res)
}

// commitEncoded is commit of an event that buf has, encoded, behind what b has.
func (r *Realm) commitEncoded(b *batch, ev *economy.Event, buf []byte, res *Result) error {
	at := economy.At{Position: b.position, Index: uint32(b.events), Time: b.time}
	r.receipt(&res.Receipt, b.position, b.events, b.time, r.state.Version())
	if err := r.state.Apply(ev, buf[len(b.buf):], at); err != nil {
		return r.defect(err) // Decide and Apply disagree
	}
	if ev.Status != OK {
		r.stats.Failures++
	}
	r.describe(ev, res)
	r.committed(b, buf, ev.Draws())
	return nil
}

// committed counts an applied event, which buf has behind what b had, and rouses
// the flusher when that makes the batch as large as it waits for. The caller holds mu.
func (r *Realm) committed(b *batch, buf []byte, draws uint64) {
	r.stats.Events++
	r.stats.Draws += draws
	if r.o.Sync == SyncOff {
		r.stats.Batches++
		b.position, b.buf = b.position+1, buf[:len(b.buf)] // the stamp stays
		return
	}
	b.buf = buf
	b.events++
	if len(buf) >= r.enough {
		r.enough = math.MaxInt
		r.rouse()
	}
}

// defect stops the realm because of a bug. Nothing of the open batch may be
// answered or written, and the state must not be used again. The caller holds mu.
func (r *Realm) defect(err error) error {
	r.state.Abandon()
	r.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q stopped at position %d by a defect of this build", r.name, r.open.position), Err: err})
	r.rouse()
	return r.err
}

// batchAt returns the batch of a position that is not yet acknowledged, nil
// when it is. The caller holds mu.
func (r *Realm) batchAt(pos uint64) *batch {
	switch {
	case pos <= r.acked.Load():
		return nil
	case pos == r.open.position:
		return r.open
	}
	return r.inflight
}

// await unlocks mu, which the caller holds, and returns when b is durable. A
// nil batch is durable already.
func (r *Realm) await(ctx context.Context, b *batch) error {
	if b == nil {
		r.mu.Unlock()
		return nil
	}
	c := Commit{batch: b, done: r.waitFor(b), steps: r.o.Steps}
	r.mu.Unlock()
	return c.Wait(ctx)
}

// flush is the realm's flusher, on a goroutine of its own.
func (r *Realm) flush() {
	defer close(r.flushed)
	for !r.flushBatch() {
	}
}

// rouse wakes the flusher. The caller holds mu.
func (r *Realm) rouse() {
	if r.o.Steps == nil {
		r.wake.Signal()
		return
	}
	r.o.Steps.Go(r.flushStep)
}

// flushStep is what the flusher does as a task.
func (r *Realm) flushStep() {
	r.mu.Lock()
	idle := r.inflight == nil && !r.ended // or it is called within a task that waits for the log
	r.mu.Unlock()
	if !idle {
		return
	}
	ended := r.flushBatch()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ended:
		r.ended = true
		close(r.flushed)
	case r.open.events > 0:
		r.rouse()
	}
}

// flushBatch makes the open batch durable, waiting for its first event unless
// it runs as a task. It reports whether the flusher has ended.
func (r *Realm) flushBatch() (ended bool) {
	if r.o.Steps == nil {
		// Who can run now may bring more: under load it shares this fsync, and
		// when nobody can this takes no time.
		runtime.Gosched()
	}
	r.mu.Lock()
	if r.gathering.on {
		r.gather()
	}
	for r.open.events == 0 && !r.closing && r.err == nil {
		if r.o.Steps != nil {
			r.mu.Unlock()
			return false
		}
		r.wake.Wait()
		r.mu.Unlock()
		runtime.Gosched() // likewise
		r.mu.Lock()
	}
	r.carryOut()
	if r.err != nil { // commit, or a draw that was carried out, found a bug
		open, unknown := r.stop(r.open, r.err)
		r.mu.Unlock()
		open.finish(unknown)
		return true
	}
	if r.open.events == 0 {
		r.mu.Unlock()
		return true
	}
	b := r.takeOpen()
	if b.hash != nil {
		*b.hash = r.state.Hash()
	}
	r.beginSnapshot(b.position)
	r.mu.Unlock()

	r.seal(b)
	err := r.append(b.buf)

	r.mu.Lock()
	r.inflight = nil
	if err != nil {
		open, unknown := r.stop(b, err)
		r.mu.Unlock()
		b.finish(unknown)
		open.finish(unknown)
		return true
	}
	r.gathering.on = r.mayGather(b)
	r.answered.Add(uint64(b.events))
	r.stats.Batches++
	r.stats.LogBytes += uint64(len(b.buf))
	r.snap.bytes += int64(len(b.buf))
	r.sealSnapshot(r.chain, r.offset)
	r.acked.Store(b.position)
	r.mu.Unlock()
	b.finish(nil)
	r.recycle(b)
	return false
}

// waitFor returns what is closed when b is durable or has failed. The caller holds mu.
func (r *Realm) waitFor(b *batch) <-chan struct{} {
	if b.done == nil {
		b.done = make(chan struct{})
		if b.events > 0 && r.o.Steps == nil {
			r.wake.Signal() // the flusher may be gathering
		}
	}
	return b.done
}

// takeOpen makes the open batch the one in flight and opens the next. The
// caller holds mu.
func (r *Realm) takeOpen() *batch {
	b := r.open
	next := r.spare
	r.spare = nil
	if next == nil {
		next = &batch{}
	}
	r.reset(next, b.position+1)
	r.open, r.inflight, r.enough = next, b, 0
	r.useQueue()
	if b.events == 1 && r.queue.used.Load() { // draws come one at a time
		r.queue.used.Store(false)
	}
	close(r.room)
	r.room = make(chan struct{})
	return b
}

// recycle keeps a finished batch's memory. Waiters may still hold b itself, so
// only what they do not read is taken over.
func (r *Realm) recycle(b *batch) {
	r.spare = &batch{buf: b.buf, pending: b.pending, wholes: b.wholes}
	if b.laid {
		r.spare.buf = nil
	}
	const most = 256 // batches of a calmer time in a row; a few come between large ones at any load
	if n := cap(b.pending); n > 1<<12 && len(b.pending) < n/64 {
		r.spare.calm = b.calm + 1
	}
	if r.spare.calm == most {
		r.spare.pending, r.spare.calm = nil, 0
	}
}

// seal fills in the head of a batch's entry.
func (r *Realm) seal(b *batch) {
	head := envelopeSize(r.name)
	binary.LittleEndian.PutUint64(b.buf[head:], uint64(b.time))
	binary.LittleEndian.PutUint32(b.buf[head+8:], uint32(b.events))
	r.sealEntry(b.buf, entryBatch)
}

// sealEntry puts the envelope of the chain's next entry before a payload.
func (r *Realm) sealEntry(entry []byte, kind entryKind) {
	r.batchID++
	sealEnvelope(entry, &envelope{
		kind: kind, realm: r.name, epoch: r.epoch, writer: r.writer,
		index: r.chain.index + 1, batch: r.batchID, prev: r.chain.hash,
	})
}

// append writes a sealed entry to the log and moves the chain past it.
func (r *Realm) append(entry []byte) error {
	if err := r.log.Append(r.next, entry); err != nil {
		return err
	}
	r.offset = r.next
	r.next++
	e, err := openEnvelope(entry)
	if err != nil {
		return err
	}
	r.chain.advance(&e, sha256.Sum256(entry))
	return nil
}

// fail makes an error the reason why the realm stopped. The caller holds mu.
func (r *Realm) fail(err *Error) {
	r.err = err
	r.stopped.Store(err)
}

// stop ends the realm after a failed append: b, and everything behind it, has
// an unknown outcome. The caller holds mu and then finishes b and the open
// batch, which stop returns, with the error that it returns.
func (r *Realm) stop(b *batch, cause error) (open *batch, unknown *Error) {
	if r.err == nil {
		r.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q stopped at position %d: writing the log failed; reopen the engine to recover", r.name, b.position), Err: cause})
	}
	unknown = &Error{Code: CodeUnknownOutcome, Message: "the realm stopped before the request was durable; after reopening, send the same request id again to learn what became of it", Err: cause}
	r.loseSnapshot()
	r.dropQueue()
	open = r.open
	r.open = &batch{position: math.MaxUint64} // takes nothing: usable refuses
	close(r.room)
	r.room = make(chan struct{})
	return open, unknown
}

// finish publishes what became of a batch.
func (b *batch) finish(err *Error) {
	b.err = err
	if b.done != nil {
		close(b.done)
	}
	for i := range b.pending {
		p := &b.pending[i]
		if err != nil {
			p.done(Result{}, err)
		} else {
			p.done(p.result(b), nil)
		}
		*p = pending{} // the memory is used again
	}
	b.wholes.reset() // likewise
}

// decodeBatch splits a batch's payload.
func decodeBatch(payload []byte) (time int64, events uint32, rest []byte, err error) {
	if len(payload) < batchHeader {
		return 0, 0, nil, fmt.Errorf("batch of %d bytes, want at least %d", len(payload), batchHeader)
	}
	t := binary.LittleEndian.Uint64(payload)
	if t > math.MaxInt64 {
		return 0, 0, nil, fmt.Errorf("time stamp %d is out of range", t)
	}
	if events = binary.LittleEndian.Uint32(payload[8:]); events == 0 {
		return 0, 0, nil, fmt.Errorf("batch of no events")
	}
	return int64(t), events, payload[batchHeader:], nil
}
