package embedded_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/internal/proxy"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const secret, next = "a secret of the tests", "the next secret of the tests"

// watcher waits for a message of a server.
type watcher struct {
	slog.Handler
	text string
	seen chan struct{}
}

func (w *watcher) Enabled(context.Context, slog.Level) bool { return true }
func (w *watcher) Handle(_ context.Context, r slog.Record) error {

	if strings.Contains(r.Message, w.text) {
		select {
		case w.seen <- struct{}{}:
		default:
		}
	}
	return nil
}

func watch(text string) (*slog.Logger, <-chan struct{}) {
	w := &watcher{Handler: slog.DiscardHandler, text: text, seen: make(chan struct{}, 1)}
	return slog.New(w), w.seen
}

// authority signs certificates for this machine that are good for both sides.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) config(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := net.SplitHostPort(free(t))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, IPAddresses: []net.IP{net.ParseIP(host)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: pool, ClientCAs: pool, MinVersion: tls.VersionTLS13}
}

// free returns an address at which a server can listen.
func free(t *testing.T) string {
	t.Helper()
	addresses, err := proxy.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

func start(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	o.Dir, o.MaxStore = t.TempDir(), 1<<30
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) // some tests have
	return s
}

// Nodes with certificates of one authority form a cluster.
func TestClusterWithTLS(t *testing.T) {
	a := newAuthority(t)
	peers := map[string]string{"n1": free(t), "n2": free(t), "n3": free(t)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var servers []*embedded.Server
	for name, address := range peers {
		o := embedded.Options{Cluster: "test", Node: name, Listen: address, Peers: peers, Secret: secret, Accepted: []string{next}, TLS: a.config(t)}
		if name == "n1" { // the secret is being changed
			o.Secret, o.Accepted = next, []string{secret}
		}
		servers = append(servers, start(t, o))
	}
	for _, s := range servers {
		if err := s.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		for _, who := range [][2]string{{"", ""}, {"kuji", "another secret"}, {"kuji-operator", "another secret"}, {"kuji-operator", ""}, {"somebody", secret}} {
			if _, err := nats.Connect("nats://"+s.Clients(), nats.UserInfo(who[0], who[1])); err == nil || !strings.HasPrefix(s.Clients(), "127.0.0.1:") {
				t.Errorf("the server lets in %q at %s, error %v", who, s.Clients(), err)
			}
		}
	}
	conn, err := nats.Connect("", servers[0].Connect())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for _, s := range servers {
		for s.NATS().NumRemotes() < len(servers)-1 {
			if ctx.Err() != nil {
				t.Fatalf("%s is connected with %d others", s.NATS().Name(), s.NATS().NumRemotes())
			}
		}
	}
	// The one that leads all of them stops when another one does.
	i := slices.IndexFunc(servers, func(s *embedded.Server) bool { return s.NATS().JetStreamIsLeader() })
	if err := servers[i].Close(); err != nil {
		t.Fatal(err)
	}
	info, err := servers[(i+1)%3].NATS().Jsz(nil)
	if err != nil || info.Meta.Leader == "" || info.Meta.Leader == servers[i].NATS().Name() {
		t.Errorf("the leader has stopped, and %+v, error %v", info.Meta, err)
	}
}

// A node whose address somebody else has says so, instead of waiting for its cluster.
func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", free(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := l.Addr().String()
	o := embedded.Options{Dir: t.TempDir(), MaxStore: 1 << 30, Cluster: "test", Node: "n1", Listen: at, Peers: map[string]string{"n1": at, "n2": free(t)}, Secret: secret}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := embedded.Start(o)
	if err == nil { // the server opens its ports while it runs
		defer s.Close()
		err = s.Ready(ctx)
		if failed := s.Failed(); failed == nil || !strings.Contains(failed.Error(), "in use") {
			t.Errorf("the node says that it failed with %v", failed)
		}
	}
	if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("error %v, want one that says that the address is in use", err)
	}
}

// A node without the secret, or with a certificate of another authority, does not get in.
func TestStrangersStayOut(t *testing.T) {
	a := newAuthority(t)
	for _, c := range []struct {
		name, secret, message string
		mine, theirs          *tls.Config
	}{
		{name: "secret", secret: "another secret altogether", message: "authentication error"},
		{name: "certificate", secret: secret, message: "handshake", mine: a.config(t), theirs: newAuthority(t).config(t)},
	} {
		t.Run(c.name, func(t *testing.T) {
			addresses := map[string]string{"n1": free(t), "n2": free(t)}
			logger, refused := watch(c.message)
			s := start(t, embedded.Options{Cluster: "test", Node: "n1", Listen: addresses["n1"], Peers: map[string]string{"n3": "127.0.0.1:1"},
				Secret: secret, TLS: c.mine, Logger: logger})
			start(t, embedded.Options{Cluster: "test", Node: "n2", Listen: addresses["n2"], Peers: addresses, Secret: c.secret, TLS: c.theirs})
			select {
			case <-refused:
			case <-time.After(time.Minute):
				t.Fatal("nobody was refused")
			}
			if n := s.NATS().NumRoutes(); n > 0 {
				t.Errorf("%d routes to a stranger", n)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]embedded.Options{
		"no directory":       {Cluster: "c", Node: "n"},
		"no node":            {Dir: dir, Cluster: "c"},
		"no cluster":         {Dir: dir, Node: "n"},
		"short secret":       {Dir: dir, Cluster: "c", Node: "n", Listen: "127.0.0.1:0", Secret: "short"},
		"peers, no address":  {Dir: dir, Cluster: "c", Node: "n", Peers: map[string]string{"m": "127.0.0.1:1"}},
		"no port":            {Dir: dir, Cluster: "c", Node: "n", Listen: "127.0.0.1", Secret: secret},
		"no host":            {Dir: dir, Cluster: "c", Node: "n", Listen: ":6222", Secret: secret},
		"wrong port":         {Dir: dir, Cluster: "c", Node: "n", Clients: "127.0.0.1:70000", Secret: secret},
		"clients, no secret": {Dir: dir, Cluster: "c", Node: "n", Clients: "127.0.0.1:0"},
		"clients elsewhere":  {Dir: dir, Cluster: "c", Node: "n", Clients: "0.0.0.0:0", Secret: secret},
		"a peer's port":      {Dir: dir, Cluster: "c", Node: "n", Listen: "127.0.0.1:0", Secret: secret, Peers: map[string]string{"m": "host"}},
	} {
		if s, err := embedded.Start(o); err == nil {
			s.Close()
			t.Errorf("%s: it started", name)
		}
	}
}

// What is stored is there when the server comes back, and another server cannot take the directory.
func TestComesBack(t *testing.T) {
	o := embedded.Options{Dir: t.TempDir(), Cluster: "test", Node: "n1", MaxStore: 1 << 30}
	for i := range 2 {
		s, err := embedded.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := nats.Connect("", s.Connect())
		if err != nil {
			t.Fatal(err)
		}
		js, err := conn.JetStream()
		if err != nil {
			t.Fatal(err)
		}
		if second, err := embedded.Start(o); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("a second server in the same directory: %v, %v, want ErrLocked", second, err)
		}
		if i == 0 {
			if _, err := js.AddStream(&nats.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
				t.Fatal(err)
			}
		}
		ack, err := js.Publish("s", []byte("x"))
		if err != nil || ack.Sequence != uint64(i+1) {
			t.Fatalf("start %d: %+v, %v", i, ack, err)
		}
		conn.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that gives its part of the log up, as it does when its disk is full, says so.
func TestFailed(t *testing.T) {
	s := start(t, embedded.Options{Cluster: "test", Node: "n1"})
	if err := s.Failed(); err != nil {
		t.Fatal(err)
	}
	if err := s.NATS().ShutdownJetStream(); err != nil { // what it does then
		t.Fatal(err)
	}
	if err := s.Failed(); err == nil || !strings.Contains(err.Error(), "full or failed") {
		t.Errorf("it says %v", err)
	}
}

// A server whose part of the list of streams is damaged does not start, and says what helps. It would
// believe that it is alone.
func TestDamagedList(t *testing.T) {
	o := embedded.Options{Dir: t.TempDir(), Cluster: "test", Node: "n1", MaxStore: 1 << 30, Secret: secret,
		Listen: "127.0.0.1:0", Peers: map[string]string{"n2": "127.0.0.1:1", "n3": "127.0.0.1:2"}}
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	snapshots := filepath.Join(o.Dir, "jetstream", "$SYS", "_js_", "_meta_", "snapshots")
	if err := os.WriteFile(filepath.Join(snapshots, "snap.7.7"), bytes.Repeat([]byte("damaged "), 10), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = embedded.Start(o)
	if err == nil {
		s.Close()
	}
	for _, want := range []string{"node n1", "snapshot corrupt", o.Dir, "move it away"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it starts with %v, want an error with %q", err, want)
		}
	}
	if err := os.RemoveAll(o.Dir); err != nil { // the cure, and the lock is free
		t.Fatal(err)
	}
	if s, err = embedded.Start(o); err != nil {
		t.Fatal(err)
	}
	s.Close()
}
