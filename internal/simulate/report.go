package simulate

import (
	"maps"
	"math"
	"slices"

	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/view"
)

// Report is what a simulation found. Numbers that cannot be known are nil.
type Report struct {
	Catalog    string     `json:"catalog,omitempty"` // its name
	Pool       string     `json:"pool"`
	Players    int        `json:"players"`
	DrawsEach  int        `json:"draws_each"` // the most draws of one player
	Count      int        `json:"count"`
	Pay        string     `json:"pay,omitempty"`
	Seed       uint64     `json:"seed"`
	Rate       float64    `json:"rate,omitempty"`
	StockOf    string     `json:"stock_of"` // all: players share it; each: they have their own; none: none is limited
	Requests   uint64     `json:"requests"`
	Draws      uint64     `json:"draws"`
	Refused    []Refusal  `json:"refused,omitempty"`
	Paid       []Amount   `json:"paid,omitempty"`
	Given      []Amount   `json:"given,omitempty"`
	Codes      []Codes    `json:"codes,omitempty"`
	Odds       []Odds     `json:"odds"`
	Until      *Until     `json:"until,omitempty"`
	Progress   []Progress `json:"progress,omitempty"` // that each player has made
	Quests     []Quest    `json:"quests,omitempty"`
	Ranks      []Ranking  `json:"ranks,omitempty"`
	Grown      []Prize    `json:"grown,omitempty"` // of what players used or came to hold
	Beyond     []Beyond   `json:"beyond,omitempty"`
	Stock      *Stock     `json:"stock,omitempty"`
	OddsChange bool       `json:"odds_change"`           // the wanted odds leave something out
	NoLongRun  string     `json:"no_long_run,omitempty"` // why the long run of pity is not known
}

// Refusal is requests that were refused, by status.
type Refusal struct {
	Status   string `json:"status"`
	Requests uint64 `json:"requests"`
	Stopped  uint64 `json:"players_stopped"` // because all later requests would be refused too
}

// Amount is how many of an item were paid or given.
type Amount struct {
	Item    string  `json:"item"`
	Total   uint64  `json:"total"`
	PerDraw float64 `json:"per_draw"`
}

// Codes is how many codes of a list were given.
type Codes struct {
	List  string  `json:"list"`
	Given uint64  `json:"given"`
	Of    *uint64 `json:"of,omitempty"`      // how many there were; absent: no limit
	Gone  *Moment `json:"used_up,omitempty"` // when the last one was given, if all players share the list
}

// Odds is how often a draw takes an entry, on average.
type Odds struct {
	Pool   string  `json:"pool"`
	Entry  string  `json:"entry"`
	Wanted float64 `json:"wanted"` // by weights alone
	// LongRun is the long run with pity or guarantees; nil: not known, or the same as Wanted.
	LongRun *float64 `json:"long_run,omitempty"`
	Seen    float64  `json:"seen"`
	Low     float64  `json:"low"` // Low to High is the interval with a confidence of 95 %
	High    float64  `json:"high"`
	Taken   uint64   `json:"taken"`
}

// Until is what an item costs.
type Until struct {
	Item    string `json:"item"`
	Reached uint64 `json:"players_with_it"`
	Costs   []Cost `json:"costs"` // in draws, then in each item that anybody paid with
	// Distribution is how many players had the item after exactly so many draws, ascending.
	Distribution []Step `json:"distribution"`
}

// Cost is how much of one thing players gave until they had the item. Players without the item count
// as giving more than all others; a figure that depends on how much more is nil.
type Cost struct {
	Item   string   `json:"item,omitempty"` // empty: in draws
	Mean   *float64 `json:"mean"`
	Error  *float64 `json:"mean_error"` // the mean is off by at most this, with a confidence of 95 %
	Median *uint64  `json:"median"`
	P90    *uint64  `json:"p90"`
	P99    *uint64  `json:"p99"`
	Worst  *uint64  `json:"worst"`
}

// Step is one value of a distribution.
type Step struct {
	Draws   uint64 `json:"draws"`
	Players uint64 `json:"players"`
}

// Stock is how the stock that all players share went down.
type Stock struct {
	SoldOut *Moment       `json:"sold_out,omitempty"` // when the pool first refused a request for it
	Entries []EntryStock  `json:"entries"`
	Sampled int           `json:"sampled_entries"` // how many of Entries, the first ones, are in Samples
	Budgets []BudgetUse   `json:"budgets,omitempty"`
	Lists   []string      `json:"lists,omitempty"` // of codes, those with a limit
	Samples []StockSample `json:"samples"`
}

// BudgetUse is what a budget has spent of an item.
type BudgetUse struct {
	Pool  string `json:"pool"` // one that has the budget
	Per   string `json:"per"`
	Share string `json:"share,omitempty"`
	Item  string `json:"item"`
	Limit uint64 `json:"limit"`
	Spent uint64 `json:"spent"` // in all
	Spans uint64 `json:"spans"` // hours, days or weeks from the first request to the last
	Most  uint64 `json:"most"`  // spent in one of them
	Full  uint64 `json:"full"`  // how many of them ended with less left than any entry may ask for
}

// Moment is a time: after this many draws and, if there is a rate, days.
type Moment struct {
	Draws uint64   `json:"draws"`
	Days  *float64 `json:"days,omitempty"`
}

// EntryStock is the stock of one entry at the end.
type EntryStock struct {
	Pool  string  `json:"pool"`
	Entry string  `json:"entry"`
	Stock uint64  `json:"stock"`
	Left  uint64  `json:"left"`
	Gone  *Moment `json:"sold_out,omitempty"` // when the last one was taken
}

// StockSample is what was left at a moment.
type StockSample struct {
	Moment
	Left  []uint64 `json:"left"`            // of the first Sampled of Stock.Entries
	Spent []uint64 `json:"spent,omitempty"` // of Stock.Budgets, in the hour, day, week or month of the moment
	Codes []uint64 `json:"codes,omitempty"` // left of Stock.Lists
}

func (p *plan) report(t *tally) *Report {
	r := &Report{
		Catalog: p.c.Name, Pool: p.Pool, Players: p.Players, DrawsEach: p.Draws, Count: p.Count, Pay: p.Pay, Seed: p.Seed,
		Rate: p.Rate, StockOf: p.stockOf(), Requests: t.requests, Draws: t.draws, OddsChange: p.oddsChange(),
	}
	for _, st := range slices.Sorted(maps.Keys(t.refused)) {
		r.Refused = append(r.Refused, Refusal{st.String(), t.refused[st].Requests, t.refused[st].Stopped})
	}
	per := func(n uint64) float64 { return float64(n) / max(1, float64(t.draws)) }
	for i, q := range t.payments {
		if q > 0 {
			r.Paid = append(r.Paid, Amount{p.c.Items[p.paid[i]].ID, q, per(q)})
		}
	}
	for i, q := range t.gained {
		if q > 0 {
			r.Given = append(r.Given, Amount{p.c.Items[i].ID, q, per(q)})
		}
	}
	for i, l := range p.lists {
		c := Codes{List: l.name, Given: t.codes[i], Gone: t.gone[i]}
		if l.limit > 0 {
			c.Of = &l.limit
		}
		r.Codes = append(r.Codes, c)
	}
	var longRun []view.OutcomeOdds // of the same lines, in the same order; empty: not known
	if r.OddsChange {
		longRun, r.NoLongRun = odds.LongRun(p.tables, p.Pool, p.Count)
	}
	for n, wanted := range p.wanted() {
		l := &p.lines[n]
		rate, low, high := p.seen(t, n)
		o := Odds{Pool: l.pool.ID, Entry: l.entry.ID, Wanted: wanted, Seen: rate, Low: low, High: high, Taken: t.takes[n]}
		if len(longRun) > 0 {
			v, _ := longRun[n].Expected.Float64()
			o.LongRun = &v
		}
		r.Odds = append(r.Odds, o)
	}
	if p.Until != "" {
		r.Until = p.reportUntil(t)
	}
	r.Progress, r.Quests = p.Progress, p.reportQuests(t)
	r.Ranks, r.Grown, r.Beyond = reportRanks(p, t), prizesOf(p, t.grown), reportBeyond(p, t)
	if p.shared {
		r.Stock = p.reportStock(t)
	}
	return r
}

func (p *plan) stockOf() string {
	switch {
	case p.shared:
		return "all"
	case p.scarce():
		return "each"
	}
	return "none"
}

// oddsChange reports whether wanted leaves anything out.
func (p *plan) oddsChange() bool {
	return p.scarce() || slices.ContainsFunc(p.lines, func(l line) bool {
		return len(l.pool.Tracks) > 0 || len(l.pool.Guarantees) > 0 || l.pool.Rolls.Distinct ||
			!l.entry.When.Empty() || l.entry.Unique || !l.entry.Luck.Empty()
	})
}

func (p *plan) reportUntil(t *tally) *Until {
	u := &Until{Item: p.Until, Reached: t.costs[0].count()}
	u.Costs = append(u.Costs, t.costs[0].cost("", uint64(p.Players)))
	for i, n := range p.paid {
		if t.payments[i] > 0 {
			u.Costs = append(u.Costs, t.costs[i+1].cost(p.c.Items[n].ID, uint64(p.Players)))
		}
	}
	for _, v := range t.costs[0].values() {
		u.Distribution = append(u.Distribution, Step{v, t.costs[0][v]})
	}
	return u
}

// cost sums up a spread over this many players, some of whom may not be in it.
func (s spread) cost(item string, players uint64) Cost {
	c := Cost{Item: item}
	values, reached := s.values(), s.count()
	rank := func(percent uint64) *uint64 { // nearest rank
		at := (players*percent + 99) / 100
		for _, v := range values {
			if n := s[v]; at > n {
				at -= n
				continue
			}
			return &v
		}
		return nil
	}
	c.Median, c.P90, c.P99, c.Worst = rank(50), rank(90), rank(99), rank(100)
	if reached < players {
		return c
	}
	n := float64(players)
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += float64(v) * float64(s[v])
	}
	c.Mean = new(sum / n)
	for _, v := range values {
		squares += float64(s[v]) * (float64(v) - *c.Mean) * (float64(v) - *c.Mean)
	}
	if players > 1 {
		c.Error = new(z95 * math.Sqrt(squares/(n-1)/n))
	}
	return c
}

func (p *plan) reportStock(t *tally) *Stock {
	s := &Stock{SoldOut: t.soldOut, Sampled: len(p.sampled), Budgets: t.used, Samples: t.samples}
	for n := range p.lines {
		if l := &p.lines[n]; l.limited() {
			s.Entries = append(s.Entries, EntryStock{l.pool.ID, l.entry.ID, l.entry.Stock.Count, t.left[n], t.empty[n]})
		}
	}
	for _, l := range p.lists {
		if l.limit > 0 {
			s.Lists = append(s.Lists, l.name)
		}
	}
	return s
}
