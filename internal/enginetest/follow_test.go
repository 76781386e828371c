package enginetest

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/verify"
)

// following opens an engine that follows, at a node of a shared driver, and its realm "test".
func following(t *testing.T, s *drivertest.Shared, node int) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	return openAt(t, s, node, kuji.Options{Follow: true})
}

// await waits until a realm has come as far as another one.
func await(t *testing.T, r, other *kuji.Realm) {
	t.Helper()
	if err := r.Replica().Await(t.Context(), other.Stats().Position); err != nil {
		t.Fatal(err)
	}
}

// sameState checks that a follower has the state of a leader.
func sameState(t *testing.T, follower, leader *kuji.Realm) {
	t.Helper()
	want, position, err := leader.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	await(t, follower, leader)
	if got, at, err := follower.StateHash(kuji.Stale(t.Context())); err != nil || got != want || at != position {
		t.Errorf("a follower has state %x at %d, want %x at %d: %v", got, at, want, position, err)
	}
}

// TestFollow: a follower carries out what the leader logs, catalogs too. It answers stale reads and
// nothing else. When it leads, it gives the first answers again, and draws with stock and limits as
// they are.
func TestFollow(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	_, leader := openAt(t, s, 1, kuji.Options{})
	if _, err := leader.Apply(t.Context(), parse(t, "kuji: 1\nitems: {gem: {kind: currency}}\n")); err != nil {
		t.Fatal(err)
	}
	snapshot(t, leader)
	e, follower := following(t, s, 2)
	if _, err := leader.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		do(t, leader, kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "box"})
	}
	sameState(t, follower, leader)
	stale := kuji.Stale(t.Context())
	want, err := leader.Player(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := follower.Player(stale, "ann"); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("a follower shows %+v, want %+v: %v", got, want, err)
	}
	if p, err := follower.Pool(stale, "box"); err != nil || p.TotalWeight != 40 || p.CatalogVersion != 2 {
		t.Errorf("a follower shows %+v: %v", p, err)
	}
	if l, err := follower.Result(stale, "7"); err != nil || l.Seen != kuji.Answered || l.Result.Receipt.Epoch != 1 {
		t.Errorf("a follower knows %+v of an answer: %v", l, err)
	}
	if st := follower.Stats(); follower.Replica().Leads() || st.Epoch != 0 || st.Behind != 0 || st.Players != 1 || st.CatalogVersion != 2 {
		t.Errorf("a follower's numbers are %+v", st)
	}

	_, err = follower.Player(t.Context(), "ann")
	wantCode(t, err, kuji.CodeNotLeader)
	_, err = follower.Do(t.Context(), kuji.Draw{ID: "x", Player: "ann", Pool: "box"})
	wantCode(t, err, kuji.CodeNotLeader)
	_, err = follower.Snapshot(t.Context())
	wantCode(t, err, kuji.CodeNotLeader)
	for _, err := range follower.Feed().Events(t.Context(), 0) {
		wantCode(t, err, kuji.CodeNotLeader)
	}

	first := do(t, leader, kuji.Draw{ID: "60", Player: "ann", Pool: "box"}) // perhaps not applied yet
	for range 2 {
		if err := follower.Replica().Lead(t.Context()); err != nil || !follower.Replica().Leads() {
			t.Fatal(err)
		}
	}
	if got := do(t, follower, kuji.Draw{ID: "60", Player: "ann", Pool: "box"}); !got.Replayed || got.Receipt != first.Receipt {
		t.Errorf("who takes over answers %+v, want %+v", got, first)
	}
	for i := range 39 {
		if res := do(t, follower, kuji.Draw{ID: fmt.Sprint("b", i), Player: "bob", Pool: "box"}); res.Status != kuji.OK {
			t.Fatalf("ticket %d: %+v", i, res)
		}
	}
	if res := do(t, follower, kuji.Draw{ID: "b39", Player: "bob", Pool: "box"}); res.Status != kuji.SoldOut {
		t.Errorf("one ticket too many: %+v", res)
	}
	if a, b := items(t, follower, "ann"), items(t, follower, "bob"); a["sword"]+b["sword"] != 3 {
		t.Errorf("ann holds %v and bob %v, want 3 swords", a, b)
	}
	if sn := snapshot(t, follower); sn.Base != 0 {
		t.Errorf("its first snapshot builds on %d, which another one may have removed", sn.Base)
	}
	_, err = leader.Do(t.Context(), kuji.Draw{ID: "late", Player: "ann", Pool: "free"})
	wantCode(t, err, kuji.CodeUnknownOutcome)
	hash, _, err := follower.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []uint64{1, first.Receipt.Position} { // also what it did not log itself
		seen := 0
		for rec, err := range follower.Feed().Events(t.Context(), from) {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; rec.ID == "b39" {
				break
			}
		}
		if want := map[bool]int{true: 2 + 61 + 40, false: 1 + 40}[from == 1]; seen != want {
			t.Errorf("the feed from %d has %d events, want %d", from, seen, want)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Driver(s.Node(3), "test", verify.Options{Keys: [][32]byte{testKey}})
	if err != nil || rep.StateHash != hash || len(rep.Epochs) != 2 || !rep.Epochs[0].Revealed || !rep.Epochs[1].Revealed {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestDeposedNeverLeads: a leader that another one deposed has carried out what is not in the log. It
// leads no more until it is opened again.
func TestDeposedNeverLeads(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	e, first := following(t, s, 1)
	if err := first.Replica().Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	_, second := following(t, s, 2)
	if err := second.Replica().Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := first.Do(t.Context(), kuji.Draw{ID: "lost", Player: "bob", Pool: "free"})
	wantCode(t, err, kuji.CodeUnknownOutcome)
	wantCode(t, first.Replica().Lead(t.Context()), kuji.CodeNotLeader)
	wantCode(t, e.Close(), kuji.CodeNotLeader)

	do(t, second, kuji.Draw{ID: "1", Player: "ann", Pool: "free"})
	_, first = following(t, s, 1)
	sameState(t, first, second)
	if err := first.Replica().Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := do(t, first, kuji.Draw{ID: "lost", Player: "bob", Pool: "free"}); got.Replayed {
		t.Errorf("what was never logged is answered with %+v", got)
	}
	wantCode(t, second.Replica().Lead(t.Context()), 0) // it does not know yet
}

// TestCloseRealm: a realm that was deposed is closed and opened again while another one of the same
// engine leads and goes on. Then it follows, and leads again. Who still has what was closed is told so.
func TestCloseRealm(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	e, first := following(t, s, 1)
	other, err := e.Realm("other")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*kuji.Realm{first, other} {
		if err := r.Replica().Lead(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
			t.Fatal(err)
		}
	}
	_, second := following(t, s, 2)
	if err := second.Replica().Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, second, kuji.Draw{ID: "1", Player: "ann", Pool: "free"})
	_, err = first.Do(t.Context(), kuji.Draw{ID: "lost", Player: "bob", Pool: "free"})
	wantCode(t, err, kuji.CodeUnknownOutcome)
	wantCode(t, e.CloseRealm(t.Context(), "test"), kuji.CodeNotLeader)
	wantCode(t, e.CloseRealm(t.Context(), "test"), 0) // it is not open
	_, err = first.Player(kuji.Stale(t.Context()), "ann")
	wantCode(t, err, kuji.CodeNotLeader)

	do(t, other, kuji.Draw{ID: "1", Player: "ann", Pool: "free"})
	again, err := e.Lookup("test")
	if err != nil || again == first || again.Replica().Leads() {
		t.Fatalf("the realm that is opened again is the old one: %v, leads: %v, %v", again == first, again.Replica().Leads(), err)
	}
	sameState(t, again, second)
	wantCode(t, again.Replica().Lead(t.Context()), 0)
	if got := do(t, again, kuji.Draw{ID: "1", Player: "ann", Pool: "free"}); !got.Replayed {
		t.Errorf("a draw that was answered is answered with %+v", got)
	}
	if err := e.CloseRealm(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Driver(s.Node(3), "other", verify.Options{Keys: [][32]byte{testKey}})
	if err != nil || len(rep.Epochs) != 1 || !rep.Epochs[0].Revealed {
		t.Errorf("the epoch of a leader that stepped down is not revealed: %+v, %v", rep.Epochs, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, e.CloseRealm(t.Context(), "test"), 0)
}

// TestFollowerTooSlow: a follower whose log was trimmed before it was read says so, answers nothing and
// does not lead. Opened again, it follows.
func TestFollowerTooSlow(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	_, leader := openAt(t, s, 1, kuji.Options{TrimLog: true})
	e, follower := following(t, s, 2)
	if _, err := leader.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	await(t, follower, leader)
	s.Partition(2, true)
	was := follower.Stats().Position
	for i := 0; ; i++ {
		do(t, leader, kuji.Draw{ID: fmt.Sprint(i), Player: fmt.Sprint("p", i), Pool: "free"})
		snapshot(t, leader)
		rep, err := verify.Driver(s.Node(3), "test", verify.Options{Keys: [][32]byte{testKey}})
		if err != nil {
			t.Fatal(err)
		}
		if rep.From > was {
			break
		}
		if i == 200 {
			t.Fatal("the log is never trimmed")
		}
	}
	s.Partition(2, false)
	wantCode(t, follower.Replica().Await(t.Context(), leader.Stats().Position), kuji.CodeFailed)
	wantCode(t, follower.Err(), kuji.CodeFailed)
	wantCode(t, follower.Replica().Lead(t.Context()), kuji.CodeFailed)
	_, err := follower.Player(kuji.Stale(t.Context()), "p0")
	wantCode(t, err, kuji.CodeFailed)
	wantCode(t, e.Close(), kuji.CodeFailed)
	_, follower = following(t, s, 2)
	sameState(t, follower, leader)
}

// TestFollowerMeetsDamage: a follower that meets damage stops with its place. It answers nothing and
// does not lead.
func TestFollowerMeetsDamage(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	_, leader := openAt(t, s, 1, kuji.Options{})
	if _, err := leader.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	_, follower := following(t, s, 2)
	await(t, follower, leader)
	s.Partition(2, true)
	for i := range 3 {
		do(t, leader, kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "free"})
	}
	d, err := s.Node(3).Open(t.Context(), "test", driver.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	last, err := d.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Damage("test", last); err != nil {
		t.Fatal(err)
	}
	s.Partition(2, false)
	wantCode(t, follower.Replica().Await(t.Context(), leader.Stats().Position), kuji.CodeCorrupt)
	wantCode(t, follower.Err(), kuji.CodeCorrupt)
	wantCode(t, follower.Replica().Lead(t.Context()), kuji.CodeCorrupt)
	_, err = follower.Player(kuji.Stale(t.Context()), "ann")
	wantCode(t, err, kuji.CodeCorrupt)
}

// BenchmarkTakeover measures how long a node needs to lead a realm with 300,000 players: one that opens
// it then, and one that follows it.
func BenchmarkTakeover(b *testing.B) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	open := func(node int, follow bool) (*kuji.Engine, *kuji.Realm) {
		e, err := kuji.Open("", kuji.Options{Driver: s.Node(node), Key: testKey, Follow: follow})
		if err != nil {
			b.Fatal(err)
		}
		r, err := e.Realm("test")
		if err != nil {
			b.Fatal(err)
		}
		return e, r
	}
	e, r := open(1, false)
	if _, err := r.Apply(b.Context(), parse(b, testCatalog)); err != nil {
		b.Fatal(err)
	}
	for from := range 300 {
		reqs := make([]kuji.Request, 1000)
		for i := range reqs {
			reqs[i] = kuji.Draw{Player: fmt.Sprintf("player-%08d", from*1000+i), Pool: "free"}
		}
		if _, err := r.DoAll(b.Context(), reqs); err != nil {
			b.Fatal(err)
		}
	}
	position := r.Stats().Position
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	for _, follow := range []bool{false, true} {
		b.Run(map[bool]string{false: "opens", true: "follows"}[follow], func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				var e *kuji.Engine
				var r *kuji.Realm
				if follow {
					e, r = open(2, true)
					if err := r.Replica().Await(b.Context(), position); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				if !follow {
					e, r = open(2, false)
				}
				if err := r.Replica().Lead(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
