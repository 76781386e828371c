package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

type historyJSON struct {
	Events []kuji.Record `json:"events"`          // the newest first
	Before plain         `json:"before,omitzero"` // for --before, which continues with older ones; absent: these are all
	State  plain         `json:"state"`
}

// printState says what the reader of an answer should know, if it is not all there is.
func printState(w io.Writer, s *kujiv1.HistoryState) {
	if s.GetLag() > 0 {
		fprintf(w, "\nThe history is %s behind.\n", counted(s.GetLag(), "position"))
	}
	if s.GetCompleteFrom() > 1 {
		fprintf(w, "\nThe history begins at position %d: the log before was trimmed.\n", s.GetCompleteFrom())
	}
	if s.GetKeptFrom() > 0 {
		fprintf(w, "\nThe history is kept from position %d of %s on: older events were removed.\n", s.GetKeptFrom(), timeText(s.GetKeptFromUnixMs()))
	}
	if s.GetProvenFrom() > 0 {
		fprintf(w, "\nNot proven: events before position %d, and balances that rest on them. The log no longer has them.\n", s.GetProvenFrom())
	}
}

const freshText = "wait until the history has everything that happened so far"

// maxShown is the most that one call of history or list shows.
const maxShown = 100_000

func historyCommand(a *app) *cobra.Command {
	var before string
	req := &kujiv1.GetHistoryRequest{}
	cmd := &cobra.Command{
		Use:   "history [PLAYER]",
		Short: "Show what happened to a player, in a pool or to an item",
		Long: `Show what happened to a player, in a pool or to an item, newest first. Each event
shows who asked and why, what was paid, and the balances after it. With a player and
--item, show only events that changed the player's number of the item.

The server answers from its history, a database that follows the log. The answer says
if the history has not caught up yet, or lacks the first events. For a player whose
name is verify, write "kuji history -- verify".`,
		Example: `  kuji history ann
  kuji history ann --item sword
  kuji history --pool banner --limit 10
  kuji history --item sword --before 1205.3 --json`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.AddCommand(historyVerifyCommand(a))
	conn := a.connection(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&req.Pool, "pool", "", "events about this `pool`")
	flags.StringVar(&req.Item, "item", "", "events that changed how many of this `item` somebody holds")
	flags.StringVar(&before, "before", "", "only events before this `place`: POSITION or POSITION.INDEX, as the first column shows it")
	limit := flags.Int("limit", 100, "show at most so many events")
	flags.BoolVar(&req.Fresh, "fresh", false, freshText)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) > 0 {
			req.Player = args[0]
		}
		if req.GetPlayer() == "" && req.GetPool() == "" && req.GetItem() == "" {
			return usagef("want a player, --pool or --item")
		}
		if req.Before, err = parsePlace(before); err != nil {
			return err
		}
		if err := checkShownLimit(*limit); err != nil {
			return err
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		req.Realm = c.realm
		var events []kuji.Record
		var last *kujiv1.GetHistoryResponse
		err = pages(*limit, func(most uint32) (int, bool, error) {
			req.Limit = most
			if last, err = c.GetHistory(cmd.Context(), req); err != nil {
				return 0, false, err
			}
			for _, e := range last.GetEvents() {
				events = append(events, recordOf(e))
			}
			req.Before = last.GetBefore()
			return len(last.GetEvents()), req.Before != nil, nil
		})
		if err != nil {
			return err
		}
		out := &historyJSON{Events: append([]kuji.Record{}, events...), State: plain{last.GetState()}}
		if at := last.GetBefore(); at != nil {
			out.Before = plain{at}
		}
		return a.print(out, func(w io.Writer) { printHistory(w, events, last) })
	}
	return cmd
}

func checkShownLimit(limit int) error {
	if limit < 1 || limit > maxShown {
		return usagef("--limit %d: expected from 1 to %d", limit, maxShown)
	}
	return nil
}

// pages reads pages until limit is reached. page returns how many it read, and whether there are more.
func pages(limit int, page func(most uint32) (n int, more bool, err error)) error {
	for limit > 0 {
		n, more, err := page(uint32(min(limit, server.MaxHistoryPage)))
		if err != nil || !more {
			return err
		}
		limit -= n
	}
	return nil
}

// parsePlace reads POSITION or POSITION.INDEX; nothing is nil.
func parsePlace(s string) (*kujiv1.EventPlace, error) {
	if s == "" {
		return nil, nil
	}
	position, index, both := strings.Cut(s, ".")
	p, err := strconv.ParseUint(position, 10, 64)
	i := uint64(0)
	if err == nil && both {
		i, err = strconv.ParseUint(index, 10, 32)
	}
	if err != nil || p == 0 {
		return nil, usagef("--before %q: expected POSITION or POSITION.INDEX, such as 1205.3", s)
	}
	return &kujiv1.EventPlace{Position: p, Index: uint32(i)}, nil
}

func printHistory(w io.Writer, events []kuji.Record, last *kujiv1.GetHistoryResponse) {
	if len(events) == 0 {
		fprintf(w, "nothing\n")
	}
	for i := range events {
		rec := &events[i]
		fprintf(w, "%d.%d  %s  %s\n", rec.Position, rec.Index, timeText(rec.Time), recordText(rec))
		for _, s := range rec.Paid {
			fprintf(w, "    paid %d %s\n", s.Quantity, s.Item)
		}
		for _, c := range rec.Changes {
			after := ""
			if c.Balance != nil {
				after = fmt.Sprintf(" → %d", *c.Balance)
			}
			fprintf(w, "    %s %s %+d%s\n", word(c.Player), word(c.Item), c.Delta, after)
		}
		if rec.By != "" || rec.Reason != "" {
			fprintf(w, "    by %s\n", strings.TrimSuffix(orDash(rec.By)+": "+rec.Reason, ": "))
		}
		if rec.Metadata != "" {
			fprintf(w, "    metadata %q\n", rec.Metadata)
		}
	}
	if at := last.GetBefore(); at != nil {
		fprintf(w, "\nOlder events: --before %d.%d\n", at.GetPosition(), at.GetIndex())
	}
	printState(w, last.GetState())
}

func orDash(s string) string { return cmp.Or(s, "-") }

// listFlags adds the flags of lists from the history.
func listFlags(cmd *cobra.Command, after *string, fresh *bool) (limit *int) {
	cmd.Flags().StringVar(after, "after", "", "only those after this `player`")
	cmd.Flags().BoolVar(fresh, "fresh", false, freshText)
	return cmd.Flags().Int("limit", maxShown, "list at most so many")
}

func listPlayersCommand(a *app) *cobra.Command {
	req := &kujiv1.ListPlayersRequest{}
	cmd := &cobra.Command{
		Use:     "players",
		Short:   "List the players of a realm, sorted, from its history",
		Example: "  kuji list players --after ann --limit 100",
		Args:    exactArgs(),
	}
	limit := listFlags(cmd, &req.After, &req.Fresh)
	call := func(c *api, ctx context.Context, req *kujiv1.ListPlayersRequest) (*kujiv1.ListPlayersResponse, error) {
		all := &kujiv1.ListPlayersResponse{}
		return all, cmp.Or(checkShownLimit(*limit), pages(*limit, func(most uint32) (int, bool, error) {
			req.Limit = most
			page, err := c.ListPlayers(ctx, req)
			n := len(page.GetPlayers())
			if n > 0 {
				req.After = page.GetPlayers()[n-1]
			}
			all.Players, all.More, all.State = append(all.Players, page.GetPlayers()...), page.GetMore(), page.GetState()
			return n, page.GetMore() && n > 0, err
		}))
	}
	return read(a, cmd, req, call, noArgs, func(w io.Writer, resp *kujiv1.ListPlayersResponse) {
		printLines(w, resp.GetPlayers())
		printState(w, resp.GetState())
	})
}

func listHoldersCommand(a *app) *cobra.Command {
	req := &kujiv1.ListHoldersRequest{}
	cmd := &cobra.Command{
		Use:     "holders ITEM",
		Short:   "List who holds an item, and how many, from the realm's history",
		Example: "  kuji list holders sword",
		Args:    exactArgs("ITEM"),
	}
	limit := listFlags(cmd, &req.After, &req.Fresh)
	call := func(c *api, ctx context.Context, req *kujiv1.ListHoldersRequest) (*kujiv1.ListHoldersResponse, error) {
		all := &kujiv1.ListHoldersResponse{}
		return all, cmp.Or(checkShownLimit(*limit), pages(*limit, func(most uint32) (int, bool, error) {
			req.Limit = most
			page, err := c.ListHolders(ctx, req)
			n := len(page.GetHolders())
			if n > 0 {
				req.After = page.GetHolders()[n-1].GetPlayer()
			}
			all.Holders, all.More, all.State = append(all.Holders, page.GetHolders()...), page.GetMore(), page.GetState()
			return n, page.GetMore() && n > 0, err
		}))
	}
	return read(a, cmd, req, call, func(args []string) { req.Item = args[0] }, func(w io.Writer, resp *kujiv1.ListHoldersResponse) {
		fprintf(w, "PLAYER\tQUANTITY\n")
		for _, h := range resp.GetHolders() {
			fprintf(w, "%s\t%d\n", word(h.GetPlayer()), h.GetQuantity())
		}
		printState(w, resp.GetState())
	})
}
