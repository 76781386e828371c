package peers

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// The floors: the least that a log could do for the same promise, without
// being a log. Targets are ratios to them.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is a record's length and checksum.
const frame = 8

// floorLog writes frames of length, CRC32C and data: to a buffer that is
// written when 64 KiB are in it, or to the disk.
type floorLog struct {
	mu   sync.Mutex
	f    *os.File
	off  int64
	buf  []byte
	sync bool
}

const floorBuffer = 64 << 10

func openFloor(dir string, sync bool) (*floorLog, error) {
	f, err := os.OpenFile(dir, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	l := &floorLog{f: f, buf: make([]byte, 0, floorBuffer), sync: sync}
	if sync { // as every fast log does, so that a sync need not write metadata
		if err := unix.Fallocate(int(f.Fd()), 0, 0, 64<<20); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			return nil, errors.Join(err, f.Close())
		}
	}
	return l, nil
}

func (l *floorLog) Append(rec []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf)+frame+len(rec) > cap(l.buf) {
		if err := l.flush(); err != nil {
			return err
		}
	}
	var head [frame]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(rec)))
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(rec, castagnoli))
	l.buf = append(append(l.buf, head[:]...), rec...)
	if l.sync {
		return l.syncLocked()
	}
	return nil
}

func (l *floorLog) flush() error {
	n, err := l.f.WriteAt(l.buf, l.off)
	l.off += int64(n)
	l.buf = l.buf[:0]
	return err
}

// Flush writes what is in the buffer.
func (l *floorLog) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flush()
}

func (l *floorLog) syncLocked() error {
	if err := l.flush(); err != nil {
		return err
	}
	return unix.Fdatasync(int(l.f.Fd()))
}

func (l *floorLog) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.syncLocked()
}

func (l *floorLog) Close() error { return errors.Join(l.flush(), l.f.Close()) }

// floor is what the rows of that name measure.
var floor = contestant{
	name:     "floor",
	buffered: func(dir string) (appender, error) { return openFloor(dir, false) },
	durable:  func(dir string) (appender, error) { return openFloor(dir, true) },
	source:   openFloorSource,
	reopen:   scanFloor,
}

// floorSource reads the frames from a mapping and checks each. It knows where
// they are, and looks nothing up.
type floorSource struct {
	data []byte
	size int // of every frame
}

func openFloorSource(dir string) (source, error) { return mapFloor(dir) }

func mapFloor(dir string) (*floorSource, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return &floorSource{data: data, size: frame + int(binary.LittleEndian.Uint32(data))}, nil
}

var errChecksum = errors.New("wrong checksum")

// next returns the record that begins at off.
func (s *floorSource) next(off int) ([]byte, error) {
	head := s.data[off : off+frame]
	rec := s.data[off+frame:][:binary.LittleEndian.Uint32(head)]
	if crc32.Checksum(rec, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errChecksum
	}
	return rec, nil
}

func (s *floorSource) Read(i int, dst []byte) ([]byte, error) {
	rec, err := s.next(i * s.size)
	if err != nil {
		return nil, err
	}
	return append(dst, rec...), nil
}

func (s *floorSource) Scan(f func(rec []byte) bool) error {
	for off := 0; off < len(s.data); {
		rec, err := s.next(off)
		if err != nil {
			return err
		}
		if !f(rec) {
			return nil
		}
		off += frame + len(rec)
	}
	return nil
}

func (s *floorSource) Close() error { return unix.Munmap(s.data) }

// scanFloor checks every frame of the file, one after the other.
func scanFloor(dir string) (int, appender, error) {
	s, err := mapFloor(dir)
	if err != nil {
		return 0, nil, err
	}
	n := 0
	if err := s.Scan(func([]byte) bool { n++; return true }); err != nil {
		return 0, nil, errors.Join(err, s.Close())
	}
	f, err := os.OpenFile(dir, os.O_RDWR, 0)
	if err := errors.Join(err, s.Close()); err != nil {
		return 0, nil, err
	}
	return n, &floorLog{f: f, off: int64(len(s.data))}, nil
}
