package catalog_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestZones: every zone that is suggested is one, in the order of an alphabet. After a change of the
// database, the names are those in $GOROOT/lib/time/zoneinfo.zip, but Factory.
func TestZones(t *testing.T) {
	text, err := os.ReadFile("zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(text))
	if len(names) < 500 || !slices.IsSorted(names) {
		t.Errorf("%d names, sorted: %v", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		if _, err := time.LoadLocation(name); err != nil {
			t.Error(err)
		}
	}
}
