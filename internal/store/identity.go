package store

import "sync"

// An identity is a player that is another name of somebody: an alias, or a player who was merged into
// another one. Its last slot says whose. So a name leads to the player in one step, and never to another
// identity. A player who is blocked has the slot too.
//
//	0      nothing: there is no slot
//	1      the player is blocked
//	2 + n  another name of the player with number n
const (
	identityKey = counterSlot | MaxCounters // no counter has this number
	isBlocked   = 1
	isName      = 2
)

// standing is what the head of a block says of the identity: 0, isBlocked, or isName.
func standing(identity uint64) uint8 { return uint8(min(identity, isName)) }

// identities is what the state knows of them beside what stands with players.
type identities struct {
	of      *players
	blocked int // how many players are

	erasures uint64 // how often a name was erased, since the state was loaded
	rewrites int    // how many whole snapshots are still to follow
}

// setIs notes what the slots of a block say of its identity. was is what they said before.
func (s *identities) setIs(b *block, was uint8) {
	b.is = standing(valueOf(b.holdings(), identityKey))
	if was == isBlocked {
		s.blocked--
	}
	if b.is == isBlocked {
		s.blocked++
	}
}

// whose returns the number of the player whose block or other name this is.
func (b *block) whose() uint32 {
	if b.is < isName {
		return b.num
	}
	h := b.holdings()
	return uint32(h[len(h)-1].value() - isName)
}

// Whose returns the number of the player of whom a number, which must exist, is a name, perhaps itself.
func (s *identities) Whose(num uint32) uint32 { return s.of.at(num).whose() }

// NumberOf returns the number that an id itself has, also if it is another name of somebody.
func (s *identities) NumberOf(id string) (num uint32, ok bool) {
	if b := s.of.lookup(id, s.of.key.hash(id)); b != nil {
		return b.num, true
	}
	return 0, false
}

// AnyBlocked reports whether any player is blocked.
func (s *identities) AnyBlocked() bool { return s.blocked > 0 }

// Blocked reports whether a player is blocked. There need not be such a player.
func (s *identities) Blocked(num uint32) bool {
	return int(num) < s.of.count() && s.of.at(num).is == isBlocked
}

// Slots appends to into all that a player has: balances by item, what is held by HeldOf, then counters. The
// identity is not among them.
func (s *identities) Slots(num uint32, items, counters []CounterValue) ([]CounterValue, []CounterValue) {
	for _, sl := range s.of.at(num).holdings() {
		switch {
		case sl.key == identityKey:
		case sl.key&counterSlot == 0:
			items = append(items, CounterValue{sl.key, sl.value()})
		default:
			counters = append(counters, CounterValue{sl.key &^ counterSlot, sl.value()})
		}
	}
	return items, counters
}

// identify makes a player another name of somebody, blocks one, or undoes it.
func (s *identities) identify(n uint32, v uint64, pos uint64) error {
	p := s.of
	if int(n) >= p.count() {
		return inconsistent("player number %d of %d", n, p.count())
	}
	if v >= isName {
		of := v - isName
		if of >= uint64(p.count()) || of == uint64(n) || p.at(uint32(of)).is == isName || len(p.at(uint32(of)).id()) == 0 {
			return inconsistent("player number %d cannot be another name of number %d", n, of)
		}
		if b := p.at(n); b.slots > 1 || b.slots == 1 && b.is == 0 {
			return inconsistent("player %q has something, and cannot be another name", b.id())
		}
	}
	b := p.change(n, pos)
	was := b.is
	b = p.put(b, search(b.holdings(), identityKey), identityKey, v)
	s.setIs(b, was)
	return nil
}

// follow is enter for the player of whom an id is a name. last is a position that covers this.
func follow(p *players, id string) (b *block, guard *sync.Mutex, last uint64) {
	b, guard = p.enter(id)
	for b != nil && b.is == isName {
		last = max(last, b.last)
		n := b.whose()
		guard.Unlock()
		b, guard = p.enterNumber(n)
	}
	if b != nil {
		last = max(last, b.last)
	}
	return b, guard, last
}
