package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestSVG: a chart is well-formed, with every part of it, and text is only text.
func TestSVG(t *testing.T) {
	c := Chart{Title: "a < b & c", X: FromZero("draws", 1500, Short), Y: Axis{From: 1, To: 100, Log: true, Ticks: []Tick{{10, "ten"}}}, Notes: []string{"</svg>"}}
	c.Dot(750, 10, 9)
	c.Line([][2]float64{{0, 1}, {2000, 100}}, 0)
	c.Thin([][2]float64{{0, 1}, {0, 100}}, 1)
	c.Label(0, 1, "<script>")
	c.Legend(1, "one")
	for _, file := range []bool{true, false} {
		svg, err := c.SVG(file)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]int{}
		d := xml.NewDecoder(strings.NewReader(string(svg)))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, svg)
			}
			if e, ok := token.(xml.StartElement); ok {
				names[e.Name.Local]++
			}
		}
		if names["script"] != 0 || names["polyline"] != 2 || names["circle"] != 2 || names["line"] != 6 || (names["style"] == 1) != file {
			t.Errorf("it has %v\n%s", names, svg)
		}
		for _, want := range []string{`<circle cx="293.8" cy="156.0" r="4" class="f1"/>`, `points="80.0,266.0 650.0,46.0" class="line s0"`, ">2k<", ">ten<"} {
			if !strings.Contains(string(svg), want) {
				t.Errorf("without %s\n%s", want, svg)
			}
		}
	}
}
