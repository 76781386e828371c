package server

import (
	"context"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
)

// rights answers what callers may do.
type rights struct {
	keys     *access.Keys // nil: there are none
	version  string
	features *kujiv1.Features
}

// GetAccess returns what the caller may, and what the server has.
func (h rights) GetAccess(ctx context.Context, _ *kujiv1.GetAccessRequest) (*kujiv1.GetAccessResponse, error) {
	return &kujiv1.GetAccessResponse{Access: accessOf(ctx).Describe(), Version: h.version, Features: h.features}, nil
}

// ListKeys returns what each key of the server may.
func (h rights) ListKeys(context.Context, *kujiv1.ListKeysRequest) (*kujiv1.ListKeysResponse, error) {
	if h.keys == nil {
		return &kujiv1.ListKeysResponse{}, nil
	}
	return &kujiv1.ListKeysResponse{Keys: h.keys.List()}, nil
}
