package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// segment is one file of the log.
//
// A segment is readable while it is in the log's list. Readers count
// themselves in before they touch the mapping; when the segment is dropped,
// whoever finds the count at zero unmaps it. That is the reader that leaves
// last, or the one that drops it.
type segment struct {
	fs    vfs.FS
	path  string
	logID uint64
	first uint64
	base  uint32

	// File and written are the writer's: guarded by Log.io until the segment
	// is sealed, by Log.syncing afterwards.
	file     vfs.File
	footed   bool  // the file ends in a footer for all that is in it
	written  int64 // where the next group goes
	next     uint64
	created  int64
	sealedAt int64        // Unix nanoseconds; 0 while it is not sealed
	size     atomic.Int64 // of the file, in bytes

	mu   sync.Mutex // guards the making and the unmaking of body
	body atomic.Pointer[body]

	dropped atomic.Bool
	readers [8]paddedCount
}

// body is what readers need of a segment. It is replaced when the segment is
// sealed; both bodies hold the same mapping.
type body struct {
	mapping vfs.Mapping
	data    []byte
	index   index
}

// paddedCount is alone on its cache line, so that readers on different
// processors do not slow each other down.
type paddedCount struct {
	n atomic.Int64
	_ [56]byte
}

func newSegment(fsys vfs.FS, dir string, logID, first uint64) *segment {
	s := &segment{
		fs: fsys, path: path.Join(dir, segmentName(first)), logID: logID, first: first,
		base: logSum(logID), next: first, written: headerSize,
	}
	s.body.Store(&body{}) // no records, hence no readers
	return s
}

// enter counts a reader in, and returns what leave needs. It fails with
// ErrTrimmed when the segment has been dropped.
func (s *segment) enter() (b *body, stripe int, err error) {
	// Goroutines have different stacks: the address spreads them.
	var mark byte
	stripe = int(uintptr(unsafe.Pointer(&mark)) >> 11 % uintptr(len(s.readers)))
	s.readers[stripe].n.Add(1)
	if s.dropped.Load() {
		s.leave(stripe)
		return nil, 0, ErrTrimmed
	}
	if b = s.body.Load(); b != nil {
		return b, stripe, nil
	}
	if b, err = s.open(); err != nil {
		s.leave(stripe)
		return nil, 0, err
	}
	return b, stripe, nil
}

// leave counts a reader out.
func (s *segment) leave(stripe int) {
	s.readers[stripe].n.Add(-1)
	if s.dropped.Load() {
		s.unmapIfUnused()
	}
}

// drop lets the mapping go when the last reader has left.
func (s *segment) drop() {
	s.dropped.Store(true)
	s.unmapIfUnused()
}

// unmapIfUnused is called after dropped was set. Whoever enters later turns
// back without touching the mapping, so a count that is zero stays harmless.
func (s *segment) unmapIfUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.readers {
		if s.readers[i].n.Load() != 0 {
			return
		}
	}
	if b := s.body.Swap(nil); b != nil && b.mapping != nil {
		// Nothing can be done about a mapping that cannot be unmapped, and
		// nothing is lost by it but address space.
		_ = b.mapping.Unmap()
	}
}

// open maps a sealed segment at its first use.
func (s *segment) open() (*body, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.body.Load(); b != nil {
		return b, nil
	}
	f, err := s.fs.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("wal: open segment: %w", err)
	}
	defer f.Close() // read-only: nothing can be lost by its failing
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("wal: open segment: %w", err)
	}
	if size != s.size.Load() {
		return nil, &CorruptionError{File: s.path, Pos: size, Offset: s.first, What: "size of a sealed segment", Got: uint64(size), Want: uint64(s.size.Load())}
	}
	m, err := f.Map(size)
	if err != nil {
		return nil, fmt.Errorf("wal: map segment: %w", err)
	}
	data := m.Bytes()
	b := &body{mapping: m, data: data, index: storedIndex(data[s.written:], s.next-s.first)}
	s.body.Store(b)
	return b, nil
}

// read appends the data of the record at offset to dst, checked. The copy is
// made first and then checked, so that what is returned is what was checked.
func (s *segment) read(b *body, offset uint64, dst []byte) (_ []byte, err error) {
	var unreadable *fault
	defer s.report(&unreadable, offset, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer catchFault(b.data, &unreadable)
	sum, data, f := b.locate(s, offset)
	if f != nil {
		return nil, s.damage(f, offset)
	}
	old := len(dst)
	dst = append(dst, data...)
	if want := recordSum(s.base, offset, len(data), crc32.Update(0, castagnoli, dst[old:])); sum != want {
		return nil, s.damage(&fault{pos: b.index.position(offset - s.first), what: "record's checksum", got: uint64(sum), want: uint64(want)}, offset)
	}
	return dst, nil
}

// view returns the data of the record at offset in place, checked.
func (s *segment) view(b *body, offset uint64) (_ []byte, err error) {
	var unreadable *fault
	defer s.report(&unreadable, offset, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer catchFault(b.data, &unreadable)
	sum, data, f := b.locate(s, offset)
	if f != nil {
		return nil, s.damage(f, offset)
	}
	if want := recordSum(s.base, offset, len(data), crc32.Update(0, castagnoli, data)); sum != want {
		return nil, s.damage(&fault{pos: b.index.position(offset - s.first), what: "record's checksum", got: uint64(sum), want: uint64(want)}, offset)
	}
	return data[:len(data):len(data)], nil
}

// locate returns the stored checksum and the data of a record, unchecked.
func (b *body) locate(s *segment, offset uint64) (sum uint32, data []byte, f *fault) {
	pos := b.index.position(offset - s.first)
	if pos < headerSize+groupSize || pos > int64(len(b.data))-recordSize {
		return 0, nil, &fault{pos: s.written + 4*int64(offset-s.first), what: "position of a record in the index", got: uint64(pos), want: headerSize + groupSize}
	}
	sum = binary.LittleEndian.Uint32(b.data[pos:])
	length := int64(binary.LittleEndian.Uint32(b.data[pos+4:]))
	if room := int64(len(b.data)) - pos - recordSize; length > room || length > MaxRecord {
		return 0, nil, &fault{pos: pos + 4, what: "length of a record", got: uint64(length), want: uint64(min(room, MaxRecord))}
	}
	return sum, b.data[pos+recordSize : pos+recordSize+length], nil
}

func (s *segment) damage(f *fault, offset uint64) error {
	e := f.in(s.path, 0)
	e.Offset = offset
	return e
}

// report turns a page fault that was caught into an error.
func (s *segment) report(unreadable **fault, offset uint64, err *error) {
	if *unreadable != nil {
		*err = s.damage(*unreadable, offset)
	}
}

// catchFault recovers from touching a page of data that cannot be read: the
// disk failed, or someone cut the file. To be deferred, after
// debug.SetPanicOnFault; any other panic goes on.
func catchFault(data []byte, into **fault) {
	r := recover()
	if r == nil {
		return
	}
	e, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok || len(data) == 0 {
		panic(r)
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	if e.Addr() < start || e.Addr()-start >= uintptr(len(data)) {
		panic(r)
	}
	*into = &fault{pos: int64(e.Addr() - start), what: "page cannot be read: the disk failed or the file was cut"}
}
