package message

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Batch makes the answer to a Batch from its results.
func Batch(results []kuji.Result) *kujiv1.BatchResponse {
	t := newTables()
	out := Each(results, func(res *kuji.Result) *kujiv1.BatchResult {
		if res.Status == kuji.Refused {
			return &kujiv1.BatchResult{Status: Status(res.Status), Error: Refusal(res.Err)}
		}
		var draws []uint32
		if !regular(res.Outcomes, len(res.Outcomes)) {
			draws = drawsOf(nil, res.Outcomes)
		}
		return &kujiv1.BatchResult{
			OutcomeDraws: draws, Paid: Stacks(res.Paid), Redeemed: res.Redeemed,
			Limit: Limit(res.Limit), Lacks: Each(res.Lacks, lack), Claims: Each(res.Claims(), claimed), Beyond: Each(res.Beyond(), beyond), Collected: Stacks(res.Collected()), Round: Round(res.Round()),
			Hold: Hold(res.Hold()), Given: givenOf(res),
			Status: Status(res.Status), Subject: res.Subject, Replayed: res.Replayed,
			Outcomes: t.addOutcomes(nil, res.Outcomes), Members: Each(res.Members, member),
			Receipt: t.receipt(&res.Receipt), Index: uint32(res.Receipt.Index),
		}
	})
	return &kujiv1.BatchResponse{Results: out, Receipts: t.receipts, Outcomes: t.all()}
}

// Refusal returns why a command of a batch was refused.
func Refusal(err error) *kujiv1.ErrorDetail {
	if ke, ok := errors.AsType[*kuji.Error](err); ok {
		return detail(ke, Answers[ke.Code].Reason)
	}
	if ce, ok := errors.AsType[*connect.Error](err); ok { // by what the key may grant today
		return &kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_FORBIDDEN, Violations: []*kujiv1.Violation{{Description: ce.Message()}}}
	}
	return &kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_INTERNAL}
}

// Alone returns a result of a batch as that of a call alone.
func Alone(b *kujiv1.BatchResponse, one *kujiv1.BatchResult) (*kujiv1.Result, error) {
	out := &kujiv1.Result{
		Status: one.GetStatus(), Subject: one.GetSubject(), Members: one.GetMembers(), Replayed: one.GetReplayed(),
		Paid: one.GetPaid(), Redeemed: one.GetRedeemed(), Limit: one.GetLimit(), Lacks: one.GetLacks(), Claims: one.GetClaims(), Beyond: one.GetBeyond(), Collected: one.GetCollected(), Round: one.GetRound(),
		Hold: one.GetHold(), Given: one.GetGiven(),
	}
	draws := one.GetOutcomeDraws()
	if int(one.GetReceipt()) >= len(b.GetReceipts()) || len(draws) > 0 && len(draws) != len(one.GetOutcomes()) {
		return nil, errors.New("a result of a batch refers to what is not there")
	}
	out.Receipt = proto.CloneOf(b.GetReceipts()[one.GetReceipt()])
	out.Receipt.Index = one.GetIndex()
	for i, at := range one.GetOutcomes() {
		if int(at) >= len(b.GetOutcomes()) {
			return nil, errors.New("a result of a batch refers to what is not there")
		}
		o := b.GetOutcomes()[at]
		o = &kujiv1.Outcome{Entry: o.GetEntry(), Items: o.GetItems(), Via: o.GetVia(), Codes: o.GetCodes(), Draw: uint32(i)}
		if len(draws) > 0 {
			o.Draw = draws[i]
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	return out, nil
}

// RefusalSaid returns the error of a command of a batch, as far as its answer says it.
func RefusalSaid(d *kujiv1.ErrorDetail) error {
	text := "the command was refused"
	if v := d.GetViolations(); len(v) > 0 {
		text = v[0].GetDescription()
		if v[0].GetField() != "" {
			text = v[0].GetField() + ": " + text
		}
	}
	code := connect.CodeInternal
	for _, a := range Answers {
		if a.Reason == d.GetReason() {
			code = a.Code
		}
	}
	return contract.WithDetail(connect.NewError(code, errors.New(text)), d)
}
