package bench_test

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

var (
	dirFlag   = flag.String("dir", "", "directory for the logs, on the disk to measure; default is the system's for temporary files")
	largeFlag = flag.Bool("large", false, "measure with ten million players where a million is usual; takes about 3 GB of memory")
)

// small is set by the tests, which measure nothing.
var small = false

// size returns n, or less in a test.
func size(n int) int {
	if small {
		return min(n, 1000)
	}
	return n
}

// catalogs are parsed once each.
var catalogs sync.Map // string: *catalog.Catalog

// catalogOf returns a catalog with one pool, "bench", of n entries that give an item each, with
// weights from 1 to 100 or with more stock than any benchmark draws.
func catalogOf(tb testing.TB, mode string, n int) *catalog.Catalog {
	tb.Helper()
	key := fmt.Sprint(mode, n)
	if c, ok := catalogs.Load(key); ok {
		return c.(*catalog.Catalog)
	}
	var b strings.Builder
	b.WriteString("kuji: 1\nitems:\n  gem: {kind: currency}\n")
	for i := range 25 {
		fmt.Fprintf(&b, "  item%d: {}\n", i)
	}
	fmt.Fprintf(&b, "pools:\n  bench:\n    mode: %s\n    entries:\n", mode)
	written := min(n, 1000) // in YAML; a million would be too long for a catalog
	for i := range written {
		odds := fmt.Sprintf("weight: %d", 1+i%100)
		if mode == "raffle" {
			odds = fmt.Sprintf("stock: %d", 10_000_000*(1+i%100))
		}
		fmt.Fprintf(&b, "      - {id: e%d, %s, reward: {items: {item%d: 1}}}\n", i, odds, i%25)
	}
	c, err := catalog.Parse([]byte(b.String()))
	if err != nil {
		tb.Fatal(err)
	}
	pool := &c.Pools[0]
	for i := written; i < n; i++ {
		e := pool.Entries[i%written] // repeat its weights and items
		e.ID = fmt.Sprint("e", i)
		pool.Entries = append(pool.Entries, e)
	}
	catalogs.Store(key, c)
	return c
}

// weightsOf returns the weights of catalogOf.
func weightsOf(n int) []uint64 {
	weights := make([]uint64, n)
	for i := range weights {
		weights[i] = uint64(1 + i%100)
	}
	return weights
}

// scratch returns an empty directory that is removed when tb ends.
func scratch(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(*dirFlag, "kuji-bench-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// fixture is what a benchmark works on. It is made once for all rounds in which the testing
// package looks for a number of operations.
type fixture struct {
	realm   *kuji.Realm
	players []string
}

// logs are the policies of the log, by the names that benchmarks use.
var logs = []struct {
	name string
	o    kuji.Options
}{
	{"buffered", kuji.Options{Sync: kuji.SyncNone}},
	{"interval", kuji.Options{Sync: kuji.SyncInterval}},
	{"durable", kuji.Options{Sync: kuji.SyncAlways}},
}

// open makes a realm with a pool and players, until tb ends.
func open(tb testing.TB, o kuji.Options, c *catalog.Catalog, players int) *fixture {
	tb.Helper()
	e, err := kuji.Open(scratch(tb), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	r, err := e.Realm("bench")
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := r.Apply(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	f := &fixture{realm: r, players: playerIDs(players)}
	meet(tb, r, f.players)
	return f
}

// playerIDs returns "p0", "p1" …
func playerIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("p", i)
	}
	return ids
}

// meet adds every player and gives each a gem, so that benchmarks measure only draws.
func meet(tb testing.TB, r *kuji.Realm, ids []string) {
	tb.Helper()
	reqs := make([]kuji.Request, 0, kuji.MaxBatch)
	for i, id := range ids {
		reqs = append(reqs, kuji.Grant{Player: id, Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
		if len(reqs) == kuji.MaxBatch || i == len(ids)-1 {
			if _, err := r.DoAll(tb.Context(), reqs); err != nil {
				tb.Fatal(err)
			}
			reqs = reqs[:0]
		}
	}
}

// lastID numbers request ids over all benchmarks of a run.
var lastID atomic.Uint64

func init() { lastID.Store(rand.Uint64() >> 16) }

// fresh makes the ids of wide requests for one goroutine: a new request id and a random player.
// Both are in memory that was just written, as if the request had just been read, so that reading
// them does not add cache misses to the measurement.
type fresh struct {
	last, end uint64
	players   uint64
	at        int
	ring      [2 * batchSize][20]byte // of the players' ids
}

// fresh returns a source of ids of wide requests for the fixture's players.
func (f *fixture) fresh() *fresh { return &fresh{players: uint64(len(f.players))} }

// next returns a new request id of 16 bytes, and a player's id that is valid for another batchSize
// calls.
func (n *fresh) next() (id, player string) {
	if n.last == n.end {
		const some = 1 << 16
		n.end = lastID.Add(some)
		n.last = n.end - some
	}
	n.last++
	jumbled := n.last * 0x9E3779B97F4A7C15
	var raw [8]byte
	var text [16]byte
	binary.BigEndian.PutUint64(raw[:], jumbled)
	hex.Encode(text[:], raw[:])
	n.at = (n.at + 1) % len(n.ring)
	b := strconv.AppendUint(append(n.ring[n.at][:0], 'p'), jumbled>>32%n.players, 10)
	return string(text[:]), unsafe.String(&b[0], len(b))
}

// meter reports what ns/op does not show.
type meter struct {
	b      *testing.B
	realm  *kuji.Realm
	before kuji.Stats
	memory runtime.MemStats
}

// start begins to measure. realm may be nil.
func start(b *testing.B, realm *kuji.Realm) *meter {
	m := &meter{b: b, realm: realm}
	if realm != nil {
		m.before = realm.Stats()
	}
	b.ReportAllocs()
	runtime.ReadMemStats(&m.memory)
	b.ResetTimer()
	return m
}

// stop ends the measurement of draws. Without a realm, logged is the number of bytes that a
// baseline has written.
func (m *meter) stop(draws int, logged int64) {
	m.b.StopTimer()
	took := max(m.b.Elapsed(), time.Nanosecond)
	m.b.ReportMetric(float64(draws)/took.Seconds(), "draws/s")
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	m.b.ReportMetric(float64(memory.NumGC-m.memory.NumGC)/float64(draws)*1e6, "gc/Mdraw")
	m.b.ReportMetric(float64(memory.Mallocs-m.memory.Mallocs)/float64(draws), "allocs/draw") // allocs/op has no fractions
	if m.realm != nil {
		after := m.realm.Stats()
		if got := after.Draws - m.before.Draws; got != uint64(draws) {
			m.b.Fatalf("%d draws were carried out, want %d", got, draws)
		}
		logged = int64(after.LogBytes - m.before.LogBytes)
	}
	if logged > 0 {
		m.b.ReportMetric(float64(logged)/float64(draws), "wal_bytes/draw")
	}
}

// must stops a benchmark on an error.
func must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}
