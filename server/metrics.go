package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kuji-dev/kuji"
)

// labelUnreadable is the code for requests that could not be decoded: malformed, too large, in an
// unknown encoding, or incomplete.
const labelUnreadable = "unreadable"

// metrics are the server's own. A realm's are read from its Stats at each scrape. Labels take only
// values from the contract or from an admin: nothing that a client sends becomes a label.
type metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	results  map[kuji.Status]prometheus.Counter
	unknown  prometheus.Counter // results with a status that results lacks
	unrouted *rpcMetrics
	streams  prometheus.Gauge
	handler  http.Handler // of /metrics
}

// latencyBuckets range from a read from memory to a disk in trouble, in seconds.
var latencyBuckets = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kuji_rpc_requests_total",
			Help: "Calls answered, by RPC and by the code of the answer; unreadable: the request could not be decoded.",
		}, []string{"rpc", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kuji_rpc_duration_seconds",
			Help: "Time from when a request has arrived to the end of its answer, by RPC; for a stream, from each batch to its answer. " +
				"Calls refused before decoding are not counted.",
			Buckets: latencyBuckets,
		}, []string{"rpc"}),
		results: make(map[kuji.Status]prometheus.Counter),
	}
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kuji_results_total",
		Help: "Results answered, by status; each command of a batch is one.",
	}, []string{"status"})
	for _, st := range []kuji.Status{kuji.OK, kuji.SoldOut, kuji.LimitReached, kuji.InsufficientItems, kuji.NotStarted, kuji.Ended,
		kuji.CountTooLarge, kuji.BalanceOverflow, kuji.Aborted,
		kuji.NotEligible, kuji.PriceNotOffered, kuji.Refused} {
		m.results[st] = results.WithLabelValues(st.String())
	}
	m.unknown = results.WithLabelValues("other")
	m.streams = prometheus.NewGauge(prometheus.GaugeOpts{Name: "kuji_draw_streams", Help: "Streams of draws that are open."})
	redis := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kuji_redis_connections", Help: "Connections of the Redis protocol that are open."},
		func() float64 { return float64(s.redis.Len()) })
	m.unrouted = &rpcMetrics{rpc: "none", requests: m.requests}

	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kuji_build_info", Help: "1, labelled with the version.", ConstLabels: prometheus.Labels{"version": s.o.Version},
	})
	build.Set(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.requests, m.latency, results, m.streams, redis, build, newRealmCollector(s.realms, s.o.History), &poolCollector{s.realms, MaxPoolMetrics}, leftOutCollector{s.journal},
		collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelWarn),
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	})
	return m
}

// result counts n results with one status.
func (m *metrics) result(st kuji.Status, n int) {
	if c := m.results[st]; c != nil {
		c.Add(float64(n))
		return
	}
	m.unknown.Add(float64(n))
}

// all counts results. Those with the same status are mostly next to each other.
func (m *metrics) all(results []kuji.Result) {
	for from, to := 0, 0; from < len(results); from = to {
		for to < len(results) && results[to].Status == results[from].Status {
			to++
		}
		m.result(results[from].Status, to-from)
	}
}

// rpcMetrics are the metrics of one RPC, looked up once.
type rpcMetrics struct {
	rpc      string
	requests *prometheus.CounterVec
	ok       prometheus.Counter
	latency  prometheus.Observer
}

func (m *metrics) rpc(procedure string) *rpcMetrics {
	rpc := procedure[1:]
	return &rpcMetrics{rpc: rpc, requests: m.requests,
		ok: m.requests.WithLabelValues(rpc, "ok"), latency: m.latency.WithLabelValues(rpc)}
}

// done counts an answered call. d is 0 if it was refused before decoding.
func (m *rpcMetrics) done(code string, d time.Duration) {
	if d > 0 {
		m.latency.Observe(d.Seconds())
	}
	if code == "ok" {
		m.ok.Inc()
		return
	}
	m.requests.WithLabelValues(m.rpc, code).Inc()
}

// realmCollector reads the realms' Stats at each scrape.
type realmCollector struct {
	realms *realms
	list   []realmMetric
}

type realmMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*kuji.Realm, *kuji.Stats) float64
}

func newRealmCollector(rs *realms, history History) *realmCollector {
	c := &realmCollector{realms: rs}
	add := func(kind prometheus.ValueType, name, help string, value func(*kuji.Realm, *kuji.Stats) float64) {
		c.list = append(c.list, realmMetric{prometheus.NewDesc("kuji_realm_"+name, help, []string{"realm"}, nil), kind, value})
	}
	counter := func(name, help string, value func(*kuji.Stats) uint64) {
		add(prometheus.CounterValue, name, help, func(_ *kuji.Realm, st *kuji.Stats) float64 { return float64(value(st)) })
	}
	gauge := func(name, help string, value func(*kuji.Stats) uint64) {
		add(prometheus.GaugeValue, name, help, func(_ *kuji.Realm, st *kuji.Stats) float64 { return float64(value(st)) })
	}
	add(prometheus.GaugeValue, "healthy", "1 while the realm leads or follows, 0 when it has stopped.",
		func(r *kuji.Realm, _ *kuji.Stats) float64 { return oneIf(r.Err() == nil) })
	counter("batches_total", "Batches appended to the log since the realm was opened.", func(s *kuji.Stats) uint64 { return s.Batches })
	counter("events_total", "Events appended since the realm was opened.", func(s *kuji.Stats) uint64 { return s.Events })
	counter("draws_total", "Single draws that ended ok since the realm was opened.", func(s *kuji.Stats) uint64 { return s.Draws })
	counter("failures_total", "Events with a status other than ok since the realm was opened.", func(s *kuji.Stats) uint64 { return s.Failures })
	counter("replays_total", "First answers returned again since the realm was opened.", func(s *kuji.Stats) uint64 { return s.Replays })
	counter("log_bytes_total", "Bytes appended to the log since the realm was opened.", func(s *kuji.Stats) uint64 { return s.LogBytes })
	gauge("position", "Position of the newest acknowledged batch.", func(s *kuji.Stats) uint64 { return s.Position })
	gauge("epoch", "Epoch of this writer.", func(s *kuji.Stats) uint64 { return s.Epoch })
	add(prometheus.GaugeValue, "leads", "1 where the realm accepts commands, 0 where it follows.",
		func(r *kuji.Realm, _ *kuji.Stats) float64 { return oneIf(r.Replica().Leads()) })
	gauge("behind", "By how many positions a realm that follows is behind what this node last heard of the leader.", func(s *kuji.Stats) uint64 { return s.Behind })
	gauge("chain_differs", "1 when the chain of a realm that follows differs from the leader's: one of them has what the log does not have.", func(s *kuji.Stats) uint64 { return s.Differs })
	gauge("catalog_version", "Version of the catalog in force.", func(s *kuji.Stats) uint64 { return s.CatalogVersion })
	add(prometheus.GaugeValue, "clock_drift_seconds", "How far the machine's clock is ahead of the realm's time stamps; negative: behind. Beyond a minute one of the two is wrong.",
		func(_ *kuji.Realm, st *kuji.Stats) float64 { return st.Clock.Drift().Seconds() })
	add(prometheus.GaugeValue, "clock_back_seconds", "How far the realm's clock was set back in all.",
		func(_ *kuji.Realm, st *kuji.Stats) float64 { return float64(st.Clock.Back) / 1000 })
	gauge("players", "Players seen so far.", func(s *kuji.Stats) uint64 { return s.Players })
	gauge("request_ids", "Request ids remembered.", func(s *kuji.Stats) uint64 { return s.RequestIDs })
	gauge("request_ids_young", "Request ids within the idempotency window's age, which cannot be forgotten yet. At request_ids_limit, new ids are refused.",
		func(s *kuji.Stats) uint64 { return s.YoungRequestIDs })
	gauge("request_ids_limit", "The most request ids within the idempotency window's age.", func(s *kuji.Stats) uint64 { return s.RequestIDLimit })
	gauge("request_ids_bytes", "Approximate memory that the remembered request ids take.", func(s *kuji.Stats) uint64 { return s.RequestIDBytes })
	add(prometheus.GaugeValue, "request_ids_oldest_timestamp_seconds", "When the oldest remembered request id was answered; 0: none is remembered.",
		func(_ *kuji.Realm, st *kuji.Stats) float64 { return float64(st.OldestRequestID) / 1000 })
	counter("request_ids_refused_total", "Requests refused because there was no room for another request id, since the realm was opened.",
		func(s *kuji.Stats) uint64 { return s.RefusedIDs })
	gauge("pending_bytes", "Bytes of events waiting for the log.", func(s *kuji.Stats) uint64 { return s.PendingBytes })
	counter("snapshots_total", "Snapshots taken since the realm was opened.", func(s *kuji.Stats) uint64 { return s.Snapshots })
	gauge("snapshot_position", "Position of the newest snapshot; 0 when there is none.", func(s *kuji.Stats) uint64 { return s.Snapshot })
	add(prometheus.GaugeValue, "snapshot_failed", "1 when the last attempt at a snapshot failed, or the newest was damaged when the realm was opened.",
		func(_ *kuji.Realm, st *kuji.Stats) float64 { return oneIf(st.SnapshotErr != nil) })
	gauge("feed_readers", "Readers of the feed.", func(s *kuji.Stats) uint64 { return uint64(s.Readers) })
	gauge("feed_lag", "By how many positions the slowest reader of the feed is behind.", func(s *kuji.Stats) uint64 { return s.ReaderLag })
	if history != nil {
		addHistoryMetrics(add, history)
	}
	gauge("recovered_position", "Position found when the realm was opened.", func(s *kuji.Stats) uint64 { return s.Recovered })
	gauge("recovered_events", "Events replayed when the realm was opened.", func(s *kuji.Stats) uint64 { return s.RecoveredEvents })
	return c
}

// addHistoryMetrics adds what a history says of each realm.
func addHistoryMetrics(add func(kind prometheus.ValueType, name, help string, value func(*kuji.Realm, *kuji.Stats) float64), history History) {
	of := func(value func(*kuji.Stats, HistoryState) float64) func(*kuji.Realm, *kuji.Stats) float64 {
		return func(r *kuji.Realm, st *kuji.Stats) float64 {
			known, _ := history.State(r.Name())
			return value(st, known)
		}
	}
	add(prometheus.GaugeValue, "history_position", "The history has every event up to this position.",
		of(func(_ *kuji.Stats, h HistoryState) float64 { return float64(h.Position) }))
	add(prometheus.GaugeValue, "history_lag", "By how many positions the history is behind.",
		of(func(st *kuji.Stats, h HistoryState) float64 {
			return float64(st.LastEvent - min(st.LastEvent, h.Position))
		}))
	add(prometheus.GaugeValue, "history_complete_from", "The history has every event from this position on; 1: from the beginning; 0: it is not open.",
		of(func(_ *kuji.Stats, h HistoryState) float64 { return float64(h.CompleteFrom) }))
	add(prometheus.GaugeValue, "history_down", "1 while the history is not kept: its database cannot be reached, or it is damaged and built again.",
		func(r *kuji.Realm, _ *kuji.Stats) float64 { return oneIf(history.Down(r.Name()) != nil) })
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (c *realmCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.list {
		ch <- m.desc
	}
}

func (c *realmCollector) Collect(ch chan<- prometheus.Metric) {
	for _, r := range c.realms.sorted() {
		st := r.Stats()
		for _, m := range c.list {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(r, &st), r.Name())
		}
	}
}

// MaxPoolMetrics is the most pools that have metrics of their own, of all realms together: those of
// the first realms by name, in the order of their catalogs.
const MaxPoolMetrics = 1000

// poolCollector reads the pools at each scrape. It waits for nothing, so what it says may still be
// lost in a crash.
type poolCollector struct {
	realms *realms
	most   int
}

var (
	poolLabels = []string{"realm", "pool"}

	poolDraws = prometheus.NewDesc("kuji_pool_draws_total",
		"Single draws from the pool that ended ok since the realm was opened. Draws that entries of other pools lead to do not count.", poolLabels, nil)
	poolDrawn = prometheus.NewDesc("kuji_pool_drawn",
		"Entries taken from the pool, over all catalogs; of a raffle with a refill, since its box was last filled.", poolLabels, nil)
	poolLeft = prometheus.NewDesc("kuji_pool_left",
		"What is left in stock of the pool's entries with a limited stock; missing if there are none.", poolLabels, nil)
	realmPools = prometheus.NewDesc("kuji_realm_pools", "Pools of the catalog in force.", []string{"realm"}, nil)
	poolsLeft  = prometheus.NewDesc("kuji_realm_pools_left_out", "Pools without metrics of their own, because there are too many.", []string{"realm"}, nil)
)

func (c *poolCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolDraws, poolDrawn, poolLeft, realmPools, poolsLeft} {
		ch <- d
	}
}

func (c *poolCollector) Collect(ch chan<- prometheus.Metric) {
	room := c.most
	for _, r := range c.realms.sorted() {
		sums, more, err := r.Pools().Sums(kuji.Stale(context.Background()), room)
		if err != nil {
			continue // it has stopped, and what is there may be lost: kuji_realm_healthy says so
		}
		room -= len(sums)
		set := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{r.Name()}, labels...)...)
		}
		set(realmPools, prometheus.GaugeValue, float64(len(sums)+more))
		set(poolsLeft, prometheus.GaugeValue, float64(more))
		for _, p := range sums {
			set(poolDraws, prometheus.CounterValue, float64(p.Draws), p.ID)
			set(poolDrawn, prometheus.GaugeValue, float64(p.Drawn), p.ID)
			if p.Limited {
				set(poolLeft, prometheus.GaugeValue, float64(p.Left), p.ID)
			}
		}
	}
}

// leftOutCollector says what the logs do not.
type leftOutCollector struct{ journal *journal }

var logLeftOut = prometheus.NewDesc("kuji_log_lines_left_out_total",
	"Lines that the log (slow, refused) and the access log left out, because there were too many or they could not be written.", []string{"log"}, nil)

func (c leftOutCollector) Describe(ch chan<- *prometheus.Desc) { ch <- logLeftOut }

func (c leftOutCollector) Collect(ch chan<- prometheus.Metric) {
	access := uint64(0)
	if log := c.journal.access; log != nil {
		access = log.LeftOut()
	}
	for name, n := range map[string]uint64{"slow": c.journal.slow.total(), "refused": c.journal.refusals.total(), "access": access} {
		ch <- prometheus.MustNewConstMetric(logLeftOut, prometheus.CounterValue, float64(n), name)
	}
}
