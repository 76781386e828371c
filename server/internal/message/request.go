package message

import (
	"cmp"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
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
	case *kujiv1.SetLimit, *kujiv1.SetLimitRequest:
		l := m.(limitMessage)
		per := catalog.Per(min(uint32(l.GetPer()), math.MaxUint8)) // too large stays too large
		return &kuji.SetLimit{ID: id, Player: l.GetPlayer(), Pool: l.GetPool(), Per: per, Window: l.GetWindowMs(), Used: l.GetUsed(), Note: note}
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
	limitMessage interface {
		GetPlayer() string
		GetPool() string
		GetPer() kujiv1.LimitPeriod
		GetWindowMs() int64
		GetUsed() uint64
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

// What results and answers take in memory, in bytes, if rewards have two items. TestWork measures
// it.
const (
	CommandBytes = 3072 // a command of a batch, or a member of a group
	drawBytes    = 1024 // a draw of a stream
	outcomeBytes = 2560 // an outcome of a unary call
	sharedBytes  = 384  // an outcome in an answer that writes equal ones once
	entryBytes   = 4096 // an entry in a page of a pool
	itemBytes    = 1024 // an item in a page of a catalog
)

// Commands returns how many commands a request asks for; a read is one.
func Commands(m proto.Message) int {
	switch m := m.(type) {
	case *kujiv1.Atomic:
		return len(m.GetMembers())
	case *kujiv1.AtomicRequest:
		return len(m.GetMembers())
	case *kujiv1.BatchRequest:
		n := 0
		for _, c := range m.GetCommands() {
			n += max(1, len(c.GetAtomic().GetMembers()))
		}
		return n
	case *kujiv1.StreamDrawsRequest:
		return max(len(m.GetPlayers()), len(m.GetPlayerIndexes()))
	}
	return 1
}

// Outcomes returns how many outcomes a command can have: one of a batch, or a request of its own.
func Outcomes(m proto.Message) (n int64) {
	members := func(all []*kujiv1.Member) int64 {
		for _, one := range all {
			n += Outcomes(contract.MemberOf(one))
		}
		return n
	}
	switch m := m.(type) {
	case *kujiv1.Draw:
		return asked(m.GetCount())
	case *kujiv1.DrawRequest:
		return asked(m.GetCount())
	case *kujiv1.Redeem, *kujiv1.RedeemRequest:
		return kuji.MaxRedeemTimes
	case *kujiv1.Atomic:
		return members(m.GetMembers())
	case *kujiv1.AtomicRequest:
		return members(m.GetMembers())
	}
	return 0
}

// asked returns how many outcomes a count asks for: none if it is too large, because then its draw
// is refused on its own.
func asked(count uint32) int64 {
	if count > kuji.MaxDrawCount {
		return 0
	}
	return max(1, int64(count))
}

// Work returns how many bytes the results and the answer need: of a unary call, or of a command.
func Work(m proto.Message) int64 {
	switch m := m.(type) {
	case *kujiv1.Atomic, *kujiv1.AtomicRequest:
		return int64(Commands(m))*CommandBytes + Outcomes(m)*outcomeBytes
	case *kujiv1.BatchRequest:
		n := int64(0)
		for _, one := range m.GetCommands() {
			n += CommandBytes
			if c := contract.CommandOf(one); one.GetAtomic() != nil {
				n += Work(c)
			} else {
				n += Outcomes(c) * sharedBytes
			}
		}
		return n
	case *kujiv1.GetPoolRequest:
		n := int64(entryBytes)
		if m.GetNames() {
			n += itemBytes
		}
		return pageWork(m.GetEntryLimit(), n)
	case *kujiv1.GetCatalogRequest:
		return pageWork(m.GetItemLimit(), itemBytes)
	}
	return Outcomes(m) * outcomeBytes
}

func pageWork(limit uint32, each int64) int64 {
	return int64(min(cmp.Or(limit, contract.DefaultPage), contract.MaxPage)) * each
}
