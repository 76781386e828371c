package sim

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/kuji-dev/kuji"
)

// Report counts what a run did.
type Report struct {
	Trace    [32]byte // hash of everything that happened, in order
	Lines    int      // of the trace
	Events   int      // in the log at the end
	Due      int      // of them, those that settled what was due before a command
	Swept    int      // and those that swept it
	Ended    int      // and those that ended a period of a counter that ranks players
	Paid     int      // and those that paid ranks
	Later    int      // of them, those that were not the first of a standing
	Missed   int      // ranks whose reward was not there or did not fit
	Lives    int      // of the engine
	Audits   int      // of the whole log
	Acked    int      // results that clients were told
	Replayed int      // of those, first answers that were told again
	Unknown  int      // requests whose outcome nobody was told
	Reads    int      // of players and pools, checked
	Shared   int      // runs with several realms in the engine
	Rounds   RoundsReport
	Fired    [faultKinds]int
}

// RoundsReport counts rounds.
type RoundsReport struct {
	Turned  int // opened by the calendar
	Settled int // with winners
	Again   int // winners drawn again
	Missed  int // rewards of winners that did not fit
}

// add counts what an event has done about rounds.
func (r *RoundsReport) add(rec kuji.Record) {
	if rec.Due != nil && rec.Round != nil && rec.Round.State == "open" {
		r.Turned++
	}
	for i, c := range rec.Claims {
		switch {
		case c.Place == 0:
			continue
		case rec.Kind == "reroll":
			r.Again++
		case i == 0:
			r.Settled++
		}
		if c.Missed {
			r.Missed++
		}
	}
}

// Add sums up runs. The trace is that of the first.
func (r *Report) Add(o Report) {
	r.Lines += o.Lines
	r.Events += o.Events
	r.Due += o.Due
	r.Swept += o.Swept
	r.Ended += o.Ended
	r.Paid += o.Paid
	r.Later += o.Later
	r.Missed += o.Missed
	r.Lives += o.Lives
	r.Audits += o.Audits
	r.Acked += o.Acked
	r.Replayed += o.Replayed
	r.Unknown += o.Unknown
	r.Reads += o.Reads
	r.Shared += o.Shared
	r.Rounds.Turned += o.Rounds.Turned
	r.Rounds.Settled += o.Rounds.Settled
	r.Rounds.Again += o.Rounds.Again
	r.Rounds.Missed += o.Rounds.Missed
	for i := range r.Fired {
		r.Fired[i] += o.Fired[i]
	}
}

// settled counts an event, if it settled what was due.
func (r *Report) settled(rec kuji.Record) {
	r.Rounds.add(rec)
	switch d := rec.Due; {
	case d == nil, d.Round != 0:
	case d.Counter != "" && d.From == 0:
		r.Ended++
	case d.Counter != "":
		if r.Paid++; d.From > 1 {
			r.Later++
		}
		for _, c := range rec.Claims {
			if c.Missed {
				r.Missed++
			}
		}
	case d.Swept:
		r.Swept++
	default:
		r.Due++
	}
}

// kindOf returns the number of a fault.
func kindOf(f Faults) int { return bits.TrailingZeros32(uint32(f)) }

// Missing returns the faults that never happened.
func (r Report) Missing() Faults {
	var f Faults
	for i, n := range r.Fired {
		if n == 0 {
			f |= 1 << i
		}
	}
	return f
}

func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events (%d and %d of them settled what was due, %d ended periods and %d paid ranks, %d of them further ones; %d ranks were missed), %d rounds with winners (%d opened by the calendar, %d winners drawn again, %d rewards missed), %d results (%d of them again), %d unknown, %d reads, %d lives, %d audits, %d with several realms;",
		r.Events, r.Due, r.Swept, r.Ended, r.Paid, r.Later, r.Missed, r.Rounds.Settled, r.Rounds.Turned, r.Rounds.Again, r.Rounds.Missed, r.Acked, r.Replayed, r.Unknown, r.Reads, r.Lives, r.Audits, r.Shared)
	for i, n := range r.Fired {
		fmt.Fprintf(&b, " %s %d", faultNames[i], n)
	}
	return b.String()
}
