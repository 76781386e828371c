// Package embedded runs a NATS server with JetStream in this process, as one node of a cluster or
// alone. The driver needs no socket. In a cluster the server listens for other nodes, and also for
// clients on this machine, with a password: nats-server 2.15 opens no routes until it listens for
// clients. It fsyncs all that it acknowledges. It knows nothing of realms.
package embedded

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// Options say which node this is, and of which cluster.
type Options struct {
	Dir     string // where the node keeps what it stores. It always belongs to this node
	Cluster string // the same on every node
	Node    string // different on every node
	// Listen is the address for the other nodes, such as "10.0.0.1:6222". "": the node is alone.
	Listen string
	// Advertise is where the other nodes find this one, if not at Listen. Nodes tell each other.
	Advertise string
	// Peers are the addresses of the nodes by name, this one optional. A cluster's first start needs all.
	Peers map[string]string
	// Secret lets nodes and clients in: at least 16 bytes. Without TLS, nodes send it in the clear.
	Secret   string
	Accepted []string    // others may show these, while the secret of all nodes is being changed
	TLS      *tls.Config `json:"-"` // between nodes, which both show certificates; nil: none
	// Clients is the address for clients other than this process, on this machine, such as
	// "127.0.0.1:4222". "": a node that is alone has none, another one takes any port.
	Clients  string
	MaxStore int64        // bytes that the node may store; 0: three quarters of what the disk has free
	Logger   *slog.Logger // gets the server's messages; nil: they are dropped
}

// user is the name of everybody who knows the secret; operator is that of those who manage the servers.
const user, operator = "kuji", "kuji-operator"

// Limits of a server, whatever its options are.
const (
	maxMemory  = 256 << 20 // bytes for streams and consumers in memory
	maxConns   = 1024      // clients
	maxPayload = 1 << 20   // bytes of a message
	minSecret  = 16        // bytes
	// reportEvery is how many failed attempts to reach a node, about one a second, make a report.
	reportEvery = 300
)

func (o *Options) check() error {
	switch {
	case o.Dir == "":
		return errors.New("no directory: want one for what the node stores")
	case o.Node == "" || o.Cluster == "":
		return fmt.Errorf("node %q of cluster %q: want a name for both", o.Node, o.Cluster)
	case o.Listen == "" && len(o.Peers) > 0:
		return errors.New("peers, but no address to listen on for them")
	case (o.Listen != "" || o.Clients != "") && len(o.Secret) < minSecret:
		return fmt.Errorf("secret of %d bytes: want at least %d", len(o.Secret), minSecret)
	case slices.ContainsFunc(o.Accepted, func(secret string) bool { return len(secret) < minSecret }):
		return fmt.Errorf("a secret that is accepted is too short: want at least %d bytes", minSecret)
	case o.Logger == nil:
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Server is a server that runs in this process.
type Server struct {
	o    Options
	lock io.Closer // of the directory
	said *logger
	well struct { // the last answer of health
		sync.Mutex
		of     *server.Server
		at     time.Time
		answer *server.HealthStatus
	}

	mu       sync.Mutex // held while it is started, healed or closed
	closed   bool
	unhealed error                         // why it does not run after Heal
	running  atomic.Pointer[server.Server] // another one after Heal
}

// Start starts a server. It does not wait until the server has found the others: see Ready.
func Start(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	// The server creates directories that everybody may read. This one above them is the owner's.
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := vfs.OS().Lock(filepath.ToSlash(o.Dir)) // the server itself takes none
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", o.Node, err)
	}
	s := &Server{o: o, lock: lock, said: &logger{slog: o.Logger, dir: o.Dir}}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("node %s: %w", o.Node, err), lock.Close())
	}
	return s, nil
}

// door decides who is let in.
type door func(server.ClientAuthentication) bool

// Check implements [server.Authentication].
func (d door) Check(c server.ClientAuthentication) bool { return d(c) }

// letClient lets in clients who know the secret. The server's own list of users would let in
// anybody, once a user of the system's account is in it.
func (s *Server) letClient(c server.ClientAuthentication) bool {
	shown := c.GetOpts()
	now := s.running.Load()
	accounts := map[string]*server.Account{user: now.GlobalAccount(), operator: now.SystemAccount()}
	account := accounts[shown.Username]
	if !s.o.knows(shown.Password) || account == nil {
		return false
	}
	c.RegisterUser(&server.User{Username: shown.Username, Account: account})
	return true
}

// knows reports whether a password is one of the secrets.
func (o *Options) knows(password string) (knows bool) {
	for _, secret := range append([]string{o.Secret}, o.Accepted...) {
		knows = subtle.ConstantTimeCompare([]byte(password), []byte(secret)) == 1 || knows
	}
	return knows
}

// letPeer lets in other nodes.
func (s *Server) letPeer(c server.ClientAuthentication) bool {
	shown := c.GetOpts()
	return shown.Username == user && s.o.knows(shown.Password)
}

func (s *Server) start() error {
	opts, err := s.o.options()
	if err != nil {
		return err
	}
	if s.o.Clients != "" || s.o.Listen != "" {
		opts.CustomClientAuthentication, opts.CustomRouterAuthentication = door(s.letClient), door(s.letPeer)
	}
	now, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.running.Store(now)
	s.said.damaged.Clear()
	now.SetLoggerV2(s.said, false, false, false)
	now.Start()
	// A server that gave up while it started still says that it runs, alone and with JetStream.
	if s.said.gaveUp() == nil && now.Running() && now.JetStreamEnabled() {
		return nil
	}
	now.Shutdown()
	now.WaitForShutdown()
	why := s.said.failure()
	if s.o.Listen != "" {
		return fmt.Errorf("the server did not start: %w; if %s is damaged, and all other nodes run and have caught up, move it away and start this node again: it fetches everything from them", why, s.o.Dir)
	}
	return fmt.Errorf("the server did not start: %w", why)
}

// options returns the server's own options.
func (o *Options) options() (*server.Options, error) {
	opts := &server.Options{
		ServerName:         o.Node,
		DontListen:         true,
		NoSigs:             true,
		MaxConn:            maxConns,
		MaxPayload:         maxPayload,
		JetStream:          true,
		StoreDir:           filepath.Clean(o.Dir),
		SyncAlways:         true,
		JetStreamMaxMemory: maxMemory,
		JetStreamMaxStore:  o.MaxStore,
		// Each attempt to reach a node that is down would be reported.
		ConnectErrorReports:   reportEvery,
		ReconnectErrorReports: reportEvery,
	}
	if o.Clients == "" && o.Listen != "" {
		o.Clients = "127.0.0.1:0"
	}
	if o.Clients != "" {
		host, port, err := split(o.Clients)
		if err == nil && !net.ParseIP(host).IsLoopback() {
			err = fmt.Errorf("address %q: want an IP address of this machine only, such as 127.0.0.1", o.Clients)
		}
		if err != nil {
			return nil, fmt.Errorf("address for clients: %w", err)
		}
		opts.DontListen, opts.Host, opts.Port = false, host, port
	}
	if o.Listen == "" {
		return opts, nil
	}
	host, port, err := split(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("address for other nodes: %w", err)
	}
	opts.Cluster = server.ClusterOpts{
		Name: o.Cluster, Host: host, Port: port, Username: user, Password: o.Secret, PoolSize: 3, TLSTimeout: 5, AuthTimeout: 5,
		Advertise: o.Advertise, NoAdvertise: true, // the peers are all there are
	}
	if o.TLS != nil {
		opts.Cluster.TLSConfig = o.TLS.Clone()
		opts.Cluster.TLSConfig.ClientAuth = tls.RequireAndVerifyClientCert
	}
	for _, node := range slices.Sorted(maps.Keys(o.Peers)) {
		if _, _, err := split(o.Peers[node]); err != nil {
			return nil, fmt.Errorf("address of node %s: %w", node, err)
		}
		if node != o.Node {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: o.Peers[node], User: url.UserPassword(user, o.Secret)})
		}
	}
	return opts, nil
}

// split takes an address apart. Port 0 is one that the kernel chooses.
func split(address string) (host string, port int, err error) {
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	if host == "" {
		return "", 0, fmt.Errorf("address %q: want a host before the port", address)
	}
	port, err = strconv.Atoi(digits)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("address %q: want a port from 0 to 65535", address)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// Ready waits until the server takes requests: in a cluster, until its nodes have a leader. If the
// server gives up, the error says why: its address is in use, for example.
func (s *Server) Ready(ctx context.Context) error {
	err := poll(ctx, func() (bool, error) {
		now := s.running.Load()
		return now.JetStreamEnabled() && (!now.JetStreamIsClustered() || now.JetStreamIsCurrent()), s.said.gaveUp()
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the node has not joined its cluster: %w", err)
	}
	return err
}

// Current returns nil if this node has everything that its cluster has given it. A node that has
// not adds nothing to a majority.
func (s *Server) Current() error {
	switch h := s.health(); {
	case len(h.Errors) > 1:
		return fmt.Errorf("not caught up: %s, and %d more", h.Errors[0].Error, len(h.Errors)-1)
	case len(h.Errors) == 1:
		return fmt.Errorf("not caught up: %s", h.Errors[0].Error)
	case h.Status != "ok":
		return fmt.Errorf("not caught up: %s", h.Status)
	}
	return nil
}

// healthFor is how long the server's answer about its health counts: it looks at each stream for it.
const healthFor = time.Second

// health returns the server's answer about its health, which may be healthFor old.
func (s *Server) health() *server.HealthStatus {
	w, now := &s.well, s.running.Load()
	w.Lock()
	defer w.Unlock()
	if w.of != now || time.Since(w.at) >= healthFor {
		w.of, w.at, w.answer = now, time.Now(), now.Healthz(&server.HealthzOptions{Details: true})
	}
	return w.answer
}

// Failed returns why the server has given up, such as a full disk, or nil. Only a restart helps.
func (s *Server) Failed() error {
	if err := s.said.gaveUp(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unhealed != nil {
		return s.unhealed
	}
	if now := s.running.Load(); !now.Running() || now.JetStreamEnabled() {
		return nil
	}
	return fmt.Errorf("the disk of %s is full or failed: make room, and start the node again", s.o.Dir)
}

// Connect is the option of a connection to this server without a socket.
func (s *Server) Connect() nats.Option { return s.connect(user) }

func (s *Server) connect(as string) nats.Option {
	return func(o *nats.Options) error {
		o.InProcessServer, o.User, o.Password = s, as, s.o.Secret
		return nil
	}
}

// InProcessConn implements [nats.InProcessConnProvider].
func (s *Server) InProcessConn() (net.Conn, error) { return s.running.Load().InProcessConn() }

// Through is the option of a connection to a server with a secret, over what dial returns.
func Through(dial func() (net.Conn, error), secret string) nats.Option {
	return func(o *nats.Options) error {
		o.CustomDialer, o.User, o.Password = dialer(dial), user, secret
		return nil
	}
}

type dialer func() (net.Conn, error)

// Dial implements [nats.CustomDialer].
func (d dialer) Dial(string, string) (net.Conn, error) { return d() }

// Clients returns the address at which clients can connect, or "" if there is none.
func (s *Server) Clients() string {
	if a := s.running.Load().Addr(); a != nil { // none: it does not listen
		return a.String()
	}
	return ""
}

// NATS returns the server itself, for tests and tools.
func (s *Server) NATS() *server.Server { return s.running.Load() }

// Close stops the server. It first hands over what it leads, if it can.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.stop()
	return s.lock.Close()
}

func (s *Server) stop() {
	s.HandOver()
	s.running.Load().Shutdown()
	s.running.Load().WaitForShutdown()
}
