package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// A round with `every` is opened by the calendar, and open as long as its day, week or month lasts. Its end is due at a
// time stamp, as that of ranks is: if the clock is set back, the period goes on. What has begun ends with the period
// it began in, also under a catalog that has no `every` of it.
//
// A record of each says for which period the calendar has opened it last. So none begins twice, whatever the clock
// says. While it is open, the calendar opens no other one of that name. After a time in which nobody led, only the
// period that runs then has a round.

// turn is what the calendar does about rounds: one ends, or the next one opens.
type turn struct {
	is     bool   // else it never does
	at     int64  // the time stamp
	number uint64 // of the round that ends
	opens  *Round
}

// turns finds out what comes next, again only if records or the catalog have changed.
type turns struct {
	of    *Tables
	seen  uint64 // how often records had changed
	close turn   // the first that ends
	open  turn   // the first that opens
	known []ending
}

// ending is when a period ends, the time stamp. It takes some work to find.
type ending struct {
	per    catalog.Per
	number uint64
	at     int64
}

// turnKey returns the key of what a record says of the calendar of a round.
func (s *noting) turnKey(name string, per catalog.Per) key {
	return s.newKey(recordTurn).text(name).and(byte(per))
}

// turnOf reads such a record: for which period the calendar has opened the round last, and which one it is, 0 if it is
// open no more.
func turnOf(value []byte) (period, number uint64) {
	n := numbers{value}
	period = n.next()
	return period, n.next()
}

// calling is hosting of rounds that the calendar opens.
type calling struct{ hosting }

// keepTurn writes such a record.
func (r calling) keepTurn(o *round, number uint64) {
	n := numbers{r.notes.value[:0]}
	n.add(o.period, number)
	r.notes.value = n.b
	r.record(r.notes.turnKey(o.name, o.every), n.b)
}

// nextTurns returns what the calendar does next about rounds.
func (r *checks) nextTurns() *turns {
	c := &r.turns
	if c.of == r.t && c.seen == r.state.RecordChanges() {
		return c
	}
	if c.of != r.t {
		c.known = c.known[:0]
	}
	c.of, c.seen, c.close, c.open = r.t, r.state.RecordChanges(), turn{}, turn{}
	from := key{recordTurn}
	for k, value := range r.state.Records(from, from.after()) {
		if period, number := turnOf(value); number > 0 {
			c.close.earlier(turn{at: c.endOf(catalog.Per(k[len(k)-1]), period), number: number})
		}
	}
	for _, p := range r.t.Rounds {
		if per := p.Config.Every; per != 0 && !r.notes.turning(p.Config.ID) {
			at := int64(0)
			if value, ok := r.state.Record(r.notes.turnKey(p.Config.ID, per)); ok {
				last, _ := turnOf(value)
				at = c.endOf(per, last)
			}
			c.open.earlier(turn{at: at, opens: p})
		}
	}
	return c
}

// earlier makes it another turn, if that comes earlier.
func (t *turn) earlier(next turn) {
	if !t.is || next.at < t.at {
		*t = next
		t.is = true
	}
}

// endOf returns the time stamp at which a day, week or month ends.
func (c *turns) endOf(per catalog.Per, number uint64) int64 {
	i := slices.IndexFunc(c.known, func(e ending) bool { return e.per == per && e.number == number })
	if i < 0 {
		i = len(c.known)
		c.known = append(c.known, ending{per, number, c.of.Zone.endOf(per, number)})
	}
	return c.known[i].at
}

// endOf returns the time stamp at which a day, week or month ends that has this Number.
func (z *Zone) endOf(per catalog.Per, number uint64) int64 {
	return firstTime(0, MaxTime, func(now int64) bool { return z.Number(per, now) > number })
}

// turning reports whether a round is open that the calendar has opened under a name.
func (s *noting) turning(name string) bool {
	from := s.newKey(recordTurn).text(name)
	for _, value := range s.state.Records(from, from.after()) {
		if _, number := turnOf(value); number > 0 {
			return true
		}
	}
	return false
}

// recordDue returns what is due first at a time stamp, of what records and the calendar say: the round or the hold at
// its deadline, the round whose period is over, or the next one, which the calendar opens.
func (r *checks) recordDue(now int64) (of dueOf, ok bool) {
	if of, ok = r.notes.due(r.steadyAt(now)); ok || r.t.playing.rounds == noCounter {
		return of, ok
	}
	next := r.nextTurns()
	switch now = max(now, r.state.Now()); {
	case next.close.is && next.close.at <= now:
		return dueOf{round: next.close.number}, true
	case next.open.is && next.open.at <= now:
		return dueOf{round: r.state.Tally(r.t.playing.rounds+roundsLast) + 1}, true
	}
	return dueOf{}, false
}

// recordNext is recordDue, or if there is none, a step of what follows for the entrants of a round.
func (r *checks) recordNext(now int64) (of dueOf, step, ok bool) {
	if of, ok = r.recordDue(now); ok {
		return of, false, true
	}
	first := r.notes.look()
	return dueOf{round: first.stepOf}, first.step, first.step
}

// nextRecord returns the steady time at which the first of these is due. ok is false if none ever is.
func (r *checks) nextRecord() (at uint64, ok bool) {
	first := r.notes.look()
	if first.step {
		return 0, true
	}
	at, ok = first.at, first.some
	if r.t.playing.rounds == noCounter {
		return at, ok
	}
	next := r.nextTurns()
	for _, t := range [...]turn{next.close, next.open} {
		if steady := uint64(max(t.at+r.state.Back(), 0)); t.is && (!ok || steady < at) {
			at, ok = steady, true
		}
	}
	return at, ok
}

// openNext writes that the calendar opens a round. There may be more of these than of those that somebody opens.
func (r calling) openNext(number uint64) {
	c := r.nextTurns().open.opens.Config
	o := round{number: number, name: c.ID, is: roundOpen, opener: noPlayer, opened: uint64(r.steady), every: c.Every}
	o.period, _ = r.numberOf(&period{per: c.Every})
	r.begins(&o)
	r.keepTurn(&o, number)
	r.keepRound(&o)
}
