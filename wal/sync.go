package wal

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
)

// Group commit, in short:
//
//	append under mu; join the round of those who wait; take the sync token if it is free
//	with the token:  take io, close the round and take the pending groups, write them,
//	                 release io, fsync, publish durable, answer the round
//	                 while somebody has joined the next round: again
//
// The goroutine that takes the token leads the first round itself: a lone writer pays for no
// hand-off. Another goroutine leads later rounds: no caller works on once its record is durable.

// round is the callers that wait for the same fsync.
type round struct {
	done chan struct{} // closed when err is final; nil while only its leader is in it
	err  error
}

type waiter struct {
	round *round
	lead  bool // the sync token was taken: lead must be called
}

// join joins the next round, and takes the sync token if it is free. Alone says that the caller
// will lead the round itself and not wait. The caller holds mu.
func (l *syncer) join(alone bool) waiter {
	if l.round == nil {
		l.round = &round{}
	}
	w := waiter{round: l.round, lead: !l.syncing}
	l.syncing = true
	if w.round.done == nil && !(w.lead && alone) {
		w.round.done = make(chan struct{})
	}
	return w
}

// await returns when the round of a waiter is over, or when its context ends.
func (l *syncer) await(ctx context.Context, w waiter) error {
	if w.lead {
		if ctx.Done() == nil { // this goroutine leads the round, and hands the token on
			l.syncRound()
			if l.keepToken() {
				l.spawn(l.lead)
			}
			return w.round.err
		}
		l.spawn(l.lead)
	}
	if err := step.Wait(ctx, l.opts.steps, w.round.done); err != nil {
		return err
	}
	return w.round.err
}

// lead leads rounds until nobody waits. The caller has the sync token; lead gives it back.
func (l *syncer) lead() {
	for again := true; again; again = l.keepToken() {
		l.syncRound()
		runtime.Gosched()
	}
}

// keepToken gives the token back unless somebody waits.
func (l *syncer) keepToken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncing = l.round != nil || l.tidy && l.broken == nil
	if !l.syncing {
		l.idle.Broadcast()
	}
	return l.syncing
}

// syncRound makes durable what the members of the round have appended, and answers them. The caller
// has the sync token. Without a round it only fsyncs full segments.
func (l *syncer) syncRound() {
	l.io.Lock()
	l.mu.Lock()
	r := l.round
	l.mu.Unlock()
	var err error
	if r != nil {
		err = l.writePending(r, true)
	}
	upto, tail := l.written.Load(), l.tail
	if r == nil {
		upto = tail.first
	}
	l.mu.Lock()
	stale := l.stale
	l.tidy = false
	l.mu.Unlock()
	l.io.Unlock()
	if err == nil {
		if err = l.fsync(stale, tail, upto); err != nil {
			err = l.fail(err)
		}
	}
	if r != nil {
		r.err = err
		if r.done != nil {
			close(r.done)
		}
	}
	l.finishSoon()
}

// fsync makes all records below upto durable: those of the full segments and, if they reach into
// it, the tail. The caller has the sync token.
func (l *syncer) fsync(stale []*segment, tail *segment, upto uint64) error {
	if l.durable.Load() >= upto && len(stale) == 0 {
		return nil
	}
	if !tail.named || len(stale) > 0 {
		if err := l.nameAll(append(slices.Clone(stale), tail)...); err != nil {
			return err
		}
	}
	for _, s := range stale {
		if s.flushed {
			continue
		}
		if err := s.sync(); err != nil {
			return err
		}
		l.mu.Lock()
		s.flushed = true
		l.setDurable(s.next)
		l.mu.Unlock()
	}
	if upto > tail.first {
		if err := tail.sync(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setDurable(upto)
	return nil
}

// setDurable notes that all records below upto are durable. The caller holds mu and the sync token.
func (l *status) setDurable(upto uint64) {
	if upto > l.durable.Load() {
		l.durable.Store(upto)
		if l.broken != nil {
			l.written.Store(upto) // a write has failed meanwhile: what is durable stays readable
		}
		l.wake()
	}
}

// finishSoon starts finishing full segments whose records are durable, and does not wait for it.
func (l *syncer) finishSoon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finishable() {
		l.start(&l.finishing, l.finishFull)
	}
}

// finishable reports whether a full segment lacks nothing but its footer. The caller holds mu.
func (l *syncer) finishable() bool {
	return len(l.stale) > 0 && l.stale[0].flushed && l.broken == nil && !l.closed
}

// finishFull finishes full segments whose records are durable, until none is left or the log is
// closed. Close does the rest.
func (l *syncer) finishFull() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.finishable() {
		s := l.stale[0]
		l.mu.Unlock()
		if err := l.finish(s); err != nil {
			_ = l.fail(err) // the next append returns it
		}
		l.mu.Lock()
	}
	l.finishing = false
	l.idle.Broadcast()
}

// finish writes the footer of the first full segment and makes it durable. It does so before the
// next footer is written, which proves that this one was there.
func (l *syncer) finish(s *segment) error {
	if err := l.writeFooter(s, s.next); err != nil {
		return err
	}
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	s.file = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = l.stale[1:]
	l.space.Broadcast()
	return nil
}

// Sync returns when everything appended before the call is durable. Calls at the same time share an
// fsync. Errors: ErrClosed, ErrReadOnly, ErrFailed. After ErrFailed only records below Durable are
// known to be durable.
func (l *syncer) Sync() error {
	l.mu.Lock()
	if l.err != nil || l.durable.Load() >= l.next {
		defer l.mu.Unlock()
		return l.err
	}
	w := l.join(true)
	l.mu.Unlock()
	return l.await(context.Background(), w)
}

// start spawns a task unless it is running. The task says when it no longer is. The caller holds
// what guards running.
func (l *site) start(running *bool, task func()) {
	if !*running {
		*running = true
		l.spawn(task)
	}
}

// spawn runs fn on a goroutine that Close waits for, or as a task, which may find the log closed.
func (l *site) spawn(fn func()) {
	if l.opts.steps != nil {
		l.opts.steps.Go(fn)
		return
	}
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		fn()
	}()
}

func (l *syncer) syncEvery(interval time.Duration) {
	if l.opts.steps != nil {
		l.opts.steps.Every(interval, func() bool { return l.Sync() == nil })
		return
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// An error poisons the log, and the next append returns it.
			_ = l.Sync()
		case <-l.stop:
			return
		}
	}
}
