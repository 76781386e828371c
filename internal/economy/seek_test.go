package economy

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSeek compares seek with search for every key in and around random slots.
func TestSeek(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		var keys []uint32
		for range r.IntN(40) {
			keys = append(keys, r.Uint32N(60))
		}
		if r.IntN(3) == 0 {
			keys = append(keys, limitSlot, limitSlot, limitSlot|5)
		}
		slices.Sort(keys)
		h := make([]slot, len(keys))
		for i, k := range keys {
			h[i].key = k
		}
		for _, key := range append(keys, 0, 1, 30, 59, 60, 61, limitSlot-1, limitSlot, limitSlot|9) {
			got, want := seek(h, key), search(h, key)
			if got != want && !(got < len(h) && h[got].key == key && key < limitSlot && h[want].key == key) {
				t.Fatalf("%v: %d stands at %d, seek says %d", keys, key, want, got)
			}
		}
	}
}
