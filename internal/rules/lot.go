package rules

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/internal/store"
)

// Units of an item can last for a time. A lot is how many of them go at one moment. A player's lots
// stand in counters of the player: pairs of when the lot ends (steady time, milliseconds) and how
// many units are in it, in no order. A free pair is zero twice. The balance is the sum of the lots and
// of the units that stay: those that came before the catalog said that the item lasts, or after
// it said so no more.
//
// Units that come make a lot, or join the one that ends at the same moment. What is used comes from
// the lot that ends first, and last from the units that stay. A transfer keeps the ends of what it
// moves. If the item extends, each gain makes a lot that begins where the latest one ends.
//
// A player has at most MaxLots of an item. So a command that could need more fails, whatever it
// draws. The first half of a command therefore keeps lots too, with the same functions. There draws
// make lots of no units, as nobody knows how many come. From then on a lot of that player that is used
// up still counts, as those units might be used in its place. So the second half never has more
// lots than the first.

// MaxLots is the most lots of an item that a player can have.
const MaxLots = 100

// MaxLasting is the most items of a realm that can ever last, over all its catalogs.
const MaxLasting = 1000

const lotsWidth = 2 * MaxLots

// lotsName returns the name of the counters of an item's lots.
func lotsName(item string) string { return lotsPrefix + item }

const lotsPrefix = "/lots/"

// Lots says how an item lasts.
type Lots struct {
	Item    uint32
	Counter uint32 // the first of its counters
	Lasts   int64  // of a unit that comes now, milliseconds; 0: it stays
	Extend  bool
}

// lasting is which items have lots: those that last by the catalog in force, or did by an earlier one.
type lasting struct {
	Lasting NumSet
	lots    []Lots         // ascending by counter
	lotsOf  map[uint32]int // by item: the place in lots
	due     uint32         // number of the counter dueName; noCounter: nothing ever falls due
}

// LotsOf returns how an item lasts, nil if it never did.
func (t *lasting) LotsOf(item uint32) *Lots {
	if !t.Lasting.Has(item) {
		return nil
	}
	return &t.lots[t.lotsOf[item]]
}

// lasting numbers the counters of lots and of deadlines.
func (d *definer) lasting() error {
	t := &d.t.lasting
	t.lotsOf = map[uint32]int{}
	add := func(item string, l Lots) {
		l.Counter = d.counters(lotsName(item), lotsWidth)
		t.Lasting.Add(l.Item)
		t.lots = append(t.lots, l)
	}
	for i := range d.t.Catalog.Items {
		if it := &d.t.Catalog.Items[i]; it.Lasts > 0 {
			add(it.ID, Lots{Item: d.t.ItemNum[it.ID], Lasts: it.Lasts, Extend: it.Extend})
		}
	}
	for name := range d.state.CounterNames() {
		item, ok := strings.CutPrefix(name, lotsPrefix)
		if !ok {
			continue
		}
		if num, named := d.state.ItemNum(item); named && !t.Lasting.Has(num) {
			add(item, Lots{Item: num})
		}
	}
	if len(t.lots) > MaxLasting {
		return tooMany("items that last", len(t.lots), MaxLasting)
	}
	slices.SortFunc(t.lots, func(a, b Lots) int { return cmp.Compare(a.Counter, b.Counter) })
	for i := range t.lots {
		t.lotsOf[t.lots[i].Item] = i
	}
	if len(t.lots) > 0 {
		d.deadlines()
	}
	return nil
}

// lastingOf returns which of some gains last.
func (t *lasting) lastingOf(gains []Stack) (some []Stack) {
	for _, st := range gains {
		if l := t.LotsOf(st.Item); l != nil && l.Lasts > 0 {
			some = append(some, st)
		}
	}
	return some
}

// Lot is how many units of an item go at one moment.
type Lot struct {
	Until    uint64 // steady time; 0: they stay
	Quantity uint64 // 0: of a draw, or used up, and counts on
	pair     uint32 // which pair of counters it stands in
}

// shelf is the lots of an item that a player has, ascending by end.
type shelf struct {
	player uint32
	of     *Lots
	all    []Lot
	drawn  bool // draws of the command can add units
}

// shelves are the lots that the command at hand has to do with.
type shelves struct {
	shelved int        // how many of shelf there are; the others are memory
	shelfOf []shelf    // by player and item, in the order of the first use
	moved   []movedLot // what the transfer at hand moves
	moves   bool       // a transfer is at hand
	pairs   []counterValue
}

// movedLot is a lot, or a part of one, on its way to another player.
type movedLot struct {
	Lot
	item  uint32
	drawn bool
}

func (b *shelves) resetLots() { b.shelved, b.moved, b.moves = 0, b.moved[:0], false }

// shelf returns a player's lots of an item at this point of the command.
func (r *accounts) shelf(player uint32, of *Lots) *shelf {
	b := &r.shelves
	for i := range b.shelfOf[:b.shelved] {
		if s := &b.shelfOf[i]; s.player == player && s.of == of {
			return s
		}
	}
	if b.shelved == len(b.shelfOf) {
		b.shelfOf = append(b.shelfOf, shelf{})
	}
	s := &b.shelfOf[b.shelved]
	b.shelved++
	b.pairs = r.state.Counters(player, of.Counter, of.Counter+lotsWidth-1, b.pairs[:0])
	*s = shelf{player: player, of: of, all: lotsIn(of, b.pairs, s.all[:0])}
	return s
}

// lotsIn appends the lots in some counters of an item, all ascending, to into, by their ends.
func lotsIn(of *Lots, counters []counterValue, into []Lot) []Lot {
	for i := 0; i+1 < len(counters); i += 2 { // both of a pair are there, or neither
		into = append(into, Lot{counters[i].Value, counters[i+1].Value, (counters[i].Counter - of.Counter) / 2})
	}
	slices.SortFunc(into, func(a, b Lot) int { return cmp.Compare(a.Until, b.Until) })
	return into
}

// free returns the lowest pair that no lot stands in.
func (s *shelf) free() (pair uint32) {
	var taken [(MaxLots + 63) / 64]uint64
	for i := range s.all {
		taken[s.all[i].pair/64] |= 1 << (s.all[i].pair % 64)
	}
	for taken[pair/64]>>(pair%64)&1 == 1 {
		pair++
	}
	return pair
}

// add adds units that go at a moment, and returns their lot, nil if there are too many lots.
func (s *shelf) add(until, q uint64) *Lot {
	i, found := slices.BinarySearchFunc(s.all, until, func(l Lot, until uint64) int { return cmp.Compare(l.Until, until) })
	if !found {
		if len(s.all) == MaxLots {
			return nil
		}
		s.all = slices.Insert(s.all, i, Lot{Until: until, pair: s.free()})
	}
	s.all[i].Quantity += q
	return &s.all[i]
}

// next returns when units go that come now.
func (s *shelf) next(steady int64) uint64 {
	from := uint64(steady)
	if n := len(s.all); n > 0 && s.of.Extend {
		from = max(from, s.all[n-1].Until)
	}
	return from + uint64(s.of.Lasts)
}

// use takes units from the lots that end first. It calls f with each lot that it takes from and how
// many, at last with a lot that has no end if some of those stay. Lots that are used up are gone,
// unless draws can have added to them.
func (s *shelf) use(q uint64, f func(l *Lot, taken uint64)) {
	i := 0
	for ; i < len(s.all) && q > 0; i++ {
		l := &s.all[i]
		n := min(q, l.Quantity)
		l.Quantity -= n
		q -= n
		f(l, n)
	}
	if q > 0 {
		f(&Lot{}, q)
	}
	if !s.drawn {
		s.all = slices.DeleteFunc(s.all, func(l Lot) bool { return l.Quantity == 0 })
	}
}

// The first half of a command. The player's balance was checked and changed already.

// takeUnits uses units of a player. If they are on the way to another one, it keeps their ends.
func (r *accounts) takeUnits(player, item uint32, q uint64) {
	of := r.t.LotsOf(item)
	if of == nil {
		return
	}
	s := r.shelf(player, of)
	s.use(q, func(l *Lot, n uint64) {
		if r.moves {
			r.moved = append(r.moved, movedLot{Lot{Until: l.Until, Quantity: n}, item, s.drawn})
		}
	})
}

// placeUnits gives units to a player, and reports whether there is room for their lots.
func (r *accounts) placeUnits(player, item uint32, q uint64) bool {
	of := r.t.LotsOf(item)
	if of == nil {
		return true
	}
	s := r.shelf(player, of)
	if r.moves {
		for _, m := range r.moved {
			if m.item != item {
				continue
			}
			s.drawn = s.drawn || m.drawn
			if m.Until > 0 && s.add(m.Until, m.Quantity) == nil {
				return false
			}
		}
		return true
	}
	return of.Lasts == 0 || s.add(s.next(r.steady), q) != nil
}

// placeDrawn makes room for the lots that draws from a pool can make. If there is none, it returns the
// item.
func (r *accounts) placeDrawn(pt *Pool, player uint32, count uint64) (item uint32, ok bool) {
	for _, most := range pt.lasting {
		of := r.t.LotsOf(most.Item)
		s := r.shelf(player, of)
		s.drawn = true
		lots := uint64(1)
		if of.Extend { // each gain has at least one unit
			lots = min(most.Quantity, pt.Picks) * count
		}
		for range min(lots, MaxLots+1) {
			if s.add(s.next(r.steady), 0) == nil {
				return most.Item, false
			}
		}
	}
	return 0, true
}

// roomForLots reports whether there is room for the lots that one more draw can make, after all that the
// command has given.
func (r *accounts) roomForLots(pt *Pool, player uint32) bool {
	for _, most := range pt.lasting {
		of, lots := r.t.LotsOf(most.Item), uint64(1)
		if of.Extend {
			lots = min(most.Quantity, pt.Picks)
		}
		if uint64(len(r.shelf(player, of).all))+lots > MaxLots {
			return false
		}
	}
	return true
}

// The second half.

// changeLots writes what becomes of the current player's lots after an item was gained or spent.
func (r *effects) changeLots(v store.Verb, item uint32, q uint64) {
	s := r.shelf(r.player, r.t.LotsOf(item))
	switch {
	case v == store.Spend:
		s.use(q, func(l *Lot, n uint64) {
			if r.moves {
				r.moved = append(r.moved, movedLot{Lot{Until: l.Until, Quantity: n}, item, false})
			}
			if l.Until > 0 {
				r.writeLot(s, l, l.Quantity == 0)
			}
		})
	case r.moves:
		for _, m := range r.moved { // all of them, or those that end first if the rest is mailed
			if m.item != item {
				continue
			}
			n := min(m.Quantity, q)
			if q -= n; n > 0 && m.Until > 0 {
				r.addLot(s, m.Until, n)
			}
		}
	case s.of.Lasts > 0:
		r.addLot(s, s.next(r.steady), q)
	}
}

func (r *effects) addLot(s *shelf, until, q uint64) {
	l := s.add(until, q)
	if l == nil {
		panic("rules: a command has more lots than were checked")
	}
	r.writeLot(s, l, l.Quantity == q)
}

// writeLot writes a lot that has changed: both counters of its pair if it comes or goes.
func (r *effects) writeLot(s *shelf, l *Lot, both bool) {
	at := s.of.Counter + 2*l.pair
	switch {
	case !both:
	case l.Quantity == 0:
		r.w.Change(store.Set, at, 0)
		r.gone(s.player, l.Until)
	default:
		r.w.Change(store.Set, at, l.Until)
		r.comes(s.player, l.Until)
	}
	r.w.Change(store.Set, at+1, l.Quantity)
}

// moveItems writes a transfer of items some of which have lots.
func (r *effects) moveItems(from, to uint32, items []Stack) {
	r.moves, r.moved = true, r.moved[:0]
	r.turn(from)
	r.writeItems(store.Spend, items)
	r.turn(to)
	r.writeItems(store.Gain, items)
	r.moves = false
}

// Lots have deadlines: see due.go.

type lotSource struct{}

func (lotSource) earliest(r *effects, player uint32) uint64 {
	first := uint64(math.MaxUint64)
	for i := range r.shelfOf[:r.shelved] {
		if s := &r.shelfOf[i]; s.player == player && len(s.all) > 0 {
			first = min(first, s.all[0].Until)
		}
	}
	r.eachShelf(player, func(of *Lots, counters []counterValue) {
		for i := range r.shelfOf[:r.shelved] {
			if s := &r.shelfOf[i]; s.player == player && s.of == of {
				return // as the command has left it
			}
		}
		for i := 0; i+1 < len(counters); i += 2 {
			first = min(first, counters[i].Value)
		}
	})
	return first
}

func (lotSource) settle(r *effects, player uint32) {
	r.eachShelf(player, func(of *Lots, _ []counterValue) {
		s := r.shelf(player, of)
		due, n := uint64(0), 0
		for n < len(s.all) && s.all[n].Until <= uint64(r.steady) {
			due += s.all[n].Quantity
			n++
		}
		if n > 0 {
			r.change(store.Spend, of.Item, due) // from these lots: they end first
		}
	})
}

// eachShelf calls f for each item of which the state has lots of a player, with their counters,
// ascending by counter.
func (r *effects) eachShelf(player uint32, f func(of *Lots, counters []counterValue)) {
	all := r.t.lots
	if len(all) == 0 {
		return
	}
	r.held = r.state.Counters(player, all[0].Counter, all[len(all)-1].Counter+lotsWidth-1, r.held[:0])
	eachLots(all, r.held, f)
}

// eachLots calls f for each item whose lots are in some counters, ascending, with those.
func eachLots(all []Lots, counters []counterValue, f func(of *Lots, counters []counterValue)) {
	for len(counters) > 0 {
		c := counters[0].Counter
		i, found := slices.BinarySearchFunc(all, c, func(l Lots, c uint32) int { return cmp.Compare(l.Counter, c) })
		if !found {
			i--
		}
		if i < 0 || c >= all[i].Counter+lotsWidth {
			counters = counters[1:] // of something else
			continue
		}
		n, _ := searchCounter(counters, all[i].Counter+lotsWidth)
		f(&all[i], counters[:n])
		counters = counters[n:]
	}
}

// ItemLots is the lots of an item.
type ItemLots struct {
	Item uint32
	Lots []Lot // by end
}

// Lots returns the lots in a player's counters, which are ascending, by the number of the item.
func (t *Tables) Lots(counters []store.CounterValue) (all []ItemLots) {
	eachLots(t.lots, counters, func(of *Lots, counters []counterValue) {
		all = append(all, ItemLots{of.Item, lotsIn(of, counters, nil)})
	})
	slices.SortFunc(all, func(a, b ItemLots) int { return cmp.Compare(a.Item, b.Item) })
	return all
}
