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
// that weighs 3 measures 3.
type moments struct {
	entry   uint32
	counter uint32
	config  *catalog.Moments
	starts  int64
	ends    int64
	zone    zone
	byHour  [24]uint64
	before  [25]uint64 // what the hours before one measure, on one day
	total   uint64     // from start to end; below 2^58
}

func momentsName(pool, entry string) string { return pool + "/moments/" + entry }

func newMoments(p *catalog.Pool, e *catalog.Entry, entry, counter uint32, z zone) *moments {
	m := &moments{entry: entry, counter: counter, config: &e.Moments, starts: p.StartsAt, ends: p.EndsAt, zone: z, byHour: e.Moments.ByHour()}
	for h, w := range m.byHour {
		m.before[h+1] = m.before[h] + w*hourMillis
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

// shown measures the time from a day before 1970 until clocks show t.
func (m *moments) shown(t int64) uint64 {
	t += dayMillis // clocks can be behind UTC
	hour := t % dayMillis / hourMillis
	return uint64(t/dayMillis)*m.before[24] + m.before[hour] + uint64(t%hourMillis)*m.byHour[hour]
}

// slot returns where a slot begins, of twice as many as there are moments.
func (m *moments) slot(half uint64) uint64 {
	hi, lo := bits.Mul64(m.total, half)
	q, _ := bits.Div64(hi, lo, 2*uint64(m.config.Count)) // half is at most twice the count
	return q
}

// settle decides how many moments there were until now.
func (r *Rules) settle(m *moments) {
	last, now := r.tally(m.counter), r.d.now
	if int64(last) >= now || now < m.starts || m.total == 0 {
		return
	}
	from, to := m.measure(int64(last)), m.measure(now)
	was := r.tally(m.counter + 1)
	n := was
	switch count := uint64(m.config.Count); m.config.Spread {
	case catalog.SpreadEven:
		for n < count && m.slot(2*n+1) < to {
			n++
		}
	case catalog.SpreadSlots:
		for n < count && m.slot(2*n) < to && r.fell(max(from, m.slot(2*n)), to, m.slot(2*n+2)) {
			n++
		}
	case catalog.SpreadRandom:
		for range count - min(was, count) {
			if r.fell(from, to, m.total) {
				n++
			}
		}
	}
	r.setTally(m.counter, uint64(now))
	if n == was {
		return
	}
	r.setTally(m.counter+1, n)
	due := r.tally(m.counter+2) + n - was
	if m.config.Pass {
		due = 1
	}
	r.setTally(m.counter+2, due)
}

// fell decides whether a moment that lies between from and end lies before to.
func (r *Rules) fell(from, to, end uint64) bool {
	if to >= end {
		return true
	}
	return to > from && uniform(r.d.src, end-from) < to-from
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
		if due := r.tally(m.counter + 2); due > 0 && r.left(pt, m.entry) > 0 && r.affords(e) {
			r.setTally(m.counter+2, due-1)
			return m.entry, true
		}
	}
	return 0, false
}
