// Package loadtest measures a server: draws a second, latencies, bytes of log, processor and memory. It
// is a client like any other. Who starts the server, and how a report looks, is decided elsewhere.
package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Options say what to measure.
type Options struct {
	Duration    time.Duration // of each shape
	Players     int
	Entries     int      // of the pool
	Shapes      []string // see [Shapes]
	Connections int      // of the shapes that have no number of their own
	Key         string   // an admin's
	Profile     string   // directory for CPU profiles of server and client; empty: none
	Plot        string   // directory for plots
	Dir         string   // where the data of servers is: the report names its file system

	// Start starts a server, with env added to the environment, or finds the one to measure.
	Start func(ctx context.Context, env []string) (*Server, error)
	// Leader finds the server that leads a realm, once the realm is there. Nil: the one that Start found.
	Leader func(ctx context.Context, realm string) (*Server, error)
	// Say tells a person what happens.
	Say func(format string, args ...any)
	// Bar shows how far something is that takes so long, until stop is called.
	Bar func(ctx context.Context, length time.Duration, describe func() string) (stop func())
}

// Server is a server under load.
type Server struct {
	URL   string
	PID   int    // 0: not a child of this process
	Pprof string // URL of its profiles, if any
	// Used returns what it has used so far, with all that it needs. Nil: nobody knows.
	Used func() (Usage, error)
	Stop func() error // ends it, if it is a child, and removes its data
}

// Usage is what processes have used.
type Usage struct {
	Written uint64 // bytes that were written to disks
	CPU     time.Duration
}

// Limits of the options.
const (
	MaxPlayers     = 10_000_000
	MaxEntries     = 500_000 // as much YAML as a catalog may have
	MaxConnections = 256
)

// Check checks what the flags of these names say.
func (o *Options) Check() error {
	switch {
	case o.Duration < 10*time.Millisecond || o.Duration > time.Hour:
		return fmt.Errorf("--duration %v: expected from 10ms to 1h", o.Duration)
	case o.Players < 1 || o.Players > MaxPlayers:
		return fmt.Errorf("--players %d: expected from 1 to %d", o.Players, MaxPlayers)
	case o.Entries < 1 || o.Entries > MaxEntries:
		return fmt.Errorf("--entries %d: expected from 1 to %d", o.Entries, MaxEntries)
	case o.Connections < 1 || o.Connections > MaxConnections:
		return fmt.Errorf("--connections %d: expected from 1 to %d", o.Connections, MaxConnections)
	}
	for _, name := range o.Shapes {
		if !slices.Contains(Shapes(), name) {
			return fmt.Errorf("--shape %q: expected %s", name, strings.Join(Shapes(), ", "))
		}
	}
	return nil
}

// Setup is what was measured, and where.
type Setup struct {
	Machine Machine `json:"machine"`
	Build   any     `json:"build"` // of this program, and of the server that it started
	Sync    string  `json:"sync"`  // the server's: always, interval or none; unspecified: it does not say
	Players int     `json:"players"`
	Entries int     `json:"entries"`
}

func (o *Options) setup(build any) Setup {
	return Setup{Machine: thisMachine(o.Dir), Build: build, Players: o.Players, Entries: o.Entries}
}

// Report is what was found.
type Report struct {
	Setup
	Server  string    `json:"server_version"`
	Started time.Time `json:"started"`
	Results []Result  `json:"results"`
}

// Run measures each shape against a server of its own, or the given one. The report shows build.
func Run(ctx context.Context, o Options, build any) (*Report, error) {
	report := &Report{Setup: o.setup(build), Started: time.Now().UTC().Truncate(time.Second)}
	for i, name := range o.Shapes {
		title := fmt.Sprintf("%d of %d: %s", i+1, len(o.Shapes), name)
		res, version, err := o.measure(ctx, title, o.load(name), nil)
		if err != nil {
			return nil, fmt.Errorf("shape %s: %w", name, err)
		}
		report.Server, report.Sync = version, res.Sync
		report.Results = append(report.Results, res)
	}
	return report, nil
}

// measure runs one load against a server. env is the server's environment in addition to this process's.
func (o *Options) measure(ctx context.Context, title string, l load, env []string) (res Result, version string, err error) {
	server, err := o.Start(ctx, env)
	if err != nil {
		return res, "", err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	t := &target{Server: server, key: o.Key, run: runName(), players: o.Players, ahead: 4}
	status, err := t.prepare(ctx, l, o)
	if err != nil {
		return res, "", err
	}
	before, err := t.gauge(ctx)
	if err != nil {
		return res, "", err
	}
	if t.PID != 0 {
		o.Say("server %d serves %s: measuring %s for %v", t.PID, t.URL, title, o.Duration)
	}
	begin := time.Now()
	t.deadline = begin.Add(o.Duration)
	stopBar := o.Bar(ctx, o.Duration, func() string { return fmt.Sprintf("%-20s %11d draws", title, t.draws.Load()) })
	var profiling errgroup.Group
	if o.Profile != "" {
		profiling.Go(func() error { return o.profile(ctx, t, l) })
	}
	latencies, err := t.drive(ctx, l)
	took := time.Since(begin)
	stopBar()
	if err := errors.Join(err, profiling.Wait()); err != nil {
		return res, "", err
	}
	after, err := t.gauge(ctx)
	if err != nil {
		return res, "", err
	}
	res = newResult(l, took, uint64(t.draws.Load()), latencies, before, after)
	res.Sync = contract.Word(status.GetSync())
	return res, status.GetVersion(), nil
}

// profile writes CPU profiles while the server is measured: NAME.pprof, and NAME-client.pprof of this process.
func (o *Options) profile(ctx context.Context, t *target, l load) (err error) {
	if err := os.MkdirAll(o.Profile, 0o755); err != nil {
		return err
	}
	own, err := os.Create(filepath.Join(o.Profile, l.name+"-client.pprof"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	if err := pprof.StartCPUProfile(own); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	whole := max(1, int(o.Duration.Seconds()))
	data, _, err := fetch(ctx, &http.Client{Transport: t.newConnection(false)}, fmt.Sprintf("%sprofile?seconds=%d", t.Pprof, whole), "")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.Profile, l.name+".pprof"), data, 0o644)
}

// benchCatalog has a pool "bench" of n unlimited entries, weights 1 to 100, which give one of 100 items.
func benchCatalog(n int) []byte {
	var y strings.Builder
	y.WriteString("kuji: 1\nname: Benchmark\nitems:\n")
	for i := range min(n, 100) {
		fmt.Fprintf(&y, "  i%d: {}\n", i)
	}
	y.WriteString("idempotency: {count: 67108864, age: 1m}\n") // room for a million new ids a second without end
	y.WriteString("pools:\n  bench:\n    entries:\n")
	for i := range n {
		fmt.Fprintf(&y, "    - {id: e%d, weight: %d, reward: {items: {i%d: 1}}}\n", i, 1+i%100, i%100)
	}
	return []byte(y.String())
}

// prepare makes the realms with their catalog and their players known, and returns the server's status.
func (t *target) prepare(ctx context.Context, l load, o *Options) (*kujiv1.GetStatusResponse, error) {
	c, err := t.client(t.newConnection(false))
	if err != nil {
		return nil, err
	}
	yaml := benchCatalog(o.Entries)
	for n := range l.realms {
		realm := t.realm(n)
		if _, err := c.Admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: realm}); err != nil {
			return nil, fmt.Errorf("create realm %s: %w", realm, err)
		}
		if _, err := c.Admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: realm, Yaml: yaml}); err != nil {
			return nil, fmt.Errorf("apply the catalog: %w", err)
		}
		if n == 0 && o.Leader != nil {
			if t.Server, err = o.Leader(ctx, realm); err != nil {
				return nil, err
			}
		}
		if err := t.meet(ctx, realm); err != nil {
			return nil, fmt.Errorf("make %d players known: %w", t.players, err)
		}
	}
	return c.Admin.GetStatus(ctx, &kujiv1.GetStatusRequest{Realm: t.realm(0)})
}

// newConnection makes a transport with one connection of its own; http2 is for gRPC.
func (t *target) newConnection(http2 bool) *http.Transport {
	p := new(http.Protocols)
	switch {
	case !http2:
		p.SetHTTP1(true)
	case strings.HasPrefix(t.URL, "https:"):
		p.SetHTTP2(true)
	default:
		p.SetUnencryptedHTTP2(true)
	}
	return &http.Transport{Protocols: p, MaxIdleConnsPerHost: 1, ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10}
}

// client returns a client over a connection. A catalog of a million entries takes its time.
func (t *target) client(over *http.Transport, options ...connect.ClientOption) (*client.Client, error) {
	return client.New([]string{t.URL}, client.Options{Key: t.key, Transport: over, Timeout: 2 * time.Minute, Connect: options})
}

// Percentile returns the value at p thousandths of a sorted list (nearest rank), rounded to thousandths.
func Percentile(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 999) / 1000
	return math.Round(sorted[max(rank, 1)-1]*1000) / 1000
}

// Seconds returns a duration in seconds, rounded to thousandths.
func Seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
