package look

import (
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// Limits returns where a player with these counters, ascending, stands in each limit of a pool, in
// the catalog's order, at a time stamp. back is how far the clock has been set back. known is false
// if the catalog has no such pool. It may be called concurrently with the writer.
func Limits(t *rules.Tables, pool string, counters []store.CounterValue, now, back int64) (all []view.Limit, known bool) {
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

// Free is Limits for a pool's free draws; nil: it has none.
func Free(t *rules.Tables, pool string, counters []store.CounterValue, now, back int64) *view.Limit {
	pt := t.PoolByID[pool]
	if pt == nil || pt.Free == nil {
		return nil
	}
	s := rules.Instant{Zone: t.Zone, Now: now, Back: back}.Limit(pt.Free, pt.Free.Among(counters))
	return &s
}

// FreeOfAll is Free for every pool that has free draws, in the order in which catalogs first
// named them.
func FreeOfAll(t *rules.Tables, counters []store.CounterValue, now, back int64) (all []view.PoolLimit) {
	m := rules.Instant{Zone: t.Zone, Now: now, Back: back}
	for _, l := range t.AllLimits() {
		if l.Free {
			all = append(all, view.PoolLimit{Pool: l.Pool, Limit: m.Limit(l.Limit, l.Among(counters))})
		}
	}
	return all
}

// HasLimits reports whether the catalog has a limit, or free draws, that some of these counters,
// ascending, belong to.
func HasLimits(t *rules.Tables, counters []store.CounterValue) bool {
	return slices.ContainsFunc(counters, func(c store.CounterValue) bool { return t.LimitOf(c.Counter) != nil })
}

// LimitsUsed is Limits and Free for every pool, without those of which all draws are left. They are in
// the order in which catalogs first named them.
func LimitsUsed(t *rules.Tables, counters []store.CounterValue, now, back int64) (limits, free []view.PoolLimit) {
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
			*to = append(*to, view.PoolLimit{Pool: pl.Pool, Limit: s})
		}
		counters = counters[len(mine):]
	}
	return limits, free
}
