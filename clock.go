package kuji

import (
	"context"
	"fmt"
	"time"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
)

// A realm's time stamps follow the machine's wall clock as far as that is believed:
//
//	expected = what the wall clock showed when it was last trusted,
//	           plus the time that has passed since then by the monotonic clock
//	now      = the wall clock, if it is within MaxLeap of expected; otherwise expected
//	stamp    = the later of now and the last stamp
//
// The wall clock is trusted at the first reading after opening that is not before the end of the log,
// and when SetClock confirms it. Why: docs/internals/decisions/0005-clocks.md.

const (
	// MaxLeap is how far the wall clock may be from the monotonic one, which counts beyond that.
	MaxLeap = time.Minute
	// MaxDowntime is how far a log may end before the wall clock at opening, without Options.ClockConfirmed.
	MaxDowntime = 30 * 24 * time.Hour
	// MaxClockText bounds who sets a clock and why, in bytes.
	MaxClockText = 200
)

// clock is what a realm knows about its machine's clock. The realm's lock guards it.
type clock struct {
	read      func() time.Time
	steps     step.Runner
	confirmed time.Time // Options.ClockConfirmed

	last    int64         // the last time in the log: see ledger.Footer
	known   bool          // the wall clock has been believed
	wall    time.Time     // the wall clock when it was last trusted
	elapsed time.Duration // the monotonic clock at that time: see step.Elapsed
}

// now returns the wall clock, and the realm's time if no stamp is later, both in Unix milliseconds.
func (c *clock) now() (at time.Time, wall, now int64) {
	at = c.read()
	wall = unixMilli(at)
	if !c.known {
		if wall < c.last-MaxLeap.Milliseconds() || c.leaps(wall) {
			return at, wall, 0
		}
		c.believe(at)
		return at, wall, wall
	}
	passed := step.Elapsed(c.steps, c.wall, at) - c.elapsed
	expected := min(max(unixMilli(c.wall)+passed.Milliseconds(), 0), rules.MaxTime)
	if apart := wall - expected; apart > MaxLeap.Milliseconds() || apart < -MaxLeap.Milliseconds() {
		return at, wall, expected
	}
	return at, wall, wall
}

// unixMilli returns a time as a time stamp can be.
func unixMilli(t time.Time) int64 { return min(max(t.UnixMilli(), 0), rules.MaxTime) }

// believe takes a reading of the wall clock as right.
func (c *clock) believe(at time.Time) {
	c.known, c.wall, c.elapsed = true, at, step.Elapsed(c.steps, at, at)
}

// leaps reports whether the wall clock is too far ahead of the log for the realm to be opened.
func (c *clock) leaps(wall int64) bool {
	return c.last > 0 && wall-c.last > MaxDowntime.Milliseconds() && (c.confirmed.IsZero() || wall > unixMilli(c.confirmed.Add(MaxLeap)))
}

// start reads the wall clock for the first time. If the log ends later, stamps stand still until then.
func (c *clock) start(realm string) error {
	if _, wall, _ := c.now(); c.leaps(wall) {
		return errf(CodeClock, "ClockConfirmed", "the machine's clock shows %s, and the log of realm %q ends at %s, more than %d days before: "+
			"if the clock is right, confirm it with that time; nothing was logged", utc(wall), realm, utc(c.last), MaxDowntime/(24*time.Hour))
	}
	return nil
}

// now returns the time stamp of a batch that begins now. The caller holds mu.
func (w *writer) now() int64 {
	_, _, now := w.clock.now()
	return max(now, w.state.Now())
}

func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// ClockView says what a realm makes of its machine's clock.
type ClockView struct {
	Wall int64 // the machine's clock, Unix milliseconds
	Time int64 // the time stamp that a batch would get, Unix milliseconds
	Back int64 // how far SetClock has set the clock back since the realm's first batch, milliseconds
	// IDsFrom is when new request ids must have been made at the earliest, Unix milliseconds: older ones
	// get CodeTooOld. 0: the catalog in force takes ids without a time. If it is later than Wall,
	// clients with right clocks get nothing done until then.
	IDsFrom int64
}

// Drift returns how far the machine's clock is ahead of the realm's time stamps; negative: behind.
func (v ClockView) Drift() time.Duration { return time.Duration(v.Wall-v.Time) * time.Millisecond }

// Drifts reports whether the two are more than MaxLeap apart. If the clock is right now, SetClock helps.
func (v ClockView) Drifts() bool { return v.Drift().Abs() > MaxLeap }

// RefusesIDs reports whether the realm refuses the ids that clients whose clocks agree with Wall make now.
func (v ClockView) RefusesIDs() bool { return v.IDsFrom > v.Wall }

// clockView returns the realm's view of the clock. The caller holds mu.
func (w *writer) clockView() ClockView {
	_, wall, now := w.clock.now()
	return ClockView{Wall: wall, Time: max(now, w.state.Now()), Back: w.state.Back(), IDsFrom: w.rules.IDFloor()}
}

// ClockSet is what SetClock did, or what the log says of it.
type ClockSet struct {
	To      int64   `json:"to"` // what the machine's clock showed, Unix milliseconds
	By      string  `json:"by,omitempty"`
	Reason  string  `json:"reason"`
	IDsFrom int64   `json:"-"` // that of ClockView at that moment; not in the log
	Receipt Receipt `json:"-"` // where in the log that is; its Time is the last stamp before
}

// SetClock makes time stamps follow the machine's clock from here on, even back, and returns once that is
// durable. now, within MaxLeap of that clock, confirms it. The log keeps who asked and why, at most
// MaxClockText bytes each; a reason must be given.
//
// Pools start and end by the new stamps, and a day, week or month is counted from when it began by them. Setting
// the clock back gives nobody more draws and forgets no request id early: what counted counts for as long
// as it would have. Setting it forward lets that time pass at once, for windows and remembered ids too:
// each step gives each player at most one more window, day, week or month of draws from each such limit.
//
// With a catalog that wants ids with a time, the realm may refuse new ids up to ClockSet.IDsFrom: clocks
// that were ahead have made later ids, which are forgotten by now.
//
// Errors: those of Do, and CodeConflict, with the field "time": the machine's clock shows another time.
func (r *Realm) SetClock(ctx context.Context, now time.Time, by, reason string) (ClockSet, error) {
	if err := checkWho(by, reason, (&rules.SetClock{To: now.UnixMilli(), By: by, Reason: reason}).Check()); err != nil {
		return ClockSet{}, err
	}
	s := clockSetter{ClockSet: ClockSet{By: by, Reason: reason}, now: now}
	var err error
	s.Receipt, err = r.w.carry(ctx, &s, nil)
	return value(s.ClockSet, err)
}

type clockSetter struct {
	ClockSet
	now time.Time // as the caller confirms it
	at  time.Time // as the machine's clock shows it
}

func (s *clockSetter) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	var wall int64
	s.at, wall, _ = w.clock.now()
	if apart := time.Duration(wall-s.now.UnixMilli()) * time.Millisecond; apart.Abs() > MaxLeap {
		return nil, errf(CodeConflict, "time", "%s; the machine's clock shows %s, which is more than %v away", utc(s.now.UnixMilli()), utc(wall), MaxLeap)
	}
	w.stamp(b)
	c := rules.SetClock{To: wall, By: s.By, Reason: s.Reason}
	if c.Back(b.Time) > store.MaxBack-w.state.Back() {
		return nil, errf(CodeConflict, "time", "the clock was set back by %v before; it cannot go back so far again", time.Duration(w.state.Back())*time.Millisecond)
	}
	s.To = wall
	c.Write(event, b.Time)
	return nil, nil
}

// entered closes the batch: the events that follow have other stamps.
func (s *clockSetter) entered(w *writer, b *ledger.Batch) {
	b.Full = true
	w.clock.believe(s.at)
	s.IDsFrom = w.rules.IDFloor()
}

// String returns the drift in words, or what is left of one that is over.
func (v ClockView) String() string {
	switch d := v.Drift(); {
	case !v.Drifts() && v.RefusesIDs():
		return "refuses request ids until " + utc(v.IDsFrom)
	case !v.Drifts():
		return "good"
	case d > 0:
		return fmt.Sprintf("%v behind the machine's clock", d)
	default:
		return fmt.Sprintf("%v ahead of the machine's clock", -d)
	}
}
