package server

import (
	"context"
	"math/big"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// oddsAtOnce is how many odds are computed at a time. Those of one pool can take a second.
const oddsAtOnce = 4

func (h rewardService) GetOdds(ctx context.Context, req *kujiv1.GetOddsRequest) (*kujiv1.GetOddsResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	if req.GetStale() {
		ctx = kuji.Stale(ctx)
	}
	o, err := r.Pools().Odds(ctx, req.GetPool(), req.GetPlayer(), int(max(1, req.GetCount())))
	if err != nil {
		return nil, err
	}
	return &kujiv1.GetOddsResponse{Odds: oddsProto(&o)}, nil
}

func oddsProto(o *kuji.Odds) *kujiv1.Odds {
	return &kujiv1.Odds{
		Status: statusProto(o.Status), Subject: o.Subject, CatalogVersion: o.CatalogVersion, Position: o.Position, Count: uint32(o.Count),
		Outcomes: each(o.Outcomes, func(e *kuji.OutcomeOdds) *kujiv1.OutcomeOdds {
			return &kujiv1.OutcomeOdds{Pool: e.Pool, Entry: e.Entry, Chance: fractionProto(e.Chance), Expected: fractionProto(e.Expected)}
		}),
		Items: each(o.Items, func(it *kuji.ItemOdds) *kujiv1.ItemOdds {
			return &kujiv1.ItemOdds{Item: it.Item, Expected: fractionProto(it.Expected)}
		}),
		Pity: each(o.Pity, func(t *kuji.TrackOdds) *kujiv1.TrackOdds {
			return &kujiv1.TrackOdds{Pool: t.Pool, Track: t.Track, Draws: t.Draws, CertainIn: t.CertainIn, Unless: t.Unless}
		}),
	}
}

// maxFraction is the longest text of an exact fraction in an answer, in bytes.
const maxFraction = 200

// fractionProto returns nil for nil.
func fractionProto(x *big.Rat) *kujiv1.Fraction {
	if x == nil {
		return nil
	}
	out := &kujiv1.Fraction{}
	out.Value, _ = x.Float64()
	if x.Num().BitLen()+x.Denom().BitLen() < 4*maxFraction { // more than three bits for each digit
		if text := x.RatString(); len(text) <= maxFraction {
			out.Exact = text
		}
	}
	return out
}
