package kuji

import (
	"time"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
)

// What falls due is settled by events of its own, which only a leader adds:
//
//	a request that is carried out   first settles what is due for the players that it names
//	the sweep                       settles the rest, some players an event
//
// An event of the sweep comes
//
//	with the next request that is carried out, if none came for sweepPause: a small one;
//	in a batch of its own, if the realm is idle: then the next one comes once that is durable.
//
// So while others use the realm, they wait for a small event in sweepPause, and never for a batch that they
// would not have waited for. An alarm wakes an idle realm for its next deadline.

const (
	sweepPause  = time.Millisecond // between two events of the sweep, while others use the realm
	sweepBeside = 16               // players that such an event settles at most
	sweepNap    = 10 * time.Second // the longest that an alarm sleeps: meanwhile the wall clock may have been set right
)

// sweep is what a realm keeps about what is due. The realm's lock guards it.
type sweep struct {
	w      *writer
	due    rules.Due
	began  time.Time     // when it was asked first, for passed
	last   time.Duration // when the last event of the sweep came, in time passed
	events uint64        // stats.Events after it
	alarm  *alarm        // the next one; nil: none
	ended  bool          // no alarm may be set any more
}

// alarm is something that happens later.
type alarm struct {
	at   time.Duration // in time passed
	stop func() bool   // false: it happens, or has happened
	done chan struct{} // closed when it has happened
}

// passed returns the time since it was asked first, by a clock that nobody sets.
func (s *sweep) passed() time.Duration {
	now := step.Now(s.w.world.steps)
	if s.began.IsZero() {
		s.began = now
	}
	return step.Elapsed(s.w.world.steps, s.began, now)
}

// before adds events to b in front of the one of a command: what is due for the players that it names,
// then a part of the rest.
func (s *sweep) before(cmd *rules.Command, b *ledger.Batch, event *store.Writer) error {
	if !s.w.rules.IsDue(b.Time) {
		return nil
	}
	for s.w.rules.DueFor(cmd, b.Time, &s.due) {
		if err := s.settle(b, event); err != nil {
			return err
		}
	}
	if s.passed()-s.last < sweepPause || !s.w.rules.Sweep(b.Time, sweepBeside, &s.due) {
		return nil
	}
	err := s.settle(b, event)
	s.swept()
	return err
}

// settle adds an event to b that settles what is due for some players.
func (s *sweep) settle(b *ledger.Batch, event *store.Writer) error {
	if !s.w.rules.DecideDue(&s.due, b.Time, &s.w.source, event) {
		event.Buf = event.Buf[:len(b.Buf)]
		return errf(CodeOverloaded, "player", "so much is due for the players of the request that it would take an event of %d bytes or more: "+
			"send it again once that is settled", rules.MaxDueBytes)
	}
	var res Result
	return s.w.commit(b, event.Buf, &res)
}

// erase adds events to b that erase the names of players who were just forgotten. Its errors are those of commit: they
// stop the realm.
func (s *sweep) erase(b *ledger.Batch) {
	event := &s.w.draft.event
	for event.Buf = b.Buf; rules.Erases(s.w.rules, b.Time, &s.due); event.Buf = b.Buf {
		if s.settle(b, event) != nil {
			return
		}
	}
}

// swept notes that an event of the sweep has come.
func (s *sweep) swept() { s.last, s.events = s.passed(), s.w.counts.stats.Events }

// propose proposes an event of the sweep.
func (s *sweep) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	s.step(b, event)
	return nil, nil
}

// step writes an event of the sweep, and reports whether there is anything for one.
func (s *sweep) step(b *ledger.Batch, event *store.Writer) bool {
	w := s.w
	w.stamp(b)
	return w.rules.Sweep(b.Time, rules.SweepPlayers, &s.due) && w.rules.DecideDue(&s.due, b.Time, &w.source, event)
}

func (s *sweep) entered(*writer, *ledger.Batch) { s.swept() }

// goOn adds an event of the sweep if it is time for one, and otherwise sets the alarm for the next. It
// follows each batch.
func (s *sweep) goOn() {
	finished, b, err := false, (*ledger.Batch)(nil), error(nil)
	defer s.w.ended(&finished, &b, &err) // the clock may panic, or end the goroutine
	if wait, ok := s.untilDue(); ok {
		s.next(wait)
	}
	finished = true
}

// next is goOn if something is due after a while.
func (s *sweep) next(wait time.Duration) {
	open := s.w.group.Open().Events > 0
	idle := !open && s.w.counts.stats.Events == s.events
	switch rest := sweepPause - (s.passed() - s.last); {
	case wait > 0:
		s.wake(wait)
	case !idle && rest > 0:
		s.wake(rest)
	case open || s.w.group.Busy(): // the next request takes it along
		s.wake(sweepPause)
	default:
		var res Result
		if _, err := s.w.enter(s, &res); err == nil {
			s.w.group.Ask()
		}
	}
}

// begin begins with what fell due while nobody led.
func (s *sweep) begin() {
	if _, ok := s.untilDue(); ok {
		s.wake(0)
	}
}

// untilDue returns how long to wait until something is due, at most sweepNap. ok is false if nothing ever is, or if the
// realm does not lead.
func (s *sweep) untilDue() (wait time.Duration, ok bool) {
	if s.ended || s.w.gate.usable() != nil {
		return 0, false
	}
	at, ok := s.w.rules.NextDue()
	if !ok {
		return 0, false
	}
	ms := int64(at) - s.w.now() - s.w.state.Back()
	return time.Duration(min(ms, sweepNap.Milliseconds())) * time.Millisecond, true
}

// wake sets the alarm, unless it comes as early already.
func (s *sweep) wake(wait time.Duration) {
	wait = max(wait, 0)
	at := s.passed() + wait
	if a := s.alarm; a != nil && (a.at <= at || !a.stop()) {
		return
	}
	a := &alarm{at: at, done: make(chan struct{})}
	s.alarm = a
	ring := func() {
		defer close(a.done)
		s.w.mu.Lock()
		defer s.w.unlock()
		s.alarm = nil
		s.goOn()
	}
	if wait > 0 {
		a.stop = step.After(s.w.world.steps, wait, ring)
		return
	}
	a.stop = func() bool { return false }
	step.Go(s.w.world.steps, ring)
}

// end ends the sweep. It returns a channel that is closed when nothing of it happens any more.
func (s *sweep) end() <-chan struct{} {
	s.ended = true
	if a := s.alarm; a != nil && !a.stop() {
		return a.done
	}
	done := make(chan struct{})
	close(done)
	return done
}
