package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Grant(ctx context.Context, req *kujiv1.GrantRequest) (*kujiv1.GrantResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), &kuji.Grant{
		ID: req.GetRequestId(), Player: req.GetPlayer(), Items: stacksOf(req.GetItems()),
	})
	if err != nil {
		return nil, err
	}
	return &kujiv1.GrantResponse{Result: res}, nil
}

func (h rewardService) Consume(ctx context.Context, req *kujiv1.ConsumeRequest) (*kujiv1.ConsumeResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), &kuji.Consume{
		ID: req.GetRequestId(), Player: req.GetPlayer(), Items: stacksOf(req.GetItems()),
	})
	if err != nil {
		return nil, err
	}
	return &kujiv1.ConsumeResponse{Result: res}, nil
}

func (h rewardService) Transfer(ctx context.Context, req *kujiv1.TransferRequest) (*kujiv1.TransferResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), &kuji.Transfer{
		ID: req.GetRequestId(), From: req.GetFrom(), To: req.GetTo(), Items: stacksOf(req.GetItems()),
	})
	if err != nil {
		return nil, err
	}
	return &kujiv1.TransferResponse{Result: res}, nil
}
