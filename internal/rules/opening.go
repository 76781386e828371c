package rules

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A round can open what is staked: each unit is a draw of its entrant from the pool that it opens, with the
// entrant's tracks and conditions, and free of the pool's price, times and limits. What is drawn lies on the table
// until it is known who wins it.
//
// If the pools may not have enough in stock, nothing is opened, and everything goes back.

// table is what the entrants of a round have drawn.
type table struct {
	of    []laid   // by entrant
	value []uint64 // what that counts, at most maxValue
	total []Stack
}

// maxValue bounds what an entrant's draws count.
const maxValue = 1 << 62

// laid is what an entrant has drawn.
type laid []Stack

// lay puts some more on the table.
func (l *laid) lay(r *drawing, item uint32, q uint64) {
	r.w.More(store.Promise, uint64(item), q)
	*l = addTo(*l, item, q)
}

func (l *laid) took(r *drawing, pt *Pool, entry uint32) { r.fact(pt.Entries[entry].moves, r.player, 1) }
func (l *laid) codes(*drawing, []uint32)                {} // pools with codes cannot be opened
func (l *laid) spent(*Budget, uint64)                   {}
func (l *laid) moment(*Moments)                         {}

// opens is hosting of a round that opens what is staked.
type opens struct {
	hosting
	who []entrant // by place, once mayOpen has looked
}

// mayOpen reports whether all that is staked in a round can be opened.
func (r *opens) mayOpen(o *round, p *Round) bool {
	r.who = make([]entrant, o.entrants)
	for place := range r.who {
		e := &r.who[place]
		*e = r.notes.entrantOf(o.number, uint64(place))
		for _, st := range e.held {
			pt := p.openingOf(st.Item)
			if pt == nil || r.picks+st.Quantity*pt.Picks > catalog.MaxRequestPicks || !r.inStock(pt, e.player, st.Quantity) {
				return false
			}
			r.draws = append(r.draws, pendingDraw{player: e.player, pool: pt, count: st.Quantity})
			r.picks += st.Quantity * pt.Picks
		}
	}
	return true
}

// openAll opens what is staked in a round, entrant by entrant.
func (r *opens) openAll(o *round, p *Round) *table {
	t := &table{of: make([]laid, o.entrants), value: make([]uint64, o.entrants)}
	for place := range o.entrants {
		e := &r.who[place]
		r.turn(e.player)
		r.aside = &t.of[place]
		for _, st := range e.held {
			r.keep(store.Forfeit, st.Item, st.Quantity)
			r.pool = noPool
			r.drawEvery(&r.draws[r.next])
			r.next++
			r.endDraw()
		}
		r.aside = nil
		r.leaves(o, place, e)
		for _, st := range t.of[place] {
			t.total = addTo(t.total, st.Item, st.Quantity)
			t.value[place] = min(t.value[place]+p.worth(st), maxValue)
		}
		r.writeMoves()
	}
	return t
}

// settle is settleRound of a round that opens what is staked.
func (r *opens) settle(o *round, p *Round) {
	t := r.openAll(o, p)
	var order []uint64
	if n := int(p.Config.Winners.Count); p.Config.Winners.By == catalog.ByValue {
		order = r.winByValue(o, t, n)
	} else {
		r.win(o, p, n)
	}
	all := make([][]Stack, len(o.winners))
	left := slices.Clone(t.total)
	room := giving{hosting: r.hosting}
	for k := range left {
		if !p.Config.Winners.Everything {
			break
		}
		for i, part := range partsOf(&p.Config.Winners, t.total[k].Quantity, len(o.winners)) {
			if fits := room.take(o.winners[i].player, left[k].Item, part, 0); fits > 0 {
				all[i] = append(all[i], Stack{left[k].Item, fits})
				left[k].Quantity -= fits
			}
		}
	}
	for i := range o.winners {
		r.award(o, p, i, all[i], t.value[o.winners[i].place])
	}
	for i := len(o.winners); i < len(order); i++ {
		r.turn(r.who[order[i]].player)
		r.w.More(store.Place, uint64(i)+1, t.value[order[i]]<<1)
	}
	r.remain(o, t, left)
}

// remain gives what no winner gets to those who drew it. What does not fit there either is gone, and the event says so.
func (r *opens) remain(o *round, t *table, left []Stack) {
	for k := range left {
		for place := uint64(0); place < o.entrants && left[k].Quantity > 0; place++ {
			i := indexOf(t.of[place], left[k].Item)
			if i < 0 {
				continue
			}
			player := r.who[place].player
			q := min(left[k].Quantity, t.of[place][i].Quantity)
			left[k].Quantity -= q
			r.turn(player)
			fits := (&giving{hosting: r.hosting}).take(player, left[k].Item, q, 0)
			if fits > 0 {
				r.given(fits)
				r.change(store.Gain, left[k].Item, fits)
			}
			if q > fits {
				r.beyond(left[k].Item, q-fits, store.Cut)
			}
		}
	}
}

// worth returns what some of an item counts, at most maxValue.
func (p *Round) worth(st Stack) uint64 {
	i := indexOf(p.values, st.Item)
	if i < 0 {
		return 0
	}
	hi, lo := bits.Mul64(p.values[i].Quantity, st.Quantity)
	if hi > 0 {
		return maxValue
	}
	return min(lo, maxValue)
}

// winByValue makes those winners whose draws count most. Among equals, chance decides. It returns all entrants in
// that order.
func (r *opens) winByValue(o *round, t *table, n int) (order []uint64) {
	order = make([]uint64, o.entrants)
	for place := range order {
		order[place] = uint64(place)
	}
	for i := len(order) - 1; i > 0; i-- {
		j := r.below(uint64(i) + 1)
		order[i], order[j] = order[j], order[i]
	}
	slices.SortStableFunc(order, func(a, b uint64) int { return cmp.Compare(t.value[b], t.value[a]) })
	for _, place := range order[:min(n, len(order))] {
		o.winners = append(o.winners, winner{place: place, player: r.who[place].player})
	}
	return order
}
