package economy

import (
	"fmt"
	"unsafe"
)

// InconsistentError says that an event does not fit the state it is applied
// to. The log was tampered with, or written by something that is not Kuji.
type InconsistentError struct{ Message string }

func (e *InconsistentError) Error() string { return "event does not fit the state: " + e.Message }

func inconsistent(format string, args ...any) error {
	return &InconsistentError{Message: fmt.Sprintf(format, args...)}
}

// At says where in the log an event stands.
type At struct {
	Position uint64 // of its batch; never decreasing
	Index    uint32 // in its batch
	Time     int64  // the batch's time stamp, Unix milliseconds; never decreasing
}

// Apply changes the state by an event. raw is its encoded form, of
// which nothing is kept but a copy of what its request id needs. After an error, which is an
// *InconsistentError, the state must not be used again.
func (s *State) Apply(ev *Event, raw []byte, at At) error {
	if err := s.change(ev, at); err != nil {
		return err
	}
	if ev.ID != "" {
		hash := s.ids.key.hash(ev.ID)
		if _, ok := s.ids.findHashed(ev.ID, hash); ok {
			return requestAgain(ev.ID)
		}
		s.rememberHashed(hash, s.answer(ev, raw), at)
	} else if ev.Kind == KindCatalog {
		s.ids.forgetAged(&s.current.idempotency, s.now)
		s.forgetPast()
	}
	return nil
}

// change is Apply but for the idempotency window.
func (s *State) change(ev *Event, at At) error {
	if err := s.advance(at); err != nil {
		return err
	}
	if ev.Status != OK {
		return nil
	}
	err := s.applyOK(ev, at)
	s.unlockPools()
	s.players.release()
	return err
}

// advance moves the state to the place of the next event.
func (s *State) advance(at At) error {
	if at.Position < s.applied || at.Time < s.now {
		return s.goesBack(&at)
	}
	s.applied, s.now = at.Position, at.Time
	return nil
}

func (s *State) goesBack(at *At) error {
	return inconsistent("position %d, time %d after position %d, time %d", at.Position, at.Time, s.applied, s.now)
}

// rememberHashed keeps the answer to a request id that has this hash, and forgets what the
// window does not cover any more.
func (s *State) rememberHashed(hash uint32, answer []byte, at At) {
	s.ids.addHashed(hash, idRecord{position: at.Position, time: at.Time, version: s.current.version, index: at.Index, answer: answer})
	s.ids.forgetAged(&s.current.idempotency, at.Time)
	s.forgetPast()
}

// Abandon lets readers go that wait for an event which will never be applied to
// its end. The state must not be used again; what they see of it is of no meaning.
func (s *State) Abandon() {
	if pool, player := s.common[0], s.common[1]; pool != nil {
		closeBoth(pool, player)
		s.common[0] = nil
	}
	s.unlockPools()
	s.players.letGo()
}

func (s *State) applyOK(ev *Event, at At) error {
	switch ev.Kind {
	case KindCatalog:
		return s.applyCatalog(ev, at)
	case KindAtomic:
		for i := range ev.Members {
			if err := s.applyBody(&ev.Members[i], at.Position); err != nil {
				return err
			}
		}
		return nil
	}
	return s.applyBody(ev, at.Position)
}

func (s *State) applyBody(ev *Event, pos uint64) error {
	if ev.Kind == KindDraw {
		return s.applyDraw(ev, pos)
	}
	player, err := s.meet(ev.Player, pos)
	if err != nil {
		return err
	}
	switch ev.Kind {
	case KindGrant:
		return s.giveItems(player, ev.Items)
	case KindConsume:
		return s.takeItems(player, ev.Items)
	}
	to, err := s.meet(ev.To, pos)
	if err != nil {
		return err
	}
	if err := s.takeItems(player, ev.Items); err != nil {
		return err
	}
	return s.giveItems(to, ev.Items)
}

// giveItems gives a player items.
func (s *State) giveItems(player uint32, items []ItemRef) error {
	b := s.players.at(player)
	for {
		items = items[s.giveHeld(b.holdings(), items):]
		if len(items) == 0 {
			return nil
		}
		it := &items[0]
		if !it.Known || int(it.Num) >= len(s.items) {
			return inconsistent("item number %d is unknown", it.Num)
		}
		var err error
		if b, err = s.addTo(b, it.Num, it.Quantity); err != nil {
			return err
		}
		items = items[1:]
	}
}

// giveHeld is giveItems for the first items, as long as they are items that the
// player holds, and returns how many. Items that follow each other in the request
// mostly do so in the player's slots, too: each is looked for behind the one before
// it first. It calls hardly anything, so that what it works with stays in registers.
func (s *State) giveHeld(h []slot, items []ItemRef) int {
	known, at := s.items, 0
	for i := range items {
		it := &items[i]
		num, q := it.Num, it.Quantity
		if at >= len(h) || h[at].key != num {
			if at = seek(h, num); at >= len(h) || h[at].key != num {
				return i
			}
		}
		have := h[at].value()
		if !it.Known || int(num) >= len(known) || q > MaxQuantity-have {
			return i
		}
		h[at].set(have + q)
		at++
		item := &known[num]
		item.supply.add(q)
		s.raisePeak(item)
	}
	return len(items)
}

// takeItems takes items from a player. Each is looked for behind the one before it
// first: see giveHeld.
func (s *State) takeItems(player uint32, items []ItemRef) error {
	h, at := s.players.at(player).holdings(), 0
	for i := range items {
		it := &items[i]
		if !it.Known || int(it.Num) >= len(s.items) {
			return inconsistent("item number %d is unknown", it.Num)
		}
		item, q := &s.items[it.Num], it.Quantity
		if at >= len(h) || h[at].key != it.Num {
			at = seek(h, it.Num)
		}
		var have uint64
		if at < len(h) && h[at].key == it.Num {
			have = h[at].value()
		}
		switch {
		case q > have || have == 0:
			return inconsistent("item %q of player %q: %d taken of %d", item.id, s.players.id(player), q, have)
		case q < have:
			h[at].set(have - q)
			at++
		default:
			s.players.remove(player, at)
			h = s.players.at(player).holdings()
		}
		item.supply.sub(q)
	}
	return nil
}

// meet returns a player's number, making a new player with the starting grants
// where the event names one by id.
func (s *State) meet(r Ref, pos uint64) (uint32, error) {
	if r.Known {
		return r.Num, s.meetKnown(r.Num, pos)
	}
	return s.join(r.ID, s.players.key.hash(r.ID), pos)
}

func (s *State) meetKnown(n uint32, pos uint64) error {
	if int(n) >= s.players.count() {
		return inconsistent("player number %d of %d", n, s.players.count())
	}
	s.players.change(n, pos)
	return nil
}

func playerAgain(id string) error { return inconsistent("player %q is not new", id) }

func requestAgain(id string) error { return inconsistent("request id %q a second time", id) }

// join makes a new player of the id that has this hash.
func (s *State) join(id string, hash uint32, pos uint64) (uint32, error) {
	deferred := s.players.index.deferred
	if !deferred {
		if _, ok := s.players.findHashed(unsafe.Slice(unsafe.StringData(id), len(id)), hash); ok {
			return 0, playerAgain(id)
		}
	}
	if s.players.count() >= s.most {
		return 0, inconsistent("more than %d players", s.most)
	}
	if deferred {
		s.players.joined.push(s.unsettled)
	}
	n := s.players.addHashed(id, hash, uint32(len(s.current.start)+2))
	for _, st := range s.current.start {
		if err := s.add(n, st.item, st.quantity); err != nil {
			return 0, err
		}
	}
	s.players.change(n, pos)
	return n, nil
}

func (s *State) add(player, item uint32, q uint64) error {
	_, err := s.addTo(s.players.at(player), item, q)
	return err
}

// addTo gives an item to the player whose block b is, and returns the block, which
// it may have moved.
func (s *State) addTo(b *block, item uint32, q uint64) (*block, error) {
	h := b.holdings()
	at := seek(h, item)
	found := at < len(h) && h[at].key == item
	var have uint64
	if found {
		have = h[at].value()
	}
	it := &s.items[item]
	if q > MaxQuantity-have {
		return b, inconsistent("item %q of player %q: %d and %d more pass %d", it.id, b.id(), have, q, uint64(MaxQuantity))
	}
	if found {
		h[at].set(have + q)
	} else {
		num := b.num
		s.players.insert(num, at, newSlot(item, q))
		b = s.players.at(num)
	}
	it.supply.add(q)
	s.raisePeak(it)
	return b, nil
}

// seek is search for large and dense holdings: it first looks where key stands if
// the player holds every item from the first to it, and then halves without
// branches that could be predicted wrongly.
func seek(h []slot, key uint32) int {
	n := len(h)
	if n == 0 {
		return 0
	}
	if i := key - h[0].key; i < uint32(n) && h[i].key == key {
		return int(i)
	}
	base := 0
	for n > 1 {
		half := n >> 1
		if h[base+half-1].key < key {
			base += half
		}
		n -= half
	}
	if h[base].key < key {
		base++
	}
	return base
}

// raisePeak keeps peak above an item's supply.
func (s *State) raisePeak(it *itemState) {
	if it.supply.lo > s.peak || it.supply.hi != 0 {
		s.peak = maxPeak
		if it.supply.hi == 0 {
			s.peak = min(it.supply.lo, maxPeak)
		}
	}
}

func (s *State) sub(player, item uint32, q uint64) error {
	var have uint64
	sl := s.players.slot(player, item)
	if sl != nil {
		have = sl.value()
	}
	if q > have {
		return inconsistent("item %q of player %q: %d taken of %d", s.items[item].id, s.players.id(player), q, have)
	}
	if q < have {
		sl.set(have - q)
	} else {
		s.players.set(player, item, 0)
	}
	s.items[item].supply.sub(q)
	return nil
}
