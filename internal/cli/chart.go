package cli

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
)

// chart is a plot as SVG: two axes, and what is drawn between them.
type chart struct {
	title string
	x, y  axis
	left  float64 // width of the labels of y; 0: the usual
	inner float64 // height between the axes; 0: the usual
	notes []string
	lines []legend
	marks bytes.Buffer
}

// legend is the name of a color.
type legend struct {
	color int
	name  string
}

// axis is a scale. Its ticks are within from and to.
type axis struct {
	name     string
	from, to float64
	log      bool
	ticks    []tick
}

type tick struct {
	at    float64
	label string
}

// Sizes of a chart, in its units.
const (
	chartWidth                = 680
	chartLeft, chartRight     = 80, 30
	chartTop, chartBottom     = 46, 44
	chartInner                = 220
	chartNote                 = 14 // height of a line of notes
	chartGrid                 = 4  // parts of an axis from zero
	chartColors               = 8
	chartFont, chartSmallFont = 13, 10
)

// chartStyle is the style of charts, in light and dark.
const chartStyle = `
svg { --ink: #222; --paper: #fff; --grid: #ddd; --c0: #b3261e; --c1: #1f5fbf; --c2: #1b7f3b; --c3: #8a5a00; --c4: #7b3fb5; --c5: #00717a; --c6: #b0307a; --c7: #666; font-family: sans-serif; }
@media (prefers-color-scheme: dark) { svg { --ink: #ddd; --paper: #161616; --grid: #3a3a3a; --c0: #ff8a80; --c1: #82b1ff; --c2: #7fd99a; --c3: #f0c060; --c4: #cfa5ff; --c5: #66d9e0; --c6: #ff9ad5; --c7: #aaa; } }
svg text { fill: var(--ink); } .paper { fill: var(--paper); } .grid { stroke: var(--grid); } .line { fill: none; stroke-width: 2; } .thin { fill: none; stroke-width: 1; stroke-dasharray: 4 3; }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); } .s6 { stroke: var(--c6); } .s7 { stroke: var(--c7); }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); } .f3 { fill: var(--c3); } .f4 { fill: var(--c4); } .f5 { fill: var(--c5); } .f6 { fill: var(--c6); } .f7 { fill: var(--c7); }
`

// fromZero is an axis from zero to a round number not below top.
func fromZero(name string, top float64, label func(float64) string) axis {
	top = roundUp(top)
	a := axis{name: name, to: top}
	for i := range chartGrid + 1 {
		at := top * float64(i) / chartGrid
		a.ticks = append(a.ticks, tick{at, label(at)})
	}
	return a
}

// place returns where a value is on an axis, from 0 to 1.
func (a *axis) place(v float64) float64 {
	switch {
	case a.from == a.to:
		return 0.5
	case a.log:
		return (math.Log(v) - math.Log(a.from)) / (math.Log(a.to) - math.Log(a.from))
	}
	return (v - a.from) / (a.to - a.from)
}

func (c *chart) size() (left, inner float64) {
	left, inner = c.left, c.inner
	if left == 0 {
		left = chartLeft
	}
	if inner == 0 {
		inner = chartInner
	}
	return left, inner
}

func (c *chart) atX(v float64) float64 {
	left, _ := c.size()
	return left + (chartWidth-left-chartRight)*c.x.place(v)
}

func (c *chart) atY(v float64) float64 {
	_, inner := c.size()
	return chartTop + inner*(1-c.y.place(v))
}

// dot draws a point in one of the colors.
func (c *chart) dot(x, y float64, color int) {
	fmt.Fprintf(&c.marks, `<circle cx="%.1f" cy="%.1f" r="4" class="f%d"/>`+"\n", c.atX(x), c.atY(y), color%chartColors)
}

// line draws a line through points in one of the colors.
func (c *chart) line(points [][2]float64, color int) { c.draw(points, "line", color) }

// thin draws a dashed line.
func (c *chart) thin(points [][2]float64, color int) { c.draw(points, "thin", color) }

func (c *chart) draw(points [][2]float64, class string, color int) {
	var at bytes.Buffer
	for _, p := range points {
		fmt.Fprintf(&at, "%.1f,%.1f ", c.atX(p[0]), c.atY(p[1]))
	}
	fmt.Fprintf(&c.marks, `<polyline points="%s" class="%s s%d"/>`+"\n", bytes.TrimSpace(at.Bytes()), class, color%chartColors)
}

// label writes next to a point.
func (c *chart) label(x, y float64, text string) {
	chartText(&c.marks, c.atX(x)+5, c.atY(y)-5, chartSmallFont, "start", text)
}

// legend names a color.
func (c *chart) legend(color int, name string) { c.lines = append(c.lines, legend{color, name}) }

func chartText(b *bytes.Buffer, x, y float64, size int, anchor, text string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s">`, x, y, size, anchor)
	_ = xml.EscapeText(b, []byte(text)) // a buffer takes everything
	b.WriteString("</text>\n")
}

// svg returns the chart as an element of a page that has chartStyle, or as a file of its own.
func (c *chart) svg(file bool) []byte {
	var b bytes.Buffer
	left, inner := c.size()
	bottom := chartTop + inner
	height := bottom + chartBottom + chartNote*float64(len(c.lines)+len(c.notes))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" role="img">`+"\n", chartWidth, height)
	if file {
		fmt.Fprintf(&b, "<style>%s</style>\n", chartStyle)
	}
	b.WriteString("<title>")
	_ = xml.EscapeText(&b, []byte(c.title))
	fmt.Fprintf(&b, "</title>\n"+`<rect width="%d" height="%.0f" class="paper"/>`+"\n", chartWidth, height)
	chartText(&b, 10, 24, chartFont+2, "start", c.title)
	for _, t := range c.y.ticks {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%d" y1="%.1f" y2="%.1f" class="grid"/>`+"\n", left, chartWidth-chartRight, c.atY(t.at), c.atY(t.at))
		chartText(&b, left-8, c.atY(t.at)+4, chartFont, "end", t.label)
	}
	for _, t := range c.x.ticks {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%.1f" class="grid"/>`+"\n", c.atX(t.at), c.atX(t.at), chartTop, bottom)
		chartText(&b, c.atX(t.at), bottom+18, chartFont, "middle", t.label)
	}
	b.Write(c.marks.Bytes())
	chartText(&b, chartWidth-chartRight, bottom+34, chartSmallFont, "end", c.x.name)
	y := bottom + chartBottom + 4
	for _, l := range c.lines {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" class="f%d"/>`+"\n", left, y-4, l.color%chartColors)
		chartText(&b, left+10, y, chartSmallFont, "start", l.name)
		y += chartNote
	}
	for _, note := range c.notes {
		chartText(&b, 10, y, chartSmallFont, "start", note)
		y += chartNote
	}
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
	return fmt.Sprintf("%.4g", v)
}
