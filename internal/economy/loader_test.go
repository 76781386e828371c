package economy_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// manyPlayers returns a machine with so many players, p000 and so on.
func manyPlayers(t *testing.T, n int) *machine {
	m := newMachine(t, 1)
	m.apply(testCatalog)
	for i := range n {
		m.do(economy.Command{Kind: economy.KindGrant, Player: fmt.Sprintf("p%03d", i), Items: []catalog.Stack{{Item: "sword", Quantity: uint64(i + 1)}}})
	}
	return m
}

// TestLoaderFindsEveryPlayer: the players of a snapshot are found by id, however
// many there are and however they fall into blocks, and nobody else is.
func TestLoaderFindsEveryPlayer(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 128, 129, 300} {
		for _, size := range []int{64, 700, 1 << 18} {
			m := manyPlayers(t, n)
			c := m.s.Capture(nil)
			c.SetBlockSize(size)
			s, _ := load(t, []heldSnapshot{taken(c)})
			if s.Hash() != m.s.Hash() {
				t.Fatalf("%d players in blocks of %d bytes: another state", n, size)
			}
			for i := range n {
				h, ok := s.Player(fmt.Sprintf("p%03d", i))
				if !ok || !slices.ContainsFunc(h.Items, func(it catalog.Stack) bool { return it.Item == "sword" && it.Quantity == uint64(i+1) }) {
					t.Fatalf("%d players in blocks of %d bytes: player %d holds %+v (found: %v)", n, size, i, h.Items, ok)
				}
			}
			if _, ok := s.Player(fmt.Sprintf("p%03d", n)); ok {
				t.Fatalf("%d players in blocks of %d bytes: one more is found", n, size)
			}
		}
	}
}

// loadError loads one snapshot and returns the first error.
func loadError(snap heldSnapshot) error {
	l := economy.NewLoader()
	for _, b := range snap {
		if err := l.Block(b.kind, b.data); err != nil {
			return err
		}
	}
	return l.Loaded()
}

// TestLoaderRefusesPlayersTwice: an id that two players have is found, whether they
// stand side by side, far from one another, or in different blocks; and so is a
// player who stands in two blocks.
func TestLoaderRefusesPlayersTwice(t *testing.T) {
	m := manyPlayers(t, 300)
	for _, size := range []int{300, 1 << 18} {
		for _, pair := range [][2]int{{0, 1}, {3, 63}, {3, 64}, {63, 64}, {3, 200}, {298, 299}, {0, 299}} {
			c := m.s.Capture(nil)
			c.SetBlockSize(size)
			snap := taken(c)
			m.s.Release(c, false)
			was, is := fmt.Appendf(nil, "p%03d", pair[1]), fmt.Appendf(nil, "p%03d", pair[0])
			for i := range snap {
				if snap[i].kind == economy.BlockPlayers {
					snap[i].data = bytes.Replace(snap[i].data, was, is, 1)
				}
			}
			if err := loadError(snap); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("player %q twice", is)) {
				t.Errorf("players %d and %d have the same id, in blocks of %d bytes: %v", pair[0], pair[1], size, err)
			}
		}
	}
	c := m.s.Capture(nil)
	c.SetBlockSize(300)
	snap := taken(c)
	for i := range snap {
		if snap[i].kind == economy.BlockPlayers && snap[i-1].kind == economy.BlockPlayers {
			if err := loadError(slices.Insert(slices.Clone(snap), i, snap[i-1])); err == nil {
				t.Error("a block of players was loaded twice")
			}
			return
		}
	}
	t.Fatal("all players stand in one block")
}
