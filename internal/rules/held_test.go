package rules_test

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
)

// TestHeldCountsAsHad: what is held may come back, so nobody can get so much meanwhile that it would not fit.
func TestHeldCountsAsHad(t *testing.T) {
	const all = rules.MaxQuantity
	for name, give := range map[string]rules.Command{
		"grant":    grant("ann", of("box", 5)),
		"transfer": transfer("bob", "ann", of("box", 5)),
		"group":    {Kind: rules.KindAtomic, Members: []rules.Command{grant("ann", of("box", 3)), grant("ann", of("box", 2))}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(rounds)
			r.do(grant("ann", of("box", all)))
			r.do(grant("bob", of("box", 5)))
			r.want(opened("ann", "gamble", of("box", 5)), rules.OK, "")
			r.want(give, rules.BalanceOverflow, "box")
			r.want(ofRound(rules.KindCancelRound, "gamble", 0), rules.OK, "")
			r.wantHas("ann", "box", all, 0)
			r.check()
			r.replay()
		})
	}
}

// TestWinnersWhoAreFull: a winner gets what fits, whoever staked it, and the rest of the stakes goes back. Somebody who
// wins two places, or wins a share and a reward, gets no more than fits either.
func TestWinnersWhoAreFull(t *testing.T) {
	const catalog = `
kuji: 1
items: {box: {most: 10%s}, coin: {}}
rounds:
  one: {stake: {item: box, count: {min: 1, max: 9}}, winner: {gets: everything}}
  two: {stake: {item: box, count: {min: 1, max: 9}}, winners: {count: 2, distinct: false, gets: everything, shares: [60, 40]}}
  prize: {stake: {item: box, count: {min: 1, max: 9}}, winner: {gets: everything, reward: {items: {box: 2}}}}
  pot: {ticket: {price: {box: 1}, most: 9, adds: {pot: 1}}, winners: {count: 2, distinct: false, gets: pot, reward: {items: {box: 1}}}}
`
	for _, beyond := range []string{"", ", beyond: cut", ", beyond: {mail: 1h}"} {
		for _, name := range []string{"one", "two", "prize", "pot"} {
			t.Run(name+beyond, func(t *testing.T) {
				for seed := range uint64(60) {
					r := newRealm(t, seed)
					r.put(fmt.Sprintf(catalog, beyond))
					have := []uint64{10, 10, 4}
					for i, n := range have {
						p, stake := fmt.Sprint("p", i), of("box", n/2+uint64(i))
						r.do(grant(p, of("box", n)))
						if name == "pot" {
							stake = of("box", 0)
						}
						switch {
						case name == "pot" && i == 0:
							r.want(opened("", name), rules.OK, "")
							fallthrough
						case name == "pot":
							r.want(joined(p, name, 0, n/2), rules.OK, "")
						case i == 0:
							r.want(opened(p, name, stake), rules.OK, "")
						default:
							r.want(joined(p, name, 0, 0, stake), rules.OK, "")
						}
					}
					r.want(ofRound(rules.KindSettle, name, 0), rules.OK, "")
					for i := range have {
						if p := fmt.Sprint("p", i); r.holds(p, "box") > 10 || r.held(p, "box") > 0 {
							t.Fatalf("seed %d: %s has %d, and %d held", seed, p, r.holds(p, "box"), r.held(p, "box"))
						}
					}
					r.check()
					r.replay()
				}
			})
		}
	}
}
