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
	BlockOrders   BlockKind = 15 // by which counters players are in order, if by any
	BlockRecords  BlockKind = 16 // the records from one key up to another
	blockEnd      BlockKind = 17
)

// defaultBlockSize is the size in bytes at which a block is full. A catalog may be larger.
const defaultBlockSize = 256 << 10

// Blocks iterates over the blocks of a capture, once. A block's bytes are valid until the next
// iteration. It runs concurrently with the writer and often calls pause, so that it need not keep
// the processor from others.
func (c *Capture) Blocks(pause func()) iter.Seq2[BlockKind, []byte] {
	return func(yield func(BlockKind, []byte) bool) {
		w := blockWriter{yield: yield, pause: pause, size: c.blockSize}
		c.writeState(&w)
		c.writeNames(&w)
		c.writePools(&w)
		c.writeCatalog(&w)
		c.writePlayers(&w)
		c.writeRequests(&w)
		c.writeTallies(&w)
		c.writeCodes(&w)
		if c.level > 0 {
			w.num(uint64(c.level))
			w.end(BlockLevel)
		}
		c.writeOrders(&w)
		c.writeRecords(&w)
	}
}

type blockWriter struct {
	yield func(BlockKind, []byte) bool
	pause func()
	size  int // at which a block is full
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

// list writes blocks of a kind with elements from one number up to another. Each block begins with
// what it is about, if anything, and the number of its first element.
func (w *blockWriter) list(kind BlockKind, from, to uint64, one func(n uint64), about ...uint64) {
	for n := from; n < to && !w.ended; {
		w.nums(about...)
		for w.num(n); n < to && len(w.b) < w.size; n++ {
			w.work(workLook)
			one(n)
		}
		w.end(kind)
	}
}

// end writes what there is as a block, if there is anything.
func (w *blockWriter) end(kind BlockKind) {
	if !w.ended && len(w.b) > 0 {
		w.ended = !w.yield(kind, w.b)
	}
	w.b = w.b[:0]
}

func (c *Capture) writeState(w *blockWriter) {
	w.nums(
		c.applied, uint64(c.now), uint64(c.back), c.base.Position, c.extent.Version,
		uint64(c.extent.Items), uint64(c.extent.Counters), uint64(c.extent.Pools), uint64(c.extent.Players), c.ids.head, c.extent.IDs,
		uint64(c.ids.window.count), uint64(c.ids.window.age), uint64(c.ids.floor), uint64(len(c.tallies)), uint64(len(c.codes)))
	for i := range c.codes {
		l := &c.codes[i]
		w.str(l.name)
		w.nums(l.last, l.Count(), l.Given(), l.Uses())
	}
	if c.noted > 0 {
		w.nums(uint64(c.noted), c.notedSize)
	}
	w.end(BlockState)
}

// writeNames writes what was named since the base. Numbers are never reused, so new names are
// always at the end.
func (c *Capture) writeNames(w *blockWriter) {
	w.list(BlockItems, uint64(c.base.Items), uint64(c.extent.Items), func(n uint64) {
		w.b = append(w.b, c.items[n].kind)
		w.str(c.items[n].id)
	})
	w.list(BlockCounters, uint64(c.base.Counters), uint64(c.extent.Counters), func(n uint64) {
		w.num(uint64(c.counters[n].width))
		w.str(c.counters[n].name)
	})
	w.list(BlockPools, uint64(c.base.Pools), uint64(c.extent.Pools), func(n uint64) { w.str(c.pools[n].state.id) })
}

func (c *Capture) writePools(w *blockWriter) {
	for num := range c.pools {
		p := &c.pools[num]
		first := uint64(0)
		if num < len(c.base.Entries) {
			first = uint64(c.base.Entries[num])
		}
		if entries := uint64(len(p.entries)); first < entries {
			w.list(BlockEntries, first, entries, func(n uint64) { w.str(p.entries[n]) }, uint64(num), p.last)
		} else if !c.partial || p.last > c.base.Position {
			w.nums(uint64(num), p.last, first)
			w.end(BlockEntries)
		}
	}
	for num := range c.pools {
		for i := range c.pools[num].live() {
			w.work(workItem)
			stock, drawn := c.entries(uint32(num), uint32(i))
			if drawn == nil {
				continue
			}
			w.nums(uint64(num), uint64(i))
			for e := range drawn {
				w.nums(stock[e]+1, drawn[e]) // 0: unlimited
			}
			w.end(BlockStock)
		}
	}
}

func (c *Capture) writeCatalog(w *blockWriter) {
	t := &c.catalog
	if t.Version <= c.base.Version {
		return
	}
	w.nums(t.Version, t.Position, uint64(t.Index), uint64(t.Time))
	w.b = append(w.b, t.Bytes...)
	w.end(BlockCatalog)
}

func (c *Capture) writePlayers(w *blockWriter) {
	next := uint32(0)
	for n := uint32(0); n < c.extent.Players && !w.ended; n++ {
		if c.partial && n%64 == 0 && c.dirty.word(n) == 0 {
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
		if len(w.b) >= w.size {
			w.end(BlockPlayers)
			next = 0
		}
	}
	w.end(BlockPlayers)
}

// appendPlayer appends a player's encoding: the id if the base lacks it, the position of the last
// change, the slots.
func (c *Capture) appendPlayer(buf []byte, n uint32, last uint64, id []byte, holdings []slot) []byte {
	if !c.partial || n >= c.base.Players {
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
	for n, r := range c.ids.from(c.idsFrom) {
		w.work(workItem)
		if len(w.b) == 0 {
			w.num(n)
		}
		w.nums(r.position, uint64(r.index), uint64(r.time), uint64(r.back), r.version, uint64(len(r.answer)))
		w.b = append(w.b, r.answer...)
		if len(w.b) >= w.size {
			w.end(BlockRequests)
		}
		if w.ended {
			return
		}
	}
	w.end(BlockRequests)
}

// writeTallies writes the counters of the realm, whether or not they have changed: they are few.
func (c *Capture) writeTallies(w *blockWriter) {
	for i, prev := 0, uint32(0); i < len(c.tallies); i++ {
		w.nums(uint64(c.tallies[i].Counter-prev), c.tallies[i].Value)
		prev = c.tallies[i].Counter
	}
	w.end(BlockTallies)
}

// writeOrders writes the orders there are, whether or not they have changed: they are few.
func (c *Capture) writeOrders(w *blockWriter) {
	prev := uint32(0)
	for _, o := range c.orders {
		w.nums(uint64(o.counter-prev), uint64(o.by))
		prev = o.counter
	}
	w.end(BlockOrders)
}

// writeRecords writes the leaves of records that have changed since the base. Each takes the place of what
// the base has from one key up to another.
func (c *Capture) writeRecords(w *blockWriter) {
	for i := range c.records {
		l := &c.records[i]
		if c.partial && l.last <= c.base.Position || len(c.records) == 1 && l.last == 0 {
			w.work(workLook)
			continue
		}
		w.work(workItem)
		w.num(uint64(len(l.from)))
		w.b = append(w.b, l.from...)
		var to []byte
		if i+1 < len(c.records) {
			to = c.records[i+1].from
		}
		w.num(uint64(len(to)))
		w.b = append(w.b, to...)
		w.num(uint64(len(l.at)))
		w.b = append(w.b, l.data...)
		w.work(len(l.data) / workBytes)
		if len(w.b) >= w.size {
			w.end(BlockRecords)
		}
	}
	w.end(BlockRecords)
}

// writeCodes writes what the base lacks of each list of codes: first the codes of all lists, then
// to whom they were given, then the uses.
func (c *Capture) writeCodes(w *blockWriter) {
	all := func(kind BlockKind, length func(CodesExtent) uint64, one func(l *Codes, n uint64)) {
		for num := range c.codes {
			l, base := &c.codes[num].Codes, CodesExtent{}
			if num < len(c.base.Codes) {
				base = c.base.Codes[num]
			}
			w.list(kind, length(base), length(l.extent()), func(n uint64) { one(l, n) }, uint64(num))
		}
	}
	all(BlockCodes, func(e CodesExtent) uint64 { return e.Codes }, func(l *Codes, n uint64) {
		code := l.Code(n)
		w.b = append(append(w.b, byte(len(code))), code...)
	})
	all(BlockGiven, func(e CodesExtent) uint64 { return e.Given }, func(l *Codes, n uint64) {
		g := l.GivenTo(n)
		w.nums(uint64(g.Player), g.Position, uint64(g.Time))
	})
	all(BlockUses, func(e CodesExtent) uint64 { return e.Uses }, func(l *Codes, n uint64) {
		u := l.Use(n)
		w.nums(uint64(u.Code), uint64(u.Player), u.Position, uint64(u.Time))
	})
}
