package enginetest

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestStateHashIsOfAPosition: what comes into the batch that a hash waits for is in it, and
// what comes into the next is not. It is told when that batch is durable.
func TestStateHashIsOfAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e, r := open(t, "data", worldOptions{FS: disk})
		release := make(chan struct{})
		disk.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == vfs.OpWrite {
				<-release
			}
			return vfs.Fault{}
		})
		var last kuji.Result
		submit := func() {
			r.Submit(kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "sword", Quantity: 1}}}, func(res kuji.Result, err error) {
				if err != nil {
					t.Error(err)
				}
				last = res
			})
			synctest.Wait()
		}
		type answer struct {
			hash     [32]byte
			position uint64
			err      error
		}
		ask := func() <-chan answer {
			got := make(chan answer, 1)
			go func() {
				var a answer
				a.hash, a.position, a.err = r.StateHash(context.Background())
				got <- a
			}()
			synctest.Wait()
			if len(got) > 0 {
				t.Error("told before it was durable")
			}
			return got
		}
		submit() // is being written
		first := ask()
		submit()
		one, two := ask(), ask()
		submit() // into the same batch
		disk.SetHook(nil)
		close(release)
		f, a, b := <-first, <-one, <-two
		synctest.Wait()
		hash, position, err := r.StateHash(t.Context())
		want := answer{hash, position, err}
		if a != want || b != want || err != nil || position != last.Receipt.Position {
			t.Errorf("two at a time: %x at %d, %v, and %x at %d, %v; when all is quiet at position %d: %x at %d, %v", a.hash[:4], a.position, a.err, b.hash[:4], b.position, b.err, last.Receipt.Position, hash[:4], position, err)
		}
		if f.err != nil || f.position != position-1 || f.hash == hash {
			t.Errorf("of the batch before: %x at %d, %v; behind it %x at %d", f.hash[:4], f.position, f.err, hash[:4], position)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		report, err := verifyIn(disk, "data", "test", nil)
		if err != nil || report.StateHash != hash {
			t.Errorf("Verify: %v, state %x, want %x", err, report.StateHash[:4], hash[:4])
		}
	})
}
