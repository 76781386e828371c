package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/simulate"
)

type simulateFlags struct {
	simulate.Config
	csv, html string
	language  string // of names on the page
	days      float64
	progress  []string
}

func simulateCommand(a *app) *cobra.Command {
	f := &simulateFlags{}
	cmd := &cobra.Command{
		Use:   "simulate FILE --pool POOL",
		Short: "Try a catalog out on simulated players: odds, costs, stock over time",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Pool == "" {
				return usagef("missing flag --pool: expected the id of a pool that players draw from")
			}
			if cmd.Flags().Changed("days") {
				if f.Rate != 0 || !(f.days > 0) {
					return usagef("--days: expected a number of days above 0, without --rate")
				}
				f.Rate = float64(f.Players) * float64(f.Draws) / f.days / 24
			}
			var err error
			if f.Progress, err = parseProgress(f.progress); err != nil {
				return err
			}
			return runSimulation(cmd.Context(), a, args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Pool, "pool", "", "the `pool` to draw from (required)")
	flags.IntVar(&f.Players, "players", 1000, "how many players draw")
	flags.IntVar(&f.Draws, "draws", 100, "the most draws of each player, a multiple of --count")
	flags.IntVar(&f.Count, "count", 1, "how many draws a request makes")
	flags.StringVar(&f.Pay, "pay", "", "the `item` to pay with (default: the first price that a player can pay)")
	flags.Uint64Var(&f.Seed, "seed", 1, "another number gives other luck")
	flags.StringVar(&f.Until, "until", "", "players stop when they get this `item`")
	flags.Float64Var(&f.Rate, "rate", 0, "`draws` of all players together in an hour (default: no time passes)")
	flags.Float64Var(&f.days, "days", 0, "spread the draws of all players evenly over this many `days`, instead of --rate")
	flags.StringSliceVar(&f.progress, "progress", nil, "what every player reports, as `EVENT=N/day` or EVENT=N/draw; with /KEYS, each with one of so many keys")
	flags.StringToInt64Var(&f.Codes, "codes", nil, "how many codes lists have, as `LIST=N` (default: as many as are asked for)")
	flags.Lookup("codes").DefValue = "" // the text says it
	flags.BoolVar(&f.Independent, "independent", false, "every player has stock of their own, as if alone")
	flags.StringVar(&f.csv, "csv", "", "also write the report as CSV into this `file`")
	flags.StringVar(&f.html, "html", "", "also write the report as a web page with plots into this `file`")
	flags.StringVar(&f.language, "language", "", "language of names on the page, a `tag` such as de or ja (default: that of the catalog)")
	return cmd
}

// simulationJSON is a simulation's report with its file.
type simulationJSON struct {
	File string `json:"file"`
	*simulate.Report
}

func runSimulation(ctx context.Context, a *app, file string, f *simulateFlags) error {
	c, err := loadCatalog(a, file)
	if err != nil {
		return err
	}
	for _, name := range []string{f.csv, f.html} { // before a long run, not after it
		if info, err := os.Stat(filepath.Dir(name)); name != "" && (err != nil || !info.IsDir()) {
			return usagef("cannot write %s: expected a file in a directory that exists", name)
		}
	}
	f.Done = new(atomic.Int64)
	stop := a.showBar(ctx, int64(f.Players)*int64(f.Draws), f.Done.Load, func() string { return "simulating" })
	report, err := simulate.Run(ctx, c, f.Config)
	stop()
	if bad, ok := errors.AsType[*simulate.ConfigError](err); ok {
		return usagef("--%s %s", bad.Field, bad.Message)
	}
	if err != nil {
		return err
	}
	out := &simulationJSON{file, report}
	if err := errors.Join(writeFile(f.csv, out.csv), writeFile(f.html, func() ([]byte, error) { return out.html(c, f.language) })); err != nil {
		return err
	}
	return a.print(out, func(w io.Writer) { printSimulation(w, out) })
}

// writeFile writes what render returns to a file, if it has a name.
func writeFile(name string, render func() ([]byte, error)) error {
	if name == "" {
		return nil
	}
	data, err := render()
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// unknown is the cell of a figure that depends on players who did not get there.
const unknown = "-"

// grouped writes 1234567 as 1 234 567.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + " " + s[at:]
	}
	return s
}

// inHundred writes how often something comes in 100 draws, with three digits that count.
func inHundred(v float64) string {
	v *= 100
	digits := 3
	if v > 0 && v < 0.1 {
		digits = min(2-int(math.Floor(math.Log10(v))), 12)
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func known(n *uint64) string {
	if n == nil {
		return unknown
	}
	return grouped(*n)
}

// mean writes a cost's mean with its error.
func mean(c *simulate.Cost) string {
	if c.Mean == nil {
		return unknown
	}
	text := fmt.Sprintf("%.2f", *c.Mean)
	if c.Error != nil {
		text += fmt.Sprintf(" ± %.2f", *c.Error)
	}
	return text
}

// whenText says when something happened.
func whenText(m *simulate.Moment) string {
	switch {
	case m == nil:
		return unknown
	case m.Days == nil:
		return "after " + grouped(m.Draws) + " draws"
	}
	return fmt.Sprintf("after %s draws, %.2f days", grouped(m.Draws), *m.Days)
}

// facts are the lines above the tables.
func (r *simulationJSON) facts() (all [][2]string) {
	add := func(name, format string, args ...any) {
		all = append(all, [2]string{name, fmt.Sprintf(format, args...)})
	}
	add("catalog", "%s", choose(r.Catalog != "", r.Catalog+" ("+r.File+")", r.File))
	add("pool", "%s", r.Pool)
	add("players", "%s, at most %s draws each, %d in a request", grouped(uint64(r.Players)), grouped(uint64(r.DrawsEach)), r.Count)
	add("seed", "%d", r.Seed)
	if r.Rate > 0 {
		add("rate", "%s draws an hour by all players together", strconv.FormatFloat(math.Round(r.Rate*1e6)/1e6, 'f', -1, 64))
	}
	add("stock", "%s", map[string]string{
		"all": "shared by all players", "each": "every player has their own", "none": "nothing is limited",
	}[r.StockOf])
	for i := range r.Progress {
		add("progress", "%s", progressText(&r.Progress[i]))
	}
	add("draws", "%s", grouped(r.Draws))
	for _, p := range r.Paid {
		add("paid", "%s %s, %.4g a draw", grouped(p.Total), p.Item, p.PerDraw)
	}
	for _, f := range r.Refused {
		add("refused", "%s: %s requests%s", f.Status, grouped(f.Requests), when(f.Stopped > 0, "; "+grouped(f.Stopped)+" players stopped"))
	}
	for _, c := range r.Codes {
		of := when(c.Of != nil, " of "+known(c.Of))
		add("codes", "%s: %s%s given%s", c.List, grouped(c.Given), of, when(c.Gone != nil, ", used up "+whenText(c.Gone)))
	}
	if r.Stock != nil && r.Stock.SoldOut != nil {
		add("sold out", "%s", whenText(r.Stock.SoldOut))
	}
	return all
}

// section is a table of the report, on a terminal and in the page.
type section struct {
	Title string
	Chart func() (template.HTML, error)
	Heads []string
	Texts int // this many columns are texts, the others numbers
	Rows  [][]string
	Notes []string
}

func (s *section) add(row ...string) { s.Rows = append(s.Rows, row) }

// Shown returns the rows for people, and More says how many others there are.
func (s *section) Shown() [][]string { return s.Rows[:min(len(s.Rows), maxRows)] }

func (s *section) More() string {
	more := len(s.Rows) - maxRows
	return when(more > 0, fmt.Sprintf("… and %d more: see --json or --csv", more))
}

// maxRows is the most rows of a table for people.
const maxRows = 100

func (r *simulationJSON) sections() []*section {
	all := []*section{r.odds()}
	given := &section{Title: "Given", Heads: []string{"GIVEN", "TOTAL", "A DRAW"}, Texts: 1}
	for _, g := range r.Given {
		given.add(g.Item, grouped(g.Total), fmt.Sprintf("%.4g", g.PerDraw))
	}
	all = append(all, given)
	if len(r.Quests) > 0 {
		all = append(all, r.quests()...)
	}
	all = append(all, r.ranks()...)
	if u := r.Until; u != nil {
		until := &section{Title: "Until " + u.Item, Heads: []string{"UNTIL " + u.Item, "MEAN", "MEDIAN", "P90", "P99", "WORST"}, Texts: 1,
			Chart: func() (template.HTML, error) { return untilChart(r.Report) }}
		for i := range u.Costs {
			c := &u.Costs[i]
			until.add(cmp.Or(c.Item, "draws"), mean(c), known(c.Median), known(c.P90), known(c.P99), known(c.Worst))
		}
		note := fmt.Sprintf("%s of %s players got it.", grouped(u.Reached), grouped(uint64(r.Players)))
		if u.Reached < uint64(r.Players) {
			note += fmt.Sprintf(" The others count as more than all of these; %q depends on them.", unknown)
		}
		until.Notes = []string{note}
		all = append(all, until)
	}
	if s := r.Stock; s != nil {
		stock := &section{Title: "Stock", Heads: []string{"STOCK", "", "OF", "LEFT", "SOLD OUT"}, Texts: 2}
		if len(s.Entries) > 0 || len(s.Lists) > 0 {
			stock.Chart = func() (template.HTML, error) { return stockChart(r.Report) }
		}
		for _, e := range s.Entries {
			stock.add(e.Pool, e.Entry, grouped(e.Stock), grouped(e.Left), whenText(e.Gone))
		}
		budgets := &section{Title: "Budgets", Heads: []string{"BUDGET", "", "OF", "SPENT IN ALL", "MOST", "USED UP"}, Texts: 2}
		if len(s.Budgets) > 0 {
			budgets.Chart = func() (template.HTML, error) { return budgetChart(r.Report) }
		}
		for i := range s.Budgets {
			b := &s.Budgets[i]
			budgets.add(budgetName(b), b.Item, budgetLimit(b), grouped(b.Spent), grouped(b.Most), usedUp(b))
		}
		all = append(all, stock, budgets)
	}
	return slices.DeleteFunc(all, func(s *section) bool { return s.Chart == nil && len(s.Rows) == 0 })
}

// odds are those that were seen, next to those that the catalog promises.
func (r *simulationJSON) odds() *section {
	s := &section{Title: "Odds", Heads: []string{"IN 100 DRAWS", "", "WANTED", "LONG RUN", "SEEN", "95 % FROM", "TO", "TAKEN"}, Texts: 2,
		Chart: func() (template.HTML, error) { return oddsChart(r.Odds) }}
	long := false
	for _, o := range r.Odds {
		run := unknown
		if o.LongRun != nil {
			long, run = true, inHundred(*o.LongRun)
		}
		s.add(o.Pool, o.Entry, inHundred(o.Wanted), run, inHundred(o.Seen), inHundred(o.Low), inHundred(o.High), grouped(o.Taken))
	}
	if r.OddsChange {
		s.Notes = append(s.Notes, "Wanted: base odds, at full stock and without pity, guarantees, conditions, luck, budgets and moments. Seen can differ from them.")
	}
	if long {
		s.Notes = append(s.Notes, "Long run: with pity and guarantees, when a player draws again and again and everything lasts. "+
			"Compare seen with it; in the first draws of new players pity gives less.")
	} else {
		s.Heads = slices.Delete(s.Heads, 3, 4)
		for i := range s.Rows {
			s.Rows[i] = slices.Delete(s.Rows[i], 3, 4)
		}
	}
	if r.NoLongRun != "" {
		s.Notes = append(s.Notes, "The long run is not known: "+r.NoLongRun+".")
	}
	return s
}

func printSimulation(w io.Writer, r *simulationJSON) {
	for _, f := range r.facts() {
		fprintf(w, "%s\t%s\n", f[0], f[1])
	}
	line := func(cells []string) { fprintf(w, "%s\n", markup(strings.Join(cells, "\t"))) }
	for _, s := range r.sections() {
		if len(s.Rows) == 0 {
			continue
		}
		fprintf(w, "\n")
		line(s.Heads)
		for _, row := range s.Shown() {
			line(row)
		}
		for _, note := range append([]string{s.More()}, s.Notes...) {
			if note != "" {
				fprintf(w, "%s\n", note)
			}
		}
	}
}

// budgetName is the name of a budget that pools share, or the pool that has it.
func budgetName(b *simulate.BudgetUse) string { return cmp.Or(b.Share, b.Pool) }

func budgetLimit(b *simulate.BudgetUse) string {
	per, special := map[string]string{catalog.PerForever.String(): "", catalog.PerHour.String(): " an hour"}[b.Per]
	return grouped(b.Limit) + per + when(!special, " a "+b.Per)
}

// usedUp says in how many hours, days or weeks a budget was used up.
func usedUp(b *simulate.BudgetUse) string {
	if b.Per == catalog.PerForever.String() {
		return yes[b.Full > 0]
	}
	return fmt.Sprintf("%s of %s %ss", grouped(b.Full), grouped(b.Spans), b.Per)
}
