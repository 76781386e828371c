package kuji

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Snapshots, in short:
//
//	under mu, between two batches:  capture the state; this takes time for pools and chunks of
//	                               memory, not for what they hold
//	concurrently with the writer:   write the captured state; an event that changes it first
//	                               saves the old value
//	once the batch is durable:      seal the file with the chain's hash and the log's offset;
//	                               fsync, rename, fsync the directory
//	then:                           remove chains that are no longer needed; trim the log if
//	                               Options.TrimLog is set (snapshot_prune.go)
//
// The log is the truth: a snapshot that cannot be written is no reason to stop.

// Snapshot describes a snapshot that was taken.
type Snapshot struct {
	Position uint64 // of the newest batch that it covers
	Base     uint64 // position of the snapshot that it builds on; 0: none, it holds the whole state
	Bytes    int64  // of its file
}

// snapshots is what a realm keeps about its snapshots. Guarded by mu, unless a field says
// otherwise.
type snapshots struct {
	fs      vfs.FS // used by jobs; set once, like dir
	dir     string
	made    bool           // the directory exists durably; used by jobs only
	files   []snapshotFile // the newest chain, ascending: intact, as far as is known
	before  []snapshotFile // the chain before it, likewise; nil: not known
	mark    *store.Mark    // of the newest; nil: the next one holds the whole state
	job     *snapshotJob   // being written
	pending *snapshotJob   // to begin between two batches
	bytes   int64          // of log since the newest
	err     error          // of the last attempt
	stop    atomic.Bool    // give up the one being written
}

// snapshotJob is one snapshot being taken.
type snapshotJob struct {
	capture *store.Capture
	base    *snapshotFile
	seal    seal
	ready   chan struct{} // closed when seal is final, or lost
	lost    bool          // the realm stopped before the position was durable

	done chan struct{} // closed when info and err are final
	info Snapshot
	err  error

	answered uint64 // events acknowledged by the last pause
	w        *snapshotWriter
	next     func() (store.BlockKind, []byte, bool)
	end      func()
}

const (
	// maxSnapshotChain is how many snapshots may build on one another. Recovery needs all of a
	// chain's files intact, so there should be few. And where the log is trimmed, it is kept from
	// the end of the chain before: for so many snapshots.
	maxSnapshotChain = 16
	// snapshotPause is how long the writing of a snapshot pauses while requests are served, after
	// about every tenth of a millisecond.
	snapshotPause = 50 * time.Microsecond
)

// Snapshot takes a snapshot now, while requests go on, and returns once it is durable. If nothing
// has happened since the newest snapshot, it returns that one. CodeCanceled: ctx ended, but the
// snapshot goes on. CodeFailed: the snapshot could not be written; the realm is not affected.
func (r *Realm) Snapshot(ctx context.Context) (Snapshot, error) {
	r.mu.Lock()
	job := r.snap.pending
	if job == nil {
		if err := r.usable(); err != nil {
			r.mu.Unlock()
			return Snapshot{}, err
		}
		if n := len(r.snap.files); n > 0 && r.snap.job == nil && r.open.events == 0 && r.snap.files[n-1].position == r.open.position-1 {
			info := r.snap.files[n-1].info()
			r.mu.Unlock()
			return info, nil
		}
		job = &snapshotJob{ready: make(chan struct{}), done: make(chan struct{})}
		r.snap.pending = job
		if r.open.events == 0 {
			r.beginSnapshot(r.open.position - 1)
		}
	}
	r.mu.Unlock()
	if err := step.Wait(ctx, r.world.steps, job.done); err != nil {
		return Snapshot{}, &Error{Code: CodeCanceled, Message: "while waiting for a snapshot", Err: err}
	}
	if job.err != nil {
		return Snapshot{}, &Error{Code: CodeFailed, Message: "snapshot of realm " + r.name, Err: job.err}
	}
	return job.info, nil
}

func (f *snapshotFile) info() Snapshot {
	return Snapshot{Position: f.position, Base: f.base, Bytes: f.bytes}
}

// beginSnapshot begins the pending snapshot, or one that is due. The state must be that of the
// position: everything up to it is applied, and nothing after it. The caller holds mu.
func (r *Realm) beginSnapshot(position uint64) {
	s := &r.snap
	if s.job != nil || s.stop.Load() {
		return // endSnapshot begins the pending one
	}
	job := s.pending
	if job == nil {
		if r.o.SnapshotEvery < 0 || s.bytes < r.o.SnapshotEvery {
			return
		}
		job = &snapshotJob{ready: make(chan struct{}), done: make(chan struct{})}
	}
	s.pending, s.job = nil, job
	base := s.mark
	if base != nil && s.whole() {
		base = nil
	}
	if base != nil {
		newest := s.files[len(s.files)-1]
		job.base = &newest
	}
	job.capture = r.state.Capture(base)
	job.seal.values, job.seal.last = r.source.n, r.clock.last
	job.seal.epochs = r.neededEpochs()
	s.bytes = 0
	if r.inflight == nil && r.chain.index == position { // the flusher is idle: we may read the chain
		job.sealed(r.chain, r.offset)
	}
	r.background(func() bool { return r.snapshotStep(job) })
}

// pause gives the processor to others while requests are being answered. To yield is not enough: a
// goroutine that yields runs again before those that wait behind a thread in a system call, such
// as the flusher. If the realm is idle, pause returns at once.
func (j *snapshotJob) pause(r *Realm) {
	if answered := r.answered.Load(); answered != j.answered {
		j.answered = answered
		step.Sleep(r.world.steps, snapshotPause)
	}
}

// background runs a task, one step at a time, until it returns false.
func (r *Realm) background(task func() bool) {
	step.Go(r.world.steps, func() {
		if task() {
			r.background(task)
		}
	})
}

// whole reports whether the next snapshot must hold the whole state: when the snapshots that build
// on the last whole one are larger together than that one, or too many.
func (s *snapshots) whole() bool {
	var sum int64
	for i := len(s.files) - 1; i >= 0; i-- {
		f := &s.files[i]
		if f.base == 0 {
			return sum > f.bytes || len(s.files)-i > maxSnapshotChain
		}
		sum += f.bytes
	}
	return true
}

// neededEpochs returns the epochs that later receipts or reveals may still need: those of
// remembered requests, of the catalog in force, and those not yet revealed. The caller holds mu.
func (r *Realm) neededEpochs() []epochInfo {
	first, applied := 0, 0
	oldest, catalog := r.state.OldestAnswer(), r.state.Catalog().Position
	for i := range r.epochs {
		if r.epochs[i].first <= oldest {
			first = i
		}
		if r.epochs[i].first <= catalog {
			applied = i
		}
	}
	var out []epochInfo
	for i, e := range r.epochs {
		if i >= first || i == applied || !e.revealed {
			out = append(out, e)
		}
	}
	return out
}

// sealed records where the snapshot's position is in the log.
func (j *snapshotJob) sealed(c chain, offset uint64) {
	j.seal.chain, j.seal.offset = c, offset
	close(j.ready)
}

// sealSnapshot tells the snapshot being taken, if it waits for that, where in the log its batch
// has become durable, as far as the policy goes. The caller holds mu.
func (r *Realm) sealSnapshot(c chain, offset uint64) {
	if j := r.snap.job; j != nil && j.seal.chain.index == 0 {
		j.sealed(c, offset)
	}
}

// loseSnapshot ends the snapshots whose batch will not become durable. The caller holds mu.
func (r *Realm) loseSnapshot() {
	r.snap.stop.Store(true)
	if j := r.snap.job; j != nil && j.seal.chain.index == 0 && !j.lost {
		j.lost = true
		close(j.ready)
	}
	if j := r.snap.pending; j != nil {
		r.snap.pending = nil
		j.err = errRealmStopped
		close(j.done)
	}
}

var errRealmStopped = errors.New("the realm stopped or was closed before the snapshot was taken")

// snapshotStep does the next part of a snapshot and reports whether more is left.
func (r *Realm) snapshotStep(j *snapshotJob) (more bool) {
	var err error
	if r.snap.stop.Load() {
		err = errRealmStopped
	}
	if j.w == nil && err == nil {
		j.next, j.end = iter.Pull2(j.capture.Blocks(func() { j.pause(r) }))
		if !r.snap.made {
			err = r.snap.fs.MkdirAll(r.snap.dir)
		}
		if err == nil {
			j.w, err = newSnapshotWriter(r.snap.fs, r.snap.dir, r.name, j.base)
		}
	}
	if err == nil {
		if kind, data, ok := j.next(); ok {
			err = j.w.frame(byte(kind), data)
			if err == nil {
				return true
			}
		}
	}
	if j.end != nil {
		j.end()
	}
	if err == nil {
		err = r.finishSnapshot(j)
	} else if j.w != nil {
		j.w.abort()
	}
	r.endSnapshot(j, err)
	return false
}

// finishSnapshot seals a snapshot whose blocks are all written.
func (r *Realm) finishSnapshot(j *snapshotJob) error {
	if err := step.Wait(context.Background(), r.world.steps, j.ready); err != nil {
		return err
	}
	if j.lost {
		j.w.abort()
		return errRealmStopped
	}
	// The snapshot must not contain anything that a power cut could remove from the log.
	if err := r.log.Sync(); err != nil {
		j.w.abort()
		return fmt.Errorf("making the log durable: %w", err)
	}
	var base uint64
	if j.base != nil {
		base = j.base.position
	}
	file, err := j.w.finish(&j.seal, base)
	if err != nil {
		return err
	}
	j.info = file.info()
	r.mu.Lock()
	if base == 0 {
		r.snap.before, r.snap.files = r.snap.files, nil
	}
	r.snap.files = append(r.snap.files, file)
	mark := j.capture.Mark()
	r.snap.mark = &mark
	r.stats.Snapshots++
	r.mu.Unlock()
	return nil
}

// endSnapshot publishes the outcome of a snapshot and begins a pending one.
func (r *Realm) endSnapshot(j *snapshotJob, err error) {
	j.err = err
	r.snap.made = err == nil // if it failed, the next one creates the directory again, in case somebody removed it
	shown := err
	if err == nil { // a failure below does not undo the snapshot
		if pruned := r.prune(j); pruned != nil {
			shown = fmt.Errorf("removing files that are no longer needed: %w", pruned)
			if errors.Is(pruned, errNotReadBack) { // but this one does: it is gone
				j.err = shown
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Release(j.capture, err == nil)
	if errors.Is(err, fs.ErrNotExist) { // the files that the next one would build on may be gone too
		r.snap.mark = nil
	}
	r.snap.job, r.snap.err = nil, shown
	close(j.done)
	if p := r.snap.pending; p != nil {
		if r.snap.stop.Load() {
			r.loseSnapshot()
		} else if n := len(r.snap.files); n > 0 && r.open.events == 0 && r.snap.files[n-1].position == r.open.position-1 {
			r.snap.pending = nil // nothing has happened since
			p.info = r.snap.files[n-1].info()
			close(p.done)
		} else if r.err == nil && r.open.events == 0 {
			r.beginSnapshot(r.open.position - 1)
		} // otherwise the flusher begins it
	}
}

// endSnapshots gives up the snapshot being written and waits until that has ended. The flusher
// must have ended.
func (r *Realm) endSnapshots() error {
	r.mu.Lock()
	r.loseSnapshot()
	job := r.snap.job
	r.mu.Unlock()
	if job == nil {
		return nil
	}
	return step.Wait(context.Background(), r.world.steps, job.done)
}
