package kuji

import (
	"context"
	"math"
	"runtime"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/view"
)

// Pools is the view of a realm's pools.
type Pools struct{ w *writer }

// Pool returns a pool's stock and odds. It waits until they are durable, and for nothing else.
// CodeNotFound: the catalog in force has no such pool. A pool of more than 4096 entries is read in
// parts, and draws may happen between two parts.
func (r *Realm) Pool(ctx context.Context, id string) (PoolView, error) {
	return r.Pools().Page(ctx, id, 0, math.MaxInt)
}

// Page is Realm.Pool with at most count entries, beginning at index from in the catalog's order.
// If from is past the last entry, it has none. All other fields describe the whole pool.
// CodeInvalid: from or count is negative.
func (p Pools) Page(ctx context.Context, id string, from, count int) (PoolView, error) {
	if from < 0 || count < 0 {
		return PoolView{}, errf(CodeInvalid, "page", "%d entries from %d on; neither can be negative", count, from)
	}
	if err := p.w.gate.answers(ctx); err != nil {
		return PoolView{}, err
	}
	for {
		t, c := p.w.inForce()
		campaign, seen, current := p.campaign(t, id)
		pool, known, still := view.PoolOf(t, p.w.state, id, from, count, campaign)
		if !current || !still {
			runtime.Gosched() // a catalog is being put in force
			continue
		}
		last := max(pool.Last, c.Position, seen) // whether the pool exists depends on the catalog
		if err := p.w.settle(ctx, last); err != nil {
			return PoolView{}, err
		}
		if !known {
			return PoolView{}, errf(CodeNotFound, "pool", "there is no pool %q in catalog version %d of realm %q", id, t.Version, p.w.name)
		}
		v := PoolView{ID: id, CatalogVersion: t.Version, Config: *pool.Config, Entries: make([]EntryView, len(pool.Entries)), TotalWeight: pool.Total, Position: last}
		for i, e := range pool.Entries {
			v.Entries[i] = EntryView{ID: e.ID, Unlimited: e.Unlimited, Left: e.Left, Drawn: e.Drawn, Weight: e.Weight, OverBudget: e.Over}
		}
		v.addCampaign(campaign)
		return v, nil
	}
}

// Sums returns the sums of at most n pools, in the catalog's order, and how many pools the catalog has
// beyond them. It waits until they are durable. Draws may happen between two pools.
func (p Pools) Sums(ctx context.Context, n int) (sums []PoolSum, more int, err error) {
	if n < 0 {
		return nil, 0, errf(CodeInvalid, "n", "%d pools; it cannot be negative", n)
	}
	if err := p.w.gate.readable(); err != nil {
		return nil, 0, err
	}
	for {
		t, c := p.w.inForce()
		all, last, current := view.Sums(t, p.w.state, n)
		if !current {
			runtime.Gosched() // a catalog is being put in force
			continue
		}
		if err := p.w.settle(ctx, max(last, c.Position)); err != nil {
			return nil, 0, err
		}
		if t.Catalog != nil {
			more = len(t.Catalog.Pools) - len(all)
		}
		sums = make([]PoolSum, len(all))
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		for i, s := range all {
			sums[i] = PoolSum{ID: s.ID, Draws: p.w.counts.drawn[s.Num], Drawn: s.Drawn, Left: s.Left, Limited: s.Limited}
		}
		return sums, more, nil
	}
}

// campaign returns how a pool's budgets and moments stand, and the position as of which that is. It
// takes the realm's lock, but only for pools that have any. current is false if another catalog is in
// force.
func (p Pools) campaign(t *rules.Tables, pool string) (c *view.Campaign, seen uint64, current bool) {
	if !view.Campaigns(t, pool) {
		return nil, 0, true
	}
	seen, current = p.w.look(t, func(now int64) { c = view.CampaignOf(p.w.rules, pool, now) })
	return c, seen, current
}

// look calls f under the realm's lock, if the catalog of these tables is still in force, with the time of
// the machine's clock. It returns the position that the state has come to.
func (w *writer) look(t *rules.Tables, f func(now int64)) (seen uint64, current bool) {
	now := min(w.o.Now().UnixMilli(), rules.MaxTime)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rules.Tables().Version != t.Version {
		return 0, false
	}
	f(now)
	return w.state.Position(), true
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

// Limits returns where a player stands in each limit of a pool, in the catalog's order. A player who
// was never seen has all draws left. It waits until that is durable. CodeNotFound: the catalog in
// force has no such pool.
func (p Pools) Limits(ctx context.Context, pool, player string) ([]Limit, error) {
	limits, _, err := p.standing(ctx, pool, player)
	return limits, err
}

// Free returns how many free draws of a pool a player has left, and when the next one comes; nil: the
// pool has none. All else is as in Limits.
func (p Pools) Free(ctx context.Context, pool, player string) (*Limit, error) {
	_, free, err := p.standing(ctx, pool, player)
	return free, err
}

// standing returns where a player stands in the limits and the free draws of a pool.
func (p Pools) standing(ctx context.Context, pool, player string) (limits []Limit, free *Limit, err error) {
	if len(player) > rules.MaxID {
		return nil, nil, errf(CodeInvalid, "player", "%d bytes long; at most %d are allowed", len(player), rules.MaxID)
	}
	if err := p.w.gate.answers(ctx); err != nil {
		return nil, nil, err
	}
	for {
		t, c := p.w.inForce()
		_, counters, last, _ := p.w.state.Holdings(player)
		if p.w.tables.Load() != t { // the counters may already be those of another catalog
			continue
		}
		now, back := p.w.instant()
		all, free, known := view.Limits(t, pool, counters, now, back)
		if err := p.w.settle(ctx, max(last, c.Position)); err != nil {
			return nil, nil, err
		}
		if !known {
			return nil, nil, errf(CodeNotFound, "pool", "there is no pool %q in catalog version %d of realm %q", pool, c.Version, p.w.name)
		}
		out := make([]Limit, len(all))
		for i := range all {
			out[i] = Limit(all[i])
		}
		return out, (*Limit)(free), nil
	}
}
