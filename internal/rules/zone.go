package rules

import (
	"sort"

	"github.com/kuji-dev/kuji/catalog"
)

// Hours, days and weeks are those of the catalog's time zone. Here its clocks never go back: instead
// of showing an hour for the second time, they stand still. So no day comes twice, even where clocks
// are set back over midnight.

const (
	hourMillis = 60 * 60 * 1000
	dayMillis  = 24 * hourMillis
	weekMillis = 7 * dayMillis
	// mondayShift moves the Unix epoch, a Thursday, to a Monday.
	mondayShift = 3 * dayMillis
)

// Zone is a catalog.Zone in milliseconds. None: UTC.
type Zone []zoneOffset

type zoneOffset struct {
	from   int64
	offset int64
	shown  int64 // the latest that clocks have shown before
}

func compileZone(c *catalog.Zone) Zone {
	z := make(Zone, 0, len(c.Offsets))
	shown := int64(0)
	for i, o := range c.Offsets {
		from := o.From * 1000
		if i > 0 {
			shown = max(shown, from+z[i-1].offset)
		}
		z = append(z, zoneOffset{from, o.Seconds * 1000, shown})
	}
	return z
}

// clock returns what clocks in the zone show at a time stamp: the milliseconds since 1970 began there.
func (z Zone) clock(now int64) int64 {
	i := sort.Search(len(z), func(i int) bool { return z[i].from > now }) - 1
	if i < 0 {
		return max(now, 0)
	}
	return max(now+z[i].offset, z[i].shown)
}

// Period returns the number of the hour, day or week that clocks show at a time stamp; 0 for all time.
func (z Zone) Period(per catalog.Per, now int64) uint64 {
	shown := z.clock(now)
	switch per {
	case catalog.PerHour:
		return uint64(shown / hourMillis)
	case catalog.PerDay:
		return uint64(shown / dayMillis)
	case catalog.PerWeek:
		return uint64((shown + mondayShift) / weekMillis)
	}
	return 0
}

// lasts reports whether the hour, day or week of a steady time is not over: see store.State.Back. After
// a change of the catalog's zone, it can even be still to come.
func (m Instant) lasts(per catalog.Per, steady int64) bool {
	return m.Zone.Period(per, steady-m.Back) >= m.Zone.Period(per, m.Now)
}

// Next returns the time stamp at which the next hour, day or week begins.
func (z Zone) Next(per catalog.Per, now int64) int64 {
	this := z.Period(per, now)
	// A week may be longer when clocks stand still, but not by a week.
	return firstTime(now, now+2*weekMillis, func(t int64) bool { return z.Period(per, t) > this })
}

// firstTime returns the first time in [from, to) at which f is true, else to. Once true, f stays true.
func firstTime(from, to int64, f func(int64) bool) int64 {
	for from < to {
		if middle := from + (to-from)/2; f(middle) {
			to = middle
		} else {
			from = middle + 1
		}
	}
	return from
}
