package enginetest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// TestResult: the first answer to an id is found as a repetition would get it, whatever came of the
// request, and after a restart. Looking logs nothing.
func TestResult(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	gem := []kuji.Stack{{Item: "gem", Quantity: 1}}
	for _, id := range []string{"", strings.Repeat("x", kuji.MaxID+1)} {
		_, err := r.Result(t.Context(), id)
		wantCode(t, err, kuji.CodeInvalid)
	}
	reqs := map[string]struct {
		req    kuji.Request
		player string
	}{
		"draw":     {kuji.Draw{ID: "draw", Player: "ann", Pool: "box", Count: 3}, "ann"},
		"poor":     {kuji.Draw{ID: "poor", Player: "ann", Pool: "paid", Count: 100}, "ann"},
		"transfer": {kuji.Transfer{ID: "transfer", From: "ann", To: "bob", Items: gem}, "ann"},
		"one":      {kuji.Atomic{ID: "one", Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "free"}, kuji.Consume{Player: "ann", Items: gem}}}, "ann"},
		"several":  {kuji.Atomic{ID: "several", Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "free"}, kuji.Draw{Player: "bob", Pool: "free"}}}, ""},
	}
	first := map[string]kuji.Result{}
	for id, q := range reqs {
		if l, err := r.Result(t.Context(), id); err != nil || l.Seen != kuji.NotSeen || l.Before != 0 {
			t.Errorf("%s, before it was sent: %+v, %v", id, l, err)
		}
		first[id] = do(t, r, q.req)
	}
	look := func() {
		t.Helper()
		before := r.Stats()
		for id, q := range reqs {
			want := kuji.Lookup{Seen: kuji.Answered, Result: first[id], Player: q.player}
			want.Result.Replayed = true
			got, err := r.Result(t.Context(), id)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, %v, want %+v", id, got, err, want)
			}
		}
		after := r.Stats()
		if after.Events != before.Events || after.Replays != before.Replays || after.Position != before.Position {
			t.Errorf("looking changed %+v to %+v", before, after)
		}
	}
	look()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Result(t.Context(), "draw")
	wantCode(t, err, kuji.CodeClosed)
	_, r = open(t, dir, worldOptions{})
	look()
}

// TestResultForgotten: once an answer was forgotten, no other id is said not to have been seen, unless
// it was made after everything that was forgotten.
func TestResultForgotten(t *testing.T) {
	for _, form := range []string{"any", "time-ordered"} {
		s, dir := newSteps(), t.TempDir()
		o := worldOptions{Steps: s, Now: s.Now}
		e, err := openWorld(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		r, err := e.Realm("test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), parse(t, fmt.Sprintf("idempotency: {count: 2, age: 10m, ids: %s}\n%s", form, testCatalog))); err != nil {
			t.Fatal(err)
		}
		var ids []string
		var stamps []int64
		for range 4 {
			ids, stamps = append(ids, kuji.NewID(s.now)), append(stamps, s.now.UnixMilli())
			do(t, r, kuji.Draw{ID: ids[len(ids)-1], Player: "ann", Pool: "free"})
			s.now = s.now.Add(11 * time.Minute)
		}
		want := func(id string, seen kuji.Seen, before int64) {
			t.Helper()
			if l, err := r.Result(t.Context(), id); err != nil || l.Seen != seen || l.Before != before {
				t.Errorf("%s: %s is %v, before %d, %v; want %v, before %d", form, id, l.Seen, l.Before, err, seen, before)
			}
		}
		before, other := stamps[2], kuji.MaybeForgotten // when the oldest remembered one was answered
		if form == "time-ordered" {
			before, other = stamps[1]+1, kuji.NotSeen // behind the newest forgotten one
		}
		want(ids[0], kuji.MaybeForgotten, before)
		want(ids[1], kuji.MaybeForgotten, before)
		want(ids[2], kuji.Answered, 0)
		want(kuji.NewID(time.UnixMilli(stamps[1])), kuji.MaybeForgotten, before)
		if other == kuji.NotSeen {
			want(kuji.NewID(time.UnixMilli(stamps[1]+1)), other, 0)
			for _, id := range ids[:2] {
				_, err := r.Do(t.Context(), kuji.Draw{ID: id, Player: "ann", Pool: "free"})
				wantCode(t, err, kuji.CodeTooOld)
			}
			_, err := r.Do(t.Context(), kuji.Draw{ID: "order-1", Player: "ann", Pool: "free"})
			wantCode(t, err, kuji.CodeInvalid)
			_, err = r.Do(t.Context(), kuji.Draw{ID: kuji.NewID(s.now.Add(6 * time.Minute)), Player: "ann", Pool: "free"})
			wantCode(t, err, kuji.CodeInvalid)
			do(t, r, kuji.Draw{ID: kuji.NewID(s.now.Add(5 * time.Minute)), Player: "ann", Pool: "free"})
			do(t, r, kuji.Draw{Player: "ann", Pool: "free"}) // without an id there is nothing to be late for
		} else {
			want(kuji.NewID(s.now), other, before)
			want("order-1", other, before)
		}
	}
}
