package rules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/rules"
)

// TestPlanOfItems: what a plan says of items that grow, that are of a family, and that a player can hold only so
// many of.
func TestPlanOfItems(t *testing.T) {
	const before = "energy: {grows: {every: 1h, to: 10}}, wood: {family: box}, iron: {}, coin: {most: 10, beyond: cut}, gem: {most: 10, beyond: mail}, ore: {}, mana: {grows: {every: 1h, to: 10}}"
	for name, c := range map[string]struct{ after, want string }{
		"it grows faster":        {"energy: {grows: {every: 30m, to: 10}}", "item_changed: item energy: grows {every: 30m, to: 10} instead of {every: 1h, to: 10}; players keep what has grown so far, and the interval begins again"},
		"to less":                {"energy: {grows: {every: 1h, to: 4}}", "item_changed: item energy: grows {every: 1h, to: 4} instead of {every: 1h, to: 10}; players keep what has grown so far, and the interval begins again; who has more than 4 keeps that, and gains none"},
		"it grows no more":       {"energy: {}", "item_changed: item energy: no grows instead of {every: 1h, to: 10}; players keep what has grown so far"},
		"it begins to grow":      {"ore: {grows: {every: 1h, to: 4}}", "item_changed: item ore: grows {every: 1h, to: 4}; it grows from now on, for all players"},
		"it grows and is new":    {"heart: {grows: {every: 1h, to: 4}}", "item_added: item heart: added; it grows from now on, for all players"},
		"of a family":            {"ore: {family: box}", "item_changed: item ore: family box; box stands for it from now on, also for what players hold; what counters have counted stays"},
		"of no family":           {"wood: {}", "item_changed: item wood: no family instead of box; box stands for it no more; what counters have counted stays"},
		"of another family":      {"wood: {family: crate}", "item_changed: item wood: family crate instead of box; box stands for it no more; crate stands for it from now on, also for what players hold; what counters have counted stays"},
		"a most":                 {"ore: {most: 4}", "item_changed: item ore: most 4; who holds more keeps it, and gets no more"},
		"a lower most":           {"coin: {most: 4, beyond: cut}", "item_changed: item coin: most 4 instead of 10; who holds more keeps it, and gets no more"},
		"a higher most":          {"coin: {most: 40, beyond: cut}", "item_changed: item coin: most 40 instead of 10; it holds for what players get from now on"},
		"no most":                {"coin: {}", "item_changed: item coin: no most instead of 10, no beyond instead of cut; it holds for what players get from now on"},
		"refused, not cut":       {"coin: {most: 10}", "item_changed: item coin: no beyond instead of cut; it holds for what players get from now on"},
		"cut, not mailed":        {"gem: {most: 10, beyond: cut}", "item_changed: item gem: beyond cut instead of mail; what waits in mailboxes stays until its time"},
		"mailed for longer":      {"gem: {most: 10, beyond: {mail: 60d}}", "item_changed: item gem: beyond {mail: 60d} instead of mail; what waits in mailboxes stays until its time"},
		"a lower most, mailed":   {"gem: {most: 4, beyond: mail}", "item_changed: item gem: most 4 instead of 10; who holds more keeps it, and gets no more; what waits in mailboxes stays until its time"},
		"gone, with mail":        {"-gem", "item_removed: item gem: removed; nobody holds any; what waits in mailboxes can be collected only if it returns before its time"},
		"gone, and it has grown": {"-energy", "item_removed: item energy: removed; what has grown for players stays theirs, but can be neither granted nor consumed until it returns; it grows no more\n\twarning: players hold an item that this catalog removes"},
		"gone, held, and grown":  {"-mana", "item_removed: item mana: removed; the 2 that players hold stay theirs, but can be neither granted nor consumed until it returns; it grows no more\n\twarning: players hold an item that this catalog removes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put("{kuji: 1, items: {" + before + "}}")
			r.want(rules.Command{Kind: rules.KindGrant, Player: "ann", Items: []catalogStack{{Item: "mana", Quantity: 2}}}, rules.OK, "")
			if got := r.plan("{kuji: 1, items: {" + withItem(t, before, c.after) + "}}"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// withItem returns items with one in place of that of the same id, or as the last one; or without one, after a minus.
func withItem(t *testing.T, items, item string) string {
	t.Helper()
	id, _, _ := strings.Cut(strings.TrimPrefix(item, "-"), ":")
	all, there := itemsOf(items), false
	for i, one := range all {
		if strings.HasPrefix(one, id+":") {
			all[i], there = item, true
		}
	}
	if !there {
		all = append(all, item)
	}
	return strings.Join(slices.DeleteFunc(all, func(one string) bool { return one == "-"+id }), ", ")
}

// itemsOf splits a list at commas that are in no braces.
func itemsOf(list string) (all []string) {
	depth, from := 0, 0
	for i, b := range list {
		switch {
		case b == '{':
			depth++
		case b == '}':
			depth--
		case b == ',' && depth == 0:
			all, from = append(all, strings.TrimSpace(list[from:i])), i+1
		}
	}
	return append(all, strings.TrimSpace(list[from:]))
}

// TestChangedItems: what the plans say comes true.
func TestChangedItems(t *testing.T) {
	r := newRealm(t, 1)
	r.now = 1_700_000_000_000
	items := func(all string) string {
		return "{kuji: 1, items: {" + all + ", wood: {family: box}}, pools: {open: {price: {box: 1}, entries: [{id: e, weight: 1}]}}}"
	}
	grant := func(item string, n uint64) rules.Command {
		return rules.Command{Kind: rules.KindGrant, Player: "ann", Items: []catalogStack{{Item: item, Quantity: n}}}
	}
	has := func(item string, n uint64) { // and no more
		t.Helper()
		take := rules.Command{Kind: rules.KindConsume, Player: "ann", Items: []catalogStack{{Item: item, Quantity: n + 1}}}
		r.want(take, rules.InsufficientItems, item)
		if take.Items[0].Quantity = n; n > 0 {
			r.want(take, rules.OK, "")
			r.want(grant(item, n), rules.OK, "")
		}
	}
	later := func(d time.Duration) { r.now += d.Milliseconds() }
	r.put(items("energy: {grows: {every: 1h, to: 10}}, coin: {}, iron: {}"))
	r.want(grant("coin", 8), rules.OK, "")
	r.want(grant("iron", 2), rules.OK, "")
	later(150 * time.Minute)
	has("energy", 2)
	r.put(items("energy: {grows: {every: 30m, to: 10}}, coin: {most: 5}, iron: {family: box}"))
	later(29 * time.Minute) // the half hour that had passed counts no more
	has("energy", 2)
	later(time.Minute)
	has("energy", 3)
	r.want(grant("coin", 1), rules.MostReached, "")
	r.want(draw("ann", "open", 2), rules.OK, "") // paid with what was held before it was a box
	later(3 * time.Hour)
	r.put(items("energy: {grows: {every: 30m, to: 4}}, coin: {most: 20}, iron: {}"))
	later(10 * time.Hour)
	has("energy", 9) // it keeps what it has, and gains none
	has("coin", 8)
	r.put(items("coin: {}, iron: {}"))
	later(10 * time.Hour)
	r.put(items("energy: {}, coin: {}, iron: {}"))
	has("energy", 9)
	r.put(items("energy: {grows: {every: 30m, to: 10}}, coin: {}, iron: {}"))
	later(29 * time.Minute)
	has("energy", 9)
	later(time.Minute)
	has("energy", 10)
}
