//go:build unix

package cli

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/internal/pgtest"
	"github.com/kuji-dev/kuji/verify"
)

var failoverStore = flag.String("failoverstore", "", "what keeps the log of TestClusterFailover: postgres; nothing: the nodes")

// keepIn lets a store keep the log of a cluster that does not run yet; "": its nodes keep it.
func (c *trio) keepIn(store string) {
	c.t.Helper()
	switch store {
	case "":
	case "postgres":
		server := pgtest.Start(c.t, pgtest.Options{TCP: true, Fsync: true})
		c.store = map[string]string{}
		for _, name := range c.flags.Names() {
			c.store[name] = server.URL()
		}
	default:
		c.t.Fatalf("store %q: want postgres", store)
	}
}

// openStore opens the log that a store keeps, as anybody reads it, for as long as the test takes.
func (c *trio) openStore(ctx context.Context, url string) driver.Driver {
	c.t.Helper()
	conf := c.flags.Config
	var err error
	if conf.Store, _, err = cluster.ParseStore(url); err != nil {
		c.t.Fatal(err)
	}
	d, err := conf.OpenLog(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { d.Close() })
	return d
}

// verify runs the verifier over what is stored.
func (c *trio) verify(ctx context.Context, draws uint64) {
	c.t.Helper()
	if c.store != nil {
		c.proves(c.openStore(ctx, c.store["n1"]), draws)
		return
	}
	var servers []*embedded.Server
	for _, name := range c.flags.Names() {
		f := c.flags
		f.Node = name
		s, err := f.StartNATS(filepath.Join(c.dir, name), slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err != nil {
			c.t.Fatal(err)
		}
		defer s.Close()
		servers = append(servers, s)
	}
	if err := servers[0].Ready(ctx); err != nil {
		c.t.Fatal(err)
	}
	o := jetstream.Options{Cluster: "shop", Patience: clusterPatience}
	o.Connect = append(o.Connect, servers[0].Connect())
	d, err := jetstream.Connect(ctx, o)
	if err != nil {
		c.t.Fatal(err)
	}
	defer d.Close()
	c.proves(d, draws)
}

// proves runs the verifier over a log.
func (c *trio) proves(d driver.Driver, draws uint64) {
	c.t.Helper()
	key, _ := c.flags.Seals()
	report, err := verify.Driver(d, "default", verify.Options{Keys: [][32]byte{key}})
	if err != nil {
		c.t.Fatal(err)
	}
	if report.Draws != draws+streamed {
		c.t.Errorf("the log has %d draws, want %d", report.Draws, draws+streamed)
	}
	if len(report.Epochs) < 2 {
		c.t.Errorf("%d epochs: nobody took over", len(report.Epochs))
	}
	for i, e := range report.Epochs {
		if !e.Revealed && (e.Lost || i < len(report.Epochs)-1) {
			c.t.Errorf("epoch %d is not proven: %+v", e.Epoch, e)
		}
	}
}
