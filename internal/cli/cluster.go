package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/driver"
)

// peerPort is where a node listens for the others, unless --peers says otherwise. Requests that one
// node passes on to another arrive at the port behind it.
const peerPort = 6222

// clusterFlags say which cluster a node is of. Without a name, there is none.
type clusterFlags struct {
	name, node, keyFile string
	peers               []string
	peerListen          string
	nats                natsFlags

	cmd   *cobra.Command
	hosts map[string]peer // by node, from peers
	at    peer            // where this node listens for the others; none: where they find it
}

// peer is where a node is.
type peer struct {
	host string
	port int // of the log; requests that are passed on go to the next one
}

// own returns where this node listens for the others.
func (f *clusterFlags) own() peer { return cmp.Or(f.at, f.hosts[f.node]) }

// log returns the address of a node's NATS server.
func (p peer) log() string { return net.JoinHostPort(p.host, strconv.Itoa(p.port)) }

// requests returns the address for what other nodes pass on.
func (p peer) requests() string { return net.JoinHostPort(p.host, strconv.Itoa(p.port+1)) }

// member adds the flags that say which cluster is meant.
func (f *clusterFlags) member(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.name, "cluster", "", "`name` of the cluster, the same on every node")
	flags.StringSliceVar(&f.peers, "peers", nil, "every node of the cluster, this one too, as `NAME=HOST[:PORT],...`; nodes use PORT (default 6222) and the port behind it")
	flags.StringVar(&f.keyFile, "cluster-key", "", "`file` with the cluster's key, the same on every node: see \"kuji cluster keygen --help\"")
}

// add adds the flags of a node.
func (f *clusterFlags) add(cmd *cobra.Command) {
	f.member(cmd)
	cmd.Flags().Lookup("cluster").Usage += "; makes this process a node of it"
	cmd.Flags().StringVar(&f.node, "node", "", "`name` of this node, one of --peers; a data directory belongs to it for ever")
	f.nats.add(cmd)
	cmd.Flags().StringVar(&f.peerListen, "peer-listen", "", "listen for the other nodes at this `HOST[:PORT]`, where it is not the address in --peers: in a container, behind NAT")
}

// single are the flags of serve that mean nothing on a cluster.
var single = []string{"catalog", "realm", "accept-warnings", "catalog-over", "sync", "sync-every", "segment-size", "must-exist"}

// check checks the flags of serve. It refuses a directory of the other kind: its realms would seem
// to be gone.
func (f *clusterFlags) check(data string) error {
	if f.name == "" {
		for _, name := range []string{"node", "peers", "peer-listen", "cluster-key", "nats", "nats-creds", "nats-ca"} {
			if f.cmd.Flags().Changed(name) {
				return usageError{fmt.Errorf("--%s without --cluster: expected the name of a cluster", name)}
			}
		}
		if _, err := os.Stat(clusterDir(data)); err == nil {
			return usageError{fmt.Errorf("--data %s is a cluster's: expected --cluster", data)}
		}
		return refuseBackup(data)
	}
	for _, name := range single {
		if f.cmd.Flags().Changed(name) {
			hint := "a cluster always fsyncs, and keeps its log on all nodes"
			if slices.Contains(single[:4], name) {
				hint = "apply catalogs with \"kuji apply\", else each node that takes over would apply its own"
			}
			return usageError{fmt.Errorf("--%s with --cluster: %s", name, hint)}
		}
	}
	if err := f.checkMember(); err != nil {
		return err
	}
	if _, ok := f.hosts[f.node]; !ok {
		return usageError{fmt.Errorf("--node %q: expected one of --peers: %s", f.node, strings.Join(f.names(), ", "))}
	}
	if f.peerListen != "" {
		var err error
		if f.at, err = parseAddress(f.peerListen); err != nil {
			return usageError{fmt.Errorf("--peer-listen %q: %w", f.peerListen, err)}
		}
	}
	if _, err := os.Stat(filepath.Join(data, "realms")); err == nil {
		return usageError{fmt.Errorf("--data %s has realms of a server that is alone: expected another directory", data)}
	}
	return refuseInside("data", filepath.Dir(filepath.Clean(data)))
}

// checkMember checks the flags of member.
func (f *clusterFlags) checkMember() error {
	if err := driver.CheckRealm(f.name); err != nil {
		return usageError{fmt.Errorf("--cluster %q: expected 1 to 64 of a-z, 0-9, '-' and '_', starting with a letter or digit", f.name)}
	}
	if f.keyFile == "" {
		return usageError{errors.New("missing flag --cluster-key: make one with \"kuji cluster keygen FILE\"")}
	}
	if err := f.nats.check(); err != nil {
		return err
	}
	f.hosts = map[string]peer{}
	for _, one := range f.peers {
		name, p, err := parsePeer(one)
		if err != nil {
			return usageError{fmt.Errorf("--peers %q: %w", one, err)}
		}
		if _, twice := f.hosts[name]; twice {
			return usageError{fmt.Errorf("--peers: node %s is there twice", name)}
		}
		f.hosts[name] = p
	}
	if n := len(f.hosts); n != 1 && n != 3 && n != 5 {
		return usageError{fmt.Errorf("--peers with %d nodes: expected 1, 3 or 5", n)}
	}
	return nil
}

func parsePeer(s string) (name string, p peer, err error) {
	name, address, ok := strings.Cut(s, "=")
	if !ok || driver.CheckRealm(name) != nil || address == "" {
		return "", p, errors.New("expected NAME=HOST[:PORT], the name of 1 to 64 of a-z, 0-9, '-' and '_'")
	}
	p, err = parseAddress(address)
	return name, p, err
}

func parseAddress(address string) (peer, error) {
	p := peer{strings.Trim(address, "[]"), peerPort}
	if host, port, err := net.SplitHostPort(address); err == nil {
		p.host = host
		if p.port, err = strconv.Atoi(port); err != nil || p.port < 1 || p.port > 65534 || host == "" {
			return p, fmt.Errorf("address %q: expected a host and a port from 1 to 65534", address)
		}
	}
	if strings.Contains(p.host, ":") && net.ParseIP(p.host) == nil {
		return p, fmt.Errorf("address %q: expected HOST or HOST:PORT", address)
	}
	return p, nil
}

// replicas returns how many nodes keep each realm: all of them. NATS servers of one's own are three, or one.
func (f *clusterFlags) replicas() int {
	if f.nats.external() {
		return min(len(f.hosts), 3)
	}
	return len(f.hosts)
}

// names returns the names of the nodes, ascending.
func (f *clusterFlags) names() []string { return slices.Sorted(maps.Keys(f.hosts)) }

// clusterDir is where a node of a cluster keeps what it stores.
func clusterDir(data string) string { return filepath.Join(data, "cluster") }

func (a *app) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster",
		Short:   "Make a cluster's key, show its nodes, and bring it back",
		GroupID: "server",
		Args:    cobra.NoArgs,
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.clusterKeygenCommand(), a.clusterStatusCommand(), a.clusterForceCommand(), a.clusterDrainCommand(), a.clusterRemoveCommand())
	return cmd
}

func (a *app) clusterKeygenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make the key of a cluster",
		Long: `Keygen writes a new key of 256 random bits to a file that only you can read. Copy it
to every node, and keep a copy elsewhere. Nodes prove to each other that they know
it, encrypt what they send each other, and seal the seeds of draws with it. Who has
it can join the cluster and predict its draws. Without it, draws of the last epoch
can no longer be proven.

To change the key without stopping the cluster, put two keys in the file, one a line:
nodes use the first one, and accept both. Restart all nodes, one after the other, three
times: with the old key before the new one in the file, with the new one first, and with
the new one alone.`,
		Example: `  kuji cluster keygen cluster.key
  kuji serve --cluster shop --node n1 --peers n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 \
      --cluster-key cluster.key --data /var/lib/kuji
  kuji cluster keygen new.key && cat cluster.key new.key > both.key`,
		Args: exactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := writeClusterKey(args[0]); err != nil {
				return err
			}
			return a.print(map[string]string{"file": args[0]}, func(w io.Writer) { fprintf(w, "wrote %s\n", args[0]) })
		},
	}
}

// nodeJSON is what a node says of itself, and "kuji cluster status" of it.
type nodeJSON struct {
	Node    string `json:"node"`
	Address string `json:"address"` // for the other nodes
	State   string `json:"state"`   // serves, opens, cut-off, or unreachable
	Ready   bool   `json:"ready"`
	Why     string `json:"why,omitempty"`     // it is not ready, cannot be reached, or met damage
	Behind  string `json:"behind,omitempty"`  // why its copy of the log does not count yet; absent: it has caught up
	Version string `json:"version,omitempty"` // of its build
	Time    int64  `json:"time,omitempty"`    // what its wall clock shows, Unix milliseconds

	ClockMS *int64        `json:"clock_ms,omitempty"` // how far that is ahead of the node in the middle, as "kuji cluster status" saw it
	Health  *healthJSON   `json:"health,omitempty"`   // for those who ask at healthPath
	apart   time.Duration // from the clock of who asked

	Leads     []string          `json:"leads"`               // realms that it leads
	Leaders   map[string]string `json:"leaders,omitempty"`   // of realms, as far as it knows
	Lag       uint64            `json:"lag"`                 // by how many positions a realm that follows is behind the leader, at most
	Positions map[string]uint64 `json:"positions,omitempty"` // how far each realm has come
	Chains    map[string]string `json:"chains,omitempty"`    // the hash of each realm's chain there, in hexadecimal
}

type clusterJSON struct {
	Cluster string          `json:"cluster"`
	Nodes   []nodeJSON      `json:"nodes"`
	Realms  []realmLeadJSON `json:"realms"`
}

// realmLeadJSON says who leads a realm.
type realmLeadJSON struct {
	Realm    string `json:"realm"`
	Leader   string `json:"leader,omitempty"` // the node that leads it and answers; "": none
	Position uint64 `json:"position"`         // as far as anybody has come
}

// realmsOf returns the realms that nodes know, by name.
func realmsOf(nodes []nodeJSON) []realmLeadJSON {
	all := map[string]*realmLeadJSON{}
	at := func(realm string) *realmLeadJSON {
		if all[realm] == nil {
			all[realm] = &realmLeadJSON{Realm: realm}
		}
		return all[realm]
	}
	for _, n := range nodes {
		for realm := range n.Leaders {
			at(realm)
		}
		for realm, position := range n.Positions {
			at(realm).Position = max(at(realm).Position, position)
		}
		for _, realm := range n.Leads {
			at(realm).Leader = n.Node
		}
	}
	sorted := []realmLeadJSON{}
	for _, realm := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, *all[realm])
	}
	return sorted
}

func (a *app) clusterStatusCommand() *cobra.Command {
	var (
		f       clusterFlags
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "status --cluster NAME --peers NAME=HOST,... --cluster-key FILE",
		Short: "Show the nodes of a cluster, who is ready, and who leads which realm",
		Long: `Status asks every node of --peers, with the flags that the nodes are started with. A
node that has not caught up does not count for a majority yet, or cannot lead yet:
stop no other one before it has. LEADS says how many realms a node leads, and LAG by
how many positions of its log a realm is behind what its leader said in the last
second, at most.

The second table has, for each node, how much it stores and may store, the free space
on its disk, in how many Raft groups it takes part and how many it leads, how many
entries it has not carried out yet, how far its clock is ahead of the median, and its
version. Below the table, status says what is wrong with a group. A node whose clock is
more than 10 s off leads nothing.

The last table has each realm and the node that leads it. Status ends with exit code 1
if nobody leads a realm, or if a node is not ready, has not caught up, met damage, has a
clock that is off, or has a Raft group with something wrong. It ends with 5 if it
reaches no node.`,
		Example: `  kuji cluster status --cluster shop --peers n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 \
      --cluster-key cluster.key`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return usageError{fmt.Errorf("--timeout %v: expected more than 0", timeout)}
			}
			if err := f.checkMember(); err != nil {
				return err
			}
			keys, err := a.readClusterKeys(f.keyFile)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return a.clusterStatus(ctx, &f, keys)
		},
	}
	f.member(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to wait for the nodes")
	return cmd
}

func (a *app) clusterStatus(ctx context.Context, f *clusterFlags, keys clusterKeys) error {
	conf, err := keys.tls(f.name, "")
	if err != nil {
		return err
	}
	out := clusterJSON{Cluster: f.name, Nodes: make([]nodeJSON, len(f.hosts))}
	client := &http.Client{Transport: peerTransport(conf)}
	var wg sync.WaitGroup
	for i, name := range f.names() {
		wg.Go(func() { out.Nodes[i] = askAt(ctx, client, name, f.hosts[name], healthPath) })
	}
	wg.Wait()
	setClocks(out.Nodes)
	out.Realms = realmsOf(out.Nodes)
	var ill []string
	reached := 0
	for _, n := range out.Nodes {
		if n.State != stateUnreachable {
			reached++
		}
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
	if err := a.print(out, func(w io.Writer) { printCluster(w, out) }); err != nil {
		return err
	}
	switch {
	case reached == 0:
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("no node answers: %s", strings.Join(ill, "; ")))
	case len(ill) > 0:
		return fmt.Errorf("not ready: %s", strings.Join(ill, "; "))
	case len(out.Realms) == 0:
		return errors.New("nobody leads")
	}
	return nil
}

func printCluster(w io.Writer, c clusterJSON) {
	fprintf(w, "NODE\tADDRESS\tSTATE\tREADY\tCAUGHT UP\tLEADS\tLAG\n")
	yes := map[bool]string{true: "yes", false: "no"}
	for _, n := range c.Nodes {
		fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\n", n.Node, n.Address, n.State, yes[n.Ready], yes[n.Behind == "" && n.State != stateUnreachable], len(n.Leads), n.Lag)
	}
	fprintf(w, "\n")
	printHealth(w, c.Nodes)
	fprintf(w, "\nREALM\tLEADER\tPOSITION\n")
	for _, r := range c.Realms {
		fprintf(w, "%s\t%s\t%d\n", r.Realm, cmp.Or(r.Leader, "-"), r.Position)
	}
}

// askNode asks a node for what it says of itself.
func askNode(ctx context.Context, client *http.Client, name string, p peer) nodeJSON {
	return askAt(ctx, client, name, p, nodePath)
}

func askAt(ctx context.Context, client *http.Client, name string, p peer, path string) nodeJSON {
	fail := func(err error) nodeJSON {
		return nodeJSON{Node: name, Address: p.log(), State: stateUnreachable, Why: err.Error()}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.requests()+path, http.NoBody)
	if err != nil {
		return fail(err)
	}
	sent := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close() // read only: nothing to lose
	if resp.StatusCode != http.StatusOK {
		return fail(fmt.Errorf("it answers %s", resp.Status))
	}
	var n nodeJSON
	if err := json.NewDecoder(io.LimitReader(resp.Body, 256<<10)).Decode(&n); err != nil {
		return fail(fmt.Errorf("its answer: %w", err))
	}
	if n.Node != name {
		return fail(fmt.Errorf("node %s answers there", n.Node))
	}
	n.apart = time.UnixMilli(n.Time).Sub(sent.Add(time.Since(sent) / 2))
	return n
}
