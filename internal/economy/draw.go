package economy

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
)

func (s *State) decideDraw(cmd *Command, ev *Event) (Status, uint32) {
	d := &s.d
	ev.Player = s.see(cmd.Player)
	ev.Count = uint32(cmd.Count)
	pt := s.current.find(cmd.Pool)
	if pt == nil {
		ev.Pool = s.poolRef(cmd.Pool)
		return UnknownPool, 0
	}
	ev.Pool = Ref{Num: pt.num, Known: true, ID: cmd.Pool}
	d.direct = d.direct && cmd.Count == 1 && len(pt.price) == 0
	if status := s.checkPool(pt, ev.Player.Num, cmd.Count); status != OK {
		return status, pt.num
	}
	for _, p := range pt.price {
		if !s.take(ev.Player.Num, p.item, p.quantity*uint64(cmd.Count)) { // below 2^53 × 1000
			return InsufficientItems, p.item
		}
	}
	group := d.stepwise
	for i := range cmd.Count {
		d.stepwise = group || i < cmd.Count-1
		if status, subject := s.chooseReward(pt, ev); status != OK {
			d.stepwise = group
			return status, subject
		}
	}
	d.stepwise = group
	if !group { // nobody asks again
		return OK, 0
	}
	for i := range pt.limits {
		l := &pt.limits[i]
		used := s.limitUsed(l, ev.Player.Num, d.now)
		d.values.put(valueKey(ev.Player.Num, limitSlot|l.num), used+uint64(cmd.Count))
	}
	return OK, 0
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

// chooseReward makes one draw: it chooses an entry, through nested pools, and
// adds what it gives to the player's tentative balance.
func (s *State) chooseReward(pt *poolTable, ev *Event) (Status, uint32) {
	for {
		p := s.pools[pt.num]
		n, ok := p.sampler.Draw(s.d.src)
		if !ok {
			return SoldOut, pt.num
		}
		entry := uint32(n)
		if s.d.stepwise {
			s.takeStock(p, pt, entry)
		}
		e := &pt.entries[entry]
		if e.kind == catalog.RewardPool {
			ev.Choices = append(ev.Choices, Choice{Entry: entry, Nested: true})
			pt = s.current.pools[e.pool]
			continue
		}
		ev.Choices = append(ev.Choices, Choice{Entry: entry, Ranged: uint8(e.ranged)})
		for _, q := range e.items {
			n := q.min
			if q.min != q.max {
				n += uniform(s.d.src, q.max-q.min+1)
				ev.Quantities = append(ev.Quantities, n)
			}
			if !s.give(ev.Player.Num, q.item, n) {
				return BalanceOverflow, q.item
			}
		}
		return OK, 0
	}
}

// takeStock lowers an entry's tentative stock, and its weight in the sampler
// until Decide puts it back.
func (s *State) takeStock(p *poolState, pt *poolTable, entry uint32) {
	if !pt.entries[entry].limited {
		return
	}
	key := uint64(pt.num)<<32 | uint64(entry)
	left, ok := s.d.left.get(key)
	if !ok {
		left = p.left[entry]
	}
	s.d.left.put(key, left-1)
	was, is := pt.weight(entry, left), pt.weight(entry, left-1)
	if was != is {
		s.d.undo = append(s.d.undo, undoSet{pool: p, entry: entry, weight: was})
		mustSet(p, entry, is)
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
	at, quantities := pt, ev.Quantities
	for _, c := range ev.Choices {
		e, err := s.drawEntry(at, c.Entry, pos)
		if err != nil {
			return err
		}
		if c.Nested != (e.kind == catalog.RewardPool) || (!c.Nested && int(c.Ranged) != e.ranged) {
			return inconsistent("pool %q, entry %q: its reward is not of the shape of the logged choice", at.config.ID, e.id)
		}
		if c.Nested {
			at = s.current.pools[e.pool]
			continue
		}
		at = pt
		for _, q := range e.items {
			n := q.min
			if q.min != q.max {
				n, quantities = quantities[0], quantities[1:]
				if n < q.min || n > q.max {
					return inconsistent("pool %q, entry %q: quantity %d outside %d to %d", pt.config.ID, e.id, n, q.min, q.max)
				}
			}
			if err := s.add(player, q.item, n); err != nil {
				return err
			}
		}
	}
	for i := range pt.limits {
		s.countLimit(&pt.limits[i], player, uint64(ev.Count))
	}
	return nil
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
	p := s.pools[pt.num]
	if int(entry) >= len(pt.entries) || !pt.entries[entry].present {
		return nil, inconsistent("pool %q has no entry number %d in catalog version %d", p.id, entry, s.current.version)
	}
	e := &pt.entries[entry]
	p.last = pos
	p.drawn[entry]++
	if !e.limited {
		return e, nil
	}
	if p.left[entry] == 0 {
		return nil, inconsistent("pool %q, entry %q: a draw beyond its stock", p.id, e.id)
	}
	p.left[entry]--
	if p.sampler != nil {
		if w := pt.weight(entry, p.left[entry]); w != p.sampler.Weight(int(entry)) {
			mustSet(p, entry, w)
		}
	}
	return e, nil
}
