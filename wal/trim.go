package wal

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TrimBefore drops the oldest segments whose records are all below offset: whole segments, and
// never the one that is written to. Appends go on meanwhile, and so do readers inside a dropped
// segment.
//
// When TrimBefore returns, the files are gone for good. A crash on the way leaves the newest of
// them. Their space is freed soon after, or when the last reader leaves: in pieces, so that no fsync
// waits for all of it.
//
// TrimBefore may have to fsync first, and to wait for the footer of a segment that has just become
// full. If a file cannot be removed, the log removes no more files until it is opened again.
// Errors: ErrNotFound beyond Next, ErrClosed, ErrReadOnly, ErrFailed.
func (l *trimmer) TrimBefore(offset uint64) error {
	if next := l.Next(); offset > next {
		return fmt.Errorf("%w: trim before %d, the log ends at %d", ErrNotFound, offset, next)
	}
	return l.trimWhile(func(_ *segment, end uint64, _ int64) bool { return end <= offset })
}

// TrimOlderThan drops the oldest segments that became full before a time. Otherwise it is like
// TrimBefore.
func (l *trimmer) TrimOlderThan(t time.Time) error {
	return l.trimWhile(func(s *segment, _ uint64, _ int64) bool { return s.sealedAt < t.UnixNano() })
}

// TrimToSize drops the oldest segments while all files together have more than this many bytes.
// Otherwise it is like TrimBefore.
func (l *trimmer) TrimToSize(bytes int64) error {
	return l.trimWhile(func(_ *segment, _ uint64, total int64) bool { return total > bytes })
}

// retainSoon starts applying the options for retention, in one goroutine however often it is asked.
func (l *trimmer) retainSoon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unretained = true
	l.start(&l.retaining, l.retainAll)
}

func (l *trimmer) retainAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.unretained {
		l.unretained = false
		l.mu.Unlock()
		// What fails is tried again when the next segment is full. Only disk space depends on it.
		var err error
		if age := l.opts.RetainAge; age > 0 {
			err = l.TrimOlderThan(step.Now(l.opts.steps).Add(-age))
		}
		if err == nil && l.opts.RetainBytes > 0 {
			_ = l.TrimToSize(l.opts.RetainBytes)
		}
		l.mu.Lock()
	}
	l.retaining = false
}

// trimWhile drops segments, oldest first, while drop says so. Drop gets the segment, the offset
// after its last record, and the size of all files left.
func (l *trimmer) trimWhile(drop func(s *segment, end uint64, total int64) bool) error {
	for {
		done, err := l.trimOnce(drop)
		if err != nil || done {
			return err
		}
		if err := l.Sync(); err != nil {
			return err
		}
		l.awaitFinished()
	}
}

// trimOnce drops segments unless it is too early for them, and reports whether it dropped all. It
// removes their files oldest first, each for good before the next, so that a crash leaves no gap.
// After an error it removes none of the rest, for the same reason; they come back at the next Open.
func (l *trimmer) trimOnce(drop func(s *segment, end uint64, total int64) bool) (done bool, err error) {
	l.trim.Lock()
	defer l.trim.Unlock()
	if l.stuck != nil {
		return false, l.stuck
	}
	dropped, ready, err := l.unlist(drop)
	if err != nil {
		return false, err
	}
	for _, s := range dropped {
		if l.stuck == nil {
			l.stuck = l.unlink(s)
		}
		s.drop()
	}
	return ready, l.stuck
}

// unlist takes segments out of the list of the readable ones. ready is false if it is too early for
// some of them. The first one left must be born: otherwise nothing on disk would say where the log
// begins. The others must have their footers: a file comes back if it cannot be removed, and a later
// footer would say that it has one. The caller holds trim.
func (l *trimmer) unlist(drop func(s *segment, end uint64, total int64) bool) (dropped []*segment, ready bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.readOnly {
		return nil, false, l.err
	}
	list := *l.list.Load()
	total := int64(0)
	for _, s := range list {
		total += s.size.Load()
	}
	n := 0
	for n < len(list)-1 && drop(list[n], list[n+1].first, total) {
		total -= list[n].size.Load()
		n++
	}
	all := n
	for n > 0 && (len(l.stale) > 0 && l.stale[0].first < list[n].first || !list[n].born.Load()) {
		n--
	}
	left := slices.Clone(list[n:])
	l.list.Store(&left)
	return list[:n], n == all, nil
}

// awaitFinished waits for the footer of the first full segment that has none.
func (l *syncer) awaitFinished() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.stale) == 0 {
		return
	}
	for s := l.stale[0]; len(l.stale) > 0 && l.stale[0] == s && l.broken == nil && !l.closed; {
		l.wait(&l.space)
	}
}

// unlink removes the file of a segment for good. Its space is freed when the last reader leaves:
// see drop.
func (l *trimmer) unlink(s *segment) error {
	if l.opts.steps == nil {
		runtime.Gosched() // see vfs.Aside
	}
	free, err := vfs.Unlink(l.fs, s.path)
	err = l.removed(err)
	switch {
	case free == nil:
	case err != nil:
		free(atOnce) // and not cut: after a crash the file may be there again
	default:
		s.free = func() { l.freeSoon(free) }
	}
	return err
}

// maxUnfreed is how many removed files may wait to be freed in pieces. With more, the space and the
// descriptors are needed sooner.
const maxUnfreed = 8

func atOnce() bool { return true }

// freeSoon frees the space of a removed file in pieces, in a goroutine that does so for one file
// after the other. Otherwise fsyncs would wait for all of it.
func (l *trimmer) freeSoon(free func(stop func() bool)) {
	l.mu.Lock()
	if l.closed || len(l.unfreed) >= maxUnfreed { // nobody fsyncs here any more, or there are too many
		l.mu.Unlock()
		free(atOnce)
		return
	}
	defer l.mu.Unlock()
	l.unfreed = append(l.unfreed, free)
	l.start(&l.freeing, l.freeAll)
}

func (l *trimmer) freeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.unfreed) > 0 {
		free := l.unfreed[0]
		l.unfreed = l.unfreed[1:]
		l.mu.Unlock()
		free(l.hurry)
		l.mu.Lock()
	}
	l.freeing = false
}

func (l *trimmer) hurry() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || len(l.unfreed) >= maxUnfreed
}

func (l *site) remove(name string) error { return l.removed(l.fs.Remove(name)) }

// removed makes the removal of a file durable, or explains why the file was not removed.
func (l *site) removed(err error) error {
	if err != nil {
		return fmt.Errorf("wal: remove segment: %w", err)
	}
	if err := l.held.Sync(); err != nil {
		return fmt.Errorf("wal: remove segment: fsync directory: %w", err)
	}
	return nil
}
