package vfs

import (
	"io"
	"io/fs"
	"math"
	"slices"
	"syscall"
)

// memWrite is a change to a file whose fate is open: the sectors that it left
// behind, whole, and the size after it.
type memWrite struct {
	seq  uint64
	runs []memRun
	size int64
	// grew says that bytes were written from the size before, from, up to
	// size: a crash can stop on the way there.
	grew bool
	from int64
}

// memRun is a run of whole sectors, never changed once made.
type memRun struct {
	first int64 // number of the first sector
	data  []byte
}

// memFile is an open file.
type memFile struct {
	m        *Mem
	node     *memNode
	name     string
	writable bool
	closed   bool
}

var _ Allocator = (*memFile)(nil)

func openMem(m *Mem, n *memNode, name string, writable bool) *memFile {
	n.opens++
	return &memFile{m: m, node: n, name: name, writable: writable}
}

// run does an operation on the open file.
func (f *memFile) run(op Op, effect func(Op, Fault) error) error {
	op.Path = f.name
	err := f.m.do(op, func(op Op, fault Fault) error {
		if f.closed {
			return fs.ErrClosed
		}
		return effect(op, fault)
	})
	if err == io.EOF {
		return err // io.ReaderAt wants it bare
	}
	return pathError(op.Kind, f.name, err)
}

// cut returns how many of n bytes a transfer with the fault makes.
func (f Fault) cut(n int) int {
	if f.Err == nil {
		return n
	}
	return int(min(int64(n), f.Short))
}

// ReadAt implements [io.ReaderAt].
func (f *memFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.run(Op{Kind: OpRead, Offset: off, Length: int64(len(p))}, func(_ Op, fault Fault) error {
		if off < 0 {
			return syscall.EINVAL
		}
		want := fault.cut(len(p))
		n = int(max(0, min(int64(want), f.node.live.size-off)))
		f.node.live.read(p[:n], off)
		if n < want {
			return io.EOF
		}
		return nil
	})
	return n, err
}

// WriteAt implements [io.WriterAt].
func (f *memFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.run(Op{Kind: OpWrite, Offset: off, Length: int64(len(p))}, func(_ Op, fault Fault) error {
		switch {
		case !f.writable:
			return syscall.EBADF
		case off < 0:
			return syscall.EINVAL
		case off > maxFileSize-int64(len(p)):
			return syscall.EFBIG
		}
		want := fault.cut(len(p))
		n = want
		if f.m.limit > 0 {
			n = int(f.node.live.room(off, int64(want), f.m.limit/pageSize-f.m.used))
		}
		f.m.write(f.node, p[:n], off)
		if n < want {
			return syscall.ENOSPC
		}
		return nil
	})
	return n, err
}

// write changes what reads and mappings see, and notes the change.
func (t *memTree) write(n *memNode, p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	before := n.live.allocated
	n.live.put(p, off)
	end := off + int64(len(p))
	from := n.live.size
	n.live.size = max(from, end)
	t.used += n.live.allocated - before
	for _, mp := range n.maps {
		mp.write(p, off)
	}
	t.note(n, memWrite{runs: []memRun{n.sectors(off, end)}, grew: end > from, from: from})
}

// sectors copies the sectors that [off, end) touches, as they are now.
func (n *memNode) sectors(off, end int64) memRun {
	first := off / sectorSize
	count := (end+sectorSize-1)/sectorSize - first
	r := memRun{first: first, data: make([]byte, count*sectorSize)}
	n.live.read(r.data, first*sectorSize)
	return r
}

// note keeps a change that the live image shows already.
func (t *memTree) note(n *memNode, w memWrite) {
	t.seq++
	w.seq, w.size = t.seq, n.live.size
	n.writes = append(n.writes, w)
	n.modified = t.now()
}

// Truncate implements [File].
func (f *memFile) Truncate(size int64) error {
	return f.run(Op{Kind: OpTruncate, Length: size}, func(Op, Fault) error {
		switch {
		case !f.writable:
			return syscall.EINVAL
		case size < 0:
			return syscall.EINVAL
		case size > maxFileSize:
			return syscall.EFBIG
		}
		f.m.truncate(f.node, size)
		return nil
	})
}

func (t *memTree) truncate(n *memNode, size int64) {
	// The pages that are cut off become zeros, as sectors that a crash may or
	// may not have reached.
	var runs []memRun
	from, to := size, (n.live.size+sectorSize-1)/sectorSize*sectorSize // nothing behind it is cut off now
	for i := size / pageSize; i < int64(len(n.live.pages)); i++ {
		start, end := max(from, i*pageSize), min((i+1)*pageSize, to)
		if !n.live.has(i) || start >= n.live.size {
			continue
		}
		if start%sectorSize == 0 {
			runs = append(runs, memRun{first: start / sectorSize, data: zeroPage[:end-start]})
			continue
		}
		r := n.sectors(start, end)
		clear(r.data[start%sectorSize:])
		runs = append(runs, r)
	}
	before := n.live.allocated
	for _, mp := range n.maps {
		mp.zero(size)
	}
	n.live.resize(size)
	t.used += n.live.allocated - before
	t.note(n, memWrite{runs: runs})
}

// Allocate implements [Allocator]. After a crash the space is free again.
func (f *memFile) Allocate(size int64) error {
	return f.run(Op{Kind: OpAllocate, Length: size}, func(Op, Fault) error {
		switch {
		case !f.writable:
			return syscall.EBADF
		case size <= 0:
			return syscall.EINVAL
		case size > maxFileSize:
			return syscall.EFBIG
		}
		live, m := &f.node.live, f.m
		if m.limit > 0 && live.room(0, size, m.limit/pageSize-m.used) < size {
			return syscall.ENOSPC
		}
		before := live.allocated
		live.reserve(size)
		m.used += live.allocated - before
		return nil
	})
}

// Sync implements [File].
func (f *memFile) Sync() error {
	return f.run(Op{Kind: OpSync}, func(op Op, fault Fault) error {
		f.node.flush(op.began, fault)
		return nil
	})
}

// flush makes the changes up to a number durable, or what a fault leaves of
// them, and forgets them.
func (n *memNode) flush(upto uint64, fault Fault) {
	done := 0
	for _, w := range n.writes {
		if w.seq > upto {
			break
		}
		done++
		if fault.Err != nil && fault.Reached == nil {
			continue
		}
		for _, r := range w.runs {
			if fault.Err == nil {
				n.disk.put(r.data, r.first*sectorSize)
			} else {
				n.disk.putSome(r, fault.Reached)
			}
		}
		n.disk.resize(w.size)
	}
	n.writes = slices.Delete(n.writes, 0, done)
}

// putSome puts those sectors of a run that are reached.
func (im *image) putSome(r memRun, reached func(sector int64) bool) {
	for at := 0; at < len(r.data); at += sectorSize {
		if sector := r.first + int64(at)/sectorSize; reached(sector) {
			im.put(r.data[at:at+sectorSize], sector*sectorSize)
		}
	}
}

// Size implements [File].
func (f *memFile) Size() (size int64, err error) {
	err = f.run(Op{Kind: OpSize}, func(Op, Fault) error {
		size = f.node.live.size
		return nil
	})
	return size, err
}

// Close implements [io.Closer]. It makes nothing durable.
func (f *memFile) Close() error {
	return f.run(Op{Kind: OpClose}, func(Op, Fault) error {
		f.closed = true
		f.node.opens--
		f.m.reclaim(f.node)
		return nil
	})
}

// Map implements [File].
func (f *memFile) Map(length int64) (Mapping, error) {
	var mp *memMapping
	err := f.run(Op{Kind: OpMap, Length: length}, func(Op, Fault) error {
		if length <= 0 || length > math.MaxInt {
			return syscall.EINVAL
		}
		if length > maxFileSize {
			return syscall.ENOMEM
		}
		mp = newMapping(length)
		mp.m, mp.node = f.m, f.node
		mp.used = min(length, f.node.live.size)
		f.node.live.read(mp.data[:mp.used], 0)
		f.node.maps = append(f.node.maps, mp)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return mp, nil
}

// memMapping is a copy of a file's first bytes that writes keep up to date.
type memMapping struct {
	m    *Mem
	node *memNode // nil after Unmap
	data []byte
	used int64 // bytes beyond were never anything but zero
}

// Bytes implements [Mapping].
func (mp *memMapping) Bytes() []byte { return mp.data }

// unmapped is what the bytes of a released mapping read as.
const unmapped = 0xDB

// Unmap implements [Mapping]. It works after a crash, too.
func (mp *memMapping) Unmap() error {
	mp.m.mu.Lock()
	defer mp.m.mu.Unlock()
	if mp.node == nil {
		return nil
	}
	mp.node.maps = slices.DeleteFunc(mp.node.maps, func(o *memMapping) bool { return o == mp })
	mp.node = nil
	for i := range mp.data[:mp.used] {
		mp.data[i] = unmapped
	}
	mp.data = nil
	return nil
}

func (mp *memMapping) write(p []byte, off int64) {
	if off >= int64(len(mp.data)) {
		return
	}
	n := copy(mp.data[off:], p)
	mp.used = max(mp.used, off+int64(n))
}

// zero clears everything from off on.
func (mp *memMapping) zero(off int64) {
	if off < mp.used {
		clear(mp.data[off:mp.used])
	}
}
