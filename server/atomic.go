package server

import (
	"context"
	"fmt"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Atomic(ctx context.Context, req *kujiv1.AtomicRequest) (*kujiv1.AtomicResponse, error) {
	group, err := atomicOf(req.GetRequestId(), req.GetMembers())
	if err != nil {
		return nil, err
	}
	res, err := h.s.do(ctx, req.GetRealm(), group)
	if err != nil {
		return nil, err
	}
	return &kujiv1.AtomicResponse{Result: res}, nil
}

func atomicOf(id string, members []*kujiv1.Member) (*kuji.Atomic, error) {
	if len(members) > kuji.MaxAtomic {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "members",
			Message: fmt.Sprintf("%d of them, want at most %d", len(members), kuji.MaxAtomic)}
	}
	group := &kuji.Atomic{ID: id, Members: make([]kuji.Request, len(members))}
	for i, m := range members {
		switch c := m.GetCommand().(type) {
		case *kujiv1.Member_Draw:
			group.Members[i] = drawOf("", c.Draw)
		case *kujiv1.Member_Grant:
			group.Members[i] = grantOf("", c.Grant)
		case *kujiv1.Member_Consume:
			group.Members[i] = consumeOf("", c.Consume)
		case *kujiv1.Member_Transfer:
			group.Members[i] = transferOf("", c.Transfer)
		default:
			return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: fmt.Sprintf("members[%d]", i),
				Message: "is empty, want one of draw, grant, consume, transfer"}
		}
	}
	return group, nil
}

func drawOf(id string, d *kujiv1.Draw) *kuji.Draw {
	return &kuji.Draw{ID: id, Player: d.GetPlayer(), Pool: d.GetPool(), Count: countOf(d.GetCount())}
}

func grantOf(id string, g *kujiv1.Grant) *kuji.Grant {
	return &kuji.Grant{ID: id, Player: g.GetPlayer(), Items: stacksOf(g.GetItems())}
}

func consumeOf(id string, c *kujiv1.Consume) *kuji.Consume {
	return &kuji.Consume{ID: id, Player: c.GetPlayer(), Items: stacksOf(c.GetItems())}
}

func transferOf(id string, t *kujiv1.Transfer) *kuji.Transfer {
	return &kuji.Transfer{ID: id, From: t.GetFrom(), To: t.GetTo(), Items: stacksOf(t.GetItems())}
}
