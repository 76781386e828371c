package rules

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A counter of a catalog keeps a few numbers for each player, or for the realm: counters of the state, by
// the names that counterNames gives them. A number that a counter does not need stays 0.
//
//	value    sum, highest number, number of different keys, or length of a streak; at most catalog.MaxCount
//	move     of a counter that ranks players: the number of the move with which the value was reached
//	period   the number of the period that the value is of: see Zone.Number; of a streak, of the last move
//	missed   how many periods a streak has missed
//	capped   by how much the counter has moved in the period of its cap
//	capPer   the number of that period
//
// A value counts while the period of now is not later than its own. So a period that has ended never ends
// again: if the clock is set back over midnight, the day that has begun goes on. A counter that ranks players
// has a second place for the first three, and the realm says which of the two counts: see rank.go.
const (
	countValue = iota
	countMove
	countPeriod
	countMissed
	countCapped
	countCapPeriod
	countUsed  // how many there are
	countWidth = 8
)

// Counter is a catalog.Counter by numbers.
type Counter struct {
	Config *catalog.Counter
	Num    uint32 // of the value; the other numbers follow
	keys   uint32 // of a distinct counter: the first of what it has seen
	ranking
	index  int // in Tables.Counters
	realm  bool
	period period // that the value is of, or that a streak counts
	cap    period
	quests []*Quest // automatic ones that ask for it
}

// CounterName and KeysName return the names of a counter's numbers. Those of the realm begin with /realm.
func CounterName(c *catalog.Counter) string { return whose(c) + "/count/" + c.ID + "/" + c.Shape() }
func KeysName(c *catalog.Counter) string    { return whose(c) + "/keys/" + c.ID + "/" + c.Shape() }

func whose(c *catalog.Counter) string {
	if c.For == catalog.ForRealm {
		return "/realm"
	}
	return ""
}

// counters numbers the counters of a catalog.
func (d *definer) countersOf(c *catalog.Catalog) {
	d.t.CounterByID = make(map[string]*Counter, len(c.Counters))
	for i := range c.Counters {
		config := &c.Counters[i]
		ct := &Counter{Config: config, index: i, realm: config.For == catalog.ForRealm}
		ct.Num = d.counters(CounterName(config), countWidth)
		if config.Distinct > 0 {
			ct.keys = d.counters(KeysName(config), catalog.MaxDistinct)
		}
		ct.period = d.t.period(config.Per)
		if s := config.Streak; s.Per != 0 {
			ct.period = d.t.period(catalog.Period{Per: s.Per})
		}
		ct.cap = d.t.period(catalog.Period{Per: config.Most.Per})
		d.ranks(ct)
		d.t.Counters = append(d.t.Counters, ct)
		d.t.CounterByID[config.ID] = ct
	}
}

// running is a counter as the command at hand has left it, for one player or the realm.
type running struct {
	gen    uint32
	player uint32
	is     [countUsed]uint64
	state  [countUsed]uint64 // as it is written: in the state, or by an effect of this command
	value  uint64            // now
	period uint64            // the present one
	place  uint32            // where value, move and period stand: see Counter.number
	open   bool              // the period runs: moves count
	moved  bool              // it differs from state
	spill  bool              // it differs from the state that the command found
}

// running is the counters that a command has asked for. It lies over values: what it evicts goes there.
type runs struct {
	run     []running // by Counter.index
	runGen  uint32
	moving  []*Counter // with running.moved, in the order of the first move
	keySets []keySet   // keys that were seen for the first time
	spilled bool       // values has some of it
	many    []counterValue
}

// keySet is a key that a distinct counter has seen, and the number that keeps it.
type keySet struct {
	of  *Counter
	num uint32
	key uint64
}

// beginRuns forgets what was asked for.
func (s *Sight) beginRuns() {
	if len(s.t.Counters) == 0 {
		return
	}
	if s.runGen++; len(s.run) < len(s.t.Counters) || s.runGen == 0 {
		s.run, s.runGen = make([]running, len(s.t.Counters)), 1
	}
	s.moving, s.keySets, s.spilled = s.moving[:0], s.keySets[:0], false
}

// owner returns whose numbers a counter has: the player's, or the realm's.
func (c *Counter) owner(player uint32) uint32 {
	if c.realm {
		return noPlayer
	}
	return player
}

// stands returns a counter as it stands for a player.
func (s *Sight) stands(c *Counter, player uint32) *running {
	player = c.owner(player)
	r := &s.run[c.index]
	if r.gen == s.runGen {
		if r.player == player {
			return r
		}
		s.evict(c, r)
	}
	*r = running{gen: s.runGen, player: player}
	s.load(c, r)
	return r
}

// evict keeps what is known of a counter among the values: another player's is asked for.
func (s *Sight) evict(c *Counter, r *running) {
	if !r.spill {
		return
	}
	for i, v := range r.is {
		s.values.put(valueKey(r.player, counterKey|c.number(i, r.place)), v)
	}
	s.spilled = true
}

func (s *Sight) load(c *Counter, r *running) {
	r.period, r.place, r.open = c.present(s)
	switch {
	case c.realm:
		for i := range r.is {
			r.is[i] = s.tally(c.number(i, r.place))
		}
	case s.spilled:
		for i := range r.is {
			r.is[i] = s.counter(r.player, c.number(i, r.place))
		}
	default:
		s.many = s.state.Counters(r.player, c.Num, c.Num+countUsed-1, s.many[:0])
		for _, n := range s.many {
			r.is[n.Counter-c.Num] = n.Value
		}
		if r.place > 0 {
			for i := range uint32(rankWidth) {
				r.is[i] = s.state.Counter(r.player, c.number(int(i), r.place))
			}
		}
	}
	r.state = r.is
	r.value = c.valueIn(&r.is, r.period)
}

// number returns which counter of the state has one of a counter's numbers, as present says where it stands.
func (c *Counter) number(i int, place uint32) uint32 {
	if i < rankWidth && place > 0 {
		return c.second + uint32(i)
	}
	return c.Num + uint32(i)
}

// valueIn returns the value of a counter in a period.
func (c *Counter) valueIn(n *[countUsed]uint64, period uint64) uint64 {
	gap := period - min(period, n[countPeriod])
	switch {
	case gap == 0:
		return n[countValue]
	case c.Config.Streak.Per == 0:
		return 0
	case gap > 1 && n[countMissed]+gap-1 > uint64(c.Config.Streak.Forgive): // what was forgiven stays so
		return 0
	}
	return n[countValue]
}

// Count returns where a counter stands for the current player.
func (s *Sight) Count(c *Counter) uint64 { return s.stands(c, s.player).value }

// moveBy moves a counter by n. key is what a distinct counter counts.
func (s *Sight) moveBy(c *Counter, player uint32, n, key uint64) {
	r := s.stands(c, player)
	if !r.open {
		return
	}
	before := r.is
	switch config := c.Config; {
	case config.Streak.Per != 0:
		c.streak(r)
	case config.Highest:
		r.value = max(r.value, min(n, catalog.MaxCount))
	case config.Distinct > 0:
		if r.value >= uint64(config.Distinct) || s.saw(c, r, key) {
			return
		}
		s.keySets = append(s.keySets, keySet{c, c.keys + uint32(r.value), key})
		s.values.put(valueKey(r.player, counterKey|(c.keys+uint32(r.value))), key)
		r.value++
	default:
		if n = min(s.capped(c, r, n), catalog.MaxCount-r.value); n == 0 {
			return
		}
		r.value += n
	}
	c.keep(r)
	if r.is == before {
		return
	}
	if r.spill = true; !r.moved {
		r.moved = true
		s.moving = append(s.moving, c)
	}
}

// keep notes the value, as one of the present period.
func (c *Counter) keep(r *running) {
	r.is[countValue] = r.value
	switch {
	case c.period.per == 0:
	case c.tallies != 0: // all players count in the same one
		r.is[countPeriod] = r.period
	default:
		r.is[countPeriod] = max(r.is[countPeriod], r.period)
	}
}

// streak counts the present period in a row with those before it.
func (c *Counter) streak(r *running) {
	last := r.is[countPeriod]
	if last >= r.period && r.value > 0 {
		return
	}
	if r.value == 0 {
		r.is[countMissed] = 0
	} else {
		r.is[countMissed] += r.period - last - 1
	}
	r.value = min(r.value+1, catalog.MaxCount)
}

// capped returns how much of n the cap leaves, and counts it.
func (s *Sight) capped(c *Counter, r *running, n uint64) uint64 {
	if c.Config.Most.Per == 0 {
		return n
	}
	now, _ := s.numberOf(&c.cap)
	used := uint64(0)
	if r.is[countCapPeriod] >= now {
		used = r.is[countCapped]
	}
	if n = min(n, c.Config.Most.Count-min(used, c.Config.Most.Count)); n > 0 {
		r.is[countCapped], r.is[countCapPeriod] = used+n, max(r.is[countCapPeriod], now)
	}
	return n
}

// saw reports whether a distinct counter has counted a key in its present period.
func (s *Sight) saw(c *Counter, r *running, key uint64) bool {
	for i := range uint32(r.value) {
		v := uint64(0)
		if c.realm {
			v = s.tally(c.keys + i)
		} else {
			v = s.counter(r.player, c.keys+i)
		}
		if v == key {
			return true
		}
	}
	return false
}

// keyOf returns what stands for a key of a distinct counter: 64 bits of its SHA-256, not 0.
func keyOf(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return max(binary.LittleEndian.Uint64(sum[:]), 1)
}

// writeMoves writes the counters that were moved since it was called last. Those of players are of the current
// one.
func (r *drawing) writeMoves() {
	if len(r.moving) == 0 {
		return
	}
	for _, c := range r.moving {
		run := &r.run[c.index]
		if c.tallies != 0 {
			c.numberMove(&r.effects, run)
		}
		for i, v := range run.is {
			if v != run.state[i] {
				r.setNumber(c, c.number(i, run.place), v)
			}
		}
		for _, k := range r.keySets {
			if k.of == c {
				r.setNumber(c, k.num, k.key)
			}
		}
		run.state, run.moved = run.is, false
		for _, q := range c.quests {
			r.reached(q)
		}
	}
	r.moving, r.keySets = r.moving[:0], r.keySets[:0]
}

// setNumber writes one of a counter's numbers.
func (r *effects) setNumber(c *Counter, num uint32, v uint64) {
	if c.realm {
		r.w.More(store.Tally, uint64(num), v)
	} else {
		r.w.Change(store.Set, num, v)
	}
}

// Standing returns where a counter stands for the current player, and the time stamp at which it begins at 0 again:
// of a streak, if nothing is counted until then. 0: never.
func (s *Sight) Standing(c *Counter) (value uint64, resets int64) {
	r := s.stands(c, s.player)
	if r.value == 0 {
		return 0, 0
	}
	if c.Config.Streak.Per == 0 {
		return r.value, s.ends(&c.period)
	}
	left := uint64(c.Config.Streak.Forgive) - min(r.is[countMissed], uint64(c.Config.Streak.Forgive))
	resets = s.now
	for n := r.period; n <= r.is[countPeriod]+left+1; n++ {
		resets = s.t.Zone.Next(c.period.per, resets)
	}
	return r.value, resets
}
