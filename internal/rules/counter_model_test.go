package rules_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// counted is a counter of one player or of the realm, with nothing clever: it keeps every move that counts.
type counted struct {
	period int64           // of the last move
	sum    uint64          // or the highest number
	keys   map[string]bool // in the period
	row    []int64         // periods of a streak that goes on
	given  uint64          // how long a streak was when it was set by hand, before row
	capped uint64
	capOf  int64 // the period of capped
}

// counterModel knows where the counters of a catalog must stand.
type counterModel struct {
	c     *catalog.Catalog
	shift int64 // how far clocks in the catalog's zone are ahead
	all   map[string]*counted
}

func (m *counterModel) at(c *catalog.Counter, player string) *counted {
	if c.For == catalog.ForRealm {
		player = ""
	}
	id := c.ID + " " + c.Shape() + " of " + player
	if m.all[id] == nil {
		m.all[id] = &counted{keys: map[string]bool{}, period: -1, capOf: -1}
	}
	return m.all[id]
}

// number returns the number of a day, week or hour; 0 for all time.
func (m *counterModel) number(per catalog.Per, now int64) int64 {
	const hour = 3_600_000
	switch local := now + m.shift; per {
	case catalog.PerHour:
		return local / hour
	case catalog.PerDay:
		return local / (24 * hour)
	case catalog.PerWeek: // 1970-01-05 was a Monday
		return (local - 4*24*hour) / (7 * 24 * hour)
	}
	return 0
}

// broken reports whether a streak has missed too many periods before a period. What was forgiven by an earlier
// catalog stays so.
func (n *counted) broken(to int64, forgive uint32) bool {
	row, all := slices.Concat(n.row, []int64{to}), int64(0)
	for i := 1; i < len(row); i++ {
		all += max(0, row[i]-row[i-1]-1)
	}
	return to > n.row[len(n.row)-1]+1 && all > int64(forgive)
}

// value returns where a counter stands.
func (m *counterModel) value(c *catalog.Counter, player string, now int64) uint64 {
	n := m.at(c, player)
	switch {
	case c.Streak.Per != 0:
		if len(n.row) == 0 || n.broken(m.number(c.Streak.Per, now), c.Streak.Forgive) {
			return 0
		}
		return n.given + uint64(len(n.row))
	case m.number(c.Per.Per, now) > n.period:
		return 0
	case c.Distinct > 0:
		return uint64(len(n.keys))
	}
	return n.sum
}

// move counts a fact.
func (m *counterModel) move(c *catalog.Counter, player string, by uint64, key string, now int64) {
	n := m.at(c, player)
	if c.Streak.Per != 0 {
		n.period = max(n.period, m.number(c.Streak.Per, now)) // one that has begun goes on when the clock is set back
		if m.value(c, player, now) == 0 {
			n.row, n.given = nil, 0
		}
		if len(n.row) == 0 || n.row[len(n.row)-1] < n.period {
			n.row = append(n.row, n.period)
		}
		return
	}
	if day := m.number(c.Per.Per, now); day > n.period {
		n.period, n.sum, n.keys = day, 0, map[string]bool{}
	}
	switch {
	case c.Highest:
		n.sum = max(n.sum, by)
	case c.Distinct > 0:
		if len(n.keys) < int(c.Distinct) {
			n.keys[key] = true
		}
	default:
		if c.Most.Per != 0 {
			if day := m.number(c.Most.Per, now); day > n.capOf {
				n.capOf, n.capped = day, 0
			}
			by = min(by, c.Most.Count-min(n.capped, c.Most.Count))
			n.capped += by
		}
		n.sum = min(n.sum+by, catalog.MaxCount)
	}
}

// set sets a counter by hand.
func (m *counterModel) set(c *catalog.Counter, player string, v uint64, now int64) {
	n := m.at(c, player)
	n.sum, n.keys = v, map[string]bool{}
	if c.Streak.Per == 0 {
		n.period = max(n.period, m.number(c.Per.Per, now))
		return
	}
	n.period = max(n.period, m.number(c.Streak.Per, now))
	if n.row, n.given = nil, 0; v > 0 {
		n.row, n.given = []int64{n.period}, v-1
	}
}

// fact moves the counters that count something.
func (m *counterModel) fact(of func(*catalog.Facts) []string, what, player string, by uint64, now int64) {
	for i := range m.c.Counters {
		if c := &m.c.Counters[i]; slices.Contains(of(&c.Of), what) {
			m.move(c, player, by, what, now)
		}
	}
}

// follow moves the counters by what an event that ended OK says.
func (m *counterModel) follow(r *realm, cmd *rules.Command, ev *store.Event) {
	members := []rules.Command{*cmd}
	if cmd.Kind == rules.KindAtomic {
		members = cmd.Members
	}
	for i := range members {
		m.member(&members[i], r.now)
	}
	at, pool, player := -1, uint32(0), cmd.Player
	if cmd.Kind != rules.KindAtomic {
		at = 0
	}
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		switch e.Verb {
		case store.Member:
			at++
		case store.Player:
			player = r.state.PlayerID(e.N)
		case store.Join:
			player = string(e.Bytes)
		case store.Pool:
			pool = e.N
		case store.Take:
			m.fact(func(f *catalog.Facts) []string { return f.Entries }, r.state.PoolID(pool)+"/"+r.state.EntryID(pool, e.N), player, 1, r.now)
		case store.Gain:
			if at == len(members) || members[at].Kind != rules.KindTransfer {
				m.fact(func(f *catalog.Facts) []string { return f.Gains }, r.state.ItemID(e.N), player, e.Value, r.now)
			}
		case store.Spend:
			switch members[at].Kind {
			case rules.KindDraw:
				m.fact(func(f *catalog.Facts) []string { return f.Spends }, r.state.ItemID(e.N), player, e.Value, r.now)
			case rules.KindConsume:
				m.fact(func(f *catalog.Facts) []string { return f.Consumes }, r.state.ItemID(e.N), player, e.Value, r.now)
			}
		}
	}
}

// member moves the counters by what a command asks for.
func (m *counterModel) member(cmd *rules.Command, now int64) {
	for i := range m.c.Counters {
		c := &m.c.Counters[i]
		switch {
		case cmd.Kind == rules.KindSetCounter && cmd.Counter == c.ID:
			m.set(c, cmd.Player, cmd.N, now)
		case cmd.Kind == rules.KindProgress && slices.Contains(c.Events(), cmd.Event):
			m.move(c, cmd.Player, cmd.N, cmd.Key, now)
		}
	}
	if cmd.Kind == rules.KindDraw {
		for range cmd.Count {
			m.fact(func(f *catalog.Facts) []string { return f.Draws }, cmd.Pool, cmd.Player, 1, now)
		}
	}
}

// countersYAML has counters of every form and of every kind of fact, and pools that everybody can draw from.
const countersYAML = `
kuji: 1
zone: %s
items: {gold: {kind: currency}, ore: {}, gem: {}}
start: {gold: 3}
pools:
  sell: {price: {ore: 1}, max_count: 5, entries: [{id: coins, weight: 1, reward: {items: {gold: {min: 1, max: 3}}}}, {id: more, weight: 1, reward: {pool: low}}]}
  free: {max_count: 5, entries: [{id: ore, weight: 3, reward: {items: {ore: 2}}}, {id: low, weight: 1, reward: {pool: low}}]}
  low: {internal: true, entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}, {id: b, weight: 1}]}
  late: {when: {counters: {today: 4, row: {max: 6}}}, entries: [{id: e, weight: 1}]}
counters:
  wins: {}
  today: {of: {progress: [wins, win-more], draws: [free, sell]}, per: day}
  week: {of: {progress: wins, gains: [gold, gem]}, per: week}
  best: {of: {progress: wins, draws: free}, highest: true}
  best-today: {of: {progress: wins, spends: ore}, highest: true, per: %s}
  bosses: {of: {progress: boss}, distinct: 3}
  bosses-today: {of: {progress: boss, draws: [free, sell], entries: [low/a, low/b]}, distinct: %d, per: day}
  row: {of: {draws: [free, sell]}, streak: day}
  row-kind: {of: {draws: free, progress: boss}, streak: {per: day, forgive: %d}}
  row-weeks: {of: {consumes: ore}, streak: {per: week, forgive: 1}}
  capped: {of: {gains: gold}, most: {per: day, count: %d}}
  capped-week: {of: {gains: gold, consumes: [gold, ore]}, per: week, most: {per: hour, count: 9}}
  spent: {of: {spends: ore, entries: [sell/coins, low/a]}}
  raid: {for: realm, of: {progress: wins, gains: ore}, per: %s}
  names: {for: realm, of: {progress: boss}, distinct: 5, per: week}
  nights: {for: realm, of: {draws: sell}, streak: {per: day, forgive: 2}}
quests:
  q1: {needs: {today: 3}, reward: {items: {gold: 2}}}
  q2: {claim: automatic, per: day, needs: {wins: 5}, when: {counters: {row: 1}}, reward: {pool: low}}
  q3: {claim: automatic, tiers: [{needs: {capped: 3}, reward: {items: {gold: {min: 1, max: 9}}}}, {needs: {capped: 9}, reward: {items: {ore: 1}}}]}
`

// randomCounters writes countersYAML with some numbers and periods.
func randomCounters(pick picker) (yaml string, shift int64) {
	zone := []string{"UTC", "Asia/Kathmandu"}[pick("zone", 2)]
	if zone == "Asia/Kathmandu" {
		shift = (5*60 + 45) * 60_000
	}
	per := func() string { return []string{"day", "week", "forever"}[pick("per", 3)] }
	return fmt.Sprintf(countersYAML, zone, per(), 2+pick("distinct", 4), pick("forgive", 4), 5+pick("cap", 20), per()), shift
}

func randomFact(pick picker, single bool) rules.Command {
	player := []string{"ann", "bob", "cid"}[pick("player", 3)]
	stack := func() catalog.Stack {
		return of([]string{"gold", "ore", "gem"}[pick("item", 3)], uint64(1+pick("n", 4)))
	}
	switch pick("kind", 12) {
	case 0, 1:
		n := uint64(1 + pick("n", 5))
		if pick("many", 40) == 0 {
			n = rules.MaxQuantity - n
		}
		return progress(player, []string{"wins", "win-more"}[pick("event", 2)], "", n)
	case 2, 3:
		return progress(player, "boss", fmt.Sprint("boss", pick("key", 7)), uint64(1+pick("n", 3)))
	case 4:
		return consume(player, stack())
	case 5:
		return transfer(player, player+"'s", stack())
	case 6:
		return claim(player, []string{"q1", "q2", "q3"}[pick("quest", 3)], pick("tiers", 2))
	case 7:
		if !single {
			break
		}
		id := []string{"wins", "today", "best", "bosses", "row", "row-kind", "capped", "raid", "nights", "names"}[pick("counter", 10)]
		v := uint64(pick("value", 9))
		switch id {
		case "raid", "nights":
			player = ""
		case "names":
			player, v = "", 0
		case "bosses":
			v = 0
		}
		return setCounter(player, id, v)
	case 8, 9:
		return grant(player, stack())
	}
	return draw(player, []string{"sell", "free", "free", "late"}[pick("pool", 4)], 1+pick("count", 3))
}

// TestCountersOfManyFacts holds rules against the naive counters, after each of 100,000 random commands, through
// changed catalogs, nights, missed weeks and clocks that are set back. The same command has the same bytes each
// time it is decided, by rules that were there all the time and by new ones, and whether it succeeds does not
// depend on chance.
func TestCountersOfManyFacts(t *testing.T) {
	total, ended := 0, map[rules.Status]int{}
	for seed := uint64(0); total < 100_000; seed++ {
		pick := seeded(seed)
		r := newRealm(t, seed)
		m := &counterModel{all: map[string]*counted{}}
		for n := range 4000 {
			if n%1000 == 0 {
				yaml, shift := randomCounters(pick)
				if n > 0 && shift != m.shift { // periods have other numbers then: see TestZoneChanges
					yaml, shift = "", m.shift
				}
				if yaml != "" {
					r.put(yaml)
					m.c, m.shift = parse(t, yaml), shift
				}
			}
			switch pick("time", 60) {
			case 0:
				r.now += int64(pick("days", 20*86_400_000))
			case 1, 2, 3:
				r.now += 86_400_000
			case 4:
				r.setBack(max(monday, r.now-int64(pick("back", 4*86_400_000))))
			default:
				r.now += int64(pick("ms", 3_000_000))
			}
			cmd := randomFact(pick, true)
			if pick("group", 4) == 0 {
				cmd = group()
				for range 1 + pick("members", 5) {
					cmd.Members = append(cmd.Members, randomFact(pick, false))
				}
			}
			wantNoChoice(r, &cmd, n%16 == 0)
			if n%8 == 0 {
				wantSameBytes(r, cmd)
			}
			ev := r.doOnce(cmd)
			status := rules.Status(ev.Status)
			if ended[status]++; status == rules.OK {
				m.follow(r, &cmd, &ev)
			}
			total++
			m.compare(r, []string{"ann", "bob", "cid"}[pick("player", 3)])
		}
		for _, player := range []string{"ann", "bob", "cid"} {
			m.compare(r, player)
			m.compare(r.replay(), player)
		}
	}
	for _, s := range []rules.Status{rules.OK, rules.InsufficientItems, rules.NotEligible, rules.NotReached, rules.AlreadyClaimed} {
		if ended[s] < 100 {
			t.Errorf("only %d commands ended %v", ended[s], s)
		}
	}
}

// doOnce is do without the checks of the whole realm.
func (r *realm) doOnce(cmd rules.Command) store.Event {
	r.t.Helper()
	status, before := r.decide(&cmd, r.src)
	if status == rules.Refused {
		return before
	}
	return r.apply(r.w.Buf)
}

// wantSameBytes checks that new rules decide a command as those do that were there all the time.
func wantSameBytes(r *realm, cmd rules.Command) {
	r.t.Helper()
	r.decide(&cmd, rand.NewPCG(5, 5))
	first := bytes.Clone(r.w.Buf)
	old := r.rules
	old.Reset(old.Tables())
	r.rules = rules.New(r.state, old.Tables())
	again := cmd
	again.Change()
	r.decide(&again, rand.NewPCG(5, 5))
	if r.rules = old; !bytes.Equal(first, r.w.Buf) {
		r.t.Fatalf("%+v is decided as %x, and by new rules as %x", cmd, first, r.w.Buf)
	}
}

// compare checks where all counters stand for a player.
func (m *counterModel) compare(r *realm, player string) {
	r.t.Helper()
	for i := range m.c.Counters {
		c := &m.c.Counters[i]
		if got, want := r.count(player, c.ID), m.value(c, player, r.now); got != want {
			r.t.Fatalf("%s stands at %d for %s, the model says %d: %+v", c.ID, got, player, want, m.at(c, player))
		}
	}
}

// TestUncounted: a command that nothing counts has the bytes that it has without counters and quests.
func TestUncounted(t *testing.T) {
	for seed := range uint64(20) {
		yaml, pick := randomCatalog(seeded(seed)), seeded(seed+1000)
		plain, counting := newRealm(t, seed), newRealm(t, seed)
		plain.put(yaml)
		counting.put(yaml + "counters: {wins: {}, all: {for: realm}, keys: {distinct: 9}}\nquests: {q: {claim: automatic, needs: {wins: 1}, reward: {items: {gem: 1}}}}\n")
		for range 200 {
			cmd := randomCommand(pick)
			plain.now += int64(pick("time", 3_000_000))
			counting.now = plain.now
			if a, b := plain.do(cmd), counting.do(cmd); !bytes.Equal(a.Raw, b.Raw) {
				t.Fatalf("seed %d: %+v is %x, and with counters %x", seed, cmd, a.Raw, b.Raw)
			}
		}
	}
}

func seededSource(seed uint64) rules.Source { return rand.NewPCG(seed, seed) }
