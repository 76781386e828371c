package rules_test

import (
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
)

// TestLimitsCountDraws: a limit counts draws, not requests and not members of a group.
func TestLimitsCountDraws(t *testing.T) {
	for _, limit := range []string{"per: day", "per: week", "per: forever", "per: window, window: 1h"} {
		for name, five := range map[string][]rules.Command{
			"at once":      {draw("ann", "p", 5)},
			"one by one":   {draw("ann", "p", 1), draw("ann", "p", 1), draw("ann", "p", 1), draw("ann", "p", 1), draw("ann", "p", 1)},
			"some":         {draw("ann", "p", 2), draw("ann", "p", 3)},
			"in a group":   {group(draw("ann", "p", 3), draw("bob", "p", 5), draw("ann", "p", 2))},
			"in two kinds": {draw("ann", "p", 2), group(draw("ann", "p", 1), draw("ann", "p", 2))},
		} {
			r := newRealm(t, 1)
			r.put(limited("{" + limit + ", draws: 5}"))
			for _, cmd := range five {
				r.now++
				r.want(cmd, rules.OK, "")
			}
			r.want(draw("ann", "p", 1), rules.LimitReached, "p")
			if ev := r.do(draw("cat", "p", 5)); ev.Status != 0 {
				t.Errorf("%s, %s: cat's draws end %v", limit, name, rules.Status(ev.Status))
			}
		}
	}
}
