package rivals

import (
	"context"
	"flag"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var dirFlag = flag.String("dir", "", "directory for the data, on the disk to measure; default is the system's for temporary files")

// What all rivals work on.
const (
	entries   = 100
	stock     = 1_000_000_000 // of each entry
	players   = 100_000
	batchSize = 1000
)

// weight of an entry.
func weight(entry int) int { return 1 + entry }

// connection is one client's way to a store.
type connection interface {
	// draw makes a draw for each id and player, and returns when all are
	// acknowledged.
	draw(ctx context.Context, ids, players []string) error
}

// setup is a store with the connections that a benchmark asks for.
type setup struct {
	// open makes a connection; it is closed with tb.
	open func(tb testing.TB) connection
	// lean makes one of a lean client, where there is one.
	lean func(tb testing.TB) connection
	// drawn tells how many draws the store knows of.
	drawn func(tb testing.TB) int64
}

// runID makes request ids of this process differ from those of another.
var (
	runID  = strconv.FormatUint(rand.Uint64()>>24, 36)
	nextID atomic.Uint64
)

// newIDs fills in new request ids, and players at random.
func newIDs(ids, who []string, random *rand.Rand) {
	for i := range ids {
		ids[i] = runID + "-" + strconv.FormatUint(nextID.Add(1), 36)
		who[i] = "player-" + strconv.Itoa(random.IntN(players))
	}
}

// measure makes b.N draws over a number of connections, some at a time each,
// and checks that the store has carried out that many.
func measure(b *testing.B, s setup, connections, each int) {
	all := make([]connection, connections)
	for i := range all {
		all[i] = s.open(b)
	}
	before := s.drawn(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	var mu sync.Mutex
	var latencies []time.Duration
	var wg sync.WaitGroup
	b.ResetTimer()
	for i, c := range all {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			ids, who := make([]string, each), make([]string, each)
			var mine []time.Duration
			for {
				n := int(min(int64(each), left.Add(-int64(each))+int64(each)))
				if n <= 0 {
					break
				}
				newIDs(ids[:n], who[:n], random)
				begin := time.Now()
				if err := c.draw(b.Context(), ids[:n], who[:n]); err != nil {
					b.Error(err)
					break
				}
				mine = append(mine, time.Since(begin))
			}
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, mine...)
		})
	}
	wg.Wait()
	b.StopTimer()
	if got := s.drawn(b) - before; got != int64(b.N) && !b.Failed() {
		b.Errorf("the store knows of %d draws, want %d", got, b.N)
	}
	slices.Sort(latencies)
	if n := len(latencies); n > 0 {
		b.ReportMetric(float64(latencies[n/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(latencies[n*99/100].Microseconds()), "p99-µs")
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "draws/s")
}

// scratch is an empty directory that is gone with tb.
func scratch(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(*dirFlag, "kuji-rivals-")
	must(tb, err)
	tb.Cleanup(func() { must(tb, os.RemoveAll(dir)) })
	return dir
}

// freePort is a port of loopback that nobody listens on.
func freePort(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(tb, err)
	return port
}

// daemon starts a server that ends with tb, and waits until ready says so.
func daemon(tb testing.TB, cmd *exec.Cmd, ready func() error) {
	tb.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	must(tb, cmd.Start())
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is stopped by a signal
		close(exited)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-exited:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
	})
	deadline := time.After(20 * time.Second)
	for {
		err := ready()
		if err == nil {
			return
		}
		select {
		case <-exited:
			tb.Fatalf("%s ended:\n%s", cmd.Path, &out)
		case <-deadline:
			tb.Fatalf("%s is not ready: %v", cmd.Path, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}
