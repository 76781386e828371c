package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// oddsJSON is the odds of a draw and, with --count, those of a request for that many.
type oddsJSON struct {
	Odds    plain `json:"odds"`
	Request plain `json:"request,omitzero"`
}

func oddsCommand(a *app) *cobra.Command {
	var player, html, csv, language string
	var value []string
	var count int
	cmd := &cobra.Command{Use: "odds [POOL]", Short: "Show the exact odds of a player's next draw, or publish those of all pools"}
	conn := a.connection(cmd.Flags())
	cmd.Flags().StringVar(&player, "player", "", "`id` of the player")
	cmd.Flags().StringSliceVar(&value, "value", nil, "`items` whose expected number is shown, separated by commas (default: all)")
	cmd.Flags().IntVar(&count, "count", 1, "`number` of draws in a request: show its odds next to those of one draw")
	cmd.Flags().StringVar(&html, "html", "", "`file` to write a page for all pools to")
	cmd.Flags().StringVar(&csv, "csv", "", "`file` to write a table for all pools to")
	cmd.Flags().StringVar(&language, "language", "", "language of the page, a `tag` such as de or ja (default: that of the catalog)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		publish := html != "" || csv != ""
		switch {
		case publish && (len(args) > 0 || player != "" || value != nil || count != 1):
			return usagef("--html and --csv are for all pools and every player: leave out POOL, --player, --value and --count")
		case !publish && len(args) == 0:
			return usagef("missing argument POOL, or --html or --csv for all pools")
		}
		if err := within("count", count, 1, catalog.MaxDrawCount); err != nil {
			return err
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		if publish {
			return publishOdds(cmd.Context(), a, c, html, csv, language)
		}
		one, several, err := getOdds(cmd.Context(), c, args[0], player, count)
		if err != nil {
			return err
		}
		one.Items = valued(one, value)
		out := oddsJSON{Odds: plain{Message: one}}
		if several != nil {
			several.Items = valued(several, value)
			out.Request = plain{Message: several}
		}
		return a.print(out, func(w io.Writer) { printOdds(w, args[0], player, one, several) })
	}
	return cmd
}

// getOdds returns the odds of one draw and, unless count is 1, those of a request for count draws.
func getOdds(ctx context.Context, c *api, pool, player string, count int) (one, several *kujiv1.Odds, err error) {
	req := &kujiv1.GetOddsRequest{Realm: c.realm, Pool: pool, Player: player}
	resp, err := c.GetOdds(ctx, req)
	if one = resp.GetOdds(); err != nil || count == 1 {
		return one, nil, err
	}
	req.Count = uint32(count)
	if resp, err = c.GetOdds(ctx, req); err != nil {
		return nil, nil, err
	}
	several = resp.GetOdds()
	if several.GetCatalogVersion() != one.GetCatalogVersion() || len(several.GetOutcomes()) != len(one.GetOutcomes()) {
		return nil, nil, fmt.Errorf("catalog version %d came into force after version %d: ask again", several.GetCatalogVersion(), one.GetCatalogVersion())
	}
	return one, several, nil
}

// valued returns the odds of the items named, or, of none, of all.
func valued(o *kujiv1.Odds, value []string) []*kujiv1.ItemOdds {
	if value == nil {
		return o.GetItems()
	}
	items := slices.DeleteFunc(o.GetItems(), func(it *kujiv1.ItemOdds) bool { return !slices.Contains(value, it.GetItem()) })
	for _, id := range value {
		if itemOdds(items, id) == nil {
			items = append(items, &kujiv1.ItemOdds{Item: id, Expected: &kujiv1.Fraction{Exact: "0"}})
		}
	}
	return items
}

// itemOdds returns how many of an item are expected, nil if it is not among them.
func itemOdds(all []*kujiv1.ItemOdds, item string) *kujiv1.Fraction {
	for _, it := range all {
		if it.GetItem() == item {
			return it.GetExpected()
		}
	}
	return nil
}

func printOdds(w io.Writer, pool, player string, o, several *kujiv1.Odds) {
	fprintf(w, "pool\t%s\n", pool)
	if player != "" {
		fprintf(w, "player\t%s\n", player)
	}
	fprintf(w, "a draw now\t%s%s\n", contract.Word(o.GetStatus()), when(o.GetSubject() != "", " ("+o.GetSubject()+")"))
	request, count := "", several.GetCount()
	if several != nil {
		fprintf(w, "%d draws now\t%s\n", count, contract.Word(several.GetStatus()))
		request = fmt.Sprintf("\tA DRAW OF %d\tIN %d", count, count)
	}
	for _, t := range o.GetPity() {
		certain := when(t.GetCertainIn() > 0, ", certain in "+certainText(t.GetCertainIn(), "", t.GetUnless()))
		fprintf(w, "pity\t%s/%s: %d draws since the last hit%s\n", t.GetPool(), t.GetTrack(), t.GetDraws(), certain)
	}
	times := slices.ContainsFunc(o.GetOutcomes(), func(e *kujiv1.OutcomeOdds) bool { return !proto.Equal(e.GetChance(), e.GetExpected()) })
	at := 0
	rows(w, "\nPOOL/ENTRY\tCHANCE\tEXACT"+when(times, "\tTIMES A DRAW")+request, o.GetOutcomes(), func(e *kujiv1.OutcomeOdds) []any {
		row := []any{e.GetPool() + "/" + e.GetEntry(), percentText(e.GetChance().GetValue()), clip(e.GetChance().GetExact(), 24)}
		if times {
			row = append(row, numberText(e.GetExpected().GetValue()))
		}
		if several != nil {
			all := several.GetOutcomes()[at].GetExpected().GetValue()
			row = append(row, percentText(all/float64(count)), numberText(all))
		}
		at++
		return row
	})
	if len(o.GetItems()) == 0 {
		return
	}
	rows(w, "\nITEM\tA DRAW\tEXACT"+request, o.GetItems(), func(it *kujiv1.ItemOdds) []any {
		row := []any{it.GetItem(), numberText(it.GetExpected().GetValue()), clip(it.GetExpected().GetExact(), 24)}
		if several != nil {
			all := itemOdds(several.GetItems(), it.GetItem()).GetValue()
			row = append(row, numberText(all/float64(count)), numberText(all))
		}
		return row
	})
}

// percentText and numberText write a number for a person, with six digits.
func percentText(v float64) string { return numberText(100*v) + "%" }
func numberText(v float64) string  { return strconv.FormatFloat(v, 'g', 6, 64) }

// clip leaves out texts that are too long for a table.
func clip(s string, most int) string { return choose(len(s) <= most, s, "-") }
