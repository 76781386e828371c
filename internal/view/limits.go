package view

import (
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// Limit is a limit of a pool, or its free draws, and where a player stands in it.
type Limit = rules.LimitState

// PoolLimit is a limit, and the pool that has it.
type PoolLimit struct {
	Pool string
	Limit
}

// Limits returns where a player with these counters, ascending, stands in each limit of a pool at a time
// stamp, concurrently with the writer. back is how far the clock has been set back. known is false if the
// catalog has no such pool.
func Limits(t *rules.Tables, pool string, counters []store.CounterValue, now, back int64) (all []Limit, known bool) {
	pt := t.PoolByID[pool]
	if pt == nil {
		return nil, false
	}
	m := rules.Instant{Zone: t.Zone, Now: now, Back: back}
	for i := range pt.Limits {
		l := &pt.Limits[i]
		all = append(all, m.Limit(l, l.Among(counters)))
	}
	return all, true
}

// Free is Limits for the free draws of a pool; nil: it has none.
func Free(t *rules.Tables, pool string, counters []store.CounterValue, now, back int64) *Limit {
	pt := t.PoolByID[pool]
	if pt == nil || pt.Free == nil {
		return nil
	}
	s := rules.Instant{Zone: t.Zone, Now: now, Back: back}.Limit(pt.Free, pt.Free.Among(counters))
	return &s
}

// HasLimits reports whether the catalog has a limit, or free draws, that some of these counters,
// ascending, belong to.
func HasLimits(t *rules.Tables, counters []store.CounterValue) bool {
	return slices.ContainsFunc(counters, func(c store.CounterValue) bool { return t.LimitOf(c.Counter) != nil })
}

// LimitsUsed is Limits and Free for every pool, without those that have all draws left, in the order in which
// catalogs first named them.
func LimitsUsed(t *rules.Tables, counters []store.CounterValue, now, back int64) (limits, free []PoolLimit) {
	m := rules.Instant{Zone: t.Zone, Now: now, Back: back}
	for len(counters) > 0 {
		pl := t.LimitOf(counters[0].Counter)
		if pl == nil {
			counters = counters[1:]
			continue
		}
		mine := pl.Among(counters)
		if s := m.Limit(pl.Limit, mine); s.Left < s.Draws {
			to := &limits
			if pl.Free {
				to = &free
			}
			*to = append(*to, PoolLimit{pl.Pool, s})
		}
		counters = counters[len(mine):]
	}
	return limits, free
}
