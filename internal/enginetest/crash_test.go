package enginetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// client remembers what it asked and what it was told, as an honest client
// does: an id whose outcome it was not told, it asks again.
type client struct {
	mu    sync.Mutex
	acked map[string]kuji.Result
	asked map[string]kuji.Request
	// snapshots makes sessions take one after every third draw, and trim the log.
	snapshots bool
}

func (c *client) options(disk *vfs.Mem) worldOptions {
	return worldOptions{FS: disk, SegmentSize: 8 << 10, TrimLog: c.snapshots}
}

func newClient() *client {
	return &client{acked: map[string]kuji.Result{}, asked: map[string]kuji.Request{}}
}

func (c *client) do(r *kuji.Realm, req kuji.Draw) error {
	c.mu.Lock()
	c.asked[req.ID] = req
	c.mu.Unlock()
	res, err := r.Do(context.Background(), req)
	if err != nil {
		return err
	}
	res.Replayed = false
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, ok := c.acked[req.ID]; ok && !reflect.DeepEqual(first, res) {
		return fmt.Errorf("id %s answered\n%+v, first\n%+v", req.ID, res, first)
	}
	c.acked[req.ID] = res
	return nil
}

// check recovers an engine from a crashed disk and checks every promise: what
// was acknowledged is there, once, unchanged; what was not can be asked again;
// stock and balances add up; the log verifies.
func (c *client) check(disk *vfs.Mem) error {
	e, err := openWorld("data", c.options(disk))
	if err != nil {
		return err
	}
	r, err := e.Realm("test")
	if err != nil {
		return errors.Join(err, e.Close())
	}
	err = c.checkRealm(r)
	if err := errors.Join(err, e.Close()); err != nil {
		return err
	}
	rep, err := verifyIn(disk, "data", "test", nil)
	for _, e := range rep.Epochs {
		if err == nil && !e.Revealed {
			err = fmt.Errorf("epoch %d cannot be proven: its seed is lost", e.Epoch)
		}
	}
	return err
}

func (c *client) checkRealm(r *kuji.Realm) error {
	// Acknowledged answers first: they must be there without being asked for again.
	for id := range c.acked {
		before := r.Stats().Events
		if err := c.do(r, c.asked[id].(kuji.Draw)); err != nil {
			return err
		}
		if r.Stats().Events != before {
			return fmt.Errorf("acknowledged id %s was carried out again", id)
		}
	}
	if len(c.asked) == 0 {
		return nil
	}
	// A copy: every crashed disk has its own truth about the unacknowledged.
	all := newClient()
	for id, res := range c.acked {
		all.acked[id] = res
	}
	given := map[string]uint64{}
	for id, req := range c.asked {
		if err := all.do(r, req.(kuji.Draw)); err != nil {
			return fmt.Errorf("retrying %s: %w", id, err)
		}
		for _, o := range all.acked[id].Outcomes {
			given[o.Entry]++
		}
	}
	p, err := r.Pool(context.Background(), "box")
	if kuji.CodeOf(err) == kuji.CodeNotFound && len(c.acked) == 0 {
		return nil // the catalog itself was not acknowledged
	}
	if err != nil {
		return err
	}
	for _, en := range p.Entries {
		if en.Drawn != given[en.ID] || en.Drawn+en.Left != p.Config.Entries[indexOf(p, en.ID)].Stock.Count {
			return fmt.Errorf("entry %s: %d drawn, %d left, clients were given %d", en.ID, en.Drawn, en.Left, given[en.ID])
		}
	}
	return nil
}

func indexOf(p kuji.PoolView, id string) int {
	for i, e := range p.Entries {
		if e.ID == id {
			return i
		}
	}
	return -1
}

// session opens an engine on disk, applies the catalog and draws until done or
// until the disk fails; it reports how far it came.
func (c *client) session(t *testing.T, disk *vfs.Mem, tag string, draws, workers int) {
	e, err := openWorld("data", c.options(disk))
	if err != nil {
		return
	}
	defer e.Close() // fails when the power is off
	r, err := e.Realm("test")
	if err != nil {
		return
	}
	if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range draws / workers {
				req := kuji.Draw{ID: fmt.Sprint(tag, w, "-", i), Player: fmt.Sprint("p", w), Pool: "box", Count: 1 + i%2}
				if err := c.do(r, req); err != nil {
					if code := kuji.CodeOf(err); code != kuji.CodeUnknownOutcome && code != kuji.CodeFailed {
						t.Error(err)
					}
					return
				}
				if c.snapshots && i%3 == 2 {
					if _, err := r.Snapshot(t.Context()); err != nil {
						return // it says that the power is off
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestCrashAtEveryStep cuts the power before each operation of a session that
// changes the disk, and recovers from many of the disks that may be left.
func TestCrashAtEveryStep(t *testing.T) {
	states := 12
	if testing.Short() {
		states = 3
	}
	crashAtEveryStep(t, states, 12, 30, newClient)
}

// TestCrashAtEveryStepOfSnapshots does the same with snapshots between the
// draws: whole ones, others that build on them, the removal of old ones and the
// trimming of the log.
func TestCrashAtEveryStepOfSnapshots(t *testing.T) {
	states := 4
	if testing.Short() {
		states = 1
	}
	crashAtEveryStep(t, states, 40, 200, func() *client {
		c := newClient()
		c.snapshots = true
		return c
	})
}

func crashAtEveryStep(t *testing.T, states, draws int, least int64, newClient func() *client) {
	dry := vfs.NewMem()
	newClient().session(t, dry, "a", draws, 1)
	_, steps := dry.Ops()
	if steps < least {
		t.Fatalf("only %d steps: the session did not run", steps)
	}
	for step := range steps {
		disk, c := vfs.NewMem(), newClient()
		disk.CutPowerAfter(step)
		c.session(t, disk, "a", draws, 1)
		for crashed := range disk.CrashSamples(states, uint64(step), false) {
			if err := c.check(crashed); err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
		}
	}
}

// TestCrashWithinRecovery crashes again and again, at the next step each time,
// on the disk that the crash before left.
func TestCrashWithinRecovery(t *testing.T) {
	disk, c := vfs.NewMem(), newClient()
	for round := range int64(60) {
		disk.CutPowerAfter(round % 37)
		c.session(t, disk, fmt.Sprint("r", round, "."), 6, 2)
		disk = disk.Crash(vfs.Crash{Choose: vfs.Seeded(uint64(round))})
	}
	if err := c.check(disk); err != nil {
		t.Fatal(err)
	}
	if len(c.acked) == 0 {
		t.Fatal("nothing was acknowledged in any round")
	}
}

// TestFailedSync: the first fsync that fails stops the realm, nobody is told
// OK, it is not tried again, and reopening finds everything acknowledged.
func TestFailedSync(t *testing.T) {
	for _, drop := range []bool{false, true} {
		disk, c := vfs.NewMem(), newClient()
		var mu sync.Mutex
		fail, syncs := false, 0
		disk.SetHook(func(op vfs.Op) vfs.Fault {
			mu.Lock()
			defer mu.Unlock()
			if op.Kind != vfs.OpSync || !fail {
				return vfs.Fault{}
			}
			if syncs++; syncs > 1 {
				return vfs.Fault{}
			}
			return vfs.Fault{Err: syscall.EIO, Drop: drop}
		})
		e, err := openWorld("data", worldOptions{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Realm("test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
			t.Fatal(err)
		}
		if err := c.do(r, kuji.Draw{ID: "good", Player: "ann", Pool: "box"}); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		fail = true
		mu.Unlock()
		wantCode(t, c.do(r, kuji.Draw{ID: "bad", Player: "ann", Pool: "box"}), kuji.CodeUnknownOutcome)
		wantCode(t, c.do(r, kuji.Draw{ID: "late", Player: "ann", Pool: "box"}), kuji.CodeFailed)
		wantCode(t, c.do(r, kuji.Draw{ID: "good", Player: "ann", Pool: "box"}), kuji.CodeFailed)
		_, err = r.Player(t.Context(), "ann")
		wantCode(t, err, kuji.CodeFailed)
		wantCode(t, r.Err(), kuji.CodeFailed)
		if !errors.Is(r.Err(), syscall.EIO) {
			t.Errorf("the cause is lost: %v", r.Err())
		}
		e.Close() // reports the failure; the disk decides
		mu.Lock()
		if syncs != 1 {
			t.Errorf("%d fsyncs after the failed one", syncs-1)
		}
		mu.Unlock()
		disk.SetHook(nil)
		for crashed := range disk.CrashSamples(8, 1, false) {
			if err := c.check(crashed); err != nil {
				t.Errorf("drop %v: %v", drop, err)
			}
		}
		if err := c.check(disk); err != nil { // the process was restarted, the machine was not
			t.Errorf("drop %v, no crash: %v", drop, err)
		}
	}
}

// TestDiskFull: a full disk stops the realm and loses nothing.
func TestDiskFull(t *testing.T) {
	disk, c := vfs.NewMem(), newClient()
	disk.Limit(64 << 10)
	for round := range 3 {
		c.session(t, disk, fmt.Sprint(round, "."), 1200, 4)
	}
	if len(c.asked) == len(c.acked) {
		t.Fatal("the disk did not fill up")
	}
	disk.Limit(0)
	if err := c.check(disk); err != nil {
		t.Fatal(err)
	}
}

// TestReadsWaitForDurability: what a player or pool shows cannot be lost.
func TestReadsWaitForDurability(t *testing.T) {
	disk := vfs.NewMem()
	e, err := openWorld("data", worldOptions{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	do(t, r, kuji.Draw{Player: "bob", Pool: "free"})
	held, entered := make(chan struct{}), make(chan struct{}, 16)
	release := sync.OnceFunc(func() { close(held) })
	defer release() // before Close, which syncs
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync {
			entered <- struct{}{}
			<-held
		}
		return vfs.Fault{}
	})
	acked := make(chan error, 1)
	r.Submit(kuji.Draw{ID: "held", Player: "ann", Pool: "box"}, func(_ kuji.Result, err error) { acked <- err })
	select {
	case <-entered:
	case err := <-acked:
		t.Fatalf("acknowledged without an fsync: %v", err)
	}
	if v, err := r.Player(kuji.Stale(t.Context()), "ann"); err != nil || v.Position == 0 {
		t.Errorf("a stale read: %+v, %v", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Player(ctx, "ann")
	wantCode(t, err, kuji.CodeCanceled)
	_, err = r.Pool(ctx, "box")
	wantCode(t, err, kuji.CodeCanceled)
	if _, err := r.Player(t.Context(), "bob"); err != nil { // waits for nothing: bob did not change
		t.Error(err)
	}
	if _, err := r.Pool(t.Context(), "free"); err != nil {
		t.Error(err)
	}
	reused := make(chan error, 1)
	r.Submit(kuji.Draw{ID: "held", Player: "eve", Pool: "box"}, func(_ kuji.Result, err error) { reused <- err })
	select {
	case err := <-acked:
		t.Errorf("acknowledged before the fsync returned: %v", err)
	case err := <-reused:
		t.Errorf("refused on the strength of an event that could still be lost: %v", err)
	default:
	}
	release()
	if _, err := r.Player(t.Context(), "ann"); err != nil {
		t.Error(err)
	}
	if err := <-acked; err != nil {
		t.Error(err)
	}
	wantCode(t, <-reused, kuji.CodeIDReused)
}
