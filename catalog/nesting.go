package catalog

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// rewards yields the rewards of a pool's entries, by index, and then the one of last.
func (p *Pool) rewards() iter.Seq2[int, *Reward] {
	return func(yield func(int, *Reward) bool) {
		for i := range p.Entries {
			if !yield(i, &p.Entries[i].Reward) {
				return
			}
		}
		yield(len(p.Entries), &p.Last)
	}
}

// nestingCheck is the part of a check that is about what pools lead to.
type nestingCheck struct {
	*check
	known map[int]reach // by pool
}

// run refuses cycles of pool rewards, and more than MaxPoolDepth pools in a row. It visits depth first, at
// most MaxPools deep. Once it is known, depth[i] is the longest row that begins with pool i.
func (k *nestingCheck) run() {
	const unseen, onPath = 0, -1
	depth := make([]int, len(k.c.Pools))
	var path []int
	cyclic := false
	var walk func(i int)
	walk = func(i int) {
		depth[i], path = onPath, append(path, i)
		longest := 1
		for j, w := range k.c.Pools[i].rewards() {
			for n := range w.Draws {
				next, ok := k.pools[w.Draws[n].Pool]
				if !ok {
					continue
				}
				if depth[next] == unseen {
					walk(next)
				}
				if depth[next] == onPath {
					k.faultAtDraw(i, j, n, "expected no cycle of pools, found %s", k.cycle(path, next))
					cyclic = true
					continue
				}
				if longest <= MaxPoolDepth && depth[next]+1 > MaxPoolDepth && depth[next] <= MaxPoolDepth {
					k.faultAtDraw(i, j, n, "expected at most %d pools on a chain of pool rewards, found %d from %s on", MaxPoolDepth, depth[next]+1, k.c.Pools[i].ID)
				}
				longest = max(longest, depth[next]+1)
			}
		}
		depth[i], path = longest, path[:len(path)-1]
	}
	for i := range k.c.Pools {
		if depth[i] == unseen {
			walk(i)
		}
	}
	if !cyclic {
		k.below()
	}
}

// faultAtDraw takes a fault of one of the draws in a reward, numbered as rewards does.
func (k *nestingCheck) faultAtDraw(pool, reward, draw int, format string, args ...any) {
	p := &k.c.Pools[pool]
	steps := []step{{key: p.ID}, {key: "last"}}
	if reward < len(p.Entries) {
		steps = []step{{key: p.ID}, {key: "entries"}, {index: reward, inList: true}, {key: "reward"}}
	}
	k.faultUnder(append(steps, step{key: "pool", index: draw}), format, args...)
}

// cycle writes the part of path from pool on as a → b → a.
func (k *nestingCheck) cycle(path []int, pool int) string {
	from := slices.Index(path, pool)
	var names []string
	for _, i := range append(slices.Clone(path[from:]), pool) {
		names = append(names, k.c.Pools[i].ID)
	}
	if len(names) > 12 {
		names = append(append(slices.Clone(names[:6]), "…"), names[len(names)-5:]...)
	}
	return strings.Join(names, " → ")
}

// reach is what one draw from a pool can come to, through all pools below.
type reach struct {
	conditional bool   // what it has depends on the player
	endless     uint32 // how many of its entries are there for every player and can never run out
	picks       uint64 // the most entries that it takes; one with several items counts as often
	asked       uint64 // the most conditions of entries that it asks, one by one
	gain        uint64 // no less than it can give of any one item
	adaptive    string // what in it adapts to the player; empty: nothing
}

// most bounds sums that only tell whether a limit is passed.
const most = 1 << 60

func plus(a, b uint64) uint64 { return min(min(a, most)+min(b, most), most) }

func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return most
	}
	return min(low, most)
}

// below checks how much one draw can take and give, that pools which several draws depend on at once
// cannot run out, and that memoryless pools are so all the way down.
func (k *nestingCheck) below() {
	for i := range k.c.Pools {
		p, r := &k.c.Pools[i], k.reachOf(i)
		k.enter(p.ID)
		switch {
		case r.picks > MaxPicks:
			k.fault("expected a draw that takes at most %d entries and items, through all pools, found up to %d", MaxPicks, r.picks)
		case !p.Internal && r.picks*uint64(p.MaxCount) > MaxRequestPicks:
			k.faultAt("max_count", "expected at most %d, as one draw can take %d entries and items and one request %d, found %d",
				MaxRequestPicks/r.picks, r.picks, MaxRequestPicks, p.MaxCount)
		}
		if !p.Internal && times(r.asked, uint64(p.MaxCount)) > MaxAsked {
			k.fault("expected at most %d questions in the conditions of entries for one request, found up to %d for each of %d draws", MaxAsked, r.asked, p.MaxCount)
		}
		if r.gain > MaxQuantity {
			k.fault("expected a draw that gives at most %d of an item, through all pools, found up to %d or more", uint64(MaxQuantity), r.gain)
		}
		if p.Memoryless && r.adaptive != "" {
			k.faultAt("memoryless", "expected nothing that adapts the odds to the player, found %s", r.adaptive)
		}
		if p.Rolls.Distinct && r.endless < p.Rolls.Max {
			k.faultAt("rolls", "expected at least %d entries without conditions and codes that cannot run out, as a draw takes so many distinct ones, found %d",
				p.Rolls.Max, r.endless)
		}
		k.leave()
	}
}

// reachOf works out reach of pool i. There are no cycles.
func (k *nestingCheck) reachOf(i int) reach {
	if r, ok := k.known[i]; ok {
		return r
	}
	p := &k.c.Pools[i]
	own, r := &poolCheck{k.check, p}, reach{}
	switch {
	case len(p.Tracks) > 0:
		r.adaptive = "pity in pool " + p.ID
	case len(p.Guarantees) > 0:
		r.adaptive = "a guarantee in pool " + p.ID
	}
	for j, w := range p.rewards() {
		picks, gain, endless := uint64(len(w.Items)), uint64(0), true
		for n := range w.Items {
			gain = max(gain, w.Items[n].Max)
		}
		isEntry := j < len(p.Entries)
		if isEntry {
			picks = max(picks, 1)
		}
		everybody := isEntry && own.everybody(&p.Entries[j])
		asked := uint64(0)
		for n := range w.Draws {
			in := &w.Draws[n]
			next, ok := k.pools[in.Pool]
			if !ok {
				continue
			}
			b := k.reachOf(next)
			endless = endless && (b.endless > 0 || k.c.Pools[next].Mode == ModeEach)
			picks = plus(picks, times(b.picks, uint64(in.Max)))
			gain = plus(gain, times(b.gain, uint64(in.Max)))
			asked = plus(asked, times(b.asked, uint64(in.Max)))
			r.adaptive = cmp.Or(r.adaptive, b.adaptive)
			// An entry whose only draw finds nothing is out of stock. That is for all players alike.
			alone := everybody && len(w.Draws) == 1 && in.Max == 1 && p.Mode != ModeEach && p.Refill == 0 && k.c.Pools[next].Rolls.Max == 1
			switch {
			case b.endless > 0 || k.c.Pools[next].Mode == ModeEach:
			case b.conditional:
				k.faultAtDraw(i, j, n, "expected a pool that has something for every player (an entry of unlimited stock without conditions and codes), found %s", in.Pool)
			case !alone:
				k.faultAtDraw(i, j, n, "expected a pool that cannot run out (with an entry of unlimited stock), as more than a single draw depends on it, found %s", in.Pool)
			}
		}
		switch {
		case !isEntry || p.Mode == ModeEach: // last comes with an entry
			r.picks, r.gain, r.asked = plus(r.picks, picks), plus(r.gain, gain), plus(r.asked, asked)
		default:
			r.picks, r.gain, r.asked = max(r.picks, picks), max(r.gain, gain), max(r.asked, asked)
		}
		if !isEntry {
			continue
		}
		e := &p.Entries[j]
		if !e.always() {
			r.adaptive = cmp.Or(r.adaptive, "a condition of entry "+p.ID+"/"+e.ID)
		}
		if !everybody {
			r.conditional = true
		} else if endless && e.Stock.Unlimited && e.Weight > 0 && p.Mode != ModeEach {
			r.endless++
		}
	}
	for j := range p.Entries {
		r.asked = plus(r.asked, k.questions(&p.Entries[j]))
	}
	rolls := uint64(p.Rolls.Max)
	r.picks, r.gain, r.asked = times(r.picks, rolls), times(r.gain, rolls), times(r.asked, rolls)
	k.known[i] = r
	return r
}
