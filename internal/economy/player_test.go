package economy

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestPlayersAgainstMap changes players' slots in any order beside maps, with
// much growing and shrinking, so that blocks move and chunks are cleaned.
func TestPlayersAgainstMap(t *testing.T) {
	const many = 3000
	r := rand.New(rand.NewPCG(1, 2))
	var p players
	p.init()
	want := make([]map[uint32]uint64, many)
	id := func(n int) string { return fmt.Sprintf("%0*d", 1+n%64, n) }
	for n := range want {
		want[n] = map[uint32]uint64{}
		if got := p.add(id(n), 0); got != uint32(n) {
			t.Fatalf("number %d for player %d", got, n)
		}
	}
	p.release()
	cleaned := 0
	for step := range 600_000 {
		n := uint32(r.IntN(many))
		if r.IntN(3) > 0 {
			n %= 100 // a few grow large
		}
		key, v := uint32(r.IntN(40)), r.Uint64N(3)
		if n < 3 {
			key, v = uint32(r.IntN(20_000)), r.Uint64N(20) // beyond what a chunk of blocks takes
		}
		p.change(n, uint64(step))
		p.set(n, key, v)
		if v == 0 {
			delete(want[n], key)
		} else {
			want[n][key] = v
		}
		before := p.mem.cleaning
		p.release()
		if before && !p.mem.cleaning {
			cleaned++
		}
		if step%97 == 0 && p.get(n, key) != v {
			t.Fatalf("step %d: player %d, key %d is %d, want %d", step, n, key, p.get(n, key), v)
		}
	}
	live := uint64(0)
	for n, w := range want {
		if got, ok := p.find(id(n)); !ok || got != uint32(n) {
			t.Fatalf("player %q is number %d, %v", id(n), got, ok)
		}
		b := p.at(uint32(n))
		live += uint64(b.units)
		if len(b.holdings()) != len(w) {
			t.Fatalf("player %d holds %d, want %d", n, len(b.holdings()), len(w))
		}
		prev := int64(-1)
		for _, s := range b.holdings() {
			if int64(s.key) <= prev || w[s.key] != s.value() {
				t.Fatalf("player %d: key %d after %d is %d, want %d", n, s.key, prev, s.value(), w[s.key])
			}
			prev = int64(s.key)
		}
	}
	if limit := 2*live + 4*chunkUnits; p.mem.size > limit {
		t.Errorf("%d units of memory for %d in use; want at most %d", p.mem.size, live, limit)
	}
	used, dead := uint64(0), uint64(0)
	for i := range p.mem.about {
		if c := &p.mem.about[i]; c.units == chunkUnits && !c.large && c.used > 0 {
			used, dead = used+chunkUnits, dead+uint64(c.dead)
		}
	}
	if p.mem.total != used || p.mem.dead != dead {
		t.Errorf("%d units in use, %d of them dead; the chunks say %d and %d", p.mem.total, p.mem.dead, used, dead)
	}
	if cleaned == 0 {
		t.Error("nothing was cleaned: the test is too small")
	}
}

// TestArenaIsCleaned lets all players grow in step, the worst case for memory
// in blocks: every block that is freed is too small for all that are wanted.
func TestArenaIsCleaned(t *testing.T) {
	var p players
	p.init()
	const n = 50_000
	for i := range uint32(n) {
		p.add(fmt.Sprintf("player-%08d", i), 1)
		p.release()
	}
	for key := range uint32(12) {
		for i := range uint32(n) {
			p.change(i, uint64(key)+1)
			p.set(i, key, uint64(i)+1)
			p.release()
		}
	}
	live := uint64(0)
	for i := range uint32(n) {
		b := p.at(i)
		live += uint64(b.units)
		for key, s := range b.holdings() {
			if s.key != uint32(key) || s.value() != uint64(i)+1 {
				t.Fatalf("player %d holds %v", i, b.holdings())
			}
		}
	}
	if p.mem.size*5 > live*8 { // a quarter dead, and the chunks at work
		t.Errorf("%d units of memory for %d in use; want at most 1.6 times as many", p.mem.size, live)
	}
}
