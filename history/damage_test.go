package history

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
)

// sqlIn carries out statements in a database, as somebody else would.
func sqlIn(t testing.TB, h *DB, statements ...string) {
	t.Helper()
	c, err := h.db.open(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, sql := range statements {
		n, err := c.exec(t.Context(), sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		if n == 0 && (strings.HasPrefix(sql, "UPDATE") || strings.HasPrefix(sql, "DELETE")) {
			t.Fatalf("%s: it changes nothing", sql)
		}
	}
}

// trimmedAt is a feed of records that begins at a position.
func trimmedAt(recs []kuji.Record, first uint64) Feed {
	return func(ctx context.Context, from uint64) iter.Seq2[kuji.Record, error] {
		if from < first {
			return func(yield func(kuji.Record, error) bool) {
				yield(kuji.Record{}, &kuji.Error{Code: kuji.CodeNotFound, Field: "from", Err: &kuji.TrimmedError{First: first}})
			}
		}
		return of(recs)(ctx, from)
	}
}

// questions are what the tests ask, each with the answer as text.
func questions(t testing.TB, h *DB) map[string]func() string {
	all := map[string]func() string{}
	ask := func(question string, answer func() (any, error)) {
		all[question] = func() string {
			what, err := answer()
			if err == nil {
				return fmt.Sprintf("%+v", what)
			}
			if kuji.CodeOf(err) == kuji.CodeCorrupt && damageOf(err) == nil {
				t.Errorf("%s: %v: it does not say what is damaged", question, err)
			}
			return fmt.Sprint(kuji.CodeOf(err))
		}
	}
	for _, q := range []Query{{Player: "ann"}, {Pool: "paid"}, {Pool: "free"}, {Item: "gem"}, {Item: "sword"}, {Player: "ann", Item: "gem"}} {
		ask(fmt.Sprintf("%+v", q), func() (any, error) {
			page, err := h.Events(t.Context(), q)
			return plain(t, page.Events), err
		})
	}
	ask("players", func() (any, error) {
		players, _, _, err := h.Players(t.Context(), "", 0)
		return players, err
	})
	for _, item := range []string{"gem", "shield"} {
		ask("holders of "+item, func() (any, error) {
			holders, _, _, err := h.Holders(t.Context(), item, "", 0)
			return holders, err
		})
	}
	return all
}

// untilBuilt runs a history until it is built again. It reports how many Runs found damage.
func untilBuilt(t testing.TB, h *DB, feed Feed) (found int) {
	t.Helper()
	for range 3 {
		err := h.Run(t.Context(), feed)
		if err == nil {
			return found
		}
		if found++; damageOf(err) == nil || kuji.CodeOf(err) != kuji.CodeCorrupt {
			t.Fatal(err)
		}
	}
	t.Fatal("it is damaged again and again")
	return found
}

// damages are ways to damage a history. What an answer shows may not be wrong after any.
var damages = map[string]string{
	"a reason":                  "UPDATE events SET detail = replace(detail, 'compensation', 'condemnation') WHERE detail LIKE '%compensation%'",
	"a status":                  "UPDATE events SET status = 'limited' WHERE kind = 'draw' AND status = 'ok'",
	"a time":                    "UPDATE events SET time = time + 1 WHERE kind = 'draw'",
	"whose it was":              "UPDATE events SET player = player + 1 WHERE kind = 'grant'",
	"which request":             "UPDATE events SET request = 'another' WHERE kind = 'grant'",
	"no request":                "UPDATE events SET request = NULL WHERE kind = 'grant'",
	"a checksum":                "UPDATE events SET sum = sum + 1 WHERE kind = 'grant'",
	"no checksum":               "UPDATE events SET sum = NULL WHERE kind = 'grant'",
	"a detail that is no JSON":  "UPDATE events SET detail = '{' WHERE kind = 'grant'",
	"a balance":                 "UPDATE changes SET balance = balance + 1 WHERE item <> 0",
	"a change":                  "UPDATE changes SET delta = delta + 1 WHERE item <> 0",
	"an unknown balance":        "UPDATE changes SET balance = NULL WHERE item <> 0",
	"a change of another item":  "UPDATE changes SET item = item + 10 WHERE item <> 0",
	"missing changes":           "DELETE FROM changes WHERE item <> 0",
	"missing events":            "DELETE FROM events WHERE kind = 'grant'",
	"no events in a pool":       "UPDATE pool_events SET seq = seq + 4194304000",
	"other events in a pool":    "INSERT INTO pool_events SELECT (SELECT min(pool) FROM pool_events), seq FROM events WHERE kind = 'consume'",
	"other events of an item":   "UPDATE item_events SET item = item + 10",
	"a player's name":           "UPDATE players SET name = 'eve' WHERE name = 'ann'",
	"an item's name":            "UPDATE items SET name = 'jewel' WHERE name = 'gem'",
	"missing players":           "DELETE FROM players WHERE name <> 'ann'",
	"what players hold":         "UPDATE holdings SET quantity = quantity + 1",
	"who holds it":              "UPDATE holdings SET player = player + 100",
	"how far it has come":       "UPDATE progress SET position = position - 1",
	"from where it is complete": "UPDATE progress SET complete_from = 2",
	"no progress":               "DELETE FROM progress",
}

// TestDamage: what was changed in a database is reported, never served, and the next Run builds the
// history again.
func TestDamage(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 60)
	recs := all(t, r)
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			h := openTest(t, target(t))
			if err := h.Run(t.Context(), of(recs)); err != nil {
				t.Fatal(err)
			}
			same(t, h, recs)
			right := map[string]string{}
			for question, ask := range questions(t, h) {
				right[question] = ask()
			}
			n := 0
			for _, what := range slices.Sorted(maps.Keys(damages)) {
				if n++; name == "postgres" && n%6 != 0 { // the same code, more slowly
					continue
				}
				sqlIn(t, h, damages[what])
				found := false
				for question, ask := range questions(t, h) {
					switch got := ask(); {
					case got == fmt.Sprint(kuji.CodeCorrupt):
						found = true
						h.healed(progress{}) // the other questions are asked as well
					case got != right[question] && !lacks(what, got, right[question]):
						t.Errorf("%s: %s: %s\nwant %s", what, question, got, right[question])
					}
				}
				if _, err := h.Verify(t.Context(), of(recs)(t.Context(), 1)); damageOf(err) == nil {
					t.Errorf("%s: the comparison with the log says %v", what, err)
				}
				if found {
					h.hurt(damaged("something"))
				} else if err := h.Rebuild(t.Context()); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				untilBuilt(t, h, of(recs))
				if got := h.State(); got.ProvenFrom != 0 || got.CompleteFrom != 1 {
					t.Errorf("%s: built again from all of the log: %+v", what, got)
				}
				if _, err := h.Verify(t.Context(), of(recs)(t.Context(), 1)); err != nil {
					t.Errorf("%s, and built again: %v", what, err)
				}
				for question, ask := range questions(t, h) {
					if got := ask(); got != right[question] {
						t.Errorf("%s, and built again: %s: %s\nwant %s", what, question, got, right[question])
					}
				}
			}
			same(t, h, recs)
		})
	}
}

// lacks reports whether an answer lacks what was removed or renamed, and says nothing wrong. Only the
// comparison with the log finds that.
func lacks(what, got, right string) bool {
	switch what {
	case "a player's name", "an item's name", "missing players", "missing changes", "a change of another item", "who holds it", "other events of an item":
	default:
		return false
	}
	if got == fmt.Sprint(kuji.CodeNotFound) {
		return true
	}
	for line := range strings.Lines(strings.Trim(got, "[]")) {
		if !strings.Contains(right, line) {
			return false
		}
	}
	return true
}

// TestDamageLive: a reader that meets damage ends the Run that goes on, and waiting with it.
func TestDamageLive(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 40)
	h := openTest(t, filepath.Join(t.TempDir(), "h.db"))
	done := make(chan error, 1)
	run := func() { done <- h.Run(t.Context(), r.Feed().Events) }
	go run()
	last := r.Stats().LastEvent
	if err := h.Wait(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	sqlIn(t, h, damages["a reason"])
	waits := make(chan error, 1)
	go func() { waits <- h.Wait(t.Context(), last+1000) }()
	for item := range map[string]bool{"gem": true, "shield": true} { // one of them meets it, the other one is refused
		if _, err := h.Events(t.Context(), Query{Item: item}); damageOf(err) == nil {
			t.Errorf("events of %s: %v", item, err)
		}
	}
	for what, ended := range map[string]chan error{"Run": done, "Wait": waits} {
		if err := <-ended; damageOf(err) == nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	go run()
	for {
		err := h.Wait(t.Context(), last)
		if err == nil {
			break
		}
		if damageOf(err) == nil { // the next Run has not begun yet
			t.Fatal(err)
		}
		goesOn(t, done)
	}
	same(t, h, all(t, r))
}

// goesOn fails if a Run has ended.
func goesOn(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("Run has ended: %v", err)
	default:
	}
}

// TestDamageTrimmed: if the log was trimmed, older rows stay and are not proven. Balances stay known, as
// far as those that they rest on can be read.
func TestDamageTrimmed(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 80)
	recs := all(t, r)
	first := recs[50].Position
	older, younger := fmt.Sprint("seq < ", Place{Position: first}.seq()), fmt.Sprint("seq >= ", Place{Position: first}.seq())
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			for what, sql := range map[string]string{
				"a younger event":     "UPDATE events SET status = 'limited' WHERE " + younger,
				"younger events":      "DELETE FROM events WHERE " + younger,
				"an older event":      "UPDATE events SET status = 'limited' WHERE kind = 'grant' AND " + older,
				"older details":       "UPDATE events SET detail = '' WHERE " + older,
				"older events":        "DELETE FROM events WHERE " + older,
				"holdings":            "UPDATE holdings SET quantity = quantity + 1",
				"missing holdings":    "DELETE FROM holdings",
				"names":               "UPDATE players SET name = 'eve' WHERE name = 'ann'",
				"how far it has come": "UPDATE progress SET position = position + 1",
			} {
				if name == "postgres" && what != "an older event" && what != "how far it has come" {
					continue
				}
				h := openTest(t, target(t))
				h.most = 7
				if err := h.Run(t.Context(), of(recs)); err != nil {
					t.Fatal(err)
				}
				sqlIn(t, h, sql)
				h.hurt(damaged("something"))
				untilBuilt(t, h, trimmedAt(recs, first))
				st := h.State()
				if st.ProvenFrom != first || st.Position != recs[len(recs)-1].Position {
					t.Errorf("%s: %+v, want it proven from %d", what, st, first)
				}
				known := !slices.Contains([]string{"holdings", "missing holdings", "names", "how far it has come"}, what)
				if (st.CompleteFrom == 1) != known {
					t.Errorf("%s: %+v, want balances %v", what, st, known)
				}
				if known && what != "older details" && what != "older events" && what != "an older event" {
					same(t, h, recs)
				}
				if known {
					sameAsRealm(t, h, r)
				}
				got := pages(t, h, Query{Item: "gem"}, 7)
				for i := range got { // the younger ones are right, and the older ones can be read
					if k := slices.IndexFunc(recs, func(rec kuji.Record) bool { return rec.Position == got[i].Position }); got[i].Position >= first && !sameEvent(&got[i], &recs[k]) {
						t.Errorf("%s: %+v", what, got[i])
					}
				}
				if len(got) == 0 || (got[len(got)-1].Position < first) != (what != "older events") {
					t.Errorf("%s: %d events of gem", what, len(got))
				}
				if _, err := h.Verify(t.Context(), trimmedAt(recs, first)(t.Context(), first)); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestDamagedFile: a file that SQLite cannot read is replaced, and kept aside if the log was trimmed.
func TestDamagedFile(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 80)
	recs := all(t, r)
	whole := filepath.Join(t.TempDir(), "whole.db")
	h := openTest(t, whole)
	if err := h.Run(t.Context(), of(recs)); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for what, damage := range map[string]func(b []byte) []byte{
		"its header": func(b []byte) []byte { return append([]byte("not a database at all"), b[21:]...) },
		"its pages": func(b []byte) []byte {
			for i := 4096; i < len(b); i += 7 {
				b[i] ^= 0x5a
			}
			return b
		},
		"its end": func(b []byte) []byte { return b[:len(b)/2] },
	} {
		for first, feed := range map[uint64]Feed{1: of(recs), recs[50].Position: trimmedAt(recs, recs[50].Position)} {
			file := filepath.Join(t.TempDir(), "h.db")
			if err := os.WriteFile(file, damage(slices.Clone(data)), 0o600); err != nil {
				t.Fatal(err)
			}
			h := openTest(t, file)
			if _, err := h.Events(t.Context(), Query{Item: "gem"}); damageOf(err) == nil {
				t.Errorf("%s: it is served: %v", what, err)
			}
			untilBuilt(t, h, feed)
			if st := h.State(); st.Position != recs[len(recs)-1].Position || st.CompleteFrom != first {
				t.Errorf("%s: %+v", what, st)
			}
			if first == 1 {
				same(t, h, recs)
			}
			if _, err := os.Stat(file + damagedSuffix); (err == nil) != (first > 1) {
				t.Errorf("%s, and the log begins at %d: the old file: %v", what, first, err)
			}
		}
	}
}

// withoutSums makes a history one of format 2, as builds before checksums wrote it.
var withoutSums = []string{
	"ALTER TABLE players DROP COLUMN sum", "ALTER TABLE items DROP COLUMN sum", "ALTER TABLE pools DROP COLUMN sum",
	"ALTER TABLE events DROP COLUMN sum", "ALTER TABLE holdings DROP COLUMN sum",
	"ALTER TABLE progress DROP COLUMN sum", "ALTER TABLE progress DROP COLUMN proven_from", "ALTER TABLE progress DROP COLUMN rebuild",
	"UPDATE progress SET format = 2",
}

// TestUpgrade: a history without checksums is opened. It is not proven until the next Run has built it
// again, as far back as the log goes.
func TestUpgrade(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 80)
	recs := all(t, r)
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			for _, first := range []uint64{1, recs[50].Position} {
				target := target(t)
				old := openTest(t, target)
				if err := old.Run(t.Context(), of(recs)); err != nil {
					t.Fatal(err)
				}
				sqlIn(t, old, withoutSums...)
				h := openTest(t, target)
				last := recs[len(recs)-1].Position
				if want := (State{Position: last, CompleteFrom: 1, ProvenFrom: last + 1}); h.State() != want {
					t.Errorf("%+v, want %+v", h.State(), want)
				}
				same(t, h, recs)
				feed := of(recs)
				want := State{Position: last, CompleteFrom: 1}
				if first > 1 {
					feed, want.ProvenFrom = trimmedAt(recs, first), first
				}
				for range 2 {
					if err := h.Run(t.Context(), feed); err != nil {
						t.Fatal(err)
					}
					if h.State() != want {
						t.Errorf("%+v, want %+v", h.State(), want)
					}
					same(t, h, recs)
					sameAsRealm(t, h, r)
				}
				h = openTest(t, target)
				if h.State() != want {
					t.Errorf("opened again: %+v, want %+v", h.State(), want)
				}
			}
		})
	}
}

// TestFormats: what this build can neither read nor upgrade is refused, and says what to do.
func TestFormats(t *testing.T) {
	file := filepath.Join(t.TempDir(), "h.db")
	h := openTest(t, file)
	for f, want := range map[int]struct {
		text string
		code kuji.Code
	}{1: {"too old", kuji.CodeConflict}, format + 1: {"written by a newer Kuji", kuji.CodeFormat}} {
		sqlIn(t, h, fmt.Sprint("UPDATE progress SET format = ", f))
		if _, err := Open(t.Context(), file, "test", Options{}); kuji.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.text) || !strings.Contains(err.Error(), fmt.Sprint("format ", f)) {
			t.Errorf("format %d: %v, want %v and %q", f, err, want.code, want.text)
		}
	}
}

// TestVerify: a history is compared with its log, as far as both go.
func TestVerify(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 300)
	recs := all(t, r)
	last := recs[len(recs)-1].Position
	h := openTest(t, filepath.Join(t.TempDir(), "h.db"))
	if report, err := h.Verify(t.Context(), of(recs)(t.Context(), 1)); err != nil || report.Events != 0 {
		t.Errorf("empty: %+v, %v", report, err)
	}
	if err := h.Run(t.Context(), of(recs[:len(recs)-10])); err != nil {
		t.Fatal(err)
	}
	end := recs[len(recs)-11].Position
	for from, feed := range map[uint64]Feed{1: of(recs), recs[100].Position: trimmedAt(recs, recs[100].Position)} {
		report, err := h.Verify(t.Context(), feed(t.Context(), from))
		if want := (Report{max(from, recs[0].Position), end, report.Events, h.State()}); err != nil || report != want || report.Events == 0 {
			t.Errorf("from %d: %+v, %v, want %+v", from, report, err, want)
		}
	}
	if _, err := h.Verify(t.Context(), of(recs[:100])(t.Context(), 1)); kuji.CodeOf(err) != kuji.CodeConflict {
		t.Errorf("a log that ends earlier: %v", err)
	}
	another := slices.Clone(recs)
	another[200].Reason = "another"
	if _, err := h.Verify(t.Context(), of(another)(t.Context(), 1)); damageOf(err) == nil || !strings.Contains(err.Error(), fmt.Sprint("position ", another[200].Position)) {
		t.Errorf("a log with another event at %d of %d: %v", another[200].Position, last, err)
	}
	another = slices.Delete(slices.Clone(recs), 150, 151)
	if _, err := h.Verify(t.Context(), of(another)(t.Context(), 1)); damageOf(err) == nil {
		t.Errorf("a log that lacks an event: %v", err)
	}
}
