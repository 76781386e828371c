package kuji_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// crowd is how many players a realm must have for draws to queue.
const crowd = 1 << 14

// fillWith makes players, by requests of as many as are allowed at a time.
func fillWith(t testing.TB, r *kuji.Realm, players int) {
	t.Helper()
	for some := range slices.Chunk(make([]kuji.Request, players), kuji.MaxBatch) {
		for i := range some {
			some[i] = kuji.Grant{Player: fmt.Sprintf("%p-%d", some, i), Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}
		}
		if _, err := r.DoAll(t.Context(), some); err != nil {
			t.Fatal(err)
		}
	}
}

// queued is a realm of many players with a disk that stands still: a draw is being written,
// another is in the open batch, and what comes now queues.
type queued struct {
	*testing.T
	e    *kuji.Engine
	r    *kuji.Realm
	disk *vfs.Mem
	hold chan error // what a write that waits fails with

	mu    sync.Mutex
	told  map[string]kuji.Result // by player
	wrong map[string]kuji.Code
}

// queue runs a test of draws that queue.
func queue(t *testing.T, o kuji.Options, test func(*queued)) {
	synctest.Test(t, func(t *testing.T) {
		q := &queued{T: t, disk: vfs.NewMem(), hold: make(chan error), told: map[string]kuji.Result{}, wrong: map[string]kuji.Code{}}
		o.FS = q.disk
		q.e, q.r = open(t, "data", o)
		fillWith(t, q.r, crowd)
		for _, player := range []string{"ann", "bob", "cid", "dan"} {
			do(t, q.r, kuji.Grant{Player: player, Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
		}
		q.disk.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == vfs.OpWrite {
				return vfs.Fault{Err: <-q.hold}
			}
			return vfs.Fault{}
		})
		for _, player := range []string{"ann", "bob"} {
			q.submit(kuji.Draw{Player: player, Pool: "free"})
			if !q.carriedOut(player) {
				t.Fatalf("the draw of %s queues", player)
			}
		}
		test(q)
	})
}

// submit submits a draw, of which a player has one at most.
func (q *queued) submit(d kuji.Draw) {
	q.r.Submit(d, func(res kuji.Result, err error) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if err != nil {
			q.wrong[d.Player] = kuji.CodeOf(err)
			return
		}
		if _, again := q.told[d.Player]; again {
			q.Errorf("%s was told twice", d.Player)
		}
		q.told[d.Player] = res
	})
	synctest.Wait()
}

// carriedOut reports whether a player, who has been granted something, has drawn.
func (q *queued) carriedOut(player string) bool {
	q.Helper()
	v, err := q.r.StalePlayer(player)
	if err != nil {
		q.Fatal(err)
	}
	return v.Position > q.r.Stats().Position
}

// goOn lets the disk go on, with an error for the write that waits or without.
func (q *queued) goOn(err error) {
	q.disk.SetHook(nil)
	q.hold <- err
	synctest.Wait()
}

// TestDrawsQueue: draws of a realm of many players are carried out together, in order, and
// before anything that comes later.
func TestDrawsQueue(t *testing.T) {
	gem := []kuji.Stack{{Item: "gem", Quantity: 1}}
	for name, next := range map[string]func(q *queued) kuji.Result{
		"Do": func(q *queued) kuji.Result { return do(q, q.r, kuji.Draw{Player: "dan", Pool: "free"}) },
		"DoAll": func(q *queued) kuji.Result {
			res, err := q.r.DoAll(context.Background(), []kuji.Request{kuji.Draw{Player: "dan", Pool: "free"}})
			if err != nil {
				q.Error(err)
				return kuji.Result{}
			}
			return res[0]
		},
		"Submit of a grant": func(q *queued) kuji.Result {
			got := make(chan kuji.Result, 1)
			q.r.Submit(kuji.Grant{Player: "dan", Items: gem}, func(res kuji.Result, _ error) { got <- res })
			return <-got
		},
		"Submit of several draws": func(q *queued) kuji.Result {
			got := make(chan kuji.Result, 1)
			q.r.Submit(kuji.Draw{Player: "dan", Pool: "free", Count: 2}, func(res kuji.Result, _ error) { got <- res })
			return <-got
		},
		"Apply": func(q *queued) kuji.Result {
			res, err := q.r.Apply(context.Background(), parse(q, testCatalog+"name: next\n"))
			if err != nil {
				q.Error(err)
			}
			return res
		},
	} {
		t.Run(name, func(t *testing.T) {
			queue(t, kuji.Options{}, func(q *queued) {
				q.submit(kuji.Draw{Player: "cid", Pool: "free"})
				if q.carriedOut("cid") {
					q.Fatal("a draw was carried out that nobody asks for yet")
				}
				behind := make(chan kuji.Result, 1)
				go func() { behind <- next(q) }()
				synctest.Wait()
				if !q.carriedOut("cid") {
					q.Error("what came later did not have the queue carried out")
				}
				q.goOn(nil)
				res, bob, cid := <-behind, q.told["bob"].Receipt, q.told["cid"].Receipt
				if at := res.Receipt; at.Position != cid.Position || at.Index != cid.Index+1 || bob.Position != cid.Position || bob.Index != cid.Index-1 {
					q.Errorf("bob, cid and what came later stand at %d/%d, %d/%d and %d/%d, want one behind the other", bob.Position, bob.Index, cid.Position, cid.Index, at.Position, at.Index)
				}
			})
		})
	}
	t.Run("by the flusher", func(t *testing.T) {
		queue(t, kuji.Options{}, func(q *queued) {
			q.submit(kuji.Draw{Player: "cid", Pool: "free"})
			q.submit(kuji.Draw{ID: "1", Player: "dan", Pool: "free"})
			q.goOn(nil)
			if bob, cid, dan := q.told["bob"].Receipt, q.told["cid"].Receipt, q.told["dan"].Receipt; bob.Position == 0 || cid.Position != bob.Position || dan.Position != bob.Position {
				q.Errorf("bob, cid and dan stand at positions %d, %d and %d, want the same", bob.Position, cid.Position, dan.Position)
			}
		})
	})
	t.Run("as many as there is room for", func(t *testing.T) {
		queue(t, kuji.Options{}, func(q *queued) {
			const room = 64
			q.submit(kuji.Draw{Player: "cid", Pool: "free"})
			for i := 1; i < room; i++ {
				if q.carriedOut("cid") {
					q.Fatalf("%d of %d draws were carried out", i, room)
				}
				q.submit(kuji.Draw{Player: fmt.Sprint("new", i), Pool: "free"})
			}
			if !q.carriedOut("cid") {
				q.Errorf("%d draws still queue", room)
			}
			q.goOn(nil)
			if len(q.told) != room+2 || len(q.wrong) != 0 {
				q.Errorf("%d were told, and of errors %v; want %d", len(q.told), q.wrong, room+2)
			}
		})
	})
}

// TestQueuedDrawsOfAllSorts: what a queued draw turns out to be, it is answered as by Do.
func TestQueuedDrawsOfAllSorts(t *testing.T) {
	queue(t, kuji.Options{}, func(q *queued) {
		q.submit(kuji.Draw{ID: "c", Player: "cid", Pool: "free"})
		q.submit(kuji.Draw{ID: "c", Player: "dan", Pool: "free"})  // an id used again
		q.submit(kuji.Draw{Player: "newcomer", Pool: "paid"})      // with what a player starts with
		q.submit(kuji.Draw{Player: "who", Pool: "nowhere"})        // an unknown pool
		q.submit(kuji.Draw{ID: "box", Player: "eve", Pool: "box"}) // of which some entries give a range
		var again kuji.Result
		q.r.Submit(kuji.Draw{ID: "c", Player: "cid", Pool: "free"}, func(res kuji.Result, err error) {
			if err != nil {
				q.Error(err)
			}
			again = res
		})
		if q.carriedOut("cid") {
			q.Fatal("the draws do not queue")
		}
		q.goOn(nil)
		if got := q.wrong; len(got) != 1 || got["dan"] != kuji.CodeIDReused {
			q.Errorf("errors %v, want one of an id used again for dan", got)
		}
		if !again.Replayed || again.Receipt != q.told["cid"].Receipt {
			q.Errorf("asked again: %+v, want what cid was told: %+v", again, q.told["cid"])
		}
		for player, want := range map[string]kuji.Status{"cid": kuji.OK, "newcomer": kuji.OK, "who": kuji.UnknownPool, "eve": kuji.OK} {
			if got := q.told[player]; got.Status != want || (want == kuji.OK) != (len(got.Outcomes) == 1) {
				q.Errorf("%s was told %+v, want %v", player, got, want)
			}
		}
		if got := items(q, q.r, "newcomer"); got["gem"] != 15 || got["sword"] != 1 {
			q.Errorf("the newcomer holds %v", got)
		}
	})
}

// TestQueueWhenTheDiskFails: who queues when the log cannot be written learns that the
// outcome is unknown, once.
func TestQueueWhenTheDiskFails(t *testing.T) {
	queue(t, kuji.Options{}, func(q *queued) {
		q.submit(kuji.Draw{Player: "cid", Pool: "free"})
		q.submit(kuji.Draw{Player: "dan", Pool: "free"})
		q.goOn(syscall.EIO)
		for _, player := range []string{"ann", "bob", "cid", "dan"} {
			if got := q.wrong[player]; got != kuji.CodeUnknownOutcome {
				q.Errorf("%s was told %v, want an unknown outcome", player, got)
			}
		}
		if len(q.told) != 0 {
			q.Errorf("told: %v", q.told)
		}
		_ = q.e.Close() // the realm has failed
	})
}

// TestQueueAtTheEnd: a realm that is closed carries out what queues first.
func TestQueueAtTheEnd(t *testing.T) {
	for _, policy := range []kuji.SyncPolicy{kuji.SyncAlways, kuji.SyncInterval, kuji.SyncNone} {
		t.Run(policy.String(), func(t *testing.T) {
			queue(t, kuji.Options{Sync: policy}, func(q *queued) {
				q.submit(kuji.Draw{ID: "c", Player: "cid", Pool: "free"})
				closed := make(chan error)
				go func() { closed <- q.e.Close() }()
				synctest.Wait()
				q.submit(kuji.Draw{Player: "dan", Pool: "free"}) // too late
				q.goOn(nil)
				if err := <-closed; err != nil {
					q.Error(err)
				}
				if q.told["cid"].Status != kuji.OK || q.told["cid"].Receipt.Position == 0 || q.wrong["dan"] != kuji.CodeClosed || len(q.wrong) != 1 {
					q.Errorf("told %v, errors %v", q.told, q.wrong)
				}
				_, r := open(q, "data", kuji.Options{FS: q.disk})
				if res := do(q, r, kuji.Draw{ID: "c", Player: "cid", Pool: "free"}); !res.Replayed {
					q.Error("the draw was acknowledged and is lost")
				}
			})
		})
	}
}
