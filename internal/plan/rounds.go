package plan

import (
	"fmt"
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
			p.add(roundChange(now.ID, nil, now, "added"+opening(0, now.Every)))
			continue
		}
		if changed := differences(all[at].Settings(), now.Settings()); len(changed) > 0 {
			text := settingsText(changed) + opening(all[at].Every, now.Every)
			if n := s.open[now.ID]; n > 0 {
				text += fmt.Sprintf("; open ones that follow it: %d", n)
			}
			p.add(roundChange(now.ID, &all[at], now, text))
		}
	}
	for i := range all {
		was := &all[i]
		if !slices.ContainsFunc(c.Rounds, func(n catalog.Round) bool { return n.ID == was.ID }) {
			text := "removed; those that are open give everything back when they end"
			if n := s.open[was.ID]; n > 0 {
				text += fmt.Sprintf(": %d", n)
			}
			p.add(roundChange(was.ID, was, nil, text))
		}
	}
}

// opening says what follows if the calendar opens a round, or does so no more.
func opening(was, now catalog.Per) (text string) {
	if was == now {
		return ""
	}
	if was != 0 {
		text = fmt.Sprintf("; the one that is open ends with its %v", was)
	}
	if now != 0 {
		text += fmt.Sprintf("; the calendar opens one for each %v, from that of now on", now)
	}
	return text
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
