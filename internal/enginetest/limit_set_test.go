package enginetest

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/verify"
)

const setLimitCatalog = `
kuji: 1
items: {gem: {kind: currency}}
start: {gem: 5}
pools:
  all: {limits: [{per: forever, draws: 3}], entries: [{id: e, weight: 1}]}
  day: {limits: [{per: day, draws: 3}], entries: [{id: e, weight: 1}]}
  week: {limits: [{per: week, draws: 3}], entries: [{id: e, weight: 1}]}
  exact: {limits: [{per: window, window: 1h, draws: 3}], entries: [{id: e, weight: 1}]}
  steps: {limits: [{per: window, window: 1h, draws: 100}], max_count: 100, entries: [{id: e, weight: 1}]}
`

// monthPool is one more pool, which realms of older levels refuse.
const monthPool = "  month: {limits: [{per: month, draws: 3}], entries: [{id: e, weight: 1}]}\n"

const hour = 3_600_000

func setLimit(id, player, pool string, per catalog.Per, used uint64) kuji.SetLimit {
	s := kuji.SetLimit{ID: id, Player: player, Pool: pool, Per: per, Used: used, Note: kuji.Note{By: "ops", Reason: "ticket 99"}}
	if per == catalog.PerWindow {
		s.Window = hour
	}
	return s
}

// TestSetLimit: what is set of each kind of limit holds for draws, ends when the limit's time ends, and
// is there after a crash and on a follower. The log says who set it and why, and verifies.
func TestSetLimit(t *testing.T) {
	now := handAt(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC))
	s := drivertest.NewShared(drivertest.SharedOptions{})
	_, r := openAt(t, s, 1, kuji.Options{Now: now.Now})
	if _, err := r.Apply(t.Context(), parse(t, setLimitCatalog+monthPool)); err != nil {
		t.Fatal(err)
	}
	e, follower := openAt(t, s, 2, kuji.Options{Follow: true, Now: now.Now})
	may := func(r *kuji.Realm, player, pool string, n int) {
		t.Helper()
		for i := range n {
			if res := do(t, r, kuji.Draw{Player: player, Pool: pool}); res.Status != kuji.OK {
				t.Errorf("%s from %s: draw %d of %d: %v", player, pool, i, n, res)
			}
		}
		if res := do(t, r, kuji.Draw{Player: player, Pool: pool}); res.Status != kuji.LimitReached {
			t.Errorf("%s from %s: after %d draws, one more is %v", player, pool, n, res)
		}
	}
	for pool, per := range map[string]catalog.Per{"all": catalog.PerForever, "day": catalog.PerDay, "week": catalog.PerWeek, "month": catalog.PerMonth, "exact": catalog.PerWindow} {
		may(r, "ann", pool, 3)
		do(t, r, setLimit("", "ann", pool, per, 1))
		may(r, "ann", pool, 2)
		do(t, r, setLimit("", "ann", pool, per, 0))
		do(t, r, setLimit("", "ann", pool, per, 0))
		may(r, "ann", pool, 3)
		do(t, r, setLimit("", "bob", pool, per, 2)) // who was never seen
		may(r, "bob", pool, 1)
		most := uint64(kuji.MaxLimitDraws)
		if per == catalog.PerForever {
			most = kuji.MaxQuantity
		}
		do(t, r, setLimit("", "bob", pool, per, most)) // more than it allows
		may(r, "bob", pool, 0)
		do(t, r, setLimit("", "cid", pool, per, 3))
	}
	if v, err := r.Player(t.Context(), "cid"); err != nil || len(v.Items) != 0 || len(v.Limits) != 5 {
		t.Errorf("a limit that was set brings starting grants: %+v, %v", v, err)
	}
	first := do(t, r, setLimit("twice", "dan", "day", catalog.PerDay, 2))
	sameState(t, follower, r)

	// A follower leads, with a request id that comes again, and when times have ended.
	if err := follower.Replica().Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	r = follower
	again := setLimit("twice", "dan", "day", catalog.PerDay, 2)
	again.Note.By = "another key"
	if res := do(t, r, again); !res.Replayed || res.Receipt != first.Receipt {
		t.Errorf("again on the next leader: %+v, first %+v", res, first)
	}
	for _, change := range []func(*kuji.SetLimit){
		func(s *kuji.SetLimit) { s.Used++ }, func(s *kuji.SetLimit) { s.Player = "ann" },
		func(s *kuji.SetLimit) { s.Pool, s.Per = "week", catalog.PerWeek }, func(s *kuji.SetLimit) { s.Note.Reason = "another" },
	} {
		other := again
		change(&other)
		_, err := r.Do(t.Context(), other)
		wantCode(t, err, kuji.CodeIDReused)
	}
	may(r, "dan", "day", 1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSetLimitEnds: what was set ends as draws do: with the day, the week or the month, and a window after
// it was set. Lowering the use of a window makes nobody wait longer.
func TestSetLimitEnds(t *testing.T) {
	now := handAt(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC))
	dir, o := t.TempDir(), worldOptions{Now: now.Now}
	e, r := open(t, dir, o)
	if _, err := r.Apply(t.Context(), parse(t, setLimitCatalog+monthPool)); err != nil {
		t.Fatal(err)
	}
	left := func(pool string, want uint64) {
		t.Helper()
		all, err := r.Pools().Limits(t.Context(), pool, "ann")
		if err != nil || len(all) != 1 || all[0].Left != want {
			t.Errorf("at %v: %+v of %s, %v, want %d left", now, all, pool, err, want)
		}
	}
	for _, pool := range []string{"exact", "steps"} {
		for range 3 { // at 10:00, 10:20 and 10:40
			do(t, r, kuji.Draw{Player: "ann", Pool: pool})
			now.Add(20 * time.Minute)
		}
		now.Add(-time.Minute) // 10:59
		set := setLimit("", "ann", pool, catalog.PerWindow, 1)
		do(t, r, set) // that of 10:00 stays
		most := map[string]uint64{"exact": 3, "steps": 100}[pool]
		left(pool, most-1)
		now.Add(2 * time.Minute) // 11:01
		left(pool, most)
		set.Used = 2
		do(t, r, set)
		for i := range 200 { // never more counters than a window has
			now.Add(time.Second / 5)
			set.Used = uint64(2 + i%(int(most)-1))
			do(t, r, set)
			left(pool, most-set.Used)
		}
		now.Add(time.Hour + 2*time.Minute)
		left(pool, most)
		now.Set(now.Now().Add(24 * time.Hour).Truncate(24 * time.Hour).Add(10 * time.Hour))
	}
	for pool, per := range map[string]catalog.Per{"day": catalog.PerDay, "week": catalog.PerWeek, "month": catalog.PerMonth, "all": catalog.PerForever} {
		do(t, r, setLimit("", "ann", pool, per, 3))
		left(pool, 0)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := openWorld(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	left("day", 0)
	now.Add(-time.Hour)
	if _, err := r.SetClock(t.Context(), now.Now(), "ops", "the clock was ahead"); err != nil {
		t.Fatal(err)
	}
	left("day", 0)
	now.Add(25 * time.Hour)
	left("day", 3)
	left("week", 0)
	now.Add(7 * 24 * time.Hour)
	left("week", 3)
	left("month", 0)
	now.Set(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).Add(-time.Millisecond))
	left("month", 0)
	now.Add(time.Millisecond)
	left("month", 3)
	left("all", 0)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var last kuji.Record // from the pool exact
	if _, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) {
		if rec.Kind == "set_limit" && rec.Pool == "exact" {
			last = rec
		}
	}}); err != nil {
		t.Fatal(err)
	}
	used := uint64(3)
	want := kuji.Record{Kind: "set_limit", Status: "ok", Player: "ann", Pool: "exact", Draws: &used, By: "ops", Reason: "ticket 99",
		Limit: &kuji.Limit{Per: catalog.PerWindow, Window: hour, Draws: 3}, CatalogVersion: 2}
	last.Position, last.Index, last.Time, last.Last, last.Bytes = 0, 0, 0, false, 0
	if !reflect.DeepEqual(last, want) {
		t.Errorf("the log has %+v of %+v, want %+v", last, last.Limit, want)
	}
}

// TestSetLimitRefused: what cannot be set leaves no event, and the request id stays free.
func TestSetLimitRefused(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	if _, err := r.Apply(t.Context(), parse(t, setLimitCatalog)); err != nil {
		t.Fatal(err)
	}
	position := r.Stats().Position
	for field, all := range map[string][]func(*kuji.SetLimit){
		"player":    {func(s *kuji.SetLimit) { s.Player = "" }, func(s *kuji.SetLimit) { s.Player = strings.Repeat("x", 65) }},
		"pool":      {func(s *kuji.SetLimit) { s.Pool = "" }, func(s *kuji.SetLimit) { s.Pool = "nosuch" }, func(s *kuji.SetLimit) { s.Pool = strings.Repeat("x", 100) }},
		"per":       {func(s *kuji.SetLimit) { s.Per = 0 }, func(s *kuji.SetLimit) { s.Per = catalog.PerHour }, func(s *kuji.SetLimit) { s.Per = 255 }, func(s *kuji.SetLimit) { s.Per = catalog.PerWeek }},
		"window_ms": {func(s *kuji.SetLimit) { s.Window = 1 }, func(s *kuji.SetLimit) { s.Per = catalog.PerWindow }, func(s *kuji.SetLimit) { s.Per, s.Window = catalog.PerWindow, -1 }, func(s *kuji.SetLimit) { s.Per, s.Window = catalog.PerWindow, math.MaxInt64 }, func(s *kuji.SetLimit) { s.Per, s.Window = catalog.PerWindow, hour }},
		"used":      {func(s *kuji.SetLimit) { s.Used = kuji.MaxLimitDraws + 1 }, func(s *kuji.SetLimit) { s.Used = math.MaxUint64 }, func(s *kuji.SetLimit) { s.Pool, s.Per, s.Used = "all", catalog.PerForever, kuji.MaxQuantity+1 }},
		"reason":    {func(s *kuji.SetLimit) { s.Note.Reason = "" }, func(s *kuji.SetLimit) { s.Note.Reason = strings.Repeat("x", 1025) }},
		"by":        {func(s *kuji.SetLimit) { s.Note.By = strings.Repeat("x", 65) }},
		"metadata":  {func(s *kuji.SetLimit) { s.Note.Metadata = strings.Repeat("x", 1025) }},
	} {
		for i, change := range all {
			req := setLimit("free", "ann", "day", catalog.PerDay, 1)
			change(&req)
			_, err := r.Do(t.Context(), &req)
			if e, ok := err.(*kuji.Error); !ok || e.Field != field || e.Code != kuji.CodeInvalid && e.Code != kuji.CodeNotFound {
				t.Errorf("%s %d: %v", field, i, err)
			}
		}
	}
	_, err := r.Do(t.Context(), kuji.Atomic{ID: "free", Members: []kuji.Request{setLimit("", "ann", "day", catalog.PerDay, 1)}})
	wantCode(t, err, kuji.CodeInvalid)
	if got := r.Stats().Position; got != position {
		t.Errorf("%d events of what was refused", got-position)
	}
	do(t, r, setLimit("free", "ann", "day", catalog.PerDay, 1))

	// Older builds do not know the command: a realm of theirs refuses it by name until the upgrade is finished.
	for level := range uint8(2) {
		known := level + 1
		s := drivertest.NewShared(drivertest.SharedOptions{})
		_, r := openAt(t, s, 1, kuji.Options{FormatLevel: func() uint8 { return known }})
		if _, err := r.Apply(t.Context(), parse(t, setLimitCatalog)); err != nil {
			t.Fatal(err)
		}
		_, err := r.Do(t.Context(), setLimit("", "ann", "day", catalog.PerDay, 1))
		if wantCode(t, err, kuji.CodeFormat); !strings.Contains(fmt.Sprint(err), `"set_limit" needs format level 3`) {
			t.Errorf("at level %d: %v", level+1, err)
		}
		known = kuji.FormatLevel()
		if _, err := r.FinishUpgrade(t.Context(), "ops", "all is well"); err != nil {
			t.Fatal(err)
		}
		do(t, r, setLimit("", "ann", "day", catalog.PerDay, 1))
	}
}
