package economy

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestGuard has readers copy what a writer changes all the time, so much that
// hardly a copy succeeds that the writer does not wait for.
func TestGuard(t *testing.T) {
	for _, words := range []int{2, 60, 20_000} {
		var g guard
		var over atomic.Bool
		shared := make([]uint64, words)
		var writer, readers sync.WaitGroup
		writer.Go(func() {
			for n := uint64(1); !over.Load(); n++ {
				g.open()
				for i := range shared {
					shared[i] = n
				}
				g.close()
			}
		})
		for range 2 {
			readers.Go(func() {
				seen, last := make([]uint64, words), uint64(0)
				for range 2_000_000 / (1000 + words) {
					var r reading
					g.look(&r)
					for copy(seen, shared); !g.done(&r); {
						copy(seen, shared)
					}
					for i, v := range seen {
						if v != seen[0] || v < last {
							t.Errorf("word %d of %d is %d, the first is %d, of the copy before it was %d", i, words, v, seen[0], last)
							return
						}
					}
					last = seen[0]
				}
			})
		}
		readers.Wait()
		over.Store(true)
		writer.Wait()
	}
}
