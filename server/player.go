package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) GetPlayer(ctx context.Context, req *kujiv1.GetPlayerRequest) (*kujiv1.GetPlayerResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	if req.GetStale() {
		ctx = kuji.Stale(ctx)
	}
	v, err := r.Player(ctx, req.GetPlayer())
	if err != nil {
		return nil, err
	}
	out := &kujiv1.GetPlayerResponse{Player: &kujiv1.Player{
		Id: v.ID, Items: stacksProto(v.Items), Position: v.Position,
		Pity: each(v.Tracks, func(t *kuji.TrackView) *kujiv1.PlayerTrack {
			return &kujiv1.PlayerTrack{Track: t.Name, Draws: t.Draws, CertainIn: t.CertainIn, Pool: t.Pool, Unless: t.Unless}
		}),
		Limits: each(v.Limits, poolLimitProto), Free: each(v.Free, poolLimitProto),
	}}
	if req.GetNames() {
		out.Items, err = namesIn(ctx, r, out)
	}
	return out, err
}

func poolLimitProto(l *kuji.PoolLimit) *kujiv1.Limit {
	out := limitProto(&l.Limit)
	out.Pool = l.Pool
	return out
}
