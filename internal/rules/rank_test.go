package rules_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

const rankedYAML = `
kuji: 1
items: {gem: {}, coin: {}}
pools: {chest: {internal: true, entries: [{id: gem, weight: 1, reward: {items: {gem: {min: 1, max: 3}}}}, {id: none, weight: 1}]}}
counters:
  points: {per: day, most: {per: week, count: 60}, ranked: {rewards: [{to: 1, reward: {items: {coin: 10}}}, {to: 3, reward: {items: {coin: 4}}}, {to: 6, reward: {pool: chest}}]}}
  best: {of: {progress: points}, highest: true, ranked: true}
  keys: {of: {progress: points}, per: week, distinct: 20, ranked: true}
  coins: {of: {gains: coin}, per: day, ranked: {rewards: [{to: 2, reward: {items: {gem: 1}}}]}}
`

// naive is the naive standing of a counter: who counted how much in the period that runs, and who came when.
type naive struct {
	per   int64 // milliseconds; 0: of all time
	now   int64 // the number of the period
	of    map[string]step
	last  []ranked // of the period that ended last
	ended int64
}

type step struct{ value, move uint64 }

type ranked struct {
	player string
	value  uint64
}

func (l *naive) number(now int64) int64 {
	if l.per == 0 {
		return 0
	}
	return now / l.per
}

// ends ends the period that is over, and returns who stood where. If nobody did, nothing ends.
func (l *naive) ends(now int64) []ranked {
	n := l.number(now)
	if n <= l.now || len(l.of) == 0 {
		return nil
	}
	l.last, l.ended = l.sorted(), l.now
	l.of, l.now = map[string]step{}, n
	return l.last
}

func (l *naive) set(player string, now int64, value, move uint64) {
	l.now = max(l.now, l.number(now))
	if value == 0 {
		delete(l.of, player)
	} else if l.of[player].value != value {
		l.of[player] = step{value, move}
	}
}

func (l *naive) sorted() (all []ranked) {
	for p := range l.of {
		all = append(all, ranked{p, l.of[p].value})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(l.of[a.player].move, l.of[b.player].move))
	})
	return all
}

// standing reads what the store has of a counter: the standing that counts, and the last one.
func (r *realm) standing(counter string) (now, last []ranked) {
	c := r.rules.Tables().CounterByID[counter]
	read := func(at rules.Frame) (all []ranked) {
		for i, p := range r.state.Top(at.Order, at.Period, 1, 1<<20, nil) {
			if p.Rank != uint64(i+1) {
				r.t.Fatalf("%s: rank %d at place %d", counter, p.Rank, i)
			}
			all = append(all, ranked{r.state.PlayerID(p.Player), p.Value})
		}
		return all
	}
	r.rules.Look("", r.now, func(s *rules.Sight) {
		if at, _, ok := c.Standing(s); ok {
			now = read(at)
		}
		if at, ok := c.LastStanding(s); ok {
			last = read(at)
		}
	})
	return now, last
}

func (r *realm) rankOf(counter, player string) (rank, value uint64) {
	c := r.rules.Tables().CounterByID[counter]
	r.rules.Look(player, r.now, func(s *rules.Sight) { rank, value = c.Rank(s), s.Count(c) })
	return rank, value
}

// settleAll settles what is due before a command, as the engine does.
func (r *realm) settleAll(cmd *rules.Command) {
	r.t.Helper()
	var d rules.Due
	for r.rules.DueFor(cmd, r.now, &d) {
		r.due(&d)
	}
}

func (r *realm) setClock(to int64) {
	r.w.Buf = r.w.Buf[:0]
	(&rules.SetClock{To: to, By: "ops", Reason: "it was wrong"}).Write(&r.w, r.now)
	r.apply(r.w.Buf)
	r.now = to
}

func scored(player string, n uint64, key string) rules.Command {
	return rules.Command{Kind: rules.KindProgress, Player: player, Goal: rules.Goal{Event: "points", N: n, Key: key}}
}

// TestRanks: ranks are those of a naive sort after every one of many random moves, while periods end and the clock
// is set back.
func TestRanks(t *testing.T) {
	moves := 100_000
	if testing.Short() {
		moves = 5_000
	}
	const day, week = 24 * 3_600_000, 7 * 24 * 3_600_000
	r := newRealm(t, 1)
	r.now = monday
	r.put(rankedYAML)
	rnd := rand.New(rand.NewPCG(1, 2))
	all := map[string]*naive{"points": {per: day}, "best": {}, "keys": {per: week}}
	sums, seen, capped, capOf := map[string]uint64{}, map[string]map[string]bool{}, map[string]uint64{}, map[string]int64{}
	coins, players := map[string]uint64{}, 30
	for _, l := range all {
		l.of = map[string]step{}
	}
	weekOf := func(now int64) int64 { return (now - 4*day) / week } // 1970-01-05 was a Monday
	ended := 0
	pay := func() {
		for i, at := range all["points"].ends(r.now) {
			switch {
			case i == 0:
				coins[at.player] += 10
			case i < 3:
				coins[at.player] += 4
			}
		}
	}
	for i := range moves {
		switch n := rnd.IntN(600); {
		case n < 3:
			r.now += rnd.Int64N(2 * day)
		case n == 3:
			r.setClock(r.now - rnd.Int64N(2*day))
		case n < 100:
			r.now += rnd.Int64N(day / 200)
		}
		player, v := fmt.Sprint("p", rnd.IntN(players)), uint64(rnd.IntN(6)+1)
		key := fmt.Sprint("k", rnd.IntN(30))
		cmd := scored(player, v, key)
		r.settleAll(&cmd)
		was := ended
		if l := all["points"]; l.number(r.now) > l.now && len(l.of) > 0 {
			pay()
			sums = map[string]uint64{}
			ended++
		}
		if l := all["keys"]; weekOf(r.now) > l.now && len(l.of) > 0 {
			l.last, l.of, seen = l.sorted(), map[string]step{}, map[string]map[string]bool{}
		}
		l := all["keys"]
		l.now = max(l.now, weekOf(r.now))
		if rnd.IntN(50) == 0 {
			set := rules.Command{Kind: rules.KindSetCounter, Player: player, Goal: rules.Goal{Counter: "points", N: v}, Note: &rules.Note{By: "ops", Reason: "r"}}
			if _, there := r.state.Player(player); there {
				r.settleAll(&set)
				r.want(set, rules.OK, "")
				sums[player] = v
				all["points"].set(player, r.now, v, uint64(i))
			}
			continue
		}
		if ev := r.do(cmd); ev.Status != 0 {
			t.Fatalf("%d: %v", i, rules.Status(ev.Status))
		}
		if w := weekOf(r.now); w > capOf[player] || capOf[player] == 0 {
			capped[player], capOf[player] = 0, w
		}
		more := min(v, 60-capped[player])
		capped[player] += more
		if sums[player] += more; more > 0 {
			all["points"].set(player, r.now, sums[player], uint64(i))
		}
		all["best"].set(player, r.now, max(all["best"].of[player].value, v), uint64(i))
		if seen[player] == nil {
			seen[player] = map[string]bool{}
		}
		if len(seen[player]) < 20 && !seen[player][key] {
			seen[player][key] = true
			all["keys"].of[player] = step{uint64(len(seen[player])), uint64(i)}
		}
		for _, id := range []string{"points", "best", "keys"} {
			want := all[id].sorted()
			now, last := r.standing(id)
			if !slices.Equal(now, want) || !slices.Equal(last, all[id].last) && id != "points" {
				t.Fatalf("%d: %s stands at\n%v, last %v, want\n%v, last %v", i, id, now, last, want, all[id].last)
			}
			rank, value := r.rankOf(id, player)
			if at := slices.IndexFunc(want, func(at ranked) bool { return at.player == player }); rank != uint64(at+1) || at >= 0 && value != want[at].value {
				t.Fatalf("%d: %s of %s is %d, rank %d, want %v", i, id, player, value, rank, want)
			}
		}
		if _, last := r.standing("points"); ended == was && !slices.Equal(last, all["points"].last) {
			t.Fatalf("%d: the last standing is %v, want %v", i, last, all["points"].last)
		}
		if rnd.IntN(20) == 0 {
			r.sweep()
			for p, want := range coins {
				if got := r.holds(p, "coin"); got != want {
					t.Fatalf("%d: %s has %d coins, want %d", i, p, got, want)
				}
			}
		}
	}
	r.replay()
	if ended < moves/2000 {
		t.Errorf("only %d days ended", ended)
	}
	t.Logf("%d days ended", ended)
}

// TestRankRewards: rewards go by rank, in steps, each in a claim that says the rank; the first who came has the
// higher rank.
func TestRankRewards(t *testing.T) {
	r := newRealm(t, 1)
	r.put(rankedYAML)
	for i, n := range []uint64{5, 7, 5, 9, 1, 2, 3} {
		r.want(scored(fmt.Sprint("p", i), n, ""), rules.OK, "")
	}
	r.now += 24 * 3_600_000
	if at, ok := r.rules.NextDue(); !ok || at != uint64(r.now) {
		t.Errorf("next is due at %d, %v, want %d", at, ok, r.now)
	}
	if n := r.sweep(); n != 2 { // keys and best do not end
		t.Errorf("%d events settle the end and six ranks, want 2", n)
	}
	for i, want := range []uint64{4, 4, 0, 10} {
		if got := r.holds(fmt.Sprint("p", i), "coin"); got != want {
			t.Errorf("p%d has %d coins, want %d", i, got, want)
		}
	}
	now, last := r.standing("points")
	if got, want := fmt.Sprint(now, last), "[] [{p3 9} {p1 7} {p0 5} {p2 5} {p6 3} {p5 2} {p4 1}]"; got != want {
		t.Errorf("the standings are %s, want %s", got, want)
	}
	if now, _ = r.standing("coins"); fmt.Sprint(now) != "[{p3 10} {p1 4} {p0 4}]" { // rewards are gains
		t.Errorf("coins stand at %v", now)
	}
	r.replay()
}

// TestRankedLater: a counter that becomes ranked keeps what players have counted, and one that is so no more too.
func TestRankedLater(t *testing.T) {
	const day = 24 * 3_600_000
	with := func(points string) string {
		return "{kuji: 1, items: {coin: {}}, counters: {points: {" + points + "}}}"
	}
	prizes := "ranked: {rewards: [{to: 2, reward: {items: {coin: 5}}}]}"
	r := newRealm(t, 1)
	r.put(with("per: day"))
	r.want(scored("ann", 5, ""), rules.OK, "")
	r.want(scored("bob", 7, ""), rules.OK, "")
	r.put(with("per: day, " + prizes))
	if now, _ := r.standing("points"); fmt.Sprint(now) != "[{bob 7} {ann 5}]" {
		t.Errorf("what was counted before stands at %v", now)
	}
	r.now += day // nobody has moved it
	if n := r.sweep(); n != 2 || r.holds("ann", "coin") != 5 {
		t.Errorf("%d events, ann has %d coins", n, r.holds("ann", "coin"))
	}
	r.want(scored("ann", 3, ""), rules.OK, "") // in the second place
	r.put(with("per: day"))
	r.want(scored("ann", 3, ""), rules.OK, "")
	if _, v := r.rankOf("points", "ann"); v != 6 {
		t.Errorf("ranked no more, ann stands at %d, want 6", v)
	}
	for range r.state.Ordered() {
		t.Error("an order is left")
	}
	r.now += day // nobody is paid
	if n := r.sweep(); n != 0 {
		t.Errorf("%d events settle a counter that ranks nobody", n)
	}
	r.want(scored("bob", 2, ""), rules.OK, "")
	r.put(with("per: day, " + prizes))
	if now, _ := r.standing("points"); fmt.Sprint(now) != "[{bob 2}]" {
		t.Errorf("ranked again, it stands at %v", now)
	}
	r.now += day
	r.sweep()
	if ann, bob := r.holds("ann", "coin"), r.holds("bob", "coin"); ann != 5 || bob != 10 {
		t.Errorf("ann has %d and bob %d coins, want 5 and 10", ann, bob)
	}
	r.replay()
}

// TestRankCatalogs: a catalog that comes while ranks are paid: the rest is paid as it says. If it takes the rewards
// away, what is left waits for them to come back, until the next period ends.
func TestRankCatalogs(t *testing.T) {
	const day = 24 * 3_600_000
	with := func(ranked string) string {
		return "{kuji: 1, items: {coin: {}, gem: {}}, counters: {other: {}, points: {per: day, " + ranked + "}}}"
	}
	one, two := "ranked: {rewards: [{to: 200, reward: {items: {coin: 1}}}]}", "ranked: {rewards: [{to: 150, reward: {items: {gem: 1}}}]}"
	for name, c := range map[string]struct {
		between []string
		wait    int64
		events  int
		coins   int
		gems    int
	}{
		"same":           {nil, 0, 3, 200, 0},
		"other rewards":  {[]string{with(two)}, 0, 2, 64, 150 - 64},
		"gone":           {[]string{with("ranked: true")}, 0, 0, 64, 0},
		"gone and back":  {[]string{with("ranked: true"), with(one)}, 0, 3, 200, 0},
		"counter gone":   {[]string{"{kuji: 1, items: {coin: {}}, counters: {other: {}}}"}, 0, 0, 64, 0},
		"counter back":   {[]string{"{kuji: 1, items: {coin: {}}, counters: {other: {}}}", with(one)}, 0, 3, 200, 0},
		"unranked, back": {[]string{with("most: {per: day, count: 9}"), with(one)}, day, 3, 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(with(one))
			for i := range 300 {
				r.want(scored(fmt.Sprint("p", i), uint64(1000-i), ""), rules.OK, "")
			}
			r.now += day
			var d rules.Due
			for range 2 { // the end, and the first step
				if !r.rules.Sweep(r.now, rules.SweepPlayers, &d) {
					t.Fatal("nothing is due")
				}
				r.due(&d)
			}
			for _, yaml := range c.between {
				r.put(yaml)
				r.now += c.wait
			}
			events := r.sweep()
			coins, gems := 0, 0
			for i := range 300 {
				coins += int(r.holds(fmt.Sprint("p", i), "coin"))
				gems += int(r.holds(fmt.Sprint("p", i), "gem"))
			}
			if events != c.events || coins != c.coins || gems != c.gems {
				t.Errorf("%d events, %d coins, %d gems, want %+v", events, coins, gems, c)
			}
			r.replay()
		})
	}
}

// TestRankRewardsThatDoNotFit: who cannot get a reward is left out, and the event says so.
func TestRankRewardsThatDoNotFit(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {coin: {}}, pools: {box: {internal: true, entries: [{id: a, weight: 1, stock: 2, reward: {items: {coin: 1}}}]}},
  counters: {points: {per: day, ranked: {rewards: [{to: 4, reward: {pool: box}}]}}}}`)
	for i := range 4 {
		r.want(scored(fmt.Sprint("p", i), 1, ""), rules.OK, "")
	}
	r.now += 24 * 3_600_000
	r.sweep()
	var got []string
	var ev store.Event
	if _, err := store.Decode(r.log[len(r.log)-1].raw, &ev); err != nil {
		t.Fatal(err)
	}
	var e store.Effect
	for effects := ev.Changes(); effects.Next(&e); {
		switch e.Verb {
		case store.Claim, store.Gain:
			got = append(got, fmt.Sprint(e.Verb, e.Value))
		}
	}
	if want := fmt.Sprintf("%d 2 %d 1 %d 4 %d 1 %d 7 %d 9", store.Claim, store.Gain, store.Claim, store.Gain, store.Claim, store.Claim); strings.Join(got, " ") != want {
		t.Errorf("effects %v, want %s", got, want)
	}
}
