package enginetest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/verify"
)

// TestStrays: files among the snapshots that are none of Kuji's harm nothing,
// stay where they are, and are named by Verify.
func TestStrays(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	drawSome(t, r, "a", 5)
	snapshot(t, r)
	at := dir + "/realms/test/snapshots/"
	strays := []string{"before-the-event.snapshot", "1-0.snapshot", filepath.Base(snapshotFiles(t, dir)[0]) + ".bak"}
	slices.Sort(strays)
	for _, name := range strays {
		if err := os.WriteFile(at+name, []byte("somebody's"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 { // old ones are removed on the way
		drawSome(t, r, fmt.Sprint(round, "-"), 50)
		snapshot(t, r)
		if err := r.Stats().SnapshotErr; err != nil {
			t.Errorf("snapshot %d: %v", round, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e, r = open(t, dir, worldOptions{TrimLog: true, SegmentSize: 4096})
		if got := r.Stats(); got.RecoveredEvents != 0 || got.SnapshotErr != nil {
			t.Errorf("opening %d: %d events replayed, %v", round, got.RecoveredEvents, got.SnapshotErr)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Dir(dir, "test", verify.Options{})
	if err != nil || !slices.Equal(rep.Strays, strays) || rep.Snapshots == 0 {
		t.Errorf("%d snapshots verified, strays %v: %v; want %v", rep.Snapshots, rep.Strays, err, strays)
	}
	for _, name := range strays {
		if b, err := os.ReadFile(at + name); err != nil || string(b) != "somebody's" {
			t.Errorf("%s holds %q, %v", name, b, err)
		}
	}
}

// TestTwoOfOnePosition: a realm writes one snapshot of a position; of two that
// somebody put there, the one that is whole serves, and the next snapshots
// remove the other.
func TestTwoOfOnePosition(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{Sync: kuji.SyncNone})
	drawSome(t, r, "players", 7)
	snapshot(t, r)
	drawSome(t, r, "a", 5)
	s := snapshot(t, r)
	if s.Base == 0 {
		t.Fatalf("%+v, want one that builds on another", s)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, base := range []uint64{0, s.Base + 1, s.Position - 1, s.Position} {
		twin := fmt.Sprintf("%s/realms/test/snapshots/%020d-%020d-%064x.snapshot", dir, s.Position, base, 0)
		if err := os.WriteFile(twin, []byte("not a snapshot"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := verify.Dir(dir, "test", verify.Options{}); base == 0 && err == nil {
			t.Error("verification finds nothing wrong")
		}
		e, r = open(t, dir, worldOptions{Sync: kuji.SyncNone})
		if got := r.Stats(); got.RecoveredEvents != 0 || got.Snapshot != s.Position {
			t.Errorf("base %d: %d events replayed from the snapshot of %d; want none from %d", base, got.RecoveredEvents, got.Snapshot, s.Position)
		}
		drawSome(t, r, fmt.Sprint(base), 5)
		s = snapshot(t, r)
		if err := r.Stats().SnapshotErr; err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(twin); err == nil {
			t.Errorf("base %d: %s is still there", base, filepath.Base(twin))
		}
		if rep, err := verify.Dir(dir, "test", verify.Options{}); err != nil || rep.Snapshots < 2 {
			t.Errorf("base %d: %d snapshots verified, %v", base, rep.Snapshots, err)
		}
	}
}

// forgeFooter changes the footer of a snapshot, and makes its checksums right.
func forgeFooter(t *testing.T, name string, change func(footer []byte)) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for b[at+8] != 255 {
		at += 9 + int(binary.LittleEndian.Uint32(b[at:]))
	}
	change(b[at+9:])
	if err := os.WriteFile(name, reframe(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestForgedFooter: what a snapshot's footer says of the log is compared with the
// log where that is there; and where it is not, a number of random values that no
// draws can have used does not make Verify count to it.
func TestForgedFooter(t *testing.T) {
	u64 := func(at int, v uint64) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint64(b[at:], v) }
	}
	const values, last, first = 32, 40, 134
	forged := []struct {
		name    string
		change  func([]byte)
		trimmed bool // found where the log was trimmed, too
	}{
		{"offset", u64(8, 2), false},
		{"epoch", func(b []byte) { u64(16, 3)(b); u64(first+8, 3)(b) }, true},
		{"values: too few", u64(values, 1), true},
		{"values: more than all draws can have used", u64(values, 1<<62), true},
		{"values: as many as can be written", u64(values, 1<<64-1), true},
		{"last time", func(b []byte) { b[last]++ }, false},
		{"last time: out of range", u64(last, 1<<44), true},
		{"writer", func(b []byte) { b[48]++ }, true},
		{"hash", func(b []byte) { b[64]++ }, true},
		{"the entry", func(b []byte) { b[96]++ }, true},
		{"epoch has ended", func(b []byte) { b[128] = 1 }, true},
		{"an epoch's begin", u64(first, 2), false},
		{"revealed", func(b []byte) { b[first+16] = 1 }, true},
		{"commitment", func(b []byte) { b[first+17]++ }, true},
	}
	for _, trimmed := range []bool{false, true} {
		dir := t.TempDir()
		e, r := open(t, dir, worldOptions{Sync: kuji.SyncNone, TrimLog: trimmed, SegmentSize: 4096})
		rounds := 2
		if trimmed {
			rounds = 8
		}
		for round := range rounds {
			drawSome(t, r, fmt.Sprint(round, "-"), 60)
			snapshot(t, r)
		}
		drawSome(t, r, "more", 5)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		rep, err := verify.Dir(dir, "test", verify.Options{})
		if err != nil || trimmed != (rep.From > 0) || !rep.Epochs[0].Revealed {
			t.Fatalf("verified from %d: %v", rep.From, err)
		}
		name := snapshotFiles(t, dir)[0]
		for _, file := range snapshotFiles(t, dir) {
			if strings.HasPrefix(filepath.Base(file), fmt.Sprintf("%020d-", rep.From)) {
				name = file
			}
		}
		sound, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range forged {
			forgeFooter(t, name, f.change)
			if rep, err := verify.Dir(dir, "test", verify.Options{}); err == nil && rep.Epochs[0].Undecided == "" && (!trimmed || f.trimmed) {
				t.Errorf("%s forged, log trimmed %v: Verify finds nothing wrong: %+v", f.name, trimmed, rep)
			} else if err != nil && strings.HasPrefix(f.name, "values: ") && !strings.Contains(err.Error(), "random values") && f.name != "values: too few" {
				t.Errorf("%s: %v", f.name, err)
			}
			if err := os.WriteFile(name, sound, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestVerifyFromValues: a log that was trimmed is verified from its oldest snapshot, however many values
// its draws have used for what they took. A drop table uses many and takes nothing; a box that is
// filled again forgets what was taken.
func TestVerifyFromValues(t *testing.T) {
	for name, pool := range map[string]string{
		"drop table": `{mode: each, rolls: 20, entries: [` + strings.Repeat(`{id: x%d, chance: 0.000000000000001}, `, 40) + `]}`,
		"box":        `{mode: raffle, refill: 1000000, entries: [{id: a, stock: 1, reward: {items: {gem: {min: 1, max: 9}}}}, {id: b, stock: 1}]}`,
		"rewards":    `{rolls: {min: 1, max: 10}, entries: [{id: a, weight: 1}, {id: b, weight: 1, reward: {pool: more, times: {min: 1, max: 9}}}]}, more: {internal: true, entries: [{id: a, weight: 1}, {id: b, weight: 1}]}`,
		"moments":    `{starts: 2001-01-01T00:00:00Z, ends: 2099-01-01T00:00:00Z, entries: [{id: m, weight: 0, moments: {count: 1000, spread: random}}, {id: b, weight: 1}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if n := strings.Count(pool, "%d"); n > 0 {
				numbers := make([]any, n)
				for i := range numbers {
					numbers[i] = i
				}
				pool = fmt.Sprintf(pool, numbers...)
			}
			c, err := catalog.Parse([]byte("{kuji: 1, items: {gem: {kind: currency}}, pools: {p: " + pool + "}}"))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			e, r := open(t, dir, worldOptions{Sync: kuji.SyncNone, TrimLog: true, SegmentSize: 4096})
			if _, err := r.Apply(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			for round := range 8 {
				for i := range 60 {
					do(t, r, kuji.Draw{ID: fmt.Sprint(round, "-", i), Player: fmt.Sprint("p", i%7), Pool: "p", Count: 1 + i%3})
				}
				snapshot(t, r)
			}
			do(t, r, kuji.Draw{ID: "last", Player: "p", Pool: "p"})
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if rep, err := verify.Dir(dir, "test", verify.Options{}); err != nil || rep.From == 0 || !rep.Epochs[0].Revealed {
				t.Errorf("verified from %d: %v", rep.From, err)
			}
		})
	}
}

// TestFooterOfAFreshEpoch: an epoch in which nothing was drawn has used no value.
func TestFooterOfAFreshEpoch(t *testing.T) {
	dir := t.TempDir()
	o := worldOptions{Sync: kuji.SyncNone, TrimLog: true, SegmentSize: 4096}
	e, r := open(t, dir, o)
	drawSome(t, r, "a", 100)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for range 60 { // until the log is trimmed to a snapshot of an epoch's begin
		e, r = open(t, dir, o)
		snapshot(t, r)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	name := snapshotFiles(t, dir)[0]
	if rep, err := verify.Dir(dir, "test", verify.Options{}); err != nil || rep.From == 0 {
		t.Fatalf("verified from %d: %v", rep.From, err)
	}
	forgeFooter(t, name, func(b []byte) { binary.LittleEndian.PutUint64(b[32:], 1) })
	if _, err := verify.Dir(dir, "test", verify.Options{}); err == nil || !strings.Contains(err.Error(), "random values") {
		t.Errorf("one value too many: %v", err)
	}
}

// TestDamagedLength: a frame that claims to be as long as can be written costs no
// memory before that is found to be damage.
func TestDamagedLength(t *testing.T) {
	dir, name, sound := oneSnapshot(t, 50)
	second := 9 + int(binary.LittleEndian.Uint32(sound))
	for _, at := range []int{0, second} {
		for _, length := range []uint32{1<<32 - 1, 1 << 31, 1 << 30, uint32(len(sound))} {
			b := slices.Clone(sound)
			binary.LittleEndian.PutUint32(b[at:], length)
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := verify.Dir(dir, "test", verify.Options{})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), filepath.Base(name)) {
				t.Errorf("length %d at byte %d: %v", length, at, err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
				t.Errorf("length %d at byte %d: %d MB for a file of %d bytes", length, at, took>>20, len(sound))
			}
		}
	}
}

// TestForgedSnapshot changes every bit of a snapshot, makes its checksums right,
// and lets Verify find it: by what the file says, or by the state that the log gives.
func TestForgedSnapshot(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{Sync: kuji.SyncNone})
	for i := range 3 {
		do(t, r, kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "paid"})
	}
	snapshot(t, r)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	name := snapshotFiles(t, dir)[0]
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	states := 0 // that differ
	for at := range sound {
		forged := slices.Clone(sound)
		forged[at] ^= 1 << (at % 8)
		forged = reframe(forged)
		if string(forged) == string(sound) { // in what reframe computes
			continue
		}
		if err := os.WriteFile(name, forged, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := verify.Dir(dir, "test", verify.Options{})
		if err == nil {
			t.Errorf("byte %d of %d: Verify finds nothing wrong", at, len(sound))
		} else if strings.Contains(err.Error(), "differs from that of the log") {
			states++
		}
	}
	if states < 50 {
		t.Errorf("of %d forged snapshots, %d held another state that was compared; want more", len(sound), states)
	}
}

// TestBaseMissing: a snapshot whose base is gone is reported when it is the
// newest, and no harm when a crash may have left it of a removal.
func TestBaseMissing(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	drawSome(t, r, "players", 7)
	for round := range 3 {
		drawSome(t, r, fmt.Sprint(round, "-"), 1)
		snapshot(t, r)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files := snapshotFiles(t, dir)
	if len(files) != 3 {
		t.Fatalf("%d snapshots, want a chain of 3", len(files))
	}
	if err := os.Remove(files[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Dir(dir, "test", verify.Options{}); err == nil || !strings.Contains(err.Error(), filepath.Base(files[2])) {
		t.Errorf("without its base, the newest passes: %v", err)
	}
	orphan := fmt.Sprintf("%s/realms/test/snapshots/%020d-%020d-%064x.snapshot", dir, 5, 4, 0)
	if err := os.Rename(files[2], orphan); err != nil {
		t.Fatal(err)
	}
	if rep, err := verify.Dir(dir, "test", verify.Options{}); err != nil || rep.Snapshots != 1 {
		t.Errorf("what a crash may leave of a removal: %d snapshots, %v", rep.Snapshots, err)
	}
}

// TestShortFooter: a footer that ends too early is refused, wherever it ends.
func TestShortFooter(t *testing.T) {
	dir, name, sound := oneSnapshot(t, 5)
	at := 0 // of the footer
	for sound[at+8] != 255 {
		at += 9 + int(binary.LittleEndian.Uint32(sound[at:]))
	}
	for n := range len(sound) - at - 9 {
		short := slices.Clone(sound[:at+9+n])
		binary.LittleEndian.PutUint32(short[at:], uint32(n))
		if err := os.WriteFile(name, reframe(short), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := verify.Dir(dir, "test", verify.Options{}); err == nil || !strings.Contains(err.Error(), "footer of") {
			t.Errorf("a footer of %d bytes: %v", n, err)
		}
	}
	e, err := openWorld(dir, worldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if r, err := e.Realm("test"); err != nil || r.Stats().SnapshotErr == nil {
		t.Errorf("opening: %v", err)
	}
}
