package rules_test

import (
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
)

// TestOneCommandPassesNoBound: what a command gives in several places counts together, also
// where no balance before it came near the bound.
func TestOneCommandPassesNoBound(t *testing.T) {
	const half = rules.MaxQuantity/2 + 1
	catalog := func(start string) string {
		return `{kuji: 1, items: {gem: {}, gold: {}}, ` + start + `
			pools: {box: {entries: [{id: a, weight: 1, reward: {items: {gem: {min: 1, max: 4503599627370496}}}}]}}}`
	}
	for name, cmd := range map[string]rules.Command{
		"a grant twice":             group(grant("ann", of("gem", half)), grant("ann", of("gem", half))),
		"the whole bound and one":   group(grant("ann", of("gem", rules.MaxQuantity)), grant("ann", of("gem", 1))),
		"one and the whole bound":   group(grant("ann", of("gem", 1)), grant("ann", of("gem", rules.MaxQuantity))),
		"a grant and a transfer":    group(grant("ann", of("gem", half)), grant("bob", of("gem", half)), transfer("bob", "ann", of("gem", half))),
		"a draw and a grant":        group(draw("ann", "box", 1), grant("ann", of("gem", half))),
		"a grant and a draw":        group(grant("ann", of("gem", half)), draw("ann", "box", 1)),
		"two draws":                 group(draw("ann", "box", 1), draw("ann", "box", 1)),
		"a grant behind other work": group(grant("ann", of("gem", half)), consume("ann", of("gem", 1)), grant("ann", of("gold", 5)), grant("ann", of("gem", half+1))),
	} {
		r := newRealm(t, 1)
		r.put(catalog(""))
		if ev := r.do(cmd); rules.Status(ev.Status) != rules.BalanceOverflow || r.subject(&ev) != "gem" {
			t.Errorf("%s ends %v (%s)", name, rules.Status(ev.Status), r.subject(&ev))
		}
	}
	r := newRealm(t, 1)
	r.put(catalog("start: {gem: 4503599627370496},"))
	r.want(grant("ann", of("gem", half)), rules.BalanceOverflow, "gem")
	r.want(draw("ann", "box", 1), rules.BalanceOverflow, "gem")
	r.want(group(grant("ann", of("gem", half-1)), consume("ann", of("gem", 1)), grant("ann", of("gem", 1))), rules.OK, "")
	if q := r.holds("ann", "gem"); q != rules.MaxQuantity {
		t.Errorf("ann holds %d, want %d", q, uint64(rules.MaxQuantity))
	}
}
