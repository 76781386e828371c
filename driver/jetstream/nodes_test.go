package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
)

// record is a realm's log on three servers, and what was appended to it through the second one.
type record struct {
	*cluster
	realm driver.Realm
	at    driver.Cursor
	n     int // entries appended
}

func startRecord(ctx context.Context, t *testing.T, timeout time.Duration) *record {
	t.Helper()
	if testing.Short() {
		t.Skip("starts three servers")
	}
	c := startCluster(t, 3)
	d, err := jetstream.Connect(ctx, jetstream.Options{Connect: []nats.Option{c.servers[1].Connect()}, Cluster: "c", Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	r, err := d.Open(ctx, "main", driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &record{cluster: c, realm: r}
}

const recordStream = "KUJI_c_LOG_main"

// add appends an entry, again and again until the log has it.
func (r *record) add(ctx context.Context) error {
	for {
		next, err := r.realm.Append(ctx, r.at, fmt.Append(nil, "entry ", r.n))
		if err == nil {
			r.at, r.n = next, r.n+1
			return nil
		}
		if !errors.Is(err, driver.ErrUnknown) || ctx.Err() != nil {
			return err
		}
	}
}

func (r *record) mustAdd(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := r.add(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// check reads everything that was appended.
func (r *record) check(ctx context.Context, t *testing.T) {
	t.Helper()
	n := 0
	for entry, err := range r.realm.Read(ctx, 0, r.at) {
		if want := fmt.Sprint("entry ", n); err != nil || string(entry.Data) != want {
			t.Fatalf("read %q, %v, want %q", entry.Data, err, want)
		}
		n++
	}
	if n != r.n {
		t.Errorf("read %d entries, want %d", n, r.n)
	}
}

// A node that lost its disk comes back empty, fetches what it misses, and is then as good as the
// others: with one of them gone, nothing is lost, and the log goes on.
func TestWipedNodeComesBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := startRecord(ctx, t, 0)
	r.mustAdd(ctx, t, 10)
	r.restart(t, 2, func(dir string) {
		r.mustAdd(ctx, t, 10)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	})
	waitForReplicas(ctx, t, r.cluster, recordStream, uint64(r.at))
	if err := r.servers[0].Close(); err != nil {
		t.Fatal(err)
	}
	r.mustAdd(ctx, t, 10)
	r.check(ctx, t)
}

// A server that cannot read what Raft wrote for its streams says that it has not caught up. It makes
// its copies again when the others have all of them. Then it is as good as they are. It also does so after an
// update of the stream, with which NATS forgets why the server has no part in the stream.
func TestDamagedCopiesAreMadeAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := startRecord(ctx, t, 0)
	r.mustAdd(ctx, t, 1)
	waitForReplicas(ctx, t, r.cluster, recordStream, uint64(r.at))
	if err := r.servers[0].NATS().JetStreamSnapshotStream("$G", recordStream); err != nil {
		t.Fatal(err)
	}
	r.restart(t, 0, func(dir string) { r.mustAdd(ctx, t, 1); damageSnapshots(t, dir) })
	forgetDamage(ctx, t, r.cluster)
	r.restart(t, 2, func(string) { // without it, nobody knows whether anything would be lost
		for why := error(nil); why == nil; {
			healed, err := r.servers[0].Heal()
			if len(healed) > 0 || ctx.Err() != nil {
				t.Fatalf("with one other server, it makes %q again, error %v", healed, err)
			}
			why = err
		}
	})
	for healed, err := r.servers[0].Heal(); !slices.Contains(healed, recordStream); healed, err = r.servers[0].Heal() {
		if ctx.Err() != nil {
			t.Fatalf("it makes %q again, error %v", healed, err)
		}
		if current := r.servers[0].Current(); current == nil {
			t.Fatal("a server with a damaged copy has caught up")
		}
	}
	waitForReplicas(ctx, t, r.cluster, recordStream, uint64(r.at))
	if err := r.servers[2].Close(); err != nil {
		t.Fatal(err)
	}
	r.mustAdd(ctx, t, 1)
	r.check(ctx, t)
}

// forgetDamage updates streams until the first server's health no longer says that their files are damaged.
func forgetDamage(ctx context.Context, t *testing.T, c *cluster) {
	t.Helper()
	_, js := streamsOf(t, c.servers[1])
	for n, forgotten := 0, false; !forgotten; n++ {
		for _, e := range c.servers[0].NATS().Healthz(&server.HealthzOptions{Details: true}).Errors {
			if strings.Contains(e.Error, "corrupt") {
				forgotten = false
				if s, err := js.Stream(ctx, e.Stream); err == nil {
					conf := s.CachedInfo().Config
					conf.Description = fmt.Sprint("update ", n)
					_, _ = js.UpdateStream(ctx, conf) // the next look says what came of it
				}
				break
			}
			forgotten = forgotten || e.Stream == recordStream && strings.Contains(e.Error, "group node missing")
		}
		if ctx.Err() != nil {
			t.Fatal("updates do not make the server forget the damage")
		}
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
	_, js := streamsOf(t, c.servers[1])
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

// A server that leads a log stops, planned, while somebody appends and somebody reads. Nobody waits
// for an answer that never comes: here an append that is not told of the new leader would wait for an
// hour.
func TestPlannedStops(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := startRecord(ctx, t, time.Hour)
	var appended atomic.Int64
	stop := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := r.add(ctx); err != nil {
				t.Error(err)
				return
			}
			appended.Add(1)
		}
	})
	for _, i := range []int{0, 2} {
		r.prefer(ctx, t, recordStream, r.options[i].Node)
		r.restart(t, i, func(string) {
			info, err := r.servers[1].NATS().Jsz(&server.JSzOptions{Streams: true})
			if err != nil {
				t.Fatal(err)
			}
			if one := info.AccountDetails[0].Streams[0]; one.Cluster.Leader == "" || info.Meta.Leader == "" {
				t.Errorf("%s has stopped, and nobody leads %s, or the meta group", r.options[i].Node, one.Name)
			}
			for had := appended.Load(); appended.Load() < had+10 && ctx.Err() == nil && !t.Failed(); {
				runtime.Gosched()
			}
		})
		waitForReplicas(ctx, t, r.cluster, recordStream, 0)
	}
	close(stop)
	working.Wait()
	r.check(ctx, t)
}

// prefer makes a server lead a stream.
func (c *cluster) prefer(ctx context.Context, t *testing.T, stream, node string) {
	t.Helper()
	conn, js := streamsOf(t, c.servers[1])
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
