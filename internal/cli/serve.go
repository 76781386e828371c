package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/server"
)

type serveFlags struct {
	storeFlags
	catalogFlags
	edgeFlags
	historyFlags
	chatFlags
	logs    logFlags
	cluster clusterFlags

	otlp, pprof string
	untilEOF    bool
	config      string
	printConfig bool
	set         *pflag.FlagSet // all of them
}

func serveCommand(a *app) *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve --data DIR",
		Short: "Serve the realms of a data directory until SIGTERM or Ctrl-C",
		RunE:  func(cmd *cobra.Command, _ []string) error { return settleAndServe(a, cmd, f) },
	}
	flags := cmd.Flags()
	f.set = flags
	flags.StringVar(&f.config, "config", "", "`file` with settings in YAML: keys are the flags' names")
	flags.BoolVar(&f.printConfig, "print-config", false, "write the settings in force, and where each is from, and end")
	f.storeFlags.add(flags)
	f.catalogFlags.add(flags)
	f.edgeFlags.add(flags)
	f.historyFlags.add(flags)
	f.chatFlags.add(flags)
	flags.BoolVar(&f.untilEOF, "until-eof", false, "stop when standard input ends: for a parent process that holds its other end")
	f.cluster.add(cmd)
	f.logs.add(cmd)
	flags.StringVar(&f.otlp, "otlp-endpoint", "", "send traces to the OpenTelemetry collector at this `URL`, over HTTP (default: $OTEL_EXPORTER_OTLP_ENDPOINT; none: no traces)")
	flags.StringVar(&f.pprof, "pprof", "", "serve profiles of the process on this loopback `address`, for go tool pprof")
	return cmd
}

// settleAndServe completes the flags from variables and the file.
func settleAndServe(a *app, cmd *cobra.Command, f *serveFlags) error {
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
	return s.explain(serve(cmd.Context(), a, f))
}

// check checks what no other package does.
func (f *serveFlags) check() error {
	if err := f.cluster.settle(&f.data); err != nil {
		return err
	}
	if f.testClock && f.cluster.Name != "" {
		return usagef("--test-clock with a cluster: its nodes have a clock each; expected a server that is alone")
	}
	return cmp.Or(f.storeFlags.check(), f.catalogFlags.check(), f.edgeFlags.check(), f.cluster.check(f.data), f.historyFlags.check())
}

func serve(ctx context.Context, a *app, f *serveFlags) (err error) {
	defer func() { notStarted(a, f, err) }()
	if err := f.check(); err != nil {
		return err
	}
	// Opening the data directory may take long. A signal takes effect after that, but a second one at once.
	defer context.AfterFunc(ctx, uncatch)()
	// SIGHUP must not end the process either. It takes effect as soon as the server is ready.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	log, err := f.logs.logger(a)
	if err != nil {
		return err
	}
	engineOptions, err := f.storeFlags.options()
	if err != nil {
		return err
	}
	serverOptions, reload, err := f.edgeFlags.options(log)
	if err != nil {
		return err
	}
	f.storeFlags.clock(a, log, &engineOptions, &serverOptions)
	if serverOptions.Chats, err = f.chatFlags.configs(a); err != nil {
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
	profiles, endProfiles, err := serveProfiles(f.pprof)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endProfiles()) }()
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
	p := &process{a, f, life, profiles, hangup, reload}
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
	endHistory := f.keepHistory(f.data, &serverOptions)
	defer func() { err = errors.Join(err, endHistory()) }()
	if err := p.listenAndServe(ctx, engine, serverOptions); err != nil {
		return clockError(err)
	}
	return stoppedRealms(engine)
}

// notStarted logs an error from before the log began, if the log is JSON: it takes no line for a person.
func notStarted(a *app, f *serveFlags, err error) {
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
	reload func() error // reads keys and certificate again, and opens the access log again
}

// untilStopped waits until the process has to stop. It returns an error if serving has failed.
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

// stoppedRealms reports which realms failed while the server ran: the process has not ended well then.
func stoppedRealms(engine *kuji.Engine) error {
	realms, err := openRealms(engine)
	return errors.Join(append(each(realms, (*kuji.Realm).Err), err)...)
}

// openRealms returns the realms of an engine that is served: all of them are open.
func openRealms(engine *kuji.Engine) (all []*kuji.Realm, err error) {
	names, err := engine.Realms()
	for _, name := range names {
		if realm, err := engine.Lookup(name); err == nil {
			all = append(all, realm)
		}
	}
	return all, err
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

// ready says where a server listens, and what it is.
func (p *process) ready(what, address, redis string, o *server.Options, sync string) error {
	r := readyJSON{"ready", choose(o.TLS != nil, "https://", "http://") + address, address, redis, os.Getpid(), p.f.data, sync, p.pprof}
	p.life.serving(&r)
	return p.print(r, func(w io.Writer) {
		fprintf(w, "kuji: %s on %s (sync %s)\n", what, r.URL, sync)
		if redis != "" {
			fprintf(w, "kuji: Redis clients on %s\n", redis)
		}
		if p.pprof != "" {
			fprintf(w, "kuji: profiles on %s\n", p.pprof)
		}
	})
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

	if err := p.ready("serving "+p.f.data, listener.Addr().String(), redis, &o, p.f.sync); err != nil {
		return errors.Join(err, srv.Shutdown(ctx))
	}
	if err := p.untilStopped(ctx, served); err != nil {
		return err
	}
	return drain(srv, served, serving, p.f.drainTimeout)
}

// network is tcp4 for an IPv4 address. net.Listen takes 0.0.0.0 for IPv6, too, which a firewall may not know.
func network(address string) string {
	host, _, _ := net.SplitHostPort(address) // net.Listen says what is wrong
	ip, err := netip.ParseAddr(host)
	return choose(err == nil && ip.Is4(), "tcp4", "tcp")
}

// tryListen finds out whether an address is free before the data directory opens, which takes long and writes.
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
	if err == nil {
		return listener, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	err = fmt.Errorf("--%s %s: %w", flag, address, err)
	_, bad := errors.AsType[*net.AddrError](err)
	_, unknown := errors.AsType[*net.DNSError](err)
	switch {
	case bad, unknown:
		return nil, usageError{err}
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, refusedError{err.Error()}
	}
	return nil, err
}

// uncatch makes a signal end the process at once.
func uncatch() { signal.Reset(os.Interrupt, syscall.SIGTERM) }

// drain stops a server in an orderly way. From here on a signal ends the process at once.
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
