package cli

import (
	"io"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func ranksCommand(a *app) *cobra.Command {
	req := &kujiv1.ListRanksRequest{}
	cmd := &cobra.Command{Use: "ranks COUNTER", Short: "Show who stands where in a counter that ranks players"}
	flags := cmd.Flags()
	flags.BoolVar(&req.Ended, "ended", false, "the standing of the last period that ended")
	flags.StringVar(&req.Around, "around", "", "the ranks around this `player`")
	flags.Uint64Var(&req.RankFrom, "from", 0, "the first rank (default 1)")
	flags.Uint32Var(&req.RankLimit, "limit", 0, "how many ranks at most (default 100)")
	return read(a, cmd, req, (*api).ListRanks, printRanks)
}

func printRanks(w io.Writer, page *kujiv1.ListRanksResponse) {
	rows(w, "RANK\tPLAYER\tVALUE", page.GetRanks(), func(r *kujiv1.Rank) []any {
		return []any{r.GetRank(), word(r.GetPlayer()), r.GetValue()}
	})
	fprintf(w, "\n%d in the standing%s\n", page.GetRankCount(), when(page.GetEndsUnixMs() != 0, ", which ends at "+timeText(page.GetEndsUnixMs())))
}
