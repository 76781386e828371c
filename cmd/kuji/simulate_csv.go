package main

import (
	"bytes"
	"encoding/csv"
	"strconv"
)

// simulationCSV writes a report as one table, a figure in each row. The columns that say what the figure
// is of are empty where they do not apply.
func simulationCSV(r *simulationJSON) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	row := func(table, pool, entry, item, draws, measure, value string) {
		_ = w.Write([]string{table, pool, entry, item, draws, measure, value}) // w.Error says what failed
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	whole := func(n uint64) string { return strconv.FormatUint(n, 10) }
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
	if s := r.Stock; s != nil {
		for _, e := range s.Entries {
			row("stock", e.Pool, e.Entry, "", "", "stock", whole(e.Stock))
			row("stock", e.Pool, e.Entry, "", "", "left", whole(e.Left))
			if e.Gone != nil {
				row("stock", e.Pool, e.Entry, "", whole(e.Gone.Draws), "sold_out", "1")
				if e.Gone.Days != nil {
					row("stock", e.Pool, e.Entry, "", whole(e.Gone.Draws), "sold_out_days", number(*e.Gone.Days))
				}
			}
		}
		for _, m := range s.Samples {
			for i, left := range m.Left {
				row("left", s.Entries[i].Pool, s.Entries[i].Entry, "", whole(m.Draws), "left", whole(left))
			}
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}
