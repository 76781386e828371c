package enginetest

import (
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

// TestMembersHaveTheReceipt: each member of a group has the group's receipt,
// whether the group happened or not, at first and again.
func TestMembersHaveTheReceipt(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	done := kuji.Atomic{ID: "done", Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "free"}, kuji.Draw{Player: "bob", Pool: "box", Count: 3}}}
	undone := kuji.Atomic{ID: "undone", Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "free"}, kuji.Draw{Player: "poor", Pool: "paid"}}}
	for _, group := range []kuji.Atomic{done, undone, done, undone} {
		res := do(t, r, group)
		if len(res.Members) != 2 || res.Receipt.Position == 0 || res.Members[0].Receipt != res.Receipt || res.Members[1].Receipt != res.Receipt {
			t.Errorf("%s: members %+v, receipt %+v", group.ID, res.Members, res.Receipt)
		}
	}
}

// TestMembersOfAFailedGroup: of a group that fails, the member that failed says why, wherever
// it stands, and the others are aborted and have no outcomes.
func TestMembersOfAFailedGroup(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	for at := range 3 {
		group := kuji.Atomic{Members: []kuji.Request{
			kuji.Draw{Player: "ann", Pool: "free"}, kuji.Draw{Player: "bob", Pool: "free"}, kuji.Draw{Player: "ann", Pool: "free"},
		}}
		group.Members[at] = kuji.Consume{Player: "cyd", Items: []kuji.Stack{{Item: "sword", Quantity: 9}}}
		res := do(t, r, group)
		if res.Status != kuji.InsufficientItems || res.Subject != "sword" || len(res.Members) != 3 {
			t.Fatalf("member %d: %v, %d members", at, res, len(res.Members))
		}
		for i, m := range res.Members {
			status, subject := kuji.Aborted, ""
			if i == at {
				status, subject = kuji.InsufficientItems, "sword"
			}
			if m.Status != status || m.Subject != subject || m.Outcomes != nil {
				t.Errorf("member %d fails: member %d is %v with %v, want %v %q", at, i, m, m.Outcomes, status, subject)
			}
		}
	}
}

// TestLongestNames: a realm, a player and a request id as long as they may be are
// found again, and longer ones are refused.
func TestLongestNames(t *testing.T) {
	dir, long := t.TempDir(), strings.Repeat("x", kuji.MaxID)
	for again := range 2 {
		e, err := openWorld(dir, worldOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Realm(long)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
			t.Fatal(err)
		}
		res := do(t, r, kuji.Draw{ID: long, Player: long, Pool: "free"})
		if res.Replayed != (again > 0) || res.Receipt.Realm != long {
			t.Errorf("time %d: %+v", again, res)
		}
		snapshot(t, r)
		_, err = e.Realm(long + "x")
		wantCode(t, err, kuji.CodeInvalid)
		for _, req := range []kuji.Request{kuji.Draw{ID: long + "x", Player: long, Pool: "free"}, kuji.Draw{ID: long, Player: long + "x", Pool: "free"}} {
			_, err := r.Do(t.Context(), req)
			wantCode(t, err, kuji.CodeInvalid)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if rep, err := verify.Dir(dir, long, verify.Options{}); err != nil || rep.Draws != 1 {
		t.Errorf("%+v, %v", rep, err)
	}
}
