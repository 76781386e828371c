package cli

import (
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type oddsJSON struct {
	Pool           string          `json:"pool"`
	Player         string          `json:"player,omitempty"`
	Status         string          `json:"status"` // how a draw would end now
	Subject        string          `json:"subject,omitempty"`
	CatalogVersion uint64          `json:"catalog_version"`
	Position       uint64          `json:"position"`
	Count          int             `json:"count,omitempty"`        // of --count
	CountStatus    string          `json:"count_status,omitempty"` // how a request for so many would end now
	Pity           []oddsTrackJSON `json:"pity"`
	Outcomes       []outcomeOdds   `json:"outcomes"`
	Items          []itemOdds      `json:"items"` // how many a draw gives on average
}

// oddsTrackJSON is a track of a pool that a draw comes by.
type oddsTrackJSON struct {
	Pool string `json:"pool"`
	trackJSON
}

type outcomeOdds struct {
	Pool     string   `json:"pool"`
	Entry    string   `json:"entry"`
	Chance   fraction `json:"chance"`   // that the draw takes it at least once
	Expected fraction `json:"expected"` // how many times the draw takes it on average
	*inRequest
}

// inRequest is what a request for several draws gives on average.
type inRequest struct {
	All     fraction `json:"in_request"`          // all of it
	PerDraw fraction `json:"per_draw_in_request"` // divided by its draws
}

func newInRequest(f *kujiv1.Fraction, count int) *inRequest {
	out := &inRequest{newFraction(f), fraction{Value: f.GetValue() / float64(count)}}
	if x, ok := new(big.Rat).SetString(out.All.Exact); ok {
		out.PerDraw.Exact = x.Quo(x, big.NewRat(int64(count), 1)).RatString()
	}
	return out
}

type itemOdds struct {
	Item     string   `json:"item"`
	Expected fraction `json:"expected"`
	*inRequest
}

type fraction struct {
	Exact string  `json:"exact,omitempty"` // such as "3/500"; absent: it is too long
	Value float64 `json:"value"`
}

func (a *app) oddsCommand() *cobra.Command {
	var player, html, csv string
	var value []string
	var count int
	cmd := &cobra.Command{
		Use:   "odds [POOL]",
		Short: "Show the exact odds of a player's next draw, or publish those of all pools",
		Long: `Odds shows what the next draw from a pool gives a player: every entry of the pool and
of the pools below it, with the pity, stock, limits and conditions of this moment.
Without --player, the odds are for a player who was never seen. With --count, odds also
shows what one request for that many draws gives on average, the pool's guarantees
included.

With --html or --csv, it writes a page for all pools of the catalog in force that
players can draw from. The page has the odds of a first draw with the stock as
declared, and what draws give in the long run under pity. It names the catalog's
version and hash.`,
		Example: `  kuji odds banner --player ann
  kuji odds banner --player ann --value hero,dust
  kuji odds banner --count 10
  kuji odds --html odds.html --csv odds.csv`,
		Args: cobra.MaximumNArgs(1),
	}
	conn := a.clientCommand(cmd)
	cmd.Flags().StringVar(&player, "player", "", "`id` of the player")
	cmd.Flags().StringSliceVar(&value, "value", nil, "`items` whose expected number is shown, separated by commas (default: all)")
	cmd.Flags().IntVar(&count, "count", 1, "`number` of draws in a request: show its odds next to those of one draw")
	cmd.Flags().StringVar(&html, "html", "", "`file` to write a page for all pools to")
	cmd.Flags().StringVar(&csv, "csv", "", "`file` to write a table for all pools to")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		publish := html != "" || csv != ""
		switch {
		case publish && (len(args) > 0 || player != "" || value != nil || count != 1):
			return usageError{fmt.Errorf("--html and --csv are for all pools and every player: leave out POOL, --player, --value and --count")}
		case count < 1 || count > catalog.MaxDrawCount:
			return usageError{fmt.Errorf("--count %d: expected a number from 1 to %d", count, catalog.MaxDrawCount)}
		case !publish && len(args) == 0:
			return usageError{fmt.Errorf("missing argument POOL, or --html or --csv for all pools")}
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		if publish {
			return a.publishOdds(cmd.Context(), c, html, csv)
		}
		resp, err := call(cmd.Context(), c, "", c.rewards.GetOdds, &kujiv1.GetOddsRequest{Realm: c.realm, Pool: args[0], Player: player})
		if err != nil {
			return err
		}
		out := newOddsJSON(args[0], player, value, resp.GetOdds())
		if count > 1 {
			several, err := call(cmd.Context(), c, "", c.rewards.GetOdds, &kujiv1.GetOddsRequest{Realm: c.realm, Pool: args[0], Player: player, Count: uint32(count)})
			if err != nil {
				return err
			}
			if err := out.addRequest(several.GetOdds(), count); err != nil {
				return err
			}
		}
		return a.print(out, func(w io.Writer) { printOdds(w, out) })
	}
	return cmd
}

func newOddsJSON(pool, player string, value []string, o *kujiv1.Odds) oddsJSON {
	out := oddsJSON{
		Pool: pool, Player: player, Status: statusText(o), Subject: o.GetSubject(),
		CatalogVersion: o.GetCatalogVersion(), Position: o.GetPosition(), Pity: []oddsTrackJSON{}, Items: []itemOdds{},
	}
	for _, t := range o.GetPity() {
		out.Pity = append(out.Pity, oddsTrackJSON{t.GetPool(), trackJSON{t.GetTrack(), t.GetDraws(), t.GetCertainIn(), "", t.GetUnless()}})
	}
	for _, e := range o.GetOutcomes() {
		out.Outcomes = append(out.Outcomes, outcomeOdds{e.GetPool(), e.GetEntry(), newFraction(e.GetChance()), newFraction(e.GetExpected()), nil})
	}
	for _, it := range o.GetItems() {
		if value == nil || slices.Contains(value, it.GetItem()) {
			out.Items = append(out.Items, itemOdds{it.GetItem(), newFraction(it.GetExpected()), nil})
		}
	}
	for _, id := range value {
		if !slices.ContainsFunc(out.Items, func(it itemOdds) bool { return it.Item == id }) {
			out.Items = append(out.Items, itemOdds{Item: id, Expected: fraction{Exact: "0"}})
		}
	}
	return out
}

// addRequest adds the odds of a request for several draws.
func (o *oddsJSON) addRequest(several *kujiv1.Odds, count int) error {
	if several.GetCatalogVersion() != o.CatalogVersion || len(several.GetOutcomes()) != len(o.Outcomes) {
		return fmt.Errorf("catalog version %d came into force after version %d meanwhile: ask again", several.GetCatalogVersion(), o.CatalogVersion)
	}
	o.Count, o.CountStatus = count, statusText(several)
	for i, e := range several.GetOutcomes() {
		o.Outcomes[i].inRequest = newInRequest(e.GetExpected(), count)
	}
	for i := range o.Items {
		expected := &kujiv1.Fraction{Exact: "0"}
		for _, it := range several.GetItems() {
			if it.GetItem() == o.Items[i].Item {
				expected = it.GetExpected()
			}
		}
		o.Items[i].inRequest = newInRequest(expected, count)
	}
	return nil
}

func statusText(o *kujiv1.Odds) string {
	return strings.ToLower(strings.TrimPrefix(o.GetStatus().String(), "STATUS_"))
}

func newFraction(f *kujiv1.Fraction) fraction { return fraction{f.GetExact(), f.GetValue()} }

func printOdds(w io.Writer, o oddsJSON) {
	fprintf(w, "pool\t%s\n", o.Pool)
	if o.Player != "" {
		fprintf(w, "player\t%s\n", o.Player)
	}
	status := o.Status
	if o.Subject != "" {
		status += " (" + o.Subject + ")"
	}
	fprintf(w, "a draw now\t%s\n", status)
	if o.Count > 1 {
		fprintf(w, "%d draws now\t%s\n", o.Count, o.CountStatus)
	}
	for _, t := range o.Pity {
		text := fmt.Sprintf("%d draws since the last hit", t.Draws)
		if t.CertainIn > 0 {
			text += ", certain in " + t.certainText()
		}
		fprintf(w, "pity\t%s/%s: %s\n", t.Pool, t.Track, text)
	}
	several := slices.ContainsFunc(o.Outcomes, func(e outcomeOdds) bool { return e.Chance != e.Expected })
	heads := "\nPOOL/ENTRY\tCHANCE\tEXACT"
	if several {
		heads += "\tTIMES A DRAW"
	}
	request := ""
	if o.Count > 1 {
		request = fmt.Sprintf("\tA DRAW OF %d\tIN %d", o.Count, o.Count)
	}
	fprintf(w, "%s%s\n", markup(heads), markup(request))
	for _, e := range o.Outcomes {
		fprintf(w, "%s/%s\t%s\t%s", e.Pool, e.Entry, e.Chance.percent(), clip(e.Chance.Exact, 24))
		if several {
			fprintf(w, "\t%s", e.Expected.number())
		}
		if e.inRequest != nil {
			fprintf(w, "\t%s\t%s", e.PerDraw.percent(), e.All.number())
		}
		fprintf(w, "\n")
	}
	if len(o.Items) > 0 {
		fprintf(w, "%s%s\n", markup("\nITEM\tA DRAW\tEXACT"), markup(request))
	}
	for _, it := range o.Items {
		fprintf(w, "%s\t%s\t%s", it.Item, it.Expected.number(), clip(it.Expected.Exact, 24))
		if it.inRequest != nil {
			fprintf(w, "\t%s\t%s", it.PerDraw.number(), it.All.number())
		}
		fprintf(w, "\n")
	}
}

// percent and number write a fraction for a person, with six digits.
func (f fraction) percent() string { return strconv.FormatFloat(100*f.Value, 'g', 6, 64) + "%" }
func (f fraction) number() string  { return strconv.FormatFloat(f.Value, 'g', 6, 64) }

// clip leaves out texts that are too long for a table.
func clip(s string, most int) string {
	if s == "" || len(s) > most {
		return "-"
	}
	return s
}
