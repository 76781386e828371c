package kuji

import (
	"context"
	"math"
	"runtime"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/view"
)

// Reads run concurrently with the writer. They lock one player or part of a pool for as long as it
// takes to copy it. They lock the realm only if what they read is not durable yet: then they wait
// until it is. With a context from [Stale] they do not wait.
//
// A realm that stopped because the log could not be written still answers reads of what is durable.
// A player or a pool whose newest change is not durable is refused with the error that stopped the
// realm: nobody knows whether that change happened until the realm is opened again.

// Stale returns a context for reads that do not wait until what they read is durable. A crash may
// still undo what they return. A realm that follows answers no others: what it has is durable, and
// may be old.
func Stale(ctx context.Context) context.Context { return context.WithValue(ctx, staleKey{}, true) }

type staleKey struct{}

// Catalog returns the catalog in force.
func (r *Realm) Catalog(ctx context.Context) (CatalogView, error) {
	if err := r.answers(ctx); err != nil {
		return CatalogView{}, err
	}
	t, c := r.catalog()
	if err := r.settle(ctx, c.Position); err != nil {
		return CatalogView{}, err
	}
	return CatalogView{Version: c.Version, Hash: t.Hash, Catalog: t.Catalog, Position: c.Position, Index: c.Index, Time: c.Time}, nil
}

// Items returns the items with these ids, as the catalog in force has them and in its order. Those that
// it does not have are left out.
func (r *Realm) Items(ctx context.Context, ids []string) ([]catalog.Item, error) {
	if err := r.answers(ctx); err != nil {
		return nil, err
	}
	t, c := r.catalog()
	if err := r.settle(ctx, c.Position); err != nil {
		return nil, err
	}
	var all []catalog.Item
	for _, i := range view.Items(t, ids) {
		all = append(all, t.Catalog.Items[i])
	}
	return all, nil
}

// Player returns what a player holds, and what the tracks of the catalog in force have counted for
// the player. It waits until that is durable, and for nothing else. CodeNotFound: the player was
// never seen.
func (r *Realm) Player(ctx context.Context, id string) (PlayerView, error) {
	if err := r.answers(ctx); err != nil {
		return PlayerView{}, err
	}
	for {
		t, c := r.catalog()
		items, counters, last, ok := r.state.Holdings(id)
		if !ok {
			return PlayerView{}, r.unseen(id)
		}
		if r.tables.Load() != t { // the counters may already be those of another catalog
			continue
		}
		v := PlayerView{ID: id, Items: make([]Stack, len(items)), Position: last}
		for i, it := range items {
			v.Items[i] = Stack(it)
		}
		tracks, seen, current := r.tracks(t, id, counters)
		if !current {
			runtime.Gosched() // a catalog is being put in force
			continue
		}
		last = max(last, seen)
		for _, d := range tracks {
			v.Tracks = append(v.Tracks, TrackView(d))
		}
		v.Limits, v.Free = r.limitsUsed(t, counters)
		// Which tracks there are depends on the catalog.
		if err := r.settle(ctx, max(last, c.Position)); err != nil {
			return PlayerView{}, err
		}
		return v, nil
	}
}

// tracks returns what tracks have counted, by all counters of a player, and the position as of which
// their promises hold. It takes the realm's lock, but only if those depend on stock, or on what the
// player holds. current is false if another catalog is in force.
func (r *Realm) tracks(t *rules.Tables, player string, counters []store.CounterValue) (tracks []view.TrackDraws, seen uint64, current bool) {
	tracks, open := view.Tracks(t, counters)
	if !open {
		return tracks, 0, true
	}
	now := min(r.o.Now().UnixMilli(), rules.MaxTime)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rules.Tables().Version != t.Version {
		return nil, 0, false
	}
	view.Promise(r.rules, player, now, tracks)
	return tracks, r.state.Position(), true
}

func (r *Realm) unseen(player string) error {
	return errf(CodeNotFound, "player", "player %q was never seen in realm %q", player, r.name)
}

// Balance returns how many of one item a player holds. It waits as Player does, and allocates
// nothing. CodeNotFound: the player was never seen, or the catalog in force has no such item.
func (r *Realm) Balance(ctx context.Context, player, item string) (uint64, error) {
	if err := r.answers(ctx); err != nil {
		return 0, err
	}
	t, c := r.catalog()
	if !t.Has(item) {
		if err := r.settle(ctx, c.Position); err != nil {
			return 0, err
		}
		return 0, errf(CodeNotFound, "item", "there is no item %q in the catalog of realm %q", item, r.name)
	}
	quantity, last, ok := r.state.HoldingOf(player, item)
	if err := r.settle(ctx, max(last, c.Position)); err != nil {
		return 0, err
	}
	if !ok {
		return 0, r.unseen(player)
	}
	return quantity, nil
}

// Pool returns a pool's stock and odds. It waits until they are durable, and for nothing else.
// CodeNotFound: the catalog in force has no such pool. A pool of more than 4096 entries is read in
// parts, and draws may happen between two parts.
func (r *Realm) Pool(ctx context.Context, id string) (PoolView, error) {
	return r.PoolPage(ctx, id, 0, math.MaxInt)
}

// PoolPage is Pool with at most count entries, beginning at index from in the catalog's order.
// If from is behind the last entry, it has none. All other fields describe the whole pool.
// CodeInvalid: from or count is negative.
func (r *Realm) PoolPage(ctx context.Context, id string, from, count int) (PoolView, error) {
	if from < 0 || count < 0 {
		return PoolView{}, errf(CodeInvalid, "page", "%d entries from %d on; neither can be negative", count, from)
	}
	if err := r.answers(ctx); err != nil {
		return PoolView{}, err
	}
	for {
		t, c := r.catalog()
		campaign, seen, current := r.campaign(t, id)
		p, known, still := view.PoolOf(t, r.state, id, from, count, campaign)
		if !current || !still {
			runtime.Gosched() // a catalog is being put in force
			continue
		}
		last := max(p.Last, c.Position, seen) // whether the pool exists depends on the catalog
		if err := r.settle(ctx, last); err != nil {
			return PoolView{}, err
		}
		if !known {
			return PoolView{}, errf(CodeNotFound, "pool", "there is no pool %q in catalog version %d of realm %q", id, t.Version, r.name)
		}
		v := PoolView{ID: id, CatalogVersion: t.Version, Config: *p.Config, Entries: make([]EntryView, len(p.Entries)), TotalWeight: p.Total, Position: last}
		for i, e := range p.Entries {
			v.Entries[i] = EntryView{ID: e.ID, Unlimited: e.Unlimited, Left: e.Left, Drawn: e.Drawn, Weight: e.Weight, OverBudget: e.Over}
		}
		v.addCampaign(campaign)
		return v, nil
	}
}

// Pools returns the sums of at most n pools, in the catalog's order, and how many pools the catalog has
// beyond them. It waits until they are durable. Draws may happen between two pools.
func (r *Realm) Pools(ctx context.Context, n int) (sums []PoolSum, more int, err error) {
	if n < 0 {
		return nil, 0, errf(CodeInvalid, "n", "%d pools; it cannot be negative", n)
	}
	if err := r.readable(); err != nil {
		return nil, 0, err
	}
	for {
		t, c := r.catalog()
		all, last, current := view.Sums(t, r.state, n)
		if !current {
			runtime.Gosched() // a catalog is being put in force
			continue
		}
		if err := r.settle(ctx, max(last, c.Position)); err != nil {
			return nil, 0, err
		}
		if t.Catalog != nil {
			more = len(t.Catalog.Pools) - len(all)
		}
		sums = make([]PoolSum, len(all))
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, p := range all {
			sums[i] = PoolSum{ID: p.ID, Draws: r.drawn[p.Num], Drawn: p.Drawn, Left: p.Left, Limited: p.Limited}
		}
		return sums, more, nil
	}
}

// countPools makes room to count the draws from every pool. The caller holds mu, or has the realm to
// itself.
func (r *Realm) countPools() {
	if n := r.state.Pools(); n > len(r.drawn) {
		r.drawn = append(r.drawn, make([]uint64, n-len(r.drawn))...)
	}
}

// campaign returns how a pool's budgets and moments stand, and the position as of which that is. It
// takes the realm's lock, but only for pools that have any. current is false if another catalog is in
// force.
func (r *Realm) campaign(t *rules.Tables, pool string) (c *view.Campaign, seen uint64, current bool) {
	if !view.Campaigns(t, pool) {
		return nil, 0, true
	}
	now := min(r.o.Now().UnixMilli(), rules.MaxTime)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rules.Tables().Version != t.Version {
		return nil, 0, false
	}
	return view.CampaignOf(r.rules, pool, now), r.state.Position(), true
}

// addCampaign adds how budgets and moments stand.
func (v *PoolView) addCampaign(c *view.Campaign) {
	if c == nil {
		return
	}
	for _, b := range c.Budgets {
		v.Budgets = append(v.Budgets, BudgetView{Per: b.Per, Share: b.Share, Item: b.Item, Limit: b.Limit, Spent: b.Spent, ResetsAt: b.Resets})
	}
	for _, m := range c.Moments {
		for i := range v.Entries {
			if e := &v.Entries[i]; e.ID == m.Entry {
				e.Moments = &MomentsView{Come: m.Come, Waiting: m.Waiting, NextAt: m.Next}
			}
		}
	}
}

// StateHash returns the hash of the realm's state and the position it was taken at, once that is
// durable. Verify reports the same hash for the same position, on every machine and in every
// build. It blocks the realm while it hashes, for a time that grows with the state.
func (r *Realm) StateHash(ctx context.Context) (hash [32]byte, position uint64, err error) {
	r.mu.Lock()
	if err := r.answers(ctx); err != nil {
		r.mu.Unlock()
		return hash, 0, err
	}
	b := r.group.Open()
	if b.Events == 0 { // the state is that of the batch before it
		position, hash = r.state.Position(), r.state.Hash()
		r.mu.Unlock()
		return hash, position, r.settle(ctx, position)
	}
	if r.hash == nil {
		r.hash = new([32]byte)
	}
	sum, done := r.hash, b.Done()
	r.unlock()
	if err := r.settled(ctx, b, done); err != nil {
		return hash, 0, err
	}
	return *sum, b.Position, nil
}

// settle waits until the batch of a position is durable, unless the context is stale and the realm
// goes on.
func (r *Realm) settle(ctx context.Context, pos uint64) error {
	if pos <= r.acked.Load() || ctx.Value(staleKey{}) != nil && r.usable() == nil {
		return nil
	}
	if !r.leads.Load() { // all that a follower has is durable
		return nil
	}
	r.mu.Lock()
	if pos <= r.acked.Load() {
		r.mu.Unlock()
		return nil
	}
	if err := r.usable(); err != nil { // it will never be durable
		r.mu.Unlock()
		return err
	}
	b := r.batchAt(pos)
	done := b.Done()
	r.unlock()
	return r.settled(ctx, b, done)
}

// settled waits until b is durable. done is what b.Done returned.
func (r *Realm) settled(ctx context.Context, b *ledger.Batch, done <-chan struct{}) error {
	if err := step.Wait(ctx, r.world.steps, done); err != nil {
		return &Error{Code: CodeCanceled, Message: "while waiting for what was read to become durable", Err: err}
	}
	if b.Err() != nil {
		return r.Err()
	}
	return nil
}

// catalog returns the tables of the catalog in force, and where it was put in force.
func (r *Realm) catalog() (*rules.Tables, store.InForce) {
	for {
		t, c := r.tables.Load(), r.state.Catalog()
		if t.Version == c.Version {
			return t, c
		}
		runtime.Gosched() // a catalog is being put in force between the two loads
	}
}
