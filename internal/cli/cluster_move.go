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
