package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

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
	cmd := &cobra.Command{Use: "history [PLAYER]", Short: "Show what happened to a player, in a pool or to an item"}
	cmd.AddCommand(historyVerifyCommand(a))
	flags := cmd.Flags()
	flags.StringVar(&req.Pool, "pool", "", "events about this `pool`")
	flags.StringVar(&req.Item, "item", "", "events that changed how many of this `item` somebody holds")
	flags.StringVar(&before, "before", "", "only events before this `place`: POSITION or POSITION.INDEX, as the first column shows it")
	limit := flags.Int("limit", 100, "show at most this many events")
	flags.BoolVar(&req.Fresh, "fresh", false, freshText)
	all := pages(limit, (*api).GetHistory, func(req *kujiv1.GetHistoryRequest, page *kujiv1.GetHistoryResponse) (int, bool) {
		req.Before = page.GetBefore()
		return len(page.GetEvents()), req.Before != nil
	})
	call := func(c *api, ctx context.Context, req *kujiv1.GetHistoryRequest) (resp *kujiv1.GetHistoryResponse, err error) {
		if req.GetPlayer() == "" && req.GetPool() == "" && req.GetItem() == "" {
			return nil, usagef("want a player, --pool or --item")
		}
		if req.Before, err = parsePlace(before); err != nil {
			return nil, err
		}
		return all(c, ctx, req)
	}
	return read(a, cmd, req, call, printHistory)
}

// pages returns a call that reads and joins pages until it has as many as limit says. next puts into the request
// where the next page begins, and returns how many the page has, and whether more follow.
func pages[Req, Resp proto.Message](limit *int, call func(*api, context.Context, Req) (Resp, error),
	next func(req Req, page Resp) (n int, more bool)) func(*api, context.Context, Req) (Resp, error) {
	return func(c *api, ctx context.Context, req Req) (all Resp, err error) {
		if err := within("limit", *limit, 1, maxShown); err != nil {
			return all, err
		}
		all = all.ProtoReflect().New().Interface().(Resp)
		m, r := all.ProtoReflect(), req.ProtoReflect()
		for left, more := *limit, true; more && left > 0; {
			r.Set(r.Descriptor().Fields().ByName("limit"), protoreflect.ValueOfUint32(uint32(min(left, server.MaxHistoryPage))))
			page, err := call(c, ctx, req)
			if err != nil {
				return all, err
			}
			m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
				if !fd.IsList() {
					m.Clear(fd) // the last page says it
				}
				return true
			})
			proto.Merge(all, page)
			n := 0
			n, more = next(req, page)
			left -= n
		}
		return all, nil
	}
}

// parsePlace reads POSITION or POSITION.INDEX; nothing is nil.
func parsePlace(s string) (*kujiv1.EventPlace, error) {
	if s == "" {
		return nil, nil
	}
	position, index, both := strings.Cut(s, ".")
	p, err := strconv.ParseUint(position, 10, 64)
	i, bad := strconv.ParseUint(choose(both, index, "0"), 10, 32)
	if err != nil || bad != nil || p == 0 {
		return nil, usagef("--before %q: expected POSITION or POSITION.INDEX, such as 1205.3", s)
	}
	return &kujiv1.EventPlace{Position: p, Index: uint32(i)}, nil
}

func printHistory(w io.Writer, resp *kujiv1.GetHistoryResponse) {
	if len(resp.GetEvents()) == 0 {
		fprintf(w, "nothing\n")
	}
	for _, e := range resp.GetEvents() {
		printEvent(w, e)
		for _, s := range e.GetPaid() {
			fprintf(w, "    paid %d %s\n", s.GetQuantity(), s.GetItem())
		}
		for _, c := range e.GetChanges() {
			after := when(c.Balance != nil, fmt.Sprintf(" → %d", c.GetBalance()))
			fprintf(w, "    %s %s %+d%s\n", word(c.GetPlayer()), word(c.GetItem()), c.GetDelta(), after)
		}
		if e.GetBy() != "" || e.GetReason() != "" {
			fprintf(w, "    by %s\n", strings.TrimSuffix(cmp.Or(e.GetBy(), "-")+": "+e.GetReason(), ": "))
		}
		if e.GetMetadata() != "" {
			fprintf(w, "    metadata %q\n", e.GetMetadata())
		}
	}
	if at := resp.GetBefore(); at != nil {
		fprintf(w, "\nOlder events: --before %d.%d\n", at.GetPosition(), at.GetIndex())
	}
	printState(w, resp.GetState())
}

// listFlags adds the flags of lists from the history.
func listFlags(cmd *cobra.Command, after *string, fresh *bool) (limit *int) {
	cmd.Flags().StringVar(after, "after", "", "only those after this `player`")
	cmd.Flags().BoolVar(fresh, "fresh", false, freshText)
	return cmd.Flags().Int("limit", maxShown, "list at most this many")
}

func listPlayersCommand(a *app) *cobra.Command {
	req := &kujiv1.ListPlayersRequest{}
	cmd := &cobra.Command{Use: "players", Short: "List the players of a realm, sorted, from its history"}
	limit := listFlags(cmd, &req.After, &req.Fresh)
	call := pages(limit, (*api).ListPlayers, func(req *kujiv1.ListPlayersRequest, page *kujiv1.ListPlayersResponse) (int, bool) {
		all := page.GetPlayers()
		if len(all) > 0 {
			req.After = all[len(all)-1]
		}
		return len(all), page.GetMore() && len(all) > 0
	})
	return read(a, cmd, req, call, func(w io.Writer, resp *kujiv1.ListPlayersResponse) {
		printLines(w, resp.GetPlayers())
		printState(w, resp.GetState())
	})
}

func listHoldersCommand(a *app) *cobra.Command {
	req := &kujiv1.ListHoldersRequest{}
	cmd := &cobra.Command{Use: "holders ITEM", Short: "List who holds an item, and how many, from the realm's history"}
	limit := listFlags(cmd, &req.After, &req.Fresh)
	call := pages(limit, (*api).ListHolders, func(req *kujiv1.ListHoldersRequest, page *kujiv1.ListHoldersResponse) (int, bool) {
		all := page.GetHolders()
		if len(all) > 0 {
			req.After = all[len(all)-1].GetPlayer()
		}
		return len(all), page.GetMore() && len(all) > 0
	})
	return read(a, cmd, req, call, func(w io.Writer, resp *kujiv1.ListHoldersResponse) {
		rows(w, "PLAYER\tQUANTITY", resp.GetHolders(), func(h *kujiv1.Holder) []any { return []any{word(h.GetPlayer()), h.GetQuantity()} })
		printState(w, resp.GetState())
	})
}
