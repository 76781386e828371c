package rules_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

const lastingYAML = `
kuji: 1
items:
  gold: {}
  ticket: {lasts: 1h}
  pass: {lasts: 30m, extend: true}
pools:
  box:
    price: {ticket: 2}
    max_count: 20
    entries:
      - {id: blank, weight: 2}
      - {id: tickets, weight: 3, reward: {items: {ticket: {min: 1, max: 5}}}}
      - {id: pass, weight: 2, reward: {items: {pass: 1}}}
      - {id: both, weight: 1, reward: {items: {pass: {min: 1, max: 2}, ticket: 1}}}
start: {ticket: 3, gold: 5}
`

// settle settles what is due for some command's players, as the engine does before it.
func (r *realm) settle(cmd *rules.Command) {
	r.t.Helper()
	var d rules.Due
	if r.rules.DueFor(cmd, r.now, &d) {
		r.due(&d)
	}
}

// due settles what is due for some players.
func (r *realm) due(d *rules.Due) store.Event {
	r.t.Helper()
	if err := r.rules.CheckDue(d, r.now); err != nil {
		r.t.Fatal(err)
	}
	r.w.Buf = r.w.Buf[:0]
	if !r.rules.DecideDue(d, r.now, r.src, &r.w) {
		r.t.Fatalf("%+v are not settled", d)
	}
	ev := r.apply(r.w.Buf)
	if got, err := rules.DueOf(&ev); err != nil || got.Swept != d.Swept || got.Ranking != d.Ranking || !slices.Equal(got.Players, d.Players) {
		r.t.Fatalf("%+v is read as %+v: %v", d, got, err)
	}
	r.check()
	return ev
}

// sweep settles all that is due, as the engine does when nobody asks for anything.
func (r *realm) sweep() (events int) {
	var d rules.Due
	for r.rules.Sweep(r.now, rules.SweepPlayers, &d) {
		r.due(&d)
		events++
	}
	return events
}

// unit is the lots of a player in plain maps: how many of an item go when; 0: never.
type units map[string]map[uint64]uint64

// unitModel says when units go, from the effects of events and the rules of lots.
type unitModel struct {
	*realm
	lasts  map[string]uint64
	extend map[string]bool
	of     map[string]units
}

func (m *unitModel) on(c *catalog.Catalog) {
	m.lasts, m.extend = map[string]uint64{}, map[string]bool{}
	for _, it := range c.Items {
		m.lasts[it.ID], m.extend[it.ID] = uint64(it.Lasts), it.Extend
	}
}

func (m *unitModel) steady() uint64 { return uint64(m.now + m.state.Back()) }

// gain gives units that come now.
func (m *unitModel) gain(player, item string, q uint64) {
	at := uint64(0)
	if m.lasts[item] > 0 {
		from := m.steady()
		for end := range m.of[player][item] {
			if m.extend[item] {
				from = max(from, end)
			}
		}
		at = from + m.lasts[item]
	}
	m.place(player, item, at, q)
}

func (m *unitModel) place(player, item string, at, q uint64) {
	if m.of[player] == nil {
		m.of[player] = units{}
	}
	if m.of[player][item] == nil {
		m.of[player][item] = map[uint64]uint64{}
	}
	m.of[player][item][at] += q
}

// spend takes units, those that go first first, and returns what it took.
func (m *unitModel) spend(player, item string, q uint64) map[uint64]uint64 {
	taken, lots := map[uint64]uint64{}, m.of[player][item]
	for _, at := range slices.SortedFunc(maps.Keys(lots), func(a, b uint64) int {
		if a-1 < b-1 { // 0 last
			return -1
		}
		return 1
	}) {
		n := min(q, lots[at])
		q -= n
		if taken[at] += n; taken[at] == 0 {
			delete(taken, at)
		}
		if lots[at] -= n; lots[at] == 0 {
			delete(lots, at)
		}
	}
	if q > 0 {
		m.t.Fatalf("%d of %s too many spent", q, item)
	}
	return taken
}

// carryOut follows the gains and spends of an event.
func (m *unitModel) carryOut(ev *store.Event) {
	m.t.Helper()
	player, moved := "", map[string]map[uint64]uint64{}
	if ev.Named && ev.Player.ID == "" && ev.Player.Num < m.state.Players() {
		player = m.state.PlayerID(ev.Player.Num)
	}
	kinds := []rules.Kind{rules.Kind(ev.Kind)}
	if kinds[0] == rules.KindAtomic {
		cmd, _, _ := rules.CommandOf(m.state, ev)
		kinds = kinds[:0]
		for _, member := range cmd.Members {
			kinds = append(kinds, member.Kind)
		}
	}
	member := 0
	if rules.Kind(ev.Kind) == rules.KindAtomic {
		member = -1
	}
	var e store.Effect
	for effects := ev.Changes(); effects.Next(&e); {
		switch e.Verb {
		case store.Member:
			member++
			clear(moved)
		case store.Player:
			player = m.state.PlayerID(e.N)
		case store.Join:
			player = string(e.Bytes)
		case store.Gain:
			item := m.state.ItemID(e.N)
			if kinds[member] != rules.KindTransfer {
				m.gain(player, item, e.Value)
				continue
			}
			for at, q := range moved[item] {
				m.place(player, item, at, q)
			}
		case store.Spend:
			item := m.state.ItemID(e.N)
			moved[item] = m.spend(player, item, e.Value)
			for at := range moved[item] {
				if due := at > 0 && at <= m.steady(); due != (rules.Kind(ev.Kind) == rules.KindDue) {
					m.t.Fatalf("%s of %s that go at %d are spent at %d by a %v", item, player, at, m.steady(), rules.Kind(ev.Kind))
				}
			}
		}
	}
}

// same compares the lots of all players with the model.
func (m *unitModel) same() {
	m.t.Helper()
	for id, of := range m.of {
		_, counters, _, _ := m.state.Holdings(id)
		got, first := units{}, uint64(math.MaxUint64)
		for _, lots := range m.rules.Tables().Lots(counters) {
			item := m.state.ItemID(lots.Item)
			got[item] = map[uint64]uint64{}
			for _, l := range lots.Lots {
				if l.Quantity == 0 || l.Until == 0 || got[item][l.Until] != 0 {
					m.t.Fatalf("%s has the lots %+v of %s", id, lots.Lots, item)
				}
				got[item][l.Until] = l.Quantity
				first = min(first, l.Until)
			}
			if n := len(lots.Lots); n > rules.MaxLots {
				m.t.Fatalf("%s has %d lots of %s", id, n, item)
			}
		}
		for item, lots := range of {
			sum := uint64(0)
			for at, q := range lots {
				sum += q
				if at > 0 && got[item][at] != q {
					m.t.Fatalf("%s has %v of %s, want %v", id, got[item], item, lots)
				}
			}
			if stay := lots[0]; m.holds(id, item) != sum || len(got[item]) != len(lots)-min(int(stay), 1) {
				m.t.Fatalf("%s has %d of %s in the lots %v, want %v", id, m.holds(id, item), item, got[item], lots)
			}
		}
		num, _ := m.state.Player(id)
		due, _ := m.state.CounterNum("/due")
		if want := m.state.Counter(num, due); first == math.MaxUint64 && want != 0 || first != math.MaxUint64 && want != first {
			m.t.Fatalf("%s has the deadline %d, want %d", id, want, first)
		}
	}
}

// TestLots: whatever players do, units go so long after they came, those that go first are used first, and
// lots, balances and deadlines agree.
func TestLots(t *testing.T) {
	statuses := map[rules.Status]int{}
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRealm(t, seed)
			r.put(lastingYAML)
			m := &unitModel{realm: r, of: map[string]units{}}
			m.on(r.rules.Tables().Catalog)
			rng := rand.New(rand.NewPCG(seed, 2))
			for step := range 600 {
				r.now += rng.Int64N([]int64{2, 20_000, 600_000}[seed%3])
				cmd := lotCommand(rng, step, seed%3 == 0)
				if rng.IntN(8) == 0 {
					cmd = rules.Command{Kind: rules.KindAtomic}
					for range 1 + rng.IntN(5) {
						cmd.Members = append(cmd.Members, lotCommand(rng, step, seed%3 == 0))
					}
				}
				if step%150 == 149 { // what changed lasts by the new catalog when it comes
					lasts := []string{"{lasts: 1h}", "{lasts: 10m}", "{}", "{lasts: 2h, extend: true}"}
					r.put(strings.Replace(lastingYAML, lasts[0], lasts[rng.IntN(len(lasts))], 1))
					m.on(r.rules.Tables().Catalog)
				}
				log := len(r.log)
				if rng.IntN(5) == 0 {
					r.sweep()
				}
				r.settle(&cmd)
				ev := r.do(cmd)
				statuses[rules.Status(ev.Status)]++
				for _, l := range r.log[log:] {
					if _, err := store.Decode(l.raw, &ev); err != nil {
						t.Fatal(err)
					}
					m.carryOut(&ev)
				}
				m.same()
			}
		})
	}
	if statuses[rules.TooManyLots] < 100 {
		t.Errorf("hardly anybody had too many lots: %v", statuses)
	}
}

// lotCommand returns a random command of one of a few players.
func lotCommand(rng *rand.Rand, step int, gives bool) rules.Command {
	player := func() string { return string(rune('a' + rng.IntN(4))) }
	stacks := func(most int) []catalog.Stack {
		all := []catalog.Stack{{Item: "ticket", Quantity: 1 + rng.Uint64N(4)}, {Item: "pass", Quantity: 1 + rng.Uint64N(2)}, {Item: "gold", Quantity: 1}}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:1+rng.IntN(most)]
	}
	switch n := rng.IntN(10); {
	case n < 4 || gives && rng.IntN(2) == 0:
		return rules.Command{Kind: rules.KindGrant, Player: player(), Items: stacks(3)}
	case n < 6:
		return rules.Command{Kind: rules.KindDraw, Player: player(), Pool: "box", Count: 1 + rng.IntN(20)*(step%2)}
	case n < 8:
		from := player()
		to := player()
		for to == from {
			to = player()
		}
		return rules.Command{Kind: rules.KindTransfer, Player: from, To: to, Items: stacks(2)}
	}
	return rules.Command{Kind: rules.KindConsume, Player: player(), Items: stacks(1)}
}

// TestLotsOfCatalogs: a catalog says how long units last that come under it. Those that are there keep
// their ends, or have none.
func TestLotsOfCatalogs(t *testing.T) {
	const hour = 3_600_000
	r := newRealm(t, 1)
	catalog := func(item string) { r.put("{kuji: 1, items: {gem: " + item + ", other: {}}}") }
	gives := func(q uint64) {
		cmd := rules.Command{Kind: rules.KindGrant, Player: "ann", Items: []catalogStack{{Item: "gem", Quantity: q}}}
		r.settle(&cmd)
		r.want(cmd, rules.OK, "")
	}
	want := func(stays uint64, lots ...rules.Lot) {
		t.Helper()
		_, counters, _, _ := r.state.Holdings("ann")
		var got []rules.Lot
		for _, of := range r.rules.Tables().Lots(counters) {
			got = append(got, of.Lots...)
		}
		sum := stays
		for i, l := range lots {
			sum += l.Quantity
			if len(got) != len(lots) || got[i].Until != l.Until || got[i].Quantity != l.Quantity {
				t.Fatalf("the lots are %v, want %v", got, lots)
			}
		}
		if held := r.holds("ann", "gem"); held != sum || len(got) != len(lots) {
			t.Fatalf("%d in %v, want %d in %v", held, got, sum, lots)
		}
	}
	begin := uint64(r.now)
	catalog("{}")
	gives(5)
	catalog("{lasts: 3h}")
	gives(2)
	want(5, rules.Lot{Until: begin + 3*hour, Quantity: 2})
	catalog("{lasts: 1h}")
	gives(3)
	want(5, rules.Lot{Until: begin + hour, Quantity: 3}, rules.Lot{Until: begin + 3*hour, Quantity: 2})
	catalog("{}")
	gives(1)
	want(6, rules.Lot{Until: begin + hour, Quantity: 3}, rules.Lot{Until: begin + 3*hour, Quantity: 2})
	r.now += hour - 1
	if n := r.sweep(); n != 0 {
		t.Fatalf("%d events settle too early", n)
	}
	if r.now++; r.sweep() != 1 {
		t.Fatal("nothing was due in time")
	}
	want(6, rules.Lot{Until: begin + 3*hour, Quantity: 2})
	r.put("{kuji: 1, items: {other: {}}}") // the item is gone, its lots are not
	r.now += 2 * hour
	if r.sweep() != 1 {
		t.Fatal("what the catalog does not have does not fall due")
	}
	catalog("{lasts: 2h}")
	want(6)
	gives(1)
	r.want(rules.Command{Kind: rules.KindConsume, Player: "ann", Items: []catalogStack{{Item: "gem", Quantity: 4}}}, rules.OK, "")
	want(3) // the one that goes was used first
}

type catalogStack = catalog.Stack

// TestDueIsChecked: whoever decides an event again finds players for whom nothing is due, players twice, and
// a sweep of others than those that come first.
func TestDueIsChecked(t *testing.T) {
	r := newRealm(t, 1)
	r.put(lastingYAML)
	for i, player := range []string{"ann", "bob", "cat"} {
		r.now += int64(i)
		r.want(rules.Command{Kind: rules.KindRegister, Player: player}, rules.OK, "")
	}
	r.now += 3_600_000 - 1 // cat's tickets go in 2 ms
	for name, d := range map[string]rules.Due{
		"somebody later": {Swept: true, Players: []uint32{1}},
		"too many":       {Swept: true, Players: []uint32{0, 1, 2}},
		"nobody":         {Swept: true},
		"not yet":        {Players: []uint32{2}},
		"twice":          {Players: []uint32{0, 0}},
		"no such player": {Players: []uint32{9}},
	} {
		if err := r.rules.CheckDue(&d, r.now); err == nil {
			t.Errorf("%s: %+v is taken", name, d)
		}
	}
	for _, d := range []rules.Due{{Swept: true, Players: []uint32{0}}, {Swept: true, Players: []uint32{0, 1}}, {Players: []uint32{1}}} {
		if err := r.rules.CheckDue(&d, r.now); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if err := rules.New(store.New(), rules.NoTables()).CheckDue(&rules.Due{Swept: true, Players: []uint32{0}}, r.now); err == nil {
		t.Error("something is due in a realm without a catalog")
	}
}
