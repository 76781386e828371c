package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/examples"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func demoCommand(a *app) *cobra.Command {
	var (
		load    time.Duration
		clients int
		keep    bool
		cluster bool
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See the promise kept: draws over the network, a kill -9 half-way, every answer checked",
		Long: `Demo starts a server on loopback, with a data directory of its own and the three
example catalogs, and sends draws over the network. Half-way it kills the server
process with SIGKILL and starts it again. Clients that got no answer repeat their
requests under the same request ids.

With --cluster it starts a cluster of three nodes in place of the server, and kills
the node that leads. Another one takes over, and the killed one comes back. Requests
at the other nodes wait meanwhile.

Then it checks from the clients' own books that

  - every acknowledged draw is there exactly once;
  - balances and stocks add up, and none is below zero;
  - the odds were kept, and so was what pity promises;
  - the log is sound.

It ends with exit code 6 if a check fails.`,
		Example: `  kuji demo
  kuji demo --cluster
  kuji demo --load 20s --clients 128 --json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at := site(&alone{})
			if cluster {
				at = &threeNodes{}
				if !cmd.Flags().Changed("load") {
					load = clusterLoad
				}
			}
			if load < time.Second || load > time.Hour {
				return usagef("--load %v: expected from 1s to 1h", load)
			}
			if clients < 4 || clients > 1024 {
				return usagef("--clients %d: expected from 4 to 1024", clients)
			}
			d := &demo{app: a, load: load, attractions: attractions(clients), keep: keep, site: at}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&cluster, "cluster", false, "draw from a cluster of three nodes on this machine, and kill one that leads")
	cmd.Flags().DurationVar(&load, "load", 6*time.Second, fmt.Sprintf("how long to send draws; with --cluster %v", clusterLoad))
	cmd.Flags().IntVar(&clients, "clients", 64, "how many clients draw at a time")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the data directory and print where it is")
	return cmd
}

// clusterLoad is how long the demo of a cluster sends draws: until well after another node leads.
const clusterLoad = 20 * time.Second

// demo is one run.
type demo struct {
	*app
	load        time.Duration
	attractions []*attraction
	keep        bool

	dir     string // of the whole run
	data    string // of the server, or of all nodes
	site    site
	traffic *traffic
	books   map[string]*ledger // by realm: what clients were told
	report  demoReport
	workers []*worker
	spared  map[string]bool // realms that went on, since another node led them
}

func (d *demo) run(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "kuji-demo-"); err != nil {
		return err
	}
	d.data = filepath.Join(d.dir, "data")
	defer func() {
		d.site.kill()
		if d.keep {
			d.note("kuji: kept %s", d.dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(d.dir))
	}()
	if err := d.open(ctx); err != nil {
		return err
	}
	if err := d.drive(ctx); err != nil {
		return err
	}
	d.say("checking what %d clients were told", len(d.workers))
	if err := d.check(ctx); err != nil {
		return err
	}
	return d.verdict()
}

// verdict writes the report, and fails if a check failed.
func (d *demo) verdict() error {
	d.report.OK = !slices.ContainsFunc(d.report.Checks, func(c checkJSON) bool { return !c.OK })
	if err := d.print(d.report, func(w io.Writer) { printReport(w, &d.report) }); err != nil {
		return err
	}
	if !d.report.OK {
		return damageError{errors.New("a check failed: a promise is broken")}
	}
	return nil
}

// open starts the server and makes the realms.
func (d *demo) open(ctx context.Context) (err error) {
	d.traffic = &traffic{transport: &http.Transport{MaxIdleConnsPerHost: 2048}, length: d.load}
	if d.traffic.nodes, err = d.site.start(ctx, d); err != nil {
		return err
	}
	for _, at := range d.attractions {
		if at.yaml, err = examples.Files.ReadFile(at.file); err != nil {
			return err
		}
		if at.catalog, err = catalog.Parse(at.yaml); err != nil {
			return fmt.Errorf("examples/%s: %w", at.file, err)
		}
		c, err := d.client(at.realm)
		if err != nil {
			return err
		}
		if _, err := c.Admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: at.realm}); err != nil {
			return fmt.Errorf("create realm %s: %w", at.realm, err)
		}
		if _, err := c.Admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: at.realm, Yaml: at.yaml}); err != nil {
			return fmt.Errorf("apply examples/%s: %w", at.file, err)
		}
	}
	return nil
}

// patience is how long one request is repeated before the demo gives up.
const patience = 30 * time.Second

func (d *demo) client(realm string) (*api, error) {
	c, err := d.traffic.client(0, nil)
	return &api{c, realm}, err
}

// drive sends the load and crashes the server in the middle of it.
func (d *demo) drive(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begin := time.Now()
	t := d.traffic
	t.deadline = begin.Add(d.load)
	var running sync.WaitGroup
	for _, at := range d.attractions {
		for range at.clients {
			w, err := newWorker(t, at, len(d.workers))
			if err != nil {
				return err
			}
			d.workers = append(d.workers, w)
			running.Go(func() {
				if err := at.behave(ctx, w); err != nil {
					cancel(fmt.Errorf("client %d of realm %s: %w", w.number, at.realm, err))
				}
			})
		}
	}
	d.say("%d clients draw for %v", len(d.workers), d.load)
	stopBar := d.showProgress(ctx, d.load, func() string { return fmt.Sprintf("%9d draws acknowledged", t.draws.Load()) })
	said, crash := d.crash(ctx, begin)
	running.Wait()
	if stopBar(); d.bar() && said != "" {
		d.say("%s", said)
	}
	if err := context.Cause(ctx); err != nil {
		return errors.Join(err, crash)
	}
	if crash != nil {
		return crash
	}
	d.sum(time.Since(begin))
	return nil
}

// crash waits for the middle of the load, and crashes the site. It says so at once, unless a progress
// bar has the line.
func (d *demo) crash(ctx context.Context, begin time.Time) (said string, err error) {
	middle := time.NewTimer(d.load / 2)
	defer middle.Stop()
	select {
	case <-middle.C:
	case <-ctx.Done():
		return "", nil // whoever ended it says why
	}
	d.traffic.crashing.Store(true)
	d.report.KilledAfter = seconds(time.Since(begin))
	said, err = d.site.crash(ctx, d)
	if err == nil && !d.bar() {
		d.say("%s", said)
	}
	return said, err
}

// restartFailed is a broken promise, unless somebody interrupted the demo.
func restartFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return damageError{fmt.Errorf("the server does not start after the crash: %w", err)}
}

// sum adds up the clients' books.
func (d *demo) sum(took time.Duration) {
	d.books = map[string]*ledger{}
	var latencies []float64
	for _, w := range d.workers {
		if d.books[w.realm] == nil {
			d.books[w.realm] = newLedger(w.realm, w.at.catalog.Pools)
		}
		d.books[w.realm].merge(w.ledger)
		d.report.Interrupted += w.interrupted
		d.report.HadHappened += w.happened
		d.report.LongestWait = max(d.report.LongestWait, seconds(w.longest))
	}
	for _, book := range d.books {
		d.report.Draws += book.outcomes
		d.report.Refusals += book.refusals
		d.report.Requests += len(book.records)
		latencies = append(latencies, book.latencies...)
	}
	d.report.Clients = len(d.workers)
	d.report.Seconds = seconds(took)
	d.report.DrawsPerSecond = math.Round(float64(d.report.Draws) / (took.Seconds() - d.report.Downtime))
	slices.Sort(latencies)
	d.report.LatencyP50, d.report.LatencyP99 = percentile(latencies, 500), percentile(latencies, 990)
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
