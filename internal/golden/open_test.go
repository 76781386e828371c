package golden_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/history"
	"github.com/kuji-dev/kuji/verify"
)

// eachVersion runs a test for every version.
func eachVersion(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	for _, dir := range versions(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) { test(t, dir) })
	}
}

// TestGolden: this build reads what an old build wrote as the old one did: every event, every answer,
// what players hold, the hash of the state. Then the realm goes on, and all of it verifies.
func TestGolden(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		for _, k := range keptIn(version) {
			t.Run(k.dir, func(t *testing.T) {
				dir := copied(t, filepath.Join(version, k.dir))
				same(t, k.dir, linesOf(t, filepath.Join(version, k.dir+".jsonl")), reads(t, dir, k.realm))
				goOn(t, dir, k.realm)
			})
		}
	})
}

// goOn makes requests in an old data directory, closes and opens it again, and verifies it.
func goOn(t *testing.T, dir, realm string) {
	t.Helper()
	before, err := verify.Dir(dir, realm, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string][]kuji.Request{
		"test": goldenRequests(20), "campaign": {kuji.Draw{ID: "on", Player: "p1", Pool: "tour", Count: 9}}, "goals": goalsRequests(60), "players": playersRequests(60), "proposed": proposedRequests(60),
	}[realm]
	e, r := open(t, dir, realm)
	results, err := r.DoAll(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for _, res := range results {
		if res.Replayed {
			t.Errorf("a new request has the answer of an old one: %v", res)
		}
		if res.Status == kuji.OK {
			drawn++
		}
	}
	if drawn == 0 {
		t.Errorf("nothing goes on: %v", results)
	}
	snapshot(t, r)
	hash, settled := last(t, e, r)
	// A realm settles by itself what is due, also between two calls. So it is opened until it has nothing to settle.
	for range 20 {
		e, r = open(t, dir, realm)
		for i, req := range requests {
			if id := idOf(req); id != "" && results[i].Err == nil {
				if res := do(t, r, req); !res.Replayed || res.Status != results[i].Status {
					t.Errorf("%+v is answered with %v, want %v again", req, res, results[i])
				}
			}
		}
		was, wasSettled := hash, settled
		hash, settled = last(t, e, r)
		if r.Stats().Events > 0 {
			continue
		}
		if wasSettled && hash != was {
			t.Errorf("reopened with state %x, want %x", hash, was)
		}
		rep, err := verify.Dir(dir, realm, verify.Options{Through: &verify.Anchor{Position: before.Position, Hash: before.ChainHash}})
		if err != nil || rep.StateHash != hash {
			t.Errorf("verified with state %x, want %x: %v", rep.StateHash, hash, err)
		}
		return
	}
	t.Error("something is always due")
}

// last closes an engine and returns the hash of its realm's state. settled: nothing was settled between the two.
func last(t *testing.T, e *kuji.Engine, r *kuji.Realm) (hash [32]byte, settled bool) {
	t.Helper()
	before := r.Stats().Events
	hash, _, err := r.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed(t, e)
	return hash, r.Stats().Events == before
}

// TestBytes: the same requests with the same entropy give the bytes of the newest version. Only this
// test sees every change of a format, of the rules, and of how randomness is used.
func TestBytes(t *testing.T) {
	dirs := versions(t)
	newest, made := dirs[len(dirs)-1], makeAll(t)
	for _, k := range keptIn(newest) {
		if k.dir == "upgraded" && newestKept(t) < kuji.FormatLevel() {
			continue // it is upgraded to another level
		}
		was, is := filesOf(t, filepath.Join(newest, k.dir)), filesOf(t, made[k.dir])
		if !slices.Equal(was, is) {
			t.Errorf("this build writes %s in another way than %s. If you mean that, then when the change is complete, run\ngo test ./internal/golden -run TestWrite -write v%d\n%s",
				k.dir, filepath.Base(newest), number(t, newest)+1, firstDifference(was, is))
		}
	}
}

// filesOf returns the names and the contents of the files below a directory.
func filesOf(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if strings.HasSuffix(name, ".wal") || strings.HasSuffix(name, ".snapshot") {
			b = []byte(hex.EncodeToString(b))
		}
		files = append(files, name+" "+string(b))
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files: %v", dir, len(files), err)
	}
	return files
}

func firstDifference(was, is []string) string {
	for i := range max(len(was), len(is)) {
		a, b := "nothing", "nothing"
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		if a == b {
			continue
		}
		at := 0
		for at < min(len(a), len(b)) && a[at] == b[at] {
			at++
		}
		from := max(0, at-80)
		return fmt.Sprintf("file %d, byte %d, was\n%s\nand is\n%s", i, at, a[from:min(len(a), at+80)], b[from:min(len(b), at+80)])
	}
	return "no difference"
}

// TestBackup: an old backup grows, and is restored to a directory and to nodes that share a log. One
// node follows and then leads. The feed shows what it showed.
func TestBackup(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		want := linesOf(t, filepath.Join(version, "data.jsonl"))
		kept := copied(t, filepath.Join(version, "backup"))
		restored := t.TempDir() + "/data"
		reports, err := backup.Restore(t.Context(), kept, restored, nil)
		if err != nil || len(reports) != 1 {
			t.Fatal(reports, err)
		}
		e, r := open(t, restored, "test")
		if _, err := r.DoAll(t.Context(), goldenRequests(12)); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Write(t.Context(), kept, "test", backup.Of(r)); err != nil {
			t.Errorf("a backup of old does not grow: %v", err)
		}
		closed(t, e)
		shared := drivertest.NewShared(drivertest.SharedOptions{})
		copyLog(t, restored, shared.Node(1), "test")
		now := newSteps()
		node := func(n int, follow bool) (*kuji.Engine, *kuji.Realm) {
			e, err := kuji.Open("", kuji.Options{Driver: shared.Node(n), Key: sharedKey, Follow: follow, Now: now.Now, ClockConfirmed: now.now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close() })
			r, err := e.Realm("test")
			if err != nil {
				t.Fatal(err)
			}
			return e, r
		}
		_, leader := node(1, false)
		_, follower := node(2, true)
		if _, err := leader.DoAll(t.Context(), goldenRequests(13)); err != nil {
			t.Fatal(err)
		}
		hash, position, err := leader.StateHash(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := follower.Replica().Await(t.Context(), position); err != nil {
			t.Fatal(err)
		}
		if got, _, err := follower.StateHash(kuji.Stale(t.Context())); err != nil || got != hash {
			t.Errorf("a follower has state %x, want %x: %v", got, hash, err)
		}
		var fed []string
		for rec, err := range through(leader)(t.Context(), 1) {
			if err != nil {
				t.Fatal(err)
			}
			fed = append(fed, string(marshal(t, map[string]any{"event": rec})))
		}
		want = slices.DeleteFunc(want, func(l string) bool { return !strings.HasPrefix(l, `{"event"`) })
		same(t, "the feed", want, fed[:min(len(fed), len(want))])
		if err := follower.Replica().Lead(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := follower.DoAll(t.Context(), goldenRequests(14)); err != nil {
			t.Fatal(err)
		}
	})
}

// copyLog appends the log of a data directory to that of a driver.
func copyLog(t *testing.T, dir string, to driver.Driver, realm string) {
	t.Helper()
	d, err := disk.Open(dir, disk.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	from, err := d.Open(t.Context(), realm, driver.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	log, err := to.Open(t.Context(), realm, driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	last, err := from.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after := driver.Cursor(0)
	for e, err := range from.Read(t.Context(), 0, last) {
		if err == nil {
			after, err = log.Append(t.Context(), after, e.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []interface{ Close() error }{log, from, d} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShared: a backup of a log that nodes shared is read as it was.
func TestShared(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		dir := t.TempDir() + "/data"
		if _, err := backup.Restore(t.Context(), copied(t, version+"/shared"), dir, &sharedKey); err != nil {
			t.Fatal(err)
		}
		same(t, "shared", linesOf(t, version+"/shared.jsonl"), reads(t, dir, "shared"))
	})
}

// TestCatalogs: old canonical forms are read and mean the same: their hash has not changed.
func TestCatalogs(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		files, err := filepath.Glob(version + "/catalogs/*")
		if err != nil || len(files) < 4 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			hash := decoded(t, name).Hash()
			if want := strings.TrimPrefix(filepath.Ext(name), "."); hex.EncodeToString(hash[:8]) != want {
				t.Errorf("%s: has hash %x", name, hash)
			}
		}
		was := decoded(t, files[0]).AppendCanonical(nil)
		if b, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(b, was) {
			t.Errorf("%s: is written otherwise than it was: %v", files[0], err)
		}
	})
}

// TestHistory: an old history is read, and goes on from its last event. (Its format is the old one. A
// later build may build it again.)
func TestHistory(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		for name, k := range histories {
			if _, err := os.Stat(filepath.Join(version, name)); err == nil {
				t.Run(name, func(t *testing.T) { historyGoesOn(t, version, name, k) })
			}
		}
	})
}

func historyGoesOn(t *testing.T, version, name string, k kept) {
	t.Helper()
	dir := copied(t, filepath.Join(version, k.dir))
	file := filepath.Join(copied(t, filepath.Join(version, name)), k.realm+".db")
	e, r := open(t, dir, k.realm)
	h, err := history.Open(t.Context(), file, k.realm, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "history", linesOf(t, filepath.Join(version, name+".jsonl")), asked(t, h))
	requests := map[string][]kuji.Request{"test": goldenRequests(12), "goals": goalsRequests(60), "players": playersRequests(60)}[k.realm]
	if _, err := r.DoAll(t.Context(), requests); err != nil {
		t.Fatal(err)
	}
	if err := h.Run(t.Context(), through(r)); err != nil {
		t.Fatal(err)
	}
	if at, want := h.State(), r.Stats().LastEvent; at.Position != want || at.CompleteFrom != 1 {
		t.Errorf("the history has come to %+v, want %d", at, want)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	closed(t, e)
}

// asked returns lines for what a history answers.
func asked(t *testing.T, h *history.DB) (lines []string) {
	t.Helper()
	players, more, _, err := h.Players(t.Context(), "", history.MaxPage)
	if err != nil || more || len(players) == 0 {
		t.Fatal(players, more, err)
	}
	for _, id := range players {
		page, err := h.Events(t.Context(), history.Query{Player: id, Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Events {
			lines = append(lines, string(marshal(t, map[string]any{"player": id, "event": page.Events[i]})))
		}
	}
	holders, more, _, err := h.Holders(t.Context(), "gem", "", history.MaxPage)
	if err != nil || more || len(holders) == 0 {
		t.Fatal(holders, more, err)
	}
	return append(lines, string(marshal(t, holders)))
}

// through is a realm's feed up to its last event now.
func through(r *kuji.Realm) history.Feed {
	last := r.Stats().LastEvent
	return func(ctx context.Context, from uint64) iter.Seq2[kuji.Record, error] {
		return func(yield func(kuji.Record, error) bool) {
			for rec, err := range r.Feed().Events(ctx, from) {
				if err == nil && rec.Position > last || !yield(rec, err) || err != nil || rec.Position == last && rec.Last {
					return
				}
			}
		}
	}
}

// TestDecidedAgain: the verifier decides again what rules of version 5 and later decided, and gets the
// same bytes.
func TestDecidedAgain(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		for _, k := range keptIn(version) {
			if k.dir == "killed" {
				continue // its last seed was never revealed
			}
			rep, err := verify.Dir(copied(t, filepath.Join(version, k.dir)), k.realm, verify.Options{})
			if err != nil {
				t.Fatalf("%s: %v", k.dir, err)
			}
			decided := 0
			for _, e := range rep.Epochs {
				if e.Undecided != "" || e.Rules != 0 && e.Rules < 5 {
					t.Errorf("%s: epoch %d of rules %d: %s", k.dir, e.Epoch, e.Rules, e.Undecided)
				}
				if e.Revealed {
					decided += int(e.Events)
				}
			}
			if decided == 0 {
				t.Errorf("%s: nothing was decided again", k.dir)
			}
		}
	})
}
