package economy_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// TestReadersBesideTheWriter reads players and pools, and captures the state,
// while groups go on that keep every player's sum of two items. A reader that
// saw half a group would see another sum.
func TestReadersBesideTheWriter(t *testing.T) {
	const players, sum = 300, 1000
	m := newMachine(t, 1)
	m.apply(`{kuji: 1, items: {a: {}, b: {}, c: {}, d: {}}, start: {a: 1000},
  pools: {p: {entries: [{id: x, weight: 1, stock: 100000, reward: {items: {c: 1}}}, {id: y, weight: 1, reward: {items: {d: 1}}}]}}}`)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	read := func(f func(i int) error) {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	id := func(i int) string { return fmt.Sprint("player", i%players) }
	read(func(i int) error {
		h, ok := m.s.Player(id(i))
		got := uint64(0)
		for _, it := range h.Items {
			if it.Item < "c" {
				got += it.Quantity
			}
		}
		if ok && got != sum {
			return fmt.Errorf("%s holds %v, %d in all, want %d", id(i), h.Items, got, sum)
		}
		return nil
	})
	read(func(i int) error {
		if b := m.s.Balance(id(i), "a"); b.Quantity > sum {
			return fmt.Errorf("%s holds %d", id(i), b.Quantity)
		}
		return nil
	})
	drawn := uint64(0)
	read(func(int) error {
		v, _ := m.s.Pool("p")
		x := v.Entries[0]
		if x.Left+x.Drawn != 100000 || x.Drawn < drawn {
			return fmt.Errorf("%d left and %d drawn, after %d", x.Left, x.Drawn, drawn)
		}
		drawn = x.Drawn
		return nil
	})
	give := func(item string, q uint64) economy.Command {
		return economy.Command{Kind: economy.KindGrant, Items: []catalog.Stack{{Item: item, Quantity: q}}}
	}
	take := func(item string, q uint64) economy.Command {
		c := give(item, q)
		c.Kind = economy.KindConsume
		return c
	}
	for round := range 20 {
		c := m.s.Capture(nil)
		captured := make(chan error, 1)
		go func() {
			l := economy.NewLoader()
			var err error
			for kind, data := range c.Blocks(func() {}) {
				if err == nil {
					err = l.Block(kind, data)
				}
			}
			if err == nil {
				err = l.Loaded()
			}
			captured <- err
		}()
		for i := range 600 {
			one, two := id(i*7), id(i*7+1)
			// one, two, one again: a lock let go between the members would show.
			members := []economy.Command{take("a", 3), take("a", 1), give("b", 3), give("b", 1)}
			if round%2 == 1 {
				members = []economy.Command{take("b", 3), take("b", 1), give("a", 3), give("a", 1)}
			}
			for j := range members {
				members[j].Player = []string{one, two}[j%2]
			}
			m.do(economy.Command{Kind: economy.KindAtomic, Members: members})
			m.do(economy.Command{Kind: economy.KindDraw, Player: one, Pool: "p", Count: 1})
		}
		if err := <-captured; err != nil {
			t.Error(err)
		}
		m.s.Release(c, true)
	}
	close(stop)
	readers.Wait()
	if err := m.s.Check(); err != nil {
		t.Error(err)
	}
}

// TestSpentPoolBesideReaders: that a pool is spent shows in the pools that lead to
// it together with the position of the event that spent it.
func TestSpentPoolBesideReaders(t *testing.T) {
	m := newMachine(t, 1)
	stop := beside(func(int) bool {
		v, ok := m.s.Pool("up")
		if !ok {
			return true
		}
		// Version n is in force from position 2n-1 on, and its one draw is at 2n.
		want := 2*v.Version - 1
		if v.Entries[0].Weight == 0 {
			want++
		}
		if v.Last != want {
			t.Errorf("version %d: weight %d as of position %d, want %d", v.Version, v.Entries[0].Weight, v.Last, want)
			return false
		}
		return true
	})
	for i := range 3000 {
		m.apply(fmt.Sprintf(`{kuji: 1, items: {a: {}}, pools: {
  up: {entries: [{id: x, weight: 1, reward: {pool: down}}, {id: y, weight: 1, reward: nothing}]},
  down: {entries: [{id: x, weight: 1, stock: %d, reward: {items: {a: 1}}}]}}}`, i+1))
		if ev := m.do(economy.Command{Kind: economy.KindDraw, Player: "p", Pool: "down", Count: 1}); ev.Status != economy.OK {
			t.Fatalf("round %d: %v", i, ev.Status)
		}
	}
	stop()
}

// TestPlayersMemoryIsBounded: when players take as much memory as they can,
// commands are refused, before anything breaks.
func TestPlayersMemoryIsBounded(t *testing.T) {
	m := newMachine(t, 1)
	m.apply(testCatalog)
	m.s.SetMaxMemory(8) // two full-grown ones, behind seven that grow
	cmd := economy.Command{Kind: economy.KindGrant, Items: []catalog.Stack{{Item: "gem", Quantity: 1}}}
	for i := 0; ; i++ {
		cmd.Player = fmt.Sprint("somebody", i)
		full := m.s.Admit(&cmd, m.now)
		if full != nil {
			if full.IDs || i < 5_000 || i > 60_000 {
				t.Errorf("refused at %d players: %v", i, full)
			}
			return
		}
		if i > 100_000 {
			t.Fatal("never refused")
		}
		m.do(cmd)
	}
}

// TestNewPlayersBesideReaders lets readers chase players who are just being
// seen for the first time: one who is found has all of the starting grants.
func TestNewPlayersBesideReaders(t *testing.T) {
	const players = 20_000
	m := newMachine(t, 1)
	m.apply(`{kuji: 1, items: {a: {}, b: {}, c: {}, d: {}}, start: {a: 1, b: 2, c: 3}, pools: {p: {entries: [{id: x, weight: 1, reward: nothing}]}}}`)
	var newest atomic.Int64
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for seen := int64(0); seen < players-1; {
				seen = newest.Load()
				id := fmt.Sprint("new", seen)
				if h, ok := m.s.Player(id); ok && len(h.Items) < 3 {
					t.Errorf("%s was seen holding %v", id, h.Items)
					return
				}
			}
		})
	}
	for i := range int64(players) {
		newest.Store(i)
		m.do(economy.Command{Kind: economy.KindGrant, Player: fmt.Sprint("new", i), Items: []catalog.Stack{{Item: "d", Quantity: 1}}})
	}
	readers.Wait()
}

// TestAbandonLetsReadersGo: an event that is never applied to its end does not hold
// up those who read its player, or the pool that it draws from.
func TestAbandonLetsReadersGo(t *testing.T) {
	m := newMachine(t, 1)
	m.apply(`{kuji: 1, items: {a: {}}, pools: {p: {entries: [{id: x, weight: 1, reward: {items: {a: 1}}}]}}}`)
	m.do(economy.Command{Kind: economy.KindDraw, Player: "somebody", Pool: "p", Count: 1})
	m.s.Begin("somebody", "p")
	m.s.Abandon()
	if _, ok := m.s.Player("somebody"); !ok {
		t.Error("the player is not seen")
	}
	if _, ok := m.s.Pool("p"); !ok {
		t.Error("the pool is not seen")
	}
}
