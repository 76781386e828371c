package rules

import (
	"math/bits"

	"github.com/kuji-dev/kuji/catalog"
)

// Moments release an entry over the time of its pool. Where they lie is decided as late as can be:
// each command that draws decides only how many moments lie between the draw before and itself. No
// schedule exists that could leak, and the moments are distributed as if one had been drawn in
// advance: see docs/internals/decisions/0006-moments-decided-late.md.
//
// Three counters of the realm say how far that is: the time up to which it is decided, how many
// moments there were, and how many of them are due.

const momentsWidth = 3

// moments is a catalog.Moments by numbers. Times are measured by weight: a millisecond of an hour
// that weighs 3, on a day that weighs 2, measures 6.
type moments struct {
	entry   uint32
	counter uint32
	config  *catalog.Moments
	starts  int64
	ends    int64
	zone    zone
	byHour  [24]uint64
	byDay   [7]uint64  // Monday first
	before  [25]uint64 // what the hours before one measure, on a day that weighs 1
	days    [8]uint64  // what the days before one weigh, in a week
	total   uint64     // from start to end; below 2^58
}

func momentsName(pool, entry string) string { return pool + "/moments/" + entry }

func newMoments(p *catalog.Pool, e *catalog.Entry, entry, counter uint32, z zone) *moments {
	m := &moments{entry: entry, counter: counter, config: &e.Moments, starts: p.StartsAt, ends: p.EndsAt, zone: z,
		byHour: e.Moments.ByHour(), byDay: e.Moments.ByDay()}
	for h, w := range m.byHour {
		m.before[h+1] = m.before[h] + w*hourMillis
	}
	for d, w := range m.byDay {
		m.days[d+1] = m.days[d] + w
	}
	m.total = m.measure(p.EndsAt)
	return m
}

// measure returns the measure of the time from the start to t.
func (m *moments) measure(t int64) (sum uint64) {
	t = min(max(t, m.starts), m.ends)
	if len(m.zone) == 0 {
		return m.shown(t) - m.shown(m.starts)
	}
	for i, o := range m.zone {
		from, to := max(o.from, m.starts), t
		if i == 0 {
			from = m.starts
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

// shown measures the time from the last Monday before 1970 until clocks show t. They can be behind UTC.
func (m *moments) shown(t int64) uint64 {
	t += mondayShift
	week, day, hour := uint64(t/weekMillis), t%weekMillis/dayMillis, t%dayMillis/hourMillis
	return (week*m.days[7]+m.days[day])*m.before[24] + (m.before[hour]+uint64(t%hourMillis)*m.byHour[hour])*m.byDay[day]
}

// slot returns where a slot begins, of twice as many as there are moments.
func (m *moments) slot(half uint64) uint64 {
	hi, lo := bits.Mul64(m.total, half)
	q, _ := bits.Div64(hi, lo, 2*uint64(m.config.Count)) // half is at most twice the count
	return q
}

// pending says how many moments have come since it was last decided how many: so many for sure, and of
// some others each with the chance part/whole.
type pending struct {
	sure, open  uint64
	part, whole uint64
}

// pending says how many moments have come between two time stamps, if there were so many until the
// first.
func (m *moments) pending(last, now int64, were uint64) (p pending) {
	if m.total == 0 {
		return p
	}
	from, to := m.measure(last), m.measure(now)
	n, count := were, uint64(m.config.Count)
	switch m.config.Spread {
	case catalog.SpreadEven:
		for n < count && m.slot(2*n+1) < to {
			n++
		}
	case catalog.SpreadSlots:
		for n < count && m.slot(2*n) < to && m.slot(2*n+2) <= to {
			n++
		}
		if n < count && m.slot(2*n) < to {
			from = max(from, m.slot(2*n))
			p = pending{open: 1, part: to - min(from, to), whole: m.slot(2*n+2) - from}
		}
	case catalog.SpreadRandom:
		if n < count && to < m.total {
			p = pending{open: count - n, part: to - from, whole: m.total - from}
		}
		if to >= m.total {
			n = max(n, count)
		}
	}
	p.sure = n - were
	if p.part == 0 {
		p.open = 0
	}
	return p
}

// due returns how many moments are due after some more have come.
func (m *moments) due(were, more uint64) uint64 {
	switch {
	case more == 0:
		return were
	case m.config.Pass:
		return 1
	}
	return were + more
}

// settle decides how many moments there were until now.
func (r *Rules) settle(m *moments) {
	last, now, were := int64(r.tally(m.counter)), r.d.now, r.tally(m.counter+1)
	if last >= now || now < m.starts {
		return
	}
	p := m.pending(last, now, were)
	more := p.sure
	for range p.open {
		if uniform(r.d.src, p.whole) < p.part {
			more++
		}
	}
	r.setTally(m.counter, uint64(now))
	if more > 0 {
		r.setTally(m.counter+1, were+more)
		r.setTally(m.counter+2, m.due(r.tally(m.counter+2), more))
	}
}

// expect returns how many moments are due for sure, and what settle would still decide.
func (r *Rules) expect(m *moments) (due uint64, p pending) {
	if last := int64(r.tally(m.counter)); last < r.d.now && r.d.now >= m.starts {
		p = m.pending(last, r.d.now, r.tally(m.counter+1))
	}
	if due = m.due(r.tally(m.counter+2), p.sure); due > 0 && m.config.Pass {
		p.open = 0 // it makes no difference
	}
	return due, p
}

// momentDue returns the entry of a pool that a moment makes certain now. Where a guarantee needs the
// draw for its group, moments of other entries wait for the next one.
func (r *Rules) momentDue(pt *poolTable, must uint32) (entry uint32, ok bool) {
	for _, m := range pt.moments {
		r.settle(m)
	}
	for _, m := range pt.moments {
		e := &pt.entries[m.entry]
		if pt.classes[e.class].groups&must != must {
			continue
		}
		if due := r.tally(m.counter + 2); due > 0 && r.left(pt, m.entry) > 0 && r.affords(e) && r.codesLeft(&e.reward) {
			r.setTally(m.counter+2, due-1)
			return m.entry, true
		}
	}
	return 0, false
}
