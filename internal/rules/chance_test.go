package rules_test

import (
	"math"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// chances returns the chance of each entry of a pool, from its weights for the player, what each
// track has counted and the guarantee that is due: the sentences of docs/reference/catalog.md once more.
func chances(p *catalog.Pool, weights []float64, counted []uint64, due *catalog.Guarantee) []float64 {
	out, all := make([]bool, len(weights)), make([]float64, len(weights))
	in := func(e int, of []string) bool {
		return slices.Contains(of, p.Entries[e].ID) || p.Entries[e].Group != "" && slices.Contains(of, p.Entries[e].Group)
	}
	sum := func(within func(e int) bool) (s float64) {
		for e, w := range weights {
			if within(e) {
				s += w
			}
		}
		return s
	}
	give := func(chance float64, within func(e int) bool) {
		total := sum(within)
		for e, w := range weights {
			if within(e) {
				all[e] += chance * w / total
			}
		}
	}
	total, left := sum(func(int) bool { return true }), 1.0
	last := -1
	for i := range p.Tracks {
		if t, n := &p.Tracks[i], counted[i]+1; due != nil || t.Certain > 0 && n >= uint64(t.Certain) || t.Rising.From > 0 && n >= uint64(t.Rising.From) {
			last = i
		}
	}
	// What a draw hits that a track takes, with all that is certain and has something in common with it.
	certain := func(i int) bool { return p.Tracks[i].Certain > 0 && counted[i]+1 >= uint64(p.Tracks[i].Certain) }
	hit := func(i int) (within func(e int) bool) {
		within = func(e int) bool { return in(e, p.Tracks[i].Of) && (due == nil || in(e, due.Of)) }
		for k := range p.Tracks {
			before := within
			if both := func(e int) bool { return before(e) && in(e, p.Tracks[k].Of) }; certain(k) && sum(both) > 0 {
				within = both
			}
		}
		return within
	}
	for i := range last + 1 {
		t, n := &p.Tracks[i], counted[i]+1
		whole := hit(i)
		if sum(whole) == 0 {
			continue
		}
		group := func(e int) bool { return whole(e) && !out[e] }
		chance := sum(group) / total
		if r := t.Rising; r.From > 0 && n >= uint64(r.From) {
			points := float64(r.By[0]) * float64(n-uint64(r.From)+1)
			if r.Table {
				points = float64(r.By[min(int(n)-int(r.From), len(r.By)-1)])
			}
			chance += min(1, points/float64(100*r.Scale))
		}
		if chance = min(chance, left); certain(i) {
			chance = left
		}
		for k := i - 1; sum(group) == 0 && k >= 0; k-- { // the last that missed is taken back
			group = func(e int) bool {
				return whole(e) && !slices.ContainsFunc(p.Tracks[:k], func(o catalog.Track) bool { return out[e] && in(e, o.Of) })
			}
		}
		if chance > 0 {
			give(chance, group)
		}
		left -= chance
		for e := range out {
			out[e] = out[e] || in(e, t.Of)
		}
	}
	rest := func(e int) bool { return !out[e] && (due == nil || in(e, due.Of)) }
	if due != nil && sum(rest) == 0 {
		rest = func(e int) bool { return in(e, due.Of) }
	}
	if left > 1e-12 {
		give(left, rest)
	}
	return all
}

// TestChances compares what pools with pity give with the exact chance at each draw: in sum, and
// apart by what the first track has counted.
func TestChances(t *testing.T) {
	const entries = `entries: [{id: s, weight: 2, group: rare}, {id: a, weight: 7, group: rare}, {id: b, weight: 20}, {id: c, weight: 71}]`
	for name, c := range map[string]struct {
		pool  string
		count int
	}{
		"group in group":      {`pity: {rare: {rising: {from: 3, by: 7.5}}, s: {rising: {from: 5, by: 2}, certain: 30}}, ` + entries, 100},
		"smaller group first": {`pity: {s: {rising: {from: 5, by: 2}, certain: 30}, rare: {rising: {from: 3, by: 7.5}, certain: 9}}, ` + entries, 100},
		"overlap":             {`pity: {x: {of: [s, b], rising: {from: 2, by: [3, 0, 50]}}, y: {of: [b, c], rising: {from: 1, by: 5}}, z: {of: [a, c], certain: 3}}, ` + entries, 100},
		"all but one":         {`pity: {x: {of: [s, a, b], certain: 2}, y: {of: [c], rising: {from: 1, by: 20}}}, ` + entries, 100},
		"guarantee":           {`guarantee: [{draws: 4, of: [rare]}], pity: {s: {rising: {from: 10, by: 6}, certain: 20}, b: {certain: 6}}, ` + entries, 4},
		"guaranteed track":    {`guarantee: [{draws: 5, of: [s]}], pity: {s: {rising: {from: 4, by: 1}}, b: {of: [b, s], certain: 6}}, ` + entries, 5},
		"conditions": {`pity: {rare: {rising: {from: 3, by: 7.5}, certain: 12}, s: {certain: 25}}, entries: [
			{id: s, weight: 2, group: rare, when: {lacks: [gem]}}, {id: a, weight: 7, group: rare, when: {pity: {rare: 2}}},
			{id: b, weight: 20, luck: {pity: s, weights: [{from: 4, weight: 60}]}}, {id: c, weight: 71}]`, 100},
		"raffle": {`mode: raffle, pity: {s: {rising: {from: 3, by: 5}}, rare: {certain: 7}}, entries: [
			{id: s, stock: 3900, group: rare}, {id: a, stock: 6500, group: rare}, {id: b, stock: 16000}, {id: c, stock: 36000}]`, 50},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 11)
			yaml := `{kuji: 1, items: {gem: {}}, pools: {p: {` + c.pool + `}}}`
			r.put(yaml)
			p := &parse(t, yaml).Pools[0]
			counted, left := make([]uint64, len(p.Tracks)), make([]float64, len(p.Entries))
			for e := range left {
				left[e] = float64(p.Entries[e].Stock.Count)
			}
			type bin struct{ hits, want, spread float64 }
			bins := map[[2]int]*bin{}
			draws := 0
			for draws < 60_000 {
				ev := r.want(draw("ann", "p", c.count), rules.OK, "")
				hits, i := 0, 0
				for _, line := range r.lines(&ev) {
					weights := slices.Clone(left)
					for e := range weights {
						if p.Mode == catalog.ModeWeighted {
							weights[e] = weightNow(p, &p.Entries[e], counted)
						}
					}
					var due *catalog.Guarantee
					if i++; len(p.Guarantees) > 0 && hits == 0 {
						set, rest := 0, c.count-i+1
						now := false // b is certain, which is in no group with the guarantee
						for k, t := range p.Tracks {
							if t.Name == "b" && len(t.Of) == 1 {
								set = (rest - 1 + int(min(counted[k]+1, uint64(t.Certain)))) / int(t.Certain)
								now = counted[k]+1 >= uint64(t.Certain)
							}
						}
						if rest == 1 || rest <= 1+set && !now {
							due = &p.Guarantees[0]
						}
					}
					took := slices.IndexFunc(p.Entries, func(e catalog.Entry) bool { return line == "take p/"+e.ID })
					at := 0
					if len(counted) > 0 {
						at = int(min(counted[0], 12))
					}
					for e, chance := range chances(p, weights, counted, due) {
						for _, k := range [][2]int{{e, -1}, {e, at}} {
							if bins[k] == nil {
								bins[k] = &bin{}
							}
							bins[k].want += chance
							bins[k].spread += chance * (1 - chance)
							if e == took {
								bins[k].hits++
							}
						}
						if e == took && chance == 0 {
							t.Fatalf("%s after %v", line, counted)
						}
					}
					left[took]--
					draws++
					member := func(of []string) bool {
						return slices.Contains(of, p.Entries[took].ID) || slices.Contains(of, p.Entries[took].Group)
					}
					for k := range counted {
						if counted[k]++; member(p.Tracks[k].Of) {
							counted[k] = 0
						}
					}
					if len(p.Guarantees) > 0 && member(p.Guarantees[0].Of) {
						hits++
					}
				}
			}
			for k, b := range bins {
				if math.Abs(b.hits-b.want) > 4.8*math.Sqrt(b.spread)+1 {
					t.Errorf("entry %s, after %d draws on the first track (-1: any): %v times, want about %.1f ± %.1f",
						p.Entries[k[0]].ID, k[1], b.hits, b.want, math.Sqrt(b.spread))
				}
			}
		})
	}
}

// weightNow returns what an entry weighs for a player who holds nothing.
func weightNow(p *catalog.Pool, e *catalog.Entry, counted []uint64) float64 {
	count := func(track string) uint64 {
		return counted[slices.IndexFunc(p.Tracks, func(t catalog.Track) bool { return t.Name == track })]
	}
	for _, k := range e.When.Tracks {
		if count(k.Track) < k.Draws {
			return 0
		}
	}
	w := e.Weight
	for _, s := range e.Luck.Steps {
		if count(e.Luck.Track) >= s.From {
			w = s.Weight
		}
	}
	return float64(w)
}
