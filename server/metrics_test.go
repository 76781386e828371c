package server_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestMetrics makes calls that end in different ways and checks the exact
// samples that count them.
func TestMetrics(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{Keys: keyFile(t), Version: "v1.2.3", History: &fakeHistory{}})
	h := h1(t)
	c := newClient("", h, f.url, withKey(adminKey))
	for i := range 3 {
		if _, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{RequestId: fmt.Sprint(i / 2), Player: "ann", Pool: "free"}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = c.reward.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "nope"})
	_, _ = c.reward.Batch(ctx, &kujiv1.BatchRequest{Commands: []*kujiv1.Command{drawCommand("", "ann", "standard", 5), {}}})
	post(t, h, f.url, drawPath, `{"bad`, "Authorization", "Bearer "+adminKey)
	post(t, h, f.url, drawPath, `{}`)
	post(t, h, f.url, "/some/"+strings.Repeat("x", 50), `{}`)
	_, text := get(t, h, f.url+"/metrics", "Authorization", "Bearer "+readKey)
	for _, want := range []string{
		`kuji_rpc_requests_total{code="ok",rpc="kuji.v1.RewardService/Draw"} 3`,
		`kuji_rpc_requests_total{code="not_found",rpc="kuji.v1.RewardService/Draw"} 1`,
		`kuji_rpc_requests_total{code="unreadable",rpc="kuji.v1.RewardService/Draw"} 1`,
		`kuji_rpc_requests_total{code="unauthenticated",rpc="kuji.v1.RewardService/Draw"} 1`,
		`kuji_rpc_requests_total{code="ok",rpc="kuji.v1.RewardService/Batch"} 1`,
		`kuji_rpc_requests_total{code="unimplemented",rpc="none"} 1`,
		`kuji_rpc_duration_seconds_count{rpc="kuji.v1.RewardService/Draw"} 5`,
		`kuji_results_total{status="ok"} 4`,
		`kuji_results_total{status="refused"} 1`,
		`kuji_realm_draws_total{realm="default"} 7`,
		`kuji_realm_failures_total{realm="default"} 0`,
		`kuji_realm_replays_total{realm="default"} 1`,
		`kuji_realm_players{realm="default"} 1`,
		`kuji_realm_request_ids{realm="default"} 2`,
		`kuji_realm_catalog_version{realm="default"} 1`,
		`kuji_realm_healthy{realm="default"} 1`,
		`kuji_build_info{version="v1.2.3"} 1`,
		`kuji_pool_draws_total{pool="free",realm="default"} 2`,
		`kuji_pool_drawn{pool="free",realm="default"} 2`,
		`kuji_pool_drawn{pool="standard",realm="default"} 5`,
		`kuji_pool_left{pool="last",realm="default"} 1`,
		`kuji_realm_pools{realm="default"} 11`,
		`kuji_realm_pools_left_out{realm="default"} 0`,
		"go_goroutines ",
		"kuji_realm_position", "kuji_realm_log_bytes_total", "kuji_realm_pending_bytes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, grep(text, strings.FieldsFunc(want, func(r rune) bool { return r == '{' || r == ' ' })[0]))
		}
	}
	if strings.Contains(text, `kuji_pool_left{pool="free"`) {
		t.Error("a pool without limited stock has something left")
	}
	if strings.Contains(text, "xxxx") {
		t.Error("a path that a client sent has become a label")
	}
	// What is documented is there, and the other way round.
	doc, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`(kuji_[a-z_]+)").FindAllStringSubmatch(string(doc), -1) {
		documented[m[1]] = true
	}
	there := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (kuji_[a-z_]+)`).FindAllStringSubmatch(text, -1) {
		there[m[1]] = true
		if !documented[m[1]] {
			t.Errorf("%s is not in docs/reference/metrics.md", m[1])
		}
	}
	pages, err := filepath.Glob("../docs/*/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("found the pages %q: %v", pages, err)
	}
	for _, page := range pages {
		doc, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`(kuji_[a-z_]+)").FindAllStringSubmatch(string(doc), -1) {
			documented[m[1]] = true
		}
	}
	delete(documented, "kuji_store_survives") // it is there with a database: see TestPromiseIsAMetric of internal/cluster
	for name := range documented {
		if !there[name] {
			t.Errorf("%s is documented but not there", name)
		}
	}
}

// TestPoolMetricsBound: pools beyond the bound have no metrics of their own. How many, the metrics say.
func TestPoolMetricsBound(t *testing.T) {
	engine := newEngine(t, kuji.Options{Sync: kuji.SyncNone})
	other, err := engine.Realm("other")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(testCatalog))
	if err == nil {
		_, err = other.Apply(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := newServerOn(t, engine, server.Options{})
	for most, want := range map[int]map[string]int{
		0:  {"kuji_realm_pools": 2, "kuji_realm_pools_left_out": 2},
		4:  {"kuji_realm_pools": 2, "kuji_realm_pools_left_out": 2, "kuji_pool_draws_total": 4, "kuji_pool_drawn": 4, "kuji_pool_left": 2},
		99: {"kuji_realm_pools": 2, "kuji_realm_pools_left_out": 2, "kuji_pool_draws_total": 22, "kuji_pool_drawn": 22, "kuji_pool_left": 4},
	} {
		got, err := f.server.PoolMetrics(most)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("of at most %d pools: %v, %v; want %v", most, got, err, want)
		}
	}
}

func grep(text, prefix string) string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
