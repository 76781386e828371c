package rules

import (
	"math/bits"

	"github.com/kuji-dev/kuji/catalog"
)

// Moments release an entry over the time of its pool. They are decided as late as possible: each
// command that draws decides only how many moments there were since the draw before. So no schedule
// exists that could leak, yet the moments are distributed as if one had been drawn in advance: see
// docs/internals/decisions/0006-moments-decided-late.md.
//
// There are three counters of the realm: the time up to which all is decided, how many moments there
// were, and how many of them are due.

const momentsWidth = 3

// Moments is a catalog.Moments by numbers. Times are measured by weight: a millisecond in an hour of
// weight 3, on a day of weight 2, measures 6.
type Moments struct {
	Entry   uint32
	Counter uint32
	Config  *catalog.Moments
	Starts  int64
	Ends    int64
	zone    []zoneOffset
	byHour  [24]uint64
	byDay   [7]uint64  // Monday first
	before  [25]uint64 // what the hours before each measure, on a day of weight 1
	days    [8]uint64  // what the days before each weigh, in a week
	Total   uint64     // from start to end; below 2^58
}

func newMoments(p *catalog.Pool, e *catalog.Entry, entry, counter uint32, z Zone) *Moments {
	m := &Moments{Entry: entry, Counter: counter, Config: &e.Moments, Starts: p.StartsAt, Ends: p.EndsAt, zone: z.offsets,
		byHour: e.Moments.ByHour(), byDay: e.Moments.ByDay()}
	for h, w := range m.byHour {
		m.before[h+1] = m.before[h] + w*hourMillis
	}
	for d, w := range m.byDay {
		m.days[d+1] = m.days[d] + w
	}
	m.Total = m.Measure(p.EndsAt)
	return m
}

// Measure returns the measure of the time from the start to t.
func (m *Moments) Measure(t int64) (sum uint64) {
	t = min(max(t, m.Starts), m.Ends)
	if len(m.zone) == 0 {
		return m.shown(t) - m.shown(m.Starts)
	}
	for i, o := range m.zone {
		from, to := max(o.from, m.Starts), t
		if i == 0 {
			from = m.Starts
		}
		if i+1 < len(m.zone) {
			to = min(to, m.zone[i+1].from)
		}
		if from < to {
			sum += m.shown(to+o.offset) - m.shown(from+o.offset)
		}
	}
	return sum
}

// shown measures the time from the last Monday before 1970, for clocks may show 1969 then.
func (m *Moments) shown(t int64) uint64 {
	t += mondayShift
	week, day, hour := uint64(t/weekMillis), t%weekMillis/dayMillis, t%dayMillis/hourMillis
	return (week*m.days[7]+m.days[day])*m.before[24] + (m.before[hour]+uint64(t%hourMillis)*m.byHour[hour])*m.byDay[day]
}

// Slot returns where a slot begins, of twice as many slots as moments.
func (m *Moments) Slot(half uint64) uint64 {
	hi, lo := bits.Mul64(m.Total, half)
	q, _ := bits.Div64(hi, lo, 2*uint64(m.Config.Count)) // half is at most twice the count
	return q
}

// Pending says how many moments have come since that was last decided: Sure for certain, and each of
// Open others with the chance Part/Whole.
type Pending struct {
	Sure, Open  uint64
	Part, Whole uint64
}

// pending says how many moments have come between two time stamps. were is how many there were before.
func (m *Moments) pending(last, now int64, were uint64) (p Pending) {
	if m.Total == 0 {
		return p
	}
	from, to := m.Measure(last), m.Measure(now)
	n, count := were, uint64(m.Config.Count)
	switch m.Config.Spread {
	case catalog.SpreadEven:
		for n < count && m.Slot(2*n+1) < to {
			n++
		}
	case catalog.SpreadSlots:
		for n < count && m.Slot(2*n) < to && m.Slot(2*n+2) <= to {
			n++
		}
		if n < count && m.Slot(2*n) < to {
			from = max(from, m.Slot(2*n))
			p = Pending{Open: 1, Part: to - min(from, to), Whole: m.Slot(2*n+2) - from}
		}
	case catalog.SpreadRandom:
		if n < count && to < m.Total {
			p = Pending{Open: count - n, Part: to - from, Whole: m.Total - from}
		}
		if to >= m.Total {
			n = max(n, count)
		}
	}
	p.Sure = n - were
	if p.Part == 0 {
		p.Open = 0
	}
	return p
}

// Due returns how many moments are due after some more have come.
func (m *Moments) Due(were, more uint64) uint64 {
	switch {
	case more == 0:
		return were
	case m.Config.Pass:
		return 1
	}
	return were + more
}

// settle decides how many moments have come by now.
func (r *drawing) settle(m *Moments) {
	last, now, were := int64(r.tally(m.Counter)), r.now, r.tally(m.Counter+1)
	if last >= now || now < m.Starts {
		return
	}
	p := m.pending(last, now, were)
	more := p.Sure
	for range p.Open {
		if uniform(r.src, p.Whole) < p.Part {
			more++
		}
	}
	r.setTally(m.Counter, uint64(now))
	if more > 0 {
		r.setTally(m.Counter+1, were+more)
		r.setTally(m.Counter+2, m.Due(r.tally(m.Counter+2), more))
	}
}

// momentDue uses up a due moment, and returns its entry. must is a guarantee's group that is due.
func (r *drawing) momentDue(pt *Pool, must uint32) (entry uint32, ok bool) {
	for _, m := range pt.Moments {
		r.settle(m)
	}
	for _, m := range pt.Moments {
		if due := r.tally(m.Counter + 2); due > 0 && pt.Takes(&r.Sight, m, must) {
			r.setTally(m.Counter+2, due-1)
			if r.aside != nil {
				r.aside.moment(m)
			}
			return m.Entry, true
		}
	}
	return 0, false
}

// Takes reports whether a moment that is due takes the next pick. If a guarantee needs the draw for its
// group, must, then moments of other entries wait for the next draw.
func (p *Pool) Takes(f Facts, m *Moments, must uint32) bool {
	return p.Classes[p.Entries[m.Entry].Class].Groups&must == must && p.There(f, m.Entry)
}

// Reaches returns the first time stamp at which more than this measure of the pool's time is over.
func (m *Moments) Reaches(measure uint64) int64 {
	return firstTime(m.Starts, m.Ends, func(t int64) bool { return m.Measure(t) > measure })
}
