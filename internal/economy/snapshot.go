package economy

import (
	"encoding/binary"
	"iter"
)

// The blocks of a snapshot. docs/internals/formats/snapshot.md shows every byte. A block
// names what it holds by the numbers that events use, and holds what a base
// does not have, or no longer has so.

// BlockKind says what a block of a snapshot holds.
type BlockKind uint8

// The kinds, in the order in which they stand in a snapshot.
const (
	BlockState    BlockKind = 1 // position, time and how many there are of everything
	BlockItems    BlockKind = 2
	BlockLimits   BlockKind = 3
	BlockPools    BlockKind = 4
	BlockEntries  BlockKind = 5 // of one pool
	BlockDrawn    BlockKind = 6 // counters of one pool
	BlockCatalog  BlockKind = 7 // the one in force
	BlockPlayers  BlockKind = 8
	BlockRequests BlockKind = 9  // remembered request ids
	BlockPast     BlockKind = 10 // rewards of older catalogs that the requests need
	blockEnd      BlockKind = 11
)

// defaultBlockSize is the size in bytes from which on a block is full; a catalog
// may take more.
const defaultBlockSize = 256 << 10

// Blocks iterates the blocks of a capture. A block's bytes are valid until the
// next iteration. It runs beside the writer, once, and calls pause after every
// few players, so that it need not keep the processor from those who wait.
func (c *Capture) Blocks(pause func()) iter.Seq2[BlockKind, []byte] {
	return func(yield func(BlockKind, []byte) bool) {
		w := blockWriter{yield: yield, pause: pause}
		c.writeState(&w)
		c.writeNames(&w)
		c.writePools(&w)
		c.writeCatalog(&w)
		c.writePlayers(&w)
		c.writeRequests(&w)
		c.writePast(&w)
	}
}

// blockWriter collects one block at a time.
type blockWriter struct {
	yield func(BlockKind, []byte) bool
	pause func()
	b     []byte
	ended bool // the consumer wants no more

	worked int // since the last pause
}

// Work is counted so that there is a pause after about a hundred microseconds of it.
const (
	workLook   = 1  // at players of whom none, or not this one, is wanted
	workItem   = 16 // a player, a request or a chunk of counters
	workBytes  = 16 // so many bytes of what a player holds are worth a look
	pauseAfter = 256 * workItem
)

// work counts work, and pauses when it is time.
func (w *blockWriter) work(n int) {
	if w.worked += n; w.worked >= pauseAfter {
		w.worked = 0
		w.pause()
	}
}

func (w *blockWriter) num(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *blockWriter) str(s string) { w.b = appendString(w.b, s) }

// end hands the block over.
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
	for _, v := range []uint64{
		c.position, uint64(c.now), c.baseMark().Position, c.mark.Version,
		uint64(c.mark.Items), uint64(c.mark.Limits), uint64(c.mark.Pools), uint64(c.mark.Players), c.ids.head, c.mark.IDs,
	} {
		w.num(v)
	}
	w.end(BlockState)
}

// writeNames writes what was named since the base: numbers are never reused, so
// that names only ever come to the end.
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
	for i := base.Limits; i < c.mark.Limits; {
		w.num(uint64(i))
		for ; i < c.mark.Limits && len(w.b) < c.blockSize; i++ {
			l := &c.limits[i]
			w.num(uint64(l.pool))
			w.num(uint64(l.per))
			w.num(uint64(l.window))
		}
		w.end(BlockLimits)
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
		for again := true; again; again = first < entries { // once without any, for last
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
			drawn := c.counters(uint32(num), uint32(i))
			if drawn == nil {
				continue
			}
			w.num(uint64(num))
			w.num(uint64(i))
			for _, v := range drawn {
				w.num(v)
			}
			w.end(BlockDrawn)
		}
	}
}

func (c *Capture) writeCatalog(w *blockWriter) {
	t := c.current
	if t.version == 0 || t.version <= c.baseMark().Version {
		return
	}
	w.num(t.version)
	w.num(t.position)
	w.num(uint64(t.index))
	w.num(uint64(t.time))
	w.b = t.catalog.AppendCanonical(w.b)
	w.end(BlockCatalog)
}

func (c *Capture) writePlayers(w *blockWriter) {
	next := uint32(0)
	for n := uint32(0); n < c.mark.Players && !w.ended; n++ {
		if c.base != nil && n%64 == 0 && c.dirty.word(n) == 0 {
			w.work(workLook)
			n += 63 // none of these 64
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

// appendPlayer appends a player's encoded form: the id when the base does not
// have it, the position of the last change, the slots.
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
		w.num(r.position)
		w.num(uint64(r.index))
		w.num(uint64(r.time))
		w.num(r.version)
		w.num(uint64(len(r.answer)))
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
