package wal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path"
	"strings"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// surveyed is what was found in the directory of a log. Surveying changes nothing.
//
// The last segment comes first. D is the highest durable_upto of all headers, groups and trailers,
// and of what the opener knows. A segment that ends at or below D and has a sound trailer is
// trusted, if a later one has a sound trailer too or if its own index is sound. The others are
// scanned. The log is what follows from the first segment on without a gap, up to X. If X < D, that
// is corruption. Otherwise everything after X is torn, and may be cut.
//
// A segment without a header was never fsynced and holds nothing: the log ends before it. Only the
// header of the first segment is known to have been on disk before anything else.
type surveyed struct {
	fs      vfs.FS
	dir     string
	tail    bool // the last segment is scanned, whatever its footer says
	logID   uint64
	durable uint64          // D
	proven  bool            // the footers of the segments before the one that is looked at were durable
	found   []*foundSegment // sound, in order
	torn    []string        // names of segments after the end of the log, in order
}

type foundSegment struct {
	name    string
	path    string
	first   uint64
	size    int64 // of the file
	created int64
	sealed  int64
	trailer *segmentTrailer // nil: there is none that is sound

	unborn  bool     // there is no header
	trusted bool     // by its footer
	bare    bool     // trusted, but nothing says that its footer was durable
	proven  bool     // a later segment has a sound trailer, which says that this one's footer was durable
	next    uint64   // offset after the last sound record
	end     int64    // position after the last sound group
	index   []uint32 // of a scanned one
	stop    *fault   // why a scan ended; nil when only zeros are left
}

// survey finds out what a directory holds. Every record below known was durable.
func survey(fsys vfs.FS, dir string, tail bool, known uint64) (*surveyed, error) {
	r := &surveyed{fs: fsys, dir: dir, tail: tail, durable: known}
	found, damage, err := listSegments(fsys, dir)
	if err != nil {
		return nil, err
	}
	if len(damage) > 0 {
		return nil, damage[0]
	}
	r.found = found
	if err := r.begin(); err != nil {
		return nil, err
	}
	for i := len(r.found) - 1; i >= 0; i-- {
		limit := uint64(math.MaxUint64)
		if i < len(r.found)-1 {
			limit = r.found[i+1].first
		}
		if err := r.look(r.found[i], limit); err != nil {
			return nil, err
		}
	}
	return r, r.join()
}

// listSegments lists the segments in a directory by first offset. A name that only looks like that
// of a segment is damage.
func listSegments(fsys vfs.FS, dir string) (found []*foundSegment, damage []*CorruptionError, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, nil, wrap(err)
	}
	for _, name := range names { // sorted, and so are the offsets in them
		if !strings.HasSuffix(name, segmentExt) {
			continue
		}
		first, ok := parseSegmentName(name)
		if !ok || first > MaxOffset {
			damage = append(damage, &CorruptionError{File: path.Join(dir, name), Offset: MaxOffset + 1, What: fmt.Sprintf("not the name of a segment, which is an offset of %d digits, at most %d, and %s", segmentDigit, uint64(MaxOffset), segmentExt)})
			continue
		}
		found = append(found, &foundSegment{name: name, path: path.Join(dir, name), first: first, next: first, end: headerSize})
	}
	return found, damage, nil
}

// begin finds the log's id in the first segment. If there is nothing else, and its header never got
// to disk, the log was still being made and has no id.
func (r *surveyed) begin() error {
	if len(r.found) == 0 {
		return nil
	}
	first := r.found[0]
	file, h, err := first.open(r.fs)
	if err != nil {
		return err
	}
	defer file.Close() // read-only: nothing can be lost by its failing
	switch {
	case !first.unborn:
		r.logID = h.LogID
	case len(r.found) == 1 && first.first == 0 && first.size <= headerSize:
		r.cut(0)
	default:
		return &CorruptionError{File: first.path, Offset: first.first, What: "header of the first segment is missing", Want: segmentMagic, Bits: true}
	}
	return nil
}

// look reads the header and the trailer of a segment, and scans it unless it can be trusted.
// Records at or beyond limit belong to the next segment. The segments after it must have been
// looked at before.
func (r *surveyed) look(s *foundSegment, limit uint64) error {
	for {
		proven := r.proven
		err := r.lookOnce(s, limit)
		if err != errCutToSize {
			return err
		}
		r.proven = proven
		*s = foundSegment{name: s.name, path: s.path, first: s.first, next: s.first, end: headerSize}
	}
}

// errCutToSize says that a writer cut the file of a segment to size while it was read. Nothing had
// been written to the part that is gone.
var errCutToSize = errors.New("wal: segment was cut to size meanwhile")

func (r *surveyed) lookOnce(s *foundSegment, limit uint64) error {
	file, h, err := s.open(r.fs)
	if err != nil {
		return err
	}
	defer file.Close() // read-only: nothing can be lost by its failing
	if !s.unborn {
		if f := bitsDiffer(8, "segment's log id", h.LogID, r.logID); f != nil {
			f.Offset = s.first
			return f.in(s.path)
		}
	}
	s.created, s.proven = h.Created, r.proven
	r.durable = max(r.durable, h.Durable)
	if err := s.readTrailer(file, r.logID); err != nil {
		return err
	}
	if t := s.trailer; t != nil {
		r.durable = max(r.durable, t.Durable)
		s.sealed = t.Sealed
		last := limit == math.MaxUint64
		proven := r.proven && !last
		r.proven = true
		s.trusted = !s.unborn && r.durable >= t.End && (t.End == limit || last)
		if s.trusted {
			s.next, s.end = t.End, int64(t.Index)
			if proven {
				return nil
			}
			// Records are durable before the footer of their segment is, and that is only known
			// once the next one has been written. And the index of a tail will be used in memory.
			// So it is checked here.
			if s.index, err = s.loadIndex(file); err == nil {
				s.bare = !last
				if !last || !r.tail {
					return nil
				}
				if err := r.scan(s, file); err != nil {
					return err
				}
				s.trusted = s.next == t.End && s.end == int64(t.Index) // the rest is the footer
				return nil
			}
			s.trusted = false
		}
	}
	if s.unborn && s.size <= headerSize {
		return nil // nothing to search
	}
	return r.scan(s, file)
}

func (r *surveyed) scan(s *foundSegment, file vfs.File) error {
	scan := scanSegment
	if s.unborn {
		scan = scanUnborn
	}
	unreadable, err := s.read(file, func(data []byte) *fault {
		found, unreadable := scan(data, place{logID: r.logID, segment: s.first})
		if unreadable == nil {
			r.durable = max(r.durable, found.durable)
			s.next, s.end, s.index, s.stop = found.next, found.end, found.index, found.stop
		}
		return unreadable
	})
	if unreadable != nil {
		unreadable.Offset = soundBefore(r.fs, s, unreadable.Pos)
		return unreadable.in(s.path)
	}
	return err
}

// join cuts the list of segments where the log ends, or says why it must not end there.
func (r *surveyed) join() error {
	for i, s := range r.found {
		if s.unborn && s.first >= r.durable {
			r.cut(i)
			s = r.found[i-1]
			if err := r.look(s, math.MaxUint64); err != nil || s.next >= r.durable {
				return err
			}
			return r.lost(s, nil)
		}
		last := i == len(r.found)-1
		if last || s.next == r.found[i+1].first {
			if last && s.next < r.durable {
				return r.lost(s, nil)
			}
			continue
		}
		if s.next < r.durable || s.next > r.found[i+1].first {
			return r.lost(s, r.found[i+1])
		}
		r.cut(i + 1)
		return nil
	}
	return nil
}

func (r *surveyed) cut(i int) {
	for _, s := range r.found[i:] {
		r.torn = append(r.torn, s.name)
	}
	r.found = r.found[:i]
}

// lost says what is wrong at the end of s: durable records are missing after it, or the segment
// after it does not follow.
func (r *surveyed) lost(s, then *foundSegment) error {
	if t := s.trailer; t != nil && t.End == s.next && then != nil && s.next < then.first {
		return &CorruptionError{File: s.path, Pos: s.size, Offset: s.next, What: "the segment that follows is missing: the next one is " + then.name + ": first offset", Got: then.first, Want: s.next}
	}
	if s.stop != nil && s.stop.Pos < s.size && (then == nil || s.next < then.first) {
		e := s.stop.in(s.path)
		e.Offset = s.next
		e.What += fmt.Sprintf(" (records below %d were durable)", r.durable)
		return e
	}
	want, what := r.durable, "the segment ends before what was durable"
	if then != nil {
		want, what = then.first, "the segment does not end where "+then.name+" begins"
	}
	return &CorruptionError{File: s.path, Pos: s.end, Offset: s.next, What: what, Got: s.next, Want: want}
}

// open opens a segment's file and reads its header, if it has one.
func (s *foundSegment) open(fsys vfs.FS) (file vfs.File, h segmentHeader, err error) {
	if file, err = fsys.Open(s.path); err != nil {
		return nil, h, wrap(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if s.size, err = file.Size(); err != nil {
		return file, h, wrap(err)
	}
	if s.size > maxSegment {
		return file, h, &CorruptionError{File: s.path, Pos: s.size, Offset: s.first, What: "size of a segment", Got: uint64(s.size), Want: maxSegment}
	}
	b := make([]byte, min(headerSize, s.size))
	if _, err := file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return file, h, fmt.Errorf("wal: read %s: %w", s.path, err)
	}
	if s.unborn = headerless(b); s.unborn {
		return file, h, nil
	}
	h, f := decodeSegmentHeader(b, s.first)
	if f != nil {
		return file, h, f.in(s.path)
	}
	return file, h, nil
}

// readTrailer reads the trailer, if there is a sound one that belongs to this segment.
func (s *foundSegment) readTrailer(file io.ReaderAt, logID uint64) error {
	if s.size < headerSize+trailerSize {
		return nil
	}
	b := make([]byte, trailerSize)
	if _, err := file.ReadAt(b, s.size-trailerSize); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("wal: read %s: %w", s.path, err)
	}
	t, f := decodeSegmentTrailer(b, s.size)
	if f == nil && t.LogID == logID && t.First == s.first {
		s.trailer = &t
	}
	return nil
}

// loadIndex reads the index of a full segment and checks it.
func (s *foundSegment) loadIndex(file io.ReaderAt) ([]uint32, error) {
	t := s.trailer
	count := int64(t.End - t.First)
	b, err := s.bytes(file, int64(t.Index), s.size-trailerSize-int64(t.Index))
	if err != nil {
		return nil, err
	}
	if sum := crc32.Checksum(b, castagnoli); sum != t.IndexSum {
		return nil, &CorruptionError{File: s.path, Pos: int64(t.Index), Offset: s.first, What: "checksum of the index", Got: uint64(sum), Want: uint64(t.IndexSum), Bits: true}
	}
	index := make([]uint32, count)
	for i := range index {
		index[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return index, nil
}

// bytes reads bytes of the segment's file, which must be there.
func (s *foundSegment) bytes(file io.ReaderAt, pos, length int64) ([]byte, error) {
	b := make([]byte, length)
	if n, err := file.ReadAt(b, pos); int64(n) < length {
		return nil, fmt.Errorf("wal: read %s, %d bytes at byte %d: got %d: %w", s.path, length, pos, n, err)
	}
	return b, nil
}

// read passes the bytes of the segment's file, a mapping, to read. It returns what that returns, or
// the page that could not be read, or errCutToSize. Such a page need not be damage: a full tmpfs
// has no room for a page of zeros that nobody wrote, and a mapping needs one. Then the file is read
// without a mapping.
func (s *foundSegment) read(file vfs.File, read func(data []byte) *fault) (unreadable *fault, err error) {
	if s.size == 0 {
		return read(nil), nil
	}
	m, err := file.Map(s.size)
	if err != nil {
		return nil, wrap(err)
	}
	data := m.Bytes()[:s.size]
	unreadable = guarded(data, func() *fault { return read(data) })
	if err := m.Unmap(); err != nil || unreadable == nil {
		return nil, wrap(err)
	}
	if size, err := file.Size(); err != nil || size < s.size {
		return nil, cmp.Or(wrap(err), errCutToSize)
	}
	if data, err = s.bytes(file, 0, s.size); err == nil {
		return read(data), nil
	}
	return unreadable, nil
}

// readWhole opens a segment's file and reads it. If a writer cuts the file to size meanwhile, it
// begins again.
func readWhole(fsys vfs.FS, s *foundSegment, read func(data []byte) *fault) (unreadable *fault, err error) {
	file, err := fsys.Open(s.path)
	if err != nil {
		return nil, wrap(err)
	}
	defer file.Close() // read-only: nothing can be lost by its failing
	for {
		if s.size, err = file.Size(); err != nil {
			return nil, wrap(err)
		}
		if unreadable, err = s.read(file, read); err != errCutToSize {
			return unreadable, err
		}
	}
}
