package rules_test

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

func mergeOf(player, from string) rules.Command {
	return rules.Command{Kind: rules.KindMerge, Player: player, To: from}
}

const merging = `
kuji: 1
items:
  coin: {kind: currency}
  pass: {lasts: 1h}
  gem: {most: 50, beyond: {mail: 7d}}
  energy: {grows: {every: 1m, by: 1, to: 10}}
start: {coin: 5}
counters:
  points: {of: {progress: points}}
  best: {of: {progress: points}, highest: true}
  maps: {of: {progress: map}, distinct: 10}
  weekly: {of: {progress: points}, per: week, ranked: true}
quests:
  q: {tiers: [{needs: {points: 10}, reward: {items: {coin: 1}}}, {needs: {points: 20}, reward: {items: {coin: 2}}}, {needs: {points: 1000}, reward: {items: {coin: 3}}}]}
pools:
  p:
    limits: [{per: day, draws: 10}, {per: forever, draws: 100}, {per: window, window: 1h, draws: 9}]
    pity: {t: {of: [b], certain: 50}}
    entries: [{id: a, weight: 999999, reward: {items: {coin: 1}}}, {id: b, weight: 1}]
rounds:
  pool: {stake: {any: true, count: {min: 1, max: 9}}, entrants: {min: 2, max: 20}, winner: {gets: everything}}
`

func progressOf(player, event, key string, n uint64) rules.Command {
	return rules.Command{Kind: rules.KindProgress, Player: player, Goal: rules.Goal{Event: event, Key: key, N: n}}
}

func claimOf(player string) rules.Command {
	return rules.Command{Kind: rules.KindClaim, Player: player, Goal: rules.Goal{Quest: "q"}}
}

// limitUsed returns how many draws a player has used of the limits of pool p.
func (r *realm) limitUsed(player string) (text string) {
	for _, l := range r.limits(player) {
		text += fmt.Sprint(l.Draws-l.Left, " ")
	}
	return text
}

// TestMerge: what two players have is one player's, each in its way, and nothing is there twice.
func TestMerge(t *testing.T) {
	r := newRealm(t, 1)
	r.put(merging)
	r.ends(grant("ann", of("coin", 35), of("gem", 40), of("pass", 1)), rules.OK)
	r.now += 60_000
	r.ends(grant("bob", of("coin", 55), of("gem", 30), of("pass", 2)), rules.OK)
	r.ends(grant("cy", of("coin", 5)), rules.OK)
	r.ends(linkTo("twitch:bob", "bob"), rules.OK)
	for _, cmd := range []rules.Command{
		progressOf("ann", "points", "", 7), progressOf("bob", "points", "", 15), progressOf("cy", "points", "", 20), claimOf("bob"),
		progressOf("ann", "map", "x", 1), progressOf("ann", "map", "y", 1), progressOf("bob", "map", "y", 1), progressOf("bob", "map", "z", 1),
		draw("ann", "p", 3), draw("bob", "p", 4),
		opened("ann", "pool", of("coin", 3)), joined("twitch:bob", "pool", 0, 0, of("coin", 4)), joined("cy", "pool", 0, 0, of("coin", 1)),
	} {
		r.ends(cmd, rules.OK)
	}
	old := r.log[len(r.log)-4].raw
	coins := r.all("coin")
	r.ends(mergeOf("ann", "nobody"), rules.UnknownPlayer)
	ev := r.ends(mergeOf("ann", "twitch:bob"), rules.OK)
	for range 5 { // as a repeat of its id would be
		if cmd := mergeOf("ann", "bob"); true {
			if same, err := rules.Same(r.state, &cmd, &ev); !same || err != nil {
				t.Errorf("a repeat is another request: %v", err)
			}
		}
	}
	r.ends(mergeOf("ann", "bob"), rules.AlreadyLinked)
	r.ends(mergeOf("bob", "ann"), rules.AlreadyLinked)
	r.ends(unlink("bob"), rules.NotLinked)
	if r.all("coin") != coins {
		t.Errorf("%d coins, were %d", r.all("coin"), coins)
	}
	r.wantHas("ann", "coin", 5+35+5+55+3+4+1-3-4, 7)
	r.wantHas("bob", "coin", 5+35+5+55+3+4+1-3-4, 7)
	r.wantHas("ann", "gem", 50, 0)
	r.wantHas("ann", "pass", 3, 0)
	if got := r.limitUsed("ann"); got != "7 7 7 " {
		t.Errorf("of the limits %s are used", got)
	}
	if tr := r.tracks("ann"); len(tr) != 1 || tr[0].Draws != 4 {
		t.Errorf("the track stands at %+v", tr)
	}
	for counter, want := range map[string]uint64{"points": 22, "best": 15, "maps": 3, "weekly": 22} {
		if got := r.count("ann", counter); got != want {
			t.Errorf("%s stands at %d, want %d", counter, got, want)
		}
	}
	if rank, _ := r.rankOf("weekly", "ann"); rank != 1 || r.claimed("ann", "q") != 1 {
		t.Errorf("ann has rank %d and %d tiers", rank, r.claimed("ann", "q"))
	}
	if _, c := r.state.Slots(1, nil, nil); len(c) != 0 {
		t.Errorf("bob still has %v", c)
	}
	var was store.Event
	if _, err := store.Decode(old, &was); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"bob": true, "twitch:bob": true, "ann": false} {
		cmd := draw(name, "p", 4)
		if same, err := rules.Same(r.state, &cmd, &was); same != want || err != nil {
			t.Errorf("a repeat of bob's draw by %s is the same: %v, %v", name, same, err)
		}
	}
	r.ends(joined("bob", "pool", 0, 0, of("coin", 1)), rules.AlreadyJoined)
	r.ends(ofRound(rules.KindSettle, "pool", 1), rules.OK)
	if r.held("ann", "coin") != 0 || r.all("coin") != coins {
		t.Errorf("%d coins are held, of %d", r.held("ann", "coin"), r.all("coin"))
	}
	r.now += 3_600_000 - 60_000
	r.ends(register("ann"), rules.OK)
	r.wantHas("ann", "pass", 2, 0)
	r.now += 7 * 24 * 3_600_000
	r.sweep()
	r.wantHas("ann", "pass", 0, 0)
	r.replay()
}

// TestMergesInEveryOrder: however three players become one, the sums are the same.
func TestMergesInEveryOrder(t *testing.T) {
	want := ""
	for _, order := range [][4]string{{"a", "b", "a", "c"}, {"a", "c", "a", "b"}, {"b", "a", "b", "c"}, {"b", "c", "b", "a"}, {"c", "a", "c", "b"},
		{"c", "b", "c", "a"}, {"a", "b", "c", "a"}, {"b", "a", "c", "b"}, {"a", "c", "b", "a"}} {
		r := newRealm(t, 1)
		r.put(merging)
		for i, p := range []string{"a", "b", "c"} {
			n := uint64(i + 1)
			r.ends(grant(p, of("coin", 10*n), of("gem", 20*n), of("pass", n)), rules.OK)
			r.ends(progressOf(p, "points", "", 5*n), rules.OK)
			r.ends(progressOf(p, "map", fmt.Sprint(i%2), 1), rules.OK)
			r.ends(draw(p, "p", i+1), rules.OK)
			r.now += 1000
		}
		r.ends(mergeOf(order[0], order[1]), rules.OK)
		r.ends(mergeOf(order[2], order[3]), rules.OK)
		got := ""
		for _, p := range []string{"a", "b", "c"} {
			got += fmt.Sprintln(r.holds(p, "coin"), r.holds(p, "gem"), r.holds(p, "pass"), r.limitUsed(p), r.count(p, "points"), r.count(p, "best"), r.count(p, "maps"))
		}
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%v:\n%swant\n%s", order, got, want)
		}
		r.replay()
	}
}

// all returns how many of an item all players have together, with what is held.
func (r *realm) all(item string) (n uint64) {
	num, _ := r.state.ItemNum(item)
	for p := range r.state.Players() {
		n += r.state.Balance(p, num) + r.state.Balance(p, store.HeldOf(num))
	}
	return n
}
