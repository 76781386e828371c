package server

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) Batch(ctx context.Context, req *kujiv1.BatchRequest) (*kujiv1.BatchResponse, error) {
	commands := req.GetCommands()
	if len(commands) == 0 {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "commands", Message: fmt.Sprintf("0 commands, want 1 to %d", kuji.MaxBatch)}
	}
	if n := outcomesAsked(commands); n > MaxBatchOutcomes {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "commands",
			Message: fmt.Sprintf("%d outcomes in all, want at most %d", n, MaxBatchOutcomes)}
	}
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	reqs := make([]kuji.Request, len(commands))
	for i, c := range commands {
		if (c.GetDraw() != nil || c.GetRedeem() != nil) && c.GetReason()+c.GetMetadata() != "" {
			return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: fmt.Sprintf("commands[%d].reason", i), Message: "draws and codes have no reason and no metadata"}
		}
		reqs[i] = requestOf(c, h.s.note(ctx, c))
	}
	results := make([]kuji.Result, len(reqs))
	if err := h.s.doAll(ctx, accessOf(ctx), r, reqs, results); err != nil {
		return nil, err
	}
	h.s.metrics.all(results)
	return batchResponse(results), nil
}

// outcomesAsked returns how many outcomes the commands ask for.
func outcomesAsked(commands []*kujiv1.Command) int64 {
	n := int64(0)
	for _, c := range commands {
		n += drawn(c.GetDraw()) + paid(c.GetRedeem())
		for _, m := range c.GetAtomic().GetMembers() {
			n += drawn(m.GetDraw())
		}
	}
	return n
}

// drawn returns how many outcomes a draw asks for, none if it is nil.
func drawn(d *kujiv1.Draw) int64 {
	if d == nil {
		return 0
	}
	return asked(d.GetCount())
}

// paid returns how many outcomes a code can pay for, none if it is nil.
func paid(m *kujiv1.Redeem) int64 {
	if m == nil {
		return 0
	}
	return kuji.MaxRedeemTimes
}

// asked returns how many outcomes a count asks for: none if it is too large, because then its draw
// is refused on its own.
func asked(count uint32) int64 {
	if count > kuji.MaxDrawCount {
		return 0
	}
	return max(1, int64(count))
}

// requestOf translates a command. An empty command becomes nil, and the engine refuses it.
func requestOf(c *kujiv1.Command, note kuji.Note) kuji.Request {
	switch cmd := c.GetCommand().(type) {
	case *kujiv1.Command_Draw:
		return drawOf(c.GetRequestId(), cmd.Draw)
	case *kujiv1.Command_Redeem:
		return redeemOf(c.GetRequestId(), cmd.Redeem)
	case *kujiv1.Command_Register:
		return registerOf(c.GetRequestId(), cmd.Register, note)
	case *kujiv1.Command_Grant:
		return grantOf(c.GetRequestId(), cmd.Grant, note)
	case *kujiv1.Command_Consume:
		return consumeOf(c.GetRequestId(), cmd.Consume, note)
	case *kujiv1.Command_Transfer:
		return transferOf(c.GetRequestId(), cmd.Transfer, note)
	case *kujiv1.Command_Atomic:
		return atomicOf(c.GetRequestId(), cmd.Atomic.GetMembers(), note)
	}
	return nil
}

func batchResponse(results []kuji.Result) *kujiv1.BatchResponse {
	t := newTables()
	out := each(results, func(res *kuji.Result) *kujiv1.BatchResult {
		if res.Status == kuji.Refused {
			return &kujiv1.BatchResult{Status: statusProto(res.Status), Error: refusalOf(res.Err)}
		}
		var draws []uint32
		if !regular(res.Outcomes, len(res.Outcomes)) {
			draws = drawsOf(nil, res.Outcomes)
		}
		return &kujiv1.BatchResult{
			OutcomeDraws: draws, Paid: stacksProto(res.Paid), Redeemed: res.Redeemed,
			Limit: limitProto(res.Limit), Lacks: each(res.Lacks, lackProto),
			Status: statusProto(res.Status), Subject: res.Subject, Replayed: res.Replayed,
			Outcomes: t.addOutcomes(nil, res.Outcomes), Members: each(res.Members, memberProto),
			Receipt: t.receipt(&res.Receipt), Index: uint32(res.Receipt.Index),
		}
	})
	return &kujiv1.BatchResponse{Results: out, Receipts: t.receipts, Outcomes: t.outcomesProto()}
}

// refusalOf returns why a command of a batch was refused.
func refusalOf(err error) *kujiv1.ErrorDetail {
	if ke, ok := errors.AsType[*kuji.Error](err); ok {
		return detailOf(ke, codeAnswers[ke.Code].reason)
	}
	if ce, ok := errors.AsType[*connect.Error](err); ok { // by what the key may grant today
		return &kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_FORBIDDEN, Violations: []*kujiv1.Violation{{Description: ce.Message()}}}
	}
	return &kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_INTERNAL}
}
