package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/verify"
)

// forceFlags are those of kuji cluster force-new.
type forceFlags struct {
	from, data, ofKey, confirm string
	cluster                    clusterFlags
}

// forceJSON is what a new cluster has of an old one, or would have.
type forceJSON struct {
	Cluster string           `json:"cluster"` // the new one
	Of      string           `json:"of"`      // the old one
	Node    string           `json:"node"`    // whose directory it is made of
	Lost    []forceNodeJSON  `json:"lost"`    // the old cluster's other nodes
	Realms  []forceRealmJSON `json:"realms"`
	Missing []string         `json:"missing,omitempty"` // realms that other nodes kept
	Confirm string           `json:"confirm,omitempty"` // what says that this was seen; absent once it is done
}

type forceNodeJSON struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	Why     string `json:"why"` // it does not answer
}

type forceRealmJSON struct {
	Realm    string `json:"realm"`
	Position uint64 `json:"position"`  // the last one that is here
	LastTime string `json:"last_time"` // of the last event that is here; "": there is none
	LastID   string `json:"last_id,omitempty"`
	Epoch    uint64 `json:"epoch"` // the last one that began here
	Ended    bool   `json:"ended"` // its leader ended it in order here: the leader acknowledged nothing after it in this epoch
	Chain    string `json:"chain_hash"`
}

func (a *app) clusterForceCommand() *cobra.Command {
	var f forceFlags
	cmd := &cobra.Command{
		Use:   "force-new --from DIR --data DIR --cluster NAME --node NAME --peers NAME=HOST,... --cluster-key FILE",
		Short: "Make a new cluster of what one node has kept, when the others are lost",
		Long: `Force-new is for a cluster that has lost most of its disks for good: two of three. It
reads the directory of a node that is intact, and restores what is there to a new
cluster with a new name. If fewer disks are lost, do not use it: replace the nodes, and
no data is lost.

What the lost nodes acknowledged without this one is gone, and nobody can say what that
was. The command shows how far each realm has come on this node. Compare that with what
clients and sinks have seen. The first run changes nothing and ends with exit code 3. To
go on, run the command again with --confirm and the word that it printed.

The command refuses to run while a node of the old cluster accepts connections. Before
you confirm, make sure that the lost nodes stay off. They cannot join the new cluster,
since what nodes prove to each other depends on the cluster's name, and a cluster
refuses the directory of another. But if two of them came back, they would answer the
clients that still reach them.

Run it on the machine with the directory, and "kuji restore" without --from on the new
cluster's other machines: see "kuji restore --help". --data is an empty directory for
the new cluster. At the end each realm is in a new epoch, and the old seeds are
revealed, so every draw can be proven. The command leaves a backup in --data, in the
directory "backup", and marks the old directory, so that no node starts there.`,
		Example: `  kuji cluster force-new --from /var/lib/kuji --data /var/lib/kuji-2 --cluster shop-2 \
      --node n3 --peers n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 --cluster-key cluster.key`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.forceNew(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "data `directory` of the node that is intact (required)")
	flags.StringVar(&f.data, "data", "", "`directory` of this machine's node in the new cluster (required)")
	flags.StringVar(&f.ofKey, "of-key", "", "`file` with the old cluster's key (default: --cluster-key)")
	flags.StringVar(&f.confirm, "confirm", "", "the `word` that says what was found, as this command printed it")
	f.cluster.add(cmd)
	flags.Lookup("cluster").Usage = "`name` of the new cluster, which is not that of the old one"
	return cmd
}

func (f *forceFlags) check() error {
	switch {
	case f.from == "" || f.data == "":
		return usageError{errors.New("missing flag --from or --data: the directory that is intact, and the one of the new node")}
	case f.cluster.name == "":
		return usageError{errors.New("missing flag --cluster: the name of the new cluster")}
	case f.cluster.nats.external():
		return usageError{errors.New("--nats: what NATS servers of your own have kept is theirs to bring back")}
	case filepath.Clean(f.from) == filepath.Clean(f.data):
		return usageError{errors.New("--from and --data are the same: expected an empty directory for the new node")}
	case !isNode(f.from):
		return usageError{fmt.Errorf("--from %s is not the data directory of a cluster's node", f.from)}
	}
	return f.cluster.check(f.data)
}

func (a *app) forceNew(ctx context.Context, f *forceFlags) error {
	h, err := readHome(f.from)
	if err != nil {
		return err
	}
	if h == nil {
		return noHome(f.from)
	}
	if err := f.allowed(h); err != nil {
		return err
	}
	keys, err := a.readClusterKeys(f.cluster.keyFile)
	if err != nil {
		return err
	}
	former, err := a.readClusterKeys(cmp.Or(f.ofKey, f.cluster.keyFile))
	if err != nil {
		return err
	}
	out := forceJSON{Cluster: f.cluster.name, Of: h.Cluster, Node: h.Node, Realms: []forceRealmJSON{}}
	if out.Lost, err = knock(ctx, h); err != nil {
		return err
	}
	to := filepath.Join(f.data, "backup")
	seal, older := former.seals(h.Cluster)
	sealed := append(older, seal)
	switch confirmed, err := f.gather(ctx, sealed, to, &out); {
	case err != nil:
		return err
	case confirmed:
		h.Left = f.cluster.name
		if err := h.write(f.from); err != nil {
			return err
		}
		return a.beginNew(ctx, f, keys, sealed, to, out)
	}
	if err := a.print(out, func(w io.Writer) { printForce(w, out) }); err != nil {
		return err
	}
	if f.confirm != "" {
		return refusedError{fmt.Sprintf("--confirm %s: what was found is another state, %s. Nothing was changed", f.confirm, out.Confirm)}
	}
	return refusedError{fmt.Sprintf("nothing was changed. To make cluster %s of this, run the same command with --confirm %s", f.cluster.name, out.Confirm)}
}

// allowed refuses what would let two clusters take each other for one, or make two of one.
func (f *forceFlags) allowed(h *home) error {
	if h.Cluster == f.cluster.name {
		return refusedError{fmt.Sprintf("--cluster %s is the old cluster's name: expected another one, such as %s-2. Old nodes could join a cluster of their own name", h.Cluster, h.Cluster)}
	}
	if h.Left != "" && h.Left != f.cluster.name {
		return refusedError{fmt.Sprintf("--from %s: cluster %s was made of it already", f.from, h.Left)}
	}
	return nil
}

// knockTime bounds how long a lost node may take to accept a connection.
const knockTime = 3 * time.Second

// knock returns the old cluster's other nodes. It refuses if one of them is there.
func knock(ctx context.Context, h *home) ([]forceNodeJSON, error) {
	names, at, err := h.others()
	if err != nil {
		return nil, err
	}
	lost, there := []forceNodeJSON{}, []string{}
	for _, name := range names {
		address := at[name].requests()
		conn, err := (&net.Dialer{Timeout: knockTime}).DialContext(ctx, "tcp", address)
		if err != nil {
			lost = append(lost, forceNodeJSON{name, at[name].log(), err.Error()})
			continue
		}
		there = append(there, fmt.Sprintf("node %s at %s", name, address))
		_ = conn.Close() // nothing was sent
	}
	if len(there) > 0 {
		return nil, refusedError{fmt.Sprintf("%s of cluster %s accepts connections: a cluster that has nodes left must not become two. If its disk is intact, start this node with \"kuji serve\" as ever. If it is lost, stop what listens there", strings.Join(there, ", "), h.Cluster)}
	}
	return lost, nil
}

// gather says what would be in the new cluster. If that is what was confirmed, it backs it up.
func (f *forceFlags) gather(ctx context.Context, sealed [][32]byte, to string, out *forceJSON) (confirmed bool, err error) {
	c, err := openCopy(ctx, f.from)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	hash := sha256.New()
	fprintf(hash, "%s %s\n", out.Of, out.Cluster)
	for _, realm := range c.realms {
		one := forceRealmJSON{Realm: realm}
		report, err := verify.Driver(c.driver, realm, verify.Options{Seen: func(rec kuji.Record) {
			one.LastTime, one.LastID = time.UnixMilli(rec.Time).UTC().Format(time.RFC3339), cmp.Or(rec.ID, one.LastID)
		}, Keys: append(slices.Clone(sealed[1:]), sealed[0])})
		if wrong, ok := errors.AsType[*verify.Error](err); ok {
			return false, damageError{fmt.Errorf("what node %s has kept is wrong: %w", c.home.Node, wrong)}
		}
		if err != nil {
			return false, err
		}
		one.Position, one.Chain = report.Position, hex.EncodeToString(report.ChainHash[:])
		if n := len(report.Epochs); n > 0 {
			one.Epoch, one.Ended = report.Epochs[n-1].Epoch, report.Epochs[n-1].Revealed
		}
		out.Realms = append(out.Realms, one)
		fprintf(hash, "%s %d %s\n", realm, one.Position, one.Chain)
	}
	out.Missing = c.missing
	fprintf(hash, "without %q\n", c.missing)
	if out.Confirm = hex.EncodeToString(hash.Sum(nil)[:4]); f.confirm != out.Confirm {
		return false, nil
	}
	for _, realm := range c.realms {
		source, done, err := c.backup(realm)
		if err != nil {
			return false, err
		}
		_, err = backup.Write(ctx, filepath.ToSlash(to), realm, source)
		if err = errors.Join(err, done()); err != nil {
			return false, err
		}
	}
	return true, nil
}

// beginNew restores the backup to the new cluster, and begins an epoch of each realm. The key that sealed the
// seed of the one before reveals it: nobody draws from that any more.
func (a *app) beginNew(ctx context.Context, f *forceFlags, keys clusterKeys, sealed [][32]byte, to string, out forceJSON) error {
	key, old := keys.seals(f.cluster.name)
	old = append(old, sealed...)
	nats, err := f.cluster.startNATS(f.data, keys, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fprintf(a.stderr, "node %s of cluster %s waits for a majority; run \"kuji restore\" without --from on the others\n", f.cluster.node, f.cluster.name)
	err = func() error {
		if err := nats.Ready(ctx); err != nil {
			return err
		}
		o := jetstream.Options{Cluster: f.cluster.name, Replicas: f.cluster.replicas()}
		o.Connect = append(o.Connect, nats.Connect())
		d, err := connectLog(ctx, o)
		if err != nil {
			return err
		}
		there, err := d.Realms(ctx)
		if err == nil && len(there) == 0 {
			_, err = backup.RestoreTo(ctx, filepath.ToSlash(to), d, key, old...)
		}
		if err != nil {
			return errors.Join(err, d.Close())
		}
		engine, err := kuji.Open("", kuji.Options{Driver: d, Key: key, OldKeys: old})
		if err != nil {
			return errors.Join(err, d.Close())
		}
		for i := range out.Realms {
			if _, err := engine.Realm(out.Realms[i].Realm); err != nil {
				return errors.Join(err, engine.Close())
			}
		}
		return engine.Close()
	}()
	if err = errors.Join(err, nats.Close()); err != nil {
		return err
	}
	out.Confirm = ""
	return a.print(out, func(w io.Writer) {
		printForce(w, out)
		fprintf(w, "\ncluster %s has all of it. Stop the other machines' \"kuji restore\", and start all nodes with --cluster %s.\n", f.cluster.name, f.cluster.name)
	})
}

func printForce(w io.Writer, out forceJSON) {
	fprintf(w, "REALM\tPOSITION\tLAST EVENT\tEPOCH\tENDED\n")
	for _, r := range out.Realms {
		fprintf(w, "%s\t%d\t%s\t%d\t%s\n", r.Realm, r.Position, cmp.Or(r.LastTime, "-"), r.Epoch, map[bool]string{true: "yes", false: "no"}[r.Ended])
	}
	fprintf(w, "\nThis is what node %s of cluster %s has kept. What may be missing:\n\n", out.Node, out.Of)
	for _, r := range out.Realms {
		since := "its beginning"
		if r.LastTime != "" {
			since = r.LastTime
		}
		text := fmt.Sprintf("realm %s: what was acknowledged after position %d, from %s on", r.Realm, r.Position, since)
		if r.Ended {
			text = fmt.Sprintf("realm %s: what later leaders acknowledged after position %d, from %s on; epoch %d itself is whole", r.Realm, r.Position, since, r.Epoch)
		}
		fprintf(w, "  %s\n", text)
	}
	for _, name := range out.Missing {
		fprintf(w, "  realm %s: all of it, other nodes kept it\n", name)
	}
	var lost []string
	for _, n := range out.Lost {
		lost = append(lost, fmt.Sprintf("  node %s at %s: %s", n.Node, n.Address, n.Why))
	}
	slices.Sort(lost)
	fprintf(w, "\nThe other nodes do not answer. If the disk of one of them is intact, start it: nothing is lost then.\n\n%s\n", strings.Join(lost, "\n"))
}
