package economy_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
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
	_, _, err := loadBlocks([]heldSnapshot{snap}, 0)
	return err
}

// TestLoaderOfAllSizes: players of none to very many items, of quantities of every
// length, are loaded as they were, also on top of others, and can go on.
func TestLoaderOfAllSizes(t *testing.T) {
	const items = 12_000
	var text strings.Builder
	text.WriteString("kuji: 1\nitems:\n")
	id := func(i int) string { return fmt.Sprintf("item%d", i) }
	for i := range items {
		fmt.Fprintf(&text, "  %s: {}\n", id(i))
	}
	text.WriteString("  coin: {kind: currency}\npools:\n  p: {limits: [{per: day, draws: 9}, {per: forever, draws: 90}], entries: [{id: a, weight: 1, reward: {items: {coin: 1}}}]}\n")
	m := newMachine(t, 1)
	m.apply(text.String())
	r := rand.New(rand.NewPCG(1, 1))
	give := func(player string, from, n, step int, most uint64) {
		for i := from; n > 0; {
			var stacks []catalog.Stack
			for ; len(stacks) < 64 && n > 0; n, i = n-1, i+step {
				stacks = append(stacks, catalog.Stack{Item: id(i % items), Quantity: 1 + r.Uint64N(most)})
			}
			m.do(economy.Command{Kind: economy.KindGrant, Player: player, Items: stacks})
		}
	}
	some := func(players int) {
		for range players {
			player := fmt.Sprintf("%0*d", 1+r.IntN(12), r.IntN(400))
			most := []uint64{1, 127, 128, 1 << 14, 1 << 40}[r.IntN(5)]
			switch r.IntN(8) {
			case 0:
				m.do(economy.Command{Kind: economy.KindDraw, Player: player, Pool: "p", Count: 1})
			case 1:
				give(player, r.IntN(items), 1+r.IntN(300), 1+r.IntN(200), most)
			default:
				give(player, r.IntN(20), 1+r.IntN(12), 1, most)
			}
		}
	}
	give("all", 0, items, 1, 100) // who is first, and has memory of his own
	give("nothing", 0, 1, 1, 1)
	m.do(economy.Command{Kind: economy.KindConsume, Player: "nothing", Items: []catalog.Stack{{Item: id(0), Quantity: 1}}})
	some(200)
	var chain []heldSnapshot
	var base *economy.Mark
	for range 4 {
		c := m.s.Capture(base)
		c.SetBlockSize(500 + r.IntN(5000))
		chain = append(chain, taken(c))
		m.s.Release(c, true)
		mark := c.Mark()
		base = &mark
		s, _ := load(t, chain)
		if s.Hash() != m.s.Hash() {
			t.Fatalf("after %d snapshots another state", len(chain))
		}
		some(60)
		give(fmt.Sprint("all", len(chain)), 5, items-5, 1, 100)
		give("all", 0, 1+r.IntN(items), 1, 1000)
		follow(t, m, s) // in memory that the loader has left
		if err := errors.Join(s.Check(), m.s.Check()); err != nil {
			t.Fatal(err)
		}
	}
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
			for _, most := range []int{0, 3} {
				_, _, err := loadBlocks([]heldSnapshot{snap}, most)
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("player %q twice", is)) {
					t.Errorf("players %d and %d have the same id, in blocks of %d bytes: %v", pair[0], pair[1], size, err)
				}
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

// TestLoaderRefusesRequestsTwice: an id that two remembered requests have is found, in
// one snapshot and in two that build on each other, whether or not something was
// forgotten between them.
func TestLoaderRefusesRequestsTwice(t *testing.T) {
	for _, c := range []struct {
		name   string
		was    string // what becomes the id of another
		is     string
		forget bool
	}{
		{"in one snapshot", "id11", "id10", false},
		{"in two", "id21", "id12", false},
		{"in two, and some are forgotten", "id21", "id12", true},
		{"in the second", "id21", "id20", true},
		{"no", "none", "id10", true},
	} {
		m := newMachine(t, 1)
		m.apply(`{kuji: 1, items: {gem: {}}, idempotency: {count: 4, age: 1m}}`)
		give := func(ids ...string) {
			for _, id := range ids {
				m.do(economy.Command{Kind: economy.KindGrant, ID: id, Player: "p", Items: []catalog.Stack{{Item: "gem", Quantity: 1}}})
			}
		}
		give("id10", "id11")
		if c.forget {
			m.now += 100_000
		}
		give("id12")
		first := m.s.Capture(nil)
		chain := []heldSnapshot{taken(first)}
		m.s.Release(first, true)
		give("id20", "id21")
		if n := m.s.RequestIDs(); (n < 5) != c.forget {
			t.Fatalf("%s: %d ids are remembered", c.name, n)
		}
		base := first.Mark()
		chain = append(chain, taken(m.s.Capture(&base)))
		for _, snap := range chain {
			for i := range snap {
				if snap[i].kind == economy.BlockRequests {
					snap[i].data = bytes.Replace(snap[i].data, []byte(c.was), []byte(c.is), 1)
				}
			}
		}
		_, _, err := loadBlocks(chain, 0)
		if c.was == "none" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", c.is)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestLoaderRefusesManyOfOneID: of an id that very many have the first is named, and no
// memory is filled with them.
func TestLoaderRefusesManyOfOneID(t *testing.T) {
	m := manyPlayers(t, 300)
	c := m.s.Capture(nil)
	c.SetBlockSize(300)
	snap := taken(c)
	for i := range snap {
		if snap[i].kind == economy.BlockPlayers {
			for n := 100; n < 300; n++ {
				snap[i].data = bytes.Replace(snap[i].data, fmt.Appendf(nil, "p%03d", n), []byte("p007"), 1)
			}
		}
	}
	for _, most := range []int{0, 3} {
		if _, _, err := loadBlocks([]heldSnapshot{snap}, most); err == nil || !strings.Contains(err.Error(), `player "p007" twice, the second time as number 100`) {
			t.Errorf("%d at a time: %v", most, err)
		}
	}
}

// TestLoaderRefusesPlayers: what players' blocks may hold is held to, wherever in a block it
// stands and however many bytes follow.
func TestLoaderRefusesPlayers(t *testing.T) {
	const items = 1100
	var text strings.Builder
	text.WriteString("kuji: 1\nitems:\n")
	for i := range items {
		fmt.Fprintf(&text, "  i%d: {}\n", i)
	}
	text.WriteString("pools:\n  p: {limits: [{per: day, draws: 9}, {per: window, window: 1h, draws: 9}], entries: [{id: a, weight: 1, reward: {items: {i0: 1}}}]}\n")
	m := newMachine(t, 1)
	m.apply(text.String())
	for i := range 3 {
		m.do(economy.Command{Kind: economy.KindGrant, Player: fmt.Sprint("base", i), Items: []catalog.Stack{{Item: "i0", Quantity: 1}}})
	}
	first := m.s.Capture(nil)
	base := taken(first)
	m.s.Release(first, true)
	mark := first.Mark()
	for i := range 3 {
		m.do(economy.Command{Kind: economy.KindGrant, Player: fmt.Sprint("new", i), Items: []catalog.Stack{{Item: "i0", Quantity: 1}}})
	}
	position := m.s.Position()
	second := taken(m.s.Capture(&mark))
	at := slices.IndexFunc(second, func(b heldBlock) bool { return b.kind == economy.BlockPlayers })

	num := func(b []byte, vs ...uint64) []byte {
		for _, v := range vs {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	// newcomer encodes a new player, changed one of the base.
	newcomer := func(b []byte, distance, last uint64, id string, slots ...uint64) []byte {
		b = append(append(num(b, distance), byte(len(id))), id...)
		return num(num(b, last, uint64(len(slots)/2)), slots...)
	}
	changed := func(b []byte, distance, last uint64, slots ...uint64) []byte {
		return num(num(b, distance, last, uint64(len(slots)/2)), slots...)
	}
	const limit = 1 << 31
	cases := []struct {
		name   string
		ok     bool
		blocks [][]byte // of players 3, 4 and 5, unless not ok
	}{
		{"all new in one", true, [][]byte{newcomer(newcomer(newcomer(nil, 3, 1, "x"), 0, 1, "y"), 0, 1, "z")}},
		{"changed ones before", true, [][]byte{newcomer(newcomer(newcomer(changed(changed(nil, 0, 1, 0, 5), 1, 1, 2, 5), 0, 1, "x"), 0, 1, "y"), 0, 1, "z")}},
		{"blocks of both kinds", true, [][]byte{changed(nil, 1, 1, 0, 5), newcomer(newcomer(nil, 3, 1, "x"), 0, 1, "y"), newcomer(nil, 5, 1, "z")}},
		{"a number left out", false, [][]byte{newcomer(newcomer(newcomer(nil, 3, 1, "x"), 1, 1, "y"), 0, 1, "z")}},
		{"a first number too large", false, [][]byte{newcomer(newcomer(newcomer(nil, 4, 1, "x"), 0, 1, "y"), 0, 1, "z")}},
		{"a changed one behind a new one", false, [][]byte{newcomer(newcomer(newcomer(nil, 3, 1, "x"), 0, 1, "y"), 0, 1, "z"), changed(nil, 1, 1, 0, 5)}},
		{"a changed one twice", false, [][]byte{changed(nil, 1, 1, 0, 5), changed(nil, 1, 1, 0, 5), newcomer(newcomer(newcomer(nil, 3, 1, "x"), 0, 1, "y"), 0, 1, "z")}},
		{"changed ones out of order", false, [][]byte{changed(nil, 1, 1, 0, 5), changed(nil, 0, 1, 0, 5), newcomer(newcomer(newcomer(nil, 3, 1, "x"), 0, 1, "y"), 0, 1, "z")}},
		{"one too few", false, [][]byte{newcomer(newcomer(nil, 3, 1, "x"), 0, 1, "y")}},
		{"changed later than the snapshot", false, [][]byte{newcomer(newcomer(newcomer(nil, 3, position+1, "x"), 0, 1, "y"), 0, 1, "z")}},
		{"more holdings than bytes", false, [][]byte{num(append(num(nil, 3, 1), "x"...), 1, 1<<20, 0, 1)}},
		{"no id", false, [][]byte{newcomer(newcomer(newcomer(nil, 3, 1, ""), 0, 1, "y"), 0, 1, "z")}},
	}
	for _, s := range []struct {
		name  string
		ok    bool
		slots []uint64
	}{
		{"none", true, nil},
		{"the first item", true, []uint64{0, 1}},
		{"four", true, []uint64{0, 1, 1, 127, 1, 1, 1, 1}},
		{"five, and large ones", true, []uint64{0, 1, 1, 128, 1, 1, 1, economy.MaxQuantity, 1000, 1}},
		{"the last item", true, []uint64{items - 1, 3}},
		{"up to the last item", true, []uint64{items - 3, 3, 1, 3, 1, 3}},
		{"limits", true, []uint64{3, 1, limit - 3, 0, 0, 7, 1, 7}},
		{"one beyond the last item", false, []uint64{items, 3}},
		{"beyond the last item", false, []uint64{items - 3, 3, 1, 3, 1, 3, 1, 3}},
		{"one item twice", false, []uint64{0, 1, 0, 1}},
		{"one item twice later", false, []uint64{4, 1, 1, 1, 1, 1, 0, 1, 1, 1}},
		{"nothing of an item", false, []uint64{0, 0}},
		{"nothing of an item later", false, []uint64{0, 1, 1, 1, 1, 0, 1, 1}},
		{"too much", false, []uint64{0, economy.MaxQuantity + 1}},
		{"one limit too many", false, []uint64{limit + 2, 1}},
		{"an item behind a limit", false, []uint64{limit, 1, limit + 1, 1}},
	} {
		// First among others, and last in the block, where few bytes follow.
		cases = append(cases, struct {
			name   string
			ok     bool
			blocks [][]byte
		}{"holdings: " + s.name, s.ok, [][]byte{newcomer(newcomer(newcomer(nil, 3, 1, "x", s.slots...), 0, 1, "yyyyyyyyy"), 0, 1, "z")}}, struct {
			name   string
			ok     bool
			blocks [][]byte
		}{"last holdings: " + s.name, s.ok, [][]byte{newcomer(newcomer(newcomer(nil, 3, 1, "x"), 0, 1, "y"), 0, 1, "z", s.slots...)}})
	}
	for _, c := range cases {
		snap := slices.Delete(slices.Clone(second), at, at+1)
		for i, b := range c.blocks {
			snap = slices.Insert(snap, at+i, heldBlock{economy.BlockPlayers, b})
		}
		for _, most := range []int{0, 3} {
			s, _, err := loadBlocks([]heldSnapshot{base, snap}, most)
			if (err == nil) != c.ok {
				t.Errorf("%s, %d at a time: %v", c.name, most, err)
			}
			if err == nil {
				if err := s.Check(); err != nil {
					t.Errorf("%s, %d at a time: %v", c.name, most, err)
				}
			}
		}
	}
	early := slices.Insert(slices.Clone(base), 0, second[at])
	late := append(slices.Clone(base), base[slices.IndexFunc(base, func(b heldBlock) bool { return b.kind == economy.BlockPlayers })])
	late = slices.Insert(late, len(late)-1, heldBlock{economy.BlockPast, num(nil, 1)})
	for name, snap := range map[string]heldSnapshot{"before the state": early, "behind what comes later": late} {
		if err := loadError(snap); err == nil || !strings.Contains(err.Error(), "a block of kind 8 after") {
			t.Errorf("players %s: %v", name, err)
		}
	}
}
