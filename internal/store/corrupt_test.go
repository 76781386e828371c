package store

import (
	"fmt"
	"slices"
	"testing"
)

// leaf returns the first leaf of an order of few players.
func (o *order) leaf() *rankNode { return o.nodes.at(o.periods[0].root) }

// TestCheckFindsDefects changes one number of a sound state at a time, as a defect could:
// Check reports each.
func TestCheckFindsDefects(t *testing.T) {
	sound := func() *State {
		s := New()
		for n := range uint64(6) {
			var w Writer
			w.Begin(2, fmt.Sprint("id", n))
			w.BeginAsked()
			w.EndAsked()
			if n == 0 {
				for i := range 2 {
					w.More(Item)
					w.Buf = append(w.Buf, 0)
					w.Text(fmt.Sprint("item", i))
				}
			}
			w.Join(fmt.Sprint("player", n))
			w.Change(Gain, 0, 1+n)
			w.Change(Gain, 1, 7)
			if n == 0 {
				w.More(Counter, 4)
				w.Text("counters")
				w.More(Order, 0, uint64(ByStanding))
				w.More(Order, 3, uint64(ByTime))
			}
			w.Change(Set, 0, 1+n/2)
			w.Change(Set, 2, n%2)
			w.Change(Set, 3, 9-n)
			if n == 0 {
				w.Name(NewList, "list")
				w.More(AddCodes, 0, 4)
				w.Text("x")
				w.Text("y")
				w.More(GiveCode, 0, 0)
				w.More(UseCode, 0, 1)
			}
			var ev Event
			if _, err := Decode(w.End(), &ev); err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(&ev, At{Position: n + 1}, nil); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	if err := sound().Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*State, []slot){
		"a balance":                   func(_ *State, h []slot) { h[0].set(h[0].value() + 1) },
		"a balance of zero":           func(_ *State, h []slot) { h[0].set(0) },
		"a balance that is too large": func(_ *State, h []slot) { h[0].set(MaxQuantity + 1) },
		"an item that there is not":   func(_ *State, h []slot) { h[1].key = 2 },
		"items in disorder":           func(_ *State, h []slot) { h[0], h[1] = h[1], h[0] },
		"an item's supply":            func(s *State, _ []slot) { s.names.items[1].supply.lo-- },
		"the supply's upper half":     func(s *State, _ []slot) { s.names.items[1].supply.hi++ },
		"a bound below a supply":      func(s *State, _ []slot) { s.peak = 1 },
		"a player's id":               func(s *State, _ []slot) { s.players.at(2).id()[0] ^= 1 },
		"a player's guard":            func(s *State, _ []slot) { s.players.at(2).guard ^= 1 },
		"a code":                      func(s *State, _ []slot) { s.codes.lists[0].codes.Code(1)[0] = 'z' },
		"a code twice":                func(s *State, _ []slot) { s.codes.lists[0].codes.Code(1)[0] = 'x' },
		"the codes that are left":     func(s *State, _ []slot) { s.codes.lists[0].left.Store(2) },
		"the number of codes":         func(s *State, _ []slot) { s.codes.codes++ },
		"whose a code is":             func(s *State, _ []slot) { s.codes.lists[0].codes.given.get(0).Player = 6 },
		"when a code was given":       func(s *State, _ []slot) { s.codes.lists[0].codes.given.get(0).Position = 2 },
		"whose a use is":              func(s *State, _ []slot) { s.codes.lists[0].codes.uses.get(0).Player = 1 },
		"what a use is of":            func(s *State, _ []slot) { s.codes.lists[0].codes.uses.get(0).Code = 0 },
		"when a code was used":        func(s *State, _ []slot) { s.codes.lists[0].codes.uses.get(0).Position = 2 },
		"how often a code was used":   func(s *State, _ []slot) { s.codes.lists[0].times[0][0]++ },
		"how many codes were used":    func(s *State, _ []slot) { s.codes.lists[0].burnt++ },
		"a player's counter":          func(_ *State, h []slot) { h[2].set(h[2].value() + 1) },
		"a player's period":           func(_ *State, h []slot) { h[3].set(h[3].value() + 1) },
		"a player's deadline":         func(_ *State, h []slot) { h[4].set(h[4].value() + 1) },
		"a player who is in no order": func(s *State, _ []slot) { s.orders.list[1].periods = nil },
		"a key":                       func(s *State, _ []slot) { s.orders.list[1].leaf()[nodeHead+1]++ },
		"keys in disorder": func(s *State, _ []slot) {
			x := s.orders.list[1].leaf()
			x[nodeHead+1], x[nodeHead+4] = x[nodeHead+4], x[nodeHead+1]
			x[nodeHead+2], x[nodeHead+5] = x[nodeHead+5], x[nodeHead+2]
		},
		"a player who is not": func(s *State, _ []slot) { s.orders.list[1].leaf()[nodeHead+2] = 77 },
		"the number of keys":  func(s *State, _ []slot) { s.orders.list[1].periods[0].n++ },
		"a key too few":       func(s *State, _ []slot) { s.orders.list[1].leaf()[0]--; s.orders.list[1].periods[0].n-- },
		"a next leaf":         func(s *State, _ []slot) { s.orders.list[1].leaf()[1] = 1 },
		"periods in disorder": func(s *State, _ []slot) { slices.Reverse(s.orders.list[0].periods) },
		"a period's number":   func(s *State, _ []slot) { s.orders.list[0].periods[1].num++ },
		"a request id":        func(s *State, _ []slot) { r, _ := s.ids.oldest(); answerID(r.answer)[0] ^= 1 },
	} {
		s := sound()
		change(s, s.players.at(1).holdings())
		if err := s.Check(); err == nil {
			t.Errorf("%s: Check finds nothing wrong", name)
		}
	}
}
