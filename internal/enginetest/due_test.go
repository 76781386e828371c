package enginetest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

const dueCatalog = `kuji: 1
items:
  gem: {kind: currency}
  ticket: {lasts: 1h}
  pass: {lasts: 24h, extend: true}
pools:
  box: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
`

// startDue opens the realm with items that last.
func (m *machine) startDue(t *testing.T) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	e, r, err := m.open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, dueCatalog)); err != nil {
		t.Fatal(err)
	}
	return e, r
}

func (m *machine) give(t *testing.T, r *kuji.Realm, player, item string, q uint64) {
	t.Helper()
	if res := do(t, r, kuji.Grant{Player: player, Items: []kuji.Stack{{Item: item, Quantity: q}}}); res.Status != kuji.OK {
		t.Fatalf("%d of %s for %s: %v", q, item, player, res)
	}
}

// records closes the engine, verifies the log, and returns what it says.
func (m *machine) records(t *testing.T, e *kuji.Engine) (all []kuji.Record) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verifyIn(m.disk, "data", "test", func(rec kuji.Record) { all = append(all, rec) })
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rep.Epochs {
		if e.Undecided != "" {
			t.Errorf("epoch %d: %s", e.Epoch, e.Undecided)
		}
	}
	return all
}

// dues returns what fell due: player and item, with how many, in order.
func dues(all []kuji.Record) (out []string) {
	for _, rec := range all {
		if rec.Kind != "due" {
			continue
		}
		for _, c := range rec.Changes {
			out = append(out, fmt.Sprintf("%s %d %s", c.Player, c.Delta, c.Item))
		}
	}
	return out
}

// TestIdleRealmWakes: a realm that nobody asks for anything wakes for its next deadline, and not earlier.
func TestIdleRealmWakes(t *testing.T) {
	m := newMachine()
	e, r := m.startDue(t)
	m.give(t, r, "bob", "ticket", 2)
	m.passes(time.Minute)
	m.give(t, r, "ann", "ticket", 3)
	m.give(t, r, "ann", "pass", 1)
	v, err := r.Player(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	now := m.now.UnixMilli()
	want := []kuji.Lot{{Item: "ticket", Quantity: 3, Until: now + 3_600_000}, {Item: "pass", Quantity: 1, Until: now + 24*3_600_000}}
	if !slices.Equal(v.Lots, want) {
		t.Errorf("ann has the lots %+v, want %+v", v.Lots, want)
	}
	for _, at := range []struct {
		passes   time.Duration
		ann, bob uint64
	}{{59*time.Minute - time.Millisecond, 3, 2}, {time.Millisecond, 3, 0}, {time.Minute - time.Millisecond, 3, 0}, {time.Millisecond, 0, 0}} {
		for left := at.passes; left > 0; left -= 10 * time.Second {
			m.passes(min(left, 10*time.Second))
			m.ring()
		}
		if ann, bob := items(t, r, "ann")["ticket"], items(t, r, "bob")["ticket"]; ann != at.ann || bob != at.bob {
			t.Errorf("at %v ann has %d and bob %d tickets, want %d and %d", m.now, ann, bob, at.ann, at.bob)
		}
	}
	all := m.records(t, e)
	if got, want := fmt.Sprint(dues(all)), "[bob -2 ticket ann -3 ticket]"; got != want {
		t.Errorf("what fell due is %s, want %s", got, want)
	}
	if rec := all[len(all)-1]; rec.Due == nil || !rec.Due.Swept || !slices.Equal(rec.Due.Players, []string{"ann"}) {
		t.Errorf("the last event is %+v", rec)
	}
}

// TestDueBeforeCommands: a command first settles what is due for its players, in an event of its own. A
// refused one and a repeat settle nothing.
func TestDueBeforeCommands(t *testing.T) {
	m := newMachine()
	e, r := m.startDue(t)
	m.give(t, r, "ann", "ticket", 3)
	m.give(t, r, "bob", "ticket", 1)
	if res := do(t, r, kuji.Draw{ID: "first", Player: "ann", Pool: "box"}); res.Status != kuji.OK {
		t.Fatal(res)
	}
	m.passes(time.Hour)
	before := r.Stats().Events
	if res := do(t, r, kuji.Draw{ID: "first", Player: "ann", Pool: "box"}); !res.Replayed {
		t.Errorf("%+v, want the first answer", res)
	}
	_, err := r.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "none"})
	wantCode(t, err, kuji.CodeNotFound)
	if n := r.Stats().Events - before; n != 0 {
		t.Errorf("a repeat and a request that was refused have added %d events", n)
	}
	res := do(t, r, kuji.Transfer{From: "cat", To: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
	if res.Status != kuji.InsufficientItems {
		t.Errorf("a transfer from nobody: %v", res)
	}
	res = do(t, r, kuji.Draw{Player: "ann", Pool: "box"})
	if res.Status != kuji.InsufficientItems {
		t.Errorf("a draw for tickets that have gone: %v", res)
	}
	all := m.records(t, e)
	if got, want := fmt.Sprint(dues(all)), "[ann -2 ticket bob -1 ticket]"; got != want {
		t.Errorf("what fell due is %s, want %s", got, want)
	}
	for i, rec := range all {
		if rec.Kind == "due" && (rec.Position != all[i+1].Position || all[i+1].Kind == "clock") {
			t.Errorf("the event %+v is not in one batch with what it is for", rec)
		}
	}
}

// TestDueAfterDowntime: what falls due while nobody leads falls due once, in order, when somebody does.
func TestDueAfterDowntime(t *testing.T) {
	m := newMachine()
	e, r := m.startDue(t)
	const players = 200
	for i := range players {
		m.give(t, r, fmt.Sprintf("p%03d", (i*77)%players), "ticket", uint64(i+1))
		m.passes(time.Millisecond)
	}
	m.passes(2 * time.Hour)
	e, _ = m.restart(t, e, time.Time{})
	m.runAll()
	e, r = m.restart(t, e, time.Time{})
	m.runAll()
	for i := range players {
		if got := items(t, r, fmt.Sprintf("p%03d", i))["ticket"]; got != 0 {
			t.Errorf("player %d still has %d tickets", i, got)
		}
	}
	all := m.records(t, e)
	got := dues(all)
	for i := range players {
		if want := fmt.Sprintf("p%03d %d ticket", (i*77)%players, -i-1); i >= len(got) || got[i] != want {
			t.Fatalf("%d things fell due, number %d is %q, want %q", len(got), i, got[min(i, len(got)-1)], want)
		}
	}
	sizes := []int{}
	for _, rec := range all {
		if rec.Kind == "due" {
			sizes = append(sizes, len(rec.Due.Players))
		}
	}
	if fmt.Sprint(sizes) != "[64 64 64 8]" || len(got) != players {
		t.Errorf("the events settle %d players, %d things in all", sizes, len(got))
	}
}

// TestDueWhenTheClockIsSetBack: units last as long as they would have.
func TestDueWhenTheClockIsSetBack(t *testing.T) {
	m := newMachine()
	e, _ := m.startDue(t)
	m.set = time.Hour // the clock is an hour ahead
	e, r := m.restart(t, e, time.Time{})
	m.give(t, r, "ann", "ticket", 1)
	m.passes(30 * time.Minute)
	m.set = 0
	if _, err := r.SetClock(t.Context(), m.Now(), "ops", "it was an hour ahead"); err != nil {
		t.Fatal(err)
	}
	v, err := r.Player(t.Context(), "ann")
	if want := m.now.Add(30 * time.Minute).UnixMilli(); err != nil || len(v.Lots) != 1 || v.Lots[0].Until != want {
		t.Errorf("ann has %+v, want a ticket until %d: %v", v, want, err)
	}
	m.passes(30*time.Minute - time.Millisecond)
	m.give(t, r, "ann", "gem", 1)
	if items(t, r, "ann")["ticket"] != 1 {
		t.Error("a ticket goes too early")
	}
	m.passes(time.Millisecond)
	m.give(t, r, "ann", "gem", 1)
	if items(t, r, "ann")["ticket"] != 0 {
		t.Error("a ticket goes too late")
	}
	m.records(t, e)
}

// TestDueThroughCrashes: what falls due at one moment falls due once, in order, however often the power
// is cut, at every write.
func TestDueThroughCrashes(t *testing.T) {
	const players = 150
	m := newMachine()
	e, r := m.startDue(t)
	for i := range players {
		m.give(t, r, fmt.Sprintf("p%03d", i), "ticket", uint64(i%7+1))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	m.passes(time.Hour)
	before := m.disk
	sweep := func(disk *vfs.Mem) { // until the power is cut
		m.steps = &steps{now: m.now, chaos: m.chaos}
		m.disk = disk
		e, _, err := m.open(time.Time{})
		if err == nil {
			m.runAll()
			_ = e.Close()
		}
	}
	dry := before.KillClone()
	_, first := dry.Ops()
	sweep(dry)
	_, last := dry.Ops()
	if last-first < 10 {
		t.Fatalf("only %d steps: nothing was swept", last-first)
	}
	halves := 0
	for step := range last - first {
		disk := before.KillClone()
		disk.CutPowerAfter(step)
		sweep(disk)
		for crashed := range disk.CrashSamples(2, uint64(step), false) {
			m.disk = crashed
			m.steps = &steps{now: m.now, chaos: m.chaos}
			e, r, err := m.open(time.Time{})
			if err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
			if n := r.Stats().RecoveredEvents - players - 1; n > 0 && n < 3 {
				halves++
			}
			m.runAll()
			var want []string
			for i := range players {
				want = append(want, fmt.Sprintf("p%03d %d ticket", i, -(i%7+1)))
			}
			if got := dues(m.records(t, e)); !slices.Equal(got, want) {
				t.Fatalf("power cut before step %d: %d fell due, want %d, in order: %v", step, len(got), len(want), got)
			}
		}
	}
	if halves == 0 {
		t.Error("no sweep was cut in the middle")
	}
}

var manyDue = flag.Int("due", 20_000, "how many players have something due at once, in TestManyDueThroughCrashes")

// TestManyDueThroughCrashes: what many players hold falls due at once, and the power is cut again and again while it
// is swept. All of it is gone in the end, each once, in order, and the sums are exact.
func TestManyDueThroughCrashes(t *testing.T) {
	m := newMachine()
	e, r := m.startDue(t)
	units := func(i int) int64 { return int64(i%7 + 1) }
	id := func(i int) string { return fmt.Sprintf("p%07d", i) }
	sum := int64(0)
	for from := 0; from < *manyDue; from += kuji.MaxBatch {
		var reqs []kuji.Request
		for i := from; i < min(from+kuji.MaxBatch, *manyDue); i++ {
			reqs = append(reqs, kuji.Grant{Player: id(i), Items: []kuji.Stack{{Item: "ticket", Quantity: uint64(units(i))}}})
			sum += units(i)
		}
		if _, err := r.DoAll(t.Context(), reqs); err != nil {
			t.Fatal(err)
		}
	}
	snapshot(t, r)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	m.passes(time.Hour)
	rnd, cuts := rand.New(rand.NewPCG(7, 7)), 0
	for settled := false; !settled; cuts++ {
		m.steps = &steps{now: m.now, chaos: m.chaos}
		m.disk = m.disk.KillClone()
		m.disk.CutPowerAfter(20 + rnd.Int64N(int64(*manyDue/100)))
		e, r, err := m.open(time.Time{})
		if err == nil {
			m.runAll()
			settled = r.Err() == nil
			_ = e.Close()
		}
		if !settled {
			for crashed := range m.disk.CrashSamples(1+cuts%3, uint64(cuts), false) {
				m.disk = crashed
			}
		}
	}
	t.Logf("the power was cut %d times", cuts)
	if cuts < 4 {
		t.Errorf("the power was cut %d times: too few", cuts)
	}
	m.steps, m.disk = &steps{now: m.now, chaos: m.chaos}, m.disk.KillClone()
	e, _, err := m.open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	m.runAll()
	next := 0
	for _, rec := range m.records(t, e) {
		for _, c := range rec.Changes {
			if rec.Kind != "due" {
				continue
			}
			if c.Player != id(next) || c.Item != "ticket" || c.Delta != -units(next) {
				t.Fatalf("after %d others, %+v fell due", next, c)
			}
			next++
			sum += c.Delta
		}
	}
	if next != *manyDue || sum != 0 {
		t.Errorf("%d fell due, want %d; %d units are left", next, *manyDue, sum)
	}
}

// TestDueWithoutClock: a clock that panics while nobody waits stops the realm, and not the process.
func TestDueWithoutClock(t *testing.T) {
	m, broken := newMachine(), false
	e, err := openWorld("data", worldOptions{FS: m.disk, Steps: m.steps, Now: func() time.Time {
		if broken {
			panic("no clock")
		}
		return m.now
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, dueCatalog)); err != nil {
		t.Fatal(err)
	}
	m.give(t, r, "ann", "ticket", 1)
	broken = true
	m.passes(10 * time.Second)
	m.ring()
	wantCode(t, r.Err(), kuji.CodeFailed)
	wantCode(t, e.Close(), kuji.CodeFailed)
}

// TestTakeoverWithinSweep: of two leaders, the second of which takes over while the first one sweeps, both
// settle what they settle once, and a follower settles nothing.
func TestTakeoverWithinSweep(t *testing.T) {
	const players = 4000
	s := drivertest.NewShared(drivertest.SharedOptions{})
	var ahead atomic.Int64
	clock := func() time.Time { return time.UnixMilli(1_800_000_000_000 + ahead.Load()) }
	_, first := openAt(t, s, 1, kuji.Options{Now: clock})
	if _, err := first.Apply(t.Context(), parse(t, dueCatalog)); err != nil {
		t.Fatal(err)
	}
	for from := 0; from < players; from += 500 {
		var reqs []kuji.Request
		for i := range 500 {
			reqs = append(reqs, kuji.Grant{Player: fmt.Sprintf("p%04d", from+i), Items: []kuji.Stack{{Item: "ticket", Quantity: uint64(i + 1)}}})
		}
		if _, err := first.DoAll(t.Context(), reqs); err != nil {
			t.Fatal(err)
		}
	}
	_, second := openAt(t, s, 2, kuji.Options{Now: clock, Follow: true})
	await(t, second, first)
	ahead.Store(3_600_000)
	do(t, first, kuji.Register{Player: "p0000"}) // from here on it sweeps
	middle := first.Stats().Position + 10
	if err := second.Replica().Await(t.Context(), middle); err != nil {
		t.Fatal(err)
	}
	if err := second.Replica().Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := func() (n uint64) {
		for i := range players {
			n += items(t, second, fmt.Sprintf("p%04d", i))["ticket"]
		}
		return n
	}
	for at := second.Stats().Position; left() > 0; at++ {
		if err := second.Replica().Await(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.Do(t.Context(), kuji.Register{Player: "p0000"}); err == nil {
		t.Error("a leader that was deposed goes on")
	}
	if _, err := second.Do(t.Context(), kuji.Register{Player: "p0000"}); err != nil {
		t.Fatal(err)
	}
	settled, swept := map[string]int{}, [2]int{}
	rep, err := verify.Driver(s.Node(3), "test", verify.Options{Keys: [][32]byte{testKey}, Seen: func(rec kuji.Record) {
		if rec.Due != nil {
			if rec.Position <= middle {
				swept[0]++
			} else {
				swept[1]++
			}
			for _, c := range rec.Changes {
				settled[c.Player]++
			}
		}
	}})
	if err != nil || len(rep.Epochs) != 2 {
		t.Fatalf("%+v: %v", rep, err)
	}
	if swept[0] == 0 || swept[1] == 0 {
		t.Errorf("%d events of a sweep before the middle, %d after", swept[0], swept[1])
	}
	for i := range players {
		if id := fmt.Sprintf("p%04d", i); settled[id] != 1 {
			t.Errorf("player %s was settled %d times", id, settled[id])
		}
	}
}

// TestExpiryReachesQuest: a quest that claims itself once a player lacks something does so in the event in which
// the last unit goes, for everybody of a sweep, and the log proves its random reward.
func TestExpiryReachesQuest(t *testing.T) {
	m := newMachine()
	e, r, err := m.open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, `kuji: 1
items: {curse: {lasts: 1h}, lamp: {}, bell: {lasts: 2h}}
pools:
  relief: {entries: [{id: lamp, weight: 1, reward: {items: {lamp: 1}}}, {id: bell, weight: 1, reward: {items: {bell: 1}}}]}
counters: {cursed: {of: {gains: curse}}}
quests:
  freed: {claim: automatic, when: {lacks: [curse]}, needs: {cursed: 1}, reward: {pool: relief}}
`)); err != nil {
		t.Fatal(err)
	}
	const players = 10
	for i := range players {
		m.give(t, r, fmt.Sprint("p", i), "curse", 2)
	}
	m.passes(time.Hour)
	if got := items(t, r, "p3"); got["lamp"]+got["bell"] > 0 && got["curse"] > 0 {
		t.Errorf("p3 is cursed and freed: %v", got)
	}
	do(t, r, kuji.Register{Player: "p3"})
	if got := items(t, r, "p3"); got["lamp"]+got["bell"] != 1 || got["curse"] != 0 {
		t.Errorf("p3 has %v; the curse is over", got)
	}
	for range 10 {
		m.passes(10 * time.Second)
		m.ring()
	}
	claims := map[string]int{}
	for _, rec := range m.records(t, e) {
		for _, c := range rec.Claims {
			if rec.Kind != "due" || c.Quest != "freed" || len(c.Items) != 1 {
				t.Errorf("claimed in a %s: %+v", rec.Kind, c)
			}
			claims[c.Player]++
		}
	}
	for i := range players {
		if n := claims[fmt.Sprint("p", i)]; n != 1 {
			t.Errorf("p%d claimed %d times: %v", i, n, claims)
		}
	}
}
