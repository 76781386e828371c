package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/driver"
)

func clusterDrainCommand(a *app) *cobra.Command {
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
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.clusterClient(&f)
			if err != nil {
				return err
			}
			if _, ok := f.Peers[args[0]]; !ok {
				return usagef("node %q: expected one of --peers: %s", args[0], strings.Join(f.Names(), ", "))
			}
			if err := client.Drain(cmd.Context(), args[0], undo); err != nil {
				return err
			}
			return a.print(map[string][]string{"node": args}, func(w io.Writer) { fprintf(w, "done\n") })
		},
	}
	f.member(cmd)
	cmd.Flags().BoolVar(&undo, "undo", false, "let the node lead again")
	return cmd
}

func clusterRemoveCommand(a *app) *cobra.Command {
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
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.clusterClient(&f)
			if err != nil {
				return err
			}
			for _, name := range args {
				if _, ok := f.Peers[name]; ok || driver.CheckRealm(name) != nil {
					return usagef("node %q: expected the name of a node that is not one of --peers", name)
				}
			}
			if err := client.Remove(cmd.Context(), args); err != nil {
				return err
			}
			return a.print(map[string][]string{"removed": args}, func(w io.Writer) { fprintf(w, "done\n") })
		},
	}
	f.member(cmd)
	return cmd
}
