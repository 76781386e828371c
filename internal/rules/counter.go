package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

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
	near   span   // of the numbers of this and other counters without a gap
	keys   uint32 // of a distinct counter: the first of what it has seen
	ranking
	index  int // in Tables.Counters
	realm  bool
	period period // that the value is of, or that a streak counts
	cap    period
	quests []*Quest // automatic ones that ask for it
}

// span is numbers of counters, from the first to the last.
type span struct{ first, last uint32 }

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
	d.spans()
}

// spans joins the numbers of counters without a gap: they are read together.
func (d *definer) spans() {
	all := slices.SortedFunc(slices.Values(d.t.Counters), func(a, b *Counter) int { return cmp.Compare(a.Num, b.Num) })
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].Num == all[to-1].Num+countWidth {
			to++
		}
		for _, c := range all[from:to] {
			c.near = span{all[from].Num, all[to-1].Num + countUsed - 1}
		}
		from = to
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
	manyOf  asOf // what many is of
}

// asOf says whose numbers were read last, and for which command.
type asOf struct {
	gen, player uint32
	span
}

// keySet is a key that a distinct counter has seen, and the number that keeps it.
type keySet struct {
	of  *Counter
	num uint32
	key uint64
}

// beginRuns forgets what was asked for.
func (s *tallying) beginRuns() {
	if len(s.t.Counters) == 0 {
		return
	}
	if s.runGen++; len(s.run) < len(s.t.Counters) || s.runGen == 0 {
		s.run, s.runGen, s.manyOf = make([]running, len(s.t.Counters)), 1, asOf{}
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
func (s *tallying) stands(c *Counter, player uint32) *running {
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
func (s *tallying) evict(c *Counter, r *running) {
	if !r.spill {
		return
	}
	for i, v := range r.is {
		s.values.put(valueKey(r.player, counterKey|c.number(i, r.place)), v)
	}
	s.spilled = true
}

func (s *tallying) load(c *Counter, r *running) {
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
		for _, n := range s.nearby(c, r.player) {
			if i := n.Counter - c.Num; i < countUsed {
				r.is[i] = n.Value
			}
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

// nearby returns what a player has in the state of a counter's numbers, and of those near it.
func (s *tallying) nearby(c *Counter, player uint32) []counterValue {
	if is := (asOf{s.runGen, player, c.near}); s.manyOf != is {
		s.many, s.manyOf = s.state.Counters(player, c.near.first, c.near.last, s.many[:0]), is
	}
	return s.many
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
func (s *tallying) moveBy(c *Counter, player uint32, n, key uint64) {
	r := s.stands(c, player)
	if !r.open {
		return
	}
	before, room := r.is, s.room(c, r)
	if room == 0 {
		return
	}
	switch config := c.Config; {
	case config.Streak.Per != 0:
		c.streak(r)
	case config.Distinct > 0:
		if s.saw(c, r, key) {
			return
		}
		s.keySets = append(s.keySets, keySet{c, c.keys + uint32(r.value), key})
		s.values.put(valueKey(r.player, counterKey|(c.keys+uint32(r.value))), key)
	}
	next, used := c.Move(r.value, room, n)
	if c.Config.Most.Per != 0 {
		s.useCap(c, r, used)
	}
	r.value = next
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

// Move returns where a counter stands after a fact of n, and how much of its room that takes. room is
// by how much it can still move: see [Facts]. The key of a distinct counter's fact must be new.
func (c *Counter) Move(value, room, n uint64) (next, used uint64) {
	switch config := c.Config; {
	case config.Highest:
		return max(value, min(n, room)), 0
	case config.Streak.Per != 0, config.Distinct > 0:
		n = 1
	}
	used = min(n, room)
	return min(value+used, catalog.MaxCount), used
}

// Whole returns by how much a counter can move that stands at 0 and has not moved yet.
func (c *Counter) Whole() uint64 {
	switch config := c.Config; {
	case config.Streak.Per != 0:
		return 1
	case config.Distinct > 0:
		return uint64(config.Distinct)
	case config.Most.Per != 0:
		return config.Most.Count
	}
	return catalog.MaxCount
}

// room returns by how much a counter can still move: see [Facts].
func (s *tallying) room(c *Counter, r *running) uint64 {
	whole := c.Whole()
	switch config := c.Config; {
	case !r.open, config.Streak.Per != 0 && r.is[countPeriod] >= r.period && r.value > 0:
		return 0
	case config.Distinct > 0:
		return whole - min(r.value, whole)
	case config.Most.Per != 0:
		return whole - min(s.usedCap(c, r), whole)
	}
	return whole
}

// streak notes which periods were missed before the present one is counted.
func (c *Counter) streak(r *running) {
	if r.value == 0 {
		r.is[countMissed] = 0
	} else {
		r.is[countMissed] += r.period - r.is[countPeriod] - 1
	}
}

// usedCap returns by how much a counter has moved in the present period of its cap.
func (s *tallying) usedCap(c *Counter, r *running) uint64 {
	if now, _ := s.numberOf(&c.cap); r.is[countCapPeriod] < now {
		return 0
	}
	return r.is[countCapped]
}

// useCap counts a move toward the cap.
func (s *tallying) useCap(c *Counter, r *running, n uint64) {
	now, _ := s.numberOf(&c.cap)
	r.is[countCapped], r.is[countCapPeriod] = s.usedCap(c, r)+n, max(r.is[countCapPeriod], now)
}

// Room implements [Facts].
func (s *Sight) Room(c *Counter) uint64 { return s.room(c, s.stands(c, s.player)) }

// Keys returns what a distinct counter has counted for the current player.
func (s *Sight) Keys(c *Counter) (all []uint64) {
	r := s.stands(c, s.player)
	for i := range uint32(r.value) {
		all = append(all, s.keyAt(c, r, i))
	}
	return all
}

// saw reports whether a distinct counter has counted a key in its present period.
func (s *tallying) saw(c *Counter, r *running, key uint64) bool {
	for i := range uint32(r.value) {
		if s.keyAt(c, r, i) == key {
			return true
		}
	}
	return false
}

func (s *tallying) keyAt(c *Counter, r *running, i uint32) uint64 {
	if c.realm {
		return s.tally(c.keys + i)
	}
	return s.counter(r.player, c.keys+i)
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
		for i := range run.is { // without a copy
			if v := run.is[i]; v != run.state[i] {
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
		return r.value, s.ends(&c.period, r.is[countPeriod])
	}
	left := uint64(c.Config.Streak.Forgive) - min(r.is[countMissed], uint64(c.Config.Streak.Forgive))
	return r.value, s.after(c.period.per, r.is[countPeriod]+left+1)
}

// Together reports whether where the counters stand for a player depends on others: one is the realm's, or ranks
// players.
func (t *counts) Together() bool {
	return slices.ContainsFunc(t.Counters, func(c *Counter) bool { return c.realm || c.Config.Ranked.Is })
}
