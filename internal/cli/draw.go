package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func drawCommand(a *app) *cobra.Command {
	req := &kujiv1.DrawRequest{}
	cmd := &cobra.Command{Use: "draw PLAYER POOL", Short: "Draw from a pool for a player"}
	cmd.Flags().Uint32Var(&req.Count, "count", 1, "how many draws, all or none")
	cmd.Flags().StringVar(&req.Pay, "pay", "", "pay the first price with this `item` in it (default: the first price that the player can pay)")
	return write(a, cmd, req, (*api).Draw, holding(cmd, &req.HoldMs, &req.Refund), func() error { return atLeast("count", req.GetCount(), 1) })
}
