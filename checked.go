package kuji

import (
	"context"
	"errors"
	"iter"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// checkedLog is a log for reading only, of which every byte was checked, whether or not
// it can be opened.
type checkedLog struct {
	first  uint64                                  // the offset that it begins at
	all    func(uint64) iter.Seq2[logEntry, error] // entries that can be read, from an offset on
	damage *wal.CorruptionError                    // the first place that is wrong, if any is
	stray  *wal.CorruptionError                    // a file that is no segment and looks like one
	close  func() error
}

// checkLog checks a log that exists, and changes nothing. A footer at the very end counts
// for nothing: opening the log makes it anew.
func checkLog(fsys vfs.FS, dir string) (*checkedLog, error) {
	found, err := wal.Verify(context.Background(), dir, wal.Options{FS: fsys})
	if err != nil {
		return nil, err
	}
	l := &checkedLog{close: func() error { return nil }}
	for _, d := range found.Damage {
		switch {
		case d == found.Footer:
		case d.Offset > wal.MaxOffset:
			l.stray = d
		case l.damage == nil:
			l.damage = d
		}
	}
	log, err := openWALReadOnly(fsys, dir)
	if err == nil {
		l.first, l.all, l.close = log.First(), log.Entries, log.Close
		return l, nil
	}
	if damage, ok := errors.AsType[*wal.CorruptionError](err); ok && l.damage == nil && l.stray == nil {
		l.damage = damage
	}
	if l.damage == nil && l.stray == nil {
		return nil, err
	}
	first, records, err := wal.Salvage(dir, wal.Options{FS: fsys})
	l.first, l.all = first, func(from uint64) iter.Seq2[logEntry, error] { return entriesFrom(records, from) }
	return l, err
}

// sound iterates over the entries from an offset on that stand before what is damaged, and
// ends with that.
func (l *checkedLog) sound(from uint64) iter.Seq2[logEntry, error] {
	return func(yield func(logEntry, error) bool) {
		for le, err := range l.all(from) {
			if err == nil && l.damage != nil && le.offset >= l.damage.Offset {
				break
			}
			if !yield(le, err) || err != nil {
				return
			}
		}
		if l.damage != nil {
			yield(logEntry{}, l.damage)
		}
	}
}

// entriesFrom iterates over records as entries, from an offset on.
func entriesFrom(records iter.Seq2[wal.Record, error], from uint64) iter.Seq2[logEntry, error] {
	return func(yield func(logEntry, error) bool) {
		for r, err := range records {
			if err == nil && r.Offset < from {
				continue
			}
			if !yield(logEntry{offset: r.Offset, data: r.Data}, err) || err != nil {
				return
			}
		}
	}
}
