package economy_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
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
		{"atomic5x5", economy.Command{Kind: economy.KindAtomic, Members: slices.Repeat([]economy.Command{{Kind: economy.KindDraw, Pool: "bench", Count: 5}}, 5)}},
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
				for j := range cmd.Members {
					cmd.Members[j].Player = ids[(i+j)%1000]
				}
				ev := m.s.Decide(&cmd, m.now, src)
				buf = economy.AppendEvent(buf[:0], ev)
				if err := m.s.Apply(ev, buf, economy.At{Position: pos, Time: m.now}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRequestIDs is a draw with a new request id of 16 bytes each, by few
// players, in a window that is full of ids that have aged: each draw remembers one
// and forgets one.
func BenchmarkRequestIDs(b *testing.B) {
	for _, remembered := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint(remembered), func(b *testing.B) {
			m := newMachine(b, 1)
			m.apply(fmt.Sprintf(`{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}}, idempotency: {count: %d, age: 1m}}`, remembered))
			cmd := economy.Command{Kind: economy.KindDraw, Player: "ann", Pool: "p", Count: 1}
			id, buf := make([]byte, 16), make([]byte, 0, 100)
			pos := uint64(1)
			one := func(i int) {
				binary.BigEndian.PutUint64(id, uint64(i)*0x9E3779B97F4A7C15)
				binary.BigEndian.PutUint64(id[8:], uint64(i))
				cmd.ID = string(id)
				if i%100 == 0 {
					pos++
					m.now += 1 + int64(200_000*100/remembered) // a minute goes by long before the window has gone round
				}
				if _, ok := m.s.Remembered(cmd.ID); ok {
					b.Fatal("remembered")
				}
				if full := m.s.Admit(&cmd, m.now); full != nil {
					b.Fatal(full)
				}
				ev := m.s.Decide(&cmd, m.now, m.src)
				buf = economy.AppendEvent(buf[:0], ev)
				if err := m.s.Apply(ev, buf, economy.At{Position: pos, Time: m.now}); err != nil {
					b.Fatal(err)
				}
			}
			i := 0
			for ; i < remembered; i++ {
				one(i)
			}
			b.ReportAllocs()
			for b.Loop() {
				one(i)
				i++
			}
		})
	}
}
