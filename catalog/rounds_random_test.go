package catalog_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
)

// drawRounds draws rounds of every form, with a pool that opens an item and a counter by which players are ranked.
func (w *written) drawRounds(t *rapid.T, items []string) {
	c := &w.want
	opened := rapid.SampledFrom(items).Draw(t, "opened")
	if c.Opening(opened) < 0 && maybe(t, "opener") {
		c.Pools = append(c.Pools, catalog.Pool{
			ID: "opens-one-item", Mode: catalog.ModeWeighted, Rolls: catalog.Rolls{Min: 1, Max: 1}, MaxCount: catalog.DefaultMaxCount,
			Price: [][]catalog.Stack{{{Item: opened, Quantity: 1}}}, WeightScale: 1,
			Entries: []catalog.Entry{{ID: "x", Weight: 1, Stock: catalog.Stock{Unlimited: true}}},
		})
		w.weights = append(w.weights, []string{"1"})
	}
	if maybe(t, "ranked") {
		c.Counters = append(c.Counters, catalog.Counter{ID: "ranked-counter", For: catalog.ForPlayer, Per: catalog.Period{Per: catalog.PerForever}, Ranked: catalog.Ranked{Is: true}})
	}
	var families, pots []string
	for i := range c.Items {
		if f := c.Items[i].Family; f != "" {
			families = append(families, f)
		}
	}
	for _, id := range ids(t, 1, 4, "round ids") {
		r := catalog.Round{ID: id, Name: name(t), Open: rapid.SampledFrom([]int64{0, 1000, 90_061_001, catalog.MaxOpen.Milliseconds()}).Draw(t, "open"), One: maybe(t, "one")}
		most := catalog.Entrants{Min: 2, Max: catalog.MaxStakes}
		if rapid.Bool().Draw(t, "stake") {
			r.Stake = drawStake(t, items, families)
			r.Opens = r.Stake.Item != "" && c.Opening(r.Stake.Item) >= 0 && rapid.Bool().Draw(t, "opens")
		} else {
			most = catalog.Entrants{Min: 1, Max: catalog.MaxTicketEntrants}
			r.Ticket = drawTicket(t, items)
			for _, a := range r.Ticket.Adds {
				pots = append(pots, a.Pot)
			}
			if maybe(t, "every") {
				r.Every = rapid.SampledFrom([]catalog.Per{catalog.PerDay, catalog.PerWeek, catalog.PerMonth}).Draw(t, "every")
				r.Open, r.One = 0, false
			}
		}
		if r.Entrants = most; maybe(t, "entrants") {
			r.Entrants.Max = rapid.Uint32Range(1, most.Max).Draw(t, "most entrants")
			r.Entrants.Min = rapid.Uint32Range(1, r.Entrants.Max).Draw(t, "least entrants")
		}
		c.Rounds = append(c.Rounds, r)
	}
	for i := range c.Rounds {
		drawWinners(t, c, &c.Rounds[i], items, pots)
	}
}

func drawStake(t *rapid.T, items, families []string) catalog.Stake {
	s := catalog.Stake{Min: 1, Max: 1, Same: maybe(t, "same")}
	switch rapid.IntRange(0, 2).Draw(t, "stake of") {
	case 0:
		s.Any, s.Max = true, catalog.MaxStakeUnits
	case 1:
		if len(families) > 0 {
			s.Family = rapid.SampledFrom(families).Draw(t, "family")
			break
		}
		fallthrough
	default:
		s.Item = rapid.SampledFrom(items).Draw(t, "item")
	}
	if maybe(t, "count") {
		s.Max = rapid.Uint64Range(1, catalog.MaxStakeUnits).Draw(t, "most units")
		s.Min = rapid.Uint64Range(1, s.Max).Draw(t, "least units")
	}
	return s
}

func drawTicket(t *rapid.T, items []string) catalog.Ticket {
	k := catalog.Ticket{Is: true, Most: 1, Price: stacks(t, items)}
	if maybe(t, "most") {
		k.Most = rapid.Uint64Range(1, catalog.MaxTickets).Draw(t, "most tickets")
	}
	if len(k.Price) == 0 || rapid.Bool().Draw(t, "no pots") {
		return k
	}
	left := uint64(catalog.ShareUnit)
	for _, pot := range ids(t, 1, 3, "pots") {
		if left > 0 && pot != "everything" {
			share := rapid.OneOf(rapid.SampledFrom([]uint64{left, 1, min(left, 900_000)}), rapid.Uint64Range(1, left)).Draw(t, "share")
			k.Adds = append(k.Adds, catalog.Adds{Pot: pot, Share: share})
			left -= share
		}
	}
	return k
}

func drawWinners(t *rapid.T, c *catalog.Catalog, r *catalog.Round, items, pots []string) {
	w := &r.Winners
	*w = catalog.Winners{Count: 1, Distinct: true, By: catalog.ByChance}
	staked := !r.Ticket.Is
	ranked := slices.ContainsFunc(c.Counters, func(k catalog.Counter) bool { return k.Ranked.Is })
	switch by := rapid.IntRange(0, 3).Draw(t, "by"); {
	case by == 0 && !staked:
		w.By = catalog.ByTickets
	case by < 2 && r.Opens:
		w.By = catalog.ByValue
		w.Values = []catalog.Stack{{Item: items[0], Quantity: rapid.Uint64Range(0, catalog.MaxValue).Draw(t, "value")}}
	case by == 2 && ranked:
		w.By, w.Rank = catalog.ByRank, "ranked-counter"
	}
	chosen := w.By == catalog.ByTickets || w.By == catalog.ByChance
	if maybe(t, "winners") {
		w.Distinct = !chosen || rapid.Bool().Draw(t, "distinct")
		most := uint32(catalog.MaxWinners)
		if w.Distinct {
			most = min(most, r.Entrants.Max)
		}
		w.Count = rapid.Uint32Range(1, most).Draw(t, "count")
	}
	switch gets := rapid.IntRange(0, 2).Draw(t, "gets"); {
	case gets == 0 && staked:
		w.Everything = true
	case gets == 1 && len(pots) > 0:
		w.Pot = rapid.SampledFrom(pots).Draw(t, "pot")
	}
	got := w.Everything || w.Pot != ""
	if got && (w.Everything && w.Count > 1 || rapid.Bool().Draw(t, "shares")) {
		left := uint32(100)
		for i := range w.Count {
			percent := rapid.Uint32Range(1, left).Draw(t, "percent")
			if w.Everything && i+1 == w.Count {
				percent = left
			}
			w.Shares = append(w.Shares, percent)
			if left -= percent; left == 0 || !w.Everything && maybe(t, "the rest stays") {
				break
			}
		}
	}
	w.Reward = drawReward(t, items, nil, true).Reward
	if !got && w.Reward.Nothing() {
		w.Reward.Items = []catalog.Quantity{{Item: items[0], Min: 1, Max: 1}}
	}
	if !got && chosen && maybe(t, "rerolls") {
		w.Rerolls = catalog.Rerolls{Most: rapid.Uint32Range(1, catalog.MaxRerolls).Draw(t, "most"),
			Within: rapid.Int64Range(catalog.MinRerolls.Milliseconds(), catalog.MaxRerolled.Milliseconds()).Draw(t, "within")}
	}
}

// rounds writes rounds.
func (w *writer) rounds(c *catalog.Catalog) {
	if len(c.Rounds) > 0 {
		w.line(0, "rounds:")
	}
	for i := range c.Rounds {
		w.round(&c.Rounds[i])
	}
}

func (w *writer) round(r *catalog.Round) {
	w.line(2, "%q:", r.ID)
	w.display(r.Name, &r.Display)
	most := catalog.Entrants{Min: 1, Max: catalog.MaxTicketEntrants}
	if r.Ticket.Is {
		w.ticket(&r.Ticket)
	} else {
		most = catalog.Entrants{Min: 2, Max: catalog.MaxStakes}
		w.stake(&r.Stake)
	}
	switch e := r.Entrants; {
	case e.Min == most.Min && e.Max == most.Max && w.optional():
	case e.Min == most.Min && w.optional():
		w.line(4, "entrants: {max: %d}", e.Max)
	case e.Max == most.Max && w.optional():
		w.line(4, "entrants: {min: %d}", e.Min)
	default:
		w.line(4, "entrants: {min: %d, max: %d}", e.Min, e.Max)
	}
	if r.Open > 0 {
		w.line(4, "open: %s", duration(r.Open))
	}
	if r.Every != 0 {
		w.line(4, "every: %s", perWords[r.Every])
	}
	if r.One || w.optional() {
		w.line(4, "one: %v", r.One)
	}
	if r.Opens {
		w.line(4, "opens: stakes")
	}
	w.winners(r)
}

func (w *writer) stake(s *catalog.Stake) {
	var parts []string
	switch {
	case s.Item != "":
		parts = append(parts, fmt.Sprintf("item: %q", s.Item))
	case s.Family != "":
		parts = append(parts, fmt.Sprintf("family: %q", s.Family))
	default:
		parts = append(parts, "any: true")
	}
	most := uint64(1)
	if s.Any {
		most = catalog.MaxStakeUnits
	}
	if s.Min != 1 || s.Max != most || w.optional() {
		parts = append(parts, "count: "+w.between(s.Min, s.Max))
	}
	if s.Same || w.optional() {
		parts = append(parts, fmt.Sprintf("same: %v", s.Same))
	}
	w.line(4, "stake: {%s}", strings.Join(parts, ", "))
}

func (w *writer) ticket(k *catalog.Ticket) {
	var parts []string
	if len(k.Price) > 0 {
		parts = append(parts, "price: "+flow(k.Price))
	}
	if k.Most != 1 || w.optional() {
		parts = append(parts, fmt.Sprint("most: ", k.Most))
	}
	var adds []string
	for _, a := range k.Adds {
		adds = append(adds, fmt.Sprintf("%q: %s", a.Pot, decimals(a.Share, catalog.ShareUnit)))
	}
	if len(adds) > 0 {
		parts = append(parts, "adds: {"+strings.Join(adds, ", ")+"}")
	}
	w.line(4, "ticket: {%s}", strings.Join(parts, ", "))
}

func (w *writer) winners(r *catalog.Round) {
	k := &r.Winners
	if k.Count == 1 && k.Distinct && w.optional() {
		w.line(4, "winner:")
	} else {
		w.line(4, "winners:")
		if k.Count != 1 || w.optional() {
			w.line(6, "count: %d", k.Count)
		}
		if !k.Distinct || w.optional() {
			w.line(6, "distinct: %v", k.Distinct)
		}
	}
	switch k.By {
	case catalog.ByValue:
		w.line(6, "by: {value: {%q: %d}}", k.Values[0].Item, k.Values[0].Quantity)
	case catalog.ByRank:
		w.line(6, "by: {rank: %q}", k.Rank)
	default:
		usual := catalog.ByChance
		if r.Ticket.Is {
			usual = catalog.ByTickets
		}
		if k.By != usual || w.optional() {
			w.line(6, "by: %s", map[catalog.WinBy]string{catalog.ByTickets: "tickets", catalog.ByChance: "chance"}[k.By])
		}
	}
	switch {
	case k.Everything:
		w.line(6, "gets: everything")
	case k.Pot != "":
		w.line(6, "gets: %q", k.Pot)
	}
	if len(k.Shares) > 0 {
		w.line(6, "shares: %s", strings.ReplaceAll(fmt.Sprint(k.Shares), " ", ", "))
	}
	w.reward(6, "reward", &k.Reward)
	if k.Rerolls.Most > 0 {
		w.line(6, "rerolls: {most: %d, within: %s}", k.Rerolls.Most, duration(k.Rerolls.Within))
	}
}
