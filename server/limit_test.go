package server_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestLimitViews: players, pools and results say the same of a limit, in every protocol.
func TestLimitViews(t *testing.T) {
	ctx := t.Context()
	f := start(t, server.Options{})
	once := func(left uint64) *kujiv1.Limit {
		return &kujiv1.Limit{Per: kujiv1.LimitPeriod_LIMIT_PERIOD_FOREVER, Draws: 1, Left: left}
	}
	for _, c := range clients(t, f.url) {
		player := "player of " + c.name
		pool := func(want *kujiv1.Limit) {
			t.Helper()
			got, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "once", Player: player})
			if err != nil || len(got.GetPlayerLimits()) != 1 || !proto.Equal(got.GetPlayerLimits()[0], want) {
				t.Errorf("%s: %v, %v, want %v", c.name, got.GetPlayerLimits(), err, want)
			}
		}
		draw := func() *kujiv1.Result {
			t.Helper()
			got, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{Player: player, Pool: "once"})
			if err != nil {
				t.Fatal(err)
			}
			return got.GetResult()
		}
		pool(once(1))
		draw()
		pool(once(0))
		if got := draw().GetLimit(); !proto.Equal(got, once(0)) {
			t.Errorf("%s: refused with %v, want %v", c.name, got, once(0))
		}
		got, err := c.reward.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: player})
		want := once(0)
		want.Pool = "once"
		if err != nil || len(got.GetPlayer().GetLimits()) != 1 || !proto.Equal(got.GetPlayer().GetLimits()[0], want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, want)
		}
		if got, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "once"}); err != nil || got.GetPlayerLimits() != nil {
			t.Errorf("%s: limits of nobody: %v, %v", c.name, got, err)
		}
	}
}

// TestDrawPage: a player's token can read all that a page for its player shows: the free draw and when
// the next one comes, and the names of what the pool gives and the player holds. It learns of no other
// item.
func TestDrawPage(t *testing.T) {
	f, k, _ := accessServer(t)
	realm, err := f.engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(t.Context(), catalogOf(t, `
kuji: 1
items: {gem: {kind: currency, name: Gems}, hat: {name: A hat}, key: {name: The key}, ghost: {name: A ghost}, crown: {name: Next summer's crown}}
start: {gem: 100}
pools:
  page:
    price: {gem: 1}
    free: {per: day, draws: 1}
    when: {lacks: [ghost]}
    entries: [{id: hat, weight: 1, reward: {items: {hat: 1}}}, {id: key, weight: 0.0001, reward: {items: {key: {min: 1, max: 2}}}}]
`)); err != nil {
		t.Fatal(err)
	}
	read := func(method protoreflect.Name, body string, into proto.Message) {
		t.Helper()
		w := ask(f, methodOf(t, method), k.of("ann"), body)
		if w.Code != 200 || protojson.Unmarshal(w.Body.Bytes(), into) != nil {
			t.Fatalf("%s: %d %s", method, w.Code, w.Body)
		}
	}
	names := func(items []*kujiv1.Item) (all []string) {
		for _, it := range items {
			all = append(all, it.GetId()+": "+it.GetName())
		}
		return all
	}
	var pool, plain kujiv1.GetPoolResponse
	read("GetPool", `{"pool": "page", "player": "ann", "names": true}`, &pool)
	if got := names(pool.GetItems()); !slices.Equal(got, []string{"gem: Gems", "hat: A hat", "key: The key", "ghost: A ghost"}) {
		t.Errorf("the pool's items: %q", got)
	}
	if free := pool.GetPlayerFree(); free.GetLeft() != 1 || free.GetDraws() != 1 || free.GetResetsUnixMs() != 0 {
		t.Errorf("free: %v", free)
	}
	read("GetPool", `{"pool": "page"}`, &plain)
	if plain.GetItems() != nil || plain.GetPlayerFree() != nil {
		t.Errorf("nobody asked: %v, %v", plain.GetItems(), plain.GetPlayerFree())
	}
	var drawn kujiv1.DrawResponse
	read("Draw", `{"requestId": "page-1", "player": "ann", "pool": "page"}`, &drawn)
	read("GetPool", `{"pool": "page", "player": "ann"}`, &pool)
	if free := pool.GetPlayerFree(); free.GetLeft() != 0 || free.GetResetsUnixMs() <= drawn.GetResult().GetReceipt().GetTimeUnixMs() {
		t.Errorf("free after the draw: %v", free)
	}
	var player kujiv1.GetPlayerResponse
	read("GetPlayer", `{"player": "ann", "names": true}`, &player)
	if got := names(player.GetItems()); len(got) != 2 || got[0] != "gem: Gems" {
		t.Errorf("the player's items: %q", got)
	}
	if free := player.GetPlayer().GetFree(); len(free) != 1 || free[0].GetPool() != "page" || free[0].GetLeft() != 0 {
		t.Errorf("the player's free draws: %v", free)
	}
}
