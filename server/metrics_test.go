package server_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestMetrics makes calls that end in different ways and checks the exact
// samples that count them.
func TestMetrics(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{Keys: keyFile(t), Version: "v1.2.3"})
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
		"go_goroutines ",
		"kuji_realm_position", "kuji_realm_log_bytes_total", "kuji_realm_pending_bytes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, grep(text, strings.FieldsFunc(want, func(r rune) bool { return r == '{' || r == ' ' })[0]))
		}
	}
	if strings.Contains(text, "xxxx") {
		t.Error("a path that a client sent has become a label")
	}
	// What is documented is there, and the other way round.
	doc, err := os.ReadFile("../docs/api.md")
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
			t.Errorf("%s is not in docs/api.md", m[1])
		}
	}
	for name := range documented {
		if !there[name] {
			t.Errorf("%s is documented but not there", name)
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
