package server_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/verify"
)

const trackCatalog = `
kuji: 1
items: {gold: {}, clover: {}}
pools:
  banner:
    pity: {rare: {certain: 90, share: five}, blank: {certain: 90}}
    entries:
      - {id: rare, weight: 0.000001, reward: {items: {gold: 1}}, luck: {item: clover, weights: [{from: 2, weight: 0.5}]}}
      - {id: other, weight: 1, luck: {pity: rare, weights: [{from: 80, weight: 2}]}}
      - {id: blank, weight: 0.000001}
  box:
    mode: raffle
    last: {items: {gold: 5}}
    refill: 4
    entries: [{id: a, stock: 3, reward: {items: {gold: 1}}}]
`

// TestSetTrack: GetPlayer shows tracks, and SetTrack sets one by each protocol. The log says whose
// key it was.
func TestSetTrack(t *testing.T) {
	ctx := context.Background()
	keys := filepath.Join(t.TempDir(), "keys")
	const second, wordy = "another key", "a key with a long name"
	writeKeys(t, keys, keyLine(t, "admin", adminKey, "ops"), keyLine(t, "admin", second, "ops-2"), keyLine(t, "admin", wordy, strings.Repeat("ü", 32)))
	set, err := access.LoadKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	engine, err := kuji.Open(dir, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	realm, err := engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(trackCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(ctx, c); err != nil {
		t.Fatal(err)
	}
	f := startEngine(t, engine, server.Options{Keys: set})
	as := func(key string) context.Context {
		ctx, info := connect.NewClientContext(ctx)
		info.RequestHeader().Set("Authorization", "Bearer "+key)
		return ctx
	}
	all := clients(t, f.url)
	want := func(c client, tracks ...*kujiv1.PlayerTrack) {
		t.Helper()
		got, err := c.reward.GetPlayer(as(adminKey), &kujiv1.GetPlayerRequest{Player: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tracks, got.GetPlayer().GetPity(), protocmp.Transform()); d != "" {
			t.Errorf("%s: pity (-want +got):\n%s", c.name, d)
		}
	}
	if _, err := all[0].reward.Draw(as(adminKey), &kujiv1.DrawRequest{Player: "ann", Pool: "banner", Count: 73}); err != nil {
		t.Fatal(err)
	}
	other := &kujiv1.PlayerTrack{Track: "banner/blank", Draws: 73, CertainIn: 17, Unless: "five"}
	want(all[0], &kujiv1.PlayerTrack{Track: "five", Draws: 73, CertainIn: 17}, other)
	callers := []string{adminKey, second, wordy}
	names := []string{"ops", "ops-2", strings.Repeat("ü", 32)}
	for i, c := range all {
		draws := uint64(80 + i)
		req := &kujiv1.SetTrackRequest{RequestId: c.name, Player: "ann", Track: "five", Draws: draws, Reason: "for " + c.name}
		for again := range 2 {
			resp, err := c.admin.SetTrack(as(callers[i%3]), req)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if r := resp.GetResult(); r.GetStatus() != kujiv1.Status_STATUS_OK || r.GetReplayed() != (again == 1) {
				t.Errorf("%s: %v", c.name, r)
			}
		}
		want(c, &kujiv1.PlayerTrack{Track: "five", Draws: draws, CertainIn: 90 - draws}, other)
		_, err := c.admin.SetTrack(as(adminKey), &kujiv1.SetTrackRequest{Player: "ann", Track: "five", Draws: 1})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "reason") {
			t.Errorf("%s: without a reason: %v", c.name, err)
		}
	}
	pool, err := all[0].reward.GetPool(as(adminKey), &kujiv1.GetPoolRequest{Pool: "banner"})
	if err != nil {
		t.Fatal(err)
	}
	const scale = 1_000_000
	luck := []*kujiv1.Luck{
		{Item: "clover", Steps: []*kujiv1.LuckStep{{From: 2, Weight: scale / 2}}},
		{Track: "rare", Steps: []*kujiv1.LuckStep{{From: 80, Weight: 2 * scale}}}, nil,
	}
	for i, e := range pool.GetPool().GetEntries() {
		if d := cmp.Diff(luck[i], e.GetLuck(), protocmp.Transform()); d != "" {
			t.Errorf("luck of %s (-want +got):\n%s", e.GetId(), d)
		}
	}
	box, err := all[0].reward.GetPool(as(adminKey), &kujiv1.GetPoolRequest{Pool: "box"})
	if err != nil {
		t.Fatal(err)
	}
	last := &kujiv1.Reward{Items: []*kujiv1.RewardItem{{Item: "gold", Min: 5, Max: 5}}}
	if d := cmp.Diff(last, box.GetPool().GetLast(), protocmp.Transform()); d != "" || box.GetPool().GetRefill() != 4 || pool.GetPool().GetLast() != nil {
		t.Errorf("box: last (-want +got):\n%s, refill %d", d, box.GetPool().GetRefill())
	}

	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	if _, err := verify.Dir(dir, server.DefaultRealm, verify.Options{Seen: func(rec kuji.Record) {
		if rec.Kind != "set_track" {
			return
		}
		if c := all[seen]; rec.ID != c.name || rec.By != names[seen%3] || rec.Reason != "for "+c.name {
			t.Errorf("the log has %+v, want it by %s", rec, names[seen%3])
		}
		seen++
	}}); err != nil || seen != len(all) {
		t.Errorf("%d tracks set in the log, want %d: %v", seen, len(all), err)
	}
}
