package golden_test

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/examples"
	"github.com/kuji-dev/kuji/history"
)

var write = flag.String("write", "", "write testdata/golden/`VERSION`, such as v2, which must not be there: once, when the change that brings a format is complete")

// TestWrite writes the directory of a new version. It never changes one that is there.
func TestWrite(t *testing.T) {
	if *write == "" {
		t.Skip("no -write")
	}
	to := filepath.Join(root, *write)
	number(t, to)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is there, and is never written again (%v)", to, err)
	}
	final := to
	to = t.TempDir()
	dir := makeAll(t)
	writeBackup(t, copied(t, dir["data"]), to+"/backup")
	for name, k := range histories {
		writeHistory(t, copied(t, dir[k.dir]), k.realm, to+"/"+name)
	}
	writeShared(t, to+"/shared")
	writeCatalogs(t, to+"/catalogs")
	shared := t.TempDir() + "/data"
	if _, err := backup.Restore(t.Context(), copied(t, to+"/shared"), shared, &sharedKey); err != nil {
		t.Fatal(err)
	}
	put(t, to+"/shared.jsonl", lines(reads(t, shared, "shared")))
	for _, k := range all {
		if err := os.CopyFS(filepath.Join(to, k.dir), os.DirFS(dir[k.dir])); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(to, k.dir+".jsonl"), lines(reads(t, copied(t, dir[k.dir]), k.realm)))
	}
	if err := os.CopyFS(final, os.DirFS(to)); err != nil {
		t.Fatal(err)
	}
}

func lines(all []string) []byte { return []byte(strings.Join(all, "\n") + "\n") }

func put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// makeAll makes the data directories of a version, by name. They come out the same to the byte in every
// run.
func makeAll(t *testing.T) map[string]string {
	t.Helper()
	data, killed := makeLives(t)
	made := map[string]string{"data": data, "killed": killed, "campaign": makeCampaign(t, false), "trimmed": makeCampaign(t, true), "upgraded": makeUpgraded(t),
		"goals": makeGoals(t), "players": makePlayers(t)}
	if *write != "" || newestKept(t) >= 6 {
		made["proposed"] = makeProposed(t)
	}
	return made
}

// makeLives fills a data directory in three lives. The second ends in a crash, the others take
// snapshots. It returns the directory, and a copy of it after the crash.
func makeLives(t *testing.T) (dir, killed string) {
	t.Helper()
	dir, s, round := filepath.Join(t.TempDir(), "data"), newSteps(), 0
	for life := range 3 {
		e, r := openIn(t, s, dir, "test", false)
		if _, err := r.Apply(t.Context(), parse(t, goldenCatalogs[life])); err != nil {
			t.Fatal(err)
		}
		importCodes(t, r, "caps", goldenCaps[4*life:4*life+4])
		importCodes(t, r, "shared", []string{"SHARED-CODE"})
		for range 4 {
			if _, err := r.DoAll(t.Context(), goldenRequests(round)); err != nil {
				t.Fatal(err)
			}
			if life == 0 {
				set := kuji.SetLimit{ID: fmt.Sprint("set-", round), Player: fmt.Sprint("p", round), Pool: "paid", Used: uint64(2 * round), Note: kuji.Note{By: "ops", Reason: "to put it right"}}
				set.Per, set.Window = []catalog.Per{catalog.PerWindow, catalog.PerDay, catalog.PerForever, catalog.PerWindow}[round], []int64{90 * 60_000, 0, 0, 90 * 60_000}[round]
				do(t, r, set)
			}
			round++
			s.now = s.now.Add(31 * time.Minute)
			if life != 1 && round%2 == 0 {
				snapshot(t, r)
			}
		}
		if life == 1 {
			dir = copied(t, dir)
			killed = copied(t, dir)
			continue
		}
		closed(t, e)
	}
	return dir, killed
}

// makeCampaign fills a data directory with requests that depend on time. It can trim the log.
func makeCampaign(t *testing.T, trim bool) string {
	t.Helper()
	dir, s := filepath.Join(t.TempDir(), "data"), newSteps()
	e, r := openIn(t, s, dir, "campaign", trim)
	for i, missed := range []string{"wait", "pass"} {
		if _, err := r.Apply(t.Context(), parse(t, campaign(t, missed))); err != nil {
			t.Fatal(err)
		}
		for j := range 40 {
			n := 40*i + j
			if n%20 == 5 {
				var codes []string
				for k := range 7 {
					codes = append(codes, fmt.Sprintf("CODE-%d-%d", n, k))
				}
				importCodes(t, r, []string{"alpha", "beta"}[n/20%2], codes)
			}
			if n == 30 || n == 60 {
				s.now = s.now.Add(-5 * time.Hour)
				if _, err := r.SetClock(t.Context(), s.now, "ops", "the clock was ahead"); err != nil {
					t.Fatal(err)
				}
			}
			if n%40 == 20 {
				do(t, r, kuji.SetTrack{ID: fmt.Sprint("track-", n), Player: fmt.Sprint("p", n%3), Track: "splash/coupon", Draws: 4, By: "ops", Reason: "to put it right"})
			}
			do(t, r, kuji.Draw{ID: fmt.Sprint(n), Player: fmt.Sprint("p", n%3), Pool: []string{"splash", "tour", "drops"}[n%3], Count: 1 + n%4})
			s.now = s.now.Add(time.Duration(n%7) * 9 * time.Minute)
			if trim && n%10 == 7 {
				snapshot(t, r)
			}
		}
		snapshot(t, r)
	}
	closed(t, e)
	return dir
}

// makeGoals fills a data directory with what counters, quests, ranks and deadlines bring. What falls due comes with
// requests and in events of the sweep.
func makeGoals(t *testing.T) string {
	t.Helper()
	dir, s := filepath.Join(t.TempDir(), "data"), newSteps()
	e, r := openIn(t, s, dir, "goals", false)
	for i, minutes := range []string{"7", "3"} {
		if _, err := r.Apply(t.Context(), parse(t, goals(t, minutes))); err != nil {
			t.Fatal(err)
		}
		for j := range 24 {
			n := 24*i + j
			if n == 30 {
				s.now = s.now.Add(-20 * time.Hour)
				if _, err := r.SetClock(t.Context(), s.now, "ops", "the clock was ahead"); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.DoAll(t.Context(), goalsRequests(n)); err != nil {
				t.Fatal(err)
			}
			s.now = s.now.Add(time.Duration(1+n%7) * 97 * time.Minute)
			if n%16 == 9 {
				if err := r.Settle(t.Context()); err != nil {
					t.Fatal(err)
				}
				snapshot(t, r)
			}
		}
	}
	closed(t, e)
	return dir
}

// makeUpgraded finishes the upgrade of a directory of the first version.
func makeUpgraded(t *testing.T) string {
	t.Helper()
	dir, s := copied(t, root+"/v1/data"), newSteps()
	s.chaos, s.now = rand.NewChaCha8([32]byte{2}), s.now.Add(24*time.Hour)
	e, r := openIn(t, s, dir, "test", false)
	for i := range 2 {
		if _, err := r.DoAll(t.Context(), goldenRequests(12+i)); err != nil {
			t.Fatal(err)
		}
		snapshot(t, r)
		if i > 0 {
			break
		}
		if _, err := r.FinishUpgrade(t.Context(), "ops", "a day without trouble"); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, e)
	return dir
}

// writeShared writes a backup of a realm whose log several nodes shared. It has takeovers, copies of
// entries, and a payload outside its entry.
func writeShared(t *testing.T, to string) {
	t.Helper()
	shared := drivertest.NewShared(drivertest.SharedOptions{Dense: true, Unconditional: true, Rand: rand.New(rand.NewPCG(1, 2)), Faults: drivertest.Faults{Double: 300}})
	s := newSteps()
	for node := range 3 { // each takes over from one that was killed
		e, err := kuji.Open("", kuji.Options{Driver: shared.Node(node), Key: sharedKey, Now: s.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() }) // the errors of those that crashed do not matter
		r, err := e.Realm("shared")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), parse(t, goldenCatalogs[node])); err != nil {
			t.Fatal(err)
		}
		codes := make([]string, 1100)
		for i := range codes {
			codes[i] = fmt.Sprintf("%060d", i)
		}
		if node == 1 {
			importCodes(t, r, "large", codes)
		}
		for _, req := range goldenRequests(node) {
			if _, err := r.Do(t.Context(), req); err != nil && kuji.CodeOf(err) != kuji.CodeNotFound { // an item of a later catalog
				t.Fatal(err)
			}
		}
		if node < 2 {
			continue
		}
		if _, err := backup.Write(t.Context(), to, "shared", backup.Of(r)); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := filepath.Glob(to + "/realms/shared/snapshots/*.payload"); err != nil || len(files) != 1 {
		t.Fatalf("payloads %v, %v", files, err)
	}
}

// sharedKey is the key of nodes that share a log.
var sharedKey = [32]byte{1}

func writeBackup(t *testing.T, dir, to string) {
	t.Helper()
	e, r := open(t, dir, "test")
	if _, err := backup.Write(t.Context(), to, "test", backup.Of(r)); err != nil {
		t.Fatal(err)
	}
	closed(t, e)
}

func writeHistory(t *testing.T, dir, realm, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	e, r := open(t, dir, realm)
	h, err := history.Open(t.Context(), to+"/"+realm+".db", realm, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Run(t.Context(), through(r)); err != nil {
		t.Fatal(err)
	}
	put(t, to+".jsonl", lines(asked(t, h)))
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	closed(t, e)
}

func writeCatalogs(t *testing.T, to string) {
	t.Helper()
	sources := map[string]string{"realm-campaign": campaign(t, "wait"), "realm-goals": goals(t, "7"), "realm-players": players(t, "100")}
	for i, yaml := range goldenCatalogs {
		sources[fmt.Sprint("realm-", i)] = yaml
	}
	files, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := fs.ReadFile(examples.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		sources[strings.TrimSuffix(name, ".yaml")] = string(b)
	}
	for name, yaml := range sources {
		c := parse(t, yaml)
		hash := c.Hash()
		put(t, filepath.Join(to, name+"."+hex.EncodeToString(hash[:8])), c.AppendCanonical(nil))
	}
}

// decoded decodes an old canonical form.
func decoded(t *testing.T, name string) *catalog.Catalog {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Decode(b)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}
