package economy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestIndexSettles: what waits is in the index afterwards, round after round, and all that
// have the same hash are named, the earlier one first.
func TestIndexSettles(t *testing.T) {
	for order := range 4 {
		r := rand.New(rand.NewPCG(1, uint64(order)))
		var x index
		x.init()
		x.alone = true
		var hashes []uint32
		same := map[uint32][]uint32{} // numbers by hash
		for round := range 4 {
			want := map[[2]uint32]int{}
			x.deferred = true
			for range []int{100, 40_000, 20_000, 30_000}[(round+order)%4] {
				h := r.Uint32()
				switch r.IntN(20) {
				case 0: // of one shard, or two, which are split over and over
					h = h&0xffff | uint32(0xabcd+r.IntN(2))<<16
				case 1: // of one run
					h = h&0xffff0000 | 77
				case 2:
					if len(hashes) > 0 {
						h = hashes[r.IntN(len(hashes))]
					}
				}
				num := uint32(len(hashes))
				for _, was := range same[h] {
					want[[2]uint32{was, num}]++
				}
				same[h] = append(same[h], num)
				hashes = append(hashes, h)
				x.wait(h, num)
			}
			got := map[[2]uint32]int{}
			x.settle(func(was, is uint32) bool { got[[2]uint32{was, is}]++; return false })
			if !maps.Equal(got, want) {
				t.Fatalf("order %d, round %d: %d pairs of the same hash were named, want %d", order, round, len(got), len(want))
			}
			for num, h := range hashes {
				s, i := x.shard(h), first(h)
				for *s.at(i) != content(h, uint32(num)) {
					if *s.at(i) == 0 {
						t.Fatalf("order %d, round %d: number %d is not found", order, round, num)
					}
					i++
				}
			}
		}
	}
}

// TestSettleManyOfOneID: of what a forged log names as new over and over the index takes one,
// and does not grow for the rest.
func TestSettleManyOfOneID(t *testing.T) {
	s := New()
	s.setAlone(true)
	s.ids.index.deferred = true
	s.replayed = []groupBatch{{at: At{Position: 1}}}
	for i := range 300 {
		s.players.joined.push(s.unsettled)
		s.players.add("one", 1)
		s.unsettled++
		s.ids.add("id", idRecord{position: uint64(i + 1), answer: []byte{1, 0, 2, 'i', 'd'}})
	}
	at, err := s.Settle()
	if err == nil || at.Position != 1 {
		t.Errorf("settled with %v, at %+v", err, at)
	}
	if p, ids := len(s.players.index.own.shards), len(s.ids.index.own.shards); p > 2 || ids > 2 {
		t.Errorf("%d shards for a player and %d for a request id", p, ids)
	}
}

// TestSettleNamesTheFirst: of one event that names several as new who are not, the first is named.
func TestSettleNamesTheFirst(t *testing.T) {
	for range 20 { // the order in the index is another each time
		s := New()
		s.setAlone(true)
		s.replayed = []groupBatch{{at: At{Position: 1}}}
		for _, id := range []string{"a", "b", "c", "d", "c", "b", "a"} {
			s.players.joined.push(s.unsettled)
			s.players.add(id, 1)
			for n := range 200 {
				s.players.joined.push(s.unsettled)
				s.players.add(fmt.Sprint(id, s.players.count(), n), 1)
			}
		}
		if _, err := s.Settle(); err == nil || !strings.Contains(err.Error(), `"c"`) {
			t.Fatalf("%v, want c", err)
		}
	}
}
