package server

import (
	"context"
	"fmt"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) GetResult(ctx context.Context, req *kujiv1.GetResultRequest) (*kujiv1.GetResultResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	if req.GetStale() {
		ctx = kuji.Stale(ctx)
	}
	l, err := r.Result(ctx, req.GetRequestId())
	if err != nil {
		return nil, err
	}
	out := &kujiv1.GetResultResponse{Seen: seenProto(l.Seen), ForgottenBeforeUnixMs: l.Before}
	if l.Seen != kuji.Answered {
		return out, nil
	}
	player := req.GetPlayer()
	if player != "" && player != l.Player {
		return nil, &kuji.Error{Code: kuji.CodeIDReused, Field: "player", Message: fmt.Sprintf("%q was not a request of player %q alone", req.GetRequestId(), player)}
	}
	out.Player, out.Result = l.Player, resultProto(&l.Result)
	if player == "" || !mayRepeat(ctx, &l.Result) { // who may gets the codes by sending the request again, too
		redact(out.GetResult())
	}
	return out, nil
}

func seenProto(s kuji.Seen) kujiv1.Seen {
	switch s {
	case kuji.NotSeen:
		return kujiv1.Seen_SEEN_NOT_SEEN
	case kuji.Answered:
		return kujiv1.Seen_SEEN_ANSWERED
	case kuji.MaybeForgotten:
		return kujiv1.Seen_SEEN_MAYBE_FORGOTTEN
	}
	return kujiv1.Seen_SEEN_UNSPECIFIED
}

// mayRepeat reports whether a call came with a key that may send the request of a result again. A key
// with pools may not: the result does not say from which pool it is.
func mayRepeat(ctx context.Context, res *kuji.Result) bool {
	needs := canDraw
	if res.Redeemed != "" {
		needs = canRedeem
	}
	c, _ := ctx.Value(callKey{}).(*call)
	return c != nil && c.access.can&needs != 0 && c.access.pools == nil
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
