package history

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestViews: SQL finds in views what quests, ranks and rounds gave, who joined, what was beyond a cap, and what was collected.
func TestViews(t *testing.T) {
	gems := func(n uint64) []kuji.Stack { return []kuji.Stack{{Item: "gem", Quantity: n}} }
	recs := []kuji.Record{
		{Kind: "claim", Player: "ann", Quest: "q", Claims: []kuji.Claimed{{Quest: "q", Tier: 1, Items: gems(5)}, {Quest: "q", Tier: 2}},
			Beyond: []kuji.Beyond{{Item: "gem", Quantity: 2, How: "mailed"}}},
		{Kind: "due", Due: &kuji.Due{Counter: "points", Period: 9, From: 1, Count: 2},
			Claims: []kuji.Claimed{{Counter: "points", Rank: 1, Player: "bob", Items: gems(1)}, {Counter: "points", Rank: 2, Player: "\xff", Missed: true}}},
		{Kind: "atomic", Members: []kuji.Record{
			{Kind: "claim", Player: "cy", Claims: []kuji.Claimed{{Quest: "r", Tier: 3}}, Beyond: []kuji.Beyond{{Item: "gem", Quantity: 9, How: "cut"}}},
			{Kind: "transfer", Player: "ann", To: "bob", Beyond: []kuji.Beyond{{Item: "gem", Quantity: 8, How: "mailed"}}},
		}, Claims: []kuji.Claimed{{Quest: "auto", Tier: 1, Player: "ann"}}},
		{Kind: "collect", Player: "ann", Items: gems(2)},
		{Kind: "grant", Player: "ann", Items: gems(3)},
		{Kind: "open_round", Round: &kuji.RoundView{Name: "draw", Number: 1, State: "open"}},
		{Kind: "open_round", Player: "ann", Round: &kuji.RoundView{Name: "draw", Number: 2, State: "open"}}, // who opens it need not join
		{Kind: "join", Player: "bob", Count: 7, Round: &kuji.RoundView{Name: "draw", Number: 2, State: "open", Entrants: 1, Tickets: 7}},
		{Kind: "open_round", Player: "ann", Items: gems(2), Round: &kuji.RoundView{Name: "duel", Number: 3, State: "open", Entrants: 1, Tickets: 1}},
		{Kind: "join", Player: "\xff", Round: &kuji.RoundView{Name: "duel", Number: 3, State: "open", Entrants: 2, Tickets: 2}},
		{Kind: "due", Due: &kuji.Due{Round: 3}, Entrants: []string{"ann", "\xff"}, Round: &kuji.RoundView{Name: "duel", Number: 3, State: "settled", Entrants: 2, Tickets: 2},
			Claims: []kuji.Claimed{{Place: 1, Value: 5, Player: "\xff", Items: gems(4)}, {Place: 2, Player: "ann", Missed: true}}},
		{Kind: "hold", Player: "ann", Hold: &kuji.HoldView{ID: "h1", State: "open", Refund: true, Until: 99, Parts: []kuji.HeldPart{
			{Kind: "transfer", Player: "ann", To: "\xff", Takes: []kuji.HeldView{{Item: "gem", Quantity: 1}}}, {Kind: "draw", Player: "bob", Pool: "box", Draws: 2}}}},
		{Kind: "confirm", Hold: &kuji.HoldView{ID: "h1", State: "confirmed"}, Freed: []kuji.Freed{{Player: "ann", Hold: "h1"}, {Player: "bob", Hold: "h1"}}},
		{Kind: "due", Due: &kuji.Due{Holds: []string{"h2"}}, Freed: []kuji.Freed{{Player: "\xff", Hold: "h2"}}},
	}
	for i := range recs {
		recs[i].Position, recs[i].Status, recs[i].Last = uint64(i+1), "ok", true
	}
	want := map[string][]string{
		"claims": {"1 ann q 1 <nil> <nil> 0 [{\"item\":\"gem\",\"quantity\":5}]", "1 ann q 2 <nil> <nil> 0 <nil>",
			"2 bob <nil> <nil> points 1 0 [{\"item\":\"gem\",\"quantity\":1}]", "2 \\xff <nil> <nil> points 2 1 <nil>",
			"3 ann auto 1 <nil> <nil> 0 <nil>", "3 cy r 3 <nil> <nil> 0 <nil>",
			"11 \\xff <nil> <nil> <nil> <nil> 0 [{\"item\":\"gem\",\"quantity\":4}]", "11 ann <nil> <nil> <nil> <nil> 1 <nil>"},
		"beyond":    {"1 ann gem 2 mailed", "3 bob gem 8 mailed", "3 cy gem 9 cut"},
		"collected": {"4 ann gem 2"},
		"joins":     {"8 bob draw 2 7 <nil>", "9 ann duel 3 1 [{\"item\":\"gem\",\"quantity\":2}]", "10 \\xff duel 3 1 <nil>"},
		"wins":      {"11 \\xff duel 3 1 5 0 [{\"item\":\"gem\",\"quantity\":4}]", "11 ann duel 3 2 <nil> 1 <nil>"},
		"held":      {"12 h1 ann \\xff transfer 1 99 [{\"item\":\"gem\",\"quantity\":1}] <nil> <nil>", "12 h1 bob <nil> draw 1 99 <nil> <nil> 2"},
		"freed":     {"13 h1 ann confirmed", "13 h1 bob confirmed", "14 h2 \\xff expired"},
	}
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			where := target(t)
			h := openTest(t, where)
			if err := h.Run(t.Context(), of(recs)); err != nil {
				t.Fatal(err)
			}
			docs, err := os.ReadFile("../docs/reference/history.md")
			if err != nil {
				t.Fatal(err)
			}
			_, shown, _ := strings.Cut(string(docs), "-- The ranks that ann got")
			_, shown, _ = strings.Cut(shown, "\n")
			shown, _, _ = strings.Cut(shown, "\n\n")
			err = h.writing(t.Context(), func(tables tables) error {
				return tables.run(t.Context(), strings.Split(strings.TrimSuffix(shown, ";"), ";\n")...)
			})
			if err != nil || strings.Count(shown, "SELECT") != 2 {
				t.Errorf("history.md shows %q: %v", shown, err)
			}
			for range 2 {
				for view, want := range want {
					var got []string
					err := h.writing(t.Context(), func(tables tables) error {
						return tables.query(t.Context(), "SELECT * FROM "+view, func(r row) error {
							line := fmt.Sprintln(r...)
							got = append(got, fmt.Sprint(placeAt(r.int(0)).Position)+line[len(fmt.Sprint(r[0])):len(line)-1])
							return nil
						})
					})
					slices.Sort(got)
					slices.Sort(want)
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("%s: %v, %q, want %q", view, err, got, want)
					}
				}
				if err := h.writing(t.Context(), func(tables tables) error { return (&rebuild{tables: tables}).startOver(t.Context()) }); err != nil {
					t.Fatal(err)
				}
				if h = openTest(t, where); h.State().Position != 0 {
					t.Errorf("started over: %+v", h.State())
				}
				if err := h.Run(t.Context(), of(recs)); err != nil {
					t.Fatal(err)
				}
				sqlIn(t, h, "DROP VIEW claims", "DROP VIEW beyond", "DROP VIEW collected", "DROP VIEW joins", "DROP VIEW wins",
					"DROP VIEW held", "DROP VIEW freed", "UPDATE progress SET format = 3")
				h = openTest(t, where)
			}
		})
	}
}
