package kuji_test

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

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
		q.stall()
		test(q)
	})
}

// stall makes the disk stand still, with a draw that is being written and one in the open
// batch.
func (q *queued) stall() {
	q.disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpWrite {
			return vfs.Fault{Err: <-q.hold}
		}
		return vfs.Fault{}
	})
	for _, player := range []string{"ann", "bob"} {
		q.submit(kuji.Draw{Player: player, Pool: "free"})
		if !q.carriedOut(player) {
			q.Fatalf("the draw of %s queues", player)
		}
	}
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
	t.Run("Plan", func(t *testing.T) {
		queue(t, kuji.Options{}, func(q *queued) {
			next := parse(q, strings.NewReplacer("id: sword, weight: 1, reward", "id: sword, weight: 2, reward", "id: none, weight: 3", "id: none, weight: 4").Replace(testCatalog))
			q.submit(kuji.Draw{Player: "cid", Pool: "free"})
			drawn := make(chan uint64, 1)
			go func() {
				plan, err := q.r.Plan(context.Background(), next)
				if err != nil {
					q.Error(err)
				}
				sum := uint64(0)
				for _, c := range plan.Changes {
					sum += c.Drawn
				}
				drawn <- sum
			}()
			synctest.Wait()
			q.goOn(nil)
			if got := <-drawn; got != 3 {
				q.Errorf("the plan knows of %d draws, want 3, of which one queued", got)
			}
		})
	})
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

// TestQueueWhenTheDiskFails: who queues when the log cannot be written learns, once, that
// the realm has stopped.
func TestQueueWhenTheDiskFails(t *testing.T) {
	queue(t, kuji.Options{}, func(q *queued) {
		q.submit(kuji.Draw{Player: "cid", Pool: "free"})
		q.submit(kuji.Draw{Player: "dan", Pool: "free"})
		q.goOn(syscall.EIO)
		for player, want := range map[string]kuji.Code{"ann": kuji.CodeUnknownOutcome, "bob": kuji.CodeUnknownOutcome, "cid": kuji.CodeFailed, "dan": kuji.CodeFailed} {
			if got := q.wrong[player]; got != want {
				q.Errorf("%s was told %v, want %v", player, got, want)
			}
		}
		if len(q.told) != 0 {
			q.Errorf("told: %v", q.told)
		}
		_ = q.e.Close() // the realm has failed
	})
}

// TestQueueKeepsOrder: draws are carried out as they were submitted, also beside more answers
// given again than there is room for, where no more queue.
func TestQueueKeepsOrder(t *testing.T) {
	const most = 1 << 20 / 256
	queue(t, kuji.Options{MaxPending: 1 << 20}, func(q *queued) {
		q.submit(kuji.Draw{ID: "again", Player: "cid", Pool: "free"})
		order := make([]kuji.Receipt, 0, 2*most) // as they were submitted
		replays, refused := 0, 0
		for n := range 2 * most {
			q.r.Submit(kuji.Draw{ID: "again", Player: "cid", Pool: "free"}, func(res kuji.Result, err error) {
				switch {
				case err == nil && res.Replayed:
					replays++
				case kuji.CodeOf(err) == kuji.CodeOverloaded:
					refused++
				default:
					q.Errorf("%+v, %v", res, err)
				}
			})
			for range n % 3 {
				order = append(order, kuji.Receipt{})
				mine := &order[len(order)-1]
				q.r.Submit(kuji.Draw{Player: "dan", Pool: "free"}, func(res kuji.Result, err error) {
					if err != nil {
						q.Error(err)
					}
					*mine = res.Receipt
				})
			}
		}
		q.goOn(nil)
		if len(order) != 2*most-1 || !slices.IsSortedFunc(order, func(a, b kuji.Receipt) int {
			return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Index, b.Index))
		}) {
			q.Errorf("%d draws in another order than they were submitted", len(order))
		}
		if replays+refused != 2*most || replays > most || replays < most-100 {
			q.Errorf("%d were answered again and %d refused, want %d answered or a few less", replays, refused, most)
		}
	})
}

// TestQueuedDrawsAreBounded: while the disk stalls, draws take no more memory than
// MaxPending allows.
func TestQueuedDrawsAreBounded(t *testing.T) {
	const most = 1 << 20
	queue(t, kuji.Options{MaxPending: most}, func(q *queued) {
		const bytes, n = 64 + 6, 2 * most / 64 // of an event, about
		answered, refused := 0, 0
		for i := range n {
			q.r.Submit(kuji.Draw{ID: fmt.Sprintf("%064d", i), Player: "cid", Pool: "free"}, func(_ kuji.Result, err error) {
				switch kuji.CodeOf(err) {
				case kuji.CodeOverloaded:
					refused++
				case 0:
					answered++
				default:
					q.Error(err)
				}
			})
		}
		if want := most / bytes; refused < n-want-500 || refused > n-want+1000 {
			q.Errorf("%d of %d draws were refused, want about %d", refused, n, n-want)
		}
		q.goOn(nil)
		if answered+refused != n {
			q.Errorf("%d answered and %d refused, want %d in all", answered, refused, n)
		}
	})
}

// TestQueuedAnswersThatAreKnown: what is durable already is told, whatever becomes of the batch that it
// queued for.
func TestQueuedAnswersThatAreKnown(t *testing.T) {
	for name, fails := range map[string]error{"written": nil, "not written": syscall.EIO} {
		t.Run(name, func(t *testing.T) {
			queue(t, kuji.Options{}, func(q *queued) {
				q.goOn(nil)
				first := do(q, q.r, kuji.Draw{ID: "old", Player: "cid", Pool: "free"})
				clear(q.told)
				q.stall()
				q.submit(kuji.Draw{ID: "old", Player: "cid", Pool: "free"})
				q.submit(kuji.Draw{ID: "old", Player: "dan", Pool: "free"})
				q.hold <- nil // for the first of the two batches
				synctest.Wait()
				q.goOn(fails)
				if got := q.told["cid"]; !got.Replayed || got.Receipt != first.Receipt {
					q.Errorf("told %+v, want what was told first: %+v", got, first)
				}
				if q.wrong["dan"] != kuji.CodeIDReused {
					q.Errorf("told %v, want that the id was used before", q.wrong["dan"])
				}
				if fails != nil {
					_ = q.e.Close() // the realm has failed
				}
			})
		})
	}
}

// TestQueueEndsGathering: many answers given again, and few long ids, are not waited for any longer, as
// where nothing queues; and who asks for a hash is not, either.
func TestQueueEndsGathering(t *testing.T) {
	for name, end := range map[string]func(q *queued){
		"answers given again": func(q *queued) {
			for range 1500 {
				q.r.Submit(kuji.Draw{ID: "again", Player: "cid", Pool: "free"}, func(kuji.Result, error) {})
			}
		},
		"long ids": func(q *queued) {
			for i := range 120 {
				q.r.Submit(kuji.Draw{ID: fmt.Sprintf("%064d", i), Player: "cid", Pool: "free"}, func(kuji.Result, error) {})
			}
		},
		"a hash": func(q *queued) {
			if _, _, err := q.r.StateHash(context.Background()); err != nil {
				q.Error(err)
			}
		},
		"a plan": func(q *queued) {
			if _, err := q.r.Plan(context.Background(), parse(q, testCatalog+"name: next\n")); err != nil {
				q.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			queue(t, kuji.Options{Sync: kuji.SyncNone, SnapshotEvery: -1}, func(q *queued) {
				for range 20 {
					q.r.Submit(kuji.Draw{Player: "ann", Pool: "free"}, func(kuji.Result, error) {})
				}
				q.goOn(nil)
				start := time.Now()
				q.submit(kuji.Draw{Player: "dan", Pool: "free"})
				q.submit(kuji.Draw{ID: "again", Player: "cid", Pool: "free"})
				if q.told["cid"].Receipt.Position != 0 {
					q.Fatal("the flusher does not gather")
				}
				end(q)
				synctest.Wait()
				if took := time.Since(start); q.told["cid"].Receipt.Position == 0 || took != 0 {
					q.Errorf("told %+v after %v", q.told["cid"], took)
				}
			})
		})
	}
}

// TestQueueOfTasks: under a runner of steps draws queue in a realm of any size, so that the
// simulator meets the queue.
func TestQueueOfTasks(t *testing.T) {
	s := newSteps()
	_, r := open(t, "data", kuji.Options{FS: vfs.NewMem(), Steps: s, Now: s.Now, SnapshotEvery: -1})
	told := 0
	for range 2 {
		r.Submit(kuji.Draw{Player: "ann", Pool: "free"}, func(kuji.Result, error) { told++ })
	}
	if n := r.Stats().Events; n != 2 { // a catalog and a draw
		t.Errorf("%d events were carried out, want one less than were asked for", n)
	}
	for len(s.tasks) > 0 {
		s.Step()
	}
	if n := r.Stats().Events; n != 3 || told != 2 {
		t.Errorf("%d events, %d told", n, told)
	}
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
				q.goOn(nil)
				if err := <-closed; err != nil {
					q.Error(err)
				}
				q.submit(kuji.Draw{Player: "dan", Pool: "free"}) // too late
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

// TestQueuedDrawsAreRead: what a draw that queues says is read before Submit returns; whoever
// submitted it may use that memory again at once.
func TestQueuedDrawsAreRead(t *testing.T) {
	queue(t, kuji.Options{}, func(q *queued) {
		const n = 150 // more than queue at a time
		var buf []byte
		text := func(s string) string { // in the memory of the draw before it
			buf = append(buf, s...)
			return unsafe.String(&buf[len(buf)-len(s)], len(s))
		}
		long := strings.Repeat("-", kuji.MaxID-3)
		ids, players := make([]string, n), make([]string, n)
		results := make([]kuji.Result, n)
		buf = make([]byte, 0, 4*kuji.MaxID)
		for i := range n {
			ids[i], players[i] = fmt.Sprintf("%03d", i)+long, fmt.Sprintf("%03d", i%50)+long
			if i%3 == 0 {
				ids[i] = fmt.Sprint("id", i)
			}
			buf = buf[:0]
			d := kuji.Draw{ID: text(ids[i]), Player: text(players[i]), Pool: text("free")}
			q.r.Submit(d, func(res kuji.Result, err error) {
				if err != nil || len(res.Outcomes) != 1 {
					q.Errorf("%d: %v, %v", i, res, err)
				}
				results[i] = res
			})
			copy(buf, strings.Repeat("!", cap(buf)))
		}
		q.goOn(nil)
		for i := range n {
			res := do(q, q.r, kuji.Draw{ID: ids[i], Player: players[i], Pool: "free"})
			if want := results[i]; !res.Replayed || !reflect.DeepEqual(res.Outcomes, want.Outcomes) || res.Receipt != want.Receipt {
				q.Fatalf("%d gave\n%+v\nand, asked again,\n%+v", i, want, res)
			}
		}
		if _, err := q.r.StalePlayer(strings.Repeat("!", kuji.MaxID)); kuji.CodeOf(err) != kuji.CodeNotFound {
			q.Errorf("a player whom nobody named: %v", err)
		}
	})
}
