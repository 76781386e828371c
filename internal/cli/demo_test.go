package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/demo"
)

// TestVerdict: a demo with a failed check ends with the exit code for damage, says which check it was, and
// does not call itself ok.
func TestVerdict(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		a := &app{stdout: &out, stderr: &out, json: asJSON}
		good := demo.Check{Name: "stock", OK: true, Detail: "all there"}
		if err := finishDemo(a, &demo.Report{OK: true, Checks: []demo.Check{good}}); err != nil {
			t.Fatalf("every check passed: %v", err)
		}
		out.Reset()
		bad := demo.Check{Name: "balances", Errors: []string{"ann has a figure too many"}}
		err := finishDemo(a, &demo.Report{Checks: []demo.Check{good, bad}})
		if got := exitOf(t, err); got != exitDamage {
			t.Errorf("exit code %d (%v), want %d", got, err, exitDamage)
		}
		if asJSON {
			var r demo.Report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.OK || !r.Checks[0].OK || r.Checks[1].OK {
				t.Errorf("report %+v, %v", r, err)
			}
			continue
		}
		if text := out.String(); !strings.Contains(text, "FAILED") || !strings.Contains(text, "ann has a figure too many") {
			t.Errorf("report\n%s", text)
		}
	}
}
