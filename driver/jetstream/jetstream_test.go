package jetstream_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/internal/proxy"
)

const secret = "a secret of the tests"

// patience is how long a test waits for servers.
const patience = time.Minute

// cluster is servers in this process, and a proxy to a server for each of two nodes.
type cluster struct {
	options []embedded.Options
	servers []*embedded.Server
	proxies [2]*proxy.Proxy
	worlds  int
}

func startCluster(t testing.TB, n int) *cluster {
	t.Helper()
	c := &cluster{}
	peers := map[string]string{}
	if n > 1 {
		for i, address := range freeAddresses(t, n) {
			peers[fmt.Sprint("n", i+1)] = address
		}
	}
	for i := range n {
		name := fmt.Sprint("n", i+1)
		o := embedded.Options{Dir: t.TempDir(), Cluster: "test", Node: name, Clients: "127.0.0.1:0", MaxStore: 1 << 30, Secret: secret}
		if n > 1 {
			o.Listen, o.Peers = peers[name], peers
		}
		if os.Getenv("KUJI_TEST_LOG") != "" {
			o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
		}
		c.options = append(c.options, o)
		s, err := embedded.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		c.servers = append(c.servers, s)
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			s.Close()
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, s := range c.servers {
		if err := s.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range c.proxies {
		p, err := proxy.Listen("127.0.0.1:0", c.servers[i%n].Clients())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		c.proxies[i] = p
	}
	return c
}

// freeAddresses returns addresses at which servers can listen.
func freeAddresses(t testing.TB, n int) []string {
	t.Helper()
	addresses, err := proxy.Addresses(n)
	if err != nil {
		t.Fatal(err)
	}
	return addresses
}

// world is a cluster's name of its own on the same servers.
func (c *cluster) world(testing.TB) *drivertest.World {
	c.worlds++
	name := fmt.Sprint("w", c.worlds)
	w := &drivertest.World{
		Open: func(t testing.TB, node int) driver.Driver {
			t.Helper()
			d, err := jetstream.Connect(t.Context(), jetstream.Options{
				URLs:     []string{"nats://" + c.proxies[node].Addr()},
				Connect:  []nats.Option{nats.UserInfo("kuji", secret)},
				Cluster:  name,
				Replicas: len(c.servers),
				Logger:   c.options[0].Logger,
			})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Hold: c.hold,
		SetFull: func(t testing.TB, full bool) {
			limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1}
			if full {
				limits.MaxStore = 1
			}
			for _, s := range c.servers {
				if err := s.NATS().GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": limits}); err != nil {
					t.Fatal(err)
				}
			}
		},
		Patience: patience,
	}
	if len(c.servers) == 1 { // more of them have the entry more than once
		w.Damage = func(t testing.TB, realm string, at driver.Cursor) { c.damage(t, "KUJI_"+name+"_LOG_"+realm) }
	} else {
		w.Failover = func(t testing.TB, realm string) {
			if realm == "" {
				c.failover(t, "KUJI_"+name+"_LEASES")
				return
			}
			c.failover(t, "KUJI_"+name+"_LOG_"+realm)
		}
	}
	return w
}

// streamsOf asks a server about streams.
func streamsOf(t testing.TB, s *embedded.Server) (*nats.Conn, natsjs.JetStream) {
	t.Helper()
	conn, err := nats.Connect("", s.Connect())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := natsjs.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn, js
}

// failover makes the leader of a stream step down, and waits for another one.
func (c *cluster) failover(t testing.TB, stream string) {
	t.Helper()
	conn, js := streamsOf(t, c.servers[0])
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	leader := func() string {
		once, cancel := context.WithTimeout(ctx, time.Second) // a server that stops leading may not answer
		defer cancel()
		s, err := js.Stream(once, stream)
		if err != nil {
			return ""
		}
		return s.CachedInfo().Cluster.Leader
	}
	old := leader()
	if _, err := conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil); err != nil {
		t.Fatal(err)
	}
	for now := leader(); now == "" || now == old; now = leader() {
		if ctx.Err() != nil {
			t.Fatalf("%s led %s, and now %q does", old, stream, now)
		}
	}
}

// restart stops a server, does something to what it has stored, and starts it where it was.
func (c *cluster) restart(t testing.TB, i int, meanwhile func(dir string)) {
	t.Helper()
	c.options[i].Clients = c.servers[i].Clients()
	if err := c.servers[i].Close(); err != nil {
		t.Fatal(err)
	}
	meanwhile(c.options[i].Dir)
	s, err := embedded.Start(c.options[i])
	if err != nil {
		t.Fatal(err)
	}
	c.servers[i] = s
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// damage flips a bit of the fifth entry of a stream that drivertest has filled.
func (c *cluster) damage(t testing.TB, stream string) {
	t.Helper()
	c.restart(t, 0, func(dir string) {
		found := false
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".blk" || !strings.Contains(path, stream) {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if i := bytes.Index(data, []byte("entry 4 behind")); i >= 0 {
				found = true
				data[i] ^= 1
				return os.WriteFile(path, data, 0o600)
			}
			return nil
		})
		if err != nil || !found {
			t.Fatalf("damage an entry in %s: found %v, error %v", dir, found, err)
		}
	})
}

func (c *cluster) hold(node int, way drivertest.Way) drivertest.Hold {
	ways := map[drivertest.Way]proxy.Way{drivertest.Requests: proxy.ToServer, drivertest.Answers: proxy.ToClient}
	return &hold{proxy: c.proxies[node], way: ways[way], caught: c.proxies[node].Hold(ways[way])}
}

// hold implements drivertest.Hold.
type hold struct {
	proxy  *proxy.Proxy
	way    proxy.Way
	caught <-chan struct{}
}

func (h *hold) Caught() <-chan struct{} { return h.caught }
func (h *hold) Deliver()                { h.proxy.Release(h.way) }
func (h *hold) Drop() {
	h.proxy.Cut()
	h.proxy.Release(h.way)
}

func TestOneServer(t *testing.T) {
	drivertest.Run(t, startCluster(t, 1).world)
}

func TestThreeServers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three servers")
	}
	drivertest.Run(t, startCluster(t, 3).world)
}
