package enginetest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

// TestUnknownIsRefused: what names a pool, an item or a track that there is not leaves nothing in
// the log, and its request id can be used again, for the same request or another one.
func TestUnknownIsRefused(t *testing.T) {
	dir := t.TempDir()
	e, err := openWorld(dir, worldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	stacks := func(items ...string) (all []kuji.Stack) {
		for _, id := range items {
			all = append(all, kuji.Stack{Item: id, Quantity: 1})
		}
		return all
	}
	for _, early := range []kuji.Request{kuji.Draw{ID: "early", Player: "ann", Pool: "free"}, kuji.Grant{ID: "gift", Player: "ann", Items: stacks("gem")}} {
		_, err := r.Do(t.Context(), early)
		wantCode(t, err, kuji.CodeNotFound)
		if !strings.Contains(err.Error(), "no catalog yet") {
			t.Errorf("before there is a catalog: %v", err)
		}
	}
	if _, err := r.Apply(t.Context(), parse(t, strings.Replace(testCatalog, "  paid:", "  inner:\n    internal: true\n    entries: [{id: a, weight: 1}]\n  outer:\n    entries: [{id: a, weight: 1, reward: {pool: inner}}]\n  paid:", 1))); err != nil {
		t.Fatal(err)
	}
	before := r.Stats().Events
	cases := []struct {
		req   kuji.Request
		field string
	}{
		{kuji.Draw{ID: "x", Player: "ann", Pool: "nosuch"}, "pool"},
		{kuji.Draw{ID: "x", Player: "ann", Pool: "inner"}, "pool"},
		{kuji.Draw{ID: "x", Player: "ann", Pool: "paid", Pay: "nosuch"}, "pay"},
		{kuji.Grant{ID: "x", Player: "ann", Items: stacks("gem", "nosuch")}, "items[1].item"},
		{kuji.Consume{ID: "x", Player: "ann", Items: stacks("nosuch")}, "items[0].item"},
		{kuji.Transfer{ID: "x", From: "ann", To: "bob", Items: stacks("nosuch")}, "items[0].item"},
		{kuji.SetTrack{ID: "x", Player: "ann", Track: "nosuch", Reason: "x"}, "track"},
		// Also behind a member that fails.
		{kuji.Atomic{ID: "x", Members: []kuji.Request{kuji.Consume{Player: "ann", Items: stacks("sword")}, kuji.Draw{Player: "ann", Pool: "nosuch"}}}, "members[1].pool"},
		{kuji.Atomic{ID: "x", Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "free"}, kuji.Grant{Player: "ann", Items: stacks("nosuch")}}}, "members[1].items[0].item"},
	}
	var reqs []kuji.Request
	check := func(err error, field string) {
		t.Helper()
		wantCode(t, err, kuji.CodeNotFound)
		if ke, ok := err.(*kuji.Error); ok && ke.Field != field {
			t.Errorf("%v: field %q, want %q", err, ke.Field, field)
		}
	}
	for _, c := range cases {
		_, err := r.Do(t.Context(), c.req)
		check(err, c.field)
		r.Submit(c.req, func(_ kuji.Result, err error) { check(err, c.field) })
		reqs = append(reqs, c.req)
	}
	res, err := r.DoAll(t.Context(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if res[i].Status != kuji.Refused {
			t.Errorf("%+v in a batch: %v", c.req, res[i])
		}
		check(res[i].Err, c.field)
	}
	if got := r.Stats().Events; got != before {
		t.Errorf("%d refused requests were logged", got-before)
	}
	if _, err := r.Player(t.Context(), "bob"); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("a refused request made a player: %v", err)
	}
	// Every id is free.
	first := do(t, r, kuji.Draw{ID: "x", Player: "ann", Pool: "free"})
	early := do(t, r, kuji.Draw{ID: "early", Player: "ann", Pool: "free"})
	if first.Replayed || early.Replayed {
		t.Error("an id of a refused request was remembered")
	}
	// The first answer stays when a catalog takes the pool away, and after a restart.
	if _, err := r.Apply(t.Context(), parse(t, "{kuji: 1, items: {gem: {kind: currency}}}")); err != nil {
		t.Fatal(err)
	}
	again := func() {
		t.Helper()
		for _, id := range []string{"x", "early"} {
			got := do(t, r, kuji.Draw{ID: id, Player: "ann", Pool: "free"})
			want := map[string]kuji.Result{"x": first, "early": early}[id]
			if want.Replayed = true; !reflect.DeepEqual(got, want) {
				t.Errorf("%s again: %+v, first %+v", id, got, want)
			}
		}
		_, err := r.Do(t.Context(), kuji.Draw{ID: "new", Player: "ann", Pool: "free"})
		check(err, "pool")
		_, err = r.Do(t.Context(), kuji.Draw{ID: "x", Player: "ann", Pool: "nosuch"})
		wantCode(t, err, kuji.CodeIDReused)
	}
	again()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) {
		if rec.Kind != "catalog" && rec.ID != "x" && rec.ID != "early" {
			t.Errorf("the log has %+v", rec)
		}
	}}); err != nil {
		t.Error(err)
	}
	e, r = open(t, dir, worldOptions{})
	_ = e
	if _, err := r.Apply(t.Context(), parse(t, "{kuji: 1, items: {gem: {kind: currency}}}")); err != nil {
		t.Fatal(fmt.Errorf("again: %w", err))
	}
	again()
}

// TestControlCharacters: a request that brings an id with control characters is refused and leaves
// nothing, on every way in.
func TestControlCharacters(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	before := r.Stats().Events
	for _, req := range []kuji.Request{
		kuji.Draw{Player: "a\x1b]0;", Pool: "free"},
		kuji.Draw{ID: "1\n", Player: "ann", Pool: "free"},
		kuji.Register{Player: "a\xff"},
		kuji.Redeem{Player: "a\x00", Code: "x"},
		kuji.Atomic{Members: []kuji.Request{kuji.Register{Player: "a\t"}}},
	} {
		_, err := r.Do(t.Context(), req)
		wantCode(t, err, kuji.CodeInvalid)
		res, err := r.DoAll(t.Context(), []kuji.Request{req})
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, res[0].Err, kuji.CodeInvalid)
	}
	if got := r.Stats().Events; got != before {
		t.Errorf("%d refused requests were logged", got-before)
	}
}
