package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/verify"
)

// TestLevel: a new realm begins with the newest formats, so there is nothing to finish. Where an older
// build may read the log, it begins with what that one knows, and an upgrade is not finished.
func TestLevel(t *testing.T) {
	newest := kuji.FormatLevel()
	_, r := open(t, t.TempDir(), worldOptions{})
	if st := r.Stats(); st.Level != newest || st.NewestLevel != newest {
		t.Errorf("a new realm has level %d of %d", st.Level, st.NewestLevel)
	}
	position := r.Stats().Position
	if up, err := r.FinishUpgrade(t.Context(), "ops", "again"); err != nil || up.From != newest || up.To != newest || r.Stats().Position != position {
		t.Errorf("an upgrade that was finished: %+v, %v", up, err)
	}

	s, known := drivertest.NewShared(drivertest.SharedOptions{}), uint8(1)
	o := kuji.Options{FormatLevel: func() uint8 { return known }}
	e, r := openAt(t, s, 1, o)
	if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	if st := r.Stats(); st.Level != 1 || st.NewestLevel != 1 {
		t.Errorf("next to an older build, a new realm has level %d of %d", st.Level, st.NewestLevel)
	}
	_, err := r.FinishUpgrade(t.Context(), "ops", "too early")
	wantCode(t, err, kuji.CodeConflict)
	_, err = r.FinishUpgrade(t.Context(), "ops", strings.Repeat("x", 201))
	wantCode(t, err, kuji.CodeInvalid)

	// The older node has gone. A realm that begins now goes no further than those that are there.
	known = newest
	other, err := e.Realm("other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	if st := other.Stats(); st.Level != 1 || st.NewestLevel != newest {
		t.Errorf("before the upgrade is finished, a new realm has level %d of %d", st.Level, st.NewestLevel)
	}
	up, err := r.FinishUpgrade(t.Context(), "ops", "all is well")
	if err != nil || up.From != 1 || up.To != newest || up.Receipt.Position == 0 || r.Stats().Level != newest {
		t.Errorf("finished: %+v, %v; level %d", up, err, r.Stats().Level)
	}
	_, follower := following(t, s, 2)
	sameState(t, follower, r)
	if st := follower.Stats(); st.Level != newest {
		t.Errorf("a follower has level %d", st.Level)
	}
}

// ofTomorrow makes a closed realm whose log says that it has a level which nobody knows.
func ofTomorrow(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{SnapshotEvery: -1})
	drawSome(t, r, "a", 3)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rewrite(t, dir, func(entries [][]byte) [][]byte {
		at := bytes.Index(entries[1], []byte{0x87, 1, kuji.FormatLevel()}) // the first catalog
		if at < 0 {
			t.Fatalf("no level in %x", entries[1])
		}
		entries[1][at+2] = 99
		return chained(entries)
	})
	return dir
}

// TestNewer: what a newer build wrote is refused by name, with both versions, and is no damage.
func TestNewer(t *testing.T) {
	refused := func(what string, err error) {
		t.Helper()
		if kuji.CodeOf(err) != kuji.CodeFormat || !strings.Contains(err.Error(), "written by a newer Kuji: format 99, this build knows up to ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	realm := func(dir string) error {
		e, err := openWorld(dir, worldOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Realm("test")
		return errors.Join(err, e.Close())
	}
	dir := ofTomorrow(t)
	refused("log", realm(dir))
	_, err := verify.Dir(dir, "test", verify.Options{})
	refused("log, verified", err)

	sound, name, content := oneSnapshot(t, 5)
	content[9+4] = 99 // of the header
	if err := os.WriteFile(name, reframe(content), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("snapshot", realm(sound))
	closed := sound + "/realms/test/closed"
	b, err := os.ReadFile(closed)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b[:bytes.Index(b, []byte("crc32c"))], []byte("closed 2"), []byte("closed 99"), 1)
	b = fmt.Appendf(b, "crc32c %08x\n", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	if err := os.WriteFile(closed, b, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("closed", realm(sound))
}
