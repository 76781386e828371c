package economy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// aConstant is a source that always gives the same value.
type aConstant struct{}

func (aConstant) Uint64() uint64 { return 0 }

// commonDraws begins a state with one player, and returns it with what makes a common draw of an
// item, below 0 of the one that everybody has, for a player; or meets a player by it.
func commonDraws(t *testing.T, player string, items int) (s *State, draw func(item int, player string)) {
	s = New()
	text := "kuji: 1\nitems: {gem: {}}\nstart: {gem: 1}\npools:\n  pool: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}]}\n"
	for i := range items {
		text = strings.Replace(text, "gem: {}", fmt.Sprintf("gem: {}, item%d: {}", i), 1)
		text += fmt.Sprintf("  pool%d: {entries: [{id: a, weight: 1, reward: {items: {item%d: 1}}}]}\n", i, i)
	}
	c, err := catalog.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(); err != nil {
		t.Fatal(err)
	}
	prepared, err := s.Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := s.DecideCatalog(prepared)
	if err != nil {
		t.Fatal(err)
	}
	pos := uint64(0)
	apply := func(ev *Event) {
		pos++
		if err := s.Apply(ev, AppendEvent(nil, ev), At{Position: pos}); err != nil {
			t.Fatal(err)
		}
	}
	apply(ev)
	apply(s.Decide(&Command{Kind: KindDraw, Player: player, Pool: "pool", Count: 1}, 0, aConstant{}))
	for name, pt := range s.current.pool {
		if !pt.entries[0].common {
			t.Fatalf("the entry of %s is not of the commonest kind", name)
		}
	}
	return s, func(item int, player string) {
		if _, ok := s.players.find(player); !ok {
			apply(s.Decide(&Command{Kind: KindDraw, Player: player, Pool: "pool", Count: 1}, 0, aConstant{}))
			return
		}
		pool := "pool"
		if item >= 0 {
			pool = fmt.Sprint("pool", item)
		}
		pos++
		if _, _, ok, err := s.DrawPlain(&Draw{Player: player, Pool: pool}, s.HashIDs("", player), aConstant{}, &At{Position: pos}, nil); !ok || err != nil {
			t.Errorf("the draw is not plain: %v, %v", ok, err)
		}
	}
}

// TestNewItemsBesideReaders: beside draws that give players one new item after the other, in
// blocks that grow and move and are cleaned, readers see of a player what it held at one
// moment, whichever.
func TestNewItemsBesideReaders(t *testing.T) {
	const players, items = 300, 60
	name := func(p int) string { return fmt.Sprint("player ", p) }
	s, draw := commonDraws(t, "first", items)
	for p := range players {
		draw(-1, name(p)) // by which the player is met
	}
	met := s.applied
	var over atomic.Bool
	var readers sync.WaitGroup
	for seed := range uint64(2) {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 1))
			for !over.Load() && !t.Failed() {
				p := rnd.IntN(players)
				h, ok := s.Player(name(p))
				if !ok {
					t.Error("a player is not there")
					return
				}
				// Item i is given to player p by draw i*players+p.
				want := 0
				if h.Last > met {
					want = int(h.Last-met-1)/players + 1
				}
				if len(h.Items) != 1+want {
					t.Errorf("player %d, last changed at %d, holds %d items, want %d", p, h.Last, len(h.Items), 1+want)
					return
				}
				for _, it := range h.Items {
					if it.Quantity != 1 && it.Item != "gem" {
						t.Errorf("player %d holds %v", p, h.Items)
						return
					}
				}
			}
		})
	}
	for i := range items {
		for p := range players {
			draw(i*7%items, name(p))
		}
	}
	over.Store(true)
	readers.Wait()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestCommonDrawsClean: who moves leaves memory behind, which is used again.
func TestCommonDrawsClean(t *testing.T) {
	const players, items = 3000, 40
	s, draw := commonDraws(t, "first", items)
	for i := -1; i < items; i++ {
		for p := range players {
			draw(i, fmt.Sprint("player ", p))
		}
	}
	if m := &s.players.mem; m.dead*2 > m.total {
		t.Errorf("%d of %d units are dead", m.dead, m.total)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestAbandonInANewItem: a defect while a player is given a new slot does not hold up those who
// read the player or the pool.
func TestAbandonInANewItem(t *testing.T) {
	const id, items = "ann", 20
	s, draw := commonDraws(t, id, items)
	failed := 0
	for i := range items { // some of which need no larger block
		func() {
			defer func() {
				if recover() != nil {
					failed++
				}
			}()
			pages := s.players.addrs.pages.own
			s.players.addrs.pages.own = nil // no place for where the player stands
			defer func() { s.players.addrs.pages.own = pages }()
			draw(i, id)
		}()
		if failed > 0 {
			break
		}
	}
	if failed == 0 {
		t.Fatal("nothing failed")
	}
	s.Abandon()
	s.Abandon() // once more does no harm
	if _, ok := s.Player(id); !ok {
		t.Error("the player is not seen")
	}
	for i := range items {
		if _, ok := s.Pool(fmt.Sprint("pool", i)); !ok {
			t.Error("the pool is not seen")
		}
	}
}
