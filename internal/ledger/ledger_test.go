package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
)

// tape is a Machine that keeps the payloads of batches.
type tape struct{ batches []string }

func (m *tape) Change(e *ledger.Entry) error {
	if e.Kind() == ledger.KindBatch {
		m.batches = append(m.batches, string(e.Payload()))
	}
	return nil
}

func (m *tape) Remember(*ledger.Entry) error { return nil }

const realm = "r"

// faulty is a realm whose next appends end in an error of the test's choice, done or not.
type faulty struct {
	driver.Realm
	fail []func(after driver.Cursor, entry []byte) (driver.Cursor, error)
	keep bool // trimming drops nothing
}

func (f *faulty) Trim(ctx context.Context, before driver.Cursor) error {
	if f.keep {
		return nil
	}
	return f.Realm.Trim(ctx, before)
}

func (f *faulty) Append(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
	if len(f.fail) > 0 {
		next := f.fail[0]
		f.fail = f.fail[1:]
		return next(after, entry)
	}
	return f.Realm.Append(ctx, after, entry)
}

// open opens the realm at a node and takes it over.
func open(t *testing.T, s *drivertest.Shared, node int, key byte) (*ledger.Ledger, *tape, *faulty) {
	t.Helper()
	kept, err := s.Node(node).Open(t.Context(), realm, driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{Realm: kept}
	n := byte(0)
	l := ledger.New(ledger.Options{Realm: realm, Log: f, Rules: 1, Key: [32]byte{key}, Entropy: func(p []byte) {
		n++
		for i := range p {
			p[i] = byte(node)<<4 + n
		}
	}})
	m := &tape{}
	if err := l.Recover(m, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.TakeOver(m, func() int64 { return 1 }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // those that care close it themselves
	return l, m, f
}

func batch(payload string) []byte {
	return append(make([]byte, ledger.HeadSize(realm)), payload...)
}

func commit(t *testing.T, l *ledger.Ledger, payload string) {
	t.Helper()
	if err := l.Commit(batch(payload)); err != nil {
		t.Fatal(err)
	}
}

// read returns the batches in the log.
func read(t *testing.T, s *drivertest.Shared) (string, error) {
	t.Helper()
	kept, err := s.Node(9).Open(t.Context(), realm, driver.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	last, err := kept.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var m tape
	for e, err := range ledger.Walk(kept, realm, nil).Entries(t.Context(), last) {
		if err == nil {
			err = m.Change(&e)
		}
		if err != nil {
			return strings.Join(m.batches, " "), err
		}
	}
	return strings.Join(m.batches, " "), nil
}

// TestMeets: whatever stands where an entry was to go, the writer learns what became of it.
func TestMeets(t *testing.T) {
	ctx := context.Background()
	for _, unconditional := range []bool{false, true} {
		for name, tc := range map[string]struct {
			fail func(l *ledger.Ledger, f *faulty, late []byte) func(driver.Cursor, []byte) (driver.Cursor, error)
			want string
		}{
			"answer lost": {func(_ *ledger.Ledger, f *faulty, _ []byte) func(driver.Cursor, []byte) (driver.Cursor, error) {
				return func(after driver.Cursor, entry []byte) (driver.Cursor, error) {
					if _, err := f.Realm.Append(ctx, after, entry); err != nil {
						return 0, err
					}
					return 0, driver.ErrUnknown
				}
			}, "a b c"},
			"request lost": {func(*ledger.Ledger, *faulty, []byte) func(driver.Cursor, []byte) (driver.Cursor, error) {
				return func(driver.Cursor, []byte) (driver.Cursor, error) { return 0, driver.ErrUnknown }
			}, "a b c"},
			"a late begin": {func(_ *ledger.Ledger, f *faulty, late []byte) func(driver.Cursor, []byte) (driver.Cursor, error) {
				return func(after driver.Cursor, entry []byte) (driver.Cursor, error) {
					if _, err := f.Realm.Begin(ctx, late); err != nil {
						return 0, err
					}
					return f.Realm.Append(ctx, after, entry)
				}
			}, "a b c"},
		} {
			t.Run(fmt.Sprint(name, ", unconditional ", unconditional), func(t *testing.T) {
				s := drivertest.NewShared(drivertest.SharedOptions{Unconditional: unconditional})
				first, _, of := open(t, s, 1, 1)
				var late []byte
				for e, err := range of.Read(ctx, 0, 0) {
					if err != nil {
						t.Fatal(err)
					}
					late = bytes.Clone(e.Data) // the epoch-begin
					break
				}
				commit(t, first, "a")
				second, m, f := open(t, s, 2, 1)
				if fmt.Sprint(m.batches) != "[a]" {
					t.Errorf("the next writer found %q", m.batches)
				}
				f.fail = append(f.fail, tc.fail(second, f, late))
				commit(t, second, "b")
				commit(t, second, "c")
				if got, err := read(t, s); got != tc.want || err != nil {
					t.Errorf("in the log is %q, %v; want %q", got, err, tc.want)
				}
				var deposed *ledger.DeposedError
				if err := first.Commit(batch("late")); !errors.As(err, &deposed) || deposed.Epoch != 2 {
					t.Errorf("the first writer is told %v", err)
				}
				if got, err := read(t, s); got != tc.want || err != nil {
					t.Errorf("behind a deposed writer there is %q, %v; want %q", got, err, tc.want)
				}
			})
		}
	}
}

// TestLargePayload: what does not fit into an entry goes into a file, and damage of that is found.
func TestLargePayload(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	l, _, f := open(t, s, 1, 1)
	large := strings.Repeat("x", f.MaxEntry())
	commit(t, l, "a")
	commit(t, l, large)
	commit(t, l, "b")
	if got, err := read(t, s); got != "a "+large+" b" || err != nil {
		t.Errorf("%d bytes in the log, %v", len(got), err)
	}
	files, err := f.List(t.Context())
	if err != nil || len(files) != 1 || files[0].Size != int64(len(large)) {
		t.Fatalf("files %v, %v", files, err)
	}
	if err := f.Remove(t.Context(), files[0].Name); err != nil {
		t.Fatal(err)
	}
	var corrupt *ledger.CorruptError
	if got, err := read(t, s); got != "a" || !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "position 3") {
		t.Errorf("without the file: %d bytes, %v", len(got), err)
	}
	for _, other := range []string{large[1:] + "y", large[1:]} {
		if err := f.Remove(t.Context(), files[0].Name); err != nil {
			t.Fatal(err)
		}
		w, err := f.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(other)); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(t.Context(), files[0].Name); err != nil {
			t.Fatal(err)
		}
		if got, err := read(t, s); got != "a" || !errors.As(err, &corrupt) {
			t.Errorf("with another file: %d bytes, %v", len(got), err)
		}
	}
}

// TestSeedsSurvive: the next writer, elsewhere, reveals the seed of an epoch that a crash ended, if
// it has the key.
func TestSeedsSurvive(t *testing.T) {
	for _, key := range []byte{1, 2} {
		s := drivertest.NewShared(drivertest.SharedOptions{})
		first, _, _ := open(t, s, 1, 1)
		commit(t, first, "a")
		second, _, _ := open(t, s, 2, key)
		epochs := second.Epochs()
		if len(epochs) != 2 || epochs[0].Revealed != (key == 1) || (second.SeedsErr() == nil) != (key == 1) {
			t.Errorf("key %d: %v, %v", key, epochs[0].Revealed, second.SeedsErr())
		}
		if err := second.SeedsErr(); err != nil && !strings.Contains(err.Error(), "epoch 1 cannot be proven") {
			t.Error(err)
		}
	}
}

// nothing is a Loader that keeps nothing.
type nothing struct{}

func (nothing) Block(byte, []byte) error { return nil }
func (nothing) Loaded() error            { return nil }

// snapshot writes a snapshot of where the ledger stands.
func snapshot(t *testing.T, l *ledger.Ledger, whole bool) ledger.Snapshot {
	t.Helper()
	w, err := l.Create(t.Context(), whole, format.Newest)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Frame(1, []byte("state")); err != nil {
		t.Fatal(err)
	}
	f, err := w.Finish(t.Context(), &ledger.Footer{At: l.At, Epochs: l.Epochs(), Rules: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPruneLeavesNewer: a writer that was deposed while it wrote a snapshot removes none of those
// that its successor has taken since.
func TestPruneLeavesNewer(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	first, _, f := open(t, s, 1, 1)
	checker := func() ledger.Loader { return nothing{} }
	var old []ledger.Snapshot
	for range 3 {
		commit(t, first, "a")
		old = append(old, snapshot(t, first, true))
	}
	second, _, _ := open(t, s, 2, 1)
	commit(t, second, "b")
	newer := []ledger.Snapshot{snapshot(t, second, true)}
	commit(t, second, "c")
	newer = append(newer, snapshot(t, second, false))
	if err := first.Prune(t.Context(), true, checker); err != nil {
		t.Fatal(err)
	}
	left, _, err := first.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names, want []string
	for _, f := range left {
		names = append(names, f.Name())
	}
	for _, f := range append(old[1:], newer...) { // the newest chain of the first writer, and the one before it
		want = append(want, f.Name())
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("left are %q, want %q", names, want)
	}
	if at, err := f.First(t.Context()); err != nil || at != old[1].Cursor() {
		t.Errorf("the log begins at %d, want %d: %v", at, old[1].Cursor(), err)
	}
}

// TestPruneKeepsPayloads: payloads in files go with the entries that name them. A driver may keep
// entries that could go; as long as the log goes back to its beginning, whoever reads it from there
// finds all of them.
func TestPruneKeepsPayloads(t *testing.T) {
	for _, keep := range []bool{false, true} {
		s := drivertest.NewShared(drivertest.SharedOptions{})
		l, _, f := open(t, s, 1, 1)
		f.keep = keep
		for range 3 {
			commit(t, l, strings.Repeat("x", 2*f.MaxEntry()))
			snapshot(t, l, true)
		}
		if err := l.Prune(t.Context(), true, func() ledger.Loader { return nothing{} }); err != nil {
			t.Fatal(err)
		}
		files, err := f.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		payloads := 0
		for _, file := range files {
			if strings.HasSuffix(file.Name, ".payload") {
				payloads++
			}
		}
		if want := map[bool]int{false: 1, true: 3}[keep]; payloads != want {
			t.Errorf("%d payloads are left, want %d", payloads, want)
		}
		last, err := f.Last(t.Context())
		if err != nil || !keep {
			continue
		}
		for _, err := range ledger.Walk(f, realm, nil).Entries(t.Context(), last) {
			if err != nil {
				t.Errorf("the log, read from its beginning: %v", err)
			}
		}
	}
}

// TestGiveUpWritesWhatIsOpen: a realm that is closed writes its last batch, however large.
func TestGiveUpWritesWhatIsOpen(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	l, _, kept := open(t, s, 1, 1)
	l.GiveUp()
	large := strings.Repeat("large", kept.MaxEntry())
	for _, payload := range []string{"small", large} {
		if err := l.Commit(batch(payload)); err != nil {
			t.Fatalf("a batch of %d bytes: %v", len(payload), err)
		}
	}
	if err := l.EndEpoch(); err != nil {
		t.Fatal(err)
	}
	if _, m, _ := open(t, s, 2, 1); len(m.batches) != 2 || m.batches[1] != large {
		t.Errorf("the next writer reads %d batches", len(m.batches))
	}
}
