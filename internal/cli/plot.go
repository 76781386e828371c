package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
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

// svg draws the series: a logarithmic axis for what grows, one from zero for the rate.
func (s *series) svg(r *plotReport) []byte {
	top := 0.0
	for _, p := range s.Points {
		top = max(top, p.Result.DrawsPerSecond)
	}
	c := chart{
		title: "acknowledged draws a second by " + s.Name,
		x:     axis{name: s.Name, from: float64(s.Points[0].X), to: float64(s.Points[len(s.Points)-1].X), log: true},
		y:     fromZero("", top, short),
		notes: []string{
			fmt.Sprintf("batches of %d on streams, sync %s, %d players, %d entries but where they grow", streamBatch, r.Sync, r.Players, r.Entries),
			r.Machine.String(),
			fmt.Sprintf("kuji %s, %s", r.Build.Version, r.Build.Go),
		},
	}
	var points [][2]float64
	for _, p := range s.Points {
		x, y := float64(p.X), p.Result.DrawsPerSecond
		c.x.ticks = append(c.x.ticks, tick{x, short(x)})
		c.dot(x, y, 0)
		points = append(points, [2]float64{x, y})
	}
	c.line(points, 0)
	return c.svg(true)
}
