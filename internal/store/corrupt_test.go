package store

import (
	"fmt"
	"testing"
)

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
		"a request id":                func(s *State, _ []slot) { r, _ := s.ids.oldest(); answerID(r.answer)[0] ^= 1 },
	} {
		s := sound()
		change(s, s.players.at(1).holdings())
		if err := s.Check(); err == nil {
			t.Errorf("%s: Check finds nothing wrong", name)
		}
	}
}
