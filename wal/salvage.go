package wal

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// Salvage reads the log in a directory, whether or not the log can be opened. It returns the offset
// that the log begins at, by the name of its first segment, and the records from there on, as long
// as each is sound and follows the one before. Why they end, Open or [Verify] says. Salvage changes
// nothing and takes no lock. It checks the options as Open does, and ignores them. The data belongs
// to the caller.
//
// Errors are those of the file system, and fs.ErrNotExist if there is no directory.
func Salvage(dir string, o Options) (first uint64, records iter.Seq2[Record, error], err error) {
	o, dir, err = o.at(dir)
	if err != nil {
		return 0, nil, err
	}
	found, _, err := listSegments(o.fs, dir)
	if err != nil {
		return 0, nil, err
	}
	if len(found) > 0 {
		first = found[0].first
	}
	return first, func(yield func(Record, error) bool) {
		at := place{segment: first}
		for i, s := range found {
			sound, logID, err := soundGroups(o.fs, s, math.MaxInt64, scanSegment)
			if err != nil {
				yield(Record{}, err)
				return
			}
			if i == 0 {
				at.logID = logID
			}
			if s.first != at.segment || logID != at.logID || !salvage(o.fs, s, sound, at, yield) {
				return
			}
			at.segment = sound.next
		}
	}, nil
}

// soundBefore returns the offset after the last record of a segment that is sound and ends before a
// position. The page at that position cannot be read.
func soundBefore(fsys vfs.FS, s *foundSegment, pos int64) uint64 {
	found, _, err := soundGroups(fsys, s, pos, scanSegment)
	if err != nil {
		return s.first
	}
	return found.next
}

// soundGroups finds the groups of a segment up to the first that is not sound, or up to a position,
// by scanSegment or by headers. It does not read what is beyond that position.
func soundGroups(fsys vfs.FS, s *foundSegment, end int64, scanGroups scanner) (found scan, logID uint64, err error) {
	unreadable, err := readWhole(fsys, s, func(data []byte) (unreadable *fault) {
		data = data[:min(end, int64(len(data)))]
		h, f := decodeSegmentHeader(data, s.first)
		if found, logID = (scan{next: s.first, stop: f}), 0; f != nil {
			return nil
		}
		logID = h.LogID
		if int64(len(data)) == s.size {
			if t, f := decodeSegmentTrailer(data[max(0, s.size-trailerSize):], s.size); f == nil {
				data = data[:t.Index]
			}
		}
		found, unreadable = scanGroups(data, place{h.LogID, s.first})
		return unreadable
	})
	if unreadable != nil && unreadable.Pos < end {
		found, logID, err = soundGroups(fsys, s, unreadable.Pos, scanGroups)
		found.stop = unreadable
	}
	return found, logID, err
}

// salvage yields the records of the sound groups of a segment, and those of the next group that
// stand before its damage. It reports false if no more are wanted.
func salvage(fsys vfs.FS, s *foundSegment, sound scan, at place, yield func(Record, error) bool) bool {
	file, err := fsys.Open(s.path)
	if err != nil {
		yield(Record{}, wrap(err))
		return false
	}
	defer file.Close() // read-only: nothing can be lost by its failing
	groups := sound.groups
	if f := sound.stop; f != nil && f.Offset > sound.next {
		b := make([]byte, groupSize)
		if _, err := file.ReadAt(b, sound.end); err == nil {
			if h, f := decodeGroupHeader(b); f == nil {
				groups = append(groups, groupSpan{sound.end, h})
			}
		}
	}
	var index []uint32
	for _, g := range groups {
		buf, err := s.bytes(file, g.pos, g.size()) // the caller's from now on
		if err != nil {
			yield(Record{}, err)
			return false
		}
		index = slices.Grow(index[:0], int(g.count))[:g.count]
		stop := checkGroup(buf, groupSpan{0, g.groupHeader}, logSum(at.logID), index)
		if stop != nil {
			index = index[:stop.Offset-g.first]
		}
		for i, pos := range index {
			data := buf[pos+recordSize:][:binary.LittleEndian.Uint32(buf[pos+4:])]
			if !yield(Record{Offset: g.first + uint64(i), Data: data}, nil) {
				return false
			}
		}
		if stop != nil {
			return false
		}
	}
	return true
}
