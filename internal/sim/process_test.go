package sim_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/verify"
)

var kills = flag.Int("kills", 6, "how many random kills TestKillUnderLoad survives; also every how many changes of the disk TestKillAtEveryChange lets pass, if fewer than 100")

// TestLinearizableServer does the same with a server process over HTTP, through SIGKILLs.
func TestLinearizableServer(t *testing.T) {
	lives := 0
	var found checks
	for n := range *served {
		c := &child{dir: filepath.Join(t.TempDir(), "data"), snapshots: 64 << 10}
		if err := c.start(0); err != nil {
			t.Fatal(err)
		}
		if err := c.apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(uint64(n), 9))
		c.killAt.Store(1 + r.Int64N(1200))
		history := takeHistory(t, c, uint64(n))
		if c.err != nil {
			t.Fatal(c.err)
		}
		found.check(t, history)
		if !c.stop() {
			t.Errorf("history %d: the server did not close well: %v", n, c.cmd.ProcessState)
		}
		mustVerify(t, c.dir)
		lives += c.life
		if t.Failed() {
			t.Fatalf("history %d", n)
		}
	}
	found.report(t, lives)
}

// endWell starts the server for the last time, asks for all outcomes, and checks that it closes and what
// it leaves.
func (b *book) endWell(t *testing.T, c *child) {
	t.Helper()
	if err := c.start(0); err != nil {
		t.Fatal(err)
	}
	b.settle(t, c)
	if !c.stop() {
		t.Error("the server did not close well")
	}
	mustVerify(t, c.dir)
}

// mustVerify checks the log of a server that is not running.
func mustVerify(t *testing.T, dir string) {
	t.Helper()
	rep, err := verify.Dir(dir, server.DefaultRealm, verify.Options{})
	if err != nil {
		t.Error(err)
	}
	for _, e := range rep.Epochs {
		if !e.Revealed {
			t.Errorf("epoch %d cannot be proven: its seed is lost", e.Epoch)
		}
	}
}

// book is what clients asked and were told.
type book struct {
	mu    sync.Mutex
	asked map[string]question
	told  map[string]reply
}

func newBook() *book { return &book{asked: map[string]question{}, told: map[string]reply{}} }

// ask asks once and writes down the answer, unless that came too late to count.
func (b *book) ask(ctx context.Context, s service, id string, q question, late *atomic.Bool) error {
	b.mu.Lock()
	b.asked[id] = q
	b.mu.Unlock()
	r, err := s.ask(ctx, id, q)
	if err != nil || late.Load() {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.replayed = false
	if first, ok := b.told[id]; ok && first != r {
		return fmt.Errorf("%s was told %+v, first %+v", id, r, first)
	}
	b.told[id] = r
	return nil
}

// settle asks for everything again. Every answer must come again. Everything given must be what pools
// lack, and everything moved must be what players hold.
func (b *book) settle(t *testing.T, s service) {
	t.Helper()
	var given [historyPools]stock
	var held [len(playerNames)]items
	for id, q := range b.asked {
		r, err := s.ask(t.Context(), id, q)
		if err != nil {
			t.Fatalf("%s again: %v", id, err)
		}
		first, known := b.told[id]
		if known && !r.replayed {
			t.Errorf("%s was acknowledged and carried out again", id)
		}
		if r.replayed = false; known && first != r {
			t.Errorf("%s was told %+v, first %+v", id, r, first)
		}
		b.told[id] = r
		if r.status == kuji.OK {
			q.effects(r, func(pool, entry, n int) { given[pool][entry] += n }, func(player, item, n int) { held[player][item] += n })
		}
	}
	for p := range historyPools {
		r, err := s.ask(t.Context(), "", looking(p))
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range r.left {
			if n < 0 || n+given[p][i] != firstStock[p][i] {
				t.Errorf("pool %d, entry %d: %d given and %d left of %d", p, i, given[p][i], n, firstStock[p][i])
			}
		}
	}
	for p, want := range held {
		r, err := s.ask(t.Context(), "", holding(p))
		if err != nil {
			t.Fatal(err)
		}
		if r.holds != want {
			t.Errorf("%s holds %v, was told of %v", playerNames[p], r.holds, want)
		}
	}
}

// TestKillAtEveryChange kills a server before each of its changes of the disk, from the first directory
// to the close, and in the middle of each write.
func TestKillAtEveryChange(t *testing.T) {
	step := int64(1)
	if *kills < 100 {
		step = 7
	}
	changes := int64(0)
	for kill := int64(1); ; kill += step {
		c := &child{dir: filepath.Join(t.TempDir(), "data")}
		b := newBook()
		survived := scripted(t, c, b, kill)
		if !survived {
			changes = kill
			c.mu.Lock()
			if err := c.start(0); err != nil {
				t.Fatalf("killed at change %d: %v", kill, err)
			}
			c.mu.Unlock()
			if err := c.apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.settle(t, c)
			if !c.stop() {
				t.Errorf("the server did not close well: %v", c.cmd.ProcessState)
			}
		}
		mustVerify(t, c.dir)
		if t.Failed() {
			t.Fatalf("killed at change %d", kill)
		}
		if survived {
			break
		}
	}
	if changes < 40 {
		t.Errorf("only %d changes: the server did not run", changes)
	}
	t.Logf("killed at up to change %d, every %d", changes, step)
}

// scripted lets a server work until it kills itself. It reports whether the server closed instead.
func scripted(t *testing.T, c *child, b *book, kill int64) bool {
	c.held = true
	if c.start(kill) != nil || c.apply(t.Context()) != nil {
		c.kill()
		return false
	}
	var late atomic.Bool
	r := rand.New(rand.NewPCG(1, 5))
	for i := range 14 {
		if b.ask(t.Context(), c, fmt.Sprint("s", i), someRequest(r, i%2, 1+i%2), &late) != nil {
			c.kill()
			return false
		}
	}
	return c.stop()
}

// load lets clients make requests until they have enough answers, then calls crash. It returns when all
// clients have stopped.
func load(t *testing.T, s service, b *book, tag int, enough int64, crash func()) {
	t.Helper()
	var told atomic.Int64
	var late atomic.Bool
	var running sync.WaitGroup
	for w := range 6 {
		running.Go(func() {
			r := rand.New(rand.NewPCG(uint64(tag), uint64(w)))
			for i := 0; !late.Load(); i++ {
				id := fmt.Sprintf("%d-%d-%d", tag, w, i)
				if err := b.ask(t.Context(), s, id, someRequest(r, i%2, 1+i%mostActs), &late); err != nil {
					if !late.Load() {
						t.Errorf("%s: %v", id, err)
					}
					return
				}
				if told.Add(1) == enough {
					late.Store(true)
					crash()
				}
			}
		})
	}
	running.Wait()
	if told.Load() < enough {
		t.Fatalf("the load ended by itself after %d of %d answers", told.Load(), enough)
	}
}

// TestKillUnderLoad kills a server at random moments while clients make requests, again and again on one
// directory.
func TestKillUnderLoad(t *testing.T) {
	c := &child{dir: filepath.Join(t.TempDir(), "data"), held: true}
	b := newBook()
	r := rand.New(rand.NewPCG(1, 3))
	for n := range *kills {
		if err := c.start(0); err != nil {
			t.Fatalf("after kill %d: %v", n, err)
		}
		if err := c.apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		load(t, c, b, n, 1+r.Int64N(120), c.kill)
		if t.Failed() {
			return
		}
	}
	b.endWell(t, c)
	t.Logf("%d kills, %d requests", *kills, len(b.asked))
}

var idle = flag.Int("idle", 500, "how many connections lie idle in TestIdleConnections")

// TestIdleConnections: clients that connect and send nothing, or half a request, cost a server little
// memory. It serves the others.
func TestIdleConnections(t *testing.T) {
	c := &child{dir: filepath.Join(t.TempDir(), "data")}
	if err := c.start(0); err != nil {
		t.Fatal(err)
	}
	if err := c.apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := c.memory(t)
	var conns []net.Conn
	for i := range *idle {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
		if errors.Is(err, syscall.EMFILE) {
			t.Skipf("this system allows %d connections in a process, %d are wanted: raise the limit of open files", i, *idle)
		}
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
		conns = append(conns, conn)
		if i%2 == 0 {
			if _, err := io.WriteString(conn, "POST /kuji.v1.RewardService/Draw HTTP/1.1\r\nHost: localhost\r\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 50 {
		if _, err := c.ask(t.Context(), fmt.Sprint(i), drawing(3, 1)); err != nil {
			t.Fatal(err)
		}
	}
	grown := c.memory(t) - before
	t.Logf("%d idle connections: %d KiB", *idle, grown>>10)
	// Each has two goroutines, a reader and a buffer. Twice that is a leak.
	for _, conn := range conns { // or the server waits for the other halves
		conn.Close()
	}
	if most := int64(*idle)*64<<10 + 64<<20; grown > most {
		t.Errorf("%d bytes more with %d idle connections, want at most %d", grown, *idle, most)
	}
	if !c.stop() {
		t.Error("the server did not close well")
	}
}

// TestOpenFiles: clients that connect and send nothing cannot take a server's last file descriptors. Its
// log goes on, with new segments and snapshots, and never waits for a descriptor.
func TestOpenFiles(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell that could limit open files")
	}
	c := &child{dir: filepath.Join(t.TempDir(), "data"), files: 150}
	if err := c.start(0); err != nil {
		t.Fatal(err)
	}
	if err := c.apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
		if errors.Is(err, syscall.EMFILE) {
			t.Skipf("this system allows %d connections in a process, 300 are wanted: raise the limit of open files", i)
		}
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
		if i%10 != 0 {
			continue
		}
		for k := range 20 {
			if _, err := c.ask(t.Context(), fmt.Sprint(i, " ", k), drawing(3, 1)); err != nil {
				t.Fatalf("a draw with %d idle connections: %v", i+1, err)
			}
		}
		if open := c.open(); open > c.files-16 {
			t.Fatalf("%d descriptors are open with %d idle connections, want at most %d of %d", open, i+1, c.files-16, c.files)
		}
	}
	status, err := c.admin.GetStatus(t.Context(), &kujiv1.GetStatusRequest{})
	if err != nil || status.GetRealms()[0].GetError() != "" {
		t.Errorf("status: %v, %v", status, err)
	}
	if segments, err := filepath.Glob(filepath.Join(c.dir, "realms", "*", "log", "*")); err != nil || len(segments) < 2 {
		t.Errorf("%d segments, %v: want more, or nothing was opened", len(segments), err)
	}
	if !c.stop() {
		t.Error("the server did not close well")
	}
}

// open is how many descriptors the process has open, 0 if unknown.
func (c *child) open() int {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return len(fds)
}

// memory is the memory that the process uses, in bytes, 0 if unknown.
func (c *child) memory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(status), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}
