package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func registerCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "register PLAYER", Short: "Give a player the starting grants"}
	return write(a, cmd, &kujiv1.RegisterRequest{}, (*api).Register)
}
