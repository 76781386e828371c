package cli

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"

	"github.com/kuji-dev/kuji/internal/simulate"
)

// csv writes the report as one table, a figure in each row, named as in JSON. Columns that do not apply are empty.
func (r *simulationJSON) csv() ([]byte, error) {
	var b bytes.Buffer
	w := newCSV(&b)
	row := func(table, pool, entry, item, draws, measure, value string) {
		_ = w.Write(table, pool, entry, item, draws, measure, value) // w.Error says what failed
	}
	row("table", "pool", "entry", "item", "draws", "measure", "value")
	rows := func(table, pool, entry, item string, of any) {
		figures(of, func(draws, measure, value string) { row(table, pool, entry, item, draws, measure, value) })
	}
	rows("run", r.Pool, "", "", *r.Report)
	for _, f := range r.Refused {
		row("refused", r.Pool, "", "", "", f.Status, whole(f.Requests))
	}
	for _, p := range r.Paid {
		rows("paid", "", "", p.Item, p)
	}
	for _, g := range r.Given {
		rows("given", "", "", g.Item, g)
	}
	for _, o := range r.Odds {
		rows("odds", o.Pool, o.Entry, "", o)
	}
	if u := r.Until; u != nil {
		rows("until", "", "", u.Item, *u)
		for _, c := range u.Costs {
			rows(choose(c.Item == "", "until_draws", "until_paid"), "", "", c.Item, c)
		}
		for _, s := range u.Distribution {
			row("distribution", "", "", u.Item, whole(s.Draws), "players", whole(s.Players))
		}
	}
	for _, p := range r.Progress {
		rows("progress_"+p.Per, "", "", p.Event, p)
	}
	for _, q := range r.Quests {
		rows("quest", q.Quest, "", "", q)
		for tier, n := range q.Tiers {
			row("quest_tier", q.Quest, strconv.Itoa(tier+1), "", "", "players", whole(n))
		}
		for _, g := range q.Given {
			rows("quest_given", q.Quest, "", g.Item, g)
		}
	}
	for _, k := range r.Ranks {
		rows("rank", k.Counter, "", "", k)
		for _, g := range k.Given {
			rows("rank_given", k.Counter, "", g.Item, g)
		}
	}
	ofItems(r, rows)
	for _, c := range r.Codes {
		rows("codes", "", "", c.List, c)
	}
	if s := r.Stock; s != nil {
		for _, e := range s.Entries {
			rows("stock", e.Pool, e.Entry, "", e)
		}
		for _, b := range s.Budgets {
			rows("budget_"+b.Per, budgetName(&b), "", b.Item, b)
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
	w.Flush()
	return b.Bytes(), w.Error()
}

// figures calls row for each number in a struct. A moment is a 1 after so many draws, and _days are its days.
func figures(of any, row func(draws, measure, value string)) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := reflect.Indirect(v.Field(i))
		if !field.IsValid() {
			continue // not known
		}
		switch n := field.Interface().(type) {
		case int:
			row("", name, strconv.Itoa(n))
		case uint64:
			row("", name, whole(n))
		case float64:
			row("", name, number(n))
		case simulate.Moment:
			row(whole(n.Draws), name, "1")
			if n.Days != nil {
				row(whole(n.Draws), name+"_days", number(*n.Days))
			}
		}
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func whole(n uint64) string { return strconv.FormatUint(n, 10) }

// ofItems writes the rows of what has grown, and of what was beyond the most of an item.
func ofItems(r *simulationJSON, rows func(table, pool, entry, item string, of any)) {
	for _, g := range r.Grown {
		rows("grown", "", "", g.Item, g)
	}
	for _, b := range r.Beyond {
		rows("beyond", "", "", b.Item, b)
	}
}
