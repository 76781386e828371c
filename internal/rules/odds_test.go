package rules_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// odds returns the odds of a player's next draw.
func (r *realm) odds(pool, player string) view.Odds {
	r.t.Helper()
	s, err := odds.Stand(r.rules, pool, player, 1, r.now)
	if err != nil || s == nil {
		r.t.Fatalf("odds of pool %q: %v", pool, err)
	}
	o, err := s.Odds(waits)
	if err != nil {
		r.t.Fatalf("odds of pool %q: %v", pool, err)
	}
	return o
}

// sample makes the next draw n times, without applying it, and returns for each "pool/entry" how
// many draws took it, how often all of them did, and the sum of the squares; for each item, the
// same of what they gave.
func (r *realm) sample(player, pool string, n int) map[string][3]float64 {
	r.t.Helper()
	all := map[string][3]float64{}
	cmd, src := draw(player, pool, 1), rand.NewPCG(7, uint64(n))
	for range n {
		status, ev := r.decide(&cmd, src)
		if status != rules.OK {
			r.t.Fatalf("%+v ends %v", cmd, status)
		}
		var e store.Effect
		one, took := map[string]float64{}, false
		for _, line := range r.lines(&ev) {
			if what, ok := strings.CutPrefix(line, "take "); ok {
				one[what]++
			}
		}
		for effects := ev.Changes(); effects.Next(&e); {
			took = took || e.Verb == store.Take
			if (e.Verb == store.Gain || e.Verb == store.Beyond) && took { // before the first entry it is what newcomers get
				one[r.state.ItemID(e.N)] += float64(e.Value)
			}
		}
		for what, times := range one {
			sum := all[what]
			all[what] = [3]float64{sum[0] + 1, sum[1] + times, sum[2] + times*times}
		}
		r.rules.Reset(r.rules.Tables()) // the event is not applied
	}
	return all
}

func float(x *big.Rat) float64 { f, _ := x.Float64(); return f }

// wantSampled compares the odds of a player's next draw with what draws give: within five standard
// deviations.
func (r *realm) wantSampled(pool, player string, n int) view.Odds {
	r.t.Helper()
	o, seen := r.odds(pool, player), r.sample(player, pool, n)
	for _, e := range o.Outcomes {
		what := e.Pool + "/" + e.Entry
		got, chance, expected := seen[what], float(e.Chance), float(e.Expected)
		delete(seen, what)
		if chance > 1 || e.Chance.Cmp(e.Expected) > 0 {
			r.t.Fatalf("%s: a chance of %v, taken %v times", what, e.Chance, e.Expected)
		}
		if chance == 1 && got[0] != float64(n) || chance == 0 && got[0] != 0 {
			r.t.Errorf("%s: %v of %d draws take it, want a chance of exactly %v", what, got[0], n, chance)
		}
		if off := math.Abs(got[0] - float64(n)*chance); off > 5*math.Sqrt(float64(n)*chance*(1-chance))+1 {
			r.t.Errorf("%s: %v of %d draws take it, want a chance of %v", what, got[0], n, chance)
		}
		r.wantMean(what, got, n, expected)
	}
	for _, it := range o.Items {
		r.wantMean(it.Item, seen[it.Item], n, float(it.Expected))
		delete(seen, it.Item)
	}
	for what := range seen {
		r.t.Errorf("%s: taken, but not among the odds", what)
	}
	return o
}

// wantMean compares the mean of n draws with what is expected of one.
func (r *realm) wantMean(what string, got [3]float64, n int, expected float64) {
	r.t.Helper()
	mean := got[1] / float64(n)
	if off := math.Abs(mean - expected); off > 5*math.Sqrt(max(got[2]/float64(n)-mean*mean, expected)/float64(n))+1.5/float64(n) {
		r.t.Errorf("%s: %v a draw, want %v", what, mean, expected)
	}
}

const plain = `
kuji: 1
items: {a: {}, b: {}, c: {}, ticket: {}}
pools:
`

// withCounters is plain with counters.
func withCounters(counters string) string {
	return strings.Replace(plain, "pools:", "counters: {"+counters+"}\npools:", 1)
}

// TestOddsAreThoseOfDraws compares odds with what draws give, for every rule that a draw has.
func TestOddsAreThoseOfDraws(t *testing.T) {
	const splash = plain + `
  p:
    starts: 2026-07-01T00:00:00Z
    ends: 2026-07-11T00:00:00Z
`
	start := at(t, "2026-07-01 00:00:00.000 +0000")
	for _, c := range []struct {
		name, yaml, pool string
		before           []rules.Command
		from             int64 // when the commands before are made; 0: on a Monday
		later            int64 // after how many milliseconds the draw is made
		codes            map[string]int
	}{
		{name: "weights", pool: "p", yaml: plain + `
  p: {entries: [{id: x, weight: 0.6}, {id: y, weight: 5.1}, {id: z, weight: 94.3}, {id: none, weight: 0}]}`},
		{name: "a raffle with stock gone", pool: "p", before: []rules.Command{draw("ann", "p", 5)}, yaml: plain + `
  p: {mode: raffle, entries: [{id: x, stock: 2}, {id: y, stock: 4}, {id: z, stock: 6}]}`},
		{name: "tickets of one draw", pool: "p", yaml: plain + `
  p: {rolls: 1, entries: [{id: box, weight: 1, reward: [{pool: inner}]}, {id: no, weight: 2}]}
  inner: {rolls: {min: 1, max: 3}, entries: [{id: x, weight: 1, stock: 1}, {id: y, weight: 3, stock: 2}, {id: z, weight: 1}]}`},
		{name: "families", pool: "p", yaml: strings.Replace(plain, "a: {}, b: {}", "a: {family: ab}, b: {family: ab}", 1) + `
  p:
    rolls: 3
    entries:
      - {id: x, weight: 1, reward: {items: {a: 1}}}
      - {id: y, weight: 1, reward: {items: {b: {min: 1, max: 2}}}}
      - {id: z, weight: 1, luck: {item: ab, weights: [{from: 1, weight: 4}, {from: 3, weight: 9}]}}
      - {id: rich, weight: 5, when: {holds: {ab: 2}}, reward: {items: {a: 1}}}
      - {id: poor, weight: 5, when: {lacks: [ab]}}`},
		{name: "items of which a player can hold only so many", pool: "p", yaml: strings.Replace(plain, "a: {}, b: {}", "a: {most: 2, beyond: cut}, b: {most: 1, beyond: mail}", 1) + `
  p:
    rolls: 4
    entries:
      - {id: x, weight: 1, reward: {items: {a: {min: 1, max: 2}, b: 3}}}
      - {id: y, weight: 1, luck: {item: a, weights: [{from: 2, weight: 4}, {from: 3, weight: 90}]}}
      - {id: rich, weight: 50, when: {holds: {b: 2}}, reward: {items: {a: 1}}}`},
		{name: "rolls", pool: "p", yaml: plain + `
  p: {rolls: {min: 3, max: 5}, entries: [{id: x, weight: 1}, {id: y, weight: 2, reward: {pool: q, times: {min: 2, max: 3}}}]}
  q: {entries: [{id: x, weight: 1}, {id: y, weight: 4}]}`},
		{name: "distinct rolls", pool: "p", yaml: plain + `
  p:
    rolls: {min: 1, max: 3, distinct: true}
    entries: [{id: x, weight: 5}, {id: y, weight: 2, reward: {pool: q}}, {id: z, weight: 1}, {id: w, weight: 1, stock: 1}]
  q: {entries: [{id: x, weight: 1}, {id: y, weight: 4}]}`},
		{name: "a drop table", pool: "p", yaml: plain + `
  p:
    mode: each
    rolls: {min: 1, max: 2}
    entries:
      - {id: x, chance: 12.5, reward: {items: {a: 1}}}
      - {id: y, chance: 50, stock: 1, reward: {pool: q}}
      - {id: z, chance: 50, unique: true, reward: {items: {a: 1}}}
      - {id: w, chance: 25, when: {holds: {a: 1}}}
      - {id: sure, chance: 100}
  q: {entries: [{id: x, weight: 1}, {id: y, weight: 4}]}`},
		{name: "a drop that keeps another away", pool: "p", yaml: plain + `
  p: {mode: each, entries: [{id: x, chance: 50, reward: {items: {a: 1}}}, {id: y, chance: 50, when: {lacks: [a]}}]}`},
		{name: "a raffle below several rolls", pool: "p", yaml: plain + `
  p: {rolls: 3, entries: [{id: x, weight: 2, reward: {pool: q}}, {id: y, weight: 1}]}
  q: {mode: raffle, entries: [{id: x, stock: 4}, {id: y, stock: 5}]}`},
		{name: "a raffle below several rolls that runs out", pool: "p", yaml: plain + `
  p: {rolls: 3, entries: [{id: x, weight: 2, reward: {pool: q}}, {id: y, weight: 1}]}
  q: {mode: raffle, entries: [{id: x, stock: 1}, {id: y, stock: 1}]}`},
		{name: "soft pity", pool: "banner", before: []rules.Command{draw("ann", "banner", 60), draw("ann", "banner", 1)}, yaml: banner},
		{name: "pity of several tracks", pool: "p", before: []rules.Command{draw("ann", "p", 1), draw("ann", "p", 3)}, yaml: plain + `
  p:
    pity:
      one: {of: [x], rising: {from: 3, by: [1.5, 7, 20]}, certain: 50}
      two: {of: [x, g], rising: {from: 2, by: 10}}
      three: {of: [z], rising: {from: 4, by: 3}}
    entries:
      - {id: x, weight: 0.5}
      - {id: y, weight: 2, group: g}
      - {id: z, weight: 3}
      - {id: w, weight: 94.5}`},
		{name: "pity that changes within a draw", pool: "p", before: []rules.Command{draw("ann", "p", 1)}, yaml: plain + `
  p: {rolls: 3, pity: {x: {certain: 4, share: s}}, entries: [{id: x, weight: 1}, {id: y, weight: 3, reward: {pool: q}}]}
  q: {internal: true, pity: {x: {certain: 3, share: s}}, entries: [{id: x, weight: 1}, {id: y, weight: 3}]}`},
		{name: "a guarantee of one", pool: "p", yaml: plain + `
  p: {guarantee: [{draws: 1, of: [g]}], entries: [{id: x, weight: 1, group: g}, {id: y, weight: 3, group: g}, {id: z, weight: 9}]}`},
		{name: "conditions", pool: "p", before: []rules.Command{grant("ann", of("a", 3), of("c", 1))}, yaml: plain + `
  p:
    entries:
      - {id: rich, weight: 1, when: {holds: {a: 3}}}
      - {id: richer, weight: 1, when: {holds: {a: 4}}}
      - {id: poor, weight: 1, when: {lacks: [b]}}
      - {id: first, weight: 1, unique: true, reward: {items: {c: 1}}}
      - {id: rest, weight: 2}`},
		{name: "what is paid is not held", pool: "p", before: []rules.Command{grant("ann", of("ticket", 1))}, yaml: plain + `
  p: {price: {ticket: 1}, entries: [{id: x, weight: 1, when: {holds: {ticket: 1}}}, {id: y, weight: 1}]}`},
		{name: "no duplicates within a draw", pool: "p", yaml: plain + `
  p:
    rolls: 3
    entries:
      - {id: x, weight: 3, unique: true, reward: {items: {a: 1}}}
      - {id: y, weight: 2, unique: true, reward: {items: {b: {min: 1, max: 5}}}}
      - {id: z, weight: 1, when: {holds: {c: 3}}, reward: {items: {ticket: 1}}}
      - {id: w, weight: 1, reward: {items: {c: {min: 1, max: 1000}}}}`},
		{name: "collecting", pool: "p", before: []rules.Command{grant("ann", of("b", 1))}, yaml: plain + `
  p:
    entries:
      - {id: x, weight: 3, unique: true, reward: {items: {a: 1}}}
      - {id: y, weight: 2, unique: true, reward: {items: {b: 1}}}
      - {id: z, weight: 1, unique: true, reward: {items: {c: 1}}}`},
		{name: "an inner pool that runs out", pool: "p", before: []rules.Command{draw("ann", "q", 2)}, yaml: plain + `
  p: {entries: [{id: x, weight: 9, reward: {pool: q}}, {id: y, weight: 1, reward: {pool: r}}]}
  q: {mode: raffle, entries: [{id: only, stock: 2}]}
  r: {entries: [{id: x, weight: 1, stock: 1}, {id: y, weight: 2, reward: {pool: q}}]}`},
		{name: "luck", pool: "p", before: []rules.Command{grant("ann", of("a", 5)), draw("ann", "p", 2)}, yaml: plain + `
  p:
    rolls: 2
    pity: {x: {rising: {from: 3, by: 5}}}
    entries:
      - {id: x, weight: 1, luck: {item: a, weights: [{from: 3, weight: 2}, {from: 6, weight: 9}]}, reward: {items: {a: 1}}}
      - {id: y, weight: 0, luck: {pity: x, weights: [{from: 2, weight: 4}, {from: 3, weight: 1}]}}
      - {id: z, weight: 3}`},
		{name: "the last ticket", pool: "p", before: []rules.Command{draw("ann", "p", 5)}, yaml: plain + `
  p: {mode: raffle, last: [{pool: q, times: 2}, {items: {a: 1}}], entries: [{id: x, stock: 2}, {id: y, stock: 4}]}
  q: {entries: [{id: x, weight: 1}, {id: y, weight: 4}]}`},
		{name: "a box that is filled again", pool: "p", before: []rules.Command{draw("ann", "q", 1)}, yaml: plain + `
  p: {rolls: 4, entries: [{id: x, weight: 2, reward: {pool: q}}, {id: y, weight: 1}]}
  q: {mode: raffle, refill: 1, last: {pool: r}, entries: [{id: x, stock: 1}, {id: y, stock: 2}]}
  r: {entries: [{id: x, weight: 1}, {id: y, weight: 4}]}`},
		{name: "a guarantee with tracks", pool: "p", before: []rules.Command{draw("ann", "p", 2)}, yaml: plain + `
  p:
    guarantee: [{draws: 1, of: [g]}]
    pity: {x: {rising: {from: 2, by: 10}}, y: {rising: {from: 2, by: 3}}}
    entries: [{id: x, weight: 1, group: g}, {id: y, weight: 3}, {id: z, weight: 9, group: g}, {id: w, weight: 9}]`},
		{name: "a guarantee before a certain track, once nothing is in both groups", pool: "p", before: []rules.Command{draw("ann", "p", 3)}, yaml: plain + `
  p:
    guarantee: [{draws: 1, of: [x, both]}]
    pity: {z: {rising: {from: 1, by: 20}}, y: {of: [y, both], certain: 2}}
    entries: [{id: x, weight: 1}, {id: y, weight: 3}, {id: z, weight: 9}, {id: both, weight: 1, stock: 1}]`},
		{name: "two ways to one pool", pool: "p", yaml: plain + `
  p:
    entries:
      - {id: x, weight: 1, reward: [{pool: q}, {pool: r, times: 2}]}
      - {id: y, weight: 1, reward: {pool: r}}
  q: {entries: [{id: x, weight: 1, reward: {pool: r}}, {id: y, weight: 2}]}
  r: {entries: [{id: x, weight: 1}, {id: y, weight: 2}]}`},
		{name: "luck of what is held", pool: "p", before: []rules.Command{grant("ann", of("a", 3))}, yaml: plain + `
  p:
    entries:
      - {id: x, weight: 0, luck: {item: a, weights: [{from: 1, weight: 2}, {from: 3, weight: 5}]}}
      - {id: y, weight: 6, luck: {item: b, weights: [{from: 1, weight: 0}]}}
      - {id: z, weight: 1, stock: 4, luck: {item: a, weights: [{from: 4, weight: 9}]}}
      - {id: w, weight: 2}`},
		{name: "luck that changes within a draw", pool: "p", before: []rules.Command{draw("ann", "p", 1)}, yaml: plain + `
  p:
    rolls: {min: 2, max: 4}
    pity: {t: {of: [x]}}
    entries:
      - {id: x, weight: 1, luck: {pity: t, weights: [{from: 2, weight: 3}, {from: 5, weight: 90}]}}
      - {id: y, weight: 2, luck: {item: a, weights: [{from: 2, weight: 0}, {from: 9, weight: 7}]}, reward: {items: {a: {min: 1, max: 6}}}}
      - {id: z, weight: 2, reward: {pool: q}}
  q: {entries: [{id: x, weight: 1, luck: {item: a, weights: [{from: 1, weight: 4}]}}, {id: y, weight: 2}]}`},
		{name: "a guarantee and a certain track", pool: "p", before: []rules.Command{draw("ann", "p", 1), draw("ann", "p", 1)}, yaml: plain + `
  p:
    guarantee: [{draws: 1, of: [g, v]}]
    pity:
      one: {of: [x], rising: {from: 2, by: 20}}
      two: {of: [y, g], certain: 2}
      three: {of: [v], rising: {from: 1, by: 5}}
    entries:
      - {id: x, weight: 1, group: g}
      - {id: y, weight: 3}
      - {id: z, weight: 5, group: g}
      - {id: v, weight: 2}
      - {id: w, weight: 9}`},
		{name: "a guarantee of what a track has missed", pool: "p", yaml: plain + `
  p:
    guarantee: [{draws: 1, of: [x, y]}]
    pity: {one: {of: [x], rising: {from: 1, by: 20}}, two: {of: [y], rising: {from: 1, by: 5}}}
    entries: [{id: x, weight: 1}, {id: y, weight: 3}, {id: z, weight: 9}]`},
		{name: "the last ticket", pool: "p", before: []rules.Command{draw("ann", "p", 2)}, yaml: plain + `
  p: {mode: raffle, last: [{items: {a: 7}}, {pool: q}], entries: [{id: x, stock: 1, reward: {items: {b: 1}}}, {id: y, stock: 2}]}
  q: {entries: [{id: x, weight: 1}, {id: y, weight: 2, unique: true, reward: {items: {b: 1}}}]}`},
		{name: "a last ticket that leads to nothing", pool: "p", before: []rules.Command{draw("ann", "p", 2)}, yaml: plain + `
  p: {mode: raffle, last: {items: {a: 1}}, entries: [{id: x, stock: 1, reward: {items: {b: 1}}}, {id: y, stock: 9, reward: {pool: q}}]}
  q: {mode: raffle, entries: [{id: x, stock: 1}, {id: y, stock: 1}]}`},
		{name: "a box below several rolls", pool: "p", yaml: plain + `
  p: {rolls: 5, entries: [{id: x, weight: 3, reward: {pool: box}}, {id: y, weight: 1}]}
  box: {mode: raffle, refill: 1, last: {items: {a: 1}}, entries: [{id: x, stock: 1}, {id: y, stock: 1}]}`},
		{name: "a box filled within a draw", pool: "p", before: []rules.Command{draw("ann", "p", 1)}, yaml: plain + `
  p:
    mode: raffle
    rolls: {min: 3, max: 5}
    refill: 3
    last: {pool: q, times: 2}
    entries: [{id: x, stock: 1, reward: {items: {b: 1}}}, {id: y, stock: 2, reward: {pool: q}}]
  q: {entries: [{id: x, weight: 1, when: {lacks: [c]}, reward: {items: {c: 1}}}, {id: y, weight: 2, when: {holds: {b: 2}}}, {id: z, weight: 1}]}`},
		{name: "a box below that is filled", pool: "p", before: []rules.Command{draw("ann", "box", 2)}, yaml: plain + `
  p: {entries: [{id: x, weight: 1, reward: {pool: box}}, {id: y, weight: 1}]}
  box: {mode: raffle, refill: 1, last: {items: {a: {min: 1, max: 3}}}, entries: [{id: x, stock: 1}, {id: y, stock: 2}]}`},
		{name: "a box emptied for good within a draw", pool: "p", before: []rules.Command{draw("ann", "p", 1)}, yaml: plain + `
  p: {mode: raffle, rolls: 3, refill: 1, last: {items: {a: 1}}, entries: [{id: x, stock: 1}, {id: y, stock: 2}]}`},
		{name: "a budget that one entry exceeds", pool: "p", before: []rules.Command{draw("ann", "q", 1)}, yaml: plain + `
  p: {budget: {per: day, of: {a: 10}, share: s}, entries: [{id: x, weight: 1, reward: {items: {a: {min: 1, max: 6}}}}, {id: y, weight: 2, reward: {items: {a: 2}}}, {id: z, weight: 5}]}
  q: {budget: {per: day, of: {a: 10}, share: s}, entries: [{id: x, weight: 999999, reward: {items: {a: 5}}}, {id: y, weight: 0.000001}]}`},
		{name: "a budget of yesterday", pool: "p", before: []rules.Command{draw("ann", "p", 9)}, later: day, yaml: plain + `
  p: {budget: {per: day, of: {a: 10}}, entries: [{id: x, weight: 1, reward: {items: {a: 6}}}, {id: z, weight: 1}]}`},
		{name: "a budget used up within a draw", pool: "p", yaml: plain + `
  p:
    rolls: {min: 2, max: 4}
    budget: [{per: day, of: {a: 10, b: 1}}, {per: forever, of: {a: 12}}]
    entries: [{id: x, weight: 1, reward: {items: {a: {min: 1, max: 6}}}}, {id: y, weight: 2, reward: {items: {a: 2, b: 1}}}, {id: z, weight: 1}]`},
		{name: "a budget that a drop takes from the next one", pool: "p", yaml: plain + `
  p: {mode: each, budget: {per: hour, of: {a: 3}}, entries: [{id: x, chance: 50, reward: {items: {a: 2}}}, {id: y, chance: 50, reward: {items: {a: {min: 1, max: 2}}}}, {id: z, chance: 50, reward: {items: {a: 1}}}]}`},
		{name: "a budget through a pool below", pool: "p", yaml: plain + `
  p:
    rolls: 3
    budget: {per: day, of: {a: 5}}
    entries: [{id: x, weight: 2, reward: {pool: q}}, {id: y, weight: 1, reward: {items: {a: 1}}}, {id: z, weight: 1}]
  q: {entries: [{id: x, weight: 1, reward: {items: {a: 3}}}, {id: y, weight: 1, reward: {items: {b: 1}}}, {id: z, weight: 1, reward: {items: {a: 1}}}]}`},
		{name: "a budget that another way does not take from", pool: "p", yaml: plain + `
  p: {rolls: 3, entries: [{id: x, weight: 2, reward: {pool: q}}, {id: y, weight: 1, reward: [{pool: r}, {pool: q}]}]}
  q: {budget: {per: day, of: {a: 4}}, entries: [{id: x, weight: 1, reward: {pool: r}}, {id: y, weight: 1, reward: {items: {a: 1}}}, {id: z, weight: 1}]}
  r: {entries: [{id: x, weight: 1, reward: {items: {a: 2}}}, {id: y, weight: 3}]}`},
		{name: "a budget that two pools share, one below the other", pool: "p", yaml: plain + `
  p:
    rolls: 3
    budget: {per: day, of: {a: 6}, share: s}
    entries: [{id: x, weight: 3, reward: [{pool: q}, {items: {a: 1}}]}, {id: y, weight: 1}]
  q: {budget: {per: day, of: {a: 6}, share: s}, entries: [{id: x, weight: 1, reward: {items: {a: {min: 1, max: 3}}}}, {id: y, weight: 1}]}`},
		{name: "a budget, conditions and luck", pool: "p", yaml: plain + `
  p:
    rolls: 3
    budget: {per: day, of: {a: 5}}
    pity: {x: {rising: {from: 2, by: 10}}}
    entries: [{id: x, weight: 2, when: {lacks: [b]}, reward: {items: {a: 3, b: 1}}}, {id: y, weight: 1, luck: {item: a, weights: [{from: 2, weight: 9}]}, reward: {items: {a: {min: 1, max: 2}}}}, {id: z, weight: 1}]`},
		{name: "a guarantee without budget", pool: "p", before: []rules.Command{draw("ann", "p", 1)}, yaml: plain + `
  p: {guarantee: [{draws: 1, of: [x]}], budget: {per: day, of: {a: 5}}, entries: [{id: x, weight: 1, reward: {items: {a: 3}}}, {id: z, weight: 1}]}`},
		{name: "an even moment that has come", pool: "p", from: start + day, later: 13 * hour, yaml: splash + `    entries: [{id: x, moments: {count: 10, spread: even}}, {id: y, weight: 1}, {id: z, weight: 3}]`},
		{name: "an even moment that has not", pool: "p", from: start, later: 11 * hour, yaml: splash + `    entries: [{id: x, moments: {count: 10, spread: even}}, {id: y, weight: 1}, {id: z, weight: 3}]`},
		{name: "a moment that waits for a guarantee", pool: "p", from: start + day, later: 13 * hour, yaml: splash + `    guarantee: [{draws: 1, at_least: 1, of: [y]}]
    entries: [{id: x, moments: {count: 10, spread: even}}, {id: y, weight: 1}, {id: z, weight: 3}]`},
		{name: "even moments and rolls", pool: "p", from: start, later: 37 * hour, yaml: splash + `    rolls: 3
    entries: [{id: x, moments: {count: 10, spread: even}}, {id: y, weight: 1}, {id: z, weight: 3}]`},
		{name: "a moment of a slot", pool: "p", before: []rules.Command{draw("ann", "p", 1)}, from: start + day + 6*hour, later: 12 * hour, yaml: splash + `    entries: [{id: x, moments: {count: 10, spread: slots}}, {id: y, weight: 1}, {id: z, weight: 3}]`},
		{name: "random moments", pool: "p", before: []rules.Command{draw("ann", "p", 5)}, from: start + 5*day, later: 5 * hour, yaml: splash + `    pity: {y: {certain: 3}}
    entries: [{id: x, moments: {count: 20, spread: random, weights: {0-5: 3}}}, {id: y, weight: 1}, {id: z, weight: 3}]`},
		{name: "random moments and rolls", pool: "p", before: []rules.Command{draw("ann", "p", 9)}, from: start + 5*day, later: 7 * hour, yaml: splash + `    rolls: {min: 2, max: 3}
    entries: [{id: x, moments: {count: 30, spread: random}}, {id: y, weight: 1}, {id: z, weight: 3}]`},
		{name: "moments that pass, and others", pool: "p", before: []rules.Command{draw("ann", "p", 9)}, from: start + 5*day, later: 20 * hour, yaml: splash + `    rolls: 3
    entries: [{id: x, moments: {count: 30, spread: random, missed: pass}}, {id: v, moments: {count: 10, spread: slots}}, {id: y, weight: 1}, {id: z, weight: 3}]`},
		{name: "more moments than a draw can take", pool: "p", from: start + 9*day, yaml: splash + `    rolls: 3
    entries: [{id: x, moments: {count: 30, spread: slots}}, {id: y, weight: 1}]`},
		{name: "the last moment", pool: "p", before: []rules.Command{draw("ann", "p", 9)}, from: start + 9*day, later: 20 * hour, yaml: splash + `    rolls: 2
    entries: [{id: x, moments: {count: 2, spread: slots}}, {id: y, weight: 1}]`},
		{name: "moments below", pool: "up", from: start, later: 40 * hour, yaml: splash + `    entries: [{id: x, moments: {count: 20, spread: random}, reward: {items: {a: 1}}}, {id: y, weight: 1}]
  up: {rolls: 2, entries: [{id: x, weight: 1, reward: {pool: p, times: 2}}, {id: y, weight: 1, when: {holds: {a: 1}}}, {id: z, weight: 1}]}`},
		{name: "moments and a budget", pool: "p", from: start, later: 90 * hour, yaml: splash + `    rolls: 3
    budget: {per: day, of: {a: 5}}
    entries: [{id: x, moments: {count: 9, spread: random}, reward: {items: {a: 3}}}, {id: v, moments: {count: 9, spread: slots}}, {id: y, weight: 1, reward: {items: {a: 1}}}, {id: z, weight: 3}]`},
		{name: "luck by draws so far", pool: "p", before: []rules.Command{draw("ann", "p", 2)}, yaml: withCounters("c: {of: {draws: p}}") + `
  p: {entries: [{id: x, weight: 1, luck: {counter: c, weights: [{from: 2, weight: 5}, {from: 3, weight: 100}]}}, {id: y, weight: 1}]}`},
		{name: "entries that a draw takes are counted", pool: "p", yaml: withCounters("c: {of: {entries: [p/x, q/y]}}") + `
  p: {rolls: {min: 2, max: 4}, entries: [{id: x, weight: 2, luck: {counter: c, weights: [{from: 1, weight: 7}, {from: 3, weight: 0}]}}, {id: y, weight: 3, reward: {pool: q}}, {id: z, weight: 9, when: {counters: {c: 2}}}]}
  q: {entries: [{id: x, weight: 1}, {id: y, weight: 1, when: {counters: {c: {max: 1}}}}]}`},
		{name: "a sum of what a draw gains", pool: "p", before: []rules.Command{grant("ann", of("a", 2))}, yaml: withCounters("c: {of: {gains: [a, b]}}, d: {for: realm, of: {gains: b}}") + `
  p:
    rolls: 3
    entries:
      - {id: x, weight: 2, reward: {items: {a: {min: 1, max: 9}}}}
      - {id: y, weight: 2, when: {counters: {c: 6}}, reward: {items: {b: 1}}}
      - {id: z, weight: 1, luck: {counter: d, weights: [{from: 1, weight: 9}]}, reward: {items: {b: {min: 1, max: 2}}}}`},
		{name: "a sum with a cap", pool: "p", before: []rules.Command{grant("ann", of("a", 2))}, yaml: withCounters("c: {of: {gains: a, entries: p/y}, most: {per: day, count: 4}}") + `
  p:
    rolls: 3
    entries: [{id: x, weight: 1, reward: {items: {a: {min: 1, max: 5}}}}, {id: y, weight: 1}, {id: z, weight: 1, when: {counters: {c: {min: 3, max: 3}}}}, {id: w, weight: 9, when: {counters: {c: 5}}}]`},
		{name: "a cap that was reached yesterday", pool: "p", before: []rules.Command{grant("ann", of("a", 9))}, later: day, yaml: withCounters("c: {of: {gains: a}, most: {per: day, count: 2}}") + `
  p: {rolls: 3, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 1}, {id: z, weight: 1, when: {counters: {c: {min: 3}}}}, {id: w, weight: 9, when: {counters: {c: 4}}}]}`},
		{name: "the highest", pool: "p", before: []rules.Command{grant("ann", of("a", 2))}, yaml: withCounters("c: {of: {gains: a}, highest: true}") + `
  p: {rolls: 3, entries: [{id: x, weight: 2, reward: {items: {a: {min: 1, max: 6}}}}, {id: y, weight: 1, when: {counters: {c: {max: 3}}}}, {id: z, weight: 3, when: {counters: {c: 5}}}]}`},
		{name: "a streak", pool: "p", before: []rules.Command{draw("ann", "q", 1)}, later: day, yaml: withCounters("c: {of: {draws: q, entries: p/x}, streak: day}") + `
  p: {rolls: 3, entries: [{id: x, weight: 1}, {id: y, weight: 1}, {id: z, weight: 5, when: {counters: {c: 2}}}, {id: w, weight: 5, when: {counters: {c: 3}}}]}
  q: {entries: [{id: e, weight: 1}]}`},
		{name: "a streak that has counted today", pool: "p", before: []rules.Command{draw("ann", "q", 1)}, yaml: withCounters("c: {of: {draws: q, entries: p/x}, streak: day}") + `
  p: {rolls: 3, entries: [{id: x, weight: 1}, {id: y, weight: 1}, {id: z, weight: 5, when: {counters: {c: 2}}}]}
  q: {entries: [{id: e, weight: 1}]}`},
		{name: "different things", pool: "p", before: []rules.Command{grant("ann", of("a", 1), of("c", 1)), draw("ann", "q", 1)}, yaml: withCounters("c: {of: {gains: [a, b], entries: [p/x, p/y, q/e]}, distinct: 4}") + `
  p:
    rolls: 4
    entries: [{id: x, weight: 1}, {id: y, weight: 1, reward: {items: {a: 1}}}, {id: z, weight: 1, reward: {items: {b: 2}}}, {id: v, weight: 2, when: {counters: {c: 3}}}, {id: w, weight: 9, when: {counters: {c: {min: 4, max: 4}}}}]
  q: {entries: [{id: e, weight: 1}]}`},
		{name: "a counter of a day that has passed", pool: "p", before: []rules.Command{draw("ann", "p", 5)}, later: day, yaml: withCounters("c: {of: {entries: p/x}, per: day}") + `
  p: {rolls: 2, entries: [{id: x, weight: 1}, {id: y, weight: 3, when: {counters: {c: 1}}}]}`},
		{name: "a counter of a season that has passed", pool: "p", yaml: `
kuji: 1
items: {a: {}}
seasons: {spring: {starts: 2001-01-01T00:00, ends: 2002-01-01T00:00}}
counters: {c: {of: {entries: p/x}, per: {season: spring}}}
pools:
  p: {rolls: 2, entries: [{id: x, weight: 1}, {id: y, weight: 3, when: {counters: {c: 1}}}]}`},
		{name: "starting grants, the price, and counters", pool: "p", yaml: strings.Replace(withCounters("c: {of: {gains: [ticket, a]}}, d: {of: {spends: ticket}}"), "pools:", "start: {ticket: 3}\npools:", 1) + `
  p: {price: {ticket: 2}, rolls: 2, entries: [{id: x, weight: 1, when: {counters: {c: 4}}}, {id: y, weight: 3, when: {counters: {d: 2}}, reward: {items: {a: 1}}}, {id: z, weight: 1, when: {counters: {d: 3}}}, {id: w, weight: 1}]}`},
		{name: "codes used up within a draw", pool: "p", codes: map[string]int{"one": 2, "two": 1}, yaml: plain + `
  p: {rolls: 3, entries: [{id: x, weight: 2, reward: {code: one}}, {id: y, weight: 1, reward: {pool: q}}, {id: z, weight: 1}]}
  q: {mode: each, entries: [{id: x, chance: 50, reward: {code: one}}, {id: y, chance: 50, reward: [{code: one}, {code: two}]}]}`},
		{name: "a code that a drop takes from the next one", pool: "p", codes: map[string]int{"one": 1}, yaml: plain + `
  p: {mode: each, entries: [{id: x, chance: 50, reward: {code: one}}, {id: y, chance: 50, reward: {code: one}}]}`},
		{name: "no codes", pool: "p", yaml: plain + `
  p: {rolls: 3, entries: [{id: x, weight: 2, reward: {code: one}}, {id: z, weight: 1}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(c.yaml)
			r.now = max(r.now, c.from)
			for list, n := range c.codes {
				r.imports(list, n)
			}
			for _, cmd := range c.before {
				r.want(cmd, rules.OK, "")
			}
			r.now += c.later
			r.wantSampled(c.pool, "ann", 4000)
		})
	}
}

// TestOddsInNumbers checks odds that a formula or a count by hand gives.
func TestOddsInNumbers(t *testing.T) {
	for _, c := range []struct {
		yaml, pool, want string
	}{
		// 1 - (1 - 1/6)^4: at least one six in four throws of a die, de Méré's bet.
		{yaml: plain + `  p: {rolls: 4, entries: [{id: six, weight: 1}, {id: other, weight: 5}]}`, pool: "p",
			want: "p/six 671/1296 2/3, p/other 1295/1296 10/3"},
		// A card of 52.
		{yaml: plain + `  p: {entries: [{id: hand, weight: 1, reward: {pool: q}}]}
  q: {mode: raffle, rolls: 1, entries: [{id: ace, stock: 4}, {id: other, stock: 48}]}`, pool: "p",
			want: "p/hand 1 1, q/ace 1/13 1/13, q/other 12/13 12/13"},
		// Two rolls, each of which takes a ticket half of the time: 1/2 · 1/2 + 1/4 · (1 - 3/6 · 2/5).
		{yaml: plain + `  p: {rolls: 2, entries: [{id: x, weight: 1, reward: {pool: q}}, {id: y, weight: 1}]}
  q: {mode: raffle, entries: [{id: a, stock: 3}, {id: b, stock: 3}]}`, pool: "p",
			want: "p/x 3/4 1, p/y 3/4 1, q/a 9/20 1/2, q/b 9/20 1/2"},
		// Three different ones of four.
		{yaml: plain + `  p: {rolls: {min: 3, max: 3, distinct: true}, entries: [{id: x, weight: 1}, {id: y, weight: 1}, {id: z, weight: 1}, {id: w, weight: 1}]}`, pool: "p",
			want: "p/x 3/4 3/4, p/y 3/4 3/4, p/z 3/4 3/4, p/w 3/4 3/4"},
		// Tables of docs/reference/catalog.md: five tickets of a box, two gems of a chest.
		{yaml: plain + `  p: {mode: raffle, rolls: 5, entries: [{id: gold, stock: 1}, {id: other, stock: 9}]}`, pool: "p",
			want: "p/gold 1/2 1/2, p/other 1 9/2"},
		{yaml: plain + `  p: {entries: [{id: chest, weight: 1, reward: [{items: {a: {min: 2, max: 7}}}, {pool: q, times: 2}]}]}
  q: {entries: [{id: ruby, weight: 1}, {id: sapphire, weight: 2}]}`, pool: "p",
			want: "p/chest 1 1, q/ruby 5/9 2/3, q/sapphire 8/9 4/3"},
		// The published base rates of such a banner, and an even chance for the featured one.
		{yaml: banner, pool: "banner", want: "banner/five-star 3/500 3/500, banner/four-star 51/1000 51/1000, " +
			"banner/three-star 943/1000 943/1000, five-star/featured 3/1000 3/1000, five-star/lost 3/1000 3/1000"},
	} {
		r := newRealm(t, 1)
		r.put(c.yaml)
		var all []string
		for _, e := range r.odds(c.pool, "").Outcomes {
			all = append(all, fmt.Sprintf("%s/%s %s %s", e.Pool, e.Entry, e.Chance.RatString(), e.Expected.RatString()))
		}
		if got := strings.Join(all, ", "); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.yaml, got, c.want)
		}
	}
}

// TestTimedOddsInNumbers checks odds of moments and budgets that a formula gives.
func TestTimedOddsInNumbers(t *testing.T) {
	const pool = `{kuji: 1, items: {a: {}}, pools: {p: {starts: 2026-07-01T00:00:00Z, ends: 2026-07-11T00:00:00Z, %s}}}`
	start := at(t, "2026-07-01 00:00:00.000 +0000")
	for _, c := range []struct {
		pool   string
		before []int64 // draws at these times
		at     int64
		want   string
	}{
		// Nobody has drawn yet: of the slot of 24 hours, 18 are over.
		{"entries: [{id: x, moments: {count: 10, spread: slots}}, {id: y, weight: 1}, {id: z, weight: 3}]", nil, 18 * hour,
			"x 3/4 3/4, y 1/16 1/16, z 3/16 3/16"},
		// The first three of 10 moments in 10 slots have come for sure, and one of them is taken by a draw.
		{"entries: [{id: x, moments: {count: 10, spread: slots}}, {id: y, weight: 1}]", nil, 3 * day, "x 1 1, y 0 0"},
		{"rolls: 2, entries: [{id: x, moments: {count: 10, spread: slots, missed: pass}}, {id: y, weight: 1}]", nil, 3 * day, "x 1 1, y 1 1"},
		// What was decided by one draw is not decided again by the next, at the same time or later.
		{"entries: [{id: x, moments: {count: 10, spread: even}}, {id: y, weight: 1}]", []int64{3 * day, 3 * day, 3 * day}, 3*day + 12*hour, "x 0 0, y 1 1"},
		// Each of three lies with a chance of 1/2 in the first half: 1 - 1/2^3.
		{"entries: [{id: x, moments: {count: 3, spread: random}}, {id: y, weight: 1}]", nil, 5 * day, "x 7/8 7/8, y 1/8 1/8"},
		// Two rolls: the number of moments is binomial. 1 - 1/8, and 3/8 + 2 · 4/8.
		{"rolls: 2, entries: [{id: x, moments: {count: 3, spread: random}}, {id: y, weight: 1}]", nil, 5 * day, "x 7/8 11/8, y 1/2 5/8"},
		// Even moments are known, and how likely those are that come next does not matter.
		{"entries: [{id: x, moments: {count: 10, spread: even}}, {id: y, weight: 1}]", nil, 12 * hour, "x 0 0, y 1 1"},
		{"entries: [{id: x, moments: {count: 10, spread: even}}, {id: y, weight: 1}]", nil, 12*hour + 1, "x 1 1, y 0 0"},
		// The budget has room for one: 1 - (1/2)^2, once at most.
		{"rolls: 2, budget: {per: day, of: {a: 1}}, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 1}]", nil, 0,
			"x 3/4 3/4, y 1 5/4"},
	} {
		r := newRealm(t, 1)
		r.put(fmt.Sprintf(pool, c.pool))
		for _, when := range c.before {
			r.now = start + when
			r.want(draw("ann", "p", 1), rules.OK, "")
		}
		r.now = start + c.at
		var all []string
		for _, e := range r.odds("p", "").Outcomes {
			all = append(all, fmt.Sprintf("%s %s %s", e.Entry, e.Chance.RatString(), e.Expected.RatString()))
		}
		if got := strings.Join(all, ", "); got != c.want {
			t.Errorf("%s at %d\ngot  %s\nwant %s", c.pool, c.at, got, c.want)
		}
	}
}

// TestOddsOfFewerMoments: moments that are due are not given once a catalog has lowered their number.
func TestOddsOfFewerMoments(t *testing.T) {
	const pool = plain + `
  p: {starts: 2026-07-01T00:00:00Z, ends: 2026-07-11T00:00:00Z, max_count: 9, entries: [{id: x, moments: {count: %d, spread: even}}, {id: y, weight: 1}]}`
	r := newRealm(t, 1)
	r.put(fmt.Sprintf(pool, 10))
	r.now = at(t, "2026-07-06 00:00:00.000 +0000")
	r.want(draw("ann", "p", 3), rules.OK, "")
	for i, want := range []string{"0", "1"} {
		count := 3 + i
		r.put(fmt.Sprintf(pool, count))
		o := r.wantSampled("p", "ann", 10)
		if got := o.Outcomes[0].Chance.RatString(); got != want {
			t.Errorf("with %d moments, of which 3 are taken and 2 are due, the chance is %s, want %s", count, got, want)
		}
		if m := look.CampaignOf(r.rules, "p", r.now).Moments[0]; fmt.Sprint(m.Waiting) != want {
			t.Errorf("%+v, want %s to wait", m, want)
		}
	}
}

// TestCampaignDisclosed: what is published of a pool with moments and a budget is what holds between
// moments and while the budget lasts, in the long run too. A plan compares it.
func TestCampaignDisclosed(t *testing.T) {
	const before = plain + `
  p:
    starts: 2026-07-01T00:00:00Z
    ends: 2026-07-11T00:00:00Z
    rolls: 2
    pity: {x: {certain: 2}}
    budget: {per: day, of: {a: 2}}
    entries: [{id: w, moments: {count: 10, spread: random}, reward: {items: {b: 1}}}, {id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 1}]`
	all, err := odds.Disclose(parse(t, before), "", waits)
	if err != nil || all[0].Err != nil || all[0].Why != "" {
		t.Fatal(err, all)
	}
	var got []string
	for i, e := range all[0].Odds.Outcomes {
		got = append(got, fmt.Sprintf("%s %s %s %.9f", e.Entry, e.Chance.RatString(), e.Expected.RatString(), float(all[0].LongRun[i])))
	}
	// x in the first roll or, for certain, in the second; a hit follows it half of the time. In the long
	// run a roll hits 1/2 after a hit and always after a miss: a share of s hits, s = s/2 + (1-s).
	if want := "w 0 0 0.000000000, x 1 5/4 1.333333333, y 3/4 3/4 0.666666667"; strings.Join(got, ", ") != want {
		t.Errorf("disclosed %s, want %s", strings.Join(got, ", "), want)
	}
	r := newRealm(t, 1)
	r.put(before)
	if got, want := r.plan(strings.Replace(before, "x, weight: 1", "x, weight: 3", 1)), "odds of p/y 43.75% instead of 75%"; !strings.Contains(got, want) {
		t.Errorf("the plan says\n%s\nwant %s", got, want)
	}
}

// TestOddsOfAPlayer checks the status, the tracks and the items of odds, and that asking changes
// nothing.
func TestOddsOfAPlayer(t *testing.T) {
	r := newRealm(t, 1)
	r.put(strings.Replace(banner, "max_count: 1000", "max_count: 1000\n    price: {three: 1}\n    limits: [{per: forever, draws: 100}]", 1))
	hash := r.state.Hash()
	if o := r.odds("banner", ""); o.Status != rules.OK || o.Pity[0] != (view.TrackOdds{Pool: "banner", Track: "five-star", CertainIn: 90}) {
		t.Errorf("a newcomer: %v %q, %+v", o.Status, o.Subject, o.Pity)
	}
	if o := r.odds("banner", "ann"); o.Status != rules.InsufficientItems || o.Subject != "three" {
		t.Errorf("no money: %v %q", o.Status, o.Subject)
	}
	if o := r.odds("five-star", "ann"); o.Status != rules.Refused || o.Subject != "five-star" {
		t.Errorf("an internal pool: %v %q", o.Status, o.Subject)
	}
	if r.state.Hash() != hash {
		t.Error("asking for odds changed the state")
	}
	if s, err := odds.Stand(r.rules, "nothing", "", 1, r.now); s != nil || err != nil {
		t.Errorf("a pool that is not there: %v, %v", s, err)
	}
	r.want(grant("ann", of("three", 1000)), rules.OK, "")
	counts := map[string]uint64{}
	for counts["draws"] < 73 {
		r.takes(draw("ann", "banner", 1), 1, func(what string) {
			if strings.HasPrefix(what, "banner/") {
				counts["draws"]++
			}
			if what == "banner/five-star" {
				counts["since"] = 0
			} else if what != "banner/four-star" && what != "banner/three-star" {
				return
			} else {
				counts["since"]++
			}
		})
	}
	o := r.odds("banner", "ann")
	if got, want := o.Pity[0], (view.TrackOdds{Pool: "banner", Track: "five-star", Draws: counts["since"], CertainIn: 90 - counts["since"]}); got != want {
		t.Errorf("the track is at %+v, want %+v", got, want)
	}
	total := new(big.Rat)
	for _, it := range o.Items {
		total.Add(total, it.Expected)
	}
	if o.Status != rules.OK || total.Cmp(big.NewRat(1, 1)) != 0 {
		t.Errorf("%v, %v items a draw, want 1", o.Status, total)
	}
	r.want(draw("ann", "banner", 27), rules.OK, "")
	if o := r.odds("banner", "ann"); o.Status != rules.LimitReached || o.Subject != "banner" {
		t.Errorf("after the last draw: %v %q", o.Status, o.Subject)
	}
}

// TestOddsAreBounded checks that odds that would take too long are refused.
func TestOddsAreBounded(t *testing.T) {
	var many, tickets strings.Builder
	for i := range odds.MaxOutcomes + 1 {
		fmt.Fprintf(&many, "{id: e%d, weight: 1}, ", i)
	}
	for i := range 60 {
		fmt.Fprintf(&tickets, "{id: e%d, weight: %d, stock: 1}, ", i, i+1)
	}
	r := newRealm(t, 1)
	r.put(plain + "  many: {entries: [" + many.String() + "]}\n  ways: {rolls: 40, entries: [{id: more, weight: 1}, " + tickets.String() + "]}")
	var tooMuch *odds.OddsError
	if _, err := odds.Stand(r.rules, "many", "", 1, r.now); !errors.As(err, &tooMuch) {
		t.Errorf("many entries: %v", err)
	}
	s, err := odds.Stand(r.rules, "ways", "", 1, r.now)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	if _, err := s.Odds(func() bool { asked++; return true }); !errors.As(err, &tooMuch) || asked < 1000 {
		t.Errorf("many ways: %v; it asked %d times whether to go on, want 1000 times at least", err, asked)
	}
	asked = 0
	if _, err := s.Odds(func() bool { asked++; return asked < 3 }); !errors.As(err, &tooMuch) || asked != 3 {
		t.Errorf("many ways for somebody who leaves: %v; it asked %d times whether to go on, want 3", err, asked)
	}
}

// waits is somebody who waits for as long as it takes.
func waits() bool { return true }

// TestText checks how fractions are written.
func TestText(t *testing.T) {
	for _, c := range []struct {
		num, denom int64
		want       string
	}{
		{0, 1, "0"}, {1, 1, "1"}, {1, 3, "0.333333"}, {2, 3, "0.666667"}, {3, 500, "0.006"}, {1, 3_000_000, "0.000000333333"},
		{1234567, 1, "1234567"}, {12345678, 10, "1234568"}, {1, 8, "0.125"}, {1999999999, 2000000000, "1"},
	} {
		if got := odds.Text(big.NewRat(c.num, c.denom), 6); got != c.want {
			t.Errorf("%d/%d is written %q, want %q", c.num, c.denom, got, c.want)
		}
	}
}

// TestLongRun compares long-run rates with formulas, and with draws.
func TestLongRun(t *testing.T) {
	disclosed := func(yaml string) map[string]float64 {
		t.Helper()
		all, err := odds.Disclose(parse(t, yaml), "", waits)
		if err != nil || all[0].Err != nil {
			t.Fatal(err, all)
		}
		rates := map[string]float64{}
		for i, e := range all[0].Odds.Outcomes {
			if all[0].LongRun == nil {
				t.Fatalf("not computed: %s", all[0].Why)
			}
			rates[e.Pool+"/"+e.Entry] = float(all[0].LongRun[i])
		}
		return rates
	}
	rates := disclosed(banner)
	rising := disclosed(risingFour)
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"five stars", rates["banner/five-star"], consolidated(fiveStar)},
		{"four stars", rates["banner/four-star"], fourStars(fiveStar, 0)},
		{"four stars that rise", rising["banner/four-star"], fourStars(fiveStar, 0.51)},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	// Genshin Impact publishes 1.600 % "consolidated" for such a banner, and 0.600 % for a draw.
	if got := rates["banner/five-star"]; math.Abs(got-0.016) > 0.0001 {
		t.Errorf("five stars: %v, published is 0.016", got)
	}
	// With a guarantee after every loss, two of three hits are the featured one: 1 or 2 draws, 1.5 on average.
	if got := rates["five-star/featured"] / rates["banner/five-star"]; math.Abs(got-2.0/3) > 1e-12 {
		t.Errorf("featured: %v of the five stars, want 2/3", got)
	}
	// Hard pity alone: 1 - 0.99^10 hits within ten draws.
	want := 0.01 / (1 - math.Pow(0.99, 10))
	if got := disclosed(plain + `  p: {pity: {x: {certain: 10}}, entries: [{id: x, weight: 1}, {id: y, weight: 99}]}`)["p/x"]; math.Abs(got-want) > 1e-12 {
		t.Errorf("hard pity: %v, want %v", got, want)
	}
	// With luck 3 of 4 draws hit after a miss, else 1 of 2: a share of s draws hits, s = s/2 + (1-s)·3/4.
	lucky := disclosed(plain + `  p: {pity: {t: {of: [x]}}, entries: [{id: x, weight: 1, luck: {pity: t, weights: [{from: 1, weight: 3}]}}, {id: y, weight: 1}]}`)
	if got := lucky["p/x"]; math.Abs(got-0.6) > 1e-12 {
		t.Errorf("luck: %v, want 0.6", got)
	}
	// A track that changes nothing: every draw is as the first, with the stock as declared.
	stock := disclosed(plain + `  p: {rolls: 2, pity: {t: {of: [x]}}, entries: [{id: x, weight: 1}, {id: y, weight: 3, reward: {pool: box}}]}
  box: {mode: raffle, last: {items: {a: 1}}, entries: [{id: x, stock: 1}, {id: y, stock: 1}]}`)
	if got := stock["box/x"]; math.Abs(got-0.75) > 1e-12 {
		t.Errorf("declared stock: %v, want 0.75", got)
	}
	// Several rolls, a shared counter, and no certain draw: as draws give it.
	const several = plain + `
  p: {rolls: {min: 1, max: 3}, pity: {x: {rising: {from: 2, by: [5, 20]}, share: s}}, entries: [{id: x, weight: 1}, {id: y, weight: 3, reward: {pool: q}}]}
  q: {internal: true, pity: {x: {certain: 3, share: s}}, entries: [{id: x, weight: 1}, {id: y, weight: 9}]}`
	r, n := newRealm(t, 1), 20_000
	r.put(several)
	counts := r.takes(draw("ann", "p", 100), n/100, nil)
	for what, rate := range disclosed(several) {
		if got := float64(counts[what]) / float64(n); math.Abs(got-rate) > 0.03 {
			t.Errorf("%s: %v a draw, want %v", what, got, rate)
		}
	}
}

// TestOddsOfRandomRealms: odds say how a draw would end, add up, and have everything that draws take and give.
func TestOddsOfRandomRealms(t *testing.T) {
	drawable := 0
	for seed := range uint64(60) {
		pick := seeded(seed)
		r := newRealm(t, seed)
		r.put(randomCatalog(pick))
		for range 20 {
			r.do(randomCommand(pick))
			r.now += int64(pick("time", 3)) * 3_600_000
		}
		for i := range 6 {
			pool := fmt.Sprint("p", i)
			for _, player := range []string{"p1", "never seen"} {
				cmd := draw(player, pool, 1)
				status, ev := r.decide(&cmd, r.src)
				want := r.subject(&ev)
				if status == rules.Refused {
					want = pool
				}
				r.rules.Reset(r.rules.Tables()) // the event is not applied
				s, err := odds.Stand(r.rules, pool, player, 1, r.now)
				if s == nil {
					if status != rules.Refused || err != nil {
						t.Fatalf("seed %d, %+v ends %v, but there are no odds: %v", seed, cmd, status, err)
					}
					continue
				}
				o, err := s.Odds(waits)
				if err != nil || o.Status != status || o.Subject != want {
					t.Fatalf("seed %d, %+v ends %v %q, the odds say %v %q, %v", seed, cmd, status, want, o.Status, o.Subject, err)
				}
				if status != rules.OK {
					continue
				}
				drawable++
				sum, chance := new(big.Rat), map[string]*big.Rat{}
				for _, e := range o.Outcomes {
					if chance[e.Pool+"/"+e.Entry] = e.Chance; e.Pool == pool {
						sum.Add(sum, e.Expected)
					}
				}
				if sum.Cmp(big.NewRat(1, 1)) != 0 {
					t.Fatalf("seed %d, %+v: the odds add up to %v", seed, cmd, sum)
				}
				for _, it := range o.Items {
					chance[it.Item] = it.Expected
				}
				for what := range r.sample(player, pool, 20) {
					if chance[what] == nil || chance[what].Sign() == 0 {
						t.Fatalf("seed %d, %+v takes %s, with odds of %v", seed, cmd, what, chance[what])
					}
				}
			}
		}
	}
	if drawable < 50 {
		t.Errorf("only %d draws could be made", drawable)
	}
}

// TestOddsOfMixedRealms compares odds with what draws give where every rule meets every other.
func TestOddsOfMixedRealms(t *testing.T) {
	realms, compared, refused := uint64(20), 0, 0
	if testing.Short() {
		realms = 5
	}
	for seed := range realms {
		pick := seeded(seed)
		r := newRealm(t, seed)
		r.force(mixedCatalog(pick, 0))
		for range 30 {
			r.do(mixedCommand(pick))
		}
		for i := range mixedPools {
			pool, player := fmt.Sprint("p", i), fmt.Sprint("player-", i%3)
			s, err := odds.Stand(r.rules, pool, player, 1, r.now)
			if err != nil {
				t.Fatal(err)
			}
			o, err := s.Odds(waits)
			var tooMuch *odds.OddsError
			switch {
			case errors.As(err, &tooMuch):
				refused++
			case o.Status == rules.OK:
				compared++
				r.wantSampled(pool, player, 500)
			}
			if t.Failed() {
				t.Fatalf("seed %d, pool %s, %s", seed, pool, player)
			}
		}
	}
	if compared < 2*int(realms) || refused > compared/4 {
		t.Errorf("%d odds were compared with draws, %d refused", compared, refused)
	}
	t.Logf("%d compared, %d refused", compared, refused)
}

// imports adds n codes to a list.
func (r *realm) imports(list string, n int) {
	r.t.Helper()
	var codes []string
	for i := range n {
		codes = append(codes, fmt.Sprint(list, i))
	}
	raw, _, err := rules.Import(r.state, list, codes)
	if err != nil {
		r.t.Fatal(err)
	}
	r.apply(raw)
}
