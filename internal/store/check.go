package store

import (
	"bytes"
	"math"
)

// Check verifies the invariants that hold at every position: an item's supply is the sum of its
// balances, balances are within bounds, no code is in a list twice, and indexes and orders agree
// with what they index. Stock cannot be below zero by its representation. It takes time in proportion to the
// state.
func (s *State) Check() error {
	if err := s.names.checkSupply(&s.players); err != nil {
		return err
	}
	if err := s.codes.check(s.players.count()); err != nil {
		return err
	}
	if err := s.orders.check(); err != nil {
		return err
	}
	if err := s.records.check(); err != nil {
		return err
	}
	n := s.ids.head
	if n == 0 && s.ids.floor != 0 {
		return inconsistent("no request id was forgotten, and ids from before %d are refused", s.ids.floor)
	}
	for at, r := range s.ids.from(n) {
		id := answerID(r.answer)
		if got, ok := findAs(&s.ids, id, s.ids.key.hashBytes(id), isErased(r.answer)); !ok || &got.answer[0] != &r.answer[0] || at != n {
			return inconsistent("request id %q: the index does not find number %d, counted as %d", id, at, n)
		}
		if r.version > s.catalog.Version {
			return inconsistent("request id %q has catalog version %d, but version %d is in force", id, r.version, s.catalog.Version)
		}
		n++
	}
	if n != s.ids.tail {
		return inconsistent("%d request ids are kept, %d counted", n-s.ids.head, s.ids.count())
	}
	return nil
}

// checkSupply checks players, and that each item's supply is the sum of its balances and of what is held.
func (n *names) checkSupply(p *players) error {
	items := n.items
	sums := make([]sum, len(items))
	for num := range uint32(p.count()) {
		id := p.PlayerID(num)
		if id == "" && p.at(num).slots == 0 { // it is erased
			continue
		}
		if got := p.lookup(id, p.key.hash(id)); got == nil || got.num != num || p.at(num) != p.block(content(0, p.addrs.get(num))) {
			return inconsistent("the index does not find player %q", id)
		}
		want := uint16(p.key.hash(id) % playerGuards)
		if head, page := p.at(num), p.addrs.pages.own[num/pageLen]; head.guard != want || page.guards[num%pageLen] != want {
			return inconsistent("player %q: guards %d and %d, want %d", id, head.guard, page.guards[num%pageLen], want)
		}
		prev := int64(-1)
		for _, sl := range p.at(num).holdings() {
			v := sl.value()
			if int64(sl.key) <= prev || v == 0 || !n.known(sl) {
				return inconsistent("player %q: slot with key %d, value %d after key %d", id, sl.key, v, prev)
			}
			prev = int64(sl.key)
			if sl.key&counterSlot == 0 {
				sums[sl.key&^heldSlot].add(v)
			}
		}
	}
	for i := range items {
		it := &items[i]
		if n.peak < maxPeak && (it.supply.hi != 0 || it.supply.lo > n.peak) {
			return inconsistent("item %q: the supply is %v, more than the highest supply, %d", it.id, it.supply, n.peak)
		}
		if sums[i] != it.supply {
			return inconsistent("item %q: the sum of the balances is %v, but the supply is %v", it.id, sums[i], it.supply)
		}
	}
	return nil
}

// check checks that records are in order, each in the leaf of its key, and counted.
func (r *records) check() error {
	n, size := 0, uint64(0)
	var prev []byte
	for i := range r.leaves {
		l := &r.leaves[i]
		if bytes.Compare(l.from, prev) < 0 || (i == 0) != (len(l.from) == 0) {
			return inconsistent("a leaf of records begins at %q, after %q", l.from, prev)
		}
		for j := range l.at {
			key, value := l.record(j)
			if bytes.Compare(key, prev) <= 0 || bytes.Compare(key, l.from) < 0 {
				return inconsistent("the record %q stands after %q, in a leaf that begins at %q", key, prev, l.from)
			}
			n, size, prev = n+1, size+uint64(len(key)+len(value)), key
		}
	}
	if n != r.n || size != r.size {
		return inconsistent("%d records of %d bytes, counted as %d of %d", n, size, r.n, r.size)
	}
	return nil
}

// check checks that each order has exactly the players who are in it, in order.
func (s *orders) check() error {
	for _, o := range s.list {
		want, got := uint64(0), uint64(0)
		for range o.places(s.of) {
			want++
		}
		for i, p := range o.periods {
			if i > 0 && p.num <= o.periods[i-1].num || p.len() == 0 {
				return inconsistent("the order of counter %d has period %d after %d, with %d players", o.counter, p.num, o.periods[i-1].num, p.len())
			}
			if err := p.check(); err != nil {
				return inconsistent("the order of counter %d, period %d: %v", o.counter, p.num, err)
			}
			for k := range p.from(0, math.MaxInt) {
				if int(k.player) >= s.of.count() || o.placeOf(k.player, s.of.at(k.player).holdings()) != (place{p.num, k, true}) {
					return inconsistent("the order of counter %d has player number %d at another place than the player's counters say", o.counter, k.player)
				}
			}
			got += p.len()
		}
		if got != want {
			return inconsistent("the order of counter %d has %d players; %d have the counter", o.counter, got, want)
		}
	}
	return nil
}

// check checks that each code is in its list once, that players got what was given, and that each
// used a code once.
func (s *codes) check(players int) error {
	total := uint64(0)
	for _, l := range s.lists {
		total += l.codes.Count()
		if l.codes.Given() > l.codes.Count() || l.left.Load() != l.codes.Count()-l.codes.Given() {
			return inconsistent("code list %q: %d of %d codes given, %d left", l.name, l.codes.Given(), l.codes.Count(), l.left.Load())
		}
		for n := range l.codes.Count() {
			code := l.codes.Code(n)
			sum := SumCode(code)
			if got, ok := l.find(code, sum.hash()); !ok || uint64(got) != n {
				return inconsistent("code list %q: the index does not find number %d", l.name, n)
			}
		}
		prev := Handed{}
		for n := range l.codes.Given() {
			g := l.codes.GivenTo(n)
			if int(g.Player) >= players || g.Position < prev.Position || g.Position > l.last.Load() {
				return inconsistent("code list %q: number %d given to player number %d at position %d", l.name, n, g.Player, g.Position)
			}
			prev = g
		}
		if err := l.checkUses(players); err != nil {
			return err
		}
	}
	if total != s.codes {
		return inconsistent("%d codes, counted as %d", total, s.codes)
	}
	return nil
}

// checkUses checks that each use of a code is there once, and counted.
func (l *codeList) checkUses(players int) error {
	prev, times, burnt := Handed{}, uint64(0), uint64(0)
	for n := range l.codes.Uses() {
		u := l.codes.Use(n)
		if int(u.Player) >= players || uint64(u.Code) >= l.codes.Count() || u.Position < prev.Position || u.Position > l.last.Load() {
			return inconsistent("code list %q: number %d used by player number %d at position %d", l.name, u.Code, u.Player, u.Position)
		}
		if found := l.timesUsedBy(u.Code, u.Player); found != 1 {
			return inconsistent("code list %q: number %d used %d times by player number %d", l.name, u.Code, found, u.Player)
		}
		prev = u
	}
	for code := range l.codes.at.n {
		if n := l.timesUsed(code); n > 0 {
			times, burnt = times+uint64(n), burnt+1
		}
	}
	if times != l.codes.Uses() || burnt != l.burnt {
		return inconsistent("code list %q: %d uses of %d codes, counted as %d of %d", l.name, l.codes.Uses(), l.burnt, times, burnt)
	}
	return nil
}
