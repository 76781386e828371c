package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Redeem(ctx context.Context, req *kujiv1.RedeemRequest) (*kujiv1.RedeemResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), redeemOf(req.GetRequestId(), req))
	if err != nil {
		return nil, err
	}
	return &kujiv1.RedeemResponse{Result: res}, nil
}

// redeemMessage is a redeem in a request or a command.
type redeemMessage interface {
	GetPlayer() string
	GetCode() string
}

func redeemOf(id string, m redeemMessage) *kuji.Redeem {
	return &kuji.Redeem{ID: id, Player: m.GetPlayer(), Code: m.GetCode()}
}
