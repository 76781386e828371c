package rules_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/odds"
)

// entries writes n entries of a catalog; each # in one stands for its number, from 1 on.
func entries(n int, one string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(one, "#", fmt.Sprint(i+1)) + ", ")
	}
	return b.String()
}

// TestRefusedOddsTakeAsMuch checks that odds that are refused take as much work as their budget, whatever
// makes them too much: that all work is counted, that it ends with the budget, and that the memory is in
// proportion. A budget that is a 64th of the real one shows it.
func TestRefusedOddsTakeAsMuch(t *testing.T) {
	const (
		budget     = 1 << 20
		late       = budget / 20 // the last step can take a little more
		unitBytes  = 16          // that are allocated, most of them not kept
		unitAllocs = 0.3
	)
	pool := func(p string) string { return "{kuji: 1, items: {cash: {}}, pools: {p: {" + p + "}}}" }
	for name, c := range map[string]struct {
		yaml  string
		count int
	}{
		"tickets":             {pool("rolls: 40, entries: [{id: more, weight: 1}, " + entries(60, "{id: e#, weight: #, stock: 1}") + "]"), 1},
		"many tickets":        {pool("rolls: 1000, entries: [{id: more, weight: 1}, " + entries(1000, "{id: e#, weight: #, stock: 1}") + "]"), 1},
		"distinct of many":    {pool("rolls: {min: 1, max: 20, distinct: true}, entries: [" + entries(100, "{id: e#, weight: #}") + "]"), 1},
		"distinct of few":     {pool("rolls: {min: 20, max: 20, distinct: true}, entries: [" + entries(40, "{id: e#, weight: #}") + "]"), 1},
		"distinct of most":    {pool("rolls: {min: 10, max: 10, distinct: true}, entries: [" + entries(1000, "{id: e#, weight: #}") + "]"), 1},
		"a box that refills":  {pool("rolls: 3, mode: raffle, refill: 9, entries: [" + entries(1000, "{id: e#, stock: #}") + "]"), 1},
		"drops with stock":    {pool("mode: each, rolls: 15, entries: [" + entries(60, "{id: e#, chance: #, stock: 3}") + "]"), 1},
		"a budget of amounts": {pool("rolls: 5, budget: {per: day, of: {cash: 100000}}, entries: [{id: a, weight: 1, reward: {items: {cash: {min: 1, max: 30000}}}}, {id: b, weight: 1}]"), 1},
		"long fractions":      {pool("rolls: {min: 1, max: 1000}, entries: [" + entries(200, "{id: e#, weight: #}") + "]"), 1},
		"boxes below":         {"{kuji: 1, items: {cash: {}}, pools: {p: {rolls: 10, entries: [" + entries(50, "{id: e#, weight: #, reward: {pool: q, times: {min: 1, max: 10}}}") + "]}, q: {entries: [{id: z, weight: 1}, " + entries(50, "{id: e#, weight: #, stock: 2}") + "]}}}", 1},
		"many pools":          {"{kuji: 1, items: {cash: {}}, pools: {p: {rolls: 5, entries: [" + entries(500, "{id: e#, weight: #, reward: {pool: q#}}") + "]}, " + entries(500, "q#: {entries: [{id: a, weight: 1, stock: 1}, {id: b, weight: 1}]}") + "}}", 1},
		"different things":    {"{kuji: 1, items: {cash: {}}, counters: {c: {of: {entries: [" + entries(60, "p/e#") + "]}, distinct: 60}}, pools: {p: {rolls: 30, entries: [{id: last, weight: 1, when: {counters: {c: 60}}}, " + entries(60, "{id: e#, weight: #}") + "]}}}", 1},
		"many counters":       {"{kuji: 1, items: {cash: {}}, counters: {" + entries(60, "c#: {of: {entries: p/e#}}") + "}, pools: {p: {rolls: 30, entries: [{id: last, weight: 1}, " + entries(60, "{id: e#, weight: #, luck: {counter: c#, weights: [{from: 9, weight: 0}]}}") + "]}}}", 1},
		"ten draws":           {pool("max_count: 10, guarantee: [{draws: 10, of: [e1, e2]}], entries: [" + entries(100, "{id: e#, weight: #, stock: 9}") + "]"), 10},
		"a thousand draws":    {pool("max_count: 1000, pity: {a: {of: [e1], certain: 90}}, guarantee: [{draws: 10, of: [e1, e2]}], entries: [" + entries(100, "{id: e#, weight: #}") + "]"), 1000},
	} {
		r := newRealm(t, 1)
		r.put(c.yaml)
		s, err := odds.Stand(r.rules, "p", "", c.count, r.now)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		left := budget
		_, err = s.OddsWithin(&left, waits)
		took := budget - left
		runtime.ReadMemStats(&after)
		var tooMuch *odds.OddsError
		bytes, allocs := float64(after.TotalAlloc-before.TotalAlloc)/budget, float64(after.Mallocs-before.Mallocs)/budget
		if !errors.As(err, &tooMuch) || took < budget || took > budget+late || bytes > unitBytes || allocs > unitAllocs {
			t.Errorf("%s: took %d of %d, %.1f bytes and %.2f allocations a unit: %v", name, took, budget, bytes, allocs, err)
		}
	}
}
