package server

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// reads answers reads of a realm's state.
type reads struct{}

func (reads) GetPlayer(ctx context.Context, req *kujiv1.GetPlayerRequest) (*kujiv1.GetPlayerResponse, error) {
	r := realmOf(ctx)
	v, err := r.Player(ctx, req.GetPlayer())
	if err != nil {
		return nil, err
	}
	out := &kujiv1.GetPlayerResponse{Player: &kujiv1.Player{
		Id: v.ID, Items: message.Stacks(v.Items), Position: v.Position,
		Pity: message.Each(v.Tracks, func(t *kuji.TrackView) *kujiv1.PlayerTrack {
			return &kujiv1.PlayerTrack{Track: t.Name, Draws: t.Draws, CertainIn: t.CertainIn, Pool: t.Pool, Unless: t.Unless}
		}),
		Limits: message.Each(v.Limits, poolLimit), Free: message.Each(v.Free, poolLimit),
	}}
	if req.GetNames() {
		out.Items, err = namesIn(ctx, r, out)
	}
	return out, err
}

func poolLimit(l *kuji.PoolLimit) *kujiv1.Limit {
	out := message.Limit(&l.Limit)
	out.Pool = l.Pool
	return out
}

func (reads) GetPool(ctx context.Context, req *kujiv1.GetPoolRequest) (*kujiv1.GetPoolResponse, error) {
	r := realmOf(ctx)
	from, to, invalid := page("entry_limit", req.GetEntryOffset(), req.GetEntryLimit(), math.MaxInt)
	v, err := r.Pools().Page(ctx, req.GetPool(), from, to-from)
	if err := cmp.Or(err, invalid); err != nil {
		return nil, err
	}
	out := &kujiv1.GetPoolResponse{Pool: message.Pool(&v, from)}
	if req.GetPlayer() != "" {
		limits, err := r.Pools().Limits(ctx, req.GetPool(), req.GetPlayer())
		if err != nil {
			return nil, err
		}
		free, err := r.Pools().Free(ctx, req.GetPool(), req.GetPlayer())
		if err != nil {
			return nil, err
		}
		if out.PlayerLimits = message.Each(limits, message.Limit); free != nil {
			out.PlayerFree = message.Limit(free)
		}
	}
	if req.GetNames() {
		out.Items, err = namesIn(ctx, r, out)
	}
	return out, err
}

// oddsAtOnce is how many odds are computed at a time. Those of one pool can take a second.
const oddsAtOnce = 4

func (reads) GetOdds(ctx context.Context, req *kujiv1.GetOddsRequest) (*kujiv1.GetOddsResponse, error) {
	r := realmOf(ctx)
	o, err := r.Pools().Odds(ctx, req.GetPool(), req.GetPlayer(), int(max(1, req.GetCount())))
	if err != nil {
		return nil, err
	}
	return &kujiv1.GetOddsResponse{Odds: message.Odds(&o)}, nil
}

func (reads) GetResult(ctx context.Context, req *kujiv1.GetResultRequest) (*kujiv1.GetResultResponse, error) {
	r := realmOf(ctx)
	l, err := r.Result(ctx, req.GetRequestId())
	if err != nil {
		return nil, err
	}
	out := &kujiv1.GetResultResponse{Seen: kujiv1.Seen(l.Seen), ForgottenBeforeUnixMs: l.Before}
	if l.Seen != kuji.Answered {
		return out, nil
	}
	player := req.GetPlayer()
	if player != "" && player != l.Player {
		return nil, &kuji.Error{Code: kuji.CodeIDReused, Field: "player", Message: fmt.Sprintf("%q was not a request of player %q alone", req.GetRequestId(), player)}
	}
	out.Player, out.Result = l.Player, message.Result(&l.Result)
	if player == "" || !accessOf(ctx).MayRepeat(l.Result.Redeemed != "") { // with that right, the client could get the codes by a repeat
		redact(out.GetResult())
	}
	return out, nil
}

// redact hides the codes in a result.
func redact(res *kujiv1.Result) {
	for _, o := range res.GetOutcomes() {
		for _, c := range o.GetCodes() {
			c.Code = kuji.Redacted
		}
	}
	for _, m := range res.GetMembers() {
		redact(m)
	}
}
