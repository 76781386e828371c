package enginetest

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestSubmitGivesWhatDoGives submits requests of all sorts, some of them again,
// faster than they become durable, and compares every result with what its id
// answers later.
func TestSubmitGivesWhatDoGives(t *testing.T) {
	t.Run("small realm", func(t *testing.T) { submitAndDo(t, 0) })
	t.Run("large realm", func(t *testing.T) { submitAndDo(t, large) })
}

// large is from how many players on the memory of requests is fetched ahead.
const large = 1 << 14

// crowd adds players.
func crowd(t *testing.T, r *kuji.Realm, players int) {
	var reqs []kuji.Request
	for i := range players {
		reqs = append(reqs, kuji.Register{Player: fmt.Sprint("crowd ", i)})
		if len(reqs) == kuji.MaxBatch || i == players-1 {
			if _, err := r.DoAll(t.Context(), reqs); err != nil {
				t.Fatal(err)
			}
			reqs = reqs[:0]
		}
	}
}

func submitAndDo(t *testing.T, players int) {
	_, r := open(t, t.TempDir(), worldOptions{})
	crowd(t, r, players)
	request := func(i int) kuji.Request {
		id, player := fmt.Sprint("id", i), fmt.Sprint("p", i%5)
		switch i % 5 {
		case 0:
			return kuji.Grant{ID: id, Player: player, Items: []kuji.Stack{{Item: "gem", Quantity: uint64(i + 1)}}}
		case 1:
			return kuji.Draw{ID: id, Player: player, Pool: "paid"} // too poor, after a while
		case 2:
			return kuji.Atomic{ID: id, Members: []kuji.Request{kuji.Draw{Player: player, Pool: "free"}}}
		case 3:
			return kuji.Draw{ID: id, Player: player, Pool: "free", Count: 3}
		}
		if i%2 == 0 {
			return kuji.Draw{ID: id, Player: player, Pool: "free"}
		}
		return kuji.Draw{ID: id, Player: player, Pool: "box"} // sold out in the end
	}
	// apply has a catalog come into force, often within a batch, and does not wait until it is durable.
	apply := func(wg *sync.WaitGroup, weight int) {
		was := r.Stats().CatalogVersion
		c := parse(t, strings.Replace(testCatalog, "id: none, weight: 3", fmt.Sprint("id: none, weight: ", weight), 1))
		wg.Go(func() {
			if _, err := r.Apply(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
		for r.Stats().CatalogVersion == was && r.Err() == nil {
			runtime.Gosched()
		}
	}
	const n = 600
	got := make([][3]kuji.Result, n) // of each request, and of its two repetitions
	var wg sync.WaitGroup
	for i := range n {
		if i%40 == 39 {
			apply(&wg, i)
		}
		for again := range 2 {
			at, nth := i, 0
			if again == 1 {
				at, nth = i/2, 1+i%2 // asked before: some of it not durable yet, some long since
			}
			wg.Add(1)
			r.Submit(request(at), func(res kuji.Result, err error) {
				defer wg.Done()
				if err != nil {
					t.Errorf("%d: %v", at, err)
				}
				if again == 0 && res.Replayed || again == 1 && !res.Replayed {
					t.Errorf("%d: replayed is %v", at, res.Replayed)
				}
				res.Replayed = true
				got[at][nth] = res
			})
		}
	}
	wg.Wait()
	for i := range n {
		want := do(t, r, request(i))
		if !reflect.DeepEqual(got[i][0], want) || i < n/2 && !(reflect.DeepEqual(got[i][1], want) && reflect.DeepEqual(got[i][2], want)) {
			t.Fatalf("%d: submitted, and again, it gave\n%+v\nand now gives\n%+v", i, got[i], want)
		}
	}
	mixed := 0
	for i := 1; i < n; i++ {
		a, b := got[i-1][0].Receipt, got[i][0].Receipt
		if a.Position == b.Position && a.CatalogVersion != b.CatalogVersion {
			mixed++
		}
	}
	t.Logf("%d of 15 catalogs came into force within a batch", mixed)
}

// TestReplaysDoNotQueueForEver: while the disk stalls, one id sent again and again
// takes no more memory than MaxPending allows, and what was accepted is answered.
func TestReplaysDoNotQueueForEver(t *testing.T) {
	disk := vfs.NewMem()
	stalled, goOn := make(chan struct{}, 1), make(chan struct{})
	var stall atomic.Bool
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync && stall.Load() {
			select {
			case stalled <- struct{}{}:
			default:
			}
			<-goOn
		}
		return vfs.Fault{}
	})
	_, r := open(t, "data", worldOptions{FS: disk, MaxPending: 1 << 20})
	stall.Store(true)
	var answered, overloaded atomic.Int64
	done := func(res kuji.Result, err error) {
		switch {
		case err == nil && res.Status == kuji.OK:
			answered.Add(1)
		case kuji.CodeOf(err) == kuji.CodeOverloaded:
			overloaded.Add(1)
		default:
			t.Errorf("%v, %v", res, err)
		}
	}
	draw := kuji.Draw{ID: "again", Player: "ann", Pool: "free"}
	r.Submit(draw, done)
	<-stalled
	r.Submit(kuji.Draw{Player: "ann", Pool: "free"}, done) // into the next batch, so that what comes then queues
	const most, n = 1 << 20 / (80 + 320 + 64), 10_000      // a callback, its answer and one outcome
	for range n {
		r.Submit(draw, done)
	}
	if got := overloaded.Load(); got < n-most-64 || got > n-most {
		t.Errorf("%d of %d answers given again were refused, want all but about %d", got, n, most)
	}
	stall.Store(false)
	close(goOn)
	if res := do(t, r, draw); !res.Replayed {
		t.Error("the id is not remembered")
	}
	for range 2 { // of which one is behind all callbacks
		do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
	}
	if got := answered.Load() + overloaded.Load(); got != n+2 {
		t.Errorf("%d callbacks were called, want %d", got, n+2)
	}
}
