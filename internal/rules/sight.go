package rules

import (
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Sight is how a command sees the realm: the state, changed by what the command has done so far. In
// the first half of a command, values are those at the point that is checked, without the gains of
// draws. In the second half they are what the effects so far have left; of items, only those that
// conditions ask for. So what a draw of a group gives depends only on the members before it.
type Sight struct {
	tallying
	pools     []supply // by pool number
	taken     overlay  // how many were taken; by entryKey
	coded     overlay  // how many codes were given; by number of the list
	apart     overlay  // 1 for what draws without repetition have taken so far; by entryKey
	sums      []uint64 // by class of the pool weighed last
	weights   []uint64 // of its entries with conditions, class by class
	kept      kept     // what holds keep from others
	drawsHeld bool     // what the command draws is held
	freed     []Stack  // draws that the command no longer keeps from others; by number of the pool
}

// tallying is the counters of the catalog, over the scene: see counter.go.
type tallying struct {
	scene
	runs
}

// scene is the realm's numbers as the command sees them, and the time.
type scene struct {
	state  State
	t      *Tables // the catalog in force
	now    int64   // the time stamp
	steady int64   // the steady time: see store.State.Back
	player uint32  // the current player
	values overlay // balances and counters: see valueKey
	people
	calendar
}

type people struct {
	base   uint32   // how many players there were before the command
	fresh  []string // players that the command adds; their numbers start at base
	joined int      // how many of fresh have a Join effect
	known  string   // the player looked up last in this command
	number uint32   // of known
}

func (s *Sight) init() {
	s.values.init()
	s.taken.init()
	s.apart.init()
	s.coded.init()
}

// begin clears what the command before has left. now is in Unix milliseconds.
func (s *Sight) begin(now int64) {
	s.now = max(now, s.state.Now())
	s.beginRuns()
	s.steady = s.now + s.state.Back()
	s.freed, s.drawsHeld = s.freed[:0], false
	s.base, s.joined = s.state.Players(), 0
	s.values.reset()
	s.taken.reset()
	s.apart.reset()
	s.coded.reset()
}

// end forgets the command's strings, whose memory the caller may use again.
func (s *scene) end() {
	s.known = ""
	clear(s.fresh)
	s.fresh = s.fresh[:0]
}

// see returns the number of a player. A new player gets a number and waits for the starting grants:
// see come. If the command then fails, its event must leave the player out, or count the failure.
func (s *scene) see(id string) uint32 {
	if id == s.known {
		return s.number
	}
	if n, ok := s.state.Player(id); ok {
		s.known, s.number = id, n
		return n
	}
	if i := slices.Index(s.fresh, id); i >= 0 {
		return s.base + uint32(i)
	}
	s.fresh = append(s.fresh, id)
	n := s.base + uint32(len(s.fresh)-1)
	if s.t.waiting != noCounter {
		s.values.put(valueKey(n, counterKey|s.t.waiting), 1)
	}
	return n
}

// ref refers to a player by number; by id if the player is new and the command fails.
func (s *scene) ref(player uint32, id string, status Status) store.Ref {
	if player < s.base || status == OK {
		return store.Ref{Num: player}
	}
	return store.Ref{ID: id}
}

// isNew reports whether no effect has added a player yet.
func (s *scene) isNew(player uint32) bool { return player >= s.base+uint32(s.joined) }

// counterKey marks the keys of counters among values.
const counterKey = 1 << 31

func valueKey(player, key uint32) uint64 { return uint64(player)<<32 | uint64(key) }

// noPlayer is no player's number. The realm's own counters have it in their keys.
const noPlayer = 1<<32 - 1

func (s *scene) balance(player, item uint32) uint64 {
	if v, ok := s.values.get(valueKey(player, item)); ok {
		return v
	}
	if g := s.t.GrowthOf(item); g != nil {
		balance, _ := s.grown(player, g)
		return balance
	}
	return s.state.Balance(player, item)
}

// has returns how many of an item a player has, with what is held.
func (s *scene) has(player, item uint32) uint64 {
	return s.balance(player, item) + s.balance(player, store.HeldOf(item))
}

func (s *scene) counter(player, counter uint32) uint64 {
	if v, ok := s.values.get(valueKey(player, counterKey|counter)); ok {
		return v
	}
	return s.state.Counter(player, counter)
}

func (s *scene) tally(counter uint32) uint64 {
	if v, ok := s.values.get(valueKey(noPlayer, counterKey|counter)); ok {
		return v
	}
	return s.state.Tally(counter)
}

// calendar is the numbers of the periods that were asked for last.
type calendar struct {
	periods [8]dated // by catalog.Per
	endsOf  []dated  // when the period of a counter ends, by Counter.index: see endOf
}

// dated is the number of a period at a time stamp.
type dated struct {
	now    int64
	number uint64
}

// period is a catalog.Period that is looked up.
type period struct {
	per    catalog.Per
	season *catalog.Season // of PerSeason; nil: the one that runs
}

func (t *Tables) period(p catalog.Period) (out period) {
	if out.per = p.Per; p.Per == catalog.PerForever {
		out.per = 0
	}
	for i := range t.Catalog.Seasons {
		if s := &t.Catalog.Seasons[i]; p.Per == catalog.PerSeason && s.ID == p.Season {
			out.season = s
		}
	}
	return out
}

// numberOf returns the number of the present period, 0 of all time or before the first season, and whether it runs.
// That of a season is the time at which it starts, also after it has ended.
func (s *scene) numberOf(p *period) (n uint64, runs bool) {
	switch {
	case p.per == 0:
		return 0, true
	case p.per != catalog.PerSeason:
		at := &s.periods[p.per]
		if at.now != s.now || at.number == 0 {
			*at = dated{s.now, s.t.Zone.Number(p.per, s.now)}
		}
		return at.number, true
	case p.season != nil:
		if s.now < p.season.Starts {
			return 0, false
		}
		return uint64(p.season.Starts), s.now < p.season.Ends
	}
	of := s.t.Catalog.Begun(s.now)
	if of == nil {
		return 0, false
	}
	return uint64(of.Starts), of.Runs(s.now)
}

// ends returns the time stamp at which the present period ends, 0 if it never does. kept is the number of the period of
// a value: a later one goes on if the clock was set back.
func (s *scene) ends(p *period, kept uint64) int64 {
	n, _ := s.numberOf(p)
	switch {
	case p.per == 0:
		return 0
	case p.per != catalog.PerSeason && kept > n:
		return s.after(p.per, kept)
	case p.per != catalog.PerSeason:
		return s.t.Zone.Next(p.per, s.now)
	case p.season != nil:
		return p.season.Ends
	case kept > n:
		return s.t.seasonEnds(p, kept)
	}
	if of := s.t.Catalog.Begun(s.now); of != nil {
		return of.Ends
	}
	return 0
}

// after returns the first time stamp from now on that is after the day, week or month with a number.
func (s *scene) after(per catalog.Per, number uint64) int64 {
	return firstTime(s.now, MaxTime, func(t int64) bool { return s.t.Zone.Number(per, t) > number })
}

// instant is the time of the command.
func (s *scene) instant() Instant { return Instant{s.t.Zone, s.now, s.state.Back()} }

func entryKey(pt *Pool, entry uint32) uint64 { return uint64(pt.Num)<<32 | uint64(entry) }

// leftOf returns what is left of a limited entry of which the command has taken some. taken is
// negative, in a ring of 64 bits, if the command has put back more.
func (s *Sight) leftOf(pt *Pool, entry uint32, taken uint64) uint64 {
	stock := pt.Entries[entry].Config.Stock.Count
	return stock - min(stock, s.state.DrawnOf(pt.Num, entry)+taken) // a catalog can lower the stock
}

// These methods implement [Facts].

func (s *Sight) Balance(item uint32) uint64    { return s.balance(s.player, item) }
func (s *Sight) Counter(counter uint32) uint64 { return s.counter(s.player, counter) }
func (s *Sight) Live(pt *Pool) bool            { return s.pools[pt.Num].live > 0 }

// Refilled says that there are no refills left while tickets are held: see boxEmptied.
func (s *Sight) Refilled(pt *Pool) uint64 {
	if s.Unfinished(pt) {
		return math.MaxUint64
	}
	return s.tally(pt.Refills)
}

// Unfinished reports whether a box that is emptied now is not finished: some of its tickets are held.
func (s *Sight) Unfinished(pt *Pool) bool {
	return s.drawsHeld || len(s.kept.taken) > 0 && keptOf(s.kept.taken, pt.Num) > 0
}

func (s *Sight) Left(pt *Pool, entry uint32) uint64 {
	if !pt.Entries[entry].Limited {
		return math.MaxUint64
	}
	taken, _ := s.taken.get(entryKey(pt, entry))
	return s.leftOf(pt, entry, taken)
}

func (s *Sight) Picked(pt *Pool, entry uint32) bool {
	picked, _ := s.apart.get(entryKey(pt, entry))
	return picked == 1
}

func (s *Sight) CodesLeft(list uint32) uint64 {
	taken, _ := s.coded.get(uint64(list))
	left, _ := s.state.CodesLeft(list)
	return left - min(left, taken+keptOf(s.kept.codes, list))
}

func (s *Sight) Spent(b *Budget) uint64 {
	if !s.instant().lasts(b.Per, int64(s.tally(b.Counter+1))) {
		return 0
	}
	return s.tally(b.Counter)
}

func (s *Sight) Moments(m *Moments) (due uint64, p Pending) {
	if last := int64(s.tally(m.Counter)); last < s.now && s.now >= m.Starts {
		p = m.pending(last, s.now, s.tally(m.Counter+1))
	}
	if due = m.Due(s.tally(m.Counter+2), p.Sure); due > 0 && m.Config.Pass {
		p.Open = 0 // it makes no difference
	}
	return due, p
}

// Come returns how many of an entry's moments have come for sure.
func (s *Sight) Come(m *Moments) uint64 {
	_, p := s.Moments(m)
	return s.tally(m.Counter+1) + p.Sure
}

// Resets returns the first time stamp at which a budget is full again, 0 if it never is.
func (s *Sight) Resets(b *Budget) int64 {
	if b.Per == catalog.PerForever {
		return 0
	}
	from := s.now
	if when := int64(s.tally(b.Counter+1)) - s.state.Back(); s.Spent(b) > 0 {
		from = max(from, when) // of a zone whose clocks are ahead, or before the clock was set back
	}
	return s.t.Zone.Next(b.Per, from)
}

// Sums weighs a pool: it fills in the sum of each class, and the weights of entries with conditions.
// If ask is false, the conditions count as met.
func (s *Sight) Sums(pt *Pool, ask bool) []uint64 {
	s.sums, s.weights = s.sums[:0], s.weights[:0]
	for i := range pt.Classes {
		sum := s.pools[pt.Num].samplers[i].Total()
		for _, num := range pt.Classes[i].conditional {
			w := pt.Weigh(s, num, ask)
			s.weights = append(s.weights, w)
			sum += w
		}
		s.sums = append(s.sums, sum)
	}
	return s.sums
}

// Suppose gives the player's counter another value for what is asked next.
func (s *Sight) Suppose(counter uint32, value uint64) {
	s.values.put(valueKey(s.player, counterKey|counter), value)
}
