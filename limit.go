package kuji

import (
	"context"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/view"
)

// Limit is a limit of a pool, or its free draws, and where a player stands in it.
type Limit struct {
	Per    catalog.Per `json:"per"`
	Window int64       `json:"window_ms,omitempty"` // 0 unless Per is catalog.PerWindow
	Draws  uint64      `json:"draws"`               // that the limit allows
	Left   uint64      `json:"left"`                // of them
	// Resets is when more draws than now are left, at the soonest: a time stamp, Unix milliseconds.
	// All of them are left then, except of a window. 0: never, or all are left now.
	Resets int64 `json:"resets,omitempty"`
}

// PoolLimit is a limit, and the pool that has it.
type PoolLimit struct {
	Pool string
	Limit
}

// Lack is an item of which a player had too few.
type Lack struct {
	Item string `json:"item"`
	Have uint64 `json:"have"`
	Need uint64 `json:"need"` // at most 2^53-1 times MaxDrawCount
}

// Limits returns where a player stands in each limit of a pool, in the catalog's order. A player who
// was never seen has all draws left. It waits until that is durable. CodeNotFound: the catalog in
// force has no such pool.
func (r *Realm) Limits(ctx context.Context, pool, player string) ([]Limit, error) {
	limits, _, err := r.standing(ctx, pool, player)
	return limits, err
}

// Free returns how many free draws of a pool a player has left, and when the next one comes; nil: the
// pool has none. All else is as in Limits.
func (r *Realm) Free(ctx context.Context, pool, player string) (*Limit, error) {
	_, free, err := r.standing(ctx, pool, player)
	return free, err
}

// standing returns where a player stands in the limits and the free draws of a pool.
func (r *Realm) standing(ctx context.Context, pool, player string) (limits []Limit, free *Limit, err error) {
	if len(player) > rules.MaxID {
		return nil, nil, errf(CodeInvalid, "player", "%d bytes long; at most %d are allowed", len(player), rules.MaxID)
	}
	if err := r.answers(ctx); err != nil {
		return nil, nil, err
	}
	for {
		t, c := r.catalog()
		_, counters, last, _ := r.state.Holdings(player)
		if r.tables.Load() != t { // the counters may already be those of another catalog
			continue
		}
		now, back := r.instant()
		all, known := view.Limits(t, pool, counters, now, back)
		free := (*Limit)(view.Free(t, pool, counters, now, back))
		if err := r.settle(ctx, max(last, c.Position)); err != nil {
			return nil, nil, err
		}
		if !known {
			return nil, nil, errf(CodeNotFound, "pool", "there is no pool %q in catalog version %d of realm %q", pool, c.Version, r.name)
		}
		out := make([]Limit, len(all))
		for i := range all {
			out[i] = Limit(all[i])
		}
		return out, free, nil
	}
}

// limitsUsed returns the limits and the free draws of which a player with these counters has used some.
func (r *Realm) limitsUsed(t *rules.Tables, counters []store.CounterValue) (limits, free []PoolLimit) {
	if !view.HasLimits(t, counters) {
		return nil, nil // without the realm's lock
	}
	now, back := r.instant()
	for _, l := range view.LimitsUsed(t, counters, now, back) {
		to := &limits
		if l.Free {
			to = &free
		}
		*to = append(*to, PoolLimit{l.Pool, Limit(l.LimitState)})
	}
	return limits, free
}

// instant returns the time stamp that a batch would get, and how far the clock has been set back.
func (r *Realm) instant() (now, back int64) {
	r.mu.Lock()
	defer r.unlock()
	v := r.clockView()
	return v.Time, v.Back
}
