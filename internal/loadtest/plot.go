package loadtest

import (
	"context"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kuji-dev/kuji/internal/chart"
)

// Series is how the rate of the shape stream grows with one thing.
type Series struct {
	Name   string  `json:"name"` // of what grows
	File   string  `json:"file"`
	Points []Point `json:"points"`
}

// Point is one measurement of a series.
type Point struct {
	X      int    `json:"x"`
	Result Result `json:"result"`
}

// PlotReport is what the plots show.
type PlotReport struct {
	Setup
	Series []Series `json:"series"`
}

// Plot measures the shape stream along each axis and writes a plot of each. build goes into the plots.
func Plot(ctx context.Context, o Options, build fmt.Stringer) (*PlotReport, error) {
	if err := os.MkdirAll(o.Plot, 0o755); err != nil {
		return nil, err
	}
	report := &PlotReport{Setup: o.setup(build)}
	for _, axis := range []struct {
		name   string
		points []int
		set    func(x int, o *Options, l *load) (env []string)
	}{
		{"entries", powers(10, 10, o.Entries), func(x int, o *Options, _ *load) []string { o.Entries = x; return nil }},
		{"players", powers(10, 10, o.Players), func(x int, o *Options, _ *load) []string { o.Players = x; return nil }},
		{"realms", powers(1, 2, 8), func(x int, _ *Options, l *load) []string {
			l.realms, l.connections = x, max(x, l.connections)
			return nil
		}},
		{"cores", powers(1, 2, runtime.NumCPU()), func(x int, _ *Options, _ *load) []string { return []string{fmt.Sprintf("GOMAXPROCS=%d", x)} }},
	} {
		s := Series{Name: axis.name, File: filepath.Join(o.Plot, axis.name+".svg")}
		for _, x := range axis.points {
			at, l := o, o.load("stream")
			env := axis.set(x, &at, &l)
			res, _, err := at.measure(ctx, fmt.Sprintf("%s: %d", axis.name, x), l, env)
			if err != nil {
				return nil, fmt.Errorf("%d %s: %w", x, axis.name, err)
			}
			report.Sync = res.Sync
			s.Points = append(s.Points, Point{x, res})
		}
		drawn, err := s.svg(report)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(s.File, []byte(drawn), 0o644); err != nil {
			return nil, err
		}
		report.Series = append(report.Series, s)
	}
	return report, nil
}

// powers are from, from times base and so on, up to the last one and with it.
func powers(from, base, last int) []int {
	var all []int
	for n := from; n < last; n *= base {
		all = append(all, n)
	}
	return append(all, last)
}

// svg draws the series: a logarithmic axis for what grows, one from zero for the rate.
func (s *Series) svg(r *PlotReport) (template.HTML, error) {
	most := 0.0
	for _, p := range s.Points {
		most = max(most, p.Result.DrawsPerSecond)
	}
	c := chart.Chart{
		Title: "acknowledged draws a second by " + s.Name,
		X:     chart.Axis{Name: s.Name, From: float64(s.Points[0].X), To: float64(s.Points[len(s.Points)-1].X), Log: true},
		Y:     chart.FromZero("", most, chart.Short),
		Notes: []string{
			fmt.Sprintf("batches of %d on streams, sync %s, %d players, %d entries but where they grow", StreamBatch, r.Sync, r.Players, r.Entries),
			r.Machine.String(),
			fmt.Sprint(r.Build),
		},
	}
	var points [][2]float64
	for _, p := range s.Points {
		x, y := float64(p.X), p.Result.DrawsPerSecond
		c.X.Ticks = append(c.X.Ticks, chart.Tick{At: x, Label: chart.Short(x)})
		c.Dot(x, y, 0)
		points = append(points, [2]float64{x, y})
	}
	c.Line(points, 0)
	return c.SVG(true)
}
