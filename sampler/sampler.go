package sampler

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// MaxTotal is the largest sum of weights that a Sampler holds: 2^63 - 1.
const MaxTotal = math.MaxInt64

// MaxLen is the largest number of entries that a Sampler holds: 2^31 - 1.
const MaxLen = math.MaxInt32

var (
	// ErrIndex reports an index that is negative or not below Len.
	ErrIndex = errors.New("sampler: index out of range")
	// ErrOverflow reports weights whose sum exceeds MaxTotal.
	ErrOverflow = errors.New("sampler: sum of weights exceeds 63 bits")
	// ErrTooLong reports a table of more than MaxLen entries.
	ErrTooLong = errors.New("sampler: too many entries")
)

// Source is a source of uniformly distributed 64-bit values, as math/rand/v2.Source is.
type Source interface{ Uint64() uint64 }

// Sampler is a table of weights to draw from. The zero value is an empty table. Do not copy it. It is
// not safe for concurrent use, not even for several Draws, because they advance the guide.
type Sampler struct {
	total  uint64
	tree   tree
	blocks blocks
	guide  guide
	length int
}

// New returns a Sampler with these weights, and does not keep the slice. A weight may be zero, and the
// slice may be empty. It returns ErrOverflow if the sum exceeds MaxTotal, and ErrTooLong for more than
// MaxLen weights.
func New(weights []uint64) (*Sampler, error) {
	if err := checkLen(len(weights)); err != nil {
		return nil, err
	}
	s := &Sampler{length: len(weights)}
	for i, w := range weights {
		if w > MaxTotal-s.total {
			return nil, overflow(i, w, s.total)
		}
		s.total += w
	}
	s.blocks.init(weights)
	s.tree.init(&s.blocks)
	s.guide.init(s.blocks.count)
	if s.total > 0 {
		for !s.guide.live && s.guide.cells != nil {
			s.guide.advance(&s.blocks, s.total)
		}
	}
	return s, nil
}

func checkLen(n int) error {
	if n > MaxLen {
		return fmt.Errorf("%w: got %d, want at most %d", ErrTooLong, n, MaxLen)
	}
	return nil
}

func overflow(index int, weight, rest uint64) error {
	return fmt.Errorf("%w: weight %d at index %d and %d elsewhere, want at most %d together",
		ErrOverflow, weight, index, rest, uint64(MaxTotal))
}

// Len returns the number of entries, including those of weight zero.
func (s *Sampler) Len() int { return s.length }

// Total returns the sum of the weights.
func (s *Sampler) Total() uint64 { return s.total }

// Weight returns the weight of the entry at index. It panics if index is out of range.
func (s *Sampler) Weight(index int) uint64 {
	if uint(index) >= uint(s.length) {
		panic(s.outOfRange(index))
	}
	i, b := uint(index), &s.blocks
	if b.moved == 0 && b.width == width16 {
		return b.narrow[i/blockLen].weight(i)
	}
	return b.weight(i)
}

func (s *Sampler) outOfRange(index int) error {
	return fmt.Errorf("%w: got %d, want at least 0 and less than %d", ErrIndex, index, s.length)
}

// Draw chooses an entry with probability weight/total, by the contract in the package comment. It
// reports false, and takes nothing from src, if the total is zero. Otherwise it takes one value from
// src, and each further value with a probability below total/2^64.
func (s *Sampler) Draw(src Source) (index int, ok bool) {
	if s.total == 0 {
		return 0, false
	}
	return s.find(uniform(src, s.total)), true
}

// At returns the entry that covers point: see the package comment. It reports false if point is not
// below the total.
func (s *Sampler) At(point uint64) (index int, ok bool) {
	if point >= s.total {
		return 0, false
	}
	return s.find(point), true
}

// find returns the entry that covers point, which is below the total. The descent of the tree is not a
// function of its own: a call for each structure would take a third of a draw.
func (s *Sampler) find(point uint64) int {
	at, rest, found := uint64(0), point, s.guide.live // at: the block; rest: what of point lies within it
	if found {
		at, rest, found = s.guide.lookup(point)
	} else if s.guide.counted() {
		s.guide.advance(&s.blocks, s.total)
	}
	if !found {
		t := &s.tree
		at, rest = t.root(point)
		for _, level := range t.levels[:t.depth] {
			n := &t.nodes[uint64(level)+at]
			child := n.find(rest)
			rest -= n[child&7]
			at = at*8 + child
		}
	}
	b := &s.blocks
	if b.moved == 0 {
		switch b.width {
		case width16:
			return int(at*blockLen + b.narrow[at].find(rest))
		case width32:
			return int(at*blockLen + b.middle[at].find(rest))
		}
	}
	return int(at*blockLen + b.at(at).find(rest))
}

// Take takes a ticket out of the box: it does what Draw and Set(index, Weight(index)-1) do, in one
// descent. Set(index, Weight(index)+1) undoes it.
func (s *Sampler) Take(src Source) (index int, ok bool) {
	if s.total == 0 {
		return 0, false
	}
	point := uniform(src, s.total)
	s.total--
	s.guide.changed()
	at, rest := s.tree.take(point)
	return int(at*blockLen + s.blocks.at(at).take(rest)), true
}

// Set changes the weight of the entry at index. It returns ErrIndex if there is no such entry, and
// ErrOverflow if the sum of the weights would exceed MaxTotal. With an error, nothing has changed.
func (s *Sampler) Set(index int, weight uint64) error {
	if uint(index) >= uint(s.length) {
		return s.outOfRange(index)
	}
	i, b := uint(index), &s.blocks
	// The usual change is one ticket less. Added as a constant, it saves the next draws from waiting, after
	// a cache miss, for the difference of two numbers.
	if b.moved == 0 && weight <= MaxTotal {
		var lowered bool
		switch b.width {
		case width16:
			lowered = b.narrow[i/blockLen].lower(i, weight)
		case width32:
			lowered = b.middle[i/blockLen].lower(i, weight)
		default:
			lowered = b.wide[i/blockLen].lower(i, weight)
		}
		if lowered {
			s.total--
			s.guide.changed()
			if b.count > 1 { // over a single block, the answers of the tree do not depend on its sum
				s.tree.add(i/blockLen, ^uint64(0))
			}
			return nil
		}
	}
	return s.set(i, weight)
}

// set does all of Set for an index in range.
func (s *Sampler) set(i uint, weight uint64) error {
	old := s.blocks.weight(i)
	if rest := s.total - old; weight > MaxTotal-rest {
		return overflow(int(i), weight, rest)
	}
	if weight == old {
		return nil
	}
	s.blocks.fit(i, weight).add(i, weight-old)
	s.total += weight - old
	s.guide.changed()
	s.tree.add(i/blockLen, weight-old)
	return nil
}

// uniform returns a value uniformly distributed in [0, n), n > 0, by multiply-shift with rejection.
func uniform(src Source, n uint64) uint64 {
	high, low := bits.Mul64(src.Uint64(), n)
	if low < n { // the exact bound, 2^64 mod n, is below n and costs a division: only now
		for least := -n % n; low < least; {
			high, low = bits.Mul64(src.Uint64(), n)
		}
	}
	return high
}
