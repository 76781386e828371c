package enginetest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

const familyCatalog = `
kuji: 1
items: {wood: {family: box}, gold: {family: box}, key: {}, gem: {}, iron: {family: box}, red: {family: dye}, blue: {family: dye}}
counters:
  opened: {of: {spends: box}}
  kinds: {of: {gains: box}, distinct: 10}
quests:
  hoarder: {claim: automatic, when: {holds: {box: 10}}, needs: {kinds: 1}, reward: {items: {key: 7}}}
pools:
  open: {price: {box: 2}, entries: [{id: e, weight: 1, reward: {items: {wood: 1}}}]}
  both: {price: {gold: 1, box: 2}, entries: [{id: e, weight: 1}]}
  either: {price: [{key: 1}, {box: 1}], entries: [{id: e, weight: 1}]}
  paint: {price: {dye: 1, box: 1}, bundles: [{draws: 3, price: {dye: 2}}], entries: [{id: e, weight: 1}]}
  rich: {when: {holds: {box: 3}}, entries: [{id: e, weight: 1}]}
  poor: {when: {lacks: [box]}, entries: [{id: e, weight: 1}]}
  lucky: {entries: [{id: no, weight: 1}, {id: yes, weight: 0, luck: {item: box, weights: [{from: 4, weight: 1000000000000000000}]}}]}
`

// stacksOf reads quantities such as "2 wood, 1 gold".
func stacksOf(text string) (all []kuji.Stack) {
	for one := range strings.SplitSeq(text, ", ") {
		var s kuji.Stack
		if _, err := fmt.Sscan(one, &s.Quantity, &s.Item); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// TestFamily: a family stands for its items in a price, a condition, luck, counters and quests, and nowhere else.
func TestFamily(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, familyCatalog)
	for i, c := range []struct{ has, pool, pay, status, subject, paid string }{
		{"5 wood", "open", "", "ok", "", "2 wood"},
		{"1 iron, 5 gold, 1 wood", "open", "", "ok", "", "1 wood, 1 gold"},
		{"1 iron, 5 gold, 1 wood", "open", "gold", "ok", "", "2 gold"},
		{"1 iron, 5 gold, 1 wood", "open", "box", "ok", "", "1 wood, 1 gold"},
		{"1 iron, 5 gold", "open", "iron", "insufficient_items", "box", ""},
		{"5 gold", "open", "key", "price_not_offered", "key", ""},
		{"1 iron", "open", "", "insufficient_items", "box", ""},
		{"3 gold", "both", "", "ok", "", "3 gold"},
		{"2 gold, 1 wood", "both", "", "ok", "", "2 gold, 1 wood"},
		{"2 gold, 5 wood", "both", "gold", "insufficient_items", "box", ""},
		{"2 gold", "both", "", "insufficient_items", "box", ""},
		{"2 wood", "both", "", "insufficient_items", "gold", ""},
		{"1 key, 1 iron", "either", "", "ok", "", "1 key"},
		{"1 key, 1 iron", "either", "iron", "ok", "", "1 iron"},
		{"1 key, 1 iron", "either", "box", "ok", "", "1 iron"},
		{"1 key, 1 iron", "either", "wood", "insufficient_items", "box", ""},
		{"1 blue, 1 iron", "paint", "", "ok", "", "1 blue, 1 iron"},
		{"1 red, 1 blue, 1 wood, 1 gold", "paint", "blue", "ok", "", "1 blue, 1 wood"},
		{"2 gold, 1 wood", "rich", "", "ok", "", ""},
		{"2 gold", "rich", "", "not_eligible", "rich", ""},
		{"2 key", "poor", "", "ok", "", ""},
		{"1 iron", "poor", "", "not_eligible", "poor", ""},
	} {
		player := fmt.Sprint("p", i)
		do(t, r, kuji.Grant{Player: player, Items: stacksOf(c.has)})
		before := items(t, r, player)
		res := do(t, r, kuji.Draw{Player: player, Pool: c.pool, Pay: c.pay})
		paid := map[string]uint64{}
		for _, s := range stacksOf(c.paid) {
			paid[s.Item] = s.Quantity
		}
		for _, o := range res.Outcomes {
			for _, s := range o.Items {
				before[s.Item] += s.Quantity
			}
		}
		for item, q := range paid {
			if before[item] -= q; before[item] == 0 {
				delete(before, item)
			}
		}
		got := map[string]uint64{}
		for _, s := range res.Paid {
			got[s.Item] = s.Quantity
		}
		if res.Status.String() != c.status || res.Subject != c.subject || !reflect.DeepEqual(got, paid) {
			t.Errorf("%v: %v, paid %v", c, res, res.Paid)
		}
		if after := items(t, r, player); !reflect.DeepEqual(after, before) {
			t.Errorf("%v: %s holds %v, want %v", c, player, after, before)
		}
	}
	// A failure says how much there is of what the price asks for.
	res := do(t, r, kuji.Draw{Player: "p9", Pool: "both", Pay: "gold"})
	if want := []kuji.Lack{{Item: "box", Have: 1, Need: 2}}; !reflect.DeepEqual(res.Lacks, want) {
		t.Errorf("lacks %v, want %v", res.Lacks, want)
	}
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("3 red, 2 gold, 2 iron, 4 wood")})
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "paint", Count: 3}); res.Status != kuji.OK || !reflect.DeepEqual(res.Paid, stacksOf("2 red")) {
		t.Errorf("a bundle: %v, paid %v", res, res.Paid)
	}
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "lucky"}); len(res.Outcomes) != 1 || res.Outcomes[0].Entry != "yes" {
		t.Errorf("luck: %+v", res)
	}
	do(t, r, kuji.Draw{Player: "ann", Pool: "open", Count: 2})
	if got := counts(t, r, "ann"); got["opened"] != 4 || got["kinds"] != 3 {
		t.Errorf("counted %v", got)
	}
	if got := items(t, r, "ann"); got["key"] != 0 {
		t.Errorf("the quest has fired with 8 boxes: %v", got)
	}
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("4 iron")})
	if got := items(t, r, "ann"); got["key"] != 7 {
		t.Errorf("the quest has not fired: %v", got)
	}
	for _, req := range []kuji.Request{
		kuji.Grant{Player: "ann", Items: stacksOf("1 box")},
		kuji.Consume{Player: "ann", Items: stacksOf("1 box")},
		kuji.Transfer{From: "ann", To: "bob", Items: stacksOf("1 box")},
	} {
		if _, err := r.Do(t.Context(), req); kuji.CodeOf(err) != kuji.CodeNotFound {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if _, err := r.Balance(t.Context(), "ann", "box"); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("the balance of a family: %v", err)
	}
}

// TestFamilyIsFixed: what the draws of a group give pays for none of its draws, even if it is of the same family.
func TestFamilyIsFixed(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, familyCatalog)
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("4 iron")})
	two := kuji.Atomic{Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "open"}, kuji.Draw{Player: "ann", Pool: "open"}}}
	res := do(t, r, two)
	if res.Status != kuji.OK || !reflect.DeepEqual(res.Members[1].Paid, stacksOf("2 iron")) {
		t.Errorf("got %+v", res)
	}
	if got, want := items(t, r, "ann"), (map[string]uint64{"wood": 2}); !reflect.DeepEqual(got, want) {
		t.Errorf("ann holds %v, want %v", got, want)
	}
	if res := do(t, r, two); res.Status == kuji.OK {
		t.Errorf("what the first draw gives has paid for the second: %+v", res)
	}
}

// TestFamilyIds: a family has an id of its own, over all catalogs of a realm.
func TestFamilyIds(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, familyCatalog)
	for _, c := range []struct{ yaml, want string }{
		{"kuji: 1\nitems: {box: {}}\n", "an earlier catalog has a family with this id"},
		{"kuji: 1\nitems: {wood: {family: gem}}\n", "an earlier catalog has an item with this id"},
	} {
		if _, err := r.Apply(t.Context(), parse(t, c.yaml)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.yaml, err)
		}
	}
	// An item can change its family, and a family can come back.
	for _, yaml := range []string{"kuji: 1\nitems: {wood: {family: dye}}\n", familyCatalog} {
		if _, err := r.Apply(t.Context(), parse(t, yaml)); err != nil {
			t.Error(err)
		}
	}
}

// TestFamilyPays: many draws whose prices name families, against a plain model, and the verifier.
func TestFamilyPays(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	dir := t.TempDir()
	e, r := openDir(t, dir, now)
	if _, err := r.Apply(t.Context(), parse(t, familyCatalog)); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(3, 5))
	boxes, have := []string{"wood", "gold", "iron"}, map[string]uint64{}
	for i := range 2000 {
		if rnd.IntN(2) == 0 {
			item := boxes[rnd.IntN(len(boxes))]
			do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: item, Quantity: 3}}})
			have[item] += 3
			continue
		}
		pay := append(boxes, "", "box")[rnd.IntN(5)]
		count := 1 + rnd.IntN(3)
		gold, need := uint64(count), uint64(2*count)
		want := map[string]uint64{"gold": gold}
		ok := have["gold"] >= gold
		for _, item := range boxes {
			if pay != "" && pay != "box" && pay != item {
				continue
			}
			rest := have[item]
			if item == "gold" {
				rest -= min(rest, gold)
			}
			n := min(rest, need)
			want[item], need = want[item]+n, need-n
		}
		res := do(t, r, kuji.Draw{Player: "ann", Pool: "both", Count: count, Pay: pay})
		if (res.Status == kuji.OK) != (ok && need == 0) {
			t.Fatalf("step %d: %d draws with %v, paid with %q: %v", i, count, have, pay, res)
		}
		if res.Status == kuji.OK {
			for item, q := range want {
				have[item] -= q
			}
		}
		got := items(t, r, "ann")
		for _, item := range boxes {
			if got[item] != have[item] {
				t.Fatalf("step %d: %d draws, paid with %q: %v, want %v", i, count, pay, got, have)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Dir(dir, "test", verify.Options{}); err != nil {
		t.Error(err)
	}
}

// TestFamilyInRisingPrice: a price that rises with a counter can name a family too.
func TestFamilyInRisingPrice(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, `
kuji: 1
items: {wood: {family: box}, iron: {family: box}}
counters: {opened: {of: {draws: open}}}
pools:
  open:
    price: {box: 1}
    price_by: {counter: opened, prices: [{from: 1, price: {box: 2}}]}
    entries: [{id: e, weight: 1}]
`)
	do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "wood", Quantity: 2}, {Item: "iron", Quantity: 2}}})
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "open", Count: 2}); res.Status != kuji.OK {
		t.Fatal(res)
	}
	if got := items(t, r, "ann"); len(got) != 1 || got["iron"] != 1 {
		t.Errorf("after one box and then two: %v", got)
	}
}
