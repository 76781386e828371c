package enginetest

import (
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

// TestNotes: who asked and why stands in the log. It is part of what a request id stands for, except
// whose key it was.
func TestNotes(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	gem := []kuji.Stack{{Item: "gem", Quantity: 1}}
	note := kuji.Note{By: "shop", Reason: "ticket 7", Metadata: `{"order": 12}`}
	noted := func(id string, n kuji.Note) []kuji.Request {
		return []kuji.Request{
			kuji.Grant{ID: id + "grant", Player: "ann", Items: gem, Note: n},
			kuji.Consume{ID: id + "consume", Player: "ann", Items: gem, Note: n},
			kuji.Transfer{ID: id + "transfer", From: "ann", To: "bob", Items: gem, Note: n},
			kuji.Atomic{ID: id + "atomic", Members: []kuji.Request{kuji.Grant{Player: "ann", Items: gem}}, Note: n},
			&kuji.Grant{ID: id + "pointer", Player: "ann", Items: gem, Note: n},
			kuji.Consume{ID: id + "failed", Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1e9}}, Note: n},
		}
	}
	for i, req := range noted("", note) {
		first := do(t, r, req)
		other := note
		other.By = "another key"
		if again := do(t, r, noted("", other)[i]); !again.Replayed || again.Receipt != first.Receipt {
			t.Errorf("%T with another key: %+v", req, again)
		}
		for _, other := range []kuji.Note{{By: "shop", Metadata: note.Metadata}, {By: "shop", Reason: note.Reason}, {}} {
			_, err := r.Do(t.Context(), noted("", other)[i])
			wantCode(t, err, kuji.CodeIDReused)
		}
		do(t, r, noted("plain ", kuji.Note{})[i])
	}
	if _, err := r.Catalogs().Apply(t.Context(), parse(t, limitCatalog), kuji.ApplyOptions{Note: note}); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1025)
	for _, n := range []kuji.Note{{By: long[:65]}, {Reason: long}, {Metadata: long}} {
		for _, req := range noted("long ", n) {
			_, err := r.Do(t.Context(), req)
			wantCode(t, err, kuji.CodeInvalid)
		}
		_, err := r.Catalogs().Apply(t.Context(), parse(t, testCatalog), kuji.ApplyOptions{Note: n})
		wantCode(t, err, kuji.CodeInvalid)
	}
	_, err := r.Do(t.Context(), kuji.Atomic{Members: []kuji.Request{kuji.Grant{Player: "ann", Items: gem, Note: note}}})
	wantCode(t, err, kuji.CodeInvalid)
	most := kuji.Note{By: long[:kuji.MaxBy], Reason: long[:kuji.MaxReason], Metadata: long[:kuji.MaxMetadata]}
	do(t, r, kuji.Grant{ID: "most", Player: "ann", Items: gem, Note: most})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	got, want := map[string]kuji.Note{}, map[string]kuji.Note{"most": most}
	for _, id := range []string{"grant", "consume", "transfer", "atomic", "pointer", "failed"} {
		want[id], want["plain "+id] = note, kuji.Note{}
	}
	catalogs := 0
	if _, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) {
		n := kuji.Note{By: rec.By, Reason: rec.Reason, Metadata: rec.Metadata}
		if rec.ID != "" {
			got[rec.ID] = n
		}
		if rec.Kind == "catalog" && n == note {
			catalogs++
		}
	}}); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) || catalogs != 1 {
		t.Errorf("%d events and %d catalogs with the note, want %d and 1", len(got), catalogs, len(want))
	}
	for id, n := range want {
		if got[id] != n {
			t.Errorf("%s: %+v, want %+v", id, got[id], n)
		}
	}
}
