package store

// bitmap is a set of players by number, in chunks that exist once one of their
// players is in it, so that it can be taken and begun anew in a time that hardly
// depends on how many players there are: eight bytes for each 32 768.
type bitmap struct {
	chunks []*bitmapChunk
	none   uint64 // 0: bits of a chunk that does not exist
}

type bitmapChunk [512]uint64 // 4 KiB

const bitmapBits = 64 * uint32(len(bitmapChunk{}))

// set adds n, for which grow has made room.
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

// word returns the 64 bits among which n is.
func (b *bitmap) word(n uint32) uint64 { return *b.place(n) }

// place returns where the 64 bits among which n is stand, to be read.
func (b *bitmap) place(n uint32) *uint64 {
	c := b.chunks[n/bitmapBits]
	if c == nil {
		return &b.none
	}
	return &c[n%bitmapBits/64]
}

// grow makes room for n.
func (b *bitmap) grow(n uint32) {
	for int(n/bitmapBits) >= len(b.chunks) {
		b.chunks = append(b.chunks, nil)
	}
}

// take empties the set and returns what was in it.
func (b *bitmap) take() bitmap {
	taken := *b
	b.chunks = make([]*bitmapChunk, len(taken.chunks))
	return taken
}

// join adds all that is in o, which has no more room and is given up.
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
