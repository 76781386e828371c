package view

import (
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// PoolLimit is a limit of a pool, or its free draws.
type PoolLimit struct {
	Pool string
	Free bool
	rules.LimitState
}

// Limits returns where a player with these counters, ascending, stands in each limit of a pool, in the
// catalog's order, and in its free draws, if it has some. back is how far the clock has been set back.
// known is false if the catalog has no such pool. It may be called concurrently with the writer.
func Limits(t *rules.Tables, pool string, counters []store.CounterValue, now, back int64) (all []rules.LimitState, free *rules.LimitState, known bool) {
	pt := t.PoolByID[pool]
	if pt == nil {
		return nil, nil, false
	}
	m := rules.Instant{Zone: t.Zone, Now: now, Back: back}
	for i := range pt.Limits {
		l := &pt.Limits[i]
		all = append(all, m.Limit(l, l.Among(counters)))
	}
	if pt.Free != nil {
		free = new(m.Limit(pt.Free, pt.Free.Among(counters)))
	}
	return all, free, true
}

// LimitsUsed is Limits for every pool, but without those of which all draws are left. They are in the
// order in which catalogs first named them. It asks for the time only if it needs to.
func LimitsUsed(t *rules.Tables, counters []store.CounterValue, instant func() (now, back int64)) (all []PoolLimit) {
	var m *rules.Instant
	for len(counters) > 0 {
		pl := t.LimitOf(counters[0].Counter)
		if pl == nil {
			counters = counters[1:]
			continue
		}
		if m == nil {
			now, back := instant()
			m = &rules.Instant{Zone: t.Zone, Now: now, Back: back}
		}
		mine := pl.Among(counters)
		if s := m.Limit(pl.Limit, mine); s.Left < s.Draws {
			all = append(all, PoolLimit{pl.Pool, pl.Free, s})
		}
		counters = counters[len(mine):]
	}
	return all
}
