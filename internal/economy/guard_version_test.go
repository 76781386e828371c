//go:build amd64 && !race

package economy

import (
	"fmt"
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
		s.players.add(fmt.Sprint("player", i), 0)
		s.players.release()
	}
	if s.players.index.own.depth < largeDepth {
		t.Fatal("too few players: nothing is fetched")
	}
	const id = "player7"
	n, _ := s.players.find(id)
	b := s.players.at(n)
	g := &s.players.guards[b.guard]
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !over.Load() {
			g.version.Add(1)
			b.last++
			g.version.Add(1)
		}
	}()
	for i := range 200_000 {
		s.Fetch(id)
		if n := g.waiting.Load(); n != 0 {
			t.Errorf("fetch %d: the writer waits for %d", i, n)
			break
		}
	}
	over.Store(true)
	<-ended
}
