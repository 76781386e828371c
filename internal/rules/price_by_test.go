package rules_test

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// paid returns what the last event has spent of each item, such as "gem 3, key 1".
func (r *realm) paid(ev *store.Event) (text string) {
	var e store.Effect
	for effects := ev.Changes(); effects.Next(&e); {
		if e.Verb == store.Spend {
			text += fmt.Sprintf(", %s %d", r.state.ItemID(e.N), e.Value)
		}
	}
	return text[min(2, len(text)):]
}

// TestPriceBy: each draw costs what it costs where the counter stands before it, in numbers.
func TestPriceBy(t *testing.T) {
	const yaml = `{kuji: 1, items: {gem: {}, key: {}, a: {}}, start: {gem: 1000, key: 9}, counters: {%s}, pools: {
		p: {price: {gem: 1}, price_by: {counter: c, prices: [{from: 1, price: {gem: 10}}, {from: 3, price: {gem: 100, key: 1}}]}%s, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}]},
		q: {entries: [{id: x, weight: 1}]}}}`
	for name, c := range map[string]struct {
		counters, more string
		counts         []int // draws of the requests
		want           string
	}{
		"draws":                        {"c: {of: {draws: p}}", "", []int{1, 1, 1, 1}, "gem 1; gem 10; gem 10; gem 100, key 1"},
		"draws in a request":           {"c: {of: {draws: p}}", "", []int{4, 2}, "gem 121, key 1; gem 200, key 2"},
		"free draws count":             {"c: {of: {draws: p}}", ", free: {per: forever, draws: 2}", []int{4, 1}, "gem 110, key 1; gem 100, key 1"},
		"all of them are free":         {"c: {of: {draws: p}}", ", free: {per: forever, draws: 9}", []int{4}, ""},
		"other draws":                  {"c: {of: {draws: q}}", "", []int{3, 1}, "gem 3; gem 1"},
		"both pools":                   {"c: {of: {draws: [p, q]}}", "", []int{2, 1}, "gem 11; gem 10"},
		"a cap":                        {"c: {of: {draws: p}, most: {per: day, count: 1}}", "", []int{4, 1}, "gem 31; gem 10"},
		"a streak":                     {"c: {of: {draws: p}, streak: day}", "", []int{3, 3}, "gem 21; gem 30"},
		"the highest":                  {"c: {of: {draws: p}, highest: true}", "", []int{3, 1}, "gem 21; gem 10"},
		"different pools":              {"c: {of: {draws: [p, q]}, distinct: 5}", "", []int{3, 1}, "gem 21; gem 10"},
		"what is drawn comes later":    {"c: {of: {gains: a}}", "", []int{3, 2}, "gem 3; gem 200, key 2"},
		"what is paid comes later too": {"c: {of: {spends: gem}}", "", []int{2, 1}, "gem 2; gem 10"},
		"of the realm":                 {"c: {for: realm, of: {draws: p}}", "", []int{2, 2}, "gem 11; gem 110, key 1"},
		"up to the most draws":         {"c: {of: {draws: p}}", ", max_count: 12", []int{12}, "gem 921, key 9"},
	} {
		r := newRealm(t, 1)
		r.put(fmt.Sprintf(yaml, c.counters, c.more))
		got := ""
		for _, n := range c.counts {
			ev := r.want(draw("ann", "p", n), rules.OK, "")
			got += "; " + r.paid(&ev)
		}
		if got[2:] != c.want {
			t.Errorf("%s: paid %q, want %q", name, got[2:], c.want)
		}
	}
}

// TestPriceByFails: too little, another item, and the members of a group before.
func TestPriceByFails(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}, key: {}, a: {}}, start: {gem: 12}, counters: {c: {of: {draws: [p, q]}}}, pools: {
		p: {price: {gem: 1}, price_by: {counter: c, prices: [{from: 1, price: {gem: 10}}, {from: 3, price: {key: 1}}]}, entries: [{id: x, weight: 1}]},
		q: {entries: [{id: x, weight: 1}]}}}`)
	r.want(draw("ann", "p", 3), rules.InsufficientItems, "gem")
	r.want(draw("ann", "p", 4), rules.InsufficientItems, "gem")
	pay := draw("ann", "p", 2)
	pay.Pay = "key"
	r.want(pay, rules.PriceNotOffered, "key")
	r.want(group(draw("ann", "q", 2), draw("ann", "p", 2)), rules.InsufficientItems, "key")
	r.want(group(draw("ann", "q", 3), grant("ann", of("key", 2)), draw("ann", "p", 2)), rules.OK, "")
	if gems, keys := r.holds("ann", "gem"), r.holds("ann", "key"); gems != 12 || keys != 0 {
		t.Errorf("%d gems and %d keys are left, want 12 and 0", gems, keys)
	}
	pay.Pay = "gem"
	r.want(pay, rules.PriceNotOffered, "gem")
}

// TestPriceByOfRandomCounters compares what requests cost with draws one by one: as many as a request has
// cost the same, whatever the counter is like.
func TestPriceByOfRandomCounters(t *testing.T) {
	for seed := range uint64(200) {
		pick := seeded(seed)
		c := parse(t, `{kuji: 1, items: {gem: {}, key: {}}, start: {gem: 1000000, key: 1000000}, pools: {p: {price: {gem: 1}, max_count: 50, entries: [{id: x, weight: 1}]}}}`)
		c.Counters = mixedCounters(pick)
		c.Items = append(c.Items, catalog.Item{ID: "card", Kind: catalog.KindItem}, catalog.Item{ID: "clover", Kind: catalog.KindItem})
		p := &c.Pools[0]
		p.PriceBy.Counter = fmt.Sprint("c", pick("counter", 4))
		for i := range c.Counters {
			of := &c.Counters[i].Of
			if of.Gains, of.Spends = nil, nil; pick.one("draws", 2) || i == 0 {
				of.Draws = []string{"p"}
			}
		}
		from := uint64(0)
		for range 1 + pick("steps", 5) {
			from += 1 + uint64(pick("from", 4))
			p.PriceBy.Steps = append(p.PriceBy.Steps, catalog.PriceStep{From: from, Price: []catalog.Stack{of([]string{"gem", "key"}[pick("item", 2)], 1+uint64(pick("price", 30)))}})
		}
		if pick.one("free", 2) {
			p.Free = catalog.Free{Per: catalog.PerForever, Draws: 1 + uint64(pick("free", 5))}
		}
		together, alone := newRealm(t, 1), newRealm(t, 1)
		together.force(c)
		alone.force(c)
		for range 5 {
			n := 1 + pick("count", 10)
			together.want(draw("ann", "p", n), rules.OK, "")
			for range n {
				alone.want(draw("ann", "p", 1), rules.OK, "")
			}
			for _, item := range []string{"gem", "key"} {
				if got, want := together.holds("ann", item), alone.holds("ann", item); got != want {
					t.Fatalf("seed %d: %d %s are left, want %d as after draws one by one", seed, got, item, want)
				}
			}
			if pick.one("a day passes", 2) {
				together.now += day
				alone.now += day
			}
		}
	}
}
