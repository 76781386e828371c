package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"connectrpc.com/connect"
)

// An operator asks a node here to lead nothing, or to take other nodes out of the cluster.
const (
	drainPath  = "/cluster/drain"
	removePath = "/cluster/remove"
)

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
	if h, ok := n.backend.(host); ok && drained {
		h.handOver()
	}
}

// removeNodes takes nodes out of the cluster. The others keep all realms, on as many nodes as are left.
func removeNodes(ctx context.Context, n *Node, nodes []string) error {
	h, ok := n.backend.(host)
	if !ok {
		return errors.New("the nodes keep no part of the log: a node that has stopped has left")
	}
	for _, name := range nodes {
		if _, ok := n.conf.Peers[name]; ok {
			return fmt.Errorf("node %s is one of the --peers of node %s: restart that one without it first", name, n.conf.Node)
		}
	}
	d, err := h.connect(ctx, n.log)
	if err != nil {
		return err
	}
	err = h.remove(ctx, d, nodes)
	if err == nil {
		n.log.Info("cluster: nodes are no members any more", "node", n.conf.Node, "removed", nodes)
	}
	return errors.Join(err, d.Close())
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
	all := c.Names()
	for _, name := range all {
		if s := c.Ask(ctx, name); !s.Reached() || s.Behind != "" {
			return refused("node %s has not caught up: %s%s", name, s.Behind, s.Why)
		}
	}
	return c.order(ctx, all[0], removePath, url.Values{"node": nodes})
}

// order makes a node do something.
func (c *Client) order(ctx context.Context, node, path string, query url.Values) error {
	resp, err := c.send(ctx, http.MethodPost, node, path+"?"+query.Encode(), nil)
	if err != nil {
		return orderError(node, err)
	}
	return resp.Body.Close()
}

// orderError says which node did not do something.
func orderError(node string, err error) error {
	if _, no := errors.AsType[*RefusedError](err); no {
		return refused("node %s: %v", node, err)
	}
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf("node %s: %w", node, err))
}
