package vfs

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrCrashed is what every operation on a [Mem] returns once its power is off.
var ErrCrashed = errors.New("vfs: the power is off")

// Mem is an [FS] in memory that can crash. It keeps, for each file and each
// directory, what the page cache shows and what the disk is known to hold, and
// between them the changes whose fate is open until a sync.
//
// # What a crash does
//
//   - A file: each 512-byte sector is, independently of all others, in any of
//     the states that it had since the last successful Sync, that Sync's
//     included. A sector is never torn.
//   - A file's size: any that it had since the last Sync, independently of the
//     sectors; when a write made it grow, also any multiple of 512 on the way.
//     Bytes that are within the size and never reached the disk are zero.
//     What Truncate cut off and no Sync confirmed may come back, sector by
//     sector, if the size does.
//   - A directory: creates, removes and renames since its last SyncDir
//     have happened up to some point and not after it, in each directory
//     independently; with [Crash.Unordered], any of them have, only that those
//     on one name keep their order. A rename within a directory is atomic. One
//     between two directories is a link in the one and an unlink in the other:
//     after a crash, the file may stand under both names or under none.
//   - A file's data and its directory entries are independent: Sync does not
//     make the entry durable, SyncDir does not make the data durable.
//   - What was durable is there, unchanged. MkdirAll is durable on return.
//
// Locks and open files do not survive. [Mem.CrashClone], [Mem.CrashStates] and
// [Mem.CrashSamples] make a possible disk after a crash of now, without
// disturbing the Mem; [Mem.KillClone] makes what the next process finds when
// this one is killed and the machine runs on.
//
// # Where it differs from a real file system
//
//   - It is pessimistic: a real one makes many of these outcomes impossible
//     (ext4's journal orders changes of metadata), and code that is right on
//     Mem does not depend on that.
//   - A mapping reads zeros beyond the size; a real one faults. It is a copy that every write keeps up
//     to date, in memory of its own. The race detector sees a write to bytes that are being read
//     through it. After Unmap the bytes are overwritten with 0xDB, so that late readers notice.
//   - Paths are slash-separated; "a" and "/a" are the same, ".." ends at the
//     root, there are no links and no permissions. A file holds up to 16 GiB.
//   - Times stand still unless [Mem.SetClock] is called.
//
// Faults are injected by [Mem.SetHook], [Mem.CutPowerAfter], [Mem.Limit] and
// [Mem.Flip]. All methods may be called concurrently.
type Mem struct {
	memOps
	memTree
	limit int64 // bytes; 0 is none
}

var _ FS = (*Mem)(nil)

// memTree is what a Mem holds. The Mem's mu guards it.
type memTree struct {
	root *memNode
	now  func() time.Time
	seq  uint64 // numbers the changes whose fate is open
	used int64  // pages allocated by files that have a name or a handle
}

// memEpoch is the time of a Mem without a clock.
var memEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// NewMem returns an empty file system: a root directory, durable.
func NewMem() *Mem {
	return &Mem{memTree: memTree{root: newMemDir(memEpoch), now: func() time.Time { return memEpoch }}}
}

// SetClock makes now tell the modification times of files. Clones take over
// the clock.
func (m *Mem) SetClock(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
}

// memNode is a file or a directory. Names are in the directories.
type memNode struct {
	modified time.Time

	// Of a directory.
	isDir   bool
	entries map[string]*memNode // now
	durable map[string]*memNode // on disk for certain
	moves   []memMove           // from durable to entries, in order
	locked  bool

	// Of a file.
	live   image      // what reads see
	disk   image      // on disk for certain
	writes []memWrite // from disk to live, in order
	maps   []*memMapping
	names  int // entries that refer to it
	opens  int // handles
}

// memMove is a change to a directory whose fate is open.
type memMove struct {
	seq  uint64
	name string   // the name that is set, or removed when node is nil
	node *memNode // what name refers to from now on
	from string   // of a rename within the directory, the name that goes
}

func newMemDir(now time.Time) *memNode {
	return &memNode{isDir: true, modified: now, entries: map[string]*memNode{}, durable: map[string]*memNode{}}
}

func newMemFile(now time.Time) *memNode {
	return &memNode{modified: now, live: newImage(), disk: newImage()}
}

// applyMove does a change to entries.
func applyMove(entries map[string]*memNode, mv memMove) {
	if mv.from != "" {
		delete(entries, mv.from)
	}
	if mv.node == nil {
		delete(entries, mv.name)
		return
	}
	entries[mv.name] = mv.node
}

// move does a change to the directory as it is now.
func (t *memTree) move(dir *memNode, mv memMove) {
	t.seq++
	mv.seq = t.seq
	applyMove(dir.entries, mv)
	dir.moves = append(dir.moves, mv)
	dir.modified = t.now()
}

func cleanPath(name string) string { return path.Clean("/" + name) }

func pathError(op OpKind, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op.String(), Path: name, Err: err}
}

// lookup finds a node by its cleaned path.
func (t *memTree) lookup(name string) (*memNode, error) {
	n := t.root
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		if part == "" {
			continue // the root itself
		}
		if !n.isDir {
			return nil, syscall.ENOTDIR
		}
		next, ok := n.entries[part]
		if !ok {
			return nil, fs.ErrNotExist
		}
		n = next
	}
	return n, nil
}

// parent finds the directory that holds name, and the name within it.
func (t *memTree) parent(name string) (*memNode, string, error) {
	dir, base := path.Split(name)
	if base == "" {
		return nil, "", syscall.EBUSY // the root has no name to change
	}
	n, err := t.lookup(path.Clean(dir))
	if err != nil {
		return nil, "", err
	}
	if !n.isDir {
		return nil, "", syscall.ENOTDIR
	}
	return n, base, nil
}

func (t *memTree) lookupFile(name string) (*memNode, error) {
	n, err := t.lookup(name)
	if err == nil && n.isDir {
		return nil, syscall.EISDIR
	}
	return n, err
}

func (t *memTree) lookupDir(name string) (*memNode, error) {
	n, err := t.lookup(name)
	if err == nil && !n.isDir {
		return nil, syscall.ENOTDIR
	}
	return n, err
}

// run does an operation on a name and says in its error which one.
func (m *Mem) run(op Op, effect func(Op, Fault) error) error {
	return pathError(op.Kind, op.Path, m.do(op, effect))
}

// Create implements [FS].
func (m *Mem) Create(name string) (File, error) {
	name = cleanPath(name)
	var f *memFile
	err := m.run(Op{Kind: OpCreate, Path: name}, func(Op, Fault) error {
		n, err := m.create(name)
		if err != nil {
			return err
		}
		f = openMem(m, n, name, true)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// create adds an empty file.
func (t *memTree) create(name string) (*memNode, error) {
	dir, base, err := t.parent(name)
	if err != nil {
		return nil, err
	}
	if _, ok := dir.entries[base]; ok {
		return nil, fs.ErrExist
	}
	n := newMemFile(t.now())
	n.names = 1
	t.move(dir, memMove{name: base, node: n})
	return n, nil
}

// Open implements [FS].
func (m *Mem) Open(name string) (File, error) { return m.open(OpOpen, name) }

// OpenWrite implements [FS].
func (m *Mem) OpenWrite(name string) (File, error) { return m.open(OpOpenWrite, name) }

func (m *Mem) open(kind OpKind, name string) (File, error) {
	name = cleanPath(name)
	var f *memFile
	err := m.run(Op{Kind: kind, Path: name}, func(Op, Fault) error {
		n, err := m.lookupFile(name)
		if err != nil {
			return err
		}
		f = openMem(m, n, name, kind == OpOpenWrite)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Remove implements [FS].
func (m *Mem) Remove(name string) error {
	name = cleanPath(name)
	return m.run(Op{Kind: OpRemove, Path: name}, func(Op, Fault) error {
		dir, base, err := m.parent(name)
		if err != nil {
			return err
		}
		n, ok := dir.entries[base]
		if !ok {
			return fs.ErrNotExist
		}
		if len(n.entries) > 0 {
			return syscall.ENOTEMPTY
		}
		m.move(dir, memMove{name: base})
		m.unname(n)
		return nil
	})
}

// unname takes away one name of a file.
func (t *memTree) unname(n *memNode) {
	n.names--
	t.reclaim(n)
}

// reclaim gives the space of a file back when nothing refers to it.
func (t *memTree) reclaim(n *memNode) {
	if !n.isDir && n.names == 0 && n.opens == 0 {
		t.used -= n.live.allocated
	}
}

// Rename implements [FS]. A directory cannot be replaced.
func (m *Mem) Rename(oldname, newname string) error {
	oldname, newname = cleanPath(oldname), cleanPath(newname)
	return m.run(Op{Kind: OpRename, Path: oldname, To: newname}, func(Op, Fault) error {
		from, oldbase, err := m.parent(oldname)
		if err != nil {
			return err
		}
		to, newbase, err := m.parent(newname)
		if err != nil {
			return err
		}
		n, ok := from.entries[oldbase]
		if !ok {
			return fs.ErrNotExist
		}
		replaced := to.entries[newbase]
		switch {
		case n == replaced:
			return nil
		case replaced != nil && replaced.isDir:
			return fs.ErrExist
		case replaced != nil && n.isDir:
			return syscall.ENOTDIR
		case strings.HasPrefix(newname, oldname+"/"):
			return syscall.EINVAL // a directory into itself
		}
		if from == to {
			m.move(from, memMove{name: newbase, node: n, from: oldbase})
		} else {
			m.move(to, memMove{name: newbase, node: n})
			m.move(from, memMove{name: oldbase})
		}
		if replaced != nil {
			m.unname(replaced)
		}
		return nil
	})
}

// MkdirAll implements [FS]. Each directory that it creates is an operation of
// its own, durable at once, and with it all earlier changes in its parent.
func (m *Mem) MkdirAll(dir string) error {
	dir = cleanPath(dir)
	for {
		m.mu.Lock()
		missing := m.firstMissing(dir)
		m.mu.Unlock()
		if missing == "" {
			break
		}
		err := m.run(Op{Kind: OpMkdir, Path: missing}, func(Op, Fault) error {
			parent, base, err := m.parent(missing)
			if err != nil {
				return err
			}
			if _, ok := parent.entries[base]; !ok { // or somebody else was faster
				m.move(parent, memMove{name: base, node: newMemDir(m.now())})
				parent.settle(m.seq)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return m.run(Op{Kind: OpStat, Path: dir}, func(Op, Fault) error {
		n, err := m.lookup(dir)
		if err == nil && !n.isDir {
			return fs.ErrExist
		}
		return err
	})
}

// firstMissing returns the shortest leading part of a path that does not exist, or "".
func (t *memTree) firstMissing(name string) string {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if _, err := t.lookup(name[:i]); errors.Is(err, fs.ErrNotExist) {
			return name[:i]
		}
	}
	return ""
}

// List implements [FS].
func (m *Mem) List(dir string) ([]string, error) {
	dir = cleanPath(dir)
	var names []string
	err := m.run(Op{Kind: OpList, Path: dir}, func(Op, Fault) error {
		n, err := m.lookupDir(dir)
		if err != nil {
			return err
		}
		names = slices.Sorted(maps.Keys(n.entries))
		return nil
	})
	return names, err
}

// Stat implements [FS].
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	name = cleanPath(name)
	var info fs.FileInfo
	err := m.run(Op{Kind: OpStat, Path: name}, func(Op, Fault) error {
		n, err := m.lookup(name)
		if err != nil {
			return err
		}
		info = memInfo{name: path.Base(name), size: n.live.size, modified: n.modified, dir: n.isDir}
		return nil
	})
	return info, err
}

type memInfo struct {
	name     string
	size     int64
	modified time.Time
	dir      bool
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return i.modified }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }
func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// SyncDir implements [FS].
func (m *Mem) SyncDir(dir string) error {
	dir = cleanPath(dir)
	return m.run(Op{Kind: OpSyncDir, Path: dir}, func(op Op, _ Fault) error {
		n, err := m.lookupDir(dir)
		if err != nil {
			return err
		}
		n.settle(op.began)
		return nil
	})
}

// settle makes the changes up to a number durable, in order.
func (n *memNode) settle(upto uint64) {
	done := 0
	for _, mv := range n.moves {
		if mv.seq > upto {
			break
		}
		applyMove(n.durable, mv)
		done++
	}
	n.moves = slices.Delete(n.moves, 0, done)
}

// Lock implements [FS]. The lock belongs to the directory, whatever its name,
// and is not there after a crash.
func (m *Mem) Lock(dir string) (Dir, error) {
	dir = cleanPath(dir)
	var l *memLock
	err := m.run(Op{Kind: OpLock, Path: dir}, func(Op, Fault) error {
		n, err := m.lookupDir(dir)
		if err != nil {
			return err
		}
		if n.locked {
			return ErrLocked
		}
		n.locked = true
		l = &memLock{m: m, node: n, name: dir}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

type memLock struct {
	m      *Mem
	node   *memNode
	name   string
	closed bool
}

// Sync implements [Dir].
func (l *memLock) Sync() error {
	return l.m.run(Op{Kind: OpSyncDir, Path: l.name, Held: true}, func(op Op, _ Fault) error {
		if l.closed {
			return fs.ErrClosed
		}
		l.node.settle(op.began)
		return nil
	})
}

func (l *memLock) Close() error {
	return l.m.run(Op{Kind: OpUnlock, Path: l.name}, func(Op, Fault) error {
		if l.closed {
			return fs.ErrClosed
		}
		l.closed = true
		l.node.locked = false
		return nil
	})
}
