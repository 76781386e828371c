package economy_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// grantItems is how many items grantCatalog has: more than have numbers of one byte.
const grantItems = 150

// grantItem names the items of grantCatalog: ids of every length, many of the same.
func grantItem(i int) string {
	id := fmt.Sprint("i", i)
	if i%3 == 0 {
		return id
	}
	return id + strings.Repeat("-", i%(65-len(id)))
}

// grantCatalog leaves out items: those of a remainder.
func grantCatalog(without int) string {
	var b strings.Builder
	b.WriteString("kuji: 1\nstart: {i0: 5}\nitems:\n")
	for i := range grantItems {
		if i == 0 || i%29 != without {
			fmt.Fprintf(&b, "  %s: {}\n", grantItem(i))
		}
	}
	return b.String()
}

// grantCommand makes a command that is mostly a plain grant, and says what is
// unusual about it; what is malformed besides.
func grantCommand(r *rand.Rand, n int) (cmd economy.Command, unusual string) {
	cmd = economy.Command{Kind: economy.KindGrant, Player: fmt.Sprint("p", r.IntN(5))}
	from := r.IntN(grantItems)
	step := 1
	if r.IntN(2) == 0 {
		step = 1 + r.IntN(grantItems-1)
	}
	for i := range 1 + r.IntN(64) {
		item := catalog.Stack{Item: grantItem((from + i*step) % grantItems), Quantity: 1 + r.Uint64N(200)}
		for _, had := range cmd.Items { // the step may have come round
			if had.Item == item.Item {
				item.Item = fmt.Sprint("unheard-of", i)
				unusual = "unknown"
			}
		}
		cmd.Items = append(cmd.Items, item)
		if r.IntN(4) == 0 {
			break
		}
	}
	if r.IntN(2) == 0 {
		cmd.ID = fmt.Sprint("id", n)
	}
	one := &cmd.Items[r.IntN(len(cmd.Items))]
	switch r.IntN(40) {
	case 0:
		cmd.Items, unusual = append(cmd.Items, *one), "malformed"
	case 1:
		one.Quantity, unusual = 0, "malformed"
	case 2:
		one.Quantity, unusual = economy.MaxQuantity+1, "malformed"
	case 3:
		one.Item, unusual = "", "malformed"
	case 4:
		one.Item, unusual = strings.Repeat("x", catalog.MaxID+1), "malformed"
	case 5:
		cmd.Items, unusual = nil, "malformed"
	case 6:
		for len(cmd.Items) <= economy.MaxStacks {
			cmd.Items = append(cmd.Items, catalog.Stack{Item: fmt.Sprint("more", len(cmd.Items)), Quantity: 1})
		}
		unusual = "malformed"
	case 7:
		one.Item, unusual = "unheard-of", "unknown"
	case 8:
		cmd.Player, unusual = fmt.Sprint("late", r.IntN(5)), "late"
	case 9, 10:
		cmd.Kind, unusual = economy.KindConsume, "kind"
		for i := range cmd.Items {
			cmd.Items[i].Quantity = 1 + r.Uint64N(3)
		}
	case 11, 12, 13, 14:
		if n > 450 { // from here on supplies are large, and most grants are not plain
			cmd.Items = []catalog.Stack{{Item: "i0", Quantity: economy.MaxQuantity - r.Uint64N(1<<20)}}
		}
	}
	return cmd, unusual
}

// TestPlainGrants: a command that GrantPlain carries out gives the event and the
// state that Decide, AppendEvent and Apply give; one that it leaves to them, it does
// not touch; and what Check would refuse, it leaves.
func TestPlainGrants(t *testing.T) {
	taken, left := 0, map[string]int{}
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 10))
		m, twin := newMachine(t, seed), newMachine(t, seed)
		for n := range 600 {
			if n%100 == 0 { // catalogs come and go
				m.apply(grantCatalog(n / 100))
				twin.now = m.now
				twin.apply(grantCatalog(n / 100))
			}
			m.now += r.Int64N(1000)
			cmd, unusual := grantCommand(r, n)
			bad := cmd.Check()
			if (bad != nil) != (unusual == "malformed") {
				t.Fatalf("%+v: %v, want %q", cmd, bad, unusual)
			}
			at := economy.At{Position: m.s.Position() + 1, Time: m.now}
			var want []byte
			if bad == nil {
				ev := twin.s.Decide(&cmd, m.now, twin.src)
				if ev.Status == economy.BalanceOverflow {
					unusual = "overflow"
				}
				want = economy.AppendEvent(nil, ev)
				if err := twin.s.Apply(ev, want, at); err != nil {
					t.Fatal(err)
				}
			}

			before, head := m.s.Hash(), []byte("head")
			raw, ok, err := m.s.GrantPlain(&cmd, m.s.HashIDs(cmd.ID, cmd.Player), &at, head)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case ok && unusual != "" && unusual != "late":
				t.Fatalf("seed %d, %+v: taken, but %s", seed, cmd, unusual)
			case ok:
				taken++
				if !bytes.Equal(raw, append(head, want...)) {
					t.Fatalf("seed %d, %+v: event %x, Decide makes %x", seed, cmd, raw[len(head):], want)
				}
			default:
				left[unusual]++
				if m.s.Hash() != before || !bytes.Equal(raw, head) {
					t.Fatalf("seed %d, %+v: left to Decide, but touched", seed, cmd)
				}
				if bad == nil {
					if err := m.s.Apply(m.s.Decide(&cmd, m.now, m.src), want, at); err != nil {
						t.Fatal(err)
					}
				}
			}
			if m.s.Hash() != twin.s.Hash() {
				t.Fatalf("seed %d, %+v (plain: %v): another state than after Decide and Apply", seed, cmd, ok)
			}
		}
		if err := m.s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d grants were plain; others: %v", taken, left)
	if taken < 500 {
		t.Errorf("only %d grants were plain", taken)
	}
	for _, unusual := range []string{"malformed", "unknown", "late", "kind", "overflow"} {
		if left[unusual] < 10 {
			t.Errorf("%s: only %d commands were left to Decide", unusual, left[unusual])
		}
	}
}
