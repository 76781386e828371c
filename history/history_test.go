package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

const testCatalog = `
kuji: 1
items:
  gem: {kind: currency}
  sword: {}
  shield: {}
pools:
  free:
    entries:
      - {id: sword, weight: 1, reward: {items: {sword: 1}}}
      - {id: both, weight: 1, reward: {items: {sword: 1, shield: 2}}}
      - {id: none, weight: 3, reward: nothing}
  paid:
    price: {gem: 10}
    entries:
      - {id: refund, weight: 1, reward: {items: {gem: 10}}}
      - {id: sword, weight: 1, stock: 5, reward: {items: {sword: 1}}}
start: {gem: 25}
`

// realm opens an engine in a directory, with a realm that has the test catalog.
func realm(t testing.TB, dir string, o kuji.Options) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	e, err := kuji.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return e, r
}

// load does a bit of everything. Some of it fails, and some ids are not text.
func load(t testing.TB, r *kuji.Realm, seed uint64, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	player := func() string {
		return []string{"ann", "bob", "cy", "d\\e", "\xff\x00", "zoë"}[random.IntN(6)]
	}
	gems := func(n int) []kuji.Stack { return []kuji.Stack{{Item: "gem", Quantity: uint64(1 + random.IntN(n))}} }
	for i := range n {
		id := fmt.Sprint(seed, "-", i)
		var req kuji.Request
		switch random.IntN(6) {
		case 0:
			req = kuji.Grant{ID: id, Player: player(), Items: append(gems(30), kuji.Stack{Item: "shield", Quantity: 1})}
		case 1:
			req = kuji.Consume{ID: id, Player: player(), Items: gems(20)}
		case 2:
			req = kuji.Transfer{ID: id, From: player(), To: player() + "2", Items: gems(9)}
		case 3:
			req = kuji.Draw{Player: player(), Pool: "paid", Count: 1 + random.IntN(2)}
		case 4:
			p := player()
			req = kuji.Atomic{ID: id, Members: []kuji.Request{
				kuji.Consume{Player: p, Items: gems(9)}, kuji.Draw{Player: p, Pool: "free"}, kuji.Grant{Player: p + "3", Items: gems(5)},
				kuji.Draw{Player: p, Pool: "free", Count: 2},
			}}
		default:
			req = kuji.Draw{ID: id, Player: player(), Pool: "free", Count: 1 + random.IntN(3)}
		}
		if g, ok := req.(kuji.Grant); ok && i%2 == 0 {
			g.Note = kuji.Note{By: "ops", Reason: "compensation"}
			req = g
		}
		if _, err := r.Do(t.Context(), req); err != nil && kuji.CodeOf(err) != kuji.CodeInvalid {
			t.Fatal(err)
		}
	}
}

// through is a realm's feed as far as a position.
func through(feed Feed, last uint64) Feed {
	return func(ctx context.Context, from uint64) iter.Seq2[kuji.Record, error] {
		return func(yield func(kuji.Record, error) bool) {
			for rec, err := range feed(ctx, from) {
				if err == nil && rec.Position > last || !yield(rec, err) || err != nil || rec.Position == last && rec.Last {
					return
				}
			}
		}
	}
}

// all reads every event of a realm.
func all(t testing.TB, r *kuji.Realm) (recs []kuji.Record) {
	t.Helper()
	for rec, err := range through(r.Feed().Events, r.Stats().LastEvent)(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	return recs
}

// of is a feed of some records.
func of(recs []kuji.Record) Feed {
	return func(_ context.Context, from uint64) iter.Seq2[kuji.Record, error] {
		return func(yield func(kuji.Record, error) bool) {
			if n := len(recs); from > 1 && (n == 0 || from > recs[n-1].Position+1) {
				yield(kuji.Record{}, &kuji.Error{Code: kuji.CodeInvalid, Field: "from", Message: "beyond the end"})
				return
			}
			for _, rec := range recs {
				if rec.Position >= from && !yield(rec, nil) {
					return
				}
			}
		}
	}
}

func openTest(t testing.TB, target string) *DB {
	t.Helper()
	h, err := Open(t.Context(), target, "test", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// same compares a history with what its events say, through every query. It goes about it as simply as
// it can be said.
func same(t testing.TB, h *DB, recs []kuji.Record) {
	t.Helper()
	type held struct{ player, item string }
	balances := map[held]uint64{}
	var order, items, pools []string // in the order in which they came
	seen := map[string]bool{}
	note := func(list *[]string, kind, id string) {
		if id != "" && !seen[kind+id] {
			seen[kind+id] = true
			*list = append(*list, id)
		}
	}
	want := map[Query][]kuji.Record{}
	for _, rec := range recs {
		players := map[string]bool{}
		inPools := map[string]bool{}
		for _, r := range append([]kuji.Record{rec}, rec.Members...) {
			for _, p := range []string{r.Player, r.To} {
				if p != "" {
					players[p] = true
				}
			}
			if r.Pool != "" {
				inPools[r.Pool] = true
			}
		}
		rec.Changes = slices.Clone(rec.Changes)
		changed, changedOf := map[string]bool{}, map[held]bool{}
		for i, c := range rec.Changes {
			k := held{c.Player, c.Item}
			balances[k] += uint64(c.Delta)
			rec.Changes[i].Balance = new(balances[k])
			players[c.Player], changed[c.Item], changedOf[k] = true, true, true
			note(&items, "item ", c.Item)
		}
		for _, c := range rec.Changes { // the history numbers them as it comes to them
			note(&order, "player ", c.Player)
		}
		slices.SortFunc(rec.Changes, func(a, b kuji.BalanceChange) int {
			return cmp.Or(strings.Compare(textOf(a.Player), textOf(b.Player)), strings.Compare(a.Item, b.Item))
		})
		for p := range players {
			want[Query{Player: p}] = append(want[Query{Player: p}], rec)
		}
		for p := range inPools {
			want[Query{Pool: p}] = append(want[Query{Pool: p}], rec)
			note(&pools, "pool ", p)
		}
		for i := range changed {
			want[Query{Item: i}] = append(want[Query{Item: i}], rec)
		}
		for k := range changedOf {
			q := Query{Player: k.player, Item: k.item}
			want[q] = append(want[q], rec)
		}
	}
	for q, events := range want {
		slices.Reverse(events)
		if got := pages(t, h, q, 7); !reflect.DeepEqual(plain(t, got), plain(t, events)) {
			t.Errorf("%+v:\n%s\nwant\n%s", q, plain(t, got), plain(t, events))
		}
	}
	var players []string
	for q := range want {
		if q.Player != "" && q.Item == "" {
			players = append(players, q.Player)
		}
	}
	slices.SortFunc(players, func(a, b string) int { return strings.Compare(textOf(a), textOf(b)) })
	if got := everybody(t, h); !slices.Equal(got, players) {
		t.Errorf("players %q, want %q", got, players)
	}
	for _, item := range items {
		want := map[string]uint64{}
		for k, n := range balances {
			if k.item == item && n > 0 {
				want[k.player] = n
			}
		}
		if got := holders(t, h, item); !maps.Equal(got, want) {
			t.Errorf("%s is held by %v, want %v", item, got, want)
		}
	}
	if len(items) == 0 || len(pools) == 0 || len(players) == 0 {
		t.Error("nothing happened: the comparison says nothing")
	}
}

// pages reads all pages of a query.
func pages(t testing.TB, h *DB, q Query, limit int) (events []kuji.Record) {
	t.Helper()
	for q.Limit = limit; ; {
		page, err := h.Events(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) > limit {
			t.Fatalf("%d events, asked for %d", len(page.Events), limit)
		}
		events = append(events, page.Events...)
		if !page.More {
			return events
		}
		q.Before = page.Before
	}
}

func everybody(t testing.TB, h *DB) (players []string) {
	t.Helper()
	for more, after := true, ""; more; {
		var some []string
		var err error
		if some, more, _, err = h.Players(t.Context(), after, 2); err != nil {
			t.Fatal(err)
		}
		players = append(players, some...)
		after = players[len(players)-1]
	}
	return players
}

func holders(t testing.TB, h *DB, item string) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for more, after := true, ""; more; {
		var some []Holder
		var err error
		if some, more, _, err = h.Holders(t.Context(), item, after, 2); err != nil {
			t.Fatal(err)
		}
		for _, s := range some {
			all[s.Player] = s.Quantity
			after = s.Player
		}
	}
	return all
}

// plain is records as lines of text, so that nil and empty are the same.
func plain(t testing.TB, recs []kuji.Record) string {
	t.Helper()
	var b strings.Builder
	for _, rec := range recs {
		line, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%q %q %s\n", rec.Player, rec.To, line)
	}
	return b.String()
}

// TestHistory follows a realm over several restarts of the history and compares it with its events.
func TestHistory(t *testing.T) {
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			_, r := realm(t, t.TempDir(), kuji.Options{})
			target := target(t)
			for round := range uint64(3) {
				load(t, r, round, 60)
				h := openTest(t, target)
				h.most = 16
				if h.Following() {
					t.Error("nothing was compared yet")
				}
				if err := h.Run(t.Context(), through(r.Feed().Events, r.Stats().LastEvent)); err != nil {
					t.Fatal(err)
				}
				if want := (State{Position: r.Stats().LastEvent, CompleteFrom: 1}); h.State() != want || !h.Following() {
					t.Errorf("%+v, following %v, want %+v", h.State(), h.Following(), want)
				}
				same(t, h, all(t, r))
				sameAsRealm(t, h, r)
				if err := h.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// sameAsRealm compares what players hold by the history and by the realm.
func sameAsRealm(t *testing.T, h *DB, r *kuji.Realm) {
	t.Helper()
	got, want := map[string]uint64{}, map[string]uint64{}
	for _, item := range []string{"gem", "sword", "shield"} {
		for player, n := range holders(t, h, item) {
			got[player+" "+item] = n
		}
	}
	for _, player := range everybody(t, h) {
		v, err := r.Player(t.Context(), player)
		if kuji.CodeOf(err) == kuji.CodeNotFound { // everything the player wanted failed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range v.Items {
			want[player+" "+s.Item] = s.Quantity
		}
	}
	if !maps.Equal(got, want) || len(want) == 0 {
		t.Errorf("by the history players hold %v, by the realm %v", got, want)
	}
}

// TestSmallMemory: a writer that forgets names and balances reads them again.
func TestSmallMemory(t *testing.T) {
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			_, r := realm(t, t.TempDir(), kuji.Options{})
			load(t, r, 1, 200)
			h := openTest(t, target(t))
			h.most, h.remember = 8, 5
			if err := h.Run(t.Context(), through(r.Feed().Events, r.Stats().LastEvent)); err != nil {
				t.Fatal(err)
			}
			same(t, h, all(t, r))
		})
	}
}

// TestLive: a Run that goes on brings what comes, and ends with its context.
func TestLive(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	h := openTest(t, filepath.Join(t.TempDir(), "h.db"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx, r.Feed().Events) }()
	for i := range uint64(5) {
		load(t, r, i, 10)
		if err := h.Wait(t.Context(), r.Stats().LastEvent); err != nil {
			t.Fatal(err)
		}
		same(t, h, all(t, r))
	}
	if err := h.Wait(canceled(), r.Stats().LastEvent+1); kuji.CodeOf(err) != kuji.CodeCanceled {
		t.Errorf("waiting for what did not happen: %v", err)
	}
	cancel()
	if err := <-done; kuji.CodeOf(err) != kuji.CodeCanceled {
		t.Errorf("a Run whose context ended: %v", err)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestAnotherLog: a history of another log is neither continued nor served.
func TestAnotherLog(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 50)
	recs := all(t, r)
	target := filepath.Join(t.TempDir(), "h.db")
	h := openTest(t, target)
	if err := h.Run(t.Context(), of(recs)); err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(recs)
	changed[len(changed)-1].Time++
	for name, feed := range map[string]Feed{"shorter": of(recs[:10]), "empty": of(nil), "changed": of(changed)} {
		h := openTest(t, target)
		if err := h.Run(t.Context(), feed); kuji.CodeOf(err) != kuji.CodeConflict {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
		if _, err := h.Events(t.Context(), Query{Player: "ann"}); kuji.CodeOf(err) != kuji.CodeConflict {
			t.Errorf("%s: it is served: %v", name, err)
		}
		if err := h.Run(t.Context(), of(recs)); err != nil {
			t.Errorf("%s, and then the right one: %v", name, err)
		}
		same(t, h, recs)
	}
	if _, err := Open(t.Context(), target, "other", Options{}); kuji.CodeOf(err) != kuji.CodeConflict {
		t.Errorf("for another realm: %v", err)
	}
}

// TestTwoWriters: of two that write a history, one fails, and nothing is in it twice.
func TestTwoWriters(t *testing.T) {
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			_, r := realm(t, t.TempDir(), kuji.Options{})
			load(t, r, 1, 50)
			recs := all(t, r)
			target := target(t)
			first, second := openTest(t, target), openTest(t, target)
			first.most = 10
			begun := false
			first.failpoint = func(sql string) error {
				if sql == "BEGIN" && !begun { // after it has read how far the history is
					begun = true
					if err := second.Run(t.Context(), of(recs[:30])); err != nil {
						t.Error(err)
					}
				}
				return nil
			}
			if err := first.Run(t.Context(), of(recs)); kuji.CodeOf(err) != kuji.CodeFailed || !strings.Contains(err.Error(), "somebody else") {
				t.Errorf("the other one: %v", err)
			}
			if err := first.Run(t.Context(), of(recs)); err != nil {
				t.Fatal(err)
			}
			same(t, first, recs)
		})
	}
}

// TestAge: a history of some age keeps what is not older than its newest event by more than that, and
// says from when on. What players hold, and balances, are those of all events.
func TestAge(t *testing.T) {
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			_, r := realm(t, t.TempDir(), kuji.Options{})
			load(t, r, 1, 400)
			recs := all(t, r)
			for i := range recs { // batches of a second
				recs[i].Time = 1_700_000_000_000 + int64(recs[i].Position)*1000
			}
			last := &recs[len(recs)-1]
			age := 100 * time.Second
			whole, aged := openTest(t, target(t)), openTest(t, target(t))
			aged.o.Age = age
			aged.most, aged.remember = 8, 5
			for _, h := range []*DB{whole, aged} {
				for _, n := range []int{len(recs) / 2, len(recs)} {
					if err := h.Run(t.Context(), of(recs[:n])); err != nil {
						t.Fatal(err)
					}
				}
			}
			kept := slices.IndexFunc(recs, func(rec kuji.Record) bool { return rec.Time >= last.Time-age.Milliseconds() })
			want := State{Position: last.Position, CompleteFrom: 1, KeptFrom: recs[kept].Position, KeptFromTime: recs[kept].Time}
			if aged.State() != want {
				t.Errorf("%+v, want %+v", aged.State(), want)
			}
			younger := func(events []kuji.Record) (some []kuji.Record) {
				for _, rec := range events {
					if rec.Position >= want.KeptFrom {
						some = append(some, rec)
					}
				}
				return some
			}
			players := everybody(t, whole)
			if got := everybody(t, aged); !slices.Equal(got, players) {
				t.Errorf("players %q, want %q", got, players)
			}
			queries := []Query{{Pool: "paid"}, {Item: "gem"}, {Item: "sword"}, {Item: "shield"}}
			for _, p := range players {
				queries = append(queries, Query{Player: p}, Query{Player: p, Item: "gem"})
			}
			some := 0
			for _, q := range queries {
				before := pages(t, whole, q, 100)
				wanted := younger(before)
				if some += len(before) - len(wanted); plain(t, pages(t, aged, q, 100)) != plain(t, wanted) {
					t.Errorf("%+v: other events than the younger ones of all", q)
				}
			}
			if some == 0 {
				t.Error("nothing was removed, so nothing was shown")
			}
			for _, item := range []string{"gem", "sword", "shield"} {
				if got := holders(t, aged, item); !maps.Equal(got, holders(t, whole, item)) {
					t.Errorf("holders of %s: %v", item, got)
				}
			}
			for _, table := range []string{"changes", "pool_events", "item_events", "events"} {
				if err := aged.reading(t.Context(), func(r *reader) error {
					return r.query(t.Context(), "SELECT count(*) FROM "+table+" WHERE seq < $1", func(r row) error {
						if n := r.int(0); n > 0 {
							t.Errorf("%d old rows in %s", n, table)
						}
						return nil
					}, Place{Position: want.KeptFrom}.seq())
				}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestAgeLater: a history that gets an age later loses what it has too much of, some at a time, and goes
// on where it was when it is opened again.
func TestAgeLater(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 100)
	recs := all(t, r)
	for i := range recs {
		recs[i].Time = int64(recs[i].Position) * 1000
	}
	name := filepath.Join(t.TempDir(), "h.db")
	h := openTest(t, name)
	if err := h.Run(t.Context(), of(recs[:len(recs)-1])); err != nil {
		t.Fatal(err)
	}
	if got := h.State(); got.KeptFrom != 0 || got.KeptFromTime != 0 {
		t.Errorf("without an age: %+v", got)
	}
	h, err := Open(t.Context(), name, "test", Options{Age: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Run(t.Context(), of(recs)); err != nil {
		t.Fatal(err)
	}
	if got, want := h.State().KeptFrom, recs[len(recs)-1].Position-10; got != want {
		t.Errorf("kept from %d, want %d", got, want)
	}
	if _, err := Open(t.Context(), name, "test", Options{Age: -1}); kuji.CodeOf(err) != kuji.CodeInvalid {
		t.Errorf("a negative age: %v", err)
	}
}

// TestGather: events gather before they are written, until somebody asks for them, or many wait.
func TestGather(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 60)
	recs := all(t, r)
	h := openTest(t, filepath.Join(t.TempDir(), "h.db"))
	h.rest = time.Hour
	transactions := 0
	h.failpoint = func(sql string) error {
		if sql == "COMMIT" {
			transactions++
		}
		return nil
	}
	more := make(chan kuji.Record)
	feed := func(ctx context.Context, _ uint64) iter.Seq2[kuji.Record, error] {
		return func(yield func(kuji.Record, error) bool) {
			for {
				select {
				case rec := <-more:
					if !yield(rec, nil) {
						return
					}
				case <-ctx.Done():
					yield(kuji.Record{}, ctx.Err())
					return
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx, feed) }()
	for _, rec := range recs {
		more <- rec
	}
	if n := h.State().Position; n != 0 {
		t.Errorf("position %d is written, and nobody asked", n)
	}
	if err := h.Wait(t.Context(), recs[len(recs)-1].Position); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	if transactions > 2 { // the last event may have been on its way
		t.Errorf("%d transactions for %d events", transactions, len(recs))
	}
	same(t, h, recs)
	again := openTest(t, filepath.Join(t.TempDir(), "h.db"))
	again.most, again.rest = 8, time.Hour // so many are ripe
	if err := again.Run(t.Context(), of(recs)); err != nil {
		t.Fatal(err)
	}
	same(t, again, recs)
}

// TestTrimmed: a history that begins behind trimmed events says so, and knows no balances. One that
// has all that was trimmed has lost nothing.
func TestTrimmed(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 60)
	recs := all(t, r)
	first := recs[40].Position
	trimmed := func(ctx context.Context, from uint64) iter.Seq2[kuji.Record, error] {
		if from < first {
			return func(yield func(kuji.Record, error) bool) {
				yield(kuji.Record{}, &kuji.Error{Code: kuji.CodeNotFound, Field: "from", Err: &kuji.TrimmedError{First: first}})
			}
		}
		return of(recs)(ctx, from)
	}
	whole := openTest(t, filepath.Join(t.TempDir(), "whole.db"))
	for _, feed := range []Feed{through(of(recs), recs[39].Position), trimmed, trimmed} {
		if err := whole.Run(t.Context(), feed); err != nil {
			t.Fatal(err)
		}
	}
	same(t, whole, recs)
	if got := whole.State(); got.CompleteFrom != 1 {
		t.Errorf("nothing is missing: %+v", got)
	}
	for name, had := range map[string]int{"nothing before": 0, "a gap": 20} {
		h := openTest(t, filepath.Join(t.TempDir(), "h.db"))
		if had > 0 {
			if err := h.Run(t.Context(), of(recs[:had])); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.Run(t.Context(), trimmed); err != nil {
			t.Fatal(err)
		}
		if want := (State{Position: recs[len(recs)-1].Position, CompleteFrom: first}); h.State() != want {
			t.Errorf("%s: %+v, want %+v", name, h.State(), want)
		}
		if _, _, _, err := h.Holders(t.Context(), "gem", "", 0); kuji.CodeOf(err) != kuji.CodeConflict {
			t.Errorf("%s: holders: %v", name, err)
		}
		var older, newer int
		for _, rec := range pages(t, h, Query{Item: "gem"}, 100) {
			if rec.Position < first {
				older++
			} else {
				newer++
			}
			for _, c := range rec.Changes {
				if (c.Balance == nil) != (rec.Position >= first) {
					t.Errorf("%s: at %d: %+v", name, rec.Position, c)
				}
			}
		}
		if newer == 0 || (older > 0) != (had > 0) {
			t.Errorf("%s: %d older, %d newer events", name, older, newer)
		}
	}
}

// TestQueries: what is asked wrongly is refused, and says where.
func TestQueries(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 20)
	h := openTest(t, filepath.Join(t.TempDir(), "h.db"))
	if err := h.Run(t.Context(), through(r.Feed().Events, r.Stats().LastEvent)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		q     Query
		code  kuji.Code
		field string
	}{
		{Query{}, kuji.CodeInvalid, ""},
		{Query{Player: "ann", Pool: "free"}, kuji.CodeInvalid, ""},
		{Query{Pool: "free", Item: "gem"}, kuji.CodeInvalid, ""},
		{Query{Player: "ann", Limit: MaxPage + 1}, kuji.CodeInvalid, "limit"},
		{Query{Player: "ann", Limit: -1}, kuji.CodeInvalid, "limit"},
		{Query{Player: "ann", Before: Place{1, -1}}, kuji.CodeInvalid, "before"},
		{Query{Player: "ann", Before: Place{1, 1 << indexBits}}, kuji.CodeInvalid, "before"},
		{Query{Player: "ann", Before: Place{1 << 63, 0}}, kuji.CodeInvalid, "before"},
		{Query{Player: "nobody"}, kuji.CodeNotFound, "player"},
		{Query{Pool: "nothing"}, kuji.CodeNotFound, "pool"},
		{Query{Item: "nothing"}, kuji.CodeNotFound, "item"},
	} {
		_, err := h.Events(t.Context(), c.q)
		e, _ := errors.AsType[*kuji.Error](err)
		if e == nil || e.Code != c.code || e.Field != c.field {
			t.Errorf("%+v: %v, want %v of %q", c.q, err, c.code, c.field)
		}
	}
	if _, _, _, err := h.Players(t.Context(), "", MaxPage+1); kuji.CodeOf(err) != kuji.CodeInvalid {
		t.Error(err)
	}
	for _, c := range [][2]string{{"", ""}, {"nothing", ""}, {"gem", "nobody"}} {
		if _, _, _, err := h.Holders(t.Context(), c[0], c[1], 0); kuji.CodeOf(err) == 0 {
			t.Errorf("holders of %q after %q: %v", c[0], c[1], err)
		}
	}
	for _, id := range []string{"", "ann", "zoë", `\`, `\x41`, "a\x00b", "\xff\xfe", "\\\xff", "x\\x5c"} {
		if text := textOf(id); idOf(text) != id || strings.ContainsAny(text, "\x00") {
			t.Errorf("%q is %q is %q", id, text, idOf(text))
		}
	}
}

// TestDetail: what a record says that has no column comes back as it was, whatever bytes its ids have.
func TestDetail(t *testing.T) {
	const odd = "\xff\x00\\x41"
	rec := kuji.Record{
		Kind: "atomic", Status: "ok", CatalogVersion: 3, Last: true, To: odd, Key: odd, Event: "wins",
		Claims:   []kuji.Claimed{{Quest: "q", Tier: 2, Player: odd, Items: []kuji.Stack{{Item: "gem", Quantity: 5}}}},
		Beyond:   []kuji.Beyond{{Item: "gem", Quantity: 3, How: "mailed", Player: odd}},
		Due:      &kuji.Due{Players: []string{odd, "ann"}, Holds: []string{odd}},
		Round:    &kuji.RoundView{Name: "duel", Number: 3, State: "settled", Entrants: 2, Tickets: 2, Winners: []kuji.WinnerView{{Player: odd, Missed: true}}},
		Entrants: []string{"ann", odd},
		Freed:    []kuji.Freed{{Player: odd, Hold: odd}},
		Hold:     &kuji.HoldView{ID: odd, By: odd, State: "open", Parts: []kuji.HeldPart{{Kind: "transfer", Player: odd, To: odd}}},
		Members:  []kuji.Record{{Kind: "progress", Player: odd, To: odd, Key: odd}},
	}
	text, err := detailOf(&rec)
	if err != nil || strings.Contains(text, "\x00") || strings.Contains(text, "\xff") || strings.Contains(text, "\ufffd") {
		t.Errorf("%q, %v", text, err)
	}
	got := kuji.Record{Kind: rec.Kind, Status: rec.Status}
	if err := fill(&got, text); err != nil || !reflect.DeepEqual(got, rec) {
		t.Errorf("%+v, %v\nwant %+v", got, err, rec)
	}
	if rec.Key != odd || rec.Claims[0].Player != odd || rec.Beyond[0].Player != odd || rec.Due.Players[0] != odd || rec.Members[0].Key != odd ||
		rec.Round.Winners[0].Player != odd || rec.Entrants[1] != odd || rec.Freed[0].Hold != odd || rec.Hold.Parts[0].To != odd || rec.Due.Holds[0] != odd {
		t.Errorf("the record was changed: %+v", rec)
	}
}

// TestProposals: a history has what the feed says of catalogs that waited, and which version an approval gave.
func TestProposals(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	c, err := catalog.Parse([]byte(strings.Replace(testCatalog, "start: {gem: 25}", "start: {gem: 26}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	load(t, r, 1, 20) // for a history of nobody has no players to ask for
	ps := kuji.ProposalsOf(r)
	p, err := ps.Propose(t.Context(), c, nil, kuji.Note{By: "designer", Reason: "more", Metadata: "T-1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ps.Approve(t.Context(), p.Number, kuji.Note{By: "lead", Reason: "fine"}); err != nil {
		t.Fatal(err)
	}
	recs := all(t, r)
	if last := recs[len(recs)-1]; last.Kind != "approve" || last.NewCatalogVersion == 0 || last.ProposedBy != "designer" {
		t.Errorf("%+v", last)
	}
	h := openTest(t, filepath.Join(t.TempDir(), "h.db"))
	if err := h.Run(t.Context(), through(r.Feed().Events, r.Stats().LastEvent)); err != nil {
		t.Fatal(err)
	}
	same(t, h, recs)
	text, err := detailOf(&recs[len(recs)-1])
	got := recs[len(recs)-1]
	got.NewCatalogVersion = 0
	if err := errors.Join(err, fill(&got, text)); err != nil || !reflect.DeepEqual(got, recs[len(recs)-1]) {
		t.Errorf("%+v, %v\nwant %+v", got, err, recs[len(recs)-1])
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}
