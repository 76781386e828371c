package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestStartAll: what is started is carried out at once and in order, its
// memory is the caller's again, and Wait returns when it is durable, not before.
func TestStartAll(t *testing.T) {
	disk := vfs.NewMem()
	_, r := open(t, "data", worldOptions{FS: disk})
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
	_, r := open(t, t.TempDir(), worldOptions{})
	results := make([]kuji.Result, 1)
	for _, req := range []kuji.Request{
		kuji.Atomic{Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "free", Count: 3}}},
		kuji.Consume{Player: "ann", Items: []kuji.Stack{{Item: "sword", Quantity: 99}}},
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

// TestDoAllGivesWhatDoGives: of plain draws among all other kinds of requests, each
// has the result that its id is answered with ever after, by Do: in batches that
// span several entries, with a clock that moves, and with many and few ids known.
func TestDoAllGivesWhatDoGives(t *testing.T) {
	const rounds, requests = 3, kuji.MaxBatch / 2
	for name, o := range map[string]worldOptions{
		"durable": {FS: vfs.NewMem(), MaxPending: 1 << 20, SnapshotEvery: -1},
	} {
		now := time.UnixMilli(1)
		o.Now = func() time.Time {
			now = now.Add(100 * time.Microsecond)
			return now
		}
		_, r := open(t, "data", o)
		for range 10 {
			do(t, r, kuji.Grant{Player: "p0", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
		}
		entries := uint64(0)
		for round := range rounds {
			rnd := rand.New(rand.NewPCG(1, uint64(round)))
			reqs := make([]kuji.Request, requests)
			for i := range reqs {
				reqs[i] = anyRequest(rnd, fmt.Sprintf("%s-%d-%060d", name[:1], round, i)[:kuji.MaxID])
				if i < 130 { // most of what may wait for the log, so that draws are the rest
					reqs[i] = largeGroup(fmt.Sprint(name, round, i))
				}
			}
			before := r.Stats()
			results, err := r.DoAll(t.Context(), reqs)
			if err != nil {
				t.Fatal(err)
			}
			entries = max(entries, r.Stats().Batches-before.Batches)
			for i, got := range results {
				want, err := r.Do(t.Context(), reqs[i])
				if got.Err != nil || err != nil {
					if got.Status != kuji.Refused || kuji.CodeOf(got.Err) != kuji.CodeOf(err) {
						t.Fatalf("%s, round %d, request %d: %v (%v), alone %v", name, round, i, got, got.Err, err)
					}
					continue
				}
				if cap(got.Outcomes) > len(got.Outcomes) || cap(got.Members) > len(got.Members) {
					t.Fatalf("%s, round %d, request %d: who appends to what %+v holds writes where others read", name, round, i, got)
				}
				got.Replayed = true
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, round %d, request %d, %+v:\n%+v, its id again\n%+v", name, round, i, reqs[i], got, want)
				}
			}
		}
		if entries < 2 {
			t.Errorf("%s: the batches took %d entries at most, want one that spans several", name, entries)
		}
	}
}

// largeGroup is a group whose event takes several kilobytes.
func largeGroup(id string) kuji.Request {
	g := kuji.Atomic{ID: id}
	for i := range kuji.MaxAtomic {
		g.Members = append(g.Members, kuji.Grant{Player: fmt.Sprintf("somebody new, for whom there is no number yet %s %d", id, i), Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
	}
	return g
}

// anyRequest is mostly a plain draw, and otherwise of any kind, with any status.
func anyRequest(rnd *rand.Rand, id string) kuji.Request {
	player := fmt.Sprint("p", rnd.IntN(50))
	switch rnd.IntN(100) {
	case 0:
		return kuji.Draw{ID: id, Player: player, Pool: "paid"} // who is too poor, or too late
	case 1:
		return kuji.Draw{ID: id, Player: player, Pool: "box", Count: 2} // sold out soon
	case 2:
		return kuji.Consume{ID: id, Player: player, Items: []kuji.Stack{{Item: "sword", Quantity: 1 << 40}}}
	case 3:
		return kuji.Draw{ID: id, Pool: "free"} // malformed
	case 4:
		return &kuji.Grant{ID: id, Player: player, Items: []kuji.Stack{{Item: "gem", Quantity: 3}}}
	case 5:
		return kuji.Draw{ID: id[:len(id)-2] + "00", Player: player, Pool: "free"} // another's id
	case 6:
		return kuji.Atomic{ID: id, Members: []kuji.Request{
			kuji.Draw{Player: player, Pool: "free", Count: 2}, &kuji.Grant{Player: "p0", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}, kuji.Draw{Player: "p1", Pool: "free"}}}
	case 7:
		return kuji.Draw{ID: id, Player: fmt.Sprint("new ", id[4:60]), Pool: "free", Count: 3}
	}
	return &kuji.Draw{ID: id, Player: player, Pool: "free"}
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
	_, r := open(t, "data", worldOptions{FS: disk, MaxPending: 1 << 20, SnapshotEvery: -1})
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
	group := func(id string) kuji.Atomic {
		var members []kuji.Request
		for i := range 50 {
			members = append(members, kuji.Grant{Player: fmt.Sprint("p", i), Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
		}
		return kuji.Atomic{ID: id, Members: members}
	}
	fill := func(id string, done func()) {
		r.Submit(group(id), func(_ kuji.Result, err error) {
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
		if _, err := r.StartAll(t.Context(), []kuji.Request{group(fmt.Sprint("fill", i))}, make([]kuji.Result, 1)); err != nil {
			t.Fatal(err)
		}
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

// endsAfter is a context that ends after it was asked some times.
type endsAfter struct {
	context.Context
	asked int
}

func (c *endsAfter) Err() error {
	if c.asked--; c.asked < 0 {
		return context.Canceled
	}
	return nil
}

// TestCallIsOneBatch: what an idle realm is asked in one call becomes durable in one batch, and what a
// call left behind that ended early becomes so without another one.
func TestCallIsOneBatch(t *testing.T) {
	reqs := make([]kuji.Request, 300)
	for i := range reqs {
		reqs[i] = kuji.Draw{Player: fmt.Sprint("p", i), Pool: "free"}
	}
	s := newSteps()
	_, r := open(t, "data", worldOptions{FS: vfs.NewMem(), Steps: s})
	results, err := r.DoAll(t.Context(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	for i, res := range results {
		if at := res.Receipt; at.Position != results[0].Receipt.Position || at.Index != i {
			t.Fatalf("request %d stands at %d/%d, the first at %d", i, at.Position, at.Index, results[0].Receipt.Position)
		}
	}
	for _, chunks := range []int{1, 2, 3} {
		for i := range reqs {
			reqs[i] = kuji.Draw{ID: fmt.Sprint(chunks, "-", i), Player: fmt.Sprint("p", i), Pool: "free"}
		}
		_, err := r.DoAll(&endsAfter{t.Context(), chunks}, reqs)
		wantCode(t, err, kuji.CodeUnknownOutcome)
		if len(s.tasks) == 0 {
			t.Errorf("after %d parts: nothing makes them durable", chunks)
		}
		first, err := r.Result(t.Context(), reqs[0].(kuji.Draw).ID)
		if err != nil || first.Result.Receipt.Position != results[0].Receipt.Position+uint64(chunks) {
			t.Errorf("after %d parts: %+v, %v", chunks, first, err)
		}
	}
}

// doesAfter is a context that does something after it was asked some times.
type doesAfter struct {
	context.Context
	asked int
	what  func()
}

func (c *doesAfter) Err() error {
	if c.asked--; c.asked == 0 {
		c.what()
	}
	return nil
}

// TestCloseWithinCall: what a call has carried out when the realm is closed is in the log, before the
// end of the epoch, and the call says that it does not know.
func TestCloseWithinCall(t *testing.T) {
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk, Steps: newSteps()})
	reqs := make([]kuji.Request, 300)
	for i := range reqs {
		reqs[i] = kuji.Draw{ID: fmt.Sprint("id-", i), Player: fmt.Sprint("p", i), Pool: "free"}
	}
	var closed error
	_, err := r.DoAll(&doesAfter{t.Context(), 3, func() { closed = e.Close() }}, reqs)
	wantCode(t, err, kuji.CodeUnknownOutcome)
	if closed != nil {
		t.Fatal(closed)
	}
	if _, err := verifyIn(disk, "data", "test", func(kuji.Record) {}); err != nil {
		t.Fatal(err)
	}
	if _, r = open(t, "data", worldOptions{FS: disk}); r.Stats().RequestIDs != 128 { // of two parts
		t.Errorf("%d requests were carried out", r.Stats().RequestIDs)
	}
}
