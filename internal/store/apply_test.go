package store_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/internal/store"
)

// TestApplyRefuses: an event that does not fit the state, and the same one made to fit.
func TestApplyRefuses(t *testing.T) {
	for name, c := range map[string]struct{ bad, good func(w *store.Writer) }{
		"more than there is": {
			func(w *store.Writer) { w.Change(store.Spend, 0, 6) },
			func(w *store.Writer) { w.Change(store.Spend, 0, 5) }},
		"of what there is none": {
			func(w *store.Writer) { w.Change(store.Spend, 1, 1) },
			func(w *store.Writer) { w.Change(store.Gain, 1, 1); w.Change(store.Spend, 1, 1) }},
		"more than a balance holds": {
			func(w *store.Writer) { w.Change(store.Gain, 0, store.MaxQuantity-4) },
			func(w *store.Writer) { w.Change(store.Gain, 0, store.MaxQuantity-5) }},
		"nothing, gained": {
			func(w *store.Writer) { w.Change(store.Gain, 0, 0) },
			func(w *store.Writer) { w.Change(store.Gain, 0, 1) }},
		"nothing, spent": {
			func(w *store.Writer) { w.Change(store.Spend, 0, 0) },
			func(w *store.Writer) { w.Change(store.Spend, 0, 1) }},
		"an item that there is not": {
			func(w *store.Writer) { w.Change(store.Gain, 3, 1) },
			func(w *store.Writer) { w.Change(store.Gain, 2, 1) }},
		"a counter's number as an item": {
			func(w *store.Writer) { w.Change(store.Gain, 1<<31, 1) },
			func(w *store.Writer) { w.Change(store.Set, 0, 1) }},
		"a counter that there is not": {
			func(w *store.Writer) { w.Change(store.Set, 3, 1) },
			func(w *store.Writer) { w.Change(store.Set, 2, 1) }},
		"a counter beyond all": {
			func(w *store.Writer) { w.Change(store.Set, 1<<31, 1) },
			func(w *store.Writer) { w.Change(store.Set, 2, 0) }},
		"a player that there is not": {
			func(w *store.Writer) { w.Effect(store.Player, 1); w.Change(store.Gain, 0, 1) },
			func(w *store.Writer) { w.Effect(store.Player, 0); w.Change(store.Gain, 0, 1) }},
		"a player who has joined": {
			func(w *store.Writer) { w.Join("ann") },
			func(w *store.Writer) { w.Join("anne") }},
		"a player twice": {
			func(w *store.Writer) { w.Join("bob"); w.Join("bob") },
			func(w *store.Writer) { w.Join("bob"); w.Join("bo") }},
		"one more than the stock": {
			func(w *store.Writer) { w.Effect(store.Pool, 0); take(w, 0, 0, 0, 0) },
			func(w *store.Writer) { w.Effect(store.Pool, 0); take(w, 0, 0, 0) }},
		"one of no stock": {
			func(w *store.Writer) { w.Effect(store.Pool, 0); take(w, 2) },
			func(w *store.Writer) { w.Effect(store.Pool, 0); take(w, 1) }},
		"one of an entry without a stock": {
			func(w *store.Writer) { w.Effect(store.Pool, 1); take(w, 0) },
			func(w *store.Writer) { w.Effect(store.Pool, 1); stock(w, 0, 1); take(w, 0) }},
		"one of a stock that is lowered": {
			func(w *store.Writer) { w.Effect(store.Pool, 0); take(w, 0, 0); stock(w, 0, 1); take(w, 0) },
			func(w *store.Writer) {
				w.Effect(store.Pool, 0)
				take(w, 0, 0)
				stock(w, 0, 1)
				stock(w, 0, -1)
				take(w, 0)
			}},
		"an entry that there is not": {
			func(w *store.Writer) { w.Effect(store.Pool, 0); take(w, 3) },
			func(w *store.Writer) { w.Effect(store.Pool, 0); w.Name(store.Entry, "new"); stock(w, 3, 1); take(w, 3) }},
		"the stock of an entry that there is not": {
			func(w *store.Writer) { w.Effect(store.Pool, 0); stock(w, 3, 1) },
			func(w *store.Writer) { w.Effect(store.Pool, 0); stock(w, 2, 1) }},
		"a pool that there is not": {
			func(w *store.Writer) { w.Effect(store.Pool, 2) },
			func(w *store.Writer) { w.Name(store.NewPool, "new"); w.Effect(store.Pool, 2) }},
		"an entry of no pool": {
			func(w *store.Writer) { take(w, 1) },
			func(w *store.Writer) { w.Effect(store.Pool, 0); take(w, 1) }},
		"an entry of the pool of another member": {
			func(w *store.Writer) { w.Effect(store.Pool, 0); w.More(store.Member); take(w, 1) },
			func(w *store.Writer) { w.More(store.Member); w.Effect(store.Pool, 0); take(w, 1) }},
		"a new entry of no pool": {
			func(w *store.Writer) { w.Name(store.Entry, "e") },
			func(w *store.Writer) { w.Effect(store.Pool, 0); w.Name(store.Entry, "e") }},
		"a stock of no pool": {
			func(w *store.Writer) { stock(w, 0, 1) },
			func(w *store.Writer) { w.Effect(store.Pool, 1); stock(w, 0, 1) }},
		"an item twice": {
			func(w *store.Writer) { item(w, 0, "a") },
			func(w *store.Writer) { item(w, 0, "p") }},
		"a pool twice": {
			func(w *store.Writer) { w.Name(store.NewPool, "q") },
			func(w *store.Writer) { w.Name(store.NewPool, "a") }},
		"an entry twice": {
			func(w *store.Writer) { w.Effect(store.Pool, 1); w.Name(store.Entry, "x") },
			func(w *store.Writer) { w.Effect(store.Pool, 1); w.Name(store.Entry, "y") }},
		"counters twice": {
			func(w *store.Writer) { counters(w, 1, "one") },
			func(w *store.Writer) { counters(w, 1, "three") }},
		"no counters": {
			func(w *store.Writer) { counters(w, 0, "none") },
			func(w *store.Writer) { counters(w, 1<<31-1-3, "all") }},
		"too many counters": {
			func(w *store.Writer) { counters(w, 1<<31-1-2, "all") },
			func(w *store.Writer) { counters(w, 1<<31-1-3, "all") }},
		"a list of codes twice": {
			func(w *store.Writer) { w.Name(store.NewList, "l"); w.Name(store.NewList, "l") },
			func(w *store.Writer) { w.Name(store.NewList, "l"); w.Name(store.NewList, "p") }},
		"codes of no list": {
			func(w *store.Writer) { codes(w, 0, "x") },
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x") }},
		"a code twice at once": {
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x", "y", "x") },
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x", "y", "X") }},
		"a code twice": {
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x"); codes(w, 0, "x") },
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				w.Name(store.NewList, "m")
				codes(w, 0, "x")
				codes(w, 1, "x")
			}},
		"an empty code": {
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "") },
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0) }},
		"a code that is too long": {
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, strings.Repeat("x", store.MaxCode+1)) },
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, strings.Repeat("x", store.MaxCode)) }},
		"one more code than there are": {
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				codes(w, 0, "x")
				w.More(store.GiveCode, 0, 0)
				w.More(store.GiveCode, 0, 1)
			},
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				codes(w, 0, "x", "y")
				w.More(store.GiveCode, 0, 0)
				w.More(store.GiveCode, 0, 1)
			}},
		"a code given twice": {
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				codes(w, 0, "x", "y")
				w.More(store.GiveCode, 0, 0)
				w.More(store.GiveCode, 0, 0)
			},
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x", "y"); w.More(store.GiveCode, 0, 0) }},
		"a code out of its turn": {
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x", "y"); w.More(store.GiveCode, 0, 1) },
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x", "y"); w.More(store.GiveCode, 0, 0) }},
		"a code for a player that there is not": {
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				codes(w, 0, "x")
				w.Effect(store.Player, 1)
				w.More(store.GiveCode, 0, 0)
			},
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				codes(w, 0, "x")
				w.Join("bob")
				w.More(store.GiveCode, 0, 0)
			}},
		"a code used that there is not": {
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x"); w.More(store.UseCode, 0, 1) },
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x", "y"); w.More(store.UseCode, 0, 1) }},
		"a code of no list used": {
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x"); w.More(store.UseCode, 1, 0) },
			func(w *store.Writer) { w.Name(store.NewList, "l"); codes(w, 0, "x"); w.More(store.UseCode, 0, 0) }},
		"a code used twice by a player": {
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				codes(w, 0, "x")
				w.More(store.UseCode, 0, 0)
				w.More(store.UseCode, 0, 0)
			},
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				codes(w, 0, "x")
				w.More(store.UseCode, 0, 0)
				w.Join("bob")
				w.More(store.UseCode, 0, 0)
			}},
		"a code used by a player that there is not": {
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				codes(w, 0, "x")
				w.Effect(store.Player, 1)
				w.More(store.UseCode, 0, 0)
			},
			func(w *store.Writer) {
				w.Name(store.NewList, "l")
				codes(w, 0, "x")
				w.Join("bob")
				w.More(store.UseCode, 0, 0)
			}},
		"a malformed effect behind a good one": {
			func(w *store.Writer) { w.Change(store.Gain, 0, 1); w.Buf = append(w.Buf, 0xff) },
			func(w *store.Writer) { w.Change(store.Gain, 0, 1) }},
	} {
		r := based(t)
		refused(t, name, r.apply(r.write("", c.bad)))
		if _, _, _, ok := r.s.Holdings("ann"); !ok { // readers can go on
			t.Errorf("%s: ann is lost", name)
		}
		left(r.s, 0, 0)
		r = based(t)
		r.do("", c.good)
		r.follow(r.replay())
	}
}

func take(w *store.Writer, entries ...uint32) {
	for _, e := range entries {
		w.Effect(store.Take, e)
	}
}

// TestApplyGoesForward: neither positions nor times go back.
func TestApplyGoesForward(t *testing.T) {
	for _, c := range []struct {
		position uint64
		time     int64
		ok       bool
	}{{7, 100, true}, {7, 101, true}, {8, 100, true}, {6, 100, false}, {7, 99, false}, {9, 99, false}, {6, 200, false}} {
		r := newRealm(t)
		raw := r.write("", func(w *store.Writer) { item(w, 0, "a") })
		var ev store.Event
		if _, err := store.Decode(raw, &ev); err != nil {
			t.Fatal(err)
		}
		if err := r.s.Apply(&ev, store.At{Position: 7, Time: 100}, nil); err != nil {
			t.Fatal(err)
		}
		none := r.write("", func(*store.Writer) {})
		if _, err := store.Decode(none, &ev); err != nil {
			t.Fatal(err)
		}
		err := r.s.Apply(&ev, store.At{Position: c.position, Time: c.time}, nil)
		if c.ok && (err != nil || r.s.Position() != c.position || r.s.Now() != c.time) {
			t.Errorf("%+v: %v, and the state is at %d, %d", c, err, r.s.Position(), r.s.Now())
		}
		if !c.ok {
			refused(t, fmt.Sprintf("%+v", c), err)
		}
	}
}

type looker func(*store.Effect)

func (f looker) See(e *store.Effect) { f(e) }

// TestApplyLooks: a look is shown each effect once, when it is applied, and none that is refused.
func TestApplyLooks(t *testing.T) {
	r := based(t)
	var ev store.Event
	if _, err := store.Decode(r.write("", func(w *store.Writer) {
		w.Join("bob")
		w.Change(store.Gain, 1, 7)
		w.Effect(store.Player, 0)
		w.Change(store.Spend, 0, 6) // of 5
		w.Change(store.Gain, 1, 1)
	}), &ev); err != nil {
		t.Fatal(err)
	}
	seen := ""
	err := r.s.Apply(&ev, store.At{Position: 9, Time: r.now}, looker(func(e *store.Effect) {
		seen += fmt.Sprintf("%d:%d:%s, bob has %d; ", e.Verb, e.N, e.Bytes, r.s.Balance(1, 1))
		e.Bytes = nil
	}))
	refused(t, "6 of 5 spent", err)
	if want := "1:3:bob, bob has 0; 2:1:, bob has 7; 0:0:, bob has 7; "; seen != want {
		t.Errorf("seen: %s, want %s", seen, want)
	}
}

// TestApplyRefusesIDsTwice: a request id that is remembered has one effect.
func TestApplyRefusesIDsTwice(t *testing.T) {
	r := based(t)
	gain := func(w *store.Writer) { w.Change(store.Gain, 0, 1) }
	r.do("id", gain)
	r.do("id2", gain)
	refused(t, "the same id", r.apply(r.write("id", gain)))
}

// TestApplyRefusesOneTooMany: players and names are bounded.
func TestApplyRefusesOneTooMany(t *testing.T) {
	r := based(t)
	r.s.SetMaxPlayers(3)
	join := func(id string) func(w *store.Writer) { return func(w *store.Writer) { w.Join(id) } }
	if !r.s.RoomForPlayers(2) || r.s.RoomForPlayers(3) {
		t.Error("of 3 players there is 1, and 2 have room")
	}
	r.do("", join("bob"))
	r.do("", join("cat"))
	if r.s.RoomForPlayers(1) {
		t.Error("there is room for a fourth player")
	}
	refused(t, "a fourth player", r.apply(r.write("", join("dan"))))
	r = based(t)
	refused(t, "one item too many", r.apply(r.write("", func(w *store.Writer) {
		for i := range 1<<20 - 2 {
			item(w, 0, fmt.Sprint("i", i))
		}
	})))
	r = based(t)
	refused(t, "one pool too many", r.apply(r.write("", func(w *store.Writer) {
		for i := range 1<<16 - 1 {
			w.Name(store.NewPool, fmt.Sprint("p", i))
		}
	})))
}

// TestSupplies: sums of balances go beyond 64 bits.
func TestSupplies(t *testing.T) {
	r := based(t)
	const players = 2050
	r.do("", func(w *store.Writer) {
		for i := range players {
			w.Join(fmt.Sprint("p", i))
			w.Change(store.Gain, 2, store.MaxQuantity)
		}
	})
	want := new(big.Int).Mul(big.NewInt(players), big.NewInt(store.MaxQuantity))
	if text, _ := r.s.Supply(2); text != want.String() || want.BitLen() <= 64 {
		t.Errorf("a supply of %s, want %v", text, want)
	}
	r.do("", func(w *store.Writer) {
		for i := range players {
			w.Effect(store.Player, uint32(1+i))
			w.Change(store.Spend, 2, store.MaxQuantity)
		}
	})
	if text, any := r.s.Supply(2); text != "0" || any {
		t.Errorf("a supply of %s, %v, want none", text, any)
	}
	if r.s.Peak() < store.MaxQuantity {
		t.Errorf("a balance was %d, and the peak is %d", uint64(store.MaxQuantity), r.s.Peak())
	}
	r.follow(r.replay())
}

// naive is the state once more, from maps.
type naive struct {
	items, pools []string
	counters     map[string]bool
	next         uint64
	entries      []map[string]bool
	stock, drawn [][]int64 // -1: without a bound
	players      []string
	holds        []map[string]uint64 // "item n", "counter n"
	tallies      map[uint32]uint64
	lists        []*naiveList
}

// naiveList is a list of codes.
type naiveList struct {
	name  string
	codes []string
	given []int // players
	uses  []naiveUse
}

// naiveUse is a code that a player used.
type naiveUse struct{ code, player int }

func (n *naive) has(list []string, s []byte) bool {
	for _, x := range list {
		if x == string(s) {
			return true
		}
	}
	return false
}

// burnt returns how many codes were used at all.
func (l *naiveList) burnt() int {
	all := map[int]bool{}
	for _, u := range l.uses {
		all[u.code] = true
	}
	return len(all)
}

// apply carries out effects, and says whether they fit.
func (n *naive) apply(effects []store.Effect) bool {
	player, pool := 0, -1
	for _, e := range effects {
		switch e.Verb {
		case store.Player:
			player = int(e.N)
		case store.Join:
			if n.has(n.players, e.Bytes) {
				return false
			}
			player = len(n.players)
			n.players, n.holds = append(n.players, string(e.Bytes)), append(n.holds, map[string]uint64{})
		case store.Gain, store.Grow, store.Spend:
			k := fmt.Sprint("item ", e.N)
			if player >= len(n.players) || int(e.N) >= len(n.items) || e.Value == 0 ||
				e.Verb != store.Spend && n.holds[player][k]+e.Value > store.MaxQuantity || e.Verb == store.Spend && n.holds[player][k] < e.Value {
				return false
			}
			if e.Verb != store.Spend {
				n.holds[player][k] += e.Value
			} else {
				n.holds[player][k] -= e.Value
			}
		case store.Set:
			if player >= len(n.players) || uint64(e.N) >= n.next {
				return false
			}
			n.holds[player][fmt.Sprint("counter ", e.N)] = e.Value
		case store.NewList:
			for _, l := range n.lists {
				if l.name == string(e.Bytes) {
					return false
				}
			}
			n.lists = append(n.lists, &naiveList{name: string(e.Bytes)})
		case store.AddCodes:
			if int(e.N) >= len(n.lists) {
				return false
			}
			l := n.lists[e.N]
			for b := e.Bytes; len(b) > 0; b = b[1+b[0]:] {
				code := b[1 : 1+b[0]]
				if n.has(l.codes, code) {
					return false
				}
				l.codes = append(l.codes, string(code))
			}
		case store.GiveCode:
			if int(e.N) >= len(n.lists) || player >= len(n.players) || int(e.Value) != len(n.lists[e.N].given) || int(e.Value) >= len(n.lists[e.N].codes) {
				return false
			}
			n.lists[e.N].given = append(n.lists[e.N].given, player)
		case store.UseCode:
			use := naiveUse{int(e.Value), player}
			if int(e.N) >= len(n.lists) || player >= len(n.players) || int(e.Value) >= len(n.lists[e.N].codes) || slices.Contains(n.lists[e.N].uses, use) {
				return false
			}
			n.lists[e.N].uses = append(n.lists[e.N].uses, use)
		case store.Tally:
			if uint64(e.N) >= n.next {
				return false
			}
			n.tallies[e.N] = e.Value
		case store.Pool:
			if pool = int(e.N); pool >= len(n.pools) {
				return false
			}
		case store.Take:
			if pool < 0 || int(e.N) >= len(n.stock[pool]) || n.stock[pool][e.N] >= 0 && n.stock[pool][e.N] <= n.drawn[pool][e.N] {
				return false
			}
			n.drawn[pool][e.N]++
		case store.Member:
			pool = -1
		case store.Item:
			if n.has(n.items, e.Bytes) {
				return false
			}
			n.items = append(n.items, string(e.Bytes))
		case store.NewPool:
			if n.has(n.pools, e.Bytes) {
				return false
			}
			pool = len(n.pools)
			n.pools, n.entries = append(n.pools, string(e.Bytes)), append(n.entries, map[string]bool{})
			n.stock, n.drawn = append(n.stock, nil), append(n.drawn, nil)
		case store.Entry:
			if pool < 0 || n.entries[pool][string(e.Bytes)] {
				return false
			}
			n.entries[pool][string(e.Bytes)] = true
			n.stock[pool], n.drawn[pool] = append(n.stock[pool], 0), append(n.drawn[pool], 0)
		case store.Stock:
			if pool < 0 || int(e.N) >= len(n.stock[pool]) {
				return false
			}
			n.stock[pool][e.N] = int64(e.Value) - 1
		case store.Counter:
			if n.counters[string(e.Bytes)] || e.N == 0 || n.next+uint64(e.N) > 1<<31-1 {
				return false
			}
			n.counters[string(e.Bytes)] = true
			n.next += uint64(e.N)
		}
	}
	return true
}

func newNaive() *naive { return &naive{counters: map[string]bool{}, tallies: map[uint32]uint64{}} }

// compare checks that a state holds what the naive one holds.
func (n *naive) compare(t rapid.TB, s *store.State) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatalf("%v", err)
	}
	if int(s.Players()) != len(n.players) || s.Items() != len(n.items) || s.Pools() != len(n.pools) || uint64(s.NextCounter()) != n.next {
		t.Fatalf("%d players, %d items, %d pools, %d counters, want %d, %d, %d, %d", s.Players(), s.Items(), s.Pools(), s.NextCounter(), len(n.players), len(n.items), len(n.pools), n.next)
	}
	for i, l := range n.lists {
		all, _ := s.Codes(uint32(i))
		if s.CodeListName(uint32(i)) != l.name || int(all.Count()) != len(l.codes) || int(all.Given()) != len(l.given) {
			t.Fatalf("list %d, %q: %d of %d codes given, want %d of %d of %q", i, s.CodeListName(uint32(i)), all.Given(), all.Count(), len(l.given), len(l.codes), l.name)
		}
		for k, code := range l.codes {
			if got := s.Code(uint32(i), uint64(k)); got != code || !s.HasCode(uint32(i), code) {
				t.Fatalf("code %d is %q, want %q", k, got, code)
			}
		}
		if _, used := s.CodeUses(uint32(i)); int(all.Uses()) != len(l.uses) || int(used) != l.burnt() {
			t.Fatalf("list %d: %d uses of %d codes, want %d of %d", i, all.Uses(), used, len(l.uses), l.burnt())
		}
		for k, want := range l.uses {
			u := all.Use(uint64(k))
			if want != (naiveUse{int(u.Code), int(u.Player)}) || !s.CodeUsedBy(uint32(i), uint64(u.Code), u.Player) || s.CodeTimes(uint32(i), uint64(u.Code)) == 0 {
				t.Fatalf("use %d is of code %d by player %d, want %+v", k, u.Code, u.Player, want)
			}
		}
		for k, player := range l.given {
			if got := all.GivenTo(uint64(k)); int(got.Player) != player || got.Code != uint32(k) {
				t.Fatalf("code %d was given to player %d, want %d", got.Code, got.Player, player)
			}
		}
	}
	for c := range uint32(min(n.next, 40)) {
		if got, want := s.Tally(c), n.tallies[c]; got != want {
			t.Fatalf("the realm's counter %d is %d, want %d", c, got, want)
		}
	}
	for p, id := range n.players {
		if num, ok := s.Player(id); !ok || num != uint32(p) || s.PlayerID(num) != id {
			t.Fatalf("player %q is number %d, want %d", id, num, p)
		}
		seen := 0
		for i, item := range n.items {
			want := n.holds[p][fmt.Sprint("item ", i)]
			if q, _, ok := s.HoldingOf(id, item); !ok || q != want || s.Balance(uint32(p), uint32(i)) != want {
				t.Fatalf("player %q holds %d of %q, want %d", id, q, item, want)
			}
			if want > 0 {
				seen++
			}
		}
		if all, _, _, _ := s.Holdings(id); len(all) != seen {
			t.Fatalf("player %q holds %v, want %d items", id, all, seen)
		}
		for c := range uint32(min(n.next, 40)) {
			if got, want := s.Counter(uint32(p), c), n.holds[p][fmt.Sprint("counter ", c)]; got != want {
				t.Fatalf("player %q: counter %d is %d, want %d", id, c, got, want)
			}
		}
	}
	for p, id := range n.pools {
		if num, ok := s.PoolNum(id); !ok || num != uint32(p) || s.Entries(num) != len(n.stock[p]) {
			t.Fatalf("pool %q is number %d with %d entries, want %d with %d", id, num, s.Entries(num), p, len(n.stock[p]))
		}
		for e := range n.stock[p] {
			l, d, limited := left(s, uint32(p), uint32(e))
			if want := n.stock[p][e]; limited != (want >= 0) || int64(d) != n.drawn[p][e] || limited && int64(l) != max(want-n.drawn[p][e], 0) {
				t.Fatalf("pool %q, entry %d: %d left, %d drawn, of %d after %d", id, e, l, d, want, n.drawn[p][e])
			}
		}
	}
}

// drawClose draws an effect that fits most of the time: of little that there is, or close to it.
func drawClose(t *rapid.T, n *naive) (e store.Effect) {
	below := func(what string, have int) uint32 {
		return uint32(rapid.IntRange(0, max(have+have/8, 1)).Draw(t, what))
	}
	name := func(what string) []byte { return fmt.Append(nil, what, rapid.IntRange(0, 12).Draw(t, what)) }
	e.Verb = rapid.SampledFrom([]store.Verb{
		store.Player, store.Player, store.Join, store.Gain, store.Gain, store.Gain, store.Spend, store.Set, store.Pool, store.Pool, store.Take, store.Take,
		store.Member, store.Item, store.NewPool, store.Entry, store.Stock, store.Counter, store.Draw, store.Tally,
		store.NewList, store.AddCodes, store.AddCodes, store.GiveCode, store.GiveCode, store.UseCode, store.UseCode,
	}).Draw(t, "verb")
	switch e.Verb {
	case store.Player:
		e.N = below("player", len(n.players)-1)
	case store.Join:
		e.Bytes = name("player ")
	case store.Gain, store.Spend:
		e.N, e.Value = below("item", len(n.items)-1), rapid.SampledFrom([]uint64{1, 1, 2, 3, 1 << 20, store.MaxQuantity / 2}).Draw(t, "quantity")
	case store.Set, store.Tally:
		e.N, e.Value = below("counter", int(min(n.next, 12))-1), rapid.Uint64Range(0, 2).Draw(t, "value")
	case store.Pool:
		e.N = below("pool", len(n.pools)-1)
	case store.Take, store.Stock:
		e.N, e.Value = below("entry", 2), rapid.Uint64Range(0, 5).Draw(t, "stock")
	case store.Item:
		e.Bytes = name("item ")
	case store.NewPool:
		e.Bytes = name("pool ")
	case store.Entry:
		e.Bytes = name("entry ")
	case store.NewList:
		e.Bytes = name("list ")
	case store.AddCodes:
		e.N = below("list", len(n.lists)-1)
		for range rapid.IntRange(0, 3).Draw(t, "codes") {
			code := name("code ")
			e.Bytes = append(append(e.Bytes, byte(len(code))), code...)
		}
	case store.GiveCode:
		if e.N = below("list", len(n.lists)-1); int(e.N) < len(n.lists) {
			e.Value = uint64(len(n.lists[e.N].given))
		}
		if rapid.IntRange(0, 20).Draw(t, "another") == 20 {
			e.Value++
		}
	case store.UseCode:
		if e.N = below("list", len(n.lists)-1); int(e.N) < len(n.lists) {
			e.Value = uint64(below("code", len(n.lists[e.N].codes)-1))
		}
	case store.Counter:
		e.N, e.Bytes = rapid.Uint32Range(0, 4).Draw(t, "width"), name("counters ")
	}
	return e
}

// TestApplyAgainstMaps: effects change the state as they change maps, and those that do not
// fit the maps are refused.
func TestApplyAgainstMaps(t *testing.T) {
	fit, not := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r, n := newRealm(t), newNaive()
		var done []store.Effect // one event behind the other
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			e := written{ev: store.Event{Kind: 2}}
			for range rapid.IntRange(1, 4).Draw(t, "effects") {
				f := drawClose(t, n)
				fits := newNaive().apply(slices.Concat(done, e.effects, []store.Effect{f}))
				if fits || rapid.IntRange(0, 60).Draw(t, "all the same") == 60 {
					e.effects = append(e.effects, f)
				}
			}
			ok := n.apply(e.effects)
			err := r.apply(e.write(&store.Writer{}))
			if ok != (err == nil) {
				t.Fatalf("%+v: fits: %v, and is applied with %v", e.effects, ok, err)
			}
			if !ok {
				not++
				refused(t, "", err)
				return // the state is of no use any more
			}
			fit++
			// To the maps, all events are one: the next is of the first player, and of no pool.
			done = append(append(done, e.effects...), store.Effect{Verb: store.Player}, store.Effect{Verb: store.Member})
			n.compare(t, r.s)
		}
		r.follow(r.replay())
	})
	if (fit < 500 || not < 10) && !testing.Short() {
		t.Errorf("%d events fitted, %d did not: the test is too small", fit, not)
	}
}

// FuzzApply: no events make Apply, a reader or a capture panic; and what is accepted leaves
// the invariants whole, and a state that its capture gives again.
func FuzzApply(f *testing.F) {
	r := based(f)
	var all []byte
	for i := range 8 {
		r.do(fmt.Sprint("id", i), func(w *store.Writer) {
			w.Join(strings.Repeat("x", i+1))
			w.Change(store.Gain, uint32(i%3), uint64(i+1))
			w.Effect(store.Pool, 0)
			w.Effect(store.Take, 1)
			w.Change(store.Set, uint32(i%3), uint64(i))
		})
		all = append(all, r.log[len(r.log)-1].raw...)
		f.Add(r.log[len(r.log)-1].raw)
	}
	f.Add(all)
	f.Add(r.write("", func(w *store.Writer) { item(w, 9, "new"); w.Change(store.Gain, 3, 1) })) // and no catalog
	f.Add(r.write("", func(w *store.Writer) {
		window(w, 1, 0)
		window(w, 0, 0)
		item(w, 9, "new")
		w.Change(store.Gain, 3, 1)
		inForce(w, "next")
	}))
	f.Add(r.write("new", func(w *store.Writer) {
		w.Effect(store.Pool, 1)
		w.Name(store.Entry, "y")
		stock(w, 1, 7)
		take(w, 1)
		w.Name(store.NewPool, "r")
	}))
	f.Add(r.write("new", func(w *store.Writer) {
		w.Join("b")
		w.Join("c")
		w.More(store.Member)
		counters(w, 9, "nine")
		w.Change(store.Set, 11, 1<<63)
		w.More(store.Tally, 3, 1<<63)
		w.More(store.Draw)
		w.More(store.Tally, 5, 1)
	}))
	f.Add(r.write("new", func(w *store.Writer) {
		w.Name(store.NewList, "l")
		codes(w, 0, "x", "y", strings.Repeat("z", 100))
		w.Join("b")
		w.More(store.GiveCode, 0, 0)
		w.More(store.GiveCode, 0, 1)
		w.More(store.UseCode, 0, 2)
		w.More(store.UseCode, 0, 0)
	}))
	seeds := r.log[:2]
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newRealm(t)
		for _, l := range seeds {
			if err := r.apply(l.raw); err != nil {
				t.Fatal(err)
			}
		}
		first := r.s.Capture(nil)
		chain := []snapshot{taken(first)}
		r.s.Release(first, true)
		extent := first.Extent()
		for i := 0; i < 50; i++ {
			var ev store.Event
			n, err := store.Decode(b, &ev)
			if err != nil {
				break
			}
			if r.now += 100_000; r.apply(b[:n]) != nil {
				r.s.Abandon()
				return
			}
			b = b[n:]
			wantWhole(t, r.s)
		}
		second := r.s.Capture(&extent)
		chain = append(chain, taken(second))
		r.s.Release(second, true)
		s, _, err := load(chain)
		if err != nil {
			t.Fatal(err)
		}
		if wantWhole(t, s); s.Hash() != r.s.Hash() {
			t.Fatal("loading what was captured gives another state")
		}
	})
}

// wantWhole checks what must hold of any state, as readers see it, too.
func wantWhole(t testing.TB, s *store.State) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	for p := range s.Players() {
		id := s.PlayerID(p)
		items, _, _, ok := s.Holdings(id)
		if !ok {
			t.Fatalf("player %q is not found", id)
		}
		for _, b := range items {
			if q, _, _ := s.HoldingOf(id, b.Item); q != b.Quantity || q > store.MaxQuantity || q+b.Held > s.Peak() || q+b.Held == 0 {
				t.Fatalf("player %q holds %+v, or %d, where no balance is above %d", id, b, q, s.Peak())
			}
		}
	}
	for p := range uint32(s.Pools()) {
		for e := range uint32(s.Entries(p)) {
			if total, limited := s.Stock(p, e); limited && s.Left(p, e) > total {
				t.Fatalf("%d of %d are left", s.Left(p, e), total)
			}
		}
	}
	s.WindowFull(s.Now())
	s.WindowSize()
}
