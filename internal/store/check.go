package store

// Check verifies the invariants that hold at every position: an item's supply is the sum of its
// balances, balances are within bounds, no code is in a list twice, and indexes agree with what
// they index. Stock cannot be below zero by its representation. Check takes time in proportion to
// the state.
func (s *State) Check() error {
	if err := s.checkPlayers(); err != nil {
		return err
	}
	if err := s.checkCodes(); err != nil {
		return err
	}
	n := s.ids.head
	if n == 0 && s.ids.floor != 0 {
		return inconsistent("no request id was forgotten, and ids from before %d are refused", s.ids.floor)
	}
	for at, r := range s.ids.from(n) {
		id := answerID(r.answer)
		if got, ok := s.ids.find(id, s.ids.key.hashBytes(id)); !ok || &got.answer[0] != &r.answer[0] || at != n {
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

func (s *State) checkPlayers() error {
	items := s.names.items
	sums := make([]sum, len(items))
	for n := range uint32(s.players.count()) {
		id := s.players.id(n)
		if got, ok := s.players.find(id); !ok || got != n || s.players.at(n) != s.players.block(content(0, s.players.addrs.get(n))) {
			return inconsistent("the index does not find player %q", id)
		}
		want := uint16(s.players.key.hash(id) % playerGuards)
		if head, page := s.players.at(n), s.players.addrs.pages.own[n/pageLen]; head.guard != want || page.guards[n%pageLen] != want {
			return inconsistent("player %q: guards %d and %d, want %d", id, head.guard, page.guards[n%pageLen], want)
		}
		prev := int64(-1)
		for _, sl := range s.players.holdings(n) {
			v, counter := sl.value(), sl.key&counterSlot != 0
			known := counter && sl.key&^counterSlot < s.names.next || !counter && int(sl.key) < len(items) && v <= MaxQuantity
			if int64(sl.key) <= prev || v == 0 || !known {
				return inconsistent("player %q: slot with key %d, value %d after key %d", id, sl.key, v, prev)
			}
			prev = int64(sl.key)
			if !counter {
				sums[sl.key].add(v)
			}
		}
	}
	for i := range items {
		it := &items[i]
		if s.peak < maxPeak && (it.supply.hi != 0 || it.supply.lo > s.peak) {
			return inconsistent("item %q: the supply is %v, more than the highest supply, %d", it.id, it.supply, s.peak)
		}
		if sums[i] != it.supply {
			return inconsistent("item %q: the sum of the balances is %v, but the supply is %v", it.id, sums[i], it.supply)
		}
	}
	return nil
}
