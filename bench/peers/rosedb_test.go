package peers

import (
	"errors"
	"io"
	"sync"

	"github.com/rosedblabs/wal"
)

// roseLog is rosedb's WAL. Positions are the caller's to keep: a source walks
// the log once when it is opened.
type roseLog struct {
	mu        sync.Mutex // for WriteAll, which shares its pending writes
	w         *wal.WAL
	fsync     bool
	positions []*wal.ChunkPosition
}

func openRose(dir string, fsync bool) (*roseLog, error) {
	o := wal.DefaultOptions
	o.DirPath = dir
	o.Sync = fsync
	w, err := wal.Open(o)
	return &roseLog{w: w, fsync: fsync}, err
}

func (l *roseLog) Append(rec []byte) error {
	_, err := l.w.Write(rec)
	return err
}

func (l *roseLog) appendAll(recs [][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rec := range recs {
		l.w.PendingWrites(rec)
	}
	if _, err := l.w.WriteAll(); err != nil || !l.fsync {
		return err
	}
	return l.w.Sync() // WriteAll does not
}

func (l *roseLog) Sync() error  { return l.w.Sync() }
func (l *roseLog) Close() error { return l.w.Close() }

func (l *roseLog) Read(i int, dst []byte) ([]byte, error) {
	rec, err := l.w.Read(l.positions[i])
	return append(dst, rec...), err
}

func (l *roseLog) Scan(f func(rec []byte) bool) error {
	return l.walk(func(rec []byte, _ *wal.ChunkPosition) bool { return f(rec) })
}

func (l *roseLog) walk(f func(rec []byte, at *wal.ChunkPosition) bool) error {
	r := l.w.NewReader()
	for {
		rec, at, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !f(rec, at) {
			return nil
		}
	}
}

// reopenRose opens the log and finds all records, as rosedb does at its start.
func reopenRose(dir string) (*roseLog, error) {
	l, err := openRose(dir, false)
	if err != nil {
		return nil, err
	}
	l.w.SetIsStartupTraversal(true)
	err = l.walk(func(_ []byte, at *wal.ChunkPosition) bool {
		l.positions = append(l.positions, at)
		return true
	})
	l.w.SetIsStartupTraversal(false)
	return l, err
}

var rosedb = contestant{
	name:     "rosedb",
	buffered: func(dir string) (appender, error) { return openRose(dir, false) },
	durable:  func(dir string) (appender, error) { return openRose(dir, true) },
	source:   func(dir string) (source, error) { return reopenRose(dir) },
	reopen: func(dir string) (int, appender, error) {
		l, err := reopenRose(dir)
		if err != nil {
			return 0, nil, err
		}
		return len(l.positions), l, nil
	},
}

var rosedbGrouped = inGroups("rosedb-grouped", openRose)
