// Package message translates between the messages of the API's contract and what the engine takes
// and gives. It asks the engine for nothing, and decides nothing.
package message

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Status returns the contract's number of a status: one higher, because its zero means unspecified.
func Status(st kuji.Status) kujiv1.Status {
	if st == kuji.Refused {
		return kujiv1.Status_STATUS_REFUSED
	}
	return kujiv1.Status(st) + 1
}

// The messages below share memory with the results that they are made from.

// Result makes the message of a result.
func Result(res *kuji.Result) *kujiv1.Result {
	out := member(res)
	out.Receipt = receipt(&res.Receipt)
	return out
}

// member makes the message of a result without its receipt.
func member(res *kuji.Result) *kujiv1.Result {
	return &kujiv1.Result{
		Status: Status(res.Status), Subject: res.Subject, Replayed: res.Replayed,
		Outcomes: Each(res.Outcomes, outcome), Members: Each(res.Members, member),
		Paid: Stacks(res.Paid), Redeemed: res.Redeemed, Limit: Limit(res.Limit), Lacks: Each(res.Lacks, lack),
		Claims: Each(res.Claims(), claimed), Beyond: Each(res.Beyond(), beyond), Collected: Stacks(res.Collected()), Round: Round(res.Round()),
		Hold: Hold(res.Hold()), Given: givenOf(res),
	}
}

// Limit makes the message of a limit, or nil of none.
func Limit(l *kuji.Limit) *kujiv1.Limit {
	if l == nil {
		return nil
	}
	return &kujiv1.Limit{Per: kujiv1.LimitPeriod(l.Per), WindowMs: l.Window, Draws: l.Draws, Left: l.Left, ResetsUnixMs: l.Resets}
}

func lack(l *kuji.Lack) *kujiv1.Lack {
	return &kujiv1.Lack{Item: l.Item, Have: l.Have, Need: l.Need}
}

func receipt(r *kuji.Receipt) *kujiv1.Receipt {
	return &kujiv1.Receipt{
		Realm: r.Realm, Position: r.Position, Index: uint32(r.Index), TimeUnixMs: r.Time,
		CatalogVersion: r.CatalogVersion, Epoch: r.Epoch, Commitment: r.Commitment[:],
	}
}

func outcome(o *kuji.Outcome) *kujiv1.Outcome {
	return &kujiv1.Outcome{Entry: o.Entry, Items: Stacks(o.Items), Via: o.Via, Draw: uint32(o.Draw), Codes: Each(o.Codes, code)}
}

func beyond(b *kuji.Beyond) *kujiv1.Beyond {
	return &kujiv1.Beyond{Item: b.Item, Quantity: b.Quantity, How: b.How, Player: b.Player}
}

func claimed(c *kuji.Claimed) *kujiv1.Claimed {
	return &kujiv1.Claimed{Quest: c.Quest, Tier: uint32(c.Tier), Player: c.Player, Items: Stacks(c.Items), Via: c.Via, Codes: Each(c.Codes, code),
		Counter: c.Counter, Rank: c.Rank, Missed: c.Missed, Place: c.Place, Value: c.Value}
}

func code(c *kuji.RewardCode) *kujiv1.RewardCode {
	return &kujiv1.RewardCode{List: c.List, Number: c.Number, Code: c.Code}
}

// Stacks makes the messages of stacks.
func Stacks(stacks []kuji.Stack) []*kujiv1.Stack {
	return Each(stacks, func(s *kuji.Stack) *kujiv1.Stack {
		return &kujiv1.Stack{Item: s.Item, Quantity: s.Quantity}
	})
}

// Each makes a message of each element. It returns nil for an empty list.
func Each[From, To any](list []From, message func(*From) *To) []*To {
	if len(list) == 0 {
		return nil
	}
	out := make([]*To, len(list))
	for i := range list {
		out[i] = message(&list[i])
	}
	return out
}

// tables holds what the results of a batch share, each once. The results refer to it by index.
type tables struct {
	receipts  []*kujiv1.Receipt
	outcomes  []*kuji.Outcome
	byReceipt map[receiptKey]*uint32
	byEntry   map[string]uint32 // the newest outcome of each entry id
}

// receiptKey identifies a receipt of one realm, apart from its index.
type receiptKey struct{ position, version uint64 }

func newTables() *tables {
	return &tables{byReceipt: make(map[receiptKey]*uint32), byEntry: make(map[string]uint32)}
}

// receipt returns the index of a receipt. The pointer is shared: do not write to it.
func (t *tables) receipt(r *kuji.Receipt) *uint32 {
	key := receiptKey{r.Position, r.CatalogVersion}
	place := t.byReceipt[key]
	if place == nil {
		place = proto.Uint32(uint32(len(t.receipts)))
		t.byReceipt[key] = place
		m := receipt(r)
		m.Index = 0
		t.receipts = append(t.receipts, m)
	}
	return place
}

// addOutcomes appends the indexes of outcomes to places.
func (t *tables) addOutcomes(places []uint32, outcomes []kuji.Outcome) []uint32 {
	for i := range outcomes {
		o := &outcomes[i]
		place, ok := t.byEntry[o.Entry]
		if !ok || !slices.Equal(t.outcomes[place].Items, o.Items) || !slices.Equal(t.outcomes[place].Via, o.Via) ||
			!slices.Equal(t.outcomes[place].Codes, o.Codes) {
			place = uint32(len(t.outcomes))
			t.byEntry[o.Entry] = place
			t.outcomes = append(t.outcomes, o)
		}
		places = append(places, place)
	}
	return places
}

func (t *tables) all() []*kujiv1.Outcome {
	return Each(t.outcomes, func(o **kuji.Outcome) *kujiv1.Outcome {
		m := outcome(*o)
		m.Draw = 0
		return m
	})
}

// regular reports whether n draws have one outcome each.
func regular(outcomes []kuji.Outcome, n int) bool {
	if len(outcomes) != n {
		return false
	}
	for i := range outcomes {
		if outcomes[i].Draw != i {
			return false
		}
	}
	return true
}

// drawsOf returns the draws that took outcomes.
func drawsOf(draws []uint32, outcomes []kuji.Outcome) []uint32 {
	for i := range outcomes {
		draws = append(draws, uint32(outcomes[i].Draw))
	}
	return draws
}

// Event makes the message of an event.
func Event(rec *kuji.Record) *kujiv1.Event {
	m := &kujiv1.Event{
		Position: rec.Position, Index: uint32(rec.Index), TimeUnixMs: rec.Time, Kind: rec.Kind, RequestId: rec.ID,
		Status:  kujiv1.Status(kujiv1.Status_value["STATUS_"+strings.ToUpper(rec.Status)]),
		Subject: rec.Subject, Limit: Limit(rec.Limit), Lacks: Each(rec.Lacks, lack), CatalogVersion: rec.CatalogVersion, NewCatalogVersion: rec.NewCatalogVersion,
		Player: rec.Player, To: rec.To, Pool: rec.Pool, Count: uint32(rec.Count), List: rec.List, Number: rec.Number, Pay: rec.Pay,
		Items: Stacks(rec.Items), Outcomes: Each(rec.Outcomes, outcome), Paid: Stacks(rec.Paid),
		Event: rec.Event, Key: rec.Key, Counter: rec.Counter, Value: rec.Value, Quest: rec.Quest, Claims: Each(rec.Claims, claimed), Beyond: Each(rec.Beyond, beyond),
		Track: rec.Track, Draws: rec.Draws, By: rec.By, Reason: rec.Reason, Metadata: rec.Metadata,
		Round: Round(rec.Round), Entrants: rec.Entrants, Reversed: rec.Reversed, Proposal: rec.Proposal, ProposedBy: rec.ProposedBy, ProposedReason: rec.ProposedWhy, Names: rec.Names, Hold: Hold(rec.Hold), Given: given(rec.Given), Freed: Each(rec.Freed, freed), Members: Each(rec.Members, Event), Level: uint32(rec.Level), Bytes: uint32(rec.Bytes), Last: rec.Last,
		Changes: Each(rec.Changes, func(c *kuji.BalanceChange) *kujiv1.BalanceChange {
			return &kujiv1.BalanceChange{Player: c.Player, Item: c.Item, Delta: c.Delta, Balance: c.Balance}
		}),
	}
	if c := rec.Clock; c != nil {
		m.Clock = &kujiv1.EventClock{ToUnixMs: c.To, By: c.By, Reason: c.Reason}
	}
	if d := rec.Due; d != nil {
		m.Due = &kujiv1.EventDue{Swept: d.Swept, Players: d.Players, Counter: d.Counter, Period: d.Period, RankFrom: d.From, RankCount: d.Count, Round: d.Round, Holds: d.Holds}
	}
	return m
}
