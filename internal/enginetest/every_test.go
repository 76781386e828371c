package enginetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const everyCatalog = `
kuji: 1
items: {coin: {kind: currency}}
rounds:
  jackpot: {ticket: {price: {coin: 1}, most: 100, adds: {pot: 0.9}}, every: day, winner: {gets: pot}}
`

// opens returns which rounds are open, each with the time until it ends.
func opens(t *testing.T, r *kuji.Realm, now time.Time) string {
	t.Helper()
	open, err := kuji.RoundsOf(r).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, o := range open {
		text += fmt.Sprintf("%d for %v;", o.Number, time.UnixMilli(o.Until).Sub(now))
	}
	return text
}

// TestEveryDayWhileIdle: a realm that nobody asks for anything opens the round of the day, wakes when the day is over, and
// opens that of the next one. A day that ended does not begin again when the clock is set back, and of days in which no
// engine ran only the last one has a round.
func TestEveryDayWhileIdle(t *testing.T) {
	m := newMachine()
	e, r, err := m.open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	want := func(text string) {
		t.Helper()
		m.ring()
		if got := opens(t, r, m.Now()); got != text {
			t.Fatalf("at %v open are %q; want %q", m.Now().UTC(), got, text)
		}
	}
	if _, err := r.Apply(t.Context(), parse(t, everyCatalog)); err != nil {
		t.Fatal(err)
	}
	m.give(t, r, "ann", "coin", 100)
	want("1 for 16h0m0s;")
	if res := do(t, r, kuji.Join{Player: "ann", Round: "jackpot", Tickets: 100}); res.Status != kuji.OK || res.Round().Number != 1 {
		t.Fatalf("%+v", res)
	}
	m.passes(16*time.Hour - time.Millisecond)
	want("1 for 1ms;")
	m.passes(time.Millisecond)
	want("2 for 24h0m0s;")
	if n := items(t, r, "ann")["coin"]; n != 90 {
		t.Errorf("ann has %d coins, want 90", n)
	}
	m.set -= 2 * time.Hour
	if _, err := r.SetClock(t.Context(), m.Now(), "ops", "it was ahead"); err != nil {
		t.Fatal(err)
	}
	want("2 for 26h0m0s;")
	m.passes(25 * time.Hour)
	want("2 for 1h0m0s;")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	m.passes(10 * 24 * time.Hour)
	if e, r, err = m.open(time.Time{}); err != nil {
		t.Fatal(err)
	}
	want("3 for 1h0m0s;")
	if _, err := r.Do(t.Context(), kuji.OpenRound{Round: "jackpot"}); err == nil {
		t.Error("somebody opened a round of the calendar")
	}
	rounds := map[uint64]int{}
	for _, rec := range m.records(t, e) {
		if rec.Due != nil {
			rounds[rec.Due.Round]++
		}
	}
	if got, want := fmt.Sprint(rounds), fmt.Sprint(map[uint64]int{1: 3, 2: 2, 3: 1}); got != want { // the first one was forgotten
		t.Errorf("so often something was due for rounds: %v; want %v", got, want)
	}
}

// TestEveryDayThroughCrashes: however often the power is cut when days end: each round is settled once, and each day in
// which the engine runs has one.
func TestEveryDayThroughCrashes(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	var reqs []kuji.Request
	var at []time.Time
	add := func(days int, req kuji.Request) {
		reqs, at = append(reqs, req), append(at, noon.AddDate(0, 0, days))
	}
	for i := range 4 {
		add(0, kuji.Grant{ID: fmt.Sprint("g", i), Player: fmt.Sprint("p", i), Items: []kuji.Stack{{Item: "coin", Quantity: 50}}})
	}
	for i := 1; i < 4; i++ {
		add(0, kuji.Join{ID: fmt.Sprint("a", i), Player: fmt.Sprint("p", i), Round: "jackpot", Tickets: uint64(10 * i)})
	}
	add(1, kuji.Join{ID: "b", Player: "p0", Round: "jackpot", Tickets: 1})
	add(4, kuji.Join{ID: "c", Player: "p0", Round: "jackpot", Tickets: 5})
	now := handAt(noon)
	session := func(disk *vfs.Mem, snapshots bool) (e *kuji.Engine, r *kuji.Realm, err error) { // until the power is cut
		now.Set(noon)
		if e, err = openWorld("data", worldOptions{FS: disk, SegmentSize: 8 << 10, TrimLog: true, Now: now.Now}); err != nil {
			return nil, nil, err
		}
		if r, err = e.Realm("test"); err != nil {
			return e, nil, err
		}
		if _, err = r.Apply(t.Context(), parse(t, everyCatalog)); err != nil {
			return e, r, err
		}
		for i, req := range reqs {
			now.Set(at[i])
			res, err := r.Do(t.Context(), req)
			if err != nil {
				return e, r, err
			}
			if res.Status != kuji.OK {
				t.Fatalf("%+v: %v", req, res)
			}
			if snapshots && i%3 == 2 {
				if _, err := r.Snapshot(t.Context()); err != nil {
					return e, r, err
				}
			}
		}
		return e, r, nil
	}
	dry := vfs.NewMem()
	e, _, err := session(dry, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, steps := dry.Ops()
	stride := int64(1)
	if testing.Short() {
		stride = 7
	}
	for step := int64(0); step < steps; step += stride {
		disk := vfs.NewMem()
		disk.CutPowerAfter(step)
		if e, _, err := session(disk, true); e != nil && err != nil {
			_ = e.Close()
		}
		for crashed := range disk.CrashSamples(1, uint64(step), false) {
			e, r, err := session(crashed, false)
			if err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
			if free, held := has(t, r, "coin"); free != 200-60+54-1-5 || held != 5 {
				t.Fatalf("power cut before step %d: %d coins and %d held", step, free, held)
			}
			if got := opens(t, r, now.Now()); got != "3 for 12h0m0s;" {
				t.Fatalf("power cut before step %d: %s are open", step, got)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := verifyIn(crashed, "data", "test", nil); err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
		}
	}
}
