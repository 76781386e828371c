package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Batch(ctx context.Context, req *kujiv1.BatchRequest) (*kujiv1.BatchResponse, error) {
	commands := req.GetCommands()
	if n := len(commands); n == 0 || n > kuji.MaxBatch {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "commands",
			Message: fmt.Sprintf("%d of them, want 1 to %d", n, kuji.MaxBatch)}
	}
	if n := outcomesAsked(commands); n > MaxBatchOutcomes {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "commands",
			Message: fmt.Sprintf("%d outcomes in all, want at most %d", n, MaxBatchOutcomes)}
	}
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	reqs, places, refused := requestsOf(commands)
	var results []kuji.Result
	if len(reqs) > 0 {
		if results, err = r.DoAll(ctx, reqs); err != nil {
			return nil, err
		}
	}
	t := newBatchTables(len(commands))
	for i := range results {
		t.add(places[i], &results[i])
	}
	for place, err := range refused {
		t.add(place, &kuji.Result{Status: kuji.Refused, Err: err})
	}
	for status, n := range t.counts {
		h.s.metrics.result(status, n)
	}
	return t.response(), nil
}

// outcomesAsked is how many outcomes commands ask for, without draws that are
// refused for asking for too many.
func outcomesAsked(commands []*kujiv1.Command) int {
	n := 0
	add := func(d *kujiv1.Draw) {
		if d != nil && d.GetCount() <= kuji.MaxDrawCount {
			n += max(1, int(d.GetCount()))
		}
	}
	for _, c := range commands {
		add(c.GetDraw())
		for _, m := range c.GetAtomic().GetMembers() {
			add(m.GetDraw())
		}
	}
	return n
}

// requestsOf translates the commands that can be, and says for each where it
// stood; the others are refused one by one.
func requestsOf(commands []*kujiv1.Command) (reqs []kuji.Request, places []int, refused map[int]error) {
	reqs = make([]kuji.Request, 0, len(commands))
	places = make([]int, 0, len(commands))
	draws := make([]kuji.Draw, 0, len(commands)) // never grows: pointers into it stay
	for i, c := range commands {
		var req kuji.Request
		var err error
		switch cmd := c.GetCommand().(type) {
		case *kujiv1.Command_Draw:
			draws = append(draws, kuji.Draw{ID: c.GetRequestId(), Player: cmd.Draw.GetPlayer(), Pool: cmd.Draw.GetPool(), Count: countOf(cmd.Draw.GetCount())})
			req = &draws[len(draws)-1]
		case *kujiv1.Command_Grant:
			req = grantOf(c.GetRequestId(), cmd.Grant)
		case *kujiv1.Command_Consume:
			req = consumeOf(c.GetRequestId(), cmd.Consume)
		case *kujiv1.Command_Transfer:
			req = transferOf(c.GetRequestId(), cmd.Transfer)
		case *kujiv1.Command_Atomic:
			req, err = atomicOf(c.GetRequestId(), cmd.Atomic.GetMembers())
		default:
			err = &kuji.Error{Code: kuji.CodeInvalid, Field: "command",
				Message: "is empty, want one of draw, grant, consume, transfer, atomic"}
		}
		if err != nil {
			if refused == nil {
				refused = make(map[int]error)
			}
			refused[i] = err
			continue
		}
		reqs, places = append(reqs, req), append(places, i)
	}
	return reqs, places, refused
}

// batchTables builds a BatchResponse, in which what many results share is
// written once.
type batchTables struct {
	slab     []kujiv1.BatchResult
	receipts []*kujiv1.Receipt
	outcomes []*kujiv1.Outcome
	places   []uint32 // of all results' outcomes: each result has a part of it
	counts   map[kuji.Status]int

	last      receiptKey // of receipts[*lastPlace]
	lastPlace *uint32    // results share these numbers: nobody writes to them
	byKey     map[receiptKey]*uint32
	byEntry   map[string]uint32 // the newest outcome of each entry id
}

// receiptKey tells receipts of a realm apart, their index aside.
type receiptKey struct{ position, version uint64 }

func newBatchTables(n int) *batchTables {
	return &batchTables{
		slab:    make([]kujiv1.BatchResult, n),
		places:  make([]uint32, 0, n),
		counts:  make(map[kuji.Status]int),
		byKey:   make(map[receiptKey]*uint32),
		byEntry: make(map[string]uint32),
	}
}

func (t *batchTables) add(place int, res *kuji.Result) {
	out := &t.slab[place]
	t.counts[res.Status]++
	out.Status = statusProto(res.Status)
	if res.Status == kuji.Refused {
		out.Error = refusalOf(res.Err)
		return
	}
	out.Subject = res.Subject
	out.Replayed = res.Replayed
	out.Members = membersProto(res.Members)
	out.Index = uint32(res.Receipt.Index)
	out.Receipt = t.receipt(&res.Receipt)
	if len(res.Outcomes) > 0 {
		from := len(t.places)
		for i := range res.Outcomes {
			t.places = append(t.places, t.outcome(&res.Outcomes[i]))
		}
		out.Outcomes = t.places[from:len(t.places):len(t.places)]
	}
}

func (t *batchTables) receipt(r *kuji.Receipt) *uint32 {
	key := receiptKey{r.Position, r.CatalogVersion}
	if t.lastPlace != nil && key == t.last {
		return t.lastPlace
	}
	place := t.byKey[key]
	if place == nil {
		place = proto.Uint32(uint32(len(t.receipts)))
		out := new(kujiv1.Receipt)
		fillReceipt(out, r, slices.Clone(r.Commitment[:]))
		out.Index = 0
		t.receipts = append(t.receipts, out)
		t.byKey[key] = place
	}
	t.last, t.lastPlace = key, place
	return place
}

func (t *batchTables) outcome(o *kuji.Outcome) uint32 {
	if place, ok := t.byEntry[o.Entry]; ok && sameOutcome(t.outcomes[place], o) {
		return place
	}
	place := uint32(len(t.outcomes))
	out := new(kujiv1.Outcome)
	fillOutcome(out, o)
	t.outcomes = append(t.outcomes, out)
	t.byEntry[o.Entry] = place
	return place
}

func sameOutcome(a *kujiv1.Outcome, b *kuji.Outcome) bool {
	return a.Entry == b.Entry && slices.Equal(a.Via, b.Via) &&
		slices.EqualFunc(a.Items, b.Items, func(x *kujiv1.Stack, y kuji.Stack) bool {
			return x.Item == y.Item && x.Quantity == y.Quantity
		})
}

func (t *batchTables) response() *kujiv1.BatchResponse {
	results := make([]*kujiv1.BatchResult, len(t.slab))
	for i := range t.slab {
		results[i] = &t.slab[i]
	}
	return &kujiv1.BatchResponse{Results: results, Receipts: t.receipts, Outcomes: t.outcomes}
}

// refusalOf says why a command of a batch was refused.
func refusalOf(err error) *kujiv1.ErrorDetail {
	if ke, ok := errors.AsType[*kuji.Error](err); ok {
		return detailOf(ke, codeAnswers[ke.Code].reason)
	}
	return &kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_INTERNAL}
}
