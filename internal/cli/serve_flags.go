package cli

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/console"
	"github.com/kuji-dev/kuji/history"
	"github.com/kuji-dev/kuji/internal/historian"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// storeFlags say where the realms are, and how they last.
type storeFlags struct {
	data                       string
	sync                       string
	syncEvery                  time.Duration
	segmentSize, snapshotEvery int64
	trimLog, mustExist         bool
	confirmClock               string
	testClock                  bool
}

func (f *storeFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.data, "data", "", "data `directory`, created if it does not exist; one process at a time (required)")
	flags.StringVar(&f.sync, "sync", "always", "when to acknowledge: always (once fsynced), interval or none")
	flags.DurationVar(&f.syncEvery, "sync-every", 100*time.Millisecond, "time between fsyncs with --sync interval; a crash of the machine can lose that much")
	flags.Int64Var(&f.segmentSize, "segment-size", 0, "largest log segment in `bytes` (default 64 MiB)")
	flags.Int64Var(&f.snapshotEvery, "snapshot-every", 0, "take a snapshot of a realm after this many `bytes` of its log (default 64 MiB; -1: never)")
	flags.BoolVar(&f.trimLog, "trim-log", false, "remove log segments that both series of snapshots cover; older draws can then no longer be verified")
	flags.BoolVar(&f.mustExist, "must-exist", false, "create neither the data directory nor a realm; end with exit code 3 if one is missing")
	flags.StringVar(&f.confirmClock, "confirm-clock", "", "believe the machine's clock up to this `time`, such as 2026-11-23T19:20:00Z, however far it is ahead of the log")
	flags.BoolVar(&f.testClock, "test-clock", false, "for tests: kuji clock set --time moves the time of all realms to any time, and it runs on from there")
}

func (f *storeFlags) check() error {
	switch {
	case f.data == "":
		return usagef("missing flag --data: the directory that holds the log")
	case f.syncEvery == 0:
		return usagef("--sync-every %v: expected at least 1ms", f.syncEvery)
	}
	return nil
}

// options returns the options of an engine, which checks most of them.
func (f *storeFlags) options() (kuji.Options, error) {
	o := kuji.Options{SyncEvery: f.syncEvery, SegmentSize: f.segmentSize, SnapshotEvery: f.snapshotEvery, TrimLog: f.trimLog, MustExist: f.mustExist}
	if f.confirmClock != "" {
		var err error
		if o.ClockConfirmed, err = parseTime("confirm-clock", f.confirmClock); err != nil {
			return o, err
		}
	}
	var err error
	o.Sync, err = syncPolicy(f.sync)
	return o, err
}

// clock sets what time it is.
func (f *storeFlags) clock(a *app, log *slog.Logger, engine *kuji.Options, edge *server.Options) {
	engine.Now = a.now
	if f.testClock {
		edge.TestClock = &kuji.TestClock{}
		engine.Now = edge.TestClock.Now
		log.Warn("--test-clock: this server is for tests; a log with times to come is of no use later", "data", f.data)
	}
}

// syncPolicy returns the policy that --sync names.
func syncPolicy(name string) (kuji.SyncPolicy, error) {
	for _, p := range []kuji.SyncPolicy{kuji.SyncAlways, kuji.SyncInterval, kuji.SyncNone} {
		if name == p.String() {
			return p, nil
		}
	}
	return 0, usagef("--sync %q: expected always, interval or none", name)
}

// catalogFlags say what is applied at the start.
type catalogFlags struct {
	catalog, realm string
	acceptWarnings bool
	catalogOver    uint64
}

func (f *catalogFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.catalog, "catalog", "", "catalog `file` to apply to --realm at start")
	flags.StringVar(&f.realm, "realm", server.DefaultRealm, "`name` of the realm that --catalog is for")
	flags.BoolVar(&f.acceptWarnings, "accept-warnings", false, "apply --catalog despite the warnings of its plan")
	flags.Uint64Var(&f.catalogOver, "catalog-over", 0, "apply --catalog over this `version` in force, although somebody applied it since")
}

func (f *catalogFlags) check() error {
	if f.catalogOver > 0 && f.catalog == "" {
		return usagef("--catalog-over %d without --catalog: expected the file to apply", f.catalogOver)
	}
	return nil
}

// edgeFlags say who reaches the server, and with how much.
type edgeFlags struct {
	listen, redisListen      string
	tlsCert, tlsKey, keys    string
	insecure, console        bool
	hosts, origins           []string
	drainDelay, drainTimeout time.Duration
	limits                   server.Limits
}

func (f *edgeFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", defaultAddress, "`address` to listen on; port 0 picks a free one")
	flags.StringVar(&f.redisListen, "redis-listen", "", "`address` for Redis clients to listen on as well, such as 127.0.0.1:6380 (default: none)")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "`file` with the certificate chain (PEM)")
	flags.StringVar(&f.tlsKey, "tls-key", "", "`file` with the certificate's private key (PEM)")
	flags.StringVar(&f.keys, "keys", "", "`file` with the hash of one API key per line; without it, everybody on loopback is admin")
	flags.BoolVar(&f.insecure, "insecure", false, "allow plain text beyond loopback; others can read the keys on the way")
	flags.BoolVar(&f.console, "console", true, "serve the console, web pages for support staff, designers and operators, under /console/")
	flags.StringSliceVar(&f.hosts, "host", nil, "host `name` that a server without keys answers to, besides loopback")
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "`site` whose web pages may call the server with a player's token, such as https://shop.example")
	flags.DurationVar(&f.drainDelay, "drain-delay", 0, "how long to accept requests after readiness is off, for load balancers")
	flags.DurationVar(&f.drainTimeout, "drain-timeout", 30*time.Second, "how long to wait for calls in flight before stopping")
	flags.IntVar(&f.limits.InFlight, "max-in-flight", 0, "most calls at a time (default 4096)")
	flags.IntVar(&f.limits.Connections, "max-connections", 0, "most connections at a time (default 16384)")
	flags.IntVar(&f.limits.RequestMemory, "max-request-memory", 0, "most memory of requests, in `bytes`: their bodies, and 16 KiB each (default 256 MiB)")
	flags.IntVar(&f.limits.RequestBytes, "max-request-bytes", 0, "largest request message (default 64 KiB)")
	flags.IntVar(&f.limits.BatchBytes, "max-batch-bytes", 0, "largest batch or atomic message (default 4 MiB)")
}

func (f *edgeFlags) check() error {
	return cmp.Or(atLeast("drain-delay", f.drainDelay, 0), atLeast("drain-timeout", f.drainTimeout, 0),
		// 0 is the default
		atLeast("max-in-flight", f.limits.InFlight, 0), atLeast("max-connections", f.limits.Connections, 0),
		atLeast("max-request-memory", f.limits.RequestMemory, 0),
		atLeast("max-request-bytes", f.limits.RequestBytes, 0), atLeast("max-batch-bytes", f.limits.BatchBytes, 0))
}

// options reads keys and certificate. The function that it returns reads them again.
func (f *edgeFlags) options(log *slog.Logger) (server.Options, func() error, error) {
	o := server.Options{Hosts: f.hosts, Origins: f.origins, Limits: f.limits, DrainDelay: f.drainDelay, Version: version(), Simulator: simulator, Logger: log}
	if f.console {
		o.Console = console.Handler()
	}
	reload := nothing
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
		var current atomic.Pointer[tls.Certificate]
		load := func() error {
			pair, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
			if err != nil {
				return fmt.Errorf("certificate %s with key %s: %w", f.tlsCert, f.tlsKey, err)
			}
			current.Store(&pair)
			return nil
		}
		if err := load(); err != nil {
			return o, nil, usageError{err}
		}
		get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current.Load(), nil }
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get}
		reloadKeys := reload
		reload = func() error { return errors.Join(reloadKeys(), load()) }
	}
	exposure := access.Exposure{TLS: o.TLS != nil, Insecure: f.insecure, Keys: o.Keys != nil}
	for _, address := range []string{f.listen, cmp.Or(f.redisListen, f.listen)} {
		if err := access.CheckListen(address, exposure); err != nil {
			return o, nil, usageError{err}
		}
	}
	return o, reload, nil
}

// historyFlags say where it is kept what happened.
type historyFlags struct {
	history    string
	historyAge time.Duration
}

// historyWords are the values of --history that are not a URL.
const (
	historySQLite = "sqlite"
	historyOff    = "off"
)

func (f *historyFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.history, "history", historySQLite, "where to keep what happened: sqlite (in the data directory), off, or the `URL` of a PostgreSQL database")
	flags.DurationVar(&f.historyAge, "history-age", 0, "for how long the history keeps events, such as 2160h; older ones are removed (default: all are kept)")
}

func (f *historyFlags) check() error {
	where, age := f.history, f.historyAge
	switch {
	case age < 0:
		return atLeast("history-age", age, 0)
	case age > 0 && where == historyOff:
		return usagef("--history-age: expected --history other than off with it")
	}
	if where == historySQLite || where == historyOff || history.IsURL(where) {
		return nil
	}
	return usagef("--history: expected sqlite, off or the URL of a PostgreSQL database, postgres://…") // it may be one with a password
}

// historyOf returns the database of a realm's history, as --history says.
func historyOf(flag, data, realm string) string {
	return choose(flag == historySQLite, filepath.Join(data, "history", realm+".db"), flag)
}

// historian returns what keeps the histories, as --history and --history-age say.
func (f *historyFlags) historian(data string, log *slog.Logger) *historian.Historian {
	return historian.New(log, func(realm string) string { return historyOf(f.history, data, realm) }, history.Options{Age: f.historyAge})
}

// keepHistory makes a server keep histories, if it is to. The function that it returns ends them.
func (f *historyFlags) keepHistory(data string, o *server.Options) (end func() error) {
	if f.history == historyOff {
		return nothing
	}
	h := f.historian(data, o.Logger)
	o.History = h
	return h.Close
}
