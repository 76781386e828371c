package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/admission"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// admin creates, shows and repairs realms.
type admin struct {
	realms   *realms
	files    *admission.Descriptors
	log      *slog.Logger
	cluster  Cluster         // may be nil
	tests    *kuji.TestClock // nil: the clock is the machine's
	version  string
	draining *atomic.Bool
	slowest  *slowest
}

func (h admin) CreateRealm(_ context.Context, req *kujiv1.CreateRealmRequest) (*kujiv1.CreateRealmResponse, error) {
	if req.GetRealm() == "" {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "realm", Message: "is empty, want the name of the realm to create"}
	}
	if h.realms.known(req.GetRealm()) == nil {
		if err := h.files.CheckRealm(); err != nil {
			return nil, err
		}
	}
	created, err := h.realms.new(req.GetRealm())
	if err != nil {
		return nil, err
	}
	if created && h.cluster != nil {
		h.cluster.Created(req.GetRealm())
	}
	return &kujiv1.CreateRealmResponse{Created: created}, nil
}

// DeleteRealm closes and deletes a realm. Requests that are under way in it end as closed.
func (h admin) DeleteRealm(ctx context.Context, req *kujiv1.DeleteRealmRequest) (*kujiv1.DeleteRealmResponse, error) {
	if req.GetRealm() == "" {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "realm", Message: "is empty, want the name of the realm to delete"}
	}
	if err := h.realms.delete(ctx, req.GetRealm(), req.GetConfirm()); err != nil {
		return nil, err
	}
	h.log.Warn("a realm was deleted", "realm", req.GetRealm(), "by", cmp.Or(accessOf(ctx).Name, "no key"))
	return &kujiv1.DeleteRealmResponse{}, nil
}

func (h admin) ListRealms(context.Context, *kujiv1.ListRealmsRequest) (*kujiv1.ListRealmsResponse, error) {
	names, err := h.realms.engine.Realms()
	if err != nil {
		return nil, err
	}
	return &kujiv1.ListRealmsResponse{Realms: names}, nil
}

func (h admin) GetStatus(ctx context.Context, req *kujiv1.GetStatusRequest) (*kujiv1.GetStatusResponse, error) {
	out := &kujiv1.GetStatusResponse{Version: h.version, Draining: h.draining.Load(), Sync: kujiv1.SyncPolicy(h.realms.engine.Sync()) + 1}
	list := h.realms.sorted()
	if req.GetRealm() != "" {
		list = []*kuji.Realm{realmOf(ctx)}
	}
	for _, r := range list {
		st := r.Stats()
		one := &kujiv1.RealmStatus{
			Realm: r.Name(), Position: st.Position, Epoch: st.Epoch, Batches: st.Batches, Events: st.Events,
			Draws: st.Draws, Failures: st.Failures, Replays: st.Replays, LogBytes: st.LogBytes, Players: st.Players,
			RequestIds: st.RequestIDs, PendingBytes: st.PendingBytes,
			RecoveredPosition: st.Recovered, RecoveredEvents: st.RecoveredEvents,
			CatalogVersion: st.CatalogVersion, ClockUnixMs: st.Clock.Wall, TimeUnixMs: st.Clock.Time, BackMs: st.Clock.Back, IdsFromUnixMs: st.Clock.IDsFrom,
			Level: uint32(st.Level), NewestLevel: uint32(st.NewestLevel),
			LogKeptBytes: st.LogKept, SnapshotBytes: st.SnapshotBytes, SnapshotPosition: st.Snapshot, BackupUnixMs: h.realms.lastBackup(r.Name()),
		}
		if ke, ok := errors.AsType[*kuji.Error](r.Err()); ok {
			one.Error = message.Text(ke)
		}
		out.Realms = append(out.Realms, one)
	}
	if h.cluster != nil && req.GetRealm() == "" {
		out.Realms = merged(out.Realms, h.cluster.Status(ctx))
	}
	return out, nil
}

// ListNodes returns the nodes of the cluster.
func (h admin) ListNodes(ctx context.Context, _ *kujiv1.ListNodesRequest) (*kujiv1.ListNodesResponse, error) {
	if h.cluster == nil {
		return &kujiv1.ListNodesResponse{}, nil
	}
	return h.cluster.Nodes(ctx), nil
}

// merged returns the status of realms, sorted by name. What their leaders say comes first.
func merged(own, leaders []*kujiv1.RealmStatus) []*kujiv1.RealmStatus {
	byName := map[string]*kujiv1.RealmStatus{}
	for _, one := range slices.Concat(own, leaders) {
		byName[one.GetRealm()] = one
	}
	all := make([]*kujiv1.RealmStatus, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}

func (h admin) SetClock(ctx context.Context, req *kujiv1.SetClockRequest) (*kujiv1.SetClockResponse, error) {
	r := realmOf(ctx)
	to := time.UnixMilli(req.GetTimeUnixMs())
	moved, back := h.moveClock(to)
	set, err := r.SetClock(ctx, to, cmp.Or(accessOf(ctx).Name, "no key"), req.GetReason())
	if err != nil {
		back()
		return nil, err
	}
	if moved {
		if err := r.Settle(ctx); err != nil {
			return nil, err
		}
	}
	h.log.Warn("the clock was set", "realm", r.Name(), "from", time.UnixMilli(set.Receipt.Time).UTC(), "to", time.UnixMilli(set.To).UTC(), "by", set.By, "reason", set.Reason)
	return &kujiv1.SetClockResponse{FromUnixMs: set.Receipt.Time, ToUnixMs: set.To, Position: set.Receipt.Position, IdsFromUnixMs: set.IDsFrom}, nil
}

// moveClock moves the clock of a server for tests. back undoes that.
func (h admin) moveClock(to time.Time) (moved bool, back func()) {
	if h.tests == nil {
		return false, func() {}
	}
	by := to.Sub(h.tests.Now())
	h.tests.Move(by)
	return true, func() { h.tests.Move(-by) }
}

func (h admin) FinishUpgrade(ctx context.Context, req *kujiv1.FinishUpgradeRequest) (*kujiv1.FinishUpgradeResponse, error) {
	r := realmOf(ctx)
	by := cmp.Or(accessOf(ctx).Name, "no key")
	up, err := r.FinishUpgrade(ctx, by, req.GetReason())
	if err != nil {
		return nil, err
	}
	if up.From != up.To {
		h.log.Warn("an upgrade was finished: older builds refuse the realm from now on", "realm", r.Name(), "from", up.From, "to", up.To, "by", by, "reason", req.GetReason())
	}
	return &kujiv1.FinishUpgradeResponse{FromLevel: uint32(up.From), ToLevel: uint32(up.To), Position: up.Receipt.Position}, nil
}
