package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kuji-dev/kuji"
)

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
	for name, n := range map[string]uint64{"slow": c.journal.slow.all(), "refused": c.journal.refusals.all(), "access": access} {
		ch <- prometheus.MustNewConstMetric(logLeftOut, prometheus.CounterValue, float64(n), name)
	}
}
