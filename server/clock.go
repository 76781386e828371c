package server

import (
	"cmp"
	"context"
	"time"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h adminService) SetClock(ctx context.Context, req *kujiv1.SetClockRequest) (*kujiv1.SetClockResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	set, err := r.SetClock(ctx, time.UnixMilli(req.GetTimeUnixMs()), cmp.Or(h.s.caller(ctx), "no key"), req.GetReason())
	if err != nil {
		return nil, err
	}
	h.s.log.Warn("the clock was set", "realm", r.Name(), "from", time.UnixMilli(set.Receipt.Time).UTC(), "to", time.UnixMilli(set.To).UTC(), "by", set.By, "reason", set.Reason)
	return &kujiv1.SetClockResponse{FromUnixMs: set.Receipt.Time, ToUnixMs: set.To, Position: set.Receipt.Position, IdsFromUnixMs: set.IDsFrom}, nil
}

// checkClocks warns of realms whose time is not the machine's.
func (s *Server) checkClocks() {
	for _, r := range s.realms.sorted() {
		v := r.Stats().Clock
		if v.Drifts() {
			s.log.Warn("a realm's time is not the machine's: make sure that the machine's is right, then set the realm's clock",
				"realm", r.Name(), "time", time.UnixMilli(v.Time).UTC(), "machine", time.UnixMilli(v.Wall).UTC(), "drift", v.Drift())
		}
		if v.RefusesIDs() {
			s.log.Warn("a realm refuses new request ids as too old: its clock and those of clients were ahead; wait, or put a catalog with ids: any in force meanwhile",
				"realm", r.Name(), "until", time.UnixMilli(v.IDsFrom).UTC(), "machine", time.UnixMilli(v.Wall).UTC())
		}
	}
}
