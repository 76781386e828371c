package enginetest

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/verify"
)

const testCatalog = `
kuji: 1
items:
  gem: {kind: currency}
  sword: {}
pools:
  free:
    entries:
      - {id: sword, weight: 1, reward: {items: {sword: 1}}}
      - {id: none, weight: 3, reward: nothing}
  box:
    mode: raffle
    entries:
      - {id: a, stock: 3, reward: {items: {sword: 1}}}
      - {id: b, stock: 97, reward: {items: {gem: {min: 1, max: 9}}}}
  paid:
    price: {gem: 10}
    entries:
      - {id: sword, weight: 1, stock: 5, reward: {items: {sword: 1}}}
start: {gem: 25}
`

func parse(t testing.TB, yaml string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open opens an engine that the test closes, and its realm "test" with the
// test catalog in force.
func open(t testing.TB, dir string, o worldOptions) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	e, err := openWorld(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) // tests that care close it themselves
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	return e, r
}

func do(t testing.TB, r *kuji.Realm, req kuji.Request) kuji.Result {
	t.Helper()
	res, err := r.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func wantCode(t testing.TB, err error, want kuji.Code) {
	t.Helper()
	if got := kuji.CodeOf(err); got != want {
		t.Errorf("error %v: code %v, want %v", err, got, want)
	}
}

func items(t testing.TB, r *kuji.Realm, player string) map[string]uint64 {
	t.Helper()
	v, err := r.Player(t.Context(), player)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]uint64{}
	for _, it := range v.Items {
		m[it.Item] = it.Quantity
	}
	return m
}

func TestDraw(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	res := do(t, r, kuji.Draw{ID: "1", Player: "ann", Pool: "paid", Count: 2})
	if res.Status != kuji.OK || len(res.Outcomes) != 2 || res.Outcomes[0].Entry != "sword" {
		t.Fatalf("got %+v", res)
	}
	rc := res.Receipt
	if rc.Realm != "test" || rc.Position == 0 || rc.CatalogVersion != 1 || rc.Epoch != 1 || rc.Commitment == [32]byte{} || rc.Time == 0 {
		t.Errorf("receipt %+v", rc)
	}
	if got := r.Stats().Position; got != rc.Position {
		t.Errorf("acknowledged up to position %d, want %d", got, rc.Position)
	}
	if got, want := items(t, r, "ann"), (map[string]uint64{"gem": 5, "sword": 2}); !reflect.DeepEqual(got, want) {
		t.Errorf("ann holds %v, want %v", got, want)
	}
	p, err := r.Pool(t.Context(), "paid")
	if err != nil || p.Entries[0].Left != 3 || p.Entries[0].Drawn != 2 || p.TotalWeight != 1 {
		t.Errorf("pool %+v, %v", p, err)
	}
}

// TestRetry: the same id answers the same, whatever the state has become, and
// after a restart; with other arguments it is refused.
func TestRetry(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	reqs := []kuji.Request{
		kuji.Draw{ID: "draw", Player: "ann", Pool: "box", Count: 10},
		kuji.Draw{ID: "poor", Player: "pat", Pool: "paid", Count: 5},
		kuji.Consume{ID: "few", Player: "ann", Items: []kuji.Stack{{Item: "sword", Quantity: 99}}},
		kuji.Grant{ID: "grant", Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 100}}},
		kuji.Consume{ID: "consume", Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}},
		kuji.Transfer{ID: "transfer", From: "ann", To: "bob", Items: []kuji.Stack{{Item: "gem", Quantity: 7}}},
		kuji.Atomic{ID: "atomic", Members: []kuji.Request{
			kuji.Grant{Player: "eve", Items: []kuji.Stack{{Item: "gem", Quantity: 7}}},
			kuji.Draw{Player: "eve", Pool: "paid", Count: 3},
			&kuji.Transfer{From: "eve", To: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 2}}},
		}},
		kuji.Atomic{ID: "undone", Members: []kuji.Request{
			kuji.Grant{Player: "zoe", Items: []kuji.Stack{{Item: "gem", Quantity: 5}}},
			kuji.Draw{Player: "zoe", Pool: "paid", Count: 3}, // only two left
			kuji.Draw{Player: "zoe", Pool: "free"},
		}},
	}
	var first []kuji.Result
	for _, req := range reqs {
		first = append(first, do(t, r, req))
	}
	for i, want := range []kuji.Status{kuji.OK, kuji.InsufficientItems, kuji.InsufficientItems, kuji.OK, kuji.OK, kuji.OK, kuji.OK, kuji.SoldOut} {
		if first[i].Status != want {
			t.Errorf("request %d ended %v, want %v", i, first[i], want)
		}
	}
	if m := first[7].Members; m[0].Status != kuji.Aborted || m[1].Status != kuji.SoldOut || m[1].Subject != "paid" || m[2].Status != kuji.Aborted {
		t.Errorf("members of the undone group: %v", m)
	}
	if _, err := r.Player(t.Context(), "zoe"); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("the undone group made a player: %v", err)
	}
	again := func() {
		t.Helper()
		for i, req := range reqs {
			got := do(t, r, req)
			if !got.Replayed {
				t.Errorf("request %d was carried out again", i)
			}
			got.Replayed = false
			if !reflect.DeepEqual(got, first[i]) {
				t.Errorf("request %d again:\n%+v, first\n%+v", i, got, first[i])
			}
		}
	}
	do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1000}}})
	again()
	before := items(t, r, "ann")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = open(t, dir, worldOptions{})
	again()
	if got := items(t, r, "ann"); !reflect.DeepEqual(got, before) {
		t.Errorf("after a restart ann holds %v, before %v", got, before)
	}
	for _, req := range []kuji.Request{
		kuji.Draw{ID: "draw", Player: "ann", Pool: "box", Count: 9},
		kuji.Draw{ID: "draw", Player: "bob", Pool: "box", Count: 10},
		kuji.Consume{ID: "few", Player: "ann", Items: []kuji.Stack{{Item: "nosuch", Quantity: 99}}},
		kuji.Grant{ID: "draw", Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 100}}},
		kuji.Grant{ID: "grant", Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 101}}},
		kuji.Atomic{ID: "atomic", Members: []kuji.Request{kuji.Draw{Player: "eve", Pool: "free"}}},
	} {
		_, err := r.Do(t.Context(), req)
		wantCode(t, err, kuji.CodeIDReused)
	}
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	before := r.Stats().Events
	long := string(make([]byte, 65))
	gem := []kuji.Stack{{Item: "gem", Quantity: 1}}
	for _, tc := range []struct {
		req   kuji.Request
		field string
	}{
		{kuji.Draw{Pool: "free"}, "player"},
		{kuji.Draw{Player: long, Pool: "free"}, "player"},
		{kuji.Draw{ID: long, Player: "a", Pool: "free"}, "id"},
		{kuji.Draw{Player: "a"}, "pool"},
		{kuji.Draw{Player: "a", Pool: "free", Count: -1}, "count"},
		{kuji.Draw{Player: "a", Pool: "free", Count: 1001}, "count"},
		{kuji.Grant{Player: "a"}, "items"},
		{kuji.Grant{Player: "a", Items: []kuji.Stack{{Item: "gem"}}}, "items[0].quantity"},
		{kuji.Grant{Player: "a", Items: []kuji.Stack{{Item: "gem", Quantity: 1 << 53}}}, "items[0].quantity"},
		{kuji.Grant{Player: "a", Items: append(gem, gem...)}, "items[1].item"},
		{kuji.Transfer{From: "a", To: "a", Items: gem}, "to"},
		{kuji.Atomic{}, "members"},
		{kuji.Atomic{Members: make([]kuji.Request, 101)}, "members"},
		{&kuji.Atomic{Members: make([]kuji.Request, 1000)}, "members"},
		{kuji.Atomic{ID: long, Members: make([]kuji.Request, 101)}, "id"},
		{kuji.SetTrack{Player: "a", Track: "t"}, "reason"},
		{kuji.SetTrack{Player: "a", Reason: "x"}, "track"},
		{kuji.SetTrack{Player: "a", Track: "t", Reason: "x", Draws: kuji.MaxTrackDraws + 1}, "draws"},
		{kuji.SetTrack{Player: "a", Track: "t", Reason: "x", By: string(make([]byte, kuji.MaxBy+1))}, "by"},
		{kuji.SetTrack{Player: "a", Track: "t", Reason: string(make([]byte, kuji.MaxReason+1))}, "reason"},
		{kuji.Atomic{Members: []kuji.Request{kuji.SetTrack{Player: "a", Track: "t", Reason: "x"}}}, "members[0].kind"},
		{(*kuji.SetTrack)(nil), ""},
		{(*kuji.Atomic)(nil), ""},
		{kuji.Atomic{Members: []kuji.Request{kuji.Draw{ID: "x", Player: "a", Pool: "free"}}}, "members[0].id"},
		{kuji.Atomic{Members: []kuji.Request{kuji.Atomic{}}}, "members[0].kind"},
		{kuji.Atomic{Members: []kuji.Request{kuji.Grant{Player: "a", Items: []kuji.Stack{{}}}}}, "members[0].items[0].item"},
		{kuji.Atomic{Members: []kuji.Request{nil}}, "members[0]"},
		{kuji.Atomic{Members: []kuji.Request{kuji.Grant{Player: "a", Items: gem}, (*kuji.Consume)(nil)}}, "members[1]"},
		{(*kuji.Draw)(nil), ""},
		{nil, ""},
	} {
		_, err := r.Do(t.Context(), tc.req)
		wantCode(t, err, kuji.CodeInvalid)
		if e, ok := err.(*kuji.Error); ok && e.Field != tc.field {
			t.Errorf("%+v: field %q (%v), want %q", tc.req, e.Field, e, tc.field)
		}
	}
	if got := r.Stats().Events; got != before {
		t.Errorf("%d refused requests were logged", got-before)
	}
}

func TestDoAll(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	res, err := r.DoAll(t.Context(), []kuji.Request{
		kuji.Draw{ID: "a", Player: "ann", Pool: "free"},
		kuji.Draw{ID: "", Player: "", Pool: "free"},
		kuji.Draw{ID: "a", Player: "ann", Pool: "free"},
		kuji.Draw{ID: "a", Player: "bob", Pool: "free"},
		kuji.Draw{ID: "b", Player: "bob", Pool: "nosuch"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range res {
		got = append(got, fmt.Sprint(x.Status, x.Replayed, kuji.CodeOf(x.Err)))
	}
	want := []string{"ok false code(0)", "refused false invalid", "ok true code(0)", "refused false id_reused", "refused false not_found"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := r.DoAll(t.Context(), make([]kuji.Request, kuji.MaxBatch+1)); kuji.CodeOf(err) != kuji.CodeInvalid {
		t.Errorf("an oversized batch: %v", err)
	}
	if res, err := r.DoAll(t.Context(), nil); len(res) != 0 || err != nil {
		t.Errorf("an empty batch: %v, %v", res, err)
	}
}

// TestStockUnderLoad: many goroutines draw a box to empty by every form of
// call; each ticket is given once.
func TestStockUnderLoad(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	var mu sync.Mutex
	given := map[string]int{}
	note := func(res kuji.Result, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
		} else if res.Status == kuji.OK {
			given[res.Outcomes[0].Entry]++
		} else {
			given[res.Status.String()]++
		}
	}
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			var calls sync.WaitGroup
			for i := range 15 {
				req := kuji.Draw{ID: fmt.Sprint(g, "-", i), Player: fmt.Sprint("p", g), Pool: "box"}
				switch g % 3 {
				case 0:
					note(r.Do(t.Context(), req))
				case 1:
					calls.Add(1)
					r.Submit(req, func(res kuji.Result, err error) { note(res, err); calls.Done() })
				case 2:
					all, err := r.DoAll(t.Context(), []kuji.Request{&req})
					if err != nil {
						t.Error(err)
						continue
					}
					note(all[0], nil)
				}
			}
			calls.Wait()
		})
	}
	wg.Wait()
	if want := (map[string]int{"a": 3, "b": 97, "sold_out": 80}); !reflect.DeepEqual(given, want) {
		t.Errorf("given %v, want %v", given, want)
	}
}

func TestSecondEngineIsRefused(t *testing.T) {
	dir := t.TempDir()
	e, _ := open(t, dir, worldOptions{})
	_, err := openWorld(dir, worldOptions{})
	wantCode(t, err, kuji.CodeLocked)
	_, err = verify.Dir(dir, "test", verify.Options{})
	wantCode(t, err, kuji.CodeLocked)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = openWorld(dir, worldOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestClosed(t *testing.T) {
	e, r := open(t, t.TempDir(), worldOptions{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "free"})
	wantCode(t, err, kuji.CodeClosed)
	_, err = r.Player(t.Context(), "ann")
	wantCode(t, err, kuji.CodeClosed)
	r.Submit(kuji.Draw{Player: "ann", Pool: "free"}, func(_ kuji.Result, err error) { wantCode(t, err, kuji.CodeClosed) })
	_, err = e.Realm("test")
	wantCode(t, err, kuji.CodeClosed)
	if err := e.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestRealms(t *testing.T) {
	dir := t.TempDir()
	e, _ := open(t, dir, worldOptions{})
	for _, name := range []string{"", "A", "-a", "a/b", "..", "a b", string(make([]byte, 65))} {
		_, err := e.Realm(name)
		wantCode(t, err, kuji.CodeInvalid)
	}
	_, err := e.Lookup("other")
	wantCode(t, err, kuji.CodeNotFound)
	if _, err := e.Realm("other"); err != nil {
		t.Fatal(err)
	}
	if names, err := e.Realms(); err != nil || !reflect.DeepEqual(names, []string{"other", "test"}) {
		t.Errorf("realms %v, %v", names, err)
	}
	other, err := e.Lookup("other")
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "free"})
	wantCode(t, err, kuji.CodeNotFound)
}

// TestTimeNeverDecreases: a clock that steps back does not move batches back.
func TestTimeNeverDecreases(t *testing.T) {
	now := handAt(time.UnixMilli(1_800_000_000_000))
	_, r := open(t, t.TempDir(), worldOptions{Now: now.Now})
	a := do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
	now.Add(-time.Hour)
	b := do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
	if a.Receipt.Time != 1_800_000_000_000 || b.Receipt.Time != a.Receipt.Time || b.Receipt.Position != a.Receipt.Position+1 {
		t.Errorf("receipts %+v, then %+v", a.Receipt, b.Receipt)
	}
}

func TestCanceledBeforeAcceptance(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := r.Stats().Events
	_, err := r.Do(ctx, kuji.Draw{ID: "x", Player: "ann", Pool: "free"})
	wantCode(t, err, kuji.CodeCanceled)
	if r.Stats().Events != before {
		t.Error("a request whose context had ended was carried out")
	}
}

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		e, r := open(t, dir, worldOptions{})
		for i := range 50 {
			do(t, r, kuji.Draw{Player: fmt.Sprint("p", i%7), Pool: []string{"free", "box", "paid"}[i%3], Count: 1 + i%2})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	events := 0
	rep, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) { events++ }})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Events != 151 || events != 151 || len(rep.Epochs) != 3 || rep.Void != 0 {
		t.Errorf("report %+v", rep)
	}
	for _, e := range rep.Epochs {
		if !e.Revealed {
			t.Errorf("epoch %d was closed and not revealed", e.Epoch)
		}
	}
	_, err = verify.Dir(dir, "nosuch", verify.Options{})
	wantCode(t, err, kuji.CodeNotFound)
	_, err = verify.Dir(t.TempDir()+"/nosuch", "test", verify.Options{})
	wantCode(t, err, kuji.CodeNotFound)
}

// TestDataIsPrivate: nobody but the owner can read what players hold, or the
// seeds that foretell draws.
func TestDataIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such modes on Windows")
	}
	dir := t.TempDir() + "/data"
	open(t, dir, worldOptions{})
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBalance asks for one item of a player.
func TestBalance(t *testing.T) {
	e, r := open(t, t.TempDir(), worldOptions{})
	do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "sword", Quantity: 3}}})
	for _, tt := range []struct {
		player, item string
		want         uint64
		code         kuji.Code
	}{
		{"ann", "sword", 3, 0}, {"ann", "gem", 25, 0},
		{"bob", "sword", 0, kuji.CodeNotFound}, {"ann", "nosuch", 0, kuji.CodeNotFound},
	} {
		got, err := r.Balance(t.Context(), tt.player, tt.item)
		stale, staleErr := r.Balance(kuji.Stale(t.Context()), tt.player, tt.item)
		if got != tt.want || stale != tt.want || kuji.CodeOf(err) != tt.code || kuji.CodeOf(staleErr) != tt.code {
			t.Errorf("%s of %s: %d, %v and %d, %v; want %d, %v", tt.item, tt.player, got, err, stale, staleErr, tt.want, tt.code)
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.Balance(t.Context(), "ann", "sword") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Balance(t.Context(), "ann", "sword")
	wantCode(t, err, kuji.CodeClosed)
}
