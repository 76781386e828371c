package catalog_test

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
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
	weights [][]string      // of each pool's entries
	guesses catalog.Guesses // as written
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

// zones are some whose clocks will hardly be changed again.
var zones = []catalog.Zone{
	{},
	{Name: "Asia/Kathmandu", Offsets: []catalog.Offset{{From: 0, Seconds: 19800}, {From: 504901800, Seconds: 20700}}},
	{Name: "America/Bogota", Offsets: []catalog.Offset{
		{From: 0, Seconds: -18000}, {From: 704869200, Seconds: -14400}, {From: 729057600, Seconds: -18000},
	}},
}

// drawCatalog draws a catalog that Parse must accept.
func drawCatalog(t *rapid.T) *written {
	w := &written{}
	c := &w.want
	c.Name = name(t)
	c.Zone = rapid.SampledFrom(zones).Draw(t, "zone")
	drawCalendar(t, c)
	var items []string
	for _, item := range ids(t, 1, 6, "items") {
		kind := rapid.SampledFrom([]catalog.ItemKind{catalog.KindItem, catalog.KindCurrency}).Draw(t, "kind")
		lasts := rapid.SampledFrom([]int64{0, 0, 0, 1000, 90_061_001, catalog.MaxLasts.Milliseconds()}).Draw(t, "lasts")
		extend := lasts > 0 && rapid.Bool().Draw(t, "extend")
		family := rapid.SampledFrom([]string{"", "", "a-family", "another-family"}).Draw(t, "family")
		most, beyond := uint64(0), catalog.Beyond{}
		if rapid.IntRange(0, 3).Draw(t, "a most") == 0 {
			most = rapid.SampledFrom([]uint64{catalog.MaxQuantity}).Draw(t, "most") // what is given must fit
			beyond.Do = catalog.BeyondDo(rapid.IntRange(0, 2).Draw(t, "beyond"))
		}
		if lasts > 0 && beyond.Do == catalog.BeyondMail {
			beyond.Do = catalog.BeyondCut
		}
		if beyond.Do == catalog.BeyondMail {
			beyond.Mail = rapid.SampledFrom([]int64{60_000, 90_061_001, catalog.DefaultMail.Milliseconds()}).Draw(t, "mail")
		}
		c.Items = append(c.Items, catalog.Item{ID: item, Kind: kind, Name: name(t), Lasts: lasts, Extend: extend, Family: family, Most: most, Beyond: beyond})
		items = append(items, item)
	}
	var drawn []*drawnPool
	for i, pool := range ids(t, 0, 5, "pools") {
		p := drawPool(t, i, items, drawn[:min(i, catalog.MaxPoolDepth-1)])
		p.ID = pool
		drawn = append(drawn, p)
		c.Pools = append(c.Pools, p.Pool)
		w.weights = append(w.weights, p.texts)
	}
	if rapid.Bool().Draw(t, "redeem") {
		w.drawRedeem(t)
	}
	w.drawGoals(t, items)
	if rapid.Bool().Draw(t, "rounds") {
		w.drawRounds(t, items)
	}
	c.Start = stacks(t, items)
	c.Idempotency = catalog.Idempotency{Count: catalog.DefaultIdempotencyCount, Age: catalog.DefaultIdempotencyAge}
	if rapid.Bool().Draw(t, "own idempotency") {
		c.Idempotency.Count = rapid.Uint32Range(1, catalog.MaxIdempotencyCount).Draw(t, "ids")
		c.Idempotency.Age = time.Duration(rapid.Int64Range(60_000, catalog.MaxIdempotencyAge.Milliseconds()).Draw(t, "age")) * time.Millisecond
		if c.Idempotency.Age >= 2*catalog.MinAhead && rapid.Bool().Draw(t, "time-ordered") {
			most := min(catalog.MaxAhead, c.Idempotency.Age/2).Milliseconds()
			c.Idempotency.IDs = catalog.IDsTimeOrdered
			c.Idempotency.Ahead = time.Duration(rapid.Int64Range(catalog.MinAhead.Milliseconds(), most).Draw(t, "ahead")) * time.Millisecond
		}
	}
	if maybe(t, "purchases") {
		c.Idempotency.Purchases = rapid.StringMatching(`[ -~]{1,16}`).Draw(t, "purchases")
	}
	if rapid.Bool().Draw(t, "displays") {
		drawDisplays(t, c)
	}
	w.write(t)
	return w
}

// drawCalendar says when days begin, and has seasons.
func drawCalendar(t *rapid.T, c *catalog.Catalog) {
	if maybe(t, "day") {
		c.Day = catalog.Day{Begins: rapid.Uint32Range(0, 1439).Draw(t, "begins"), Week: catalog.Weekday(rapid.IntRange(0, 6).Draw(t, "week"))}
	}
	if !maybe(t, "seasons") {
		return
	}
	for _, season := range ids(t, 1, 3, "seasons") {
		starts := rapid.Int64Range(1, 200_000_000_000_000).Draw(t, "starts")
		c.Seasons = append(c.Seasons, catalog.Season{ID: season, Starts: starts, Ends: rapid.Int64Range(starts+1, 253402300799999).Draw(t, "ends")})
	}
}

// drawRedeem lets codes pay for draws.
func (w *written) drawRedeem(t *rapid.T) {
	c := &w.want
	if maybe(t, "guesses") {
		c.Guesses = catalog.Guesses{
			Per:   rapid.SampledFrom([]catalog.Per{catalog.PerHour, catalog.PerDay, catalog.PerWeek, catalog.PerMonth, catalog.PerForever}).Draw(t, "per"),
			Count: rapid.Uint64Range(1, catalog.MaxTimedDraws).Draw(t, "count"),
		}
	}
	w.guesses = c.Guesses
	for i, list := range ids(t, 0, 5, "lists") {
		if i >= len(c.Pools) || c.Pools[i].Internal {
			continue
		}
		r := catalog.Redeem{List: list, Times: 1, Uses: 1}
		if maybe(t, "times") {
			r.Times = rapid.Uint32Range(1, min(catalog.MaxRedeemTimes, c.Pools[i].MaxCount)).Draw(t, "times")
		}
		if maybe(t, "uses") {
			r.Uses = rapid.Uint64Range(1, catalog.MaxUses).Draw(t, "uses")
		}
		if maybe(t, "until") {
			r.Until = rapid.Int64Range(1, 253402300799999).Draw(t, "until")
		}
		c.Pools[i].Redeem = append(c.Pools[i].Redeem, r)
		if maybe(t, "another") {
			r.List += "2"
			c.Pools[i].Redeem = append(c.Pools[i].Redeem, r)
		}
		if c.Guesses.Per == 0 {
			c.Guesses = catalog.Guesses{Per: catalog.PerDay, Count: 10}
		}
	}
}

// A drawnPool is a pool with what decides how others may lead to it.
type drawnPool struct {
	catalog.Pool
	texts       []string // its weights or chances
	picks       uint64   // the most entries that a draw takes from
	endless     uint32   // entries that are there for everybody, always
	conditional bool
	adaptive    bool
}

func maybe(t *rapid.T, what string) bool { return rapid.IntRange(0, 3).Draw(t, what) == 0 }

// drawPool draws the nth pool. Its rewards draw from pools before it, and only the
// first few of those, so that there are no cycles and no chain is too long.
func drawPool(t *rapid.T, nth int, items []string, before []*drawnPool) *drawnPool {
	p := &drawnPool{Pool: catalog.Pool{
		Name:     name(t),
		Mode:     rapid.SampledFrom([]catalog.Mode{catalog.ModeWeighted, catalog.ModeRaffle, catalog.ModeEach}).Draw(t, "mode"),
		Internal: maybe(t, "internal"),
		Rolls:    catalog.Rolls{Min: 1, Max: 1},
		MaxCount: catalog.DefaultMaxCount,
	}}
	if maybe(t, "rolls") {
		p.Rolls.Max = rapid.Uint32Range(1, 4).Draw(t, "max")
		p.Rolls.Min = rapid.Uint32Range(1, p.Rolls.Max).Draw(t, "min")
	}
	entries := ids(t, 1, 6, "entries")
	if p.Mode != catalog.ModeEach && rapid.Bool().Draw(t, "pity") {
		p.drawTracks(t, entries)
	}
	p.drawEntries(t, items, entries, before)
	if p.Mode == catalog.ModeWeighted && len(p.Tracks) == 0 && p.endless >= p.Rolls.Max {
		p.Rolls.Distinct = rapid.Bool().Draw(t, "distinct")
	}
	if p.Mode == catalog.ModeRaffle {
		p.drawBox(t, items, before)
	}
	if p.Mode != catalog.ModeRaffle {
		p.drawBudgets(t, items, nth)
	}
	p.picks *= uint64(p.Rolls.Max)
	if !p.Internal {
		p.drawTerms(t, items, entries)
		if p.StartsAt > 0 && p.Mode == catalog.ModeWeighted && !p.Rolls.Distinct && maybe(t, "moments") {
			p.drawMoments(t)
		}
	}
	p.adaptive = p.adaptive || p.conditional || len(p.Tracks)+len(p.Guarantees) > 0
	p.Memoryless = !p.adaptive && rapid.Bool().Draw(t, "memoryless")
	return p
}

// drawTracks draws pity. The first entry, which can always be drawn, is in every group.
func (p *drawnPool) drawTracks(t *rapid.T, entries []string) {
	for _, track := range ids(t, 1, 3, "tracks") {
		k := catalog.Track{Name: track, Of: group(t, entries)}
		if len(p.Tracks) == 0 && rapid.Bool().Draw(t, "named like an entry") {
			k.Name, k.Of = entries[0], entries[:1]
		} else if track == entries[0] {
			continue
		}
		most := uint32(catalog.MaxTrackDraws)
		if rapid.Bool().Draw(t, "certain") {
			k.Certain = rapid.Uint32Range(1, most).Draw(t, "draw")
			most = k.Certain
		}
		if rapid.Bool().Draw(t, "rising") {
			k.Rising.From = rapid.Uint32Range(1, most).Draw(t, "from")
			k.Rising.Table = rapid.Bool().Draw(t, "table")
			steps := 1
			if k.Rising.Table {
				steps = rapid.IntRange(1, 4).Draw(t, "steps")
			}
			points := rapid.StringMatching(`([1-9]?[0-9])(\.[0-9]{1,6}0{0,2})?|100`)
			k.Rising.Scale, k.Rising.By = scaleExactly(rapid.SliceOfN(points, steps, steps).Draw(t, "by"))
		}
		if maybe(t, "shared") {
			k.Share = fmt.Sprint("counter-", len(p.Tracks))
		}
		p.Tracks = append(p.Tracks, k)
	}
}

func group(t *rapid.T, entries []string) []string {
	of := []string{entries[0]}
	for _, e := range entries[1:] {
		if rapid.Bool().Draw(t, "in the group") {
			of = append(of, e)
		}
	}
	return of
}

func (p *drawnPool) drawEntries(t *rapid.T, items, entries []string, before []*drawnPool) {
	rising := slices.ContainsFunc(p.Tracks, func(k catalog.Track) bool { return k.Rising.From > 0 })
	weight := func() string {
		switch {
		case p.Mode == catalog.ModeEach:
			return rapid.StringMatching(`([1-9]?[0-9])(\.[0-9]{1,15}0{0,2})?|100`).Draw(t, "chance")
		case rising:
			return rapid.StringMatching(`(0|[1-9][0-9]{0,3})(\.[0-9]{1,2}0{0,2})?`).Draw(t, "weight")
		}
		return decimalText(t)
	}
	var luck []string // the weights by luck of all entries
	for i, id := range entries {
		e := catalog.Entry{ID: id}
		if p.Mode != catalog.ModeEach && maybe(t, "group") {
			e.Group = fmt.Sprint("group-", i%2)
		}
		conditional := i > 0 && p.Mode != catalog.ModeRaffle && rapid.Bool().Draw(t, "conditional")
		if conditional {
			e.When = p.drawCondition(t, items)
			if p.Mode == catalog.ModeWeighted && rapid.Bool().Draw(t, "luck") {
				p.drawLuck(t, &e.Luck, items)
				for range e.Luck.Steps {
					luck = append(luck, weight())
				}
			}
		}
		switch {
		case p.Mode == catalog.ModeRaffle:
			most := rapid.SampledFrom([]uint64{20, catalog.MaxQuantity}).Draw(t, "most tickets")
			if rising {
				most = 1000
			}
			e.Stock.Count = rapid.Uint64Range(0, most).Draw(t, "tickets")
			if i == 0 {
				e.Stock.Count = max(1, e.Stock.Count)
			}
		case i == 0: // something must be drawable
			e.Stock.Unlimited = true
			p.texts = append(p.texts, "1")
		default:
			p.texts = append(p.texts, weight())
			if e.Stock.Unlimited = rapid.Bool().Draw(t, "unlimited"); !e.Stock.Unlimited {
				e.Stock.Count = quantity(t, 0)
			}
		}
		reward := drawReward(t, items, before, i > 0 && !conditional && p.Mode != catalog.ModeEach)
		e.Reward = reward.Reward
		if conditional && len(e.Reward.Items) > 0 {
			e.Unique = rapid.Bool().Draw(t, "unique")
		}
		if i > 0 && p.Mode != catalog.ModeRaffle && !reward.finite && maybe(t, "codes") {
			e.Reward.Codes = []string{"ten-percent", "007"}[:rapid.IntRange(1, 2).Draw(t, "lists")]
		}
		always := e.When.Empty() && e.Luck.Empty() && !e.Unique
		coded := len(e.Reward.Codes) > 0
		p.conditional = p.conditional || !always || coded
		p.adaptive = p.adaptive || reward.adaptive
		if p.Mode == catalog.ModeEach {
			p.picks += reward.picks
		} else {
			p.picks = max(p.picks, reward.picks)
		}
		if always && !coded && e.Stock.Unlimited && !reward.finite && strings.Trim(p.texts[i], "0.") != "" {
			p.endless++
		}
		p.Entries = append(p.Entries, e)
	}
	if p.Mode == catalog.ModeRaffle {
		p.WeightScale = 1
		return
	}
	scale, scaled := scaleExactly(append(slices.Clone(p.texts), luck...))
	p.WeightScale = scale
	rest := scaled[len(p.texts):]
	for i := range p.Entries {
		e := &p.Entries[i]
		e.Weight = scaled[i]
		for j := range e.Luck.Steps {
			e.Luck.Steps[j].Weight = rest[0]
			rest = rest[1:]
		}
	}
}

func (p *drawnPool) drawCondition(t *rapid.T, items []string) catalog.Condition {
	var c catalog.Condition
	for i, s := range stacks(t, items) {
		if i%2 == 0 {
			c.Holds = append(c.Holds, s)
		} else {
			c.Lacks = append(c.Lacks, s.Item)
		}
	}
	for _, k := range p.Tracks {
		if maybe(t, "reached") {
			c.Tracks = append(c.Tracks, catalog.Reached{Track: k.Name, Draws: rapid.Uint64Range(1, catalog.MaxTrackDraws).Draw(t, "draws")})
		}
	}
	return c
}

// drawLuck draws all but the weights.
func (p *drawnPool) drawLuck(t *rapid.T, l *catalog.Luck, items []string) {
	most := uint64(catalog.MaxQuantity)
	if len(p.Tracks) > 0 && rapid.Bool().Draw(t, "luck by pity") {
		l.Track, most = p.Tracks[0].Name, catalog.MaxTrackDraws
	} else {
		l.Item = rapid.SampledFrom(items).Draw(t, "luck by")
	}
	from := rapid.SliceOfNDistinct(rapid.Uint64Range(1, most), 1, 4, rapid.ID).Draw(t, "from")
	slices.Sort(from)
	for _, n := range from {
		l.Steps = append(l.Steps, catalog.LuckStep{From: n})
	}
}

// drawBox draws what happens with a raffle's last ticket.
func (p *drawnPool) drawBox(t *rapid.T, items []string, before []*drawnPool) {
	if maybe(t, "last") {
		last := drawReward(t, items, before, false)
		p.Last = last.Reward
		p.picks += last.picks
		p.adaptive = p.adaptive || last.adaptive
	}
	tickets, alone := uint64(0), true
	for i := range p.Entries {
		tickets += p.Entries[i].Stock.Count
		for _, in := range p.Entries[i].Reward.Draws {
			for _, b := range before {
				alone = alone && (b.ID != in.Pool || b.endless > 0 || b.Mode == catalog.ModeEach)
			}
		}
	}
	if boxes := catalog.MaxQuantity / tickets; alone && boxes > 1 && maybe(t, "refill") {
		p.Refill = rapid.Uint32Range(0, uint32(min(boxes-1, catalog.MaxRefill))).Draw(t, "boxes")
	}
}

// drawBudgets draws budgets that no entry takes from, so that none depends on them.
func (p *drawnPool) drawBudgets(t *rapid.T, items []string, nth int) {
	var free []string
	for _, item := range items {
		given := slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool {
			return len(e.Reward.Draws) > 0 || slices.ContainsFunc(e.Reward.Items, func(q catalog.Quantity) bool { return q.Item == item })
		})
		if !given {
			free = append(free, item)
		}
	}
	for _, per := range []catalog.Per{catalog.PerHour, catalog.PerDay, catalog.PerWeek, catalog.PerMonth, catalog.PerForever} {
		b := catalog.Budget{Per: per}
		if maybe(t, "budget") {
			b.Of = stacks(t, free)
		}
		if rapid.Bool().Draw(t, "shared") {
			b.Share = fmt.Sprintf("s%d-%d", nth, len(p.Budgets)) // of this pool alone
		}
		if len(b.Of) > 0 {
			p.Budgets = append(p.Budgets, b)
		}
	}
}

// drawMoments adds an entry with moments.
func (p *drawnPool) drawMoments(t *rapid.T) {
	m := catalog.Moments{
		Count:  rapid.Uint32Range(1, catalog.MaxRandomMoments).Draw(t, "moments"),
		Spread: rapid.SampledFrom([]catalog.Spread{catalog.SpreadEven, catalog.SpreadSlots, catalog.SpreadRandom}).Draw(t, "spread"),
		Pass:   rapid.Bool().Draw(t, "pass"),
	}
	for hour := rapid.IntRange(0, 23).Draw(t, "hour"); hour < 24 && len(m.Weights) < 3; hour += 5 {
		m.Weights = append(m.Weights, catalog.TimeWeight{When: fmt.Sprintf("%d-%d", hour, hour+1), Weight: rapid.Uint64Range(0, catalog.MaxMomentWeight).Draw(t, "weight")})
	}
	id := strings.Repeat("m", catalog.MaxID) // hardly ever that of another entry
	p.Entries = append(p.Entries, catalog.Entry{ID: id, Stock: catalog.Stock{Count: uint64(m.Count)}, Moments: m})
	p.texts, p.conditional = append(p.texts, "0"), true
}

// drawTerms draws what belongs only to a pool that players draw from directly.
func (p *drawnPool) drawTerms(t *rapid.T, items, entries []string) {
	if rapid.Bool().Draw(t, "timed") {
		p.StartsAt = rapid.Int64Range(1, 200_000_000_000_000).Draw(t, "starts")
		p.EndsAt = rapid.Int64Range(p.StartsAt+1, 253402300799999).Draw(t, "ends")
	}
	if rapid.Bool().Draw(t, "own max_count") {
		p.MaxCount = rapid.Uint32Range(1, uint32(min(catalog.MaxDrawCount, catalog.MaxRequestPicks/p.picks))).Draw(t, "max_count")
	}
	for _, per := range []catalog.Per{catalog.PerForever, catalog.PerDay, catalog.PerWeek, catalog.PerMonth, catalog.PerWindow} {
		if maybe(t, "limited") {
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
	for range rapid.IntRange(0, 2).Draw(t, "prices") {
		if price := stacks(t, items); len(price) > 0 {
			p.Price = append(p.Price, price)
		}
	}
	if len(p.Price) > 0 && maybe(t, "free") {
		p.Free.Per = rapid.SampledFrom([]catalog.Per{catalog.PerForever, catalog.PerDay, catalog.PerWeek, catalog.PerMonth}).Draw(t, "free per")
		p.Free.Draws = min(quantity(t, 1), catalog.MaxTimedDraws)
	}
	for draws := uint32(2); len(p.Price) > 0 && draws <= min(10, p.MaxCount) && maybe(t, "bundle"); draws += 3 {
		if price := stacks(t, items); len(price) > 0 {
			p.Bundles = append(p.Bundles, catalog.Bundle{Draws: draws, Price: price})
		}
	}
	if maybe(t, "when") {
		p.When = p.drawCondition(t, items)
	}
	if p.Mode != catalog.ModeEach && p.Rolls.Max == 1 && !p.Rolls.Distinct && maybe(t, "guarantee") {
		left := p.MaxCount
		for _, t := range p.Tracks { // which may have no entry in common with a guarantee
			if t.Certain > 0 {
				left -= min(left, (p.MaxCount+t.Certain-1)/t.Certain)
			}
		}
		for left > 0 && len(p.Guarantees) < 3 {
			g := catalog.Guarantee{Draws: p.MaxCount, AtLeast: rapid.Uint32Range(1, left).Draw(t, "at least"), Of: group(t, entries)}
			left -= g.AtLeast
			p.Guarantees = append(p.Guarantees, g)
		}
	}
}

// A drawnReward is a reward with what decides where it may stand.
type drawnReward struct {
	catalog.Reward
	picks            uint64
	finite, adaptive bool // of the pools it leads to
}

// drawReward draws a reward. Quantities are so small that no draw can give too much of an item.
// alone: it may depend on a pool that can run out.
func drawReward(t *rapid.T, items []string, before []*drawnPool, alone bool) drawnReward {
	w := drawnReward{picks: 1}
	for _, s := range stacks(t, items) {
		q := catalog.Quantity{Item: s.Item, Min: 1 + s.Quantity/10_000}
		q.Max = q.Min
		if rapid.Bool().Draw(t, "range") {
			q.Max = rapid.Uint64Range(q.Min, catalog.MaxQuantity/5000).Draw(t, "max")
		}
		w.Items = append(w.Items, q)
		w.picks = uint64(len(w.Items))
	}
	for _, p := range before {
		if !maybe(t, "lead to it") {
			continue
		}
		in := catalog.Inner{Min: 1, Max: 1, Pool: p.ID}
		if p.endless == 0 && p.Mode != catalog.ModeEach {
			if alone && !p.conditional && p.Rolls.Max == 1 && len(w.Draws) == 0 && w.picks+p.picks <= 40 {
				w.Draws, w.picks, w.finite, w.adaptive = []catalog.Inner{in}, 1+p.picks, true, p.adaptive
				return w
			}
			continue
		}
		in.Max = rapid.Uint32Range(1, 3).Draw(t, "times")
		in.Min = rapid.Uint32Range(1, in.Max).Draw(t, "least times")
		if picks := w.picks + p.picks*uint64(in.Max); picks <= 40 { // 6 entries, 4 rolls: below MaxPicks
			w.Draws, w.picks, w.adaptive = append(w.Draws, in), picks, w.adaptive || p.adaptive
		}
	}
	return w
}

// scaleExactly computes, in math/big, the smallest power of ten that makes all
// of the texts integers, and these.
func scaleExactly(texts []string) (uint64, []uint64) {
	scale := new(big.Rat).SetInt64(1)
	ten := new(big.Rat).SetInt64(10)
	all := make([]uint64, len(texts))
	for {
		whole := true
		for i, text := range texts {
			v, ok := new(big.Rat).SetString(text)
			if !ok {
				panic(text)
			}
			v.Mul(v, scale)
			whole = whole && v.IsInt()
			all[i] = v.Num().Uint64()
		}
		if whole {
			return scale.Num().Uint64(), all
		}
		scale.Mul(scale, ten)
	}
}

// decimals writes a scaled number.
func decimals(v, scale uint64) string {
	s := fmt.Sprint(v / scale)
	if v%scale > 0 {
		s += "." + strings.TrimRight(fmt.Sprint(scale + v%scale)[1:], "0")
	}
	return s
}

// A writer writes YAML, leaving out some of what is default.
type writer struct {
	t        *rapid.T
	language string // of the catalog
	strings.Builder
}

func (w *writer) line(indent int, format string, args ...any) {
	w.WriteString(strings.Repeat(" ", indent))
	fmt.Fprintf(w, format+"\n", args...)
}

func (w *writer) optional() bool { return rapid.Bool().Draw(w.t, "written out") }

func (w *writer) stacks(indent int, key string, all []catalog.Stack) {
	if len(all) > 0 {
		w.line(indent, "%s:", key)
	}
	for _, s := range all {
		w.line(indent+2, "%s: %d", s.Item, s.Quantity)
	}
}

// flow writes stacks on one line.
func flow(all []catalog.Stack) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, fmt.Sprintf("%q: %d", s.Item, s.Quantity))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func quotes(all []string) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, fmt.Sprintf("%q", s))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// between writes a number or a range.
func (w *writer) between(low, high uint64) string {
	if low == high && w.optional() {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("{min: %d, max: %d}", low, high)
}

var perWords = map[catalog.Per]string{catalog.PerForever: "forever", catalog.PerDay: "day", catalog.PerWeek: "week", catalog.PerMonth: "month", catalog.PerWindow: "window", catalog.PerHour: "hour"}

// write writes the catalog as YAML.
func (w *written) write(t *rapid.T) {
	c := &w.want
	out := &writer{t: t, language: c.TextLanguage()}
	out.line(0, "kuji: 1 # comment")
	out.texts(c)
	if c.Zone.Name != "" {
		out.line(0, "zone: %s", c.Zone.Name)
	} else if out.optional() {
		out.line(0, "zone: UTC")
	}
	if c.Day != (catalog.Day{}) {
		out.line(0, `day: {begins: "%02d:%02d", week: %v}`, c.Day.Begins/60, c.Day.Begins%60, c.Day.Week)
	}
	if len(c.Seasons) > 0 {
		out.line(0, "seasons:")
	}
	for _, s := range c.Seasons {
		const layout = "2006-01-02T15:04:05.000Z"
		out.line(2, "%q: {starts: %s, ends: '%s'}", s.ID, time.UnixMilli(s.Starts).UTC().Format(layout), time.UnixMilli(s.Ends).UTC().Format(layout))
	}
	out.line(0, "items:")
	for _, i := range c.Items {
		switch {
		case i.Name == "" && reflect.ValueOf(i.Display).IsZero() && i.Kind == catalog.KindItem && i.Lasts == 0 && i.Family == "" && i.Most == 0:
			out.line(2, "%q: {}", i.ID)
		default:
			out.line(2, "%s:", i.ID)
			if i.Kind == catalog.KindCurrency {
				out.line(4, "kind: currency")
			} else if i.Name == "" || out.optional() {
				out.line(4, `"kind": 'item'`)
			}
			out.display(i.Name, &i.Display)
			if i.Lasts > 0 {
				out.line(4, "lasts: %s", duration(i.Lasts))
			}
			if i.Extend || i.Lasts > 0 && out.optional() {
				out.line(4, "extend: %v", i.Extend)
			}
			if i.Most > 0 {
				out.line(4, "most: %d", i.Most)
			}
			switch b := i.Beyond; {
			case i.Most == 0:
			case b.Do == catalog.BeyondMail && b.Mail == catalog.DefaultMail.Milliseconds() && out.optional():
				out.line(4, "beyond: mail")
			case b.Do == catalog.BeyondMail:
				out.line(4, "beyond: {mail: %s}", duration(b.Mail))
			case b.Do == catalog.BeyondCut:
				out.line(4, "beyond: 'cut'")
			case out.optional():
				out.line(4, "beyond: refuse")
			}
			if i.Family != "" {
				out.line(4, "family: %s", i.Family)
			}
		}
	}
	if len(c.Pools) > 0 {
		out.line(0, "pools:")
	}
	for i := range c.Pools {
		out.pool(&c.Pools[i], w.weights[i])
	}
	if w.guesses.Per != 0 {
		out.line(0, "guesses: {count: %d, per: %s}", w.guesses.Count, perWords[w.guesses.Per])
	}
	out.goals(c)
	out.rounds(c)
	out.stacks(0, "start", c.Start)
	out.line(0, "idempotency:")
	out.line(2, "count: %d", c.Idempotency.Count)
	out.line(2, "age: %s", duration(c.Idempotency.Age.Milliseconds()))
	if c.Idempotency.IDs == catalog.IDsTimeOrdered {
		out.line(2, "ids: time-ordered")
		out.line(2, "ahead: %s", duration(c.Idempotency.Ahead.Milliseconds()))
	}
	if c.Idempotency.Purchases != "" {
		out.line(2, "purchases: %q", c.Idempotency.Purchases)
	}
	w.yaml = out.String()
}

func (w *writer) pool(p *catalog.Pool, texts []string) {
	w.line(2, "%s:", p.ID)
	w.display(p.Name, &p.Display)
	if p.Mode != catalog.ModeWeighted || w.optional() {
		w.line(4, "mode: %s", map[catalog.Mode]string{catalog.ModeWeighted: "weighted", catalog.ModeRaffle: "raffle", catalog.ModeEach: "each"}[p.Mode])
	}
	if p.Internal || w.optional() {
		w.line(4, "internal: %v", p.Internal)
	}
	if p.Memoryless || w.optional() {
		w.line(4, "memoryless: %v", p.Memoryless)
	}
	if len(p.Price) == 1 && w.optional() {
		w.stacks(4, "price", p.Price[0])
	} else if len(p.Price) > 0 {
		w.line(4, "price:")
		for _, one := range p.Price {
			w.line(4, "- %s", flow(one))
		}
	}
	if len(p.Bundles) > 0 {
		w.line(4, "bundles:")
	}
	for _, b := range p.Bundles {
		w.line(4, "- {draws: %d, price: %s}", b.Draws, flow(b.Price))
	}
	if p.Free.Per != 0 {
		w.line(4, "free:")
		w.line(6, "per: %s", perWords[p.Free.Per])
		if p.Free.Draws != 1 || w.optional() {
			w.line(6, "draws: %d", p.Free.Draws)
		}
	}
	if len(p.Redeem) == 1 && w.optional() {
		w.line(4, "redeem: %s", w.redeem(&p.Redeem[0]))
	} else if len(p.Redeem) > 0 {
		w.line(4, "redeem:")
		for i := range p.Redeem {
			w.line(4, "- %s", w.redeem(&p.Redeem[i]))
		}
	}
	if p.StartsAt > 0 {
		zone := time.FixedZone("", rapid.IntRange(-12*60, 14*60).Draw(w.t, "zone")*60)
		w.line(4, "starts: %s", time.UnixMilli(p.StartsAt).In(zone).Format("2006-01-02T15:04:05.000Z07:00"))
		w.line(4, "ends: %q", time.UnixMilli(p.EndsAt).UTC().Format("2006-01-02T15:04:05.999Z07:00"))
	}
	if p.MaxCount != catalog.DefaultMaxCount || w.optional() {
		w.line(4, "max_count: %d", p.MaxCount)
	}
	if len(p.Limits) > 0 {
		w.line(4, "limits:")
	}
	for _, l := range p.Limits {
		w.line(6, "- draws: %d", l.Draws)
		w.line(8, "per: %s", perWords[l.Per])
		if l.Per == catalog.PerWindow {
			w.line(8, "window: %s", duration(l.Window))
		}
	}
	w.condition(4, &p.When)
	switch one := p.Rolls.Min == p.Rolls.Max && !p.Rolls.Distinct; {
	case one && p.Rolls.Max == 1 && w.optional():
	case one && w.optional():
		w.line(4, "rolls: %d", p.Rolls.Max)
	default:
		w.line(4, "rolls: {min: %d, max: %d, distinct: %v}", p.Rolls.Min, p.Rolls.Max, p.Rolls.Distinct)
	}
	if len(p.Tracks) > 0 {
		w.line(4, "pity:")
	}
	for i := range p.Tracks {
		w.track(&p.Tracks[i])
	}
	if len(p.Guarantees) > 0 {
		w.line(4, "guarantee:")
	}
	for _, g := range p.Guarantees {
		w.line(4, "- draws: %d", g.Draws)
		if g.AtLeast != 1 || w.optional() {
			w.line(6, "at_least: %d", g.AtLeast)
		}
		w.line(6, "of: %s", quotes(g.Of))
	}
	if p.Mode == catalog.ModeRaffle {
		w.reward(4, "last", &p.Last)
		if p.Refill > 0 || w.optional() {
			w.line(4, "refill: %d", p.Refill)
		}
	}
	if len(p.Budgets) == 1 && w.optional() {
		w.line(4, "budget: %s", budgetText(&p.Budgets[0]))
	} else if len(p.Budgets) > 0 {
		w.line(4, "budget:")
		for i := range p.Budgets {
			w.line(4, "- %s", budgetText(&p.Budgets[i]))
		}
	}
	w.line(4, "entries:")
	for j := range p.Entries {
		text := ""
		if p.Mode != catalog.ModeRaffle {
			text = texts[j]
		}
		w.entry(p, &p.Entries[j], text)
	}
}

func (w *writer) redeem(r *catalog.Redeem) string {
	text := fmt.Sprintf("{code: %q", r.List)
	if r.Times != 1 || w.optional() {
		text += fmt.Sprintf(", times: %d", r.Times)
	}
	if r.Uses != 1 || w.optional() {
		text += fmt.Sprintf(", uses: %d", r.Uses)
	}
	if r.Until != 0 {
		text += fmt.Sprintf(", until: %q", time.UnixMilli(r.Until).UTC().Format("2006-01-02T15:04:05.999Z07:00"))
	}
	return text + "}"
}

func budgetText(b *catalog.Budget) string {
	text := fmt.Sprintf("{per: %s, of: %s", perWords[b.Per], flow(b.Of))
	if b.Share != "" {
		text += fmt.Sprintf(", share: %q", b.Share)
	}
	return text + "}"
}

func (w *writer) track(k *catalog.Track) {
	parts := []string{}
	if !slices.Equal(k.Of, []string{k.Name}) || w.optional() {
		parts = append(parts, "of: "+quotes(k.Of))
	}
	if k.Certain > 0 {
		parts = append(parts, fmt.Sprint("certain: ", k.Certain))
	}
	if r := &k.Rising; r.From > 0 {
		var by []string
		for _, v := range r.By {
			by = append(by, decimals(v, r.Scale))
		}
		points := by[0]
		if r.Table {
			points = "[" + strings.Join(by, ", ") + "]"
		}
		parts = append(parts, fmt.Sprintf("rising: {from: %d, by: %s}", r.From, points))
	}
	if k.Share != "" {
		parts = append(parts, fmt.Sprintf("share: %q", k.Share))
	}
	w.line(6, "%q: {%s}", k.Name, strings.Join(parts, ", "))
}

func (w *writer) condition(indent int, c *catalog.Condition) {
	if c.Empty() {
		return
	}
	w.line(indent, "when:")
	w.stacks(indent+2, "holds", c.Holds)
	if len(c.Lacks) > 0 {
		w.line(indent+2, "lacks: %s", quotes(c.Lacks))
	}
	if len(c.Tracks) > 0 {
		w.line(indent+2, "pity:")
	}
	for _, k := range c.Tracks {
		w.line(indent+4, "%q: %d", k.Track, k.Draws)
	}
	w.counted(indent+2, "counters", c.Counters)
	if len(c.Quests) > 0 {
		w.line(indent+2, "quests:")
	}
	for _, d := range c.Quests {
		w.line(indent+4, "%q: %d", d.Quest, d.Tiers)
	}
}

func (w *writer) entry(p *catalog.Pool, e *catalog.Entry, text string) {
	w.line(4, "- id: %q", e.ID)
	switch p.Mode {
	case catalog.ModeWeighted:
		w.line(6, "weight: %s", text)
	case catalog.ModeEach:
		w.line(6, "chance: %s", text)
	}
	if !e.Stock.Unlimited {
		w.line(6, "stock: %d", e.Stock.Count)
	} else if w.optional() {
		w.line(6, "stock: unlimited")
	}
	if e.Group != "" {
		w.line(6, "group: %s", e.Group)
	}
	w.condition(6, &e.When)
	if e.Unique {
		w.line(6, "unique: true")
	}
	if m := &e.Moments; m.Count > 0 {
		w.line(6, "moments:")
		w.line(8, "count: %d", m.Count)
		w.line(8, "spread: %s", []string{"", "even", "slots", "random"}[m.Spread])
		w.line(8, "weights:")
		for _, h := range m.Weights {
			w.line(10, "%s: %d", h.When, h.Weight)
		}
		if m.Pass {
			w.line(8, "missed: pass")
		} else if w.optional() {
			w.line(8, "missed: wait")
		}
	}
	if l := &e.Luck; !l.Empty() {
		w.line(6, "luck:")
		if l.Item != "" {
			w.line(8, "item: %q", l.Item)
		} else {
			w.line(8, "pity: %q", l.Track)
		}
		w.line(8, "weights:")
		for _, s := range l.Steps {
			w.line(8, "- {from: %d, weight: %s}", s.From, decimals(s.Weight, p.WeightScale))
		}
	}
	w.reward(6, "reward", &e.Reward)
}

// reward writes a reward: as one mapping if it can be, or as a list of its parts.
func (w *writer) reward(indent int, key string, r *catalog.Reward) {
	if r.Nothing() {
		if w.optional() {
			w.line(indent, "%s: nothing", key)
		}
		return
	}
	w.line(indent, "%s:", key)
	dash, listed := "", len(r.Draws) > 1 || len(r.Codes) > 1 || w.optional()
	if listed {
		dash = "- "
	}
	if len(r.Items) > 0 {
		w.line(indent+2, "%sitems:", dash)
		for _, q := range r.Items {
			w.line(indent+8, "%s: %s", q.Item, w.between(q.Min, q.Max))
		}
		if listed && len(r.Codes) == 0 && len(r.Draws) == 1 && w.optional() {
			dash = "  "
		}
	}
	for _, list := range r.Codes {
		w.line(indent+2, "%scode: %q", dash, list)
	}
	for _, in := range r.Draws {
		w.line(indent+2, "%spool: %q", dash, in.Pool)
		if in.Max > 1 || w.optional() {
			w.line(indent+2+len(dash), "times: %s", w.between(uint64(in.Min), uint64(in.Max)))
		}
	}
}

// duration writes milliseconds with units.
func duration(ms int64) string {
	return fmt.Sprintf("%dh%dm%ds%dms", ms/3_600_000, ms/60_000%60, ms/1000%60, ms%1000)
}
