package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/cluster"
)

// clusterFlags say which cluster a command is about, and which node of it. Without a name, it is about none.
type clusterFlags struct {
	cluster.Config
	store               string
	peers               []string
	keyFile, peerListen string

	cmd *cobra.Command
}

// member adds the flags that say which cluster is meant.
func (f *clusterFlags) member(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "`URL` of what keeps the log: "+cluster.StoreForms+" (default: the data directory, or those of the nodes)")
	flags.StringVar(&f.Name, "cluster", "", "`name` of the cluster, the same on every node (default with --store: "+defaultCluster+")")
	flags.StringSliceVar(&f.peers, "peers", nil, "every node of a cluster without --store, this one too, as `NAME=HOST[:PORT],...`; nodes use PORT (default 6222) and the port after it")
	flags.StringVar(&f.keyFile, "cluster-key", "", "`file` with the cluster's key, the same on every node: see \"kuji cluster keygen --help\"")
}

// add adds the flags of a node.
func (f *clusterFlags) add(cmd *cobra.Command) {
	f.member(cmd)
	flags := cmd.Flags()
	flags.Lookup("cluster").Usage += "; makes this process a node of it"
	flags.StringVar(&f.Node, "node", "", "`name` of this node, one of --peers; a data directory always belongs to the same node (default with --store: the machine's name and the port)")
	flags.StringVar(&f.peerListen, "peer-listen", "", "listen for the other nodes at this `HOST[:PORT]`: with --store (default: port "+storePort+" of all interfaces), or where it is not the address in --peers")
	flags.StringVar(&f.Address, "peer-address", "", "with --store, the `HOST[:PORT]` at which the other nodes reach this one (default: the address from which it reaches the store)")
	flags.DurationVar(&f.Waits.Lease, "lease", 0, "how long the other nodes wait for this one when it is silent, before they take its realms, at least 3s (default 3s)")
	flags.DurationVar(&f.Waits.Leader, "leader-wait", 0, "how long a request waits while no node leads its realm (default 15s; 1m with a database, which may fail over)")
}

// defaultCluster is the name of a cluster that has a store of its own, and storePort where its nodes listen
// for each other.
const defaultCluster, storePort = "kuji", "6223"

// settle reads --store. A directory goes into data.
func (f *clusterFlags) settle(data *string) (err error) {
	if f.store == "" {
		return nil
	}
	dir := ""
	if f.Store, dir, err = cluster.ParseStore(f.store); err != nil {
		return usagef("--store: %w", err) // without its value, which may have a password
	}
	switch {
	case dir == "":
		f.Name = cmp.Or(f.Name, defaultCluster)
	case *data != "":
		return usagef("--store disk:DIR with --data: expected one of them")
	default:
		*data = dir
	}
	return nil
}

// single are the flags of serve that mean nothing on a cluster.
var single = []string{"catalog", "realm", "accept-warnings", "catalog-over", "sync", "sync-every", "segment-size", "must-exist"}

// check checks the flags of serve. It refuses a directory of the other kind: its realms would seem lost.
func (f *clusterFlags) check(data string) error {
	if f.Name == "" {
		for _, name := range []string{"node", "peers", "peer-listen", "peer-address", "lease", "leader-wait", "cluster-key"} {
			if f.cmd.Flags().Changed(name) {
				return usagef("--%s without --cluster or --store: expected the name of a cluster, or the URL of its store", name)
			}
		}
		if _, err := os.Stat(cluster.Dir(data)); err == nil {
			return usagef("--data %s is a cluster's: expected --cluster", data)
		}
		return refuseBackup(data)
	}
	for _, name := range single {
		if f.cmd.Flags().Changed(name) {
			return usagef("--%s with --cluster: %s", name, choose(slices.Contains(single[:4], name),
				"apply catalogs with \"kuji apply\", else each node that takes over would apply its own",
				"a cluster always fsyncs, and keeps its log on all nodes"))
		}
	}
	if err := f.checkMember(); err != nil {
		return err
	}
	if err := f.checkNode(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(data, "realms")); err == nil {
		return usagef("--data %s has realms of a server that is alone: expected another directory", data)
	}
	return refuseInside("data", data)
}

// checkNode checks what is said of this node.
func (f *clusterFlags) checkNode() error {
	if f.Waits.Lease != 0 {
		if err := within("lease", f.Waits.Lease, 3*time.Second, 5*time.Minute); err != nil {
			return err
		}
	}
	if f.Waits.Leader != 0 {
		if err := within("leader-wait", f.Waits.Leader, time.Second, 10*time.Minute); err != nil {
			return err
		}
	}
	if f.External() {
		if f.Node != "" && driver.CheckRealm(f.Node) != nil {
			return usagef("--node %q: expected 1 to 64 of a-z, 0-9, '-' and '_', starting with a letter or digit", f.Node)
		}
		address, ok := hostPort(f.peerListen)
		if !ok {
			return usagef("--peer-listen %q: expected HOST or HOST:PORT", f.peerListen)
		}
		f.peerListen = address
		return nil
	}
	if f.Address != "" {
		return usagef("--peer-address without --store: --peers says where the nodes are")
	}
	if _, ok := f.Peers[f.Node]; !ok {
		return usagef("--node %q: expected one of --peers: %s", f.Node, strings.Join(f.Names(), ", "))
	}
	if f.peerListen != "" {
		var err error
		if f.Listen, err = cluster.ParsePeer(f.peerListen); err != nil {
			return usagef("--peer-listen %q: %w", f.peerListen, err)
		}
	}
	return nil
}

// hostPort adds the port where nodes with a store listen for each other to an address without one.
func hostPort(address string) (_ string, ok bool) {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address, true
	}
	host := strings.Trim(address, "[]")
	return net.JoinHostPort(host, storePort), !strings.Contains(host, ":") || net.ParseIP(host) != nil
}

func (f *clusterFlags) checkMember() error {
	if err := driver.CheckRealm(f.Name); err != nil {
		return usagef("--cluster %q: expected 1 to 64 of a-z, 0-9, '-' and '_', starting with a letter or digit", f.Name)
	}
	if f.keyFile == "" {
		return usagef("missing flag --cluster-key: make one with \"kuji cluster keygen FILE\"")
	}
	if f.External() && len(f.peers) == 0 {
		return nil
	}
	peers, err := cluster.ParsePeers(f.peers)
	if err != nil {
		return usagef("--peers: %w", err)
	}
	f.Peers = peers
	return nil
}

func (a *app) readClusterKeys(file string) (cluster.Keys, error) {
	data, err := a.readFile(file, maxSecret)
	if err != nil {
		return nil, err
	}
	keys, err := cluster.ParseKeys(data)
	if err != nil {
		return nil, usagef("--cluster-key %s: %w; see \"kuji cluster keygen --help\"", file, err)
	}
	return keys, nil
}

// writeClusterKey makes a key and writes it to a file that is not there yet.
func writeClusterKey(file string) (err error) {
	f, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return refusedError{fmt.Sprintf("%s is there already: a cluster that loses its key cannot prove its draws, so it stays", file)}
	}
	if err != nil {
		return usageError{err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.WriteString(f, cluster.NewKey()); err != nil {
		return err
	}
	return f.Sync()
}

// clusterClient checks the flags of member, reads the key, and returns a client of the nodes.
func (a *app) clusterClient(ctx context.Context, f *clusterFlags) (c *cluster.Client, err error) {
	none := ""
	if err := f.settle(&none); err != nil {
		return nil, err
	}
	if none != "" {
		return nil, usagef("--store disk:DIR: expected the URL of what keeps a cluster's log, or --peers")
	}
	if err := f.checkMember(); err != nil {
		return nil, err
	}
	if f.Keys, err = a.readClusterKeys(f.keyFile); err != nil {
		return nil, err
	}
	return f.Client(ctx)
}

// onCluster completes a command that asks nodes. Its use line leaves out the flags of member.
func (a *app) onCluster(cmd *cobra.Command, do func(ctx context.Context, f *clusterFlags, c *cluster.Client, args []string) error) *cobra.Command {
	f := &clusterFlags{}
	f.member(cmd)
	cmd.Use += " --cluster NAME --peers NAME=HOST,...|--store URL --cluster-key FILE"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.clusterClient(cmd.Context(), f)
		if err != nil {
			return err
		}
		return do(cmd.Context(), f, client, args)
	}
	return cmd
}

func clusterCommand(a *app) *cobra.Command {
	return group("cluster", "Make a cluster's key, show its nodes, and bring it back",
		clusterKeygenCommand(a), clusterStatusCommand(a), clusterForceCommand(a), clusterDrainCommand(a), clusterRemoveCommand(a), clusterLossCommand(a))
}

func clusterKeygenCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make the key of a cluster",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := writeClusterKey(args[0]); err != nil {
				return err
			}
			return a.print(map[string]string{"file": args[0]}, func(w io.Writer) { fprintf(w, "wrote %s\n", args[0]) })
		},
	}
}

type clusterJSON struct {
	Cluster string              `json:"cluster"`
	Nodes   []cluster.Status    `json:"nodes"`
	Realms  []cluster.RealmLead `json:"realms"`
}

func clusterStatusCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show the nodes of a cluster, who is ready, and who leads which realm"}
	timeout := cmd.Flags().Duration("timeout", 5*time.Second, "how long to wait for the nodes")
	return a.onCluster(cmd, func(ctx context.Context, f *clusterFlags, c *cluster.Client, _ []string) error {
		if *timeout <= 0 {
			return usagef("--timeout %v: expected more than 0", *timeout)
		}
		ctx, cancel := context.WithTimeout(ctx, *timeout)
		defer cancel()
		return clusterStatus(a, clusterJSON{Cluster: f.Name, Nodes: c.Survey(ctx)})
	})
}

func clusterStatus(a *app, out clusterJSON) error {
	out.Realms = cluster.Leads(out.Nodes)
	var ill []string
	for _, n := range out.Nodes {
		if why := cmp.Or(n.Why, n.Behind); why != "" {
			ill = append(ill, n.Node+": "+why)
		} else if n.Health != nil && len(n.Health.Ill) > 0 {
			ill = append(ill, n.Node+": "+n.Health.Ill[0])
		}
	}
	for _, r := range out.Realms {
		if r.Leader == "" {
			ill = append(ill, "nobody leads realm "+r.Realm)
		}
	}
	var err error
	switch {
	case !slices.ContainsFunc(out.Nodes, func(n cluster.Status) bool { return n.Reached() }):
		err = connect.NewError(connect.CodeUnavailable, fmt.Errorf("no node answers: %s", strings.Join(ill, "; ")))
	case len(ill) > 0:
		err = fmt.Errorf("not ready: %s", strings.Join(ill, "; "))
	case len(out.Realms) == 0:
		err = errors.New("nobody leads")
	}
	return cmp.Or(a.print(out, func(w io.Writer) { printCluster(w, out) }), err)
}

func printCluster(w io.Writer, c clusterJSON) {
	rows(w, "NODE\tADDRESS\tSTATE\tREADY\tCAUGHT UP\tLEADS\tLAG", c.Nodes, func(n cluster.Status) []any {
		return []any{n.Node, n.Address, n.State, yes[n.Ready], yes[n.Behind == "" && n.Reached()], len(n.Leads), n.Lag}
	})
	printPromise(w, c.Nodes)
	printHealth(w, c.Nodes)
	rows(w, "\nREALM\tLEADER\tPOSITION", c.Realms, func(r cluster.RealmLead) []any { return []any{r.Realm, cmp.Or(r.Leader, "-"), r.Position} })
}

var yes = map[bool]string{true: "yes", false: "no"}

// printPromise prints what acknowledged draws survive, where a database decides that, and what is lost.
func printPromise(w io.Writer, nodes []cluster.Status) {
	said := map[string]bool{}
	for _, n := range nodes {
		if text := survivals[n.Survives]; text != "" && !said[n.Survives+n.Promise] {
			said[n.Survives+n.Promise] = true
			fprintf(w, "\nAcknowledged draws survive %s, says node %s: %s\n", text, n.Node, n.Promise)
		}
		for _, l := range n.Losses {
			fprintf(w, "\nRealm %s has lost entries, as node %s knows: see \"kuji cluster accept-loss %s\"\n", l.Realm, n.Node, l.Realm)
		}
	}
}

// survivals says what a log survives, by the words of [driver.Survives].
var survivals = map[string]string{
	driver.SurvivesNothing.String(): "nothing for sure",
	driver.SurvivesServer.String():  "the end of a server of Kuji, but not a crash of the database",
	driver.SurvivesCrash.String():   "a crash of the database, but not the loss of its machine",
	driver.SurvivesMachine.String(): "the loss of the database's machine",
}

// printHealth prints how nodes' parts of the log are, and what is wrong.
func printHealth(w io.Writer, nodes []cluster.Status) {
	rows(w, "\nNODE\tSTORED\tMAY STORE\tDISK FREE\tRAFT GROUPS\tRAFT LEADS\tWAITING\tCLOCK\tVERSION", nodes, func(n cluster.Status) []any {
		clock, version := "-", cmp.Or(n.Version, "-")
		if n.ClockMS != nil {
			clock = fmt.Sprintf("%+.1f s", float64(*n.ClockMS)/1000)
		}
		if n.Health == nil {
			return []any{n.Node, "-", "-", "-", "-", "-", "-", clock, version}
		}
		h, free := n.Health, "-"
		if h.Free > 0 {
			free = gigabytes(h.Free)
		}
		return []any{n.Node, gigabytes(h.Stored), gigabytes(h.Most), free, h.Groups, h.Leads, h.Waiting, clock, version}
	})
	var more []string
	versions := map[string]bool{}
	for _, n := range nodes {
		if n.Version != "" {
			versions[n.Version] = true
		}
		if n.Health != nil {
			for _, text := range slices.Concat(n.Health.Ill, n.Health.Behind) {
				more = append(more, sprintf("node %s: %s", n.Node, text))
			}
		}
	}
	if len(versions) > 1 {
		more = append(more, "the nodes run different versions: that is for an upgrade only")
	}
	if len(more) > 0 {
		fprintf(w, "\n%s\n", markup(strings.Join(more, "\n")))
	}
}

func gigabytes(n uint64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }
