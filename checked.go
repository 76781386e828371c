package kuji

import (
	"context"
	"errors"
	"iter"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// checkedLog is a log opened for reading only. Every byte of it has been checked, even if it
// cannot be opened in the usual way.
type checkedLog struct {
	first  uint64                                  // offset of the first entry
	all    func(uint64) iter.Seq2[logEntry, error] // the readable entries, from an offset on
	damage *wal.CorruptionError                    // the first damaged place, if any
	stray  *wal.CorruptionError                    // a file that looks like a segment but is not one
	close  func() error
}

// checkLog checks a log that must exist. It changes nothing. It ignores damage in a footer at the
// very end, because opening the log rewrites that footer.
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
	log, err := openWALReadOnly(fsys, dir, knownLog{})
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

// sound iterates over the entries from an offset up to the damage. If there is damage, the
// iteration ends with it as the error.
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
