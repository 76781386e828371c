package server

import (
	"cmp"
	"context"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h adminService) FinishUpgrade(ctx context.Context, req *kujiv1.FinishUpgradeRequest) (*kujiv1.FinishUpgradeResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	by := cmp.Or(h.s.caller(ctx), "no key")
	up, err := r.FinishUpgrade(ctx, by, req.GetReason())
	if err != nil {
		return nil, err
	}
	if up.From != up.To {
		h.s.log.Warn("an upgrade was finished: older builds refuse the realm from now on", "realm", r.Name(), "from", up.From, "to", up.To, "by", by, "reason", req.GetReason())
	}
	return &kujiv1.FinishUpgradeResponse{FromLevel: uint32(up.From), ToLevel: uint32(up.To), Position: up.Receipt.Position}, nil
}
