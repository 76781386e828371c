package server

import (
	"context"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// names carries out the commands about other names of a player that a key can be allowed by themselves.
type names struct{ of *commands }

func (h names) LinkCode(ctx context.Context, req *kujiv1.LinkCodeRequest) (*kujiv1.LinkCodeResponse, error) {
	res, err := h.of.do(ctx, req)
	return &kujiv1.LinkCodeResponse{Result: res}, err
}

func (h names) Link(ctx context.Context, req *kujiv1.LinkRequest) (*kujiv1.LinkResponse, error) {
	res, err := h.of.do(ctx, req)
	return &kujiv1.LinkResponse{Result: res}, err
}

func (h names) Unlink(ctx context.Context, req *kujiv1.UnlinkRequest) (*kujiv1.UnlinkResponse, error) {
	res, err := h.of.do(ctx, req)
	return &kujiv1.UnlinkResponse{Result: res}, err
}

// corrections carries out what administrators do to players and to requests.
type corrections struct{ of *commands }

// Merge is an administrator's.
func (h corrections) Merge(ctx context.Context, req *kujiv1.MergeRequest) (*kujiv1.MergeResponse, error) {
	res, err := h.of.do(ctx, req)
	return &kujiv1.MergeResponse{Result: res}, err
}

// Forget is an administrator's.
func (h corrections) Forget(ctx context.Context, req *kujiv1.ForgetRequest) (*kujiv1.ForgetResponse, error) {
	res, err := h.of.do(ctx, req)
	return &kujiv1.ForgetResponse{Result: res}, err
}

// Block is an administrator's.
func (h corrections) Block(ctx context.Context, req *kujiv1.BlockRequest) (*kujiv1.BlockResponse, error) {
	res, err := h.of.do(ctx, req)
	return &kujiv1.BlockResponse{Result: res}, err
}

// Reverse is an administrator's.
func (h corrections) Reverse(ctx context.Context, req *kujiv1.ReverseRequest) (*kujiv1.ReverseResponse, error) {
	res, err := h.of.do(ctx, req)
	return &kujiv1.ReverseResponse{Result: res}, err
}
