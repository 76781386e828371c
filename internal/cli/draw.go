package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func drawCommand(a *app) *cobra.Command {
	req := &kujiv1.DrawRequest{}
	cmd := &cobra.Command{
		Use:   "draw PLAYER POOL",
		Short: "Draw from a pool for a player",
		Long: `Draw draws from a pool for a player. Outcomes, price, limits and grants happen
together, or not at all.

If an answer is lost, the command tries again with the same request id, which can
never draw twice. If no answer comes at all, it ends with exit code 5. If it has
sent anything, it prints the id to try again with.`,
		Example: `  kuji draw ann splash
  kuji draw ann banner --count 10 --json
  kuji draw ann banner --pay starlight`,
	}
	cmd.Flags().Uint32Var(&req.Count, "count", 1, "how many draws, all or none")
	cmd.Flags().StringVar(&req.Pay, "pay", "", "pay the first price with this `item` in it (default: the first price that the player can pay)")
	return write(a, cmd, req, (*api).Draw, func() error { return atLeast("count", req.GetCount(), 1) })
}
