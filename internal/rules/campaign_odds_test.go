package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/odds"
)

// randomCampaign writes three pools, each of which can lead to the next ones, with budgets that meet,
// moments and codes.
func randomCampaign(pick picker) string {
	chance := func(n int) bool { return pick("chance", n) == 0 }
	item := func() string { return []string{"a", "b"}[pick("item", 2)] }
	budget := func(i int) string {
		of := fmt.Sprintf("{a: %d}", 4+pick("limit", 8))
		if chance(2) {
			of = fmt.Sprintf("{a: %d, b: %d}", 4+pick("limit", 8), 4+pick("limit", 8))
		}
		return fmt.Sprintf("{per: %s, of: %s}", []string{"hour", "day", "week", "forever"}[(i+pick("per", 2))%4], of)
	}
	shared := strings.TrimSuffix(budget(0), "}") + ", share: s}"
	var b strings.Builder
	b.WriteString("{kuji: 1, zone: Asia/Kathmandu, items: {a: {}, b: {}}, pools: {")
	for i := range 3 {
		fmt.Fprintf(&b, "p%d: {", i)
		each := chance(5)
		switch {
		case each:
			b.WriteString("mode: each, ")
		case chance(2):
			fmt.Fprintf(&b, "rolls: {min: 1, max: %d}, ", 2+pick("rolls", 2))
		}
		if !each && chance(3) {
			b.WriteString("pity: {t: {of: [e0], rising: {from: 2, by: 20}}}, ")
		}
		switch pick("budget", 4) {
		case 0:
			fmt.Fprintf(&b, "budget: %s, ", budget(i))
		case 1:
			fmt.Fprintf(&b, "budget: %s, ", shared)
		case 2:
			fmt.Fprintf(&b, "budget: [%s, %s], ", shared, budget(i+1))
		}
		moments := !each && chance(2)
		if moments {
			fmt.Fprintf(&b, "starts: %s, ends: %s, ", stamp(monday-int64(pick("starts", 9))*hour), stamp(monday+9*day))
		}
		b.WriteString("entries: [")
		for e := range 3 {
			kind := fmt.Sprintf("weight: %d", 1+pick("weight", 4))
			if each {
				kind = fmt.Sprintf("chance: %d", 20+pick("chance", 70))
			}
			if moments && e == 1 {
				kind = fmt.Sprintf("moments: {count: %d, spread: %s, missed: %s}", 5+pick("count", 40),
					[]string{"even", "slots", "random"}[pick("spread", 3)], []string{"wait", "pass"}[pick("missed", 2)])
			}
			reward := []string{fmt.Sprintf("{items: {%s: {min: 1, max: %d}}}", item(), 1+pick("most", 3))}
			if i < 2 && chance(2) {
				reward = append(reward, fmt.Sprintf("{pool: p%d, times: {min: 1, max: %d}}", i+1+pick("to", 2-i), 1+pick("times", 2)))
			}
			if chance(4) {
				reward = append(reward, fmt.Sprintf("{code: list%d}", pick("list", 2)))
			}
			fmt.Fprintf(&b, "{id: e%d, %s, reward: [%s]}, ", e, kind, strings.Join(reward, ", "))
		}
		if each {
			b.WriteString("{id: blank, chance: 1}]}, ")
		} else {
			b.WriteString("{id: blank, weight: 1}]}, ")
		}
	}
	b.WriteString("}}")
	return b.String()
}

// TestOddsOfRandomCampaigns compares odds with what draws give where budgets, moments and codes meet:
// through each other's pools, with several rolls, and close to the end of what there is.
func TestOddsOfRandomCampaigns(t *testing.T) {
	realms, compared, refused, told := 100, 0, 0, map[string]int{}
	if testing.Short() {
		realms = 15
	}
	for seed := range uint64(realms) {
		pick := seeded(seed)
		yaml := randomCampaign(pick)
		c, err := catalog.Parse([]byte(yaml))
		if err != nil { // an entry that could never be drawn, or more than a draw may give
			continue
		}
		r := newRealm(t, seed)
		r.force(c)
		for i := range 2 {
			if n := pick("codes", 7); n > 0 {
				r.imports(fmt.Sprint("list", i), n)
			}
		}
		for range pick("draws", 6) {
			r.do(draw("ann", fmt.Sprint("p", pick("pool", 3)), 1))
			r.now += int64(pick("time", 40)) * hour / 4
		}
		for i := range 3 {
			pool := fmt.Sprint("p", i)
			s, err := odds.Stand(r.rules, pool, "ann", 1, r.now)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Odds(waits)
			if _, tooMuch := errors.AsType[*odds.OddsError](err); tooMuch {
				refused++
				continue
			}
			compared++
			for _, e := range r.wantSampled(pool, "ann", 1000).Outcomes {
				if e.Chance.Sign() > 0 && !e.Chance.IsInt() {
					told[e.Entry]++
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d, pool %s of\n%s", seed, pool, yaml)
			}
		}
	}
	if compared < realms || refused > compared/10 {
		t.Errorf("%d odds were compared with draws, %d refused", compared, refused)
	}
	t.Logf("%d compared, %d refused, chances by entry: %v", compared, refused, told)
}
