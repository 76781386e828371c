package enginetest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

const mostCatalog = `
kuji: 1
items:
  crate: {most: 10}
  coin: {most: 10, beyond: cut}
  gem: {most: 10, beyond: {mail: 2h}}
  pearl: {most: %d, beyond: mail}
  ore: {}
start: {coin: 3}
counters: {coins: {of: {gains: coin}}, wins: {}}
quests:
  winner: {claim: automatic, needs: {wins: 1}, reward: {items: {crate: 4}}}
  rich: {needs: {wins: 1}, reward: {items: {crate: 4}}}
pools:
  crates: {entries: [{id: few, weight: 1, reward: {items: {crate: 1}}}, {id: many, weight: 1, stock: 0, reward: {items: {crate: 6}}}]}
  coins: {entries: [{id: e, weight: 1, reward: {items: {coin: {min: 1, max: 6}}}}]}
  gems: {entries: [{id: e, weight: 1, reward: {items: {gem: {min: 1, max: 6}}}}]}
  sell: {price: {coin: 5}, entries: [{id: e, weight: 1, reward: {items: {ore: 1}}}]}
`

func mostRealm(t *testing.T, now *hand) *kuji.Realm {
	return realmAt(t, now, fmt.Sprintf(mostCatalog, 10))
}

// TestMost: what would be more than the most of an item is refused by the largest outcome, cut or mailed, and each
// result says so.
func TestMost(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := mostRealm(t, now)
	give := func(items string) kuji.Result { return do(t, r, kuji.Grant{Player: "ann", Items: stacksOf(items)}) }
	want := func(what string, res kuji.Result, status kuji.Status, subject string, beyond ...kuji.Beyond) {
		t.Helper()
		if res.Status != status || res.Subject != subject || !reflect.DeepEqual(res.Beyond(), beyond) {
			t.Errorf("%s: %v, beyond %v; want %v (%s), %v", what, res, res.Beyond(), status, subject, beyond)
		}
	}
	want("crates that fit", give("9 crate"), kuji.OK, "")
	want("two more", give("2 crate"), kuji.MostReached, "crate")
	want("a draw that could give six", do(t, r, kuji.Draw{Player: "ann", Pool: "crates"}), kuji.MostReached, "crate")
	want("the last one", give("1 crate"), kuji.OK, "")
	want("coins", give("9 coin"), kuji.OK, "", kuji.Beyond{Item: "coin", Quantity: 2, How: "cut"})
	want("more coins", give("9 coin"), kuji.OK, "", kuji.Beyond{Item: "coin", Quantity: 9, How: "cut"})
	if got := counts(t, r, "ann")["coins"]; got != 21 {
		t.Errorf("counted %d coins; what was given counts, 21", got)
	}
	want("gems", give("25 gem"), kuji.OK, "", kuji.Beyond{Item: "gem", Quantity: 15, How: "mailed"})
	res := do(t, r, kuji.Draw{Player: "ann", Pool: "gems"})
	if len(res.Outcomes) != 1 || res.Outcomes[0].Items != nil || len(res.Beyond()) != 1 {
		t.Errorf("a draw of gems that are mailed: %+v", res)
	}
	want("a transfer that is refused", do(t, r, kuji.Transfer{From: "ann", To: "bob", Items: stacksOf("10 crate, 10 coin")}), kuji.OK, "")
	want("crates again", give("10 crate, 10 coin"), kuji.OK, "")
	want("a transfer to a player who has all", do(t, r, kuji.Transfer{From: "ann", To: "bob", Items: stacksOf("1 crate")}), kuji.MostReached, "crate")
	want("the same of coins", do(t, r, kuji.Transfer{From: "ann", To: "bob", Items: stacksOf("1 coin")}), kuji.MostReached, "coin")
	do(t, r, kuji.Grant{Player: "bob", Items: stacksOf("8 gem")})
	want("the same of gems", do(t, r, kuji.Transfer{From: "ann", To: "bob", Items: stacksOf("5 gem")}), kuji.OK, "",
		kuji.Beyond{Item: "gem", Quantity: 3, How: "mailed", Player: "bob"})
	want("a group", do(t, r, kuji.Atomic{Members: []kuji.Request{
		kuji.Draw{Player: "ann", Pool: "sell"}, kuji.Draw{Player: "ann", Pool: "coins"}, kuji.Grant{Player: "ann", Items: stacksOf("9 coin")},
	}}), kuji.OK, "")
	if got := items(t, r, "ann")["coin"]; got != 10 {
		t.Errorf("%d coins, want 10", got)
	}
	both := func(crates string) kuji.Result {
		return do(t, r, kuji.Atomic{Members: []kuji.Request{kuji.Draw{Player: "cat", Pool: "crates"}, kuji.Grant{Player: "cat", Items: stacksOf(crates)}}}).Members[1]
	}
	want("five beside a draw that could give six", both("5 crate"), kuji.MostReached, "crate")
	want("four beside it", both("4 crate"), kuji.OK, "")
	want("a quest", do(t, r, kuji.Claim{Player: "ann", Quest: "rich"}), kuji.NotReached, "rich")
	res = do(t, r, kuji.Progress{Player: "ann", Event: "wins"})
	if len(res.Claims()) != 0 {
		t.Errorf("an automatic quest gave what does not fit: %+v", res.Claims())
	}
	want("a claim", do(t, r, kuji.Claim{Player: "ann", Quest: "rich"}), kuji.MostReached, "crate")
	do(t, r, kuji.Consume{Player: "ann", Items: stacksOf("8 crate")})
	if res = do(t, r, kuji.Progress{Player: "ann", Event: "wins"}); len(res.Claims()) != 1 {
		t.Errorf("the automatic quest fits, and gave %+v", res.Claims())
	}
}

// TestMail: mail waits until its time, in the order in which it goes; Collect takes what fits; a mailbox that could
// get too full refuses.
func TestMail(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := mostRealm(t, now)
	start := now.Now()
	mail := func() (all []kuji.Letter) {
		t.Helper()
		v, err := r.Player(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		return v.Mail
	}
	at := func(d time.Duration) int64 { return start.Add(d).UnixMilli() }
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("12 pearl, 15 gem")})
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("1 gem")}) // at the same moment
	now.Add(time.Hour)
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("4 gem")})
	want := []kuji.Letter{{Item: "gem", Quantity: 6, Until: at(2 * time.Hour)}, {Item: "gem", Quantity: 4, Until: at(3 * time.Hour)}, {Item: "pearl", Quantity: 2, Until: at(720 * time.Hour)}}
	if got := mail(); !reflect.DeepEqual(got, want) {
		t.Errorf("mail %v, want %v", got, want)
	}
	if res := do(t, r, kuji.Collect{Player: "ann"}); res.Status != kuji.NothingToCollect {
		t.Errorf("nothing fits: %v", res)
	}
	do(t, r, kuji.Consume{Player: "ann", Items: stacksOf("7 gem, 1 pearl")})
	res := do(t, r, kuji.Collect{ID: "once", Player: "ann"})
	if want := stacksOf("6 gem, 1 gem, 1 pearl"); res.Status != kuji.OK || !reflect.DeepEqual(res.Collected(), want) {
		t.Errorf("collected %v, %v; want %v", res, res.Collected(), want)
	}
	if again := do(t, r, kuji.Collect{ID: "once", Player: "ann"}); !again.Replayed || !reflect.DeepEqual(again.Collected(), res.Collected()) {
		t.Errorf("again: %+v", again)
	}
	want = []kuji.Letter{{Item: "gem", Quantity: 3, Until: at(3 * time.Hour)}, {Item: "pearl", Quantity: 1, Until: at(720 * time.Hour)}}
	if got := mail(); !reflect.DeepEqual(got, want) {
		t.Errorf("mail %v, want %v", got, want)
	}
	now.Set(start.Add(3 * time.Hour))
	do(t, r, kuji.Consume{Player: "ann", Items: stacksOf("5 gem")}) // what is due goes before
	if got := mail(); !reflect.DeepEqual(got, want[1:]) {
		t.Errorf("mail %v, want %v", got, want[1:])
	}
	var gone []kuji.Beyond
	for rec, err := range r.Feed().Events(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == "due" {
			gone = append(gone, rec.Beyond...)
		}
		if rec.Position == r.Stats().Position && rec.Last {
			break
		}
	}
	if want := []kuji.Beyond{{Item: "gem", Quantity: 3, How: "gone", Player: "ann"}}; !reflect.DeepEqual(gone, want) {
		t.Errorf("gone %v, want %v", gone, want)
	}
	// A hundred letters, then no room.
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("5 gem")})
	for i := 1; i < kuji.MaxMail; i++ {
		now.Add(time.Millisecond)
		if res := do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("1 gem")}); res.Status != kuji.OK {
			t.Fatalf("letter %d: %v", i, res)
		}
	}
	now.Add(time.Millisecond)
	for _, req := range []kuji.Request{
		kuji.Grant{Player: "ann", Items: stacksOf("1 gem")},
		kuji.Draw{Player: "ann", Pool: "gems"},
		kuji.Atomic{Members: []kuji.Request{kuji.Grant{Player: "ann", Items: stacksOf("1 pearl")}}},
	} {
		if res := do(t, r, req); res.Status != kuji.MailboxFull {
			t.Errorf("%+v: %v", req, res)
		}
	}
	do(t, r, kuji.Consume{Player: "ann", Items: stacksOf("6 gem")})
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "gems"}); res.Status != kuji.OK {
		t.Errorf("a draw that fits at its largest: %v", res)
	}
	for _, req := range []kuji.Request{kuji.Collect{Player: "nobody"}, kuji.Collect{Player: "bob"}} {
		if res := do(t, r, req); res.Status != kuji.NothingToCollect {
			t.Errorf("%+v: %v", req, res)
		}
	}
	if _, err := r.Do(t.Context(), kuji.Atomic{Members: []kuji.Request{kuji.Collect{Player: "ann"}}}); kuji.CodeOf(err) != kuji.CodeInvalid {
		t.Errorf("Collect in a group: %v", err)
	}
}

// TestMostGoesDown: a catalog that lowers the most takes nothing away, and what comes then is beyond.
func TestMostGoesDown(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := mostRealm(t, now)
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("10 pearl")})
	if _, err := r.Apply(t.Context(), parse(t, fmt.Sprintf(mostCatalog, 4))); err != nil {
		t.Fatal(err)
	}
	res := do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("3 pearl")})
	if want := []kuji.Beyond{{Item: "pearl", Quantity: 3, How: "mailed"}}; !reflect.DeepEqual(res.Beyond(), want) || items(t, r, "ann")["pearl"] != 10 {
		t.Errorf("%+v, with %v", res, items(t, r, "ann"))
	}
	if _, err := r.Apply(t.Context(), parse(t, "kuji: 1\nitems: {pearl: {}, coin: {}, ore: {}}\n")); err != nil {
		t.Fatal(err)
	}
	if res := do(t, r, kuji.Collect{Player: "ann"}); res.Status != kuji.OK || items(t, r, "ann")["pearl"] != 13 {
		t.Errorf("without a most: %+v, with %v", res, items(t, r, "ann"))
	}
}

// TestCollectThenQuest: a quest that claims itself gives nothing for which a Collect has left no room.
func TestCollectThenQuest(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, "kuji: 1\nitems: {gem: {most: 10, beyond: mail}}\n")
	do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: kuji.MaxQuantity}}})
	c := parse(t, `
kuji: 1
items: {gem: {}}
counters: {wins: {}}
quests: {rich: {claim: automatic, needs: {wins: 1}, when: {holds: {gem: 20}}, reward: {items: {gem: 5}}}}
`)
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	do(t, r, kuji.Progress{Player: "ann", Event: "wins"})
	if res := do(t, r, kuji.Collect{Player: "ann"}); res.Status != kuji.OK || len(res.Claims()) != 0 {
		t.Errorf("collected %+v", res)
	}
	if got := items(t, r, "ann")["gem"]; got != kuji.MaxQuantity {
		t.Errorf("%d gems", got)
	}
	do(t, r, kuji.Consume{Player: "ann", Items: stacksOf("5 gem")})
	if res := do(t, r, kuji.Progress{Player: "ann", Event: "wins"}); len(res.Claims()) != 1 {
		t.Errorf("the quest fits now: %+v", res)
	}
}

// boxOf is a plain model of one player's balances and mail.
type boxOf struct {
	has  map[string]int
	mail []kuji.Letter
}

func (b *boxOf) gain(item string, n int, now time.Time) {
	over := max(0, b.has[item]+n-10)
	b.has[item] += n - over
	if item != "gem" || over == 0 {
		return
	}
	until := now.Add(2 * time.Hour).UnixMilli()
	for i := range b.mail {
		if b.mail[i].Until == until {
			b.mail[i].Quantity += uint64(over)
			return
		}
	}
	b.mail = append(b.mail, kuji.Letter{Item: "gem", Quantity: uint64(over), Until: until})
}

// TestSubmittedMail: callbacks of Submit are told of what was cut and mailed, and of what a Collect took, among
// others that are told of neither.
func TestSubmittedMail(t *testing.T) {
	r := mostRealm(t, handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)))
	var results [4]kuji.Result
	var wait sync.WaitGroup
	for i, req := range []kuji.Request{
		kuji.Grant{Player: "ann", Items: stacksOf("2 gem")}, kuji.Grant{Player: "bob", Items: stacksOf("13 gem, 9 coin")},
		kuji.Consume{Player: "bob", Items: stacksOf("5 gem")}, kuji.Collect{Player: "bob"},
	} {
		wait.Add(1)
		r.Submit(req, func(res kuji.Result, err error) {
			defer wait.Done()
			if results[i] = res; err != nil || res.Status != kuji.OK {
				t.Errorf("%+v: %v, %v", req, res, err)
			}
		})
	}
	wait.Wait()
	beyond := []kuji.Beyond{{Item: "gem", Quantity: 3, How: "mailed"}, {Item: "coin", Quantity: 2, How: "cut"}}
	for i, want := range [][]kuji.Beyond{nil, beyond, nil, nil} {
		if got := results[i].Beyond(); !reflect.DeepEqual(got, want) {
			t.Errorf("request %d: beyond %+v, want %+v", i, got, want)
		}
	}
	if got := results[3].Collected(); !reflect.DeepEqual(got, stacksOf("3 gem")) {
		t.Errorf("collected %+v, want 3 gems", got)
	}
}

// TestMostIsKept: through thousands of commands and restarts, balances and mail are those of a plain model; nothing
// is ever lost but by its time; and the verifier decides the same.
func TestMostIsKept(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	dir := t.TempDir()
	e, r := openDir(t, dir, now)
	if _, err := r.Apply(t.Context(), parse(t, fmt.Sprintf(mostCatalog, 10))); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 8))
	model := boxOf{has: map[string]int{"coin": 3}}
	do(t, r, kuji.Register{Player: "ann"})
	for i := range 3000 {
		now.Add(time.Duration(rnd.IntN(3)*rnd.IntN(3_000_000)) * time.Millisecond)
		for len(model.mail) > 0 && model.mail[0].Until <= now.Now().UnixMilli() {
			model.mail = model.mail[1:]
		}
		item, n := []string{"coin", "gem"}[rnd.IntN(2)], 1+rnd.IntN(8)
		switch rnd.IntN(6) {
		case 0, 1:
			do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: item, Quantity: uint64(n)}}})
			model.gain(item, n, now.Now())
		case 2:
			res := do(t, r, kuji.Consume{Player: "ann", Items: []kuji.Stack{{Item: item, Quantity: uint64(n)}}})
			if res.Status == kuji.OK {
				model.has[item] -= n
			}
		case 3:
			res := do(t, r, kuji.Draw{Player: "ann", Pool: item + "s", Count: n})
			given := 0
			for _, s := range res.Total() {
				given += int(s.Quantity)
			}
			for _, b := range res.Beyond() {
				given += int(b.Quantity)
			}
			if res.Status != kuji.OK || given < n || given > 6*n {
				t.Fatalf("step %d: %d draws gave %d: %+v", i, n, given, res)
			}
			model.gain(item, given, now.Now())
		case 4:
			do(t, r, kuji.Collect{Player: "ann"})
			for len(model.mail) > 0 && model.has["gem"] < 10 {
				l := &model.mail[0]
				fits := min(10-model.has["gem"], int(l.Quantity))
				model.has["gem"] += fits
				if l.Quantity -= uint64(fits); l.Quantity == 0 {
					model.mail = model.mail[1:]
				}
			}
		case 5:
			if rnd.IntN(40) == 0 {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e, r = openDir(t, dir, now)
			}
		}
		v, err := r.Player(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		var live []kuji.Letter
		for _, l := range v.Mail {
			if l.Until > now.Now().UnixMilli() {
				live = append(live, l)
			}
		}
		got := items(t, r, "ann")
		if int(got["coin"]) != model.has["coin"] || int(got["gem"]) != model.has["gem"] || fmt.Sprint(live) != fmt.Sprint(model.mail) {
			t.Fatalf("step %d: %v and %v, want %v", i, got, live, model)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Dir(dir, "test", verify.Options{}); err != nil {
		t.Error(err)
	}
}

// TestMostInGroups: whatever groups draw, give, take and move, nobody holds more than the most, each group happens
// whole or not at all, and balances are the sums of what events say. What is mailed is what comes out again.
func TestMostInGroups(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	dir := t.TempDir()
	e, r := openDir(t, dir, now)
	if _, err := r.Apply(t.Context(), parse(t, fmt.Sprintf(mostCatalog, 10))); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	players, all := []string{"ann", "bob", "cid"}, []string{"crate", "coin", "gem", "pearl"}
	for i := range 4000 {
		now.Add(time.Duration(rnd.IntN(2)*rnd.IntN(600_000)) * time.Millisecond)
		var members []kuji.Request
		for range 1 + rnd.IntN(5) {
			from := rnd.IntN(3)
			player, some := players[from], []kuji.Stack{{Item: all[rnd.IntN(4)], Quantity: 1 + uint64(rnd.IntN(9))}}
			switch rnd.IntN(8) {
			case 0, 1:
				members = append(members, kuji.Grant{Player: player, Items: some})
			case 2, 3:
				members = append(members, kuji.Consume{Player: player, Items: some})
			case 4:
				members = append(members, kuji.Transfer{From: player, To: players[(from+1)%3], Items: some})
			case 5:
				members = append(members, kuji.Progress{Player: player, Event: "wins"})
			default:
				members = append(members, kuji.Draw{Player: player, Pool: []string{"crates", "coins", "gems", "sell"}[rnd.IntN(4)], Count: 1 + rnd.IntN(2)})
			}
		}
		if rnd.IntN(10) == 0 {
			do(t, r, kuji.Collect{Player: players[rnd.IntN(3)]})
		}
		do(t, r, kuji.Atomic{Members: members})
		for _, player := range players {
			if rnd.IntN(20) > 0 {
				continue
			}
			if v, err := r.Player(t.Context(), player); err == nil {
				for _, s := range v.Items {
					if s.Item != "ore" && s.Quantity > 10 {
						t.Fatalf("step %d: %s holds %v", i, player, v.Items)
					}
				}
			}
		}
	}
	balances := map[string]map[string]uint64{}
	for _, player := range players {
		balances[player] = items(t, r, player)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	sums := map[string]map[string]uint64{"ann": {}, "bob": {}, "cid": {}}
	statuses := map[string]int{}
	rep, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) {
		statuses[rec.Status]++
		for _, c := range rec.Changes {
			if sums[c.Player][c.Item] += uint64(c.Delta); sums[c.Player][c.Item] == 0 {
				delete(sums[c.Player], c.Item)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rep.Epochs {
		if e.Undecided != "" {
			t.Errorf("epoch %d: %s", e.Epoch, e.Undecided)
		}
	}
	if !reflect.DeepEqual(sums, balances) {
		t.Errorf("players hold %v; events say %v", balances, sums)
	}
	for _, s := range []string{"ok", "most_reached", "insufficient_items", "nothing_to_collect"} {
		if statuses[s] < 20 {
			t.Errorf("only %d commands ended as %s: %v", statuses[s], s, statuses)
		}
	}
}

// TestGroupSaysWhoseMailbox: in a group, a transfer to somebody who is full says whose mailbox got the rest.
func TestGroupSaysWhoseMailbox(t *testing.T) {
	r := realmAt(t, handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)), `{kuji: 1, items: {box: {most: 5, beyond: mail}}}`)
	boxes := func(n uint64) []kuji.Stack { return []kuji.Stack{{Item: "box", Quantity: n}} }
	for _, p := range []string{"ann", "bob"} {
		do(t, r, kuji.Grant{Player: p, Items: boxes(5)})
	}
	res := do(t, r, kuji.Atomic{Members: []kuji.Request{
		kuji.Grant{Player: "ann", Items: boxes(1)}, kuji.Transfer{From: "ann", To: "bob", Items: boxes(2)}, kuji.Grant{Player: "bob", Items: boxes(3)},
	}})
	got := ""
	for _, m := range res.Members {
		got += fmt.Sprint(m.Beyond())
	}
	if want := "[{box 1 mailed }][{box 2 mailed bob}][{box 3 mailed }]"; got != want {
		t.Errorf("beyond the most were %s, want %s", got, want)
	}
}
