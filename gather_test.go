package kuji_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// gathering is a realm whose flusher has just met many callbacks at once.
type gathering struct {
	*testing.T
	e        *kuji.Engine
	r        *kuji.Realm
	disk     *vfs.Mem
	mu       sync.Mutex
	answered []kuji.Result
}

// busy opens a realm and submits many requests while the first is being written.
func busy(t *testing.T, policy kuji.SyncPolicy) *gathering {
	disk := vfs.NewMem()
	e, r := open(t, "data", kuji.Options{FS: disk, Sync: policy, SyncEvery: time.Hour, SnapshotEvery: -1})
	g := &gathering{T: t, e: e, r: r, disk: disk}
	do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
	g.burst()
	return g
}

// burst submits a request, and many while it is being written, and forgets them.
func (g *gathering) burst() {
	g.Helper()
	release := make(chan struct{})
	g.disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpWrite {
			<-release
		}
		return vfs.Fault{}
	})
	g.submit(1)
	synctest.Wait() // it is being written
	g.submit(100)
	g.disk.SetHook(nil)
	close(release)
	g.are(101, "what came while another was written")
	g.forget(0)
}

func (g *gathering) submit(n int) {
	for range n {
		g.r.Submit(&kuji.Draw{Player: "ann", Pool: "free"}, func(res kuji.Result, err error) {
			if err != nil {
				g.Error(err)
			}
			g.mu.Lock()
			g.answered = append(g.answered, res)
			g.mu.Unlock()
		})
	}
}

// results returns what callbacks have got when everything is at a stand.
func (g *gathering) results() []kuji.Result {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.answered
}

// forget makes answers of before count no more, but for some.
func (g *gathering) forget(but int) {
	g.mu.Lock()
	g.answered = g.answered[:but]
	g.mu.Unlock()
}

// are checks how many callbacks have been called when everything is at a stand.
func (g *gathering) are(want int, when string) {
	g.Helper()
	if got := len(g.results()); got != want {
		g.Fatalf("%s: %d are answered, want %d", when, got, want)
	}
}

// TestCallbacksAreGathered: under policies that answer without an fsync, callbacks of a
// busy time wait for others, until they are many, or a millisecond has passed, or
// somebody waits for the same batch.
func TestCallbacksAreGathered(t *testing.T) {
	ends := map[string]func(g *gathering){
		"a millisecond": func(*gathering) { time.Sleep(time.Millisecond) },
		"many of them": func(g *gathering) {
			g.submit(2000)
			if n := len(g.results()); n < 1000 {
				g.Fatalf("%d are answered", n)
			}
			g.forget(3)
		},
		"fewer that are large": func(g *gathering) {
			for i := range 200 {
				id := fmt.Sprintf("%060d", i)
				g.r.Submit(&kuji.Draw{ID: id, Player: "ann", Pool: "free"}, func(_ kuji.Result, err error) {
					if err != nil {
						g.Error(err)
					}
				})
			}
		},
		"a request whose caller waits": func(g *gathering) { do(g.T, g.r, kuji.Draw{Player: "ann", Pool: "free"}) },
		"a batch of them": func(g *gathering) {
			if _, err := g.r.DoAll(g.Context(), []kuji.Request{kuji.Draw{Player: "ann", Pool: "free"}}); err != nil {
				g.Fatal(err)
			}
		},
		"a reader": func(g *gathering) {
			if _, err := g.r.Player(g.Context(), "ann"); err != nil {
				g.Fatal(err)
			}
		},
		"a snapshot": func(g *gathering) {
			if _, err := g.r.Snapshot(g.Context()); err != nil {
				g.Fatal(err)
			}
		},
		"many answers given again": func(g *gathering) {
			for range 1 << 10 {
				g.r.Submit(&kuji.Draw{ID: "again", Player: "ann", Pool: "free"}, func(res kuji.Result, err error) {
					if err != nil {
						g.Error(err)
					}
				})
			}
		},
		"the end of the realm": func(g *gathering) {
			if err := g.e.Close(); err != nil {
				g.Fatal(err)
			}
		},
	}
	for _, policy := range []kuji.SyncPolicy{kuji.SyncNone, kuji.SyncInterval} {
		for name, end := range ends {
			t.Run(policy.String()+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := busy(t, policy)
					g.submit(2)
					g.are(0, "at once")
					g.submit(1)
					g.are(0, "with one more")
					start := time.Now()
					end(g)
					g.are(3, "in the end")
					took, want := time.Since(start), time.Duration(0)
					if name == "a millisecond" {
						want = time.Millisecond
					}
					if took != want {
						g.Errorf("after %v, want %v", took, want)
					}
					first := g.results()[0].Receipt.Position
					for _, res := range g.results() {
						if pos := res.Receipt.Position; pos != first {
							g.Errorf("of three, one is at position %d, another at %d", first, pos)
						}
					}
				})
			})
		}
	}
}

// TestWindowOfRequestsIsNotHeldUp: who submits another request for each that is answered
// waits for a millisecond now and then, not each time.
func TestWindowOfRequestsIsNotHeldUp(t *testing.T) {
	for _, ahead := range []int{8, 16, 64, 500} {
		synctest.Test(t, func(t *testing.T) {
			const rounds = 1000
			_, r := open(t, "data", kuji.Options{FS: vfs.NewMem(), Sync: kuji.SyncNone, SnapshotEvery: -1})
			do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
			free, start := make(chan struct{}, ahead), time.Now()
			for range ahead * rounds {
				free <- struct{}{}
				r.Submit(&kuji.Draw{Player: "ann", Pool: "free"}, func(_ kuji.Result, err error) {
					if err != nil {
						t.Error(err)
					}
					<-free
				})
			}
			if took := time.Since(start); took > 50*time.Millisecond {
				t.Errorf("%d ahead: %d times as many took %v", ahead, rounds, took)
			}
		})
	}
}

// TestWaitsInVainAreForgotten: after one batch that filled up, the flusher waits as if it had
// never waited in vain.
func TestWaitsInVainAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := busy(t, kuji.SyncNone)
		time.Sleep(time.Millisecond) // in vain: one batch is not waited for
		g.burst()                    // of two
		time.Sleep(time.Millisecond) // three are not
		g.burst()
		g.submit(1)
		g.are(1, "behind two waits in vain")
		g.forget(0)
		g.burst()
		g.submit(2000) // which fills a batch
		time.Sleep(time.Millisecond)
		g.are(2000, "many")
		g.forget(0)
		g.burst()
		g.submit(1)
		g.are(0, "behind a batch that filled up, and one wait in vain")
	})
}

// TestGatheredWhenTheDiskFails: callbacks that wait for others learn that their batch could not be
// written.
func TestGatheredWhenTheDiskFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := busy(t, kuji.SyncNone)
		g.disk.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == vfs.OpWrite {
				return vfs.Fault{Err: syscall.EIO}
			}
			return vfs.Fault{}
		})
		told := make(chan kuji.Code, 1)
		g.r.Submit(&kuji.Draw{Player: "ann", Pool: "free"}, func(_ kuji.Result, err error) { told <- kuji.CodeOf(err) })
		synctest.Wait()
		if len(told) != 0 {
			t.Error("the callback was called at once")
		}
		if code := <-told; code != kuji.CodeUnknownOutcome {
			t.Errorf("%v, want an unknown outcome", code)
		}
		g.disk.SetHook(nil)
		_ = g.e.Close() // the realm has failed
	})
}

// TestLoneCallbacksDoNotWait: the answer of one request goes out at once, a moment after a
// busy time at the latest, and always where an fsync is what callbacks wait for.
func TestLoneCallbacksDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := busy(t, kuji.SyncNone)
		time.Sleep(2 * time.Millisecond) // in which nothing came
		g.submit(1)
		g.are(1, "the first after a pause")
		g.submit(1)
		g.are(2, "the next")
	})
	synctest.Test(t, func(t *testing.T) {
		g := busy(t, kuji.SyncNone)
		g.submit(3)
		time.Sleep(time.Millisecond)
		g.are(3, "those of a calmer time")
		g.submit(1)
		g.are(4, "one after few")
	})
	synctest.Test(t, func(t *testing.T) {
		g := busy(t, kuji.SyncAlways)
		g.submit(1)
		g.are(1, "with an fsync for each batch")
	})
}
