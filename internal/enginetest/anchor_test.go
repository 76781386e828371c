package enginetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

// TestVerifyThrough: an anchor tells a log that went on from one that was
// written anew, or that has lost its newest entries, though both are right in
// themselves.
func TestVerifyThrough(t *testing.T) {
	live := func(dir string) verify.Report {
		t.Helper()
		e, r := open(t, dir, worldOptions{})
		for i := range 5 {
			do(t, r, kuji.Draw{ID: fmt.Sprint(r.Stats().Position, "-", i), Player: "ann", Pool: "free"})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		report, err := verify.Dir(dir, "test", verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	dir := t.TempDir()
	first := live(dir)
	anchor := verify.Anchor{Position: first.Position, Hash: first.ChainHash}
	if _, err := verify.Dir(dir, "test", verify.Options{Through: &anchor}); err != nil {
		t.Errorf("a log that did not go on: %v", err)
	}
	second := live(dir)
	events := uint64(0)
	report, err := verify.Dir(dir, "test", verify.Options{Through: &anchor, Seen: func(kuji.Record) { events++ }})
	if err != nil || report.StateHash != second.StateHash || events != second.Events {
		t.Errorf("a log that went on: %v, %d events and state %x; want %d and %x", err, events, report.StateHash, second.Events, second.StateHash)
	}

	refused := func(what, dir string, anchor verify.Anchor, position uint64) {
		t.Helper()
		_, err := verify.Dir(dir, "test", verify.Options{Through: &anchor})
		if wrong, ok := errors.AsType[*verify.Error](err); !ok || wrong.Position != position {
			t.Errorf("%s: %v, want position %d to be wrong", what, err, position)
		}
	}
	other := t.TempDir()
	live(other) // the same history but for the seed, so of the same length
	live(other)
	refused("a log written anew", other, anchor, anchor.Position)
	refused("another hash", dir, verify.Anchor{Position: 3}, 3)
	refused("the hash of another position", dir, verify.Anchor{Position: anchor.Position + 1, Hash: anchor.Hash}, anchor.Position+1)
	newest := verify.Anchor{Position: second.Position, Hash: second.ChainHash}
	rewrite(t, dir, func(entries [][]byte) [][]byte { return entries[:anchor.Position] })
	refused("a log that was cut", dir, newest, anchor.Position+1)
	if _, err := verify.Dir(dir, "test", verify.Options{Through: &anchor}); err != nil {
		t.Errorf("a log that was cut where it once ended: %v", err)
	}
	_, err = verify.Dir(dir, "test", verify.Options{Through: &verify.Anchor{}})
	wantCode(t, err, kuji.CodeInvalid)
}

// TestVerifyThroughTrimmed: what a trimmed log cannot tell it does not claim,
// and the place of the snapshot that it begins with it can.
func TestVerifyThroughTrimmed(t *testing.T) {
	dir := trimmedRealm(t)
	report, err := verify.Dir(dir, "test", verify.Options{})
	if err != nil || report.From == 0 {
		t.Fatalf("verified from position %d, %v; want a trimmed log", report.From, err)
	}
	_, err = verify.Dir(dir, "test", verify.Options{Through: &verify.Anchor{Position: report.From - 1}})
	wantCode(t, err, kuji.CodeNotFound)
	_, err = verify.Dir(dir, "test", verify.Options{Through: &verify.Anchor{Position: report.From}})
	if wrong, ok := errors.AsType[*verify.Error](err); !ok || wrong.Position != report.From {
		t.Errorf("another hash where verification begins: %v", err)
	}
	if _, err := verify.Dir(dir, "test", verify.Options{Through: &verify.Anchor{Position: report.Position, Hash: report.ChainHash}}); err != nil {
		t.Error(err)
	}
}
