package kuji_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestStartAll: what is started is carried out at once and in order, its
// memory is the caller's again, and Wait returns when it is durable, not before.
func TestStartAll(t *testing.T) {
	disk := vfs.NewMem()
	_, r := open(t, "data", kuji.Options{FS: disk})
	syncs, held := make(chan struct{}, 64), make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release) // before the engine is closed, which syncs
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync {
			syncs <- struct{}{}
			<-held
		}
		return vfs.Fault{}
	})
	draw := &kuji.Draw{Pool: "box"}
	reqs := []kuji.Request{draw, &kuji.Draw{Player: "ann"}}
	const rounds = 5
	var commits [rounds]kuji.Commit
	var results [rounds][2]kuji.Result
	for i := range rounds { // the first is being written, the others wait behind it
		draw.ID, draw.Player = fmt.Sprint("id-", i), fmt.Sprint("p", i)
		var err error
		if commits[i], err = r.StartAll(t.Context(), reqs, results[i][:]); err != nil {
			t.Fatal(err)
		}
	}
	*draw = kuji.Draw{}
	<-syncs
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range rounds {
		wantCode(t, commits[i].Wait(over), kuji.CodeUnknownOutcome)
	}
	release()
	for i := range rounds {
		if err := commits[i].Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		one, bad := results[i][0], results[i][1]
		if one.Status != kuji.OK || len(one.Outcomes) != 1 || bad.Status != kuji.Refused || kuji.CodeOf(bad.Err) != kuji.CodeInvalid {
			t.Errorf("round %d: %v and %v (%v), want a draw and a refusal", i, one, bad, bad.Err)
		}
		if i > 0 {
			last := results[i-1][0].Receipt
			if at := one.Receipt; at.Position < last.Position || (at.Position == last.Position && at.Index <= last.Index) {
				t.Errorf("round %d stands at %d/%d, the round before at %d/%d", i, at.Position, at.Index, last.Position, last.Index)
			}
		}
		again := do(t, r, kuji.Draw{ID: fmt.Sprint("id-", i), Player: fmt.Sprint("p", i), Pool: "box"})
		if !again.Replayed || again.Receipt != one.Receipt || again.Outcomes[0].Entry != one.Outcomes[0].Entry {
			t.Errorf("round %d again: %+v, want %+v", i, again, one)
		}
	}
	if _, err := r.StartAll(t.Context(), reqs, results[0][:1]); kuji.CodeOf(err) != kuji.CodeInvalid {
		t.Errorf("one result for two requests: %v", err)
	}
	if c, err := r.StartAll(t.Context(), nil, nil); err != nil || c.Wait(t.Context()) != nil {
		t.Errorf("nothing started: %v", err)
	}
}

// TestStartAllReusesResults: what stood in results before plays no part.
func TestStartAllReusesResults(t *testing.T) {
	_, r := open(t, t.TempDir(), kuji.Options{})
	results := make([]kuji.Result, 1)
	for _, req := range []kuji.Request{
		kuji.Atomic{Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "free", Count: 3}}},
		kuji.Draw{Player: "ann", Pool: "nosuch"},
		kuji.Draw{},
		kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}},
	} {
		c, err := r.StartAll(t.Context(), []kuji.Request{req}, results)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := results[0]; got.Status != kuji.OK || got.Err != nil || got.Subject != "" || got.Members != nil || got.Outcomes != nil {
		t.Errorf("a grant's result is %+v", got)
	}
}

// lateContext is a context whose channel takes a while to get.
type lateContext struct {
	context.Context
	late func()
}

func (c lateContext) Done() <-chan struct{} {
	c.late()
	return c.Context.Done()
}

// TestDoAllWhoseBatchIsDurable: what a DoAll has put into a batch becomes
// durable, and is published, while the rest, which adds nothing, waits for room.
func TestDoAllWhoseBatchIsDurable(t *testing.T) {
	disk := vfs.NewMem()
	_, r := open(t, "data", kuji.Options{FS: disk, MaxPending: 1 << 20, SnapshotEvery: -1})
	old := kuji.Draw{ID: "old", Player: "p", Pool: "free"}
	do(t, r, old)
	gate, entered := make(chan struct{}), make(chan struct{}, 1000)
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync {
			entered <- struct{}{}
			<-gate
		}
		return vfs.Fault{}
	})
	fill := func(id string, done func()) {
		r.Submit(kuji.Grant{ID: id, Player: "p", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}, func(_ kuji.Result, err error) {
			if err != nil {
				t.Error(err)
			}
			done()
		})
	}
	fill("in flight", func() {})
	<-entered
	second := make(chan struct{})
	fill("first of the second batch", func() { close(second) })
	for i := 0; r.Stats().PendingBytes < 1<<20-1000; i++ {
		fill(fmt.Sprint("fill", i), func() {})
	}
	var members []kuji.Request
	for i := range kuji.MaxAtomic {
		members = append(members, kuji.Grant{Player: fmt.Sprint("somebody new, to fill the batch ", i), Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
	}
	var once sync.Once
	ctx := lateContext{t.Context(), func() {
		once.Do(func() {
			close(gate)
			<-second
		})
	}}
	results, err := r.DoAll(ctx, []kuji.Request{kuji.Atomic{ID: "large", Members: members}, old})
	if err != nil || results[0].Status != kuji.OK || !results[1].Replayed {
		t.Errorf("%v, %v", results, err)
	}
}
