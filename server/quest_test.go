package server_test

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

const questCatalog = `
kuji: 1
items: {gold: {kind: currency, name: Gold}, gem: {}, medal: {}}
pools:
  open: {entries: [{id: e, weight: 1}]}
  wheel: {price: {gold: 1}, free: {per: day, draws: 2}, entries: [{id: e, weight: 1}]}
  chest: {internal: true, entries: [{id: medal, weight: 1, reward: {items: {medal: 1}}}]}
  late: {when: {counters: {wins: 3}, quests: {hunter: 1}}, entries: [{id: z, weight: 1}, {id: e, weight: 1, luck: {counter: wins, weights: [{from: 2, weight: 5}]}}]}
counters:
  wins: {}
  bosses: {of: {progress: boss}, distinct: 10}
  drawn: {of: {draws: open}}
  raid: {for: realm, of: {progress: damage}}
quests:
  hunter:
    name: The hunter
    tiers:
      - {needs: {bosses: 1}, reward: {items: {gold: 100}}}
      - {needs: {bosses: 2}, reward: {pool: chest}}
  winner: {claim: automatic, needs: {wins: 5}, reward: {items: {gem: 5}}}
  drawer: {claim: automatic, needs: {drawn: 2}, reward: {items: {gem: 1}}}
`

// questRealm is a realm of a server with the catalog above.
func questRealm(t testing.TB, f *fixture, name string) *kuji.Realm {
	t.Helper()
	return applyTo(t, f, name, questCatalog)
}

// applyTo puts a catalog in force in a realm of a server.
func applyTo(t testing.TB, f *fixture, realm, source string) *kuji.Realm {
	t.Helper()
	r, err := f.engine.Realm(realm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestQuests: progress and claims work alone, in groups, batches and streams, by each protocol, once for each
// request id. A read shows the whole page.
func TestQuests(t *testing.T) {
	f := start(t, server.Options{})
	for i, c := range clients(t, f.url) {
		t.Run(c.name, func(t *testing.T) {
			realm := fmt.Sprint("quests-", i)
			questRealm(t, f, realm)
			progress := func(id, event, key string, n uint64) *kujiv1.Result {
				t.Helper()
				resp, err := c.reward.Progress(t.Context(), &kujiv1.ProgressRequest{Realm: realm, RequestId: id, Player: "ann", Event: event, Key: key, N: n, Reason: "played"})
				if err != nil {
					t.Fatal(err)
				}
				return resp.GetResult()
			}
			claim := func(id string, tiers uint32) *kujiv1.Result {
				t.Helper()
				resp, err := c.reward.Claim(t.Context(), &kujiv1.ClaimRequest{Realm: realm, RequestId: id, Player: "ann", Quest: "hunter", Tiers: tiers})
				if err != nil {
					t.Fatal(err)
				}
				return resp.GetResult()
			}
			batch := func(all ...*kujiv1.Command) *kujiv1.BatchResponse {
				t.Helper()
				resp, err := c.reward.Batch(t.Context(), &kujiv1.BatchRequest{Realm: realm, Commands: all})
				if err != nil {
					t.Fatal(err)
				}
				return resp
			}
			if res := claim("", 0); res.GetStatus() != kujiv1.Status_STATUS_NOT_REACHED || res.GetSubject() != "hunter" {
				t.Errorf("before anything: %v", res)
			}
			first := progress("p-1", "boss", "hydra", 0)
			if again := progress("p-1", "boss", "hydra", 0); first.GetStatus() != kujiv1.Status_STATUS_OK || !again.GetReplayed() {
				t.Errorf("%v, and again %v", first, again)
			}
			want := []*kujiv1.Claimed{{Quest: "hunter", Tier: 1, Items: []*kujiv1.Stack{{Item: "gold", Quantity: 100}}}}
			if res := claim("c-1", 0); !equalClaims(res.GetClaims(), want) {
				t.Errorf("claimed %v", res)
			}
			one := batch(
				&kujiv1.Command{RequestId: "c-1", Command: &kujiv1.Command_Claim{Claim: &kujiv1.Claim{Player: "ann", Quest: "hunter"}}},
				&kujiv1.Command{Command: &kujiv1.Command_Progress{Progress: &kujiv1.Progress{Player: "ann", Event: "wins", N: 5}}, Metadata: "match 7"},
				&kujiv1.Command{Command: &kujiv1.Command_SetCounter{SetCounter: &kujiv1.SetCounter{Counter: "raid", Value: 7}}, Reason: "it goes on"},
				&kujiv1.Command{Command: &kujiv1.Command_SetCounter{SetCounter: &kujiv1.SetCounter{Player: "ann", Counter: "raid", Value: 7}}, Reason: "x"},
				&kujiv1.Command{Command: &kujiv1.Command_Atomic{Atomic: &kujiv1.Atomic{Members: []*kujiv1.Member{
					{Command: &kujiv1.Member_Progress{Progress: &kujiv1.Progress{Player: "ann", Event: "boss", Key: "kraken"}}},
					{Command: &kujiv1.Member_Claim{Claim: &kujiv1.Claim{Player: "ann", Quest: "hunter", Tiers: 1}}},
					{Command: &kujiv1.Member_Progress{Progress: &kujiv1.Progress{Player: "bob", Event: "wins", N: 9}}},
				}}}},
			).GetResults()
			if !one[0].GetReplayed() || !equalClaims(one[0].GetClaims(), want) {
				t.Errorf("the claim again: %v", one[0])
			}
			if !equalClaims(one[1].GetClaims(), []*kujiv1.Claimed{{Quest: "winner", Tier: 1, Items: []*kujiv1.Stack{{Item: "gem", Quantity: 5}}}}) {
				t.Errorf("what claims itself: %v", one[1])
			}
			if one[2].GetStatus() != kujiv1.Status_STATUS_OK || one[3].GetStatus() != kujiv1.Status_STATUS_REFUSED || one[3].GetError().GetViolations()[0].GetField() != "player" {
				t.Errorf("the realm's counter: %v, and %v", one[2], one[3])
			}
			medal := []*kujiv1.Claimed{{Quest: "hunter", Tier: 2, Items: []*kujiv1.Stack{{Item: "medal", Quantity: 1}}, Via: []string{"chest/medal"}}}
			bobs := []*kujiv1.Claimed{{Quest: "winner", Tier: 1, Player: "bob", Items: []*kujiv1.Stack{{Item: "gem", Quantity: 5}}}}
			if !equalClaims(one[4].GetMembers()[1].GetClaims(), medal) || !equalClaims(one[4].GetClaims(), bobs) {
				t.Errorf("in a group: %v", one[4])
			}
			if res := claim("", 0); res.GetStatus() != kujiv1.Status_STATUS_ALREADY_CLAIMED {
				t.Errorf("once more: %v", res)
			}
			checkQuestPage(t, c, realm)
			if _, err := c.reward.Progress(t.Context(), &kujiv1.ProgressRequest{Realm: realm, Player: "ann", Event: "none"}); connect.CodeOf(err) != connect.CodeNotFound {
				t.Errorf("an event that nothing counts: %v", err)
			}
			if _, err := c.reward.Claim(t.Context(), &kujiv1.ClaimRequest{Realm: realm, Player: "ann", Quest: "hunter", Tiers: 1001}); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("too many tiers: %v", err)
			}
			if resp, err := c.admin.SetCounter(t.Context(), &kujiv1.SetCounterRequest{Realm: realm, Player: "ann", Counter: "wins", Value: 2, Reason: "ticket"}); err != nil || resp.GetResult().GetStatus() != kujiv1.Status_STATUS_OK {
				t.Errorf("a counter set: %v, %v", resp, err)
			}
			if _, err := c.admin.SetCounter(t.Context(), &kujiv1.SetCounterRequest{Realm: realm, Player: "ann", Counter: "wins"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("a counter set without a reason: %v", err)
			}
		})
	}
}

func equalClaims(a, b []*kujiv1.Claimed) bool {
	return proto.Equal(&kujiv1.Result{Claims: a}, &kujiv1.Result{Claims: b})
}

// checkQuestPage reads what ann sees after the requests above.
func checkQuestPage(t *testing.T, c client, realm string) {
	t.Helper()
	page, err := c.reward.ListQuests(t.Context(), &kujiv1.ListQuestsRequest{Realm: realm, Player: "ann", Names: true})
	if err != nil {
		t.Fatal(err)
	}
	if page.GetPosition() == 0 {
		t.Error("no position")
	}
	page.Position = 0
	got := string(contract.Form{}.AppendJSON(nil, page))
	want := `{"quests":[` +
		`{"id":"hunter","name":"The hunter","tiers":[{"needs":[{"counter":"bosses","value":2,"min":1,"max":9007199254740991}],"reward":{"items":[{"item":"gold","min":100,"max":100}]}},` +
		`{"needs":[{"counter":"bosses","value":2,"min":2,"max":9007199254740991}],"reward":{"draws":[{"pool":"chest","min":1,"max":1}]}}],"player":{"quest":"hunter","open":true,"tiers":2,"claimed":2}},` +
		`{"id":"winner","automatic":true,"tiers":[{"needs":[{"counter":"wins","value":5,"min":5,"max":9007199254740991}],"reward":{"items":[{"item":"gem","min":5,"max":5}]}}],"player":{"quest":"winner","open":true,"tiers":1,"claimed":1}},` +
		`{"id":"drawer","automatic":true,"tiers":[{"needs":[{"counter":"drawn","min":2,"max":9007199254740991}],"reward":{"items":[{"item":"gem","min":1,"max":1}]}}],` +
		`"player":{"quest":"drawer","open":true,"tiers":1,"needs":[{"counter":"drawn","min":2,"max":9007199254740991}]}}],` +
		`"quest_count":3,"counters":[{"counter":"wins","value":5},{"counter":"bosses","value":2},{"counter":"raid","value":7,"realm":true}],` +
		`"free":[{"per":"day","draws":2,"left":2,"pool":"wheel"}],"catalog_version":1,"items":[{"id":"gold","kind":"currency","name":"Gold"},{"id":"gem","kind":"item"}]}`
	if got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	some, err := c.reward.ListQuests(t.Context(), &kujiv1.ListQuestsRequest{Realm: realm, Player: "ann", QuestOffset: 1, QuestLimit: 1})
	if err != nil || len(some.GetQuests()) != 1 || some.GetQuests()[0].GetId() != "winner" || some.GetQuestCount() != 3 {
		t.Errorf("the second quest: %v, %v", some, err)
	}
	player, err := c.reward.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Realm: realm, Player: "ann"})
	if err != nil || len(player.GetPlayer().GetQuests()) != 3 || len(player.GetPlayer().GetCounters()) != 3 || player.GetPlayer().GetQuests()[0].GetClaimed() != 2 {
		t.Errorf("the player: %v, %v", player, err)
	}
	pool, err := c.reward.GetPool(t.Context(), &kujiv1.GetPoolRequest{Realm: realm, Pool: "late"})
	when, luck := pool.GetPool().GetWhen(), pool.GetPool().GetEntries()
	if err != nil || len(luck) != 2 || luck[1].GetLuck().GetCounter() != "wins" || when.GetCounters()[0].GetMin() != 3 || when.GetQuests()[0].GetTiers() != 1 {
		t.Errorf("the pool: %v, %v", pool, err)
	}
}

// TestQuestsInStreams: draws of a stream say which quests they reached, and so does the feed, to each player
// theirs.
func TestQuestsInStreams(t *testing.T) {
	f := startWith(t, kuji.Options{}, server.Options{}) // the feed waits until an event survives a crash
	r := questRealm(t, f, "stream")
	c := newClient("grpc", h2c(t), f.url, connect.WithGRPC())
	s, err := c.reward.StreamDraws(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&kujiv1.StreamDrawsRequest{Realm: "stream", Players: []string{"ann", "bob", "ann"}, Pools: []string{"open"}}); err != nil {
		t.Fatal(err)
	}
	resp, err := s.Receive()
	if err != nil || len(resp.GetClaims()) != 1 || resp.GetClaims()[0].GetDraw() != 2 || resp.GetClaims()[0].GetClaimed().GetQuest() != "drawer" {
		t.Errorf("a stream: %v, %v", resp, err)
	}
	group := kuji.Atomic{Members: []kuji.Request{
		kuji.Progress{Player: "ann", Event: "wins", N: 5}, kuji.Progress{Player: "bob", Event: "wins", N: 5},
	}}
	if _, err := r.Do(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	from := uint64(1)
	feed, err := c.reward.StreamEvents(t.Context(), &kujiv1.StreamEventsRequest{Realm: "stream", Player: "bob", From: &from})
	if err != nil {
		t.Fatal(err)
	}
	for feed.Receive() {
		for _, e := range feed.Msg().GetEvents() {
			if e.GetKind() != "atomic" {
				continue
			}
			if len(e.GetClaims()) != 1 || e.GetClaims()[0].GetPlayer() != "bob" || len(e.GetMembers()) != 1 || strings.Contains(e.String(), "ann") {
				t.Errorf("bob sees %v", e)
			}
			return
		}
	}
	t.Error(feed.Err())
}
