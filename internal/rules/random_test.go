package rules_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// picker picks one of n: rapid's choice, or that of a seed.
type picker func(label string, n int) int

func seeded(seed uint64) picker {
	r := rand.New(rand.NewPCG(seed, 7))
	return func(_ string, n int) int { return r.IntN(n) }
}

// randomCatalog writes a catalog in which pools lead to each other, little is in stock, and
// some of what others have is missing.
func randomCatalog(pick picker) string {
	const pools = 6
	var b strings.Builder
	have := []string{"gem", "hoard"}
	fmt.Fprintf(&b, "kuji: 1\nname: v%d\nitems: {gem: {kind: currency}, hoard: {}", pick("name", 1000))
	for _, item := range []string{"key", "sword", "late"} {
		if pick("has "+item, 4) > 0 {
			have = append(have, item)
			fmt.Fprintf(&b, ", %s: {}", item)
		}
	}
	item := func() string { return have[pick("item", len(have))] }
	fmt.Fprintf(&b, "}\nstart: {gem: %d, hoard: %d}\npools:\n", 5+pick("gems", 40), []uint64{1, rules.MaxQuantity - 991, rules.MaxQuantity}[pick("hoard", 3)])
	gone := map[int]bool{}
	for i := range pools {
		if gone[i] = pick("pool is gone", 6) == 0; gone[i] && i > 0 {
			continue
		}
		raffle := pick("raffle", 3) == 0
		fmt.Fprintf(&b, "  p%d:\n    max_count: %d\n", i, 1+pick("max_count", 8))
		switch pick("price", 4) {
		case 0:
			fmt.Fprintf(&b, "    price: {%s: 1}\n", item())
		case 1:
			fmt.Fprintf(&b, "    price: {gem: %d, hoard: 1}\n", 1+pick("gems", 2))
		}
		if pick("timed", 8) == 0 {
			from := monday + int64(pick("starts", 5))*12*3_600_000
			fmt.Fprintf(&b, "    starts: %s\n    ends: %s\n", stamp(from), stamp(from+int64(1+pick("ends", 5))*6*3_600_000))
		}
		randomLimits(&b, pick)
		if raffle {
			b.WriteString("    mode: raffle\n")
		}
		b.WriteString("    entries:\n")
		for e := range 5 {
			if e > 0 && pick("entry is gone", 3) == 0 {
				continue
			}
			stock, weight := fmt.Sprint(pick("stock", 6)), pick("weight", 4)
			if !raffle && pick("unlimited", 4) == 0 {
				stock = "unlimited"
			}
			if e == 0 {
				stock, weight = "3", 1
			}
			fmt.Fprintf(&b, "      - {id: e%d, stock: %s", e, stock)
			if !raffle {
				fmt.Fprintf(&b, ", weight: %d", weight)
			}
			to := i + 1 + pick("to", pools)
			switch {
			case to < pools:
				fmt.Fprintf(&b, ", reward: {pool: TO%d}}\n", to)
			case pick("reward", 8) == 0:
				b.WriteString(", reward: {items: {hoard: {min: 1, max: 200}}}}\n")
			case pick("reward", 6) == 0:
				b.WriteString("}\n")
			default:
				fmt.Fprintf(&b, ", reward: {items: {%s: {min: 1, max: 2}}}}\n", item())
			}
		}
	}
	text := b.String()
	for i := range pools { // what leads to a pool that is gone gives nothing
		if to := fmt.Sprintf("{pool: TO%d}", i); gone[i] {
			text = strings.ReplaceAll(text, to, "nothing")
		} else {
			text = strings.ReplaceAll(text, to, fmt.Sprintf("{pool: p%d}", i))
		}
	}
	return text
}

func randomLimits(b *strings.Builder, pick picker) {
	if pick("limited", 3) > 0 {
		return
	}
	b.WriteString("    limits:\n")
	for _, l := range []string{"per: day, draws: 4", "per: week, draws: 7", "per: forever, draws: 12", "per: window, window: 30m, draws: 2", "per: window, window: 12h, draws: 5"} {
		if pick("limit", 2) == 0 {
			fmt.Fprintf(b, "      - {%s}\n", l)
		}
	}
	b.WriteString("      - {per: window, window: 1ms, draws: 7}\n")
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// randomCommand makes commands that often collide: few players, little stock.
func randomCommand(pick picker) rules.Command {
	player := func() string { return fmt.Sprint("p", pick("player", 4)) }
	stacks := func() (all []catalog.Stack) {
		names := []string{"gem", "key", "sword", "hoard", "late", "nosuch"}
		from := pick("item", len(names))
		for i := range 1 + pick("items", 2) {
			q := 1 + uint64(pick("quantity", 4))
			if pick("many", 30) == 0 {
				q = rules.MaxQuantity - q
			}
			all = append(all, of(names[(from+i)%len(names)], q))
		}
		return all
	}
	body := func() rules.Command {
		switch pick("kind", 8) {
		case 0:
			return consume(player(), stacks()...)
		case 1:
			c := transfer(player(), player(), stacks()...)
			if c.Player == c.To {
				c.To = "other"
			}
			return c
		case 2:
			return grant(player(), stacks()...)
		}
		pool := pick("pool", 20)
		if pool < 18 {
			pool %= 6
		}
		return draw(player(), fmt.Sprint("p", pool), 1+pick("count", 3))
	}
	if pick("group", 3) > 0 {
		return body()
	}
	c := rules.Command{Kind: rules.KindAtomic}
	for range 1 + pick("members", 4) {
		c.Members = append(c.Members, body())
	}
	return c
}

// near is a source whose values stay close to the first one, so that it nearly always
// chooses the first, the last or the middle of anything. They do move: a value that is
// rejected for being biased must not come for ever.
type near struct{ value uint64 }

func (n *near) Uint64() uint64 {
	n.value += 1 << 40
	return n.value
}

// barren is a source that must not be asked.
type barren struct{ r *realm }

func (b barren) Uint64() uint64 {
	b.r.t.Fatalf("a command that fails took randomness")
	return 0
}

// wantNoChoice checks that whether a command succeeds, and why not, is the same for every
// stream of randomness, so that nobody can draw again for nothing until the outcome
// pleases. A command that fails takes no randomness.
func wantNoChoice(r *realm, cmd *rules.Command, all bool) {
	r.t.Helper()
	m := uint64(math.MaxUint64)
	sources := []rules.Source{&near{}, &near{m - 1<<50}, &near{1 << 63}, rand.NewPCG(1, 2)}
	if !all {
		return
	}
	first, was := r.decide(cmd, sources[0])
	subject, failed := r.subject(&was), r.failed(&was)
	for i, src := range sources[1:] {
		r.rules.Reset(r.rules.Tables()) // what was decided is never applied
		status, ev := r.decide(cmd, src)
		if status != first || r.subject(&ev) != subject || r.failed(&ev) != failed {
			r.t.Fatalf("%+v ends %v, with source %d it ends %v", cmd, first, i+1, status)
		}
	}
	r.rules.Reset(r.rules.Tables())
	if first != rules.OK {
		r.decide(cmd, barren{r})
	}
}
