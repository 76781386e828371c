package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Draw(ctx context.Context, req *kujiv1.DrawRequest) (*kujiv1.DrawResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), &kuji.Draw{
		ID: req.GetRequestId(), Player: req.GetPlayer(), Pool: req.GetPool(), Count: countOf(req.GetCount()),
	})
	if err != nil {
		return nil, err
	}
	return &kujiv1.DrawResponse{Result: res}, nil
}

// countOf keeps a count that is far too large too large where int has 32 bits.
func countOf(n uint32) int { return int(min(n, 1<<30)) }
