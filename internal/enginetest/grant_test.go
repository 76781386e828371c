package enginetest

import (
	"context"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestMalformedGrants: what is wrong with a grant's items is said before anything
// else, whatever else would keep it from being carried out, and nothing is logged.
func TestMalformedGrants(t *testing.T) {
	e, r := open(t, t.TempDir(), worldOptions{})
	gem := kuji.Stack{Item: "gem", Quantity: 1}
	do(t, r, kuji.Grant{ID: "used", Player: "ann", Items: []kuji.Stack{gem}})
	before := r.Stats()
	var many []kuji.Stack
	for i := range kuji.MaxStacks + 1 {
		many = append(many, kuji.Stack{Item: strings.Repeat("x", 1+i%64), Quantity: 1})
	}
	cases := map[string][]kuji.Stack{
		"items":             nil,
		" items":            many,
		"items[0].item":     {{Item: "", Quantity: 1}},
		"items[1].item":     {gem, {Item: strings.Repeat("x", 65), Quantity: 1}},
		"items[2].item":     {gem, {Item: "sword", Quantity: 1}, gem},
		" items[2].item":    {gem, {Item: "nosuch", Quantity: 1}, {Item: "nosuch", Quantity: 2}},
		"items[0].quantity": {{Item: "gem", Quantity: 0}},
		"items[1].quantity": {{Item: "sword", Quantity: 1}, {Item: "gem", Quantity: kuji.MaxQuantity + 1}},
	}
	refused := func(what string, err error, field string) {
		t.Helper()
		wantCode(t, err, kuji.CodeInvalid)
		if e, ok := err.(*kuji.Error); !ok || e.Field != strings.TrimSpace(field) {
			t.Errorf("%s: %v, want field %q", what, err, field)
		}
	}
	try := func(what string, ctx context.Context, all bool) {
		t.Helper()
		for field, items := range cases {
			for _, req := range []kuji.Grant{
				{Player: "ann", Items: items},
				{ID: "used", Player: "ann", Items: items},
				{ID: "new", Player: "somebody", Items: items},
			} {
				_, err := r.Do(ctx, req)
				refused(what+": Do", err, field)
				calls := 0
				r.Submit(&req, func(_ kuji.Result, err error) { calls++; refused(what+": Submit", err, field) })
				if calls != 1 {
					t.Errorf("%s: done was called %d times before Submit returned", what, calls)
				}
				if !all {
					continue
				}
				good := kuji.Grant{Player: "bob", Items: []kuji.Stack{gem}}
				res, err := r.DoAll(ctx, []kuji.Request{req, good})
				if err != nil || res[1].Status != kuji.OK {
					t.Fatalf("%v, %v", res, err)
				}
				if res[0].Status != kuji.Refused {
					t.Errorf("%s: DoAll: %v", what, res[0])
				}
				refused(what+": DoAll", res[0].Err, field)
				before.Events++ // the good one
			}
		}
	}
	try("open", t.Context(), true)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	try("context ended", ended, false)
	if got := r.Stats().Events; got != before.Events {
		t.Errorf("%d refused requests were logged", got-before.Events)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	try("closed", t.Context(), false)
}
