package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (a *app) registerCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "register PLAYER",
		Short: "Give a player the starting grants",
		Long: `Register gives a player the catalog's starting grants, unless they have them
already. The first draw, grant or redeemed code does the same. A transfer does not:
a player who only receives items and passes them on never gets starting grants.`,
		Example: `  kuji register ann`,
		Args:    exactArgs("PLAYER"),
	}
	conn := a.clientCommand(cmd)
	cmd.Flags().StringVar(&id, "id", "", idFlagHelp)
	why := newReasons(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		id := requestID(id)
		resp, err := call(cmd.Context(), c, id, c.rewards.Register, &kujiv1.RegisterRequest{
			Realm: c.realm, RequestId: id, Player: args[0], Reason: why.reason, Metadata: why.metadata,
		})
		return a.finish(id, 0, resp.GetResult(), err)
	})
	return cmd
}
