package enginetest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

// The machine's clock shows 2027-01-15T08:00:00Z at first.
const rankCatalog = `kuji: 1
items: {gem: {}, coin: {}, ticket: {lasts: 1h}}
seasons:
  winter: {starts: 2027-01-01T00:00, ends: 2027-01-16T00:00}
  spring: {starts: 2027-01-20T00:00, ends: 2027-03-01T00:00}
pools: {box: {internal: true, entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}, {id: b, weight: 1, reward: {items: {gem: 2}}}]}}
counters:
  points: {per: season, ranked: {rewards: [{to: 1, reward: {items: {coin: 100}}}, {to: 10, reward: [{items: {coin: 10}}, {pool: box}]}, {to: 200, reward: {items: {coin: 1}}}]}}
  all: {of: {progress: points}, ranked: true}
  day: {of: {progress: points}, per: day, ranked: true}
`

func (m *machine) startRanks(t *testing.T) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	e, r, err := m.open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, rankCatalog)); err != nil {
		t.Fatal(err)
	}
	return e, r
}

func points(t *testing.T, r *kuji.Realm, player string, n uint64) {
	t.Helper()
	if res := do(t, r, kuji.Progress{Player: player, Event: "points", N: n}); res.Status != kuji.OK {
		t.Fatalf("points of %s: %v", player, res)
	}
}

// ranks returns part of a standing as text.
func ranks(t *testing.T, r *kuji.Realm, q kuji.RanksQuery) string {
	t.Helper()
	v, err := r.Ranks(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("of %d:", v.Of)
	for _, of := range v.Ranks {
		text += fmt.Sprintf(" %d %s %d", of.Rank, of.Player, of.Value)
	}
	return text
}

// paid returns which ranks were paid, in order.
func paid(all []kuji.Record) (out []string) {
	for _, rec := range all {
		if rec.Kind != "due" {
			continue
		}
		if rec.Due.Counter != "" && rec.Due.From == 0 {
			out = append(out, fmt.Sprintf("%s ends with %d", rec.Due.Counter, rec.Due.Count))
		}
		for _, c := range rec.Claims {
			out = append(out, fmt.Sprintf("%s %d %s", c.Counter, c.Rank, c.Player))
		}
	}
	return out
}

// TestRanksAreRead: the standing that runs and the one that ended, from a rank on and around a player, and the rank
// in a view of a player.
func TestRanksAreRead(t *testing.T) {
	m := newMachine()
	e, r := m.startRanks(t)
	for i := range 9 {
		points(t, r, fmt.Sprintf("p%d", i), uint64(10-i/2))
	}
	for q, want := range map[kuji.RanksQuery]string{
		{Counter: "points", Most: 3}:              "of 9: 1 p0 10 2 p1 10 3 p2 9",
		{Counter: "points", From: 8}:              "of 9: 8 p7 7 9 p8 6",
		{Counter: "points", From: 10}:             "of 9:",
		{Counter: "all", Player: "p4", Most: 3}:   "of 9: 4 p3 9 5 p4 8 6 p5 8",
		{Counter: "day", Player: "p0", Most: 4}:   "of 9: 1 p0 10 2 p1 10 3 p2 9",
		{Counter: "points", Ended: true}:          "of 0:",
		{Counter: "all", Ended: true, Most: 1000}: "of 0:",
	} {
		if got := ranks(t, r, q); got != want {
			t.Errorf("%+v gives %s, want %s", q, got, want)
		}
	}
	for q, want := range map[kuji.RanksQuery]kuji.Code{
		{Counter: "none"}:                              kuji.CodeNotFound,
		{Counter: "points", Player: "cat"}:             kuji.CodeNotFound,
		{Counter: "points", Player: "p1", Ended: true}: kuji.CodeNotFound,
		{Counter: "points", Most: 1001}:                kuji.CodeInvalid,
		{Counter: "points", Player: "p1", From: 2}:     kuji.CodeInvalid,
	} {
		_, err := r.Ranks(t.Context(), q)
		wantCode(t, err, want)
	}
	v, err := r.Ranks(t.Context(), kuji.RanksQuery{Counter: "day"})
	if want := time.Date(2027, 1, 16, 0, 0, 0, 0, time.UTC).UnixMilli(); err != nil || v.Ends != want {
		t.Errorf("the day ends at %d, want %d: %v", v.Ends, want, err)
	}
	p, err := r.Player(t.Context(), "p4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Counters {
		if c.Rank != 5 {
			t.Errorf("%s of p4 has the rank %d, want 5", c.ID, c.Rank)
		}
	}
	m.passes(16 * time.Hour)
	points(t, r, "p8", 1) // the season is over
	if got := ranks(t, r, kuji.RanksQuery{Counter: "points", Ended: true, Most: 1}) + ", " + ranks(t, r, kuji.RanksQuery{Counter: "points"}); got != "of 9: 1 p0 10, of 0:" {
		t.Errorf("after the season: %s", got)
	}
	if got, want := ranks(t, r, kuji.RanksQuery{Counter: "day"}), "of 1: 1 p8 1"; got != want {
		t.Errorf("the next day: %s, want %s", got, want)
	}
	m.records(t, e)
}

// TestSeasonEnds: an idle realm wakes for the end of a season and pays its ranks. Nobody moves up after it, and a
// clock that is set back over the end begins it not again.
func TestSeasonEnds(t *testing.T) {
	m := newMachine()
	e, r := m.startRanks(t)
	const players = 150
	for i := range players {
		points(t, r, fmt.Sprintf("p%03d", i), uint64(1000-i))
	}
	for left := 16 * time.Hour; left > 0; left -= 10 * time.Second {
		if m.passes(10 * time.Second); left > 10*time.Second {
			continue
		}
		m.ring()
	}
	m.runAll()
	check := func(when string) {
		t.Helper()
		sum := uint64(0)
		for i := range players {
			sum += items(t, r, fmt.Sprintf("p%03d", i))["coin"]
		}
		if first := items(t, r, "p000")["coin"]; first != 100 || sum != 100+9*10+140 {
			t.Errorf("%s the first has %d coins, all have %d", when, first, sum)
		}
	}
	check("after the season")
	points(t, r, "p149", 5000)
	m.set = -3 * time.Hour
	if _, err := r.SetClock(t.Context(), m.Now(), "ops", "it was three hours ahead"); err != nil {
		t.Fatal(err)
	}
	points(t, r, "p149", 5000) // in the season again, by the clock
	res := do(t, r, kuji.SetCounter{Counter: "points", Player: "p149", Value: 9000, Note: kuji.Note{By: "ops", Reason: "it should count"}})
	if res.Status != kuji.Ended || res.Subject != "points" {
		t.Errorf("what is frozen was set: %v", res)
	}
	if got, want := ranks(t, r, kuji.RanksQuery{Counter: "points", Ended: true, Player: "p149", Most: 1}), "of 150: 150 p149 851"; got != want {
		t.Errorf("the frozen standing is %s, want %s", got, want)
	}
	m.passes(4 * time.Hour) // over the end again
	m.ring()
	m.runAll()
	e, r = m.restart(t, e, time.Time{})
	m.runAll()
	check("after its end came twice")
	m.passes(5 * 24 * time.Hour) // the next season
	points(t, r, "p001", 1)
	if got, want := ranks(t, r, kuji.RanksQuery{Counter: "points"}), "of 1: 1 p001 1"; got != want {
		t.Errorf("the next season stands at %s, want %s", got, want)
	}
	all := m.records(t, e)
	got := paid(all)
	for _, id := range []string{"points", "day"} {
		n := 0
		for _, s := range got {
			if s == fmt.Sprintf("%s ends with %d", id, players) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the season or day of %s ended %d times", id, n)
		}
	}
	got = slices.DeleteFunc(got, func(s string) bool { return s[:6] != "points" })
	for i := range players {
		if want := fmt.Sprintf("points %d p%03d", i+1, i); got[i+1] != want {
			t.Fatalf("%s was paid at place %d, want %s", got[i+1], i, want)
		}
	}
}

// TestRanksThroughCrashes: each rank is paid once, in order, however often the power is cut, at every write. Rewards
// draw from a pool: what was decided before a crash is not drawn again.
func TestRanksThroughCrashes(t *testing.T) {
	const players = 140
	m := newMachine()
	e, r := m.startRanks(t)
	for i := range players {
		points(t, r, fmt.Sprintf("p%03d", i), uint64(1000-i))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	m.passes(16 * time.Hour)
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
	want := []string{fmt.Sprintf("points ends with %d", players), fmt.Sprintf("day ends with %d", players)}
	for i := range players {
		want = append(want, fmt.Sprintf("points %d p%03d", i+1, i))
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
			if n := r.Stats().RecoveredEvents - players - 1; n > 1 && n < 5 {
				halves++
			}
			m.runAll()
			if got := paid(m.records(t, e)); !slices.Equal(got, want) {
				t.Fatalf("power cut before step %d: got %d %v, want %d", step, len(got), got, len(want))
			}
		}
	}
	if halves == 0 {
		t.Error("no payment was cut in the middle")
	}
}

// TestTakeoverWithinPayment: of two leaders, the second of which takes over while the first one pays, both together
// pay each rank once, while the next day counts.
func TestTakeoverWithinPayment(t *testing.T) {
	const players = 3000
	s := drivertest.NewShared(drivertest.SharedOptions{})
	var ahead atomic.Int64
	clock := func() time.Time { return time.UnixMilli(1_800_000_000_000 + ahead.Load()) }
	_, first := openAt(t, s, 1, kuji.Options{Now: clock})
	yaml := "{kuji: 1, items: {coin: {}}, counters: {points: {per: day, ranked: {rewards: [{to: 100000, reward: {items: {coin: 1}}}]}}}}"
	if _, err := first.Apply(t.Context(), parse(t, yaml)); err != nil {
		t.Fatal(err)
	}
	for from := 0; from < players; from += 500 {
		var reqs []kuji.Request
		for i := range 500 {
			reqs = append(reqs, kuji.Progress{Player: fmt.Sprintf("p%04d", from+i), Event: "points", N: uint64(i + 1)})
		}
		if _, err := first.DoAll(t.Context(), reqs); err != nil {
			t.Fatal(err)
		}
	}
	_, second := openAt(t, s, 2, kuji.Options{Now: clock, Follow: true})
	await(t, second, first)
	ahead.Store(24 * 3_600_000)
	points(t, first, "p0000", 7) // the end comes before it, and from here on ranks are paid
	middle := first.Stats().Position + 10
	if err := second.Replica().Await(t.Context(), middle); err != nil {
		t.Fatal(err)
	}
	if err := second.Replica().Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := func() (n uint64) {
		for i := range players {
			n += 1 - items(t, second, fmt.Sprintf("p%04d", i))["coin"]
		}
		return n
	}
	for at := second.Stats().Position; left() > 0; at++ {
		if err := second.Replica().Await(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	if got := ranks(t, second, kuji.RanksQuery{Counter: "points"}); got != "of 1: 1 p0000 7" {
		t.Errorf("the next day stands at %s", got)
	}
	given, parts := map[string]int{}, [2]int{}
	if _, err := verify.Driver(s.Node(3), "test", verify.Options{Keys: [][32]byte{testKey}, Seen: func(rec kuji.Record) {
		for _, c := range rec.Claims {
			if given[c.Player]++; rec.Position <= middle {
				parts[0]++
			} else {
				parts[1]++
			}
		}
	}}); err != nil {
		t.Fatal(err)
	}
	for i := range players {
		if id := fmt.Sprintf("p%04d", i); given[id] != 1 {
			t.Errorf("player %s was paid %d times", id, given[id])
		}
	}
	if parts[0] == 0 || parts[1] == 0 {
		t.Errorf("the leaders paid %d ranks", parts)
	}
}
