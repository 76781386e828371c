package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// holding writes what happens to holds.
type holding struct{ hosting }

// keepHolds is how long it can be read what became of a hold, milliseconds.
const keepHolds = 24 * 3600 * 1000

func (holdKind) write(d *drawing, c *Command) {
	r := holding{hosting{d}}
	h := hold{id: c.ID, is: holdOpen, refund: c.Hold.Refund, one: c.Hold.One, asked: uint64(r.steady)}
	h.until = h.asked + uint64(c.Hold.For)
	for i := range c.Members {
		m := &c.Members[i]
		if !h.one {
			r.w.More(store.Member)
		}
		r.pool = noPool
		who := m.who(&r.Sight)
		p := part{kind: m.Kind, player: who, by: who, pool: noPool}
		r.holdPart(c, m, &p)
		h.parts = append(h.parts, p)
		r.writeMoves()
	}
	if h.refund {
		r.draws = r.draws[:0] // they are not made yet
	}
	r.alone = h.one
	r.counted(1, 1)
	r.record(r.notes.newKey(recordDue).num(h.until).and(dueHold).bytes(h.id), nil)
	for _, p := range h.who() {
		r.record(r.notes.newKey(recordHeld).short(p).bytes(h.id), nil)
	}
	for i := range h.parts {
		p := &h.parts[i]
		for _, l := range p.promised {
			r.keeps(keptCodes, l.Item, l.Quantity)
		}
		if p.draws > 0 {
			r.keeps(keptDraws, p.pool, p.draws)
		}
		for _, t := range p.taken {
			r.keeps(keptTaken, t.pool, uint64(t.n)) // of any pool: a later catalog may make it a box
		}
	}
	r.keepHold(&h)
}

// boxOf returns the box with a pool's number, nil if the pool is none.
func boxOf(t *Tables, num uint32) *Pool {
	if pt := poolOf(t, num); pt != nil && pt.raffle {
		return pt
	}
	return nil
}

// poolOf returns the pool with a number, nil if the catalog in force does not have it.
func poolOf(t *Tables, num uint32) *Pool {
	if uint64(num) >= uint64(len(t.PoolByNum)) { // noPool, too, on 32 bits
		return nil
	}
	return t.PoolByNum[num]
}

// keepHold writes what the state has of a hold.
func (r holding) keepHold(h *hold) {
	r.notes.value = h.append(r.notes.value[:0])
	r.record(r.notes.newKey(recordHold).bytes(h.id), r.notes.value)
}

// holdPart carries out a member of a hold, and notes what of it is held.
func (r holding) holdPart(c, m *Command, p *part) {
	switch {
	case m.Kind == KindDraw && c.Hold.Refund:
		r.reserve(p)
	case m.Kind == KindDraw:
		r.aside = &heldDraw{p}
		r.writeDraw()
		r.aside = nil
	case m.Kind == KindGrant:
		r.arrive(p.player)
		for _, st := range m.stacks {
			p.lay(r.drawing, st.Item, st.Quantity)
		}
	case c.atOnce():
		m.Kind.of().write(r.drawing, m)
	default:
		r.turn(p.player)
		if m.Kind == KindTransfer {
			p.to = m.whom(&r.Sight)
			if r.isNew(p.to) {
				r.turn(p.to)
				r.turn(p.player)
			}
		}
		for _, st := range m.stacks {
			r.keep(store.Hold, st.Item, st.Quantity)
			p.takes = addTo(p.takes, st.Item, st.Quantity)
		}
	}
}

// reserve takes the price of the command's next draw, and does not make it yet.
func (r holding) reserve(p *part) {
	dr, sets := r.nextDraw()
	r.arrive(dr.player)
	for _, st := range dr.cost.price {
		r.keep(store.Hold, st.Item, st.Quantity*dr.cost.times)
		p.takes = addTo(p.takes, st.Item, st.Quantity*dr.cost.times)
	}
	for _, s := range sets {
		r.w.Change(store.Set, s.counter, s.value)
	}
	p.pool, p.draws, p.free = dr.pool.Num, dr.count, dr.cost.free
}

// lay gives the current player some of an item, and holds it. What is beyond what the player can hold is promised.
func (p *part) lay(r *drawing, item uint32, q uint64) {
	got := q
	if c := r.t.CapOf(item); c != nil {
		got = min(q, c.room(r.has(r.player, item)))
	}
	if got < q {
		r.w.More(store.Promise, uint64(item), q-got)
		p.more = addTo(p.more, item, q-got)
	}
	if got == 0 {
		return
	}
	before := r.balance(r.player, item)
	r.change(store.Gain, item, got)
	r.values.put(valueKey(r.player, item), before+got)
	hosting{r}.keep(store.Hold, item, got)
	p.gains = addTo(p.gains, item, got)
}

// heldDraw is where the outcomes of a held draw go.
type heldDraw struct{ *part }

func (h *heldDraw) took(r *drawing, pt *Pool, entry uint32) {
	i := slices.IndexFunc(h.taken, func(t taking) bool { return t.pool == pt.Num && t.entry == entry })
	if i < 0 {
		i = len(h.taken)
		h.taken = append(h.taken, taking{pt.Num, entry, 0})
	}
	h.taken[i].n++
}

func (h *heldDraw) codes(r *drawing, lists []uint32) {
	for _, list := range lists {
		taken, _ := r.coded.get(uint64(list))
		r.coded.put(uint64(list), taken+1)
		h.promised = addTo(h.promised, list, 1)
	}
}

func (h *heldDraw) spent(b *Budget, q uint64) {
	i := slices.IndexFunc(h.budgets, func(s spending) bool { return s.counter == b.Counter })
	if i < 0 {
		i = len(h.budgets)
		h.budgets = append(h.budgets, spending{b.Counter, b.Per, 0})
	}
	h.budgets[i].n += q
}

func (h *heldDraw) moment(m *Moments) { h.moments = addTo(h.moments, m.Counter, 1) }

// ends writes that a hold is open no more.
func (r holding) ends(h *hold, is uint64, by string) {
	r.w.Drop(r.notes.newKey(recordDue).num(h.until).and(dueHold).bytes(h.id))
	for _, p := range h.who() {
		r.w.Drop(r.notes.newKey(recordHeld).short(p).bytes(h.id))
	}
	h.is, h.by, h.parts = is, by, nil
	h.until = uint64(r.steady) + keepHolds
	r.record(r.notes.newKey(recordDue).num(h.until).and(dueHold).bytes(h.id), nil)
	r.counted(0, -1)
	r.keepHold(h)
}

// forgetHold writes that it can be read no more what became of a hold.
func (r holding) forgetHold(h *hold) {
	r.w.Drop(r.notes.newKey(recordDue).num(h.until).and(dueHold).bytes(h.id))
	r.w.Drop(r.notes.newKey(recordHold).bytes(h.id))
	r.counted(-1, 0)
}

// unkeep writes that a part keeps nothing from others any more. Boxes that are finished then are added to done.
func (r holding) unkeep(p *part, done []*Pool) []*Pool {
	for _, l := range p.promised {
		r.frees(keptCodes, l.Item, l.Quantity)
	}
	if p.draws > 0 {
		r.frees(keptDraws, p.pool, p.draws)
	}
	for _, t := range p.taken {
		r.frees(keptTaken, t.pool, uint64(t.n))
		if pt := boxOf(r.t, t.pool); pt != nil && keptOf(r.kept.taken, t.pool) == 0 {
			done = append(done, pt)
		}
	}
	return done
}

// cancel gives back what a hold has taken, and takes back what it would have given.
func (r holding) cancel(h *hold, is uint64, by string) {
	for i := range h.parts {
		p := &h.parts[i]
		r.turn(p.player)
		for _, st := range p.takes {
			r.keep(store.Release, st.Item, st.Quantity)
		}
		for _, st := range p.gains {
			r.keep(store.Forfeit, st.Item, st.Quantity)
		}
		if pt := poolOf(r.t, p.pool); p.draws > 0 && pt != nil {
			r.unuse(pt, p, h.asked)
		}
		for _, t := range p.taken {
			r.putBack(t)
		}
		for _, s := range p.budgets {
			if have := r.tally(s.counter); s.per == catalog.PerForever || r.instant().lasts(s.per, int64(h.asked)) {
				r.setTally(s.counter, have-min(have, s.n))
			}
		}
		for _, m := range p.moments {
			r.setTally(m.Item+2, momentsBack(r.t, m.Item, r.tally(m.Item+2)+m.Quantity))
		}
		r.unkeep(p, nil)
	}
	r.ends(h, is, by)
}

// momentsBack returns how many of some moments are due, after some have come back.
func momentsBack(t *Tables, counter uint32, due uint64) uint64 {
	for _, pt := range t.BottomUp {
		for _, m := range pt.Moments {
			if m.Counter == counter && m.Config.Pass {
				return min(due, 1)
			}
		}
	}
	return due
}

// unuse gives back the limits of draws that were not made, as far as their time is not over.
func (r holding) unuse(pt *Pool, p *part, asked uint64) {
	first := len(r.sets)
	for i := range pt.Limits {
		r.unuseOf(&pt.Limits[i], p, p.draws, asked)
	}
	if pt.Free != nil && p.free > 0 {
		r.unuseOf(pt.Free, p, p.free, asked)
	}
	for _, s := range r.sets[first:] {
		r.w.Change(store.Set, s.counter, s.value)
	}
	r.sets = r.sets[:first]
}

func (r holding) unuseOf(l *Limit, p *part, n, asked uint64) {
	if l.Per != catalog.PerForever && !r.instant().counts(l, asked<<drawBits) {
		return
	}
	used := r.used(l, p.player)
	r.setUsed(l, p.player, used-min(used, n))
}

// putBack puts entries back into the pool's stock, but no more than were drawn: a box may have been filled since, or a
// reverse may have put back what was drawn from the one before.
func (r holding) putBack(t taking) {
	if t.n = uint32(min(uint64(t.n), drawnOf(&r.Sight, t))); t.n == 0 {
		return
	}
	if r.pool != t.pool {
		r.w.Effect(store.Pool, t.pool)
		r.pool = t.pool
	}
	r.w.More(store.Return, uint64(t.entry), uint64(t.n))
	pt := poolOf(r.t, t.pool)
	if pt == nil || int(t.entry) >= len(pt.Entries) || !pt.Entries[t.entry].Present || !pt.Entries[t.entry].Limited {
		return
	}
	was := r.Left(pt, t.entry)
	key := entryKey(pt, t.entry)
	taken, _ := r.taken.get(key)
	r.taken.put(key, taken-uint64(t.n))
	r.raise(pt, t.entry, was, r.Left(pt, t.entry))
}

// raise updates the supply after a limited entry was put back, of which some were left, and more are left now.
func (r *stocks) raise(pt *Pool, entry uint32, was, left uint64) {
	o, g := &r.pools[pt.Num], pt.Entries[entry].Branch
	if g == NoBranch || was == left {
		return
	}
	dead := !r.hasStock(pt, g)
	o.left[g] += min(left, maxCounted) - min(was, maxCounted)
	target := pt.Branches[g].Target
	if dead && (target == nil || r.pools[target.Num].live > 0) {
		if o.live++; o.live == 1 {
			r.reviveAbove(pt)
		}
	}
	if was == 0 || pt.raffle {
		r.setWeight(pt, entry, r.fixedWeight(pt, entry))
	}
}

// confirm gives what a hold gives.
func (r holding) confirm(h *hold, by string) {
	var done []*Pool
	for i := range h.parts {
		p := &h.parts[i]
		if !h.one {
			r.w.More(store.Member)
		}
		r.pool = noPool
		r.turn(p.player)
		for _, st := range p.takes {
			r.keep(store.Forfeit, st.Item, st.Quantity)
		}
		switch p.kind {
		case KindConsume:
			r.each(r.t.consumes, p.player, p.takes, 1)
		case KindTransfer:
			r.turn(p.to)
			for _, st := range p.takes {
				r.change(store.Gain, st.Item, st.Quantity)
			}
		}
		for _, st := range p.gains {
			r.keep(store.Release, st.Item, st.Quantity)
		}
		for _, st := range p.more {
			r.change(store.Gain, st.Item, st.Quantity)
		}
		r.each(r.t.gains, p.player, p.gains, 1)
		r.each(r.t.gains, p.player, p.more, 1)
		done = r.confirmDraws(p, done)
		r.writeMoves()
		for _, pt := range done {
			if r.pools[pt.Num].live == 0 {
				r.turn(p.player)
				r.boxEmptied(pt)
				r.endDraw()
				r.writeMoves()
			}
		}
		done = done[:0]
	}
	r.alone = h.one
	r.ends(h, holdConfirmed, by)
}

// confirmDraws makes the draws of a part that were not made yet, and gives what others have chosen.
func (r holding) confirmDraws(p *part, done []*Pool) []*Pool {
	done = r.unkeep(p, done)
	if p.draws > 0 {
		r.each(r.t.spends, p.player, p.takes, 1)
		dr, _ := r.nextDraw()
		r.drawEvery(dr)
		r.endDraw()
		return done
	}
	for _, t := range p.taken {
		if pt := poolOf(r.t, t.pool); pt != nil && int(t.entry) < len(pt.Entries) {
			r.drawn(pt.Entries[t.entry].moves, p.player, uint64(t.n))
		}
	}
	for _, l := range p.promised {
		for range l.Quantity {
			taken, _ := r.coded.get(uint64(l.Item))
			r.coded.put(uint64(l.Item), taken+1)
			r.w.More(store.GiveCode, uint64(l.Item), r.state.CodesGiven(l.Item)+taken)
		}
	}
	return done
}
