package cli

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/chart"
	"github.com/kuji-dev/kuji/internal/disclosure"
	"github.com/kuji-dev/kuji/internal/simulate"
)

// simulationPage is the report as a page that needs nothing else. It is well-formed XML, too.
//
//go:embed simulate.html
var simulationText string

var simulationPage = template.Must(template.New("simulation").Funcs(template.FuncMap{
	"style": func() template.CSS { return chart.Style }, "palette": func() template.CSS { return disclosure.Palette(":root") },
	"facts": (*simulationJSON).facts, "sections": (*simulationJSON).sections, "lower": strings.ToLower,
}).Parse(simulationText))

// html writes the report as a page, with names in a language.
func (r *simulationJSON) html(c *catalog.Catalog, language string) ([]byte, error) {
	// It says which file it is of, and not in which folder that was.
	return render(simulationPage, &simulationJSON{filepath.Base(r.File), named(r.Report, c, language)})
}

// maxChartRows is the most entries in a chart of odds.
const maxChartRows = 40

// oddsChart shows long-run or else wanted odds as a dashed line, and seen ones as a dot on their interval.
func oddsChart(all []simulate.Odds) (template.HTML, error) {
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
	c := &chart.Chart{
		Title: name + " (dashed) and seen odds (dot, with 95 % interval)", Left: 220, Inner: 18 * float64(len(rows)+1),
		X: chart.Axis{Name: "times taken in 100 draws", From: low, To: high, Log: true},
		Y: chart.Axis{From: float64(len(rows)), To: -1},
	}
	for v := low; v <= high*1.001; v *= 10 {
		c.X.Ticks = append(c.X.Ticks, chart.Tick{At: v, Label: fmt.Sprintf("%.6g", 100*v)})
	}
	on := func(v float64) float64 { return min(max(v, low), high) }
	for i, o := range rows {
		y := float64(i)
		c.Y.Ticks = append(c.Y.Ticks, chart.Tick{At: y, Label: short(o.Entry)})
		if o.Wanted > 0 {
			c.Thin([][2]float64{{on(o.Wanted), y - 0.45}, {on(o.Wanted), y + 0.45}}, 1)
		}
		if o.High > 0 {
			c.Line([][2]float64{{on(o.Low), y}, {on(o.High), y}}, 0)
		}
		if o.Seen > 0 {
			c.Dot(on(o.Seen), y, 0)
		}
	}
	if n := len(all) - len(rows); n > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("and %d more entries", n))
	}
	return c.SVG(false)
}

// short clips a name to what fits left of a chart: a character of Chinese or Japanese takes the place of two.
func short(name string) string {
	width := 0
	for i, c := range name {
		if width++; c >= 0x1100 {
			width++
		}
		if width > 28 {
			return name[:i] + "…"
		}
	}
	return name
}

// untilChart shows how many of the players have the item after how many draws.
func untilChart(r *simulate.Report) (template.HTML, error) {
	u := r.Until
	last := uint64(1)
	for _, s := range u.Distribution { // ascending
		last = s.Draws
	}
	c := &chart.Chart{
		Title: "players who have " + u.Item + ", by draws",
		X:     chart.FromZero("draws", float64(last), chart.Short),
		Y:     chart.FromZero("", 100, func(v float64) string { return fmt.Sprintf("%g %%", v) }),
	}
	points := [][2]float64{{0, 0}}
	have := 0.0
	for _, s := range u.Distribution {
		at := float64(s.Draws)
		points = append(points, [2]float64{at, have})
		have += 100 * float64(s.Players) / float64(r.Players)
		points = append(points, [2]float64{at, have})
	}
	c.Line(append(points, [2]float64{c.X.To, have}), 1)
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
		c.Thin([][2]float64{{x, 0}, {x, m.share}}, 0)
		c.Dot(x, m.share, 0)
		c.Label(x, m.share-8, fmt.Sprintf("%s %d", m.name, *m.at))
	}
	return c.SVG(false)
}

// overTime is an empty chart of shares over the samples, by draws or by days.
func overTime(r *simulate.Report, title string) *shares {
	at := func(m simulate.Moment) float64 { return float64(m.Draws) }
	name, samples := "draws", r.Stock.Samples
	if r.Rate > 0 {
		at, name = func(m simulate.Moment) float64 { return *m.Days }, "days"
	}
	return &shares{samples: samples, at: at, Chart: &chart.Chart{
		Title: title + ", by " + name,
		X:     chart.FromZero(name, at(samples[len(samples)-1].Moment), chart.Short),
		Y:     chart.FromZero("", 100, func(v float64) string { return fmt.Sprintf("%g %%", v) }),
	}}
}

// shares draws lines over the samples, in percent, as many as there are colors.
type shares struct {
	*chart.Chart
	samples []simulate.StockSample
	at      func(simulate.Moment) float64
	n       int
}

func (s *shares) add(name string, of uint64, part func(*simulate.StockSample) uint64) {
	if s.n++; s.n > chart.Colors {
		return
	}
	var points [][2]float64
	for i := range s.samples {
		points = append(points, [2]float64{s.at(s.samples[i].Moment), 100 * float64(part(&s.samples[i])) / max(1, float64(of))})
	}
	s.Line(points, s.n-1)
	s.Legend(s.n-1, name)
}

func (s *shares) svg(all int, what string) (template.HTML, error) {
	if more := all - min(s.n, chart.Colors); more > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("and %d more %s", more, what))
	}
	return s.SVG(false)
}

// stockChart shows what is left of each stock and of each list of codes, as a share.
func stockChart(r *simulate.Report) (template.HTML, error) {
	s, c := r.Stock, overTime(r, "stock left")
	for k := range s.Lists {
		for _, codes := range r.Codes {
			if codes.List == s.Lists[k] {
				c.add("codes of "+codes.List, *codes.Of, func(m *simulate.StockSample) uint64 { return m.Codes[k] })
			}
		}
	}
	for i := range s.Entries[:s.Sampled] {
		c.add(s.Entries[i].Pool+" / "+s.Entries[i].Entry, s.Entries[i].Stock, func(m *simulate.StockSample) uint64 { return m.Left[i] })
	}
	return c.svg(len(s.Entries)+len(s.Lists), "entries")
}

// budgetChart shows how much of each budget is spent in the hour, day, week or month of each sample.
func budgetChart(r *simulate.Report) (template.HTML, error) {
	c := overTime(r, "budget spent")
	for i := range r.Stock.Budgets {
		b := &r.Stock.Budgets[i]
		c.add(budgetName(b)+" / "+b.Item, b.Limit, func(m *simulate.StockSample) uint64 { return m.Spent[i] })
	}
	return c.svg(len(r.Stock.Budgets), "budgets")
}
