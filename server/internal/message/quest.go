package message

import (
	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Quests makes the messages of the quests of a view from one place on to another.
func Quests(v *kuji.GoalsView, from, to int) (all []*kujiv1.Quest) {
	stands := make(map[string]uint64, len(v.Counters))
	for i := range v.Counters {
		stands[v.Counters[i].ID] = v.Counters[i].Value
	}
	for i := from; i < to; i++ {
		c := &v.Configs[i]
		q := &kujiv1.Quest{Id: c.ID, Name: c.Name, Automatic: c.Claim == catalog.ClaimAutomatic, When: condition(&c.When), Player: PlayerQuest(&v.Quests[i])}
		for _, t := range c.Steps() {
			tier := &kujiv1.QuestTier{Needs: Each(t.Needs, func(n *catalog.Counted) *kujiv1.Need {
				return &kujiv1.Need{Counter: n.Counter, Value: stands[n.Counter], Min: n.Min, Max: n.Max}
			})}
			if !t.Reward.Nothing() {
				tier.Reward = reward(&t.Reward)
			}
			q.Tiers = append(q.Tiers, tier)
		}
		all = append(all, q)
	}
	return all
}

// PlayerQuest makes the message of how far a player is in a quest.
func PlayerQuest(q *kuji.QuestView) *kujiv1.PlayerQuest {
	return &kujiv1.PlayerQuest{Quest: q.ID, Open: q.Open, Tiers: uint32(q.Tiers), Claimed: uint32(q.Claimed), Claimable: uint32(q.Claimable), ResetsUnixMs: q.Resets,
		Needs: Each(q.Needs, func(n *kuji.NeedView) *kujiv1.Need {
			return &kujiv1.Need{Counter: n.Counter, Value: n.Value, Min: n.Min, Max: n.Max}
		})}
}

// PlayerCounter makes the message of where a counter stands.
func PlayerCounter(c *kuji.CounterView) *kujiv1.PlayerCounter {
	return &kujiv1.PlayerCounter{Counter: c.ID, Value: c.Value, Realm: c.Realm, Rank: c.Rank, ResetsUnixMs: c.Resets}
}
