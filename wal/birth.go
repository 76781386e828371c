package wal

import (
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// How a segment's file is made. While the tail fills, a goroutine makes a spare file with disk
// space of its own. When the tail is full, the spare gets the segment's name and header, and the
// log writes to it at once, without waiting for the disk. The segment is *born* when its name and
// header are durable: before any record in it, or after it, counts as durable.

const (
	spareName = "spare"
	// maxStale is how many full segments may wait for their footers to be on disk, each with an
	// open file, before appends wait too.
	maxStale = 8
	// spareBytes is how much disk space a spare gets at most.
	spareBytes = 256 << 20
	// A file's size and its disk space run ahead of what is written: by as much again, within these
	// bounds.
	minAhead = 64 << 10
	maxAhead = 8 << 20
	// Where an fsync is for at most maxZeroed bytes, zeros are written for this many fsyncs ahead,
	// within these bounds.
	zeroSyncs = 4
	minZeros  = 64 << 10
	maxZeros  = 512 << 10
	maxZeroed = 128 << 10
	fileBlock = 4 << 10 // of most file systems
)

// zeroBytes is never written to, so it takes no memory.
var zeroBytes [maxZeros]byte

func (l *site) sparePath() string { return path.Join(l.dir, spareName) }

// spareSize is how much disk space a spare has.
func (l *site) spareSize() int64 { return min(l.opts.SegmentSize, spareBytes) }

// wantSpare starts making a spare when the tail is half full. The caller holds io.
func (l *writer) wantSpare(capacity int64) {
	if l.tail.spared || l.tail.written < capacity/2 {
		return
	}
	l.tail.spared = true
	if l.spare == nil {
		l.start(&l.sparing, l.makeSpare)
	}
}

// makeSpare makes the spare file. If that fails, the next segment's file is made when it is needed.
// That costs time only, and an error that stays comes back then.
func (l *writer) makeSpare() {
	if l.ended() {
		return
	}
	file, err := l.fs.Create(l.sparePath())
	if err == nil {
		if err = allocate(file, l.spareSize()); err != nil {
			_ = l.discard(file)
			file = nil
		}
	}
	l.io.Lock()
	defer l.io.Unlock()
	l.spare, l.sparing = file, false
	if vfs.Short(err) {
		l.tail.spared = false // the next write tries again
	}
}

// allocate asks for the disk space of the first bytes of a file, if the file system can reserve it.
func allocate(f vfs.File, size int64) error {
	if a, ok := f.(vfs.Allocator); ok {
		return a.Allocate(size)
	}
	return errors.ErrUnsupported
}

// discard removes a spare file. If that fails, the next Open does it.
func (l *site) discard(file vfs.File) error {
	return errors.Join(file.Close(), l.fs.Remove(l.sparePath()))
}

// create makes the file of a segment, from the spare if there is one, and writes its header. The
// caller holds io.
func (l *writer) create(s *segment) (err error) {
	if l.spare == nil {
		s.file, err = l.fs.Create(s.path)
	} else if err = l.fs.Rename(l.sparePath(), s.path); err == nil {
		s.file, l.spare = l.spare, nil
		s.allocated = l.spareSize()
	}
	if err != nil {
		return fmt.Errorf("create segment: %w", err)
	}
	s.created = step.Now(l.opts.steps).UnixNano()
	h := segmentHeader{Magic: segmentMagic, LogID: l.logID, First: s.first, Durable: l.durable.Load(), Created: s.created}
	s.size.Store(headerSize)
	if err := writeAt(s.file, encode(h), 0); err != nil {
		return errors.Join(err, s.file.Close())
	}
	return nil
}

// shortagePause is how long the log waits before it tries again.
const shortagePause = 10 * time.Millisecond

// throughShortage opens something that the next write needs. While descriptors or memory are short,
// it tries again, and appends wait, as for a slow disk. The caller holds io.
func (l *status) throughShortage(open func() error) error {
	for {
		err := open()
		if !vfs.Short(err) || l.ended() {
			return err
		}
		step.Sleep(l.opts.steps, shortagePause)
	}
}

// nameAll makes the names of segments durable. The caller has the sync token.
func (l *site) nameAll(segments ...*segment) error {
	unnamed := false
	for _, s := range segments {
		unnamed = unnamed || !s.named
	}
	if !unnamed {
		return nil
	}
	if err := l.held.Sync(); err != nil {
		return fmt.Errorf("fsync directory: %w", err)
	}
	for _, s := range segments {
		s.named = true
	}
	return nil
}

// sync makes the file of a named segment durable. The caller has the sync token.
func (s *segment) sync() error {
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("fsync %s: %w", s.path, err)
	}
	s.born.Store(true)
	return nil
}

// grow makes the file longer than the next write needs, in steps, and asks for the disk space
// first. An fdatasync that stores no new size is nearly twice as fast, and a write that finds no
// new space takes two thirds of the time. The caller holds io.
func (l *writer) grow(s *segment, end, capacity int64) error {
	step := l.zeroStep()
	if end <= s.grown && (step == 0 || end <= s.zeroed) {
		return nil
	}
	ahead := max(minAhead, min(s.written, maxAhead))
	size := max(end, min(capacity, align64K(end+ahead)))
	if size > s.allocated {
		// If there is no space now, the write to it fails later.
		_ = allocate(s.file, size)
		s.allocated = size
	}
	if step > 0 {
		if err := s.zero(end, min(size, align64K(end+step))); err != nil {
			return err
		}
	}
	if s.grown >= end {
		return nil
	}
	if err := s.file.Truncate(size); err != nil {
		return fmt.Errorf("extend segment: %w", err)
	}
	s.grown = size
	return nil
}

// zeroStep is how many bytes of zeros to write ahead at a time. The fdatasync after the first write
// to a block also stores that the block has data, which is one more wait for the disk. Zeros
// written ahead for some fsyncs take one such wait for all of them. Where much is written for each
// fsync, writing it twice would take longer. The caller holds io.
func (l *writer) zeroStep() int64 {
	if per, known := l.syncBytes(); known && per <= maxZeroed {
		return max(minZeros, min(zeroSyncs*per, maxZeros))
	}
	return 0
}

// zero writes zeros from the block after end up to a position, except where it has written them
// before. It does without them on a full disk. The caller holds io.
func (s *segment) zero(end, upto int64) error {
	from := max(s.zeroed, (end+fileBlock-1)&^(fileBlock-1))
	s.zeroed = upto
	for from < upto {
		n := min(upto-from, int64(len(zeroBytes)))
		err := writeAt(s.file, zeroBytes[:n], from)
		if vfs.Full(err) {
			return nil
		}
		if err != nil {
			return err
		}
		from += n
		s.grown = max(s.grown, from)
	}
	return nil
}

func align64K(n int64) int64 { return (n + minAhead - 1) &^ (minAhead - 1) }
