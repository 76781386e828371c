package cli

import (
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func playerCommand(a *app) *cobra.Command {
	return read(a, &cobra.Command{
		Use:     "player PLAYER",
		Short:   "Show what a player holds, how far pity has counted and what is left of limits and free draws",
		Example: "  kuji player ann",
	}, &kujiv1.GetPlayerRequest{}, (*api).GetPlayer,
		func(w io.Writer, resp *kujiv1.GetPlayerResponse) { printPlayer(w, resp.GetPlayer()) })
}

func printPlayer(w io.Writer, p *kujiv1.Player) {
	if len(p.GetItems()) == 0 {
		fprintf(w, "%s holds nothing\n", word(p.GetId()))
	} else {
		fprintf(w, "ITEM\tQUANTITY\n")
	}
	for _, s := range p.GetItems() {
		fprintf(w, "%s\t%d\n", s.GetItem(), s.GetQuantity())
	}
	if len(p.GetPity()) > 0 {
		fprintf(w, "\nPITY\tDRAWS\tCERTAIN IN\n")
	}
	for _, t := range p.GetPity() {
		certain := "-"
		if t.GetCertainIn() != 0 {
			certain = certainText(t.GetCertainIn(), t.GetPool(), t.GetUnless())
		}
		fprintf(w, "%s\t%d\t%s\n", t.GetTrack(), t.GetDraws(), certain)
	}
	printLimits(w, "LIMIT", p.GetLimits())
	printLimits(w, "FREE DRAWS", p.GetFree())
}

// certainText says in how many draws a hit is certain: from which pool, and what can come in its place.
func certainText(in uint64, pool, unless string) string {
	text := strconv.FormatUint(in, 10)
	if pool != "" {
		text += " from " + pool
	}
	if unless != "" {
		text += " unless " + strings.ReplaceAll(unless, ", ", " or ") + " comes"
	}
	return text
}
