package store

import (
	"cmp"
	"iter"
	"slices"
)

// rankKey is a player's place among others, ascending by a, b and player.
type rankKey struct {
	a, b   uint64
	player uint32
}

func (k rankKey) compare(o rankKey) int {
	return cmp.Or(cmp.Compare(k.a, o.a), cmp.Compare(k.b, o.b), cmp.Compare(k.player, o.player))
}

// ranks is a sorted list of keys.
type ranks struct{ keys []rankKey }

func newRanks() *ranks { return &ranks{} }

// ranksOf returns the ranks of sorted keys, which it keeps.
func ranksOf(sorted []rankKey) *ranks { return &ranks{sorted} }

func (r *ranks) len() uint64 { return uint64(len(r.keys)) }

func (r *ranks) insert(k rankKey) {
	i, _ := slices.BinarySearchFunc(r.keys, k, rankKey.compare)
	r.keys = slices.Insert(r.keys, i, k)
}

// remove removes a key and reports whether it was there.
func (r *ranks) remove(k rankKey) bool {
	i, ok := slices.BinarySearchFunc(r.keys, k, rankKey.compare)
	if ok {
		r.keys = slices.Delete(r.keys, i, i+1)
	}
	return ok
}

// before returns how many keys come before k.
func (r *ranks) before(k rankKey) uint64 {
	i, _ := slices.BinarySearchFunc(r.keys, k, rankKey.compare)
	return uint64(i)
}

// from yields at most so many keys, in order, from the one before which n stand.
func (r *ranks) from(n uint64, most int) iter.Seq[rankKey] {
	return func(yield func(rankKey) bool) {
		for _, k := range r.keys[min(n, r.len()):][:min(uint64(most), r.len()-min(n, r.len()))] {
			if !yield(k) {
				return
			}
		}
	}
}
