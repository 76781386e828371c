package rules

import (
	"math/bits"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A track counts a player's draws from a pool since the last one that hit a group of entries. From
// some draw on, it makes the group likelier (soft pity), and at last certain (hard pity). A guarantee
// does the same for the last draws of one request. Pools that share a track share its counter.
//
// Tracks are asked in the catalog's order, and guarantees after them. Each takes its chance of what
// those before it left over; a certain one takes all of that. So where five stars come before four,
// the draw that is certain to give four stars can still give five. If a certain track has something in
// common with one that is likelier, the draw hits both. A group that is out of stock is passed over.
// Its track goes on counting, so the group is certain as soon as it is back.
//
// The draw that a guarantee needs comes from its group: there tracks have their chances. A certain
// track that has nothing in common with the group needs another draw, and gets it when it is certain.
// The guarantee gets an earlier or a later draw of the same set: see [Pool.Due].

// pity is the tracks and guarantees of a pool.
type pity struct {
	Tracks []Track
	Must   []Guarantee
	Whole  uint64 // 100 % in the tracks' rising chances; 0: none rises
	// Constant has the sums of the pool's classes if no draw, player or time changes them; else nil.
	Constant []uint64
}

// Track is a track of a pool.
type Track struct {
	Counter uint32 // number of the counter: draws since the last hit
	Group   uint32 // its bit in class.groups
	Certain uint64 // the draw that is certain to hit; 0: none
	From    uint64 // the first draw with a higher chance; 0: none
	By      []uint64
	Table   bool
}

// Guarantee is a guarantee of a pool.
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

// added returns what draw n has in addition to its chance, in parts of Pool.Whole.
func (t *Track) added(n, whole uint64) uint64 {
	if t.From == 0 || n < t.From {
		return 0
	}
	if t.Table {
		return t.By[min(n-t.From, uint64(len(t.By)-1))]
	}
	return min(t.By[0]*min(n-t.From+1, whole), whole) // whole is at most 10^8; n has no bound
}

// next returns which draw the next one is for the player, counted from the last hit.
func (t *Track) next(f Facts) uint64 { return f.Counter(t.Counter) + 1 }

// Changing returns the tracks of a pool up to the last one that changes anything for the next draw.
func (pt *pity) Changing(due uint32, f Facts) []Track {
	n := len(pt.Tracks)
	for n > 0 && due == 0 && !pt.Tracks[n-1].changes(pt.Tracks[n-1].next(f)) {
		n--
	}
	return pt.Tracks[:n]
}

// Parts returns into how many parts of equal chance a draw is divided: Whole for each unit of weight.
func (pt *pity) Parts(sum uint64) uint64 { return sum * max(pt.Whole, 1) } // below 2^63: see catalog

// Divide divides a draw among the groups that changing tracks and a due guarantee make likelier,
// and all the rest. It calls each for every part in turn, until that returns false, with the groups
// that must all be hit, 0 for none; those that must not; and how many of the parts that is. due is the group of a
// guarantee, with something in stock, or 0. sums are those of the pool's classes.
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
// So a certain track is hit, unless a track before it that has nothing in common with it is. A miss
// takes nothing from what is certain: if the groups missed so far leave nothing to pick from, the
// last of them is taken back, and the one before.
//
// The chances are exact. Each group takes its weight × whole, and in addition its percentage points
// × the sum of all weights, from what groups before it left over. Entries of no such group share
// what remains, in proportion to their weights.
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
		missed = 0 // what is in stock of the group is in groups that tracks have just missed
	}
	each(due, missed, left)
}

// certainty is what is certain in a draw: see [Pool.Divide].
type certainty struct {
	first  int                       // the first certain track; -1: none is
	hit    uint32                    // the groups that the draw hits, unless a track before takes it
	n      int                       // how many tracks are certain
	groups [catalog.MaxTracks]uint32 // of them, in the order of the catalog
	points [catalog.MaxTracks]uint64 // by track: what its chance has risen by, in parts
}

// find finds the tracks that are certain, if something is there of their groups and the guarantee's.
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

// narrow returns the groups that a draw which hits a track hits too, because they are certain. ok is
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

// release takes back the last of the groups that were missed, and those before it, until something is
// left to hit.
func (pt *Pool) release(sums []uint64, hit, missed uint32) uint32 {
	for missed != 0 && pt.Among(sums, hit, missed) == 0 {
		missed &^= 1 << (bits.Len32(missed) - 1)
	}
	return missed
}

// decided chooses how a draw goes: see [Pool.Divide]. It returns the groups that must all be
// hit, 0 for none, and those that must not.
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

// Count counts a draw in a pool's tracks. groups are those that it hit. It calls set for each track
// with what that has counted now.
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

// counted counts a draw in a pool's tracks. groups are those that it hit.
func (r *drawing) counted(pt *Pool, groups uint32) {
	pt.Count(&r.Sight, groups, func(counter uint32, n uint64) {
		r.values.put(valueKey(r.player, counterKey|counter), n)
		if r.touch(counter) {
			r.touched = append(r.touched, counter)
		}
	})
}

// touch notes that the current draw has changed a counter while it chose, and reports whether it had
// not before. One draw can change thousands, again and again.
func (r *drawing) touch(counter uint32) bool {
	if _, ok := r.touches.get(uint64(counter)); ok {
		return false
	}
	r.touches.put(uint64(counter), 1)
	return true
}

// writeTracks writes the tracks that the current draw has changed.
func (r *drawing) writeTracks() {
	for _, c := range r.touched {
		r.w.Change(store.Set, c, r.counter(r.player, c))
	}
	r.touched = r.touched[:0]
}

// Due returns the group of the guarantee that draw i of count must hit, if hits were hit so far; 0
// for none. sums returns those of the pool's classes.
//
// The guarantee whose set ends first goes first, as soon as what is missing in all sets that end by
// some draw leaves no draw to spare. A draw in which a track will be certain, and which cannot serve a
// missing guarantee, is not to spare either. If only such draws are short, the track goes first in the
// draw in which it is certain. Catalogs leave draws for all of them. If a group runs out of stock, that
// may change: then guarantees go first, because tracks count on in the next request. A guarantee whose
// group is out of stock waits, and takes no draw from the others.
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
	switch {
	case pressed, soon && !pt.certainApart(pt.Must[first].group, now, f):
		return pt.Must[first].group
	}
	return 0
}

// setAside returns how many of the next draws tracks can at most take because they are certain, and
// have nothing in common with some guarantee that misses hits.
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

// certainApart reports whether a track is certain now that has nothing in common with a group.
func (pt *Pool) certainApart(group uint32, sums []uint64, f Facts) bool {
	for i := range pt.Tracks {
		t := &pt.Tracks[i]
		if t.isCertain(t.next(f)) && pt.Among(sums, t.Group, 0) > 0 && pt.Among(sums, t.Group|group, 0) == 0 {
			return true
		}
	}
	return false
}

// rest returns how many draws are left of the set that draw i of count is in, that one included,
// and how many of them must still hit.
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
