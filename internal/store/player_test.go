package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// set sets a key of a player to a value, and lets readers see it.
func (p *players) set(n, key uint32, v, pos uint64) {
	b := p.change(n, pos)
	p.put(b, search(b.holdings(), key), key, v)
	if p.mem.dirty() {
		p.clean()
	}
	p.unlock()
}

// join adds a player.
func (p *players) join(id string, slots uint32) uint32 {
	defer p.unlock()
	return p.add(id, p.key.hash(id), slots)
}

// TestPlayersAgainstMap changes players' slots in any order, next to maps, with much growing
// and shrinking, so that blocks move and chunks are cleaned.
func TestPlayersAgainstMap(t *testing.T) {
	const many = 3000
	r := rand.New(rand.NewPCG(1, 2))
	var p players
	p.init()
	want := make([]map[uint32]uint64, many)
	id := func(n int) string { return fmt.Sprintf("%0*d", 1+n%64, n) }
	for n := range want {
		want[n] = map[uint32]uint64{}
		if got := p.join(id(n), 0); got != uint32(n) {
			t.Fatalf("number %d for player %d", got, n)
		}
	}
	cleaned, moved := 0, 0
	for step := range 400_000 {
		n := uint32(r.IntN(many))
		if r.IntN(3) > 0 {
			n %= 100 // a few grow large
		}
		key, v := uint32(r.IntN(40)), r.Uint64N(3)
		if key%3 == 0 {
			key |= counterSlot
		}
		if n < 3 {
			key, v = uint32(r.IntN(20_000)), r.Uint64N(20)<<40 // beyond what a chunk of blocks takes
		}
		before, addr := p.mem.cleaning, p.addr(n)
		p.set(n, key, v, uint64(step))
		if v == 0 {
			delete(want[n], key)
		} else {
			want[n][key] = v
		}
		if before && !p.mem.cleaning {
			cleaned++
		}
		if p.addr(n) != addr {
			moved++
		}
		if step%97 == 0 && p.get(n, key) != v {
			t.Fatalf("step %d: player %d, key %d is %d, want %d", step, n, key, p.get(n, key), v)
		}
	}
	live := uint64(0)
	for n, w := range want {
		if got, ok := p.find(id(n)); !ok || got != uint32(n) || p.PlayerID(got) != id(n) {
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
	if _, ok := p.find("nobody"); ok {
		t.Error("nobody is found")
	}
	if limit := 2*live + 4*chunkUnits; p.mem.size > limit {
		t.Errorf("%d units of memory for %d in use; want at most %d", p.mem.size, live, limit)
	}
	p.mem.wantCounted(t)
	if cleaned == 0 || moved < 1000 {
		t.Errorf("%d chunks were cleaned, %d players moved: the test is too small", cleaned, moved)
	}
}

// wantCounted checks that an arena's sums are those of its chunks.
func (a *arena) wantCounted(t *testing.T) {
	t.Helper()
	used, dead, size := uint64(0), uint64(0), uint64(0)
	for i := range a.about {
		c := &a.about[i]
		size += uint64(c.units)
		if c.units == chunkUnits && !c.large && c.used > 0 {
			used, dead = used+chunkUnits, dead+uint64(c.dead)
		}
	}
	if a.total != used || a.dead != dead || a.size != size {
		t.Errorf("%d units, %d of full-grown chunks, %d of them dead; the chunks say %d, %d and %d", a.size, a.total, a.dead, size, used, dead)
	}
}

// TestArenaIsCleaned lets all of many players grow in step, the worst case for memory in
// blocks: every block that is freed is too small for all that are wanted.
func TestArenaIsCleaned(t *testing.T) {
	var p players
	p.init()
	const n = 50_000
	for i := range uint32(n) {
		p.join(fmt.Sprintf("player-%08d", i), 1)
	}
	for key := range uint32(12) {
		for i := range uint32(n) {
			p.set(i, key, uint64(i)+1, uint64(key)+1)
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
	p.mem.wantCounted(t)
}

// TestManyPlayers: 200,000 players are found by their ids and by their numbers, by the writer
// and by readers, and nobody else is.
func TestManyPlayers(t *testing.T) {
	const many = 200_000
	var p players
	p.init()
	id := func(n uint32) string { return fmt.Sprint("player-", n*7919) }
	for n := range uint32(many) {
		if got := p.join(id(n), 2); got != n || p.count() != int(n)+1 {
			t.Fatalf("player %d is number %d of %d", n, got, p.count())
		}
		p.set(n, n%7, uint64(n)+1, 1)
	}
	for n := range uint32(many) {
		if got, ok := p.find(id(n)); !ok || got != n || p.PlayerID(n) != id(n) || p.get(n, n%7) != uint64(n)+1 {
			t.Fatalf("player %d is found as %d, %v", n, got, ok)
		}
		b, guard := p.enter(id(n))
		if b == nil || b.num != n {
			t.Fatalf("a reader does not find player %d", n)
		}
		guard.Unlock()
		byNumber, guard := p.enterNumber(n)
		if byNumber != b {
			t.Fatalf("a reader finds player %d in two places", n)
		}
		guard.Unlock()
	}
	b, guard := p.enter("somebody else")
	if guard.Unlock(); b != nil {
		t.Error("a reader finds somebody who is not there")
	}
	if depth := p.index.own.depth; depth < 8 {
		t.Errorf("the index has a depth of %d: the test is too small", depth)
	}
	p.mem.wantCounted(t)
}

// TestMemoryIsGivenBack: a block that has a chunk of its own gives it back when it moves,
// and the chunk's number is used again.
func TestMemoryIsGivenBack(t *testing.T) {
	var p players
	p.init()
	n := p.join("large", 2*largeUnits)
	at := p.addr(n)
	p.lock(p.at(n).guard)
	p.move(p.at(n), at, 3*largeUnits)
	p.unlock()
	if p.mem.peek(at) != nil || len(p.mem.unused) != 1 {
		t.Fatal("the memory was not given back")
	}
	if b, guard := p.enter("large"); b == nil || b != p.at(n) {
		t.Error("a reader does not find where the player is now")
	} else {
		guard.Unlock()
	}
	other := p.join("other", 2*largeUnits)
	if p.addr(other) != at || len(p.mem.unused) != 0 {
		t.Error("the chunk's number was not used again")
	}
	p.mem.wantCounted(t)
}

// TestSearch finds keys that are there, and where those that are not would stand.
func TestSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 70 {
		for _, step := range []int{1, 2, 5} {
			var keys []uint32
			for k := uint32(r.IntN(4)); len(keys) < n; k += uint32(1 + r.IntN(step)) {
				keys = append(keys, k)
			}
			var h []slot
			for _, k := range keys {
				h = append(h, newSlot(k, 1))
			}
			for k := range uint32(5 * 75) {
				want, _ := slices.BinarySearch(keys, k)
				if got := search(h, k); got != want {
					t.Fatalf("%d of %v stands at %d, want %d", k, keys, got, want)
				}
			}
			if got := search(h, counterSlot|5); got != n {
				t.Fatalf("a counter of %v stands at %d", keys, got)
			}
		}
	}
}

// TestCheckFinds: damage to the memory does not go unnoticed.
func TestCheckFinds(t *testing.T) {
	for name, damage := range map[string]func(s *State){
		"a supply":           func(s *State) { s.names.items[0].supply.add(1) },
		"a balance":          func(s *State) { s.players.at(1).holdings()[0].set(7) },
		"a balance of none":  func(s *State) { s.players.at(1).holdings()[0].set(0) },
		"too much":           func(s *State) { s.players.at(1).holdings()[0].set(MaxQuantity + 1) },
		"an order":           func(s *State) { h := s.players.at(1).holdings(); h[0], h[1] = h[1], h[0] },
		"an unknown item":    func(s *State) { s.players.at(1).holdings()[1].key = 9 },
		"an unknown counter": func(s *State) { s.players.at(1).holdings()[2].key = counterSlot | 9 },
		"an id":              func(s *State) { s.players.at(1).id()[0]++ },
		"an index":           func(s *State) { h := s.players.key.hash("p1"); s.players.index.remove(h, s.players.addr(1)) },
		"a guard":            func(s *State) { s.players.at(1).guard++ },
		"the other guard":    func(s *State) { s.players.addrs.pages.own[0].guards[1]++ },
		"an address":         func(s *State) { s.players.addrs.set(1, s.players.addr(2)); s.players.recent[1].num = deadBlock },
		"the peak":           func(s *State) { s.peak = 1 },
		"a request's id":     func(s *State) { answerID(s.ids.chunks[0].data[9:])[0]++ },
		"a request":          func(s *State) { s.ids.tail++ },
		"a lost request":     func(s *State) { s.ids.index.remove(s.ids.key.hash("id1"), s.ids.placeOf(0, 0)) },
		"a version":          func(s *State) { s.catalog.Version = 0; s.ids.chunks[0].base.version = 1 },
	} {
		s := New()
		var w Writer
		apply := func(id string, write func()) {
			w.Buf = w.Buf[:0]
			w.Begin(1, id)
			w.BeginAsked()
			w.EndAsked()
			write()
			var ev Event
			if _, err := Decode(w.End(), &ev); err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(&ev, At{Position: s.applied + 1, Time: 1 << 41}, nil); err != nil {
				t.Fatal(err)
			}
		}
		apply("", func() {
			for _, id := range []string{"a", "b"} {
				w.More(Item)
				w.Buf = append(w.Buf, 1)
				w.Text(id)
			}
			w.More(Counter)
			w.Uint(1)
			w.Text("c")
		})
		for i := range 4 {
			apply(fmt.Sprint("id", i), func() {
				w.Join(fmt.Sprint("p", i))
				w.Change(Gain, 0, 5)
				w.Change(Gain, 1, 6)
				w.Change(Set, 0, 7)
			})
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { _ = recover() }() // which is to notice, too
			if damage(s); s.Check() == nil {
				t.Errorf("%s was damaged, and nothing noticed", name)
			}
		}()
	}
}
