package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// pityCheck is the part of a check that is about a pool's tracks and guarantees.
type pityCheck struct {
	*poolCheck
	odds    map[string]bool // the pool's entries and groups, and whether they can be drawn
	classes []uint32        // of its entries
	traits  traits
}

// traits says what entries a pool has in each class: see Classes. An entry may have several.
type traits map[uint32]uint8

const (
	isThere   = 1 << iota
	isStocked // at first
	isDrawable
	isReady // drawable, and stocked
	isLasting
)

// traitsOf returns the traits of a pool's entries. lasting: whether an entry is always there for everybody.
func (p *Pool) traitsOf(classes []uint32, lasting func(e *Entry) bool) traits {
	all := traits{}
	for n := range p.Entries {
		e, is := &p.Entries[n], uint8(isThere)
		stocked, drawable := e.Stock.Unlimited || e.Stock.Count > 0, p.heaviest(e) > 0
		if stocked {
			is |= isStocked
		}
		if drawable {
			is |= isDrawable
		}
		if stocked && drawable {
			is |= isReady
		}
		if drawable && e.Stock.Unlimited && len(e.Reward.Draws) == 0 && lasting(e) {
			is |= isLasting
		}
		all[classes[n]] |= is
	}
	return all
}

// some reports whether an entry with a trait is in all of these groups.
func (t traits) some(groups uint32, trait uint8) bool {
	for class, has := range t {
		if class&groups == groups && has&trait != 0 {
			return true
		}
	}
	return false
}

// run checks pity and guarantees.
func (k *pityCheck) run() {
	p := k.p
	if len(p.Tracks)+len(p.Guarantees) == 0 {
		return
	}
	if p.Mode == ModeEach {
		k.faultAt("pity", "expected no pity or guarantee in mode each: its entries do not share one choice")
		return
	}
	k.odds, k.classes = p.groupOdds(), p.Classes()
	k.traits = p.traitsOf(k.classes, k.everybody)
	k.at("pity", func() {
		for i := range p.Tracks {
			t := &p.Tracks[i]
			k.enter(t.Name)
			if len(t.Of) == 1 && t.Of[0] == t.Name { // the key of may be left out
				k.group(t.Of, true)
			} else {
				k.at("of", func() { k.group(t.Of, false) })
			}
			k.rising(t)
			if t.Share != "" && slices.ContainsFunc(p.Tracks[:i], func(o Track) bool { return o.Share == t.Share }) {
				k.faultAt("share", "expected another counter for each track of the pool")
			}
			k.leave()
		}
	})
	k.at("guarantee", func() { k.guarantees() })
	if len(k.traits) > maxClasses {
		k.faultAt("pity", "expected entries in at most %d different sets of groups, found %d", maxClasses, len(k.traits))
	}
	if k.fresh {
		k.at("pity", k.promises)
	}
}

// promises refuses tracks that are never certain, though the catalog says so.
func (k *pityCheck) promises() {
	p := k.p
	for i := range p.Tracks {
		t := &p.Tracks[i]
		if t.Certain == 0 || !k.traits.some(1<<i, isStocked) {
			continue
		}
		k.enter(t.Name)
		named := func(tracks []int, between string) string {
			var names []string
			for _, j := range tracks {
				names = append(names, p.Tracks[j].Name+k.lineOf(step{key: "pity"}, step{key: p.Tracks[j].Name}))
			}
			return strings.Join(names, between)
		}
		if before := k.alwaysBefore(i); len(before) > 0 {
			k.faultAt("certain", "expected a promise that can hold with pity before it: in each draw %s is certain first, and no entry is in both groups",
				named(before, " or "))
		} else if before := k.alwaysTogether(i); len(before) > 0 {
			k.faultAt("certain", "expected a promise that can hold with pity before it: in each draw %s are certain first, and no entry is in all of the groups",
				named(before, " and "))
		}
		if e := k.neverThere(i); e >= 0 {
			k.faultAt("certain", "expected a promise that can hold with pity as it counts: in draw %d nothing of the group can be drawn, see when and luck of entry %s%s",
				t.Certain, p.Entries[e].ID, k.lineOf(step{key: "entries"}, step{index: e, inList: true}))
		}
		k.leave()
	}
}

// alwaysBefore returns tracks before another, of which one is certain in each draw in which that is: n
// that are each certain within n draws, no two with an entry in common.
func (k *pityCheck) alwaysBefore(track int) []int {
	p := k.p
	apart := func(i, j int) bool { return !k.traits.some(1<<i|1<<j, isThere) }
	for most := 1; most <= track && most <= int(p.Tracks[track].Certain); most++ {
		var all []int
		for j := range track {
			together := func(o int) bool { return !apart(j, o) }
			if c := p.Tracks[j].sure(); c != 0 && c <= most && !together(track) && k.traits.some(1<<j, isLasting) && !slices.ContainsFunc(all, together) {
				all = append(all, j)
			}
		}
		if len(all) >= most {
			return all
		}
	}
	return nil
}

// alwaysTogether returns tracks before another that are certain in each draw, if no entry that is in all of
// their groups is in its group.
func (k *pityCheck) alwaysTogether(track int) (all []int) {
	hit := uint32(0)
	for j := range track {
		both := hit | 1<<j
		switch {
		case k.p.Tracks[j].sure() != 1 || !k.traits.some(both, isThere):
		case !k.traits.some(both, isLasting):
			return nil // what they have in common can change
		default:
			hit, all = both, append(all, j)
		}
	}
	if len(all) < 2 || k.traits.some(hit|1<<track, isThere) {
		return nil
	}
	return all
}

// sure returns the first draw, counted from the last hit, that is certain to hit whatever the group weighs:
// by certain, or because the chance has risen by 100 points; 0: none is.
func (t *Track) sure() int {
	sure, r := int(t.Certain), &t.Rising
	if r.From == 0 || len(r.By) == 0 { // none, or malformed
		return sure
	}
	full, rises := 100*r.Scale, 0
	if r.Table {
		for rises = len(r.By) + 1; rises > 1 && r.By[rises-2] >= full; rises-- { // it could fall again
		}
		if rises > len(r.By) {
			return sure
		}
	} else if by := r.By[0]; by > 0 {
		rises = int((full + by - 1) / by)
	}
	if n := int(r.From) + rises - 1; rises > 0 && (sure == 0 || n < sure) {
		return n
	}
	return sure
}

// neverThere returns a group's first entry if none of it can be drawn when its track is certain, or -1.
func (k *pityCheck) neverThere(track int) int {
	p := k.p
	t, first := &p.Tracks[track], -1
	counted := uint64(t.Certain) - 1
	for n := range p.Entries {
		e := &p.Entries[n]
		if k.classes[n]&(1<<track) == 0 || p.heaviest(e) == 0 || !e.Stock.Unlimited && e.Stock.Count == 0 {
			continue
		}
		weight := e.Weight
		if p.Mode == ModeRaffle || e.Luck.Track != t.Name {
			weight = p.heaviest(e)
		} else {
			for _, s := range e.Luck.Steps {
				if counted >= s.From {
					weight = s.Weight
				}
			}
		}
		late := slices.ContainsFunc(e.When.Tracks, func(r Reached) bool { return r.Track == t.Name && r.Draws > counted })
		owned := e.Unique && slices.ContainsFunc(e.When.Holds, func(s Stack) bool {
			return slices.ContainsFunc(e.Reward.Items, func(q Quantity) bool { return q.Item == s.Item })
		})
		if weight > 0 && !late && !owned {
			return -1
		}
		if first < 0 {
			first = n
		}
	}
	return first
}

// FirstOf returns the names of the tracks before one, by its index, that have no entry in common with it:
// if one of them hits, it waits, even if it is certain.
func (p *Pool) FirstOf(track int) (names []string) {
	all := p.traitsOf(p.Classes(), func(*Entry) bool { return false })
	for j := range p.Tracks[:track] {
		if all.some(1<<j, isDrawable) && !all.some(1<<j|1<<track, isDrawable) {
			names = append(names, p.Tracks[j].Name)
		}
	}
	return names
}

// lineOf says in which line of the source something of the pool is, if there is a source.
func (k *report) lineOf(at ...step) string {
	if k.line == nil {
		return ""
	}
	return fmt.Sprintf(" (line %d)", k.line(append(slices.Clone(k.here[:2]), at...))) // pools, and the pool
}

// unread reports whether something in the pool could not be read, so that what follows from it is no mistake.
func (k *report) unread(at ...step) bool {
	return k.unreadable != nil && k.unreadable(append(slices.Clone(k.here[:2]), at...))
}

// groupOdds returns the entries and groups of p, and whether they can be drawn.
func (p *Pool) groupOdds() map[string]bool {
	odds := map[string]bool{}
	for i := range p.Entries {
		e := &p.Entries[i]
		drawable := p.Mode == ModeRaffle || p.heaviest(e) > 0
		odds[e.ID] = odds[e.ID] || drawable
		if e.Group != "" {
			odds[e.Group] = odds[e.Group] || drawable
		}
	}
	return odds
}

// group checks the names of a group. inherited: it has that of its track.
func (k *pityCheck) group(of []string, inherited bool) {
	drawable := len(of) == 0
	if drawable {
		k.fault("expected at least one entry or group, found none")
	}
	for i, name := range of {
		if !inherited {
			k.enterIndex(i)
		}
		_, known := k.odds[name]
		drawable = drawable || k.odds[name] || !known
		if !known {
			k.faultOnKey("there is no entry or group %s in the pool%s", quote(name), k.suggest(name, keys(k.odds)))
		}
		if !inherited {
			k.leave()
		}
	}
	if !drawable && !k.unread(step{key: "entries"}) {
		k.faultOnKey("expected an entry with a weight above 0 in the group, found none")
	}
}

func (k *pityCheck) guarantees() {
	p := k.p
	sum, fewest, most := uint64(0), uint32(MaxDrawCount), uint32(0)
	for i := range k.each(len(p.Guarantees)) {
		g := &p.Guarantees[i]
		k.fitsCount(g.Draws)
		if g.Draws > 0 {
			k.between("at_least", uint64(g.AtLeast), 1, uint64(g.Draws))
		}
		k.at("of", func() { k.group(g.Of, false) })
		sum, fewest, most = sum+uint64(g.AtLeast), min(fewest, g.Draws), max(most, g.Draws)
	}
	if len(p.Guarantees) > 1 && sum > uint64(fewest) {
		k.fault("expected guarantees that can hold together: at_least of all may add up to %d, the fewest draws, found %d", fewest, sum)
		return
	}
	apart := k.apart()
	for draws := uint64(fewest); draws <= uint64(min(most, MaxDrawCount)); draws++ {
		certain := uint64(0)
		for _, t := range apart {
			certain += (draws + uint64(t.Certain) - 1) / uint64(t.Certain)
		}
		if certain > 0 && sum+certain > draws {
			k.fault("expected guarantees that can hold with pity: of %d draws %d may have to hit the guarantees' groups, and %d those of tracks that are certain and have no entry in common with a guarantee",
				draws, sum, certain)
			return
		}
	}
}

// apart returns the tracks that can be certain where a guarantee needs another entry.
func (k *pityCheck) apart() (all []*Track) {
	p := k.p
	for i := range p.Tracks {
		t, group := &p.Tracks[i], uint32(1)<<i
		if t.Certain == 0 || !k.traits.some(group, isReady) {
			continue
		}
		for j := range p.Guarantees {
			if g := uint32(1) << (len(p.Tracks) + j); k.traits.some(g, isReady) && !k.traits.some(group|g, isReady) {
				all = append(all, t)
				break
			}
		}
	}
	return all
}

// rising checks that the chance of a track can rise as it says.
func (k *pityCheck) rising(t *Track) {
	r := &t.Rising
	k.enter("rising")
	defer k.leave()
	switch {
	case r.From == 0 && (len(r.By) > 0 || r.Table || r.Scale != 0):
		k.fault("expected from to be at least 1")
	case t.Certain != 0 && r.From > t.Certain:
		k.faultAt("from", "expected at most %d, when the group is certain, found %d", t.Certain, r.From)
	case powerUpTo(r.Scale, MaxChanceDigits):
		if sum, most := k.p.oddsSum(), MaxWeightSum/(100*r.Scale); sum > most {
			k.faultAt("by", "expected odds in the pool whose sum is at most %d, so that the chance can be raised exactly, found %d",
				most, sum)
		}
	}
}

// oddsSum returns the largest sum that a pool's weights or tickets can have, at most MaxWeightSum.
func (p *Pool) oddsSum() uint64 {
	sum := uint64(0)
	for i := range p.Entries {
		sum += min(p.heaviest(&p.Entries[i]), MaxWeightSum-sum)
	}
	return sum
}

// maxClasses is the most different sets of tracks and guarantees that entries of a pool can be in.
const maxClasses = 64

// Classes returns for each entry the tracks and guarantees whose groups it is in: a set of bits, the first
// track lowest, guarantees above the tracks.
func (p *Pool) Classes() []uint32 {
	bits := map[string]uint32{}
	n := 0
	mark := func(of []string) {
		for _, name := range of {
			bits[name] |= 1 << n
		}
		n++
	}
	for i := range p.Tracks {
		mark(p.Tracks[i].Of)
	}
	for i := range p.Guarantees {
		mark(p.Guarantees[i].Of)
	}
	all := make([]uint32, len(p.Entries))
	for i := range p.Entries {
		all[i] = bits[p.Entries[i].ID] | bits[p.Entries[i].Group] // "" names nothing
	}
	return all
}
