package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Open opens the log in a directory, and creates the directory if it does not exist. If the log was
// not closed, Open recovers it: it cuts off a torn end and fsyncs the rest, so that Durable equals
// Next.
//
// Open cuts only what was never known to be durable. Damage below that is a *CorruptionError, and
// Open changes nothing. Open trusts the footers of segments that were known to be durable: see
// [Verify] to check them, and Options.CheckTail.
//
// Errors: ErrLocked, ErrReadOnly if the directory cannot be written to, ErrCorrupt, ErrOptions,
// fs.ErrNotExist under Options.ReadOnly and MustExist.
func Open(dir string, o Options) (*Log, error) {
	o, dir, err := o.at(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{}
	block := blockOf(o.SegmentSize)
	l.site = site{
		fs: o.fs, dir: dir, opts: o, readOnly: o.ReadOnly,
		block: block, pendingBytes: backlogBlocks * block,
		stop: make(chan struct{}),
	}
	l.full = l.tidyUp
	l.space.L, l.idle.L = &l.mu, &l.mu
	if !o.ReadOnly {
		if err := l.acquire(); err != nil {
			return nil, err
		}
	}
	if err := l.recover(); err != nil {
		if l.held != nil {
			err = errors.Join(err, l.held.Close())
		}
		return nil, err
	}
	if o.ReadOnly {
		l.err = ErrReadOnly
		l.broken = nil
	} else if o.SyncInterval > 0 {
		l.spawn(func() { l.syncEvery(o.SyncInterval) })
	}
	return l, nil
}

// tidyUp begins what a full segment needs: an fsync and a footer, which may let older ones go.
func (l *Log) tidyUp(lead bool) {
	if lead {
		l.spawn(l.lead)
	}
	if l.opts.RetainAge > 0 || l.opts.RetainBytes > 0 {
		l.retainSoon()
	}
}

// acquire makes the directory, opens it for good and takes its lock.
func (l *site) acquire() error {
	if !l.opts.MustExist {
		if err := l.fs.MkdirAll(l.dir); err != nil {
			return wrap(writable(err))
		}
	}
	if c, ok := l.fs.(vfs.AccessChecker); ok {
		// Appends need new files only when a segment is full. That is too late to find out.
		if err := c.CheckWritable(l.dir); err != nil {
			return wrap(writable(err))
		}
	}
	held, err := l.fs.Lock(l.dir)
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("%w: %s", ErrLocked, l.dir)
	}
	if err != nil {
		return wrap(writable(err))
	}
	l.held = held
	return nil
}

// writable adds ErrReadOnly to an error that says that nothing may be written.
func writable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}

// recover finds out what the log holds, repairs its end, and prepares it for appends.
func (l *Log) recover() error {
	r, err := survey(l.fs, l.dir, l.opts.CheckTail, l.opts.DurableUpto)
	if err != nil {
		return err
	}
	if len(r.found) == 0 && (l.readOnly || l.opts.MustExist) {
		return fmt.Errorf("wal: no log in %s: %w", l.dir, fs.ErrNotExist)
	}
	if len(r.found) == 0 && r.durable > 0 {
		return &CorruptionError{File: l.dir, What: "the log is missing: offset after its last durable record", Want: r.durable}
	}
	if !l.readOnly { // a crash leaves the spare file
		if err := l.fs.Remove(l.sparePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrap(writable(err))
		}
	}
	if len(r.found) == 0 {
		return l.begin(r)
	}
	l.setID(r.logID)
	if !l.readOnly {
		if err := l.repair(r); err != nil {
			return writable(err)
		}
	}
	return l.adopt(r)
}

func (l *site) setID(id uint64) { l.logID, l.base = id, logSum(id) }

// begin makes the first segment of a new log.
func (l *Log) begin(r *surveyed) error {
	id := l.opts.LogID
	for id == 0 {
		var b [8]byte
		step.Entropy(l.opts.steps, b[:])
		id = binary.LittleEndian.Uint64(b[:])
	}
	l.setID(id)
	for _, name := range r.torn {
		if err := l.remove(path.Join(l.dir, name)); err != nil {
			return writable(err)
		}
	}
	s := newSegment(l.fs, l.dir, id, l.opts.FirstOffset)
	l.written.Store(s.first)
	l.durable.Store(s.first)
	err := l.create(s)
	if err == nil {
		err = l.nameAll(s)
	}
	if err == nil {
		err = s.sync()
	}
	if err != nil {
		return wrap(writable(err))
	}
	l.list.Store(&[]*segment{s})
	l.fillFrom(s)
	return nil
}

// fillFrom makes a segment the one that appends go to.
func (l *writer) fillFrom(s *segment) {
	l.tail, l.filling, l.fill, l.next = s, s, s.written, s.next
	l.capacity = l.capacityOf(s)
	l.room = l.capacity - s.written - footerSize(int64(s.next-s.first))
	b := s.body.Load()
	if b.index.chunks == nil {
		s.body.Store(&body{mapping: b.mapping, data: b.data, index: newIndex(l.capacity)})
	}
	l.nth = s.next - s.first
}

// capacityOf is how long a segment may become that appends go to.
func (l *site) capacityOf(s *segment) int64 {
	return max(l.opts.SegmentSize, s.written+footerSize(int64(s.next-s.first)))
}

// repair makes the files hold what was found sound, and no more. It removes segments beyond the
// cut, cuts the torn tail, writes lost footers again, and fsyncs everything that was not known to
// be durable.
func (l *Log) repair(r *surveyed) error {
	for i := len(r.torn) - 1; i >= 0; i-- { // newest first: no gap at any moment
		if err := l.remove(path.Join(l.dir, r.torn[i])); err != nil {
			return err
		}
	}
	synced := false
	for i, f := range r.found {
		if f.trusted && !f.bare {
			continue
		}
		if !synced {
			// The process may have died between making a file and fsyncing the directory.
			if err := l.held.Sync(); err != nil {
				return fmt.Errorf("wal: repair: fsync directory: %w", err)
			}
			synced = true
		}
		if err := l.repairSegment(f, r.durable, i < len(r.found)-1); err != nil {
			return fmt.Errorf("wal: repair %s: %w", f.path, err)
		}
	}
	r.durable = r.found[len(r.found)-1].next
	return nil
}

func (l *Log) repairSegment(f *foundSegment, durable uint64, full bool) error {
	file, err := l.fs.OpenWrite(f.path)
	if err != nil {
		return err
	}
	defer file.Close() // what matters was fsynced
	// What is bare is not cut. Otherwise its footer would be missing after a power cut now, while
	// the disk may still have a later segment whose trailer says that this footer was there.
	if f.size > f.end && !f.bare {
		if err := file.Truncate(f.end); err != nil {
			return err
		}
		f.size = f.end
	}
	if err := f.rewrite(file, durable); err != nil {
		return err
	}
	// Fsync before the footer, whose durable_upto says that the records are on disk.
	if err := file.Sync(); err != nil || f.bare || !full {
		return err
	}
	s := newSegment(l.fs, l.dir, l.logID, f.first)
	s.file, s.next, s.written, s.indexFirst = file, f.next, f.end, f.proven
	s.body.Store(&body{index: indexOf(f.index, f.end)})
	if err := l.writeFooter(s, f.next); err != nil {
		return err
	}
	f.size, f.sealed, f.trusted = s.size.Load(), s.sealedAt, true
	return file.Sync()
}

// rewrite writes the groups that are not known to be durable once more, unchanged. After a failed
// fsync the system may show them from memory and take them for written: then an fsync alone would
// do nothing and succeed.
func (f *foundSegment) rewrite(file vfs.File, durable uint64) error {
	pos := int64(0)
	switch {
	case durable >= f.next && f.next > f.first:
		pos = f.end
	case durable > f.first:
		pos = int64(f.index[durable-f.first]) - groupSize // what is durable ends with a group
	}
	const startBytes = 8 << 20
	buf := make([]byte, min(f.size-pos, 1<<20))
	starter, ok := file.(vfs.WriteStarter)
	for started := pos; pos < f.size; {
		p := buf[:min(f.size-pos, int64(len(buf)))]
		if n, err := file.ReadAt(p, pos); n < len(p) {
			return fmt.Errorf("read %d bytes at byte %d: got %d: %w", len(p), pos, n, err)
		}
		if err := writeAt(file, p, pos); err != nil {
			return err
		}
		pos += int64(len(p))
		if ok && pos-started >= startBytes {
			// The disk begins to write. Where the system cannot do that, or a sandbox forbids it,
			// Sync does it.
			err := starter.StartWrite(started, pos-started)
			if err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			started = pos
		}
	}
	return nil
}

// adopt hands the segments that were found to the log.
func (l *Log) adopt(r *surveyed) error {
	var list []*segment
	for i, f := range r.found {
		s := newSegment(l.fs, l.dir, l.logID, f.first)
		s.next, s.written, s.created, s.sealedAt = f.next, f.end, f.created, f.sealed
		s.named = true
		s.born.Store(true) // repaired, or known to be durable
		s.size.Store(f.size)
		// A reader next to a writer keeps to the index that was checked, because that writer may
		// write the footer again, or records in its place.
		toWrite := i == len(r.found)-1 && !l.readOnly
		if f.trusted && !toWrite && (f.index == nil || !l.readOnly) {
			s.body.Store(nil) // mapped at its first use
		} else if err := s.adopt(f, l.capacityOf(s)); err != nil {
			return wrap(err)
		}
		s.footed = f.trusted && toWrite // until the first write
		list = append(list, s)
	}
	l.list.Store(&list)
	s := list[len(list)-1]
	l.next = s.next
	l.written.Store(s.next)
	l.durable.Store(r.durable)
	if l.readOnly {
		return nil
	}
	file, err := l.fs.OpenWrite(s.path)
	if err != nil {
		return wrap(writable(err))
	}
	s.file = file
	l.fillFrom(s)
	return nil
}

// adopt makes a segment readable through the index that a scan made.
func (s *segment) adopt(f *foundSegment, capacity int64) error {
	b := &body{index: indexOf(f.index, capacity)}
	if f.next > f.first {
		file, err := s.fs.Open(s.path)
		if err != nil {
			return err
		}
		defer file.Close() // read-only: nothing can be lost by its failing
		if b.mapping, err = file.Map(capacity); err != nil {
			return err
		}
		b.data = b.mapping.Bytes()
	}
	s.body.Store(b)
	return nil
}
