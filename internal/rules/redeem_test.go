package rules_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/internal/plan"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

func redeem(player, code string) rules.Command {
	return rules.Command{Kind: rules.KindRedeem, Player: player, Code: rules.SumCode(code)}
}

// codes imports codes into a list.
func (r *realm) codes(list string, codes ...string) {
	r.t.Helper()
	event, added, err := rules.Import(r.state, list, codes)
	if err != nil || added != len(codes) {
		r.t.Fatalf("%d of %d codes imported: %v", added, len(codes), err)
	}
	r.apply(event)
}

// list returns the name of the list that a status is about.
func (r *realm) list(ev *store.Event) string { return r.state.CodeListName(ev.Subject) }

// wantCode carries out a Redeem that must end so. With a status about a list, subject is the list.
func (r *realm) wantCode(player, code string, status rules.Status, subject string) store.Event {
	r.t.Helper()
	ev := r.do(redeem(player, code))
	got, about := rules.Status(ev.Status), ""
	switch got {
	case rules.OK, rules.UnknownCode, rules.TooManyGuesses:
	case rules.CodeExpired, rules.CodeUsedUp, rules.CodeRedeemed:
		about = r.list(&ev)
	default:
		about = r.subject(&ev)
	}
	if got != status || about != subject {
		r.t.Fatalf("%s sends %s: %v %q, want %v %q", player, code, got, about, status, subject)
	}
	return ev
}

const redeemCatalog = `
kuji: 1
zone: Asia/Tokyo
items: {gem: {}, cash: {}, ticket: {}}
start: {ticket: 2}
guesses: {per: day, count: 3}
pools:
  caps:
    redeem:
      - {code: bottles}
      - {code: crates, times: 10, until: 2023-11-13T02:00:00Z}
    ends: 2023-12-01T00:00:00Z
    limits: [{per: day, draws: 12}]
    entries:
      - {id: gem, weight: 1, reward: {items: {gem: 1}}}
  promo:
    price: {ticket: 1}
    redeem: {code: summer, times: 2, uses: 3}
    entries:
      - {id: cash, weight: 1, stock: 7, reward: {items: {cash: 1}}}
  friends:
    redeem: {code: invites}
    entries:
      - {id: invite, weight: 1, reward: {code: invites}}
      - {id: blank, weight: 0.000001}
`

// TestRedeem goes through how a code can end, one after the other.
func TestRedeem(t *testing.T) {
	r := newRealm(t, 1)
	r.wantCode("ann", "AB12", rules.UnknownCode, "") // no code pays for anything, and nothing is counted
	if _, known := r.state.Player("ann"); known {
		t.Error("a guess in a realm without codes makes a player")
	}
	r.put(redeemCatalog)
	r.codes("bottles", "AB12-CD34", "EF56-GH78", "one", "two", "three")
	r.codes("crates", "CRATE-1", "CRATE-2")
	r.codes("summer", "SUMMER")
	ev := r.wantCode("ann", "ab12cd34", rules.OK, "")
	if used, err := rules.RedeemedOf(&ev); err != nil || r.state.CodeListName(used.List) != "bottles" || used.Number != 0 || used.Draws != 1 || r.rules.Drawn(make([]uint64, r.state.Pools())) != 1 {
		t.Errorf("%+v %v", used, err)
	}
	if r.holds("ann", "gem") != 1 || r.holds("ann", "ticket") != 2 {
		t.Errorf("ann has %d gems and %d tickets", r.holds("ann", "gem"), r.holds("ann", "ticket"))
	}
	r.wantCode("ann", "AB12-CD34", rules.CodeRedeemed, "bottles")
	r.wantCode("bob", "AB12 CD34", rules.CodeUsedUp, "bottles")
	r.want(draw("bob", "caps", 1), rules.CodeRequired, "caps")

	// A code that draws several at once, with the pool's own limit, is not used if that is reached.
	ev = r.wantCode("bob", " crate 1 ", rules.OK, "")
	if used, _ := rules.RedeemedOf(&ev); used.Draws != 10 || r.holds("bob", "gem") != 10 {
		t.Errorf("%+v, %d gems", used, r.holds("bob", "gem"))
	}
	r.wantCode("bob", "CRATE-2", rules.LimitReached, "caps")
	r.now += 2 * hour
	r.wantCode("cat", "crate-2", rules.CodeExpired, "crates")
	r.wantCode("cat", "crate-1", rules.CodeExpired, "crates")
	r.wantCode("cat", "one", rules.OK, "") // the other list goes on

	// One to share: three players, whoever has paid too, and no more than there is.
	r.want(draw("ann", "promo", 1), rules.OK, "")
	for _, player := range []string{"ann", "bob", "cat"} {
		r.wantCode(player, "summer", rules.OK, "")
		r.wantCode(player, "summer", rules.CodeRedeemed, "summer")
	}
	r.wantCode("dan", "summer", rules.CodeUsedUp, "summer")
	if r.holds("ann", "ticket") != 1 || r.holds("ann", "cash") != 3 {
		t.Errorf("ann has %d tickets and %d cash", r.holds("ann", "ticket"), r.holds("ann", "cash"))
	}
	r.codes("summer", "winter")
	r.wantCode("dan", "winter", rules.SoldOut, "promo")
	r.wantCode("dan", "winter", rules.SoldOut, "promo") // and the code is not used

	r.now = 1_701_388_800_000
	r.wantCode("dan", "two", rules.Ended, "caps")
	if uses, codes := r.state.CodeUses(listOf(r, "summer")); uses != 3 || codes != 1 {
		t.Errorf("%d uses of %d codes", uses, codes)
	}
	r.replay()
}

func listOf(r *realm, list string) uint32 {
	n, _ := r.state.CodeListNum(list)
	return n
}

// TestRedeemGiven: a code that a reward gives counts from when it was given.
func TestRedeemGiven(t *testing.T) {
	r := newRealm(t, 1)
	r.put(redeemCatalog)
	r.codes("invites", "i-0", "i-1")
	r.wantCode("ann", "i-0", rules.UnknownCode, "")
	r.put(strings.Replace(redeemCatalog, "redeem: {code: invites}", "price: {ticket: 1}\n    redeem: {code: invites}", 1))
	r.want(draw("ann", "friends", 1), rules.OK, "")
	r.wantCode("bob", "i-1", rules.UnknownCode, "")
	r.wantCode("bob", "i-0", rules.OK, "") // which gives bob the next one
	r.wantCode("bob", "i-1", rules.OK, "")
	r.codes("invites", "i-2")
	r.put(strings.Replace(redeemCatalog, "reward: {code: invites}", "reward: {items: {gem: 1}}", 1))
	r.wantCode("cat", "i-2", rules.OK, "") // no reward gives them any more
}

// TestInvitation: a code to share is not for the player who was given it, whatever the catalog gives now.
func TestInvitation(t *testing.T) {
	r := newRealm(t, 1)
	invites := strings.Replace(redeemCatalog, "redeem: {code: invites}", "price: {ticket: 1}\n    redeem: {code: invites, uses: 5}", 1)
	r.put(invites)
	r.codes("invites", "i-0", "i-1", "i-2", "i-3")
	r.want(draw("ann", "friends", 1), rules.OK, "")
	r.wantCode("ann", "i-0", rules.CodeRedeemed, "invites")
	r.wantCode("bob", "i-0", rules.OK, "") // which gives bob one too
	r.wantCode("bob", "i-1", rules.CodeRedeemed, "invites")
	r.wantCode("ann", "i-1", rules.OK, "")
	r.put(strings.Replace(invites, "reward: {code: invites}", "reward: {items: {gem: 1}}", 1))
	r.wantCode("ann", "i-0", rules.CodeRedeemed, "invites")
	r.wantCode("ann", "i-3", rules.OK, "")
	again := r.replay()
	again.wantCode("ann", "i-0", rules.CodeRedeemed, "invites")
}

// TestGuesses: a code that does not exist counts, for players who were never seen too, and the limit
// holds for the day, in the zone, whatever else the player sends.
func TestGuesses(t *testing.T) {
	r := newRealm(t, 1)
	r.put(redeemCatalog)
	r.codes("bottles", "one", "two", "three")
	r.codes("crates", "CRATE-1")
	for i := range 3 {
		r.wantCode("ann", fmt.Sprint("guess", i%2), rules.UnknownCode, "") // the same guess again counts too
		if q := r.holds("ann", "ticket"); q != 0 {
			t.Errorf("after %d guesses ann has %d starting tickets, want none: she has not come", i+1, q)
		}
	}
	for range 3 {
		r.wantCode("ann", "guess", rules.TooManyGuesses, "")
		r.wantCode("ann", "one", rules.TooManyGuesses, "") // and learns nothing
	}
	r.wantCode("bob", "one", rules.OK, "")
	for range 5 {
		r.wantCode("bob", "one", rules.CodeRedeemed, "bottles") // no guess
	}
	r.wantCode("bob", "guess", rules.UnknownCode, "")
	r.now = monday + 15*hour - 1 // 23:59 in Tokyo
	r.wantCode("ann", "two", rules.TooManyGuesses, "")
	r.now++
	r.wantCode("ann", "two", rules.OK, "")
	for range 3 {
		r.wantCode("ann", "guess", rules.UnknownCode, "")
	}
	r.wantCode("ann", "three", rules.TooManyGuesses, "")
	// Another limit is in force at once, and the guesses so far count in it.
	r.put(strings.Replace(redeemCatalog, "count: 3", "count: 4", 1))
	r.wantCode("ann", "guess", rules.UnknownCode, "")
	r.wantCode("ann", "three", rules.TooManyGuesses, "")
	r.replay()
}

// TestFailedChangesOnlyCounts: of what fails, a guess alone has effects, and they are that a new player
// joins, and counters.
func TestFailedChangesOnlyCounts(t *testing.T) {
	r := newRealm(t, 1)
	r.put(redeemCatalog)
	ev := r.wantCode("ann", "guess", rules.UnknownCode, "")
	var verbs []store.Verb
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		verbs = append(verbs, e.Verb)
	}
	if want := []store.Verb{store.Join, store.Set, store.Set}; !slices.Equal(verbs, want) {
		t.Errorf("effects %v, want %v", verbs, want)
	}
	if bytes.Contains(ev.Raw, []byte("guess")) {
		t.Error("the event holds the guess")
	}
}

// TestRedeemModel compares with a naive model: maps of what was used and guessed.
func TestRedeemModel(t *testing.T) { rapid.Check(t, redeemModel) }

func redeemModel(t *rapid.T) {
	const source = `
kuji: 1
items: {gem: {}, cash: {}}
guesses: {per: hour, count: %d}
pools:
  a:
    redeem: [{code: single}, {code: shared, uses: 2, times: 3, until: 2023-11-13T03:00:00Z}]
    limits: [{per: day, draws: 7}]
    entries: [{id: gem, weight: 1, reward: {items: {gem: 1}}}]
  b:
    redeem: {code: many, uses: 1000000000}
    entries: [{id: cash, weight: 1, stock: 9, reward: {items: {cash: 1}}}]
`
	type terms struct {
		pool        string
		times, uses int
		until       int64
	}
	lists := map[string]terms{"single": {"a", 1, 1, 0}, "shared": {"a", 3, 2, monday + 3*hour}, "many": {"b", 1, 1e9, 0}}
	order := []string{"single", "shared", "many"} // of the catalog
	allowed := rapid.IntRange(1, 3).Draw(t, "guesses")
	r := newRealm(t, 1)
	r.put(fmt.Sprintf(source, allowed))
	imported := map[string][]string{}
	usedBy := map[string][]string{}     // by list/code
	guesses := map[string]int{}         // by player/hour
	drawn, stock := map[string]int{}, 9 // by player/day, of pool a
	gems, cash := map[string]int{}, map[string]int{}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		r.now += int64(rapid.IntRange(0, 90).Draw(t, "minutes")) * hour / 60
		code := fmt.Sprint("c-", rapid.IntRange(0, 7).Draw(t, "code"))
		if rapid.IntRange(0, 3).Draw(t, "import") == 0 {
			list := rapid.SampledFrom(order).Draw(t, "list")
			if !slices.Contains(imported[list], code) {
				r.codes(list, code)
				imported[list] = append(imported[list], code)
			}
			continue
		}
		player := rapid.SampledFrom([]string{"ann", "bob", "cat"}).Draw(t, "player")
		hourly, daily := fmt.Sprint(player, (r.now-monday)/hour), fmt.Sprint(player, (r.now-monday)/(24*hour))
		list := ""
		for _, l := range order {
			if list == "" && slices.Contains(imported[l], code) {
				list = l
			}
		}
		key, k := list+"/"+code, lists[list]
		want := rules.OK
		switch {
		case guesses[hourly] >= allowed:
			want = rules.TooManyGuesses
		case list == "":
			want = rules.UnknownCode
			guesses[hourly]++
		case k.until != 0 && r.now >= k.until:
			want = rules.CodeExpired
		case slices.Contains(usedBy[key], player):
			want = rules.CodeRedeemed
		case len(usedBy[key]) >= k.uses:
			want = rules.CodeUsedUp
		case k.pool == "a" && drawn[daily]+k.times > 7:
			want = rules.LimitReached
		case k.pool == "b" && stock < k.times:
			want = rules.SoldOut
		default:
			usedBy[key] = append(usedBy[key], player)
			if k.pool == "a" {
				drawn[daily] += k.times
				gems[player] += k.times
			} else {
				stock -= k.times
				cash[player] += k.times
			}
		}
		typed := code
		if rapid.Bool().Draw(t, "as typed") {
			typed = strings.ToUpper(strings.ReplaceAll(code, "-", " "))
		}
		ev := r.do(redeem(player, typed))
		if got := rules.Status(ev.Status); got != want {
			t.Fatalf("%s sends %s: %v, want %v", player, typed, got, want)
		}
		if int(r.holds(player, "gem")) != gems[player] || int(r.holds(player, "cash")) != cash[player] {
			t.Fatalf("%s holds %d gems and %d cash, want %d and %d", player, r.holds(player, "gem"), r.holds(player, "cash"), gems[player], cash[player])
		}
	}
	uses := 0
	for _, all := range usedBy {
		uses += len(all)
	}
	for _, list := range order {
		n, _ := r.state.CodeUses(listOf(r, list))
		uses -= int(n)
	}
	if uses != 0 {
		t.Fatalf("%d uses more than in the state", uses)
	}
	r.replay()
}

// TestBottleCaps: the example does what its comments say.
func TestBottleCaps(t *testing.T) {
	source, err := os.ReadFile("../../examples/bottle-caps.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := newRealm(t, 1)
	r.put(string(source))
	r.codes("bottles", "b-0", "b-1")
	r.codes("crates", "c-0", "c-1")
	r.codes("poster", "summer")
	r.want(draw("ann", "caps", 1), rules.CodeRequired, "caps")
	r.wantCode("ann", "b-0", rules.OK, "")
	r.wantCode("ann", "c-0", rules.OK, "")
	r.wantCode("ann", "summer", rules.OK, "")
	r.wantCode("bob", "summer", rules.OK, "")
	r.wantCode("ann", "c-1", rules.LimitReached, "caps")
	r.now += 24 * hour
	r.wantCode("ann", "c-1", rules.OK, "") // it was not used up
	for i := range 10 {
		r.wantCode("eve", fmt.Sprint("guess", i), rules.UnknownCode, "")
	}
	r.wantCode("eve", "b-1", rules.TooManyGuesses, "")
	r.replay()
}

// TestRedeemOddsAndNotices: the odds of a pool that only codes pay for are those of its draws, and it is
// neither free for anybody nor closed to all.
func TestRedeemOddsAndNotices(t *testing.T) {
	r := newRealm(t, 1)
	c := parse(t, `
kuji: 1
items: {gem: {}}
pools:
  caps: {redeem: {code: bottles}, entries: [{id: gem, weight: 1, stock: 1, reward: {items: {gem: 1}}}, {id: no, weight: 3}]}
  chest: {price: {gem: 1}, entries: [{id: a, weight: 1, reward: {pool: caps}}]}
`)
	p, err := plan.NewPlanner(r.state, r.rules.Tables(), c, r.now).Plan(c, waits)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range p.Changes {
		if change.Warning != "" {
			t.Errorf("warned: %s", change.Text)
		}
	}
	r.force(c)
	for _, player := range []string{"", "ann"} {
		s, err := odds.Stand(r.rules, "caps", player, 1, r.now)
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Odds(waits)
		if err != nil || o.Status != rules.OK || o.Outcomes[0].Chance.String() != "1/4" {
			t.Errorf("for %q: %+v %v", player, o, err)
		}
	}
}
