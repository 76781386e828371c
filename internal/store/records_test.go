package store_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/internal/store"
)

// TestRecordsOfEveryOrder: records that come and go in any order are those of a map, found one by one and in the
// order of their keys, from any key to any other.
func TestRecordsOfEveryOrder(t *testing.T) {
	orders := map[string]func(rnd *rand.Rand, i int) int{
		"ascending":  func(_ *rand.Rand, i int) int { return i },
		"descending": func(_ *rand.Rand, i int) int { return 100_000 - i },
		"any":        func(rnd *rand.Rand, _ int) int { return rnd.IntN(3000) },
		"a queue":    func(_ *rand.Rand, i int) int { return i - i%3*500 },
	}
	for name, next := range orders {
		t.Run(name, func(t *testing.T) {
			rnd, r, want := rand.New(rand.NewPCG(1, 2)), newRealm(t), map[string]string{}
			for i := range 6000 {
				key := fmt.Sprintf("%06d", max(next(rnd, i), 0))
				r.do("", func(w *store.Writer) {
					if _, ok := want[key]; ok && rnd.IntN(2) == 0 {
						w.Drop([]byte(key))
						delete(want, key)
						return
					}
					value := make([]byte, rnd.IntN(1+rnd.IntN(600)))
					w.Put([]byte(key), value)
					want[key] = string(value)
				})
			}
			r.wantRecords(want)
			for range 100 {
				from, to := fmt.Sprintf("%06d", rnd.IntN(3000)), fmt.Sprintf("%06d", rnd.IntN(3000))
				n := 0
				for key := range want {
					if key >= from && key < to {
						n++
					}
				}
				if got, _ := r.s.ReadRecords([]byte(from), []byte(to), 1e6); len(got) != n {
					t.Fatalf("%d records from %s to %s; want %d", len(got), from, to, n)
				}
			}
			for _, key := range slices.Sorted(maps.Keys(want)) {
				r.do("", func(w *store.Writer) { w.Drop([]byte(key)) })
			}
			r.wantRecords(nil)
		})
	}
}

// wantRecords checks that the records are these.
func (r *realm) wantRecords(want map[string]string) {
	r.t.Helper()
	keys := slices.Sorted(maps.Keys(want))
	size := uint64(0)
	got, _ := r.s.ReadRecords(nil, nil, 1e6)
	for i, rec := range got {
		if i >= len(keys) || string(rec.Key) != keys[i] || string(rec.Value) != want[keys[i]] {
			r.t.Fatalf("record %d is %q: %q", i, rec.Key, rec.Value)
		}
		if v, ok := r.s.Record(rec.Key); !ok || !bytes.Equal(v, rec.Value) {
			r.t.Fatalf("record %q is %q, found %v", rec.Key, v, ok)
		}
		size += uint64(len(rec.Key) + len(rec.Value))
	}
	if n, bytes := r.s.RecordsSize(); n != len(keys) || len(got) != n || bytes != size {
		r.t.Fatalf("%d records of %d bytes, %d of them read; want %d of %d", n, bytes, len(got), len(keys), size)
	}
	if err := r.s.Check(); err != nil {
		r.t.Fatal(err)
	}
}

// TestRefusesRecordsAndHolds: events that do not fit are refused.
func TestRefusesRecordsAndHolds(t *testing.T) {
	for name, effects := range map[string]func(w *store.Writer){
		"a drop of nothing":     func(w *store.Writer) { w.Drop([]byte("none")) },
		"an empty key":          func(w *store.Writer) { w.Put(nil, []byte("x")) },
		"more than there is":    func(w *store.Writer) { w.More(store.Hold, 0, 6) },
		"more than is held":     func(w *store.Writer) { w.More(store.Release, 0, 3) },
		"a forfeit of too much": func(w *store.Writer) { w.More(store.Forfeit, 0, 3) },
		"nothing":               func(w *store.Writer) { w.More(store.Hold, 0, 0) },
		"an unknown item":       func(w *store.Writer) { w.More(store.Hold, 7, 1) },
		"a promise of nothing":  func(w *store.Writer) { w.More(store.Promise, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t)
			r.do("", func(w *store.Writer) {
				item(w, 1, "coin")
				w.Join("ann")
				w.Change(store.Gain, 0, 7)
				w.More(store.Hold, 0, 2)
			})
			err := r.apply(r.write("", func(w *store.Writer) {
				w.Effect(store.Player, 0)
				effects(w)
			}))
			if err == nil {
				t.Fatal("it is applied")
			}
		})
	}
}

// TestHeldItems: what is held is not part of a balance, and counts in the supply until it is forfeited.
func TestHeldItems(t *testing.T) {
	r := newRealm(t)
	r.do("", func(w *store.Writer) {
		item(w, 1, "coin")
		w.Join("ann")
		w.Change(store.Gain, 0, 10)
		w.More(store.Hold, 0, 10)
		w.More(store.Release, 0, 3)
		w.More(store.Forfeit, 0, 2)
	})
	items, _, _, _ := r.s.Holdings("ann")
	if want := []store.Balance{{Item: "coin", Quantity: 3, Held: 5}}; !slices.Equal(items, want) {
		t.Fatalf("ann has %v; want %v", items, want)
	}
	if err := r.s.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotOfJoinedRecords: a snapshot that was taken after leaves have joined has what is left of them, and
// nothing of what went.
func TestSnapshotOfJoinedRecords(t *testing.T) {
	r, want := newRealm(t), map[string]string{}
	const size, most = 480, 40 // five leaves
	for i := range most {
		key := fmt.Sprintf("%06d", i)
		want[key] = string(bytes.Repeat([]byte{byte(i)}, size))
		r.do("", func(w *store.Writer) { w.Put([]byte(key), []byte(want[key])) })
	}
	var (
		chain  []snapshot
		extent *store.Extent
	)
	take := func() {
		t.Helper()
		c := r.s.Capture(extent)
		chain = append(chain, taken(c))
		r.s.Release(c, true)
		at := c.Extent()
		extent = &at
		got, _, err := load(chain)
		if err != nil {
			t.Fatalf("%d snapshots, with %d records: %v", len(chain), len(want), err)
		}
		(&realm{t: t, s: got}).wantRecords(want)
		if got.Hash() != r.s.Hash() {
			t.Fatalf("%d snapshots have another hash", len(chain))
		}
	}
	drop := func(i int) {
		key := fmt.Sprintf("%06d", i)
		delete(want, key)
		r.do("", func(w *store.Writer) { w.Drop([]byte(key)) })
		take()
	}
	for i := 1; i < most; i += 2 { // until no leaf is full
		drop(i)
	}
	for i := most - 2; i >= 0; i -= 2 { // from the end: each leaf joins the one before it, which has not changed
		drop(i)
	}
}
