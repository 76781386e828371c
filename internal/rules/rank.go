package rules

import (
	"iter"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Players can be ranked by a counter: the highest value first; of equal ones, who reached it first. The store
// keeps them in that order. What a player has counted stands in one of two places in turn. When a period ends,
// the other place becomes the one that counts, and the standing that was reached stays frozen where it is: nothing
// is copied or cleared. The realm knows what all players have in common, in these counters of its own:
//
//	moves   how many moves there were so far: they number the moves
//	runs    the number of the period that runs; 0: none has begun
//	place   which place counts: 0 or 1
//	ended   the number of the last period that ended
//	paying  the number of the ended period whose ranks are being paid; 0: none
//	paid    how many of its ranks are
//
// The period that runs goes on while that of now is not later, and one that ended never runs again, whatever the
// clock says. Its end is due: see due.go. If nobody stands in it, it needs no end.
const (
	rankMoves = iota
	rankRuns
	rankPlace
	rankEnded
	rankPaying
	rankPaid
	ranksWidth = 8
)

// rankWidth is how many numbers a place has: value, move and period.
const rankWidth = 3

// ranking is what a counter has that ranks players, or has ranked them under another catalog.
type ranking struct {
	tallies uint32 // the first of the realm's counters; 0: it has never ranked players
	second  uint32 // the first counter of the second place; 0: the counter is of all time, and has one place
	prizes  []prize
}

// prize is a catalog.Prize by numbers.
type prize struct {
	to   uint64
	pool *Pool
}

// Prizes returns what ranks get, the first ranks first.
func (c *Counter) Prizes() iter.Seq[*Reward] {
	return func(yield func(*Reward) bool) {
		for i := range c.prizes {
			if !yield(&c.prizes[i].pool.Entries[0].Reward) {
				return
			}
		}
	}
}

// RankName and RanksName return the names of a counter's second place and of the realm's counters for it.
func RankName(c *catalog.Counter) string  { return "/rank/" + c.ID + "/" + c.Shape() }
func RanksName(c *catalog.Counter) string { return "/realm/ranks/" + c.ID + "/" + c.Shape() }

// CounterOf returns the id of the counter that has a name.
func CounterOf(name string) (id string, ok bool) {
	name, ok = strings.CutPrefix(strings.TrimPrefix(name, "/realm"), "/count/")
	id, _, _ = strings.Cut(name, "/")
	return id, ok
}

// ranks numbers what a counter needs to rank players. One that has ever ranked them keeps its places.
func (d *definer) ranks(c *Counter) {
	if _, ever := d.state.CounterNum(RanksName(c.Config)); c.realm || !ever && !c.Config.Ranked.Is {
		return
	}
	c.tallies = d.counters(RanksName(c.Config), ranksWidth)
	if c.period.per != 0 {
		c.second = d.counters(RankName(c.Config), rankWidth)
	}
	if !c.Config.Ranked.Is {
		return
	}
	for i := range c.Config.Ranked.Rewards {
		c.prizes = append(c.prizes, prize{uint64(c.Config.Ranked.Rewards[i].To), nil})
	}
	if c.period.per != 0 {
		d.t.ranked = append(d.t.ranked, c)
	}
}

// prizes numbers the pools of rewards by rank.
func (d *definer) prizes() {
	for _, c := range d.t.Counters {
		for i := range c.prizes {
			c.prizes[i].pool = d.tierPool()
		}
	}
}

func (t *Tables) compilePrizes() {
	for _, c := range t.Counters {
		for i := range c.prizes {
			t.compileTier(c.prizes[i].pool, &c.Config.Ranked.Rewards[i].Reward)
		}
	}
}

// orders has players kept in the order of the counters that rank them, and of no others.
func (d *definer) orders() {
	want := map[uint32]bool{}
	for _, c := range d.t.Counters {
		if c.Config.Ranked.Is {
			for place := range c.places() {
				want[c.order(place)] = true
			}
		}
	}
	there := map[uint32]bool{}
	for num, by := range d.state.Ordered() {
		if there[num] = true; by == store.ByStanding && !want[num] {
			d.w.More(store.Order, uint64(num), uint64(store.Unordered))
		}
	}
	for _, c := range d.t.Counters {
		for place := range c.places() {
			if num := c.order(place); want[num] && !there[num] {
				d.w.More(store.Order, uint64(num), uint64(store.ByStanding))
			}
		}
	}
}

// places returns how many places a counter has.
func (c *Counter) places() uint32 {
	if c.second == 0 {
		return 1
	}
	return 2
}

// order returns the first counter of the order that players with their value in a place are in.
func (c *Counter) order(place uint32) uint32 { return c.number(countValue, place) }

// present returns the number of the period that a counter counts in, the place of its values, and whether moves
// count.
func (c *Counter) present(s *tallying) (period uint64, place uint32, open bool) {
	n, open := s.numberOf(&c.period)
	if c.second == 0 {
		return n, 0, open
	}
	place = uint32(s.tally(c.tallies + rankPlace))
	switch runs := s.tally(c.tallies + rankRuns); {
	case runs > n: // the clock was set back
		return runs, place, true
	case n > s.tally(c.tallies+rankEnded):
		return n, place, open
	}
	return n, 1 - place, false
}

// numberMove numbers a move that is about to be written.
func (c *Counter) numberMove(r *effects, run *running) {
	if run.is[countValue] == run.state[countValue] && run.is[countPeriod] == run.state[countPeriod] {
		return
	}
	if run.is[countMove] = 0; run.is[countValue] > 0 {
		n := r.tally(c.tallies+rankMoves) + 1
		r.setTally(c.tallies+rankMoves, n)
		run.is[countMove] = n
	}
	if run.period > r.tally(c.tallies+rankRuns) {
		r.setTally(c.tallies+rankRuns, run.period)
	}
}

// Frame says where the store has a standing of a counter.
type Frame struct {
	Order  uint32 // the first counter of the order
	Period uint64
}

// Standing returns the standing of a counter that ranks players in the period that runs, and the time stamp at
// which that ends, 0 if it never does. ok is false if none runs. A period that is over runs until its end is settled.
func (c *Counter) Standing(s *Sight) (at Frame, ends int64, ok bool) {
	period, place, open := c.present(&s.tallying)
	at = Frame{c.order(place), period}
	if c.second == 0 {
		return at, 0, true
	}
	counts := uint32(s.tally(c.tallies + rankPlace))
	if runs := s.tally(c.tallies + rankRuns); runs != 0 && s.state.Standing(c.order(counts), runs) > 0 {
		return Frame{c.order(counts), runs}, c.endOf(s, runs), true
	}
	if !open || place != counts {
		return at, 0, false
	}
	return at, c.endOf(s, period), true
}

// LastStanding returns that of the last period that ended. ok is false if none has.
func (c *Counter) LastStanding(s *Sight) (at Frame, ok bool) {
	if c.second == 0 {
		return at, false
	}
	ended := s.tally(c.tallies + rankEnded)
	return Frame{c.order(1 - uint32(s.tally(c.tallies+rankPlace))), ended}, ended > 0
}

// Rank returns the rank of the current player, 0 for none.
func (c *Counter) Rank(s *Sight) uint64 {
	if !c.Config.Ranked.Is || s.Count(c) == 0 {
		return 0
	}
	rank, _ := s.state.Rank(c.order(s.stands(c, s.player).place), s.player)
	return rank
}

// ladder settles what is due for counters that rank players.
type ladder struct {
	drawing
	found []store.Ranked // scratch memory
}

// Ranking is a step of what is due for a counter that ranks players: its period ends, or some of its ranks are paid.
type Ranking struct {
	Counter uint32 // the first of its numbers
	Period  uint64
	From    uint64 // the first rank to be paid; 0: the period ends
	Count   uint64 // how many ranks are paid; how many players are in the standing that ends. 0: nothing is due
}

// endOf returns the time stamp at which a period of a counter ends. It may be past.
func (c *Counter) endOf(s *Sight, period uint64) int64 {
	if c.period.per == catalog.PerSeason {
		return s.t.seasonEnds(&c.period, period)
	}
	if len(s.endsOf) < len(s.t.Counters) {
		s.endsOf = make([]dated, len(s.t.Counters))
	}
	at := &s.endsOf[c.index]
	if at.number != period {
		*at = dated{s.t.Zone.endOf(c.period.per, period), period}
	}
	return at.now
}

// seasonEnds returns when a season ends that began at a time. One that the catalog has no more, or that is to begin
// later now, has ended.
func (t *Tables) seasonEnds(p *period, number uint64) int64 {
	if s := p.season; s != nil && uint64(s.Starts) <= number {
		return s.Ends
	}
	for i := range t.Catalog.Seasons {
		if s := &t.Catalog.Seasons[i]; p.season == nil && uint64(s.Starts) == number {
			return s.Ends
		}
	}
	return 0
}

// runningOf returns the period of a counter whose end is to come, and when. ok is false if nobody is in its standing.
func (r *ladder) runningOf(c *Counter) (period uint64, at int64, ok bool) {
	order := c.order(uint32(r.state.Tally(c.tallies + rankPlace)))
	if period = r.state.Tally(c.tallies + rankRuns); period == 0 { // it has counted before it ranked players
		if period, ok = r.state.Latest(order); !ok || period <= r.state.Tally(c.tallies+rankEnded) {
			return 0, 0, false
		}
	}
	return period, c.endOf(&r.Sight, period), r.state.Standing(order, period) > 0
}

// ending returns the end of a counter's period, if it is due.
func (r *ladder) ending(c *Counter, now int64) (d Ranking) {
	period, at, ok := r.runningOf(c)
	if !ok || at > max(now, r.state.Now()) {
		return d
	}
	place := uint32(r.state.Tally(c.tallies + rankPlace))
	return Ranking{Counter: c.Num, Period: period, Count: r.state.Standing(c.order(place), period)}
}

// paying returns the next ranks of a counter that are to be paid, at most most.
func (r *ladder) paying(c *Counter, most int) (d Ranking) {
	period := r.state.Tally(c.tallies + rankPaying)
	if period == 0 {
		return d
	}
	paid := r.state.Tally(c.tallies + rankPaid)
	d = Ranking{Counter: c.Num, Period: period, From: paid + 1}
	last, picks := r.lastPaid(c, period), uint64(0)
	for rank := d.From; rank <= last && d.Count < uint64(min(most, SweepPlayers)); rank++ {
		if picks += c.prizeOf(rank).Picks; picks > catalog.MaxRequestPicks && d.Count > 0 {
			break
		}
		d.Count++
	}
	return d
}

// lastPaid returns the last rank of a frozen standing that has a reward.
func (r *ladder) lastPaid(c *Counter, period uint64) uint64 {
	if len(c.prizes) == 0 {
		return 0
	}
	frozen := c.order(1 - uint32(r.state.Tally(c.tallies+rankPlace)))
	return min(r.state.Standing(frozen, period), c.prizes[len(c.prizes)-1].to)
}

// prizeOf returns the pool of the reward for a rank.
func (c *Counter) prizeOf(rank uint64) *Pool {
	for i := range c.prizes {
		if rank <= c.prizes[i].to {
			return c.prizes[i].pool
		}
	}
	return nil
}

// nextOf returns what is due for a counter first. A period does not end before the ranks of the one before are
// paid: its end gives their place away.
func (r *ladder) nextOf(c *Counter, now int64, most int) (d Ranking) {
	if d = r.paying(c, most); d.Count == 0 {
		d = r.ending(c, now)
	}
	return d
}

// endsFirst returns what must be settled for a period to end that is over, before anybody does anything else.
func (r *ladder) endsFirst(now int64) (d Ranking) {
	for _, c := range r.t.ranked {
		if r.ending(c, now).Count > 0 {
			return r.nextOf(c, now, SweepPlayers)
		}
	}
	return d
}

// ranksDue returns what is due next for the counters that rank players: ends, then ranks to be paid.
func (r *ladder) ranksDue(now int64, most int) (d Ranking) {
	if d = r.endsFirst(now); d.Count > 0 {
		return d
	}
	for _, c := range r.t.ranked {
		if d = r.paying(c, most); d.Count > 0 {
			return d
		}
	}
	return d
}

// rankedBy returns the counter that ranks players and has a number, nil if there is none.
func (r *ladder) rankedBy(num uint32) *Counter {
	for _, c := range r.t.ranked {
		if c.Num == num {
			return c
		}
	}
	return nil
}

// rank writes a step of what is due for a counter.
func (r *ladder) rank(d *Ranking) {
	c := r.rankedBy(d.Counter)
	r.player, r.pool, r.alone = noPlayer, noPool, true
	if d.From == 0 {
		r.endPeriod(c, d.Period)
		return
	}
	order := c.order(1 - uint32(r.state.Tally(c.tallies+rankPlace)))
	last := d.From + d.Count - 1
	done := last == r.lastPaid(c, d.Period)
	r.found = r.state.Top(order, d.Period, d.From, int(d.Count), r.found[:0])
	for _, at := range r.found {
		r.payRank(c, at.Rank, at.Player)
	}
	r.fire()
	if done {
		r.setTally(c.tallies+rankPaying, 0)
		last = 0
	}
	r.setTally(c.tallies+rankPaid, last)
	r.writeDeadlines()
}

// endPeriod writes that a period of a counter has ended. The one of now begins, if it is another one.
func (r *ladder) endPeriod(c *Counter, period uint64) {
	t := c.tallies
	next, _ := r.numberOf(&c.period)
	if next <= period {
		next = 0
	}
	paying := uint64(0)
	if len(c.prizes) > 0 {
		paying = period
	}
	r.setTally(t+rankRuns, next)
	r.setTally(t+rankPlace, 1-r.tally(t+rankPlace))
	r.setTally(t+rankEnded, period)
	r.setTally(t+rankPaying, paying) // perhaps in place of one whose rewards a catalog took away
	if r.tally(t+rankPaid) > 0 {
		r.setTally(t+rankPaid, 0)
	}
}

// missed marks a claim of a rank whose reward was not there or did not fit: the player does not get it.
const missed = 1

// RankOf returns the rank that a claim of a counter is for, and whether its reward was missed.
func RankOf(claim uint64) (rank uint64, miss bool) { return claim >> 1, claim&missed != 0 }

// payRank writes the reward for a player's rank, after what is due for the player.
func (r *ladder) payRank(c *Counter, rank uint64, player uint32) {
	r.turn(player)
	if r.t.due != noCounter && r.playerDue(player, uint64(r.steady)) {
		for _, s := range sources() {
			s.settle(&r.effects, player)
		}
	}
	pt := c.prizeOf(rank)
	if !r.mayGive(pt, player) {
		r.w.More(store.Claim, uint64(c.Num), rank<<1|missed)
		return
	}
	r.w.More(store.Claim, uint64(c.Num), rank<<1)
	r.pool = noPool
	r.give(&pt.Entries[0].Reward)
	r.endDraw()
	r.writeMoves()
}
