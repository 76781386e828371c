package kuji

import (
	"context"
	"fmt"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/step"
)

// maxCatalogEvent is the largest catalog event in the log, in bytes. Even after MaxPending bytes
// of other events, it keeps the entry below the 64 MiB limit of a log record.
const maxCatalogEvent = 40 << 20

// lockForRoom locks mu once the open batch has room, and waits for that if it must. The caller
// holds mu if the error is nil.
func (w *writer) lockForRoom(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return &Error{Code: CodeCanceled, Message: "the context ended before the request was accepted; nothing was logged", Err: ctx.Err()}
		}
		w.mu.Lock()
		if err := w.gate.usable(); err != nil {
			w.mu.Unlock()
			return err
		}
		if !w.group.Full() {
			return nil
		}
		taken := w.group.Taken()
		w.mu.Unlock()
		// If the context has ended, the check above returns.
		_ = step.Wait(ctx, w.world.steps, taken)
	}
}

// unlock unlocks mu for somebody who adds no more.
func (w *writer) unlock() {
	w.group.Ask()
	w.mu.Unlock()
}

// batchAt returns the batch at a position, or nil if that position is already acknowledged. The
// caller holds mu.
func (w *writer) batchAt(pos uint64) *ledger.Batch {
	if pos <= w.gate.acked.Load() {
		return nil
	}
	return w.group.At(pos)
}

// batches are what becomes of a realm's batches: the ledger calls its methods under the realm's lock.
type batches struct {
	w       *writer
	snaps   *snapshots
	places  *places
	version uint64    // of the catalog in force after the batch being written
	hash    *[32]byte // of the state after the open batch, for stateHash; nil: nobody asked
}

// Taken begins the writing of a batch. The state is what the batch has made it.
func (b *batches) Taken(batch *ledger.Batch) {
	b.version = b.w.state.Catalog().Version
	if b.hash != nil {
		*b.hash = b.w.state.Hash()
		b.hash = nil
	}
	b.snaps.begin(batch.Position)
}

// Durable acknowledges a batch.
func (b *batches) Durable(batch *ledger.Batch) {
	w, at := b.w, b.w.ledger.At
	w.counts.answered.Add(uint64(batch.Events))
	w.counts.stats.Batches++
	w.counts.stats.LogBytes += uint64(len(batch.Buf))
	b.snaps.bytes += int64(len(batch.Buf))
	b.snaps.seal(at)
	if b.places.passed(len(batch.Buf)) {
		b.places.add(at, b.version, w.clock.last)
	}
	w.gate.advance(at)
}

// Lost stops the realm because a batch could not be written.
func (b *batches) Lost(batch *ledger.Batch, cause error) error {
	w := b.w
	if w.gate.err == nil && codeOfLedger(cause) == CodeNotLeader {
		w.gate.fail(&Error{Code: CodeNotLeader, Message: fmt.Sprintf("realm %q stopped at position %d", w.name, batch.Position), Err: cause})
	} else if w.gate.err == nil {
		w.gate.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q stopped at position %d: writing the log failed; restart the server (in Go: close the engine and open it again) to recover", w.name, batch.Position), Err: cause})
	}
	w.gate.lower(w.ledger.Durable())
	b.snaps.lose()
	w.gate.wake()
	return &Error{Code: CodeUnknownOutcome, Message: fmt.Sprintf("realm %q stopped before the request was durable; after a restart, send the same request id again to learn what became of it", w.name), Err: cause}
}

// stateHash returns the hash of the state, and the position that it was taken at, once that is durable.
func (b *batches) stateHash(ctx context.Context) (hash [32]byte, position uint64, err error) {
	w := b.w
	w.mu.Lock()
	if err := w.gate.answers(ctx); err != nil {
		w.mu.Unlock()
		return hash, 0, err
	}
	open := w.group.Open()
	if open.Events == 0 { // the state is that of the batch before it
		position, hash = w.state.Position(), w.state.Hash()
		w.mu.Unlock()
		return hash, position, w.settle(ctx, position)
	}
	if b.hash == nil {
		b.hash = new([32]byte)
	}
	sum, done := b.hash, open.Done()
	w.unlock()
	if err := w.settled(ctx, open, done); err != nil {
		return hash, 0, err
	}
	return *sum, open.Position, nil
}

// pending is a callback of Submit, and what it is called with once the batch is durable.
type pending struct {
	done func(Result, error)
	res  Result
	err  error
}

func (p *pending) call(unknown error) {
	if unknown != nil {
		p.done(Result{}, unknown)
	} else {
		p.done(p.res, p.err)
	}
}

// bytes returns about how much memory a waiting callback takes.
func (p *pending) bytes() int {
	n := 192 + 64*len(p.res.Outcomes)
	for i := range p.res.Members {
		n += 192 + 64*len(p.res.Members[i].Outcomes)
	}
	return n
}
