package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// knownJSON says what the history knew.
type knownJSON struct {
	Position     uint64 `json:"position"`      // it had every event up to here
	Lag          uint64 `json:"lag"`           // by how many positions it was behind the realm
	CompleteFrom uint64 `json:"complete_from"` // it had every event from this position on
	// Events before this position were older than --history-age, and are removed; absent: none were.
	KeptFrom     uint64 `json:"kept_from,omitempty"`
	KeptFromTime int64  `json:"kept_from_unix_ms,omitempty"` // time of the oldest that is kept
	// Every event from this position on is as the log has it. Those before, and balances that rest on them,
	// are not proven; absent: all are.
	ProvenFrom uint64 `json:"proven_from,omitempty"`
}

type historyJSON struct {
	Realm  string        `json:"realm"`
	Events []kuji.Record `json:"events"`           // the newest first
	Before string        `json:"before,omitempty"` // for --before, to go on with older ones; none: there are none
	knownJSON
}

func newKnownJSON(s *kujiv1.HistoryState) knownJSON {
	return knownJSON{s.GetPosition(), s.GetLag(), s.GetCompleteFrom(), s.GetKeptFrom(), s.GetKeptFromUnixMs(), s.GetProvenFrom()}
}

// print says what the reader of an answer should know, if it is not all there is.
func (k *knownJSON) print(w io.Writer) {
	if k.Lag > 0 {
		fprintf(w, "\nThe history is %s behind.\n", counted(k.Lag, "position"))
	}
	if k.CompleteFrom > 1 {
		fprintf(w, "\nThe history begins at position %d: the log before was trimmed.\n", k.CompleteFrom)
	}
	if k.KeptFrom > 0 {
		fprintf(w, "\nThe history is kept from position %d of %s on: older events were removed.\n", k.KeptFrom, timeText(k.KeptFromTime))
	}
	if k.ProvenFrom > 0 {
		fprintf(w, "\nNot proven: events before position %d, and balances that rest on them. The log no longer has them.\n", k.ProvenFrom)
	}
}

const freshText = "wait until the history has everything that happened so far"

// maxShown is the most that one call of history or list shows.
const maxShown = 100_000

func (a *app) historyCommand() *cobra.Command {
	var pool, item, before string
	var limit int
	var fresh bool
	cmd := &cobra.Command{
		Use:     "history [PLAYER]",
		Short:   "Show what happened to a player, in a pool or to an item",
		GroupID: "client",
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
	cmd.AddCommand(a.historyVerifyCommand())
	conn := a.clientCommand(cmd)
	flags := cmd.Flags()
	flags.StringVar(&pool, "pool", "", "events about this `pool`")
	flags.StringVar(&item, "item", "", "events that changed how many of this `item` somebody holds")
	flags.StringVar(&before, "before", "", "only events before this `place`: POSITION or POSITION.INDEX, as the first column shows it")
	flags.IntVar(&limit, "limit", 100, "show at most so many events")
	flags.BoolVar(&fresh, "fresh", false, freshText)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req := &kujiv1.GetHistoryRequest{Pool: pool, Item: item, Fresh: fresh}
		if len(args) > 0 {
			req.Player = args[0]
		}
		if req.GetPlayer() == "" && pool == "" && item == "" {
			return usageError{errors.New("want a player, --pool or --item")}
		}
		if limit < 1 || limit > maxShown {
			return usageError{fmt.Errorf("--limit %d: expected from 1 to %d", limit, maxShown)}
		}
		var err error
		if req.Before, err = parsePlace(before); err != nil {
			return err
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		req.Realm = c.realm
		out, err := readHistory(cmd.Context(), c, req, limit)
		if err != nil {
			return err
		}
		return a.print(out, func(w io.Writer) { out.print(w) })
	}
	return cmd
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
		return nil, usageError{fmt.Errorf("--before %q: expected POSITION or POSITION.INDEX, such as 1205.3", s)}
	}
	return &kujiv1.EventPlace{Position: p, Index: uint32(i)}, nil
}

// readHistory reads pages until there are enough events.
func readHistory(ctx context.Context, c *client, req *kujiv1.GetHistoryRequest, limit int) (*historyJSON, error) {
	out := &historyJSON{Realm: c.realm, Events: []kuji.Record{}}
	for {
		req.Limit = uint32(min(limit-len(out.Events), server.MaxHistoryPage))
		resp, err := call(ctx, c, "", c.rewards.GetHistory, req)
		if err != nil {
			return nil, err
		}
		for _, e := range resp.GetEvents() {
			out.Events = append(out.Events, recordOf(e))
		}
		out.knownJSON, out.Before = newKnownJSON(resp.GetState()), ""
		if req.Before = resp.GetBefore(); req.Before == nil {
			return out, nil
		}
		out.Before = fmt.Sprintf("%d.%d", req.GetBefore().GetPosition(), req.GetBefore().GetIndex())
		if len(out.Events) >= limit {
			return out, nil
		}
	}
}

func (h *historyJSON) print(w io.Writer) {
	if len(h.Events) == 0 {
		fprintf(w, "nothing\n")
	}
	for i := range h.Events {
		rec := &h.Events[i]
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
	if h.Before != "" {
		fprintf(w, "\nOlder events: --before %s\n", h.Before)
	}
	h.knownJSON.print(w)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type playersJSON struct {
	Realm   string   `json:"realm"`
	Players []string `json:"players"` // sorted
	More    bool     `json:"more"`    // behind the last one
	knownJSON
}

type holderJSON struct {
	Player   string `json:"player"`
	Quantity uint64 `json:"quantity"`
}

type holdersJSON struct {
	Realm   string       `json:"realm"`
	Item    string       `json:"item"`
	Holders []holderJSON `json:"holders"` // in the order in which the players came
	More    bool         `json:"more"`    // behind the last one
	knownJSON
}

// listFlags are the flags of lists from the history.
type listFlags struct {
	after string
	limit int
	fresh bool
}

func (f *listFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.after, "after", "", "only those behind this `player`")
	cmd.Flags().IntVar(&f.limit, "limit", maxShown, "list at most so many")
	cmd.Flags().BoolVar(&f.fresh, "fresh", false, freshText)
}

// pages reads pages until there are enough. page returns how many it read, the last player, and
// whether there are more.
func (f *listFlags) pages(page func(after string, limit uint32) (n int, last string, more bool, err error)) error {
	if f.limit < 1 || f.limit > maxShown {
		return usageError{fmt.Errorf("--limit %d: expected from 1 to %d", f.limit, maxShown)}
	}
	for left, after := f.limit, f.after; left > 0; {
		n, last, more, err := page(after, uint32(min(left, server.MaxHistoryPage, math.MaxInt32)))
		if err != nil || !more || n == 0 {
			return err
		}
		left, after = left-n, last
	}
	return nil
}

func (a *app) listPlayersCommand() *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:     "players",
		Short:   "List the players of a realm, sorted, from its history",
		Example: "  kuji list players --after ann --limit 100",
		Args:    exactArgs(),
	}
	conn := a.connection(cmd.Flags())
	f.add(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		out := playersJSON{Realm: c.realm, Players: []string{}}
		if err := f.pages(func(after string, limit uint32) (int, string, bool, error) {
			resp, err := call(cmd.Context(), c, "", c.rewards.ListPlayers, &kujiv1.ListPlayersRequest{Realm: c.realm, After: after, Limit: limit, Fresh: f.fresh})
			if err != nil {
				return 0, "", false, err
			}
			out.Players = append(out.Players, resp.GetPlayers()...)
			out.More, out.knownJSON = resp.GetMore(), newKnownJSON(resp.GetState())
			if n := len(resp.GetPlayers()); n > 0 {
				after = resp.GetPlayers()[n-1]
			}
			return len(resp.GetPlayers()), after, out.More, nil
		}); err != nil {
			return err
		}
		return a.print(out, func(w io.Writer) {
			printLines(w, out.Players)
			out.print(w)
		})
	})
	return cmd
}

func (a *app) listHoldersCommand() *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:     "holders ITEM",
		Short:   "List who holds an item, and how many, from the realm's history",
		Example: "  kuji list holders sword",
		Args:    exactArgs("ITEM"),
	}
	conn := a.connection(cmd.Flags())
	f.add(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		out := holdersJSON{Realm: c.realm, Item: args[0], Holders: []holderJSON{}}
		if err := f.pages(func(after string, limit uint32) (int, string, bool, error) {
			resp, err := call(cmd.Context(), c, "", c.rewards.ListHolders, &kujiv1.ListHoldersRequest{Realm: c.realm, Item: args[0], After: after, Limit: limit, Fresh: f.fresh})
			if err != nil {
				return 0, "", false, err
			}
			for _, h := range resp.GetHolders() {
				out.Holders, after = append(out.Holders, holderJSON{h.GetPlayer(), h.GetQuantity()}), h.GetPlayer()
			}
			out.More, out.knownJSON = resp.GetMore(), newKnownJSON(resp.GetState())
			return len(resp.GetHolders()), after, out.More, nil
		}); err != nil {
			return err
		}
		return a.print(out, func(w io.Writer) {
			fprintf(w, "PLAYER\tQUANTITY\n")
			for _, h := range out.Holders {
				fprintf(w, "%s\t%d\n", word(h.Player), h.Quantity)
			}
			out.print(w)
		})
	})
	return cmd
}
