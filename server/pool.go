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
	v, err := r.PoolPage(ctx, req.GetPool(), from, to-from)
	if err := cmp.Or(err, invalid); err != nil {
		return nil, err
	}
	return &kujiv1.GetPoolResponse{Pool: poolProto(&v, from)}, nil
}

// poolProto makes the message of a pool whose entries begin at an index.
func poolProto(v *kuji.PoolView, from int) *kujiv1.Pool {
	c := &v.Config
	p := &kujiv1.Pool{
		Id: v.ID, Name: c.Name, Mode: modeProto(c.Mode), Price: stacksProto(c.Price),
		StartsUnixMs: c.StartsAt, EndsUnixMs: c.EndsAt, MaxCount: c.MaxCount,
		EntryCount: uint32(len(c.Entries)), WeightScale: c.WeightScale, TotalWeight: v.TotalWeight,
		CatalogVersion: v.CatalogVersion, Position: v.Position,
	}
	for _, l := range c.Limits {
		p.Limits = append(p.Limits, &kujiv1.PlayerLimit{Per: perProto(l.Per), WindowMs: l.Window, Draws: l.Draws})
	}
	p.Entries = make([]*kujiv1.Entry, len(v.Entries))
	for i := range v.Entries {
		e, def := &v.Entries[i], &c.Entries[from+i]
		out := &kujiv1.Entry{Id: e.ID, Weight: e.Weight, Drawn: e.Drawn, CatalogWeight: def.Weight, Reward: rewardProto(&def.Reward)}
		if !e.Unlimited {
			out.Left = proto.Uint64(e.Left)
		}
		p.Entries[i] = out
	}
	return p
}

func rewardProto(r *catalog.Reward) *kujiv1.Reward {
	out := &kujiv1.Reward{Pool: r.Pool}
	for _, q := range r.Items {
		out.Items = append(out.Items, &kujiv1.RewardItem{Item: q.Item, Min: q.Min, Max: q.Max})
	}
	return out
}

func modeProto(m catalog.Mode) kujiv1.PoolMode {
	switch m {
	case catalog.ModeWeighted:
		return kujiv1.PoolMode_POOL_MODE_WEIGHTED
	case catalog.ModeRaffle:
		return kujiv1.PoolMode_POOL_MODE_RAFFLE
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
	}
	return kujiv1.LimitPeriod_LIMIT_PERIOD_UNSPECIFIED
}
