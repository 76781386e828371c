package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/internal/cluster"
)

type forceFlags struct {
	from, data, ofKey, confirm string
	cluster                    clusterFlags
}

func clusterForceCommand(a *app) *cobra.Command {
	var f forceFlags
	cmd := &cobra.Command{
		Use:   "force-new --from DIR --data DIR --cluster NAME --node NAME --peers NAME=HOST,... --cluster-key FILE",
		Short: "Make a new cluster of what one node has kept, when the others are lost",
		RunE:  func(cmd *cobra.Command, _ []string) error { return forceNew(cmd.Context(), a, &f) },
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
		return usagef("missing flag --from or --data: the directory that is intact, and the one of the new node")
	case f.cluster.Name == "":
		return usagef("missing flag --cluster: the name of the new cluster")
	case f.cluster.store != "":
		return usagef("--store: what servers of your own have kept is theirs to bring back")
	case filepath.Clean(f.from) == filepath.Clean(f.data):
		return usagef("--from and --data are the same: expected an empty directory for the new node")
	case !cluster.IsNode(f.from):
		return usagef("--from %s is not the data directory of a cluster's node", f.from)
	}
	return f.cluster.check(f.data)
}

func forceNew(ctx context.Context, a *app, f *forceFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	c := &f.cluster
	force := cluster.Force{From: f.from, Data: f.data, Confirm: f.confirm, Waits: func() {
		fprintf(a.stderr, "node %s of cluster %s waits for a majority; run \"kuji restore\" without --from on the others\n", c.Node, c.Name)
	}}
	if c.Keys, err = a.readClusterKeys(c.keyFile); err != nil {
		return err
	}
	if force.Former, err = a.readClusterKeys(cmp.Or(f.ofKey, c.keyFile)); err != nil {
		return err
	}
	force.Config = c.Config
	out, done, err := force.Do(ctx)
	if err != nil {
		return err
	}
	if err := a.print(out, func(w io.Writer) {
		printForce(w, out)
		if done {
			fprintf(w, "\ncluster %s has all of it. Stop the other machines' \"kuji restore\", and start all nodes with --cluster %s.\n", c.Name, c.Name)
		}
	}); err != nil || done {
		return err
	}
	if f.confirm != "" {
		return refusedError{fmt.Sprintf("--confirm %s: what was found is another state, %s. Nothing was changed", f.confirm, out.Confirm)}
	}
	return refusedError{fmt.Sprintf("nothing was changed. To make cluster %s of this, run the same command with --confirm %s", c.Name, out.Confirm)}
}

func printForce(w io.Writer, out cluster.Forced) {
	rows(w, "REALM\tPOSITION\tLAST EVENT\tEPOCH\tENDED", out.Realms, func(r cluster.ForcedRealm) []any {
		return []any{r.Realm, r.Position, cmp.Or(r.LastTime, "-"), r.Epoch, yes[r.Ended]}
	})
	fprintf(w, "\nThis is what node %s of cluster %s has kept. What may be missing:\n\n", out.Node, out.Of)
	for _, r := range out.Realms {
		since := cmp.Or(r.LastTime, "its beginning")
		text := fmt.Sprintf("realm %s: what was acknowledged after position %d, from %s on", r.Realm, r.Position, since)
		if r.Ended {
			text = fmt.Sprintf("realm %s: what later leaders acknowledged after position %d, from %s on; epoch %d itself is whole", r.Realm, r.Position, since, r.Epoch)
		}
		fprintf(w, "  %s\n", text)
	}
	for _, name := range out.Missing {
		fprintf(w, "  realm %s: all of it, other nodes kept it\n", name)
	}
	lost := each(out.Lost, func(n cluster.LostNode) string { return fmt.Sprintf("  node %s at %s: %s", n.Node, n.Address, n.Why) })
	slices.Sort(lost)
	fprintf(w, "\nThe other nodes do not answer. If the disk of one of them is intact, start it: nothing is lost then.\n\n%s\n", strings.Join(lost, "\n"))
}
