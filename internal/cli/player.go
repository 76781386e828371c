package cli

import (
	"cmp"
	"io"
	"strings"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func playerCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "player PLAYER",
		Short: "Show what a player holds and until when, how far counters and quests are, and what is left of limits",
	}
	cmd.AddCommand(identityCommands(a)...)
	return read(a, cmd, &kujiv1.GetPlayerRequest{}, (*api).GetPlayer,
		func(w io.Writer, resp *kujiv1.GetPlayerResponse) { printPlayer(w, resp.GetPlayer()) })
}

func printPlayer(w io.Writer, p *kujiv1.Player) {
	if len(p.GetItems()) == 0 {
		fprintf(w, "%s holds nothing\n", word(p.GetId()))
	} else {
		rows(w, "ITEM\tQUANTITY", p.GetItems(), func(s *kujiv1.Stack) []any { return []any{s.GetItem(), s.GetQuantity()} })
	}
	if p.GetBlocked() != "" {
		fprintf(w, "\nblocked: %s\n", p.GetBlocked())
	}
	if len(p.GetAliases()) > 0 {
		rows(w, "\nNAME\tMERGED", p.GetAliases(), func(n *kujiv1.Alias) []any { return []any{word(n.GetName()), choose(n.GetMerged(), "yes", "-")} })
	}
	if len(p.GetHeld()) > 0 {
		rows(w, "\nHELD\tQUANTITY", p.GetHeld(), func(s *kujiv1.Stack) []any { return []any{s.GetItem(), s.GetQuantity()} })
	}
	if len(p.GetMail()) > 0 {
		rows(w, "\nMAIL\tQUANTITY\tUNTIL", p.GetMail(), func(l *kujiv1.Lot) []any { return []any{l.GetItem(), l.GetQuantity(), timeText(l.GetUntilUnixMs())} })
	}
	if len(p.GetLots()) > 0 {
		rows(w, "\nLOT\tQUANTITY\tUNTIL", p.GetLots(), func(l *kujiv1.Lot) []any { return []any{l.GetItem(), l.GetQuantity(), timeText(l.GetUntilUnixMs())} })
	}
	if len(p.GetPity()) > 0 {
		rows(w, "\nPITY\tDRAWS\tCERTAIN IN", p.GetPity(), func(t *kujiv1.PlayerTrack) []any {
			certain := when(t.GetCertainIn() != 0, certainText(t.GetCertainIn(), t.GetPool(), t.GetUnless()))
			return []any{t.GetTrack(), t.GetDraws(), cmp.Or(certain, "-")}
		})
	}
	printLimits(w, "LIMIT", p.GetLimits())
	printLimits(w, "FREE DRAWS", p.GetFree())
	printCounters(w, p.GetCounters())
	printQuests(w, p.GetQuests())
}

// certainText says in how many draws a hit is certain: from which pool, and what can come in its place.
func certainText(in uint64, pool, unless string) string {
	return whole(in) + when(pool != "", " from "+pool) + when(unless != "", " unless "+strings.ReplaceAll(unless, ", ", " or ")+" comes")
}
