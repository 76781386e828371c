package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h adminService) SetTrack(ctx context.Context, req *kujiv1.SetTrackRequest) (*kujiv1.SetTrackResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), &kuji.SetTrack{
		ID: req.GetRequestId(), Player: req.GetPlayer(), Track: req.GetTrack(), Draws: req.GetDraws(),
		By: h.s.caller(ctx), Reason: req.GetReason(),
	})
	if err != nil {
		return nil, err
	}
	return &kujiv1.SetTrackResponse{Result: res}, nil
}
