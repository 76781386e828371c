package economy

import (
	"fmt"
	"testing"
)

// TestCheckFinds changes one number of a sound state at a time, as a defect of the
// rules or of memory could: Check reports each.
func TestCheckFinds(t *testing.T) {
	sound := func() *State {
		w := newWindow(t, `{kuji: 1, items: {gem: {kind: currency}, gold: {}}, start: {gem: 50}, pools: {
			box: {mode: raffle, entries: [{id: a, stock: 9, reward: {items: {gold: 2}}}, {id: b, stock: 90}]},
			chain: {price: {gem: 1}, entries: [{id: in, weight: 2, reward: {pool: box}}, {id: out, weight: 1, stock: 7}]}}}`)
		for i := range 40 {
			w.do(Command{Kind: KindDraw, ID: fmt.Sprint("id", i), Player: fmt.Sprint("p", i%3), Pool: "chain", Count: 1})
			w.do(Command{Kind: KindDraw, Player: fmt.Sprint("p", i%3), Pool: "box", Count: 1})
		}
		return w.State
	}
	if err := sound().Check(); err != nil {
		t.Fatal(err)
	}
	slots := func(s *State) []slot { return s.players.holdings(1) }
	for name, change := range map[string]func(*State){
		"one more in stock":               func(s *State) { s.pools[0].left[0]++ },
		"one draw less":                   func(s *State) { s.pools[0].drawn[1]-- },
		"a weight of the sampler":         func(s *State) { mustSet(s.pools[0], 1, s.pools[0].sampler.Weight(1)+1) },
		"a pool that is thought sold out": func(s *State) { s.odds[0].live-- },
		"what is left of a group":         func(s *State) { s.odds[0].left[0]++ },
		"a balance":                       func(s *State) { sl := &slots(s)[0]; sl.set(sl.value() + 1) },
		"a balance of zero":               func(s *State) { slots(s)[0].set(0) },
		"a balance that is too large":     func(s *State) { slots(s)[0].set(MaxQuantity + 1) },
		"an item that there is not":       func(s *State) { slots(s)[1].key = 1 << 20 },
		"items in disorder":               func(s *State) { h := slots(s); h[0], h[1] = h[1], h[0] },
		"the supply of an item":           func(s *State) { s.items[1].supply.lo++ },
		"the supply's upper half":         func(s *State) { s.items[1].supply.hi++ },
		"a bound below a supply":          func(s *State) { s.peak = 1 },
		"a player's id":                   func(s *State) { s.players.at(2).id()[0] ^= 1 },
		"a player's number":               func(s *State) { s.players.addrs.set(0, s.players.addrs.get(1)); s.players.recent[0].num = deadBlock },
		"a request id":                    func(s *State) { flipID(t, s) },
		"an answer of a version to come":  func(s *State) { s.current.version = 0 },
	} {
		s := sound()
		change(s)
		if err := s.Check(); err == nil {
			t.Errorf("%s: Check finds nothing wrong", name)
		}
	}
}

// flipID changes a byte of the id of a remembered request.
func flipID(t *testing.T, s *State) {
	for _, r := range s.ids.from(s.ids.head) {
		answerID(r.answer)[0] ^= 1
		return
	}
	t.Fatal("no request is remembered")
}
