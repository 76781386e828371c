package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// Moments release an entry over the time of its pool: the first draw after a moment takes it.
type Moments struct {
	Count   uint32       `json:"count"`             // how many; 0: the entry has none
	Spread  Spread       `json:"spread"`            //
	Weights []TimeWeight `json:"weights,omitempty"` // hours and days that are not in it weigh 1
	Pass    bool         `json:"pass,omitempty"`    // a missed moment passes when the next one comes
}

// Spread says how moments lie between the pool's start and end.
type Spread uint8

const (
	SpreadEven   Spread = 1 // in the middles of slots of equal weight
	SpreadSlots  Spread = 2 // one at random in each of those slots
	SpreadRandom Spread = 3 // each at random in the whole time
)

// TimeWeight is what some hours of the day weigh, or some days of the week, in the catalog's zone. An hour
// on a day weighs the product of both.
type TimeWeight struct {
	When   string `json:"when"`   // such as 19-23: from 19:00 to 23:00; or sat; or mon-fri, with Friday
	Weight uint64 `json:"weight"` // at most MaxMomentWeight
}

const (
	MaxMoments       = 1_000_000 // the most moments of an entry whose spread is even or slots
	MaxRandomMoments = 1000      // the most moments of an entry whose spread is random
	MaxMomentEntries = 1024      // the most entries with moments in all pools together
	MaxMomentWeight  = 1000      // the largest weight of an hour on any day
	MaxMomentTimes   = 24 + 7    // the most hours and days that have weights
)

// Empty reports whether an entry has no moments.
func (m *Moments) Empty() bool {
	return m.Count == 0 && m.Spread == 0 && len(m.Weights) == 0 && !m.Pass
}

var dayNames = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// hours returns the first hour, and the one after the last.
func (w *TimeWeight) hours() (from, to int, ok bool) {
	first, last, _ := strings.Cut(w.When, "-")
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	ok = err1 == nil && err2 == nil && len(first) <= 2 && len(last) <= 2 && from >= 0 && from < to && to <= 24
	return from, to, ok
}

// days returns the first day, and the one after the last; 0 is Monday.
func (w *TimeWeight) days() (from, to int, ok bool) {
	first, last, several := strings.Cut(w.When, "-")
	if !several {
		last = first
	}
	from, to = slices.Index(dayNames, first), slices.Index(dayNames, last)+1
	return from, to, from >= 0 && from < to
}

// ByHour returns the weight of each hour of the day.
func (m *Moments) ByHour() (all [24]uint64) {
	m.fill(all[:], (*TimeWeight).hours)
	return all
}

// ByDay returns the weight of each day of the week, which begins on Monday.
func (m *Moments) ByDay() (all [7]uint64) {
	m.fill(all[:], (*TimeWeight).days)
	return all
}

func (m *Moments) fill(all []uint64, bounds func(*TimeWeight) (from, to int, ok bool)) {
	for i := range all {
		all[i] = 1
	}
	for i := range m.Weights {
		from, to, ok := bounds(&m.Weights[i])
		for at := from; ok && at < to; at++ {
			all[at] = m.Weights[i].Weight
		}
	}
}

// moments checks the moments of an entry.
func (k *poolCheck) moments(e *Entry) {
	p, m := k.p, &e.Moments
	switch {
	case p.Mode != ModeWeighted || p.Rolls.Distinct:
		k.fault("expected none outside of mode weighted, or with distinct rolls")
		return
	case p.StartsAt == 0 || p.EndsAt == 0:
		k.fault("expected a pool with starts and ends: moments lie between them")
	case p.Internal:
		k.fault("expected none in an internal pool: it has no time of its own")
	case e.Weight != 0 || len(e.Luck.Steps) > 0 || !e.When.Empty() || e.Unique:
		k.fault("expected an entry without weight, when, unique and luck: the first draw after a moment takes it")
	case e.Stock != Stock{Count: uint64(m.Count)}:
		k.faultAt("count", "expected no stock but the moments, found another")
	}
	if m.Spread == SpreadRandom {
		k.between("count", uint64(m.Count), 1, MaxRandomMoments)
	}
	k.at("weights", func() { k.momentWeights(m) })
}

func (k *poolCheck) momentWeights(m *Moments) {
	var hours [24]bool
	var days [7]bool
	for i := range m.Weights {
		w := &m.Weights[i]
		k.enter(w.When)
		if from, to, ok := w.hours(); ok {
			k.once("hour", hours[from:to])
		} else if from, to, ok := w.days(); ok {
			k.once("day", days[from:to])
		} else {
			k.faultOnKey("expected hours such as 19-23, from 0 to 24, or days such as sat or mon-fri, found %s", quote(w.When))
		}
		k.leave()
	}
	byHour, byDay := m.ByHour(), m.ByDay()
	switch most := slices.Max(byHour[:]) * slices.Max(byDay[:]); {
	case most == 0:
		k.fault("expected an hour and a day with weights above 0, found none")
	case most > MaxMomentWeight:
		k.fault("expected an hour to weigh at most %d on any day, found %d", MaxMomentWeight, most)
	}
}

// once notes that there is a weight for some hours or days, and refuses a second one.
func (k *report) once(what string, seen []bool) {
	if slices.Contains(seen, true) {
		k.faultOnKey("expected each %s once, found one again", what)
	}
	for i := range seen {
		seen[i] = true
	}
}

func (m *Moments) code(x *coder) {
	if number(x, &m.Count); m.Count == 0 {
		x.fail("expected at least one moment")
	}
	kind(x, &m.Spread)
	x.flags(&m.Pass)
	many(x, &m.Weights, MaxMomentTimes, 2, (*TimeWeight).code)
}

func (w *TimeWeight) code(x *coder) {
	x.ref(&w.When)
	number(x, &w.Weight)
}
