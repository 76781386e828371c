package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"sort"
)

// Record is a record with its offset.
type Record struct {
	Offset uint64
	Data   []byte
}

// Read appends the data of the record at offset to dst and returns the result. It does not allocate
// if dst has room, takes no lock if the record is in its file, and always checks the checksum. It
// also reads records that are not durable yet: see Durable.
//
// Errors: ErrTrimmed below First, ErrNotFound from Next on, ErrCorrupt (a *CorruptionError),
// ErrClosed, and ErrFailed for records above Durable of a log that failed. With an error, Read
// returns dst unchanged.
func (l *buffer) Read(offset uint64, dst []byte) ([]byte, error) {
	in, out, err := l.enter(offset, dst)
	if err == nil && in.segment != nil {
		out, err = in.read(offset, dst, false)
		in.leave()
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

// enter enters the segment whose file has a record. If no file has it yet, enter appends its data
// to dst.
func (l *buffer) enter(offset uint64, dst []byte) (in entered, out []byte, err error) {
	for found := false; !found && err == nil; { // it may be written between the two looks
		s, _, wrong := l.segmentOf(offset)
		switch {
		case wrong != nil:
			return in, nil, wrong
		case s == nil:
			out, found, err = l.readPending(offset, dst)
		default:
			if in, err = s.enter(); err != nil {
				err = l.refused(err, offset)
			}
			return in, nil, err
		}
	}
	return in, out, err
}

// segmentOf returns the segment whose file has the record, and the offset after the last record
// that is in that file; nil when no file has the record.
func (l *status) segmentOf(offset uint64) (s *segment, end uint64, err error) {
	written := l.written.Load()
	if offset >= written {
		return nil, 0, nil
	}
	// Loaded after written: a segment is listed before its records count.
	list := *l.list.Load()
	if s := list[len(list)-1]; offset >= s.first {
		return s, written, nil
	}
	i := sort.Search(len(list), func(i int) bool { return list[i].first > offset })
	if i == 0 {
		return nil, 0, l.refused(ErrTrimmed, offset)
	}
	return list[i-1], min(written, list[i].first), nil
}

// refused explains why the segment of a record cannot be read. A closed log has dropped all
// segments. The file of a segment that is being dropped may already be gone.
func (l *status) refused(err error, offset uint64) error {
	if gone := errors.Is(err, fs.ErrNotExist) && offset < l.First(); !gone && !errors.Is(err, ErrTrimmed) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	return fmt.Errorf("%w: offset %d, the log begins at %d", ErrTrimmed, offset, l.First())
}

// readPending reads a record that is not in a file yet. It does not find a record that has reached
// its file by now.
func (l *buffer) readPending(offset uint64, dst []byte) (_ []byte, found bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case offset < l.written.Load():
		return nil, false, nil
	case l.closed:
		return nil, false, ErrClosed
	case l.broken != nil:
		return nil, false, l.broken
	case offset >= l.next:
		return nil, false, fmt.Errorf("%w: offset %d, the log ends at %d", ErrNotFound, offset, l.next)
	}
	for _, g := range slices.Backward(l.pending) {
		if offset < g.first {
			continue
		}
		pos, _ := g.seg.body.Load().index.position(offset - g.seg.first)
		at := pos - g.pos
		length := int64(binary.LittleEndian.Uint32(g.buf[at+4:]))
		return append(dst, g.buf[at+recordSize:at+recordSize+length]...), true, nil
	}
	return nil, false, fmt.Errorf("wal: record %d is neither in a file nor pending", offset)
}

// View is a record read in place. Do not write to Data, and do not use it after Release.
type View struct {
	Data []byte
	in   entered
}

// Release lets go of what keeps Data in place. It may be called more than once.
func (v *View) Release() {
	v.Data = nil
	v.in.leave()
}

// View returns the record at offset without copying it. It checks the record's checksum. The record
// stays in place, even if it is trimmed or the log is closed, until Release, which must be called.
// If the disk fails later under the view, the process ends with a fault. Errors are those of Read.
func (l *buffer) View(offset uint64) (View, error) {
	in, data, err := l.enter(offset, nil)
	if err == nil && in.segment != nil {
		data, err = in.read(offset, nil, true)
	}
	if err != nil {
		in.leave()
		return View{}, err
	}
	return View{Data: data, in: in}, nil
}

// Records iterates over the records from an offset to the end of the log, as the end is when the
// iteration gets there. Each record's data is a copy of its own. An error is the last thing
// yielded. Errors are those of Read, but the end is not an error, and from may be Next.
func (l *buffer) Records(from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var slab []byte
		for r, err := range l.Views(from) {
			// Copies share blocks, so that a small record costs no allocation of its own.
			if len(r.Data) > cap(slab)-len(slab) {
				slab = make([]byte, 0, max(len(r.Data), slabBytes))
			}
			start := len(slab)
			slab = append(slab, r.Data...)
			r.Data = slab[start:len(slab):len(slab)]
			if !yield(r, err) {
				return
			}
		}
	}
}

// slabBytes is the size of the blocks that Records copies into.
const slabBytes = 32 << 10

// Views is Records without copying. Data is valid until the loop goes on to the next record; do not
// write to it.
func (l *buffer) Views(from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		c := cursor{log: l, next: from}
		defer c.leave()
		for {
			data, ok, err := c.step(noLimit)
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !ok || !yield(Record{c.next - 1, data}, nil) {
				return
			}
		}
	}
}

const noLimit = ^uint64(0)

// cursor walks through the log. It counts itself into a segment once and stays in it until it has
// passed its records.
type cursor struct {
	log  *buffer
	next uint64
	entered
	end     uint64 // records of segment below this are in its file
	scratch []byte // a pending record
}

// step returns the next record below limit in place. If there is none yet, ok is false. The data is
// valid until the next call.
func (c *cursor) step(limit uint64) (data []byte, ok bool, err error) {
	for c.next < limit || limit == noLimit {
		if c.segment != nil && c.next < c.end {
			if data, err = c.read(c.next, nil, true); err == nil {
				c.next++
			}
			return data, err == nil, err
		}
		entered, err := c.enter()
		if err != nil {
			return nil, false, err
		}
		if entered {
			continue
		}
		data, found, err := c.log.readPending(c.next, c.scratch[:0])
		switch {
		case errors.Is(err, ErrNotFound) && (limit != noLimit || c.next <= c.log.Next()):
			return nil, false, nil // the end of the log, not an offset beyond it
		case err != nil:
			return nil, false, err
		case found:
			c.scratch = data
			c.next++
			return data, true, nil
		}
	}
	return nil, false, nil
}

// enter goes into the segment of the next record, if a file has it.
func (c *cursor) enter() (bool, error) {
	s, end, err := c.log.segmentOf(c.next)
	if s == nil || err != nil {
		return false, err
	}
	if s != c.segment {
		c.leave()
		if c.entered, err = s.enter(); err != nil {
			return false, c.log.refused(err, c.next)
		}
	}
	c.end = end
	return true, nil
}

// Horizon says how far a follower goes.
type Horizon uint8

const (
	// UpToDurable delivers records that a crash can no longer undo.
	UpToDurable Horizon = iota
	// UpToAppended delivers records as they are appended. A crash of the machine may undo what was
	// delivered.
	UpToAppended
)

// Follow iterates over the records from an offset, and waits for more at the end. It ends with the
// context's error, or with ErrClosed or ErrFailed when the log ends. A record's data is valid until
// the loop goes on to the next record; do not write to it. If from is beyond Next, Follow waits for
// it. Under UpToDurable nothing comes until something is fsynced.
func (l *buffer) Follow(ctx context.Context, from uint64, upTo Horizon) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		c := cursor{log: l, next: from}
		defer c.leave()
		for {
			limit := noLimit - 1
			if upTo == UpToDurable {
				limit = l.durable.Load()
			}
			data, ok, err := c.step(limit)
			if err == nil && !ok {
				c.leave() // a segment is not kept while there is nothing to read
				if err = l.waitBeyond(ctx, c.next, upTo); err == nil {
					continue
				}
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(Record{c.next - 1, data}, nil) {
				return
			}
		}
	}
}

// waitBeyond returns when the record at offset is within the horizon.
func (l *buffer) waitBeyond(ctx context.Context, offset uint64, upTo Horizon) error {
	for {
		l.mu.Lock()
		limit := l.next
		if upTo == UpToDurable {
			limit = l.durable.Load()
		}
		if offset < limit || l.closed || l.broken != nil {
			err := l.broken
			if l.closed {
				err = ErrClosed
			}
			if offset < limit && upTo == UpToDurable && !l.closed {
				err = nil // what is durable is readable in a failed log too
			}
			l.mu.Unlock()
			return err
		}
		if l.moved == nil {
			l.moved = make(chan struct{})
		}
		moved := l.moved
		l.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
