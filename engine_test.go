package kuji_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestLookup: a realm that exists is found, whether it was opened or not, also
// when there is room for no other; one that does not exist is not made.
func TestLookup(t *testing.T) {
	disk := vfs.NewMem()
	e, err := kuji.Open("data", kuji.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Lookup("one"); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("a realm that was never made: %v", err)
	}
	if _, err := e.Realm("one"); err != nil {
		t.Fatal(err)
	}
	for i := range kuji.MaxRealms - 1 { // as directories, which take no time
		if err := disk.MkdirAll(fmt.Sprintf("data/realms/other%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"two.old", "UPPER"} { // nobody's
		if err := disk.MkdirAll("data/realms/" + name); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = kuji.Open("data", kuji.Options{FS: disk}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if names, err := e.Realms(); err != nil || len(names) != kuji.MaxRealms || !slices.IsSorted(names) || !slices.Contains(names, "one") {
		t.Errorf("%d realms, %v", len(names), err)
	}
	for _, open := range []func(string) (*kuji.Realm, error){e.Lookup, e.Realm, e.Lookup} {
		if r, err := open("one"); err != nil || r.Name() != "one" {
			t.Errorf("the realm that there is: %v", err)
		}
		if _, err := open("two.old"); kuji.CodeOf(err) != kuji.CodeInvalid {
			t.Errorf("a name that no realm can have: %v", err)
		}
	}
	if _, err := e.Lookup("two"); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("one that there is not: %v", err)
	}
	if _, err := e.Realm("two"); kuji.CodeOf(err) != kuji.CodeConflict {
		t.Errorf("one more than there may be: %v", err)
	}
}
