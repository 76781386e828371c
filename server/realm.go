package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// DefaultRealm is the realm of requests that do not name one.
const DefaultRealm = "default"

// realms holds the open realms. A request to a known realm costs one read of the table.
type realms struct {
	mu     sync.RWMutex
	byName map[string]*kuji.Realm
	create sync.Mutex        // held while a realm is created or looked for on disk
	shared bool              // with other servers: they follow until they are made to lead
	begin  func(*kuji.Realm) // begins the history of a realm; nil: there is none
}

// open opens every realm of an engine, and creates the default one.
func (t *realms) open(engine *kuji.Engine) error {
	t.create.Lock()
	defer t.create.Unlock()
	names, err := engine.Realms()
	if err != nil {
		return fmt.Errorf("server: list realms: %w", err)
	}
	for _, name := range names {
		r, err := engine.Lookup(name)
		if err != nil {
			return fmt.Errorf("server: open realm %q: %w", name, err)
		}
		t.add(name, r)
	}
	if !t.has(DefaultRealm) {
		r, err := engine.Realm(DefaultRealm)
		if err != nil {
			return fmt.Errorf("server: create realm %q: %w", DefaultRealm, err)
		}
		t.add(DefaultRealm, r)
	}
	return nil
}

// get returns an existing realm, the default realm if the name is empty.
func (t *realms) get(engine *kuji.Engine, name string) (*kuji.Realm, error) {
	if name == "" {
		name = DefaultRealm
	}
	t.mu.RLock()
	r := t.byName[name]
	t.mu.RUnlock()
	if r != nil {
		return r, nil
	}
	// The program that embeds the engine may have created it.
	t.create.Lock()
	defer t.create.Unlock()
	r, err := engine.Lookup(name)
	if err != nil {
		return nil, err
	}
	t.add(name, r)
	return r, nil
}

func (t *realms) add(name string, r *kuji.Realm) {
	t.mu.Lock()
	if t.byName == nil {
		t.byName = make(map[string]*kuji.Realm)
	}
	t.byName[name] = r
	t.mu.Unlock()
	if t.begin != nil && !t.shared {
		t.begin(r)
	}
}

// remove forgets a realm that is to be closed.
func (t *realms) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, name)
}

// follows reports whether a realm is open and does not lead.
func (t *realms) follows(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r := t.byName[name]
	return r != nil && !r.Replica().Leads()
}

// new creates a realm if it does not exist.
func (t *realms) new(engine *kuji.Engine, name string) (created bool, err error) {
	t.create.Lock()
	defer t.create.Unlock()
	r, err := engine.Lookup(name)
	switch {
	case err == nil:
		t.add(name, r)
		return false, nil
	case kuji.CodeOf(err) != kuji.CodeNotFound:
		return false, err
	}
	if r, err = engine.Realm(name); err != nil {
		return false, err
	}
	t.add(name, r)
	return true, nil
}

func (t *realms) has(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[name] != nil
}

func (t *realms) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byName)
}

// sorted returns the open realms, sorted by name.
func (t *realms) sorted() []*kuji.Realm {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]*kuji.Realm, 0, len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		all = append(all, t.byName[name])
	}
	return all
}

func (h adminService) CreateRealm(_ context.Context, req *kujiv1.CreateRealmRequest) (*kujiv1.CreateRealmResponse, error) {
	if req.GetRealm() == "" {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "realm", Message: "is empty, want the name of the realm to create"}
	}
	if err := h.s.checkRealm(req.GetRealm()); err != nil {
		return nil, err
	}
	created, err := h.s.realms.new(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	return &kujiv1.CreateRealmResponse{Created: created}, nil
}

func (h adminService) ListRealms(context.Context, *kujiv1.ListRealmsRequest) (*kujiv1.ListRealmsResponse, error) {
	names, err := h.s.engine.Realms()
	if err != nil {
		return nil, err
	}
	return &kujiv1.ListRealmsResponse{Realms: names}, nil
}

// syncPolicy returns the contract's name for an engine's policy.
func syncPolicy(p kuji.SyncPolicy) kujiv1.SyncPolicy {
	switch p {
	case kuji.SyncAlways:
		return kujiv1.SyncPolicy_SYNC_POLICY_ALWAYS
	case kuji.SyncInterval:
		return kujiv1.SyncPolicy_SYNC_POLICY_INTERVAL
	case kuji.SyncNone:
		return kujiv1.SyncPolicy_SYNC_POLICY_NONE
	}
	return kujiv1.SyncPolicy_SYNC_POLICY_UNSPECIFIED
}

func (h adminService) GetStatus(ctx context.Context, req *kujiv1.GetStatusRequest) (*kujiv1.GetStatusResponse, error) {
	out := &kujiv1.GetStatusResponse{Version: h.s.o.Version, Draining: h.s.draining.Load(), Sync: syncPolicy(h.s.engine.Sync())}
	list := h.s.realms.sorted()
	if req.GetRealm() != "" {
		r, err := h.s.realms.get(h.s.engine, req.GetRealm())
		if err != nil {
			return nil, err
		}
		list = []*kuji.Realm{r}
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
		}
		if ke, ok := errors.AsType[*kuji.Error](r.Err()); ok {
			one.Error = messageOf(ke)
		}
		out.Realms = append(out.Realms, one)
	}
	if h.s.o.Cluster != nil && req.GetRealm() == "" {
		out.Realms = merged(out.Realms, h.s.o.Cluster.Status(ctx))
	}
	return out, nil
}

// merged returns what there is to say of realms, sorted by name. Who leads a realm knows more than who follows.
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
