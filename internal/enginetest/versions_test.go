package enginetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji"
)

// versionsAre checks the versions of a realm: their names, from the oldest on, and that each can be
// read.
func versionsAre(t *testing.T, r *kuji.Realm, first uint64, names ...string) []kuji.CatalogVersion {
	t.Helper()
	all, err := r.Catalogs().Versions(t.Context())
	if err != nil || len(all) != len(names) {
		t.Fatalf("%d versions, %v, want %d", len(all), err, len(names))
	}
	for i, v := range all {
		if v.Version != first+uint64(i) || v.Name != names[i] || v.Pools == 0 || v.Position == 0 || v.Time == 0 {
			t.Errorf("version %d: %+v, want %q", first+uint64(i), v, names[i])
		}
		view, err := r.Catalogs().Version(t.Context(), v.Version)
		if err != nil || view.Version != v.Version || view.Hash != v.Hash || view.Catalog.Name != names[i] || view.Catalog.Hash() != v.Hash ||
			view.Position != v.Position || view.Index != v.Index || view.Time != v.Time {
			t.Errorf("version %d: %+v, %v", v.Version, view, err)
		}
	}
	for _, none := range []uint64{0, first - 1, first + uint64(len(names))} {
		_, err := r.Catalogs().Version(t.Context(), none)
		wantCode(t, err, kuji.CodeNotFound)
	}
	return all
}

// TestCatalogVersions: every catalog that was put in force can be read, with who applied it and why,
// before and after a restart, and while more come.
func TestCatalogVersions(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{SegmentSize: 4096})
	names := []string{""}
	apply := func(name string) {
		t.Helper()
		drawSome(t, r, name, 5)
		r.Submit(kuji.Draw{Player: "ann", Pool: "free"}, func(kuji.Result, error) {}) // in the same batch
		note := kuji.Note{By: "key of " + name, Reason: "because", Metadata: "{}"}
		if _, err := r.Catalogs().Apply(t.Context(), parse(t, testCatalog+"name: "+name+"\n"), kuji.ApplyOptions{Note: note}); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for i := range 3 {
		apply(fmt.Sprint("v", i))
	}
	versionsAre(t, r, 1, names...)
	apply("more") // and what was read before is not read again
	before := versionsAre(t, r, 1, names...)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = open(t, dir, worldOptions{SegmentSize: 4096}) // which applies the first catalog again
	names = append(names, "")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Catalogs().Versions(ended)
	wantCode(t, err, kuji.CodeCanceled)
	after := versionsAre(t, r, 1, names...)
	if fmt.Sprint(before) != fmt.Sprint(after[:len(before)]) {
		t.Errorf("%+v, and after a restart %+v", before, after)
	}
	if n := after[2].Note; n.By != "key of v1" || n.Reason != "because" || n.Metadata != "{}" {
		t.Errorf("the note of version 3: %+v", n)
	}
	for rec, err := range r.Feed().Events(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == "catalog" {
			if rec.NewCatalogVersion != rec.CatalogVersion+1 || rec.By != "" && rec.By != "key of "+names[rec.CatalogVersion] {
				t.Errorf("%+v", rec)
			}
			if rec.NewCatalogVersion == uint64(len(names)) {
				break
			}
		} else if rec.NewCatalogVersion != 0 {
			t.Errorf("a %s puts version %d in force", rec.Kind, rec.NewCatalogVersion)
		}
	}
}

// TestCatalogVersionsTrimmed: a trimmed log has the catalogs from that on which was in force where it
// begins.
func TestCatalogVersionsTrimmed(t *testing.T) {
	o := worldOptions{Sync: kuji.SyncNone, TrimLog: true, SegmentSize: 4096}
	dir := trimmedRealm(t)
	e, r := open(t, dir, o)
	versionsAre(t, r, 1, "") // the one in force: nothing is read
	if _, err := r.Apply(t.Context(), parse(t, testCatalog+"name: next\n")); err != nil {
		t.Fatal(err)
	}
	trimmedBehind := func(v kuji.CatalogVersion) {
		t.Helper()
		for round := range 10 {
			drawSome(t, r, fmt.Sprint("behind", v.Version, "-", round, "-"), 100)
			snapshot(t, r)
			for _, err := range r.Feed().Events(t.Context(), v.Position) {
				if gone, ok := errors.AsType[*kuji.TrimmedError](err); ok && gone.First > v.Position {
					return
				}
				break
			}
		}
		t.Fatalf("the log is not trimmed behind %d", v.Position)
	}
	all := versionsAre(t, r, 1, "", "next")
	trimmedBehind(all[1])
	versionsAre(t, r, 2, "next")
	if _, err := r.Apply(t.Context(), parse(t, testCatalog+"name: third\n")); err != nil {
		t.Fatal(err)
	}
	versionsAre(t, r, 2, "next", "third")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = open(t, dir, o)
	versionsAre(t, r, 2, "next", "third", "")
}

// TestCatalogVersionsInMemory: an engine in memory knows the catalog in force alone.
func TestCatalogVersionsInMemory(t *testing.T) {
	e, err := kuji.OpenMemory([32]byte{1}, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"one", "two"} {
		if _, err := r.Apply(t.Context(), parse(t, testCatalog+"name: "+name+"\n")); err != nil {
			t.Fatal(err)
		}
		versionsAre(t, r, uint64(i)+1, name)
	}
}
