package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// The files in deploy ask Prometheus for metrics that only a running server has.
const (
	deployAlerts = "../deploy/prometheus/alerts.yml"
	deployTests  = "../deploy/prometheus/alerts_test.yml"
	deployConfig = "../deploy/prometheus/prometheus.yml"
	deployBoard  = "../deploy/grafana/kuji.json"
	deployUnit   = "../deploy/systemd/kuji.service"
)

// alertFile is what alerts.yml and alerts_test.yml say.
type alertFile struct {
	Groups []struct {
		Rules []struct{ Alert, Expr string }
	}
	Tests []struct {
		Rules []struct {
			Alert  string `yaml:"alertname"`
			Firing []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

func readAlerts(t *testing.T, name string) (f alertFile) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(data, &f)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return f
}

// deployed returns every query in deploy, by where it is.
func deployed(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, g := range readAlerts(t, deployAlerts).Groups {
		for _, r := range g.Rules {
			all["alert "+r.Alert] = r.Expr
		}
	}
	alerts := len(all)
	data, err := os.ReadFile(deployBoard)
	var board any
	if err == nil {
		err = json.Unmarshal(data, &board)
	}
	if err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if query, ok := v[key].(string); ok && key == "expr" {
					all[fmt.Sprint("panel ", len(all))] = query
				}
				walk(v[key])
			}
		}
	}
	walk(board)
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$realm", ".*")
	for where, query := range all {
		all[where] = variables.Replace(query)
	}
	for _, m := range regexp.MustCompile(`label_values\((\w+), (\w+)\)`).FindAllStringSubmatch(string(data), -1) {
		all["variable "+m[2]] = fmt.Sprintf(`%s{%s=""}`, m[1], m[2])
	}
	if alerts < 10 || len(all) < alerts+25 {
		t.Fatalf("%d alerts and %d queries found", alerts, len(all))
	}
	return all
}

// TestDeployNames: what the dashboard and the alerts ask for is what /metrics prints, with these labels.
func TestDeployNames(t *testing.T) {
	f := start(t, server.Options{History: &fakeHistory{}})
	if _, err := clients(t, f.url)[0].reward.Draw(t.Context(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"}); err != nil {
		t.Fatal(err)
	}
	there := map[string]map[string]bool{"up": {}} // labels, by metric
	for _, m := range regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? \S+$`).FindAllStringSubmatch(f.server.MetricsText(), -1) {
		if there[m[1]] == nil {
			there[m[1]] = map[string]bool{}
		}
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
			there[m[1]][l[1]] = true
		}
	}
	name := regexp.MustCompile(`\b(up|(?:kuji|go|process)_\w+)(?:\{([^}]*)\})?`)
	grouped := regexp.MustCompile(`\bby \(([^)]*)\)`)
	for where, query := range deployed(t) {
		found := name.FindAllStringSubmatch(query, -1)
		if len(found) == 0 {
			t.Errorf("%s asks for no metric: %s", where, query)
		}
		labels := map[string]bool{"instance": true, "job": true} // Prometheus's own
		for _, m := range found {
			if there[m[1]] == nil {
				t.Errorf("%s: there is no metric %s", where, m[1])
			}
			maps.Copy(labels, there[m[1]])
			for _, l := range regexp.MustCompile(`(\w+)\s*[=!]`).FindAllStringSubmatch(m[2], -1) {
				if l[1] != "instance" && l[1] != "job" && !there[m[1]][l[1]] {
					t.Errorf("%s: metric %s has no label %s", where, m[1], l[1])
				}
			}
		}
		for _, m := range grouped.FindAllStringSubmatch(query, -1) {
			for l := range strings.SplitSeq(m[1], ",") {
				if !labels[strings.TrimSpace(l)] {
					t.Errorf("%s: none of its metrics has the label %s", where, l)
				}
			}
		}
	}
}

// TestDeployAlertsAreTested: for each alert there is a case in which it fires, and one in which it does
// not.
func TestDeployAlertsAreTested(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range readAlerts(t, deployTests).Tests {
		for _, r := range test.Rules {
			fires[r.Alert] = fires[r.Alert] || len(r.Firing) > 0
			silent[r.Alert] = silent[r.Alert] || len(r.Firing) == 0
		}
	}
	for _, g := range readAlerts(t, deployAlerts).Groups {
		for _, r := range g.Rules {
			if !fires[r.Alert] || !silent[r.Alert] {
				t.Errorf("%s: in no case it fires, or in no case it does not", r.Alert)
			}
		}
	}
}

// TestDeployTools has the files checked by the tools that read them, where these are installed.
func TestDeployTools(t *testing.T) {
	check := func(tool string, args ...string) {
		t.Run(tool+" "+strings.Join(args[:2], " "), func(t *testing.T) {
			path, err := exec.LookPath(tool)
			if err != nil {
				t.Skipf("%s is not installed", tool)
			}
			out, err := exec.Command(path, args...).CombinedOutput()
			if err != nil || bytes.Contains(out, []byte("kuji.service:")) { // systemd only warns of what it does not know
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	check("promtool", "check", "config", deployConfig)
	check("promtool", "check", "rules", deployAlerts)
	check("promtool", "test", "rules", deployTests)
	// promtool parses the queries of rules: so the dashboard's become some.
	var rules bytes.Buffer
	rules.WriteString("groups:\n  - name: queries\n    rules:\n")
	queries := deployed(t)
	for i, where := range slices.Sorted(maps.Keys(queries)) {
		fmt.Fprintf(&rules, "      - {record: 'q%d', expr: %q}\n", i, queries[where])
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, rules.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	check("promtool", "check", "rules", file)

	// The unit's program need not be installed here.
	unit, err := os.ReadFile(deployUnit)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(filepath.Dir(file), "kuji.service")
	if err := os.WriteFile(file, bytes.ReplaceAll(unit, []byte("/usr/local/bin/kuji "), []byte("/bin/true ")), 0o600); err != nil {
		t.Fatal(err)
	}
	check("systemd-analyze", "verify", file)
}
