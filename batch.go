package kuji

import (
	"context"
	"fmt"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/step"
)

// maxCatalogEvent is the largest catalog event in the log, in bytes. Even behind MaxPending bytes
// of other events, it keeps the entry below the 64 MiB limit of a log record.
const maxCatalogEvent = 40 << 20

// maxPending is the largest MaxPending: no entry of the log has more bytes of events before its last
// event.
const maxPending = 16 << 20

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
		if !r.group.Full() {
			return nil
		}
		taken := r.group.Taken()
		r.mu.Unlock()
		// If the context has ended, the check above returns.
		_ = step.Wait(ctx, r.world.steps, taken)
	}
}

// unlock unlocks mu for somebody who adds no more.
func (r *Realm) unlock() {
	r.group.Ask()
	r.mu.Unlock()
}

// batchAt returns the batch at a position, or nil if that position is already acknowledged. The
// caller holds mu.
func (r *Realm) batchAt(pos uint64) *ledger.Batch {
	if pos <= r.acked.Load() {
		return nil
	}
	return r.group.At(pos)
}

// owner is a realm as its group of batches sees it.
type owner Realm

func (o *owner) Taken(b *ledger.Batch) {
	r := (*Realm)(o)
	r.version = r.state.Catalog().Version
	if r.hash != nil {
		*r.hash = r.state.Hash()
		r.hash = nil
	}
	r.beginSnapshot(b.Position)
}

func (o *owner) Durable(b *ledger.Batch) {
	r := (*Realm)(o)
	r.answered.Add(uint64(b.Events))
	r.stats.Batches++
	r.stats.LogBytes += uint64(len(b.Buf))
	r.snap.bytes += int64(len(b.Buf))
	r.sealSnapshot(r.ledger.At())
	if r.feeds.passed(len(b.Buf)) {
		r.feeds.add(r.ledger.At(), r.version, r.clock.last)
	}
	r.advance(r.ledger.At())
}

func (o *owner) Lost(b *ledger.Batch, cause error) error {
	r := (*Realm)(o)
	if r.err == nil && codeOfLedger(cause) == CodeNotLeader {
		r.fail(&Error{Code: CodeNotLeader, Message: fmt.Sprintf("realm %q stopped at position %d", r.name, b.Position), Err: cause})
	} else if r.err == nil {
		r.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q stopped at position %d: writing the log failed; restart the server (in Go: close the engine and open it again) to recover", r.name, b.Position), Err: cause})
	}
	r.showDurable()
	r.loseSnapshot()
	r.wake()
	return &Error{Code: CodeUnknownOutcome, Message: fmt.Sprintf("realm %q stopped before the request was durable; after a restart, send the same request id again to learn what became of it", r.name), Err: cause}
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
