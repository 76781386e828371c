package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Draw(ctx context.Context, req *kujiv1.DrawRequest) (*kujiv1.DrawResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), drawOf(req.GetRequestId(), req))
	if err != nil {
		return nil, err
	}
	return &kujiv1.DrawResponse{Result: res}, nil
}

// drawMessage is a draw in a request, a command or a member.
type drawMessage interface {
	GetPlayer() string
	GetPool() string
	GetCount() uint32
	GetPay() string
}

func drawOf(id string, m drawMessage) *kuji.Draw {
	return &kuji.Draw{ID: id, Player: m.GetPlayer(), Pool: m.GetPool(), Count: countOf(m.GetCount()), Pay: m.GetPay()}
}

// countOf converts a count. If int has 32 bits, one that is far too large stays too large.
func countOf(n uint32) int { return int(min(n, 1<<30)) }
