// Package server is Kuji's API over the network. Its Connect handlers answer gRPC, gRPC-Web and
// plain HTTP with JSON. Around them is what a server on a network needs: API keys and roles,
// limits, health, metrics and draining.
//
// This package translates and guards. No rule of the game may enter it: the engine decides what a
// draw gives, which draws a limit refuses, and what a retry gets.
//
// The way of a request: net/http reads its header. [Server.ServeHTTP] checks its origin, its key,
// the key's role and shares, receives the body, and counts the call. Connect decodes it: see
// codec.go. The interceptor in call.go admits it, and turns errors into answers. The handler calls
// the engine: see commands.go, reads.go. A command of Redis clients comes to the same handlers.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/chat"
	"github.com/kuji-dev/kuji/internal/contract"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
	"github.com/kuji-dev/kuji/server/internal/feeds"
	"github.com/kuji-dev/kuji/server/internal/redis"
)

// Options configures a [Server]. The zero value serves all on loopback, as admin, over plain HTTP.
type Options struct {
	// Keys are the API keys. nil: everybody is admin, and the server answers only requests whose
	// Host is loopback or one of Hosts, and none from other sites' web pages.
	Keys *access.Keys
	// Hosts are the host names, without port, that a server without Keys answers to too.
	Hosts []string
	// Origins are the sites whose web pages may call the server from a browser, such as
	// https://shop.example. They need Keys: pages call with a player's token. Default: none.
	Origins []string
	// TLS, if not nil, makes the server speak only TLS.
	TLS *tls.Config
	// Limits bounds what clients can make the server hold. Zero fields mean defaults.
	Limits Limits
	// DrainDelay is how long Shutdown, not ready, still accepts requests. Default: 0.
	DrainDelay time.Duration
	// History answers what happened. Close it after the server is shut down and before the engine
	// is closed. Without one, GetHistory, ListPlayers and ListHolders are refused.
	History History
	// Console, if not nil, answers ConsolePath and what is below: web pages for people, which anybody
	// may load without a key. They call the API like any other client. GET / leads there.
	Console http.Handler
	// Cluster, if not nil, says which realms this server leads, and reaches others for the rest.
	// The engine must be opened with [kuji.Options].Follow. The server opens no realm by itself:
	// see [Server.Open] and [Server.Lead].
	Cluster Cluster
	// Chats are what messages of chats start, by realm: see HandleMessage. Default: nothing.
	Chats map[string]chat.Config
	// Simulator answers Simulate. Without one, that is refused.
	Simulator Simulator
	// TestClock, if not nil, is the engine's [kuji.Options].Now, for tests: SetClock moves it.
	TestClock *kuji.TestClock
	// Version is the program's version, for metrics and GetStatus.
	Version string
	// Logger gets what an operator must know: panics, failed realms, and each request that is
	// refused or slow, at most 100 lines at once and then one a second. Default: slog.Default().
	Logger *slog.Logger
	// SlowRequests is from when on a request is slow: from its arrival to the end of its answer;
	// for a stream, each batch of draws. 0: none is.
	SlowRequests time.Duration
	// AccessLog, if not nil, gets a line for each call.
	AccessLog *AccessLog
	// Interceptors see each call that a handler answers, and its answer, the first one first.
	Interceptors []connect.Interceptor
}

// Server serves an engine. It is an [http.Handler]; [Server.Serve] sets all timeouts and limits.
type Server struct {
	o       Options
	realms  *realms
	shares  *shares
	gate    *admission.Gate
	files   *admission.Descriptors
	sites   *sites
	routes  routes
	metrics *metrics
	journal *journal
	feeds   *feeds.Feeds
	redis   *redis.Server
	chats   *chats
	http    *http.Server
	ending
}

// ending says that a server ends.
type ending struct {
	draining atomic.Bool
	stopping context.Context // ends when streams must end
	stop     context.CancelFunc
}

// New returns a server for an engine, which must stay open as long as the server runs. It opens
// every realm, so that no request waits for a recovery, and creates [DefaultRealm]; with
// [Options].Cluster it does neither. It fails if a realm cannot be opened, an option is out of
// range, or an RPC of the contract declares no role.
func New(engine *kuji.Engine, o Options) (*Server, error) {
	return newServer(engine, o, contract.Services())
}

func newServer(engine *kuji.Engine, o Options, services []protoreflect.ServiceDescriptor) (*Server, error) {
	limits, err := o.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	o.Limits = limits
	if o.DrainDelay < 0 || o.SlowRequests < 0 {
		return nil, fmt.Errorf("server: DrainDelay is %v and SlowRequests %v, want at least 0", o.DrainDelay, o.SlowRequests)
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	s := &Server{
		o:      o,
		realms: &realms{engine: engine, err: (*kuji.Realm).Err, shared: o.Cluster != nil, byName: map[string]*kuji.Realm{}},
		journal: &journal{log: o.Logger, slowFrom: o.SlowRequests, access: o.AccessLog, cluster: o.Cluster != nil,
			slow: newThrottle(), refusals: newThrottle(), failures: rate.Sometimes{Interval: failedEvery}},
	}
	s.shares = &shares{o.Cluster, s.realms}
	s.stopping, s.stop = context.WithCancel(context.Background())
	if s.sites, err = newSites(&o); err != nil {
		return nil, err
	}
	if s.realms.shared != engine.Follows() {
		return nil, fmt.Errorf("server: a cluster: %v, and the engine's realms follow: %v; want both or neither", s.realms.shared, engine.Follows())
	}
	if !s.realms.shared {
		if err := s.realms.open(); err != nil {
			return nil, err
		}
	}
	if err := s.divide(); err != nil {
		return nil, err
	}
	if o.History != nil {
		s.realms.begin = o.History.Follow
		for _, r := range s.realms.sorted() {
			s.realms.begin(r)
		}
	}
	s.metrics = newMetrics(s)
	s.feeds = &feeds.Feeds{Gate: s.gate, Keys: o.Keys, Stopping: s.stopping, WriteTimeout: limits.WriteTimeout}
	if s.chats, err = newChats(o.Chats, s.realms, s.gate, s.metrics); err != nil {
		return nil, err
	}
	if err := s.mount(services); err != nil {
		return nil, errors.Join(err, s.chats.close())
	}
	s.http = newHTTP(s, &limits, o.TLS, o.Logger)
	return s, nil
}

// divide makes the budgets. Each key has a share of each; without keys there is one caller. The
// crowd has a sixteenth of the memory, which no key can use up.
func (s *Server) divide() error {
	l := &s.o.Limits
	s.files = &admission.Descriptors{Want: l.Connections, History: s.o.History != nil, Realms: s.realms.len}
	if err := s.files.Check(s.o.Logger); err != nil {
		return err
	}
	shared := s.o.Keys != nil
	strangers := int64(l.RequestMemory) / 16
	s.gate = &admission.Gate{
		Memory:   admission.NewPlaces(int64(l.RequestMemory)-strangers, shared, "bytes of memory are in use for requests"),
		Calls:    admission.NewPlaces(int64(l.InFlight), shared, "calls are being answered"),
		Streams:  admission.NewPlaces(int64(l.DrawStreams), shared, "streams are open"),
		Feeds:    admission.NewPlaces(int64(l.EventStreams), shared, "streams are open"),
		Bulk:     admission.NewBudget(int64(l.BulkInFlight), shared),
		Catalogs: admission.NewBudget(1, shared),
		History:  admission.NewBudget(historyReads, shared),
		Odds:     admission.NewBudget(oddsAtOnce, shared),
		Trials:   admission.NewBudget(1, shared),
		Reads:    admission.NewBudget(feeds.EventReads, shared),
		Work:     admission.NewBudget(int64(l.WorkBytes), shared),
		Conns:    admission.NewConns(s.files.Connections(), s.files.Connections, shared),
		Tokens:   admission.NewTokens(), Checks: admission.NewChecks(), Rates: admission.NewRates(),
		HeaderTimeout: l.HeaderTimeout, ReadTimeout: l.ReadTimeout,
	}
	s.gate.Crowd.Places = int(strangers / admission.RequestCost)
	return nil
}

// Serve accepts connections on l, at most Limits.Connections at a time, fewer if the process may
// not open so many files, and closes l in the end. After [Server.Shutdown] is called it returns nil
// at once, while that still waits. Check the address first: see [access.CheckListen].
func (s *Server) Serve(l net.Listener) error {
	defer s.Watch()()
	l = s.gate.Conns.Listen(l)
	var err error
	if s.o.TLS != nil {
		err = s.http.ServeTLS(l, "", "")
	} else {
		err = s.http.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("server: %w", err)
}

// ServeRedis accepts connections of the Redis protocol on l until [Server.Shutdown], and closes l.
// They share Limits.Connections, keys and Options.TLS with Serve's. Check the address first.
func (s *Server) ServeRedis(l net.Listener) error { return s.redis.Serve(l) }

// Shutdown drains the server. It turns readiness and health off, and accepts requests for another
// Options.DrainDelay. Then it ends each stream once the batches that it began are answered, waits
// for the calls in flight, reports the activity of chats and returns. If ctx ends first, Shutdown cuts the connections that are
// left and returns ctx's error. The engine stays open.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	if s.o.DrainDelay > 0 {
		select {
		case <-time.After(s.o.DrainDelay):
		case <-ctx.Done():
		}
	}
	defer s.journal.sayLeftOut()
	s.stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("server: shutdown: %w", err), s.http.Close())
	}
	return errors.Join(err, s.redis.Shutdown(ctx), s.chats.close())
}
