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

// segment is one file of the log. It is readable while it is in the log's list. Readers count
// themselves in before they touch the mapping. A dropped segment is unmapped when the count is
// zero: by the last reader to leave, or at once.
type segment struct {
	identity
	filled
	flushed    bool // full, and its records are durable; changed under Log.mu by the holder of Log.syncing
	footed     bool // the file ends in a footer for all that is in it
	indexFirst bool // later footers stand: the index must be on disk before the trailer
	next       uint64
	created    int64
	sealedAt   int64        // Unix nanoseconds, when it was full; 0: it is not
	size       atomic.Int64 // of what is in the file, in bytes

	// What recovery needs of a segment apart from its records: its name (guarded by Log.syncing)
	// and its header must be on disk.
	named bool
	born  atomic.Bool

	mapped
}

type identity struct {
	fs    vfs.FS
	path  string
	logID uint64
	first uint64
	base  uint32
}

// mapped is what readers hold of a segment.
type mapped struct {
	mu   sync.Mutex // guards the making and the unmaking of body
	body atomic.Pointer[body]

	dropped atomic.Bool
	free    func() // of a file that was removed: frees its space; set before dropped, taken under mu
	readers [8]paddedCount
}

// filled is a segment's file, and how far it is filled. It belongs to the writer: Log.io guards it
// until the segment is full, Log.syncing until it is flushed; then it belongs to finish alone.
type filled struct {
	file      vfs.File
	written   int64 // where the next group goes
	grown     int64 // the file's size where it is beyond written
	zeroed    int64 // zeros were written up to here, where it is beyond written
	allocated int64 // disk space was asked for up to here
	spared    bool  // a spare file was asked for
}

// body is what readers need of a segment. It is replaced when the footer is written; both bodies
// hold the same mapping.
type body struct {
	mapping vfs.Mapping
	data    []byte
	index   index
}

// paddedCount is alone on its cache line, so that readers on different processors do not slow each
// other down.
type paddedCount struct {
	_ [56]byte
	n atomic.Int64
}

func newSegment(fsys vfs.FS, dir string, logID, first uint64) *segment {
	s := &segment{
		identity: identity{fs: fsys, path: path.Join(dir, segmentName(first)), logID: logID, first: first, base: logSum(logID)},
		next:     first, filled: filled{written: headerSize},
	}
	s.body.Store(&body{}) // no records, hence no readers
	return s
}

// entered is a segment that a reader is counted into, until leave.
type entered struct {
	segment *segment
	body    *body
	stripe  int
}

// enter counts a reader in. It fails with ErrTrimmed when the segment has been dropped.
func (s *segment) enter() (in entered, err error) {
	// Goroutines have different stacks, so the address of a local variable spreads them, once it is
	// hashed: many of its bits are nearly always the same.
	var mark byte
	stripe := int(uint32(uintptr(unsafe.Pointer(&mark))>>11) * 2654435769 >> 29)
	s.readers[stripe].n.Add(1)
	if s.dropped.Load() {
		s.leave(stripe)
		return in, ErrTrimmed
	}
	b := s.body.Load()
	if b == nil {
		if b, err = s.open(); err != nil {
			s.leave(stripe)
			return in, err
		}
	}
	return entered{s, b, stripe}, nil
}

// leave counts the reader out. It may be called more than once.
func (in *entered) leave() {
	if in.segment != nil {
		in.segment.leave(in.stripe)
		in.segment = nil
	}
}

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

// unmapIfUnused is called after dropped was set. A reader that enters later turns back without
// touching the mapping, so a zero count stays harmless. It frees the space of a removed file, once.
func (s *segment) unmapIfUnused() {
	s.mu.Lock()
	for i := range s.readers {
		if s.readers[i].n.Load() != 0 {
			s.mu.Unlock()
			return
		}
	}
	if b := s.body.Swap(nil); b != nil && b.mapping != nil {
		_ = b.mapping.Unmap() // if that fails, only address space is lost
	}
	free := s.free
	s.free = nil
	s.mu.Unlock()
	if free != nil {
		free()
	}
}

// open maps a full segment at its first use.
func (s *segment) open() (*body, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.body.Load(); b != nil {
		return b, nil
	}
	f, err := s.fs.Open(s.path)
	if err != nil {
		return nil, wrap(err)
	}
	defer f.Close() // read-only: nothing can be lost by its failing
	size, err := f.Size()
	if err != nil {
		return nil, wrap(err)
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

// read returns the data of the record at offset, in place or appended to dst. It returns what it
// checked: a copy is made first.
func (in *entered) read(offset uint64, dst []byte, inPlace bool) (out []byte, err error) {
	s, b := in.segment, in.body
	guarded := guard{before: debug.SetPanicOnFault(true), data: b.data}
	defer guarded.end(s, offset, &err)
	sum, data, f := b.locate(s, offset)
	if f == nil {
		out = data[:len(data):len(data)]
		if !inPlace {
			out = append(dst, data...)
			data = out[len(dst):]
		}
		f = s.check(b, offset, sum, data)
	}
	guarded.done = true
	if f != nil {
		return nil, s.damage(f, offset)
	}
	return out, nil
}

func (s *segment) check(b *body, offset uint64, sum uint32, data []byte) *fault {
	want := recordSum(s.base, offset, len(data), crc32.Checksum(data, castagnoli))
	if sum == want {
		return nil
	}
	pos, _ := b.index.position(offset - s.first)
	return &fault{Pos: pos, What: "record's checksum", Got: uint64(sum), Want: uint64(want), Bits: true}
}

// locate returns the stored checksum and the data of a record, unchecked.
func (b *body) locate(s *segment, offset uint64) (sum uint32, data []byte, f *fault) {
	pos, length := b.index.position(offset - s.first)
	room := int64(len(b.data)) - pos - recordSize
	if pos < headerSize+groupSize || room < 0 {
		return 0, nil, &fault{Pos: s.written + 4*int64(offset-s.first), What: "position of a record in the index", Got: uint64(pos), Want: headerSize + groupSize}
	}
	if length >= 0 && length <= room {
		// A guess from the distance between records. It is right unless each record is in a group
		// of its own. With it, the data need not wait for the length to come out of memory.
		data = b.data[pos+recordSize : pos+recordSize+length]
	}
	head := b.data[pos : pos+recordSize]
	sum = binary.LittleEndian.Uint32(head)
	if stored := int64(binary.LittleEndian.Uint32(head[4:])); stored != length {
		if stored > room || stored > MaxRecord {
			return 0, nil, &fault{Pos: pos + 4, What: "length of a record", Got: uint64(stored), Want: uint64(min(room, MaxRecord))}
		}
		data = b.data[pos+recordSize : pos+recordSize+stored]
	}
	return sum, data, nil
}

func (s *segment) damage(f *fault, offset uint64) error {
	e := f.in(s.path)
	e.Offset = offset
	return e
}

// guard turns a page of a mapping that cannot be read into an error. Defer its end; done says that
// the code left the mapping without a fault.
type guard struct {
	before bool // debug.SetPanicOnFault
	done   bool
	data   []byte
}

func (g *guard) end(s *segment, offset uint64, err *error) {
	debug.SetPanicOnFault(g.before)
	if g.done {
		return
	}
	var unreadable *fault
	if r := recover(); r != nil {
		if unreadable = faultOf(r, g.data); unreadable == nil {
			panic(r)
		}
		*err = s.damage(unreadable, offset)
	}
}

// guarded calls read, and returns what it returns, or the page of data that it could not read. Any
// other panic goes on.
func guarded(data []byte, read func() *fault) (unreadable *fault) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if unreadable = faultOf(r, data); unreadable == nil {
				panic(r)
			}
		}
	}()
	return read()
}

// faultOf says where in data a panic happened because a page could not be read: the disk failed, or
// somebody cut the file. It is nil for any other panic.
func faultOf(r any, data []byte) *fault {
	e, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok || len(data) == 0 {
		return nil
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	if e.Addr() < start || e.Addr()-start >= uintptr(len(data)) {
		return nil
	}
	return &fault{Pos: int64(e.Addr() - start), What: "page cannot be read: the disk failed or the file was cut"}
}
