package message

import (
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Request translates a command for the engine: one of a batch, a member of a group, or a request of
// its own. What the engine does not know becomes nil, and the engine refuses it.
func Request(id string, m proto.Message, note kuji.Note) kuji.Request {
	switch m := m.(type) {
	case *kujiv1.Draw, *kujiv1.DrawRequest:
		d := m.(drawMessage)
		return &kuji.Draw{ID: id, Player: d.GetPlayer(), Pool: d.GetPool(), Count: count(d.GetCount()), Pay: d.GetPay()}
	case *kujiv1.Redeem, *kujiv1.RedeemRequest:
		r := m.(redeemMessage)
		return &kuji.Redeem{ID: id, Player: r.GetPlayer(), Code: r.GetCode()}
	case *kujiv1.Register, *kujiv1.RegisterRequest:
		return &kuji.Register{ID: id, Player: m.(interface{ GetPlayer() string }).GetPlayer(), Note: note}
	case *kujiv1.Grant, *kujiv1.GrantRequest:
		g := m.(itemsMessage)
		return &kuji.Grant{ID: id, Player: g.GetPlayer(), Items: stacks(g.GetItems()), Note: note}
	case *kujiv1.Consume, *kujiv1.ConsumeRequest:
		c := m.(itemsMessage)
		return &kuji.Consume{ID: id, Player: c.GetPlayer(), Items: stacks(c.GetItems()), Note: note}
	case *kujiv1.Transfer, *kujiv1.TransferRequest:
		t := m.(transferMessage)
		return &kuji.Transfer{ID: id, From: t.GetFrom(), To: t.GetTo(), Items: stacks(t.GetItems()), Note: note}
	case *kujiv1.Atomic:
		return group(id, m.GetMembers(), note)
	case *kujiv1.AtomicRequest:
		return group(id, m.GetMembers(), note)
	case *kujiv1.SetTrackRequest:
		return &kuji.SetTrack{ID: id, Player: m.GetPlayer(), Track: m.GetTrack(), Draws: m.GetDraws(), By: note.By, Reason: note.Reason}
	}
	return nil
}

// These are commands, whether in a request, in a batch or in a group.
type (
	drawMessage interface {
		GetPlayer() string
		GetPool() string
		GetCount() uint32
		GetPay() string
	}
	redeemMessage interface {
		GetPlayer() string
		GetCode() string
	}
	itemsMessage interface {
		GetPlayer() string
		GetItems() []*kujiv1.Stack
	}
	transferMessage interface {
		GetFrom() string
		GetTo() string
		GetItems() []*kujiv1.Stack
	}
)

func group(id string, members []*kujiv1.Member, note kuji.Note) *kuji.Atomic {
	out := &kuji.Atomic{ID: id, Members: make([]kuji.Request, len(members)), Note: note}
	for i, m := range members {
		out.Members[i] = Request("", contract.MemberOf(m), kuji.Note{})
	}
	return out
}

// count converts a count. If int has 32 bits, one that is far too large stays too large.
func count(n uint32) int { return int(min(n, 1<<30)) }

func stacks(all []*kujiv1.Stack) []kuji.Stack {
	out := make([]kuji.Stack, len(all))
	for i, s := range all {
		out[i] = kuji.Stack{Item: s.GetItem(), Quantity: s.GetQuantity()}
	}
	return out
}
