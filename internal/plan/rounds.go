package plan

import (
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/view"
)

// planRounds says what changes about rounds. Those that are open go on as they began, or end.
func (s *Planner) planRounds(p *draft, c *catalog.Catalog) {
	var all []catalog.Round
	if s.t.Catalog != nil {
		all = s.t.Catalog.Rounds
	}
	for i := range c.Rounds {
		now := &c.Rounds[i]
		at := slices.IndexFunc(all, func(r catalog.Round) bool { return r.ID == now.ID })
		if at < 0 {
			p.add(roundChange(now.ID, nil, now, "added"))
			continue
		}
		if changed := differences(all[at].Settings(), now.Settings()); len(changed) > 0 {
			p.add(roundChange(now.ID, &all[at], now, settingsText(changed)))
		}
	}
	for i := range all {
		was := &all[i]
		if !slices.ContainsFunc(c.Rounds, func(n catalog.Round) bool { return n.ID == was.ID }) {
			p.add(roundChange(was.ID, was, nil, "removed; those that are open give everything back when they end"))
		}
	}
}

func roundChange(id string, was, now *catalog.Round, text string) view.Change {
	set := view.Setting{Name: "rounds." + id, Before: roundText(was), After: roundText(now)}
	return view.Change{Kind: ChangeRealm, ID: "rounds", Text: "round " + id + ": " + text, Settings: []view.Setting{set}}
}

// roundText is all that a catalog says of a round; empty: it has none.
func roundText(r *catalog.Round) string {
	if r == nil {
		return ""
	}
	var parts []string
	for _, set := range r.Settings() {
		parts = append(parts, set.Key+" "+set.Value)
	}
	return strings.Join(parts, ", ")
}
