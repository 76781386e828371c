package message

import (
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Pool makes the message of a pool whose entries begin at an index.
func Pool(v *kuji.PoolView, from int) *kujiv1.Pool {
	c := &v.Config
	p := &kujiv1.Pool{
		Id: v.ID, Name: c.Name, Mode: kujiv1.PoolMode(c.Mode), Prices: prices(c.Price),
		StartsUnixMs: c.StartsAt, EndsUnixMs: c.EndsAt, MaxCount: c.MaxCount,
		EntryCount: uint32(len(c.Entries)), WeightScale: c.WeightScale, TotalWeight: v.TotalWeight,
		CatalogVersion: v.CatalogVersion, Position: v.Position,
	}
	p.Internal, p.Memoryless, p.When = c.Internal, c.Memoryless, condition(&c.When)
	p.Rolls = &kujiv1.Rolls{Min: c.Rolls.Min, Max: c.Rolls.Max, Distinct: c.Rolls.Distinct}
	for i := range c.Bundles {
		p.Bundles = append(p.Bundles, &kujiv1.Bundle{Draws: c.Bundles[i].Draws, Items: Stacks(c.Bundles[i].Price)})
	}
	if !c.PriceBy.Empty() {
		p.PriceBy = &kujiv1.PriceBy{Counter: c.PriceBy.Counter, Steps: Each(c.PriceBy.Steps, func(s *catalog.PriceStep) *kujiv1.PriceStep {
			return &kujiv1.PriceStep{From: s.From, Items: Stacks(s.Price)}
		})}
	}
	if c.Free.Per != 0 {
		p.Free = &kujiv1.PlayerLimit{Per: kujiv1.LimitPeriod(c.Free.Per), Draws: c.Free.Draws}
	}
	p.Redeem = Each(c.Redeem, func(r *catalog.Redeem) *kujiv1.RedeemTerms {
		return &kujiv1.RedeemTerms{List: r.List, Times: r.Times, Uses: r.Uses, UntilUnixMs: r.Until}
	})
	p.Pity = Each(c.Tracks, track)
	p.Guarantees = Each(c.Guarantees, func(g *catalog.Guarantee) *kujiv1.Guarantee {
		return &kujiv1.Guarantee{Draws: g.Draws, AtLeast: g.AtLeast, Of: g.Of}
	})
	if p.Refill = c.Refill; !c.Last.Nothing() {
		p.Last = reward(&c.Last)
	}
	for _, l := range c.Limits {
		p.Limits = append(p.Limits, &kujiv1.PlayerLimit{Per: kujiv1.LimitPeriod(l.Per), WindowMs: l.Window, Draws: l.Draws})
	}
	p.Budgets = Each(v.Budgets, func(b *kuji.BudgetView) *kujiv1.Budget {
		return &kujiv1.Budget{Per: kujiv1.LimitPeriod(b.Per), Share: b.Share, Item: b.Item, Limit: b.Limit, Spent: b.Spent, Left: b.Left(), ResetsUnixMs: b.ResetsAt}
	})
	p.Entries = make([]*kujiv1.Entry, len(v.Entries))
	for i := range v.Entries {
		e, def := &v.Entries[i], &c.Entries[from+i]
		out := &kujiv1.Entry{Id: e.ID, Weight: e.Weight, Drawn: e.Drawn, CatalogWeight: def.Weight, Reward: reward(&def.Reward),
			Group: def.Group, When: condition(&def.When), Unique: def.Unique, Luck: luck(&def.Luck)}
		if !e.Unlimited {
			out.Left = proto.Uint64(e.Left)
		}
		out.Available, out.OverBudget, out.Moments = e.Available(), e.OverBudget, moments(&def.Moments, e.Moments)
		p.Entries[i] = out
	}
	return p
}

func reward(r *catalog.Reward) *kujiv1.Reward {
	out := &kujiv1.Reward{Codes: r.Codes}
	for _, in := range r.Draws {
		out.Draws = append(out.Draws, &kujiv1.InnerDraws{Pool: in.Pool, Min: in.Min, Max: in.Max})
	}
	for _, q := range r.Items {
		out.Items = append(out.Items, &kujiv1.RewardItem{Item: q.Item, Min: q.Min, Max: q.Max})
	}
	return out
}

func prices(all [][]kuji.Stack) []*kujiv1.Price {
	return Each(all, func(p *[]kuji.Stack) *kujiv1.Price { return &kujiv1.Price{Items: Stacks(*p)} })
}

func condition(c *catalog.Condition) *kujiv1.Condition {
	if c.Empty() {
		return nil
	}
	return &kujiv1.Condition{Holds: Stacks(c.Holds), Lacks: c.Lacks,
		Counters: Each(c.Counters, func(n *catalog.Counted) *kujiv1.CounterRange {
			return &kujiv1.CounterRange{Counter: n.Counter, Min: n.Min, Max: n.Max}
		}),
		Quests: Each(c.Quests, func(d *catalog.Done) *kujiv1.QuestCount {
			return &kujiv1.QuestCount{Quest: d.Quest, Tiers: d.Tiers}
		}),
		Pity: Each(c.Tracks, func(t *catalog.Reached) *kujiv1.TrackCount {
			return &kujiv1.TrackCount{Track: t.Track, Draws: t.Draws}
		})}
}

func luck(l *catalog.Luck) *kujiv1.Luck {
	if l.Empty() {
		return nil
	}
	return &kujiv1.Luck{Item: l.Item, Track: l.Track, Counter: l.Counter, Steps: Each(l.Steps, func(s *catalog.LuckStep) *kujiv1.LuckStep {
		return &kujiv1.LuckStep{From: s.From, Weight: s.Weight}
	})}
}

func track(t *catalog.Track) *kujiv1.Track {
	return &kujiv1.Track{Name: t.Name, Of: t.Of, Certain: t.Certain, RisingFrom: t.Rising.From, RisingBy: t.Rising.By,
		RisingTable: t.Rising.Table, RisingScale: t.Rising.Scale, Share: t.Share}
}

func moments(m *catalog.Moments, v *kuji.MomentsView) *kujiv1.Moments {
	if v == nil {
		return nil
	}
	return &kujiv1.Moments{
		Count: m.Count, Spread: kujiv1.Spread(m.Spread), Pass: m.Pass, Come: v.Come, Waiting: v.Waiting, NextUnixMs: v.NextAt,
		Weights: Each(m.Weights, func(w *catalog.TimeWeight) *kujiv1.TimeWeight {
			return &kujiv1.TimeWeight{When: w.When, Weight: w.Weight}
		}),
	}
}
