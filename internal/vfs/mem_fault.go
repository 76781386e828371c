package vfs

import (
	"fmt"
	"strings"
	"sync"
)

// OpKind says what an operation on a [Mem] does.
type OpKind uint8

// The kinds of operations.
const (
	OpCreate OpKind = iota
	OpOpen
	OpOpenWrite
	OpRemove
	OpRename
	OpMkdir // one for each directory that MkdirAll has to create
	OpList
	OpStat
	OpSyncDir
	OpLock
	OpUnlock
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpAllocate
	OpSize
	OpMap
	OpClose

	opKinds
)

var opNames = [opKinds]string{
	"create", "open", "openwrite", "remove", "rename", "mkdir", "list", "stat", "syncdir",
	"lock", "unlock", "read", "write", "sync", "truncate", "allocate", "size", "map", "close",
}

func (k OpKind) String() string {
	if k >= opKinds {
		return fmt.Sprintf("OpKind(%d)", uint8(k))
	}
	return opNames[k]
}

// Changes reports whether operations of the kind can change what a crash
// leaves behind. Only those are numbered in [Op.Change].
func (k OpKind) Changes() bool {
	switch k {
	case OpCreate, OpRemove, OpRename, OpMkdir, OpSyncDir, OpWrite, OpSync, OpTruncate:
		return true
	}
	return false
}

// Op is one operation, as a [Hook] and the trace see it.
type Op struct {
	N      int64  // the number of the operation, from 1
	Change int64  // the number among the operations that change something, from 1; 0 for the others
	Kind   OpKind // what it does
	Path   string // cleaned, absolute; for a file, the name that it was opened by
	To     string // the new name of a rename
	Held   bool   // of a syncdir: of a directory that is held open (see Dir)
	Offset int64  // of a read or a write
	Length int64  // of a read, a write or a mapping; the size asked for by a truncate or an allocate

	began uint64 // Mem.seq when the operation began
}

// Opens reports whether the operation needs a descriptor, or memory, that the
// process may have run out of. It can then fail with syscall.EMFILE, ENFILE or
// ENOMEM before anything has happened.
func (o Op) Opens() bool {
	switch o.Kind {
	case OpCreate, OpOpen, OpOpenWrite, OpMkdir, OpList, OpLock, OpMap:
		return true
	case OpSyncDir:
		return !o.Held
	}
	return false
}

func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d", o.N)
	if o.Change > 0 {
		fmt.Fprintf(&b, "/%d", o.Change)
	}
	fmt.Fprintf(&b, " %v %s", o.Kind, o.Path)
	switch o.Kind {
	case OpRename:
		fmt.Fprintf(&b, " → %s", o.To)
	case OpRead, OpWrite:
		fmt.Fprintf(&b, " [%d, %d)", o.Offset, o.Offset+o.Length)
	case OpTruncate, OpAllocate, OpMap:
		fmt.Fprintf(&b, " %d", o.Length)
	}
	return b.String()
}

// Fault is what a [Hook] makes of an operation. The zero Fault lets it be.
type Fault struct {
	// Err fails the operation: it has no effect, except for Short and Drop. It
	// arrives wrapped in an *fs.PathError.
	Err error
	// Short is how many bytes a write or a read transfers before Err. Without
	// Err it means nothing.
	Short int64
	// Drop makes a failing Sync lose what it was to make durable, the way
	// Linux does: the file reads as before, a later Sync succeeds, and the
	// bytes never reach the disk unless the sectors are written again. Without
	// it, a failing Sync leaves them as they were: not durable, and the next
	// Sync has another go.
	Drop bool
	// Reached says which sectors of the file, and whether the size, got to the
	// disk before a Sync with Drop failed. Without it, none did.
	Reached func(sector int64) bool
	// PowerCut ends the run before the operation, see [Mem.PowerOff].
	PowerCut bool
}

// partial reports whether an operation that fails has an effect all the same.
func (f Fault) partial(k OpKind) bool {
	switch k {
	case OpRead, OpWrite:
		return f.Short > 0
	case OpSync:
		return f.Drop
	}
	return false
}

// Hook is called before each operation, by the goroutine that asked for it and
// with no lock held: it may block (to hold an fsync while appends go on), and
// may look at the Mem or take crash states of it. What follows the hook is
// atomic. A Sync or SyncDir makes durable what was there when it was called,
// not what came while the hook held it.
//
// Operations of several goroutines call the hook concurrently.
type Hook func(Op) Fault

// memOps counts what is asked of a [Mem], and decides what fails.
type memOps struct {
	mu      sync.Mutex
	off     bool
	hook    Hook
	ops     int64
	changes int64
	cutAt   int64 // the power goes before this change; 0 is never
	counts  [opKinds]int64
	trace   []traced
}

// SetHook installs h in place of the hook before it; nil removes it.
func (o *memOps) SetHook(h Hook) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hook = h
}

// CutPowerAfter lets changes more operations that change something happen (see
// [OpKind.Changes]), and cuts the power before the one after them, see
// [Mem.PowerOff]. A negative number cancels it.
func (o *memOps) CutPowerAfter(changes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cutAt = 0
	if changes >= 0 {
		o.cutAt = o.changes + changes + 1
	}
}

// PowerOff ends the run: this and every later operation on the Mem, on its
// files and its locks fails with [ErrCrashed]. [Mem.CrashClone] and
// [Mem.CrashStates] tell what the disk holds then, as often as wanted. Mappings
// can still be read and released.
func (o *memOps) PowerOff() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.off = true
}

// Limit sets how many bytes the files may take together; 0 lifts the limit. Space is counted in
// blocks of 4096 bytes that have been written to or were reserved through [Allocator]; holes are
// free, and a removed file gives its space back when its last handle is closed. A write beyond the
// limit is short and fails with syscall.ENOSPC.
func (m *Mem) Limit(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = bytes
}

// Used returns how many bytes the files take, counted as [Mem.Limit] does.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used * pageSize
}

// Ops returns how many operations were asked for, failed ones included, and
// how many of them can change something (see [OpKind.Changes]).
func (o *memOps) Ops() (all, changes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ops, o.changes
}

// Count returns how many operations of a kind were asked for since the last
// ResetCounts, failed ones included.
func (o *memOps) Count(k OpKind) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[k]
}

// ResetCounts sets what Count returns to zero. It does not touch the numbers
// in [Op].
func (o *memOps) ResetCounts() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts = [opKinds]int64{}
}

// TraceLast keeps the last n operations and their outcomes for [Mem.Trace];
// 0, the state at the start, keeps none.
func (o *memOps) TraceLast(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace = make([]traced, max(0, n))
}

type traced struct {
	op   Op
	err  error
	done bool
}

// Trace returns the operations kept, one a line, oldest first, each with its
// outcome.
func (o *memOps) Trace() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for i := range o.trace {
		t := o.trace[(o.ops+1+int64(i))%int64(len(o.trace))]
		switch {
		case t.op.N == 0:
		case !t.done:
			fmt.Fprintf(&b, "%v: under way\n", t.op)
		case t.err != nil:
			fmt.Fprintf(&b, "%v: %v\n", t.op, t.err)
		default:
			fmt.Fprintf(&b, "%v\n", t.op)
		}
	}
	return b.String()
}

// do runs an operation: numbers it, asks the hook, and calls effect with the
// lock held unless the operation is to fail without one.
func (m *Mem) do(op Op, effect func(Op, Fault) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	op, fault, err := m.admit(op, m.seq)
	if err == nil {
		if fault.Err == nil || fault.partial(op.Kind) {
			err = effect(op, fault)
		}
		if err == nil {
			err = fault.Err
		}
	}
	if n := int64(len(m.trace)); n > 0 && op.N > 0 {
		if t := &m.trace[op.N%n]; t.op.N == op.N {
			t.err, t.done = err, true
		}
	}
	return err
}

// admit numbers the operation and asks the hook, without the lock. began is the last change before it.
func (o *memOps) admit(op Op, began uint64) (Op, Fault, error) {
	if o.off {
		return op, Fault{}, ErrCrashed
	}
	o.ops++
	op.N = o.ops
	if op.Kind.Changes() {
		o.changes++
		op.Change = o.changes
	}
	op.began = began
	o.counts[op.Kind]++
	if n := int64(len(o.trace)); n > 0 {
		o.trace[op.N%n] = traced{op: op}
	}
	if o.cutAt > 0 && op.Change >= o.cutAt {
		o.off = true
		return op, Fault{}, ErrCrashed
	}
	if o.hook == nil {
		return op, Fault{}, nil
	}
	fault := o.ask(o.hook, op)
	if fault.PowerCut {
		o.off = true
	}
	if o.off {
		return op, Fault{}, ErrCrashed
	}
	return op, fault, nil
}

// ask calls the hook without the lock. It takes the lock again even if the hook
// ends the goroutine.
func (o *memOps) ask(h Hook, op Op) Fault {
	o.mu.Unlock()
	defer o.mu.Lock()
	return h(op)
}
