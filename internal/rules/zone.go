package rules

import (
	"sort"

	"github.com/kuji-dev/kuji/catalog"
)

// Hours, days, weeks and months are those of the catalog's time zone. Here its clocks never go back:
// instead of showing an hour for the second time, they stand still. So no day comes twice, even where
// clocks are set back over midnight. Days begin at the catalog's time of day, weeks and months with one
// of these days. A day that lacks this time, because clocks leave it out, begins right after the gap.

const (
	minuteMillis = 60 * 1000
	hourMillis   = 60 * minuteMillis
	dayMillis    = 24 * hourMillis
	weekMillis   = 7 * dayMillis
	// mondayShift moves the Unix epoch, a Thursday, to a Monday.
	mondayShift = 3 * dayMillis
)

// Zone is a catalog's zone, and when its days and weeks begin, in milliseconds. The zero value is UTC,
// with days that begin at 00:00 and weeks that begin on Thursday. compileZone makes those of catalogs.
type Zone struct {
	offsets []zoneOffset // none: UTC
	begins  int64        // when days begin, after 00:00
	week    int64        // how long before 1970-01-01 a week began
}

type zoneOffset struct {
	from   int64
	offset int64
	shown  int64 // the latest that clocks have shown before
}

func compileZone(c *catalog.Catalog) Zone {
	const days = 7
	z := Zone{
		offsets: make([]zoneOffset, 0, len(c.Zone.Offsets)),
		begins:  int64(c.Day.Begins) * minuteMillis,
		week:    (mondayShift/dayMillis + days - int64(c.Day.Week)) % days * dayMillis,
	}
	shown := int64(0)
	for i, o := range c.Zone.Offsets {
		from := o.From * 1000
		if i > 0 {
			shown = max(shown, from+z.offsets[i-1].offset)
		}
		z.offsets = append(z.offsets, zoneOffset{from, o.Seconds * 1000, shown})
	}
	return z
}

// clock returns what clocks in the zone show at a time stamp: the milliseconds since 1970 began there.
func (z *Zone) clock(now int64) int64 {
	i := sort.Search(len(z.offsets), func(i int) bool { return z.offsets[i].from > now }) - 1
	if i < 0 {
		return max(now, 0)
	}
	return max(now+z.offsets[i].offset, z.offsets[i].shown)
}

// Period returns the number of the hour, day, week or month that runs at a time stamp, counted from
// 1970 on; 0 for all time.
func (z *Zone) Period(per catalog.Per, now int64) uint64 {
	shown := z.clock(now)
	if per == catalog.PerHour {
		return uint64(shown / hourMillis)
	}
	shown = max(shown-z.begins, 0) // as if days began at 00:00
	switch per {
	case catalog.PerDay:
		return uint64(shown / dayMillis)
	case catalog.PerWeek:
		return uint64((shown + z.week) / weekMillis)
	case catalog.PerMonth:
		return uint64(monthOf(shown / dayMillis))
	}
	return 0
}

// monthOf returns the number of months from January 1970 to that of a day, which is counted from the
// first of that month. Years are counted from March on, so that a leap day is the last of its year. See
// Howard Hinnant, chrono-Compatible Low-Level Date Algorithms, civil_from_days.
func monthOf(day int64) int64 {
	const (
		era       = 146097                 // days of 400 years
		toEpoch   = 719468                 // days from 0000-03-01 to 1970-01-01
		toJanuary = 1969*12 + 10           // months from March of year 0 to January 1970
		fiveMonth = 31 + 30 + 31 + 30 + 31 // days of five months in a row, from March and from August on
	)
	day += toEpoch
	inEra := day % era
	year := (inEra - inEra/1460 + inEra/36524 - inEra/(era-1)) / 365
	inYear := inEra - (365*year + year/4 - year/100)
	return (day/era*400+year)*12 + (5*inYear+2)/fiveMonth - toJanuary
}

// Number returns the number of the period of a counter that runs at a time stamp, counted from 1.
func (z *Zone) Number(per catalog.Per, now int64) uint64 { return z.Period(per, now) + 1 }

// lasts reports whether the hour, day, week or month of a steady time is not over: see
// store.State.Back. After a change of the catalog's zone or day, it can even be still to come.
func (m Instant) lasts(per catalog.Per, steady int64) bool {
	return m.Zone.Period(per, steady-m.Back) >= m.Zone.Period(per, m.Now)
}

// Next returns the time stamp at which the next hour, day, week or month begins.
func (z *Zone) Next(per catalog.Per, now int64) int64 {
	this, longest := z.Period(per, now), int64(weekMillis)
	if per == catalog.PerMonth {
		longest = 31 * dayMillis
	}
	// It may be longer when clocks stand still, but not by a week.
	return firstTime(now, now+longest+weekMillis, func(t int64) bool { return z.Period(per, t) > this })
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
