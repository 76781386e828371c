package rules

import "fmt"

// A pick chooses one entry of one pool. The entries are divided into classes. Each class has a sampler
// for the entries that are there for everybody. Entries with a condition are weighed for the player at
// each pick. So a pick is one point among the sums of some classes. Most pools have one class, and a
// pick is one draw from its sampler.

// Class is the entries of a pool that are in the same groups of tracks and guarantees.
type Class struct {
	Groups      uint32   // one bit each
	members     []uint32 // entry numbers, ascending: the order in the sampler
	conditional []uint32 // the members with Entry.Conditional, ascending; they weigh nothing in the sampler
}

// classify divides a pool's entries into classes.
func (pt *Pool) classify() {
	at := map[uint32]uint32{}
	for i, groups := range pt.Config.Classes() {
		if _, ok := at[groups]; !ok {
			at[groups] = uint32(len(pt.Classes))
			pt.Classes = append(pt.Classes, Class{Groups: groups})
		}
		pt.Entries[pt.Order[i]].Class = at[groups]
	}
	pt.Collect = true
	for num := range pt.Entries {
		e := &pt.Entries[num]
		if !e.Present {
			continue
		}
		c := &pt.Classes[e.Class]
		e.slot = uint32(len(c.members))
		c.members = append(c.members, uint32(num))
		switch {
		case e.Conditional:
			c.conditional = append(c.conditional, uint32(num))
			pt.conditional = true
		case e.Weight > 0:
			pt.Collect = false
		}
	}
	pt.Collect = pt.Collect && pt.conditional
	pt.plain = len(pt.Classes) == 1 && !pt.conditional && len(pt.Tracks) == 0
}

// pick chooses an entry of one pool. due is the group of a guarantee that must be hit now, or 0.
func (r *drawing) pick(pt *Pool, due uint32) uint32 {
	if len(pt.Moments) > 0 {
		if entry, ok := r.momentDue(pt, due); ok {
			r.counted(pt, pt.Classes[pt.Entries[entry].Class].Groups)
			return entry
		}
	}
	o := &r.pools[pt.Num]
	if pt.plain {
		if n, ok := o.samplers[0].Draw(r.src); ok {
			return pt.Classes[0].members[n]
		}
		panic(ranOut(pt))
	}
	r.Sums(pt, true)
	if pt.Collect && pt.Among(r.sums, 0, 0) == 0 {
		// Draws of the same group gave the player what was missing when this one was checked.
		r.Sums(pt, false)
	}
	in, out := r.decided(pt, due)
	sum := pt.Among(r.sums, in, out)
	if sum == 0 {
		panic(ranOut(pt))
	}
	entry := r.at(pt, in, out, uniform(r.src, sum))
	r.counted(pt, pt.Classes[pt.Entries[entry].Class].Groups)
	return entry
}

func ranOut(pt *Pool) string {
	return fmt.Sprintf("rules: pool %q ran out in a draw that had passed its checks", pt.Config.ID)
}

// Among returns the sum of the classes that are in all of the groups in, and in none of the groups
// out. sums are those of all classes: see [Sight.Sums].
func (pt *Pool) Among(sums []uint64, in, out uint32) (sum uint64) {
	for i := range pt.Classes {
		if pt.Classes[i].Within(in, out) {
			sum += sums[i]
		}
	}
	return sum
}

func (c *Class) Within(in, out uint32) bool {
	return c.Groups&in == in && c.Groups&out == 0
}

// at returns the entry that covers a point below Among(in, out). The classes come in order, each
// with its sampler first, then its entries with conditions.
func (r *drawing) at(pt *Pool, in, out uint32, point uint64) uint32 {
	weights := r.weights
	for i := range pt.Classes {
		c := &pt.Classes[i]
		mine := weights[:len(c.conditional)]
		weights = weights[len(c.conditional):]
		if !c.Within(in, out) {
			continue
		}
		if sum := r.sums[i]; point >= sum {
			point -= sum
			continue
		}
		s := r.pools[pt.Num].samplers[i]
		if n, ok := s.At(point); ok {
			return c.members[n]
		}
		point -= s.Total()
		for k, w := range mine {
			if point < w {
				return c.conditional[k]
			}
			point -= w
		}
	}
	panic(ranOut(pt))
}
