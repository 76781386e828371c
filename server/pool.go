package server

import (
	"cmp"
	"context"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) GetPool(ctx context.Context, req *kujiv1.GetPoolRequest) (*kujiv1.GetPoolResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	from, to, invalid := page("entry_limit", req.GetEntryOffset(), req.GetEntryLimit(), math.MaxInt)
	if req.GetStale() {
		ctx = kuji.Stale(ctx)
	}
	v, err := r.Pools().Page(ctx, req.GetPool(), from, to-from)
	if err := cmp.Or(err, invalid); err != nil {
		return nil, err
	}
	out := &kujiv1.GetPoolResponse{Pool: poolProto(&v, from)}
	if req.GetPlayer() != "" {
		limits, err := r.Pools().Limits(ctx, req.GetPool(), req.GetPlayer())
		if err != nil {
			return nil, err
		}
		free, err := r.Pools().Free(ctx, req.GetPool(), req.GetPlayer())
		if err != nil {
			return nil, err
		}
		if out.PlayerLimits = each(limits, limitProto); free != nil {
			out.PlayerFree = limitProto(free)
		}
	}
	if req.GetNames() {
		out.Items, err = namesIn(ctx, r, out)
	}
	return out, err
}

// poolProto makes the message of a pool whose entries begin at an index.
func poolProto(v *kuji.PoolView, from int) *kujiv1.Pool {
	c := &v.Config
	p := &kujiv1.Pool{
		Id: v.ID, Name: c.Name, Mode: modeProto(c.Mode), Prices: pricesProto(c.Price),
		StartsUnixMs: c.StartsAt, EndsUnixMs: c.EndsAt, MaxCount: c.MaxCount,
		EntryCount: uint32(len(c.Entries)), WeightScale: c.WeightScale, TotalWeight: v.TotalWeight,
		CatalogVersion: v.CatalogVersion, Position: v.Position,
	}
	p.Internal, p.Memoryless, p.When = c.Internal, c.Memoryless, conditionProto(&c.When)
	p.Rolls = &kujiv1.Rolls{Min: c.Rolls.Min, Max: c.Rolls.Max, Distinct: c.Rolls.Distinct}
	for i := range c.Bundles {
		p.Bundles = append(p.Bundles, &kujiv1.Bundle{Draws: c.Bundles[i].Draws, Items: stacksProto(c.Bundles[i].Price)})
	}
	if c.Free.Per != 0 {
		p.Free = &kujiv1.PlayerLimit{Per: perProto(c.Free.Per), Draws: c.Free.Draws}
	}
	p.Redeem = each(c.Redeem, func(r *catalog.Redeem) *kujiv1.RedeemTerms {
		return &kujiv1.RedeemTerms{List: r.List, Times: r.Times, Uses: r.Uses, UntilUnixMs: r.Until}
	})
	p.Pity = each(c.Tracks, trackProto)
	p.Guarantees = each(c.Guarantees, func(g *catalog.Guarantee) *kujiv1.Guarantee {
		return &kujiv1.Guarantee{Draws: g.Draws, AtLeast: g.AtLeast, Of: g.Of}
	})
	if p.Refill = c.Refill; !c.Last.Nothing() {
		p.Last = rewardProto(&c.Last)
	}
	for _, l := range c.Limits {
		p.Limits = append(p.Limits, &kujiv1.PlayerLimit{Per: perProto(l.Per), WindowMs: l.Window, Draws: l.Draws})
	}
	p.Budgets = each(v.Budgets, func(b *kuji.BudgetView) *kujiv1.Budget {
		return &kujiv1.Budget{Per: perProto(b.Per), Share: b.Share, Item: b.Item, Limit: b.Limit, Spent: b.Spent, Left: b.Left(), ResetsUnixMs: b.ResetsAt}
	})
	p.Entries = make([]*kujiv1.Entry, len(v.Entries))
	for i := range v.Entries {
		e, def := &v.Entries[i], &c.Entries[from+i]
		out := &kujiv1.Entry{Id: e.ID, Weight: e.Weight, Drawn: e.Drawn, CatalogWeight: def.Weight, Reward: rewardProto(&def.Reward),
			Group: def.Group, When: conditionProto(&def.When), Unique: def.Unique, Luck: luckProto(&def.Luck)}
		if !e.Unlimited {
			out.Left = proto.Uint64(e.Left)
		}
		out.Available, out.OverBudget, out.Moments = e.Available(), e.OverBudget, momentsProto(&def.Moments, e.Moments)
		p.Entries[i] = out
	}
	return p
}

func rewardProto(r *catalog.Reward) *kujiv1.Reward {
	out := &kujiv1.Reward{Codes: r.Codes}
	for _, in := range r.Draws {
		out.Draws = append(out.Draws, &kujiv1.InnerDraws{Pool: in.Pool, Min: in.Min, Max: in.Max})
	}
	for _, q := range r.Items {
		out.Items = append(out.Items, &kujiv1.RewardItem{Item: q.Item, Min: q.Min, Max: q.Max})
	}
	return out
}

func pricesProto(prices [][]kuji.Stack) []*kujiv1.Price {
	return each(prices, func(p *[]kuji.Stack) *kujiv1.Price { return &kujiv1.Price{Items: stacksProto(*p)} })
}

func conditionProto(c *catalog.Condition) *kujiv1.Condition {
	if c.Empty() {
		return nil
	}
	return &kujiv1.Condition{Holds: stacksProto(c.Holds), Lacks: c.Lacks,
		Pity: each(c.Tracks, func(t *catalog.Reached) *kujiv1.TrackCount {
			return &kujiv1.TrackCount{Track: t.Track, Draws: t.Draws}
		})}
}

func luckProto(l *catalog.Luck) *kujiv1.Luck {
	if l.Empty() {
		return nil
	}
	return &kujiv1.Luck{Item: l.Item, Track: l.Track, Steps: each(l.Steps, func(s *catalog.LuckStep) *kujiv1.LuckStep {
		return &kujiv1.LuckStep{From: s.From, Weight: s.Weight}
	})}
}

func trackProto(t *catalog.Track) *kujiv1.Track {
	return &kujiv1.Track{Name: t.Name, Of: t.Of, Certain: t.Certain, RisingFrom: t.Rising.From, RisingBy: t.Rising.By,
		RisingTable: t.Rising.Table, RisingScale: t.Rising.Scale, Share: t.Share}
}

func momentsProto(m *catalog.Moments, v *kuji.MomentsView) *kujiv1.Moments {
	if v == nil {
		return nil
	}
	return &kujiv1.Moments{
		Count: m.Count, Spread: spreadProto(m.Spread), Pass: m.Pass, Come: v.Come, Waiting: v.Waiting, NextUnixMs: v.NextAt,
		Weights: each(m.Weights, func(w *catalog.TimeWeight) *kujiv1.TimeWeight {
			return &kujiv1.TimeWeight{When: w.When, Weight: w.Weight}
		}),
	}
}

func spreadProto(s catalog.Spread) kujiv1.Spread {
	switch s {
	case catalog.SpreadEven:
		return kujiv1.Spread_SPREAD_EVEN
	case catalog.SpreadSlots:
		return kujiv1.Spread_SPREAD_SLOTS
	case catalog.SpreadRandom:
		return kujiv1.Spread_SPREAD_RANDOM
	}
	return kujiv1.Spread_SPREAD_UNSPECIFIED
}

func modeProto(m catalog.Mode) kujiv1.PoolMode {
	switch m {
	case catalog.ModeWeighted:
		return kujiv1.PoolMode_POOL_MODE_WEIGHTED
	case catalog.ModeRaffle:
		return kujiv1.PoolMode_POOL_MODE_RAFFLE
	case catalog.ModeEach:
		return kujiv1.PoolMode_POOL_MODE_EACH
	}
	return kujiv1.PoolMode_POOL_MODE_UNSPECIFIED
}

func perProto(p catalog.Per) kujiv1.LimitPeriod {
	switch p {
	case catalog.PerForever:
		return kujiv1.LimitPeriod_LIMIT_PERIOD_FOREVER
	case catalog.PerDay:
		return kujiv1.LimitPeriod_LIMIT_PERIOD_DAY
	case catalog.PerWeek:
		return kujiv1.LimitPeriod_LIMIT_PERIOD_WEEK
	case catalog.PerWindow:
		return kujiv1.LimitPeriod_LIMIT_PERIOD_WINDOW
	case catalog.PerHour:
		return kujiv1.LimitPeriod_LIMIT_PERIOD_HOUR
	}
	return kujiv1.LimitPeriod_LIMIT_PERIOD_UNSPECIFIED
}
