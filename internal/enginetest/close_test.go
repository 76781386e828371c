package enginetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

// TestCloseUnderLoad closes an engine while requests of every kind are under
// way: each is answered once, an acknowledged one is in the log, and nobody hangs.
func TestCloseUnderLoad(t *testing.T) {
	for range 10 {
		dir := t.TempDir()
		e, r := open(t, dir, worldOptions{})
		c, err := catalog.Parse([]byte(testCatalog + "name: other\n"))
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		acked := map[string]bool{}
		note := func(id string, err error) bool {
			if err != nil {
				if code := kuji.CodeOf(err); code != kuji.CodeClosed {
					t.Errorf("%s: %v", id, err)
				}
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			acked[id] = true
			return true
		}
		started := make(chan struct{}, 8)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					if i == 3 {
						started <- struct{}{}
					}
					id := fmt.Sprint(g, "-", i)
					req := kuji.Grant{ID: id, Player: fmt.Sprint("p", g), Items: []kuji.Stack{{Item: "sword", Quantity: 1}}}
					var err error
					switch g % 4 {
					case 0:
						_, err = r.Do(context.Background(), req)
					case 1:
						_, err = r.DoAll(context.Background(), []kuji.Request{req})
					case 2:
						done := make(chan error)
						go r.Submit(req, func(_ kuji.Result, err error) { go func() { done <- err }() })
						err = <-done
					case 3:
						_, _ = r.Player(context.Background(), "p0") // whatever it says, it returns
						_, err = r.Apply(context.Background(), c)
						id = "none"
					}
					if !note(id, err) {
						return
					}
				}
			})
		}
		for range 8 {
			<-started
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		logged := map[string]int{}
		if _, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) { logged[rec.ID]++ }}); err != nil {
			t.Fatal(err)
		}
		for id := range acked {
			if id != "none" && logged[id] != 1 {
				t.Fatalf("acknowledged %s stands in the log %d times", id, logged[id])
			}
		}
	}
}

// TestRealmsOpenBesideOneAnother asks for one realm and for others from many
// goroutines: each is opened once, and a slow one holds up nobody else.
func TestRealmsOpenBesideOneAnother(t *testing.T) {
	disk := vfs.NewMem()
	e, err := openWorld("data", worldOptions{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	entered, held := make(chan struct{}), make(chan struct{})
	reached := sync.OnceFunc(func() { close(entered) })
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if strings.Contains(op.Path, "/slow/") {
			reached()
			<-held
		}
		return vfs.Fault{}
	})
	got := make(chan *kuji.Realm, 3)
	open := func(name string) {
		r, err := e.Realm(name)
		if err != nil {
			t.Error(err)
		}
		got <- r
	}
	go open("slow")
	<-entered
	go open("slow")
	open("quick")
	if r := <-got; r.Name() != "quick" {
		t.Errorf("%s came first", r.Name())
	}
	release()
	if a, b := <-got, <-got; a != b {
		t.Error("one realm was opened twice")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestPanicStopsTheRealm: a panic beneath a request stops the realm with an
// error that says where, and nobody waits for a lock that is never given back.
func TestPanicStopsTheRealm(t *testing.T) {
	draw := kuji.Draw{Player: "ann", Pool: "free"}
	for name, request := range map[string]func(r *kuji.Realm) error{
		"Do": func(r *kuji.Realm) error {
			_, err := r.Do(t.Context(), draw)
			return err
		},
		"Submit": func(r *kuji.Realm) error {
			told := make(chan error, 1)
			r.Submit(draw, func(_ kuji.Result, err error) { told <- err })
			return <-told
		},
		"Apply": func(r *kuji.Realm) error {
			_, err := r.Apply(t.Context(), parse(t, testCatalog+"name: other\n"))
			return err
		},
		"DoAll": func(r *kuji.Realm) error {
			res, err := r.DoAll(t.Context(), []kuji.Request{draw, draw})
			if err != nil || len(res) != 2 || res[0].Status != kuji.Refused || res[1].Status != kuji.Refused {
				t.Errorf("DoAll: %+v, %v", res, err)
			}
			return res[0].Err
		},
	} {
		broken := false
		_, r := open(t, t.TempDir(), worldOptions{Now: func() time.Time {
			if broken {
				panic("no clock")
			}
			return time.Now()
		}})
		do(t, r, draw)
		broken = true
		err := request(r)
		wantCode(t, err, kuji.CodeFailed)
		if !strings.Contains(err.Error(), "no clock") || !strings.Contains(err.Error(), "kuji.(*writer)") {
			t.Errorf("%s: the error does not say what happened where: %v", name, err)
		}
		_, err = r.Player(t.Context(), "ann")
		wantCode(t, err, kuji.CodeFailed)
		_, err = r.DoAll(t.Context(), []kuji.Request{draw})
		wantCode(t, err, kuji.CodeFailed)
	}
}
