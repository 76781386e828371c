package economy

import (
	"encoding/binary"
	"sort"
	"strings"
	"unsafe"

	"github.com/kuji-dev/kuji/catalog"
)

// A log is read into a state in two steps: events are decoded into a Group, and
// a Group is applied. The first looks at nothing but bytes, so that it can be done
// beside the second. The commonest event, a single draw of one choice with a fixed
// reward, is kept as a few numbers and applied by a way of its own; what is checked
// and changed is what [State.Apply] does, and tests compare the two.

// Group is events that stand one behind the other in a log, decoded. What it
// holds aliases the bytes that it was decoded from.
type Group struct {
	idKey, playerKey hashKey
	logged           []logged
	batches          []groupBatch
	events           []Event // those that are more than numbers; reused beyond their length

	// What ApplyGroup leaves for RememberGroup:
	applied  int            // how many events have been
	catalogs []groupCatalog // those that were in force
	long     []byte         // answers that are not their events' bytes, one behind the other
	answers  []groupAnswer  // where they end
}

// logged is one event of a Group.
type logged struct {
	raw    []byte
	idHash uint32 // of its request id
	idLen  uint8  // 0: none; it stands at raw[3:]
	// A draw of one plain choice, when event is 0:
	nameAt  uint8  // where a new player's id begins in raw
	nameLen uint8  // 0: the player is known
	player  uint32 // number, or the hash of the id
	pool    uint32
	entry   uint32
	event   uint32 // 1 + its place among the Group's events
}

// groupBatch is where the events of a batch begin in a Group.
type groupBatch struct {
	from uint32
	at   At // of the first
}

// groupCatalog is what is remembered by of a catalog, and from which event of a Group on it
// was in force.
type groupCatalog struct {
	from    uint32
	version uint64
	window  catalog.Idempotency
}

// groupAnswer is where the answer to an event of a Group ends in its long ones.
type groupAnswer struct{ event, end uint32 }

const (
	// warmEvents is for how many events memory is fetched at a time.
	warmEvents = 128
	// keptItems and keptMembers are how large an event may have been whose memory
	// is used again, keptAnswers how many bytes of answers.
	keptItems   = 256
	keptMembers = 32
	keptAnswers = 1 << 16
)

// NewGroup returns an empty Group of events for this state. Filling it does not
// touch the state.
func (s *State) NewGroup() *Group {
	return &Group{idKey: s.ids.key, playerKey: s.players.key}
}

// Len returns how many events the Group holds.
func (g *Group) Len() int { return len(g.logged) }

// Reset empties the Group for another use. With kept, the bytes that its events were
// decoded from are kept by the caller as long as the Group is, and events may go on
// aliasing them until their memory is used again.
func (g *Group) Reset(kept bool) {
	if !kept {
		clear(g.events)
	}
	for i := range g.events {
		ev := &g.events[i]
		if cap(ev.Items)+cap(ev.Choices)+cap(ev.Quantities) > keptItems || cap(ev.Members) > keptMembers {
			*ev = Event{}
		}
	}
	clear(g.logged) // their bytes may go
	g.logged, g.batches, g.events = g.logged[:0], g.batches[:0], g.events[:0]
	g.applied, g.catalogs, g.answers, g.long = 0, g.catalogs[:0], g.answers[:0], g.long[:0]
	if cap(g.long) > keptAnswers {
		g.long = nil
	}
}

// Begin says where in the log the next event stands, the first of a batch or of
// what of a batch stands in this Group. Those after it follow it.
func (g *Group) Begin(at At) {
	g.batches = append(g.batches, groupBatch{from: uint32(len(g.logged)), at: at})
}

// Add decodes the event at the start of b and returns how many bytes it took.
// Errors are *FormatError; the Group is then as before.
func (g *Group) Add(b []byte) (int, error) {
	var l logged
	n := l.decode(b)
	if n == 0 {
		ev := g.event()
		var err error
		if n, err = Decode(b, ev); err != nil {
			g.events = g.events[:len(g.events)-1]
			return 0, err
		}
		l = logged{event: uint32(len(g.events)), idLen: uint8(len(ev.ID))}
	}
	l.raw = b[:n:n]
	if l.idLen > 0 {
		l.idHash = g.idKey.hash(l.id())
	}
	if l.nameLen > 0 {
		l.player = g.playerKey.hash(l.name())
	}
	g.logged = append(g.logged, l)
	return n, nil
}

// event returns one more event, with the memory of an earlier one.
func (g *Group) event() *Event {
	n := len(g.events)
	if n == cap(g.events) {
		g.events = append(g.events, Event{})
	}
	g.events = g.events[:n+1]
	return &g.events[n]
}

// id returns the request id, which there must be. It aliases the event's bytes, as name does.
func (l *logged) id() string { return unsafe.String(&l.raw[3], l.idLen) }

// name returns a new player's id.
func (l *logged) name() string { return unsafe.String(&l.raw[l.nameAt], l.nameLen) }

// decode reads a draw that ended OK, with a count of 1, from a known pool, of one
// choice without more to it. It returns how many bytes it took, 0 for
// everything else, of which [Decode] says what it is.
func (l *logged) decode(b []byte) int {
	const draw = byte(KindDraw)<<3 | eventVersion<<1
	if len(b) < 6 || b[0]&^1 != draw || Status(b[1]) != OK {
		return 0
	}
	at := 2
	if b[0]&1 != 0 {
		if l.idLen = b[2]; l.idLen == 0 || l.idLen > MaxID {
			return 0
		}
		at = 3 + int(l.idLen)
	}
	player, at := shortUvarint(b, at)
	if player&1 == 0 {
		l.player = uint32(player >> 1)
	} else {
		n := player >> 1
		if n == 0 || n > MaxID {
			return 0
		}
		l.nameAt, l.nameLen = uint8(at), uint8(n)
		at += int(n)
	}
	pool, at := shortUvarint(b, at)
	count, at := shortUvarint(b, at)
	choice, at := shortUvarint(b, at)
	if at > len(b) || player>>1 >= MaxPlayers || pool&1 != 0 || pool>>1 >= maxPoolsEver || count != 1 || choice&3 != choicePlain || choice>>2 >= maxEntriesEver {
		return 0
	}
	l.pool, l.entry = uint32(pool>>1), uint32(choice>>2)
	return at
}

// shortUvarint returns the number at an offset and where it ends: beyond b when it
// is cut, longer than it need be, or of more than 4 bytes.
func shortUvarint(b []byte, at int) (v uint64, end int) {
	if at >= len(b) {
		return 0, len(b) + 1
	}
	if b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	v, n := binary.Uvarint(b[at:])
	if n <= 0 || n > 4 || b[at+n-1] == 0 {
		return 0, len(b) + 1
	}
	return v, at + n
}

// clash is an event that names a player as new, or has a request id, that was
// there already.
type clash struct {
	at  At
	err error
}

// ApplyGroup applies the events of a Group in order, as [State.Apply] does one, but for the
// idempotency window: see [State.RememberGroup]. Nobody may read the state meanwhile, as
// nobody can while a log is read into it, and [State.Settle] must be called before anything
// but another Group: only then is it known that what the events say is new was new. With
// an error it returns where the event stands that does not fit. What does not fit in those
// before it is an error of Settle, once the ids of this Group are remembered, too.
func (s *State) ApplyGroup(g *Group) (At, error) {
	s.setAlone(true)
	g.inForce(s.current)
	var at At
	next := 0 // batch
	for g.applied < len(g.logged) {
		some := g.logged[g.applied:min(g.applied+warmEvents, len(g.logged))]
		s.warmLogged(g, some)
		for i := range some {
			if next < len(g.batches) && g.batches[next].from == uint32(g.applied) {
				at = g.batches[next].at
				next++
				s.replayed = append(s.replayed, groupBatch{from: s.unsettled, at: at})
			}
			if err := s.applyLogged(g, &some[i], at); err != nil {
				return at, err
			}
			at.Index++
			s.unsettled++
			g.applied++
		}
	}
	return At{}, nil
}

// inForce notes that a catalog is, from the event that is being applied on.
func (g *Group) inForce(t *tables) {
	g.catalogs = append(g.catalogs, groupCatalog{from: uint32(g.applied), version: t.version, window: t.idempotency})
}

// RememberGroup remembers the answers of the events of a Group that were applied. That can
// be done beside ApplyGroup of the next ones, for nothing there looks at what is remembered. It
// reports false when a request id is known to have been there already: Settle says which.
func (s *State) RememberGroup(g *Group) (ok bool) {
	r := &s.ids
	r.index.deferred = !r.forgot // which needs what is to be forgotten
	r.lookFor(g)
	var (
		at             At
		inForce        *groupCatalog
		batch, set     int // the next ones
		long           = g.long
		isLong, longAt = 0, uint32(0)
	)
	for i := range g.logged[:g.applied] {
		if batch < len(g.batches) && g.batches[batch].from == uint32(i) {
			at = g.batches[batch].at
			batch++
		}
		changed := false
		for ; set < len(g.catalogs) && g.catalogs[set].from <= uint32(i); set++ {
			changed, inForce = inForce != nil, &g.catalogs[set]
		}
		l := &g.logged[i]
		if l.idLen > 0 {
			answer := l.raw
			if isLong < len(g.answers) && g.answers[isLong].event == uint32(i) {
				end := g.answers[isLong].end
				answer, longAt = long[longAt:end], end
				isLong++
			}
			if !r.index.deferred {
				if _, known := r.findHashed(l.id(), l.idHash); known {
					r.clashed(at, requestAgain(strings.Clone(l.id())))
					return false
				}
			}
			r.addHashed(l.idHash, idRecord{position: at.Position, time: at.Time, version: inForce.version, index: at.Index, answer: answer})
		}
		if l.idLen > 0 || changed {
			r.forgetAged(&inForce.window, at.Time)
		}
		at.Index++
	}
	if inForce != nil {
		s.needed.Store(r.needs(inForce.version))
	}
	return r.again == nil
}

// lookFor looks at the places in the index of the request ids of a Group. That loop does
// nothing else, so that many loads are under way.
func (r *requestIDs) lookFor(g *Group) {
	if r.index.deferred || r.count() < warmFrom {
		return
	}
	sum := uint64(0)
	for i := range g.logged[:g.applied] {
		if l := &g.logged[i]; l.idLen > 0 {
			sum += r.index.look(l.idHash)
		}
	}
	r.looked += sum
}

// SettlePlayers makes the players known whom events of ApplyGroup named as new, and reports
// whether all were new: if not, Settle says which was not.
func (s *State) SettlePlayers() (ok bool) {
	s.settlePlayers()
	s.unsettled, s.replayed = 0, s.replayed[:0]
	return s.players.again == nil
}

// SettleIDs is SettlePlayers for the request ids of RememberGroup.
func (s *State) SettleIDs() (ok bool) {
	s.ids.settle()
	return s.ids.again == nil
}

// Settle makes what was applied by ApplyGroup and remembered by RememberGroup known to all
// else. With an error it returns where the first event stands that does not fit.
func (s *State) Settle() (At, error) {
	s.SettlePlayers()
	s.SettleIDs()
	s.forgetPast()
	s.setAlone(false)
	first := s.players.again
	if c := s.ids.again; first == nil || c != nil && c.before(first.at) {
		first = c
	}
	if first != nil {
		return first.at, first.err
	}
	return At{}, nil
}

// setAlone says whether nobody reads the state. Then entries of the players' index can be
// deferred.
func (s *State) setAlone(alone bool) {
	s.alone, s.players.alone, s.players.index.alone = alone, alone, alone
	s.players.index.deferred = alone
}

func (s *State) settlePlayers() {
	p := &s.players
	joined, again := p.joined, uint32(deadBlock)
	first := p.count() - joined.n
	p.settle(func(was, is uint32) bool {
		same := string(p.at(was).id()) == string(p.at(is).id())
		if same {
			again = min(again, is) // numbers are in the order of the log
		}
		return same
	})
	if again == deadBlock {
		return
	}
	event := *joined.at(int(again) - first)
	i := sort.Search(len(s.replayed), func(i int) bool { return s.replayed[i].from > event }) - 1
	at := s.replayed[i].at
	at.Index += event - s.replayed[i].from
	p.again = firstOf(p.again, at, playerAgain(p.id(again)))
}

// settle puts into the index what was deferred.
func (r *requestIDs) settle() {
	r.index.settle(func(was, is uint32) bool {
		rec := r.place(is)
		id := answerID(rec.answer)
		same := string(id) == string(answerID(r.place(was).answer))
		if same {
			r.clashed(At{Position: rec.position, Index: rec.index}, requestAgain(string(id)))
		}
		return same
	})
}

func (r *requestIDs) clashed(at At, err error) { r.again = firstOf(r.again, at, err) }

// firstOf returns the first event that clashes; of one event's, the one named first.
func firstOf(c *clash, at At, err error) *clash {
	if c == nil || !c.before(at) && (c.at.Position != at.Position || c.at.Index != at.Index) {
		return &clash{at: at, err: err}
	}
	return c
}

// before reports whether an event that clashes stands before another place.
func (c *clash) before(at At) bool {
	return c.at.Position < at.Position || c.at.Position == at.Position && c.at.Index < at.Index
}

// applyLogged applies an event of a Group, and notes there what is remembered of it that
// its bytes do not say.
func (s *State) applyLogged(g *Group, l *logged, at At) error {
	var answer []byte
	if l.event > 0 {
		ev := &g.events[l.event-1]
		if err := s.change(ev, at); err != nil {
			return err
		}
		if ev.Kind == KindCatalog {
			g.inForce(s.current)
			s.forgetPastBelow(s.needed.Load())
		}
		if len(l.raw) < digestFrom || l.idLen == 0 {
			return nil
		}
		answer = s.answer(ev, l.raw)
	} else {
		if err := s.advance(at); err != nil {
			return err
		}
		if err := s.applyChoice(l, at.Position); err != nil {
			return err
		}
		s.players.release()
		if len(l.raw) < digestFrom || l.idLen == 0 {
			return nil
		}
		answer = s.answerOf(l)
	}
	if len(answer) == len(l.raw) {
		return nil
	}
	g.long = append(g.long, answer...)
	g.answers = append(g.answers, groupAnswer{event: uint32(g.applied), end: uint32(len(g.long))})
	return nil
}

// answerOf is [State.answer] for a draw that is numbers alone.
func (s *State) answerOf(l *logged) []byte {
	if _, err := Decode(l.raw, &s.ev); err != nil {
		panic("economy: an event that was decoded cannot be: " + err.Error())
	}
	return s.answer(&s.ev, l.raw)
}

// applyChoice is applyDraw of one choice.
func (s *State) applyChoice(l *logged, pos uint64) error {
	pt, err := s.tableOf(Ref{Num: l.pool, Known: true})
	if err != nil {
		return err
	}
	player := l.player
	if l.nameLen > 0 {
		player, err = s.join(l.name(), l.player, pos)
	} else {
		err = s.meetKnown(player, pos)
	}
	if err != nil {
		return err
	}
	for _, p := range pt.price {
		if err := s.sub(player, p.item, p.quantity); err != nil {
			return err
		}
	}
	e, err := s.drawEntry(pt, l.entry, pos)
	if err != nil {
		return err
	}
	if e.kind == catalog.RewardPool || e.ranged != 0 {
		return wrongShape(pt, e)
	}
	for i := range e.items {
		if err := s.add(player, e.items[i].item, e.items[i].min); err != nil {
			return err
		}
	}
	for i := range pt.limits {
		s.countLimit(&pt.limits[i], player, 1)
	}
	return nil
}

// warmLogged is [State.Warm] for events that are about to be applied, at most
// warmEvents. The loops that load do nothing else, so that many loads are under way.
func (s *State) warmLogged(g *Group, ls []logged) {
	p := &s.players
	count := uint32(p.count())
	if count < warmFrom {
		return
	}
	var at [2 * warmEvents]*uint64
	var known [warmEvents]uint32
	n, m := 0, 0
	player := func(num uint32, isNew bool) {
		switch {
		case isNew && p.index.deferred:
		case isNew:
			at[n] = p.index.shard(num).at(first(num))
			n++
		case num < count:
			known[m] = num
			m++
		}
	}
	for i := range ls {
		l := &ls[i]
		if l.event == 0 {
			player(l.player, l.nameLen > 0)
		} else if ev := &g.events[l.event-1]; ev.Player.Known {
			player(ev.Player.Num, false)
		} else if ev.Player.ID != "" {
			player(p.key.hash(ev.Player.ID), true)
		}
	}
	sum := look(at[:n])
	for i, player := range known[:m] {
		known[i] = p.addrs.get(player) // by now the address
	}
	for i, addr := range known[:m] {
		at[2*i], at[2*i+1] = p.mem.lines(addr)
	}
	s.warmed += sum + look(at[:2*m])
}
