package demo

import "fmt"

// Report is what the demo found. Latencies are the clients', in ms, without requests that the crash met.
type Report struct {
	OK             bool    `json:"ok"`
	Clients        int     `json:"clients"`
	Seconds        float64 `json:"seconds"` // of load, downtime included
	Requests       int     `json:"requests"`
	Draws          uint64  `json:"draws_acknowledged"`
	Refusals       uint64  `json:"refusals_acknowledged"` // sold out, limit reached, too poor
	DrawsPerSecond float64 `json:"draws_per_second"`      // while the server was up
	LatencyP50     float64 `json:"latency_p50_ms"`
	LatencyP99     float64 `json:"latency_p99_ms"`

	KilledAfter        float64     `json:"killed_after_seconds"`
	AcknowledgedAtKill int64       `json:"draws_acknowledged_at_kill"`
	Downtime           float64     `json:"downtime_seconds"` // from SIGKILL to ready
	Interrupted        int         `json:"requests_interrupted"`
	HadHappened        int         `json:"interrupted_had_happened"`
	LongestWait        float64     `json:"longest_wait_seconds"`
	Recovered          []Recovered `json:"recovered"`

	LogBytes        int64   `json:"data_bytes"`         // of all files in the data directory
	LogBytesPerDraw float64 `json:"log_bytes_per_draw"` // of log entries, request ids and grants included
	LogBatches      uint64  `json:"log_batches"`

	OddsPool string  `json:"odds_pool"`
	Odds     []Odds  `json:"odds"`
	Checks   []Check `json:"checks"`
}

// Recovered is what a realm came back with.
type Recovered struct {
	Realm        string `json:"realm"`
	Acknowledged uint64 `json:"acknowledged_position"` // the last before the kill
	Recovered    uint64 `json:"recovered_position"`
}

// check reports an acknowledged position that recovery did not find.
func (r *Recovered) check() error {
	if r.Recovered < r.Acknowledged {
		return fmt.Errorf("realm %s: recovered up to position %d, acknowledged up to %d", r.Realm, r.Recovered, r.Acknowledged)
	}
	return nil
}

// Odds is how often an entry was wanted and seen.
type Odds struct {
	Entry  string  `json:"entry"`
	Wanted float64 `json:"wanted"` // a probability
	Seen   float64 `json:"seen"`   // a frequency
	Drawn  uint64  `json:"drawn"`
}

// Check is the outcome of one.
type Check struct {
	Name   string   `json:"name"`
	OK     bool     `json:"ok"`
	Detail string   `json:"detail"`
	Errors []string `json:"errors,omitempty"`
}
