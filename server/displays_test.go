package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

const displayCatalog = `
kuji: 1
name: {en: Shop, de: Laden}
rarities: {common: {name: Common}, epic: {name: {en: Epic, de: Episch}}}
items:
  gem: {kind: currency, name: {en: Gem, de: Stein}, description: A stone., icon: /gem.png, metadata: {power: 9.50}}
  sword: {name: Sword, rarity: epic}
  dust: {}
pools:
  free: {name: {en: Wheel, de: Rad}, entries: [{id: x, weight: 1, reward: {items: {gem: 1, sword: 1}}}]}
  standard: {internal: true, rarity: common, entries: [{id: x, weight: 1, reward: {items: {dust: 1}}}]}
counters: {wins: {name: {en: Wins, de: Siege}}}
quests: {win: {name: {en: Win, de: Gewinne}, needs: {wins: 1}, reward: {items: {gem: 1}}}}
rounds: {duel: {ticket: {}, winner: {reward: {items: {gem: 1}}}}}
`

// TestListDisplays reads what people see in a language, page by page.
func TestListDisplays(t *testing.T) {
	f := start(t, server.Options{})
	c := newClient("", h1(t), f.url)
	list := func(q *kujiv1.ListDisplaysRequest) string {
		t.Helper()
		q.Realm = "shop"
		resp, err := c.reward.ListDisplays(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return string(contract.Form{}.AppendJSON(nil, resp))
	}
	if _, err := f.engine.Realm("shop"); err != nil {
		t.Fatal(err)
	}
	if got := list(&kujiv1.ListDisplaysRequest{}); got != "{}" {
		t.Errorf("without a catalog: %s", got)
	}
	applyTo(t, f, "shop", displayCatalog)
	want := `{"catalog_version":1,"name":"Laden","languages":["en","de"],"rarities":[{"id":"common","name":"Common"},{"id":"epic","name":"Episch"}],"displays":[` +
		`{"kind":"item","id":"gem","display":{"name":"Stein","description":"A stone.","icon":"/gem.png","metadata":[{"key":"power","value":"9.50"}]},"item_kind":"currency"},` +
		`{"kind":"item","id":"sword","display":{"name":"Sword","rarity":"epic"},"item_kind":"item"},` +
		`{"kind":"item","id":"dust","item_kind":"item"},` +
		`{"kind":"pool","id":"free","display":{"name":"Rad"}},` +
		`{"kind":"pool","id":"standard","display":{"rarity":"common"},"internal":true},` +
		`{"kind":"counter","id":"wins","display":{"name":"Siege"}},` +
		`{"kind":"quest","id":"win","display":{"name":"Gewinne"}},` +
		`{"kind":"round","id":"duel"}],"display_count":8}`
	if got := list(&kujiv1.ListDisplaysRequest{Language: "de-AT"}); got != want {
		t.Errorf("all in German:\n%s\nwant\n%s", got, want)
	}
	if got, want := list(&kujiv1.ListDisplaysRequest{Offset: 5, Limit: 2, Kinds: []kujiv1.DisplayKind{kujiv1.DisplayKind_DISPLAY_KIND_QUEST, kujiv1.DisplayKind_DISPLAY_KIND_ITEM}}), `{"catalog_version":1,"name":"Shop","display_count":4}`; got != want {
		t.Errorf("after the end: %s, want %s", got, want)
	}
	if got, want := list(&kujiv1.ListDisplaysRequest{Offset: 1, Limit: 2, Kinds: []kujiv1.DisplayKind{kujiv1.DisplayKind_DISPLAY_KIND_QUEST, kujiv1.DisplayKind_DISPLAY_KIND_ITEM}}), `{"catalog_version":1,"name":"Shop","displays":[`+
		`{"kind":"item","id":"sword","display":{"name":"Sword","rarity":"epic"},"item_kind":"item"},{"kind":"item","id":"dust","item_kind":"item"}],"display_count":4,"next_offset":3}`; got != want {
		t.Errorf("a page: %s, want %s", got, want)
	}
	for field, q := range map[string]*kujiv1.ListDisplaysRequest{
		"language": {Language: "de_AT"}, "limit": {Limit: 10001}, "kinds[1]": {Kinds: []kujiv1.DisplayKind{1, 9}}, "kinds[0]": {Kinds: []kujiv1.DisplayKind{0}},
		"language: ": {Language: strings.Repeat("a", 65)}, "kinds: ": {Kinds: slices.Repeat([]kujiv1.DisplayKind{1}, 1000)},
	} {
		if _, err := c.reward.ListDisplays(t.Context(), q); connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), field) {
			t.Errorf("%v: %v", field, err)
		}
	}
}

// TestDisplaysPages: pages end early where texts are long, and together have everything once.
func TestDisplaysPages(t *testing.T) {
	f := start(t, server.Options{})
	c := newClient("", h1(t), f.url)
	var b strings.Builder
	b.WriteString("kuji: 1\nitems:\n")
	for i := range 1500 {
		fmt.Fprintf(&b, "  i%d: {description: %s}\n", i, strings.Repeat("d", 2000))
	}
	applyTo(t, f, "default", b.String())
	next, pages := uint32(0), 0
	for i := 0; i == 0 || next > 0; pages++ {
		resp, err := c.reward.ListDisplays(t.Context(), &kujiv1.ListDisplaysRequest{Offset: next, Limit: 10000})
		if err != nil {
			t.Fatal(err)
		}
		if size := proto.Size(resp); size > 1<<20+4096 {
			t.Errorf("a page of %d bytes", size)
		}
		for _, d := range resp.GetDisplays() {
			if d.GetId() != fmt.Sprint("i", i) {
				t.Fatalf("display %d is %s", i, d.GetId())
			}
			i++
		}
		if next = resp.GetNextOffset(); next == 0 && i != 1500 {
			t.Errorf("%d displays in all", i)
		}
	}
	if pages != 3 {
		t.Errorf("%d pages", pages)
	}
}

// TestDisplaysOfNames: answers with names have displays in a language, and what has only a name keeps its form.
func TestDisplaysOfNames(t *testing.T) {
	f := start(t, server.Options{})
	c := newClient("", h1(t), f.url)
	applyTo(t, f, "default", displayCatalog)
	pool, err := c.reward.GetPool(t.Context(), &kujiv1.GetPoolRequest{Pool: "free", Names: true, Language: "de"})
	if err != nil {
		t.Fatal(err)
	}
	if got := pool.GetPool(); got.GetName() != "Wheel" || got.GetDisplay().GetName() != "Rad" || len(pool.GetItems()) != 2 || pool.GetItems()[0].GetDisplay().GetName() != "Stein" || pool.GetItems()[0].GetName() != "Gem" {
		t.Errorf("a pool with names: %v", pool)
	}
	if pool, err := c.reward.GetPool(t.Context(), &kujiv1.GetPoolRequest{Pool: "free", Names: true}); err != nil || pool.GetPool().GetDisplay() != nil || pool.GetItems()[0].GetDisplay() != nil {
		t.Errorf("a pool in no language: %v, %v", pool, err)
	}
	if _, err := c.reward.Progress(t.Context(), &kujiv1.ProgressRequest{Player: "ann", Event: "wins"}); err != nil {
		t.Fatal(err)
	}
	quests, err := c.reward.ListQuests(t.Context(), &kujiv1.ListQuestsRequest{Player: "ann", Names: true, Language: "de"})
	if err != nil || quests.GetQuests()[0].GetDisplay().GetName() != "Gewinne" || quests.GetCounters()[0].GetDisplay().GetName() != "Siege" || quests.GetItems()[0].GetDisplay().GetName() != "Stein" {
		t.Errorf("quests: %v, %v", quests, err)
	}
	if _, err := c.reward.Draw(t.Context(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"}); err != nil {
		t.Fatal(err)
	}
	player, err := c.reward.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: "ann", Names: true, Language: "en"})
	if err != nil || player.GetPlayer().GetCounters()[0].GetDisplay().GetName() != "Wins" || player.GetItems()[1].GetDisplay().GetRarity() != "epic" {
		t.Errorf("a player: %v, %v", player, err)
	}
	whole, err := c.reward.GetCatalog(t.Context(), &kujiv1.GetCatalogRequest{Language: "de"})
	if err != nil || whole.GetItems()[0].GetDisplay().GetName() != "Stein" || whole.GetItems()[2].GetDisplay() != nil {
		t.Errorf("the catalog: %v, %v", whole, err)
	}
	if whole, err := c.reward.GetCatalog(t.Context(), &kujiv1.GetCatalogRequest{}); err != nil || whole.GetItems()[0].GetDisplay() != nil {
		t.Errorf("the catalog in no language: %v, %v", whole, err)
	}
	for name, err := range map[string]error{
		"GetPool": func() error {
			_, err := c.reward.GetPool(t.Context(), &kujiv1.GetPoolRequest{Pool: "free", Language: "d e"})
			return err
		}(),
		"GetPlayer": func() error {
			_, err := c.reward.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: "ann", Language: "ö"})
			return err
		}(),
		"ListQuests": func() error {
			_, err := c.reward.ListQuests(t.Context(), &kujiv1.ListQuestsRequest{Language: "<"})
			return err
		}(),
		"GetCatalog": func() error {
			_, err := c.reward.GetCatalog(t.Context(), &kujiv1.GetCatalogRequest{Language: "<"})
			return err
		}(),
	} {
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "language") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhoSeesDisplays: players see all displays; a key with pools sees those of its pools, and no items of others.
func TestWhoSeesDisplays(t *testing.T) {
	keys, k := playerKeys(t)
	f := start(t, server.Options{Keys: keys})
	applyTo(t, f, "default", displayCatalog)
	for name, want := range map[string]string{
		sign(t, jose.EdDSA, k.private, "k1", good("ann")): "gem sword dust free standard wins win duel",
		"only-read":       "gem sword dust free standard wins win duel",
		"admin-here":      "gem sword dust free standard wins win duel",
		"free-pool":       "free",
		"other-pool":      "standard",
		"admin-elsewhere": "permission_denied",
		"only-draw":       "permission_denied",
		"nobody":          "unauthenticated",
	} {
		resp, err := newClient("", h1(t), f.url, withKey(name)).reward.ListDisplays(t.Context(), &kujiv1.ListDisplaysRequest{})
		var ids []string
		for _, d := range resp.GetDisplays() {
			ids = append(ids, d.GetId())
		}
		got := strings.Join(ids, " ")
		if err != nil {
			got = connect.CodeOf(err).String()
		} else if len(resp.GetRarities()) != 2 {
			t.Errorf("%.20s: rarities %v", name, resp.GetRarities())
		}
		if got != want {
			t.Errorf("%.20s sees %q, want %q: %v", name, got, want, err)
		}
	}
}
