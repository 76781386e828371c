//go:build unix

package backends

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/internal/loadtest"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// step is how often something is looked at that nobody tells.
const step = 10 * time.Millisecond

// patience bounds each call of the measuring's own client.
const patience = 2 * time.Minute

// load measures each shape at the leader of a realm of its own.
func (r *run) load(ctx context.Context, b backend) error {
	s, err := r.newSite(ctx, b, r.serverFlags()...)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }()
	if err := r.rest(ctx, b); err != nil {
		return err
	}
	for _, shape := range []string{"stream", "http", "grpc", "json"} {
		res, err := r.shape(ctx, s, shape)
		if err != nil {
			return fmt.Errorf("%s: shape %s: %w", b.name, shape, err)
		}
		switch shape {
		case "stream":
			r.book(b, batched, res.DrawsPerSecond)
			r.book(b, batchedBytes, res.WrittenPerDraw)
			r.book(b, batchedCPU, res.CPUPerDraw)
		case "grpc":
			r.book(b, grpc, res.DrawsPerSecond)
			r.book(b, grpc50, res.P50)
		case "http":
			r.book(b, single, res.DrawsPerSecond)
			r.book(b, single50, res.P50)
			r.book(b, single99, res.P99)
			r.book(b, singleBytes, res.WrittenPerDraw)
			r.book(b, singleCPU, res.CPUPerDraw)
		case "json":
			r.book(b, alone50, res.P50)
		}
	}
	return nil
}

// rest measures what servers use while nobody asks anything.
func (r *run) rest(ctx context.Context, b backend) error {
	before, err := used()
	if err != nil {
		return err
	}
	if err := pause(ctx, 2*r.o.duration); err != nil {
		return err
	}
	after, err := used()
	if err != nil {
		return err
	}
	second := 2 * r.o.duration.Seconds()
	r.book(b, restCPU, 100*(after.CPU-before.CPU).Seconds()/second)
	r.book(b, restBytes, float64(after.Written-before.Written)/1000/second)
	return nil
}

// serverFlags are those of servers under load.
func (r *run) serverFlags() []string {
	if r.o.profile == "" {
		return nil
	}
	return []string{"--pprof", "127.0.0.1:0"}
}

// shape measures one shape. A realm that changed its leader meanwhile ends its streams: then it is measured again.
func (r *run) shape(ctx context.Context, s *site, shape string) (res loadtest.Result, err error) {
	server := func(n *node) *loadtest.Server {
		return &loadtest.Server{URL: n.ready.URL, Pprof: n.ready.Pprof, Used: used, Stop: func() error { return nil }}
	}
	o := loadtest.Options{
		Duration: r.o.duration, Players: r.o.players, Entries: 100, Shapes: []string{shape}, Connections: 64, Dir: s.dir,
		Start: func(context.Context, []string) (*loadtest.Server, error) { return server(s.nodes[0]), nil },
		Leader: func(ctx context.Context, realm string) (*loadtest.Server, error) {
			n, err := s.leader(ctx, realm)
			if err != nil {
				return nil, err
			}
			return server(n), nil
		},
		Say: func(string, ...any) {},
		Bar: func(context.Context, time.Duration, func() string) func() { return func() {} },
	}
	if r.o.profile != "" {
		o.Profile = filepath.Join(r.o.profile, s.backend.name)
	}
	for range 3 {
		var report *loadtest.Report
		if report, err = loadtest.Run(ctx, o, ""); err == nil {
			r.machine = report.Machine
			return report.Results[0], nil
		}
		r.log("%s: %s: %v", s.backend.name, shape, err)
	}
	return res, err
}

// game makes a realm with a pool, and returns a client of the nodes that run.
func (r *run) game(ctx context.Context, s *site, realm string) (*client.Client, error) {
	c, err := client.New(s.urls(), client.Options{Timeout: patience})
	if err != nil {
		return nil, err
	}
	const yaml = `kuji: 1
name: Backends
items: {sticker: {}, shirt: {}, bike: {}}
idempotency: {count: 4194304, age: 1h}
pools:
  box:
    entries:
      - {id: a, weight: 90, reward: {items: {sticker: 1}}}
      - {id: b, weight: 9, reward: {items: {shirt: 1}}}
      - {id: c, weight: 1, reward: {items: {bike: 1}}}
`
	if _, err := c.Admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: realm}); err != nil {
		return nil, fmt.Errorf("create realm %s: %w", realm, err)
	}
	_, err = c.Admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: realm, Yaml: []byte(yaml)})
	return c, err
}

// takeover kills the realm's leader and measures how long it takes until a draw that was sent afterwards, to
// another node, is acknowledged. A server alone is started again at once, as a supervisor does.
func (r *run) takeover(ctx context.Context, b backend) error {
	s, err := r.newSite(ctx, b)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }()
	const realm = "takeover"
	c, err := r.game(ctx, s, realm)
	if err != nil {
		return err
	}
	if err := fill(ctx, c, realm, r.o.players); err != nil {
		return err
	}
	for range r.o.kills {
		took, err := s.kill(ctx, realm)
		if err != nil {
			return fmt.Errorf("%s: after a kill: %w", b.name, err)
		}
		r.book(b, back, took.Seconds())
		if err := pause(ctx, r.o.settle); err != nil {
			return err
		}
	}
	return nil
}

// kill kills a realm's leader, measures, and starts it again.
func (s *site) kill(ctx context.Context, realm string) (took time.Duration, err error) {
	n, err := s.leader(ctx, realm)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	n.end(syscall.SIGKILL)
	alone := len(s.nodes) == 1
	if alone {
		if err := n.start(ctx); err != nil {
			return 0, err
		}
	}
	c, err := client.New(s.urls(), client.Options{Timeout: patience, Transport: &http.Transport{}})
	if err != nil {
		return 0, err
	}
	if _, err := c.Draw(ctx, &kujiv1.DrawRequest{Realm: realm, Pool: "box", Player: "after"}); err != nil {
		return 0, err
	}
	took = time.Since(began)
	if alone {
		return took, nil
	}
	return took, n.start(ctx)
}

// fill makes draws in a realm, in batches of 1,000.
func fill(ctx context.Context, c *client.Client, realm string, draws int) error {
	stream := c.Draws(ctx)
	defer stream.Close()
	const batch = 1000
	var both errgroup.Group
	both.Go(func() error {
		for at := 0; at < draws; at += batch {
			req := &kujiv1.StreamDrawsRequest{Realm: realm, Pools: []string{"box"}}
			for i := at; i < min(at+batch, draws); i++ {
				req.Players = append(req.Players, "player-"+strconv.Itoa(i%100_000))
				req.RequestIds = append(req.RequestIds, realm+"-"+strconv.Itoa(i))
			}
			if err := stream.Send(req); err != nil {
				return fmt.Errorf("send draws: %w", err)
			}
		}
		return nil
	})
	both.Go(func() error {
		for at := 0; at < draws; at += batch {
			if _, err := stream.Receive(); err != nil {
				return fmt.Errorf("receive draws: %w", err)
			}
		}
		return nil
	})
	return both.Wait()
}

// recovery stops the servers after many events without a snapshot, and measures how long it takes from the
// start of one, or of as many as need each other, until a draw is acknowledged.
func (r *run) recovery(ctx context.Context, b backend) error {
	s, err := r.newSite(ctx, b, "--snapshot-every", "-1")
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }()
	const realm = "recovery"
	c, err := r.game(ctx, s, realm)
	if err != nil {
		return err
	}
	if err := fill(ctx, c, realm, r.o.events); err != nil {
		return err
	}
	s.endAll(syscall.SIGTERM)
	began := time.Now()
	if b.voting {
		err = s.startAll(ctx)
	} else {
		err = s.nodes[0].start(ctx)
	}
	if err != nil {
		return err
	}
	again, err := client.New(s.urls(), client.Options{Timeout: patience})
	if err != nil {
		return err
	}
	if _, err := again.Draw(ctx, &kujiv1.DrawRequest{Realm: realm, Pool: "box", Player: "after"}); err != nil {
		return fmt.Errorf("%s: after recovery: %w", b.name, err)
	}
	r.book(b, recovered, time.Since(began).Seconds())
	return nil
}
