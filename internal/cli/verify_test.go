package cli

import (
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/verify"
)

// TestVerifyNamesWhatWasNotDecided: an epoch that other rules decided is named, and is no proof: with
// --strict the command ends with exit code 6.
func TestVerifyNamesWhatWasNotDecided(t *testing.T) {
	report := verify.Report{Realm: "shop", Epochs: []verify.Epoch{
		{Epoch: 1, First: 1, Rules: 4, Revealed: true, Undecided: "rules version 4 decided it; this build has [5]"},
		{Epoch: 2, First: 9, Rules: 5, Revealed: true},
	}}
	out := verifyJSON{Data: "data", OK: true, Realms: []verifiedRealm{{OK: true, Report: report}}}
	var text strings.Builder
	printVerify(&text, out)
	const want = "warning: realm shop: epoch 1, from position 1 on, was not decided again: rules version 4 decided it; this build has [5]; verify it with the build that wrote it\n"
	if !strings.Contains(text.String(), want) || !strings.Contains(text.String(), "\t2\t1\t") {
		t.Errorf("printed %q, want two epochs, one of them proven, and %q", text.String(), want)
	}
	if err := out.beStrict(nil); err == nil || out.OK || classify(t.Context(), err).Exit != exitDamage {
		t.Errorf("with --strict: %v, %+v", err, out)
	}
	report.Epochs = report.Epochs[1:]
	out = verifyJSON{OK: true, Realms: []verifiedRealm{{OK: true, Report: report}}}
	if err := out.beStrict(nil); err != nil || !out.OK {
		t.Errorf("with --strict and nothing left out: %v", err)
	}
}
