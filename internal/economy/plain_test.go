package economy_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/kuji-dev/kuji/internal/economy"
)

// plainCatalog has pools whose draws are plain until they run out, and pools whose never are.
const plainCatalog = `kuji: 1
items: {gem: {kind: currency}, sword: {}, shield: {}, hoard: {}}
start: {gem: 5}
pools:
  free:    {entries: [{id: a, weight: 3, reward: {items: {gem: 1, sword: 2, shield: 3}}}, {id: b, weight: 5, reward: nothing}, {id: c, weight: 1, stock: 40, reward: {items: {sword: 1}}}]}
  common:  {entries: [{id: a, weight: 3, reward: {items: {gem: 1}}}, {id: b, weight: 2, reward: {items: {sword: 5}}}, {id: c, weight: 1, reward: {items: {shield: 1}}}, {id: d, weight: 1, reward: nothing}]}
  few:     {mode: raffle, entries: [{id: a, stock: 30, reward: {items: {sword: 1}}}, {id: b, stock: 20, reward: {items: {gem: 7}}}]}
  daily:   {limits: [{per: day, draws: 3}, {per: forever, draws: 12}], entries: [{id: a, weight: 1, reward: {items: {shield: 1}}}]}
  rolling: {limits: [{per: window, window: 90m, draws: 2}], entries: [{id: a, weight: 1, reward: {items: {shield: 1}}}]}
  season:  {starts: "2023-11-15T00:00:00Z", ends: "2023-11-16T00:00:00Z", entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}]}
  priced:  {price: {gem: 1}, entries: [{id: a, weight: 1, reward: {items: {gem: 2}}}]}
  ranged:  {entries: [{id: a, weight: 1, reward: {items: {gem: {min: 1, max: 9}}}}]}
  nested:  {entries: [{id: a, weight: 1, reward: {pool: few}}, {id: b, weight: 1, reward: nothing}]}
  heavy:   {entries: [{id: a, weight: 1, reward: {items: {hoard: 3000000000000000}}}]}
`

// counting counts the values that it gives.
type counting struct {
	src *rand.PCG
	n   int
}

func (c *counting) Uint64() uint64 { c.n++; return c.src.Uint64() }

// TestPlainDraws: a command that DrawPlain carries out gives the event, the
// outcome, the use of randomness and the state that Decide, AppendEvent and Apply
// give; and one that it leaves to them, it does not touch.
func TestPlainDraws(t *testing.T) {
	taken, left := map[string]int{}, map[string]int{}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 8))
		m, twin := newMachine(t, seed), newMachine(t, seed)
		src, twinSrc := &counting{src: rand.NewPCG(seed, 9)}, &counting{src: rand.NewPCG(seed, 9)}
		m.apply(plainCatalog)
		twin.apply(plainCatalog)
		for n := range 500 {
			m.now += r.Int64N(15 * 60 * 1000)
			cmd := plainCommand(r, n)
			if err := cmd.Check(); err != nil {
				t.Fatal(err)
			}
			ev := twin.s.Decide(&cmd, m.now, twinSrc)
			at := economy.At{Position: twin.s.Position() + 1, Time: m.now}
			want := economy.AppendEvent(nil, ev)
			if err := twin.s.Apply(ev, want, at); err != nil {
				t.Fatal(err)
			}
			outcomes := twin.s.Outcomes(ev, twin.s.Version())

			before, used := m.s.Hash(), src.n
			head := []byte("head")
			raw, given, ok, err := drawPlain(m.s, &cmd, src, at, head)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				left[cmd.Pool]++
				if m.s.Hash() != before || src.n != used || !bytes.Equal(raw, head) {
					t.Fatalf("seed %d, %+v: left to Decide, but touched", seed, cmd)
				}
				if err := m.s.Apply(m.s.Decide(&cmd, m.now, src), want, at); err != nil {
					t.Fatal(err)
				}
			} else {
				taken[cmd.Pool]++
				if !bytes.Equal(raw, append(head, want...)) {
					t.Fatalf("seed %d, %+v: event %x, Decide makes %x", seed, cmd, raw[len(head):], want)
				}
				if !reflect.DeepEqual(*given, outcomes) {
					t.Fatalf("seed %d, %+v: gave %v, Decide gives %v", seed, cmd, *given, outcomes)
				}
			}
			if m.s.Hash() != twin.s.Hash() || src.n != twinSrc.n {
				t.Fatalf("seed %d, %+v (plain: %v): another state than after Decide and Apply, or other randomness", seed, cmd, ok)
			}
		}
		if err := m.s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, pool := range []string{"free", "common", "few", "daily", "rolling", "season"} {
		if taken[pool] < 20 {
			t.Errorf("pool %s: only %d draws were plain", pool, taken[pool])
		}
	}
	for _, pool := range []string{"few", "daily", "rolling", "season", "priced", "ranged", "nested", "heavy", "nosuch"} {
		if left[pool] < 5 {
			t.Errorf("pool %s: only %d commands were left to Decide", pool, left[pool])
		}
	}
	for _, pool := range []string{"priced", "ranged", "nested"} {
		if taken[pool] > 0 {
			t.Errorf("pool %s: %d draws were plain", pool, taken[pool])
		}
	}
}

// TestPlainDrawsInSnapshots: a snapshot on top of another has what nothing but plain
// draws have changed since, also while they go on.
func TestPlainDrawsInSnapshots(t *testing.T) {
	m := newMachine(t, 1)
	m.apply(`{kuji: 1, items: {a: {}, b: {}}, pools: {common: {entries: [{id: x, weight: 2, reward: {items: {a: 1}}}, {id: y, weight: 1, reward: {items: {b: 1}}}]}}}`)
	n := 0
	draw := func() {
		n++
		cmd := economy.Command{Kind: economy.KindDraw, Player: fmt.Sprint("p", n%3), Pool: "common", Count: 1}
		_, _, ok, err := drawPlain(m.s, &cmd, m.src, m.next(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			m.do(cmd) // makes a player
		}
	}
	for range 100 {
		draw()
	}
	var chain []heldSnapshot
	var base *economy.Mark
	for round := range 6 {
		c, want := m.s.Capture(base), m.s.Hash()
		var snap heldSnapshot
		for kind, data := range c.Blocks(func() {}) {
			snap = append(snap, heldBlock{kind, bytes.Clone(data)})
			if round%2 == 0 {
				draw()
			}
		}
		m.s.Release(c, true)
		chain = append(chain, snap)
		got, mark := load(t, chain)
		if got.Hash() != want {
			t.Fatalf("after %d snapshots the loaded state differs from the captured one", len(chain))
		}
		base = &mark
		draw()
	}
}

// TestPlainDrawsBehindAGroup: what a group counted while it was decided is not what a
// plain draw behind it goes by.
func TestPlainDrawsBehindAGroup(t *testing.T) {
	for _, limit := range []string{"per: forever", "per: day", "per: window, window: 90m"} {
		m := newMachine(t, 1)
		m.apply(`{kuji: 1, items: {a: {}}, pools: {p: {limits: [{` + limit + `, draws: 4}], entries: [{id: x, weight: 1, reward: {items: {a: 1}}}]}}}`)
		cmd := economy.Command{Kind: economy.KindDraw, Player: "somebody", Pool: "p", Count: 1}
		m.do(economy.Command{Kind: economy.KindAtomic, Members: []economy.Command{cmd, cmd}})
		for n := 3; n <= 5; n++ {
			_, _, ok, err := drawPlain(m.s, &cmd, m.src, m.next(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if ok != (n <= 4) {
				t.Errorf("%s: of 4 draws, number %d was given: %v", limit, n, ok)
			}
		}
	}
}

func plainCommand(r *rand.Rand, n int) economy.Command {
	pools := []string{"free", "common", "few", "daily", "rolling", "season", "priced", "ranged", "nested", "heavy", "nosuch"}
	c := economy.Command{Kind: economy.KindDraw, Player: fmt.Sprint("p", r.IntN(5)), Pool: pools[r.IntN(len(pools))], Count: 1}
	if n > 480 {
		c.Player = fmt.Sprint("late", r.IntN(5)) // seen first by this command
	}
	if r.IntN(8) == 0 {
		c.Count = 2
	}
	if r.IntN(2) == 0 {
		c.ID = fmt.Sprint("id", n)
	}
	return c
}

// drawPlain is DrawPlain of a command, which may be none of a single draw.
func drawPlain(s *economy.State, cmd *economy.Command, src economy.Source, at economy.At, b []byte) ([]byte, *[]economy.Outcome, bool, error) {
	if cmd.Count != 1 {
		return b, nil, false, nil
	}
	return s.DrawPlain(&economy.Draw{ID: cmd.ID, Player: cmd.Player, Pool: cmd.Pool}, s.HashIDs(cmd.ID, cmd.Player), src, &at, b)
}

// TestChoicesThatNobodyMade: an event that names, among choices of entries that give an
// item the player has, one that could not have been made, is refused.
func TestChoicesThatNobodyMade(t *testing.T) {
	const yaml = `
kuji: 1
items: {gem: {kind: currency}}
pools:
  pool: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}, {id: never, weight: 0, reward: {items: {gem: 1}}}]}
start: {gem: 1}
`
	for _, choice := range []economy.Choice{{Entry: 0}, {Entry: 1}, {Entry: 2}, {Nested: true}, {Ranged: 1}} {
		m := newMachine(t, 1)
		m.apply(yaml)
		src := rand.NewPCG(1, 2)
		var err error
		for range 2 { // the first one makes the player
			cmd := economy.Command{Kind: economy.KindDraw, Player: "ann", Pool: "pool", Count: 3}
			ev := m.s.Decide(&cmd, m.now, src)
			raw := economy.AppendEvent(nil, ev)
			if err != nil || ev.Status != economy.OK {
				t.Fatal(err, ev.Status)
			}
			if m.s.Players() > 0 {
				ev.Choices[1] = choice
			}
			err = m.s.Apply(ev, raw, economy.At{Position: m.s.Position() + 1, Time: m.now})
		}
		var inconsistent *economy.InconsistentError
		if bad := choice != (economy.Choice{}); bad != errors.As(err, &inconsistent) {
			t.Errorf("choice %+v: %v, want it refused: %v", choice, err, bad)
		}
	}
}

// TestStockThatIsHardlyCounted: an entry counts among what its group has with 2^40 at most.
// What is counted stays right as its stock falls to that and below, whichever way
// a draw is carried out.
func TestStockThatIsHardlyCounted(t *testing.T) {
	for _, odds := range []string{"weighted, entries: [{weight: 1, ", "raffle, entries: [{"} {
		for _, stock := range []uint64{1<<40 + 5, 1<<40 + 6} { // draws are plain or not in turn
			m := newMachine(t, 1)
			m.apply(fmt.Sprintf("{kuji: 1, items: {a: {}}, start: {a: 1}, pools: {p: {mode: %sid: x, stock: %d, reward: {items: {a: 1}}}]}}}", odds, stock))
			for i := range 12 {
				m.do(economy.Command{Kind: economy.KindDraw, Player: "somebody", Pool: "p", Count: 1})
				if err := m.s.Check(); err != nil {
					t.Fatalf("%s stock: %d, %d drawn: %v", odds, stock, i+1, err)
				}
			}
		}
	}
}
