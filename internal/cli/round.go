package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

func roundCommand(a *app) *cobra.Command {
	return group("round", "Open, join, settle and show rounds: giveaways, lotteries, gambles, duels",
		roundOpenCommand(a), roundJoinCommand(a), roundSettleCommand(a), roundRerollCommand(a), roundCancelCommand(a),
		roundGetCommand(a), roundListCommand(a))
}

func roundOpenCommand(a *app) *cobra.Command {
	req := &kujiv1.OpenRoundRequest{}
	cmd := &cobra.Command{Use: "open ROUND [ITEM=QUANTITY...]", Short: "Open a round; a player who is named stakes the items, or buys tickets"}
	cmd.Flags().StringVar(&req.Player, "player", "", "the `player` who opens and joins it")
	cmd.Flags().Uint64Var(&req.Tickets, "tickets", 0, "how many tickets the player buys (default: the player does not join)")
	return write(a, cmd, req, (*api).OpenRound, func() error { return givenAtLeastOne(cmd, "tickets", req.GetTickets()) })
}

func roundJoinCommand(a *app) *cobra.Command {
	req := &kujiv1.JoinRequest{}
	cmd := &cobra.Command{Use: "join PLAYER ROUND [ITEM=QUANTITY...]", Short: "Join a round, with a stake or with tickets"}
	cmd.Flags().Uint64Var(&req.Tickets, "tickets", 0, "how many tickets, of a round with tickets (default 1)")
	roundNumber(cmd, &req.Number)
	return write(a, cmd, req, (*api).Join, func() error {
		return errors.Join(givenAtLeastOne(cmd, "tickets", req.GetTickets()), givenAtLeastOne(cmd, "number", req.GetNumber()))
	})
}

func roundSettleCommand(a *app) *cobra.Command {
	req := &kujiv1.SettleRequest{}
	cmd := &cobra.Command{Use: "settle ROUND", Short: "Close a round, and choose its winners"}
	roundNumber(cmd, &req.Number)
	return write(a, cmd, req, (*api).Settle, func() error { return givenAtLeastOne(cmd, "number", req.GetNumber()) })
}

func roundRerollCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "reroll ROUND NUMBER", Short: "Draw one more winner of a round that was settled"}
	return write(a, cmd, &kujiv1.RerollRequest{}, (*api).Reroll)
}

func roundCancelCommand(a *app) *cobra.Command {
	req := &kujiv1.CancelRoundRequest{}
	cmd := &cobra.Command{Use: "cancel ROUND", Short: "Close a round, and give everything back"}
	roundNumber(cmd, &req.Number)
	return write(a, cmd, req, (*api).CancelRound, func() error { return givenAtLeastOne(cmd, "number", req.GetNumber()) })
}

// roundNumber adds the flag that says which round of a name is meant.
func roundNumber(cmd *cobra.Command, number *uint64) {
	cmd.Flags().Uint64Var(number, "number", 0, "the round's `number` (default: of those of this name that are open, the one opened last)")
}

// givenAtLeastOne refuses 0 for a flag that is given.
func givenAtLeastOne(cmd *cobra.Command, flag string, n uint64) error {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return atLeast(flag, n, 1)
}

func roundGetCommand(a *app) *cobra.Command {
	req := &kujiv1.GetRoundRequest{}
	cmd := &cobra.Command{Use: "get NUMBER", Short: "Show a round: who has joined it, and who has won"}
	limit := cmd.Flags().Int("limit", maxShown, "show at most this many entrants")
	cmd.Flags().Uint64Var(&req.EntrantOffset, "offset", 0, "leave out so many entrants, those who joined first")
	call := func(c *api, ctx context.Context, req *kujiv1.GetRoundRequest) (*kujiv1.GetRoundResponse, error) {
		if err := within("limit", *limit, 1, maxShown); err != nil {
			return nil, err
		}
		var all []*kujiv1.Entrant
		for {
			req.EntrantLimit = uint32(min(*limit-len(all), kuji.MaxEntrants))
			page, err := c.GetRound(ctx, req)
			if err != nil {
				return nil, err
			}
			some := page.GetEntrants()
			all = append(all, some...)
			req.EntrantOffset += uint64(len(some))
			if len(some) == 0 || len(all) == *limit || req.GetEntrantOffset() >= page.GetRound().GetEntrants() {
				page.Entrants = all
				return page, nil
			}
		}
	}
	return read(a, cmd, req, call, printRoundPage)
}

func roundListCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the rounds that are open"}
	return read(a, cmd, &kujiv1.ListRoundsRequest{RoundLimit: server.MaxPage}, (*api).ListRounds, func(w io.Writer, page *kujiv1.ListRoundsResponse) {
		if len(page.GetRounds()) == 0 {
			fprintf(w, "no rounds are open\n")
			return
		}
		rows(w, "ROUND\tNUMBER\tENTRANTS\tTICKETS\tOPENER\tOPENED\tUNTIL", page.GetRounds(), func(r *kujiv1.Round) []any {
			return []any{r.GetRound(), r.GetNumber(), r.GetEntrants(), r.GetTickets(), choose(r.GetOpener() != "", word(r.GetOpener()), "-"),
				timeText(r.GetOpenedUnixMs()), resetText(r.GetUntilUnixMs())}
		})
	})
}

func printRoundPage(w io.Writer, page *kujiv1.GetRoundResponse) {
	r := page.GetRound()
	fprintf(w, "round\t%s number %d\n", word(r.GetRound()), r.GetNumber())
	fprintf(w, "state\t%s\n", contract.Word(r.GetState()))
	if r.GetOpener() != "" {
		fprintf(w, "opener\t%s\n", word(r.GetOpener()))
	}
	fprintf(w, "opened\t%s\n", timeText(r.GetOpenedUnixMs()))
	if r.GetUntilUnixMs() != 0 {
		fprintf(w, "%s\t%s\n", choose(r.GetState() == kujiv1.RoundState_ROUND_STATE_OPEN, "until", "kept until"), timeText(r.GetUntilUnixMs()))
	}
	fprintf(w, "entrants\t%s with %s\n", whole(r.GetEntrants()), counted(r.GetTickets(), "ticket"))
	for i, won := range r.GetWinners() {
		fprintf(w, "winner %d\t%s%s\n", i+1, word(won.GetPlayer()), when(won.GetMissed(), ", who did not get the reward"))
	}
	if len(page.GetEntrants()) > 0 {
		rows(w, "\nENTRANT\tTICKETS\tHELD", page.GetEntrants(), func(e *kujiv1.Entrant) []any {
			return []any{word(e.GetPlayer()), e.GetTickets(), itemsText(e.GetHeld())}
		})
	}
}

// printRound writes which round a command has changed.
func printRound(w io.Writer, r *kujiv1.Round) {
	if r != nil {
		fprintf(w, "round\t%s %s\n", word(r.GetRound()), roundText(r))
	}
}

// roundText says which round of its name it is, and how it stands.
func roundText(r *kujiv1.Round) string {
	return fmt.Sprintf("number %d, %s, with %s", r.GetNumber(), contract.Word(r.GetState()), counted(r.GetEntrants(), "entrant"))
}
