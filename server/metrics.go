package server

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kuji-dev/kuji"
)

// labelUnreadable is the code for requests that could not be decoded.
const labelUnreadable = "unreadable"

// metrics are the server's own. A realm's are read from its Stats at each scrape. No label takes a
// value that a client sends, only those of the contract or of an admin.
type metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	results  map[kuji.Status]prometheus.Counter
	unknown  prometheus.Counter // results with a status that results lacks
	unrouted *rpcMetrics
	streams  atomic.Int64 // of draws that are open
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
	m.unrouted = &rpcMetrics{rpc: "none", requests: m.requests}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.requests, m.latency, results, serverSamples(s), realmSamples(s.realms, s.o.History), poolSamples(s.realms, MaxPoolMetrics),
		collectors.NewGoCollector(), collectors.NewBuildInfoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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

// sampler takes a sample. Labels are names and values in turn. A counter's name ends in _total.
type sampler func(name, help string, value float64, labels ...string)

// A collector hands over all that it has to say, at each scrape.
type collector func(sample sampler)

// Describe implements [prometheus.Collector]: only a scrape knows which samples there are.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	known := map[string]*prometheus.Desc{}
	c(func(name, help string, value float64, labels ...string) {
		var names, values []string
		for pair := range slices.Chunk(labels, 2) {
			names, values = append(names, pair[0]), append(values, pair[1])
		}
		if known[name] == nil {
			known[name] = prometheus.NewDesc(name, help, names, nil)
		}
		kind := prometheus.GaugeValue
		if strings.HasSuffix(name, "_total") {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(known[name], kind, value, values...)
	})
}

// serverSamples are those of the server as a whole.
func serverSamples(s *Server) collector {
	return func(sample sampler) {
		sample("kuji_build_info", "1, labelled with the version.", 1, "version", s.o.Version)
		if p, known := s.realms.engine.Promise(); known {
			sample("kuji_store_survives", "The worst that acknowledged commands survive, as the database is set up: "+
				"0 nothing for sure, 1 the end of this server, 2 a crash of the database's machine, 3 the loss of that machine.", float64(p.Survives))
		}
		sample("kuji_draw_streams", "Streams of draws that are open.", float64(s.metrics.streams.Load()))
		sample("kuji_redis_connections", "Connections of the Redis protocol that are open.", float64(s.redis.Len()))
		access := uint64(0)
		if log := s.journal.access; log != nil {
			access = log.LeftOut()
		}
		for name, n := range map[string]uint64{"slow": s.journal.slow.total(), "refused": s.journal.refusals.total(), "access": access} {
			sample("kuji_log_lines_left_out_total", "Lines that the log (slow, refused) and the access log left out, "+
				"because there were too many or they could not be written.", float64(n), "log", name)
		}
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// realmSamples are those of each realm, with what its history says of it.
func realmSamples(realms *realms, history History) collector {
	return func(sample sampler) {
		for _, r := range realms.sorted() {
			add := func(name, help string, value float64) { sample("kuji_realm_"+name, help, value, "realm", r.Name()) }
			st := r.Stats()
			addStats(add, &st)
			add("healthy", "1 while the realm leads or follows, 0 when it has stopped.", oneIf(r.Err() == nil))
			add("backup_timestamp_seconds", "When the last backup began that this server sent to its end; 0: none since it started.",
				float64(realms.lastBackup(r.Name()))/1000)
			add("leads", "1 where the realm accepts commands, 0 where it follows.", oneIf(r.Replica().Leads()))
			if history == nil {
				continue
			}
			h := history.State(r.Name())
			add("history_position", "The history has every event up to this position.", float64(h.GetPosition()))
			add("history_lag", "By how many positions the history is behind.", float64(lag(st.LastEvent, h)))
			add("history_complete_from", "The history has every event from this position on; 1: from the beginning; 0: it is not open.", float64(h.GetCompleteFrom()))
			add("history_down", "1 while the history is not kept: its database cannot be reached, or it is damaged and built again.",
				oneIf(history.Down(r.Name()) != nil))
		}
	}
}

func addStats(add func(name, help string, value float64), s *kuji.Stats) {
	add("batches_total", "Batches appended to the log since the realm was opened.", float64(s.Batches))
	add("events_total", "Events appended since the realm was opened.", float64(s.Events))
	add("draws_total", "Single draws that ended ok since the realm was opened.", float64(s.Draws))
	add("failures_total", "Events with a status other than ok since the realm was opened.", float64(s.Failures))
	add("replays_total", "First answers returned again since the realm was opened.", float64(s.Replays))
	add("log_bytes_total", "Bytes appended to the log since the realm was opened.", float64(s.LogBytes))
	add("log_kept_bytes", "Size of the log as it is kept now; 0: not known.", float64(s.LogKept))
	add("position", "Position of the newest acknowledged batch.", float64(s.Position))
	add("epoch", "Epoch of this writer.", float64(s.Epoch))
	add("behind", "By how many positions a realm that follows is behind what this node last heard of the leader.", float64(s.Behind))
	add("chain_differs", "1 when the chain of a realm that follows differs from the leader's: one of them has what the log does not have.",
		float64(s.Differs))
	add("catalog_version", "Version of the catalog in force.", float64(s.CatalogVersion))
	add("clock_drift_seconds", "How far the machine's clock is ahead of the realm's time stamps; negative: behind. "+
		"Beyond a minute one of the two is wrong.", s.Clock.Drift().Seconds())
	add("clock_back_seconds", "How far the realm's clock was set back in all.", float64(s.Clock.Back)/1000)
	add("players", "Players seen so far.", float64(s.Players))
	add("request_ids", "Request ids remembered.", float64(s.RequestIDs))
	add("request_ids_young", "Request ids within the idempotency window's age, which cannot be forgotten yet. "+
		"At request_ids_limit, new ids are refused.", float64(s.YoungRequestIDs))
	add("request_ids_limit", "The most request ids within the idempotency window's age.", float64(s.RequestIDLimit))
	add("request_ids_bytes", "Approximate memory that the remembered request ids take.", float64(s.RequestIDBytes))
	add("request_ids_oldest_timestamp_seconds", "When the oldest remembered request id was answered; 0: none is remembered.",
		float64(s.OldestRequestID)/1000)
	add("request_ids_refused_total", "Requests refused because there was no room for another request id, since the realm was opened.",
		float64(s.RefusedIDs))
	add("pending_bytes", "Bytes of events waiting for the log.", float64(s.PendingBytes))
	add("snapshots_total", "Snapshots taken since the realm was opened.", float64(s.Snapshots))
	add("snapshot_position", "Position of the newest snapshot; 0 when there is none.", float64(s.Snapshot))
	add("snapshot_bytes", "Size of the newest snapshot, and of those that it builds on.", float64(s.SnapshotBytes))
	add("snapshot_failed", "1 when the last attempt at a snapshot failed, or the newest was damaged when the realm was opened.",
		oneIf(s.SnapshotErr != nil))
	add("feed_readers", "Readers of the feed.", float64(s.Readers))
	add("feed_lag", "By how many positions the slowest reader of the feed is behind.", float64(s.ReaderLag))
	add("recovered_position", "Position found when the realm was opened.", float64(s.Recovered))
	add("recovered_events", "Events replayed when the realm was opened.", float64(s.RecoveredEvents))
}

// MaxPoolMetrics is the most pools that have metrics of their own, of all realms together: the
// first realms by name, and their pools in the order of their catalogs.
const MaxPoolMetrics = 1000

// poolSamples are those of pools, at most so many. What they say may still be lost in a crash.
func poolSamples(realms *realms, most int) collector {
	return func(sample sampler) {
		room := most
		for _, r := range realms.sorted() {
			sums, more, err := r.Pools().Sums(kuji.Stale(context.Background()), room)
			if err != nil {
				continue // it has stopped, and what is there may be lost: kuji_realm_healthy says so
			}
			room -= len(sums)
			sample("kuji_realm_pools", "Pools of the catalog in force.", float64(len(sums)+more), "realm", r.Name())
			sample("kuji_realm_pools_left_out", "Pools without metrics of their own, because there are too many.", float64(more), "realm", r.Name())
			for _, p := range sums {
				add := func(name, help string, n uint64) {
					sample("kuji_pool_"+name, help, float64(n), "realm", r.Name(), "pool", p.ID)
				}
				add("draws_total", "Single draws from the pool that ended ok since the realm was opened. "+
					"Draws that entries of other pools lead to do not count.", p.Draws)
				add("drawn", "Entries taken from the pool, over all catalogs; of a raffle with a refill, since its box was last filled.", p.Drawn)
				if p.Limited {
					add("left", "What is left in stock of the pool's entries with a limited stock; missing if there are none.", p.Left)
				}
			}
		}
	}
}
