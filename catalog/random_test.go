package catalog_test

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
)

// A written catalog is what an author wrote, in values: the weights are texts,
// defaults may be left out. It is turned into YAML and, independently of the
// parser, into the compiled form that the parser must arrive at.
type written struct {
	want    catalog.Catalog
	weights [][]string // of each pool's entries
	yaml    string
}

func ids(t *rapid.T, low, high int, what string) []string {
	return rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,9}`), low, high, rapid.ID).Draw(t, what)
}

// name draws a display name; every other one is none.
func name(t *rapid.T) string {
	if rapid.Bool().Draw(t, "nameless") {
		return ""
	}
	return rapid.StringMatching(`[ -~é語くじ🎲]{1,20}`).Draw(t, "name")
}

func quantity(t *rapid.T, low uint64) uint64 {
	return rapid.OneOf(rapid.Uint64Range(low, 20), rapid.Uint64Range(low, catalog.MaxQuantity)).Draw(t, "quantity")
}

func stacks(t *rapid.T, among []string) []catalog.Stack {
	var all []catalog.Stack
	for _, item := range among {
		if rapid.IntRange(0, 2).Draw(t, "held") == 0 && len(all) < catalog.MaxBundle {
			all = append(all, catalog.Stack{Item: item, Quantity: quantity(t, 1)})
		}
	}
	return all
}

// decimalText draws a decimal as authors write them, up to about 10^6.
func decimalText(t *rapid.T) string {
	return rapid.StringMatching(`(0|[1-9][0-9]{0,5})(\.[0-9]{1,9}0{0,2})?`).Draw(t, "weight")
}

// drawCatalog draws a catalog that Parse must accept.
func drawCatalog(t *rapid.T) *written {
	w := &written{}
	c := &w.want
	c.Name = name(t)
	var items []string
	for _, item := range ids(t, 1, 6, "items") {
		kind := rapid.SampledFrom([]catalog.ItemKind{catalog.KindItem, catalog.KindCurrency}).Draw(t, "kind")
		c.Items = append(c.Items, catalog.Item{ID: item, Kind: kind, Name: name(t)})
		items = append(items, item)
	}
	for i, pool := range ids(t, 0, 5, "pools") {
		p, weights := drawPool(t, items, c.Pools[:min(i, catalog.MaxPoolDepth-1)])
		p.ID = pool
		c.Pools = append(c.Pools, p)
		w.weights = append(w.weights, weights)
	}
	c.Start = stacks(t, items)
	c.Idempotency = catalog.Idempotency{Count: catalog.DefaultIdempotencyCount, Age: catalog.DefaultIdempotencyAge}
	if rapid.Bool().Draw(t, "own idempotency") {
		c.Idempotency.Count = rapid.Uint32Range(1, catalog.MaxIdempotencyCount).Draw(t, "ids")
		c.Idempotency.Age = time.Duration(rapid.Int64Range(60_000, catalog.MaxIdempotencyAge.Milliseconds()).Draw(t, "age")) * time.Millisecond
	}
	w.write(t)
	return w
}

// drawPool draws a pool. Its rewards draw from pools before it, and only the
// first few of those, so that there are no cycles and no chain is too long.
func drawPool(t *rapid.T, items []string, before []catalog.Pool) (catalog.Pool, []string) {
	p := catalog.Pool{
		Name:        name(t),
		Mode:        rapid.SampledFrom([]catalog.Mode{catalog.ModeWeighted, catalog.ModeRaffle}).Draw(t, "mode"),
		Price:       stacks(t, items),
		MaxCount:    catalog.DefaultMaxCount,
		WeightScale: 1,
	}
	if rapid.Bool().Draw(t, "timed") {
		p.StartsAt = rapid.Int64Range(1, 200_000_000_000_000).Draw(t, "starts")
		p.EndsAt = rapid.Int64Range(p.StartsAt+1, 253402300799999).Draw(t, "ends")
	}
	if rapid.Bool().Draw(t, "own max_count") {
		p.MaxCount = rapid.Uint32Range(1, catalog.MaxDrawCount).Draw(t, "max_count")
	}
	for _, per := range []catalog.Per{catalog.PerForever, catalog.PerDay, catalog.PerWeek, catalog.PerWindow} {
		if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
			l := catalog.PlayerLimit{Per: per, Draws: quantity(t, 1)}
			if per != catalog.PerForever {
				l.Draws = min(l.Draws, catalog.MaxTimedDraws)
			}
			if per == catalog.PerWindow {
				l.Window = rapid.Int64Range(1, catalog.MaxWindow.Milliseconds()).Draw(t, "window")
			}
			p.Limits = append(p.Limits, l)
		}
	}
	var weights []string
	for i, entry := range ids(t, 1, 6, "entries") {
		e := catalog.Entry{ID: entry, Reward: drawReward(t, items, before)}
		weight := ""
		switch {
		case p.Mode == catalog.ModeRaffle:
			e.Stock.Count = quantity(t, 0)
			if i == 0 {
				e.Stock.Count++
				e.Stock.Count = min(e.Stock.Count, catalog.MaxQuantity)
			}
		case i == 0: // something must be drawable
			weight, e.Stock.Unlimited = "1", true
		default:
			weight = decimalText(t)
			if e.Stock.Unlimited = rapid.Bool().Draw(t, "unlimited"); !e.Stock.Unlimited {
				e.Stock.Count = quantity(t, 0)
			}
		}
		weights = append(weights, weight)
		p.Entries = append(p.Entries, e)
	}
	if p.Mode == catalog.ModeWeighted {
		p.WeightScale = scaleExactly(weights, p.Entries)
	}
	return p, weights
}

func drawReward(t *rapid.T, items []string, before []catalog.Pool) catalog.Reward {
	switch rapid.IntRange(0, 3).Draw(t, "reward") {
	case 0:
		return catalog.Reward{Kind: catalog.RewardNothing}
	case 1:
		if len(before) > 0 {
			return catalog.Reward{Kind: catalog.RewardPool, Pool: rapid.SampledFrom(before).Draw(t, "pool").ID}
		}
	}
	w := catalog.Reward{Kind: catalog.RewardItems}
	for _, s := range stacks(t, items) {
		q := catalog.Quantity{Item: s.Item, Min: s.Quantity, Max: s.Quantity}
		if rapid.Bool().Draw(t, "range") {
			q.Max = rapid.Uint64Range(q.Min, catalog.MaxQuantity).Draw(t, "max")
		}
		w.Items = append(w.Items, q)
	}
	if len(w.Items) == 0 {
		w.Items = []catalog.Quantity{{Item: items[0], Min: 1, Max: 1}}
	}
	return w
}

// scaleExactly computes, in math/big, the smallest power of ten that makes all
// weights integers, and stores these.
func scaleExactly(weights []string, entries []catalog.Entry) uint64 {
	scale := new(big.Rat).SetInt64(1)
	ten := new(big.Rat).SetInt64(10)
	for {
		whole := true
		for i, text := range weights {
			v, ok := new(big.Rat).SetString(text)
			if !ok {
				panic(text)
			}
			v.Mul(v, scale)
			whole = whole && v.IsInt()
			if v.IsInt() {
				entries[i].Weight = v.Num().Uint64()
			}
		}
		if whole {
			return scale.Num().Uint64()
		}
		scale.Mul(scale, ten)
	}
}

// write writes the catalog as YAML, leaving out some of what is default.
func (w *written) write(t *rapid.T) {
	var b strings.Builder
	c := &w.want
	line := func(indent int, format string, args ...any) {
		b.WriteString(strings.Repeat(" ", indent))
		fmt.Fprintf(&b, format+"\n", args...)
	}
	optional := func() bool { return rapid.Bool().Draw(t, "written out") }
	named := func(indent int, name string) {
		if name != "" {
			line(indent, "name: %q", name)
		}
	}
	bundle := func(indent int, key string, all []catalog.Stack) {
		if len(all) > 0 {
			line(indent, "%s:", key)
		}
		for _, s := range all {
			line(indent+2, "%s: %d", s.Item, s.Quantity)
		}
	}
	line(0, "kuji: 1 # comment")
	named(0, c.Name)
	line(0, "items:")
	for _, i := range c.Items {
		switch {
		case i.Name == "" && i.Kind == catalog.KindItem:
			line(2, "%q: {}", i.ID)
		default:
			line(2, "%s:", i.ID)
			if i.Kind == catalog.KindCurrency {
				line(4, "kind: currency")
			} else if i.Name == "" || optional() {
				line(4, `"kind": 'item'`)
			}
			named(4, i.Name)
		}
	}
	if len(c.Pools) > 0 {
		line(0, "pools:")
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		line(2, "%s:", p.ID)
		named(4, p.Name)
		if p.Mode == catalog.ModeRaffle {
			line(4, "mode: raffle")
		} else if optional() {
			line(4, "mode: weighted")
		}
		bundle(4, "price", p.Price)
		if p.StartsAt > 0 {
			zone := time.FixedZone("", rapid.IntRange(-12*60, 14*60).Draw(t, "zone")*60)
			line(4, "starts: %s", time.UnixMilli(p.StartsAt).In(zone).Format("2006-01-02T15:04:05.000Z07:00"))
			line(4, "ends: %q", time.UnixMilli(p.EndsAt).UTC().Format("2006-01-02T15:04:05.999Z07:00"))
		}
		if p.MaxCount != catalog.DefaultMaxCount || optional() {
			line(4, "max_count: %d", p.MaxCount)
		}
		if len(p.Limits) > 0 {
			line(4, "limits:")
		}
		for _, l := range p.Limits {
			per := map[catalog.Per]string{catalog.PerForever: "forever", catalog.PerDay: "day", catalog.PerWeek: "week", catalog.PerWindow: "window"}[l.Per]
			line(6, "- draws: %d", l.Draws)
			line(8, "per: %s", per)
			if l.Per == catalog.PerWindow {
				line(8, "window: %s", duration(l.Window))
			}
		}
		line(4, "entries:")
		for j := range p.Entries {
			w.writeEntry(line, optional, &p.Entries[j], w.weights[i][j])
		}
	}
	bundle(0, "start", c.Start)
	line(0, "idempotency:")
	line(2, "count: %d", c.Idempotency.Count)
	line(2, "age: %s", duration(c.Idempotency.Age.Milliseconds()))
	w.yaml = b.String()
}

func (w *written) writeEntry(line func(int, string, ...any), optional func() bool, e *catalog.Entry, weight string) {
	line(4, "- id: %q", e.ID)
	if weight != "" {
		line(6, "weight: %s", weight)
	}
	if !e.Stock.Unlimited {
		line(6, "stock: %d", e.Stock.Count)
	} else if optional() {
		line(6, "stock: unlimited")
	}
	switch e.Reward.Kind {
	case catalog.RewardPool:
		line(6, "reward: {pool: %q}", e.Reward.Pool)
	case catalog.RewardNothing:
		if optional() {
			line(6, "reward: nothing")
		}
	case catalog.RewardItems:
		line(6, "reward:")
		line(8, "items:")
		for _, q := range e.Reward.Items {
			if q.Min == q.Max && optional() {
				line(10, "%s: %d", q.Item, q.Min)
			} else {
				line(10, "%s: {min: %d, max: %d}", q.Item, q.Min, q.Max)
			}
		}
	}
}

// duration writes milliseconds with units.
func duration(ms int64) string {
	return fmt.Sprintf("%dh%dm%ds%dms", ms/3_600_000, ms/60_000%60, ms/1000%60, ms%1000)
}
