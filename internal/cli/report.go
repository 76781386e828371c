package cli

import (
	"fmt"
	"io"
	"strings"
)

// demoReport is what the demo found. Latencies are in milliseconds, as the
// clients saw them, of requests that were not interrupted by the crash.
type demoReport struct {
	OK             bool    `json:"ok"`
	Clients        int     `json:"clients"`
	Seconds        float64 `json:"seconds"` // of load, downtime included
	Requests       int     `json:"requests"`
	Draws          uint64  `json:"draws_acknowledged"`
	Refusals       uint64  `json:"refusals_acknowledged"` // sold out, limit reached, too poor
	DrawsPerSecond float64 `json:"draws_per_second"`      // while the server was up
	LatencyP50     float64 `json:"latency_p50_ms"`
	LatencyP99     float64 `json:"latency_p99_ms"`

	KilledAfter        float64         `json:"killed_after_seconds"`
	AcknowledgedAtKill int64           `json:"draws_acknowledged_at_kill"`
	Downtime           float64         `json:"downtime_seconds"` // from SIGKILL to ready
	Interrupted        int             `json:"requests_interrupted"`
	HadHappened        int             `json:"interrupted_had_happened"`
	LongestWait        float64         `json:"longest_wait_seconds"`
	Recovered          []recoveredJSON `json:"recovered"`

	LogBytes        int64   `json:"data_bytes"`         // of all files in the data directory
	LogBytesPerDraw float64 `json:"log_bytes_per_draw"` // of log entries, request ids and grants included
	LogBatches      uint64  `json:"log_batches"`

	OddsPool string      `json:"odds_pool"`
	Odds     []odds      `json:"odds"`
	Checks   []checkJSON `json:"checks"`
}

type recoveredJSON struct {
	Realm        string `json:"realm"`
	Acknowledged uint64 `json:"acknowledged_position"` // the last before the kill
	Recovered    uint64 `json:"recovered_position"`
}

type checkJSON struct {
	Name   string   `json:"name"`
	OK     bool     `json:"ok"`
	Detail string   `json:"detail"`
	Errors []string `json:"errors,omitempty"`
}

func printReport(w io.Writer, r *demoReport) {
	fprintf(w, "\n")
	row := func(name, format string, args ...any) { fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("draws acknowledged", "%d, of %d requests; %d requests refused by the state, as they had to be", r.Draws, r.Requests, r.Refusals)
	row("draws/s", "%.0f, while the server was up, from %d clients", r.DrawsPerSecond, r.Clients)
	row("latency", "p50 %.2f ms, p99 %.2f ms", r.LatencyP50, r.LatencyP99)
	row("killed", "after %.2f s and %d draws; ready again after %.2f s", r.KilledAfter, r.AcknowledgedAtKill, r.Downtime)
	row("interrupted", "%d requests, sent again with the same ids: %d had happened before the crash", r.Interrupted, r.HadHappened)
	for _, rec := range r.Recovered {
		row("recovered position", "%d in realm %s, acknowledged up to %d", rec.Recovered, rec.Realm, rec.Acknowledged)
	}
	row("log", "%.1f bytes per draw, %d batches", r.LogBytesPerDraw, r.LogBatches)
	fprintf(w, "\nODDS OF %s BEFORE PITY\tWANTED\tSEEN\tDRAWN\n", strings.ToUpper(r.OddsPool))
	for _, o := range r.Odds {
		fprintf(w, "%s\t%.3f%%\t%.3f%%\t%d\n", o.Entry, 100*o.Wanted, 100*o.Seen, o.Drawn)
	}
	fprintf(w, "\nCHECK\tRESULT\n")
	for _, c := range r.Checks {
		result := "ok: " + c.Detail
		if !c.OK {
			result = "FAILED"
		}
		fprintf(w, "%s\t%s\n", c.Name, result)
		for _, e := range c.Errors {
			fprintf(w, "\t%s\n", markup(strings.ReplaceAll(e, "\n", "\n\t")))
		}
	}
}
