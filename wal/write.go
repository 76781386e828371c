package wal

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/kuji-dev/kuji/internal/step"
)

// Flush hands everything appended before the call to the operating system, without an fsync. Then a
// crash of the process loses none of it, but a crash of the machine may. Errors are those of
// Append.
func (l *writer) Flush() error {
	l.mu.Lock()
	err := l.err
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.io.Lock()
	defer l.io.Unlock()
	return l.writePending(nil, true)
}

// writeBehind writes closed groups while appends go on, until there are none.
func (l *writer) writeBehind() {
	for again := true; again; {
		l.mu.Lock()
		for len(l.stale) >= maxStale && l.broken == nil {
			l.wait(&l.space) // appends go faster than the disk
		}
		l.mu.Unlock()
		l.io.Lock()
		err := l.writePending(nil, false) // poisons the log; the next append returns it
		l.io.Unlock()
		l.mu.Lock()
		again = err == nil && len(l.pending) > 0 && l.pending[0] != l.top
		l.behind = again
		if !again {
			l.space.Broadcast()
		}
		l.mu.Unlock()
	}
}

// writePending writes all pending groups; with all, also the one that still takes records. If a
// round is to be closed, nobody joins it after the groups have been taken: what its members
// appended is among them. The caller holds io.
func (l *writer) writePending(r *round, all bool) error {
	l.mu.Lock()
	if r != nil {
		l.round = nil
		l.unasked = 0
	}
	if l.broken != nil {
		defer l.mu.Unlock()
		return l.broken
	}
	if all && l.top != nil {
		l.closeGroup(0)
	}
	n := len(l.pending)
	if n > 0 && l.pending[n-1] == l.top {
		n--
	}
	var few [8]*group
	groups := append(few[:0], l.pending[:n]...)
	for _, g := range groups {
		l.unsynced += int64(g.bytes)
	}
	if r != nil {
		l.noteSync()
	}
	l.mu.Unlock()
	if n == 0 {
		return nil
	}
	for _, g := range groups {
		if err := l.writeGroup(g); err != nil {
			return l.fail(err)
		}
		l.mu.Lock()
		l.backlog -= int(g.bytes)
		l.space.Broadcast()
		l.mu.Unlock()
	}
	l.mu.Lock()
	for _, g := range groups {
		if g.seg = nil; l.kept+cap(g.buf) <= keepBytes {
			l.kept += cap(g.buf)
			l.free = append(l.free, g)
		}
	}
	l.pending = slices.Delete(l.pending, 0, n)
	if l.broken != nil {
		l.written.Store(l.durable.Load()) // an fsync has failed meanwhile
	}
	if l.moved != nil {
		l.wake()
	}
	l.mu.Unlock()
	return nil
}

// noteSync notes how much the next fsync is for. The caller holds io and mu.
func (l *rate) noteSync() {
	if l.perSync == 0 {
		l.perSync = l.unsynced
	}
	l.perSync = (3*l.perSync + l.unsynced) / 4
	l.unsynced = 0
}

// syncBytes is how much is usually written from one fsync to the next, or more if it is already
// more, and whether that is known. It is not known for a log that nobody fsyncs. The caller holds
// io or mu.
func (l *rate) syncBytes() (n int64, known bool) {
	return max(l.perSync, l.unsynced), l.perSync > 0
}

// writeGroup writes one group to its file and lets readers see it. The caller holds io.
func (l *writer) writeGroup(g *group) error {
	s := g.seg
	if s != l.tail {
		if err := l.rotate(s); err != nil {
			return err
		}
	}
	if s.footed {
		// This is what a clean close left after the groups.
		if err := s.file.Truncate(s.written); err != nil {
			return fmt.Errorf("cut footer: %w", err)
		}
		s.footed = false
		s.grown, s.zeroed, s.sealedAt = s.written, s.written, 0
	}
	if err := l.throughShortage(func() error { return s.remap(g.capacity) }); err != nil {
		return err
	}
	groupHeader{
		logID: l.logID, segment: s.first, first: g.first,
		durable: l.durable.Load(), bytes: g.bytes, count: g.count,
	}.encode(g.buf)
	if err := l.grow(s, g.pos+int64(len(g.buf)), g.capacity); err != nil {
		return err
	}
	if err := writeAt(s.file, g.buf, g.pos); err != nil {
		return err
	}
	s.written = g.pos + int64(len(g.buf))
	s.next = g.first + uint64(g.count)
	s.size.Store(s.written)
	l.written.Store(s.next)
	l.wantSpare(g.capacity)
	return nil
}

func writeAt(f io.WriterAt, p []byte, pos int64) error {
	n, err := f.WriteAt(p, pos)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write %d bytes at byte %d: %w", len(p), pos, err)
	}
	return nil
}

// remap makes the mapping of a segment without readers as long as the segment can become. The
// caller holds io.
func (s *segment) remap(capacity int64) error {
	b := s.body.Load()
	if int64(len(b.data)) >= capacity {
		return nil
	}
	m, err := s.file.Map(capacity)
	if err != nil {
		return fmt.Errorf("map segment: %w", err)
	}
	s.body.Store(&body{mapping: m, data: m.Bytes(), index: b.index})
	if b.mapping != nil {
		return b.mapping.Unmap()
	}
	return nil
}

// rotate goes on to the segment after the tail. The caller holds io.
func (l *writer) rotate(to *segment) error {
	if err := l.throughShortage(func() error { return l.create(to) }); err != nil {
		return err
	}
	full := l.tail
	full.sealedAt = step.Now(l.opts.steps).UnixNano()
	// The footer that was there when the log was opened need not be on disk, so it is written
	// again. Until then it counts as written.
	full.footed = false
	full.size.Store(full.written + footerSize(int64(full.next-full.first)))
	l.tail = to
	l.mu.Lock()
	segments := append(slices.Clone(*l.list.Load()), to)
	l.list.Store(&segments)
	l.stale = append(l.stale, full)
	l.tidy = true
	lead := !l.syncing
	l.syncing = true
	l.mu.Unlock()
	l.full(lead)
	return nil
}

const footerPiece = 64 << 10

// writeFooter writes the footer of a segment, and readers then use it in place of the index in
// memory. Nobody else writes to the file, and it is not dropped meanwhile (see unlist).
func (l *writer) writeFooter(s *segment, durable uint64) (err error) {
	if s.footed {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write footer: %w", err)
		}
	}()
	count := s.next - s.first
	b := s.body.Load()
	if s.sealedAt == 0 {
		s.sealedAt = step.Now(l.opts.steps).UnixNano()
	}
	// Only the size of the segment bounds it, so it is written in pieces.
	w := bufio.NewWriterSize(io.NewOffsetWriter(s.file, s.written), footerPiece)
	sum := uint32(0)
	for piece := range b.index.stored(count) {
		sum = crc32.Update(sum, castagnoli, piece)
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	if s.indexFirst {
		if err := w.Flush(); err != nil {
			return err
		}
		if err := s.file.Sync(); err != nil {
			return err
		}
	}
	_, _ = w.Write(encode(segmentTrailer{ // Flush returns its error
		Magic: trailerMagic, LogID: l.logID, First: s.first, End: s.next, Durable: durable,
		Sealed: s.sealedAt, Index: uint32(s.written), IndexSum: sum,
	}))
	if err := w.Flush(); err != nil {
		return err
	}
	s.footed = true
	s.size.Store(s.written + footerSize(int64(count)))
	if max(s.grown, s.allocated) > s.size.Load() { // the trailer is found at the end
		if err := s.file.Truncate(s.size.Load()); err != nil {
			return fmt.Errorf("cut to size: %w", err)
		}
	}
	if b.mapping != nil && int64(len(b.data)) >= s.size.Load() {
		s.body.Store(&body{mapping: b.mapping, data: b.data, index: storedIndex(b.data[s.written:], count)})
	}
	return nil
}
