package rules_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
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
	for {
		yaml := anyCatalog(pick)
		_, err := catalog.Parse([]byte(yaml))
		for err != nil && strings.Contains(err.Error(), "budget") { // too small for what an entry gives, perhaps: without the last
			all := budgetLine.FindAllStringIndex(yaml, -1)
			last := all[len(all)-1]
			yaml = yaml[:last[0]] + yaml[last[1]:]
			_, err = catalog.Parse([]byte(yaml))
		}
		if err == nil || !strings.Contains(err.Error(), "through all pools") && !strings.Contains(err.Error(), "hold with pity") {
			return yaml
		}
	}
}

// anyCatalog is a random catalog whose draws may take more entries than one may, and whose guarantees
// may be more than pity leaves draws for.
func anyCatalog(pick picker) string {
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
	fmt.Fprintf(&b, "}\nzone: %s", []string{"UTC", "Asia/Kathmandu", "America/St_Johns"}[pick("zone", 3)])
	b.WriteString([]string{"", "\nday: {begins: 05:00, week: sunday}", "\nday: {begins: 23:59}", "\nday: {week: thursday}"}[pick("day", 4)])
	funds := fmt.Sprintf("{per: %s, of: {gem: %d}, share: fund}", []string{"hour", "day", "week", "month", "forever"}[pick("per", 5)], 20+pick("fund", 60))
	fmt.Fprintf(&b, "\nstart: {gem: %d, hoard: %d}\npools:\n", 5+pick("gems", 40), []uint64{1, rules.MaxQuantity - 991, rules.MaxQuantity}[pick("hoard", 3)])
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
			case stock == "unlimited" && pick("reward", 3) == 0: // a pool that cannot run out
				fmt.Fprintf(&b, ", reward: [{items: {%s: 1}}, {pool: q4}, {pool: q5, times: {min: 1, max: 2}}]}\n", item())
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
	for i := range 6 {
		b.WriteString(randomRules(pick, i, item, funds))
	}
	b.WriteString(randomBox(pick, item))
	b.WriteString(randomCollection(pick, have[2:]))
	b.WriteString(randomSplash(pick, item, funds))
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

// list writes some of a list, at least one.
func list(pick picker, all ...string) string {
	some := []string{all[pick("one", len(all))]}
	for _, s := range all {
		if s != some[0] && pick("more", 3) == 0 {
			some = append(some, s)
		}
	}
	return "[" + strings.Join(some, ", ") + "]"
}

// randomRules writes pool qi, which has an entry for everybody that cannot run out, and leads only to
// those with higher numbers.
func randomRules(pick picker, i int, item func() string, funds string) string {
	var b strings.Builder
	chance := func(n int) bool { return pick("chance", n) == 0 }
	fmt.Fprintf(&b, "  q%d:\n", i)
	each, rolls := chance(5), ""
	if chance(3) {
		rolls = fmt.Sprintf("{min: %d, max: 2}", 1+pick("rolls", 2))
	}
	distinct := rolls != "" && !each && chance(2)
	if distinct {
		rolls = strings.Replace(rolls, "}", ", distinct: true}", 1)
	}
	if rolls != "" {
		fmt.Fprintf(&b, "    rolls: %s\n", rolls)
	}
	var tracks []string
	switch {
	case chance(4):
		b.WriteString("    internal: true\n")
	default:
		b.WriteString("    max_count: 8\n")
		randomPrice(&b, pick, item)
		if chance(6) {
			fmt.Fprintf(&b, "    when: {lacks: [%s]}\n", item())
		}
		if rolls == "" && !each && chance(2) {
			groups := []string{"g1", "g2", "always"}
			fmt.Fprintf(&b, "    guarantee: [{draws: %d, at_least: 1, of: %s}", 2+pick("draws", 4), list(pick, groups...))
			if chance(2) {
				fmt.Fprintf(&b, ", {draws: %d, at_least: 1, of: %s}", 2+pick("draws", 4), list(pick, groups...))
			}
			b.WriteString("]\n")
		}
	}
	if !each && !distinct && !chance(3) {
		b.WriteString("    pity:\n")
		for n := range 1 + pick("tracks", 3) {
			name := fmt.Sprint("t", n)
			tracks = append(tracks, name)
			fmt.Fprintf(&b, "      %s: {of: %s", name, list(pick, "g1", "g2", "g3", "always"))
			from := 1 + pick("from", 3)
			if chance(2) {
				fmt.Fprintf(&b, ", certain: %d", from+pick("certain", 4))
			}
			switch pick("rising", 3) {
			case 0:
				fmt.Fprintf(&b, ", rising: {from: %d, by: %d.%d}", from, 1+pick("by", 60), pick("by", 10))
			case 1:
				fmt.Fprintf(&b, ", rising: {from: %d, by: [%d, 0.125, %d]}", from, pick("by", 100), pick("by", 101))
			}
			if chance(2) {
				fmt.Fprintf(&b, ", share: s%d", n)
			}
			b.WriteString("}\n")
		}
	}
	randomBudget(&b, pick, distinct, item, funds)
	key, most := "weight", 8
	if each {
		b.WriteString("    mode: each\n")
		key, most = "chance", 101
	}
	fmt.Fprintf(&b, "    entries:\n      - {id: always, %s: 3, reward: {items: {%s: 1}}}\n      - {id: blank, %s: 2, group: g3}\n", key, item(), key)
	fmt.Fprintf(&b, "      - {id: some, %s: 1, group: g2, stock: %d}\n      - {id: few, %s: 1, group: g1, when: {lacks: [%s]}}\n", key, pick("stock", 5), key, item())
	for e := range 1 + pick("entries", 5) {
		fmt.Fprintf(&b, "      - {id: e%d, %s: %d, group: g%d", e, key, pick("weight", most), 1+e%3)
		if chance(3) {
			fmt.Fprintf(&b, ", stock: %d", pick("stock", 8))
		}
		switch own := item(); pick("when", 6) {
		case 0:
			fmt.Fprintf(&b, ", when: {holds: {%s: %d}}", own, 1+pick("holds", 3))
		case 1:
			fmt.Fprintf(&b, ", when: {lacks: [%s]}", own)
		case 2:
			if len(tracks) > 0 {
				fmt.Fprintf(&b, ", when: {pity: {%s: %d}}", tracks[pick("track", len(tracks))], 1+pick("draws", 3))
			}
		}
		if !each && chance(5) {
			of := "item: " + item()
			if len(tracks) > 0 && chance(2) {
				of = "pity: " + tracks[pick("track", len(tracks))]
			}
			fmt.Fprintf(&b, ", luck: {%s, weights: [{from: 1, weight: %d}, {from: %d, weight: %d.5}]}", of, pick("weight", 9), 2+pick("from", 9), pick("weight", 20))
		}
		to := i + 1 + pick("to", 6)
		if each && i < 3 { // all of its entries together may lead to so many
			to = 6
		}
		switch {
		case chance(6):
			fmt.Fprintf(&b, ", reward: [{code: %s}, {items: {%s: {min: 1, max: 2}}}]}\n", []string{"alpha", "beta"}[pick("list", 2)], item())
		case to < 6 && chance(2):
			fmt.Fprintf(&b, ", reward: {pool: q%d}}\n", to)
		case to < 6:
			fmt.Fprintf(&b, ", reward: [{items: {%s: {min: 1, max: 3}}}, {pool: q%d, times: {min: 1, max: %d}}]}\n", item(), to, 1+pick("times", 1+min(i, 1)))
		case chance(3):
			fmt.Fprintf(&b, ", unique: true, reward: {items: {%s: 1}}}\n", item())
		default:
			fmt.Fprintf(&b, ", reward: {items: {%s: {min: 1, max: 4}}}}\n", item())
		}
	}
	if each { // whose entries have no groups
		return regexp.MustCompile(", group: g[0-9]").ReplaceAllString(b.String(), "")
	}
	return b.String()
}

func randomPrice(b *strings.Builder, pick picker, item func() string) {
	if pick("priced", 2) == 0 {
		return
	}
	fmt.Fprintf(b, "    price: [{%s: 1}, {gem: 2}]\n", item())
	if pick("bundles", 2) == 0 {
		fmt.Fprintf(b, "    bundles: [{draws: 2, price: {%s: 1}}, {draws: 3, price: {gem: 3}}]\n", item())
	}
	if pick("free", 2) == 0 {
		fmt.Fprintf(b, "    free: {per: %s, draws: %d}\n", []string{"day", "week", "month", "forever"}[pick("per", 4)], 1+pick("free", 3))
	}
}

// randomBox writes a raffle with a last ticket, which is filled again, and pity.
func randomBox(pick picker, item func() string) string {
	return fmt.Sprintf(`  box:
    mode: raffle
    refill: %d
    rolls: %d
    last: [{items: {%s: {min: 1, max: 2}}}, {pool: q4}]
    pity: {a: {certain: %d}}
    entries:
      - {id: a, stock: %d, reward: {items: {%s: 1}}}
      - {id: b, stock: 2, reward: {pool: q3}}
      - {id: c, stock: %d, reward: [{pool: q4}, {pool: q5}]}
`, pick("refill", 4), 1, item(), 2+pick("certain", 4), 1+pick("stock", 2), item(), pick("stock", 3))
}

// budgetLine is the line of a pool's budgets.
var budgetLine = regexp.MustCompile("(?m)^    budget: .*\n")

// randomBudget writes budgets of a pool, or none.
func randomBudget(b *strings.Builder, pick picker, distinct bool, item func() string, funds string) {
	if distinct || pick("budget", 3) > 0 { // distinct entries need some that nothing rules out
		return
	}
	own := fmt.Sprintf("{per: %s, of: {%s: %d}}", []string{"hour", "day", "month", "forever"}[pick("per", 4)], item(), 10+pick("own", 30))
	b.WriteString("    budget: " + []string{funds, own, "[" + funds + ", " + own + "]"}[pick("budgets", 3)] + "\n")
}

// randomSplash writes a pool with moments, and one that leads to it.
func randomSplash(pick picker, item func() string, funds string) string {
	var b strings.Builder
	from := monday + int64(pick("starts", 3))*5_400_000
	fmt.Fprintf(&b, "  splash:\n    starts: %s\n    ends: %s\n    max_count: 8\n", stamp(from), stamp(from+int64(1+pick("days", 6))*86_400_000))
	randomBudget(&b, pick, false, item, funds)
	if pick("rolls", 2) == 0 {
		b.WriteString("    rolls: {min: 1, max: 2}\n")
	} else if pick("guarantee", 2) == 0 {
		b.WriteString("    guarantee: [{draws: 2, at_least: 1, of: [first, coupon]}]\n")
	}
	if pick("pity", 2) == 0 {
		b.WriteString("    pity: {t0: {of: [second, coupon], certain: 3, rising: {from: 2, by: 7.5}}}\n")
	}
	moments := func() string {
		spread := []string{"even", "slots", "random"}[pick("spread", 3)]
		hours := []string{"", ", weights: {0-7: 0, 12-13: 3, 19-23: 5}", ", weights: {6-24: 1000}", ", weights: {sat-sun: 0, mon: 3, 6-24: 7}"}[pick("weights", 4)]
		missed := []string{"", ", missed: pass", ", missed: wait"}[pick("missed", 3)]
		return fmt.Sprintf("{count: %d, spread: %s%s%s}", 1+pick("count", 40), spread, hours, missed)
	}
	fmt.Fprintf(&b, "    entries:\n      - {id: first, weight: 0, moments: %s, reward: {items: {%s: {min: 1, max: 3}}}}\n", moments(), item())
	fmt.Fprintf(&b, "      - {id: blank, weight: %d}\n", 1+pick("weight", 9))
	second := []string{"{code: alpha}", "[{code: alpha}, {code: beta}, {items: {gem: 1}}]", "{pool: q4, times: 2}", fmt.Sprintf("{items: {%s: 2}}", item())}[pick("reward", 4)]
	fmt.Fprintf(&b, "      - {id: second, weight: 0, moments: %s, reward: %s}\n", moments(), second)
	fmt.Fprintf(&b, "      - {id: coupon, weight: %d, stock: %d, reward: {code: beta}}\n", 1+pick("weight", 9), pick("stock", 99))
	fmt.Fprintf(&b, "      - {id: more, weight: %d, reward: {items: {%s: {min: 1, max: 6}}}}\n", 1+pick("weight", 9), item())
	b.WriteString("  tour:\n")
	randomBudget(&b, pick, false, item, funds)
	fmt.Fprintf(&b, "    entries:\n      - {id: in, weight: 3, reward: [{pool: splash, times: {min: 1, max: 2}}, {pool: q5}]}\n")
	b.WriteString("      - {id: out, weight: 2}\n      - {id: alone, weight: 2, reward: {pool: splash}}\n")
	return b.String()
}

// randomCollection writes a pool of unique entries.
func randomCollection(pick picker, items []string) string {
	if len(items) == 0 {
		return ""
	}
	b := "  cards:\n    entries:\n"
	for i, item := range items {
		stock := []string{"unlimited", "unlimited", "1", "4"}[pick("stock", 4)]
		b += fmt.Sprintf("      - {id: %s, weight: %d, stock: %s, unique: true, reward: {items: {%s: %d}}}\n", item, 1+i, stock, item, 1+pick("quantity", 2))
	}
	return b
}

func randomLimits(b *strings.Builder, pick picker) {
	if pick("limited", 3) > 0 {
		return
	}
	b.WriteString("    limits:\n")
	for _, l := range []string{"per: day, draws: 4", "per: week, draws: 7", "per: month, draws: 9", "per: forever, draws: 12", "per: window, window: 30m, draws: 2", "per: window, window: 12h, draws: 5"} {
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
			if pick("register", 4) == 0 {
				return register(player())
			}
			return grant(player(), stacks()...)
		}
		pool := fmt.Sprint("p", pick("pool", 7))
		switch pick("pools", 6) {
		case 0, 1:
			pool = fmt.Sprint("q", pick("pool", 6))
		case 2:
			pool = []string{"box", "box", "cards", "nosuch", "splash", "tour"}[pick("pool", 6)]
		}
		d := draw(player(), pool, 1+pick("count", 3)*pick("count", 3))
		if pick("pay", 8) == 0 {
			d.Pay = []string{"gem", "key", "sword", "nosuch"}[pick("pay", 4)]
		}
		return d
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
