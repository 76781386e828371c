package loadtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Result is what one shape's load found. Latencies are in milliseconds.
type Result struct {
	Shape          string  `json:"shape"`
	Sync           string  `json:"sync"`
	Connections    int     `json:"connections"`
	Batch          int     `json:"batch"` // draws in a request
	RequestIDs     bool    `json:"request_ids"`
	Seconds        float64 `json:"seconds"`
	Requests       int     `json:"requests"`
	Draws          uint64  `json:"draws_acknowledged"`
	DrawsPerSecond float64 `json:"draws_per_second"`
	P50            float64 `json:"latency_p50_ms"`
	P90            float64 `json:"latency_p90_ms"`
	P99            float64 `json:"latency_p99_ms"`
	P999           float64 `json:"latency_p999_ms"`
	Max            float64 `json:"latency_max_ms"`

	LogBytesPerDraw    float64 `json:"log_bytes_per_draw"`
	WrittenPerDraw     float64 `json:"written_bytes_per_draw,omitempty"`  // to disks; 0: nobody knows
	CPUPerDraw         float64 `json:"servers_cpu_us_per_draw,omitempty"` // of all that the server needs; 0: nobody knows
	AllocationsPerDraw float64 `json:"server_allocations_per_draw"`
	GCCycles           float64 `json:"server_gc_cycles"`
	GCPerMillion       float64 `json:"server_gc_cycles_per_million_draws"`
	ServerCPU          float64 `json:"server_cpu_seconds"`
	ClientCPU          float64 `json:"client_cpu_seconds"`
	PeakMemory         float64 `json:"server_peak_memory_bytes"`
}

func newResult(l load, took time.Duration, draws uint64, latencies []float64, before, after reading) Result {
	slices.Sort(latencies)
	each := func(v float64) float64 { return v / float64(max(draws, 1)) }
	gc := after.metrics["go_gc_duration_seconds_count"] - before.metrics["go_gc_duration_seconds_count"]
	return Result{
		Shape: l.name, Connections: l.connections, Batch: max(1, l.batch), RequestIDs: !l.unnamed,
		Seconds: Seconds(took), Requests: len(latencies), Draws: draws, DrawsPerSecond: float64(draws) / took.Seconds(),
		P50: Percentile(latencies, 500), P90: Percentile(latencies, 900), P99: Percentile(latencies, 990),
		P999: Percentile(latencies, 999), Max: Percentile(latencies, 1000),
		LogBytesPerDraw:    each(float64(after.logBytes - before.logBytes)),
		WrittenPerDraw:     each(float64(after.used.Written - before.used.Written)),
		CPUPerDraw:         each(float64(after.used.CPU-before.used.CPU) / float64(time.Microsecond)),
		AllocationsPerDraw: each(after.metrics["go_memstats_mallocs_total"] - before.metrics["go_memstats_mallocs_total"]),
		GCCycles:           gc, GCPerMillion: each(gc) * 1e6,
		ServerCPU:  after.metrics["process_cpu_seconds_total"] - before.metrics["process_cpu_seconds_total"],
		ClientCPU:  (after.clientCPU - before.clientCPU).Seconds(),
		PeakMemory: after.peak,
	}
}

// reading is what a server and this process have used at one moment.
type reading struct {
	metrics   map[string]float64
	logBytes  uint64 // of all realms
	used      Usage
	peak      float64
	clientCPU time.Duration
}

// gauge asks the server what it has used.
func (t *target) gauge(ctx context.Context) (reading, error) {
	over := t.newConnection(false)
	c, err := t.client(over)
	if err != nil {
		return reading{}, err
	}
	status, err := c.Admin.GetStatus(ctx, &kujiv1.GetStatusRequest{})
	if err != nil {
		return reading{}, err
	}
	r := reading{clientCPU: processCPU()}
	if t.Used != nil {
		if r.used, err = t.Used(); err != nil {
			return reading{}, err
		}
	}
	for _, realm := range status.GetRealms() {
		r.logBytes += realm.GetLogBytes()
	}
	if r.metrics, err = t.metrics(ctx, &http.Client{Transport: over}); err != nil {
		return reading{}, err
	}
	if r.peak = peakMemory(t.PID); r.peak == 0 {
		r.peak = r.metrics["process_resident_memory_bytes"] // of now: the best there is
	}
	return r, nil
}

// maxPage bounds a page of metrics or a profile, in bytes.
const maxPage = 64 << 20

// fetch gets a page. The status is 0 if there was no answer.
func fetch(ctx context.Context, h *http.Client, url, key string) (page []byte, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := h.Do(req)
	if err != nil {
		return nil, 0, connect.NewError(connect.CodeUnavailable, err)
	}
	defer resp.Body.Close() // read only
	page, err = io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: HTTP %d: %.200s", url, resp.StatusCode, page)
	}
	return page, resp.StatusCode, err
}

// metrics reads the server's metrics that have no labels. A node of a cluster that does not lead has none.
func (t *target) metrics(ctx context.Context, h *http.Client) (map[string]float64, error) {
	text, status, err := fetch(ctx, h, t.URL+"/metrics", t.key)
	switch {
	case status == http.StatusServiceUnavailable:
		return nil, nil
	case err != nil:
		return nil, err
	}
	found := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			found[name] = v
		}
	}
	return found, nil
}

// peakMemory is the most memory that a process had resident, in bytes; 0 where the system does not say.
func peakMemory(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			if kb, err := strconv.ParseFloat(fields[1], 64); err == nil {
				return kb * 1024
			}
		}
	}
	return 0
}
