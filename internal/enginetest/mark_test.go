package enginetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
)

// compared compares a follower's chain with that of the leader it has caught up with.
func compared(t *testing.T, follower, leader *kuji.Realm) {
	t.Helper()
	st := leader.Stats()
	await(t, follower, leader)
	if st.Chain == ([32]byte{}) {
		t.Errorf("the leader knows no chain at %d", st.Position)
	}
	if own := follower.Stats(); own.Position == st.Position && own.Chain != st.Chain {
		t.Errorf("at %d a follower has chain %x, its leader %x", st.Position, own.Chain, st.Chain)
	}
	if err := follower.Replica().Compare("n1", st.Position, st.Chain); err != nil {
		t.Error(err)
	}
}

// TestCompare: followers find their leader's chain equal, while it writes, across takeovers, and when they
// begin with a snapshot of a log that was trimmed.
func TestCompare(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	_, leader := openAt(t, s, 1, kuji.Options{TrimLog: true})
	if _, err := leader.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	for n := 2; n < 5; n++ {
		_, next := openAt(t, s, n, kuji.Options{Follow: true, TrimLog: true})
		_, other := following(t, s, n+10)
		for i := range 20 {
			do(t, leader, kuji.Draw{ID: fmt.Sprint(n, "-", i), Player: "ann", Pool: "free"})
			compared(t, next, leader)
			compared(t, other, leader)
		}
		snapshot(t, leader)
		if err := next.Replica().Lead(t.Context()); err != nil {
			t.Fatal(err)
		}
		compared(t, other, next)
		leader = next
	}
	kept, err := s.Node(20).Open(t.Context(), "test", driver.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if first, err := kept.First(t.Context()); err != nil || first < 10 {
		t.Errorf("the log begins at %d, %v: nothing was trimmed", first, err)
	}
}

// TestCompareDiffers: a follower whose chain is not the leader's stops with the place, answers nothing
// and never leads. One that cannot know stays.
func TestCompareDiffers(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	_, leader := openAt(t, s, 1, kuji.Options{})
	if _, err := leader.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	_, follower := following(t, s, 2)
	await(t, follower, leader)
	st := leader.Stats()
	forged := st.Chain
	forged[31] ^= 1
	for _, err := range []error{
		follower.Replica().Compare("n1", st.Position+1, forged), follower.Replica().Compare("n1", st.Position, [32]byte{}),
		leader.Replica().Compare("n2", st.Position, forged), follower.Err(),
	} {
		if err != nil {
			t.Errorf("nothing can be compared, and %v", err)
		}
	}
	err := follower.Replica().Compare("n1", st.Position, forged)
	wantCode(t, err, kuji.CodeCorrupt)
	for _, want := range []string{`realm test`, fmt.Sprintf("position %d:", st.Position), fmt.Sprintf("%x here", st.Chain), fmt.Sprintf("%x at node n1", forged)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q in it", err, want)
		}
	}
	wantCode(t, follower.Err(), kuji.CodeCorrupt)
	_, err = follower.Player(kuji.Stale(t.Context()), "ann")
	wantCode(t, err, kuji.CodeCorrupt)
	wantCode(t, follower.Replica().Lead(t.Context()), kuji.CodeCorrupt)
	if follower.Replica().Leads() || follower.Stats().Differs != 1 {
		t.Errorf("leads: %v, %+v", follower.Replica().Leads(), follower.Stats())
	}
}
