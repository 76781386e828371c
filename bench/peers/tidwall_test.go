package peers

import (
	"sync"

	"github.com/tidwall/wal"
)

// tidwallLog is tidwall's WAL.
type tidwallLog struct {
	mu    sync.Mutex // indexes have to arrive in order
	w     *wal.Log
	next  uint64
	batch wal.Batch
}

// openTidwall keeps as many segments in memory as the workloads have, and
// returns slices of them: its fastest way to read.
func openTidwall(dir string, fsync bool) (*tidwallLog, error) {
	o := *wal.DefaultOptions
	o.NoSync = !fsync
	o.NoCopy = true
	o.SegmentCacheSize = 1024
	w, err := wal.Open(dir, &o)
	if err != nil {
		return nil, err
	}
	last, err := w.LastIndex()
	return &tidwallLog{w: w, next: last + 1}, err
}

func (l *tidwallLog) Append(rec []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return l.w.Write(l.next-1, rec)
}

func (l *tidwallLog) appendAll(recs [][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rec := range recs {
		l.batch.Write(l.next, rec)
		l.next++
	}
	return l.w.WriteBatch(&l.batch)
}

func (l *tidwallLog) Sync() error  { return l.w.Sync() }
func (l *tidwallLog) Close() error { return l.w.Close() }

func (l *tidwallLog) Read(i int, dst []byte) ([]byte, error) {
	rec, err := l.w.Read(uint64(i) + 1)
	return append(dst, rec...), err
}

func (l *tidwallLog) Scan(f func(rec []byte) bool) error {
	for i := uint64(1); i < l.next; i++ {
		rec, err := l.w.Read(i)
		if err != nil {
			return err
		}
		if !f(rec) {
			break
		}
	}
	return nil
}

var tidwall = contestant{
	name:     "tidwall",
	buffered: func(dir string) (appender, error) { return openTidwall(dir, false) },
	durable:  func(dir string) (appender, error) { return openTidwall(dir, true) },
	source:   func(dir string) (source, error) { return openTidwall(dir, false) },
	reopen: func(dir string) (int, appender, error) {
		l, err := openTidwall(dir, false)
		if err != nil {
			return 0, nil, err
		}
		return int(l.next - 1), l, nil
	},
}

var tidwallGrouped = inGroups("tidwall-grouped", openTidwall)
