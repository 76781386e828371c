package enginetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestNothingBeforeItIsDurable: whatever is told of a state that is not durable
// yet waits for it, be it a view, a refusal or an answer given again.
func TestNothingBeforeItIsDurable(t *testing.T) {
	s := newSteps()
	_, r := open(t, "data", worldOptions{FS: vfs.NewMem(), Steps: s, Now: s.Now, SnapshotEvery: -1})
	do(t, r, kuji.Draw{ID: "before", Player: "old", Pool: "free"})
	second := parse(t, testCatalog+"name: second\n")
	conflicting := parse(t, strings.Replace(testCatalog, "sword: {}", "sword: {kind: currency}", 1))
	draw := kuji.Draw{ID: "id", Player: "ann", Pool: "free"}

	// Nobody flushes: who waits sees its context end.
	waiting := func(call func(ctx context.Context) error) (waited bool, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.instead = func() { waited = true; cancel() }
		defer func() { s.instead = nil }()
		err = call(ctx)
		return waited, err
	}
	unknown := func(what string, call func(ctx context.Context) error) {
		t.Helper()
		if waited, err := waiting(call); !waited || kuji.CodeOf(err) != kuji.CodeUnknownOutcome {
			t.Errorf("%s: waited %v, %v; want an unknown outcome", what, waited, err)
		}
	}
	canceled := func(what string, call func(ctx context.Context) error) {
		t.Helper()
		if waited, err := waiting(call); !waited || kuji.CodeOf(err) != kuji.CodeCanceled {
			t.Errorf("%s: waited %v, %v; want it canceled", what, waited, err)
		}
	}
	unknown("a draw", func(ctx context.Context) error { _, err := r.Do(ctx, draw); return err })
	unknown("the draw again", func(ctx context.Context) error { _, err := r.Do(ctx, draw); return err })
	unknown("the draw again, in a batch", func(ctx context.Context) error { _, err := r.DoAll(ctx, []kuji.Request{draw, draw}); return err })
	unknown("a refusal of its id", func(ctx context.Context) error {
		_, err := r.Do(ctx, kuji.Draw{ID: "id", Player: "bob", Pool: "free"})
		return err
	})
	canceled("a look at its answer", func(ctx context.Context) error { _, err := r.Result(ctx, "id"); return err })
	if l, err := r.Result(kuji.Stale(t.Context()), "id"); err != nil || l.Seen != kuji.Answered {
		t.Errorf("a stale look at its answer: %v, %v", l, err)
	}
	canceled("its player", func(ctx context.Context) error { _, err := r.Player(ctx, "ann"); return err })
	canceled("a balance of its player", func(ctx context.Context) error { _, err := r.Balance(ctx, "ann", "sword"); return err })
	canceled("its pool", func(ctx context.Context) error { _, err := r.Pool(ctx, "free"); return err })
	canceled("the state's hash", func(ctx context.Context) error { _, _, err := r.StateHash(ctx); return err })
	if waited, err := waiting(func(ctx context.Context) error { _, err := r.Player(ctx, "old"); return err }); waited || err != nil {
		t.Errorf("another player: waited %v, %v", waited, err)
	}
	if waited, err := waiting(func(ctx context.Context) error { _, err := r.Catalogs().InForce(ctx); return err }); waited || err != nil {
		t.Errorf("the catalog: waited %v, %v", waited, err)
	}
	unknown("a catalog", func(ctx context.Context) error { _, err := r.Apply(ctx, second); return err })
	unknown("the catalog again", func(ctx context.Context) error { _, err := r.Apply(ctx, second); return err })
	unknown("a pool that it has not", func(ctx context.Context) error {
		_, err := r.Do(ctx, kuji.Draw{Player: "ann", Pool: "nosuch"})
		return err
	})
	canceled("the catalog in force", func(ctx context.Context) error { _, err := r.Catalogs().InForce(ctx); return err })
	canceled("a plan", func(ctx context.Context) error { _, err := r.Catalogs().Plan(ctx, second); return err })
	canceled("a plan that is refused", func(ctx context.Context) error { _, err := r.Catalogs().Plan(ctx, conflicting); return err })
	canceled("a catalog that is refused", func(ctx context.Context) error { _, err := r.Apply(ctx, conflicting); return err })
	canceled("a catalog over another version", func(ctx context.Context) error {
		_, err := r.Catalogs().Apply(ctx, conflicting, kuji.ApplyOptions{Over: new(uint64(1))})
		return err
	})
	canceled("a pool that the catalog has not", func(ctx context.Context) error { _, err := r.Pool(ctx, "nosuch"); return err })
	canceled("an item that the catalog has not", func(ctx context.Context) error { _, err := r.Balance(ctx, "old", "nosuch"); return err })

	if again := do(t, r, draw); !again.Replayed {
		t.Errorf("once it is durable: %v", again)
	}
	if v, err := r.Catalogs().InForce(t.Context()); err != nil || v.Version != 2 {
		t.Errorf("once it is durable: version %d, %v", v.Version, err)
	}
}

// TestBatchOfManyEntries: a batch that takes several entries of the log is
// answered when the last of them is durable, and not at all when it is not.
func TestBatchOfManyEntries(t *testing.T) {
	items := make([]kuji.Stack, 0, kuji.MaxStacks)
	var yaml strings.Builder
	yaml.WriteString("kuji: 1\nitems:\n")
	for i := range kuji.MaxStacks {
		fmt.Fprintf(&yaml, "  i%d: {}\n", i)
		items = append(items, kuji.Stack{Item: fmt.Sprint("i", i), Quantity: 1 << 40})
	}
	yaml.WriteString("pools: {p: {entries: [{id: e, weight: 1}]}}\n")
	group := kuji.Atomic{}
	for i := range kuji.MaxAtomic {
		group.Members = append(group.Members, kuji.Grant{Player: fmt.Sprint("p", i), Items: items})
	}
	reqs := make([]kuji.Request, 60)
	for i := range reqs {
		group.ID = fmt.Sprint("g", i)
		reqs[i] = group
	}
	// The first run counts the fsyncs. In each other run, one of them fails: the last one, too, which
	// nothing but the answer of the batch waits for.
	all := 0
	for fail := 0; fail <= all; fail++ {
		disk, steps := vfs.NewMem(), newSteps()
		e, r := open(t, "data", worldOptions{FS: disk, Steps: steps, Now: steps.Now, MaxPending: 1 << 20, SnapshotEvery: -1})
		if _, err := r.Apply(t.Context(), parse(t, yaml.String())); kuji.CodeOf(err) == kuji.CodeConflict {
			t.Fatal(err)
		}
		before := r.Stats()
		syncs := 0
		disk.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == vfs.OpSync && strings.HasSuffix(op.Path, ".wal") {
				if syncs++; syncs == fail {
					return vfs.Fault{Err: syscall.EIO}
				}
			}
			return vfs.Fault{}
		})
		results, err := r.DoAll(t.Context(), reqs)
		disk.SetHook(nil)
		after := r.Stats()
		switch {
		case fail == 0 && (err != nil || after.Batches-before.Batches < 3 || len(results) != len(reqs)):
			t.Errorf("%d results in %d entries: %v; want at least 3", len(results), after.Batches-before.Batches, err)
		case fail == 0 && after.PendingBytes > 0:
			t.Errorf("the batch is answered, and %d bytes of its events wait for the log", after.PendingBytes)
		case fail == 0:
			all = syncs
		case kuji.CodeOf(err) != kuji.CodeUnknownOutcome:
			t.Errorf("fsync %d of %d failed: %v, want an unknown outcome", fail, all, err)
		}
		if err := e.Close(); fail == 0 && err != nil {
			t.Error(err)
		}
	}
}

// impatient is a context that ends as soon as somebody waits for its end.
type impatient struct {
	context.Context
	cancel context.CancelFunc
}

func (c impatient) Done() <-chan struct{} {
	c.cancel()
	return c.Context.Done()
}

// TestWaitsForRoom: when as much waits for the log as may, Submit refuses, and Do
// and DoAll wait without having done anything.
func TestWaitsForRoom(t *testing.T) {
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk, MaxPending: 1 << 20, SnapshotEvery: -1})
	gate := make(chan struct{})
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync {
			<-gate
		}
		return vfs.Fault{}
	})
	members := make([]kuji.Request, kuji.MaxAtomic)
	for i := range members {
		members[i] = kuji.Grant{Player: fmt.Sprintf("%060d", i), Items: []kuji.Stack{{Item: "sword", Quantity: 1}}}
	}
	taken, refused := uint64(0), false
	for i := 0; !refused && i < 10_000; i++ {
		members[0] = kuji.Grant{Player: fmt.Sprintf("new%050d", i), Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}
		r.Submit(kuji.Atomic{Members: members}, func(_ kuji.Result, err error) { // while the gate is shut, only refusals are told
			refused = refused || kuji.CodeOf(err) == kuji.CodeOverloaded
		})
		if !refused {
			taken++
		}
	}
	if !refused {
		t.Fatal("Submit takes without end")
	}
	for full := false; !full; { // results filled up before the batch did
		members[0] = kuji.Grant{Player: fmt.Sprintf("more%050d", taken), Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := r.StartAll(impatient{ctx, cancel}, []kuji.Request{kuji.Atomic{Members: members}}, make([]kuji.Result, 1))
		cancel()
		switch full = kuji.CodeOf(err) == kuji.CodeCanceled; {
		case err == nil:
			taken++
		case !full:
			t.Fatal(err)
		}
	}
	late := kuji.Grant{ID: "late", Player: "late", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}
	waits, patient := make(chan struct{}), make(chan error, 1) // one who waits for room keeps nobody from giving up
	go func() {
		_, err := r.DoAll(lateContext{t.Context(), sync.OnceFunc(func() { close(waits) })}, []kuji.Request{kuji.Draw{Player: "patient", Pool: "free"}})
		patient <- err
	}()
	<-waits
	for name, call := range map[string]func(context.Context) error{
		"Do":    func(ctx context.Context) error { _, err := r.Do(ctx, late); return err },
		"DoAll": func(ctx context.Context) error { _, err := r.DoAll(ctx, []kuji.Request{late, late}); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if err := call(impatient{ctx, cancel}); kuji.CodeOf(err) != kuji.CodeCanceled {
			t.Errorf("%s: %v, want it canceled while it waits for room", name, err)
		}
		cancel()
	}
	if p := r.Stats().PendingBytes; p > 2<<20+1<<16 {
		t.Errorf("%d bytes wait; at most twice %d are allowed, and an event", p, 1<<20)
	}
	disk.SetHook(nil)
	close(gate)
	if res := do(t, r, late); res.Replayed {
		t.Errorf("what was canceled had happened: %v", res)
	}
	if err := <-patient; err != nil {
		t.Error(err)
	}
	if st := r.Stats(); st.Events != taken+3 { // a catalog, the late one and the patient one
		t.Errorf("%d events, want %d", st.Events, taken+3)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
