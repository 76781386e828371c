package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

const idFlagHelp = "request `id`; the same id again returns the first result (default: a new one, which is printed)"

func (a *app) drawCommand() *cobra.Command {
	var (
		id, pay string
		count   uint32
	)
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
		Args: exactArgs("PLAYER", "POOL"),
	}
	conn := a.clientCommand(cmd)
	cmd.Flags().StringVar(&id, "id", "", idFlagHelp)
	cmd.Flags().Uint32Var(&count, "count", 1, "how many draws, all or none")
	cmd.Flags().StringVar(&pay, "pay", "", "pay the first price with this `item` in it (default: the first price that the player can pay)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := atLeast("count", count, 1); err != nil {
			return err
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		id := requestID(id)
		resp, err := call(cmd.Context(), c, id, c.rewards.Draw, &kujiv1.DrawRequest{
			Realm: c.realm, RequestId: id, Player: args[0], Pool: args[1], Count: count, Pay: pay,
		})
		return a.finish(id, int(count), resp.GetResult(), err)
	}
	return cmd
}
