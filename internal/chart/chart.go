// Package chart draws plots as SVG: two axes, with lines, dots and labels between them.
package chart

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
)

// Chart is a plot. Fill it in, draw on it, and write it with SVG.
type Chart struct {
	Title string
	X, Y  Axis
	Left  float64 // width of the labels of Y; 0: the usual
	Inner float64 // height between the axes; 0: the usual
	Notes []string

	// What was drawn, in units of the axes.
	Lines                 []Line
	Dots, Labels, Legends []Mark
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

// Line is a line through points.
type Line struct {
	Points [][2]float64
	Class  string
	Color  int
}

// Mark is a dot or a text.
type Mark struct {
	X, Y  float64
	Text  string
	Color int
}

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

var drawing = template.Must(template.New("chart").Funcs(template.FuncMap{"at": func(parts ...float64) string {
	sum := 0.0
	for _, p := range parts {
		sum += p
	}
	return fmt.Sprintf("%.1f", sum)
}}).Parse(svg))

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

// Edge is where the axis Y is, in units of the drawing, as are the places below.
func (c *Chart) Edge() float64 { return cmp.Or(c.Left, left) }

// Base is where the axis X is.
func (c *Chart) Base() float64 { return top + cmp.Or(c.Inner, inner) }

// AtX is where a value of X is.
func (c *Chart) AtX(v float64) float64 { return c.Edge() + (width-c.Edge()-right)*c.X.place(v) }

// AtY is where a value of Y is.
func (c *Chart) AtY(v float64) float64 { return top + (c.Base()-top)*(1-c.Y.place(v)) }

// Row is where a line of the legends and notes is, which come after so many others.
func (c *Chart) Row(before ...int) float64 {
	y := c.Base() + bottom + 4
	for _, n := range before {
		y += note * float64(n)
	}
	return y
}

// Dot draws a point in one of the colors.
func (c *Chart) Dot(x, y float64, color int) {
	c.Dots = append(c.Dots, Mark{X: x, Y: y, Color: color % Colors})
}

// Line draws a line through points in one of the colors.
func (c *Chart) Line(points [][2]float64, color int) {
	c.Lines = append(c.Lines, Line{points, "line", color % Colors})
}

// Thin draws a thin dashed line.
func (c *Chart) Thin(points [][2]float64, color int) {
	c.Lines = append(c.Lines, Line{points, "thin", color % Colors})
}

// Label writes next to a point.
func (c *Chart) Label(x, y float64, s string) { c.Labels = append(c.Labels, Mark{X: x, Y: y, Text: s}) }

// Legend names a color.
func (c *Chart) Legend(color int, name string) {
	c.Legends = append(c.Legends, Mark{Text: name, Color: color % Colors})
}

// SVG returns the chart as an element of a page that has Style, or as a file of its own.
func (c *Chart) SVG(file bool) (template.HTML, error) {
	var b bytes.Buffer
	err := drawing.Execute(&b, struct {
		*Chart
		File                 bool
		Style                template.CSS
		Width, Height, Right float64
	}{c, file, Style, width, c.Row(len(c.Legends), len(c.Notes)) - 4, width - right})
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
