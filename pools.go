package kuji

import (
	"context"
	"math"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// Pools is the view of a realm's pools.
type Pools struct{ w *writer }

// PoolView is a pool with its stock and odds.
type PoolView = view.Pool

// PoolSum is what a pool has given, and what is left of it.
type PoolSum = view.PoolSum

// EntryView is an entry's stock and its odds at one moment.
type EntryView = view.Entry

// BudgetView is what is left of an item of a budget.
type BudgetView = view.Budget

// MomentsView is how the winning moments of an entry stand.
type MomentsView = view.Moments

// Limit is a limit of a pool, or its free draws, and where a player stands in it.
type Limit = view.Limit

// PoolLimit is a limit, and the pool that has it.
type PoolLimit = view.PoolLimit

// Pool returns a pool's stock and odds, once they are durable. CodeNotFound: the catalog in force has no
// such pool. Draws may happen while a pool of more than 4096 entries is read.
func (r *Realm) Pool(ctx context.Context, id string) (PoolView, error) {
	return r.Pools().Page(ctx, id, 0, math.MaxInt)
}

// Page is Realm.Pool with at most count entries, from index from on in the catalog's order; none past the
// last. All other fields describe the whole pool. CodeInvalid: from or count is negative.
func (p Pools) Page(ctx context.Context, id string, from, count int) (v PoolView, err error) {
	if from < 0 || count < 0 {
		return v, errf(CodeInvalid, "page", "%d entries from %d on; neither can be negative", count, from)
	}
	if err := p.w.gate.answers(ctx); err != nil {
		return v, err
	}
	known := false
	t, last, err := p.w.read(ctx, func(t *rules.Tables) (last uint64, current bool) {
		campaign, seen, current := p.campaign(t, id)
		if !current {
			return 0, false
		}
		v, known, current = look.PoolOf(t, p.w.state, id, from, count, campaign)
		return max(v.Position, seen), current
	})
	if err == nil && !known {
		err = p.unknown(id, t.Version)
	}
	v.Position = last
	return value(v, err)
}

func (p Pools) unknown(id string, version uint64) error {
	return errf(CodeNotFound, "pool", "there is no pool %q in catalog version %d of realm %q", id, version, p.w.name)
}

// Sums returns the sums of at most n pools, in order, once durable, and how many more the catalog has.
// Draws may happen between two pools.
func (p Pools) Sums(ctx context.Context, n int) (sums []PoolSum, more int, err error) {
	if n < 0 {
		return nil, 0, errf(CodeInvalid, "n", "%d pools; it cannot be negative", n)
	}
	if err := p.w.gate.readable(); err != nil {
		return nil, 0, err
	}
	t, _, err := p.w.read(ctx, func(t *rules.Tables) (last uint64, current bool) {
		sums, last, current = look.Sums(t, p.w.state, n)
		return last, current
	})
	if err != nil || t.Catalog == nil {
		return nil, 0, err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	for i := range sums {
		sums[i].Draws = p.w.counts.drawn[t.PoolByID[sums[i].ID].Num]
	}
	return sums, len(t.Catalog.Pools) - len(sums), nil
}

// campaign returns how a pool's budgets and moments stand, and as of which position. Only if it has any, it
// takes the realm's lock. current is false if another catalog is in force.
func (p Pools) campaign(t *rules.Tables, pool string) (c *look.Campaign, seen uint64, current bool) {
	if !look.Campaigns(t, pool) {
		return nil, 0, true
	}
	seen, current = p.w.look(t, func(now int64) { c = look.CampaignOf(p.w.rules, pool, now) })
	return c, seen, current
}

// look calls f under the realm's lock with the clock's time, if these tables' catalog is still in force.
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

// Limits returns where a player stands in a pool's limits, in the catalog's order, once that is durable. A
// player who was never seen has all draws left. CodeNotFound: the catalog in force has no such pool.
func (p Pools) Limits(ctx context.Context, pool, player string) ([]Limit, error) {
	limits, _, err := p.standing(ctx, pool, player)
	return value(limits, err)
}

// Free is Limits for the free draws of a pool: how many are left, and when the next one comes; nil: none.
func (p Pools) Free(ctx context.Context, pool, player string) (*Limit, error) {
	_, free, err := p.standing(ctx, pool, player)
	return value(free, err)
}

// standing returns where a player stands in the limits and the free draws of a pool.
func (p Pools) standing(ctx context.Context, pool, player string) (limits []Limit, free *Limit, err error) {
	if len(player) > rules.MaxID {
		return nil, nil, errf(CodeInvalid, "player", "%d bytes long; at most %d are allowed", len(player), rules.MaxID)
	}
	if err := p.w.gate.answers(ctx); err != nil {
		return nil, nil, err
	}
	known := false
	t, _, err := p.w.read(ctx, func(t *rules.Tables) (last uint64, current bool) {
		_, counters, last, _ := p.w.state.Holdings(player)
		now, back := p.w.instant()
		limits, known = look.Limits(t, pool, counters, now, back)
		free = look.Free(t, pool, counters, now, back)
		return last, true
	})
	if err == nil && !known {
		err = p.unknown(pool, t.Version)
	}
	return limits, free, err
}
