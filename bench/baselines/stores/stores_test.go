package stores_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji/bench/baselines/stores"
)

var weights = []uint64{1, 0, 3}

func all(t *testing.T) map[string]stores.Store {
	t.Helper()
	lines, err := stores.OpenJSONLines(filepath.Join(t.TempDir(), "log"), weights)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]stores.Store{
		"locked": stores.NewLocked(weights), "actor": stores.NewActor(weights),
		"sharded": stores.NewSharded(weights, 3), "jsonlines": lines,
	}
}

// TestStores: each draw is given and counted once, an id answers the same
// again, and the odds are those of the weights.
func TestStores(t *testing.T) {
	for name, s := range all(t) {
		t.Run(name, func(t *testing.T) {
			const players, draws = 8, 500
			var mu sync.Mutex
			drawn := map[string][3]int{}
			var wg sync.WaitGroup
			for p := range players {
				wg.Go(func() {
					player := fmt.Sprint("p", p)
					var mine [3]int
					for i := range draws {
						id := fmt.Sprint(player, "-", i)
						if i%2 == 0 {
							id = ""
						}
						entry := s.Draw(id, player)
						mine[entry]++
						if id != "" && s.Draw(id, player) != entry {
							t.Errorf("id %s has two answers", id)
						}
					}
					mu.Lock()
					defer mu.Unlock()
					drawn[player] = mine
				})
			}
			wg.Wait()
			rare := 0
			for player, mine := range drawn {
				rare += mine[0]
				for entry, n := range mine {
					if got := s.Held(player, entry); got != n {
						t.Errorf("%s holds %d of %d, drew %d", player, got, entry, n)
					}
				}
				if mine[1] != 0 {
					t.Errorf("an entry without weight was drawn")
				}
			}
			if total := players * draws; rare < total/5 || rare > total/3 {
				t.Errorf("%d of %d draws gave the entry with a quarter of the weight", rare, total)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestJSONLinesReopens: what was logged is there again.
func TestJSONLinesReopens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	var first int
	for i := range 2 {
		s, err := stores.OpenJSONLines(file, weights)
		if err != nil {
			t.Fatal(err)
		}
		entry := s.Draw("1", "ann")
		if i == 0 {
			first = entry
		}
		if entry != first || s.Held("ann", entry) != 1 {
			t.Errorf("open %d: entry %d held %d times, want %d once", i, entry, s.Held("ann", entry), first)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
