package ledger

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/kuji-dev/kuji/internal/step"
)

// Group commit:
//
//	who adds events, under the lock:  append them to the open batch; Ask
//	the flusher:                      lock; take the open batch, open an empty one; unlock
//	                                  complete the batch and append it to the log, durably
//	                                  lock; publish its position; unlock
//	                                  wake its waiters and run its callbacks
//	                                  repeat while the open batch has events
//
// Batches form while one is written, and hold one event when the realm is idle. The first append that fails
// ends the group: the state then has effects that the log may lack, which nobody has seen.

// Batch holds the events that become durable together: one entry of the log. Its payload is the time stamp
// (8 bytes, Unix milliseconds), the number of events (4 bytes), then the events, appended under the lock.
type Batch struct {
	Position uint64 // math.MaxUint64: it stays empty
	Time     int64  // Unix milliseconds
	Events   int
	Full     bool   // it takes no more events, however small it is
	Buf      []byte // the whole entry; what is in front of the events is filled in last

	asked bool          // a caller who added to it has no more to add, and waits
	done  chan struct{} // made by Done; closed when err is final
	err   error         // why the outcome is unknown; final once done is closed
	bytes int           // that Told keeps, about

	// Told is told once b is durable, or lost with err, without the lock. Nothing is flushed meanwhile. nil: nobody
	// is. Its memory goes to a later batch: then it must have forgotten all that it was to tell.
	Told interface{ Tell(lost error) }
}

const batchHeader = 12

// Owner is whose batches a Batches writes. Its methods are called with the lock held.
type Owner interface {
	// Taken is told that a batch takes no more events and is written next.
	Taken(b *Batch)
	// Ready is told that the flusher has written a batch and told those who waited. It may add events.
	Ready()
	// Durable is told that a batch is as durable as the driver's policy says, before its waiters are woken.
	Durable(b *Batch)
	// Lost is told that the outcome of a batch and all after it is unknown. It returns what waiters get.
	Lost(b *Batch, cause error) error
}

// Batches makes batches durable, one after the other. Its methods want the lock held.
type Batches struct {
	handoff
	owner  Owner
	ledger *Ledger // the flusher's, while it runs
	most   int     // bytes of a batch, except for the last event

	open     *Batch                                      // takes events
	inflight *Batch                                      // being appended; nil when the flusher is idle
	busy     bool                                        // see Busy
	spare    *Batch                                      // memory for reuse
	taken    chan struct{}                               // closed when the flusher takes open; nil: nobody waits for that
	flushing bool                                        // the flusher runs or was started
	turn     turn                                        // what the flusher is at
	steps    struct{ flush, begin, written, end func() } // the methods, made once
	idle     chan struct{}                               // closed when the flusher ends; nil: nobody waits for that
	gaveUp   error                                       // nothing of the open batch may be written
	waiting  int                                         // bytes that are kept for those who are told, about
}

// NewBatches returns a ledger's group, whose batches have about most bytes. Begin opens the first one.
func NewBatches(l *Ledger, mu *sync.Mutex, owner Owner, most int) *Batches {
	bs := &Batches{handoff: handoff{mu: mu, runner: l.o.Steps}, owner: owner, ledger: l, most: most, open: closedBatch()}
	bs.steps.flush, bs.steps.begin, bs.steps.written, bs.steps.end = bs.flush, bs.begin, bs.written, bs.end
	return bs
}

func closedBatch() *Batch { return &Batch{Position: math.MaxUint64} }

// Begin opens the first batch. The writer must have taken the log over.
func (bs *Batches) Begin() { bs.reset(bs.open, bs.ledger.Position()+1) }

func (bs *Batches) reset(b *Batch, position uint64) {
	head := bs.head() + batchHeader
	if cap(b.Buf) > 2*bs.most { // a catalog made it this large
		b.Buf = nil
	}
	if cap(b.Buf) < head {
		b.Buf = make([]byte, head, 64<<10)
	}
	*b = Batch{Position: position, Buf: b.Buf[:head], Told: b.Told}
}

func (bs *Batches) head() int { return HeadSize(bs.ledger.o.Realm) }

func (bs *Batches) Open() *Batch { return bs.open }

// At returns the batch with a position that is not durable yet.
func (bs *Batches) At(position uint64) *Batch {
	if position == bs.open.Position {
		return bs.open
	}
	return bs.inflight
}

// Writing reports whether a batch is being written. If none is, the ledger stands still.
func (bs *Batches) Writing() bool { return bs.inflight != nil }

// Busy reports whether a batch is being written, or those who wait for it are being told: Ready comes after that.
func (bs *Batches) Busy() bool { return bs.busy }

// Pending returns how many bytes of events wait for the log.
func (bs *Batches) Pending() (bytes uint64) {
	for _, b := range []*Batch{bs.open, bs.inflight} {
		if b != nil && b.Events > 0 {
			bytes += uint64(len(b.Buf))
		}
	}
	return bytes
}

// Waiting returns about how many bytes are kept for those who are told.
func (bs *Batches) Waiting() int { return bs.waiting }

// Full reports whether the open batch takes no more events.
func (bs *Batches) Full() bool { return bs.open.Full || len(bs.open.Buf) >= bs.most }

// Taken returns a channel that is closed when the flusher takes the open batch, or never will.
func (bs *Batches) Taken() <-chan struct{} {
	if bs.taken == nil {
		bs.taken = make(chan struct{})
	}
	return bs.taken
}

// Done returns a channel that is closed when b is durable or lost. Ask for it while b is not.
func (b *Batch) Done() <-chan struct{} {
	if b.done == nil {
		b.done = make(chan struct{})
	}
	return b.done
}

// Err returns why the outcome of b is unknown, nil: b is durable. Done must be closed.
func (b *Batch) Err() error { return b.err }

// Wait counts what the batch's Told keeps until b is durable or lost, about bytes. b must be neither yet.
func (bs *Batches) Wait(b *Batch, bytes int) {
	b.bytes += bytes
	bs.waiting += bytes
}

// Ask starts the flusher if there is something to flush: nothing more is added for now.
func (bs *Batches) Ask() {
	bs.open.asked = bs.open.Events > 0 || bs.open.bytes > 0
	if !bs.flushing {
		bs.next()
	}
}

// GiveUp says that nothing of the open batch may be written. Its waiters are told after the next Ask.
func (bs *Batches) GiveUp(why error) { bs.gaveUp = why }

// Idle returns a channel that is closed when the flusher has nothing more to do.
func (bs *Batches) Idle() <-chan struct{} {
	idle := make(chan struct{})
	if bs.flushing {
		bs.idle = idle
	} else {
		close(idle)
	}
	return idle
}

// due reports whether somebody waits for the open batch, or is to be told that it is lost.
func (bs *Batches) due() bool {
	return bs.open.asked || bs.gaveUp != nil && bs.open.Position != math.MaxUint64
}

// turn is the batch that the flusher works on. Only the flusher uses it, or a goroutine that helps it under the lock.
type turn struct {
	batch   *Batch
	write   bool // it is written, and not only told
	err     error
	lost    []*Batch // the group has ended: these are told why
	unknown error
}

// flush makes the open batch durable, one at a time, and starts itself again while there are events.
func (bs *Batches) flush() {
	// Other goroutines first: under load they add events that share this fsync. Idle, this costs nothing.
	step.Yield(bs.ledger.o.Steps)
	t, h := &bs.turn, new(task)
	bs.locked(h, bs.steps.begin)
	if t.write {
		b := t.batch
		head := b.Buf[bs.head():] // Commit fills in that of the entry, before it
		binary.LittleEndian.PutUint64(head, uint64(b.Time))
		binary.LittleEndian.PutUint32(head[8:], uint32(b.Events))
		t.err = bs.ledger.Commit(b.Buf)
		bs.locked(h, bs.steps.written)
	}
	if t.lost != nil {
		for _, b := range t.lost {
			b.finish(t.unknown)
		}
		return
	}
	defer bs.locked(h, bs.steps.end) // also if a callback ends this goroutine
	t.batch.finish(nil)
}

// begin takes the open batch.
func (bs *Batches) begin() {
	t := &bs.turn
	switch *t = (turn{}); {
	case bs.gaveUp != nil:
		bs.lose(bs.open, bs.gaveUp)
	case bs.open.Events == 0: // those who are told wait for nothing
		t.batch = &Batch{Told: bs.open.Told, bytes: bs.open.bytes}
		bs.open.Told, bs.open.bytes, bs.open.asked = nil, 0, false
	default:
		t.batch, t.write = bs.take(), true
		bs.owner.Taken(t.batch)
	}
}

// written says what became of the batch.
func (bs *Batches) written() {
	t := &bs.turn
	bs.inflight = nil
	if t.err != nil {
		bs.lose(t.batch, t.err, t.batch)
		return
	}
	bs.owner.Durable(t.batch)
}

// end goes on, also if the owner ends the goroutine.
func (bs *Batches) end() {
	defer bs.next()
	t := &bs.turn
	bs.waiting -= t.batch.bytes
	if t.write {
		bs.busy = false
		bs.recycle(t.batch)
		bs.owner.Ready()
	}
}

// next starts the flusher if it has something to do, or else says that it is idle.
func (bs *Batches) next() {
	bs.flushing = bs.due()
	if bs.flushing {
		step.Go(bs.ledger.o.Steps, bs.steps.flush)
	} else if bs.idle != nil {
		close(bs.idle)
		bs.idle = nil
	}
}

// lose ends the group: the outcome of b, of batches and of the open one is unknown.
func (bs *Batches) lose(b *Batch, cause error, batches ...*Batch) {
	bs.turn.unknown = bs.owner.Lost(b, cause)
	bs.turn.lost = append(batches, bs.open)
	bs.turn.write = false
	bs.open = closedBatch()
	bs.tellTaken()
	bs.next()
}

func (bs *Batches) take() *Batch {
	b, next := bs.open, bs.spare
	bs.spare = nil
	if next == nil {
		next = &Batch{}
	}
	bs.reset(next, b.Position+1)
	bs.open, bs.inflight, bs.busy = next, b, true
	bs.tellTaken()
	return b
}

func (bs *Batches) tellTaken() {
	if bs.taken != nil {
		close(bs.taken)
		bs.taken = nil
	}
}

// recycle keeps a finished batch's memory. Waiters may still read b itself.
func (bs *Batches) recycle(b *Batch) { bs.spare = &Batch{Buf: b.Buf, Told: b.Told} }

// finish wakes those that wait for b, and tells whom it has: with err if it is not nil.
func (b *Batch) finish(err error) {
	b.err = err
	if b.done != nil {
		close(b.done)
	}
	if b.Told != nil {
		b.Told.Tell(err)
	}
}

func OpenBatch(payload []byte) (time int64, events uint32, rest []byte, err error) {
	if len(payload) < batchHeader {
		return 0, 0, nil, fmt.Errorf("batch of %d bytes, want at least %d", len(payload), batchHeader)
	}
	t := binary.LittleEndian.Uint64(payload)
	if t > MaxTime {
		return 0, 0, nil, fmt.Errorf("time stamp %d is out of range", t)
	}
	if events = binary.LittleEndian.Uint32(payload[8:]); events == 0 {
		return 0, 0, nil, fmt.Errorf("batch without events")
	}
	return int64(t), events, payload[batchHeader:], nil
}
