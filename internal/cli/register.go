package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func registerCommand(a *app) *cobra.Command {
	return write(a, &cobra.Command{
		Use:   "register PLAYER",
		Short: "Give a player the starting grants",
		Long: `Register gives a player the catalog's starting grants, unless they have them
already. The first draw, grant or redeemed code does the same. A transfer does not:
a player who only receives items and passes them on never gets starting grants.`,
		Example: `  kuji register ann`,
	}, &kujiv1.RegisterRequest{}, (*api).Register)
}
