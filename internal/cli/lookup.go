package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func resultCommand(a *app) *cobra.Command {
	req := &kujiv1.GetResultRequest{}
	cmd := &cobra.Command{Use: "result ID", Short: "Show the answer to an earlier request"}
	cmd.Flags().StringVar(&req.Player, "player", "", "whose request it was: shows the codes that it gave, to a key that may draw")
	return a.online(cmd, func(ctx context.Context, c *api, args []string) error {
		req.Realm, req.RequestId = c.realm, args[0]
		resp, err := c.GetResult(ctx, req)
		if err != nil {
			return err
		}
		if err := a.print(plain{resp, args[0]}, func(w io.Writer) { printLookup(w, args[0], resp) }); err != nil || resp.GetResult() != nil {
			return err
		}
		if before := resp.GetForgottenBeforeUnixMs(); before != 0 {
			return refusedError{fmt.Sprintf("request %s is not remembered; it may have been answered and forgotten, like any from before %s", args[0], timeText(before))}
		}
		return refusedError{fmt.Sprintf("request %s was not seen", args[0])}
	})
}

func printLookup(w io.Writer, id string, l *kujiv1.GetResultResponse) {
	if l.GetResult() == nil {
		fprintf(w, "request\t%s\nseen\t%s\n", id, contract.Word(l.GetSeen()))
		return
	}
	printResult(w, id, drawsIn(l.GetResult().GetOutcomes()), l.GetResult())
	if l.GetPlayer() != "" {
		fprintf(w, "player\t%s\n", word(l.GetPlayer()))
	}
	fprintf(w, "time\t%s\n", timeText(l.GetResult().GetReceipt().GetTimeUnixMs()))
}
