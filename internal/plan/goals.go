package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// planCounters says what becomes of where counters stand.
func (s *Planner) planCounters(p *draft, c *catalog.Catalog) {
	for i := range c.Counters {
		now := &c.Counters[i]
		old := s.counterOf(now.ID)
		if old == nil {
			text := "counter " + now.ID + ": added; it counts from now on"
			if s.known(rules.CounterName(now)) {
				text = "counter " + now.ID + ": added; it was here before, and goes on from where it stood"
			}
			p.add(view.Change{Kind: ChangeCounterAdded, ID: now.ID, Text: text, Settings: differences(nil, now.Settings())})
			continue
		}
		changed := differences(old.Settings(), now.Settings())
		if len(changed) == 0 {
			continue
		}
		ch := view.Change{Kind: ChangeCounterChanged, ID: now.ID, Settings: changed, Text: "counter " + now.ID + ": " + settingsText(changed)}
		switch {
		case rules.CounterName(old) == rules.CounterName(now):
			ch.Text += "; it goes on from where it stands"
		case s.known(rules.CounterName(now)):
			ch.Text += "; it goes on from where it stood when it last counted like this"
			ch.Warning = "what it has counted in the present way is kept, but does not count until it counts in that way again"
		default:
			ch.Text += "; it begins at 0"
			ch.Warning = "what it has counted so far is kept, but does not count until it counts in the old way again"
		}
		s.rankedOtherwise(&ch, old, now)
		p.add(ch)
	}
	for _, old := range s.counters() {
		if !slices.ContainsFunc(c.Counters, func(n catalog.Counter) bool { return n.ID == old.ID }) {
			ch := view.Change{Kind: ChangeCounterRemoved, ID: old.ID,
				Text: "counter " + old.ID + ": removed; where it stands is kept, and counts again if it returns"}
			s.rankedOtherwise(&ch, &old, &catalog.Counter{ID: old.ID})
			p.add(ch)
		}
	}
}

// rankedOtherwise adds to the change of a counter what becomes of its ranks.
func (s *Planner) rankedOtherwise(ch *view.Change, old, now *catalog.Counter) {
	was, is := &old.Ranked, &now.Ranked
	same := rules.CounterName(old) == rules.CounterName(now)
	owed := ""
	if len(was.Rewards) > 0 {
		owed = "ranks that are not paid yet wait until players are ranked by it like that again"
	}
	switch {
	case same && valueOf(old.Settings(), "ranked") == valueOf(now.Settings(), "ranked"), !was.Is && !is.Is:
		return
	case !was.Is:
		ch.Text += "; players are ranked by it"
		if same {
			ch.Text += ", by what they have counted so far"
		}
		if s.known(rules.RanksName(now)) && len(is.Rewards) > 0 {
			ch.Text += "; ranks that were not paid earlier get the rewards of this catalog"
		}
	case is.Is && !same:
		ch.Text += "; players are ranked again"
	case !is.Is:
		ch.Text += "; nobody is ranked by it any more"
	case len(is.Rewards) == 0:
		ch.Text += "; ranks get nothing any more"
		owed = "ranks that are not paid yet get nothing, unless it has rewards again before its next period ends"
	default:
		ch.Text += "; ranks that are not paid yet get the rewards of this catalog"
		owed = ""
	}
	if owed != "" {
		ch.Warning = strings.TrimPrefix(ch.Warning+"; "+owed, "; ")
	}
}

// counters returns the counters of the catalog in force.
func (s *Planner) counters() []catalog.Counter {
	if s.t.Catalog == nil {
		return nil
	}
	return s.t.Catalog.Counters
}

func (s *Planner) counterOf(id string) *catalog.Counter {
	all := s.counters()
	if i := slices.IndexFunc(all, func(c catalog.Counter) bool { return c.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// known reports whether a catalog before has named a counter of the state.
func (s *Planner) known(name string) bool {
	_, ok := s.state.CounterNum(name)
	return ok
}

// planQuests says what becomes of the tiers that players have claimed, and of those that are open.
func (s *Planner) planQuests(p *draft, c *catalog.Catalog) {
	var all []catalog.Quest
	if s.t.Catalog != nil {
		all = s.t.Catalog.Quests
	}
	for i := range c.Quests {
		now := &c.Quests[i]
		at := slices.IndexFunc(all, func(q catalog.Quest) bool { return q.ID == now.ID })
		if at < 0 {
			text := "quest " + now.ID + ": added"
			if s.known(rules.QuestName(now)) {
				text += "; it was here before, and what players have claimed counts"
			}
			p.add(view.Change{Kind: ChangeQuestAdded, ID: now.ID, Text: text, Settings: differences(nil, questSettings(now))})
			continue
		}
		if changed := differences(questSettings(&all[at]), questSettings(now)); len(changed) > 0 {
			ch := view.Change{Kind: ChangeQuestChanged, ID: now.ID, Settings: changed}
			said, warning := s.claimed(&all[at], now)
			ch.Text = strings.Join(append([]string{"quest " + now.ID + ": " + settingsText(changed)}, said...), "; ")
			ch.Warning = warning
			p.add(ch)
		}
	}
	for i := range all {
		if !slices.ContainsFunc(c.Quests, func(n catalog.Quest) bool { return n.ID == all[i].ID }) {
			p.add(view.Change{Kind: ChangeQuestRemoved, ID: all[i].ID,
				Text: "quest " + all[i].ID + ": removed; what players have claimed is kept, and counts again if it returns"})
		}
	}
}

// questSettings returns the settings of a quest, with those of its tiers one by one.
func questSettings(q *catalog.Quest) (all []catalog.Setting) {
	for _, set := range q.Settings() {
		if set.Key != "tiers" {
			all = append(all, set)
		}
	}
	for i := range q.Tiers {
		for _, set := range q.Tiers[i].Settings() {
			all = append(all, catalog.Setting{Key: fmt.Sprintf("tier %d %s", i+1, set.Key), Value: set.Value})
		}
	}
	return all
}

// claimed says what a changed quest does to what players have claimed.
func (s *Planner) claimed(old, now *catalog.Quest) (said []string, warning string) {
	if rules.QuestName(old) != rules.QuestName(now) {
		text := "players begin at its first tier"
		if s.known(rules.QuestName(now)) {
			text = "what players claimed when it last began again with this time counts"
		}
		return []string{text}, "what players have claimed is kept, but does not count until the quest begins again with the old time"
	}
	was, is := len(old.Steps()), len(now.Steps())
	switch {
	case is < was:
		said = append(said, fmt.Sprintf("players who have claimed more than %s keep what they got, and have claimed all", tiersText(is)))
	case is > was:
		said = append(said, fmt.Sprintf("players who have claimed %s go on with tier %d", tiersText(was), was+1))
	}
	open := func(what string, same func(a, b *catalog.Tier) bool) {
		for i := range min(was, is) {
			if a, b := old.Steps()[i], now.Steps()[i]; !same(&a, &b) {
				said = append(said, what+" for players who have not claimed it yet")
				return
			}
		}
	}
	open("the needs of a tier hold", func(a, b *catalog.Tier) bool { return slices.Equal(a.Needs, b.Needs) })
	open("the reward of a tier holds", func(a, b *catalog.Tier) bool {
		return valueOf(a.Settings(), "reward") == valueOf(b.Settings(), "reward")
	})
	if valueOf(old.Settings(), "when") != valueOf(now.Settings(), "when") {
		said = append(said, "who can claim holds for tiers that are not claimed yet")
	}
	if old.Claim != now.Claim && now.Claim == catalog.ClaimAutomatic {
		said = append(said, "what is reached already waits until something that it needs moves, or to be claimed")
	}
	return said, ""
}

// valueOf returns the value of a setting, empty if it is not set.
func valueOf(all []catalog.Setting, key string) string {
	for _, set := range all {
		if set.Key == key {
			return set.Value
		}
	}
	return ""
}

func tiersText(n int) string {
	if n == 1 {
		return "1 tier"
	}
	return fmt.Sprintf("%d tiers", n)
}
