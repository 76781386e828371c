package kuji_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/wal"
)

// rewrite replaces a realm's log by one that holds other entries: what someone
// does who can compute checksums.
func rewrite(t *testing.T, dir string, change func([][]byte) [][]byte) {
	t.Helper()
	path := dir + "/realms/test/log"
	l, err := wal.Open(path, wal.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var entries [][]byte
	for r, err := range l.Records(0) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, bytes.Clone(r.Data))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if l, err = wal.Open(path, wal.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range change(entries) {
		if _, err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTamperedHistory: entries that are dropped, swapped or repeated, each whole
// in itself, are damage when something is missing and harmless when not.
func TestTamperedHistory(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func([][]byte) [][]byte
		sound  bool
	}{
		{"as it was", func(e [][]byte) [][]byte { return e }, true},
		{"one repeated", func(e [][]byte) [][]byte { return slices.Insert(e, 6, e[5]) }, true},
		{"one dropped", func(e [][]byte) [][]byte { return slices.Delete(e, 6, 7) }, false},
		{"two swapped", func(e [][]byte) [][]byte { e[6], e[7] = e[7], e[6]; return e }, false},
		{"the last two swapped", func(e [][]byte) [][]byte {
			n := len(e)
			e[n-1], e[n-2] = e[n-2], e[n-1]
			return e
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			e, r := open(t, dir, kuji.Options{})
			for range 10 {
				do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			rewrite(t, dir, tc.change)
			_, verr := kuji.Verify(dir, "test", nil)
			e, err := kuji.Open(dir, kuji.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Realm("test")
			if tc.sound && (verr != nil || err != nil) {
				t.Errorf("Verify: %v; opening: %v", verr, err)
			}
			if !tc.sound {
				if verr == nil {
					t.Error("Verify found nothing")
				}
				wantCode(t, err, kuji.CodeCorrupt)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHostileGoValues: values that no parser makes are refused and stop nothing.
func TestHostileGoValues(t *testing.T) {
	_, r := open(t, t.TempDir(), kuji.Options{})
	_, err := r.Apply(t.Context(), nil)
	wantCode(t, err, kuji.CodeInvalid)
	_, err = r.Plan(t.Context(), nil)
	wantCode(t, err, kuji.CodeInvalid)
	_, err = r.Apply(t.Context(), &catalog.Catalog{})
	wantCode(t, err, kuji.CodeInvalid)
	loop := &kuji.Atomic{}
	loop.Members = []kuji.Request{loop}
	_, err = r.Do(t.Context(), loop)
	wantCode(t, err, kuji.CodeInvalid)
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "free"}); res.Status != kuji.OK {
		t.Errorf("afterwards: %v", res)
	}
}

// TestGroupsVerify: groups of many draws beside groups of grants are decided
// again as they were, and their draws are counted.
func TestGroupsVerify(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, kuji.Options{})
	draw := kuji.Draw{Player: "ann", Pool: "many", Count: 1000}
	if _, err := r.Apply(t.Context(), parse(t, `{kuji: 1, items: {gem: {kind: currency}}, pools: {many: {max_count: 1000, entries: [{id: e, weight: 1, reward: nothing}]}}}`)); kuji.CodeOf(err) != 0 {
		t.Fatal(err)
	}
	grant := kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}
	res, err := r.DoAll(t.Context(), []kuji.Request{
		kuji.Atomic{Members: []kuji.Request{draw, draw}},
		kuji.Atomic{Members: []kuji.Request{grant, draw, draw}},
	})
	if err != nil || res[0].Status != kuji.OK || res[1].Status != kuji.OK {
		t.Fatal(res, err)
	}
	if got := r.Stats().Draws; got != 4000 {
		t.Errorf("%d draws counted, want 4000", got)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := kuji.Verify(dir, "test", func(rec kuji.Record) {
		for _, m := range rec.Members {
			if m.Kind == "grant" && m.Count != 0 {
				err = fmt.Errorf("a grant with a count: %+v", m)
			}
		}
	})
	if err != nil || rep.Draws != 4000 {
		t.Errorf("%d draws, %v", rep.Draws, err)
	}
}
