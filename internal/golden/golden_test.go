package golden_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

// root has a directory for each version of what builds write:
//
//	VERSION/data      a data directory of three lives, the second of which was killed: realm test
//	VERSION/killed    the same, right after that: its last epoch was not closed
//	VERSION/campaign  budgets, moments, a clock that was set: realm campaign
//	VERSION/trimmed   the same, with a log that begins after a snapshot
//	VERSION/upgraded  the data of v1, opened by this build, with its upgrade finished; not in v1
//	VERSION/backup    a backup of data
//	VERSION/shared    a backup of a log that nodes shared: takeovers, copies, a payload outside its entry
//	VERSION/goals     counters, quests, ranks and deadlines, a clock that was set: realm goals; from v4 on
//	VERSION/proposed  catalogs that people see in languages, and that wait for approval: realm proposed; from v6 on
//	VERSION/players   rounds, what is held, and names of players: realm players; from v5 on
//	VERSION/history   the history of data, in SQLite
//	VERSION/history-goals  the history of goals; from v4 on
//	VERSION/history-players  the history of players; from v5 on
//	VERSION/catalogs  canonical forms
//	VERSION/*.jsonl   what the build of the time read from each
const root = "../../testdata/golden"

// kept is a data directory of a version and its realm.
type kept struct{ dir, realm string }

var all = []kept{{"data", "test"}, {"killed", "test"}, {"campaign", "campaign"}, {"trimmed", "campaign"}, {"upgraded", "test"}, {"goals", "goals"}, {"players", "players"}, {"proposed", "proposed"}}

// histories are the histories of a version, each of a data directory.
var histories = map[string]kept{"history": {"data", "test"}, "history-goals": {"goals", "goals"}, "history-players": {"players", "players"}}

// keptIn returns the data directories that a version has.
func keptIn(version string) []kept {
	return slices.DeleteFunc(slices.Clone(all), func(k kept) bool {
		_, err := os.Stat(filepath.Join(version, k.dir))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// versions returns the directories of all versions, ascending.
func versions(t *testing.T) (dirs []string) {
	t.Helper()
	dirs, err := filepath.Glob(root + "/v*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no version in %s: %v", root, err)
	}
	slices.SortFunc(dirs, func(a, b string) int { return number(t, a) - number(t, b) })
	return dirs
}

func number(t *testing.T, dir string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(filepath.Base(dir), "v%d", &n); err != nil {
		t.Fatalf("%s: want v and a number: %v", dir, err)
	}
	return n
}

// reads returns lines of JSON for everything that a realm of a data directory shows: the report of
// verifying it, each event, each remembered answer, players and pools. It opens the directory. That
// begins an epoch, and reveals the seed of one that a kill ended.
func reads(t *testing.T, dir, realm string) (lines []string) {
	t.Helper()
	line := func(what string, v any) {
		lines = append(lines, string(marshal(t, map[string]any{what: v})))
	}
	var recs []kuji.Record
	rep, err := verify.Dir(dir, realm, verify.Options{Seen: func(rec kuji.Record) { recs = append(recs, rec) }})
	if err != nil {
		t.Fatal(err)
	}
	line("report", reportOf(&rep))
	players, pools := map[string]bool{}, map[string]bool{}
	for i := range recs {
		line("event", recs[i])
		for _, c := range recs[i].Changes {
			if c.Player != "" { // who was forgotten
				players[c.Player] = true
			}
		}
		if recs[i].Pool != "" {
			pools[recs[i].Pool] = true
		}
	}
	s, e, r := openStill(t, dir, realm)
	if hash, _, err := r.StateHash(t.Context()); err != nil || hash != rep.StateHash {
		t.Errorf("opened with state %x, verified %x: %v", hash, rep.StateHash, err)
	}
	s.settle()
	for _, id := range idsIn(realm, recs) {
		l, err := r.Result(t.Context(), id)
		if err != nil || l.Seen != kuji.Answered {
			t.Errorf("request %q is remembered no more: %v, %v", id, l.Seen, err)
		}
		line("answer", answerOf(t, id, l.Result))
	}
	for _, id := range sorted(players) {
		v, err := r.Player(t.Context(), id)
		if kuji.CodeOf(err) == kuji.CodeNotFound {
			line("forgotten", id)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range v.Tracks {
			v.Tracks[i].CertainIn = 0 // what rules say of the future, not what was written
		}
		line("player", v)
	}
	for _, id := range sorted(pools) {
		v, err := r.Pool(t.Context(), id)
		if kuji.CodeOf(err) == kuji.CodeNotFound {
			continue // an older catalog had it
		}
		if err != nil {
			t.Fatal(err)
		}
		line("pool", map[string]any{"id": v.ID, "catalog": v.CatalogVersion, "entries": v.Entries, "position": v.Position})
	}
	for _, counter := range ranked(t, r) {
		for _, ended := range []bool{false, true} {
			v, err := r.Ranks(t.Context(), kuji.RanksQuery{Counter: counter, Ended: ended})
			if err != nil {
				t.Fatal(err)
			}
			line("ranks", map[string]any{"of": v.Of, "ranks": v.Ranks, "ends": v.Ends})
		}
	}
	closed(t, e)
	return lines
}

// ranked returns the counters of the catalog in force that rank players.
func ranked(t *testing.T, r *kuji.Realm) (ids []string) {
	t.Helper()
	v, err := r.Catalogs().InForce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Catalog.Counters {
		if c.Ranked.Is {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// idsIn returns the request ids of a realm, with those that only a snapshot has.
func idsIn(realm string, recs []kuji.Record) (ids []string) {
	if realm == "campaign" {
		for i := range 80 {
			ids = append(ids, fmt.Sprint(i))
		}
		return ids
	}
	for i := range recs {
		if recs[i].ID != "" {
			ids = append(ids, recs[i].ID)
		}
	}
	return ids
}

// reportOf is a report with hashes as people write them, and without what opening changes.
func reportOf(rep *verify.Report) any {
	epochs := []any{}
	for _, e := range rep.Epochs {
		epochs = append(epochs, map[string]any{"epoch": e.Epoch, "first": e.First, "events": e.Events, "commitment": fmt.Sprintf("%x", e.Commitment), "revealed": e.Revealed, "lost": e.Lost})
	}
	return map[string]any{
		"position": rep.Position, "batches": rep.Batches, "events": rep.Events, "draws": rep.Draws, "players": rep.Players, "catalog": rep.Catalog,
		"snapshots": rep.Snapshots, "bytes": rep.LogBytes, "chain": fmt.Sprintf("%x", rep.ChainHash), "state": fmt.Sprintf("%x", rep.StateHash), "epochs": epochs,
	}
}

// answerOf is an answer, without the array of numbers that its commitment is.
func answerOf(t *testing.T, id string, res kuji.Result) any {
	t.Helper()
	v := resultOf(t, &res)
	v["ID"], v["Commitment"] = id, fmt.Sprintf("%x", res.Receipt.Commitment)
	return v
}

func resultOf(t *testing.T, res *kuji.Result) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(marshal(t, res), &v); err != nil {
		t.Fatal(err)
	}
	if r, ok := v["Receipt"].(map[string]any); ok {
		delete(r, "Commitment")
	}
	v["Claims"], v["Beyond"], v["Collected"] = res.Claims(), res.Beyond(), res.Collected()
	members := make([]any, len(res.Members))
	for i := range members {
		members[i] = resultOf(t, &res.Members[i])
	}
	if v["Members"] != nil {
		v["Members"] = members
	}
	return v
}

func sorted(set map[string]bool) (ids []string) {
	for id := range set {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// linesOf returns what an old build read.
func linesOf(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// same reports the first difference between what an old build read and what this one reads. A later
// build may show more.
func same(t *testing.T, what string, was, is []string) {
	t.Helper()
	for i := range was {
		if i >= len(is) {
			t.Errorf("%s: line %d was\n%s\nand is gone", what, i, was[i])
			return
		}
		if was[i] == is[i] {
			continue
		}
		var a, b any
		if err := json.Unmarshal([]byte(was[i]), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(is[i]), &b); err != nil {
			t.Fatal(err)
		}
		if where := missing(a, b); where != "" {
			t.Errorf("%s: line %d is read otherwise at %s: it was\n%s\nand is\n%s", what, i, where, was[i], is[i])
			return
		}
	}
	if len(is) > len(was) {
		t.Errorf("%s: there are %d lines more: %s", what, len(is)-len(was), is[len(was)])
	}
}

// missing returns the first place where b lacks something that a has, or has another value, "" if
// there is none. b may have more than a, except in lists.
func missing(a, b any) string {
	switch was := a.(type) {
	case map[string]any:
		is, ok := b.(map[string]any)
		if !ok {
			return " "
		}
		for key, v := range was {
			got, there := is[key]
			if v == nil && !there {
				continue
			}
			if at := missing(v, got); at != "" {
				return "." + key + at
			}
		}
		return ""
	case []any:
		is, ok := b.([]any)
		if !ok || len(is) != len(was) {
			return " "
		}
		for i := range was {
			if at := missing(was[i], is[i]); at != "" {
				return fmt.Sprintf("[%d]%s", i, at)
			}
		}
		return ""
	}
	if !reflect.DeepEqual(a, b) {
		return " "
	}
	return ""
}

// TestMissing: one more field is no difference. Another value, one field less, or one more element of a
// list is.
func TestMissing(t *testing.T) {
	const old = `{"a":1,"b":{"c":[{"d":"x"},2]},"e":null}`
	for now, want := range map[string]string{
		old: "",
		`{"a":1,"b":{"c":[{"d":"x","new":1},2],"new":[]},"new":true}`: "",
		`{"a":2,"b":{"c":[{"d":"x"},2]}}`:                             ".a ",
		`{"b":{"c":[{"d":"x"},2]}}`:                                   ".a ",
		`{"a":1,"b":{"c":[{"d":"x"},2,3]}}`:                           ".b.c ",
		`{"a":1,"b":{"c":[{},2]}}`:                                    ".b.c[0].d ",
		`{"a":1,"b":[]}`:                                              ".b ",
	} {
		var a, b any
		if err := json.Unmarshal([]byte(old), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(now), &b); err != nil {
			t.Fatal(err)
		}
		if got := missing(a, b); got != want {
			t.Errorf("%s misses %q, want %q", now, got, want)
		}
	}
}
