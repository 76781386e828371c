package store

import (
	"encoding/binary"
	"iter"
)

// The blocks of a snapshot. docs/internals/formats/snapshot.md shows every byte. A block uses the
// same numbers as events. It holds what the base lacks and what has changed since the base.

// BlockKind says what a snapshot's block holds.
type BlockKind uint8

// The kinds, in their order in a snapshot.
const (
	BlockState    BlockKind = 1 // position, time, how far the clock was set back, and the number of everything
	BlockItems    BlockKind = 2
	BlockCounters BlockKind = 3 // their names
	BlockPools    BlockKind = 4
	BlockEntries  BlockKind = 5 // their ids, in one pool
	BlockStock    BlockKind = 6 // of one chunk of a pool's entries
	BlockCatalog  BlockKind = 7 // the one in force
	BlockPlayers  BlockKind = 8
	BlockRequests BlockKind = 9  // remembered request ids
	BlockTallies  BlockKind = 10 // the realm's counters, all of them
	BlockCodes    BlockKind = 11 // of one list
	BlockGiven    BlockKind = 12 // codes of one list: to whom and when
	BlockUses     BlockKind = 13 // of codes of one list: which, by whom and when
	BlockLevel    BlockKind = 14 // the realm's format level, if its log names one
	blockEnd      BlockKind = 15
)

// defaultBlockSize is the size in bytes at which a block is full. A catalog may be larger.
const defaultBlockSize = 256 << 10

// Blocks iterates over the blocks of a capture, once. A block's bytes are valid until the next
// iteration. It runs concurrently with the writer and often calls pause, so that it need not keep
// the processor from others.
func (c *Capture) Blocks(pause func()) iter.Seq2[BlockKind, []byte] {
	return func(yield func(BlockKind, []byte) bool) {
		w := blockWriter{yield: yield, pause: pause}
		c.writeState(&w)
		c.writeNames(&w)
		c.writePools(&w)
		c.writeCatalog(&w)
		c.writePlayers(&w)
		c.writeRequests(&w)
		c.writeTallies(&w)
		for _, part := range codesParts() {
			c.writeCodes(&w, part)
		}
		if c.level > 0 {
			w.num(uint64(c.level))
			w.end(BlockLevel)
		}
	}
}

// blockWriter builds one block at a time.
type blockWriter struct {
	yield func(BlockKind, []byte) bool
	pause func()
	b     []byte
	ended bool // the consumer wants no more

	worked int // since the last pause
}

// Work is counted so that pause is called after about a hundred microseconds of it.
const (
	workLook   = 1  // to skip a player, or 64 at once
	workItem   = 16 // a player, a request or a chunk of entries
	workBytes  = 16 // this many bytes of a player count as one workLook
	pauseAfter = 256 * workItem
)

// work counts n units of work and calls pause when it is time.
func (w *blockWriter) work(n int) {
	if w.worked += n; w.worked >= pauseAfter {
		w.worked = 0
		w.pause()
	}
}

func (w *blockWriter) num(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *blockWriter) nums(all ...uint64) {
	for _, v := range all {
		w.num(v)
	}
}

func (w *blockWriter) str(s string) { w.b = append(append(w.b, byte(len(s))), s...) }

// end yields the block.
func (w *blockWriter) end(kind BlockKind) {
	if !w.ended {
		w.ended = !w.yield(kind, w.b)
	}
	w.b = w.b[:0]
}

func (c *Capture) baseMark() Mark {
	if c.base != nil {
		return *c.base
	}
	return Mark{}
}

func (c *Capture) writeState(w *blockWriter) {
	w.nums(
		c.applied, uint64(c.now), uint64(c.back), c.baseMark().Position, c.mark.Version,
		uint64(c.mark.Items), uint64(c.mark.Counters), uint64(c.mark.Pools), uint64(c.mark.Players), c.ids.head, c.mark.IDs,
		uint64(c.ids.window.count), uint64(c.ids.window.age), uint64(c.ids.floor), uint64(len(c.tallies)), uint64(len(c.codes)))
	for i := range c.codes {
		l := &c.codes[i]
		w.str(l.name)
		w.nums(l.last, l.Count(), l.Given(), l.Uses())
	}
	w.end(BlockState)
}

// writeNames writes what was named since the base. Numbers are never reused, so new names are
// always at the end.
func (c *Capture) writeNames(w *blockWriter) {
	base := c.baseMark()
	for i := base.Items; i < c.mark.Items; {
		w.num(uint64(i))
		for ; i < c.mark.Items && len(w.b) < c.blockSize; i++ {
			w.b = append(w.b, byte(c.items[i].kind))
			w.str(c.items[i].id)
		}
		w.end(BlockItems)
	}
	for i := base.Counters; i < c.mark.Counters; {
		w.num(uint64(i))
		for ; i < c.mark.Counters && len(w.b) < c.blockSize; i++ {
			w.num(uint64(c.counters[i].width))
			w.str(c.counters[i].name)
		}
		w.end(BlockCounters)
	}
	for i := base.Pools; i < c.mark.Pools; {
		w.num(uint64(i))
		for ; i < c.mark.Pools && len(w.b) < c.blockSize; i++ {
			w.str(c.pools[i].id)
		}
		w.end(BlockPools)
	}
}

func (c *Capture) writePools(w *blockWriter) {
	base := c.baseMark()
	for num := range c.pools {
		p := &c.pools[num]
		first := uint32(0)
		if num < len(base.Entries) {
			first = base.Entries[num]
		}
		entries := uint32(len(p.entries))
		if c.base != nil && first == entries && p.last <= base.Position {
			continue
		}
		for again := true; again; again = first < entries { // at least once, for p.last
			w.num(uint64(num))
			w.num(p.last)
			w.num(uint64(first))
			for ; first < entries && len(w.b) < c.blockSize; first++ {
				w.work(workLook)
				w.str(p.entries[first])
			}
			w.end(BlockEntries)
		}
	}
	for num := range c.pools {
		for i := range c.pools[num].live {
			w.work(workItem)
			stock, drawn := c.entries(uint32(num), uint32(i))
			if drawn == nil {
				continue
			}
			w.num(uint64(num))
			w.num(uint64(i))
			for e := range drawn {
				w.num(stock[e] + 1) // 0: unlimited
				w.num(drawn[e])
			}
			w.end(BlockStock)
		}
	}
}

func (c *Capture) writeCatalog(w *blockWriter) {
	t := &c.catalog
	if t.Version <= c.baseMark().Version {
		return
	}
	w.num(t.Version)
	w.num(t.Position)
	w.num(uint64(t.Index))
	w.num(uint64(t.Time))
	w.b = append(w.b, t.Bytes...)
	w.end(BlockCatalog)
}

func (c *Capture) writePlayers(w *blockWriter) {
	next := uint32(0)
	for n := uint32(0); n < c.mark.Players && !w.ended; n++ {
		if c.base != nil && n%64 == 0 && c.dirty.word(n) == 0 {
			w.work(workLook)
			n += 63 // none of these 64 is dirty
			continue
		}
		if !c.wants(n) {
			w.work(workLook)
			continue
		}
		w.work(workItem)
		w.num(uint64(n - next))
		start := len(w.b)
		w.b = c.player(w.b, n)
		next = n + 1
		c.next.Store(next)
		w.work((len(w.b) - start) / workBytes)
		if len(w.b) >= c.blockSize {
			w.end(BlockPlayers)
			next = 0
		}
	}
	if len(w.b) > 0 {
		w.end(BlockPlayers)
	}
}

// appendPlayer appends a player's encoding: the id if the base lacks it, the position of the last
// change, the slots.
func (c *Capture) appendPlayer(buf []byte, n uint32, last uint64, id []byte, holdings []slot) []byte {
	if c.base == nil || n >= c.base.Players {
		buf = append(append(buf, byte(len(id))), id...)
	}
	buf = binary.AppendUvarint(buf, last)
	buf = binary.AppendUvarint(buf, uint64(len(holdings)))
	prev := uint32(0)
	for _, s := range holdings {
		buf = binary.AppendUvarint(buf, uint64(s.key-prev))
		buf = binary.AppendUvarint(buf, s.value())
		prev = s.key
	}
	return buf
}

func (c *Capture) writeRequests(w *blockWriter) {
	for n, r := range c.ids.all.from(c.ids.from) {
		w.work(workItem)
		if len(w.b) == 0 {
			w.num(n)
		}
		w.nums(r.position, uint64(r.index), uint64(r.time), uint64(r.back), r.version, uint64(len(r.answer)))
		w.b = append(w.b, r.answer...)
		if len(w.b) >= c.blockSize {
			w.end(BlockRequests)
		}
		if w.ended {
			return
		}
	}
	if len(w.b) > 0 {
		w.end(BlockRequests)
	}
}

// writeTallies writes the counters of the realm, whether or not they have changed: they are few.
func (c *Capture) writeTallies(w *blockWriter) {
	for i, prev := 0, uint32(0); i < len(c.tallies); i++ {
		w.num(uint64(c.tallies[i].Counter - prev))
		w.num(c.tallies[i].Value)
		prev = c.tallies[i].Counter
	}
	if len(w.b) > 0 {
		w.end(BlockTallies)
	}
}

// codesPart is a part of a list of codes that a kind of block has.
type codesPart struct {
	kind  BlockKind
	count func(m *CodesMark) uint64
	write func(w *blockWriter, l *Codes, n uint64)
}

// codesParts returns the parts of a list of codes, in the order of a snapshot.
func codesParts() [3]codesPart {
	return [3]codesPart{
		{BlockCodes, func(m *CodesMark) uint64 { return m.Codes }, func(w *blockWriter, l *Codes, n uint64) {
			code := l.Code(n)
			w.b = append(append(w.b, byte(len(code))), code...)
		}},
		{BlockGiven, func(m *CodesMark) uint64 { return m.Given }, func(w *blockWriter, l *Codes, n uint64) {
			player, position, time := l.GivenTo(n)
			w.nums(uint64(player), position, uint64(time))
		}},
		{BlockUses, func(m *CodesMark) uint64 { return m.Uses }, func(w *blockWriter, l *Codes, n uint64) {
			code, player, position, time := l.Use(n)
			w.nums(code, uint64(player), position, uint64(time))
		}},
	}
}

// writeCodes writes what the base lacks of a part of each list of codes.
func (c *Capture) writeCodes(w *blockWriter, part codesPart) {
	for num := range c.codes {
		l := &c.codes[num].Codes
		base, have := c.codesMark(num), l.mark()
		for n, end := part.count(&base), part.count(&have); n < end && !w.ended; {
			w.nums(uint64(num), n)
			for ; n < end && len(w.b) < c.blockSize; n++ {
				w.work(workLook)
				part.write(w, l, n)
			}
			w.end(part.kind)
		}
	}
}

// codesMark returns what the base has of a list of codes.
func (c *Capture) codesMark(num int) CodesMark {
	if base := c.baseMark().Codes; num < len(base) {
		return base[num]
	}
	return CodesMark{}
}
