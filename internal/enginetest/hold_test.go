package enginetest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const holdCatalog = `
kuji: 1
items: {coin: {kind: currency}, box: {}, key: {}, prize: {}}
pools:
  shop: {price: {coin: 10}, entries: [{id: prize, weight: 1, stock: 6, reward: {items: {prize: 1}}}]}
  one: {entries: [{id: prize, weight: 1, stock: 1, reward: {items: {prize: 1}}}]}
  codes: {entries: [{id: code, weight: 1000000, reward: {items: {key: 1}, code: keys}}, {id: none, weight: 1}]}
`

var tenMinutes = kuji.Holding{For: 10 * time.Minute}

// TestHoldsThroughCrashes: however often the power is cut, at every write: who asks again until there is an answer has
// each thing once. What nobody confirms comes back at the deadline.
func TestHoldsThroughCrashes(t *testing.T) {
	refund := kuji.Holding{For: 10 * time.Minute, Refund: true}
	id := func(i int) string { return fmt.Sprint("r", i) }
	coins := func(n uint64) []kuji.Stack { return []kuji.Stack{{Item: "coin", Quantity: n}} }
	reqs := []kuji.Request{
		kuji.Grant{ID: id(0), Player: "p0", Items: coins(100)},
		kuji.Grant{ID: id(1), Player: "p1", Items: coins(100)},
		kuji.Draw{ID: id(2), Player: "p0", Pool: "shop", Count: 2, Hold: tenMinutes},
		kuji.Draw{ID: id(3), Player: "p1", Pool: "shop", Count: 2, Hold: refund},
		kuji.Consume{ID: id(4), Player: "p0", Items: coins(5), Hold: tenMinutes},
		kuji.Transfer{ID: id(5), From: "p1", To: "p2", Items: coins(7), Hold: tenMinutes},
		kuji.Atomic{ID: id(6), Members: []kuji.Request{kuji.Consume{Player: "p0", Items: coins(3)}, kuji.Draw{Player: "p0", Pool: "shop"}}, Hold: refund},
		kuji.Confirm{ID: id(7), Hold: id(2)},
		kuji.Confirm{ID: id(8), Hold: id(3)},
		kuji.Cancel{ID: id(9), Hold: id(4)},
		kuji.Confirm{ID: id(10), Hold: id(5)},
		kuji.Draw{ID: id(11), Player: "p1", Pool: "one", Hold: tenMinutes},
		nil, // ten minutes pass
		kuji.Draw{ID: id(12), Player: "p3", Pool: "one"},
	}
	session := func(disk *vfs.Mem, snapshots bool) (e *kuji.Engine, r *kuji.Realm, err error) { // until the power is cut
		now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
		if e, err = openWorld("data", worldOptions{FS: disk, SegmentSize: 8 << 10, TrimLog: true, Now: now.Now}); err != nil {
			return nil, nil, err
		}
		if r, err = e.Realm("test"); err != nil {
			return e, nil, err
		}
		if _, err = r.Apply(t.Context(), parse(t, holdCatalog)); err != nil {
			return e, r, err
		}
		for i, req := range reqs {
			if req == nil {
				now.Add(10 * time.Minute)
				continue
			}
			res, err := r.Do(t.Context(), req)
			if err != nil {
				return e, r, err
			}
			if res.Status != kuji.OK {
				t.Fatalf("%+v: %v", req, res)
			}
			if snapshots && i%4 == 3 {
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
			for item, want := range map[string]uint64{"coin": 200 - 20 - 20, "prize": 5} {
				if free, held := has(t, r, item); free != want || held != 0 {
					t.Fatalf("power cut before step %d: %d of %s and %d held, want %d", step, free, item, held, want)
				}
			}
			if open, err := kuji.HoldsOf(r).Open(t.Context(), 0, ""); err != nil || len(open) != 0 {
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

// TestOnePrizeHeldByMany: one prize, a hundred players who hold it and let it go at random: never two have it, and it is
// never lost. After the last deadline it is there.
func TestOnePrizeHeldByMany(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, holdCatalog)
	var wait sync.WaitGroup
	for i := range 100 {
		wait.Go(func() {
			player, dice := fmt.Sprint("p", i), rand.New(rand.NewPCG(uint64(i), 1))
			for k := range 20 {
				id := fmt.Sprint(player, "-", k)
				res, err := r.Do(t.Context(), kuji.Draw{ID: id, Player: player, Pool: "one", Hold: kuji.Holding{For: 10 * time.Minute, Refund: dice.IntN(2) == 0}})
				if err != nil {
					t.Error(err)
					return
				}
				if res.Status != kuji.OK {
					continue
				}
				if pool, err := r.Pool(t.Context(), "one"); err != nil || res.Hold().State != "open" || len(res.Outcomes) > 0 && pool.Entries[0].Left != 0 {
					t.Errorf("%+v, while %+v is held: %v", pool.Entries, res.Hold(), err)
				}
				if k == 19 {
					return // nobody calls
				}
				if _, err := r.Do(t.Context(), kuji.Cancel{Hold: id}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	now.Add(11 * time.Minute)
	res := do(t, r, kuji.Draw{Player: "last", Pool: "one"})
	if res.Status != kuji.OK || len(res.Outcomes) != 1 {
		t.Errorf("%v", res)
	}
	if open, err := kuji.HoldsOf(r).Open(t.Context(), 0, ""); err != nil || len(open) != 0 {
		t.Errorf("%+v are open: %v", open, err)
	}
}

// TestReverseOfAnIDAgain: an id that was reversed, forgotten and given to another request can be reversed again, once.
func TestReverseOfAnIDAgain(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, "{kuji: 1, idempotency: {count: 2, age: 1h}, items: {coin: {}}}")
	reversed := func(want kuji.Status) {
		t.Helper()
		if res := do(t, r, kuji.Reverse{Request: "g", Note: kuji.Note{Reason: "a chargeback"}}); res.Status != want {
			t.Errorf("%v, want %v", res, want)
		}
	}
	for range 2 {
		do(t, r, kuji.Grant{ID: "g", Player: "ann", Items: coins(5)})
		reversed(kuji.OK)
		reversed(kuji.AlreadyReversed)
		for i := range 5 {
			now.Add(2 * time.Hour)
			do(t, r, kuji.Grant{ID: fmt.Sprint(now.Now(), i), Player: "ann", Items: coins(1)})
		}
		reversed(kuji.UnknownRequest)
	}
}

// TestHoldResults: what the results, the reads and the records of holds say.
func TestHoldResults(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, holdCatalog)
	if _, err := r.Codes().Import(t.Context(), "keys", []string{"SECRET"}); err != nil {
		t.Fatal(err)
	}
	held := do(t, r, kuji.Draw{ID: "h", Player: "ann", Pool: "codes", Hold: tenMinutes})
	at := now.Now().UnixMilli()
	want := kuji.HoldView{ID: "h", State: "open", Asked: at, Until: at + 600_000,
		Parts: []kuji.HeldPart{{Kind: "draw", Player: "ann", Gives: []kuji.HeldView{{Item: "key", Quantity: 1}}, Codes: 1}}}
	if !reflect.DeepEqual(*held.Hold(), want) || len(held.Outcomes) != 1 || held.Outcomes[0].Codes != nil || held.Outcomes[0].Items[0].Item != "key" {
		t.Errorf("%+v, %+v", held.Hold(), held.Outcomes)
	}
	for what, read := range map[string]func() (kuji.HoldView, error){
		"by its id": func() (kuji.HoldView, error) { return kuji.HoldsOf(r).Get(t.Context(), "h") },
		"of its player": func() (kuji.HoldView, error) {
			all, err := kuji.HoldsOf(r).Of(t.Context(), "ann")
			return append(all, kuji.HoldView{})[0], err
		},
		"open": func() (kuji.HoldView, error) {
			all, err := kuji.HoldsOf(r).Open(t.Context(), 0, "")
			return append(all, kuji.HoldView{})[0], err
		},
	} {
		if got, err := read(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v: %v", what, got, err)
		}
	}
	if all, err := kuji.HoldsOf(r).Open(t.Context(), want.Until, "h"); err != nil || len(all) != 0 {
		t.Errorf("after the last: %+v: %v", all, err)
	}
	now.Add(time.Minute)
	given := do(t, r, kuji.Confirm{ID: "c", Hold: "h"})
	if g := given.Given(); len(g.Items) != 1 || len(g.Codes) != 1 || g.Codes[0].Code != "SECRET" {
		t.Errorf("%+v", g)
	}
	ended := kuji.HoldView{ID: "h", State: "confirmed", Asked: at, Ended: at + 60_000, By: "c"}
	if !reflect.DeepEqual(*given.Hold(), ended) {
		t.Errorf("%+v", given.Hold())
	}
	now.Add(time.Minute)
	again := do(t, r, kuji.Cancel{ID: "d", Hold: "h"})
	if ended.Asked = 0; again.Status != kuji.HoldEnded || !reflect.DeepEqual(*again.Hold(), ended) {
		t.Errorf("%v, %+v", again, again.Hold())
	}
	if first := do(t, r, kuji.Confirm{ID: "c", Hold: "h"}); !first.Replayed || len(first.Given().Codes) != 1 {
		t.Errorf("%+v", first)
	}
	if res := do(t, r, kuji.Confirm{Hold: "nothing"}); res.Status != kuji.UnknownHold {
		t.Errorf("%v", res)
	}
	group := kuji.Atomic{ID: "g", Hold: kuji.Holding{For: time.Minute, Refund: true}, Members: []kuji.Request{
		kuji.Draw{Player: "bob", Pool: "codes"}, kuji.Draw{Player: "bob", Pool: "one"}}}
	if res := do(t, r, group); len(res.Members) != 2 || res.Members[1].Outcomes != nil || len(res.Hold().Parts) != 2 {
		t.Errorf("%+v", res)
	}
	if res := do(t, r, kuji.Confirm{Hold: "g"}); len(res.Members) != 2 || res.Members[1].Outcomes[0].Entry != "prize" {
		t.Errorf("%+v", res)
	}
	if res := do(t, r, kuji.Draw{ID: "s", Player: "bob", Pool: "one", Hold: tenMinutes}); res.Status != kuji.SoldOut || res.Hold() != nil {
		t.Errorf("%+v", res)
	}
	kinds := ""
	for rec, err := range r.Feed().Events(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		kinds += " " + rec.Kind
		if rec.Hold != nil {
			kinds += ":" + rec.Hold.State
		}
		if rec.ID == "s" {
			break
		}
	}
	if want := " catalog codes hold:open confirm:confirmed cancel:confirmed confirm: hold:open confirm:confirmed hold"; kinds != want {
		t.Errorf("the records are%s, want%s", kinds, want)
	}
}
