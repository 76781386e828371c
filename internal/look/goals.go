package look

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// Goals returns where the catalog's counters stand for a player, those at 0 left out, and how far the player is in
// its quests, in the catalog's order, at a time stamp. The player "" is one who was never seen. The caller holds
// the realm's lock.
func Goals(r *rules.Rules, player string, now int64) (counters []view.Counter, quests []view.Quest) {
	t := r.Tables()
	r.Look(player, now, func(s *rules.Sight) {
		for _, c := range t.Counters {
			v, resets := s.Standing(c)
			if v > 0 {
				counters = append(counters, view.Counter{ID: c.Config.ID, Value: v, Realm: c.Config.For == catalog.ForRealm, Rank: c.Rank(s), Resets: resets})
			}
		}
		for _, q := range t.Quests {
			quests = append(quests, quest(s, q))
		}
	})
	return counters, quests
}

func quest(s *rules.Sight, q *rules.Quest) view.Quest {
	v := view.Quest{ID: q.Config.ID, Open: q.When.Met(s), Tiers: len(q.Tiers), Claimed: int(s.Claimed(q)), Resets: s.Renews(q)}
	next := min(v.Claimed, v.Tiers)
	for ; next < v.Tiers && rules.Reaches(q.Tiers[next].Needs, s); next++ {
		if v.Open {
			v.Claimable++
		}
	}
	if next == v.Tiers {
		return v
	}
	for _, n := range q.Tiers[next].Needs {
		v.Needs = append(v.Needs, view.Need{Counter: n.Counter.Config.ID, Value: s.Count(n.Counter), Min: n.Min, Max: n.Max})
	}
	return v
}
