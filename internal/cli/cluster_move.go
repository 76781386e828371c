package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/cluster"
)

func clusterDrainCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "drain NODE", Short: "Move what a node leads to the other nodes"}
	undo := cmd.Flags().Bool("undo", false, "let the node lead again")
	return a.onCluster(cmd, func(ctx context.Context, f *clusterFlags, c *cluster.Client, args []string) error {
		if names := c.Names(); !slices.Contains(names, args[0]) {
			return usagef("node %q: expected one of the cluster's nodes: %s", args[0], strings.Join(names, ", "))
		}
		if err := c.Drain(ctx, args[0], *undo); err != nil {
			return err
		}
		return a.print(map[string][]string{"node": args}, func(w io.Writer) { fprintf(w, "done\n") })
	})
}

func clusterRemoveCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "remove NODE...", Short: "Take stopped nodes out of a cluster"}
	return a.onCluster(cmd, func(ctx context.Context, f *clusterFlags, c *cluster.Client, args []string) error {
		for _, name := range args {
			if _, ok := f.Peers[name]; ok || driver.CheckRealm(name) != nil {
				return usagef("node %q: expected the name of a node that is not one of --peers", name)
			}
		}
		if err := c.Remove(ctx, args); err != nil {
			return err
		}
		return a.print(map[string][]string{"removed": args}, func(w io.Writer) { fprintf(w, "done\n") })
	})
}
