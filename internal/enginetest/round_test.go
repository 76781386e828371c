package enginetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const roundCatalog = `
kuji: 1
items: {coin: {kind: currency}, box: {}, key: {}}
rounds:
  gamble: {stake: {item: box, count: {min: 1, max: 5}, same: true}, entrants: {min: 2, max: 4}, open: 2m, winner: {gets: everything}}
  jackpot: {ticket: {price: {coin: 1}, most: 100, adds: {pot: 0.9}}, winner: {gets: pot}}
  giveaway: {ticket: {price: {coin: 2}}, winners: {count: 5, reward: {items: {key: 1}}, rerolls: {most: 1, within: 1h}}}
`

// roundRequests play three rounds. All of them succeed, whatever is drawn.
func roundRequests() (all []kuji.Request) {
	id := func() string { return fmt.Sprint("r", len(all)) }
	for i := range 4 {
		all = append(all, kuji.Grant{ID: id(), Player: fmt.Sprint("p", i), Items: []kuji.Stack{{Item: "coin", Quantity: 50}, {Item: "box", Quantity: 10}}})
	}
	all = append(all, kuji.OpenRound{ID: id(), Player: "p0", Round: "gamble", Stake: []kuji.Stack{{Item: "box", Quantity: 5}}})
	all = append(all, kuji.OpenRound{ID: id(), Round: "jackpot"}, kuji.OpenRound{ID: id() + "g", Round: "giveaway", Player: "p1", Tickets: 1})
	for i := 1; i < 4; i++ {
		all = append(all, kuji.Join{ID: id(), Player: fmt.Sprint("p", i), Round: "jackpot", Tickets: uint64(10 * i)})
		all = append(all, kuji.Join{ID: id(), Player: fmt.Sprint("p", i), Round: "gamble"})
	}
	all = append(all, kuji.Join{ID: id(), Player: "p2", Round: "giveaway"})
	all = append(all, kuji.Settle{ID: id(), Round: "jackpot"})
	all = append(all, kuji.Settle{ID: id(), Round: "giveaway"})
	all = append(all, kuji.OpenRound{ID: id(), Player: "p3", Round: "gamble", Stake: []kuji.Stack{{Item: "box", Quantity: 1}}})
	all = append(all, kuji.CancelRound{ID: id(), Round: "gamble", Number: 4})
	return all
}

// has returns what the players have of an item, and how much of it is held.
func has(t *testing.T, r *kuji.Realm, item string) (free, held uint64) {
	t.Helper()
	for i := range 4 {
		v, err := r.Player(t.Context(), fmt.Sprint("p", i))
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range v.Items {
			if it.Item == item {
				free += it.Quantity
			}
		}
		for _, it := range v.Held {
			if it.Item == item {
				held += it.Quantity
			}
		}
	}
	return free, held
}

// TestRoundsThroughCrashes: however often the power is cut, at every write: who asks again until there is an answer has
// played each round once, and no stake is lost or there twice.
func TestRoundsThroughCrashes(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	reqs := roundRequests()
	session := func(disk *vfs.Mem, snapshots bool) (e *kuji.Engine, r *kuji.Realm, err error) { // until the power is cut
		if e, err = openWorld("data", worldOptions{FS: disk, SegmentSize: 8 << 10, TrimLog: true, Now: now.Now}); err != nil {
			return nil, nil, err
		}
		if r, err = e.Realm("test"); err != nil {
			return e, nil, err
		}
		if _, err = r.Apply(t.Context(), parse(t, roundCatalog)); err != nil {
			return e, r, err
		}
		for i, req := range reqs {
			res, err := r.Do(t.Context(), req)
			if err != nil {
				return e, r, err
			}
			if res.Status != kuji.OK {
				t.Fatalf("%+v: %v", req, res)
			}
			if snapshots && i%6 == 5 {
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
			for item, want := range map[string]uint64{"box": 40, "coin": 200 - 60 + 54 - 4, "key": 2} {
				if free, held := has(t, r, item); free != want || held != 0 {
					t.Fatalf("power cut before step %d: %d of %s and %d held, want %d", step, free, item, held, want)
				}
			}
			if open, err := kuji.RoundsOf(r).Open(t.Context()); err != nil || len(open) != 0 {
				t.Fatalf("power cut before step %d: %+v are open: %v", step, open, err)
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

// TestJoinsTwiceAtOnce: of two joins of a player at once, one is refused, and one stake is held. The deadline gives it
// back, and a refund that is asked for three times under one id comes once.
func TestJoinsTwiceAtOnce(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, roundCatalog)
	for _, p := range []string{"ann", "p0"} {
		do(t, r, kuji.Grant{Player: p, Items: []kuji.Stack{{Item: "box", Quantity: 10}}})
	}
	opened := do(t, r, kuji.OpenRound{Player: "p0", Round: "gamble", Stake: []kuji.Stack{{Item: "box", Quantity: 5}}})
	var wait sync.WaitGroup
	statuses := make([]kuji.Status, 2)
	for i := range statuses {
		wait.Go(func() {
			res, err := r.Do(t.Context(), kuji.Join{Player: "ann", Round: "gamble"})
			if err != nil {
				t.Error(err)
			}
			statuses[i] = res.Status
		})
	}
	wait.Wait()
	if statuses[0]+statuses[1] != kuji.AlreadyJoined {
		t.Errorf("the joins end as %v", statuses)
	}
	v, err := r.Player(t.Context(), "ann")
	if err != nil || fmt.Sprint(v.Items, v.Held) != "[{box 5}] [{box 5}]" {
		t.Errorf("ann has %v, and %v held: %v", v.Items, v.Held, err)
	}
	number := opened.Round().Number
	for range 3 {
		if res := do(t, r, kuji.CancelRound{ID: "back", Round: "gamble", Number: number}); res.Status != kuji.OK || res.Round().State != "returned" {
			t.Errorf("%v", res)
		}
	}
	v, err = r.Player(t.Context(), "ann")
	if err != nil || fmt.Sprint(v.Items, v.Held) != "[{box 10}] []" {
		t.Errorf("ann has %v, and %v held: %v", v.Items, v.Held, err)
	}
	got, err := kuji.RoundsOf(r).Get(t.Context(), number, 0)
	if err != nil || got.State != "returned" || got.Opener != "p0" {
		t.Errorf("%+v: %v", got, err)
	}
	if _, err := kuji.RoundsOf(r).Get(t.Context(), number+1, 0); err == nil {
		t.Error("there is a round that nobody opened")
	}
}

// TestWinnersUnderOneID: a settlement that is repeated names the same winners, and a reroll another one.
func TestWinnersUnderOneID(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, roundCatalog)
	do(t, r, kuji.OpenRound{Round: "giveaway"})
	for i := range 25 {
		p := fmt.Sprint("p", i)
		do(t, r, kuji.Grant{Player: p, Items: []kuji.Stack{{Item: "coin", Quantity: 2}}})
		do(t, r, kuji.Join{Player: p, Round: "giveaway"})
	}
	first := do(t, r, kuji.Settle{ID: "s", Round: "giveaway"})
	won := map[string]bool{}
	for _, c := range first.Claims() {
		won[c.Player] = len(c.Items) == 1
	}
	for range 5 {
		if again := do(t, r, kuji.Settle{ID: "s", Round: "giveaway"}); fmt.Sprint(again.Claims()) != fmt.Sprint(first.Claims()) || len(won) != 5 {
			t.Errorf("%+v, was %+v", again.Claims(), first.Claims())
		}
	}
	more := do(t, r, kuji.Reroll{ID: "more", Round: "giveaway", Number: 1})
	if c := more.Claims(); len(c) != 1 || c[0].Place != 6 || won[c[0].Player] {
		t.Errorf("a sixth winner: %+v, after %v", c, won)
	}
}
