package golden_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// steps runs tasks in a fixed order, with a clock and entropy that a test controls. So the same requests
// give the same bytes in every run.
type steps struct {
	tasks []func()
	now   time.Time
	chaos *rand.ChaCha8
}

func newSteps() *steps {
	return &steps{now: time.UnixMilli(1_800_000_000_000), chaos: rand.NewChaCha8([32]byte{1})}
}

func (s *steps) Go(task func()) { s.tasks = append(s.tasks, task) }

func (s *steps) Step() {
	task := s.tasks[0]
	s.tasks = s.tasks[1:]
	task()
}

func (s *steps) Every(time.Duration, func() bool) {} // only the test moves the clock

func (s *steps) Now() time.Time { return s.now }

func (s *steps) Elapsed() time.Duration { return time.Duration(s.now.UnixNano()) }

func (s *steps) Entropy(p []byte) { s.chaos.Read(p) } // never fails

// newestKept returns the newest format level that testdata/golden has a directory of.
func newestKept(t *testing.T) uint8 {
	t.Helper()
	dirs := versions(t)
	return uint8(number(t, dirs[len(dirs)-1]))
}

// openIn opens a data directory in the world of s, and one of its realms.
func openIn(t *testing.T, s *steps, dir, realm string, trim bool) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	every := int64(-1) // bytes
	if trim {
		every = 1 << 40
	}
	level := kuji.FormatLevel()
	if _, err := os.Stat(dir); err != nil && *write == "" { // a new one: a level that is not complete yet has no directory
		level = newestKept(t)
	}
	e, err := hook.Open(vfs.OS(), s, dir, kuji.Options{Now: s.Now, SegmentSize: 4096, SnapshotEvery: every, TrimLog: trim, FormatLevel: func() uint8 { return level }})
	if err != nil {
		t.Fatal(err)
	}
	engine := e.(*kuji.Engine)
	t.Cleanup(func() { engine.Close() }) // the error of one that crashed does not matter
	r, err := engine.Realm(realm)
	if err != nil {
		t.Fatal(err)
	}
	return engine, r
}

// open opens a data directory on the machine, long after it was written, and one of its realms.
func open(t *testing.T, dir, realm string) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	s := newSteps()
	e, err := kuji.Open(dir, kuji.Options{Now: s.Now, ClockConfirmed: s.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) // tests that care close it themselves
	r, err := e.Realm(realm)
	if err != nil {
		t.Fatal(err)
	}
	return e, r
}

// alarms are steps on which alarms ring, each once, as soon as it is their turn.
type alarms struct {
	*steps
	elapsed time.Duration
}

func (a *alarms) Elapsed() time.Duration { return a.elapsed }

func (a *alarms) Every(interval time.Duration, task func() bool) {
	a.Go(func() {
		a.elapsed += interval
		task()
	})
}

// settle runs what was queued, and what that queues: a realm that was opened settles what is due.
func (a *alarms) settle() {
	for range 1000 {
		if len(a.tasks) == 0 {
			return
		}
		a.Step()
	}
}

// openStill is open of an engine that does nothing before it is told to settle.
func openStill(t *testing.T, dir, realm string) (*alarms, *kuji.Engine, *kuji.Realm) {
	t.Helper()
	s := &alarms{steps: newSteps()}
	e, err := hook.Open(vfs.OS(), s, dir, kuji.Options{Now: s.Now, ClockConfirmed: s.now})
	if err != nil {
		t.Fatal(err)
	}
	engine := e.(*kuji.Engine)
	t.Cleanup(func() { engine.Close() }) // tests that care close it themselves
	r, err := engine.Realm(realm)
	if err != nil {
		t.Fatal(err)
	}
	return s, engine, r
}

func closed(t *testing.T, e *kuji.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, yaml string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func do(t *testing.T, r *kuji.Realm, req kuji.Request) kuji.Result {
	t.Helper()
	res, err := r.Do(t.Context(), req)
	if err != nil {
		t.Fatalf("%+v: %v", req, err)
	}
	return res
}

func snapshot(t *testing.T, r *kuji.Realm) {
	t.Helper()
	if _, err := r.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func importCodes(t *testing.T, r *kuji.Realm, list string, codes []string) {
	t.Helper()
	if _, err := r.Codes().Import(t.Context(), list, codes); err != nil {
		t.Fatal(err)
	}
}

// copied copies a directory to one of the test's own.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
