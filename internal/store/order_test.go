package store_test

import (
	"testing"

	"github.com/kuji-dev/kuji/internal/store"
)

// order declares an order.
func order(w *store.Writer, counter uint32, by store.By) {
	w.More(store.Order, uint64(counter), uint64(by))
}

// TestEarliest: players stand in the order of a counter, whoever has it before the order is declared
// and whoever gets it later.
func TestEarliest(t *testing.T) {
	r := newRealm(t)
	r.do("", func(w *store.Writer) {
		counters(w, 1, "/due")
		w.Join("late")
		w.Change(store.Set, 0, 50)
		w.Join("none")
	})
	r.do("", func(w *store.Writer) { order(w, 0, store.ByTime) })
	r.do("", func(w *store.Writer) {
		w.Join("early")
		w.Change(store.Set, 0, 9)
		w.Change(store.Set, 0, 7)
		w.Join("same")
		w.Change(store.Set, 0, 7)
	})
	var got []uint32
	for player := range r.s.EachEarliest(0, 9) {
		got = append(got, player)
	}
	if len(got) != 3 || got[0] != 2 || got[1] != 3 || got[2] != 0 {
		t.Fatalf("players %d; want 2, 3 and 0", got)
	}
	r.do("", func(w *store.Writer) { w.Effect(store.Player, 2); w.Change(store.Set, 0, 0) })
	if player, value, ok := r.s.Earliest(0); !ok || player != 3 || value != 7 {
		t.Fatalf("player %d at %d, %t; want 3 at 7", player, value, ok)
	}
	if err := r.s.Check(); err != nil {
		t.Fatal(err)
	}
}
