package cli

import (
	"io"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type poolsJSON struct {
	Realm          string   `json:"realm"`
	CatalogVersion uint64   `json:"catalog_version"` // 0: there is no catalog yet
	Pools          []string `json:"pools"`           // in the order of the catalog
}

type realmsJSON struct {
	Realms []string `json:"realms"` // sorted
}

func (a *app) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the pools, players or holders of a realm, or the realms of a server",
		GroupID: "client",
		Args:    cobra.NoArgs,
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.listPoolsCommand(), a.listRealmsCommand(), a.listPlayersCommand(), a.listHoldersCommand())
	return cmd
}

func (a *app) listPoolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pools",
		Short:   "List the pools of the catalog in force, in its order",
		Example: "  kuji list pools --realm summer",
		Args:    exactArgs(),
	}
	conn := a.connection(cmd.Flags())
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		// All pools come in one answer: a catalog has a few thousand at most. Items are not asked for.
		resp, err := call(cmd.Context(), c, "", c.rewards.GetCatalog, &kujiv1.GetCatalogRequest{Realm: c.realm, ItemLimit: 1})
		if err != nil {
			return err
		}
		out := poolsJSON{c.realm, resp.GetVersion(), append([]string{}, resp.GetPools()...)}
		return a.print(out, func(w io.Writer) { printLines(w, out.Pools) })
	})
	return cmd
}

func (a *app) listRealmsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "realms",
		Short:   "List the realms of a server, sorted",
		Example: "  kuji list realms",
		Args:    exactArgs(),
	}
	conn := a.connection(cmd.Flags())
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		resp, err := call(cmd.Context(), c, "", c.admin.ListRealms, &kujiv1.ListRealmsRequest{})
		if err != nil {
			return err
		}
		out := realmsJSON{append([]string{}, resp.GetRealms()...)}
		return a.print(out, func(w io.Writer) { printLines(w, out.Realms) })
	})
	return cmd
}

func printLines(w io.Writer, lines []string) {
	for _, line := range lines {
		fprintf(w, "%s\n", word(line))
	}
}
