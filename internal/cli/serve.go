package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/history"
	"github.com/kuji-dev/kuji/internal/historian"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// serveFlags is what the flags of serve say.
type serveFlags struct {
	data, catalog, realm, listen string
	redisListen                  string
	confirmClock                 string
	acceptWarnings               bool
	catalogOver                  uint64
	sync                         string
	syncEvery                    time.Duration
	segmentSize, snapshotEvery   int64
	trimLog, mustExist           bool
	tlsCert, tlsKey, keys        string
	insecure                     bool
	hosts                        []string
	origins                      []string
	drainDelay, drainTimeout     time.Duration
	untilEOF                     bool
	pprof                        string
	history                      string
	historyAge                   time.Duration
	limits                       server.Limits
	config                       string
	printConfig                  bool
	cluster                      clusterFlags
	logs                         logFlags
	otlp                         string

	set *pflag.FlagSet // all of them
}

func serveCommand(a *app) *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve --data DIR",
		Short: "Serve the realms of a data directory until SIGTERM or Ctrl-C",
		Long: `Serve opens a data directory, applies the catalog, and serves until SIGTERM or
SIGINT. When it is ready it prints one line with its address.

To stop, it turns readiness off, answers what it has begun, closes the log and
ends with exit code 0, or 1 if a realm has stopped meanwhile. A second signal ends
it at once, as a crash would: nothing acknowledged is lost.

It listens on loopback by default. Any other address needs TLS (or --insecure)
and a file with API keys: see "kuji keys new --help". On SIGHUP it reads the key
file and the certificate again, and opens the access log again.

Its log goes to standard error. The log names each request that is refused or slow.

You can also set each flag by a variable, such as KUJI_SYNC_EVERY=10ms for
--sync-every, or by a line of the file --config, such as "sync-every: 10ms". A flag
overrides its variable, and a variable overrides the file.

It applies the catalog if the realm has none, or if the file has changed since it was
applied last and nobody has applied another one since. An unchanged file changes
nothing, so a restart never undoes "kuji apply". If both have changed, it refuses to
start and says how to choose. It logs the changes that it makes. If one of them needs a
second look, it refuses to start unless you give --accept-warnings.`,
		Example: `  kuji serve --data ./kuji-data --catalog examples/instant-win.yaml
  kuji serve --data /var/lib/kuji --listen 0.0.0.0:7700 \
      --tls-cert cert.pem --tls-key key.pem --keys keys.txt
  kuji serve --config /etc/kuji/serve.yaml`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.settleAndServe(cmd, f) },
	}
	flags := cmd.Flags()
	f.set = flags
	flags.StringVar(&f.config, "config", "", "`file` with settings in YAML: keys are the flags' names")
	flags.BoolVar(&f.printConfig, "print-config", false, "write the settings in force, and where each is from, and end")
	flags.StringVar(&f.data, "data", "", "data `directory`, created if it does not exist; one process at a time (required)")
	flags.StringVar(&f.catalog, "catalog", "", "catalog `file` to apply to --realm at start")
	flags.StringVar(&f.realm, "realm", server.DefaultRealm, "`name` of the realm that --catalog is for")
	flags.BoolVar(&f.acceptWarnings, "accept-warnings", false, "apply --catalog despite the warnings of its plan")
	flags.Uint64Var(&f.catalogOver, "catalog-over", 0, "apply --catalog over this `version` in force, although somebody applied it since")
	flags.StringVar(&f.listen, "listen", defaultAddress, "`address` to listen on; port 0 picks a free one")
	flags.StringVar(&f.redisListen, "redis-listen", "", "`address` for Redis clients to listen on as well, such as 127.0.0.1:6380 (default: none)")
	flags.StringVar(&f.sync, "sync", "always", "when to acknowledge: always (once fsynced), interval or none")
	flags.DurationVar(&f.syncEvery, "sync-every", 100*time.Millisecond, "time between fsyncs with --sync interval; a crash of the machine can lose that much")
	flags.Int64Var(&f.segmentSize, "segment-size", 0, "largest log segment in `bytes` (default 64 MiB)")
	flags.Int64Var(&f.snapshotEvery, "snapshot-every", 0, "take a snapshot of a realm after this many `bytes` of its log (default 64 MiB; -1: never)")
	flags.BoolVar(&f.trimLog, "trim-log", false, "remove log segments that two independent chains of snapshots cover; older draws can then no longer be verified")
	flags.BoolVar(&f.mustExist, "must-exist", false, "create neither the data directory nor a realm; end with exit code 3 if one is missing")
	flags.StringVar(&f.confirmClock, "confirm-clock", "", "believe the machine's clock up to this `time`, such as 2026-11-23T19:20:00Z, however far it is ahead of the log")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "`file` with the certificate chain (PEM)")
	flags.StringVar(&f.tlsKey, "tls-key", "", "`file` with the certificate's private key (PEM)")
	flags.StringVar(&f.keys, "keys", "", "`file` with the hash of one API key per line; without it, everybody on loopback is admin")
	flags.BoolVar(&f.insecure, "insecure", false, "allow plain text beyond loopback; others can read the keys on the way")
	flags.StringSliceVar(&f.hosts, "host", nil, "host `name` that a server without keys answers to, as well as loopback")
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "`site` whose web pages may call the server with a player's token, such as https://shop.example")
	flags.DurationVar(&f.drainDelay, "drain-delay", 0, "how long to accept requests after readiness is off, for load balancers")
	flags.DurationVar(&f.drainTimeout, "drain-timeout", 30*time.Second, "how long to wait for calls in flight before stopping")
	flags.IntVar(&f.limits.InFlight, "max-in-flight", 0, "most calls at a time (default 4096)")
	flags.IntVar(&f.limits.Connections, "max-connections", 0, "most connections at a time (default 16384)")
	flags.IntVar(&f.limits.RequestMemory, "max-request-memory", 0, "most memory of requests, in `bytes`: their bodies, and 16 KiB each (default 256 MiB)")
	flags.IntVar(&f.limits.RequestBytes, "max-request-bytes", 0, "largest request message (default 64 KiB)")
	flags.IntVar(&f.limits.BatchBytes, "max-batch-bytes", 0, "largest batch or atomic message (default 4 MiB)")
	flags.BoolVar(&f.untilEOF, "until-eof", false, "stop when standard input ends: for a parent process that holds its other end")
	flags.StringVar(&f.history, "history", historySQLite, "where to keep what happened: sqlite (in the data directory), off, or the `URL` of a PostgreSQL database")
	flags.DurationVar(&f.historyAge, "history-age", 0, "for how long the history keeps events, such as 2160h; older ones are removed (default: for ever)")
	f.cluster.add(cmd)
	f.logs.add(cmd)
	flags.StringVar(&f.otlp, "otlp-endpoint", "", "send traces to the OpenTelemetry collector at this `URL`, over HTTP (default: $OTEL_EXPORTER_OTLP_ENDPOINT; none: no traces)")
	flags.StringVar(&f.pprof, "pprof", "", "serve profiles of the process on this loopback `address`, for go tool pprof")
	return cmd
}

// settleAndServe completes the flags from variables and the file.
func (a *app) settleAndServe(cmd *cobra.Command, f *serveFlags) error {
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"config", "print-config", "help"}, flag.Name) {
			names = append(names, flag.Name)
		}
	})
	s := newSettings(cmd.Flags(), a.getenv)
	if err := s.fromVariables(append(names, "config")...); err != nil {
		return err
	}
	if f.config != "" {
		data, err := a.readFile(f.config, maxSettings)
		if err != nil {
			return s.explain(fmt.Errorf("--config: %w", err))
		}
		if err := s.fromFile(f.config, data, names...); err != nil {
			return err
		}
	}
	if f.printConfig {
		return s.print(a, names)
	}
	return s.explain(a.serve(cmd.Context(), f))
}

// check checks what no other package does.
func (f *serveFlags) check() error {
	if f.data == "" {
		return usagef("missing flag --data: the directory that holds the log")
	}
	if f.catalogOver > 0 && f.catalog == "" {
		return usagef("--catalog-over %d without --catalog: expected the file to apply", f.catalogOver)
	}
	if f.syncEvery == 0 {
		return usagef("--sync-every %v: expected at least 1ms", f.syncEvery)
	}
	switch {
	case f.drainDelay < 0:
		return usagef("--drain-delay %v: expected 0s or more", f.drainDelay)
	case f.drainTimeout < 0:
		return usagef("--drain-timeout %v: expected 0s or more", f.drainTimeout)
	}
	if err := f.cluster.check(f.data); err != nil {
		return err
	}
	if err := checkHistory(f.history, f.historyAge); err != nil {
		return err
	}
	return cmp.Or( // 0 is the default
		atLeast("max-in-flight", f.limits.InFlight, 0), atLeast("max-connections", f.limits.Connections, 0),
		atLeast("max-request-memory", f.limits.RequestMemory, 0),
		atLeast("max-request-bytes", f.limits.RequestBytes, 0), atLeast("max-batch-bytes", f.limits.BatchBytes, 0))
}

// historyWords are the values of --history that are not a URL.
const (
	historySQLite = "sqlite"
	historyOff    = "off"
)

// checkHistory checks --history and --history-age.
func checkHistory(where string, age time.Duration) error {
	switch {
	case age < 0:
		return usageError{fmt.Errorf("--history-age %v: expected 0s or more", age)}
	case age > 0 && where == historyOff:
		return usageError{errors.New("--history-age: expected --history other than off with it")}
	}
	if where == historySQLite || where == historyOff || history.IsURL(where) {
		return nil
	}
	return usageError{errors.New("--history: expected sqlite, off or the URL of a PostgreSQL database, postgres://…")} // it may be one with a password
}

// historian returns what keeps the histories, as --history and --history-age say.
func (f *serveFlags) historian(log *slog.Logger) *historian.Historian {
	return historian.New(log, func(realm string) string {
		if f.history == historySQLite {
			return filepath.Join(f.data, "history", realm+".db")
		}
		return f.history
	}, history.Options{Age: f.historyAge})
}

// keepHistory makes a server keep histories, if it is to. The function that it returns ends them.
func (f *serveFlags) keepHistory(o *server.Options) (end func() error) {
	if f.history == historyOff {
		return func() error { return nil }
	}
	h := f.historian(o.Logger)
	o.History = h
	return h.Close
}

func (f *serveFlags) engineOptions() (kuji.Options, error) {
	o := kuji.Options{SyncEvery: f.syncEvery, SegmentSize: f.segmentSize, SnapshotEvery: f.snapshotEvery, TrimLog: f.trimLog, MustExist: f.mustExist}
	if f.confirmClock != "" {
		var err error
		if o.ClockConfirmed, err = parseTime("confirm-clock", f.confirmClock); err != nil {
			return o, err
		}
	}
	for _, p := range []kuji.SyncPolicy{kuji.SyncAlways, kuji.SyncInterval, kuji.SyncNone} {
		if f.sync == p.String() {
			o.Sync = p
			return o, nil
		}
	}
	return o, usagef("--sync %q: expected always, interval or none", f.sync)
}

// serverOptions reads keys and certificate. The function that it returns reads
// them again.
func (f *serveFlags) serverOptions(log *slog.Logger) (server.Options, func() error, error) {
	o := server.Options{Hosts: f.hosts, Origins: f.origins, Limits: f.limits, DrainDelay: f.drainDelay, Version: version(), Logger: log}
	reload := func() error { return nil }
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return o, nil, usagef("--tls-cert and --tls-key: give both or neither")
	}
	if f.keys != "" {
		keys, err := access.LoadKeys(f.keys)
		if err != nil {
			return o, nil, usageError{err}
		}
		o.Keys = keys
		reload = keys.Reload
	}
	if f.tlsCert != "" {
		cert := &certificate{certFile: f.tlsCert, keyFile: f.tlsKey}
		if err := cert.reload(); err != nil {
			return o, nil, usageError{err}
		}
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get}
		reloadKeys := reload
		reload = func() error { return errors.Join(reloadKeys(), cert.reload()) }
	}
	exposure := access.Exposure{TLS: o.TLS != nil, Insecure: f.insecure, Keys: o.Keys != nil}
	for _, address := range []string{f.listen, cmp.Or(f.redisListen, f.listen)} {
		if err := access.CheckListen(address, exposure); err != nil {
			return o, nil, usageError{err}
		}
	}
	return o, reload, nil
}

func (a *app) serve(ctx context.Context, f *serveFlags) (err error) {
	defer func() { a.notStarted(f, err) }()
	if err := f.check(); err != nil {
		return err
	}
	// A signal that comes while the data directory is being opened, which may
	// take long, takes effect after that. A second one must end the process
	// even then.
	defer context.AfterFunc(ctx, uncatch)()
	// SIGHUP must not end it meanwhile either. It takes effect as soon as the
	// server is ready.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	log, err := f.logs.logger(a)
	if err != nil {
		return err
	}
	engineOptions, err := f.engineOptions()
	if err != nil {
		return err
	}
	engineOptions.Now = a.now
	serverOptions, reload, err := f.serverOptions(log)
	if err != nil {
		return err
	}
	var c *catalog.Catalog
	if f.catalog != "" {
		if c, err = loadCatalog(a, f.catalog); err != nil {
			return err
		}
	}
	if err := cmp.Or(tryListen("listen", f.listen), tryListen("redis-listen", f.redisListen)); err != nil {
		return err
	}
	prof, err := serveProfiles(f.pprof)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prof.close()) }()
	reopen, endLogs, err := f.watched(a, &serverOptions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endLogs()) }()
	reloadFiles := reload
	reload = func() error { return errors.Join(reloadFiles(), reopen()) }
	life := beginLife(log, f.data, f.set)
	defer func() {
		life.end(err)
		a.logged = err != nil && f.logs.json(a)
	}()
	p := &process{a, f, life, prof.url(), hangup, reload}
	if f.cluster.Name != "" {
		return p.serveCluster(ctx, engineOptions, serverOptions)
	}
	start := &catalogStart{app: a, f: f, c: c, log: log}
	if err := start.before(ctx); err != nil {
		return err
	}
	engine, err := kuji.Open(f.data, engineOptions)
	if errors.Is(err, syscall.ENOTDIR) {
		return usagef("--data %s is not a directory", f.data)
	}
	if err != nil {
		return optionError(err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := start.apply(ctx, engine); err != nil {
		return clockError(err)
	}
	endHistory := f.keepHistory(&serverOptions)
	defer func() { err = errors.Join(err, endHistory()) }()
	if err := p.listenAndServe(ctx, engine, serverOptions); err != nil {
		return clockError(err)
	}
	return stoppedRealms(engine)
}

// notStarted logs an error that came before the log had begun, if each line of the log is JSON: then a
// line for a person may not stand among them.
func (a *app) notStarted(f *serveFlags, err error) {
	if err == nil || a.logged || !f.logs.json(a) {
		return
	}
	if log, bad := f.logs.logger(a); bad == nil {
		log.Error("not started", "error", err)
		a.logged = true
	}
}

// process is what a server that is alone and a node of a cluster have in common.
type process struct {
	*app
	f      *serveFlags
	life   *life
	pprof  string // URL of the profiles
	hangup <-chan os.Signal
	reload func() error // reads keys and certificate again, and goes on with another access log
}

// untilStopped waits until the process has to stop. It returns an error if nobody serves any more.
func (p *process) untilStopped(ctx context.Context, served <-chan error) error {
	eof := p.watchInput(p.f.untilEOF)
	for {
		select {
		case <-p.hangup:
			if err := p.reload(); err != nil {
				p.life.log.Error("reload failed: what could not be read or opened stays as it was", "error", err)
			} else {
				p.life.log.Info("keys and certificate read again")
			}
		case err := <-served:
			p.life.stopping("it cannot serve any more")
			return err
		case <-ctx.Done():
			p.life.stopping(context.Cause(ctx).Error())
			return nil
		case <-eof:
			p.life.stopping("standard input has ended")
			return nil
		}
	}
}

// stoppedRealms reports which realms failed while the server ran. Then the
// process has not ended well, however orderly it was.
func stoppedRealms(engine *kuji.Engine) error {
	names, err := engine.Realms()
	if err != nil {
		return err
	}
	var stopped []error
	for _, name := range names {
		if realm, err := engine.Lookup(name); err == nil { // all of them are open
			stopped = append(stopped, realm.Err())
		}
	}
	return errors.Join(stopped...)
}

// readyJSON is the line that says where the server listens.
type readyJSON struct {
	Event   string `json:"event"` // "ready"
	URL     string `json:"url"`
	Address string `json:"address"`
	Redis   string `json:"redis,omitempty"` // address for Redis clients
	PID     int    `json:"pid"`
	Data    string `json:"data"`
	Sync    string `json:"sync"`
	Pprof   string `json:"pprof,omitempty"` // URL of the process's profiles
}

// printMore prints where else than for clients of the API.
func (r *readyJSON) printMore(w io.Writer) {
	if r.Redis != "" {
		fprintf(w, "kuji: Redis clients on %s\n", r.Redis)
	}
	if r.Pprof != "" {
		fprintf(w, "kuji: profiles on %s\n", r.Pprof)
	}
}

func (p *process) listenAndServe(ctx context.Context, engine *kuji.Engine, o server.Options) error {
	srv, err := server.New(engine, o)
	if err != nil {
		return err
	}
	if err := noteOpened(engine, o.Logger); err != nil {
		return err
	}
	listener, err := listen("listen", p.f.listen)
	if err != nil {
		return err
	}
	served := make(chan error, 2)
	go func() { served <- srv.Serve(listener) }()
	redis, serving := "", 1
	if p.f.redisListen != "" {
		l, err := listen("redis-listen", p.f.redisListen)
		if err != nil {
			return errors.Join(err, srv.Shutdown(ctx))
		}
		redis, serving = l.Addr().String(), 2
		go func() { served <- srv.ServeRedis(l) }()
	}

	scheme := "http"
	if o.TLS != nil {
		scheme = "https"
	}
	address := listener.Addr().String()
	ready := readyJSON{"ready", scheme + "://" + address, address, redis, os.Getpid(), p.f.data, p.f.sync, p.pprof}
	p.life.serving(&ready)
	if err := p.print(ready, func(w io.Writer) {
		fprintf(w, "kuji: serving %s on %s (sync %s)\n", p.f.data, ready.URL, p.f.sync)
		ready.printMore(w)
	}); err != nil {
		return errors.Join(err, srv.Shutdown(ctx))
	}
	if err := p.untilStopped(ctx, served); err != nil {
		return err
	}
	return drain(srv, served, serving, p.f.drainTimeout)
}

// network is tcp4 for an IPv4 address. net.Listen would take 0.0.0.0 for every
// address, including those of IPv6, which a firewall may not know about.
func network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "tcp"
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// tryListen finds out whether the address is free before the data directory is
// opened, which may take long and writes to the log.
func tryListen(flag, address string) error {
	if address == "" {
		return nil
	}
	listener, err := listen(flag, address)
	if err != nil {
		return err
	}
	return listener.Close()
}

// listen listens on the address that a flag gives.
func listen(flag, address string) (net.Listener, error) {
	listener, err := net.Listen(network(address), address)
	if err != nil {
		return nil, listenError(flag, address, err)
	}
	return listener, nil
}

// listenError names the flag, once.
func listenError(flag, address string, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	err = fmt.Errorf("--%s %s: %w", flag, address, err)
	_, bad := errors.AsType[*net.AddrError](err)
	_, unknown := errors.AsType[*net.DNSError](err)
	switch {
	case bad, unknown:
		return usageError{err}
	case errors.Is(err, syscall.EADDRINUSE):
		return refusedError{err.Error()}
	}
	return err
}

// uncatch makes a signal end the process at once, as if nobody caught it.
func uncatch() { signal.Reset(os.Interrupt, syscall.SIGTERM) }

// drain stops a server in an orderly way. From here on a signal ends the
// process at once.
func drain(srv *server.Server, served <-chan error, serving int, timeout time.Duration) error {
	uncatch()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := srv.Shutdown(ctx)
	for range serving {
		err = errors.Join(err, <-served)
	}
	return err
}

// watchInput returns a channel that is closed when standard input ends.
func (a *app) watchInput(on bool) <-chan struct{} {
	if !on {
		return nil
	}
	eof := make(chan struct{})
	go func() {
		defer close(eof)
		_, _ = io.Copy(io.Discard, a.stdin) // an error is an end too
	}()
	return eof
}

// certificate is a certificate that can be read again while in use.
type certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

func (c *certificate) reload() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	c.current.Store(&pair)
	return nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}
