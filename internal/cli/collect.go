package cli

import (
	"io"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func collectCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "collect PLAYER", Short: "Give a player what fits from the mailbox"}
	return write(a, cmd, &kujiv1.CollectRequest{}, (*api).Collect)
}

// printBeyond writes a line for each item that a player did not get.
func printBeyond(w io.Writer, all []*kujiv1.Beyond) {
	for _, b := range all {
		fprintf(w, "%s\t%d %s%s\n", b.GetHow(), b.GetQuantity(), word(b.GetItem()), when(b.GetPlayer() != "", " of "+word(b.GetPlayer())))
	}
}
