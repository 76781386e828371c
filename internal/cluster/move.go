package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/driver/jetstream"
)

// An operator asks a node here to lead nothing, or to take other nodes out of the cluster.
const (
	drainPath  = "/cluster/drain"
	removePath = "/cluster/remove"
)

// widenEvery is how often a cluster of five looks for streams that are not on all of its nodes.
const widenEvery = 30 * time.Second

// widen puts the streams of three nodes on all five. The first node does it.
func (n *Node) widen(ctx context.Context, d *jetstream.Driver) {
	living := n.look().living
	if n.conf.replicas() <= 3 || len(living) == 0 || living[0] != n.conf.Node || !n.at.widening.CompareAndSwap(false, true) {
		return
	}
	n.work.Go(func() {
		defer time.AfterFunc(widenEvery, func() { n.at.widening.Store(false) })
		switch changed, err := jetstream.Widen(ctx, d); {
		case err != nil && ctx.Err() == nil:
			n.log.Warn("cluster: not every stream is on all nodes yet", "node", n.conf.Node, "error", err)
		case changed > 0:
			n.log.Info("cluster: streams get copies on all nodes", "node", n.conf.Node, "streams", changed)
		}
	})
}

// serveMove does what an operator asks of this node.
func (n *Node) serveMove(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == removePath {
		if err := removeNodes(r.Context(), n, r.URL.Query()["node"]); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
		return
	}
	n.mu.Lock()
	drained := r.URL.Query().Get("undo") == ""
	n.core.Drain(drained)
	n.mu.Unlock()
	n.log.Info("cluster: an operator moves what this node leads", "node", n.conf.Node, "drained", drained)
	n.hurry()
	if drained && n.nats != nil {
		n.nats.HandOver()
	}
}

// removeNodes takes nodes out of the cluster. The others keep all realms, on as many nodes as are left.
func removeNodes(ctx context.Context, n *Node, nodes []string) error {
	if n.nats == nil {
		return errors.New("the log is kept by NATS servers of your own: remove theirs there")
	}
	for _, name := range nodes {
		if _, ok := n.conf.Peers[name]; ok {
			return fmt.Errorf("node %s is one of the --peers of node %s: restart that one without it first", name, n.conf.Node)
		}
	}
	for _, name := range nodes {
		if err := n.nats.Remove(ctx, name); err != nil {
			return err
		}
		n.log.Info("cluster: a node is no member any more", "node", n.conf.Node, "removed", name)
	}
	d, err := n.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(jetstream.Narrow(ctx, d, n.conf.replicas()), d.Close())
}

// Drain makes a node lead nothing, or lets it lead again.
func (c *Client) Drain(ctx context.Context, node string, undo bool) error {
	query := url.Values{}
	if undo {
		query.Set("undo", "1")
	}
	return c.order(ctx, node, drainPath, query)
}

// Remove takes nodes that have stopped out of the cluster. All that stay must have caught up.
func (c *Client) Remove(ctx context.Context, nodes []string) error {
	for _, name := range c.conf.Names() {
		if s := c.Ask(ctx, name); !s.Reached() || s.Behind != "" {
			return refused("node %s has not caught up: %s%s", name, s.Behind, s.Why)
		}
	}
	return c.order(ctx, c.conf.Names()[0], removePath, url.Values{"node": nodes})
}

// order makes a node do something.
func (c *Client) order(ctx context.Context, node, path string, query url.Values) error {
	resp, err := c.send(ctx, http.MethodPost, node, path+"?"+query.Encode())
	if _, no := errors.AsType[*RefusedError](err); no {
		return refused("node %s: %v", node, err)
	}
	if err != nil {
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("node %s: %w", node, err))
	}
	return resp.Body.Close()
}
