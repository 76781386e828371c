package economy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// near is a source whose values stay close to the first one, so that it nearly
// always chooses the first, the last or the middle of anything. They do move: a
// value that is rejected for being biased must not come for ever.
type near struct{ value uint64 }

func (n *near) Uint64() uint64 {
	n.value += 1 << 40
	return n.value
}

// barren is a source that must not be asked.
type barren struct{ t *testing.T }

func (b barren) Uint64() uint64 {
	b.t.Fatal("a command that fails took randomness")
	return 0
}

// TestNoChoiceDecidesSuccess: over random catalogs and groups, whether a
// command succeeds, and why not, is the same for every stream of randomness;
// so that nobody can draw again for nothing until the outcome pleases.
func TestNoChoiceDecidesSuccess(t *testing.T) {
	statuses := map[economy.Status]int{}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		m := newMachine(t, seed)
		m.apply(nestedCatalog(r))
		want := newModel()
		want.c = m.s.Catalog().Catalog
		for n := range 60 {
			cmd := nestedCommand(r)
			if err := cmd.Check(); err != nil {
				t.Fatal(err)
			}
			first := *m.s.Decide(&cmd, m.now, &near{})
			for i, src := range []economy.Source{&near{math.MaxUint64 - 1<<50}, &near{1 << 63}, rand.NewPCG(seed, uint64(n)), rand.NewPCG(uint64(n), seed)} {
				ev := m.s.Decide(&cmd, m.now, src)
				if ev.Status != first.Status || ev.Subject != first.Subject || ev.Failed != first.Failed {
					t.Fatalf("seed %d: %+v ends %v, with source %d it ends %v", seed, cmd, first.Status, i, ev.Status)
				}
			}
			if first.Status != economy.OK {
				m.s.Decide(&cmd, m.now, barren{t})
			}
			statuses[first.Status]++
			src := []economy.Source{&near{}, &near{math.MaxUint64 - 1<<50}, m.src}[r.IntN(3)]
			want = judge(t, want, m.s, &cmd, m.commit(m.s.Decide(&cmd, m.now, src)), m.now)
			if err := m.s.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		want.compare(t, m.s)
		if m.replay().Hash() != m.s.Hash() {
			t.Fatalf("seed %d: replaying gives another state", seed)
		}
	}
	for _, st := range []economy.Status{economy.OK, economy.SoldOut, economy.InsufficientItems, economy.BalanceOverflow} {
		if statuses[st] < 25 {
			t.Errorf("only %d commands ended %v", statuses[st], st)
		}
	}
}

// nestedCatalog makes catalogs in which pools lead to each other and little is in stock.
func nestedCatalog(r *rand.Rand) string {
	const pools = 6
	var b strings.Builder
	b.WriteString("kuji: 1\nitems: {gem: {kind: currency}, sword: {}, hoard: {}}\nstart: {gem: 40, hoard: 9007199254740000}\npools:\n")
	for i := range pools {
		raffle := r.IntN(3) == 0
		fmt.Fprintf(&b, "  p%d:\n    max_count: 8\n", i)
		if r.IntN(2) == 0 {
			b.WriteString("    price: {gem: 1}\n")
		}
		if raffle {
			b.WriteString("    mode: raffle\n")
		}
		b.WriteString("    entries:\n")
		for e := range 1 + r.IntN(5) {
			stock := fmt.Sprint(r.IntN(6))
			if !raffle && r.IntN(5) == 0 {
				stock = "unlimited"
			}
			weight := r.IntN(4)
			if e == 0 {
				stock, weight = "3", 1
			}
			fmt.Fprintf(&b, "      - {id: e%d, stock: %s", e, stock)
			if !raffle {
				fmt.Fprintf(&b, ", weight: %d", weight)
			}
			switch {
			case i+1 < pools && r.IntN(2) == 0:
				fmt.Fprintf(&b, ", reward: {pool: p%d}}\n", i+1+r.IntN(pools-1-i))
			case r.IntN(8) == 0:
				b.WriteString(", reward: {items: {hoard: {min: 1, max: 200}}}}\n")
			default:
				b.WriteString(", reward: {items: {sword: 1, gem: {min: 1, max: 2}}}}\n")
			}
		}
	}
	return b.String()
}

func nestedCommand(r *rand.Rand) economy.Command {
	player := func() string { return fmt.Sprintf("p%d", r.IntN(3)) }
	stacks := func() []catalog.Stack {
		return []catalog.Stack{{Item: []string{"gem", "sword", "hoard"}[r.IntN(3)], Quantity: 1 + r.Uint64N(3)}}
	}
	body := func() economy.Command {
		switch r.IntN(7) {
		case 0:
			return economy.Command{Kind: economy.KindConsume, Player: player(), Items: stacks()}
		case 1:
			return economy.Command{Kind: economy.KindTransfer, Player: player(), To: "other", Items: stacks()}
		case 2:
			return economy.Command{Kind: economy.KindGrant, Player: player(), Items: stacks()}
		}
		return economy.Command{Kind: economy.KindDraw, Player: player(), Pool: fmt.Sprint("p", r.IntN(6)), Count: 1 + r.IntN(3)}
	}
	if r.IntN(2) == 0 {
		return body()
	}
	c := economy.Command{Kind: economy.KindAtomic}
	for range 1 + r.IntN(4) {
		c.Members = append(c.Members, body())
	}
	return c
}

// TestEmptyNestedPool: entries that lead to a pool with nothing left are out of
// stock, all the way up, until a catalog brings stock back.
func TestEmptyNestedPool(t *testing.T) {
	yaml := func(stock int) string {
		return fmt.Sprintf(`{kuji: 1, items: {prize: {}}, pools: {
			top: {max_count: 100, entries: [{id: up, weight: 99, reward: {pool: middle}}, {id: blank, weight: 1}]},
			middle: {max_count: 100, mode: raffle, entries: [{id: down, stock: 50, reward: {pool: bottom}}]},
			bottom: {max_count: 100, entries: [{id: prize, weight: 1, stock: %d, reward: {items: {prize: 1}}}]}}}`, stock)
	}
	m := newMachine(t, 1)
	m.apply(yaml(3))
	draw := func(pool string, n int) *economy.Event {
		return m.do(economy.Command{Kind: economy.KindDraw, Player: "ann", Pool: pool, Count: n})
	}
	wantTotals := func(top, middle, bottom uint64) {
		t.Helper()
		for id, want := range map[string]uint64{"top": top, "middle": middle, "bottom": bottom} {
			if v, _ := m.s.Pool(id); v.Total != want {
				t.Errorf("pool %s: total weight %d, want %d", id, v.Total, want)
			}
		}
		if err := m.s.Check(); err != nil {
			t.Error(err)
		}
	}
	if ev := draw("middle", 4); ev.Status != economy.SoldOut {
		t.Errorf("four draws of a box that leads to three prizes: %v", ev.Status)
	}
	ev := draw("top", 60) // of which three can be prizes
	if ev.Status != economy.OK {
		t.Fatalf("a pool with a blank that never runs out: %v", ev.Status)
	}
	for range 20 {
		draw("top", 1)
	}
	wantTotals(1, 0, 0)
	if ev := draw("middle", 1); ev.Status != economy.SoldOut || m.s.Subject(ev) != "middle" {
		t.Errorf("an empty pool: %v %q, want sold_out of the pool asked for", ev.Status, m.s.Subject(ev))
	}
	if v, _ := m.s.Pool("top"); v.Last != m.log[len(m.log)-2].at.Position {
		t.Errorf("top changed last at %d", v.Last)
	}
	m.apply(yaml(4))
	wantTotals(100, 47, 1)
	draw("bottom", 1) // straight from it: those above change with it
	wantTotals(1, 0, 0)
	for _, id := range []string{"top", "middle"} {
		if v, _ := m.s.Pool(id); v.Last != uint64(len(m.log)) {
			t.Errorf("pool %s changed last at %d, want %d", id, v.Last, len(m.log))
		}
	}
	if m.replay().Hash() != m.s.Hash() {
		t.Error("replaying gives another state")
	}
}

// TestGroupCannotRequireThePrize: what a group's draws give cannot be spent in it.
func TestGroupCannotRequireThePrize(t *testing.T) {
	m := newMachine(t, 1)
	m.apply(`{kuji: 1, items: {gem: {kind: currency}, prize: {}, ticket: {kind: currency}}, start: {gem: 10}, pools: {
		p: {price: {gem: 1}, entries: [{id: prize, weight: 1, reward: {items: {prize: 1, ticket: 5}}}]},
		q: {price: {ticket: 1}, entries: [{id: blank, weight: 1}]}}}`)
	draw := economy.Command{Kind: economy.KindDraw, Player: "ann", Pool: "p", Count: 1}
	prize := []catalog.Stack{{Item: "prize", Quantity: 1}}
	for name, after := range map[string]economy.Command{
		"consume":  {Kind: economy.KindConsume, Player: "ann", Items: prize},
		"transfer": {Kind: economy.KindTransfer, Player: "ann", To: "bob", Items: prize},
		"price":    {Kind: economy.KindDraw, Player: "ann", Pool: "q", Count: 1},
	} {
		ev := m.do(economy.Command{Kind: economy.KindAtomic, Members: []economy.Command{draw, after}})
		if ev.Status != economy.InsufficientItems || ev.Failed != 1 {
			t.Errorf("draw, then %s of what it gave: %v at member %d", name, ev.Status, ev.Failed)
		}
	}
	m.do(draw)
	if ev := m.do(economy.Command{Kind: economy.KindAtomic, Members: []economy.Command{draw, {Kind: economy.KindConsume, Player: "ann", Items: prize}}}); ev.Status != economy.OK {
		t.Errorf("with a prize from before: %v", ev.Status)
	}
}

// TestWorstOutcomeMustFit: a draw whose best prize would overflow a balance
// fails whatever it would have drawn, and one that fits does not.
func TestWorstOutcomeMustFit(t *testing.T) {
	m := newMachine(t, 1)
	m.apply(`{kuji: 1, items: {gem: {kind: currency}, other: {}}, pools: {
		p: {entries: [{id: a, weight: 1, reward: {items: {gem: {min: 1, max: 10}}}}, {id: b, weight: 1000, reward: {pool: q}}]},
		q: {entries: [{id: c, weight: 1, reward: {items: {gem: 20, other: 1}}}]}}}`)
	grant := func(n uint64) economy.Command {
		return economy.Command{Kind: economy.KindGrant, Player: "ann", Items: []catalog.Stack{{Item: "gem", Quantity: n}}}
	}
	draw := economy.Command{Kind: economy.KindDraw, Player: "ann", Pool: "p", Count: 2}
	m.do(grant(economy.MaxQuantity - 39))
	if ev := m.do(draw); ev.Status != economy.BalanceOverflow || m.s.Subject(ev) != "gem" {
		t.Errorf("39 below the bound, 40 possible: %v %q", ev.Status, m.s.Subject(ev))
	}
	if ev := m.do(economy.Command{Kind: economy.KindAtomic, Members: []economy.Command{
		{Kind: economy.KindConsume, Player: "ann", Items: []catalog.Stack{{Item: "gem", Quantity: 1}}}, draw, grant(1)}}); ev.Status != economy.BalanceOverflow || ev.Failed != 2 {
		t.Errorf("the draw fits, a grant after it does not: %v at member %d", ev.Status, ev.Failed)
	}
	m.do(economy.Command{Kind: economy.KindConsume, Player: "ann", Items: []catalog.Stack{{Item: "gem", Quantity: 1}}})
	if ev := m.do(draw); ev.Status != economy.OK {
		t.Errorf("40 below the bound, 40 possible: %v", ev.Status)
	}
}
