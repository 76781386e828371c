package wal

import (
	"fmt"
	"slices"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
)

// TrimBefore drops the oldest segments whose records are all below offset. It
// drops whole segments, and never the one that is written to, so records below
// offset may remain. Appends go on meanwhile, and so do readers inside a
// dropped segment. When it returns, the files are gone for good. Errors:
// ErrNotFound beyond Next, ErrClosed, ErrReadOnly.
func (l *Log) TrimBefore(offset uint64) error {
	if next := l.Next(); offset > next {
		return fmt.Errorf("%w: trim before %d, the log ends at %d", ErrNotFound, offset, next)
	}
	return l.trimWhile(func(_ *segment, end uint64, _ int64) bool { return end <= offset })
}

// TrimOlderThan drops the oldest segments that were full before a time.
// Otherwise as TrimBefore.
func (l *Log) TrimOlderThan(t time.Time) error {
	return l.trimWhile(func(s *segment, _ uint64, _ int64) bool { return s.sealedAt < t.UnixNano() })
}

// TrimToSize drops the oldest segments while all files together have more
// bytes than that. Otherwise as TrimBefore.
func (l *Log) TrimToSize(bytes int64) error {
	return l.trimWhile(func(_ *segment, _ uint64, total int64) bool { return total > bytes })
}

// retain applies the options for retention.
func (l *Log) retain() {
	if age := l.opts.RetainAge; age > 0 {
		if err := l.TrimOlderThan(step.Now(l.opts.Steps).Add(-age)); err != nil {
			return // it is tried again when the next segment is full
		}
	}
	if l.opts.RetainBytes > 0 {
		// As above. Nothing but disk space depends on it.
		_ = l.TrimToSize(l.opts.RetainBytes)
	}
}

// trimWhile drops segments from the oldest on while drop says so, given the
// segment, the offset after its last record, and the size of all files left.
func (l *Log) trimWhile(drop func(s *segment, end uint64, total int64) bool) error {
	l.trim.Lock()
	defer l.trim.Unlock()
	l.mu.Lock()
	if l.closed || l.readOnly {
		defer l.mu.Unlock()
		return l.err
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
	left := slices.Clone(list[n:])
	l.list.Store(&left)
	l.mu.Unlock()

	// One by one, oldest first, each for good before the next: a crash leaves
	// no gap. After an error the files that are left come back at the next Open.
	var err error
	for _, s := range list[:n] {
		if err == nil {
			err = l.remove(s.path)
		}
		s.drop()
	}
	return err
}

// remove removes a file for good.
func (l *Log) remove(name string) error {
	if err := l.fs.Remove(name); err != nil {
		return fmt.Errorf("wal: remove segment: %w", err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return fmt.Errorf("wal: remove segment: fsync directory: %w", err)
	}
	return nil
}
