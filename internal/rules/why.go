package rules

import (
	"cmp"
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Some statuses say more than what they are about. It stands in the event, so that the same request
// id always gets the same words:
//
//	limit reached       the limit's per (1 byte: see catalog.Per), window in milliseconds, draws
//	                    allowed, draws left, when there will be more of them (Unix milliseconds;
//	                    0: never); all but the first are varints
//	insufficient items  number of items, then for each: its number, how many the player has, how
//	                    many the command needs; varints
//
// For a member of a group it is what that member found, behind those before it.

// LimitState is a limit of a pool, and where a player stands in it.
type LimitState struct {
	Per    catalog.Per
	Window int64  // milliseconds; 0 unless Per is catalog.PerWindow
	Draws  uint64 // allowed
	Left   uint64
	// Resets is when more draws than now are left, at the soonest: a time stamp, in Unix
	// milliseconds. 0: never, or all of them are left.
	Resets int64
}

// Lack is an item of which a player has too few.
type Lack struct {
	Item       uint32
	Have, Need uint64
}

// why is why the command fails.
type why struct {
	lacks   []Lack     // with InsufficientItems
	stopped LimitState // with LimitReached
}

// maxNeed is the most that a command needs of an item: a price for MaxDrawCount draws.
const maxNeed = MaxQuantity * MaxDrawCount

// lack notes an item if the player has less of it than is needed.
func (r *Rules) lack(player, item uint32, need uint64) {
	if have := r.balance(player, item); have < need {
		r.d.lacks = append(r.d.lacks, Lack{item, have, need})
	}
}

// writeWhy writes what the status of a command says besides its subject.
func (r *Rules) writeWhy(status Status) {
	w := r.d.w
	switch status {
	case LimitReached:
		s := &r.d.stopped
		w.Buf = append(w.Buf, byte(s.Per))
		w.Uint(uint64(s.Window))
		w.Uint(s.Draws)
		w.Uint(s.Left)
		w.Uint(uint64(s.Resets))
	case InsufficientItems:
		w.Uint(uint64(len(r.d.lacks)))
		for _, l := range r.d.lacks {
			w.Uint(uint64(l.Item))
			w.Uint(l.Have)
			w.Uint(l.Need)
		}
	}
}

// WhyOf returns what an event that failed says about its status: a limit, or what was lacking. Both
// are empty for any other status.
func WhyOf(ev *store.Event) (limit LimitState, lacks []Lack, err error) {
	r := store.NewReader(ev.Why)
	switch Status(ev.Status) {
	case LimitReached:
		limit.Per = catalog.Per(r.Byte("a limit"))
		limit.Window = int64(r.Uint("a window", math.MaxInt64))
		limit.Draws = r.Uint("the draws allowed", math.MaxUint64)
		limit.Left = r.Uint("the draws left", limit.Draws)
		limit.Resets = int64(r.Uint("a time", math.MaxInt64))
	case InsufficientItems:
		for range r.Uint("the number of items", MaxStacks) {
			l := Lack{Item: uint32(r.Uint("an item", math.MaxUint32))}
			l.Have = r.Uint("what the player has", MaxQuantity)
			l.Need = r.Uint("what is needed", maxNeed)
			lacks = append(lacks, l)
		}
	}
	if r.More() {
		r.Fail("more than the status says")
	}
	return limit, lacks, r.Err()
}

// limitState returns where a player stands in a limit at this point of the command.
func (r *Rules) limitState(l *Limit, player uint32) LimitState {
	if l.Per == catalog.PerWindow {
		return r.instant().limit(l, r.windowCounters(l, player))
	}
	return r.instant().limit(l, []counterValue{{Counter: l.Counter, Value: r.counter(player, l.Counter)}})
}

// limit returns where a player with these counters of a limit stands in it.
func (m instant) limit(l *Limit, counters []counterValue) LimitState {
	s := LimitState{Per: l.Per, Draws: l.Draws}
	if l.Per == catalog.PerWindow {
		s.Window = l.Window
	}
	used, first := uint64(0), int64(math.MaxInt64)
	for _, c := range counters {
		switch {
		case l.Per == catalog.PerForever:
			used += c.Value
		case c.Value != 0 && m.counts(l, c.Value):
			used += c.Value & maxStepDraws
			first = min(first, int64(c.Value>>drawBits))
		}
	}
	s.Left = l.Draws - min(used, l.Draws)
	switch {
	case used == 0:
	case l.Per == catalog.PerWindow:
		s.Resets = first + l.Window - m.back
	case l.Per != catalog.PerForever:
		s.Resets = m.zone.Next(l.Per, m.now)
	}
	return s
}

// PoolLimit is a limit of a pool, or its free draws.
type PoolLimit struct {
	Pool string
	Free bool
	LimitState
}

// Limits returns where a player with these counters, ascending, stands in each limit of a pool, in
// the catalog's order, at a time stamp. back is how far the clock has been set back. known is false
// if the catalog has no such pool. It may be called concurrently with the writer.
func (t *Tables) Limits(pool string, counters []store.CounterValue, now, back int64) (all []LimitState, known bool) {
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
func (t *Tables) Free(pool string, counters []store.CounterValue, now, back int64) *LimitState {
	pt := t.PoolByID[pool]
	if pt == nil || pt.Free == nil {
		return nil
	}
	s := instant{t.Zone, now, back}.limit(pt.Free, pt.Free.among(counters))
	return &s
}

// HasLimits reports whether the catalog has a limit, or free draws, that some of these counters,
// ascending, belong to.
func (t *Tables) HasLimits(counters []store.CounterValue) bool {
	return slices.ContainsFunc(counters, func(c store.CounterValue) bool { return t.limitOf(c.Counter) != nil })
}

// LimitsUsed is Limits and Free for every pool, but without those of which all draws are left. They
// are in the order in which catalogs first named them.
func (t *Tables) LimitsUsed(counters []store.CounterValue, now, back int64) (all []PoolLimit) {
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

// namedLimit is a limit, or the free draws, of a pool.
type namedLimit struct {
	*Limit
	pool string
	free bool
}

// limitOf returns the limit that a counter belongs to, or nil.
func (t *Tables) limitOf(counter uint32) *namedLimit {
	i, found := slices.BinarySearchFunc(t.limits, counter, func(l namedLimit, c uint32) int { return cmp.Compare(l.Counter, c) })
	if !found {
		i--
	}
	if i < 0 || counter >= t.limits[i].Counter+t.limits[i].width() {
		return nil
	}
	return &t.limits[i]
}

// width returns how many counters a limit has.
func (l *Limit) width() uint32 {
	if l.Per == catalog.PerWindow {
		return windowWidth
	}
	return 1
}

// among returns the counters of the limit among others, which are ascending.
func (l *Limit) among(counters []store.CounterValue) []store.CounterValue {
	find := func(n uint32) int {
		i, _ := slices.BinarySearchFunc(counters, n, func(c store.CounterValue, n uint32) int { return cmp.Compare(c.Counter, n) })
		return i
	}
	return counters[find(l.Counter):find(l.Counter+l.width())]
}
