package server_test

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestGetOdds reads odds with every protocol.
func TestGetOdds(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	for _, c := range clients(t, f.url) {
		resp, err := c.reward.GetOdds(ctx, &kujiv1.GetOddsRequest{Pool: "standard", Player: "nobody"})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		o := resp.GetOdds()
		if e := o.GetOutcomes(); o.GetCatalogVersion() != 1 || o.GetPosition() == 0 || len(e) != 2 || e[0].GetPool() != "standard" || e[0].GetEntry() != "sword" ||
			e[0].GetChance().GetExact() != "1/4" || e[0].GetChance().GetValue() != 0.25 || e[1].GetExpected().GetExact() != "3/4" {
			t.Errorf("%s: %v", c.name, o)
		}
		if it := o.GetItems(); len(it) != 2 || it[1].GetItem() != "shield" || it[1].GetExpected().GetExact() != "3/2" {
			t.Errorf("%s: %v", c.name, o)
		}
		_, err = c.reward.GetOdds(ctx, &kujiv1.GetOddsRequest{Pool: "nosuch"})
		if connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("%s: %v, want not_found", c.name, err)
		}
	}
}

// TestExportCatalog reads the catalog in force and applies it again.
func TestExportCatalog(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)[0]
	resp, err := c.reward.ExportCatalog(ctx, &kujiv1.ExportCatalogRequest{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := catalog.Parse(resp.GetYaml())
	if err != nil {
		t.Fatalf("%v in\n%s", err, resp.GetYaml())
	}
	if hash := again.Hash(); resp.GetVersion() != 1 || string(hash[:]) != string(resp.GetHash()) {
		t.Errorf("version %d, hash %x; the YAML has %x", resp.GetVersion(), resp.GetHash(), hash)
	}
	if done, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: resp.GetYaml()}); err != nil || !done.GetPlan().GetUnchanged() {
		t.Errorf("applied: %v, %v; want unchanged", done, err)
	}
	if _, err := c.admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: "empty"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.reward.ExportCatalog(ctx, &kujiv1.ExportCatalogRequest{Realm: "empty"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a realm without a catalog: %v, want not_found", err)
	}
}

// TestListCatalogs: all versions of a catalog are listed and can be exported, with who applied them. The
// server's log has a line of each that was applied, and of no other call.
func TestListCatalogs(t *testing.T) {
	ctx := context.Background()
	log := &lockedBuffer{}
	f := start(t, server.Options{Logger: slog.New(slog.NewJSONHandler(log, nil))})
	c := clients(t, f.url)[0]
	first, err := c.reward.ExportCatalog(ctx, &kujiv1.ExportCatalogRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next := regexp.MustCompile("(?m)^name: .*$").ReplaceAll(first.GetYaml(), []byte("name: next"))
	for _, dry := range []bool{true, false, false} { // the last one changes nothing
		req := &kujiv1.ApplyCatalogRequest{Yaml: next, DryRun: dry, Reason: "ticket 7"}
		if _, err := c.admin.ApplyCatalog(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.reward.ListCatalogs(ctx, &kujiv1.ListCatalogsRequest{})
	if err != nil || len(all.GetCatalogs()) != 2 || all.GetOldest() != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if v := all.GetCatalogs()[0]; v.GetVersion() != 2 || v.GetName() != "next" || v.GetReason() != "ticket 7" || v.GetPosition() == 0 || v.GetTimeUnixMs() == 0 {
		t.Errorf("%v", v)
	}
	if v := all.GetCatalogs()[1]; v.GetVersion() != 1 || string(v.GetHash()) != string(first.GetHash()) {
		t.Errorf("%v", v)
	}
	page, err := c.reward.ListCatalogs(ctx, &kujiv1.ListCatalogsRequest{Before: 2, Limit: 1})
	if err != nil || len(page.GetCatalogs()) != 1 || page.GetCatalogs()[0].GetVersion() != 1 {
		t.Errorf("%v, %v", page, err)
	}
	if _, err := c.reward.ListCatalogs(ctx, &kujiv1.ListCatalogsRequest{Limit: 1001}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("%v, want invalid_argument", err)
	}
	old, err := c.reward.ExportCatalog(ctx, &kujiv1.ExportCatalogRequest{Version: 1})
	if err != nil || old.GetVersion() != 1 || string(old.GetYaml()) != string(first.GetYaml()) {
		t.Errorf("%v, %v", old, err)
	}
	if _, err := c.reward.ExportCatalog(ctx, &kujiv1.ExportCatalogRequest{Version: 3}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("%v, want not_found", err)
	}

	lines := regexp.MustCompile(`.*"catalog applied".*`).FindAllString(log.String(), -1)
	if len(lines) != 1 || !strings.Contains(lines[0], `"realm":"default","version":2,`) || !strings.Contains(lines[0], `"reason":"ticket 7"`) {
		t.Errorf("%q", lines)
	}
}

// TestOddsTakeTurns: odds wait for each other, and nobody else waits for them.
func TestOddsTakeTurns(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t)})
	odds := methodOf(t, "GetOdds")
	releaseBulk := f.server.HoldBulk()
	if w := ask(f, odds, readKey, `{"pool": "free"}`); w.Code != 200 {
		t.Errorf("odds while all turns of batches are taken: HTTP %d %s", w.Code, w.Body)
	}
	releaseBulk()
	release := f.server.HoldOdds()
	done := make(chan int)
	go func() { done <- ask(f, odds, readKey, `{"pool": "free"}`).Code }()
	until(t, "odds wait", func() bool { return f.server.WaitingOdds() == 1 })
	if w := ask(f, methodOf(t, "Batch"), writeKey, `{"commands": [{"draw": {"player": "ann", "pool": "free"}}]}`); w.Code != 200 {
		t.Errorf("a batch while all turns of odds are taken: HTTP %d %s", w.Code, w.Body)
	}
	release()
	if code := <-done; code != 200 {
		t.Errorf("odds that waited: HTTP %d", code)
	}
}

// TestTurnsEnd: a call that waits for a turn, or has one, keeps nothing for longer than the time in which the
// answer can be sent.
func TestTurnsEnd(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t), Limits: server.Limits{WriteTimeout: 50 * time.Millisecond}, History: lateHistory{}})
	release := f.server.HoldOdds()
	if w := ask(f, methodOf(t, "GetOdds"), readKey, `{"pool": "free"}`); w.Code != 503 {
		t.Errorf("odds that wait for a turn: HTTP %d %s, want unavailable", w.Code, w.Body)
	}
	release()
	if w := ask(f, methodOf(t, "GetHistory"), readKey, `{"player": "ann", "fresh": true}`); w.Code == 200 {
		t.Errorf("a history that never comes: HTTP %d %s", w.Code, w.Body)
	}
	if w := ask(f, methodOf(t, "GetOdds"), readKey, `{"pool": "free"}`); w.Code != 200 {
		t.Errorf("odds behind them: HTTP %d %s", w.Code, w.Body)
	}
}

// lateHistory is a history that never gets anything.
type lateHistory struct{ server.History }

func (lateHistory) Follow(*kuji.Realm) {}

func (lateHistory) Wait(ctx context.Context, _ string, _ uint64) error {
	<-ctx.Done()
	return ctx.Err()
}
