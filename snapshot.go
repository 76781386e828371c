package kuji

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
)

// A snapshot captures the state under the realm's lock, between two batches, in time that grows with pools
// and chunks of memory. It is written while requests go on: an event that changes captured state first
// saves the old value. Once its batch is durable, the file gets the chain's hash and the place in the log.
// Then old series are removed, and under Options.TrimLog the log is trimmed. If it fails, the realm goes
// on.

// Snapshot describes a snapshot that was taken.
type Snapshot struct {
	Position uint64 // of the newest batch that it covers
	Base     uint64 // position of the snapshot that it builds on; 0: none, it holds the whole state
	Bytes    int64  // of its file
}

// snapshots is what a realm keeps about its snapshots. The realm's lock guards all but ctx.
type snapshots struct {
	w *writer

	extent  *store.Extent // of the newest; nil: the next one holds the whole state
	job     *snapshotJob  // being written
	pending *snapshotJob  // to begin between two batches
	bytes   int64         // of log since the newest
	err     error         // of the last attempt
	holds   int           // backups under way: no file and no log is removed meanwhile

	ctx  context.Context // ends when the one being written is given up
	stop context.CancelFunc
}

type snapshotJob struct {
	capture *store.Capture
	whole   bool // it builds on no other
	footer  ledger.Footer
	placed  chan struct{} // closed when the footer has its place in the log, or lost
	lost    bool          // the realm stopped before the position was durable

	done chan struct{} // closed when info and err are final
	info Snapshot
	err  error

	answered uint64 // events acknowledged by the last pause
	w        *ledger.Writer
	next     func() (store.BlockKind, []byte, bool)
	end      func()
}

func newSnapshotJob() *snapshotJob {
	return &snapshotJob{placed: make(chan struct{}), done: make(chan struct{})}
}

const snapshotPause = 50 * time.Microsecond // while requests are served, about every tenth of a millisecond

// Snapshot takes a snapshot while requests go on, and returns once it is durable. If nothing has happened
// since the newest one, it returns that. CodeCanceled: ctx ended, but the snapshot goes on. CodeFailed: it
// could not be written; the realm is not affected.
func (r *Realm) Snapshot(ctx context.Context) (Snapshot, error) { return r.snaps.take(ctx) }

func (s *snapshots) take(ctx context.Context) (Snapshot, error) {
	s.w.mu.Lock()
	job := s.pending
	if job == nil {
		if err := s.w.gate.usable(); err != nil {
			s.w.mu.Unlock()
			return Snapshot{}, err
		}
		if newest, ok := s.newest(); ok && s.job == nil {
			s.w.mu.Unlock()
			return newest, nil
		}
		job = newSnapshotJob()
		s.pending = job
		if s.w.group.Open().Events == 0 {
			s.begin(s.w.group.Open().Position - 1)
		}
	}
	s.w.mu.Unlock()
	if err := step.Wait(ctx, s.w.world.steps, job.done); err != nil {
		return Snapshot{}, &Error{Code: CodeCanceled, Message: "while waiting for a snapshot", Err: err}
	}
	if job.err != nil {
		return Snapshot{}, &Error{Code: CodeFailed, Message: "snapshot of realm " + s.w.name, Err: job.err}
	}
	return job.info, nil
}

// newest returns the newest snapshot, if nothing has happened since. The caller holds mu.
func (s *snapshots) newest() (Snapshot, bool) {
	newest, ok := s.w.ledger.Newest()
	return infoOf(newest), ok && s.w.group.Open().Events == 0 && newest.Position == s.w.group.Open().Position-1
}

func infoOf(f ledger.Snapshot) Snapshot {
	return Snapshot{Position: f.Position, Base: f.Base, Bytes: f.Bytes}
}

// begin begins the pending snapshot, or one that is due, of the state at the position. The caller holds mu.
func (s *snapshots) begin(position uint64) {
	if s.job != nil || s.ctx.Err() != nil {
		return // end begins the pending one
	}
	job := s.pending
	if job == nil {
		if !s.rewrites() && (s.w.o.SnapshotEvery < 0 || s.bytes < s.w.o.SnapshotEvery) {
			return
		}
		job = newSnapshotJob()
	}
	s.pending, s.job = nil, job
	base := s.extent
	if s.w.ledger.Whole() || s.rewrites() {
		base = nil
	}
	job.whole = base == nil
	job.capture = s.w.state.Capture(base)
	job.footer.Values, job.footer.Last, job.footer.Rules = s.w.source.Values(), s.w.clock.last, rules.Version
	job.footer.Epochs = s.w.proofs.needed(s.w.state.OldestAnswer(), s.w.state.Catalog().Position)
	s.bytes = 0
	if !s.w.group.Writing() && s.w.ledger.Position() == position { // the flusher is idle: we may read the chain
		s.place(s.w.ledger.At)
	}
	s.background(func() bool { return s.step(job) })
}

// rewrites reports whether a snapshot may have a name that is erased. The next ones then are whole, and follow soon,
// until both series are later.
func (s *snapshots) rewrites() bool {
	_, any := s.w.ledger.Newest()
	return any && s.w.state.Rewrites()
}

// pause sleeps while requests are answered: yielding does not let a flusher run that is in a system call.
func (j *snapshotJob) pause(w *writer) {
	if answered := w.counts.answered.Load(); answered != j.answered {
		j.answered = answered
		step.Sleep(w.world.steps, snapshotPause)
	}
}

// background runs a task, one step at a time, until it returns false.
func (s *snapshots) background(task func() bool) {
	step.Go(s.w.world.steps, func() {
		if task() {
			s.background(task)
		}
	})
}

// place tells the snapshot being taken where its batch has become durable. The caller holds mu.
func (s *snapshots) place(at ledger.At) {
	if j := s.job; j != nil && j.footer.Position() == 0 {
		j.footer.At = at
		close(j.placed)
	}
}

// lose ends the snapshots whose batch will not become durable. The caller holds mu.
func (s *snapshots) lose() {
	s.stop()
	if j := s.job; j != nil && j.footer.Position() == 0 && !j.lost {
		j.lost = true
		close(j.placed)
	}
	if j := s.pending; j != nil {
		s.pending = nil
		j.err = ledger.ErrStopped
		close(j.done)
	}
}

// step does the next part of a snapshot and reports whether more is left.
func (s *snapshots) step(j *snapshotJob) (more bool) {
	var err error
	if s.ctx.Err() != nil {
		err = ledger.ErrStopped
	}
	if j.w == nil && err == nil {
		j.next, j.end = iter.Pull2(j.capture.Blocks(func() { j.pause(s.w) }))
		j.w, err = s.w.ledger.Create(s.ctx, j.whole, j.capture.Level())
	}
	if err == nil {
		if kind, data, ok := j.next(); ok {
			if err = j.w.Frame(byte(kind), data); err == nil {
				return true
			}
		}
	}
	if j.end != nil {
		j.end()
	}
	if err == nil {
		err = s.finish(j)
	}
	if j.w != nil {
		j.w.Abort()
	}
	s.end(j, err)
	return false
}

// finish finishes a snapshot whose blocks are all written.
func (s *snapshots) finish(j *snapshotJob) error {
	if err := step.Wait(context.Background(), s.w.world.steps, j.placed); err != nil {
		return err
	}
	if j.lost {
		return ledger.ErrStopped
	}
	// The snapshot must not contain anything that a power cut could remove from the log.
	if err := s.w.ledger.Sync(s.ctx); err != nil {
		return fmt.Errorf("making the log durable: %w", err)
	}
	file, err := j.w.Finish(s.ctx, &j.footer)
	if err != nil {
		return err
	}
	j.info = infoOf(file)
	s.w.mu.Lock()
	extent := j.capture.Extent()
	s.extent = &extent
	s.w.counts.stats.Snapshots++
	s.w.mu.Unlock()
	return nil
}

// end publishes the outcome of a snapshot and begins a pending one.
func (s *snapshots) end(j *snapshotJob, err error) {
	j.err = err
	shown := err
	s.w.mu.Lock()
	held := s.holds > 0 // what is not removed now goes with a later snapshot
	s.w.mu.Unlock()
	if err == nil && !held { // a failure below does not undo the snapshot
		checker := func() ledger.Loader { return &readBack{logged.Loader{Loader: store.NewChecker()}, s, j} }
		if pruned := s.w.ledger.Prune(s.ctx, s.w.o.TrimLog, checker); pruned != nil {
			shown = fmt.Errorf("removing files that are no longer needed: %w", pruned)
			if errors.Is(pruned, ledger.ErrNotReadBack) { // but this one does: it is gone
				j.err = shown
			}
		}
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.state.Release(j.capture, err == nil)
	if errors.Is(err, driver.ErrNotExist) { // the files that the next one would build on may be gone too
		s.extent = nil
	}
	s.job, s.err = nil, shown
	close(j.done)
	if p := s.pending; p != nil {
		if newest, ok := s.newest(); s.ctx.Err() != nil {
			s.lose()
		} else if ok {
			s.pending = nil
			p.info = newest
			close(p.done)
		} else if s.w.gate.err == nil && s.w.group.Open().Events == 0 {
			s.begin(s.w.group.Open().Position - 1)
		} // otherwise the flusher begins it
	}
}

// endAll gives up the snapshot being written and waits for its end. The flusher must have ended.
func (s *snapshots) endAll() error {
	s.w.mu.Lock()
	s.lose()
	job := s.job
	s.w.mu.Unlock()
	if job == nil {
		return nil
	}
	return step.Wait(context.Background(), s.w.world.steps, job.done)
}

// hold keeps what the realm has from being removed. It waits for a removal under way.
func (s *snapshots) hold(ctx context.Context) error {
	for {
		s.w.mu.Lock()
		job := s.job
		if job == nil {
			s.holds++
		}
		s.w.mu.Unlock()
		if job == nil {
			return nil
		}
		if err := step.Wait(ctx, s.w.world.steps, job.done); err != nil {
			return &Error{Code: CodeCanceled, Message: "while waiting for a snapshot", Err: err}
		}
	}
}

func (s *snapshots) release() {
	s.w.mu.Lock()
	s.holds--
	s.w.mu.Unlock()
}

// readBack pauses while requests are served, and gives up when the realm stops.
type readBack struct {
	logged.Loader
	s *snapshots
	j *snapshotJob
}

func (b *readBack) Block(kind byte, data []byte) error {
	if b.s.ctx.Err() != nil {
		return ledger.ErrStopped
	}
	b.j.pause(b.s.w)
	return b.Loader.Block(kind, data)
}
