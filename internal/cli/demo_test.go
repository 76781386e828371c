package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestVerdict: a demo with a failed check ends with the exit code for damage,
// says which check it was, and does not call itself ok.
func TestVerdict(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		d := &demo{app: &app{stdout: &out, stderr: &out, json: asJSON}}
		d.add("stock", "all there", nil)
		if err := d.verdict(); err != nil {
			t.Fatalf("every check passed: %v", err)
		}
		out.Reset()
		d.add("balances", "all right", []error{errors.New("ann has a figure too many")})
		err := d.verdict()
		if got := exitOf(t, err); got != exitDamage {
			t.Errorf("exit code %d (%v), want %d", got, err, exitDamage)
		}
		if asJSON {
			var r demoReport
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.OK || !r.Checks[0].OK || r.Checks[1].OK {
				t.Errorf("report %+v", r)
			}
			continue
		}
		if text := out.String(); !strings.Contains(text, "FAILED") || !strings.Contains(text, "ann has a figure too many") {
			t.Errorf("report\n%s", text)
		}
	}
}

func TestAddBoundsErrors(t *testing.T) {
	d := &demo{app: &app{}}
	d.add("stock", "", make7Errors())
	if got := d.report.Checks[0].Errors; len(got) != maxReported+1 || got[maxReported] != "and 2 more" {
		t.Errorf("reported %q", got)
	}
}

func make7Errors() []error {
	errs := make([]error, 7)
	for i := range errs {
		errs[i] = errors.New("wrong")
	}
	return errs
}
