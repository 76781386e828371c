package economy

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// loaded loads what a state captures, in blocks of a size, by so many PlayerBlocks in turn.
func loaded(t *testing.T, s *State, size, most int) *State {
	t.Helper()
	c := s.Capture(nil)
	c.SetBlockSize(size)
	l := NewLoader()
	var blocks []*PlayerBlock
	n := 0
	for kind, data := range c.Blocks(func() {}) {
		var err error
		if kind != BlockPlayers {
			err = l.Block(kind, data)
		} else {
			if len(blocks) < most {
				blocks = append(blocks, l.NewPlayerBlock())
			}
			b := blocks[n%most]
			b.Decode(data)
			err = l.Join(b)
			n++
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Release(c, true)
	if err := l.Loaded(); err != nil {
		t.Fatal(err)
	}
	got, _, err := l.State()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestLoadedMemory: the memory that players were laid out in is what it would be if they
// had come one by one: full-grown chunks but for a few, each of them once, what is left of
// them counted; and the state can go on beside readers.
func TestLoadedMemory(t *testing.T) {
	s := New()
	s.applied = 1
	const items, players = 40, 40_000
	for i := range items {
		s.numberItem(&catalog.Item{ID: fmt.Sprint("i", i), Kind: catalog.KindItem})
	}
	for i := range players {
		n := s.players.add(fmt.Sprint("player", i), 1)
		s.players.change(n, 1)
		for item := range uint32(i*7919%items) + 1 {
			s.players.set(n, item, MaxQuantity) // sums of more than 64 bits
			s.items[item].supply.add(MaxQuantity)
		}
		s.players.release()
	}
	for _, c := range []struct{ size, most int }{{256 << 10, 1}, {256 << 10, 8}, {64, 3}, {10_000, 2}} {
		got := loaded(t, s, c.size, c.most)
		if err := got.Check(); err != nil || got.Hash() != s.Hash() {
			t.Fatalf("%+v: another state (%v)", c, err)
		}
		a := &got.players.mem
		var size, total, dead, used, small uint64
		seen := map[*byte]bool{}
		for i, ch := range a.about {
			if seen[a.chunks.own[i]] {
				t.Fatalf("%+v: a chunk is there twice", c)
			}
			seen[a.chunks.own[i]] = true
			size, used = size+uint64(ch.units), used+uint64(ch.used)
			if ch.units == chunkUnits && !ch.large {
				total, dead = total+chunkUnits, dead+uint64(ch.dead)
			} else {
				small++
			}
			if want := ch.units - ch.used; ch.dead != want && (uint32(i) != a.open || ch.dead != 0) {
				t.Errorf("%+v: of a chunk of %d units %d are dead, want %d", c, ch.units, ch.dead, want)
			}
		}
		live := uint64(0)
		for n := range uint32(players) {
			live += uint64(got.players.at(n).units)
		}
		if a.size != size || a.total != total || a.dead != dead || used != live || !a.opened {
			t.Errorf("%+v: %d units, %d of them full-grown, %d of these dead, %d in use; the chunks and players say %d, %d, %d, %d", c, a.size, a.total, a.dead, used, size, total, dead, live)
		}
		if most := live + uint64(c.most+1)*2*chunkUnits; size > most || small > uint64(c.most)*10 {
			t.Errorf("%+v: %d units in %d chunks, %d of them small, for %d in use", c, size, len(a.about), small, live)
		}
		if got.alone || got.players.alone || got.players.index.alone || got.players.index.deferred || got.ids.index.deferred {
			t.Errorf("%+v: nobody may read it", c)
		}
		got.players.change(players-1, 2)
		got.players.release()
	}
}

// TestTally: what is added up by item is what it would be one by one.
func TestTally(t *testing.T) {
	const items = tallied + 10
	var tl tally
	got, want := make([]itemState, items), make([]itemState, items)
	for round := range 3 {
		tl.ready(items)
		for i := range 5000 {
			for _, item := range []uint32{0, 1, tallied - 1, tallied, items - 1} {
				q := uint64(MaxQuantity) - uint64(i)
				tl.add(item, q)
				want[item].supply.add(q)
				if item < tallied {
					tl.small[item] += 100
					want[item].supply.add(100)
				}
			}
			if i == 2500 {
				tl.countRest(got)
			}
		}
		tl.count(got)
		for i := range want {
			if got[i].supply != want[i].supply {
				t.Fatalf("round %d, item %d: %v, want %v", round, i, got[i].supply, want[i].supply)
			}
		}
	}
}
