package message

import (
	"cmp"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Request translates a command for the engine: of a batch, of a group, or a request of its own.
// What the engine does not know becomes nil, and the engine refuses it.
func Request(id string, m proto.Message, note kuji.Note) kuji.Request {
	switch m := m.(type) {
	case drawMessage:
		return &kuji.Draw{ID: id, Player: m.GetPlayer(), Pool: m.GetPool(), Count: count(m.GetCount()), Pay: m.GetPay(), Hold: holding(m)}
	case *kujiv1.Redeem, *kujiv1.RedeemRequest:
		r := m.(codeMessage)
		return &kuji.Redeem{ID: id, Player: r.GetPlayer(), Code: r.GetCode()}
	case *kujiv1.Register, *kujiv1.RegisterRequest:
		return &kuji.Register{ID: id, Player: m.(interface{ GetPlayer() string }).GetPlayer(), Note: note}
	case *kujiv1.Grant, *kujiv1.GrantRequest:
		g := m.(itemsMessage)
		return &kuji.Grant{ID: id, Player: g.GetPlayer(), Items: stacks(g.GetItems()), Note: note}
	case *kujiv1.Consume, *kujiv1.ConsumeRequest:
		c := m.(itemsMessage)
		return &kuji.Consume{ID: id, Player: c.GetPlayer(), Items: stacks(c.GetItems()), Note: note, Hold: holding(m.(holdable))}
	case transferMessage:
		return &kuji.Transfer{ID: id, From: m.GetFrom(), To: m.GetTo(), Items: stacks(m.GetItems()), Note: note, Hold: holding(m)}
	case groupMessage:
		out := &kuji.Atomic{ID: id, Members: make([]kuji.Request, len(m.GetMembers())), Note: note, Hold: holding(m)}
		for i, one := range m.GetMembers() {
			out.Members[i] = Request("", contract.MemberOf(one), kuji.Note{})
		}
		return out
	case limitMessage:
		per := catalog.Per(min(uint32(m.GetPer()), math.MaxUint8)) // too large stays too large
		return &kuji.SetLimit{ID: id, Player: m.GetPlayer(), Pool: m.GetPool(), Per: per, Window: m.GetWindowMs(), Used: m.GetUsed(), Note: note}
	case progressMessage:
		return &kuji.Progress{ID: id, Player: m.GetPlayer(), Event: m.GetEvent(), Key: m.GetKey(), N: m.GetN(), Note: note}
	case claimMessage:
		return &kuji.Claim{ID: id, Player: m.GetPlayer(), Quest: m.GetQuest(), Tiers: count(m.GetTiers()), Note: note}
	case *kujiv1.Collect, *kujiv1.CollectRequest:
		return &kuji.Collect{ID: id, Player: m.(interface{ GetPlayer() string }).GetPlayer(), Note: note}
	case counterMessage:
		return &kuji.SetCounter{ID: id, Player: m.GetPlayer(), Counter: m.GetCounter(), Value: m.GetValue(), Note: note}
	case joinMessage: // it has all that openMessage asks for, and stands before it
		return &kuji.Join{ID: id, Player: m.GetPlayer(), Round: m.GetRound(), Number: m.GetNumber(), Stake: stacks(m.GetStake()), Tickets: m.GetTickets(), Note: note}
	case openMessage:
		return &kuji.OpenRound{ID: id, Player: m.GetPlayer(), Round: m.GetRound(), Stake: stacks(m.GetStake()), Tickets: m.GetTickets(), Note: note}
	case *kujiv1.Settle, *kujiv1.SettleRequest:
		s := m.(roundMessage)
		return &kuji.Settle{ID: id, Round: s.GetRound(), Number: s.GetNumber(), Note: note}
	case *kujiv1.Reroll, *kujiv1.RerollRequest:
		r := m.(roundMessage)
		return &kuji.Reroll{ID: id, Round: r.GetRound(), Number: r.GetNumber(), Note: note}
	case *kujiv1.CancelRound, *kujiv1.CancelRoundRequest:
		c := m.(roundMessage)
		return &kuji.CancelRound{ID: id, Round: c.GetRound(), Number: c.GetNumber(), Note: note}
	case *kujiv1.Confirm, *kujiv1.ConfirmRequest:
		return &kuji.Confirm{ID: id, Hold: m.(interface{ GetHold() string }).GetHold(), Note: note}
	case *kujiv1.Cancel, *kujiv1.CancelRequest:
		return &kuji.Cancel{ID: id, Hold: m.(interface{ GetHold() string }).GetHold(), Note: note}
	case *kujiv1.SetTrackRequest:
		return &kuji.SetTrack{ID: id, Player: m.GetPlayer(), Track: m.GetTrack(), Draws: m.GetDraws(), By: note.By, Reason: note.Reason}
	}
	return identity(id, m, note)
}

// A command is one of these in a request of its own and in a batch or a group.
type (
	drawMessage interface {
		GetPlayer() string
		GetPool() string
		GetCount() uint32
		GetPay() string
		holdable
	}
	holdable interface {
		GetHoldMs() int64
		GetRefund() bool
	}
	codeMessage interface {
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
	progressMessage interface {
		GetPlayer() string
		GetEvent() string
		GetKey() string
		GetN() uint64
	}
	claimMessage interface {
		GetPlayer() string
		GetQuest() string
		GetTiers() uint32
	}
	counterMessage interface {
		GetPlayer() string
		GetCounter() string
		GetValue() uint64
	}
	openMessage interface {
		GetPlayer() string
		GetRound() string
		GetTickets() uint64
		GetStake() []*kujiv1.Stack
	}
	joinMessage interface {
		openMessage
		GetNumber() uint64
	}
	roundMessage interface {
		GetRound() string
		GetNumber() uint64
	}
	transferMessage interface {
		GetFrom() string
		GetTo() string
		GetItems() []*kujiv1.Stack
		holdable
	}
	groupMessage interface {
		GetMembers() []*kujiv1.Member
		holdable
	}
)

// count converts a count. If int has 32 bits, one that is far too large stays too large.
func count(n uint32) int { return int(min(n, 1<<30)) }

// holding translates how a command is held. What is too long or below zero stays so.
func holding(m holdable) kuji.Holding {
	const most = int64(kuji.MaxHold/time.Millisecond) + 1
	return kuji.Holding{For: time.Duration(max(min(m.GetHoldMs(), most), -1)) * time.Millisecond, Refund: m.GetRefund()}
}

func stacks(all []*kujiv1.Stack) []kuji.Stack {
	out := make([]kuji.Stack, len(all))
	for i, s := range all {
		out[i] = kuji.Stack{Item: s.GetItem(), Quantity: s.GetQuantity()}
	}
	return out
}

// What results and answers take in memory, in bytes, if rewards have two items: see TestWork.
const (
	CommandBytes = 3072  // a command of a batch, or a member of a group
	drawBytes    = 1024  // a draw of a stream
	outcomeBytes = 2560  // an outcome of a unary call
	sharedBytes  = 384   // an outcome in an answer that writes equal ones once
	entryBytes   = 4096  // an entry in a page of a pool
	questBytes   = 4096  // a quest in a page of quests
	rankBytes    = 128   // of a rank, with the id of a player
	winnerBytes  = 4096  // a winner of a round, with what the winner gets
	itemBytes    = 1280  // an item in a page of a catalog
	shownBytes   = 12288 // the display of an item, a counter or a quest, without what can be long
	displayBytes = 2048  // a short display in a page of displays; texts have displayTexts
	roundBytes   = 3072  // a round in a page of rounds
	entrantBytes = 2048  // an entrant in a page of a round
	holdBytes    = 4096  // a hold in a page of holds, of holdLines
	holdLines    = 4
	groupBytes   = kuji.MaxAtomic*CommandBytes + kuji.MaxAtomicDraws*outcomeBytes // the largest group
)

// Commands returns how many commands a request asks for; a read is one.
func Commands(m proto.Message) int {
	switch m := m.(type) {
	case groupMessage:
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

// manyTiers is how many tiers a claim counts as that does not say how many.
const manyTiers = 100

// Outcomes returns how many outcomes a command can have: one of a batch, or a request of its own. The
// tiers of a claim count too, the winners of a round, and what a confirm can draw or give.
func Outcomes(m proto.Message) (n int64) {
	switch m := m.(type) {
	case drawMessage:
		return asked(m.GetCount())
	case *kujiv1.Redeem, *kujiv1.RedeemRequest:
		return kuji.MaxRedeemTimes
	case *kujiv1.Settle, *kujiv1.SettleRequest:
		return catalog.MaxWinners
	case *kujiv1.Reroll, *kujiv1.RerollRequest:
		return 1
	case *kujiv1.Confirm, *kujiv1.ConfirmRequest:
		return kuji.MaxAtomicDraws
	case claimMessage:
		return int64(cmp.Or(min(m.GetTiers(), catalog.MaxTiers), manyTiers))
	case groupMessage:
		for _, one := range m.GetMembers() {
			n += Outcomes(contract.MemberOf(one))
		}
	}
	return n
}

// asked returns how many outcomes a count asks for; none if it is too large, as that is refused.
func asked(count uint32) int64 {
	if count > kuji.MaxDrawCount {
		return 0
	}
	return max(1, int64(count))
}

// Work returns how many bytes the results and the answer need: of a unary call, or of a command. One that is held says
// twice what it gives.
func Work(m proto.Message) int64 {
	if isHeld(m) {
		return 2*work(m) + CommandBytes
	}
	return work(m)
}

func isHeld(m proto.Message) bool {
	h, ok := m.(holdable)
	return ok && h.GetHoldMs() != 0
}

func work(m proto.Message) int64 {
	switch m := m.(type) {
	case groupMessage:
		return int64(len(m.GetMembers()))*CommandBytes + Outcomes(m.(proto.Message))*outcomeBytes
	case *kujiv1.BatchRequest:
		n := int64(0)
		for _, one := range m.GetCommands() {
			n += CommandBytes
			if c := contract.CommandOf(one); one.GetAtomic() != nil || one.GetSettle() != nil || one.GetConfirm() != nil || isHeld(c) {
				n += Work(c)
			} else {
				n += Outcomes(c) * sharedBytes
			}
		}
		return n
	case *kujiv1.Settle, *kujiv1.SettleRequest:
		return catalog.MaxWinners * winnerBytes
	case *kujiv1.Confirm, *kujiv1.ConfirmRequest, *kujiv1.GetHoldRequest:
		return groupBytes
	case *kujiv1.ListHoldsRequest:
		return int64(min(cmp.Or(m.GetLimit(), DefaultHolds), kuji.MaxHolds))*holdBytes + 2*groupBytes
	case *kujiv1.GetPoolRequest:
		each := int64(entryBytes)
		if m.GetNames() {
			each += shownAs(itemBytes, m)
		}
		return pageWork(m.GetEntryLimit(), each)
	case *kujiv1.ListQuestsRequest:
		if m.GetLanguage() != "" {
			return pageWork(m.GetQuestLimit(), questBytes+2*shownBytes) + catalog.MaxCounters*shownBytes
		}
		return pageWork(m.GetQuestLimit(), questBytes)
	case *kujiv1.ListRanksRequest:
		return int64(min(cmp.Or(m.GetRankLimit(), kuji.DefaultRanks), kuji.MaxRanks)) * rankBytes
	case *kujiv1.ListRoundsRequest:
		return pageWork(m.GetRoundLimit(), roundBytes)
	case *kujiv1.GetRoundRequest:
		return int64(min(cmp.Or(m.GetEntrantLimit(), DefaultEntrants), kuji.MaxEntrants)) * entrantBytes
	case *kujiv1.GetCatalogRequest:
		return pageWork(m.GetItemLimit(), shownAs(itemBytes, m))
	case *kujiv1.GetDisclosureRequest:
		return disclosureBytes
	case *kujiv1.ListDisplaysRequest:
		return pageWork(m.GetLimit(), displayBytes) + displayTexts
	}
	return Outcomes(m) * outcomeBytes
}

// shownAs is what one thing takes, and its display if a request asks for displays.
func shownAs(bytes int64, m interface{ GetLanguage() string }) int64 {
	if m.GetLanguage() != "" {
		return bytes + shownBytes
	}
	return bytes
}

func pageWork(limit uint32, each int64) int64 {
	return int64(min(cmp.Or(limit, contract.DefaultPage), contract.MaxPage)) * each
}
