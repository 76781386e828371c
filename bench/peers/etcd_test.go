package peers

import (
	"fmt"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// etcdLog is etcd's WAL. Each record is an entry of the raft log.
type etcdLog struct {
	mu   sync.Mutex // indexes have to arrive in order
	w    *wal.WAL
	next uint64
}

func openEtcd(dir string, fsync bool) (*etcdLog, error) {
	w, err := wal.Create(zap.NewNop(), dir, nil)
	if err != nil {
		return nil, err
	}
	if !fsync {
		w.SetUnsafeNoFsync()
	}
	return &etcdLog{w: w, next: 1}, nil
}

func (l *etcdLog) Append(rec []byte) error { return l.appendAll([][]byte{rec}) }

func (l *etcdLog) appendAll(recs [][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	term := uint64(1)
	entries := make([]*raftpb.Entry, len(recs))
	for i, rec := range recs {
		index := l.next
		l.next++
		entries[i] = &raftpb.Entry{Term: &term, Index: &index, Data: rec}
	}
	return l.w.Save(nil, entries)
}

func (l *etcdLog) Sync() error  { return l.w.Sync() }
func (l *etcdLog) Close() error { return l.w.Close() }

// etcdSource reads a WAL as etcd does at its start: all of it, into memory.
type etcdSource struct{ dir string }

func (etcdSource) Read(int, []byte) ([]byte, error) { return nil, errUnsupported }
func (etcdSource) Close() error                     { return nil }

func (s etcdSource) Scan(f func(rec []byte) bool) error {
	w, entries, err := reopenEtcd(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !f(e.Data) {
			break
		}
	}
	return w.Close()
}

func reopenEtcd(dir string) (*wal.WAL, []*raftpb.Entry, error) {
	var zero uint64
	w, err := wal.Open(zap.NewNop(), dir, &walpb.Snapshot{Index: &zero, Term: &zero})
	if err != nil {
		return nil, nil, err
	}
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("%w, and closing: %v", err, w.Close())
	}
	return w, entries, nil
}

var etcd = contestant{
	name:     "etcd",
	buffered: func(dir string) (appender, error) { return openEtcd(dir, false) },
	durable:  func(dir string) (appender, error) { return openEtcd(dir, true) },
	source:   func(dir string) (source, error) { return etcdSource{dir}, nil },
	reopen: func(dir string) (int, appender, error) {
		w, entries, err := reopenEtcd(dir)
		return len(entries), &etcdLog{w: w, next: uint64(len(entries)) + 1}, err
	},
}

var etcdGrouped = inGroups("etcd-grouped", openEtcd)
