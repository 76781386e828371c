package cli

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/internal/simulate"
)

// simulationPage is the report as a page that needs nothing else. It is well-formed XML, too.
var simulationPage = template.Must(template.New("simulation").Funcs(template.FuncMap{
	"hundred": inHundred, "longRun": func(o simulate.Odds) string { return longRunText(&o) }, "grouped": grouped, "known": known, "mean": mean, "in": in, "when": when,
	"budget": budgetName, "limit": budgetLimit, "usedUp": usedUp,
}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --text: #222; --back: #fff; --rule: #ddd; --soft: #666; }
@media (prefers-color-scheme: dark) { :root { --text: #ddd; --back: #161616; --rule: #3a3a3a; --soft: #aaa; } }
body { font-family: sans-serif; color: var(--text); background: var(--back); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.4; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.75rem 0.25rem 0; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.n, th.n { text-align: right; }
p.note { color: var(--soft); }
svg { width: 100%; height: auto; max-width: 56rem; }
{{.Style}}
</style>
</head>
<body>
<h1>{{.Title}}</h1>
<table>
{{range .Facts}}<tr><th>{{index . 0}}</th><td>{{index . 1}}</td></tr>
{{end}}</table>
<h2>Odds</h2>
{{.OddsChart}}
<table>
<tr><th>pool</th><th>entry</th><th class="n">wanted</th>{{if .LongRun}}<th class="n">long run</th>{{end}}<th class="n">seen</th><th class="n">95 % from</th><th class="n">to</th><th class="n">taken</th></tr>
{{range .Odds}}<tr><td>{{.Pool}}</td><td>{{.Entry}}</td><td class="n">{{hundred .Wanted}}</td>{{if $.LongRun}}<td class="n">{{longRun .}}</td>{{end}}<td class="n">{{hundred .Seen}}</td><td class="n">{{hundred .Low}}</td><td class="n">{{hundred .High}}</td><td class="n">{{grouped .Taken}}</td></tr>
{{end}}</table>
{{with .MoreOdds}}<p class="note">{{.}}</p>{{end}}
<p class="note">Times taken in 100 draws of the pool.{{with .OddsNote}} {{.}}{{end}}</p>
{{with .Report.Until}}<h2>Until {{.Item}}</h2>
{{$.UntilChart}}
<table>
<tr><th>cost in</th><th class="n">mean</th><th class="n">median</th><th class="n">p90</th><th class="n">p99</th><th class="n">worst</th></tr>
{{range $.Costs}}<tr><td>{{in .}}</td><td class="n">{{mean .}}</td><td class="n">{{known .Median}}</td><td class="n">{{known .P90}}</td><td class="n">{{known .P99}}</td><td class="n">{{known .Worst}}</td></tr>
{{end}}</table>
<p class="note">{{$.UntilNote}}</p>
{{end}}{{with .Report.Stock}}<h2>Stock</h2>
{{$.StockChart}}
{{if .Entries}}<table>
<tr><th>pool</th><th>entry</th><th class="n">of</th><th class="n">left</th><th>sold out</th></tr>
{{range $.Stocks}}<tr><td>{{.Pool}}</td><td>{{.Entry}}</td><td class="n">{{grouped .Stock}}</td><td class="n">{{grouped .Left}}</td><td>{{when .Gone}}</td></tr>
{{end}}</table>
{{end}}{{with $.MoreStock}}<p class="note">{{.}}</p>{{end}}
{{if .Budgets}}<h2>Budgets</h2>
{{$.BudgetChart}}
<table>
<tr><th>budget</th><th>item</th><th class="n">of</th><th class="n">spent in all</th><th class="n">most</th><th>used up</th></tr>
{{range $.Budgets}}<tr><td>{{budget .}}</td><td>{{.Item}}</td><td class="n">{{limit .}}</td><td class="n">{{grouped .Spent}}</td><td class="n">{{grouped .Most}}</td><td>{{usedUp .}}</td></tr>
{{end}}</table>
{{end}}{{end}}{{with .Given}}<h2>Given</h2>
<table>
<tr><th>item</th><th class="n">total</th><th class="n">a draw</th></tr>
{{range .}}<tr><td>{{.Item}}</td><td class="n">{{grouped .Total}}</td><td class="n">{{printf "%.4g" .PerDraw}}</td></tr>
{{end}}</table>
{{end}}</body>
</html>
`))

// simulationView is what the page shows.
type simulationView struct {
	Title                             string
	Report                            *simulate.Report
	Facts                             [][2]string
	Style                             template.CSS
	OddsChart, UntilChart, StockChart template.HTML
	BudgetChart                       template.HTML
	Budgets                           []*simulate.BudgetUse
	Odds                              []simulate.Odds
	Costs                             []*simulate.Cost
	Stocks                            []simulate.EntryStock
	Given                             []simulate.Amount
	MoreOdds, MoreStock               string
	OddsNote, UntilNote               string
	LongRun                           bool // some odds in the long run are known
}

// simulationHTML writes a report as a page.
func simulationHTML(r *simulationJSON) ([]byte, error) {
	published := *r // it says which file it is of, and not in which folder that was
	published.File = filepath.Base(r.File)
	r = &published
	v := simulationView{
		Title: "Simulation of " + r.Pool, Report: r.Report, Facts: r.facts(), Style: template.CSS(chartStyle),
		OddsChart: inline(oddsChart(r.Odds)),
		Odds:      r.Odds[:min(len(r.Odds), maxRows)], MoreOdds: more(len(r.Odds)),
		Given: r.Given[:min(len(r.Given), maxRows)],
	}
	v.LongRun, v.OddsNote = hasLongRun(r.Odds), strings.Join(r.oddsNotes(), " ")
	if r.Until != nil {
		v.UntilChart, v.UntilNote = inline(untilChart(r.Report)), r.untilNote()
		for i := range r.Until.Costs {
			v.Costs = append(v.Costs, &r.Until.Costs[i])
		}
	}
	if s := r.Stock; s != nil {
		if len(s.Entries)+len(s.Lists) > 0 {
			v.StockChart = inline(stockChart(r.Report))
		}
		for i := range s.Budgets[:min(len(s.Budgets), maxRows)] {
			v.Budgets = append(v.Budgets, &s.Budgets[i])
		}
		if len(s.Budgets) > 0 {
			v.BudgetChart = inline(budgetChart(r.Report))
		}
		v.Stocks, v.MoreStock = s.Entries[:min(len(s.Entries), maxRows)], more(len(s.Entries))
	}
	var b bytes.Buffer
	err := simulationPage.Execute(&b, &v)
	return b.Bytes(), err
}

func inline(c *chart) template.HTML { return template.HTML(c.svg(false)) } // chart escapes texts

// maxChartRows is the most entries in a chart of odds.
const maxChartRows = 40

// oddsChart shows the odds of the long run, or else wanted ones, as a hollow mark and seen ones as a dot
// on their interval, on a logarithmic scale.
func oddsChart(all []simulate.Odds) *chart {
	rows, name := slices.Clone(all[:min(len(all), maxChartRows)]), "wanted"
	for i := range rows {
		if rows[i].LongRun != nil {
			rows[i].Wanted, name = *rows[i].LongRun, "long-run"
		}
	}
	low, high := 1.0, 1.0 // powers of ten around everything above 0
	for _, o := range rows {
		for _, v := range []float64{o.Wanted, o.Seen, o.Low, o.High} {
			if v > 0 && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	low = math.Pow(10, math.Floor(math.Log10(max(low, 1e-9))))
	c := &chart{
		title: name + " (dashed) and seen odds (dot, with 95 % interval)", left: 220, inner: 18 * float64(len(rows)+1),
		x: axis{name: "times taken in 100 draws", from: low, to: high, log: true},
		y: axis{from: float64(len(rows)), to: -1},
	}
	for v := low; v <= high*1.001; v *= 10 {
		c.x.ticks = append(c.x.ticks, tick{v, fmt.Sprintf("%.6g", 100*v)})
	}
	on := func(v float64) float64 { return min(max(v, low), high) }
	for i, o := range rows {
		y := float64(i)
		name := o.Entry
		if o.Pool != rows[0].Pool {
			name = o.Pool + " / " + o.Entry
		}
		if len(name) > 32 {
			name = name[:30] + "…"
		}
		c.y.ticks = append(c.y.ticks, tick{y, name})
		if o.Wanted > 0 {
			c.thin([][2]float64{{on(o.Wanted), y - 0.45}, {on(o.Wanted), y + 0.45}}, 1)
		}
		if o.High > 0 {
			c.line([][2]float64{{on(o.Low), y}, {on(o.High), y}}, 0)
		}
		if o.Seen > 0 {
			c.dot(on(o.Seen), y, 0)
		}
	}
	if n := len(all) - len(rows); n > 0 {
		c.notes = append(c.notes, fmt.Sprintf("and %d more entries", n))
	}
	return c
}

// untilChart shows how many of the players have the item after how many draws.
func untilChart(r *simulate.Report) *chart {
	u := r.Until
	last := 1.0
	if n := len(u.Distribution); n > 0 {
		last = float64(u.Distribution[n-1].Draws)
	}
	c := &chart{
		title: "players who have " + u.Item + ", by draws",
		x:     fromZero("draws", last, short),
		y:     fromZero("", 100, func(v float64) string { return fmt.Sprintf("%g %%", v) }),
	}
	points := [][2]float64{{0, 0}}
	have := 0.0
	for _, s := range u.Distribution {
		at := float64(s.Draws)
		points = append(points, [2]float64{at, have})
		have += 100 * float64(s.Players) / float64(r.Players)
		points = append(points, [2]float64{at, have})
	}
	c.line(append(points, [2]float64{c.x.to, have}), 1)
	draws := u.Costs[0]
	for _, m := range []struct {
		name  string
		share float64
		at    *uint64
	}{{"median", 50, draws.Median}, {"p90", 90, draws.P90}, {"p99", 99, draws.P99}} {
		if m.at == nil {
			continue
		}
		x := float64(*m.at)
		c.thin([][2]float64{{x, 0}, {x, m.share}}, 0)
		c.dot(x, m.share, 0)
		c.label(x, m.share-8, fmt.Sprintf("%s %d", m.name, *m.at))
	}
	return c
}

// overTime is an empty chart of shares over the samples, by draws or by days.
func overTime(r *simulate.Report, title string) (c *chart, at func(simulate.Moment) float64) {
	at = func(m simulate.Moment) float64 { return float64(m.Draws) }
	name, samples := "draws", r.Stock.Samples
	if r.Rate > 0 {
		at, name = func(m simulate.Moment) float64 { return *m.Days }, "days"
	}
	return &chart{
		title: title + ", by " + name,
		x:     fromZero(name, at(samples[len(samples)-1].Moment), short),
		y:     fromZero("", 100, func(v float64) string { return fmt.Sprintf("%g %%", v) }),
	}, at
}

// stockChart shows what is left of each stock and of each list of codes, as a share.
func stockChart(r *simulate.Report) *chart {
	s := r.Stock
	c, at := overTime(r, "stock left")
	n := 0
	add := func(name string, of uint64, left func(*simulate.StockSample) uint64) {
		if n++; n > chartColors {
			return
		}
		var points [][2]float64
		for i := range s.Samples {
			points = append(points, [2]float64{at(s.Samples[i].Moment), 100 * float64(left(&s.Samples[i])) / max(1, float64(of))})
		}
		c.line(points, n-1)
		c.legend(n-1, name)
	}
	for k := range s.Lists {
		for _, codes := range r.Codes {
			if codes.List == s.Lists[k] {
				add("codes of "+codes.List, *codes.Of, func(m *simulate.StockSample) uint64 { return m.Codes[k] })
			}
		}
	}
	for i := range s.Entries[:s.Sampled] {
		add(s.Entries[i].Pool+" / "+s.Entries[i].Entry, s.Entries[i].Stock, func(m *simulate.StockSample) uint64 { return m.Left[i] })
	}
	if left := len(s.Entries) + len(s.Lists) - min(n, chartColors); left > 0 {
		c.notes = append(c.notes, fmt.Sprintf("and %d more entries", left))
	}
	return c
}

// budgetChart shows how much of each budget is spent in the hour, day or week of each sample.
func budgetChart(r *simulate.Report) *chart {
	s := r.Stock
	c, at := overTime(r, "budget spent")
	shown := min(len(s.Budgets), chartColors)
	for i := range shown {
		b := &s.Budgets[i]
		var points [][2]float64
		for _, m := range s.Samples {
			points = append(points, [2]float64{at(m.Moment), 100 * float64(m.Spent[i]) / float64(b.Limit)})
		}
		c.line(points, i)
		c.legend(i, budgetName(b)+" / "+b.Item)
	}
	if n := len(s.Budgets) - shown; n > 0 {
		c.notes = append(c.notes, fmt.Sprintf("and %d more budgets", n))
	}
	return c
}
