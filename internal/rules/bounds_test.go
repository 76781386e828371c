package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// budgeted returns a catalog with as many budgets as one can have. Its pools begin with a prefix, and
// a draw from each pool spends from all of its budgets.
func budgeted(prefix string) (yaml string, pools []string) {
	var items, all []string
	for i := range catalog.MaxBudgetItems {
		items = append(items, fmt.Sprintf("i%d", i))
	}
	one := strings.Join(items, ": 1, ") + ": 1"
	for i := range catalog.MaxBudgetCounters / catalog.MaxBudgetItems {
		pools = append(pools, fmt.Sprintf("%s-%d", prefix, i))
		all = append(all, fmt.Sprintf("%s: {entries: [{id: a, weight: 1, reward: {items: {%s}}}, {id: z, weight: 1}], budget: {per: forever, of: {%s}}}",
			pools[i], one, strings.ReplaceAll(one, ": 1", ": 1000000")))
	}
	return fmt.Sprintf("{kuji: 1, items: {%s: {}}, pools: {%s}}", strings.Join(items, ": {}, "), strings.Join(all, ", ")), pools
}

// TestTooManyTallies: a catalog whose budgets would be more than a realm can count is refused before
// anything is logged. Those that the realm has can all be spent.
func TestTooManyTallies(t *testing.T) {
	r := newRealm(t, 1)
	const most = store.MaxTallies / (2 * catalog.MaxBudgetCounters)
	for n := range most {
		yaml, pools := budgeted(fmt.Sprintf("c%d", n))
		r.put(yaml)
		for _, p := range pools {
			r.do(rules.Command{Kind: rules.KindDraw, Player: "ann", Pool: p, Count: 50})
		}
	}
	used := 0
	for c := range r.state.NextCounter() {
		if r.state.Tally(c) != 0 {
			used++
		}
	}
	if used != store.MaxTallies {
		t.Fatalf("%d counters of the realm are in use, want %d", used, store.MaxTallies)
	}
	before := r.rules.Tables().Catalog
	next, _ := budgeted("next")
	for name, yaml := range map[string]string{
		"budgets": next,
		"moments": `{kuji: 1, items: {x: {}}, pools: {p: {starts: 2023-01-01T00:00:00Z, ends: 2024-01-01T00:00:00Z,
			entries: [{id: a, weight: 0, stock: 1, moments: {count: 1, spread: even}}, {id: b, weight: 1}]}}}`,
		"refills": `{kuji: 1, items: {x: {}}, pools: {p: {mode: raffle, refill: 1, entries: [{id: a, stock: 1}]}}}`,
	} {
		_, err := rules.Prepare(r.state, r.rules.Tables(), parse(t, yaml), nil, 0)
		var conflict *rules.ConflictError
		if !errors.As(err, &conflict) || conflict.Subject != "counters of budgets, moments and refills" {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := *before
	c.Name = "the same budgets again"
	r.force(&c)
	yaml, _ := budgeted("c0")
	r.put(yaml)
}
