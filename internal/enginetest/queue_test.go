package enginetest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestQueue: requests that come while the disk stalls wait for each other. Whatever happens then, each is told once,
// in order, and those that succeeded are in the log.
func TestQueue(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, tt := range []struct {
		name string
		n    int // 64 wait together
		then func(t *testing.T, e *kuji.Engine, r *kuji.Realm, fail, end func())
		want kuji.Code // of the last request; none: it succeeds
	}{
		{"the disk goes on", 150, func(*testing.T, *kuji.Engine, *kuji.Realm, func(), func()) {}, 0},
		{"another request comes", 150, func(t *testing.T, _ *kuji.Engine, r *kuji.Realm, _, _ func()) {
			var res [1]kuji.Result
			if _, err := r.StartAll(t.Context(), []kuji.Request{kuji.Consume{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 150}}}}, res[:]); err != nil {
				t.Error(err)
			}
			if res[0].Status != kuji.OK {
				t.Errorf("%v: it did not see what was submitted before it", res[0])
			}
		}, 0},
		{"the state is hashed", 150, func(t *testing.T, _ *kuji.Engine, r *kuji.Realm, _, _ func()) {
			go r.StateHash(t.Context())
		}, 0},
		{"the realm is closed", 150, func(_ *testing.T, e *kuji.Engine, _ *kuji.Realm, _, _ func()) { go e.Close() }, 0},
		{"the disk breaks", 150, func(_ *testing.T, _ *kuji.Engine, _ *kuji.Realm, fail, _ func()) { fail() }, kuji.CodeFailed},
		{"the clock ends the goroutine", 40, func(_ *testing.T, _ *kuji.Engine, _ *kuji.Realm, _, end func()) { end() }, kuji.CodeFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk := vfs.NewMem()
			stalled, goOn := make(chan struct{}, 1), make(chan struct{})
			var stall, fails, ends atomic.Bool
			disk.SetHook(func(op vfs.Op) (fault vfs.Fault) {
				if op.Kind == vfs.OpSync && stall.Load() {
					select {
					case stalled <- struct{}{}:
					default:
					}
					<-goOn
					if fails.Load() {
						fault.Err = broken
					}
				}
				return fault
			})
			e, r := open(t, "data", worldOptions{FS: disk, Now: func() time.Time {
				if ends.Load() {
					runtime.Goexit()
				}
				return time.Now()
			}})
			stall.Store(true)
			type told struct {
				request int
				res     kuji.Result
				err     error
			}
			answers := make(chan told, tt.n+2)
			submit := func(i int) {
				id := fmt.Appendf(nil, "id %d", i)
				req := kuji.Grant{ID: unsafe.String(&id[0], len(id)), Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}
				r.Submit(&req, func(res kuji.Result, err error) { answers <- told{i, res, err} })
				req.Items[0] = kuji.Stack{Item: "none", Quantity: 1 << 50} // the caller uses its memory again
				copy(id, "none")
			}
			submit(0)
			<-stalled
			for i := 1; i <= tt.n; i++ {
				submit(i)
			}
			submit(0) // again
			tt.then(t, e, r, func() { fails.Store(true) }, func() { ends.Store(true) })
			close(goOn)
			var last told
			for next, again := 0, 0; next+again < tt.n+2; {
				got := <-answers
				switch {
				case got.err != nil && tt.want == 0:
					t.Errorf("request %d: %v", got.request, got.err)
				case got.err == nil && (got.res.Status != kuji.OK || got.res.Receipt.Position == 0):
					t.Errorf("request %d: %+v", got.request, got.res)
				}
				if got.request == 0 && next > 0 { // its answer may be durable before the others'
					again++
					if got.err == nil && !got.res.Replayed {
						t.Errorf("request 0 is carried out again: %+v", got.res)
					}
					continue
				}
				if got.request != next {
					t.Fatalf("request %d is told after %d others", got.request, next)
				}
				last, next = got, next+1
			}
			if tt.want != 0 && kuji.CodeOf(last.err) != tt.want {
				t.Errorf("the last request: %v, want %v", last.err, tt.want)
			}
		})
	}
}

// TestResolvedBeforeACatalog: a request that is prepared while a catalog comes into force is carried out by that
// catalog, or refused by it.
func TestResolvedBeforeACatalog(t *testing.T) {
	e, r := open(t, t.TempDir(), worldOptions{})
	defer e.Close()
	with := func(item string) *catalog.Catalog {
		return parse(t, "kuji: 1\nitems: {gem: {kind: currency}, rock: {}}\npools: {p: {entries: [{id: e, weight: 1, reward: {items: {"+item+": 1}}}]}}\n")
	}
	if _, err := r.Apply(t.Context(), with("gem")); err != nil {
		t.Fatal(err)
	}
	const each = 300
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			reqs := make([]kuji.Request, each)
			for i := range reqs {
				reqs[i] = kuji.Draw{Player: "ann", Pool: "p"}
			}
			for range 20 {
				results, err := r.DoAll(t.Context(), reqs)
				if err != nil {
					t.Error(err)
					return
				}
				for _, res := range results {
					want := "gem"
					if res.Receipt.CatalogVersion%2 == 1 {
						want = "rock"
					}
					if got := res.Outcomes[0].Items[0].Item; got != want {
						t.Errorf("catalog version %d gave a %s, want a %s", res.Receipt.CatalogVersion, got, want)
						return
					}
				}
			}
		})
	}
	for v := range 40 {
		if _, err := r.Apply(t.Context(), with([]string{"rock", "gem"}[v%2])); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}
