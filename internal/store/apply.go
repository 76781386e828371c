package store

import (
	"bytes"
	"fmt"

	"github.com/kuji-dev/kuji/internal/format"
)

// InconsistentError says that an event does not fit the state it is applied to. Rules and store
// disagree, which is a bug, or something other than Kuji wrote or changed the log.
type InconsistentError struct{ Message string }

func (e *InconsistentError) Error() string { return "event does not fit the state: " + e.Message }

func inconsistent(format string, args ...any) error {
	return &InconsistentError{Message: fmt.Sprintf(format, args...)}
}

// At is an event's place in the log.
type At struct {
	Position uint64 // of its batch; never decreasing
	Index    uint32 // in its batch
	Time     int64  // the batch's time stamp, Unix milliseconds; decreasing only after a Clock effect
}

// Apply is Change, then Remember. Neither looks at what the other changes, so recovery runs them
// concurrently. They copy what they keep of the event. After an error, an *InconsistentError or a
// *FormatError, the state must not be used again.
func (s *State) Apply(ev *Event, at At, look Looker) error {
	if err := s.Change(ev, at, look); err != nil {
		return err
	}
	return s.Remember(ev, at)
}

// Looker sees each effect of an event once it is applied.
type Looker interface{ See(e *Effect) }

// Change applies an event's effects. look may be nil.
func (s *State) Change(ev *Event, at At, look Looker) error {
	if at.Position < s.applied || at.Time < s.now {
		return inconsistent("position %d, time %d after position %d, time %d", at.Position, at.Time, s.applied, s.now)
	}
	s.applied, s.now = at.Position, at.Time
	if len(ev.Effects) == 0 {
		return nil
	}
	err := s.change(ev, at, look)
	if len(s.orders.left) > 0 && err == nil {
		s.orders.settle(at.Position)
	}
	if !s.stock.alone {
		s.release()
	}
	return err
}

// Abandon releases readers that wait for an event which will never be fully applied. The state must
// not be used again, and what those readers see of it has no meaning.
func (s *State) Abandon() { s.release() }

// release lets readers see what an event has changed.
func (s *State) release() {
	s.unlockPools()
	s.players.unlock()
	s.records.unlock()
}

func (s *State) change(ev *Event, at At, look Looker) error {
	var (
		e      = &s.effect
		r      Reader
		player = ev.Player.Num
		b      *block // the player's; nil until their first change
		p      *pool
		group  bool // the event is a group's
		err    error
	)
	r.changes(ev)
	for err == nil && r.Next(e) {
		switch e.Verb {
		case Player:
			player, b = e.N, nil
		case Join:
			player, err = s.join(e.Bytes, r)
			b = nil
		case Gain, Spend, Set, Grow, Hold, Release, Forfeit:
			if b == nil {
				if int(player) >= s.players.count() {
					return inconsistent("player number %d of %d", player, s.players.count())
				}
				b = s.players.change(player, at.Position)
			}
			b, err = s.hold(b, e)
		case Pool:
			if int(e.N) >= len(s.names.pools) {
				return inconsistent("pool number %d of %d", e.N, len(s.names.pools))
			}
			p = s.names.pools[e.N]
		case Take, Return, Entry, Stock:
			if p == nil {
				return inconsistent("an entry, but no pool is named")
			}
			err = s.alter(p, e, at.Position)
		case Member:
			b, p, group = nil, nil, true
		case Draw, Claim, Place:
		case Tally:
			if e.N >= s.names.next {
				return inconsistent("counter number %d of %d", e.N, s.names.next)
			}
			err = s.tallies.set(e.N, e.Value)
		case NewList, AddCodes, GiveCode, UseCode, Identity, Erase:
			b, err = nil, s.changeOther(e, player, at)
		case Window, Catalog, Clock, Level:
			if ev.Named || len(ev.ID) > 0 || group { // Remember does not look for these there
				return inconsistent("an event with a player, a request id or members puts a catalog in force, sets the clock or raises the level")
			}
			switch e.Verb {
			case Clock:
				err = s.setBack(int64(e.Value))
			case Level:
				err = s.raise(format.Level(e.Value))
			case Catalog:
				s.catalog = InForce{Version: s.catalog.Version + 1, Bytes: bytes.Clone(e.Bytes), Position: at.Position, Index: at.Index, Time: at.Time}
				s.named = true
			}
		default:
			p, err = s.define(p, e)
		}
		if look != nil && err == nil {
			look.See(e)
		}
	}
	if err == nil {
		err = r.Err()
	}
	if s.named {
		s.named = false
		e.Bytes = nil // perhaps a large catalog
		s.names.shared()
		s.show()
	}
	if s.players.mem.dirty() {
		s.players.clean()
	}
	return err
}

// changeOther applies an effect on identities or codes.
func (s *State) changeOther(e *Effect, player uint32, at At) error {
	switch e.Verb {
	case Identity:
		return s.identities.identify(player, e.Value, at.Position)
	case Erase:
		return s.identities.erase(player, e.Bytes, at.Position)
	}
	return changeCodes(s, e, player, at)
}

// changeCodes applies an effect on codes. player is the one that the effects are about.
func changeCodes(s *State, e *Effect, player uint32, at At) (err error) {
	if e.Verb == NewList {
		s.named = true
		return s.codes.name(string(e.Bytes))
	}
	if int(e.N) >= len(s.codes.lists) {
		return inconsistent("code list number %d of %d", e.N, len(s.codes.lists))
	}
	l := s.codes.lists[e.N]
	h := Handed{Position: at.Position, Time: at.Time, Player: player, Code: uint32(e.Value)}
	switch {
	case e.Verb == AddCodes:
		err = s.addCodes(l, e.Bytes)
	case int(player) >= s.players.count():
		return inconsistent("player number %d of %d", player, s.players.count())
	case e.Verb == UseCode:
		err = l.use(h)
	case e.Value != l.codes.Given() || e.Value >= l.codes.Count():
		return inconsistent("code list %q: number %d given, after %d of %d", l.name, e.Value, l.codes.Given(), l.codes.Count())
	default:
		l.codes.given.push(h)
	}
	l.changed(at.Position)
	return err
}

func (s *asOf) raise(l format.Level) error {
	if l <= s.Level() {
		return inconsistent("format level %d after %d", l, s.Level())
	}
	s.level = l
	return nil
}

// setBack sets the clock back. Steady time goes on.
func (s *asOf) setBack(ms int64) error {
	if ms == 0 || ms > s.now || ms > MaxBack-s.back {
		return inconsistent("the clock is set back by %d milliseconds from %d, after %d before", ms, s.now, s.back)
	}
	s.now -= ms
	s.back += ms
	return nil
}

// join adds a player, with room for what the next effects give and a little more.
func (s *State) join(name []byte, next Reader) (uint32, error) {
	id, hash := text(name), s.players.key.hashBytes(name)
	if s.players.lookup(id, hash) != nil {
		return 0, inconsistent("player %q is not new", id)
	}
	if s.players.count() >= s.players.most {
		return 0, inconsistent("more than %d players", s.players.most)
	}
	var e Effect
	slots := uint32(2)
	for slots < 32 && next.Next(&e) && e.Verb == Gain {
		slots++
	}
	n := s.players.add(id, hash, slots)
	s.players.change(n, s.applied)
	return n, nil
}

// hold changes an item or counter of the player with block b. It returns where the block is now.
func (s *State) hold(b *block, e *Effect) (*block, error) {
	if e.Verb == Set {
		if e.N >= s.names.next {
			return b, inconsistent("counter number %d of %d", e.N, s.names.next)
		}
		if s.orders.ordered(e.N) {
			s.orders.leave(b, e.N)
		}
		key := e.N | counterSlot
		return s.players.put(b, search(b.holdings(), key), key, e.Value), nil
	}
	if int(e.N) >= len(s.names.items) || e.Value == 0 {
		return b, inconsistent("%d of item number %d, of %d items", e.Value, e.N, len(s.names.items))
	}
	it, v := &s.names.items[e.N], e.Value
	if e.Verb >= Hold {
		return it.keep(&s.players, b, e)
	}
	h := b.holdings()
	at := likely(h, e.N)
	if at < 0 {
		at = bisect(h, e.N)
	}
	var have uint64
	if at < len(h) && h[at].key == e.N {
		have = h[at].value()
	}
	if e.Verb != Spend {
		if v > MaxQuantity-have {
			return b, inconsistent("item %q of player %q: %d plus %d is more than %d", it.id, b.id(), have, v, uint64(MaxQuantity))
		}
		it.supply.add(v)
		s.names.raisePeak(it)
		v += have
	} else {
		if v > have {
			return b, inconsistent("item %q of player %q: %d spent of %d", it.id, b.id(), v, have)
		}
		it.supply.sub(v)
		v = have - v
	}
	if have == 0 || v == 0 { // a slot comes or goes
		return s.players.put(b, at, e.N, v), nil
	}
	h[at].set(v)
	return b, nil
}

// keep moves some of an item between what the player of a block can spend and what is held.
func (it *item) keep(p *players, b *block, e *Effect) (*block, error) {
	v, held := e.Value, e.N|heldSlot
	have, was := valueOf(b.holdings(), e.N), valueOf(b.holdings(), held)
	switch {
	case e.Verb == Hold && v <= have && v <= MaxQuantity-was:
		have, was = have-v, was+v
	case e.Verb == Release && v <= was && v <= MaxQuantity-have:
		have, was = have+v, was-v
	case e.Verb == Forfeit && v <= was:
		was -= v
		it.supply.sub(v)
	default:
		return b, inconsistent("item %q of player %q: verb %d of %d, with %d, and %d held", it.id, b.id(), e.Verb, v, have, was)
	}
	b = p.put(b, search(b.holdings(), e.N), e.N, have)
	return p.put(b, search(b.holdings(), held), held, was), nil
}

// define applies an effect that names something new, declares an order, writes a record, or changes nothing. p is the pool that the
// effects are about; define returns the pool of the following effects.
func (s *State) define(p *pool, e *Effect) (*pool, error) {
	n := &s.names
	if e.Verb == Beyond || e.Verb == Promise {
		if int(e.N) >= len(n.items) || e.Value == 0 {
			return p, inconsistent("%d of item number %d, of %d items", e.Value, e.N, len(n.items))
		}
		return p, nil
	}
	switch e.Verb {
	case Counter:
		return p, n.addCounters(string(e.Bytes), e.N)
	case Put:
		return p, s.records.put(e.Bytes[:e.N], e.Bytes[e.N:], s.applied)
	case Drop:
		return p, s.records.drop(e.Bytes, s.applied)
	}
	s.named = true
	if e.Verb == Order {
		return p, s.orders.declare(e.N, By(e.Value), n.next, s.applied)
	}
	if e.Verb == Item {
		return p, n.addItem(string(e.Bytes), uint8(e.N))
	}
	return n.addPool(string(e.Bytes))
}
