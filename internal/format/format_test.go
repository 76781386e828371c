package format

import (
	"errors"
	"testing"
)

// TestLevels: levels ascend, formats never go back, and a word stands in one place.
func TestLevels(t *testing.T) {
	seen := map[Word]bool{}
	for i, r := range levels {
		if i > 0 && (r.Level != levels[i-1].Level+1 || r.Snapshot < levels[i-1].Snapshot || r.Catalog < levels[i-1].Catalog) {
			t.Errorf("level %d does not follow level %d", r.Level, levels[i-1].Level)
		}
		for _, w := range r.Words {
			if seen[w] || Need(w.Of, w.Name) != r.Level {
				t.Errorf("%v stands in two rows", w)
			}
			seen[w] = true
		}
	}
	if levels[0].Level != First || len(levels[0].Words) > 0 {
		t.Errorf("the first row is %+v: what has always been there needs no level", levels[0])
	}
	if Snapshot(0) != 6 || Snapshot(First) != 6 || Snapshot(2) != 7 || Catalog(First) != 3 || Snapshot(Newest+9) != Snapshot(Newest) {
		t.Error("a level has the formats of another one")
	}
}

// TestAllow: a word is refused by name below its level, and only there.
func TestAllow(t *testing.T) {
	w := Word{"event", "upgrade"}
	err, ok := errors.AsType[*LevelError](Allow(First, w))
	if !ok || err.Need != 2 || err.Level != First {
		t.Errorf("at the first level: %v", err)
	}
	if err := Allow(0, w); err == nil {
		t.Error("a realm that names no level has the newest")
	}
	if err := errors.Join(Allow(2, w), Allow(First, Word{"command", "draw"})); err != nil {
		t.Error(err)
	}
}

// TestNewer: what is newer is refused with both versions.
func TestNewer(t *testing.T) {
	err, ok := errors.AsType[*NewerError](Newer("snapshot", 9, 8))
	if !ok || err.Error() != "snapshot: written by a newer Kuji: format 9, this build knows up to 8" {
		t.Errorf("got %v", err)
	}
	if err := Newer("snapshot", 8, 8); err != nil {
		t.Error(err)
	}
}
