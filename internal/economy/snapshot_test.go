package economy_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// heldSnapshot is one snapshot's blocks, as a file would hold them.
type heldSnapshot []heldBlock

type heldBlock struct {
	kind economy.BlockKind
	data []byte
}

// load loads snapshots that build on each other, block by block and with blocks of players
// decoded beside one another, which must give the same.
func load(t *testing.T, snapshots []heldSnapshot) (*economy.State, economy.Mark) {
	t.Helper()
	one, _, err := loadBlocks(snapshots, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, mark, err := loadBlocks(snapshots, 3)
	if err != nil {
		t.Fatal(err)
	}
	if s.Hash() != one.Hash() {
		t.Fatal("blocks that were decoded beside one another give another state")
	}
	return s, mark
}

// loadBlocks loads snapshots, with so many blocks of players under way at a time; 0: as
// all other blocks.
func loadBlocks(snapshots []heldSnapshot, most int) (*economy.State, economy.Mark, error) {
	type underWay struct {
		block   *economy.PlayerBlock
		decoded chan struct{}
	}
	l := economy.NewLoader()
	var free, queue []underWay
	for range most {
		free = append(free, underWay{l.NewPlayerBlock(), make(chan struct{}, 1)})
	}
	join := func() error {
		for ; len(queue) > 0; queue = queue[1:] {
			<-queue[0].decoded
			if err := l.Join(queue[0].block); err != nil {
				return err
			}
			free = append(free, queue[0])
		}
		return nil
	}
	for _, snap := range snapshots {
		for i, b := range snap {
			var err error
			if b.kind != economy.BlockPlayers || len(free) == 0 {
				err = join()
			}
			switch {
			case err != nil:
			case b.kind == economy.BlockPlayers && most > 0:
				u := free[0]
				free, queue = free[1:], append(queue, u)
				go func() {
					u.block.Decode(b.data)
					u.decoded <- struct{}{}
				}()
			default:
				err = l.Block(b.kind, b.data)
			}
			if err != nil {
				return nil, economy.Mark{}, fmt.Errorf("up to block %d of kind %d: %w", i, b.kind, err)
			}
		}
		err := join()
		if err == nil {
			err = l.Loaded()
		}
		if err != nil {
			return nil, economy.Mark{}, err
		}
	}
	return l.State()
}

// snapshotCatalogs take turns: pools, entries, items and limits come and go.
var snapshotCatalogs = []string{testCatalog, `
kuji: 1
items:
  gem: {kind: currency}
  gem2: {kind: currency}
  gold: {kind: currency}
  sword: {}
  shield: {}
  crown: {}
pools:
  weighted:
    price: {gem: 2}
    entries:
      - {id: rare, weight: 1, stock: 45, reward: {items: {sword: 2}}}
      - {id: new, weight: 1, stock: 10, reward: {items: {crown: 1}}}
  late:
    limits: [{per: window, window: 30m, draws: 2}]
    entries:
      - {id: l, weight: 1, reward: {items: {gold: 1}}}
start: {gem: 21}
idempotency: {count: 300, age: 24h}
`}

// TestSnapshotBesideTheWriter captures states, whole and on top of one another,
// while commands go on between any two blocks, and loads them again.
func TestSnapshotBesideTheWriter(t *testing.T) {
	for seed := range uint64(30) {
		m := newMachine(t, seed)
		r := rand.New(rand.NewPCG(seed, 2))
		n, version := 0, 0
		m.apply(snapshotCatalogs[0])
		step := func() {
			n++
			m.now += r.Int64N(100_000)
			if r.IntN(300) == 0 {
				version++
				m.apply(snapshotCatalogs[version%2])
				return
			}
			cmd := randomCommand(r, n)
			if cmd.Kind == economy.KindGrant && r.IntN(2) == 0 {
				cmd.Player = fmt.Sprint("wide", r.IntN(300)) // players enough for many blocks
			}
			m.do(cmd)
		}
		for range r.IntN(400) {
			step()
		}
		var chain []heldSnapshot
		var base *economy.Mark
		for range 6 {
			if r.IntN(4) == 0 {
				chain, base = nil, nil
			}
			c := m.s.Capture(base)
			c.SetBlockSize(64 + r.IntN(300))
			want, failed := m.s.Hash(), r.IntN(4) == 0
			var snap heldSnapshot
			next, stop := iter.Pull2(c.Blocks(func() {}))
			for i := 0; ; i++ {
				kind, data, ok := next()
				if !ok || failed && i > 20 {
					break
				}
				snap = append(snap, heldBlock{kind, slices.Clone(data)})
				for range r.IntN(3) {
					step()
				}
			}
			stop()
			m.s.Release(c, !failed)
			if failed {
				continue // what it covered must be in the next one
			}
			chain = append(chain, snap)
			got, mark := load(t, chain)
			if got.Hash() != want {
				t.Fatalf("seed %d: after %d snapshots the loaded state differs from the captured one", seed, len(chain))
			}
			if err := got.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if w := c.Mark(); fmt.Sprint(mark) != fmt.Sprint(w) {
				t.Fatalf("seed %d: mark %+v after loading, want %+v", seed, mark, w)
			}
			follow(t, m, got)
			base = &mark
			for range r.IntN(200) {
				step()
			}
		}
	}
}

// follow applies to a loaded state what was logged after it, and checks that it
// becomes what the machine has.
func follow(t *testing.T, m *machine, s *economy.State) {
	t.Helper()
	var ev economy.Event
	for _, l := range m.log {
		if l.at.Position <= s.Position() {
			continue
		}
		if _, err := economy.Decode(l.raw, &ev); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(&ev, l.raw, l.at); err != nil {
			t.Fatalf("position %d: %v", l.at.Position, err)
		}
	}
	if s.Hash() != m.s.Hash() {
		t.Fatal("a loaded state that follows the log is another than the one that went on")
	}
}

// TestSnapshotOfFewChanges: of many players one changes, whichever it is, and
// request ids are forgotten meanwhile, some of those that the base has and all.
func TestSnapshotOfFewChanges(t *testing.T) {
	const players = 200
	m := newMachine(t, 1)
	m.apply(`{kuji: 1, items: {gem: {}}, idempotency: {count: 10, age: 1m}}`)
	n := 0
	grant := func(player int) {
		n++
		m.now += 7_000
		m.do(economy.Command{Kind: economy.KindGrant, ID: fmt.Sprint(n), Player: fmt.Sprint(player), Items: []catalog.Stack{{Item: "gem", Quantity: 1}}})
	}
	for i := range players {
		grant(i)
	}
	first := m.s.Capture(nil)
	chain := []heldSnapshot{taken(first)}
	m.s.Release(first, true)
	base := first.Mark()
	for i := range players {
		for range 1 + i%15 {
			grant(i)
		}
		c := m.s.Capture(&base)
		chain = append(chain, taken(c))
		m.s.Release(c, true)
		base = c.Mark()
		if got, _ := load(t, chain); got.Hash() != m.s.Hash() || got.RequestIDs() != m.s.RequestIDs() {
			t.Fatalf("player %d: the loaded state, with %d ids, is another than the one captured, with %d", i, got.RequestIDs(), m.s.RequestIDs())
		}
	}
	if m.s.RequestIDs() > 20 {
		t.Errorf("%d ids are remembered: the test is too small", m.s.RequestIDs())
	}
}

// TestSnapshotPauses: however few players have changed, and wherever they stand, the
// writing of a snapshot pauses after every few of them.
func TestSnapshotPauses(t *testing.T) {
	m := newMachine(t, 1)
	m.apply(testCatalog)
	const players = 4000
	give := func(n int) {
		m.do(economy.Command{Kind: economy.KindGrant, Player: fmt.Sprint("p", n), Items: []catalog.Stack{{Item: "gem", Quantity: 1}}})
	}
	pauses := func(base *economy.Mark) (n int, mark economy.Mark) {
		c := m.s.Capture(base)
		for range c.Blocks(func() { n++ }) {
		}
		m.s.Release(c, true)
		return n, c.Mark()
	}
	for n := range players {
		give(n)
	}
	const most = 256 // players between two
	n, mark := pauses(nil)
	if n < players/most {
		t.Errorf("%d pauses for all of %d players, want at least %d", n, players, players/most)
	}
	for n := range players {
		if n%most != 0 { // a rule that goes by numbers has its multiples
			give(n)
		}
	}
	if n, _ = pauses(&mark); n < (players-players/most)/most {
		t.Errorf("%d pauses for nearly all of %d players, want at least %d", n, players, (players-players/most)/most)
	}
}

// TestSnapshotPausesAmidItems: the more players hold, the fewer stand between two pauses.
func TestSnapshotPausesAmidItems(t *testing.T) {
	const items, players = 500, 64
	var text strings.Builder
	text.WriteString("kuji: 1\nitems:\n")
	var all []catalog.Stack
	for i := range items {
		id := fmt.Sprintf("item%d", i)
		fmt.Fprintf(&text, "  %s: {}\n", id)
		all = append(all, catalog.Stack{Item: id, Quantity: 1000})
	}
	m := newMachine(t, 1)
	m.apply(text.String())
	for n := range players {
		for stacks := range slices.Chunk(all, 16) {
			m.do(economy.Command{Kind: economy.KindGrant, Player: fmt.Sprint("p", n), Items: stacks})
		}
	}
	c, pauses := m.s.Capture(nil), 0
	for range c.Blocks(func() { pauses++ }) {
	}
	m.s.Release(c, true)
	if pauses == 0 {
		t.Errorf("no pause for %d players of %d items", players, items)
	}
}
