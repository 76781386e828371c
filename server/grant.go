package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Grant(ctx context.Context, req *kujiv1.GrantRequest) (*kujiv1.GrantResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), grantOf(req.GetRequestId(), req, h.s.note(ctx, req)))
	if err != nil {
		return nil, err
	}
	return &kujiv1.GrantResponse{Result: res}, nil
}

func (h rewardService) Consume(ctx context.Context, req *kujiv1.ConsumeRequest) (*kujiv1.ConsumeResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), consumeOf(req.GetRequestId(), req, h.s.note(ctx, req)))
	if err != nil {
		return nil, err
	}
	return &kujiv1.ConsumeResponse{Result: res}, nil
}

func (h rewardService) Transfer(ctx context.Context, req *kujiv1.TransferRequest) (*kujiv1.TransferResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), transferOf(req.GetRequestId(), req, h.s.note(ctx, req)))
	if err != nil {
		return nil, err
	}
	return &kujiv1.TransferResponse{Result: res}, nil
}

// itemsMessage is a grant or a consume in a request, a command or a member.
type itemsMessage interface {
	GetPlayer() string
	GetItems() []*kujiv1.Stack
}

func grantOf(id string, m itemsMessage, note kuji.Note) *kuji.Grant {
	return &kuji.Grant{ID: id, Player: m.GetPlayer(), Items: stacksOf(m.GetItems()), Note: note}
}

func consumeOf(id string, m itemsMessage, note kuji.Note) *kuji.Consume {
	return &kuji.Consume{ID: id, Player: m.GetPlayer(), Items: stacksOf(m.GetItems()), Note: note}
}

// transferMessage is a transfer in a request, a command or a member.
type transferMessage interface {
	GetFrom() string
	GetTo() string
	GetItems() []*kujiv1.Stack
}

func transferOf(id string, m transferMessage, note kuji.Note) *kuji.Transfer {
	return &kuji.Transfer{ID: id, From: m.GetFrom(), To: m.GetTo(), Items: stacksOf(m.GetItems()), Note: note}
}

func stacksOf(stacks []*kujiv1.Stack) []kuji.Stack {
	out := make([]kuji.Stack, len(stacks))
	for i, s := range stacks {
		out[i] = kuji.Stack{Item: s.GetItem(), Quantity: s.GetQuantity()}
	}
	return out
}
