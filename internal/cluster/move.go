package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
)

// Operators move what nodes lead, and take nodes out of a cluster. They ask a node for it, at the port for the
// other nodes, with the cluster's key.
const (
	drainPath  = "/cluster/drain"
	removePath = "/cluster/remove"
)

// widenEvery is how often a cluster of five looks for streams that are not on all of its nodes.
const widenEvery = 30 * time.Second

// widen puts the streams of three nodes on all five. The first node does it.
func (n *node) widen(ctx context.Context, d *jetstream.Driver) {
	living := n.look().living
	if n.f.replicas() <= 3 || len(living) == 0 || living[0] != n.name || !n.widening.CompareAndSwap(false, true) {
		return
	}
	n.work.Go(func() {
		defer time.AfterFunc(widenEvery, func() { n.widening.Store(false) })
		switch changed, err := jetstream.Widen(ctx, d); {
		case err != nil && ctx.Err() == nil:
			n.log.Warn("cluster: not every stream is on all nodes yet", "node", n.name, "error", err)
		case changed > 0:
			n.log.Info("cluster: streams get copies on all nodes", "node", n.name, "streams", changed)
		}
	})
}

// serveMove does what an operator asks of this node.
func (n *node) serveMove(w http.ResponseWriter, r *http.Request) {
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
	n.drain = r.URL.Query().Get("undo") == ""
	drained := n.drain
	n.mu.Unlock()
	n.log.Info("cluster: an operator moves what this node leads", "node", n.name, "drained", drained)
	n.hurry()
	if drained && n.nats != nil {
		n.nats.HandOver()
	}
}

// removeNodes takes nodes out of the cluster. What they kept is on the others, as many as the cluster then has.
func removeNodes(ctx context.Context, n *node, nodes []string) error {
	if n.nats == nil {
		return errors.New("the log is kept by NATS servers of your own: remove theirs there")
	}
	for _, name := range nodes {
		if _, ok := n.f.hosts[name]; ok {
			return fmt.Errorf("node %s is one of the --peers of node %s: restart that one without it first", name, n.name)
		}
	}
	for _, name := range nodes {
		if err := n.nats.Remove(ctx, name); err != nil {
			return err
		}
		n.log.Info("cluster: a node is no member any more", "node", n.name, "removed", name)
	}
	d, err := n.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(jetstream.Narrow(ctx, d, n.f.replicas()), d.Close())
}

func (a *app) clusterDrainCommand() *cobra.Command {
	var f clusterFlags
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain NODE --cluster NAME --peers NAME=HOST,... --cluster-key FILE",
		Short: "Move what a node leads to the other nodes",
		Long: `Drain makes a node hand over every realm that it leads. The node then leads none until
you restart it or run drain with --undo. It still follows, keeps its copies and passes
requests on. Clients see a pause. Use it before you stop a machine, or to move leaders
by hand.`,
		Example: `  kuji cluster drain n1 --cluster shop --peers n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 \
      --cluster-key cluster.key`,
		Args: exactArgs("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			if undo {
				query.Set("undo", "1")
			}
			return a.askToMove(cmd.Context(), &f, args[0], drainPath, query)
		},
	}
	f.member(cmd)
	cmd.Flags().BoolVar(&undo, "undo", false, "let the node lead again")
	return cmd
}

func (a *app) clusterRemoveCommand() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "remove NODE... --cluster NAME --peers NAME=HOST,... --cluster-key FILE",
		Short: "Take stopped nodes out of a cluster",
		Long: `Remove takes two of five nodes out of a cluster for good. First stop them, and restart
the others without them in --peers. The others must be up and have caught up. Each
realm is then on three nodes instead of five. A node that was removed must not start
again with its old directory.`,
		Example: `  kuji cluster remove n4 n5 --cluster shop --peers n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 \
      --cluster-key cluster.key`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkMember(); err != nil {
				return err
			}
			for _, name := range args {
				if _, ok := f.hosts[name]; ok || driver.CheckRealm(name) != nil {
					return usageError{fmt.Errorf("node %q: expected the name of a node that is not one of --peers", name)}
				}
			}
			return a.askToMove(cmd.Context(), &f, f.names()[0], removePath, url.Values{"node": args})
		},
	}
	f.member(cmd)
	return cmd
}

// askToMove asks a node to do something. To remove others, all of --peers must have caught up.
func (a *app) askToMove(ctx context.Context, f *clusterFlags, node, path string, query url.Values) error {
	if err := f.checkMember(); err != nil {
		return err
	}
	p, ok := f.hosts[node]
	if !ok {
		return usageError{fmt.Errorf("node %q: expected one of --peers: %s", node, strings.Join(f.names(), ", "))}
	}
	keys, err := a.readClusterKeys(f.keyFile)
	if err != nil {
		return err
	}
	conf, err := keys.tls(f.name, "")
	if err != nil {
		return err
	}
	client := &http.Client{Transport: peerTransport(conf)}
	if path == removePath {
		for _, name := range f.names() {
			n := askNode(ctx, client, name, f.hosts[name])
			if n.State == stateUnreachable || n.Behind != "" {
				return refusedError{fmt.Sprintf("node %s has not caught up: %s%s", name, n.Behind, n.Why)}
			}
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+p.requests()+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("node %s: %w", node, err))
	}
	defer resp.Body.Close() // read only: nothing to lose
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // what came of it will do
		return refusedError{fmt.Sprintf("node %s: %s", node, strings.TrimSpace(string(why)))}
	}
	done := map[string][]string{"node": {node}}
	if path == removePath {
		done = map[string][]string{"removed": slices.Clone(query["node"])}
	}
	return a.print(done, func(w io.Writer) { fprintf(w, "done\n") })
}
