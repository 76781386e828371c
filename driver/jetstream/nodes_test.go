package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
)

// A node that lost its disk comes back empty, fetches what it misses, and is then as good as the
// others: with one of them gone, nothing is lost, and the log goes on.
func TestWipedNodeComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three servers")
	}
	c := startCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := jetstream.Connect(ctx, jetstream.Options{Connect: []nats.Option{c.servers[1].Connect()}, Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := d.Open(ctx, "main", driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	at, n := driver.Cursor(0), 0
	appendSome := func() {
		for range 10 {
			entry := fmt.Append(nil, "entry ", n)
			for {
				next, err := r.Append(ctx, at, entry)
				if err == nil {
					at, n = next, n+1
					break
				}
				if ctx.Err() != nil {
					t.Fatal(err)
				}
			}
		}
	}
	appendSome()
	c.restart(t, 2, func(dir string) {
		appendSome()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	})
	waitForReplicas(ctx, t, c, "KUJI_c_LOG_main", uint64(at))
	if err := c.servers[0].Close(); err != nil {
		t.Fatal(err)
	}
	appendSome()
	i := 0
	for entry, err := range r.Read(ctx, 0, at) {
		if want := fmt.Sprint("entry ", i); err != nil || string(entry.Data) != want {
			t.Fatalf("read %q, %v, want %q", entry.Data, err, want)
		}
		i++
	}
	if i != 30 {
		t.Errorf("read %d entries, want 30", i)
	}
}

// A server that cannot read what Raft wrote for its streams says that it has not caught up. It makes its copies
// again, as soon as the others have all of them, and is then as good as they are.
func TestDamagedCopiesAreMadeAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three servers")
	}
	c := startCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := jetstream.Connect(ctx, jetstream.Options{Connect: []nats.Option{c.servers[1].Connect()}, Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := d.Open(ctx, "main", driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	at := driver.Cursor(0)
	appendOne := func() {
		for {
			next, err := r.Append(ctx, at, fmt.Append(nil, "entry ", at))
			if err == nil {
				at = next
				return
			}
			if !errors.Is(err, driver.ErrUnknown) || ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
	appendOne()
	const stream = "KUJI_c_LOG_main"
	waitForReplicas(ctx, t, c, stream, uint64(at))
	if err := c.servers[0].NATS().JetStreamSnapshotStream("$G", stream); err != nil {
		t.Fatal(err)
	}
	c.restart(t, 0, func(dir string) { appendOne(); damageSnapshots(t, dir) })
	c.restart(t, 2, func(string) { // without it, nobody knows whether anything would be lost
		for why := error(nil); why == nil; {
			healed, err := c.servers[0].Heal()
			if len(healed) > 0 || ctx.Err() != nil {
				t.Fatalf("with one other server, it makes %q again, error %v", healed, err)
			}
			why = err
		}
	})
	for healed, err := c.servers[0].Heal(); !slices.Contains(healed, stream); healed, err = c.servers[0].Heal() {
		if ctx.Err() != nil {
			t.Fatalf("it makes %q again, error %v", healed, err)
		}
		if current := c.servers[0].Current(); current == nil {
			t.Fatal("a server with a damaged copy has caught up")
		}
	}
	waitForReplicas(ctx, t, c, stream, uint64(at))
	if err := c.servers[2].Close(); err != nil {
		t.Fatal(err)
	}
	appendOne()
	n := 0
	for entry, err := range r.Read(ctx, 0, at) {
		if want := fmt.Sprint("entry ", n); err != nil || string(entry.Data) != want {
			t.Fatalf("read %q, %v, want %q", entry.Data, err, want)
		}
		n++
	}
	if n != 3 {
		t.Errorf("read %d entries, want 3", n)
	}
}

// damageSnapshots changes a byte of each of Raft's snapshots of streams.
func damageSnapshots(t *testing.T, dir string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "jetstream", "$SYS", "_js_", "S-*", "snapshots", "snap.*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%d snapshots, error %v", len(found), err)
	}
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// waitForReplicas waits until all replicas of a stream have what its leader has.
func waitForReplicas(ctx context.Context, t *testing.T, c *cluster, stream string, last uint64) {
	t.Helper()
	conn, err := nats.Connect("", c.servers[1].Connect())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := natsjs.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if s, err := js.Stream(ctx, stream); err == nil {
			info, current := s.CachedInfo(), 0
			for _, p := range info.Cluster.Replicas {
				if p.Current && !p.Offline && p.Lag == 0 {
					current++
				}
			}
			if info.Cluster.Leader != "" && current == 2 && info.State.LastSeq >= last {
				return
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("the replicas of %s did not catch up", stream)
		}
	}
}

// A server that leads a log stops, planned, while somebody appends and somebody reads. Nobody waits for an
// answer that never comes: here an append that is not told of the new leader would wait for an hour.
func TestPlannedStops(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three servers")
	}
	c := startCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := jetstream.Connect(ctx, jetstream.Options{Connect: []nats.Option{c.servers[1].Connect()}, Cluster: "c", Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := d.Open(ctx, "main", driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var appended atomic.Uint64
	stop := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		at := driver.Cursor(0)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			for entry := fmt.Append(nil, "entry ", n); ; {
				next, err := r.Append(ctx, at, entry)
				if err == nil {
					at = next
					break
				}
				if !errors.Is(err, driver.ErrUnknown) || ctx.Err() != nil {
					t.Error(err)
					return
				}
			}
			appended.Store(uint64(at))
		}
	})
	for _, i := range []int{0, 2} {
		c.prefer(ctx, t, "KUJI_c_LOG_main", c.options[i].Node)
		c.restart(t, i, func(string) {
			info, err := c.servers[1].NATS().Jsz(&server.JSzOptions{Streams: true})
			if err != nil {
				t.Fatal(err)
			}
			if one := info.AccountDetails[0].Streams[0]; one.Cluster.Leader == "" || info.Meta.Leader == "" {
				t.Errorf("%s has stopped, and nobody leads %s, or the meta group", c.options[i].Node, one.Name)
			}
			for had := appended.Load(); appended.Load() < had+10 && ctx.Err() == nil && !t.Failed(); {
				runtime.Gosched()
			}
		})
		waitForReplicas(ctx, t, c, "KUJI_c_LOG_main", 0)
	}
	close(stop)
	working.Wait()
	n := 0
	for entry, err := range r.Read(ctx, 0, driver.Cursor(appended.Load())) {
		if want := fmt.Sprint("entry ", n); err != nil || string(entry.Data) != want {
			t.Fatalf("read %q, %v, want %q", entry.Data, err, want)
		}
		n++
	}
}

// prefer makes a server lead a stream.
func (c *cluster) prefer(ctx context.Context, t *testing.T, stream, node string) {
	t.Helper()
	conn, err := nats.Connect("", c.servers[1].Connect())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := natsjs.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, time.Second) // a server that stops leading may not answer
		s, err := js.Stream(once, stream)
		if err == nil && s.CachedInfo().Cluster.Leader == node {
			cancel()
			return
		}
		if err == nil && s.CachedInfo().Cluster.Leader != "" {
			_, _ = conn.RequestWithContext(once, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, []byte(`{"placement":{"preferred":"`+node+`"}}`))
		}
		cancel()
	}
	t.Fatalf("%s never leads %s", node, stream)
}
