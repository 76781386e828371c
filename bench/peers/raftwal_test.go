package peers

import (
	"errors"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// raftLog is hashicorp's raft-wal. It knows durable appends only; for the
// buffered workloads the file system below it does not fsync.
type raftLog struct {
	mu   sync.Mutex // indexes have to arrive in order
	w    *wal.WAL
	meta *metadb.BoltMetaDB
	next uint64
	logs []*raft.Log
}

func openRaft(dir string, fsync bool) (*raftLog, error) {
	base := types.VFS(fs.New())
	if !fsync {
		base = unsynced{base}
	}
	if err := mkdir(dir); err != nil { // raft-wal wants it to exist
		return nil, err
	}
	meta := new(metadb.BoltMetaDB)
	w, err := wal.Open(dir, wal.WithLogger(hclog.NewNullLogger()), wal.WithMetaStore(meta),
		wal.WithSegmentFiler(segment.NewFiler(dir, base)))
	if err != nil {
		return nil, err
	}
	last, err := w.LastIndex()
	return &raftLog{w: w, meta: meta, next: last + 1}, err
}

func (l *raftLog) Append(rec []byte) error { return l.appendAll([][]byte{rec}) }

func (l *raftLog) appendAll(recs [][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.logs) < len(recs) {
		l.logs = append(l.logs, new(raft.Log))
	}
	for i, rec := range recs {
		l.logs[i].Index, l.logs[i].Term, l.logs[i].Data = l.next, 1, rec
		l.next++
	}
	return l.w.StoreLogs(l.logs[:len(recs)])
}

// Sync has nothing to do: appends are durable, or are not to be.
func (l *raftLog) Sync() error { return nil }

// Close closes the store of the metadata, too, which the log leaves open.
func (l *raftLog) Close() error { return errors.Join(l.w.Close(), l.meta.Close()) }

func (l *raftLog) Read(i int, dst []byte) ([]byte, error) {
	var rec raft.Log
	err := l.w.GetLog(uint64(i)+1, &rec)
	return append(dst, rec.Data...), err
}

func (l *raftLog) Scan(f func(rec []byte) bool) error {
	var rec raft.Log
	for i := uint64(1); i < l.next; i++ {
		if err := l.w.GetLog(i, &rec); err != nil {
			return err
		}
		if !f(rec.Data) {
			break
		}
	}
	return nil
}

// unsynced is a file system whose files are never fsynced.
type unsynced struct{ types.VFS }

func (u unsynced) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := u.VFS.Create(dir, name, size)
	return unsyncedFile{f}, err
}

func (u unsynced) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := u.VFS.OpenWriter(dir, name)
	return unsyncedFile{f}, err
}

type unsyncedFile struct{ types.WritableFile }

func (unsyncedFile) Sync() error { return nil }

var raftWAL = contestant{
	name:     "raft-wal",
	buffered: func(dir string) (appender, error) { return openRaft(dir, false) },
	durable:  func(dir string) (appender, error) { return openRaft(dir, true) },
	source:   func(dir string) (source, error) { return openRaft(dir, true) },
	reopen: func(dir string) (int, appender, error) {
		l, err := openRaft(dir, true)
		if err != nil {
			return 0, nil, err
		}
		return int(l.next - 1), l, nil
	},
}

var raftWALGrouped = inGroups("raft-wal-grouped", openRaft)
