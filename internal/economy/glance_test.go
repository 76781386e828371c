package economy

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// TestFetchBesideRequestIDs fetches for requests while their ids are remembered and
// forgotten, which moves what is remembered: it neither fails nor changes anything.
func TestFetchBesideRequestIDs(t *testing.T) {
	const ids, kept = 100_000, 30_000
	s := New()
	name := func(i int) string { return fmt.Sprint("request ", i) }
	var over atomic.Bool
	var readers sync.WaitGroup
	for seed := range uint64(2) {
		readers.Go(func() {
			for r := rand.New(rand.NewPCG(seed, 1)); !over.Load(); {
				s.Fetch(name(r.IntN(ids)), "nobody")
			}
		})
	}
	for i := range ids {
		s.ids.index.add(s.ids.key.hash(name(i)), uint32(i))
		if i >= kept {
			s.ids.index.remove(s.ids.key.hash(name(i-kept)), uint32(i-kept))
		}
	}
	over.Store(true)
	readers.Wait()
	if d := s.ids.index.dir.Load().depth; d < largeDepth {
		t.Fatalf("the index is of depth %d, and nothing was fetched", d)
	}
	for i := range ids {
		h := s.ids.key.hash(name(i))
		found := false
		for slot := first(h); *s.ids.index.shard(h).at(slot) != 0; slot++ {
			found = found || *s.ids.index.shard(h).at(slot) == content(h, uint32(i))
		}
		if want := i >= ids-kept; found != want {
			t.Fatalf("id %d: found %v, want %v", i, found, want)
		}
	}
}
