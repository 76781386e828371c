package sim

import (
	"context"
	"time"

	"github.com/kuji-dev/kuji"
)

// The machine's clock may show anything. The truth follows the monotonic clock. A realm's time stamps
// must stay within a leap of what its clock led it to believe, whatever the clock shows later. A
// leash says how far that is.

// leash is how late a realm's time stamps can be.
type leash struct {
	begun   bool  // there are times in the log
	sure    bool  // the realm has believed its clock since it was opened
	apart   int64 // the most by which the clock that it believes can be ahead of the truth
	last    int64 // no time in the log can be later
	highest int64 // the latest that a stamp can ever have been
}

const leap, downtime = int64(kuji.MaxLeap / time.Millisecond), int64(kuji.MaxDowntime / time.Millisecond)

// latest returns the latest stamp that the realm may give now.
func (l *leash) latest(w *world) int64 { return max(l.last, w.truth+l.apart+leap) }

// tick lets time pass, a little or a lot, and may make the clock jump.
func (w *world) tick() {
	ms := w.schedule.Int64N(20)
	switch w.schedule.IntN(24) {
	case 0, 1, 2:
		ms = w.schedule.Int64N(3_600_000)
	case 3:
		ms = w.schedule.Int64N(30 * 3_600_000)
	case 4, 5:
		ms = w.schedule.Int64N(4 * 3_600_000)
	}
	w.truth += ms
	w.clock += ms
	if w.schedule.IntN(6) == 0 && w.cfg.Faults&Clock != 0 {
		w.jump()
		w.fired(Clock)
	}
	w.note("%d ms pass, the clock shows %s, the truth is %s", ms, stamp(w.clock), stamp(w.truth))
	w.moved()
}

// moved lets every realm read the clock.
func (w *world) moved() {
	for _, s := range w.life.sessions {
		if s.realm != nil {
			_ = s.realm.Stats()
			s.clockRead(true)
		}
	}
}

// jump makes the clock jump: within a leap, by hours, by a year, or to the truth; not before 1970.
func (w *world) jump() {
	for _, most := range []int64{leap, 20 * 3_600_000, 400 * 24 * 3_600_000} {
		if w.schedule.IntN(3) == 0 {
			w.clock = max(0, w.clock+w.schedule.Int64N(2*most+1)-most)
			return
		}
	}
	w.clock = w.truth
}

// confirmed is what an administrator says of the clock when the engine is opened.
func (l *life) confirmed() time.Time {
	if (l.w.cfg.Seed/5+uint64(l.number))%2 == 0 {
		return time.Time{}
	}
	return l.runner.Now()
}

// stamped returns the time stamp at the end of the log as the last audit found it.
func (g *game) stamped() int64 {
	if len(g.known) == 0 {
		return 0
	}
	last := &g.known[len(g.known)-1]
	if last.Clock != nil {
		return min(last.Time, last.Clock.To)
	}
	return last.Time
}

// clockRefused checks that a realm had a reason not to believe the clock when it was opened. Then it
// sets the clock right, or near the end of the log.
func (s *session) clockRefused(err error) {
	w := s.w
	if !s.l.confirmed().IsZero() || w.clock-s.stamped() <= downtime {
		w.fail("the clock of %s was refused without a cause: %w", s.name, err)
	}
	w.note("open %s: %v", s.name, err)
	w.clock = w.truth
	if w.clock-s.stamped() > downtime { // the realm was set to a wrong time
		w.clock = s.stamped()
	}
	w.moved()
}

// clockRead notes that a realm has read the clock, or may have when it was being opened.
func (s *session) clockRead(open bool) {
	w, c := s.w, &s.clock
	defer func() { c.highest = max(c.highest, c.latest(w)) }()
	if s.opened && c.sure {
		return
	}
	if !s.opened { // the first time in this life
		c.sure, c.apart, c.last = false, w.clock-w.truth, max(c.last, s.stamped())
		if open && c.begun && w.clock-c.last > downtime && s.l.confirmed().IsZero() {
			w.fail("%s was opened with the clock at %s, and its log ends at %s at the latest", s.name, stamp(w.clock), stamp(c.last))
		}
	}
	c.apart = max(c.apart, w.clock-w.truth)
	if open && w.clock >= c.last-leap {
		c.sure = true
	}
	c.last = max(c.last, w.clock) // the epoch may have begun now
	c.begun = c.begun || open
}

// setClock makes a realm follow the machine's clock, right or wrong.
func (s *session) setClock() {
	w := s.w
	switch w.schedule.IntN(4) {
	case 0, 1:
		w.clock = w.truth
		w.moved()
	case 2: // over the end of a season, perhaps
		w.clock = max(0, w.clock-w.schedule.Int64N(8*3_600_000))
		w.moved()
	}
	asked := w.clock
	if w.schedule.IntN(6) == 0 {
		asked = max(0, asked+w.schedule.Int64N(8*leap)-4*leap)
	}
	s.clock.highest = max(s.clock.highest, w.clock+leap)
	set, err := s.realm.SetClock(context.Background(), time.UnixMilli(asked), "ops", "simulated")
	w.note("%s: set the clock to %s: %+v %v", s.name, stamp(asked), set, kuji.CodeOf(err))
	apart := max(asked-w.clock, w.clock-asked)
	switch {
	case (kuji.CodeOf(err) == kuji.CodeConflict) != (apart > leap) && !s.poisoned && !s.excused():
		w.fail("the clock shows %s and was set as if it were %s: %v", stamp(w.clock), stamp(asked), err)
	case kuji.CodeOf(err) == kuji.CodeConflict:
		return
	case err != nil:
		s.told(err, nil)
		return
	case set.To != w.clock:
		w.fail("the clock was set to %d, and the machine's shows %d", set.To, w.clock)
	}
	s.clock.sure, s.clock.apart = true, w.clock-w.truth
	if s.l.policy == kuji.SyncAlways { // otherwise a crash may undo it
		s.clock.last = w.clock
	}
	if len(w.inbox) == 0 && s.realm.Stats().Clock.Drift() != 0 && w.cfg.Faults&Overlap == 0 {
		w.fail("the clock was set, and drifts: %+v", s.realm.Stats().Clock)
	}
	s.acks = append(s.acks, ack{kind: "clock", res: kuji.Result{Receipt: set.Receipt}, life: s.l.number, lossy: s.l.policy != kuji.SyncAlways})
}
