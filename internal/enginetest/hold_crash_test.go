package enginetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const manyHolds = `
kuji: 1
items: {coin: {kind: currency}, prize: {}}
pools:
  shop: {price: {coin: 1}, entries: [{id: prize, weight: 1, stock: 30, reward: {items: {prize: 1}}}]}
`

// heldByMany returns requests by which a hundred things of four players are held. Two players are merged in the middle,
// and one is forgotten at the end. Then come requests for after the deadline. paid is how many coins are gone by all of
// them: for draws without refund, for one that is confirmed, and for the last one.
func heldByMany() (before, after []kuji.Request, paid int) {
	names := []string{"p0", "p1", "p2", "p3"}
	for i, p := range names {
		before = append(before, kuji.Grant{ID: fmt.Sprint("g", i), Player: p, Items: coins(100)})
	}
	paid = 1
	for i := range 100 {
		req, p, to := kuji.Request(nil), names[i%4], names[(i+2)%4]
		id, held := fmt.Sprint("h", i), kuji.Holding{For: 10 * time.Minute, Refund: i%8 < 4}
		switch {
		case i%5 < 2 && i < 60:
			if req = (kuji.Draw{ID: id, Player: p, Pool: "shop", Hold: held}); p != "p3" && (i == 0 || !held.Refund) {
				paid++
			}
		case i%5 == 2:
			req = kuji.Transfer{ID: id, From: p, To: to, Items: coins(1), Hold: held}
		default:
			req = kuji.Consume{ID: id, Player: p, Items: coins(1), Hold: held}
		}
		if before = append(before, req); i == 60 {
			before = append(before, kuji.Merge{ID: "m1", Player: "p0", From: "p1"})
		}
	}
	before = append(before, kuji.Confirm{ID: "c0", Hold: "h0"}, kuji.Cancel{ID: "c1", Hold: "h1"}, kuji.Forget{ID: "f1", Player: "p3"})
	after = []kuji.Request{
		kuji.Grant{ID: "late", Player: "p0", Items: coins(1)},
		kuji.Merge{ID: "m2", Player: "p2", From: "p0"},
		kuji.Draw{ID: "d", Player: "p1", Pool: "shop"},
	}
	return before, after, paid
}

// wantAllEnded reports what is wrong after the requests of heldByMany.
func wantAllEnded(t *testing.T, r *kuji.Realm, paid int) error {
	v, err := r.Player(t.Context(), "p0") // by another name
	if err != nil {
		return err
	}
	shop, err := r.Pool(t.Context(), "shop")
	if err != nil {
		return err
	}
	open, err := kuji.HoldsOf(r).Open(t.Context(), 0, "")
	if err != nil {
		return err
	}
	_, gone := r.Player(t.Context(), "p3")
	got := fmt.Sprintf("%s %v %v, %d left, %d open, %v", v.ID, v.Items, v.Held, shop.Entries[0].Left, len(open), kuji.CodeOf(gone))
	want := fmt.Sprintf("p2 [{coin %d} {prize 2}] [], 28 left, 0 open, %v", 300+1-paid, kuji.CodeNotFound)
	if got != want {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}

// TestHoldsSweptThroughCrashes: what is held of many falls due at once, and the power is cut at every write of the sweep.
// Then two players are merged, in the middle of what is due or after it. Each hold ends, once.
func TestHoldsSweptThroughCrashes(t *testing.T) {
	first, then, paid := heldByMany()
	m := newMachine()
	e, r, err := m.open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, manyHolds)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.DoAll(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if open, err := kuji.HoldsOf(r).Open(t.Context(), 0, ""); err != nil || len(open) <= 64 {
		t.Fatalf("%d holds are open, which one event can end: %v", len(open), err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	m.passes(10 * time.Minute)
	before := m.disk
	sweep := func(disk *vfs.Mem) { // until the power is cut
		m.steps, m.disk = &steps{now: m.now, chaos: m.chaos}, disk
		if e, _, err := m.open(time.Time{}); err == nil {
			m.runAll()
			_ = e.Close()
		}
	}
	dry := before.KillClone()
	_, from := dry.Ops()
	sweep(dry)
	_, to := dry.Ops()
	left := map[int]int{} // how many holds were open after a power cut, how often
	for step := range to - from {
		disk := before.KillClone()
		disk.CutPowerAfter(step)
		sweep(disk)
		for crashed := range disk.CrashSamples(2, uint64(step), false) {
			m.steps, m.disk = &steps{now: m.now, chaos: m.chaos}, crashed
			e, r, err := m.open(time.Time{})
			if err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
			open, err := kuji.HoldsOf(r).Open(t.Context(), 0, "")
			if err != nil {
				t.Fatal(err)
			}
			left[len(open)]++
			if step%2 == 0 {
				m.runAll()
			}
			for _, req := range then {
				if res := do(t, r, req); res.Status != kuji.OK {
					t.Fatalf("power cut before step %d: %v", step, res)
				}
			}
			m.runAll()
			if err := wantAllEnded(t, r, paid); err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
			m.records(t, e)
		}
	}
	if t.Logf("%d steps; holds left after a power cut, and how often: %v", to-from, left); len(left) < 3 {
		t.Error("no sweep was cut in the middle")
	}
}

// TestManyHoldsThroughCrashes: a hundred holds fall due at once, while players are merged and forgotten. However often
// the power is cut, at every write: each hold ends once, and what it took is somebody's again, or gone with its player.
func TestManyHoldsThroughCrashes(t *testing.T) {
	first, then, paid := heldByMany()
	reqs := append(append(first, nil), then...)                                                 // nil: ten minutes pass
	session := func(disk *vfs.Mem, snapshots bool) (e *kuji.Engine, r *kuji.Realm, err error) { // until the power is cut
		now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
		if e, err = openWorld("data", worldOptions{FS: disk, SegmentSize: 8 << 10, TrimLog: true, Now: now.Now}); err != nil {
			return nil, nil, err
		}
		if r, err = e.Realm("test"); err != nil {
			return e, nil, err
		}
		if _, err = r.Apply(t.Context(), parse(t, manyHolds)); err != nil {
			return e, r, err
		}
		for at := 0; at < len(reqs); {
			from := at
			for at < len(reqs) && reqs[at] != nil && at-from < 16 {
				at++
			}
			if at == from {
				now.Add(10 * time.Minute)
				at++
				continue
			}
			results, err := r.DoAll(t.Context(), reqs[from:at])
			if err != nil {
				return e, r, err
			}
			for i, res := range results {
				if res.Status != kuji.OK && res.Status != kuji.Forgotten {
					t.Fatalf("%+v: %v", reqs[from+i], res)
				}
			}
			if snapshots && from%3 == 0 {
				if _, err := r.Snapshot(t.Context()); err != nil {
					return e, r, err
				}
			}
		}
		return e, r, nil
	}
	dry := vfs.NewMem()
	e, r, err := session(dry, true)
	if err == nil {
		err = wantAllEnded(t, r, paid)
	}
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
			if err == nil {
				err = wantAllEnded(t, r, paid)
			}
			if err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := verifyIn(crashed, "data", "test", nil); err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
		}
	}
	t.Logf("%d power cuts", (steps+stride-1)/stride)
}
