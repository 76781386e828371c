package kuji

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestDefectWithAQueue: a defect that a queued draw meets stops the realm; everyone is told so
// once, the log stays good, and Close says it.
func TestDefectWithAQueue(t *testing.T) {
	const pools = "kuji: 1\nitems: {gem: {}}\npools:\n  free: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}, {id: b, weight: 3}]}\n"
	draw := Draw{Player: "p0", Pool: "free"}
	for name, next := range map[string]func(r *Realm) error{
		"the flusher": func(*Realm) error { return nil },
		"Do":          func(r *Realm) error { _, err := r.Do(context.Background(), draw); return err },
		"Plan": func(r *Realm) error {
			c, _ := catalog.Parse([]byte(pools + "name: next\n"))
			_, err := r.Plan(context.Background(), c)
			return err
		},
		"Submit": func(r *Realm) error {
			told := make(chan error, 70)
			for range cap(told) {
				r.Submit(draw, func(_ Result, err error) { told <- err })
			}
			var last error
			for range cap(told) {
				last = <-told
			}
			return last
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := vfs.NewMem()
				e, r := crowded(t, disk, pools)
				hold := make(chan struct{})
				disk.SetHook(func(op vfs.Op) vfs.Fault {
					if op.Kind == vfs.OpWrite {
						<-hold
					}
					return vfs.Fault{}
				})
				told := map[string]Code{}
				for i := range 5 { // one is written, one is in the open batch, three queue
					player := fmt.Sprint("p", i)
					r.Submit(Draw{Player: player, Pool: "free"}, func(_ Result, err error) {
						if _, again := told[player]; again {
							t.Errorf("%s was told twice", player)
						}
						told[player] = CodeOf(err)
					})
					synctest.Wait()
				}
				r.mu.Lock()
				n := r.queue.n
				r.source.src = nil // the rules panic
				r.mu.Unlock()
				got := make(chan error, 1)
				go func() { got <- next(r) }()
				synctest.Wait()
				disk.SetHook(nil)
				close(hold)
				if err := <-got; name != "the flusher" && CodeOf(err) != CodeFailed {
					t.Errorf("what found the queue got %v", err)
				}
				synctest.Wait()
				want := map[string]Code{"p0": 0, "p1": CodeUnknownOutcome, "p2": CodeFailed, "p3": CodeFailed, "p4": CodeFailed}
				if fmt.Sprint(told) != fmt.Sprint(want) || n != 3 {
					t.Errorf("%d queued; told %v, want %v", n, told, want)
				}
				if err := e.Close(); CodeOf(err) != CodeFailed {
					t.Errorf("Close: %v", err)
				}
				if _, err := VerifyFS(disk, "data", "test", nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// crowded opens a realm of as many players as it takes for draws to queue.
func crowded(t *testing.T, disk vfs.FS, pools string) (*Engine, *Realm) {
	t.Helper()
	e, err := Open("data", Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(pools))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	reqs := make([]Request, 1<<14)
	for i := range reqs {
		reqs[i] = Grant{Player: fmt.Sprint("p", i), Items: []Stack{{Item: "gem", Quantity: 1}}}
	}
	for len(reqs) > 0 {
		n := min(len(reqs), MaxBatch)
		if _, err := r.DoAll(t.Context(), reqs[:n]); err != nil {
			t.Fatal(err)
		}
		reqs = reqs[n:]
	}
	return e, r
}
