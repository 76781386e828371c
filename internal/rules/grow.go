package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/internal/store"
)

// An item can grow: one more every so often, up to a bound, also when nobody looks. Nothing is written for
// that. A player's balance and the time from which on it grows say what it has grown to:
//
//	b, a = the balance, and the time
//	for each rate that holds from F to E, until now:
//	    s, e = the later of a and F, the earlier of E and now
//	    if s < e and b < to:
//	        n = the smaller of (e - s) / every and (to - b) / by, the first rounded down, the second up
//	        b, a = the smaller of b + n × by and to, s + n × every
//
// All times are steady. The rates stand in counters of the realm, one after the other: a catalog that changes
// how the item grows adds one, from its own moment on. The time is a counter of the player; 0 stands for the
// beginning of the first rate. An event that changes the item first writes what has grown, and moves the time on.
// At the bound nothing grows: the interval begins when the player falls below it.

// Bounds of what grows.
const (
	MaxRates   = 100  // how often an item can grow in another way
	MaxGrowing = 1000 // items of a realm that can ever grow, over all its catalogs
	rateWidth  = 4    // counters of a rate: from when, every, by, up to
)

// growsName and ratesName return the names of an item's counters: of a player, and of the realm.
func growsName(item string) string { return "/grows/" + item }
func ratesName(item string) string { return ratesPrefix + item }

const ratesPrefix = "/realm/growth/"

// Rate is how an item grows from a moment on.
type Rate struct {
	From, Every uint64 // milliseconds; Every 0: it does not grow
	By, To      uint64
}

// Growth is an item that grows, by the catalog in force or by an earlier one.
type Growth struct {
	ID    string
	Item  uint32
	Since uint32 // number of the player's counter
	rates uint32 // number of the first of the realm's
	next  Rate   // that of the catalog, without From
	Rates []Rate // ascending, from the state: see Tables.Grown
}

// growing is which items grow, or have grown.
type growing struct {
	Growing NumSet
	Growths []Growth
	grows   map[uint32]int // by item: the place in Growths
}

// GrowthOf returns how an item grows, nil if it never did.
func (t *growing) GrowthOf(item uint32) *Growth {
	if !t.Growing.Has(item) {
		return nil
	}
	return &t.Growths[t.grows[item]]
}

// growing numbers the counters of what grows.
func (d *definer) growing() error {
	t := &d.t.growing
	t.grows = map[uint32]int{}
	add := func(item string, num uint32, next Rate) {
		t.Growing.Add(num)
		t.grows[num] = len(t.Growths)
		t.Growths = append(t.Growths, Growth{ID: item, Item: num, next: next, Since: d.counters(growsName(item), 1), rates: d.counters(ratesName(item), rateWidth*MaxRates)})
	}
	for i := range d.t.Catalog.Items {
		if it := &d.t.Catalog.Items[i]; it.Grows.Every > 0 {
			add(it.ID, d.t.ItemNum[it.ID], Rate{Every: uint64(it.Grows.Every), By: it.Grows.By, To: it.Grows.To})
		}
	}
	for name := range d.state.CounterNames() {
		item, ok := strings.CutPrefix(name, ratesPrefix)
		if num, named := d.state.ItemNum(item); ok && named && !t.Growing.Has(num) {
			add(item, num, Rate{})
		}
	}
	if len(t.Growths) > MaxGrowing {
		return tooMany("items that grow", len(t.Growths), MaxGrowing)
	}
	return nil
}

// tallied has the realm's counters.
type tallied interface{ Tally(counter uint32) uint64 }

// Grown reads from the state how items grow. Call it once the event of the catalog was applied, before anybody
// else has the tables.
func (t *Tables) Grown(state tallied) {
	for i := range t.Growths {
		g, rates := &t.Growths[i], []Rate(nil)
		for n := range uint32(MaxRates) {
			at := g.rates + rateWidth*n
			r := Rate{state.Tally(at), state.Tally(at + 1), state.Tally(at + 2), state.Tally(at + 3)}
			if r.From == 0 {
				break
			}
			rates = append(rates, r)
		}
		if !slices.Equal(rates, g.Rates) { // else others may read them
			g.Rates = rates
		}
	}
}

// Enter writes the event of a prepared catalog for a batch with a time stamp: from then on items grow by it.
func (p *Prepared) Enter(state State, now int64, w *store.Writer) error {
	steady := uint64(max(1, max(now, state.Now())+state.Back()))
	w.Again(p.Event)
	for i := range p.Tables.Growths {
		g := &p.Tables.Growths[i]
		n, last := uint32(0), Rate{}
		for ; n < MaxRates && state.Tally(g.rates+rateWidth*n) > 0; n++ {
			at := g.rates + rateWidth*n
			last = Rate{0, state.Tally(at + 1), state.Tally(at + 2), state.Tally(at + 3)}
		}
		if last == g.next {
			continue
		}
		if n == MaxRates {
			w.Cut()
			return &ConflictError{Subject: "item " + state.ItemID(g.Item), Message: fmt.Sprintf("it has grown in %d ways, over all catalogs; it cannot grow in another one", n)}
		}
		for k, v := range []uint64{steady, g.next.Every, g.next.By, g.next.To} {
			if v > 0 {
				w.More(store.Tally, uint64(g.rates+rateWidth*n+uint32(k)), v)
			}
		}
	}
	w.End()
	return nil
}

// At returns what a balance has grown to at a steady time, if it grows since another one, and the time from
// which on it goes on to grow.
func (g *Growth) At(balance, since, steady uint64) (grown, from uint64) {
	for i := range g.Rates {
		r := &g.Rates[i]
		start, end := max(since, r.From), steady
		if i+1 < len(g.Rates) {
			end = min(end, g.Rates[i+1].From)
		}
		if start >= end || balance >= r.To || r.Every == 0 {
			continue
		}
		n := min((end-start)/r.Every, (r.To-balance+r.By-1)/r.By)
		balance, since = min(balance+n*r.By, r.To), start+n*r.Every
	}
	return balance, since
}

// now returns the rate that holds.
func (g *Growth) now() Rate {
	if len(g.Rates) == 0 {
		return Rate{}
	}
	return g.Rates[len(g.Rates)-1]
}

// Next returns the steady times at which a balance that grows since a time, see At, grows next, and is full; 0: it
// does not grow any more.
func (g *Growth) Next(balance, since uint64) (next, full uint64) {
	r := g.now()
	if r.Every == 0 || balance >= r.To {
		return 0, 0
	}
	since = max(since, r.From)
	return since + r.Every, since + r.Every*((r.To-balance+r.By-1)/r.By)
}

// grown returns what a player's balance in the state has grown to, and since when it grows.
func (s *scene) grown(player uint32, g *Growth) (balance, since uint64) {
	balance = s.state.Balance(player, g.Item)
	if player >= s.base { // new: it begins now
		return balance, uint64(s.steady)
	}
	return g.At(balance, s.counter(player, g.Since), uint64(s.steady))
}

// settleGrowth writes what an item of the current player has grown, before the first change of it in this event.
func (r *effects) settleGrowth(g *Growth) {
	key := valueKey(r.player, g.Item)
	if _, settled := r.values.get(key); settled {
		return
	}
	was := r.state.Balance(r.player, g.Item)
	balance, since := r.grown(r.player, g)
	r.values.put(key, balance)
	if balance == was {
		return
	}
	r.w.More(store.Grow, uint64(g.Item), balance-was)
	if balance < g.now().To { // else it does not matter
		r.growsSince(g, since)
	}
}

// goesOn says from when on an item of the current player grows, after its balance changed from another one. What it
// was at an earlier rate must not grow by that again.
func (r *effects) goesOn(g *Growth, before uint64) {
	rate := g.now()
	switch {
	case rate.Every > 0 && before >= rate.To && r.balance(r.player, g.Item) < rate.To:
		r.growsSince(g, uint64(r.steady))
	case len(g.Rates) > 1 && r.counter(r.player, g.Since) < rate.From:
		r.growsSince(g, rate.From)
	}
}

// begins makes all that grows, or has grown, begin for the current player, who has joined: nobody gains what has grown
// before.
func (r *effects) begins() {
	for i := range r.t.Growths {
		if g := &r.t.Growths[i]; len(g.Rates) > 0 {
			r.growsSince(g, uint64(r.steady))
		}
	}
}

func (r *effects) growsSince(g *Growth, since uint64) {
	r.w.Change(store.Set, g.Since, since)
	r.values.put(valueKey(r.player, counterKey|g.Since), since)
}
