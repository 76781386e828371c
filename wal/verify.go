package wal

import (
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// Report is what Verify found.
type Report struct {
	LogID    uint64
	First    uint64 // oldest offset kept
	Next     uint64 // offset after the last sound record that follows without a gap
	Durable  uint64 // the highest offset that the files say was durable
	Segments []SegmentReport
	Groups   int64
	Records  int64
	Bytes    int64 // of all segment files
	Torn     int64 // bytes after the last sound group of the log, which Open will cut
	// Damage is all damage found, by place. A torn tail and a footer that was not durable are not
	// damage: a crash leaves those. A damaged footer at the very end looks like a crash within Close, or at
	// the first writes to a log that was closed. It is reported, and Footer names it too.
	Damage []*CorruptionError
	Footer *CorruptionError // what is wrong with the footer at the very end; Open writes it again
}

// SegmentReport is one segment of a Report.
type SegmentReport struct {
	File    string
	First   uint64
	Next    uint64 // offset after the last sound record
	Groups  int
	Bytes   int64
	Created time.Time
	Sealed  time.Time // zero when there is no footer
}

// Verify reads every byte of the log in a directory and checks it. It changes nothing and takes no
// lock. With a writer at work, the groups being written may look torn. It checks the options as
// Open does, and ignores them. Damage is in the report. The error says why the check itself failed:
// errors of the file system and of ctx, and fs.ErrNotExist if there is no directory.
func Verify(ctx context.Context, dir string, o Options) (Report, error) {
	o, dir, err := o.at(dir)
	if err != nil {
		return Report{}, err
	}
	found, damage, err := listSegments(o.fs, dir)
	if err != nil {
		return Report{}, err
	}
	checked := make([]checkedSegment, len(found))
	errs := make([]error, len(found))
	var turn atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(found)) {
		wg.Go(func() {
			for i := turn.Add(1) - 1; i < int64(len(found)); i = turn.Add(1) - 1 {
				if errs[i] = ctx.Err(); errs[i] == nil {
					checked[i], errs[i] = checkSegment(o.fs, found[i])
				}
			}
		})
	}
	wg.Wait()
	r := Report{Damage: damage}
	r.add(checked)
	return r, errors.Join(errs...)
}

type checkedSegment struct {
	SegmentReport
	logID   uint64
	durable uint64
	end     uint64 // of its trailer
	torn    int64
	stop    *fault
	unborn  bool             // its header never got to disk
	footer  *CorruptionError // what is wrong with the footer
	damage  []*CorruptionError
}

// add sums the segments up and checks that they fit together. As in recovery: if the log ends at or
// above what was durable, it is torn there, and nothing after that counts.
func (r *Report) add(checked []checkedSegment) {
	for i := range checked {
		r.Durable = max(r.Durable, checked[i].durable)
	}
	proven := 0 // below it, the footers of segments were durable: a later one was begun
	for i := range checked {
		if !checked[i].Sealed.IsZero() {
			proven = i
		}
	}
	torn := false
	for i, c := range checked {
		if i == 0 {
			r.LogID, r.First, r.Next = c.logID, c.First, c.First
		}
		known := i == 0 || len(checked[i-1].damage) == 0 // where the one before ends
		gap := known && c.First != r.Next
		made := i > 0 || len(checked) == 1 && c.First == 0 && c.Bytes <= headerSize // else its header was on disk
		if torn = torn || (gap || known && c.unborn && made) && r.Next >= r.Durable; torn {
			r.Torn += c.Bytes
			continue
		}
		if c.logID != r.LogID && !c.unborn {
			c.damage = append(c.damage, &CorruptionError{File: c.File, Pos: 8, Offset: c.First, What: "segment's log id", Got: c.logID, Want: r.LogID, Bits: true})
		}
		switch {
		case c.unborn:
			c.damage = append(c.damage, &CorruptionError{File: c.File, Offset: c.First, What: "header of a segment is missing", Want: segmentMagic, Bits: true})
		case gap && checked[i-1].stop == nil:
			c.damage = append(c.damage, &CorruptionError{File: c.File, Offset: c.First, What: "segment does not follow the one before", Got: c.First, Want: r.Next})
		}
		last := i == len(checked)-1
		whole := !last && checked[i+1].First == c.Next // but for its footer
		torn = c.stop != nil && c.Next >= r.Durable && !whole
		switch {
		case torn:
			r.Torn += c.torn
		case c.stop != nil && whole && i >= proven: // no footer, which a crash may leave
		case c.stop != nil:
			c.damage = append(c.damage, c.stop.in(c.File))
		case last && c.Next < r.Durable:
			c.damage = append(c.damage, &CorruptionError{File: c.File, Pos: c.Bytes, Offset: c.Next, What: "the log ends before what was durable", Got: c.Next, Want: r.Durable})
		case c.footer != nil && (i < proven || last && !c.Sealed.IsZero() && c.end <= r.Durable):
			c.damage = append(c.damage, c.footer)
			if last {
				r.Footer = c.footer
			}
		}
		r.Next = c.Next
		r.Segments = append(r.Segments, c.SegmentReport)
		r.Groups += int64(c.Groups)
		r.Records += int64(c.Next - c.First)
		r.Bytes += c.Bytes
		r.Damage = append(r.Damage, c.damage...)
	}
}

func checkSegment(fsys vfs.FS, s *foundSegment) (c checkedSegment, err error) {
	nothing := checkedSegment{SegmentReport: SegmentReport{File: s.path, First: s.first, Next: s.first}}
	c = nothing
	unreadable, err := readWhole(fsys, s, func(data []byte) *fault {
		c = nothing
		c.Bytes = s.size
		return c.check(s, data)
	})
	if unreadable != nil {
		unreadable.Offset = soundBefore(fsys, s, unreadable.Pos)
		c.damage = append(c.damage, unreadable.in(s.path))
	}
	return c, err
}

// check checks a segment, given all of its bytes.
func (c *checkedSegment) check(s *foundSegment, data []byte) (unreadable *fault) {
	if c.unborn = headerless(data); c.unborn {
		found, unreadable := scanUnborn(data, place{segment: s.first})
		c.durable = found.durable
		return unreadable
	}
	h, f := decodeSegmentHeader(data, s.first)
	if f != nil {
		c.damage = append(c.damage, f.in(s.path))
		return nil
	}
	c.logID, c.durable, c.Created = h.LogID, h.Durable, time.Unix(0, h.Created)
	groups := data
	t, trailerFault := decodeSegmentTrailer(data[max(0, len(data)-trailerSize):], s.size)
	if trailerFault == nil && t.First == s.first {
		groups = data[:t.Index]
		c.Sealed, c.end, c.durable = time.Unix(0, t.Sealed), t.End, max(c.durable, t.Durable)
	}
	found, unreadable := scanSegment(groups, place{h.LogID, s.first})
	if unreadable != nil {
		return unreadable
	}
	c.Next, c.Groups, c.durable = found.next, len(found.groups), max(c.durable, found.durable)
	c.stop, c.torn = found.stop, s.size-found.end
	if c.Sealed.IsZero() {
		if trailerFault == nil {
			trailerFault = &fault{What: "segment trailer stands in the wrong segment", Got: t.First, Want: s.first}
		}
		trailerFault.Offset = c.Next
		trailerFault.Pos += max(0, s.size-trailerSize)
		c.footer = trailerFault.in(s.path)
		return nil
	}
	if c.stop == nil {
		c.footer = checkFooter(s, data, t, found)
	}
	return nil
}

func checkFooter(s *foundSegment, data []byte, t segmentTrailer, found scan) *CorruptionError {
	if t.End != found.next {
		return &CorruptionError{File: s.path, Pos: s.size - trailerSize + 24, Offset: found.next, What: "segment trailer's end offset", Got: t.End, Want: found.next}
	}
	count := t.End - t.First
	want := make([]byte, 0, indexSize(int64(count)))
	x := indexOf(found.index, found.end)
	for piece := range x.stored(count) {
		want = append(want, piece...)
	}
	for i, got := range data[t.Index : s.size-trailerSize] {
		if got != want[i] {
			return &CorruptionError{File: s.path, Pos: int64(t.Index) + int64(i), Offset: s.first + min(uint64(i/4), count-1), What: "index", Got: uint64(got), Want: uint64(want[i]), Bits: true}
		}
	}
	return nil
}

// Group is a group of records as it is in a file.
type Group struct {
	File        string
	Pos         int64  // of its header, in bytes
	Bytes       int64  // header, records and padding
	First       uint64 // offset of the first record
	Count       uint32 // of the records
	DurableUpto uint64 // what was known to be durable when it was written
}

// Groups iterates over the groups of the log in a directory, whether or not the log can be opened.
// It checks the headers of groups but not their records. If a segment goes on with something else,
// even the torn tail of a last segment, Groups yields that as an error and goes on with the next
// segment. It checks the options as Open does, and ignores them.
func Groups(dir string, o Options) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		o, dir, err := o.at(dir)
		if err != nil {
			yield(Group{}, err)
			return
		}
		found, damage, err := listSegments(o.fs, dir)
		if err != nil {
			yield(Group{}, err)
			return
		}
		for _, d := range damage {
			if !yield(Group{}, d) {
				return
			}
		}
		for _, s := range found {
			groups, _, err := soundGroups(o.fs, s, math.MaxInt64, headers)
			for _, g := range groups.groups {
				if !yield(Group{File: s.path, Pos: g.pos, Bytes: g.size(), First: g.first, Count: g.count, DurableUpto: g.durable}, nil) {
					return
				}
			}
			if err == nil && groups.stop != nil {
				err = groups.stop.in(s.path)
			}
			if err != nil && !yield(Group{}, err) {
				return
			}
		}
	}
}
