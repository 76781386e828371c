package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func listCommand(a *app) *cobra.Command {
	return group("list", "List the pools, players or holders of a realm, or the realms of a server",
		listPoolsCommand(a), listRealmsCommand(a), listPlayersCommand(a), listHoldersCommand(a))
}

func listPoolsCommand(a *app) *cobra.Command {
	// All pools come in one answer: a catalog has a few thousand at most. Items are not asked for.
	call := func(c *api, ctx context.Context, req *kujiv1.GetCatalogRequest) (*kujiv1.GetCatalogResponse, error) {
		resp, err := c.GetCatalog(ctx, req)
		return &kujiv1.GetCatalogResponse{Version: resp.GetVersion(), Pools: resp.GetPools()}, err
	}
	cmd := &cobra.Command{Use: "pools", Short: "List the pools of the catalog in force, in its order"}
	return read(a, cmd, &kujiv1.GetCatalogRequest{ItemLimit: 1}, call,
		func(w io.Writer, resp *kujiv1.GetCatalogResponse) { printLines(w, resp.GetPools()) })
}

func listRealmsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "realms", Short: "List the realms of a server, sorted"}
	return read(a, cmd, &kujiv1.ListRealmsRequest{}, (*api).ListRealms,
		func(w io.Writer, resp *kujiv1.ListRealmsResponse) { printLines(w, resp.GetRealms()) })
}

func printLines(w io.Writer, lines []string) {
	for _, line := range lines {
		fprintf(w, "%s\n", word(line))
	}
}
