package cli

import (
	"bytes"
	"strconv"

	"github.com/kuji-dev/kuji/internal/simulate"
)

// simulationCSV writes a report as one table, a figure in each row. The columns that say what the
// figure is of are empty where they do not apply.
func simulationCSV(r *simulationJSON) ([]byte, error) {
	var b bytes.Buffer
	w := newCSV(&b)
	row := func(table, pool, entry, item, draws, measure, value string) {
		_ = w.Write(table, pool, entry, item, draws, measure, value) // w.Error says what failed
	}
	row("table", "pool", "entry", "item", "draws", "measure", "value")
	row("run", r.Pool, "", "", "", "players", whole(uint64(r.Players)))
	row("run", r.Pool, "", "", "", "draws_each", whole(uint64(r.DrawsEach)))
	row("run", r.Pool, "", "", "", "count", whole(uint64(r.Count)))
	row("run", r.Pool, "", "", "", "seed", whole(r.Seed))
	row("run", r.Pool, "", "", "", "requests", whole(r.Requests))
	row("run", r.Pool, "", "", "", "draws", whole(r.Draws))
	for _, f := range r.Refused {
		row("refused", r.Pool, "", "", "", f.Status, whole(f.Requests))
	}
	for _, p := range r.Paid {
		row("paid", "", "", p.Item, "", "total", whole(p.Total))
	}
	for _, g := range r.Given {
		row("given", "", "", g.Item, "", "total", whole(g.Total))
	}
	for _, o := range r.Odds {
		row("odds", o.Pool, o.Entry, "", "", "wanted", number(o.Wanted))
		if o.LongRun != nil {
			row("odds", o.Pool, o.Entry, "", "", "long_run", number(*o.LongRun))
		}
		row("odds", o.Pool, o.Entry, "", "", "seen", number(o.Seen))
		row("odds", o.Pool, o.Entry, "", "", "low", number(o.Low))
		row("odds", o.Pool, o.Entry, "", "", "high", number(o.High))
		row("odds", o.Pool, o.Entry, "", "", "taken", whole(o.Taken))
	}
	if u := r.Until; u != nil {
		row("until", "", "", u.Item, "", "players_with_it", whole(u.Reached))
		for _, c := range u.Costs {
			table := "until_draws"
			if c.Item != "" {
				table = "until_paid"
			}
			for _, m := range []struct {
				name string
				v    *float64
			}{{"mean", c.Mean}, {"mean_error", c.Error}} {
				if m.v != nil {
					row(table, "", "", c.Item, "", m.name, number(*m.v))
				}
			}
			for _, m := range []struct {
				name string
				v    *uint64
			}{{"median", c.Median}, {"p90", c.P90}, {"p99", c.P99}, {"worst", c.Worst}} {
				if m.v != nil {
					row(table, "", "", c.Item, "", m.name, whole(*m.v))
				}
			}
		}
		for _, s := range u.Distribution {
			row("distribution", "", "", u.Item, whole(s.Draws), "players", whole(s.Players))
		}
	}
	supplyCSV(r, row)
	w.Flush()
	return b.Bytes(), w.Error()
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func whole(n uint64) string { return strconv.FormatUint(n, 10) }

// supplyCSV writes what players share: stock, codes and budgets, in the end and over time.
func supplyCSV(r *simulationJSON, row func(table, pool, entry, item, draws, measure, value string)) {
	gone := func(what, pool, entry, item, measure string, at *simulate.Moment) {
		if at == nil {
			return
		}
		row(what, pool, entry, item, whole(at.Draws), measure, "1")
		if at.Days != nil {
			row(what, pool, entry, item, whole(at.Draws), measure+"_days", number(*at.Days))
		}
	}
	for _, c := range r.Codes {
		row("codes", "", "", c.List, "", "given", whole(c.Given))
		if c.Of != nil {
			row("codes", "", "", c.List, "", "of", whole(*c.Of))
		}
		gone("codes", "", "", c.List, "used_up", c.Gone)
	}
	s := r.Stock
	if s == nil {
		return
	}
	for _, e := range s.Entries {
		row("stock", e.Pool, e.Entry, "", "", "stock", whole(e.Stock))
		row("stock", e.Pool, e.Entry, "", "", "left", whole(e.Left))
		gone("stock", e.Pool, e.Entry, "", "sold_out", e.Gone)
	}
	for _, b := range s.Budgets {
		for _, m := range []struct {
			name string
			v    uint64
		}{{"limit", b.Limit}, {"spent", b.Spent}, {"spans", b.Spans}, {"most", b.Most}, {"full", b.Full}} {
			row("budget_"+b.Per, budgetName(&b), "", b.Item, "", m.name, whole(m.v))
		}
	}
	for _, m := range s.Samples {
		for i, spent := range m.Spent {
			b := &s.Budgets[i]
			row("spent_"+b.Per, budgetName(b), "", b.Item, whole(m.Draws), "spent", whole(spent))
		}
		for i, left := range m.Codes {
			row("codes_left", "", "", s.Lists[i], whole(m.Draws), "left", whole(left))
		}
		for i, left := range m.Left {
			row("left", s.Entries[i].Pool, s.Entries[i].Entry, "", whole(m.Draws), "left", whole(left))
		}
	}
}
