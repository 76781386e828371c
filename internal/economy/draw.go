package economy

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
)

// checkDraw reports whether a Draw will succeed, whatever is chosen.
func (s *State) checkDraw(cmd *Command, ev *Event) (Status, uint32) {
	d := &s.d
	ev.Player = s.see(cmd.Player)
	ev.Count = uint32(cmd.Count)
	pt := s.findPool(cmd.Pool)
	if pt == nil {
		ev.Pool = s.poolRef(cmd.Pool)
		return UnknownPool, 0
	}
	ev.Pool = Ref{Num: pt.num, Known: true, ID: cmd.Pool}
	player, count := ev.Player.Num, uint64(cmd.Count)
	d.direct = d.direct && len(pt.price) == 0
	if status := s.checkPool(pt, player, cmd.Count); status != OK {
		return status, pt.num
	}
	for _, p := range pt.price {
		if !s.take(player, p.item, p.quantity*count) { // below 2^53 × 1000
			return InsufficientItems, p.item
		}
	}
	if !s.inStock(pt, count) {
		return SoldOut, pt.num
	}
	if item, ok := s.fitsAll(pt, player, count); !ok {
		return BalanceOverflow, item
	}
	if d.direct { // nobody asks again
		return OK, 0
	}
	d.draws = append(d.draws, drawn{player, pt, count})
	d.given(pt.maxGain * count)
	for i := range pt.limits {
		l := &pt.limits[i]
		used := s.limitUsed(l, player, d.now)
		d.values.put(valueKey(player, limitSlot|l.num), used+count)
	}
	return OK, 0
}

// inStock reports whether a pool is sure to stand count draws after those that
// the command makes before.
func (s *State) inStock(pt *poolTable, count uint64) bool {
	if pt.endless {
		return true
	}
	need := count
	for i := range s.d.draws {
		if dr := &s.d.draws[i]; dr.pool.overlaps(pt) {
			need += dr.count
		}
	}
	if need == 1 {
		return s.odds[pt.num].live > 0
	}
	return s.sure(pt, need) == need
}

// fitsAll reports whether the most that count draws can give of each item fits
// the player's balance, and otherwise for which item it does not.
func (s *State) fitsAll(pt *poolTable, player uint32, count uint64) (item uint32, ok bool) {
	if s.peak+s.d.extra+pt.maxGain*count <= MaxQuantity {
		return 0, true
	}
	for _, g := range pt.gains {
		if !s.fits(player, g.item, g.quantity*count) {
			return g.item, false
		}
	}
	return 0, true
}

// checkPool reports why a pool would not let the player draw count times now.
func (s *State) checkPool(pt *poolTable, player uint32, count int) Status {
	c := pt.config
	switch {
	case c.StartsAt != 0 && s.d.now < c.StartsAt:
		return NotStarted
	case c.EndsAt != 0 && s.d.now >= c.EndsAt:
		return Ended
	case count > int(c.MaxCount):
		return CountTooLarge
	}
	for i := range pt.limits {
		l := &pt.limits[i]
		if used := s.limitUsed(l, player, s.d.now); used+uint64(count) > min(l.draws, maxLimitCount) {
			return LimitReached
		}
	}
	return OK
}

// choose makes the draws of an event that was found possible; more says that
// others follow in the command.
func (s *State) choose(ev *Event, more bool) {
	pt := s.current.pools[ev.Pool.Num]
	for i := range ev.Count {
		s.d.stepwise = more || i+1 < ev.Count
		if pt.fixed {
			entry := s.chooseEntry(s.pools[pt.num], pt)
			ev.Choices = append(ev.Choices, Choice{Entry: entry})
		} else {
			s.chooseReward(pt, ev)
		}
	}
	if more {
		return
	}
	for i := len(s.d.undo) - 1; i >= 0; i-- {
		u := &s.d.undo[i]
		mustSet(u.pool, u.entry, u.weight)
	}
	s.d.undo = s.d.undo[:0]
}

// chooseReward makes one draw: it chooses an entry, through nested pools.
func (s *State) chooseReward(pt *poolTable, ev *Event) {
	for {
		entry := s.chooseEntry(s.pools[pt.num], pt)
		e := &pt.entries[entry]
		if e.kind == catalog.RewardPool {
			ev.Choices = append(ev.Choices, Choice{Entry: entry, Nested: true})
			pt = s.current.pools[e.pool]
			continue
		}
		ev.Choices = append(ev.Choices, Choice{Entry: entry, Ranged: uint8(e.ranged)})
		if e.ranged == 0 {
			return
		}
		for _, q := range e.items {
			if q.min != q.max {
				ev.Quantities = append(ev.Quantities, q.min+uniform(s.d.src, q.max-q.min+1))
			}
		}
		return
	}
}

// chooseEntry makes one step of a draw.
func (s *State) chooseEntry(p *poolState, pt *poolTable) uint32 {
	n, ok := p.sampler.Draw(s.d.src)
	if !ok {
		panic(fmt.Sprintf("economy: pool %q ran out in a draw that was found possible", p.id))
	}
	entry := uint32(n)
	if s.d.stepwise && pt.entries[entry].limited {
		s.takeStock(p, pt, entry)
	}
	return entry
}

// takeStock lowers a limited entry's tentative stock, and its weight in the sampler
// until choose puts it back.
func (s *State) takeStock(p *poolState, pt *poolTable, entry uint32) {
	key := uint64(pt.num)<<32 | uint64(entry)
	left, ok := s.d.left.get(key)
	if !ok {
		left = p.left[entry]
	}
	s.d.left.put(key, left-1)
	was, is := pt.weight(entry, left), pt.weight(entry, left-1)
	if was != is {
		s.lower(p, pt, entry, was, is)
	}
}

// lower sets a weight until choose puts it back. A pool that has nothing left
// takes the entries that lead to it along.
func (s *State) lower(p *poolState, pt *poolTable, entry uint32, was, is uint64) {
	s.d.undo = append(s.d.undo, undoSet{pool: p, entry: entry, weight: was})
	mustSet(p, entry, is)
	if p.sampler.Total() > 0 {
		return
	}
	for _, up := range pt.parents {
		above := s.pools[up.pool.num]
		for _, e := range up.pool.groups[up.group].entries {
			if w := above.sampler.Weight(int(e)); w > 0 {
				s.lower(above, up.pool, e, w, 0)
			}
		}
	}
}

// mustSet lowers or restores a weight within a total that New has accepted,
// which cannot overflow.
func mustSet(p *poolState, entry uint32, weight uint64) {
	if err := p.sampler.Set(int(entry), weight); err != nil {
		panic(fmt.Sprintf("economy: pool %q, entry %d, weight %d: %v", p.id, entry, weight, err))
	}
}

// applyDraw changes the state by a decoded or decided draw that ended OK.
func (s *State) applyDraw(ev *Event, pos uint64) error {
	pt, err := s.tableOf(ev.Pool)
	if err != nil {
		return err
	}
	player, err := s.meet(ev.Player, pos)
	if err != nil {
		return err
	}
	for _, p := range pt.price {
		if err := s.sub(player, p.item, p.quantity*uint64(ev.Count)); err != nil {
			return err
		}
	}
	at, quantities, b := pt, ev.Quantities, s.players.at(player)
	p := s.pools[pt.num]
	for _, c := range ev.Choices {
		if at == pt && s.giveCommon(b, p, pt, c, pos) {
			continue
		}
		e, err := s.drawEntry(at, c.Entry, pos)
		if err != nil {
			return err
		}
		if c.Nested != (e.kind == catalog.RewardPool) || (!c.Nested && int(c.Ranged) != e.ranged) {
			return wrongShape(at, e)
		}
		if c.Nested {
			at = s.current.pools[e.pool]
			continue
		}
		at = pt
		for i := range e.items {
			q := &e.items[i]
			n := q.min
			if q.min != q.max {
				n, quantities = quantities[0], quantities[1:]
				if n < q.min || n > q.max {
					return inconsistent("pool %q, entry %q: quantity %d outside %d to %d", pt.config.ID, e.id, n, q.min, q.max)
				}
			}
			if b, err = s.addTo(b, q.item, n); err != nil {
				return err
			}
		}
	}
	for i := range pt.limits {
		s.countLimit(&pt.limits[i], player, uint64(ev.Count))
	}
	return nil
}

// giveCommon is what applyDraw does for a choice of an entry without a stock that is common and gives an
// item of which the player has some. It reports false, and has done nothing, for any other.
func (s *State) giveCommon(b *block, p *poolState, pt *poolTable, c Choice, pos uint64) bool {
	if int(c.Entry) >= len(pt.entries) || c.Nested || c.Ranged != 0 {
		return false
	}
	e := &pt.entries[c.Entry]
	if !e.common || e.limited {
		return false
	}
	held := b.held(e.item)
	if held == nil || e.quantity > MaxQuantity-held.value() {
		return false
	}
	s.countDrawn(pt.num, p, c.Entry, pos)
	held.set(held.value() + e.quantity)
	item := &s.items[e.item]
	item.supply.add(e.quantity)
	s.raisePeak(item)
	return true
}

func wrongShape(pt *poolTable, e *entryTable) error {
	return inconsistent("pool %q, entry %q: its reward is not of the shape of the logged choice", pt.config.ID, e.id)
}

// tableOf returns the pool of the catalog in force that a reference names.
func (s *State) tableOf(r Ref) (*poolTable, error) {
	if !r.Known || int(r.Num) >= len(s.current.pools) || s.current.pools[r.Num] == nil {
		return nil, inconsistent("pool number %d is not in catalog version %d", r.Num, s.current.version)
	}
	return s.current.pools[r.Num], nil
}

// drawEntry takes one of an entry's stock.
func (s *State) drawEntry(pt *poolTable, entry uint32, pos uint64) (*entryTable, error) {
	return s.takeEntry(s.pools[pt.num], pt, entry, pos)
}

// takeEntry is drawEntry with the pool's state at hand.
func (s *State) takeEntry(p *poolState, pt *poolTable, entry uint32, pos uint64) (*entryTable, error) {
	if int(entry) >= len(pt.entries) || !pt.entries[entry].present {
		return nil, inconsistent("pool %q has no entry number %d in catalog version %d", p.id, entry, s.current.version)
	}
	e := &pt.entries[entry]
	if e.group == noGroup {
		return nil, inconsistent("pool %q, entry %q: drawn, with a weight of 0", p.id, e.id)
	}
	s.countDrawn(pt.num, p, entry, pos)
	if !e.limited {
		return e, nil
	}
	if p.left[entry] == 0 {
		return nil, inconsistent("pool %q, entry %q: a draw beyond its stock", p.id, e.id)
	}
	p.left[entry]--
	left := p.left[entry]
	if p.sampler != nil && (left == 0 || pt.config.Mode == catalog.ModeRaffle) {
		p.setWeight(entry, pt.weight(entry, left))
	}
	s.takeOdds(pt, e.group, left, pos)
	return e, nil
}
