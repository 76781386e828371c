package economy

import (
	"encoding/binary"
	"unsafe"
)

// A block of players is loaded in two steps. Decoding lays the players that the
// base does not have out in memory, as the state will have them, and looks at nothing
// but bytes, so that several blocks can be decoded at a time. Joining, in the order of
// the blocks, is left with saying where they are. Players that the base has are
// changed where they stand, when the block is joined.

// PlayerBlock is a block of players on its way into a state.
type PlayerBlock struct {
	l *Loader
	d decoder

	first  uint64   // number of the first player laid out; the others follow it
	places []placed // of those
	strips []strip  // that they stand in
	open   int      // 1 + the index of the one that has room left; 0: none has
	laid   uint32   // units of the strips of this snapshot, up to chunkUnits
	tally  tally    // of what the players of this block and of those before it hold
}

// placed is where a player was laid out.
type placed struct {
	hash  uint32 // of the id
	strip uint32 // index in PlayerBlock.strips
	unit  uint32
}

// strip is a chunk that the arena gets.
type strip struct {
	mem   *byte
	about chunk
	given bool
	num   uint32 // in the arena, when given
}

// NewPlayerBlock returns an empty block for players of the snapshot that is being
// loaded, or of a later one. It can be decoded and joined many times.
func (l *Loader) NewPlayerBlock() *PlayerBlock {
	b := &PlayerBlock{l: l}
	l.blocks = append(l.blocks, b)
	return b
}

// Decode decodes a block's bytes, which must stay as they are until it is joined. It must
// not be called before the blocks have been loaded that stand before all players; from
// then on it may be called beside the loader and other blocks, until all are joined,
// which they must be before Loaded is called. Its error is what Join returns.
func (b *PlayerBlock) Decode(data []byte) {
	b.d, b.places = decoder{b: data}, b.places[:0]
	first := b.d // to look at
	if n := first.uvarint("a player's distance", MaxPlayers); len(data) == 0 || n < uint64(b.l.base) && first.err == nil {
		return // Join begins with it
	}
	b.decodeNew(0)
}

// Join takes a block that was decoded into the state, in its place among those given to
// Block. Errors are as those of Block.
func (l *Loader) Join(b *PlayerBlock) error {
	var order decoder
	if l.begin(&order, BlockPlayers); order.err != nil {
		return order.err
	}
	d := &b.d
	l.join(b)
	l.s.players.release()
	if d.err != nil {
		return d.err
	}
	return nil
}

func (l *Loader) join(b *PlayerBlock) {
	d, p := &b.d, &l.s.players
	if d.off == 0 {
		l.changed(b)
	}
	known := uint64(p.count())
	if d.err == nil && len(b.places) > 0 && b.first != known {
		d.fail("player %d, want %d", b.first, known)
	}
	if d.err != nil {
		return
	}
	b.give(&p.mem)
	for i, at := range b.places {
		p.addrs.push(b.strips[at.strip].num<<16|at.unit, uint16(at.hash%playerGuards))
		p.index.wait(at.hash, uint32(known)+uint32(i))
	}
	if len(b.places) > 0 {
		l.next = uint64(p.count())
		p.dirty.grow(uint32(l.next) - 1)
	}
	b.leave(&p.mem, true)
	b.tally.countRest(l.s.items)
}

// changed decodes the players of a block that the base has, and then lays out those
// that it does not have.
func (l *Loader) changed(b *PlayerBlock) {
	d, p := &b.d, &l.s.players
	b.tally.ready(len(l.s.items))
	for from := uint64(0); d.more(); {
		start := d.off
		n := from + d.uvarint("a player's distance", MaxPlayers)
		if d.err == nil && n >= uint64(l.base) {
			d.off = start
			b.decodeNew(from)
			return
		}
		if d.err == nil && n < l.next {
			d.fail("player %d, want %d or more", n, l.next)
		}
		last, slots := b.head()
		if d.err != nil {
			return
		}
		for _, sl := range p.holdings(uint32(n)) {
			if sl.key&limitSlot == 0 {
				l.s.items[sl.key].supply.sub(sl.value())
			}
		}
		head := p.resize(uint32(n), slots) // nobody reads, and so no guard is open
		head.last = last
		b.slots(head)
		from, l.next = n+1, n+1
	}
}

// decodeNew lays out the players from here to the end of the block. A number is counted
// from one more than that of the player before it, in a block's first from 0.
func (b *PlayerBlock) decodeNew(from uint64) {
	d, l := &b.d, b.l
	b.tally.ready(len(l.s.items))
	for d.more() {
		n := from + d.uvarint("a player's distance", MaxPlayers)
		if len(b.places) == 0 {
			b.first = n
		} else if d.err == nil && n != from {
			d.fail("player %d, want %d", n, from)
		}
		id := d.str("a player", uint64(d.byte("a player")), MaxID)
		last, slots := b.head()
		if d.err != nil {
			return
		}
		h := l.s.players.key.hash(id)
		head := b.alloc(unitsFor(len(id), slots), h)
		head.last, head.num, head.slots, head.idLen, head.guard = last, uint32(n), slots, uint8(len(id)), uint16(h%playerGuards)
		copy(head.id(), id)
		b.slots(head)
		from = n + 1
	}
}

// head decodes what comes before a player's slots.
func (b *PlayerBlock) head() (last uint64, slots uint32) {
	d := &b.d
	last = d.uvarint("a player's last change", b.l.want.Position)
	n := d.uvarint("a player's holdings", 1<<28) // whose bytes are still a uint32
	if d.err == nil && n > uint64(len(d.b)-d.off)/2 {
		d.fail("%d holdings in %d bytes", n, len(d.b)-d.off)
	}
	return last, uint32(n)
}

// slots decodes a player's slots.
func (b *PlayerBlock) slots(p *block) {
	d := &b.d
	prev, h := uint32(0), p.holdings()
	for i := 0; i < len(h); i++ {
		if n := b.fewSlots(h[i:], prev, i == 0); n > 0 {
			i += n - 1
			prev = h[i].key
			continue
		}
		step, small := d.small()
		if !small {
			step = d.uvarint("a key", 1<<32-1)
		}
		v, small := d.small()
		if !small {
			v = d.uvarint("a value", 1<<64-1)
		}
		key := uint64(prev) + step
		if d.err == nil && !b.valid(uint32(min(key, 1<<32-1)), prev, v, i == 0) {
			d.fail("player %d: a slot with key %d, value %d, after key %d", p.num, key, v, prev)
		}
		if d.err != nil {
			p.slots = 0 // what is left in it is of no meaning
			return
		}
		prev = uint32(key)
		h[i] = newSlot(prev, v)
		if prev&limitSlot == 0 {
			b.tally.add(prev, v)
		}
	}
}

// fewSlots decodes up to four slots of the first items, if the distances and values of all of
// them take a byte each, and returns how many that were: 0 if they are not such.
func (b *PlayerBlock) fewSlots(h []slot, prev uint32, first bool) int {
	const (
		ones = 0x0101010101010101
		tops = ones << 7
		even = 0x00ff00ff00ff00ff
		sums = 0x0001000100010001
	)
	d, small := &b.d, b.tally.small
	if len(d.b)-d.off < 8 {
		return 0
	}
	n := min(len(h), 4)
	beyond := ^uint64(0) << (16 * n)
	w := binary.LittleEndian.Uint64(d.b[d.off:]) &^ beyond
	some := w | beyond&ones // no byte may be 0, but that of
	if first {
		some |= 1 // the first distance
	}
	if (w|(some-ones)&^some)&tops != 0 {
		return 0
	}
	if last := prev + uint32(w&even*sums>>48); last >= uint32(len(small)) {
		return 0
	}
	h = h[:n]
	for i := range h {
		prev += uint32(w & 0x7f)
		v := uint32(w >> 8 & 0x7f)
		h[i] = slot{key: prev, lo: v}
		small[prev] += uint64(v)
		w >>= 16
	}
	d.off += 2 * n
	return n
}

// valid reports whether a slot may follow the key before it.
func (b *PlayerBlock) valid(key, prev uint32, v uint64, first bool) bool {
	s := b.l.s
	if key&limitSlot != 0 {
		return key&^limitSlot < uint32(len(s.limits)) && (first || key >= prev)
	}
	return key < uint32(len(s.items)) && (first || key > prev) && v > 0 && v <= MaxQuantity
}

// alloc notes a player whose id has this hash, and returns its memory.
func (b *PlayerBlock) alloc(units, hash uint32) *block {
	i := b.room(units)
	st := &b.strips[i]
	at := st.about.used
	st.about.used += units
	b.places = append(b.places, placed{hash: hash, strip: uint32(i), unit: at})
	p := (*block)(unsafe.Add(unsafe.Pointer(st.mem), uintptr(at)*unitBytes))
	p.units = units // the rest is zero
	return p
}

// room returns the index of a strip with so many units to give.
func (b *PlayerBlock) room(units uint32) int {
	if b.open > 0 {
		if a := &b.strips[b.open-1].about; a.used+units <= a.units {
			return b.open - 1
		}
	}
	about := chunk{units: units, large: units >= largeUnits}
	if !about.large {
		// What is left to decode takes several times its size. When there was as much
		// before, only full-grown chunks will do: there can be so many, and they are cleaned.
		need := max(uint64(units), uint64(b.laid), uint64(len(b.d.b)-b.d.off)*4/unitBytes)
		for about.units = firstUnits; about.units < chunkUnits && uint64(about.units) < need; {
			about.units *= 2
		}
		b.laid = min(b.laid+about.units, chunkUnits)
		b.open = len(b.strips) + 1
	}
	b.strips = append(b.strips, strip{mem: newChunk(about.units), about: about})
	return len(b.strips) - 1
}

// give shows the arena the strips and what is in them.
func (b *PlayerBlock) give(a *arena) {
	for i := range b.strips {
		st := &b.strips[i]
		if !st.given {
			st.num, st.given = a.adopt(st.mem, st.about), true
		}
		a.about[st.num].used = st.about.used
	}
}

// leave leaves the strips to the arena, but for the open one if it is to go on.
func (b *PlayerBlock) leave(a *arena, goOn bool) {
	kept := b.strips[:0]
	for i, st := range b.strips {
		switch {
		case i == b.open-1 && goOn:
			kept = append(kept, st)
		case !st.given: // the block was never joined
		case i == b.open-1:
			a.offer(st.num)
		case !st.about.large:
			a.bury(&a.about[st.num], st.about.units-st.about.used)
		}
	}
	b.strips, b.open = kept, len(kept)
	if !goOn {
		b.laid = 0
	}
}
