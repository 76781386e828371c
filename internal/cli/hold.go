package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func holdCommand(a *app) *cobra.Command {
	return group("hold", "Confirm, cancel and show what is held",
		holdConfirmCommand(a), holdCancelCommand(a), holdGetCommand(a), holdListCommand(a))
}

func holdConfirmCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "confirm HOLD", Short: "Give for good what a request gives that is held"}
	return write(a, cmd, &kujiv1.ConfirmRequest{}, (*api).Confirm)
}

func holdCancelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "cancel HOLD", Short: "Give back what a request has taken that is held"}
	return write(a, cmd, &kujiv1.CancelRequest{}, (*api).Cancel)
}

func holdGetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "get HOLD", Short: "Show what is held, or what became of it"}
	return read(a, cmd, &kujiv1.GetHoldRequest{}, (*api).GetHold, func(w io.Writer, resp *kujiv1.GetHoldResponse) {
		h := resp.GetHold()
		fprintf(w, "hold\t%s%s\n", word(h.GetHold()), when(h.GetRefund(), ", with a refund"))
		fprintf(w, "state\t%s%s\n", contract.Word(h.GetState()), when(h.GetBy() != "", " by "+word(h.GetBy())))
		fprintf(w, "asked\t%s\n", timeText(h.GetAskedUnixMs()))
		if h.GetState() == kujiv1.HoldState_HOLD_STATE_OPEN {
			fprintf(w, "until\t%s\n", timeText(h.GetUntilUnixMs()))
		} else {
			fprintf(w, "ended\t%s\n", timeText(h.GetEndedUnixMs()))
		}
		printParts(w, h)
	})
}

func holdListCommand(a *app) *cobra.Command {
	req := &kujiv1.ListHoldsRequest{}
	cmd := &cobra.Command{Use: "list", Short: "List what is held, by deadline"}
	limit := cmd.Flags().Int("limit", maxShown, "show at most this many holds")
	cmd.Flags().StringVar(&req.Player, "player", "", "only holds in which something of this `player` is held, by their ids")
	all := pages(limit, (*api).ListHolds, func(req *kujiv1.ListHoldsRequest, page *kujiv1.ListHoldsResponse) (int, bool) {
		some := page.GetHolds()
		if len(some) == 0 {
			return 0, false
		}
		if req.After = some[len(some)-1].GetHold(); req.GetPlayer() == "" {
			req.AfterUnixMs = some[len(some)-1].GetUntilUnixMs()
		}
		return len(some), page.GetMore()
	})
	return read(a, cmd, req, all, func(w io.Writer, page *kujiv1.ListHoldsResponse) {
		if len(page.GetHolds()) == 0 {
			fprintf(w, "nothing is held\n")
			return
		}
		rows(w, "HOLD\tUNTIL\tWHAT", page.GetHolds(), func(h *kujiv1.Hold) []any {
			return []any{word(h.GetHold()), timeText(h.GetUntilUnixMs()), strings.Join(each(h.GetParts(), partText), "; ")}
		})
	})
}

// printHold writes what a command has left of a hold, and what it gave.
func printHold(w io.Writer, r *kujiv1.Result) {
	if h := r.GetHold(); r.GetStatus() == kujiv1.Status_STATUS_OK && h != nil {
		until := when(h.GetUntilUnixMs() != 0, " until "+timeText(h.GetUntilUnixMs()))
		fprintf(w, "hold\t%s is %s%s\n", word(h.GetHold()), contract.Word(h.GetState()), until)
		printParts(w, h)
	}
	printGiven(w, r.GetGiven())
}

func printParts(w io.Writer, h *kujiv1.Hold) {
	for _, p := range h.GetParts() {
		fprintf(w, "held\t%s\n", partText(p))
	}
}

func printGiven(w io.Writer, g *kujiv1.Given) {
	if g != nil {
		fprintf(w, "given\t%s\n", gaveText(&kujiv1.Outcome{Items: g.GetItems(), Codes: g.GetCodes()}))
	}
}

// partText says what is held of a member.
func partText(p *kujiv1.HeldPart) string {
	parts := []string{p.GetKind() + " of " + word(p.GetPlayer())}
	if p.GetTo() != "" {
		parts[0] += " to " + word(p.GetTo())
	}
	if p.GetDraws() > 0 {
		parts = append(parts, fmt.Sprintf("%s from %s to be made", counted(p.GetDraws(), "draw"), word(p.GetPool())))
	}
	if len(p.GetTakes()) > 0 {
		parts = append(parts, "takes "+itemsText(p.GetTakes()))
	}
	if len(p.GetGives()) > 0 {
		parts = append(parts, "gives "+itemsText(p.GetGives()))
	}
	if p.GetCodes() > 0 {
		parts = append(parts, counted(uint64(p.GetCodes()), "code"))
	}
	return strings.Join(parts, ", ")
}

// heldOf returns what an event of the API says of a hold, as records have it.
func heldOf(h *kujiv1.Hold) *kuji.HoldView {
	if h == nil {
		return nil
	}
	v := &kuji.HoldView{ID: h.GetHold(), State: contract.Word(h.GetState()), Refund: h.GetRefund(), Asked: h.GetAskedUnixMs(), Until: h.GetUntilUnixMs(),
		Ended: h.GetEndedUnixMs(), By: h.GetBy()}
	if h.GetState() == kujiv1.HoldState_HOLD_STATE_UNSPECIFIED {
		v.State = ""
	}
	held := func(s *kujiv1.Stack) kuji.HeldView {
		return kuji.HeldView{Item: s.GetItem(), Quantity: s.GetQuantity()}
	}
	v.Parts = each(h.GetParts(), func(p *kujiv1.HeldPart) kuji.HeldPart {
		return kuji.HeldPart{Kind: p.GetKind(), Player: p.GetPlayer(), To: p.GetTo(), Pool: p.GetPool(), Draws: p.GetDraws(),
			Takes: each(p.GetTakes(), held), Gives: each(p.GetGives(), held), Codes: int(p.GetCodes())}
	})
	return v
}

// holding adds the flags that say how a request is held.
func holding(cmd *cobra.Command, ms *int64, refund *bool) func() error {
	d := cmd.Flags().Duration("hold", 0, "hold it for so long, until it is confirmed: 1s to 720h (default: it is not held)")
	cmd.Flags().BoolVar(refund, "refund", false, "with --hold: everything comes back if nobody confirms it, and draws are made when it is confirmed")
	return func() error {
		switch {
		case cmd.Flags().Changed("hold") && *d < time.Second:
			return usagef("--hold %v: expected a time from 1s to 720h", *d)
		case *refund && *d == 0:
			return usagef("--refund: expected --hold with it")
		}
		*ms = d.Milliseconds()
		return nil
	}
}
