package store

import (
	"cmp"
	"iter"
	"slices"
	"sync"
)

// An order keeps players in the order of a counter: those with the next deadline first, or those
// with the highest value. A catalog's event declares it, with an Order effect. From then on every
// Set of the counter moves its player.
//
// An order is not state of its own. It follows from the counters, as an index follows from a table.
// So a snapshot and the hash have only which orders there are, and loading builds them again.

// By says what an order goes by. The numbers are part of the format.
type By uint8

const (
	// Unordered drops an order.
	Unordered By = 0
	// ByTime has players ascending by a counter, then by number.
	ByTime By = 1
	// ByStanding has players by three consecutive counters: a value, the number of the move with
	// which it was reached, and the period that it belongs to. Each period is an order of its own:
	// players descending by value, then ascending by move, then by number.
	ByStanding By = 2
)

// counters returns how many consecutive counters an order goes by.
func (by By) counters() uint32 {
	if by == ByStanding {
		return 3
	}
	return 1
}

// orders holds the orders of a realm. A player is in an order if its first counter is not 0.
//
// One goroutine writes. Each order has a lock, which the writer holds while it moves players and a
// reader while it copies what it wants: at most MaxRanks players. Whoever holds the lock waits for
// no other one. Moves happen once an event's effects are applied, while the writer still holds the
// guards of the players. So the holder of a player's guard finds the player where the player's
// counters say.
type orders struct {
	of   *players
	mask uint64    // has bit n%64 if counter n may be one that an order goes by
	list []*order  // ascending by counter; replaced, never changed: readers share it
	left []leaving // what the current event changes
}

// order is one of them.
type order struct {
	counter uint32 // the first
	by      By

	mu      sync.Mutex
	nodes   *rankNodes // of all periods
	periods []*period  // ascending; ByTime has only 0
	last    uint64     // position of the last change
	dropped bool
}

// period is the part of an order that has the players of a period. It is not empty.
type period struct {
	num uint64
	ranks
}

// place is where a player stands in an order, if in is set.
type place struct {
	period uint64
	key    rankKey
	in     bool // the player is in the order
}

// leaving is where a player stood before the current event.
type leaving struct {
	order  *order
	player uint32
	was    place
}

// placeOf returns where a player with these holdings stands.
func (o *order) placeOf(player uint32, h []slot) (p place) {
	first := counterSlot | o.counter
	i := search(h, first)
	if i == len(h) || h[i].key != first {
		return place{}
	}
	p.in, p.key.player = true, player
	if o.by == ByTime {
		p.key.a = h[i].value()
		return p
	}
	p.key.a = ^h[i].value()
	for _, sl := range h[i+1 : min(i+3, len(h))] {
		switch sl.key {
		case first + 1:
			p.key.b = sl.value()
		case first + 2:
			p.period = sl.value()
		}
	}
	return p
}

// value returns the counter of a player who stands at k.
func (o *order) value(k rankKey) uint64 {
	if o.by == ByStanding {
		return ^k.a
	}
	return k.a
}

// find returns the order that goes by a counter, nil if there is none.
func (s *orders) find(counter uint32) *order {
	i, ok := slices.BinarySearchFunc(s.list, counter, func(o *order, n uint32) int {
		switch {
		case n < o.counter:
			return 1
		case n >= o.counter+o.by.counters():
			return -1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return s.list[i]
}

// first is find for the first counter of an order.
func (s *orders) first(counter uint32) *order {
	if o := s.find(counter); o != nil && o.counter == counter {
		return o
	}
	return nil
}

// ordered reports whether an order may go by a counter.
func (s *orders) ordered(counter uint32) bool { return s.mask>>(counter%64)&1 != 0 }

// leave notes where a player with block b stands, before a counter of the player changes.
func (s *orders) leave(b *block, counter uint32) {
	o := s.find(counter)
	if o == nil {
		return
	}
	if n := len(s.left); n > 0 && s.left[n-1].order == o && s.left[n-1].player == b.num {
		return
	}
	s.left = append(s.left, leaving{o, b.num, o.placeOf(b.num, b.holdings())})
}

// settle moves the players whose counters the event at a position has changed.
func (s *orders) settle(pos uint64) {
	if len(s.left) > 1 {
		slices.SortStableFunc(s.left, func(a, b leaving) int {
			return cmp.Or(cmp.Compare(a.order.counter, b.order.counter), cmp.Compare(a.player, b.player))
		})
	}
	var o *order // locked
	for i := range s.left {
		l := &s.left[i]
		if i > 0 && l.order == s.left[i-1].order && l.player == s.left[i-1].player {
			continue // where the player stood after the first change
		}
		if o != l.order {
			if o != nil {
				o.mu.Unlock()
			}
			o = l.order
			o.mu.Lock()
		}
		o.move(l.was, o.placeOf(l.player, s.of.at(l.player).holdings()), pos)
	}
	if o != nil {
		o.mu.Unlock()
	}
	s.left = s.left[:0]
}

// move moves a player. The lock must be held.
func (o *order) move(from, to place, pos uint64) {
	if from == to {
		return
	}
	o.last = pos
	if from.in {
		i, there := o.find(from.period)
		if !there || !o.periods[i].remove(from.key) {
			panic("store: an order has lost a player")
		}
		if p := o.periods[i]; p.len() == 0 {
			p.drop()
			o.periods = slices.Delete(o.periods, i, i+1)
		}
	}
	if to.in {
		i, there := o.find(to.period)
		if !there {
			o.periods = slices.Insert(o.periods, i, &period{to.period, newRanks(o.nodes)})
		}
		o.periods[i].insert(to.key)
	}
}

// find returns the index of a period, or where it would be, and whether it is there.
func (o *order) find(num uint64) (i int, there bool) {
	if n := len(o.periods); n > 0 && o.periods[n-1].num <= num { // most moves are in the newest one
		return n - 1 + int(min(num-o.periods[n-1].num, 1)), o.periods[n-1].num == num
	}
	return slices.BinarySearchFunc(o.periods, num, func(p *period, num uint64) int { return cmp.Compare(p.num, num) })
}

// of returns the ranks of a period, nil if nobody is in it.
func (o *order) of(num uint64) *ranks {
	if i, there := o.find(num); there {
		return &o.periods[i].ranks
	}
	return nil
}

// declare declares or drops an order. next is the number of the next counter.
func (s *orders) declare(counter uint32, by By, next uint32, pos uint64) error {
	s.settle(pos)
	if by == Unordered {
		return s.drop(counter)
	}
	o, err := s.add(counter, by, next, pos)
	if err == nil {
		o.build(s.of)
	}
	return err
}

// add declares an order that nobody is in yet.
func (s *orders) add(counter uint32, by By, next uint32, pos uint64) (*order, error) {
	if by > ByStanding || counter > next || by.counters() > next-counter {
		return nil, inconsistent("an order of kind %d of counter number %d, of %d counters", by, counter, next)
	}
	if len(s.list) >= MaxOrders {
		return nil, inconsistent("more than %d orders", MaxOrders)
	}
	for n := counter; n < counter+by.counters(); n++ {
		if s.find(n) != nil {
			return nil, inconsistent("two orders of counter number %d", n)
		}
	}
	o := &order{counter: counter, by: by, last: pos}
	i, _ := slices.BinarySearchFunc(s.list, counter, func(o *order, n uint32) int { return cmp.Compare(o.counter, n) })
	s.show(slices.Insert(slices.Clone(s.list), i, o))
	return o, nil
}

func (s *orders) drop(counter uint32) error {
	o := s.first(counter)
	if o == nil {
		return inconsistent("no order of counter number %d is there to be dropped", counter)
	}
	s.show(slices.DeleteFunc(slices.Clone(s.list), func(of *order) bool { return of == o }))
	o.mu.Lock()
	o.periods, o.nodes, o.dropped = nil, nil, true
	o.mu.Unlock()
	return nil
}

func (s *orders) show(list []*order) {
	s.list, s.mask = list, 0
	for _, o := range list {
		for n := range o.by.counters() {
			s.mask |= 1 << ((o.counter + n) % 64)
		}
	}
}

// build fills an order that readers do not know yet with the players. It looks at all of them
// twice, to take no more memory than their keys.
func (o *order) build(p *players) {
	o.periods, o.nodes = nil, newRankNodes(o.by == ByStanding)
	var counts []int // by period
	for at := range o.places(p) {
		i, there := o.find(at.period)
		if !there {
			o.periods = slices.Insert(o.periods, i, &period{at.period, newRanks(o.nodes)})
			counts = slices.Insert(counts, i, 0)
		}
		counts[i]++
	}
	if len(counts) == 0 {
		return
	}
	keys := make([][]rankKey, len(counts))
	for i, n := range counts {
		keys[i] = make([]rankKey, 0, n)
	}
	for at := range o.places(p) {
		i, _ := o.find(at.period)
		keys[i] = append(keys[i], at.key)
	}
	for i, of := range keys {
		sortRanks(of)
		o.periods[i].fill(of)
		keys[i] = nil
	}
}

// places yields where the players stand who are in the order.
func (o *order) places(p *players) iter.Seq[place] {
	return func(yield func(place) bool) {
		for n := range uint32(p.count()) {
			if at := o.placeOf(n, (*block)(p.mem.pointer(p.addrs.get(n))).holdings()); at.in && !yield(at) {
				return
			}
		}
	}
}

// Ordered yields the orders there are, by the first counter of each, ascending.
func (s *orders) Ordered() iter.Seq2[uint32, By] {
	return func(yield func(uint32, By) bool) {
		for _, o := range s.list {
			if !yield(o.counter, o.by) {
				return
			}
		}
	}
}

// The reads of the writer. They see the events applied so far. An order is named by its first
// counter.

// Earliest returns the first player of an order by time, and the player's counter. ok is false if
// nobody is in the order, or there is no such order.
func (s *orders) Earliest(counter uint32) (player uint32, value uint64, ok bool) {
	o := s.first(counter)
	if o == nil || len(o.periods) == 0 {
		return 0, 0, false
	}
	k := o.periods[0].at(0)
	return k.player, o.value(k), true
}

// EachEarliest yields the first players of an order by time, at most so many, in order, with their
// counters. The state must not change meanwhile.
func (s *orders) EachEarliest(counter uint32, most int) iter.Seq2[uint32, uint64] {
	return func(yield func(uint32, uint64) bool) {
		o := s.first(counter)
		if o == nil || len(o.periods) == 0 {
			return
		}
		for k := range o.periods[0].from(0, most) {
			if !yield(k.player, o.value(k)) {
				return
			}
		}
	}
}

// Rank returns the rank of a player in the standing of the period that the player's counters say,
// 1 for the first. ok is false if the player is not in it.
func (s *orders) Rank(counter, player uint32) (rank uint64, ok bool) {
	o := s.first(counter)
	if o == nil || int(player) >= s.of.count() {
		return 0, false
	}
	at := o.placeOf(player, s.of.at(player).holdings())
	if !at.in {
		return 0, false
	}
	return o.of(at.period).before(at.key) + 1, true
}

// Standing returns how many players are in the standing of a period.
func (s *orders) Standing(counter uint32, period uint64) uint64 {
	if o := s.first(counter); o != nil {
		return o.standing(period)
	}
	return 0
}

func (o *order) standing(period uint64) uint64 {
	if r := o.of(period); r != nil {
		return r.len()
	}
	return 0
}

// Latest returns the latest period in whose standing somebody is. ok is false if nobody is in any.
func (s *orders) Latest(counter uint32) (period uint64, ok bool) {
	o := s.first(counter)
	if o == nil || len(o.periods) == 0 {
		return 0, false
	}
	return o.periods[len(o.periods)-1].num, true
}

// Ranked is a player in a standing.
type Ranked struct {
	Rank   uint64 // from 1
	Player uint32
	Value  uint64
}

// Top appends to into the players of the standing of a period from a rank on, at most so many, in
// order.
func (s *orders) Top(counter uint32, period, from uint64, most int, into []Ranked) []Ranked {
	if o := s.first(counter); o != nil {
		into = o.page(period, from, most, into)
	}
	return into
}

func (o *order) page(period, from uint64, most int, into []Ranked) []Ranked {
	r := o.of(period)
	if r == nil || from == 0 {
		return into
	}
	for k := range r.from(from-1, most) {
		into = append(into, Ranked{from, k.player, o.value(k)})
		from++
	}
	return into
}

// MaxRanks is the most players that a reader gets at a time: the writer waits for no more.
const MaxRanks = 1000

// Ranking is what a reader sees of a standing.
type Ranking struct {
	Of     uint64   // how many players are in it
	Ranks  []Ranked // in order
	IDs    []string // of the players of Ranks
	Last   uint64   // a position that covers this: of the last change to the order
	Period uint64
}

// ReadTop returns the players of the standing of a period from a rank on, at most most and at most
// MaxRanks, all as of one position. ok is false if there is no such order.
func (s *readers) ReadTop(counter uint32, period, from uint64, most int) (r Ranking, ok bool) {
	o := s.order(counter)
	if o == nil {
		return Ranking{}, false
	}
	o.mu.Lock()
	r = o.read(period, from, most)
	ok = !o.dropped
	o.mu.Unlock()
	s.nameRanks(&r)
	return r, ok
}

// ReadAround returns the players around a player in the standing of the player's period: so many
// before the player and so many after, and the player, at most MaxRanks together, all as of one
// position. me is the player's index in Ranks. ok is false if there is no such order or the player
// is not in it.
func (s *readers) ReadAround(counter uint32, id string, before, after int) (r Ranking, me int, ok bool) {
	o := s.order(counter)
	if o == nil {
		return Ranking{}, 0, false
	}
	before = min(max(before, 0), MaxRanks-1)
	after = min(max(after, 0), MaxRanks-1-before)
	b, guard, _ := follow(s.players, id)
	if b != nil {
		at := o.placeOf(b.num, b.holdings())
		o.mu.Lock()
		if ok = at.in && !o.dropped; ok {
			rank := o.of(at.period).before(at.key) + 1
			me = int(min(uint64(before), rank-1))
			r = o.read(at.period, rank-uint64(me), me+1+after)
		}
		o.mu.Unlock()
	}
	guard.Unlock()
	s.nameRanks(&r)
	return r, me, ok
}

// order returns the order whose first counter this is, for a reader.
func (s *readers) order(counter uint32) *order {
	for _, o := range s.shown.Load().orders {
		if o.counter == counter {
			return o
		}
	}
	return nil
}

func (o *order) read(period, from uint64, most int) Ranking {
	of := o.standing(period)
	n := min(uint64(max(most, 0)), MaxRanks, of-min(of, max(from, 1)-1))
	return Ranking{Of: of, Last: o.last, Period: period, Ranks: o.page(period, from, int(n), make([]Ranked, 0, n))}
}

// nameRanks fills in the ids, which never change.
func (s *readers) nameRanks(r *Ranking) {
	numbers := Numbers{s}
	r.IDs = make([]string, len(r.Ranks))
	for i := range r.Ranks {
		r.IDs[i] = numbers.PlayerID(r.Ranks[i].Player)
	}
}
