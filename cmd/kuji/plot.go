package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// series is how the rate of the shape stream grows with one thing.
type series struct {
	Name   string      `json:"name"` // of what grows
	File   string      `json:"file"`
	Points []pointJSON `json:"points"`
}

type pointJSON struct {
	X      int       `json:"x"`
	Result benchJSON `json:"result"`
}

// plotReport is what --plot found.
type plotReport struct {
	Machine machineJSON `json:"machine"`
	Build   versionJSON `json:"build"`
	Sync    string      `json:"sync"`
	Players int         `json:"players"`
	Entries int         `json:"entries"`
	Series  []series    `json:"series"`
}

// plot measures the shape stream along each axis and writes a plot of each.
func (b *bench) plot(ctx context.Context) error {
	if err := os.MkdirAll(b.f.plot, 0o755); err != nil {
		return err
	}
	report := plotReport{Machine: thisMachine(b.dir), Build: thisBuild(), Sync: b.f.sync, Players: b.f.players, Entries: b.f.entries}
	usual := *b.f // restored after each point
	for _, axis := range []struct {
		name   string
		points []int
		set    func(x int, l *load, entries *int) (env []string)
	}{
		{"entries", powers(10, 10, usual.entries), func(x int, _ *load, entries *int) []string {
			*entries = x
			return nil
		}},
		{"players", powers(10, 10, usual.players), func(x int, _ *load, _ *int) []string {
			b.f.players = x
			return nil
		}},
		{"realms", powers(1, 2, 8), func(x int, l *load, _ *int) []string {
			l.realms, l.connections = x, max(x, l.connections)
			return nil
		}},
		{"cores", powers(1, 2, runtime.NumCPU()), func(x int, _ *load, _ *int) []string {
			return []string{fmt.Sprintf("GOMAXPROCS=%d", x)}
		}},
	} {
		s := series{Name: axis.name, File: filepath.Join(b.f.plot, axis.name+".svg")}
		for _, x := range axis.points {
			l, entries := loadOf(shapeOf("stream"), &usual), usual.entries
			env := axis.set(x, &l, &entries)
			res, _, err := b.measure(ctx, fmt.Sprintf("%s: %d", axis.name, x), l, entries, env)
			*b.f = usual
			if err != nil {
				return fmt.Errorf("%d %s: %w", x, axis.name, err)
			}
			s.Points = append(s.Points, pointJSON{x, res})
		}
		if err := os.WriteFile(s.File, s.svg(&report), 0o644); err != nil {
			return err
		}
		report.Series = append(report.Series, s)
	}
	return b.print(report, func(w io.Writer) { printPlots(w, &report) })
}

// powers are from, from times base and so on, up to the last one and with it.
func powers(from, base, last int) []int {
	var all []int
	for n := from; n < last; n *= base {
		all = append(all, n)
	}
	return append(all, last)
}

func printPlots(w io.Writer, r *plotReport) {
	fprintf(w, "\nmachine\t%s\n", r.Machine)
	fprintf(w, "build\tkuji %s, %s, %s\n", r.Build.Version, r.Build.Go, r.Build.Platform)
	fprintf(w, "setup\tshape stream, %d players, %d entries, sync %s, unless the row says otherwise\n\n", r.Players, r.Entries, r.Sync)
	fprintf(w, "WHAT GROWS\t\tDRAWS/S\tP99 ms\tSERVER CPU s\tPEAK MEMORY MB\tPLOT\n")
	for _, s := range r.Series {
		for _, p := range s.Points {
			fprintf(w, "%s\t%d\t%.0f\t%.3f\t%.2f\t%.0f\t%s\n", s.Name, p.X, p.Result.DrawsPerSecond, p.Result.P99, p.Result.ServerCPU, p.Result.PeakMemory/1e6, s.File)
		}
	}
}

// Sizes of a plot, in its units.
const (
	plotWidth, plotHeight    = 560, 340
	plotLeft, plotRight      = 80, 30
	plotTop, plotBottom      = 46, 74
	plotInnerX, plotInnerY   = plotWidth - plotLeft - plotRight, plotHeight - plotTop - plotBottom
	plotGridLines            = 4
	plotFont, plotSmall      = 13, 10
	plotInk, plotPale, plotA = "#222", "#ddd", "#b3261e"
)

// svg draws the series: a logarithmic axis for what grows, one from zero for the rate.
func (s *series) svg(r *plotReport) []byte {
	var b bytes.Buffer
	top := 0.0
	for _, p := range s.Points {
		top = max(top, p.Result.DrawsPerSecond)
	}
	top = roundUp(top)
	first, last := float64(s.Points[0].X), float64(s.Points[len(s.Points)-1].X)
	x := func(v int) float64 {
		if first == last {
			return plotLeft + plotInnerX/2
		}
		return plotLeft + plotInnerX*(math.Log(float64(v))-math.Log(first))/(math.Log(last)-math.Log(first))
	}
	y := func(v float64) float64 { return plotTop + plotInnerY*(1-v/top) }
	text := func(x, y float64, size int, anchor, t string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" fill="%s">`, x, y, size, anchor, plotInk)
		_ = xml.EscapeText(&b, []byte(t)) // a buffer takes everything
		b.WriteString("</text>\n")
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	text(plotLeft, 26, plotFont+2, "start", "acknowledged draws a second by "+s.Name)
	for i := range plotGridLines + 1 {
		v := top * float64(i) / plotGridLines
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s"/>`+"\n", plotLeft, plotWidth-plotRight, y(v), y(v), plotPale)
		text(plotLeft-8, y(v)+4, plotFont, "end", short(v))
	}
	var line bytes.Buffer
	for _, p := range s.Points {
		at := y(p.Result.DrawsPerSecond)
		fmt.Fprintf(&line, "%.1f,%.1f ", x(p.X), at)
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x(p.X), at, plotA)
		text(x(p.X), plotTop+plotInnerY+20, plotFont, "middle", short(float64(p.X)))
	}
	fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", bytes.TrimSpace(line.Bytes()), plotA)
	text(plotLeft, plotHeight-34, plotSmall, "start", fmt.Sprintf("batches of %d on streams, sync %s, %d players, %d entries but where they grow", streamBatch, r.Sync, r.Players, r.Entries))
	text(plotLeft, plotHeight-20, plotSmall, "start", r.Machine.String())
	text(plotLeft, plotHeight-6, plotSmall, "start", fmt.Sprintf("kuji %s, %s", r.Build.Version, r.Build.Go))
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// roundUp returns 1, 2, 4 or 8 times a power of ten, not below v.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	steps := []float64{1, 2, 4, 8, 10}
	return unit * steps[slices.IndexFunc(steps, func(s float64) bool { return s*unit >= v || s == 10 })]
}

// short writes 1500 as 1.5k.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", math.Round(v/1e4)/100)
	case v >= 1e3:
		return fmt.Sprintf("%gk", math.Round(v/10)/100)
	}
	return fmt.Sprintf("%g", v)
}
