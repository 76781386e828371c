// Package demo shows that Kuji keeps its promise: clients draw, the server is killed half-way, and
// every answer is checked against what the clients noted. It knows only the API. Its caller decides
// what is killed, and prints the report.
package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/examples"
	"github.com/kuji-dev/kuji/internal/loadtest"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Options say how to run the demo.
type Options struct {
	Load    time.Duration // for so long clients draw
	Clients int
	Site    Site
	// Say tells a person what happens.
	Say func(format string, args ...any)
	// Bar shows how far something is that takes so long, until stop is called.
	Bar func(ctx context.Context, length time.Duration, describe func() string) (stop func())
}

// Site is what a demo draws from, and what it crashes: one server, or a cluster.
type Site interface {
	// Start starts it, and returns the URLs at which clients find it.
	Start(ctx context.Context) ([]string, error)
	// Crash kills the process that answers for the first realm with SIGKILL. It calls killed, which returns
	// how many draws were acknowledged, as soon as the process is dead, and returns when requests are
	// answered again.
	Crash(ctx context.Context, realms []string, killed func() int64) (Crash, error)
	// Stop stops it in order.
	Stop() error
	// Verify checks the log of a site that has stopped, and calls seen with every event.
	Verify(ctx context.Context, seen func(realm string, rec kuji.Record)) (Left, error)
}

// Crash is what became of one.
type Crash struct {
	Said     string        // in words
	Downtime time.Duration // from SIGKILL to ready
	Spared   []string      // realms that went on, since another node led them
}

// Left is what a site has in its files in the end.
type Left struct {
	Bytes    int64  // of all files
	LogBytes uint64 // of the logs
	Batches  uint64
	Decided  uint64 // events that were decided again from revealed seeds
}

// BrokenError is a promise that was not kept.
type BrokenError struct{ Err error }

func (e *BrokenError) Error() string { return e.Err.Error() }
func (e *BrokenError) Unwrap() error { return e.Err }

func brokenf(format string, args ...any) error { return &BrokenError{fmt.Errorf(format, args...)} }

// demo is one run.
type demo struct {
	Options
	attractions []*attraction
	traffic     *traffic
	report      *Report
	spared      []string
}

// Run runs the demo. The report says which checks failed.
func Run(ctx context.Context, o Options) (*Report, error) {
	d := &demo{Options: o, attractions: attractions(o.Clients), report: &Report{}}
	for _, step := range []func(context.Context) error{
		d.open, d.drive, d.checkRecovery, d.checkAcknowledged, d.checkBalances, d.checkStock, d.checkLog,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	d.report.OK = !slices.ContainsFunc(d.report.Checks, func(c Check) bool { return !c.OK })
	return d.report, nil
}

// open starts the site and makes the realms.
func (d *demo) open(ctx context.Context) error {
	urls, err := d.Site.Start(ctx)
	if err != nil {
		return err
	}
	d.traffic = &traffic{nodes: urls, transport: &http.Transport{MaxIdleConnsPerHost: 2048}, length: d.Load}
	c, err := d.traffic.client(0, nil)
	if err != nil {
		return err
	}
	for _, at := range d.attractions {
		at.client = c
		yaml, err := examples.Files.ReadFile(at.file)
		if err != nil {
			return err
		}
		if at.catalog, err = catalog.Parse(yaml); err != nil {
			return fmt.Errorf("examples/%s: %w", at.file, err)
		}
		at.book = newBook(at.realm, at.catalog, at.pool)
		if _, err := c.Admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: at.realm}); err != nil {
			return fmt.Errorf("create realm %s: %w", at.realm, err)
		}
		if _, err := c.Admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: at.realm, Yaml: yaml}); err != nil {
			return fmt.Errorf("apply examples/%s: %w", at.file, err)
		}
	}
	return nil
}

// patience is how long one request is repeated before the demo gives up.
const patience = 30 * time.Second

// drive sends the load and crashes the site in the middle of it.
func (d *demo) drive(ctx context.Context) error {
	begin := time.Now()
	d.traffic.deadline = begin.Add(d.Load)
	running, ctx := errgroup.WithContext(ctx)
	for _, at := range d.attractions {
		for range at.clients {
			w, err := newWorker(d.traffic, at, d.report.Clients)
			if err != nil {
				return err
			}
			d.report.Clients++
			running.Go(func() error {
				if err := at.behave(ctx, w); err != nil {
					return fmt.Errorf("client %d of realm %s: %w", w.number, at.realm, err)
				}
				return nil
			})
		}
	}
	d.Say("%d clients draw for %v", d.report.Clients, d.Load)
	stopBar := d.Bar(ctx, d.Load, func() string { return fmt.Sprintf("%9d draws acknowledged", d.traffic.draws.Load()) })
	crash := d.crash(ctx, begin)
	err := errors.Join(running.Wait(), crash)
	stopBar()
	if err != nil {
		return err
	}
	d.sum(time.Since(begin))
	d.Say("checking what %d clients were told", d.report.Clients)
	return nil
}

// crash waits for the middle of the load, and crashes the site.
func (d *demo) crash(ctx context.Context, begin time.Time) error {
	middle := time.NewTimer(d.Load / 2)
	defer middle.Stop()
	select {
	case <-middle.C:
	case <-ctx.Done():
		return nil // a client says why
	}
	d.traffic.crashing.Store(true)
	d.report.KilledAfter = loadtest.Seconds(time.Since(begin))
	var realms []string
	for _, at := range d.attractions {
		realms = append(realms, at.realm)
	}
	crash, err := d.Site.Crash(ctx, realms, func() int64 {
		d.report.AcknowledgedAtKill = d.traffic.draws.Load()
		return d.report.AcknowledgedAtKill
	})
	switch {
	case err != nil && ctx.Err() != nil: // Ctrl-C
		return err
	case err != nil:
		return brokenf("the server does not start after the crash: %w", err)
	}
	d.report.Downtime, d.spared = loadtest.Seconds(crash.Downtime), crash.Spared
	d.Say("%s", crash.Said)
	return nil
}

// sum adds up the books.
func (d *demo) sum(took time.Duration) {
	var latencies []float64
	r := d.report
	for _, at := range d.attractions {
		r.Interrupted += at.book.interrupted
		r.HadHappened += at.book.happened
		r.LongestWait = max(r.LongestWait, loadtest.Seconds(at.book.longest))
		r.Draws += at.book.outcomes
		r.Refusals += at.book.refusals
		r.Requests += len(at.book.records)
		latencies = append(latencies, at.book.latencies...)
	}
	r.Seconds = loadtest.Seconds(took)
	r.DrawsPerSecond = math.Round(float64(r.Draws) / (took.Seconds() - r.Downtime))
	slices.Sort(latencies)
	r.LatencyP50, r.LatencyP99 = loadtest.Percentile(latencies, 500), loadtest.Percentile(latencies, 990)
}
