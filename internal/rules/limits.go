package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
)

// PoolLimit is a limit of a pool, or its free draws.
type PoolLimit struct {
	Pool string
	Free bool
	LimitState
}

// Limits returns where a player with these counters, ascending, stands in each limit of a pool, in
// the catalog's order, at a time stamp. back is how far the clock has been set back. known is false
// if the catalog has no such pool. It may be called concurrently with the writer.
func Limits(t *Tables, pool string, counters []store.CounterValue, now, back int64) (all []LimitState, known bool) {
	pt := t.PoolByID[pool]
	if pt == nil {
		return nil, false
	}
	m := instant{t.Zone, now, back}
	for i := range pt.Limits {
		l := &pt.Limits[i]
		all = append(all, m.limit(l, l.among(counters)))
	}
	return all, true
}

// Free returns where a player with these counters, ascending, stands in the free draws of a pool, as
// Limits does; nil: it has none.
func Free(t *Tables, pool string, counters []store.CounterValue, now, back int64) *LimitState {
	pt := t.PoolByID[pool]
	if pt == nil || pt.Free == nil {
		return nil
	}
	s := instant{t.Zone, now, back}.limit(pt.Free, pt.Free.among(counters))
	return &s
}

// HasLimits reports whether the catalog has a limit, or free draws, that some of these counters,
// ascending, belong to.
func HasLimits(t *Tables, counters []store.CounterValue) bool {
	return slices.ContainsFunc(counters, func(c store.CounterValue) bool { return t.limitOf(c.Counter) != nil })
}

// LimitsUsed is Limits and Free for every pool, but without those of which all draws are left. They
// are in the order in which catalogs first named them.
func LimitsUsed(t *Tables, counters []store.CounterValue, now, back int64) (all []PoolLimit) {
	m := instant{t.Zone, now, back}
	for len(counters) > 0 {
		pl := t.limitOf(counters[0].Counter)
		if pl == nil {
			counters = counters[1:]
			continue
		}
		mine := pl.among(counters)
		if s := m.limit(pl.Limit, mine); s.Left < s.Draws {
			all = append(all, PoolLimit{pl.pool, pl.free, s})
		}
		counters = counters[len(mine):]
	}
	return all
}
