package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/driver/postgres"
	"github.com/kuji-dev/kuji/internal/election"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// backend is what a node runs on: what keeps the cluster's log and board. Nothing above knows which it is.
type backend interface {
	// connect connects to the log. The context bounds how long that may take.
	connect(ctx context.Context, log *slog.Logger) (Log, error)
	// ready waits until this node's part of the log can be used.
	ready(ctx context.Context) error
	// current returns why this node's part of the log does not count yet, or nil.
	current() error
	// failed returns why this node's part of the log can never be used again, or nil.
	failed() error
	stop() error
}

// host is a backend of which each node has a part.
type host interface {
	backend
	// tend looks after this node's part while the node takes part. It is called each second.
	tend(ctx context.Context, d Log, n *Node)
	// heal has damaged copies made again, and returns of what.
	heal() (healed []string, err error)
	// handOver moves what this node's part leads to other nodes.
	handOver()
	// remove takes nodes out of the cluster, which have stopped.
	remove(ctx context.Context, d Log, nodes []string) error
	health() (embedded.Health, error)
	// open returns a connection to this node's part.
	open() (net.Conn, error)
}

// start starts what the node runs on.
func (c *Config) start(data string, log *slog.Logger) (backend, error) {
	if !c.Store.within() {
		if err := c.settle(data); err != nil {
			return nil, err
		}
		lock, err := vfs.OS().Lock(filepath.ToSlash(Dir(data)))
		if errors.Is(err, vfs.ErrLocked) {
			return nil, &kuji.Error{Code: kuji.CodeLocked, Field: "data", Message: "--data " + data + " is in use by another process", Err: err}
		}
		return &elsewhere{c, filepath.Join(Dir(data), "marks"), lock}, err
	}
	server, err := c.StartNATS(data, log)
	if err != nil {
		return nil, err
	}
	return &inside{c, server}, nil
}

// elsewhere is a log that others keep.
type elsewhere struct {
	conf  *Config
	marks string // directory for what a node remembers of logs: see [driver.Witness]
	lock  io.Closer
}

func (b *elsewhere) connect(ctx context.Context, log *slog.Logger) (Log, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	return b.conf.connect(ctx, b.marks, log)
}

// connectTime is how long a node tries to connect before it says that it cannot, and tries again.
const connectTime = 10 * time.Second

// connect connects to a log that others keep.
func (c *Config) connect(ctx context.Context, marks string, log *slog.Logger) (Log, error) {
	if c.Store.Postgres != "" {
		return postgres.Connect(ctx, postgres.Options{URL: c.Store.Postgres, Cluster: c.Name, Marks: marks, Logger: log})
	}
	o := c.options(nil)
	o.Logger = log
	return jetstream.Connect(ctx, o)
}

func (*elsewhere) ready(context.Context) error { return nil }
func (*elsewhere) current() error              { return nil }
func (*elsewhere) failed() error               { return nil }
func (b *elsewhere) stop() error               { return b.lock.Close() }

// inside is a log that NATS servers within the nodes keep.
type inside struct {
	conf   *Config
	server *embedded.Server
}

func (b *inside) connect(ctx context.Context, log *slog.Logger) (Log, error) {
	o := b.conf.options(b.server)
	o.Logger = log
	return jetstream.Connect(ctx, o)
}

func (b *inside) ready(ctx context.Context) error { return b.server.Ready(ctx) }
func (b *inside) current() error                  { return b.server.Current() }
func (b *inside) failed() error                   { return b.server.Failed() }
func (b *inside) stop() error                     { return b.server.Close() }

func (b *inside) heal() ([]string, error) { return b.server.Heal() }

func (b *inside) handOver() { b.server.HandOver() }

func (b *inside) health() (embedded.Health, error) { return b.server.Health() }

func (b *inside) open() (net.Conn, error) { return b.server.InProcessConn() }

func (b *inside) remove(ctx context.Context, d Log, nodes []string) error {
	for _, name := range nodes {
		if err := b.server.Remove(ctx, name); err != nil {
			return err
		}
	}
	return jetstream.Narrow(ctx, d.(*jetstream.Driver), b.conf.replicas())
}

// widenEvery is how often a cluster of five looks for streams that are not on all of its nodes.
const widenEvery = 30 * time.Second

// tend puts the streams of three nodes on all five. The first node does it.
func (b *inside) tend(ctx context.Context, d Log, n *Node) {
	living := n.look().living
	if b.conf.replicas() <= 3 || len(living) == 0 || living[0] != n.conf.Node || !n.at.widening.CompareAndSwap(false, true) {
		return
	}
	n.work.Go(func() {
		defer time.AfterFunc(widenEvery, func() { n.at.widening.Store(false) })
		switch changed, err := jetstream.Widen(ctx, d.(*jetstream.Driver)); {
		case err != nil && ctx.Err() == nil:
			n.log.Warn("cluster: not every stream is on all nodes yet", "node", n.conf.Node, "error", err)
		case changed > 0:
			n.log.Info("cluster: streams get copies on all nodes", "node", n.conf.Node, "streams", changed)
		}
	})
}

// watch has damaged copies made again, and ends the node when it cannot keep its log.
func (n *Node) watch(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		if h, ok := n.backend.(host); ok {
			healed, err := h.heal()
			if len(healed) > 0 {
				n.log.Warn("cluster: copies of streams were damaged: this node fetches them from the others", "node", n.conf.Node, "streams", healed)
			} else if err != nil && err.Error() != said {
				said = err.Error()
				n.log.Warn("cluster: a damaged copy", "node", n.conf.Node, "error", err)
			}
		}
		if err := n.backend.failed(); err != nil {
			n.ended <- fmt.Errorf("node %s: %w", n.conf.Node, err)
			return
		}
		step.Pause(ctx, election.RenewEvery)
	}
}
