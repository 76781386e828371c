package cli

import (
	"context"
	"encoding/hex"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/verify"
)

type restoreFlags struct {
	from, data, sealKey, ofCluster string
	cluster                        clusterFlags
}

func restoreCommand(a *app) *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{Use: "restore --from DIR --data DIR", Short: "Make a data directory or a cluster from a backup"}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "`directory` of the backup (required, but for the other nodes of a cluster)")
	flags.StringVar(&f.data, "data", "", "`directory` to make, which must not exist; with --cluster, that of the node (required, unless with the URL of a --store)")
	flags.StringVar(&f.sealKey, "seal-key", "", "`file` that is a copy of the lost directory's key (default: none, a new one is made)")
	flags.StringVar(&f.ofCluster, "of-cluster", "", "`name` of the cluster that the backup is of: --seal-key is its key")
	f.cluster.add(cmd)
	flags.Lookup("cluster").Usage = "`name` of the new cluster that the backup is restored to"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		if f.cluster.Name != "" {
			return restoreToCluster(cmd.Context(), a, &f)
		}
		key, err := a.readSealKey(f.sealKey, f.ofCluster)
		if err != nil {
			return err
		}
		reports, err := backup.Restore(cmd.Context(), filepath.ToSlash(f.from), filepath.ToSlash(f.data), key)
		return restored(a, verifyJSON{Data: f.data}, reports, err)
	}
	return cmd
}

func (f *restoreFlags) check() error {
	c := &f.cluster
	if err := c.settle(&f.data); err != nil {
		return err
	}
	switch {
	case c.Name == "" && (f.from == "" || f.data == ""):
		return usagef("missing flag --from or --data: the backup, and the directory to make")
	case c.Name != "" && (f.sealKey != "" || f.ofCluster != ""):
		return usagef("--seal-key with --cluster: a cluster has its own key, --cluster-key")
	case c.External() && f.from == "":
		return usagef("missing flag --from: the backup")
	case c.Name != "" && !c.External() && f.data == "":
		return usagef("missing flag --data: the directory of the node")
	case c.External() && f.data == "":
		return c.checkMember()
	}
	return c.check(f.data)
}

// restored says what was restored.
func restored(a *app, out verifyJSON, reports []verify.Report, err error) error {
	if err != nil {
		return wrongBackup(err)
	}
	out.OK = true
	out.Realms = append([]verifiedRealm{}, each(reports, func(r verify.Report) verifiedRealm { return verifiedRealm{OK: true, Report: r} })...)
	return a.print(out, func(w io.Writer) { printVerify(w, out) })
}

// restoreToCluster runs the NATS server of one node. With a backup it restores that, and otherwise waits
// until ctx ends. No node of the cluster runs, so nobody takes a realm over that is not whole.
func restoreToCluster(ctx context.Context, a *app, f *restoreFlags) (err error) {
	c := &f.cluster
	if c.Keys, err = a.readClusterKeys(c.keyFile); err != nil {
		return err
	}
	at := map[string]string{c.Node: f.data}
	if c.External() {
		at = nil
	}
	var reports []verify.Report
	err = c.Offline(ctx, at, func(d cluster.Log) (err error) {
		if f.from == "" {
			fprintf(a.stderr, "node %s keeps its part of cluster %s; stop it when the restore has ended\n", c.Node, c.Name)
			<-ctx.Done()
			return nil
		}
		key, old := c.Seals()
		reports, err = backup.RestoreTo(ctx, filepath.ToSlash(f.from), d, key, old...)
		return err
	})
	if f.from == "" {
		return err
	}
	return restored(a, verifyJSON{Cluster: c.Name}, reports, err)
}

// readSealKey reads the key that sealed a backup's seeds; nil: none is named. A cluster's is derived from its key.
func (a *app) readSealKey(name, cluster string) (*[32]byte, error) {
	switch {
	case name == "" && cluster == "":
		return nil, nil
	case name == "":
		return nil, usagef("--of-cluster without --seal-key: expected the cluster's key")
	case cluster != "":
		keys, err := a.readClusterKeys(name)
		if err != nil {
			return nil, err
		}
		if len(keys) > 1 { // a directory has one key
			return nil, usagef("--seal-key %s has two keys: expected the one that the cluster used when the backup was made", name)
		}
		seal, _ := keys.Seals(cluster)
		return &seal, nil
	}
	text, err := a.readFile(name, maxSecret)
	if err != nil {
		return nil, err
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != 32 {
		return nil, usagef("--seal-key %s: expected 64 hexadecimal digits", name)
	}
	return (*[32]byte)(raw), nil
}
