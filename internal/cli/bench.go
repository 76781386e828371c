package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuji-dev/kuji/client"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// benchFlags is what the flags of bench say.
type benchFlags struct {
	duration         time.Duration
	players, entries int
	sync             string
	shapes           []string
	connections      int
	url, keyFile     string
	dir              string
	plot             string
	profile          string
}

// Limits of the flags.
const (
	maxBenchPlayers = 10_000_000
	maxBenchEntries = 500_000 // as much YAML as a catalog may have
)

func benchCommand(a *app) *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a server: draws a second, latencies, bytes of log, processor and memory",
		Long: `Bench starts a server in its own process group, with a fresh data directory. It
sends draws over loopback, in these shapes:

  json      one JSON request after the other on one connection
  http      the same on 64 connections
  grpc      unary gRPC on 64 connections
  stream-1  one draw after the other on 64 open streams
  stream    batches of 1000 draws on 4 streams, 4 batches in flight on each
  anonymous the same without request ids

Each draw is for a random player. It has a new request id, except in the shape
anonymous. It counts once it is acknowledged: fsynced, unless --sync says
otherwise. The server remembers request ids for a minute. Each shape gets a new
server, and all players exist when the clock starts. Client and server share the
machine.

Latencies are those of requests; in the last two shapes a request is a batch.
Server CPU, allocations and garbage collections are those of the server process
while it is measured. Peak memory counts from its start.

With --url, bench starts no server. It makes a realm "bench-…" on that server and
leaves it there; the key must be an admin's. Of a cluster's node that does not lead,
allocations, server CPU and memory are shown as 0. With --plot, it writes plots (SVG) of
how the rate of shape stream changes with entries, players, realms and cores.`,
		Example: `  kuji bench
  kuji bench --shape stream --duration 10s --players 1000000 --json
  kuji bench --url http://127.0.0.1:7700 --shape grpc
  kuji bench --plot ./plots --players 1000000 --entries 500000`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			if f.url != "" && cmd.Flags().Changed("sync") {
				return usagef("--url and --sync: give only one; the server at --url has a policy of its own")
			}
			b := &bench{app: a, f: f}
			return b.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.duration, "duration", 3*time.Second, "how long to measure each shape")
	flags.IntVar(&f.players, "players", 100_000, "how many players draw")
	flags.IntVar(&f.entries, "entries", 100, "how many entries the pool has")
	flags.StringVar(&f.sync, "sync", "always", "when to acknowledge: always (once fsynced), interval or none")
	flags.StringSliceVar(&f.shapes, "shape", shapeNames(), "which `shapes` to measure")
	flags.IntVar(&f.connections, "connections", 64, "connections of http and grpc, streams of stream-1")
	flags.StringVar(&f.url, "url", "", "measure the server at this `URL` instead of a new one")
	flags.StringVar(&f.keyFile, "key-file", "", "`file` with an admin's API key for --url (default $KUJI_KEY)")
	flags.StringVar(&f.dir, "dir", "", "make the data directory in this `directory`, to choose the disk to measure (default: the system's temporary directory)")
	flags.StringVar(&f.profile, "profile", "", "write CPU profiles of server and client, for each shape, into this `directory`")
	flags.StringVar(&f.plot, "plot", "", "write plots into this `directory` instead of measuring the shapes")
	return cmd
}

func (f *benchFlags) check() error {
	switch {
	case f.duration < 10*time.Millisecond || f.duration > time.Hour:
		return fmt.Errorf("--duration %v: expected from 10ms to 1h", f.duration)
	case f.players < 1 || f.players > maxBenchPlayers:
		return fmt.Errorf("--players %d: expected from 1 to %d", f.players, maxBenchPlayers)
	case f.entries < 1 || f.entries > maxBenchEntries:
		return fmt.Errorf("--entries %d: expected from 1 to %d", f.entries, maxBenchEntries)
	case f.connections < 1 || f.connections > 256:
		return fmt.Errorf("--connections %d: expected from 1 to 256", f.connections)
	case f.url == "" && f.keyFile != "":
		return errors.New("--key-file: only with --url; a server that bench starts has no keys")
	case f.url != "" && f.profile != "":
		return errors.New("--url and --profile: give only one; bench can profile only a server that it starts")
	case f.url != "" && f.plot != "":
		return errors.New("--url and --plot: give only one; plots need servers of their own")
	}
	for _, name := range f.shapes {
		if shapeOf(name) == nil {
			return fmt.Errorf("--shape %q: expected %s", name, strings.Join(shapeNames(), ", "))
		}
	}
	_, err := (&serveFlags{sync: f.sync}).engineOptions()
	return err
}

// bench is one run.
type bench struct {
	*app
	f   *benchFlags
	dir string // of the whole run
}

// benchReport is what the bench found.
type benchReport struct {
	Machine machineJSON `json:"machine"`
	Build   versionJSON `json:"build"` // of this program, and of the server it started
	Server  string      `json:"server_version"`
	Sync    string      `json:"sync"` // the server's: always, interval or none; unknown: it does not say
	Players int         `json:"players"`
	Entries int         `json:"entries"`
	Started time.Time   `json:"started"`
	Results []benchJSON `json:"results"`
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp(b.f.dir, "kuji-bench-"); errors.Is(err, fs.ErrNotExist) {
		return usagef("--dir %s: no such directory", b.f.dir)
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.f.plot != "" {
		return b.plot(ctx)
	}
	report := benchReport{
		Machine: thisMachine(b.dir), Build: thisBuild(),
		Players: b.f.players, Entries: b.f.entries, Started: time.Now().UTC().Truncate(time.Second),
	}
	for i, name := range b.f.shapes {
		load := loadOf(shapeOf(name), b.f)
		title := fmt.Sprintf("%d of %d: %s", i+1, len(b.f.shapes), name)
		res, version, err := b.measure(ctx, title, load, b.f.entries, nil)
		if err != nil {
			return fmt.Errorf("shape %s: %w", name, err)
		}
		report.Server, report.Sync = version, res.Sync
		report.Results = append(report.Results, res)
	}
	return b.print(report, func(w io.Writer) { printBench(w, &report) })
}

func thisBuild() versionJSON {
	return versionJSON{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

// measure runs one load against a server of its own, or the one of --url.
// env is the server's environment in addition to this process's.
func (b *bench) measure(ctx context.Context, title string, l load, entries int, env []string) (res benchJSON, version string, err error) {
	t, stop, err := b.target(ctx, env)
	if err != nil {
		return res, "", err
	}
	defer func() { err = errors.Join(err, stop()) }()
	status, err := t.prepare(ctx, l, entries)
	if err != nil {
		return res, "", err
	}
	before, err := t.gauge(ctx)
	if err != nil {
		return res, "", err
	}
	if b.f.url == "" {
		b.say("server %d serves %s: measuring %s for %v", t.pid, t.url, title, b.f.duration)
	}
	begin := time.Now()
	t.deadline = begin.Add(b.f.duration)
	stopBar := b.showProgress(ctx, b.f.duration, func() string {
		return fmt.Sprintf("%-20s %11d draws", title, t.draws.Load())
	})
	profile := b.profile(ctx, t, l)
	latencies, err := t.drive(ctx, l)
	took := time.Since(begin)
	stopBar()
	if err := errors.Join(err, <-profile); err != nil {
		return res, "", err
	}
	after, err := t.gauge(ctx)
	if err != nil {
		return res, "", err
	}
	res = newResult(l, took, uint64(t.draws.Load()), latencies, before, after)
	res.Sync = syncName(status.GetSync())
	return res, status.GetVersion(), nil
}

// target starts a server, or finds that of --url. stop ends it and removes its
// data.
func (b *bench) target(ctx context.Context, env []string) (t *target, stop func() error, err error) {
	t = &target{run: runName(), players: b.f.players, ahead: 4}
	if b.f.url != "" {
		flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
		conn := b.app.connection(flags)
		conn.serverFlag = "--url"
		if err := flags.Set("server", b.f.url); err != nil {
			return nil, nil, err
		}
		if b.f.keyFile != "" {
			if err := flags.Set("key-file", b.f.keyFile); err != nil {
				return nil, nil, err
			}
		}
		if _, err := conn.dial(); err != nil { // says what is wrong with the flags
			return nil, nil, err
		}
		if t.key, err = conn.apiKey(); err != nil {
			return nil, nil, err
		}
		t.url = strings.TrimSuffix(b.f.url, "/")
		return t, func() error { t.close(); return nil }, nil
	}
	dir, err := os.MkdirTemp(b.dir, "server-")
	if err != nil {
		return nil, nil, err
	}
	args := []string{"--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--sync", b.f.sync, "--history", historyOff}
	if b.f.profile != "" {
		args = append(args, "--pprof", "127.0.0.1:0")
	}
	server, err := startChild(ctx, filepath.Join(dir, "log"), env, args...)
	if err != nil {
		return nil, nil, err
	}
	t.url, t.pid, t.pprof = server.ready.URL, server.ready.PID, server.ready.Pprof
	return t, func() error {
		t.close()
		server.kill() // nothing of it is wanted any more
		return os.RemoveAll(dir)
	}, nil
}

// profile takes a CPU profile of the server while it is measured, if somebody
// asked for one. The channel tells what became of it.
func (b *bench) profile(ctx context.Context, t *target, l load) <-chan error {
	done := make(chan error, 1)
	if b.f.profile == "" {
		done <- nil
		return done
	}
	go func() { done <- b.takeProfile(ctx, t, l) }()
	return done
}

// takeProfile writes the server's profile as NAME.pprof, and that of this
// process, which is the client, as NAME-client.pprof.
func (b *bench) takeProfile(ctx context.Context, t *target, l load) (err error) {
	if err := os.MkdirAll(b.f.profile, 0o755); err != nil {
		return err
	}
	own, err := os.Create(filepath.Join(b.f.profile, l.name+"-client.pprof"))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(own); err != nil {
		return errors.Join(err, own.Close())
	}
	defer func() {
		pprof.StopCPUProfile()
		err = errors.Join(err, own.Close())
	}()
	whole := max(1, int(b.f.duration.Seconds()))
	data, err := fetch(ctx, &http.Client{Transport: t.newConnection(false)}, fmt.Sprintf("%sprofile?seconds=%d", t.pprof, whole), "")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.f.profile, l.name+".pprof"), data, 0o644)
}

// benchCatalog has a pool "bench" of n entries without stock, with weights from
// 1 to 100, that give one of 100 items each.
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

// prepare makes the realms with their catalog and makes every player known. It
// returns what the server says of itself.
func (t *target) prepare(ctx context.Context, l load, entries int) (*kujiv1.GetStatusResponse, error) {
	c, err := t.client(t.newConnection(false))
	if err != nil {
		return nil, err
	}
	yaml := benchCatalog(entries)
	for n := range l.realms {
		realm := t.realm(n)
		if _, err := c.Admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: realm}); err != nil {
			return nil, fmt.Errorf("create realm %s: %w", realm, err)
		}
		if _, err := c.Admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: realm, Yaml: yaml}); err != nil {
			return nil, fmt.Errorf("apply the catalog: %w", err)
		}
		if err := t.meet(ctx, realm); err != nil {
			return nil, fmt.Errorf("make %d players known: %w", t.players, err)
		}
	}
	return c.Admin.GetStatus(ctx, &kujiv1.GetStatusRequest{Realm: t.realm(0)})
}

func printBench(w io.Writer, r *benchReport) {
	fprintf(w, "\nmachine\t%s\n", r.Machine)
	fprintf(w, "build\tkuji %s, %s, %s; server %s\n", r.Build.Version, r.Build.Go, r.Build.Platform, r.Server)
	fprintf(w, "setup\t%d players, %d entries, sync %s; client and server share the machine\n\n", r.Players, r.Entries, r.Sync)
	fprintf(w, "SHAPE\tCONNS\tSYNC\tDRAWS/S\tP50\tP90\tP99\tP99.9\tMAX\tLOG BYTES\tALLOCS\tGC CYCLES\tSERVER CPU\tCLIENT CPU\tPEAK MEMORY\n")
	fprintf(w, "\t\t\t\tms\tms\tms\tms\tms\tper draw\tper draw\tper M draws\ts\ts\tMB\n")
	for _, s := range r.Results {
		fprintf(w, "%s\t%d\t%s\t%.0f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f\t%.2f\t%.1f\t%.2f\t%.2f\t%.0f\n",
			s.Shape, s.Connections, s.Sync, s.DrawsPerSecond, s.P50, s.P90, s.P99, s.P999, s.Max, s.LogBytesPerDraw, s.AllocationsPerDraw,
			s.GCPerMillion, s.ServerCPU, s.ClientCPU, s.PeakMemory/1e6)
	}
	fprintf(w, "\nA draw counts once it is acknowledged. In the shapes stream and anonymous, a latency is that of a batch of\n%d draws, and connections are streams.\n", streamBatch)
}

// newConnection makes a transport with one connection of its own; http2 is
// for gRPC.
func (t *target) newConnection(http2 bool) *http.Transport {
	p := new(http.Protocols)
	switch {
	case !http2:
		p.SetHTTP1(true)
	case strings.HasPrefix(t.url, "https:"):
		p.SetHTTP2(true)
	default:
		p.SetUnencryptedHTTP2(true)
	}
	tr := &http.Transport{Protocols: p, MaxIdleConnsPerHost: 1, ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10}
	t.mu.Lock()
	t.transports = append(t.transports, tr)
	t.mu.Unlock()
	return tr
}

// client returns a client over a connection. A catalog of a million entries takes its time.
func (t *target) client(over *http.Transport, options ...connect.ClientOption) (*client.Client, error) {
	return client.New([]string{t.url}, client.Options{Key: t.key, Transport: over, Timeout: 2 * time.Minute, Connect: options})
}

func (t *target) close() {
	for _, tr := range t.transports {
		tr.CloseIdleConnections()
	}
}
