package rules

import (
	"cmp"
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// With some statuses an event says more, so that the same request id always gets the same answer:
//
//	limit reached       the limit's per (1 byte: see catalog.Per), window in milliseconds, draws
//	                    allowed, draws left, when there will be more of them (Unix milliseconds;
//	                    0: never); all but the first are varints
//	insufficient items  number of items, then for each: its number, how many the player has, how
//	                    many the command needs; varints
//	hold ended          what became of it (see hold), how many milliseconds ago, and the request id that
//	                    confirmed or cancelled it, after its length; varints
//
// In a group, the numbers are those after the members before.

// Lack is an item of which a player has too few.
type Lack struct {
	Item       uint32
	Have, Need uint64
}

// maxNeed is the most that a command can need of an item: a price for MaxDrawCount draws.
const maxNeed = MaxQuantity * MaxDrawCount

// lacking is the failure of a player who has less of some of n items than is needed.
func (r *accounts) lacking(n int, needed func(i int) Lack) failure {
	r.lacks = r.lacks[:0]
	for i := range n {
		if l := needed(i); l.Have < l.Need {
			r.lacks = append(r.lacks, l)
		}
	}
	return failure{InsufficientItems, r.lacks[0].Item}
}

// writeWhy writes what a status says in addition to its subject.
func (r *effects) writeWhy(status Status) {
	w := r.w
	switch status {
	case LimitReached:
		s := &r.stopped
		w.Buf = append(w.Buf, byte(s.Per))
		w.Uint(uint64(s.Window))
		w.Uint(s.Draws)
		w.Uint(s.Left)
		w.Uint(uint64(s.Resets))
	case InsufficientItems:
		w.Uint(uint64(len(r.lacks)))
		for _, l := range r.lacks {
			w.Uint(uint64(l.Item))
			w.Uint(l.Have)
			w.Uint(l.Need)
		}
	case HoldEnded:
		h := &r.ending
		w.Uint(h.is)
		w.Uint(uint64(r.steady) + keepHolds - h.until)
		writeText(w, h.by)
	}
}

// WhyOf returns what the event of a failure says: a limit, or what was lacking, or neither.
func WhyOf(ev *store.Event) (limit view.Limit, lacks []Lack, err error) {
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
			l.Have = r.Uint("what the player has", maxNeed) // of a family, more than of an item
			l.Need = r.Uint("what is needed", maxNeed)
			lacks = append(lacks, l)
		}
	case HoldEnded:
		r.Uint("what became of the hold", holdExpired)
		r.Uint("how long ago", math.MaxInt64)
		r.Bytes("who", r.Uint("a request id", MaxID))
	}
	if r.More() {
		r.Fail("more than the status says")
	}
	return limit, lacks, r.Err()
}

// used returns how many draws of a limit its counters hold, and the first time in them.
func (m Instant) used(l *Limit, counters []counterValue) (used uint64, first int64) {
	first = math.MaxInt64
	for _, c := range counters {
		switch {
		case l.Per == catalog.PerForever:
			used += c.Value
		case c.Value != 0 && m.counts(l, c.Value):
			used += c.Value & maxStepDraws
			first = min(first, int64(c.Value>>drawBits))
		}
	}
	return used, first
}

// Limit returns where a player with these counters of a limit stands in it.
func (m Instant) Limit(l *Limit, counters []counterValue) view.Limit {
	used, first := m.used(l, counters)
	s := view.Limit{Per: l.Per, Window: l.Window, Draws: l.Draws, Left: l.Draws - min(used, l.Draws)}
	switch {
	case used == 0:
	case l.Per == catalog.PerWindow:
		s.Resets = first + l.Window - m.Back
	case l.Per != catalog.PerForever:
		s.Resets = m.Zone.Next(l.Per, m.Now)
	}
	return s
}

// NamedLimit is a limit of a pool, or its free draws.
type NamedLimit struct {
	*Limit
	Pool string
	Free bool
}

// AllLimits returns the limits and free draws of all pools, by counter number.
func (t *Tables) AllLimits() []NamedLimit { return t.limits }

// LimitOf returns the limit that a counter belongs to, or nil.
func (t *Tables) LimitOf(counter uint32) *NamedLimit {
	i, found := slices.BinarySearchFunc(t.limits, counter, func(l NamedLimit, c uint32) int { return cmp.Compare(l.Counter, c) })
	if !found {
		i--
	}
	if i < 0 || counter >= t.limits[i].Counter+t.limits[i].width() {
		return nil
	}
	return &t.limits[i]
}

func (l *Limit) width() uint32 {
	if l.Per == catalog.PerWindow {
		return windowWidth
	}
	return 1
}

// Among returns the limit's counters among others. All are ascending.
func (l *Limit) Among(counters []store.CounterValue) []store.CounterValue {
	first, _ := searchCounter(counters, l.Counter)
	end, _ := searchCounter(counters, l.Counter+l.width())
	return counters[first:end]
}

// searchCounter returns where a counter is among others, which are ascending, or where it would be.
func searchCounter(all []counterValue, counter uint32) (at int, found bool) {
	return slices.BinarySearchFunc(all, counter, func(c counterValue, n uint32) int { return cmp.Compare(c.Counter, n) })
}
