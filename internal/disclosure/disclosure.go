// Package disclosure publishes a catalog's odds: as data, as a table, and as HTML for players, with names in
// their language. It puts into words what package kuji has computed. It computes no odds itself, and nothing of
// a realm's state may enter.
package disclosure

import (
	"cmp"
	"encoding/hex"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Disclosure has the published odds of a catalog, in one language.
type Disclosure struct {
	Name     string `json:"name,omitempty"`
	Realm    string `json:"realm"`
	Version  uint64 `json:"version"`
	Hash     string `json:"hash"` // of the catalog, in hexadecimal
	Language string `json:"language"`
	Pools    []Pool `json:"pools"`

	words *words
}

// Pool has the published odds of a pool.
type Pool struct {
	Pool        string   `json:"pool"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Prices      []string `json:"prices"`
	Pity        []string `json:"pity"` // in words, as the next three
	Within      []string `json:"guarantees,omitempty"`
	Moments     []string `json:"moments,omitempty"`
	Budgets     []string `json:"budgets,omitempty"`
	Error       string   `json:"error,omitempty"`
	LongRun     string   `json:"long_run,omitempty"` // why it is not known
	Lines       []Line   `json:"outcomes"`           // the rarest first
	Counts      []int    `json:"request_draws,omitempty"`
	NoOdds      []string `json:"request_errors,omitempty"`
	Times       bool     `json:"-"` // some line can be taken more than once in a draw

	other string // what lines without a rarity are called
}

// Line is an entry of a pool, or of one that the pool leads to.
type Line struct {
	Pool       string `json:"pool"`
	Entry      string `json:"entry"`
	Name       string `json:"name"` // what it gives
	From       string `json:"-"`    // the name of its pool, if that is another one
	Rarity     string `json:"rarity,omitempty"`
	RarityName string `json:"-"`
	Step       int    `json:"-"` // of the six colors of rarities; 0: none
	Icon       string `json:"icon,omitempty"`
	Leads      bool   `json:"-"`        // it gives nothing but draws from other pools
	Chance     string `json:"chance"`   // decimal, of the first draw
	Expected   string `json:"expected"` // decimal, times in the first draw
	LongRun    string `json:"long_run"` // decimal, times a draw; empty: not known
	Exact      string `json:"exact"`    // the chance as a fraction; empty: it has more than 200 characters
	// What a request for as many draws as a guarantee needs gives.
	Requests []Request `json:"requests,omitempty"`
	// As the catalog writes them, of the entry and of the pool that it is in; empty: none.
	Moments string `json:"moments,omitempty"`
	Budget  string `json:"budget,omitempty"`

	Rank int      `json:"-"` // of its rarity, from 1; 0: none
	Odds *big.Rat `json:"-"` // the chance
}

// Request says how often a request for several draws takes a line.
type Request struct {
	Draws    int    `json:"draws"`
	Expected string `json:"expected"` // decimal, times in the request
	PerDraw  string `json:"per_draw"` // decimal, divided by the draws
}

// New puts the odds of some pools of a catalog into words: see [kuji.Disclose]. An empty language means the
// catalog's. Where there is no text in the language, and for the words of the page, it takes the nearest one.
func New(v kuji.CatalogView, odds []kuji.Disclosed, realm, language string) *Disclosure {
	l := NewLabels(v.Catalog, language)
	d := &Disclosure{Name: l.Catalog(), Realm: realm, Version: v.Version, Hash: hex.EncodeToString(v.Hash[:]), Language: l.words.Language, Pools: []Pool{}, words: l.words}
	for i := range odds {
		d.Pools = append(d.Pools, l.pool(&odds[i]))
	}
	return d
}

func (l *Labels) pool(d *kuji.Disclosed) Pool {
	shown := l.shown(d.Pool)
	p := Pool{Pool: d.Pool.ID, Name: shown.Name, Description: shown.Description, LongRun: d.Why, Prices: []string{}, Lines: []Line{}, other: l.words.Other}
	for _, price := range d.Pool.Price {
		p.Prices = append(p.Prices, l.stacks(price))
	}
	if d.Err != nil {
		p.Error, p.LongRun = d.Err.Error(), ""
	}
	for _, t := range d.Odds.Pity {
		of := l.pools[t.Pool]
		for k := range of.Tracks {
			if of.Tracks[k].Name == t.Track {
				p.Pity = append(p.Pity, l.track(of, k))
			}
		}
	}
	l.guarantees(&p, d)
	var from place
	for k := range d.Odds.Outcomes {
		e := &d.Odds.Outcomes[k]
		if k == 0 || from.pool.ID != e.Pool {
			from = newPlace(l.pools[e.Pool])
			l.campaign(&p, from)
		}
		p.Lines = append(p.Lines, l.line(d, k, from))
		p.Times = p.Times || e.Chance.Cmp(e.Expected) != 0
	}
	slices.SortStableFunc(p.Lines, func(a, b Line) int {
		switch { // what leads to other pools first: it is a heading of what follows
		case a.Rank != b.Rank:
			return cmp.Compare(b.Rank, a.Rank)
		case a.Leads != b.Leads:
			return map[bool]int{true: -1, false: 1}[a.Leads]
		case a.Leads:
			return b.Odds.Cmp(a.Odds)
		}
		return a.Odds.Cmp(b.Odds)
	})
	return p
}

// place is a pool whose entries are outcomes.
type place struct {
	pool   *catalog.Pool
	at     map[string]int // the index of each entry
	budget string         // as the catalog writes it
}

func newPlace(p *catalog.Pool) place {
	here := place{p, make(map[string]int, len(p.Entries)), ""}
	for i := range p.Entries {
		here.at[p.Entries[i].ID] = i
	}
	if len(p.Budgets) > 0 {
		here.budget = setting(p.Settings(), "budget")
	}
	return here
}

// moments are those of an entry, as the catalog writes them.
func (p place) moments(i int) string {
	if p.pool.Entries[i].Moments.Count == 0 {
		return ""
	}
	return setting(p.pool.EntrySettings(i), "moments")
}

// line is the outcome of a pool with an index.
func (l *Labels) line(d *kuji.Disclosed, k int, from place) Line {
	e := &d.Odds.Outcomes[k]
	at := from.at[e.Entry]
	label := l.Entry(from.pool, at)
	line := Line{
		Pool: e.Pool, Entry: e.Entry, Name: label.Name, Rarity: label.Rarity, RarityName: label.RarityName, Step: label.Step, Icon: label.Icon, Leads: label.Leads,
		Chance: decimal(e.Chance), Expected: decimal(e.Expected), Exact: e.Chance.RatString(),
		Moments: from.moments(at), Budget: from.budget,
		Rank: label.Rank, Odds: e.Chance,
	}
	if e.Pool != d.Pool.ID {
		line.From = l.Pool(e.Pool)
	}
	if len(line.Exact) > 200 {
		line.Exact = ""
	}
	if d.LongRun != nil {
		line.LongRun = decimal(d.LongRun[k])
	}
	for _, q := range d.Requests {
		if q.Err == nil {
			one := new(big.Rat).Quo(q.Expected[k], big.NewRat(int64(q.Count), 1))
			line.Requests = append(line.Requests, Request{q.Count, decimal(q.Expected[k]), decimal(one)})
		}
	}
	return line
}

// track says in words what follows from a track.
func (l *Labels) track(pool *catalog.Pool, i int) string {
	t, w := &pool.Tracks[i], l.words
	text := fill(w.Track, l.Pool(pool.ID), l.groups(pool, t.Of, w.Or))
	if r := &t.Rising; r.From != 0 {
		text += fill(w.Rising, r.From)
		if !r.Table {
			text += fill(w.RisingBy, points(r.By[0], r.Scale))
		}
	}
	if t.Certain != 0 {
		text += fill(w.Certain, t.Certain)
		if before := pool.FirstOf(i); len(before) > 0 {
			text += fill(w.Unless, l.groups(pool, before, w.Or))
		}
	}
	return text + w.Stop
}

// guarantees says what is guaranteed within a request, and for which requests there are odds.
func (l *Labels) guarantees(p *Pool, d *kuji.Disclosed) {
	for i := range d.Pool.Guarantees {
		g := &d.Pool.Guarantees[i]
		p.Within = append(p.Within, fill(l.words.Within, g.Draws, g.AtLeast, l.groups(d.Pool, g.Of, l.words.Or)))
	}
	for _, q := range d.Requests {
		if q.Err != nil {
			p.NoOdds = append(p.NoOdds, fill(l.words.NoRequest, q.Count, q.Err))
			continue
		}
		p.Counts = append(p.Counts, q.Count)
	}
}

// campaign adds the moments and the budgets of a pool.
func (l *Labels) campaign(p *Pool, from place) {
	of := from.pool
	zone := cmp.Or(l.c.Zone.Name, "UTC")
	for i := range of.Entries {
		if e := &of.Entries[i]; e.Moments.Count > 0 {
			p.Moments = append(p.Moments, fill(l.words.Moments, l.Pool(of.ID), l.Entry(of, i).Name, e.Moments.Count, l.time(of.StartsAt), l.time(of.EndsAt),
				from.moments(i), zone))
		}
	}
	if len(of.Budgets) > 0 {
		if c := l.c; c.Day != (catalog.Day{}) {
			zone += fill(l.words.Days, c.Day.Time(), c.Day.Week)
		}
		p.Budgets = append(p.Budgets, fill(l.words.Budgets, l.Pool(of.ID), from.budget, zone))
	}
}

// setting returns a setting as catalogs write it, empty if it is left out.
func setting(all []catalog.Setting, name string) string {
	if i := slices.IndexFunc(all, func(s catalog.Setting) bool { return s.Key == name }); i >= 0 {
		return all[i].Value
	}
	return ""
}

// decimal writes a number with twelve digits at most.
func decimal(x *big.Rat) string {
	v, _ := x.Float64()
	if v != 0 && v < 1e-12 {
		return strconv.FormatFloat(v, 'g', 12, 64)
	}
	text := strconv.FormatFloat(v, 'f', 15, 64)
	if len(text) > 17 {
		text = strconv.FormatFloat(v, 'f', 12, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// points writes n / scale, where scale is a power of ten.
func points(n, scale uint64) string {
	return decimal(new(big.Rat).SetFrac(whole(n), whole(max(1, scale))))
}

func whole(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
