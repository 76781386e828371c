package economy

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/kuji-dev/kuji/catalog"
)

// A plain draw is the commonest command by far: one draw, for a player who is
// known, from a pool without a price whose rewards are fixed. Three numbers are
// its event, and it is decided, encoded and applied in one go. What is checked,
// taken from the source, written and changed is what [State.Decide],
// [AppendEvent] and [State.Apply] do; tests compare the two, and with [State.ApplyGroup], which replays it.

// isFixed reports whether every reward in the pool is fixed.
func (pt *poolTable) isFixed() bool {
	for i := range pt.entries {
		if e := &pt.entries[i]; e.present && e.single == nil {
			return false
		}
	}
	return true
}

// findCommon tells entries of plain pools that are common, apart from their stock.
func (pt *poolTable) findCommon() {
	for i := range pt.entries {
		e := &pt.entries[i]
		if e.common = pt.plain && pt.open && e.present && len(e.items) == 1; e.common {
			e.item, e.quantity = e.items[0].item, e.items[0].min
		}
	}
}

// isOpen reports whether the pool lets anybody draw once at any time.
func (pt *poolTable) isOpen() bool {
	return pt.config.StartsAt == 0 && pt.config.EndsAt == 0 && len(pt.limits) == 0
}

// Draw is one draw from a pool for a player, with a request id or without.
type Draw struct {
	ID     string
	Player string
	Pool   string
	Count  int // 0 or 1
}

// DrawPlain carries out a draw that is plain and succeeds: it appends the event to
// b, applies it, and returns what was given, shared and read-only. It reports false,
// and has done nothing, for any other draw, for one whose request id is remembered,
// and for one that [State.Admit] refuses. The draw must be one that [Command.Check]
// passes, and the hashes those of its ids. After an error, which says that the build has a
// defect, the state must not be used again.
func (s *State) DrawPlain(q *Draw, h IDHashes, src Source, at *At, b []byte) (event []byte, given *[]Outcome, ok bool, err error) {
	pt := s.findPool(q.Pool)
	if pt == nil || !pt.plain || s.peak+pt.maxGain > MaxQuantity || !pt.endless && s.odds[pt.num].live == 0 {
		return b, nil, false, nil
	}
	who := s.players.lookupHashed(q.Player, h.player)
	if who == nil || s.players.mem.full(s.chunks) {
		return b, nil, false, nil
	}
	player := who.num
	if !pt.open && !s.lets(pt, player, at.Time, src) {
		return b, nil, false, nil
	}
	if q.ID != "" && !s.isFresh(q.ID, h.request, at.Time) {
		return b, nil, false, nil
	}
	p := s.pools[pt.num]
	n, ok := p.sampler.Draw(src)
	if !ok {
		return b, nil, true, ranOut(q.Pool)
	}
	entry, start := uint32(n), len(b)
	e := &pt.entries[entry]
	if q.ID != "" || !s.unread {
		b = appendPlain(b, q.ID, player, pt.num, entry)
	}
	if at.Position < s.applied || at.Time < s.now {
		return b, nil, true, s.goesBack(at)
	}
	s.applied, s.now = at.Position, at.Time
	if !s.takeCommon(who, p, pt, entry, at.Position) {
		if err = s.applyPlain(player, p, pt, entry, at.Position); err != nil {
			return b, nil, true, err
		}
	}
	if q.ID != "" {
		s.rememberHashed(h.request, b[start:], *at) // short enough to be its own answer: see answer.go
	}
	return b, &e.single, true, nil
}

// lets reports whether a pool lets a player draw once. It stands apart from DrawPlain,
// which seldom needs it, to leave that more of the processor's registers; so does ranOut.
//
//go:noinline
func (s *State) lets(pt *poolTable, player uint32, now int64, src Source) bool {
	s.d.reset(now, src) // or what the last command decided would count
	return s.checkPool(pt, player, 1) == OK
}

// ranOut is the error of a draw that found nothing left.
//
//go:noinline
func ranOut(pool string) error {
	return inconsistent("pool %q ran out in a draw that was found possible", pool)
}

// isFresh reports whether a request id that has this hash is not remembered and there is
// room for it.
func (s *State) isFresh(id string, hash uint32, now int64) bool {
	_, known := s.ids.findHashed(id, hash)
	return !known && s.roomForID(now)
}

// plainMost is more than the bytes that the event of a plain draw has besides the
// request id.
const plainMost = 32

// appendPlain is AppendEvent for a plain draw.
func appendPlain(b []byte, id string, player, pool, entry uint32) []byte {
	const head = byte(KindDraw)<<3 | eventVersion<<1
	if cap(b)-len(b) < plainMost+len(id) {
		b = slices.Grow(b, plainMost+len(id))
	}
	if id == "" {
		b = append(b, head, byte(OK))
	} else {
		b = append(b, head|1, byte(OK), byte(len(id)))
		b = append(b, id...)
	}
	one, two, three := uint64(player)<<1, uint64(pool)<<1, uint64(entry)<<2|choicePlain
	if one|two|three < 1<<14 {
		// Which numbers take two bytes is chance, and no branch depends on it.
		n, word := len(b), uint64(1)
		v, bits := uvarintWord(three)
		word |= v << 8
		length := bits + 8
		v, bits = uvarintWord(two)
		word, length = word<<(bits&63)|v, length+bits
		v, bits = uvarintWord(one)
		word, length = word<<(bits&63)|v, length+bits
		binary.LittleEndian.PutUint64(b[n:n+8], word)
		return b[:n+int(length/8)]
	}
	b = binary.AppendUvarint(b, one)
	b = binary.AppendUvarint(b, two)
	b = append(b, 1)
	return binary.AppendUvarint(b, three)
}

// uvarintWord returns the varint of a number below 2^14, and how many bits it has.
func uvarintWord(v uint64) (bytes, bits uint64) {
	more := (0x7f - v) >> 63 // 1: a second byte
	return v&0x7f | more<<7 | v>>7<<8, 8 + more<<3
}

// held returns the slot of an item if it stands where it would if the player held every
// item from the first of theirs to it, and otherwise nil.
func (b *block) held(item uint32) *slot {
	if b.slots == 0 {
		return nil
	}
	first := unsafe.Add(unsafe.Pointer(b), slotsAt(int(b.idLen)))
	i := item - (*slot)(first).key
	if i >= b.slots {
		return nil
	}
	if sl := (*slot)(unsafe.Add(first, uintptr(i*slotBytes))); sl.key == item {
		return sl
	}
	return nil
}

// find returns the slot of an item, or nil and where it would stand.
//
//go:noinline
func (b *block) find(item uint32) (held *slot, at int) {
	h := b.holdings()
	if at = seek(h, item); at < len(h) && h[at].key == item {
		return &h[at], at
	}
	return nil, at
}

// takeCommon is applyPlain for the commonest draw of all: of an entry that gives one item
// and does not run out by it, from a pool without limits, while no snapshot is taken and no catalog made ready. It
// reports false, and has done nothing, for any other.
func (s *State) takeCommon(b *block, p *poolState, pt *poolTable, entry uint32, pos uint64) bool {
	ps, e := &s.players, &pt.entries[entry]
	if !e.common || ps.capture != nil || s.watch != nil || ps.alone {
		return false
	}
	q, item, drawn, changed := e.quantity, &s.items[e.item], &p.drawn[entry], &p.changed[entry/drawnChunk]
	held, at := b.held(e.item), 0
	if held == nil {
		held, at = b.find(e.item)
	}
	if held != nil && q > MaxQuantity-held.value() {
		return false
	}
	left, total := &p.left[entry], p.total
	rest := *left
	if e.limited {
		if rest < 2 {
			return false
		}
		rest--
		total = s.takeOne(p, pt, entry, rest)
	}
	// As change and release do, of one player; only what gives it a new slot could fail.
	g := &ps.guards[b.guard%playerGuards]
	openBoth(g, &p.guard)
	b.last = pos
	ps.dirty.set(b.num)
	if held != nil {
		held.set(held.value() + q)
	} else {
		s.common = [2]*guard{&p.guard, g} // see Abandon
		ps.insert(b.num, at, newSlot(e.item, q))
		s.common[0] = nil
	}
	*changed, p.last = pos, pos
	*drawn++
	*left, p.total = rest, total
	closeBoth(&p.guard, g)
	if ps.mem.dirty() {
		ps.release()
	}
	item.supply.add(q)
	s.raisePeak(item)
	return true
}

// takeOne changes the odds as one draw of a limited entry does of which there is some left,
// and returns the sum of the pool's weights.
func (s *State) takeOne(p *poolState, pt *poolTable, entry uint32, left uint64) (total uint64) {
	if left < maxCounted {
		s.odds[pt.num].left[pt.entries[entry].group]--
	}
	if pt.config.Mode == catalog.ModeRaffle {
		mustSet(p, entry, left)
		return p.sampler.Total()
	}
	return p.total
}

// applyPlain changes the state by a plain draw.
func (s *State) applyPlain(player uint32, p *poolState, pt *poolTable, entry uint32, pos uint64) error {
	defer func() {
		s.unlockPools()
		s.players.release()
	}()
	b := s.players.change(player, pos)
	e, err := s.takeEntry(p, pt, entry, pos)
	if err != nil {
		return err
	}
	for i := range e.items {
		if b, err = s.addTo(b, e.items[i].item, e.items[i].min); err != nil {
			return err
		}
	}
	for i := range pt.limits {
		s.countLimit(&pt.limits[i], player, 1)
	}
	return nil
}
