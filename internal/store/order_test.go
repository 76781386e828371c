package store_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/internal/store"
)

// order declares an order.
func order(w *store.Writer, counter uint32, by store.By) {
	w.More(store.Order, uint64(counter), uint64(by))
}

// reorder drops the order of a random counter, or declares one.
func (r *realm) reorder(rnd *rand.Rand) {
	counter, by, clear := rnd.Uint32N(r.s.NextCounter()), store.By(1+rnd.IntN(2)), true
	width := map[store.By]uint32{store.ByTime: 1, store.ByStanding: 3}
	n := 0
	for first, is := range r.s.Ordered() {
		n++
		if first == counter {
			by = store.Unordered
		}
		clear = clear && (counter+width[by] <= first || first+width[is] <= counter)
	}
	if by == store.Unordered || clear && n < store.MaxOrders && counter+width[by] <= r.s.NextCounter() {
		r.do("", func(w *store.Writer) { order(w, counter, by) })
	}
}

// TestEarliest: players stand in the order of a counter, whoever has it before the order is
// declared and whoever gets it later.
func TestEarliest(t *testing.T) {
	r := newRealm(t)
	r.do("", func(w *store.Writer) {
		counters(w, 1, "/due")
		w.Join("late")
		w.Change(store.Set, 0, 50)
		w.Join("none")
	})
	if _, _, ok := r.s.Earliest(0); ok {
		t.Error("there is no order yet")
	}
	r.do("", func(w *store.Writer) { order(w, 0, store.ByTime) })
	r.do("", func(w *store.Writer) {
		w.Join("early")
		w.Change(store.Set, 0, 9)
		w.Change(store.Set, 0, 7)
		w.Join("same")
		w.Change(store.Set, 0, 7)
	})
	earliest := func(most int) (got []uint32) {
		for player := range r.s.EachEarliest(0, most) {
			got = append(got, player)
		}
		return got
	}
	if got := earliest(9); !slices.Equal(got, []uint32{2, 3, 0}) {
		t.Fatalf("players %d; want 2, 3 and 0", got)
	}
	if got := earliest(2); !slices.Equal(got, []uint32{2, 3}) {
		t.Fatalf("players %d; want 2 and 3", got)
	}
	r.do("", func(w *store.Writer) { w.Effect(store.Player, 2); w.Change(store.Set, 0, 0) })
	if player, value, ok := r.s.Earliest(0); !ok || player != 3 || value != 7 {
		t.Fatalf("player %d at %d, %t; want 3 at 7", player, value, ok)
	}
	wantWhole(t, r.s)
	r.do("", func(w *store.Writer) {
		for n := range uint32(4) {
			w.Effect(store.Player, n)
			w.Change(store.Set, 0, 0)
		}
	})
	if _, _, ok := r.s.Earliest(0); ok || len(earliest(9)) > 0 {
		t.Error("somebody is left")
	}
	r.do("", func(w *store.Writer) { order(w, 0, store.Unordered) })
	r.do("", func(w *store.Writer) { w.Effect(store.Player, 1); w.Change(store.Set, 0, 4) })
	if _, _, ok := r.s.Earliest(0); ok {
		t.Error("a dropped order has a player")
	}
	wantWhole(t, r.s)
	r.follow(r.replay())
}

// ranking is a realm of players in standings, and what a naive sort makes of them.
type ranking struct {
	*realm
	rnd              *rand.Rand
	values, moves    []uint64 // by player
	periods          []uint64
	moved            uint64
	players, changed int
}

const rankedIn = 3 // periods

func newRanking(t *testing.T, players int) *ranking {
	g := &ranking{realm: newRealm(t), rnd: rand.New(rand.NewPCG(5, 5)), players: players}
	g.values, g.moves, g.periods = make([]uint64, players), make([]uint64, players), make([]uint64, players)
	g.do("", func(w *store.Writer) {
		counters(w, 1, "other")
		counters(w, 3, "rank")
		for i := range players {
			w.Join(fmt.Sprint("p", i))
		}
		order(w, 1, store.ByStanding)
	})
	return g
}

// move makes an event that changes some players in one of several ways: more points, another
// period, no points any more, twice in one event, or only the move.
func (g *ranking) move() {
	g.do("", func(w *store.Writer) {
		for range 1 + g.rnd.IntN(3)*g.rnd.IntN(2) {
			p := g.rnd.IntN(g.players)
			g.changed = p
			w.Effect(store.Player, uint32(p))
			g.moved++
			switch g.rnd.IntN(8) {
			case 0:
				g.values[p] = 0
			case 1:
				g.values[p], g.periods[p] = 1+g.rnd.Uint64N(9), g.rnd.Uint64N(rankedIn)
				w.Change(store.Set, 3, g.periods[p])
			case 2:
				g.values[p] = ^g.rnd.Uint64N(3)
			default:
				g.values[p] += g.rnd.Uint64N(4)
			}
			w.Change(store.Set, 1, g.values[p])
			if g.rnd.IntN(4) > 0 { // otherwise ties go by player
				g.moves[p] = g.moved
				w.Change(store.Set, 2, g.moved)
			}
		}
	})
}

// sorted returns the standing of a period.
func (g *ranking) sorted(period uint64) (all []store.Ranked) {
	for p, v := range g.values {
		if v > 0 && g.periods[p] == period {
			all = append(all, store.Ranked{Player: uint32(p), Value: v})
		}
	}
	slices.SortFunc(all, func(a, b store.Ranked) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(g.moves[a.Player], g.moves[b.Player]), cmp.Compare(a.Player, b.Player))
	})
	for i := range all {
		all[i].Rank = uint64(i) + 1
	}
	return all
}

// compare compares all reads of the standing of a period with what a sort makes of it.
func (g *ranking) compare(period uint64) error {
	want, s := g.sorted(period), g.s
	n := uint64(len(want))
	if got := s.Top(1, period, 1, g.players+1, nil); s.Standing(1, period) != n || !slices.Equal(got, want) {
		return fmt.Errorf("the standing of %d is %v, want %v", s.Standing(1, period), got, want)
	}
	from, most := g.rnd.Uint64N(n+2), g.rnd.IntN(20)
	part := want[min(max(from, 1)-1, n):]
	part = part[:min(most, len(part))]
	if from == 0 {
		part = nil
	}
	page, ok := s.ReadTop(1, period, from, most)
	if !ok || page.Of != n || page.Last == 0 || page.Last > s.Position() || !slices.Equal(page.Ranks, part) {
		return fmt.Errorf("%d from %d on are %+v, want %v", most, from, page, part)
	}
	for _, p := range []int{g.changed, g.rnd.IntN(g.players)} {
		at := slices.IndexFunc(want, func(r store.Ranked) bool { return r.Player == uint32(p) })
		if g.periods[p] != period {
			continue
		}
		rank, ok := s.Rank(1, uint32(p))
		if ok != (at >= 0) || ok && rank != uint64(at)+1 {
			return fmt.Errorf("player %d has rank %d, %t; want %d", p, rank, ok, at+1)
		}
		before, after := g.rnd.IntN(6), g.rnd.IntN(6)
		around, me, ok := s.ReadAround(1, fmt.Sprint("p", p), before, after)
		if ok != (at >= 0) {
			return fmt.Errorf("player %d is in the standing, or not: %t", p, ok)
		}
		if part := want[max(at-before, 0):max(min(at+after+1, len(want)), 0)]; ok && (!slices.Equal(around.Ranks, part) || around.Ranks[me].Player != uint32(p) || around.IDs[me] != fmt.Sprint("p", p) || around.Period != period || around.Of != n) {
			return fmt.Errorf("around player %d are %+v, want %v", p, around, part)
		}
	}
	return nil
}

// TestRanksOfEveryMove: after each of 100,000 random moves, standings, ranks and pages are those of
// a naive sort.
func TestRanksOfEveryMove(t *testing.T) {
	moves := 100_000
	if testing.Short() {
		moves = 2_000
	}
	g := newRanking(t, 120)
	for step := range moves {
		g.move()
		if err := g.compare(g.periods[g.changed]); err != nil {
			t.Fatalf("move %d: %v", step, err)
		}
		if step%5000 == 0 {
			wantWhole(t, g.s)
		}
	}
}

// TestRanksComeBack: standings are in no snapshot, and yet they are there after loading, replaying,
// and declaring the order anew.
func TestRanksComeBack(t *testing.T) {
	g := newRanking(t, 300)
	same := func(what string, s *store.State) {
		t.Helper()
		was := g.s
		g.s = s
		for period := range uint64(rankedIn) {
			if err := g.compare(period); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		wantWhole(t, s)
		g.s = was
	}
	var chain []snapshot
	var extent *store.Extent
	for range 3 {
		for range 500 {
			g.move()
		}
		c := g.s.Capture(extent)
		chain = append(chain, taken(c))
		g.s.Release(c, true)
		m := c.Extent()
		extent = &m
		s, _, err := load(chain)
		if err != nil || s.Hash() != g.s.Hash() {
			t.Fatalf("%v, or another state is loaded", err)
		}
		same("loaded", s)
	}
	same("replayed", g.replay())
	with := g.s.Hash()
	g.do("", func(w *store.Writer) { order(w, 1, store.Unordered) })
	without := g.s.Hash()
	g.do("", func(w *store.Writer) { order(w, 1, store.ByStanding) })
	if again := g.s.Hash(); without == with || again == without {
		t.Error("the hash does not tell which orders there are")
	}
	same("declared anew", g.s)
}

// TestRefusesOrders: what is not an order of a named counter, once, is refused.
func TestRefusesOrders(t *testing.T) {
	type declared struct {
		counter uint32
		by      store.By
	}
	for _, c := range []struct {
		what   string
		before []declared
		is     declared
	}{
		{"a counter that there is not", nil, declared{80, store.ByTime}},
		{"a counter beyond all", nil, declared{store.MaxCounters, store.ByTime}},
		{"three counters of which the last is not named", nil, declared{78, store.ByStanding}},
		{"another kind", nil, declared{0, store.ByStanding + 1}},
		{"twice", []declared{{5, store.ByTime}}, declared{5, store.ByTime}},
		{"of a counter within another order", []declared{{5, store.ByStanding}}, declared{7, store.ByTime}},
		{"around another order", []declared{{7, store.ByTime}}, declared{5, store.ByStanding}},
		{"none to drop", []declared{{5, store.ByTime}}, declared{6, store.Unordered}},
		{"a part to drop", []declared{{5, store.ByStanding}}, declared{6, store.Unordered}},
		{"one more", nil, declared{70, store.ByTime}},
	} {
		r := newRealm(t)
		r.do("", func(w *store.Writer) {
			counters(w, 80, "many")
			for _, d := range c.before {
				order(w, d.counter, d.by)
			}
			if c.what == "one more" {
				for n := range uint32(store.MaxOrders) {
					order(w, n, store.ByTime)
				}
			}
		})
		refused(t, c.what, r.try(func(w *store.Writer) { order(w, c.is.counter, c.is.by) }))
	}
}

// try applies an event that may be refused.
func (r *realm) try(effects func(w *store.Writer)) error {
	var ev store.Event
	if _, err := store.Decode(r.write("", effects), &ev); err != nil {
		return err
	}
	return r.s.Apply(&ev, store.At{Position: uint64(len(r.log) + 1), Time: r.now}, nil)
}

// TestOrderSeesOneEvent: changes of a counter before and after its order is declared, in one event,
// count.
func TestOrderSeesOneEvent(t *testing.T) {
	r := newRealm(t)
	r.do("", func(w *store.Writer) {
		counters(w, 2, "due")
		w.Join("a")
		w.Change(store.Set, 0, 9)
		order(w, 0, store.ByTime)
		w.Change(store.Set, 0, 8)
		order(w, 1, store.ByTime)
		w.Change(store.Set, 0, 7)
		w.Change(store.Set, 1, 3)
	})
	if _, value, ok := r.s.Earliest(0); !ok || value != 7 {
		t.Errorf("%d, %t; want 7", value, ok)
	}
	if _, value, ok := r.s.Earliest(1); !ok || value != 3 {
		t.Errorf("%d, %t; want 3", value, ok)
	}
	wantWhole(t, r.s)
}

// TestReadersOfRanks reads ranks while players swap places, come and go, and orders are dropped and
// declared. A reader who saw half an event would find a value twice, or another sum.
func TestReadersOfRanks(t *testing.T) {
	const players = 500
	r := newRealm(t)
	swap := make([]uint64, players)
	r.do("", func(w *store.Writer) {
		counters(w, 3, "rank")
		for i := range swap {
			swap[i] = uint64(i) + 1
			w.Join(fmt.Sprint("p", i))
			w.Change(store.Set, 0, swap[i])
		}
		order(w, 0, store.ByStanding)
	})
	var reads atomic.Int64
	whole := func(of store.Ranking) error {
		for i, p := range of.Ranks {
			if i > 0 && of.Ranks[i-1].Rank+1 != p.Rank || p.Value != players+1-p.Rank || of.IDs[i] != fmt.Sprint("p", p.Player) || of.Of != players || of.Last == 0 {
				return fmt.Errorf("%+v is not a part of a standing of values from %d down", of, players)
			}
		}
		reads.Add(1)
		return nil
	}
	stop := beside(t, func(rnd *rand.Rand) error {
		from, most := 1+rnd.Uint64N(players), rnd.IntN(players)
		if page, ok := r.s.ReadTop(0, 0, from, most); ok {
			if len(page.Ranks) != min(most, players+1-int(from)) {
				return fmt.Errorf("%d players from %d on, at most %d", len(page.Ranks), from, most)
			}
			if err := whole(page); err != nil {
				return err
			}
		}
		id := fmt.Sprint("p", rnd.IntN(players))
		around, me, ok := r.s.ReadAround(0, id, 3, 3)
		if ok && around.IDs[me] != id {
			return fmt.Errorf("around %s are %+v", id, around)
		}
		return whole(around)
	})
	rnd := rand.New(rand.NewPCG(7, 7))
	for step := range 3000 {
		a, b := rnd.Uint32N(players), rnd.Uint32N(players)
		swap[a], swap[b] = swap[b], swap[a]
		r.do("", func(w *store.Writer) {
			if step%100 == 50 {
				order(w, 0, store.Unordered)
			}
			for _, p := range []uint32{a, b} {
				w.Effect(store.Player, p)
				w.Change(store.Set, 0, 0)
			}
			for _, p := range []uint32{a, b} {
				w.Effect(store.Player, p)
				w.Change(store.Set, 1, uint64(step))
				w.Change(store.Set, 0, swap[p])
			}
			if step%100 == 50 {
				order(w, 0, store.ByStanding)
			}
		})
	}
	stop()
	wantWhole(t, r.s)
	if reads.Load() == 0 {
		t.Error("nothing was read")
	}
}

// TestReadersOfNoOrder: without an order, or the player in it, there is nothing to read.
func TestReadersOfNoOrder(t *testing.T) {
	g := newRanking(t, 2)
	if _, ok := g.s.ReadTop(0, 0, 1, 9); ok {
		t.Error("the top of no order")
	}
	if page, ok := g.s.ReadTop(1, 0, 1, -1); !ok || len(page.Ranks) != 0 || page.Last != 1 {
		t.Errorf("the top of an order that nobody is in: %+v, %t", page, ok)
	}
	for _, id := range []string{"p0", "nobody"} {
		if _, _, ok := g.s.ReadAround(1, id, 1, 1); ok {
			t.Errorf("%s is in the standing", id)
		}
		if _, _, ok := g.s.ReadAround(0, id, 1, 1); ok {
			t.Errorf("%s is in no order", id)
		}
	}
	if _, ok := g.s.Rank(1, 0); ok {
		t.Error("a player without a value has a rank")
	}
	if n := g.s.Standing(1, 7) + g.s.Standing(0, 0); n > 0 {
		t.Errorf("%d players in the standings of nobody", n)
	}
	big := newRanking(t, 2500)
	big.do("", func(w *store.Writer) {
		for i := range uint32(2500) {
			w.Effect(store.Player, i)
			w.Change(store.Set, 1, 5)
		}
	})
	if page, _ := big.s.ReadTop(1, 0, 1, math.MaxInt); len(page.Ranks) != store.MaxRanks || page.Of != 2500 {
		t.Errorf("%d ranks at a time", len(page.Ranks))
	}
	if page, me, _ := big.s.ReadAround(1, "p1500", math.MaxInt, math.MaxInt); len(page.Ranks) != store.MaxRanks || page.Ranks[me].Rank != 1501 {
		t.Errorf("%d ranks around a player, who is number %d of them", len(page.Ranks), me)
	}
	if page, me, _ := big.s.ReadAround(1, "p1500", -5, 2); len(page.Ranks) != 3 || me != 0 {
		t.Errorf("%d ranks from a player on, who is number %d of them", len(page.Ranks), me)
	}
}

// TestLoaderRefusesOrders: a block of orders that no realm has is refused.
func TestLoaderRefusesOrders(t *testing.T) {
	g := newRanking(t, 2)
	c := g.s.Capture(nil)
	snap := taken(c)
	g.s.Release(c, false)
	last := &snap[len(snap)-1]
	if last.kind != store.BlockOrders || !slices.Equal(last.data, []byte{1, 2}) {
		t.Fatalf("the last block is %d, %x", last.kind, last.data)
	}
	for what, data := range map[string]string{
		"a kind that there is not":  "\x01\x03",
		"no kind":                   "\x01\x00",
		"a counter that is missing": "\x02\x02",
		"two of one counter":        "\x01\x02\x00\x01",
		"one within another":        "\x01\x02\x01\x01",
		"half an order":             "\x01\x02\x01",
	} {
		last.data = []byte(data)
		wantRefused(t, what, []snapshot{snap})
		l := store.NewChecker()
		var err error
		for _, b := range snap {
			err = cmp.Or(err, l.Block(b.kind, b.data))
		}
		if err == nil || strings.Contains(err.Error(), "player") {
			t.Errorf("%s: a checker says %v", what, err)
		}
	}
}
