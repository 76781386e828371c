package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A deadline is a moment in the state at which something must happen. A player's deadlines come from
// sources: the lots of items that last, and mail. A counter of the player, dueName, holds the earliest of
// them, in steady time, and the store keeps players in its order. Every event that changes a source
// sets the counter too.
//
// What is due is settled by an event of its own, of the kind due: for the players that a command
// names, before the command, or swept: the first SweepPlayers, by deadline, then by number. It settles
// all that is due for a player. Then quests that it reaches claim themselves: only these take
// randomness. It says whom it settles, so that the verifier decides it again.

// SweepPlayers is the most players or ranks that an event settles that no command waits for.
const SweepPlayers = 64

// MaxDueBytes is the length from which on an event settles no more players.
const MaxDueBytes = 4 << 20

const dueName = "/due"

// source is something of a player that has deadlines.
type source interface {
	// earliest returns the first deadline of a player, math.MaxUint64 if there is none.
	earliest(r *effects, player uint32) uint64
	// settle writes what is due for the current player.
	settle(r *effects, player uint32)
}

// sources returns where deadlines come from, in the order in which a player's are settled.
func sources() [2]source { return [...]source{lotSource{}, mailSource{}} }

// deadlines numbers the counter of players' earliest deadlines, and has players kept in its order.
func (d *definer) deadlines() {
	if d.t.due != noCounter {
		return
	}
	d.t.due = d.counters(dueName, 1)
	if _, fresh := d.fresh[dueName]; fresh {
		d.w.More(store.Order, uint64(d.t.due), uint64(store.ByTime))
	}
}

// deadlines is what the event at hand does to deadlines.
type deadlines struct {
	touched []touched
	held    []counterValue // scratch memory
}

// touched is a player some of whose deadlines came or went.
type touched struct {
	player uint32
	first  uint64 // of those that came; math.MaxUint64: none did
	look   bool   // the earliest may be gone
}

// touch returns what became of a player's deadlines in this event.
func (r *timing) touch(player uint32) *touched {
	for i := range r.touched {
		if r.touched[i].player == player {
			return &r.touched[i]
		}
	}
	r.touched = append(r.touched, touched{player: player, first: math.MaxUint64})
	return &r.touched[len(r.touched)-1]
}

// comes notes that a player has a deadline more.
func (r *timing) comes(player uint32, at uint64) {
	t := r.touch(player)
	t.first = min(t.first, at)
}

// gone notes that a player has a deadline less.
func (r *timing) gone(player uint32, at uint64) {
	t := r.touch(player)
	t.look = t.look || at <= t.first || at <= r.counter(player, r.t.due)
}

// writeDeadlines writes the earliest deadlines that have changed.
func (r *effects) writeDeadlines() {
	for i := range r.touched {
		t := &r.touched[i]
		was := r.counter(t.player, r.t.due)
		next := t.first
		switch {
		case t.look:
			next = math.MaxUint64
			for _, s := range sources() {
				next = min(next, s.earliest(r, t.player))
			}
		case was > 0:
			next = min(next, was)
		}
		if next == math.MaxUint64 {
			next = 0
		}
		if next != was {
			r.turn(t.player)
			r.w.Change(store.Set, r.t.due, next)
			r.values.put(valueKey(t.player, counterKey|r.t.due), next) // more may come
		}
	}
	r.touched = r.touched[:0]
}

// Due is whose deadlines an event settles: those of some players, or a step of a counter that ranks players.
type Due struct {
	Swept   bool     // no command waits for it
	Players []uint32 // in the order in which they are settled
	Ranking Ranking  // with a Count: what is settled instead
	// Not 0: the round that is settled instead, forgotten, or opened, at its deadline or by the calendar; with lapsing,
	// what lapses.
	Round uint64
	Step  bool     // of the round, what follows for some of its entrants
	Holds []string // the holds that are settled instead, or forgotten, at their deadlines: their request ids
}

// Lapses reports whether something lapses that is no round: a link code, or guesses at one.
func (d *Due) Lapses() bool { return d.Round&lapsing != 0 }

// NextDue returns the steady time of the realm's next deadline. ok is false if there is none.
func (r *Rules) NextDue() (at uint64, ok bool) {
	if r.t.due != noCounter {
		_, at, ok = r.state.Earliest(r.t.due)
	}
	if r.noted() {
		if first, some := r.nextRecord(); some && (!ok || first < at) {
			at, ok = first, true
		}
	}
	for _, c := range r.t.ranked {
		if r.paying(c, 1).Count > 0 {
			return 0, true
		}
		if _, ends, runs := r.runningOf(c); runs {
			steady := uint64(max(ends+r.state.Back(), 0))
			if !ok || steady < at {
				at, ok = steady, true
			}
		}
	}
	return at, ok
}

// IsDue reports whether something is due in the realm at a time stamp.
func (r *Rules) IsDue(now int64) bool {
	return (r.t.due != noCounter || len(r.t.ranked) > 0 || r.notes.any()) && r.anyDue(now)
}

// noted reports whether records can have deadlines.
func (r *checks) noted() bool { return r.t.playing.rounds != noCounter || r.notes.any() }

func (r *Rules) anyDue(now int64) bool {
	if r.noted() {
		if _, _, some := r.recordNext(now); some {
			return true
		}
	}
	return r.playersDue(now) || len(r.t.ranked) > 0 && r.ranksDue(now, 1).Count > 0
}

// playersDue reports whether something is due for a player.
func (r *Rules) playersDue(now int64) bool {
	if r.t.due == noCounter {
		return false
	}
	_, at, ok := r.state.Earliest(r.t.due)
	return ok && at <= r.steadyAt(now)
}

// steadyAt returns the steady time of a batch with this time stamp.
func (r *checks) steadyAt(now int64) uint64 { return uint64(max(now, r.state.Now()) + r.state.Back()) }

// DueFor finds out what must be settled next before a command: that a period ends that is over, which all
// commands see, or what is due for the players that it names. d gets it. Call it until it returns false.
func (r *Rules) DueFor(cmd *Command, now int64, d *Due) bool {
	*d = Due{Players: d.Players[:0]}
	if len(r.t.ranked) > 0 {
		if d.Ranking = r.endsFirst(now); cmd.ends() && d.Ranking.Count == 0 {
			d.Ranking = r.ranksDue(now, SweepPlayers)
		}
		if d.Ranking.Count > 0 {
			return true
		}
	}
	if r.noted() {
		if of, ok := r.recordDue(now); ok {
			d.records(&r.notes, of, r.steadyAt(now), SweepPlayers)
			return true
		}
		if cmd.ends() {
			if of, step, ok := r.recordNext(now); ok {
				d.records(&r.notes, of, r.steadyAt(now), SweepPlayers)
				d.Step = step
				return true
			}
		}
	}
	if r.playersDue(now) {
		r.dueFor(cmd, r.steadyAt(now), d)
	}
	return len(d.Players) > 0
}

// records notes what is due of what records say.
func (d *Due) records(s *noting, of dueOf, steady uint64, most int) {
	if d.Round = of.round; of.round == 0 {
		d.Holds = s.holdsDue(steady, most)
	}
}

func (r *Rules) dueFor(cmd *Command, steady uint64, d *Due) {
	for _, id := range [...]string{cmd.Player, cmd.To} {
		if num, ok := r.state.Player(id); ok && r.playerDue(num, steady) && !slices.Contains(d.Players, num) {
			d.Players = append(d.Players, num)
		}
	}
	for i := range cmd.Members {
		r.dueFor(&cmd.Members[i], steady, d)
	}
	if cmd.Kind == KindConfirm || cmd.Kind == KindCancel {
		h, _ := r.notes.holdOf(cmd.Hold.Of)
		for _, num := range h.all() {
			if r.playerDue(num, steady) && !slices.Contains(d.Players, num) {
				d.Players = append(d.Players, num)
			}
		}
	}
}

func (r *ladder) playerDue(player uint32, steady uint64) bool {
	at := r.state.Counter(player, r.t.due)
	return at != 0 && at <= steady
}

// Sweep finds what the next event settles that no command waits for: counters that rank players come before
// players. It settles at most most ranks or players, and SweepPlayers.
func (r *Rules) Sweep(now int64, most int, d *Due) bool {
	*d = Due{Swept: true, Players: d.Players[:0]}
	if len(r.t.ranked) > 0 {
		if d.Ranking = r.ranksDue(now, most); d.Ranking.Count > 0 {
			d.Swept = false // nobody needs to know
			return true
		}
	}
	if r.noted() {
		if of, step, ok := r.recordNext(now); ok {
			d.records(&r.notes, of, r.steadyAt(now), most)
			d.Step, d.Swept = step, false // nobody needs to know who waits
			return true
		}
	}
	if !r.playersDue(now) {
		return false
	}
	steady := r.steadyAt(now)
	for player, at := range r.state.EachEarliest(r.t.due, min(most, SweepPlayers)) {
		if at > steady {
			break
		}
		d.Players = append(d.Players, player)
	}
	return true
}

// DecideDue writes the event that settles what is due, if it does not get too long: then ok is false for a
// command's, while a sweep settles fewer. It takes values from src only for rewards, once it is sure whom it
// settles. The event must be applied before the next call.
func (r *Rules) DecideDue(d *Due, now int64, src Source, w *store.Writer) (ok bool) {
	if d.Ranking.Count > 0 {
		r.begin(now, src, w)
		w.Begin(uint8(KindDue), "")
		d.ask(w)
		step := d.Ranking
		r.rank(&step)
		w.End()
		r.end()
		return true
	}
	if d.Round != 0 || len(d.Holds) > 0 {
		r.begin(now, src, w)
		r.pool, r.alone, r.player = noPool, true, noPlayer
		w.Begin(uint8(KindDue), "")
		d.ask(w)
		for _, id := range d.Holds {
			holding{hosting{&r.drawing}}.atDeadline(id)
		}
		switch {
		case d.Lapses():
			naming{&r.drawing}.lapse(d.Round)
		case d.Step:
			hosting{&r.drawing}.stepOf(d.Round)
		case d.Round != 0:
			hosting{&r.drawing}.atDeadline(d.Round)
		}
		r.fire()
		r.writeDeadlines()
		w.End()
		r.end()
		return true
	}
	for len(d.Players) > 0 {
		r.begin(now, src, w)
		r.pool, r.alone = noPool, true
		w.Begin(uint8(KindDue), "")
		d.ask(w)
		from := len(w.Buf)
		settled := 0
		for settled < len(d.Players) && len(w.Buf)-from < MaxDueBytes {
			r.settle(d.Players[settled])
			settled++
		}
		if settled == len(d.Players) {
			r.fire()
			r.writeDeadlines()
			w.End()
			r.end()
			return true
		}
		r.end()
		w.Cut()
		if !d.Swept {
			return false
		}
		d.Players = d.Players[:settled]
	}
	return false
}

// settle writes what is due for a player.
func (r *Rules) settle(player uint32) {
	r.player = noPlayer
	r.turn(player)
	for _, s := range sources() {
		s.settle(&r.effects, player)
	}
	r.writeDeadlines()
	if len(r.firings) == 0 { // nothing later asks for the player's
		r.resetLots()
		r.resetMail()
	}
}

// An event of the kind due has these arguments, as varints: 1 if players were swept, 2 if they are settled for
// a command, then how many players, then their numbers; or 3, and the numbers of a Ranking.
const (
	dueSwept   = 1
	dueCommand = 2
	dueRanking = 3
	dueRound   = 4 // then the number of the round
	dueStep    = 5 // likewise
	dueHolds   = 6 // then how many holds, and their request ids
	dueLapse   = 7 // then the number of what lapses, without lapsing
)

func (d *Due) ask(w *store.Writer) {
	w.BeginAsked()
	defer w.EndAsked()
	if at := &d.Ranking; at.Count > 0 {
		for _, n := range [...]uint64{dueRanking, uint64(at.Counter), at.Period, at.From, at.Count} {
			w.Uint(n)
		}
		return
	}
	if d.Round != 0 {
		what, number := uint64(dueRound), d.Round
		switch {
		case number&lapsing != 0:
			what, number = dueLapse, number&^lapsing
		case d.Step:
			what = dueStep
		}
		w.Uint(what)
		w.Uint(number)
		return
	}
	if len(d.Holds) > 0 {
		w.Uint(dueHolds)
		w.Uint(uint64(len(d.Holds)))
		for _, id := range d.Holds {
			writeText(w, id)
		}
		return
	}
	if d.Swept {
		w.Uint(dueSwept)
	} else {
		w.Uint(dueCommand)
	}
	w.Uint(uint64(len(d.Players)))
	for _, p := range d.Players {
		w.Uint(uint64(p))
	}
}

// maxDuePlayers is the most players that an event can settle: all that an atomic group names.
const maxDuePlayers = 2 * MaxAtomic

// DueOf returns what an event of the kind due settles.
func DueOf(ev *store.Event) (d Due, err error) {
	r := store.NewReader(ev.Asked)
	switch what := r.Uint("what is due", math.MaxUint32); what {
	case dueSwept, dueCommand:
		d.Swept = what == dueSwept
		for range r.Uint("the number of players", maxDuePlayers) {
			d.Players = append(d.Players, uint32(r.Uint("a player", math.MaxUint32)))
		}
	case dueRanking:
		at := &d.Ranking
		at.Counter = uint32(r.Uint("a counter", math.MaxUint32))
		at.Period = r.Uint("a period", math.MaxUint64)
		at.From = r.Uint("the first rank", catalog.MaxRank)
		if at.Count = r.Uint("how many ranks", math.MaxUint32); at.Count == 0 {
			r.Fail("nobody is ranked")
		}
	case dueRound, dueStep:
		d.Step = what == dueStep
		if d.Round = r.Uint("a round", lapsing-1); d.Round == 0 {
			r.Fail("round number 0")
		}
	case dueHolds:
		for range r.Uint("the number of holds", SweepPlayers) {
			d.Holds = append(d.Holds, string(r.Bytes("a hold", r.Uint("a hold's id", MaxID))))
		}
		if len(d.Holds) == 0 {
			r.Fail("no hold is due")
		}
	case dueLapse:
		d.Round = r.Uint("what lapses", lapsing-1) | lapsing
	default:
		r.Fail("what is due has number %d; this build knows 1 to 7", what)
	}
	if r.More() {
		r.Fail("bytes after what is due")
	}
	return d, r.Err()
}

// CheckDue reports why an event cannot settle this at a time stamp, or nil.
func (r *Rules) CheckDue(d *Due, now int64) error {
	if d.Ranking.Count > 0 {
		c := r.rankedBy(d.Ranking.Counter)
		if c == nil {
			return fmt.Errorf("the catalog in force ranks nobody by counter number %d", d.Ranking.Counter)
		}
		first := r.nextOf(c, now, SweepPlayers)
		if d.Ranking.From > 0 && d.Ranking.Count < first.Count {
			first.Count = d.Ranking.Count
		}
		if d.Ranking != first {
			return fmt.Errorf("%+v is settled; due first is %+v", d.Ranking, first)
		}
		return nil
	}
	if d.Round != 0 {
		if first, step, ok := r.recordNext(now); !ok || first.round != d.Round || step != d.Step {
			return fmt.Errorf("round %d is settled; due first is %v", d.Round, first)
		}
		return nil
	}
	if n := len(d.Holds); n > 0 {
		if first := r.notes.holdsDue(r.steadyAt(now), SweepPlayers); n > len(first) || !slices.Equal(d.Holds, first[:n]) {
			return fmt.Errorf("the holds %q are settled; due first are %q", d.Holds, first)
		}
		return nil
	}
	if r.t.due == noCounter {
		return fmt.Errorf("the catalog in force has nothing that falls due for a player")
	}
	var first Due
	if d.Swept {
		r.Sweep(now, SweepPlayers, &first)
		if n := len(d.Players); n == 0 || n > len(first.Players) || !slices.Equal(d.Players, first.Players[:n]) {
			return fmt.Errorf("swept players %d; due first are %d", d.Players, first.Players)
		}
		return nil
	}
	for i, p := range d.Players {
		if !r.playerDue(p, r.steadyAt(now)) || slices.Contains(d.Players[:i], p) {
			return fmt.Errorf("nothing is due for player number %d", p)
		}
	}
	return nil
}
