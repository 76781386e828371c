package enginetest

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

const limitCatalog = `
kuji: 1
items: {gem: {kind: currency}}
start: {gem: 25}
pools:
  daily: {limits: [{per: forever, draws: 9}, {per: day, draws: 2}], entries: [{id: e, weight: 1}]}
  paid: {price: {gem: 10}, entries: [{id: e, weight: 1}]}
`

// TestWhyRefused: a limit names itself, too poor says have and need, and the same id gets the same
// words for ever: from memory, and from the log.
func TestWhyRefused(t *testing.T) {
	now := handAt(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC))
	dir, o := t.TempDir(), worldOptions{Now: now.Now}
	e, r := open(t, dir, o)
	if _, err := r.Apply(t.Context(), parse(t, limitCatalog)); err != nil {
		t.Fatal(err)
	}
	do(t, r, kuji.Draw{Player: "ann", Pool: "daily"})
	midnight := time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC).UnixMilli()
	limited := kuji.Draw{ID: "limited", Player: "ann", Pool: "daily", Count: 2}
	poor := kuji.Atomic{ID: "poor", Members: []kuji.Request{
		kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}, kuji.Draw{Player: "ann", Pool: "paid", Count: 3}}}
	limit := &kuji.Limit{Per: catalog.PerDay, Draws: 2, Left: 1, Resets: midnight}
	lacks := []kuji.Lack{{Item: "gem", Have: 26, Need: 30}}
	check := func(when string, replayed bool) {
		t.Helper()
		if got := do(t, r, limited); got.Status != kuji.LimitReached || got.Replayed != replayed || !reflect.DeepEqual(got.Limit, limit) || got.Lacks != nil {
			t.Errorf("%s: %+v of limit %+v, want %+v", when, got, got.Limit, limit)
		}
		got := do(t, r, poor)
		if got.Status != kuji.InsufficientItems || !reflect.DeepEqual(got.Lacks, lacks) || got.Limit != nil {
			t.Errorf("%s: %+v, want %+v", when, got, lacks)
		}
		if m := got.Members; len(m) != 2 || m[0].Lacks != nil || !reflect.DeepEqual(m[1].Lacks, lacks) {
			t.Errorf("%s: members %+v", when, m)
		}
	}
	check("at first", false)
	view := func() []kuji.PoolLimit {
		t.Helper()
		v, err := r.Player(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		return v.Limits
	}
	want := []kuji.PoolLimit{
		{Pool: "daily", Limit: kuji.Limit{Per: catalog.PerForever, Draws: 9, Left: 8}},
		{Pool: "daily", Limit: *limit},
	}
	if got := view(); !reflect.DeepEqual(got, want) {
		t.Errorf("ann stands at %+v, want %+v", got, want)
	}
	do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 500}}})
	now.Add(24 * time.Hour)
	check("when it would be otherwise", true)
	if got := view(); !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("a day later ann stands at %+v, want %+v", got, want[:1])
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := openWorld(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	check("from the log", true)
	for player, left := range map[string]uint64{"ann": 8, "nobody": 9} {
		got, err := r.Pools().Limits(t.Context(), "daily", player)
		day := kuji.Limit{Per: catalog.PerDay, Draws: 2, Left: 2}
		if err != nil || !reflect.DeepEqual(got, []kuji.Limit{{Per: catalog.PerForever, Draws: 9, Left: left}, day}) {
			t.Errorf("%s stands at %+v, %v", player, got, err)
		}
	}
	_, err = r.Pools().Limits(t.Context(), "nope", "ann")
	wantCode(t, err, kuji.CodeNotFound)
	_, err = r.Pools().Limits(t.Context(), "daily", strings.Repeat("a", kuji.MaxID+1))
	wantCode(t, err, kuji.CodeInvalid)
}

// TestFreeDraws: reads say whether a free draw is left, and when the next one comes.
func TestFreeDraws(t *testing.T) {
	now := handAt(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC))
	dir, o := t.TempDir(), worldOptions{Now: now.Now}
	e, r := open(t, dir, o)
	if _, err := r.Apply(t.Context(), parse(t, `
kuji: 1
items: {gem: {kind: currency}}
start: {gem: 100}
pools:
  daily:
    price: {gem: 1}
    free: {per: day, draws: 2}
    limits: [{per: day, draws: 9}]
    entries: [{id: a, weight: 1}]
  once:
    price: {gem: 1}
    free: {per: forever, draws: 1}
    entries: [{id: a, weight: 1}]
  plain: {entries: [{id: a, weight: 1}]}
`)); err != nil {
		t.Fatal(err)
	}
	midnight := time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC).UnixMilli()
	day := func(left uint64, resets int64) kuji.Limit {
		return kuji.Limit{Per: catalog.PerDay, Draws: 2, Left: left, Resets: resets}
	}
	once := func(left uint64) kuji.Limit { return kuji.Limit{Per: catalog.PerForever, Draws: 1, Left: left} }
	check := func(player string, daily, ever kuji.Limit) {
		t.Helper()
		for pool, want := range map[string]*kuji.Limit{"daily": &daily, "once": &ever, "plain": nil} {
			if got, err := r.Pools().Free(t.Context(), pool, player); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s stands at %+v in %s, %v, want %+v", player, got, pool, err, want)
			}
		}
	}
	views := func(want ...kuji.PoolLimit) {
		t.Helper()
		v, err := r.Player(t.Context(), "ann")
		if err != nil || !reflect.DeepEqual(v.Free, want) {
			t.Errorf("ann's free draws %+v, %v, want %+v", v.Free, err, want)
		}
		if len(v.Limits) > 1 || len(v.Limits) == 1 && v.Limits[0].Draws != 9 {
			t.Errorf("limits %+v", v.Limits)
		}
	}
	check("ann", day(2, 0), once(1))
	do(t, r, kuji.Draw{Player: "ann", Pool: "daily"})
	check("ann", day(1, midnight), once(1))
	views(kuji.PoolLimit{Pool: "daily", Limit: day(1, midnight)})
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "daily", Count: 3}); len(res.Paid) != 1 || res.Paid[0].Quantity != 2 {
		t.Errorf("paid %+v", res.Paid)
	}
	do(t, r, kuji.Draw{Player: "ann", Pool: "once"})
	after := func() {
		t.Helper()
		check("ann", day(0, midnight), once(0))
		views(kuji.PoolLimit{Pool: "daily", Limit: day(0, midnight)}, kuji.PoolLimit{Pool: "once", Limit: once(0)})
		check("bob", day(2, 0), once(1))
	}
	after()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := openWorld(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	after()
	now.Add(24 * time.Hour)
	do(t, r, kuji.Grant{Player: "bob", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
	check("ann", day(2, 0), once(0))
	views(kuji.PoolLimit{Pool: "once", Limit: once(0)})
	_, err = r.Pools().Free(t.Context(), "nope", "ann")
	wantCode(t, err, kuji.CodeNotFound)
}
