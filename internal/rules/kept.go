package rules

import (
	"encoding/binary"
	"slices"
)

// What open holds keep from others is added up in records, and here, so that a draw reads a few numbers however many
// holds are open:
//
//	c n         how many records of holds there are, and how many of these holds are open
//	c c list    codes that are promised, of a list
//	c d pool    draws that are still to be made from a pool: their stock is reserved
//	c b pool    what was drawn from a pool: until it is given, or is back in it, a box is not finished
const recordKept = 'c'

// What of is kept.
const (
	keptHolds = 'n'
	keptCodes = 'c'
	keptDraws = 'd'
	keptTaken = 'b'
)

// kept is what open holds keep from others.
type kept struct {
	all, open uint64
	codes     []Stack // by number of the list
	draws     []Stack // by number of the pool
	taken     []Stack // by number of the pool
}

// loadKept reads what the state says.
func (s *Sight) loadKept() {
	s.kept = kept{}
	from := key{recordKept}
	for k, value := range s.state.Records(from, from.after()) {
		if k[1] == keptHolds {
			s.kept.all, s.kept.open = key(value).number(0), key(value).number(8)
			continue
		}
		list := s.kept.of(k[1])
		*list = append(*list, Stack{binary.BigEndian.Uint32(k[2:]), key(value).number(0)})
	}
}

func (k *kept) of(what byte) *[]Stack {
	switch what {
	case keptCodes:
		return &k.codes
	case keptDraws:
		return &k.draws
	}
	return &k.taken
}

// same reports whether two are the same, in any order.
func (k *kept) same(o *kept) bool {
	return k.all == o.all && k.open == o.open && sameStacks(k.codes, o.codes) && sameStacks(k.draws, o.draws) && sameStacks(k.taken, o.taken)
}

// keptOf returns how much is kept of a list or a pool.
func keptOf(all []Stack, of uint32) uint64 {
	if i := indexOf(all, of); i >= 0 {
		return all[i].Quantity
	}
	return 0
}

// counted writes how many holds there are after some more.
func (r holding) counted(all, open int64) {
	k := &r.kept
	k.all, k.open = k.all+uint64(all), k.open+uint64(open)
	if k.all == 0 {
		r.w.Drop(r.notes.newKey(recordKept).and(keptHolds))
		return
	}
	r.w.Put(r.notes.newKey(recordKept).and(keptHolds), key(nil).num(k.all).num(k.open))
}

// keeps writes that some more is kept from others.
func (r holding) keeps(what byte, of uint32, n uint64) {
	list := r.kept.of(what)
	i := indexOf(*list, of)
	if i < 0 {
		i = len(*list)
		*list = append(*list, Stack{Item: of})
	}
	(*list)[i].Quantity += n
	r.w.Put(r.notes.newKey(recordKept).and(what).short(of), key(nil).num((*list)[i].Quantity))
}

// frees writes that some of that is kept no more.
func (r holding) frees(what byte, of uint32, n uint64) {
	list := r.kept.of(what)
	i := indexOf(*list, of)
	if (*list)[i].Quantity -= n; (*list)[i].Quantity > 0 {
		r.w.Put(r.notes.newKey(recordKept).and(what).short(of), key(nil).num((*list)[i].Quantity))
		return
	}
	*list = slices.Delete(*list, i, i+1)
	r.w.Drop(r.notes.newKey(recordKept).and(what).short(of))
}
