package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

func progress(player, event, key string, n uint64) rules.Command {
	return rules.Command{Kind: rules.KindProgress, Player: player, Goal: rules.Goal{Event: event, Key: key, N: n}}
}

func claim(player, quest string, tiers int) rules.Command {
	return rules.Command{Kind: rules.KindClaim, Player: player, Goal: rules.Goal{Quest: quest}, Count: tiers}
}

func setCounter(player, counter string, v uint64) rules.Command {
	return rules.Command{Kind: rules.KindSetCounter, Player: player, Goal: rules.Goal{Counter: counter, N: v}, Note: &rules.Note{Reason: "test"}}
}

// count returns where a counter stands for a player.
func (r *realm) count(player, counter string) (v uint64) {
	r.rules.Look(player, r.now, func(s *rules.Sight) { v = s.Count(r.rules.Tables().CounterByID[counter]) })
	return v
}

// claimed returns how many tiers of a quest a player has claimed.
func (r *realm) claimed(player, quest string) (n uint64) {
	r.rules.Look(player, r.now, func(s *rules.Sight) { n = s.Claimed(r.rules.Tables().QuestByID[quest]) })
	return n
}

// claims lists the claims in an event, as quest/tier.
func (r *realm) claims(ev *store.Event) string {
	var all []string
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		if e.Verb == store.Claim {
			id, _ := rules.QuestOf(r.state.CounterName(e.N))
			all = append(all, fmt.Sprint(id, "/", e.Value))
		}
	}
	return strings.Join(all, " ")
}

// wantClaims carries out a command in which these tiers are claimed.
func (r *realm) wantClaims(cmd rules.Command, want string) {
	r.t.Helper()
	ev := r.want(cmd, rules.OK, "")
	if got := r.claims(&ev); got != want {
		r.t.Errorf("%+v claims %q, want %q", cmd, got, want)
	}
}

// TestReachedByOthers: what a quest gives can reach another one in the same event, also one that was looked at
// before and was not reached.
func TestReachedByOthers(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`
kuji: 1
items: {gold: {}, medal: {}, licence: {}}
counters: {wins: {}, earned: {of: {gains: gold}}}
quests:
  rich: {claim: automatic, needs: {earned: 10}, when: {counters: {wins: 1}}, reward: {items: {medal: 1}}}
  owner: {claim: automatic, needs: {wins: 1}, when: {holds: {medal: 1}}, reward: {items: {licence: 1}}}
  winner: {claim: automatic, needs: {wins: 1}, reward: {items: {gold: 10}}}
`)
	r.wantClaims(progress("ann", "wins", "", 1), "winner/1 rich/1 owner/1")
	r.wantClaims(group(progress("bob", "wins", "", 1), grant("cid", of("gold", 10)), progress("cid", "wins", "", 1)),
		"winner/1 rich/1 owner/1 winner/1 rich/1 owner/1")
	r.replay()
}

// TestHoldingsReach: a quest that fires by itself and asks for holdings sees those that the same event gives or
// takes, alone or in a group.
func TestHoldingsReach(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`
kuji: 1
items: {gold: {}, pass: {}, ban: {}, medal: {}}
counters: {earned: {of: {gains: gold}}, eaten: {of: {consumes: ban}}}
quests:
  both: {claim: automatic, needs: {earned: 1}, when: {holds: {pass: 1}}, reward: {items: {medal: 1}}}
  free: {claim: automatic, needs: {eaten: 1}, when: {lacks: [ban]}, reward: {items: {medal: 5}}}
`)
	r.wantClaims(grant("ann", of("gold", 1), of("pass", 1)), "both/1")
	r.wantClaims(grant("bob", of("gold", 1)), "")
	r.wantClaims(grant("bob", of("pass", 1)), "both/1")
	r.wantClaims(grant("cid", of("pass", 1)), "")
	r.wantClaims(group(consume("cid", of("pass", 1)), grant("cid", of("gold", 1))), "")
	r.wantClaims(transfer("ann", "cid", of("pass", 1)), "both/1")
	r.wantClaims(grant("ann", of("ban", 2)), "")
	r.wantClaims(consume("ann", of("ban", 1)), "")
	r.wantClaims(consume("ann", of("ban", 1)), "free/1")
	r.replay()
}

// TestKeysOfOne: of several counters that one event moves, only the one of different keys writes them.
func TestKeysOfOne(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`
kuji: 1
items: {gold: {}}
counters:
  seen: {of: {progress: boss}, distinct: 3}
  kills: {of: {progress: boss}}
  all: {for: realm, of: {progress: boss}}
  names: {for: realm, of: {progress: boss}, distinct: 2}
`)
	for i, key := range []string{"a", "b", "a", "", "c"} {
		r.want(progress("ann", "boss", key, 2), rules.OK, "")
		if got, want := r.count("ann", "seen"), []uint64{1, 2, 2, 3, 3}[i]; got != want {
			t.Errorf("after %q: %d different ones, want %d", key, got, want)
		}
	}
	r.want(progress("bob", "boss", "a", 1), rules.OK, "")
	if r.count("bob", "seen") != 1 || r.count("bob", "kills") != 1 || r.count("ann", "all") != 11 || r.count("ann", "names") != 2 {
		t.Errorf("seen %d, kills %d, all %d, names %d", r.count("bob", "seen"), r.count("bob", "kills"), r.count("ann", "all"), r.count("ann", "names"))
	}
	wide, player := map[string]uint32{}, map[string]bool{}
	for name, width := range r.state.CounterNames() {
		wide[name] = width
		player[name] = strings.HasPrefix(name, "/count/") || strings.HasPrefix(name, "/keys/")
	}
	for name, width := range wide {
		first, _ := r.state.CounterNum(name)
		num, _ := r.state.Player("ann")
		for i := range width {
			if player[name] && r.state.Tally(first+i) != 0 || !player[name] && r.state.Counter(num, first+i) != 0 {
				t.Errorf("number %d of %s is kept for the wrong one", i, name)
			}
		}
	}
	r.replay()
}

// TestMovesOfAFailure: what a command moved that failed is not written by the next one, also if another catalog
// comes in between.
func TestMovesOfAFailure(t *testing.T) {
	const counters = "counters: {sold: {of: {draws: p}}}"
	catalog := func(more string) string {
		return "{kuji: 1, items: {gold: {}}, pools: {p: {entries: [{id: e, weight: 1}]}, q: {price: {gold: 1}, entries: [{id: e, weight: 1}]}}" + more + "}"
	}
	failing := group(draw("ann", "p", 1), draw("ann", "q", 1))
	r := newRealm(t, 1)
	r.put(catalog(", " + counters))
	r.want(draw("ann", "p", 1), rules.OK, "")
	r.want(failing, rules.InsufficientItems, "gold")
	r.want(grant("bob", of("gold", 1)), rules.OK, "")
	if r.count("ann", "sold") != 1 || r.count("bob", "sold") != 0 {
		t.Errorf("ann sold %d, bob %d", r.count("ann", "sold"), r.count("bob", "sold"))
	}
	r.decide(&failing, r.src) // nothing looks at the rules before the next catalog
	r.put(catalog(""))
	before := len(r.log)
	r.want(grant("bob", of("gold", 1)), rules.OK, "")
	other := newRealm(t, 1)
	other.put(catalog(", " + counters))
	other.want(draw("ann", "p", 1), rules.OK, "")
	other.want(grant("bob", of("gold", 1)), rules.OK, "")
	other.put(catalog(""))
	other.want(grant("bob", of("gold", 1)), rules.OK, "")
	if got, want := r.log[before].raw, other.log[len(other.log)-1].raw; string(got) != string(want) {
		t.Errorf("after a failure under another catalog an event is %x, want %x", got, want)
	}
}

// TestHighestOfDraws: each draw is one fact, in both halves of a command.
func TestHighestOfDraws(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gold: {}}, counters: {top: {of: {draws: p}, highest: true}},
		pools: {p: {max_count: 9, entries: [{id: e, weight: 1}]}, q: {when: {counters: {top: 2}}, entries: [{id: e, weight: 1}]}}}`)
	r.want(group(draw("ann", "p", 5), draw("ann", "q", 1)), rules.NotEligible, "q")
	r.want(draw("ann", "p", 5), rules.OK, "")
	if got := r.count("ann", "top"); got != 1 {
		t.Errorf("the highest of five draws is %d, want 1", got)
	}
}

// TestCodesOfQuests: a claim whose reward gives a code succeeds only if the code is left, whatever the draws and
// claims before it in the group give.
func TestCodesOfQuests(t *testing.T) {
	const yaml = `
kuji: 1
items: {gold: {}}
counters: {wins: {}}
pools:
  p: {entries: [{id: code, weight: 1000, reward: {code: keys}}, {id: none, weight: 1}]}
  low: {internal: true, entries: [{id: code, weight: 1000, reward: {code: keys}}, {id: none, weight: 1}]}
quests:
  one: {reward: {code: keys}}
  two: {tiers: [{reward: {pool: low}}, {reward: {code: keys}}]}
  auto: {claim: automatic, needs: {wins: 1}, reward: {code: keys}}
`
	newOf := func(codes ...string) *realm {
		r := newRealm(t, 1)
		r.put(yaml)
		event, _, err := rules.Import(r.state, "keys", codes)
		if err != nil {
			t.Fatal(err)
		}
		r.apply(event)
		r.rules.Reset(r.rules.Tables())
		return r
	}
	short := func(r *realm, cmd rules.Command) {
		t.Helper()
		wantNoChoice(r, &cmd, true)
		if ev := r.do(cmd); rules.Status(ev.Status) != rules.RewardUnavailable {
			t.Errorf("%+v ends %v, want %v", cmd, rules.Status(ev.Status), rules.RewardUnavailable)
		}
	}
	r := newOf("a")
	short(r, group(draw("ann", "p", 1), claim("ann", "one", 0)))
	short(r, group(claim("ann", "two", 1), claim("bob", "one", 1)))
	short(r, group(claim("ann", "one", 1), claim("bob", "one", 1)))
	short(r, claim("ann", "two", 2))
	r.want(group(claim("ann", "one", 1), draw("ann", "p", 1), progress("ann", "wins", "", 1)), rules.OK, "")
	if r.claimed("ann", "auto") != 0 {
		t.Error("a code was given that is not there")
	}
	r = newOf("a", "b")
	r.want(group(draw("ann", "p", 1), claim("ann", "one", 0)), rules.OK, "")
	r = newOf("a", "b")
	r.want(claim("ann", "two", 2), rules.OK, "")
}

// TestTiersAskedFor: a claim of more tiers than are left fails, and gives none.
func TestTiersAskedFor(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gold: {}}, counters: {wins: {}}, quests: {q: {tiers: [{needs: {wins: 1}, reward: {items: {gold: 1}}}, {reward: {items: {gold: 10}}}, {reward: {items: {gold: 100}}}]}}}`)
	r.want(claim("ann", "q", 0), rules.NotReached, "q")
	r.want(progress("ann", "wins", "", 1), rules.OK, "")
	r.want(claim("ann", "q", 4), rules.NotReached, "q")
	r.wantClaims(claim("ann", "q", 1), "q/1")
	r.want(claim("ann", "q", 3), rules.NotReached, "q")
	r.wantClaims(group(claim("ann", "q", 1), claim("ann", "q", 1)), "q/2 q/3")
	r.want(group(claim("ann", "q", 1)), rules.AlreadyClaimed, "q")
	r.want(progress("bob", "wins", "", 1), rules.OK, "")
	r.want(group(claim("bob", "q", 2), claim("bob", "q", 2)), rules.NotReached, "q")
	r.wantClaims(group(claim("bob", "q", 2), claim("bob", "q", 0)), "q/1 q/2 q/3")
	if got := r.holds("ann", "gold"); got != 111 {
		t.Errorf("ann holds %d, want 111", got)
	}
	r.replay()
}

// TestRewardAtItsLargest: a claim is checked against the most that the reward can give, whatever is drawn. An
// automatic quest whose reward does not fit, or is not there, waits to be claimed.
func TestRewardAtItsLargest(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`
kuji: 1
items: {hoard: {}, gold: {}}
counters: {wins: {}, all: {of: {gains: gold}}}
pools:
  rare: {internal: true, entries: [{id: few, weight: 1, stock: 1, reward: {items: {gold: 1}}}]}
  any: {internal: true, entries: [{id: much, weight: 1, reward: {items: {hoard: 100}}}, {id: none, weight: 1000000000}]}
quests:
  range: {reward: {items: {hoard: {min: 1, max: 10}}}}
  drawn: {reward: {pool: any}}
  own: {claim: automatic, needs: {wins: 1}, reward: {items: {hoard: {min: 1, max: 20}}}}
  rare: {claim: automatic, needs: {wins: 1}, reward: {pool: rare}}
`)
	fails := func(cmd rules.Command, status rules.Status, subject string) {
		t.Helper()
		wantNoChoice(r, &cmd, true)
		r.want(cmd, status, subject)
	}
	for _, player := range []string{"ann", "bob"} {
		r.want(grant(player, of("hoard", rules.MaxQuantity-9)), rules.OK, "")
	}
	fails(claim("ann", "range", 0), rules.BalanceOverflow, "hoard")
	fails(claim("ann", "drawn", 0), rules.BalanceOverflow, "hoard")
	r.wantClaims(progress("ann", "wins", "", 1), "rare/1")
	fails(claim("ann", "own", 0), rules.BalanceOverflow, "hoard")
	r.wantClaims(progress("bob", "wins", "", 1), "")
	fails(claim("bob", "rare", 0), rules.RewardUnavailable, "rare")
	fails(group(consume("ann", of("hoard", 1)), claim("ann", "range", 0), claim("ann", "drawn", 1)), rules.BalanceOverflow, "hoard")
	r.wantClaims(group(consume("ann", of("hoard", 121)), claim("ann", "range", 0), claim("ann", "drawn", 1), claim("ann", "own", 1)), "range/1 drawn/1 own/1")
	r.wantClaims(consume("bob", of("hoard", 11)), "")
	r.wantClaims(progress("bob", "wins", "", 1), "own/1")
	r.replay()
}

// TestMostFired: what an event cannot claim by itself waits for the next one that moves what the quest needs.
func TestMostFired(t *testing.T) {
	var tiers []string
	for n := range rules.MaxFired + 50 {
		tiers = append(tiers, fmt.Sprintf("{needs: {wins: %d}, reward: {items: {gold: 1}}}", n/2))
	}
	tiers[0], tiers[1] = "{needs: {wins: 1}}", "{needs: {wins: 1}}"
	r := newRealm(t, 1)
	r.put("{kuji: 1, items: {gold: {}}, counters: {wins: {}, gold: {of: {gains: gold}}}, quests: {\n" +
		"q: {claim: automatic, tiers: [" + strings.Join(tiers, ", ") + "]},\n" +
		"self: {claim: automatic, tiers: [{needs: {gold: 1}, reward: {items: {gold: 1}}}, {needs: {gold: 2}, reward: {items: {gold: 1}}}, {needs: {gold: 4}, reward: {items: {gold: 1}}}]}}}")
	r.want(progress("ann", "wins", "", 1000), rules.OK, "")
	if got := r.claimed("ann", "q") + r.claimed("ann", "self"); got != rules.MaxFired {
		t.Errorf("%d tiers claim themselves in one event, want %d", got, rules.MaxFired)
	}
	r.want(progress("ann", "wins", "", 1), rules.OK, "")
	r.want(grant("bob", of("gold", 1)), rules.OK, "")
	if got := r.claimed("ann", "q"); got != rules.MaxFired+50 {
		t.Errorf("%d tiers are claimed after the next event, want %d", got, rules.MaxFired+50)
	}
	if got := r.claimed("bob", "self"); got != 2 || r.holds("bob", "gold") != 3 {
		t.Errorf("a quest that gives what it needs has %d tiers claimed, and bob %d", got, r.holds("bob", "gold"))
	}
	r.replay()
}

// TestHighestNumbers: sums stop at the highest value, and what is set by hand is moved on from there.
func TestHighestNumbers(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gold: {}}, counters: {wins: {}, day: {of: {progress: wins}, per: day}, row: {of: {progress: wins}, streak: day}, all: {for: realm, of: {progress: wins}}}}`)
	want := func(wins, day, row, all uint64) {
		t.Helper()
		if a, b, c, d := r.count("ann", "wins"), r.count("ann", "day"), r.count("ann", "row"), r.count("ann", "all"); a != wins || b != day || c != row || d != all {
			t.Errorf("%d, %d, %d, %d; want %d, %d, %d, %d", a, b, c, d, wins, day, row, all)
		}
	}
	const most = rules.MaxQuantity
	for _, counter := range []string{"wins", "day", "row"} {
		r.want(setCounter("ann", counter, most-1), rules.OK, "")
	}
	r.want(setCounter("", "all", most-1), rules.OK, "")
	r.want(group(progress("ann", "wins", "", most), progress("ann", "wins", "", 2)), rules.OK, "")
	want(most, most, most-1, most)
	r.now += day
	want(most, 0, most-1, most)
	r.want(progress("ann", "wins", "", 3), rules.OK, "")
	r.want(progress("bob", "wins", "", most), rules.OK, "")
	want(most, 3, most, most)
	r.now += day
	r.want(progress("ann", "wins", "", 3), rules.OK, "")
	want(most, 3, most, most)
	r.replay()
}
