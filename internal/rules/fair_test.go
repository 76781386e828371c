package rules_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
)

// tape is a source that remembers.
type tape struct {
	src  rules.Source
	seen []uint64
}

func (s *tape) Uint64() uint64 {
	v := s.src.Uint64()
	s.seen = append(s.seen, v)
	return v
}

// reader reads a tape as docs/internals/formats/event.md says.
type reader struct {
	tape  []uint64
	short bool // it had to give more than there was
}

// below returns a uniform integer below n: the high half of the product of a value and n,
// unless the low half is below 2^64 mod n.
func (r *reader) below(n uint64) uint64 {
	two64 := new(big.Int).Lsh(big.NewInt(1), 64)
	for {
		if len(r.tape) == 0 || n == 0 {
			r.short = true
			return 0
		}
		v := r.tape[0]
		r.tape = r.tape[1:]
		product := new(big.Int).Mul(new(big.Int).SetUint64(v), new(big.Int).SetUint64(n))
		high, low := new(big.Int).DivMod(product, two64, new(big.Int))
		if low.Cmp(new(big.Int).Mod(two64, new(big.Int).SetUint64(n))) >= 0 {
			return high.Uint64()
		}
	}
}

// fromTop is a source whose first values are such that they are most often refused as biased.
type fromTop struct{ n uint64 }

func (s *fromTop) Uint64() uint64 {
	if s.n++; s.n%3 != 0 {
		return 0 // the low half is 0
	}
	return s.n * 0x9e3779b97f4a7c15
}

// TestChoicesAreAsDocumented computes every choice again from the values that a draw took.
func TestChoicesAreAsDocumented(t *testing.T) {
	const before = `{kuji: 1, items: {gold: {}, gem: {}}, pools: {
		top: {max_count: 50, entries: [{id: a, weight: 3, reward: {items: {gold: {min: 5, max: 11}}}}, {id: b, weight: 2.5, stock: 400, reward: {pool: box}},
			{id: c, weight: 0}, {id: d, weight: 4, stock: 30, reward: {items: {gold: 1, gem: {min: 1, max: 1000}}}}]},
		box: {mode: raffle, entries: [{id: x, stock: 70, reward: {items: {gem: {min: 1, max: 3}}}}, {id: y, stock: 200}]}}}`
	// Entries keep their numbers: not the order in the catalog counts.
	const after = `{kuji: 1, items: {gem: {}, gold: {}}, pools: {
		box: {mode: raffle, entries: [{id: z, stock: 40}, {id: y, stock: 250}, {id: x, stock: 90, reward: {items: {gem: {min: 1, max: 3}}}}]},
		top: {max_count: 50, entries: [{id: d, weight: 4, stock: 900, reward: {items: {gem: {min: 1, max: 1000}, gold: 1}}},
			{id: b, weight: 2.25, stock: 400, reward: {pool: box}}, {id: a, weight: 3, reward: {items: {gold: {min: 5, max: 11}}}}]}}}`
	for name, src := range map[string]rules.Source{"random": rand.NewPCG(4, 4), "refused": &fromTop{}} {
		r, m := newRealm(t, 1), newModel()
		for _, yaml := range []string{before, after} {
			r.put(yaml)
			m.put(parse(t, yaml))
			for n := range 40 {
				if r.src = src; m.step(r, draw("ann", "top", 1+n%7)) != rules.OK {
					t.Fatalf("%s: draw %d fails", name, n)
				}
			}
		}
		m.compare(r)
	}
}

// TestChiSquare compares how often entries and quantities are chosen with their odds. The
// bounds are those of a significance of 1e-6, the seed is fixed.
func TestChiSquare(t *testing.T) {
	r := newRealm(t, 20)
	r.put(`{kuji: 1, items: {gold: {}}, pools: {
		p: {max_count: 1000, entries: [{id: a, weight: 0.6}, {id: b, weight: 5.1}, {id: c, weight: 40}, {id: d, weight: 0}, {id: e, weight: 54.3, reward: {pool: q}}]},
		q: {max_count: 1000, entries: [{id: f, weight: 1}, {id: g, weight: 1, reward: {items: {gold: {min: 10, max: 19}}}}]}}}`)
	const draws = 200_000
	counts := map[string]int{}
	for range draws / 1000 {
		ev := r.want(draw("ann", "p", 1000), rules.OK, "")
		for f := (&effects{state: r.state, r: ev.Changes(), player: "ann"}); ; {
			e := f.next()
			if e == "end" {
				break
			}
			counts[e]++
		}
	}
	chi := func(name string, most float64, odds map[string]float64) {
		sum, total := 0.0, 0.0
		for e := range odds {
			total += float64(counts[e])
		}
		for e, p := range odds {
			d := float64(counts[e]) - p*total
			sum += d * d / (p * total)
		}
		t.Logf("%s: chi-square %.1f", name, sum)
		if sum > most || total < draws/4 {
			t.Errorf("%s: chi-square %.1f of %.0f, want at most %.1f", name, sum, total, most)
		}
	}
	if counts["take p/d"] != 0 {
		t.Errorf("an entry without odds was drawn %d times", counts["take p/d"])
	}
	chi("entries", 30.7, map[string]float64{"take p/a": 0.006, "take p/b": 0.051, "take p/c": 0.4, "take p/e": 0.543})
	chi("nested", 23.9, map[string]float64{"take q/f": 0.5, "take q/g": 0.5})
	tenth := map[string]float64{}
	for q := 10; q < 20; q++ {
		tenth[fmt.Sprint("gain ann gold ", q)] = 0.1
	}
	chi("quantities", 45.1, tenth)
}

// TestEmptyNestedPool: entries that lead to a pool with nothing left are out of stock, all
// the way up, until a catalog brings stock back.
func TestEmptyNestedPool(t *testing.T) {
	yaml := func(stock int) string {
		return fmt.Sprintf(`{kuji: 1, items: {prize: {}}, pools: {
			top: {max_count: 100, entries: [{id: up, weight: 99, reward: {pool: middle}}, {id: blank, weight: 1}]},
			middle: {max_count: 100, mode: raffle, entries: [{id: down, stock: 50, reward: {pool: bottom}}]},
			bottom: {max_count: 100, entries: [{id: prize, weight: 1, stock: %d, reward: {items: {prize: 1}}}]}}}`, stock)
	}
	r := newRealm(t, 1)
	r.put(yaml(3))
	wantTotals := func(top, middle, bottom uint64) {
		t.Helper()
		for id, want := range map[string]uint64{"top": top, "middle": middle, "bottom": bottom} {
			if v := r.pool(id); v.TotalWeight != want {
				t.Errorf("pool %s: total weight %d, want %d", id, v.TotalWeight, want)
			}
		}
	}
	r.want(draw("ann", "middle", 4), rules.SoldOut, "middle") // it leads to three prizes
	r.want(draw("ann", "top", 60), rules.OK, "")              // of which three can be prizes
	for range 20 {
		r.want(draw("ann", "top", 1), rules.OK, "")
	}
	wantTotals(1, 0, 0)
	r.want(draw("ann", "middle", 1), rules.SoldOut, "middle")
	r.put(yaml(4))
	wantTotals(100, 47, 1)
	r.want(draw("ann", "bottom", 1), rules.OK, "") // straight from it: those above change with it
	wantTotals(1, 0, 0)
	for _, id := range []string{"top", "middle"} {
		if v := r.pool(id); v.Position != uint64(len(r.log)) {
			t.Errorf("pool %s changed last at %d, want %d", id, v.Position, len(r.log))
		}
	}
	r.replay()
}

// TestGroupCannotRequireThePrize: what a group's draws give cannot be spent in it.
func TestGroupCannotRequireThePrize(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {kind: currency}, prize: {}, ticket: {}}, start: {gem: 10}, pools: {
		p: {price: {gem: 1}, entries: [{id: prize, weight: 1, reward: {items: {prize: 1, ticket: 5}}}]},
		q: {price: {ticket: 1}, entries: [{id: blank, weight: 1}]}}}`)
	first := draw("ann", "p", 1)
	for name, after := range map[string]rules.Command{
		"prize":  consume("ann", of("prize", 1)),
		"ticket": draw("ann", "q", 1),
	} {
		ev := r.want(group(first, after), rules.InsufficientItems, name)
		if r.failed(&ev) != 1 {
			t.Errorf("draw, then what needs its %s: member %d failed", name, r.failed(&ev))
		}
	}
	r.want(group(first, transfer("ann", "bob", of("prize", 1))), rules.InsufficientItems, "prize")
	r.want(first, rules.OK, "")
	r.want(group(first, consume("ann", of("prize", 1))), rules.OK, "")
	r.want(group(first, draw("ann", "q", 5)), rules.OK, "") // with the tickets of before
}

// TestWorstOutcomeMustFit: a draw whose best prize would overflow a balance fails whatever
// it would have drawn, and one that fits does not.
func TestWorstOutcomeMustFit(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {kind: currency}, other: {}}, pools: {
		p: {entries: [{id: a, weight: 1, reward: {items: {gem: {min: 1, max: 10}}}}, {id: b, weight: 1000, reward: {pool: q}}]},
		q: {entries: [{id: c, weight: 1, reward: {items: {gem: 20, other: 1}}}]}}}`)
	two := draw("ann", "p", 2)
	r.want(grant("ann", of("gem", rules.MaxQuantity-39)), rules.OK, "")
	r.want(two, rules.BalanceOverflow, "gem")
	ev := r.want(group(consume("ann", of("gem", 1)), two, grant("ann", of("gem", 1))), rules.BalanceOverflow, "gem")
	if r.failed(&ev) != 2 {
		t.Errorf("the draw fits, a grant after it does not: member %d failed", r.failed(&ev))
	}
	r.want(consume("ann", of("gem", 1)), rules.OK, "")
	r.want(two, rules.OK, "")
}

// TestOwnPriceIsNoRoom: a pool whose prize is its price frees room by what is paid, and no
// more; and the prizes of the first draw cannot pay for the second.
func TestOwnPriceIsNoRoom(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {key: {}}, pools: {p: {price: {key: 2}, entries: [{id: a, weight: 1, reward: {items: {key: 3}}}]}}}`)
	r.want(grant("ann", of("key", 5)), rules.OK, "")
	r.want(draw("ann", "p", 3), rules.InsufficientItems, "key")
	r.want(draw("ann", "p", 2), rules.OK, "")
	if n := r.holds("ann", "key"); n != 7 {
		t.Errorf("%d keys, want 5 - 4 + 6", n)
	}
	r.want(grant("ann", of("key", rules.MaxQuantity-8)), rules.OK, "")
	r.want(draw("ann", "p", 2), rules.BalanceOverflow, "key") // one too many
	r.want(draw("ann", "p", 1), rules.OK, "")                 // exactly as many as there can be
	if n := r.holds("ann", "key"); n != rules.MaxQuantity {
		t.Errorf("%d keys, want %d", n, uint64(rules.MaxQuantity))
	}
}
