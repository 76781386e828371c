package server_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

func TestRealms(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{Version: "v1.2.3"})
	c := clients(t, f.url)[0]
	for i, want := range []bool{true, false} {
		got, err := c.admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: "summer"})
		if err != nil || got.GetCreated() != want {
			t.Errorf("create, time %d: %v, %v; want created %v", i+1, got, err, want)
		}
	}
	if _, err := c.admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: "Not a name"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a bad name: %v, want invalid_argument", err)
	}
	list, err := c.admin.ListRealms(ctx, &kujiv1.ListRealmsRequest{})
	if err != nil || !slices.Equal(list.GetRealms(), []string{"default", "summer"}) {
		t.Errorf("realms %v, %v", list.GetRealms(), err)
	}
	// Realms are apart from each other: ids, players, catalogs.
	if _, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: "summer", Yaml: []byte(testCatalog)}); err != nil {
		t.Fatal(err)
	}
	for _, realm := range []string{"", "default", "summer"} {
		got, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{Realm: realm, RequestId: "one", Player: "ann", Pool: "last"})
		if err != nil {
			t.Fatalf("realm %q: %v", realm, err)
		}
		want := realm
		if realm == "" {
			want = "default"
		}
		if got.GetResult().GetReplayed() != (realm == "default") || got.GetResult().GetReceipt().GetRealm() != want {
			t.Errorf("realm %q: %v, want replayed only the second time in default", realm, got)
		}
	}
	// A realm that the embedding program creates is found.
	if _, err := f.engine.Realm("embedded"); err != nil {
		t.Fatal(err)
	}
	st, err := c.admin.GetStatus(ctx, &kujiv1.GetStatusRequest{Realm: "embedded"})
	if err != nil || len(st.GetRealms()) != 1 || st.GetRealms()[0].GetRealm() != "embedded" {
		t.Errorf("status of one realm: %v, %v", st, err)
	}
	if _, err := c.admin.GetStatus(ctx, &kujiv1.GetStatusRequest{Realm: "nope"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("status of no realm: %v, want not_found", err)
	}
	st, err = c.admin.GetStatus(ctx, &kujiv1.GetStatusRequest{})
	if err != nil || st.GetVersion() != "v1.2.3" || st.GetDraining() || len(st.GetRealms()) != 3 {
		t.Fatalf("status %v, %v", st, err)
	}
	if d := st.GetRealms()[0]; d.GetRealm() != "default" || d.GetError() != "" || d.GetDraws() != 1 || d.GetReplays() != 1 ||
		d.GetPlayers() != 1 || d.GetRequestIds() != 1 || d.GetCatalogVersion() != 1 || d.GetPosition() == 0 || d.GetEpoch() == 0 {
		t.Errorf("status of default: %v", d)
	}
}

// TestSyncPolicy: the status says the engine's policy, each by its own name.
func TestSyncPolicy(t *testing.T) {
	for _, policy := range []kuji.SyncPolicy{kuji.SyncAlways, kuji.SyncInterval, kuji.SyncNone} {
		f := startWith(t, kuji.Options{Sync: policy}, server.Options{})
		st, err := newClient("", h1(t), f.url).admin.GetStatus(t.Context(), &kujiv1.GetStatusRequest{})
		if want := "SYNC_POLICY_" + strings.ToUpper(policy.String()); err != nil || st.GetSync().String() != want {
			t.Errorf("status %v, %v, want %s", st, err, want)
		}
	}
}

func TestClosedEngine(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	if err := f.engine.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range clients(t, f.url) {
		_, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{RequestId: "1", Player: "ann", Pool: "free"})
		if connect.CodeOf(err) != connect.CodeUnavailable || detail(t, err).GetReason() != kujiv1.Reason_REASON_CLOSED {
			t.Errorf("%s: %v, want unavailable, closed", c.name, err)
		}
	}
}

// TestLastBackup: a backup counts once it was sent to its end, and until its realm is deleted.
func TestLastBackup(t *testing.T) {
	f := start(t, server.Options{})
	admin := clients(t, f.url)[0].admin
	last := func() int64 {
		t.Helper()
		if _, err := admin.CreateRealm(t.Context(), &kujiv1.CreateRealmRequest{Realm: "shop"}); err != nil {
			t.Fatal(err)
		}
		st, err := admin.GetStatus(t.Context(), &kujiv1.GetStatusRequest{Realm: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		return st.GetRealms()[0].GetBackupUnixMs()
	}
	if at := last(); at != 0 {
		t.Errorf("a backup at %d, before there was one", at)
	}
	before := time.Now().UnixMilli()
	stream, err := admin.Backup(t.Context(), &kujiv1.BackupRequest{Realm: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		t.Fatal(err)
	}
	if at := last(); at < before {
		t.Errorf("the last backup was at %d, want %d or later", at, before)
	}
	if _, text := get(t, http.DefaultClient, f.url+"/metrics"); !strings.Contains(text, `kuji_realm_backup_timestamp_seconds{realm="shop"} 1`) {
		t.Error("the metrics know of no backup")
	}
	if _, err := admin.DeleteRealm(t.Context(), &kujiv1.DeleteRealmRequest{Realm: "shop", Confirm: "shop"}); err != nil {
		t.Fatal(err)
	}
	if at := last(); at != 0 {
		t.Errorf("a new realm of that name has a backup at %d", at)
	}
}
