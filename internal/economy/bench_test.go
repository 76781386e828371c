package economy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// BenchmarkCommand runs a command as the engine does, without lock and log:
// decide, encode, apply.
func BenchmarkCommand(b *testing.B) {
	var yaml strings.Builder
	yaml.WriteString("kuji: 1\nitems: {gem: {kind: currency}")
	for i := range 25 {
		fmt.Fprintf(&yaml, ", item%d: {}", i)
	}
	yaml.WriteString("}\npools:\n  bench:\n    entries:\n")
	for i := range 100 {
		fmt.Fprintf(&yaml, "      - {id: e%d, weight: %d, reward: {items: {item%d: 1}}}\n", i, 1+i, i%25)
	}
	stacks := func(n int) (out []catalog.Stack) {
		for i := range n {
			out = append(out, catalog.Stack{Item: fmt.Sprint("item", i), Quantity: 1})
		}
		return out
	}
	for _, bm := range []struct {
		name string
		cmd  economy.Command
	}{
		{"draw", economy.Command{Kind: economy.KindDraw, Pool: "bench", Count: 1}},
		{"draw10", economy.Command{Kind: economy.KindDraw, Pool: "bench", Count: 10}},
		{"grant1", economy.Command{Kind: economy.KindGrant, Items: stacks(1)}},
		{"grant10", economy.Command{Kind: economy.KindGrant, Items: stacks(10)}},
		{"grant25", economy.Command{Kind: economy.KindGrant, Items: stacks(25)}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			m := newMachine(b, 1)
			m.apply(yaml.String())
			ids := make([]string, 1000)
			for i := range ids {
				ids[i] = fmt.Sprint("p", i)
				m.do(economy.Command{Kind: economy.KindGrant, Player: ids[i], Items: stacks(25)})
			}
			src := rand.NewChaCha8([32]byte{})
			cmd, buf := bm.cmd, make([]byte, 0, 4096)
			pos := uint64(len(m.log))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				cmd.Player = ids[i%1000]
				ev := m.s.Decide(&cmd, m.now, src)
				buf = economy.AppendEvent(buf[:0], ev)
				if err := m.s.Apply(ev, buf, economy.At{Position: pos, Time: m.now}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
