package store

// bitmap is a set of players by number, in chunks that exist only once one of their players is in
// the set. So reset is fast: it clears eight bytes per 32,768 players.
type bitmap struct {
	chunks []*bitmapChunk
	none   uint64 // 0: bits of a chunk that does not exist
}

type bitmapChunk [512]uint64 // 4 KiB

const bitmapBits = 64 * uint32(len(bitmapChunk{}))

// set adds n. grow must have made room for it.
func (b *bitmap) set(n uint32) {
	c := b.chunks[n/bitmapBits]
	if c == nil {
		c = b.begin(n)
	}
	c[n%bitmapBits/64] |= 1 << (n % 64)
}

func (b *bitmap) begin(n uint32) *bitmapChunk {
	c := new(bitmapChunk)
	b.chunks[n/bitmapBits] = c
	return c
}

func (b *bitmap) has(n uint32) bool { return b.word(n)>>(n%64)&1 != 0 }

func (b *bitmap) word(n uint32) uint64 { return *b.place(n) }

// place returns where the 64 bits that include n are, for reading.
func (b *bitmap) place(n uint32) *uint64 {
	c := b.chunks[n/bitmapBits]
	if c == nil {
		return &b.none
	}
	return &c[n%bitmapBits/64]
}

func (b *bitmap) grow(n uint32) {
	for int(n/bitmapBits) >= len(b.chunks) {
		b.chunks = append(b.chunks, nil)
	}
}

// reset empties the set and returns its former content.
func (b *bitmap) reset() bitmap {
	taken := *b
	b.chunks = make([]*bitmapChunk, len(taken.chunks))
	return taken
}

// join adds the content of o, which must not be larger and is no longer used.
func (b *bitmap) join(o *bitmap) {
	for i, c := range o.chunks {
		switch {
		case c == nil:
		case b.chunks[i] == nil:
			b.chunks[i] = c
		default:
			for j, w := range c {
				b.chunks[i][j] |= w
			}
		}
	}
}
