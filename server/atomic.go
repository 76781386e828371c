package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Atomic(ctx context.Context, req *kujiv1.AtomicRequest) (*kujiv1.AtomicResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), atomicOf(req.GetRequestId(), req.GetMembers(), h.s.note(ctx, req)))
	if err != nil {
		return nil, err
	}
	return &kujiv1.AtomicResponse{Result: res}, nil
}

func atomicOf(id string, members []*kujiv1.Member, note kuji.Note) *kuji.Atomic {
	group := &kuji.Atomic{ID: id, Members: make([]kuji.Request, len(members)), Note: note}
	for i, m := range members {
		switch c := m.GetCommand().(type) {
		case *kujiv1.Member_Draw:
			group.Members[i] = drawOf("", c.Draw)
		case *kujiv1.Member_Register:
			group.Members[i] = registerOf("", c.Register, kuji.Note{})
		case *kujiv1.Member_Grant:
			group.Members[i] = grantOf("", c.Grant, kuji.Note{})
		case *kujiv1.Member_Consume:
			group.Members[i] = consumeOf("", c.Consume, kuji.Note{})
		case *kujiv1.Member_Transfer:
			group.Members[i] = transferOf("", c.Transfer, kuji.Note{})
		} // an empty member stays nil, and the engine refuses it
	}
	return group
}
