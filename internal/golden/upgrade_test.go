package golden_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

// TestUpgrade: until somebody finishes the upgrade, this build writes a realm of the first level so that
// builds of that level can read it, its snapshots too. Then the realm has the newest formats.
func TestUpgrade(t *testing.T) {
	dir := copied(t, root+"/v1/data")
	e, r := open(t, dir, "test")
	if _, err := r.DoAll(t.Context(), goldenRequests(12)); err != nil {
		t.Fatal(err)
	}
	snapshot(t, r)
	if st, version := r.Stats(), newestSnapshot(t, dir); st.Level != 1 || st.NewestLevel != kuji.FormatLevel() || version != 6 {
		t.Errorf("before the upgrade is finished: level %d of %d, snapshots of version %d", st.Level, st.NewestLevel, version)
	}
	up, err := r.FinishUpgrade(t.Context(), "ops", "a week without trouble")
	if err != nil || up.From != 1 || up.To != kuji.FormatLevel() {
		t.Fatalf("finished: %+v, %v", up, err)
	}
	if _, err := r.DoAll(t.Context(), goldenRequests(13)); err != nil {
		t.Fatal(err)
	}
	snapshot(t, r)
	if version := newestSnapshot(t, dir); version != 9 {
		t.Errorf("after it: snapshots of version %d", version)
	}
	hash, _, err := r.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said []kuji.Record
	for rec, err := range through(r)(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == "upgrade" {
			said = append(said, rec)
		}
	}
	if len(said) != 1 || said[0].Level != up.To || said[0].By != "ops" || said[0].Reason != "a week without trouble" || said[0].Position != up.Receipt.Position {
		t.Errorf("the feed says %+v", said)
	}
	closed(t, e)
	e, r = open(t, dir, "test") // from the snapshot
	if got, _, err := r.StateHash(t.Context()); err != nil || got != hash || r.Stats().Level != up.To {
		t.Errorf("reopened with state %x and level %d, want %x and %d: %v", got, r.Stats().Level, hash, up.To, err)
	}
	closed(t, e)
	if rep, err := verify.Dir(dir, "test", verify.Options{}); err != nil || rep.StateHash != hash || rep.Epochs[len(rep.Epochs)-1].Undecided != "" {
		t.Errorf("verified: %+v, %v", rep, err)
	}
}

// newestSnapshot returns the version of the format of the newest snapshot.
func newestSnapshot(t *testing.T, dir string) byte {
	t.Helper()
	files, err := filepath.Glob(dir + "/realms/test/snapshots/*.snapshot")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[len(files)-1]) // names sort by position
	if err != nil {
		t.Fatal(err)
	}
	return b[9+4]
}
