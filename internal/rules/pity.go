package rules

import (
	"math/bits"

	"github.com/kuji-dev/kuji/catalog"
)

// A track counts a player's draws from a pool since the last one that hit a group of entries. From
// some draw on, it makes the group likelier (soft pity), and at last certain (hard pity). A guarantee
// makes its group certain in the last draws of a request. Pools that share a track share its counter.
//
// Tracks take their turn in the catalog's order, then guarantees. Each takes its chance from what
// those before it left over; a certain one takes all of that. So if five stars come before four, the
// draw that is certain to give four stars can still give five. If the draw hits a track before a
// certain one, and the two have entries in common, it hits both. A group that is out of stock is
// passed over. Its track keeps counting, so the group is certain as soon as it is back.
//
// The draw that a guarantee needs comes from its group. Tracks have their chances within the group. A
// certain track that has nothing in common with it takes its own draw at once. The guarantee gets an
// earlier or a later draw of the same set: see [Pool.Due].

// pity is the tracks and guarantees of a pool.
type pity struct {
	Tracks []Track
	Must   []Guarantee
	Whole  uint64 // 100 % in the tracks' rising chances; 0: none rises
	// Constant has the sums of the pool's classes, if no draw, player or time changes them.
	Constant []uint64
}

type Track struct {
	Counter uint32 // number of the counter: draws since the last hit
	Group   uint32 // its bit in class.groups
	Certain uint64 // the draw that is certain to hit; 0: none
	From    uint64 // the first draw with a higher chance; 0: none
	By      []uint64
	Table   bool
}

type Guarantee struct {
	Draws, AtLeast uint64
	group          uint32 // its bit in class.groups
}

// TrackName returns the name of a track's counter. Tracks of one name share the counter. A name that
// begins with a slash is not one of a pool's: ids have no slash.
func TrackName(pool string, t *catalog.Track) string {
	if t.Share != "" {
		return "/pity/" + t.Share
	}
	return pool + "/pity/" + t.Name
}

// tracks compiles a pool's tracks and guarantees.
func (d *definer) tracks(pt *Pool) {
	config := pt.Config
	for i := range config.Tracks {
		if r := &config.Tracks[i].Rising; r.From != 0 {
			pt.Whole = max(pt.Whole, 100*r.Scale)
		}
	}
	for i := range config.Tracks {
		c := &config.Tracks[i]
		t := Track{
			Counter: d.counters(TrackName(config.ID, c), 1), Group: 1 << i,
			Certain: uint64(c.Certain), From: uint64(c.Rising.From), Table: c.Rising.Table,
		}
		for _, by := range c.Rising.By {
			t.By = append(t.By, by*(pt.Whole/(100*c.Rising.Scale)))
		}
		pt.Tracks = append(pt.Tracks, t)
	}
	for i := range config.Guarantees {
		g := &config.Guarantees[i]
		pt.Must = append(pt.Must, Guarantee{uint64(g.Draws), uint64(g.AtLeast), 1 << (len(config.Tracks) + i)})
	}
}

// added returns by how much the chance of draw n has risen, in parts of Pool.Whole.
func (t *Track) added(n, whole uint64) uint64 {
	if t.From == 0 || n < t.From {
		return 0
	}
	if t.Table {
		return t.By[min(n-t.From, uint64(len(t.By)-1))]
	}
	return min(t.By[0]*min(n-t.From+1, whole), whole) // whole is at most 10^8; n has no bound
}

// next returns the number of the player's next draw, counted from the last hit.
func (t *Track) next(f Facts) uint64 { return f.Counter(t.Counter) + 1 }

// Changing returns the tracks of a pool up to the last one that changes the next draw's odds.
func (pt *pity) Changing(due uint32, f Facts) []Track {
	n := len(pt.Tracks)
	for n > 0 && due == 0 && !pt.Tracks[n-1].changes(pt.Tracks[n-1].next(f)) {
		n--
	}
	return pt.Tracks[:n]
}

// Parts returns how many parts of equal chance a draw has: Whole for each unit of weight.
func (pt *pity) Parts(sum uint64) uint64 { return sum * max(pt.Whole, 1) } // below 2^63: see catalog

// Divide divides a draw among the groups that tracks and a due guarantee make likelier, and all the
// rest. It calls each for one share after the other, until that returns false: with the groups that
// must all be hit, 0 for none; those that must not be hit; and how many parts the share has. due is
// the group of a guarantee, with something in stock, or 0. sums are those of the pool's classes.
//
//	hit = what the due guarantee is about, or everything
//	for each certain track, in the catalog's order:    hard pity, or a chance of 100 % by now
//	    if hit has something in common with its group, hit = that; else the track waits
//	for each track, in the catalog's order, up to the first certain one:
//	    mine = its group within the guarantee, narrowed by each certain track in the same way
//	    pass over a track that has a group of hit in common with its own, but not with mine
//	    with the track's chance: pick from mine, without the groups missed so far
//	    otherwise the group is missed
//	pick from hit, without the groups missed so far
//
// So a certain track is hit, unless a track before it is hit that has nothing in common with it. What
// is certain stays possible: while the missed groups leave nothing to pick from, the last of them is
// not missed after all.
//
// The chances are exact. Each group takes its weight × Whole, and its percentage points × the sum of
// all weights, from what groups before it left over. The entries of no such group share what remains,
// in proportion to their weights.
func (pt *Pool) Divide(tracks []Track, due uint32, sums []uint64, f Facts, each func(hit, missed uint32, part uint64) bool) {
	var c certainty
	missed, left := uint32(0), pt.Parts(pt.Among(sums, 0, 0))
	c.find(pt, tracks, due, sums, f)
	for i := range tracks {
		t := &tracks[i]
		if c.first == i {
			each(c.hit, pt.release(sums, c.hit, missed), left)
			return
		}
		hit, ok := c.narrow(pt, t.Group|due, sums)
		if !ok {
			continue
		}
		part, out := c.points[i], missed
		if weight := pt.Among(sums, hit, missed); weight > 0 {
			part += weight * max(pt.Whole, 1) // both are below 2^63
		} else {
			out = pt.release(sums, hit, missed)
		}
		part = min(part, left)
		if part > 0 && !each(hit, out, part) {
			return
		}
		left -= part
		missed |= t.Group
	}
	if due != 0 && pt.Among(sums, due, missed) == 0 {
		missed = 0 // all stock of the group is in groups that tracks have just missed
	}
	each(due, missed, left)
}

// certainty is what is certain in a draw: see [Pool.Divide].
type certainty struct {
	first  int                       // the first certain track; -1: none is
	hit    uint32                    // the groups that the draw hits, unless an earlier track takes it
	n      int                       // how many tracks are certain
	groups [catalog.MaxTracks]uint32 // theirs, in the order of the catalog
	points [catalog.MaxTracks]uint64 // by track: by how much its chance has risen, in parts
}

// find finds the tracks that are certain, if something is there that their group and the guarantee's
// have in common.
func (c *certainty) find(pt *Pool, tracks []Track, due uint32, sums []uint64, f Facts) {
	c.first, c.hit = -1, due
	for i := range tracks {
		t := &tracks[i]
		n := t.next(f)
		if !t.changes(n) {
			continue
		}
		weight := pt.Among(sums, t.Group|due, 0)
		if weight == 0 {
			continue
		}
		sum, whole := pt.Among(sums, 0, 0), max(pt.Whole, 1)
		c.points[i] = t.added(n, whole) * sum
		if !t.isCertain(n) && weight*whole+c.points[i] < pt.Parts(sum) {
			continue
		}
		if c.first < 0 {
			c.first = i
		}
		c.groups[c.n] = t.Group
		if c.n++; pt.Among(sums, c.hit|t.Group, 0) > 0 {
			c.hit |= t.Group
		}
	}
}

// narrow returns the groups that a draw hits together with a track, because they are certain. ok is
// false if the track must not be hit: what it has in common with one of them is not in another.
func (c *certainty) narrow(pt *Pool, own uint32, sums []uint64) (hit uint32, ok bool) {
	if pt.Among(sums, own, 0) == 0 {
		return 0, false
	}
	hit = own
	for _, group := range c.groups[:c.n] {
		switch {
		case pt.Among(sums, hit|group, 0) > 0:
			hit |= group
		case c.hit&group != 0 && pt.Among(sums, own|group, 0) > 0:
			return 0, false
		}
	}
	return hit, true
}

// release takes groups out of those missed, the last one first, until something is left to hit.
func (pt *Pool) release(sums []uint64, hit, missed uint32) uint32 {
	for missed != 0 && pt.Among(sums, hit, missed) == 0 {
		missed &^= 1 << (bits.Len32(missed) - 1)
	}
	return missed
}

// decided chooses a share of [Pool.Divide]. It returns the groups that must all be hit, 0 for none,
// and those that must not.
func (r *drawing) decided(pt *Pool, due uint32) (hit, missed uint32) {
	tracks, parts := pt.Changing(due, &r.Sight), pt.Parts(pt.Among(r.sums, 0, 0))
	if len(tracks) == 0 && due == 0 || parts == 0 {
		return 0, 0
	}
	point := uniform(r.src, parts)
	until := func(in, out uint32, part uint64) bool {
		hit, missed = in, out
		if point < part {
			return false
		}
		point -= part
		return true
	}
	if r.old {
		pt.divide5(tracks, due, r.sums, &r.Sight, until)
	} else {
		pt.Divide(tracks, due, r.sums, &r.Sight, until)
	}
	return hit, missed
}

// changes reports whether a track changes the odds of draw n.
func (t *Track) changes(n uint64) bool { return t.isCertain(n) || t.From != 0 && n >= t.From }

func (t *Track) isCertain(n uint64) bool { return t.Certain != 0 && n >= t.Certain }

// Count counts a draw that hit these groups in a pool's tracks. It calls set with each new count.
func (pt *pity) Count(f Facts, groups uint32, set func(counter uint32, n uint64)) {
	for i := range pt.Tracks {
		t := &pt.Tracks[i]
		if groups&t.Group != 0 {
			set(t.Counter, 0)
		} else {
			set(t.Counter, t.next(f))
		}
	}
}

func (r *drawing) counted(pt *Pool, groups uint32) {
	pt.Count(&r.Sight, groups, func(counter uint32, n uint64) {
		r.values.put(valueKey(r.player, counterKey|counter), n)
		if r.touch(counter) {
			r.tracked = append(r.tracked, counter)
		}
	})
}

// touch notes that the current draw has changed a counter, and reports whether this is the first
// time. One draw can change thousands, many times each.
func (r *drawing) touch(counter uint32) bool {
	if _, ok := r.touches.get(uint64(counter)); ok {
		return false
	}
	r.touches.put(uint64(counter), 1)
	return true
}

// Due returns the group of the guarantee that draw i of count must hit, 0 for none. hits counts the
// hits of each so far, and sums returns those of the pool's classes.
//
// A guarantee is due when no draw is left to spare: the hits missing in all sets that end by some draw
// need all draws until then. The one whose set ends first is served first. A draw in which a track
// will be certain, and which cannot serve a missing guarantee, is not to spare either. If only such
// draws make it tight, the track is served first in the draw in which it is certain. Catalogs leave
// draws for all of them. That may change when a group runs out of stock: then guarantees are served
// first, because tracks keep counting in the next request. A guarantee whose group is out of stock
// waits, and takes no draw from the others.
func (pt *Pool) Due(i, count uint64, hits *[catalog.MaxTracks]uint64, sums func() []uint64, f Facts) uint32 {
	var left, missing [catalog.MaxTracks]uint64
	open := uint64(0)
	for k := range pt.Must {
		g := &pt.Must[k]
		if i%g.Draws == 0 {
			hits[k] = 0
		}
		left[k], missing[k] = g.rest(i, count, hits[k])
		open += missing[k]
	}
	if open == 0 {
		return 0
	}
	now := sums()
	first := -1 // the guarantee whose set ends first
	for k := range pt.Must {
		if pt.Among(now, pt.Must[k].group, 0) == 0 {
			missing[k] = 0
		}
		if missing[k] > 0 && (first < 0 || left[k] < left[first]) {
			first = k
		}
	}
	pressed, soon := false, false
	for k := range pt.Must {
		sum := uint64(0)
		for o := range pt.Must {
			if left[o] <= left[k] {
				sum += missing[o]
			}
		}
		if missing[k] > 0 {
			pressed = pressed || sum >= left[k]
			soon = soon || sum+pt.setAside(left[k], &missing, now, f) >= left[k]
		}
	}
	if pressed || soon && !pt.certainApart(pt.Must[first].group, now, f) {
		return pt.Must[first].group
	}
	return 0
}

// setAside returns how many of the next draws can at most be taken by certain tracks that have
// nothing in common with some guarantee that misses hits.
func (pt *Pool) setAside(draws uint64, missing *[catalog.MaxTracks]uint64, sums []uint64, f Facts) (n uint64) {
	for i := range pt.Tracks {
		t := &pt.Tracks[i]
		if t.Certain == 0 || pt.Among(sums, t.Group, 0) == 0 {
			continue
		}
		for k := range pt.Must {
			if missing[k] > 0 && pt.Among(sums, t.Group|pt.Must[k].group, 0) == 0 {
				n += (draws - 1 + min(t.next(f), t.Certain)) / t.Certain
				break
			}
		}
	}
	return n
}

// certainApart reports whether a track that has nothing in common with a group is certain now.
func (pt *Pool) certainApart(group uint32, sums []uint64, f Facts) bool {
	for i := range pt.Tracks {
		t := &pt.Tracks[i]
		if t.isCertain(t.next(f)) && pt.Among(sums, t.Group, 0) > 0 && pt.Among(sums, t.Group|group, 0) == 0 {
			return true
		}
	}
	return false
}

// rest returns how many draws are left in the set of draw i of count, with that draw, and how many of
// them must still hit.
func (g *Guarantee) rest(i, count, hits uint64) (left, missing uint64) {
	at := i % g.Draws
	if i-at+g.Draws > count { // not a full set
		return 0, 0
	}
	return g.Draws - at, g.AtLeast - min(hits, g.AtLeast)
}

// Hit counts the guarantees whose groups a draw has hit.
func (pt *pity) Hit(groups uint32, hits *[catalog.MaxTracks]uint64) {
	for k := range pt.Must {
		if groups&pt.Must[k].group != 0 {
			hits[k]++
		}
	}
}
