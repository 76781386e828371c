package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/kuji-dev/kuji/internal/cluster"

	"github.com/spf13/cobra"
)

// lossJSON is what a log has lost.
type lossJSON struct {
	cluster.Loss
	Nodes   []string `json:"nodes"`             // that know of it
	Confirm string   `json:"confirm,omitempty"` // the word that says that a person saw this; absent once it is accepted
}

func clusterLossCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "accept-loss REALM", Short: "Go on with a realm whose log a failover of the database has cut"}
	confirm := cmd.Flags().String("confirm", "", "the `word` that says what is lost, as this command printed it")
	return a.onCluster(cmd, func(ctx context.Context, _ *clusterFlags, c *cluster.Client, args []string) error {
		out, found := lossOf(c.Survey(ctx), args[0])
		if !found {
			return refusedError{fmt.Sprintf("no node knows that the log of realm %s has lost anything", args[0])}
		}
		if *confirm != out.Confirm {
			if err := a.print(out, func(w io.Writer) { printLoss(w, &out) }); err != nil {
				return err
			}
			if *confirm != "" {
				return refusedError{fmt.Sprintf("--confirm %s: what is lost is something else, %s. Nothing was changed", *confirm, out.Confirm)}
			}
			return refusedError{fmt.Sprintf("nothing was changed. To go on without what is lost, run the same command with --confirm %s", out.Confirm)}
		}
		if err := c.AcceptLoss(ctx, out.Loss); err != nil {
			return err
		}
		out.Confirm = ""
		return a.print(out, func(w io.Writer) { fprintf(w, "realm %s goes on after entry %d\n", out.Realm, out.Last) })
	})
}

// lossOf returns what the log of a realm has lost, as the node has it that knows most.
func lossOf(nodes []cluster.Status, realm string) (out lossJSON, found bool) {
	for _, n := range nodes {
		for _, l := range n.Losses {
			if l.Realm != realm {
				continue
			}
			out.Nodes = append(out.Nodes, n.Node)
			if !found || l.Line > out.Line || l.Line == out.Line && l.Known > out.Known {
				found, out.Loss, out.Confirm = true, l, l.Confirm()
			}
		}
	}
	return out, found
}

func printLoss(w io.Writer, l *lossJSON) {
	fprintf(w, "The log of realm %s has lost entries. Node %s knows of entry %d, which was acknowledged,\nand it is not there any more. ", l.Realm, l.Node, l.Known)
	if l.Last > 0 {
		fprintf(w, "What is left is as it was up to entry %d: up to %d entries are lost.\n", l.Last, l.Known-l.Last)
	} else {
		fprintf(w, "Nobody knows how far what is left is as it was.\n")
	}
	fprintf(w, "\nAn entry is a batch of commands: draws, grants, catalogs. If a server of the database\nstill has them, make that one the primary again, and nothing is lost.\n")
}
