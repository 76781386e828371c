//go:build amd64 && !race

package economy

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

// TestGuardIsLeft: however often a reader has copied in vain, once it has ended the
// copying in one way or the other the writer does not wait for it any more.
func TestGuardIsLeft(t *testing.T) {
	for vain := range 2 * patience {
		for name, leave := range map[string]func(*guard, *reading){
			"done": func(g *guard, r *reading) { _ = g.done(r) },
			"quit": (*guard).quit,
		} {
			var g guard
			var r reading
			g.look(&r)
			for range vain {
				g.version.Add(2)
				if g.unchanged(&r) {
					t.Fatalf("a change was not noticed")
				}
			}
			if asked := g.waiting.Load() != 0; asked != (vain >= patience) {
				t.Errorf("after %d copies in vain the writer is asked to wait: %v", vain, asked)
			}
			leave(&g, &r)
			if n := g.waiting.Load(); n != 0 || !g.patient.TryLock() {
				t.Errorf("%s after %d copies in vain: the writer waits, for %d", name, vain, n)
			}
		}
	}
}

// TestFetchIsLeft has a player change all the time while it is fetched, by a writer
// who waits for nobody, so that hardly ever two looks at its guard agree.
func TestFetchIsLeft(t *testing.T) {
	s := New()
	for i := range warmFrom * 4 {
		s.players.resize(s.players.add(fmt.Sprintf("%064d", i), 3), 3)
		s.players.release()
	}
	if s.players.index.own.depth < largeDepth {
		t.Fatal("too few players: nothing is fetched")
	}
	id := fmt.Sprintf("%064d", 7) // so long that the holdings stand in another line of the cache
	n, _ := s.players.find(id)
	b := s.players.at(n)
	g := &s.players.guards[b.guard]
	var over atomic.Bool
	var asked atomic.Int64 // how many fetches the writer would have had to wait for
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for was := false; !over.Load(); {
			g.version.Add(1)
			b.last++
			b.holdings()[2].lo++
			g.version.Add(1)
			is := g.waiting.Load() != 0
			if is && !was {
				asked.Add(1)
			}
			was = is
		}
	}()
	for i := 0; i < 5_000_000 && asked.Load() < 4000; i++ {
		s.Fetch("", id)
		if n := g.waiting.Load(); n != 0 {
			t.Errorf("fetch %d: the writer waits for %d", i, n)
			break
		}
	}
	over.Store(true)
	<-ended
}

// TestReaderNotices: whatever the writer does to a player between a reader's look at
// the guard and the end of the copying, the reader learns of it.
func TestReaderNotices(t *testing.T) {
	const id = "somebody"
	for _, c := range []struct {
		name string
		does func(p *players, n uint32)
	}{
		{"a change in place", func(p *players, n uint32) { p.set(p.change(n, 2).num, 0, 7) }},
		{"a move", func(p *players, n uint32) { p.move(p.change(n, 2), p.addr(n), 100) }},
		{"cleaning", func(p *players, n uint32) {
			p.mem.about[p.addr(n)>>16].dead = chunkUnits // of what is left of it, nearly all
			p.mem.dead, p.mem.open = 2*chunkUnits, p.mem.grow(chunkUnits, false)
			was := p.addr(n)
			p.release()
			if p.addr(n) == was {
				t.Error("the player was not moved")
			}
		}},
	} {
		for _, by := range []string{"id", "number"} {
			var p players
			p.init()
			p.mem.open = p.mem.grow(chunkUnits, false)
			n := p.add(id, 2)
			p.set(n, 0, 1)
			p.release()
			enter := func(v *sight) { p.enter(id, v) }
			if by == "number" {
				enter = func(v *sight) { p.enterNumber(n, v) }
			}
			var before, within, undisturbed sight
			enter(&undisturbed)
			if !undisturbed.leave() {
				t.Fatalf("the player is not seen by %s", by)
			}
			before.begin(&p.guards[p.at(n).guard])
			enter(&within)
			c.does(&p, n)
			p.release()
			if before.see(undisturbed.at) {
				t.Errorf("%s was not noticed by who had looked at the guard", c.name)
			}
			if within.leave() {
				t.Errorf("%s was not noticed by who had entered by %s", c.name, by)
			}
		}
	}
}

// TestReaderMissesWhatIsGivenBack: memory that only one large player had is given back
// when the player moves, while a reader has its address.
func TestReaderMissesWhatIsGivenBack(t *testing.T) {
	var p players
	p.init()
	n := p.add("large", 2*largeUnits)
	p.release()
	at := p.addr(n)
	var v sight
	v.begin(&p.guards[p.at(n).guard])
	p.move(p.change(n, 2), at, 3*largeUnits)
	p.release()
	if p.mem.peek(at) != nil {
		t.Fatal("the memory was not given back")
	}
	if v.see(p.mem.peek(at)) {
		t.Error("the reader saw a player where there is none any more")
	}
	if !p.enter("large", &v) || v.head.last != 2 || !v.leave() {
		t.Error("the reader did not find where the player is now")
	}
}

// TestReadersNoticeACommonDraw: a draw of the commonest kind is seen by who reads its player or its
// pool meanwhile, and changes the two as if in one moment: neither is changed while somebody reads one
// of them who has done so in vain.
func TestReadersNoticeACommonDraw(t *testing.T) {
	const id, gem = "ann", -1
	s, draw := commonDraws(t, id, 0)
	p := s.pools[0]
	var v sight
	if !s.players.enter(id, &v) {
		t.Fatal("the player is not there")
	}
	draw(gem, id)
	if v.leave() {
		t.Fatal("who read the player meanwhile has not noticed the draw")
	}

	var seen reading
	p.guard.look(&seen)
	draw(gem, id)
	if p.guard.done(&seen) {
		t.Fatal("who read the pool meanwhile has not noticed the draw")
	}

	player, b := v.guard, s.players.lookup(id)
	for name, read := range map[string]*guard{"pool": &p.guard, "player": player} {
		read.waiting.Add(1) // as who has read it in vain does
		read.patient.Lock()
		drawn, last, began, ended := p.drawn[0], b.last, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			close(began)
			draw(gem, id)
		}()
		<-began
		for tries := 0; name == "pool" && player.version.Load()&1 == 0; tries++ {
			if tries == 1e7 {
				t.Fatal("the draw does not begin, or did not wait")
			}
			runtime.Gosched()
		}
		for range 1000 { // in which the draw could go on, were it to
			runtime.Gosched()
			if read.version.Load()&1 != 0 || p.drawn[0] != drawn || b.last != last && name == "player" {
				t.Errorf("while somebody read the %s there was a draw", name)
				break
			}
			if name == "pool" && player.version.Load()&1 == 0 {
				t.Error("the draw's player could be read while its pool was waited for")
				break
			}
		}
		read.patient.Unlock()
		read.waiting.Add(-1)
		<-ended
		if p.drawn[0] != drawn+1 || b.last == last || (player.version.Load()|p.guard.version.Load())&1 != 0 {
			t.Errorf("%s read: in the end %d are drawn, want %d; the versions are %d and %d", name, p.drawn[0], drawn+1, player.version.Load(), p.guard.version.Load())
		}
	}
}

// TestReadersNoticeANewItem: a draw of the commonest kind of an item that the player has none of, for
// which there is room or for which the player moves, is seen by who reads the player meanwhile; and who
// reads afterwards finds all items in order.
func TestReadersNoticeANewItem(t *testing.T) {
	const id, items = "ann", 40
	s, draw := commonDraws(t, id, items)
	moves := 0
	for i := range items {
		was := s.players.lookup(id)
		for range 2 { // it is new, and then it is held
			var v sight
			if !s.players.enter(id, &v) {
				t.Fatal("the player is not there")
			}
			draw(i*7%items, id)
			if v.leave() {
				t.Fatalf("item %d: who read the player meanwhile has not noticed the draw", i)
			}
		}
		if s.players.lookup(id) != was {
			moves++
		}
		var v sight
		if !s.players.enter(id, &v) {
			t.Fatal("the player is not there any more")
		}
		seen := slices.Clone(v.holdings())
		if !v.leave() {
			t.Fatal("the player is still being changed")
		}
		if len(seen) != i+2 || !slices.IsSortedFunc(seen, func(a, b slot) int { return cmp.Compare(a.key, b.key) }) {
			t.Fatalf("after %d items the player holds %v", i+1, seen)
		}
		for _, sl := range seen {
			if sl.value() != 2 {
				t.Errorf("after %d items the player holds %v, want 2 of each", i+1, seen)
			}
		}
	}
	if moves < 3 || moves > items/2 {
		t.Errorf("the player moved %d times, want some new items with a move and some without", moves)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
