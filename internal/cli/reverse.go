package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func reverseCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "reverse REQUEST --reason TEXT", Short: "Undo a grant or a draw, as far as the player still has what it gave"}
	return write(a, cmd, &kujiv1.ReverseRequest{}, (*api).Reverse, needsReason(cmd, "it is reversed"))
}
