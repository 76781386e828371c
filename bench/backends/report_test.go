//go:build unix

package backends

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kuji-dev/kuji/internal/loadtest"
)

// measure is a row of the table.
type measure struct {
	name   string
	digits int
	aims   map[string]string // by backend
}

// The rows of the table.
var (
	batched      = &measure{"draws a second, batches of 1,000 on 4 streams", 0, map[string]string{"postgres": "250,000", "postgres-sync": "150,000"}}
	single       = &measure{"draws a second, single JSON calls on 64 connections", 0, map[string]string{"postgres": "6,000", "postgres-sync": "4,000"}}
	single50     = &measure{"the same: p50, ms", 2, map[string]string{"nats": "1.3 × disk"}}
	single99     = &measure{"the same: p99, ms", 2, nil}
	grpc         = &measure{"draws a second, single gRPC calls on 64 connections", 0, nil}
	grpc50       = &measure{"the same: p50, ms", 2, nil}
	alone50      = &measure{"single JSON calls on one connection: p50, ms", 2, nil}
	batchedBytes = &measure{"bytes written per draw, batches", 0, nil}
	batchedCPU   = &measure{"processor time of all servers per draw, batches, µs", 1, nil}
	singleCPU    = &measure{"processor time of all servers per draw, single JSON calls, µs", 0, nil}
	singleBytes  = &measure{"bytes written per draw, single JSON calls", 0, nil}
	restCPU      = &measure{"at rest, one realm: processor, % of a core", 1, nil}
	restBytes    = &measure{"at rest: written, KB/s", 0, nil}
	back         = &measure{"writes back after kill -9 of the leader, s", 2, map[string]string{"postgres": "4"}}
	recovered    = &measure{"", 2, nil} // named after the number of events

	rows = []*measure{batched, single, single50, single99, grpc, grpc50, alone50, batchedBytes, singleBytes, batchedCPU, singleCPU, restCPU, restBytes, back, recovered}
)

// book notes a measurement.
func (r *run) book(b backend, m *measure, value float64) {
	if r.values[m] == nil {
		r.values[m] = map[string][]float64{}
	}
	r.values[m][b.name] = append(r.values[m][b.name], value)
	r.log("%s: %s: %.*f", b.name, m.name, m.digits, value)
}

// cell is a median, with the least and the most if there are several.
func (m *measure) cell(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	slices.Sort(values)
	number := func(v float64) string { return grouped(fmt.Sprintf("%.*f", m.digits, v)) }
	text := number(loadtest.Percentile(values, 500))
	if len(values) > 1 {
		text += fmt.Sprintf(" (%s to %s)", number(values[0]), number(values[len(values)-1]))
	}
	return text
}

// grouped writes 1234567 as 1,234,567.
func grouped(number string) string {
	whole, rest, _ := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		rest = "." + rest
	}
	return whole + rest
}

// table writes what was found.
func (r *run) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	line := func(cells ...string) { fmt.Fprintf(t, "| %s\t|\n", strings.Join(cells, "\t| ")) }
	fmt.Fprintf(w, "%s\n%s\n%s\n\n", r.machine, r.build, r.o.text())
	head, under := []string{""}, []string{"---"}
	for _, b := range r.backends {
		head, under = append(head, b.name), append(under, "---")
	}
	line(head...)
	line(under...)
	for _, m := range rows {
		cells := []string{m.name}
		for _, b := range r.backends {
			cell := m.cell(r.values[m][b.name])
			if aim := m.aims[b.name]; aim != "" {
				cell += "; aim " + aim
			}
			cells = append(cells, cell)
		}
		line(cells...)
	}
	return t.Flush()
}
