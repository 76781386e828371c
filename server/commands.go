package server

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// commands carries out commands.
type commands struct {
	granted *access.Granted
	metrics *metrics
}

func (h *commands) Draw(ctx context.Context, req *kujiv1.DrawRequest) (*kujiv1.DrawResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.DrawResponse{Result: res}, err
}

func (h *commands) Redeem(ctx context.Context, req *kujiv1.RedeemRequest) (*kujiv1.RedeemResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.RedeemResponse{Result: res}, err
}

func (h *commands) Register(ctx context.Context, req *kujiv1.RegisterRequest) (*kujiv1.RegisterResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.RegisterResponse{Result: res}, err
}

func (h *commands) Grant(ctx context.Context, req *kujiv1.GrantRequest) (*kujiv1.GrantResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.GrantResponse{Result: res}, err
}

func (h *commands) Consume(ctx context.Context, req *kujiv1.ConsumeRequest) (*kujiv1.ConsumeResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.ConsumeResponse{Result: res}, err
}

func (h *commands) Transfer(ctx context.Context, req *kujiv1.TransferRequest) (*kujiv1.TransferResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.TransferResponse{Result: res}, err
}

func (h *commands) Progress(ctx context.Context, req *kujiv1.ProgressRequest) (*kujiv1.ProgressResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.ProgressResponse{Result: res}, err
}

func (h *commands) Claim(ctx context.Context, req *kujiv1.ClaimRequest) (*kujiv1.ClaimResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.ClaimResponse{Result: res}, err
}

func (h *commands) Collect(ctx context.Context, req *kujiv1.CollectRequest) (*kujiv1.CollectResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.CollectResponse{Result: res}, err
}

func (h *commands) OpenRound(ctx context.Context, req *kujiv1.OpenRoundRequest) (*kujiv1.OpenRoundResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.OpenRoundResponse{Result: res}, err
}

func (h *commands) Join(ctx context.Context, req *kujiv1.JoinRequest) (*kujiv1.JoinResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.JoinResponse{Result: res}, err
}

func (h *commands) Settle(ctx context.Context, req *kujiv1.SettleRequest) (*kujiv1.SettleResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.SettleResponse{Result: res}, err
}

func (h *commands) Reroll(ctx context.Context, req *kujiv1.RerollRequest) (*kujiv1.RerollResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.RerollResponse{Result: res}, err
}

func (h *commands) CancelRound(ctx context.Context, req *kujiv1.CancelRoundRequest) (*kujiv1.CancelRoundResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.CancelRoundResponse{Result: res}, err
}

func (h *commands) Atomic(ctx context.Context, req *kujiv1.AtomicRequest) (*kujiv1.AtomicResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.AtomicResponse{Result: res}, err
}

// SetTrack is an administrator's.
func (h *commands) SetTrack(ctx context.Context, req *kujiv1.SetTrackRequest) (*kujiv1.SetTrackResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.SetTrackResponse{Result: res}, err
}

// SetLimit is an administrator's.
func (h *commands) SetLimit(ctx context.Context, req *kujiv1.SetLimitRequest) (*kujiv1.SetLimitResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.SetLimitResponse{Result: res}, err
}

// SetCounter is an administrator's.
func (h *commands) SetCounter(ctx context.Context, req *kujiv1.SetCounterRequest) (*kujiv1.SetCounterResponse, error) {
	res, err := h.do(ctx, req)
	return &kujiv1.SetCounterResponse{Result: res}, err
}

func (h *commands) Batch(ctx context.Context, req *kujiv1.BatchRequest) (*kujiv1.BatchResponse, error) {
	commands := req.GetCommands()
	if len(commands) == 0 {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "commands", Message: fmt.Sprintf("0 commands, want 1 to %d", kuji.MaxBatch)}
	}
	n := int64(0)
	for _, c := range commands {
		n += message.Outcomes(contract.CommandOf(c))
	}
	if n > MaxBatchOutcomes {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "commands",
			Message: fmt.Sprintf("%d outcomes in all, want at most %d", n, MaxBatchOutcomes)}
	}
	reqs := make([]kuji.Request, len(commands))
	for i, c := range commands {
		if (c.GetDraw() != nil || c.GetRedeem() != nil) && c.GetReason()+c.GetMetadata() != "" {
			return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: fmt.Sprintf("commands[%d].reason", i), Message: "draws and codes have no reason and no metadata"}
		}
		reqs[i] = message.Request(c.GetRequestId(), contract.CommandOf(c), noteOf(ctx, c))
	}
	results := make([]kuji.Result, len(reqs))
	if err := h.doAll(ctx, accessOf(ctx), realmOf(ctx), reqs, results); err != nil {
		return nil, err
	}
	h.metrics.all(results)
	return message.Batch(results), nil
}

// do carries out the command of a unary call.
func (h *commands) do(ctx context.Context, req interface {
	proto.Message
	GetRequestId() string
}) (*kujiv1.Result, error) {
	var res [1]kuji.Result
	reqs := []kuji.Request{message.Request(req.GetRequestId(), req, noteOf(ctx, req))}
	if err := h.doAll(ctx, accessOf(ctx), realmOf(ctx), reqs, res[:]); err != nil {
		return nil, err
	}
	if res[0].Status == kuji.Refused {
		return nil, res[0].Err
	}
	h.metrics.result(res[0].Status, 1)
	return message.Result(&res[0]), nil
}

// doAll carries out requests that came with an access, and fills in their results.
func (h *commands) doAll(ctx context.Context, a *access.Access, r *kuji.Realm, reqs []kuji.Request, results []kuji.Result) error {
	taken, err := h.granted.Take(ctx, a, r, reqs)
	if err != nil {
		return err
	}
	commit, err := r.StartAll(ctx, reqs, results)
	if err == nil {
		err = commit.Wait(ctx)
	}
	taken.Settle(results, err)
	return err
}

// noteOf returns what the log keeps of whose key asked, and why, if the request can say why.
func noteOf(ctx context.Context, request any) kuji.Note {
	note := kuji.Note{By: accessOf(ctx).Name}
	if m, ok := request.(interface{ GetReason() string }); ok {
		note.Reason = m.GetReason()
	}
	if m, ok := request.(interface{ GetMetadata() string }); ok {
		note.Metadata = m.GetMetadata()
	}
	return note
}

// accessOf returns who a call came from, and realmOf the realm that it is about.
func accessOf(ctx context.Context) *access.Access { return callOf(ctx).access }
func realmOf(ctx context.Context) *kuji.Realm     { return callOf(ctx).target }
