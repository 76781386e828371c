package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Register(ctx context.Context, req *kujiv1.RegisterRequest) (*kujiv1.RegisterResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), registerOf(req.GetRequestId(), req, h.s.note(ctx, req)))
	if err != nil {
		return nil, err
	}
	return &kujiv1.RegisterResponse{Result: res}, nil
}

// registerMessage is a register in a request, a command or a member.
type registerMessage interface{ GetPlayer() string }

func registerOf(id string, m registerMessage, note kuji.Note) *kuji.Register {
	return &kuji.Register{ID: id, Player: m.GetPlayer(), Note: note}
}
