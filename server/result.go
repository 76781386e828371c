package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// rewardService implements kujiv1connect.RewardServiceHandler; its methods
// stand in the files of their nouns.
type rewardService struct{ s *Server }

// adminService implements kujiv1connect.AdminServiceHandler.
type adminService struct{ s *Server }

// do carries out one command for a unary call: a status other than OK becomes
// an error that carries the result.
func (s *Server) do(ctx context.Context, realm string, req kuji.Request) (*kujiv1.Result, error) {
	res, err := s.carryOut(ctx, realm, req)
	if err != nil {
		return nil, err
	}
	out := resultProto(&res)
	if res.Status != kuji.OK {
		return nil, &statusError{res.Status, out}
	}
	return out, nil
}

// carryOut hands one command to its realm and counts its result.
func (s *Server) carryOut(ctx context.Context, realm string, req kuji.Request) (kuji.Result, error) {
	r, err := s.realms.get(s.engine, realm)
	if err != nil {
		return kuji.Result{}, err
	}
	res, err := r.Do(ctx, req)
	if err == nil {
		s.metrics.result(res.Status, 1)
	}
	return res, err
}

// statusProto numbers the statuses as the contract does: by one more, since its zero means
// "not said".
func statusProto(st kuji.Status) kujiv1.Status {
	if st == kuji.Refused {
		return kujiv1.Status_STATUS_REFUSED
	}
	return kujiv1.Status(st) + 1
}

func resultProto(res *kuji.Result) *kujiv1.Result {
	// One allocation for what every answer has.
	all := &struct {
		result     kujiv1.Result
		receipt    kujiv1.Receipt
		commitment [32]byte
	}{commitment: res.Receipt.Commitment}
	fillReceipt(&all.receipt, &res.Receipt, all.commitment[:])
	out := &all.result
	fillResult(out, res)
	out.Receipt = &all.receipt
	return out
}

// fillResult fills in all but the receipt.
func fillResult(out *kujiv1.Result, res *kuji.Result) {
	out.Status = statusProto(res.Status)
	out.Subject = res.Subject
	out.Replayed = res.Replayed
	out.Outcomes = outcomesProto(res.Outcomes)
	out.Members = membersProto(res.Members)
}

func membersProto(members []kuji.Result) []*kujiv1.Result {
	if len(members) == 0 {
		return nil
	}
	out := make([]*kujiv1.Result, len(members))
	slab := make([]kujiv1.Result, len(members))
	for i := range members {
		out[i] = &slab[i]
		fillResult(out[i], &members[i])
	}
	return out
}

func fillReceipt(out *kujiv1.Receipt, r *kuji.Receipt, commitment []byte) {
	out.Realm = r.Realm
	out.Position = r.Position
	out.Index = uint32(r.Index)
	out.TimeUnixMs = r.Time
	out.CatalogVersion = r.CatalogVersion
	out.Epoch = r.Epoch
	out.Commitment = commitment
}

func outcomesProto(outcomes []kuji.Outcome) []*kujiv1.Outcome {
	if len(outcomes) == 0 {
		return nil
	}
	out := make([]*kujiv1.Outcome, len(outcomes))
	slab := make([]kujiv1.Outcome, len(outcomes))
	for i := range outcomes {
		out[i] = &slab[i]
		fillOutcome(out[i], &outcomes[i])
	}
	return out
}

func fillOutcome(out *kujiv1.Outcome, o *kuji.Outcome) {
	out.Entry = o.Entry
	out.Items = stacksProto(o.Items)
	out.Via = o.Via
}

func stacksProto(stacks []kuji.Stack) []*kujiv1.Stack {
	if len(stacks) == 0 {
		return nil
	}
	out := make([]*kujiv1.Stack, len(stacks))
	slab := make([]kujiv1.Stack, len(stacks))
	for i := range stacks {
		out[i] = &slab[i]
		out[i].Item, out[i].Quantity = stacks[i].Item, stacks[i].Quantity
	}
	return out
}

func stacksOf(stacks []*kujiv1.Stack) []kuji.Stack {
	out := make([]kuji.Stack, len(stacks))
	for i, s := range stacks {
		out[i] = kuji.Stack{Item: s.GetItem(), Quantity: s.GetQuantity()}
	}
	return out
}
