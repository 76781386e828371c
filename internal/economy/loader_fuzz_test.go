package economy_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/internal/economy"
)

// pack writes snapshots down as bytes for a fuzzer: each block is its kind, its length in
// four bytes, and its bytes; a block of kind 0 ends a snapshot.
func pack(snapshots []heldSnapshot) (b []byte) {
	for _, snap := range snapshots {
		for _, bl := range snap {
			b = append(b, byte(bl.kind))
			b = binary.LittleEndian.AppendUint32(b, uint32(len(bl.data)))
			b = append(b, bl.data...)
		}
		b = append(b, 0, 0, 0, 0, 0)
	}
	return b
}

// FuzzLoader loads any blocks, two real snapshots that build on each other among them. What
// loads without an error must be fit for use: nothing panics, the invariants hold, the
// state can go on, and captured again it gives itself.
func FuzzLoader(f *testing.F) {
	m := newMachine(f, 1)
	r := rand.New(rand.NewPCG(1, 2))
	var chain []heldSnapshot
	var base *economy.Mark
	for i, c := range []string{snapshotCatalogs[0], snapshotCatalogs[1]} {
		m.apply(c)
		for n := range 40 {
			m.now += 1000
			m.do(randomCommand(r, i*1000+n))
		}
		c := m.s.Capture(base)
		c.SetBlockSize(300)
		chain = append(chain, taken(c))
		m.s.Release(c, true)
		mark := c.Mark()
		base = &mark
	}
	whole := pack(chain)
	f.Add(whole)
	f.Add(pack(chain[:1]))
	f.Add(pack(namedWithoutCatalog(f)))
	for at := 0; at < len(whole); at += len(whole)/50 + 1 {
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := economy.NewLoader()
		for len(b) >= 5 {
			kind, n := economy.BlockKind(b[0]), binary.LittleEndian.Uint32(b[1:])
			b = b[5:]
			if kind == 0 {
				if l.Loaded() != nil {
					return
				}
				continue
			}
			n = min(n, uint32(len(b)))
			if l.Block(kind, b[:n]) != nil {
				return
			}
			b = b[n:]
		}
		s, mark, err := l.State()
		if err != nil {
			return
		}
		if err := s.Ready(); err != nil {
			return
		}
		_ = s.Check() // a forged snapshot may hold anything that is well formed
		_ = s.Hash()
		_, _ = s.Player("p0")
		_, _ = s.Pool("weighted")
		_ = s.Capture(&mark)
	})
}

// namedWithoutCatalog returns two snapshots, of which the second names entries that the
// catalog in force, which it does not replace, has never heard of.
func namedWithoutCatalog(t testing.TB) []heldSnapshot {
	m := newMachine(t, 1)
	m.apply(snapshotCatalogs[0])
	first := m.s.Capture(nil)
	chain := []heldSnapshot{taken(first)}
	m.s.Release(first, true)
	m.apply(snapshotCatalogs[1])
	mark := first.Mark()
	var second heldSnapshot
	for _, b := range taken(m.s.Capture(&mark)) {
		switch b.kind {
		case economy.BlockCatalog:
			continue
		case economy.BlockState:
			var numbers []byte
			for i, rest := 0, b.data; len(rest) > 0; i++ {
				v, n := binary.Uvarint(rest)
				if rest = rest[n:]; i == 3 {
					v = 1 // the catalog's version
				}
				numbers = binary.AppendUvarint(numbers, v)
			}
			b.data = numbers
		}
		second = append(second, b)
	}
	return append(chain, second)
}

// taken writes a capture down.
func taken(c *economy.Capture) (snap heldSnapshot) {
	for kind, data := range c.Blocks(func() {}) {
		snap = append(snap, heldBlock{kind, slices.Clone(data)})
	}
	return snap
}
