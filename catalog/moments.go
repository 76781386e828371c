package catalog

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// Moments release an entry over the time of its pool: the first draw after a moment takes it.
type Moments struct {
	Count   uint32       `json:"count"`             // how many; 0: the entry has none
	Spread  Spread       `json:"spread"`            //
	Weights []HourWeight `json:"weights,omitempty"` // hours that are not in it weigh 1
	Pass    bool         `json:"pass,omitempty"`    // a missed moment passes when the next one comes
}

// Spread says how moments lie between the pool's start and end.
type Spread uint8

const (
	SpreadEven   Spread = 1 // in the middles of slots of equal weight
	SpreadSlots  Spread = 2 // one at random in each of those slots
	SpreadRandom Spread = 3 // each at random in the whole time
)

// HourWeight is how much an hour of each day weighs, in the catalog's zone.
type HourWeight struct {
	Hours  string `json:"hours"`  // such as 19-23: from 19:00 to 23:00
	Weight uint64 `json:"weight"` // at most MaxHourWeight
}

const (
	// MaxMoments is the most moments of an entry whose spread is even or slots.
	MaxMoments = 1_000_000
	// MaxRandomMoments is the most moments of an entry whose spread is random.
	MaxRandomMoments = 1000
	// MaxMomentEntries is the most entries with moments in all pools together.
	MaxMomentEntries = 1024
	// MaxHourWeight is the largest weight of an hour.
	MaxHourWeight = 1000
)

// Bounds returns the first hour, and the one after the last.
func (h *HourWeight) Bounds() (from, to int, ok bool) {
	first, last, _ := strings.Cut(h.Hours, "-")
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	ok = err1 == nil && err2 == nil && len(first) <= 2 && len(last) <= 2 && from >= 0 && from < to && to <= 24
	return from, to, ok
}

// ByHour returns the weight of each hour of the day.
func (m *Moments) ByHour() (all [24]uint64) {
	for i := range all {
		all[i] = 1
	}
	for i := range m.Weights {
		from, to, ok := m.Weights[i].Bounds()
		for h := from; ok && h < to; h++ {
			all[h] = m.Weights[i].Weight
		}
	}
	return all
}

// moments checks the moments of an entry.
func (k *check) moments(p *Pool, e *Entry) {
	m := &e.Moments
	switch {
	case m.Count == 0 && m.Spread == 0 && len(m.Weights) == 0 && !m.Pass:
		return
	case p.Mode != ModeWeighted || p.Rolls.Distinct:
		k.fault("expected none outside of mode weighted, or with distinct rolls")
		return
	case p.StartsAt == 0 || p.EndsAt == 0:
		k.fault("expected a pool with starts and ends: moments lie between them")
	case p.Internal:
		k.fault("expected none in an internal pool: it has no time of its own")
	case e.Weight != 0 || len(e.Luck.Steps) > 0 || !e.When.Empty() || e.Unique:
		k.fault("expected an entry of weight 0, without when, unique and luck: whoever comes first takes it")
	case e.Stock != Stock{Count: uint64(m.Count)}:
		k.at("count", func() { k.fault("expected no stock but the moments, found another") })
	}
	switch m.Spread {
	case SpreadEven, SpreadSlots:
		k.between("count", uint64(m.Count), 1, MaxMoments)
	case SpreadRandom:
		k.between("count", uint64(m.Count), 1, MaxRandomMoments)
	default:
		k.at("spread", func() { k.fault("expected even, slots or random, found %d", m.Spread) })
	}
	k.at("weights", func() { k.hours(m) })
}

func (k *check) hours(m *Moments) {
	if len(m.Weights) > 24 {
		k.fault("expected at most 24 ranges of hours, found %d", len(m.Weights))
		return
	}
	var seen [24]bool
	for i := range m.Weights {
		h := &m.Weights[i]
		k.enter(h.Hours)
		from, to, ok := h.Bounds()
		if !ok {
			k.faultOnKey("expected hours such as 19-23, from 0 to 24, found %s", quote(h.Hours))
		}
		if h.Weight > MaxHourWeight {
			k.fault("expected a whole number from 0 to %d, found %d", MaxHourWeight, h.Weight)
		}
		for hour := from; ok && hour < to; hour++ {
			if seen[hour] {
				k.faultOnKey("expected each hour once, found %d again", hour)
			}
			seen[hour] = true
		}
		k.leave()
	}
	if m.ByHour() == [24]uint64{} {
		k.fault("expected an hour with a weight above 0, found none")
	}
}

func (m *Moments) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(m.Count))
	b = append(b, byte(m.Spread), bit(m.Pass, 1))
	b = appendNumber(b, len(m.Weights))
	for i := range m.Weights {
		b = appendText(b, m.Weights[i].Hours)
		b = binary.AppendUvarint(b, m.Weights[i].Weight)
	}
	return b
}

func (d *decoder) moments(m *Moments) {
	if m.Count = uint32(d.small("a number of moments", MaxMoments)); m.Count == 0 {
		d.fail("expected at least one moment")
	}
	m.Spread, m.Pass = Spread(d.byte()), d.flags(1) != 0
	m.Weights = some[HourWeight](d.count(24, 2))
	for i := range m.Weights {
		m.Weights[i] = HourWeight{d.ref(), d.number()}
	}
}
