// Package chart draws plots as SVG: two axes, and what stands between them. It knows nothing of what is
// drawn.
package chart

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// Chart is a plot. Fill it in, draw on it, and write it with SVG.
type Chart struct {
	Title string
	X, Y  Axis
	Left  float64 // width of the labels of Y; 0: the usual
	Inner float64 // height between the axes; 0: the usual
	Notes []string

	legends []text
	lines   []line
	dots    []dot
	labels  []text
}

// Axis is a scale. Its ticks are within From and To.
type Axis struct {
	Name     string
	From, To float64
	Log      bool
	Ticks    []Tick
}

// Tick is a place on an axis that has a label.
type Tick struct {
	At    float64
	Label string
}

// Parts of a chart as they are drawn, in its units.
type (
	line struct {
		Points, Class string
		Color         int
	}
	dot struct {
		X, Y  float64
		Color int
	}
	text struct {
		X, Y  float64
		Text  string
		Color int
	}
)

// Colors is how many colors there are.
const Colors = 8

// Sizes of a chart, in its units.
const (
	width       = 680
	left, right = 80, 30
	top, bottom = 46, 44
	inner       = 220
	note        = 14 // height of a line of notes
	grid        = 4  // parts of an axis from zero
)

// Style is the style of charts, in light and dark, for a page that has some.
//
//go:embed chart.css
var Style template.CSS

//go:embed chart.svg
var svg string

var drawing = template.Must(template.New("chart").Parse(svg))

// FromZero is an axis from zero to a round number not below most.
func FromZero(name string, most float64, label func(float64) string) Axis {
	a := Axis{Name: name, To: roundUp(most)}
	for i := range grid + 1 {
		at := a.To * float64(i) / grid
		a.Ticks = append(a.Ticks, Tick{at, label(at)})
	}
	return a
}

// place returns where a value is on an axis, from 0 to 1.
func (a *Axis) place(v float64) float64 {
	switch {
	case a.From == a.To:
		return 0.5
	case a.Log:
		return (math.Log(v) - math.Log(a.From)) / (math.Log(a.To) - math.Log(a.From))
	}
	return (v - a.From) / (a.To - a.From)
}

func (c *Chart) edge() float64 {
	if c.Left == 0 {
		return left
	}
	return c.Left
}

// base is where the axis X is.
func (c *Chart) base() float64 {
	if c.Inner == 0 {
		return top + inner
	}
	return top + c.Inner
}

func (c *Chart) atX(v float64) float64 { return c.edge() + (width-c.edge()-right)*c.X.place(v) }
func (c *Chart) atY(v float64) float64 { return top + (c.base()-top)*(1-c.Y.place(v)) }

// Dot draws a point in one of the colors.
func (c *Chart) Dot(x, y float64, color int) {
	c.dots = append(c.dots, dot{c.atX(x), c.atY(y), color % Colors})
}

// Line draws a line through points in one of the colors, Thin a thin dashed one.
func (c *Chart) Line(points [][2]float64, color int) { c.polyline("line", points, color) }

// Thin draws a thin dashed line.
func (c *Chart) Thin(points [][2]float64, color int) { c.polyline("thin", points, color) }

func (c *Chart) polyline(class string, points [][2]float64, color int) {
	var at strings.Builder
	for _, p := range points {
		fmt.Fprintf(&at, "%.1f,%.1f ", c.atX(p[0]), c.atY(p[1]))
	}
	c.lines = append(c.lines, line{strings.TrimSpace(at.String()), class, color % Colors})
}

// Label writes next to a point.
func (c *Chart) Label(x, y float64, s string) {
	c.labels = append(c.labels, text{X: c.atX(x) + 5, Y: c.atY(y) - 5, Text: s})
}

// Legend names a color.
func (c *Chart) Legend(color int, name string) {
	c.legends = append(c.legends, text{Text: name, Color: color % Colors})
}

// SVG returns the chart as an element of a page that has Style, or as a file of its own.
func (c *Chart) SVG(file bool) (template.HTML, error) {
	d := struct {
		*Chart
		File                      bool
		Style                     template.CSS
		Width, Height, Edge, Base float64
		Right, Name               float64 // of the grid; of X's name
		XTicks, YTicks            []text
		Legends, Below, Labels    []text
		Lines                     []line
		Dots                      []dot
	}{Chart: c, File: file, Style: Style, Width: width, Edge: c.edge(), Base: c.base(), Right: width - right, Name: c.base() + 34,
		Lines: c.lines, Dots: c.dots, Labels: c.labels}
	for _, t := range c.X.Ticks {
		d.XTicks = append(d.XTicks, text{X: c.atX(t.At), Y: c.base() + 18, Text: t.Label})
	}
	for _, t := range c.Y.Ticks {
		d.YTicks = append(d.YTicks, text{X: c.edge() - 8, Y: c.atY(t.At), Text: t.Label})
	}
	y := c.base() + bottom + 4
	for _, l := range c.legends {
		d.Legends = append(d.Legends, text{c.edge(), y, l.Text, l.Color})
		y += note
	}
	for _, n := range c.Notes {
		d.Below = append(d.Below, text{X: 10, Y: y, Text: n})
		y += note
	}
	d.Height = y - 4
	var b bytes.Buffer
	err := drawing.Execute(&b, d)
	return template.HTML(b.String()), err //nolint:gosec // the template has escaped it
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

// Short writes 1500 as 1.5k.
func Short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", math.Round(v/1e4)/100)
	case v >= 1e3:
		return fmt.Sprintf("%gk", math.Round(v/10)/100)
	}
	return fmt.Sprintf("%.4g", v)
}
