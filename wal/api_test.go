package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentSize: wal.MinSegmentSize})
	appendTo(t, l, 100)

	_, err := wal.Open(dir, wal.Options{})
	wantIs(t, "second opener", err, wal.ErrLocked)
	_, err = l.Append(make([]byte, wal.MaxRecord+1))
	wantIs(t, "Append of too much", err, wal.ErrTooLarge)
	_, err = l.AppendSync(t.Context(), make([]byte, wal.MaxRecord+1))
	wantIs(t, "AppendSync of too much", err, wal.ErrTooLarge)
	_, err = l.AppendBatch([][]byte{nil, make([]byte, wal.MaxRecord+1)})
	wantIs(t, "AppendBatch of too long a record", err, wal.ErrTooLarge)
	big := make([]byte, wal.MaxRecord)
	_, err = l.AppendBatch([][]byte{big, big, big, big})
	wantIs(t, "AppendBatch of too much", err, wal.ErrTooLarge)
	_, err = l.Read(100, nil)
	wantIs(t, "Read at Next", err, wal.ErrNotFound)
	_, err = l.View(1 << 40)
	wantIs(t, "View beyond Next", err, wal.ErrNotFound)
	for _, err := range l.Records(101) {
		wantIs(t, "Records beyond Next", err, wal.ErrNotFound)
	}
	for _, err := range l.Records(100) {
		t.Errorf("Records at Next yielded something: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.AppendSync(cancelled, nil)
	wantIs(t, "AppendSync with a context that is over", err, context.Canceled)
	if l.Next() != 100 {
		t.Errorf("refused appends took offsets: Next is %d", l.Next())
	}
	if err := errors.Join(l.Flush(), l.TrimBefore(50)); err != nil {
		t.Fatal(err)
	}
	if l.First() == 0 || l.First() > 50 {
		t.Errorf("First is %d after TrimBefore(50)", l.First())
	}
	_, err = l.Read(l.First()-1, nil)
	wantIs(t, "Read below First", err, wal.ErrTrimmed)
	for _, err := range l.Records(0) {
		wantIs(t, "Records below First", err, wal.ErrTrimmed)
	}
	wantIs(t, "TrimBefore beyond Next", l.TrimBefore(101), wal.ErrNotFound)

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	checkRefuses(t, l, wal.ErrClosed)
	_, err = l.Read(l.First(), nil)
	wantIs(t, "Read after Close", err, wal.ErrClosed)
	wantIs(t, "Close after Close", l.Close(), wal.ErrClosed)

	for _, o := range []wal.Options{{SegmentSize: 1}, {SegmentSize: wal.MaxSegmentSize + 1}, {SyncInterval: 1}, {RetainAge: -1}, {RetainBytes: -1}} {
		_, err := wal.Open(t.TempDir(), o)
		wantIs(t, fmt.Sprintf("Open with %+v", o), err, wal.ErrOptions)
	}
}

// checkRefuses checks that nothing that changes a log is accepted.
func checkRefuses(t testing.TB, l *wal.Log, want error) {
	t.Helper()
	_, err := l.Append(nil)
	wantIs(t, "Append", err, want)
	_, err = l.AppendBatch([][]byte{nil})
	wantIs(t, "AppendBatch", err, want)
	_, err = l.AppendSync(t.Context(), nil)
	wantIs(t, "AppendSync", err, want)
	wantIs(t, "Sync", l.Sync(), want)
	wantIs(t, "Flush", l.Flush(), want)
	wantIs(t, "TrimBefore", l.TrimBefore(0), want)
	wantIs(t, "TrimToSize", l.TrimToSize(0), want)
}

func TestReadOnly(t *testing.T) {
	_, err := wal.Open(t.TempDir(), wal.Options{ReadOnly: true})
	wantIs(t, "reading a log that does not exist", err, fs.ErrNotExist)

	dir := t.TempDir()
	w := open(t, dir, wal.Options{SegmentSize: wal.MinSegmentSize})
	appendTo(t, w, 90)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// Reopened with room for all that comes, so that the writer does nothing
	// in the background meanwhile.
	w = open(t, dir, wal.Options{})
	appendTo(t, w, 100)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	r := open(t, dir, wal.Options{ReadOnly: true})
	checkRange(t, r, 0, 100)
	checkRefuses(t, r, wal.ErrReadOnly)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if after := listing(t, dir); after != before {
		t.Errorf("reading changed the directory from\n%s to\n%s", before, after)
	}

	for _, denied := range []error{syscall.EROFS, fs.ErrPermission} {
		m := vfs.NewMem()
		m.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind.Changes() {
				return vfs.Fault{Err: denied}
			}
			return vfs.Fault{}
		})
		_, err := wal.Open(memDir, on(m, wal.Options{}))
		wantIs(t, "Open of a read-only directory", err, wal.ErrReadOnly)
		wantIs(t, "Open of a read-only directory", err, denied)
	}

	// A directory in which files can be written to, but none made.
	_, err = wal.Open(dir, on(sealedFS{vfs.OS()}, wal.Options{}))
	wantIs(t, "Open where no file can be made", err, wal.ErrReadOnly)
	if os.Geteuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(dir, 0o700) }() // for it to be removed
		_, err = wal.Open(dir, wal.Options{})
		wantIs(t, "Open where no file can be made", err, wal.ErrReadOnly)
	}
}

// sealedFS has directories that cannot be written to.
type sealedFS struct{ vfs.FS }

func (sealedFS) CheckWritable(string) error { return fs.ErrPermission }

func listing(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, e.Name(), info.Size(), info.ModTime())
	}
	return b.String()
}

func TestSizes(t *testing.T) {
	dir := t.TempDir()
	sizes := []int{0, 1, 7, 8, 9, 4095, 4096, 64 << 10, 5 << 20, 0, wal.MaxRecord, 0, 3}
	r := rand.NewChaCha8([32]byte{})
	var want [][]byte
	for _, size := range sizes {
		data := make([]byte, size)
		r.Read(data)
		want = append(want, data)
	}
	check := func(l *wal.Log) {
		t.Helper()
		for i, data := range want {
			if got, err := l.Read(uint64(i), nil); err != nil || !bytes.Equal(got, data) {
				t.Fatalf("record %d of %d bytes: got %d bytes, %v", i, len(data), len(got), err)
			}
		}
	}
	l := open(t, dir, wal.Options{SegmentSize: 1 << 20})
	for i, data := range want {
		if off, err := l.Append(data); err != nil || off != uint64(i) {
			t.Fatalf("Append of %d bytes: offset %d, %v", len(data), off, err)
		}
	}
	check(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{wal.MinSegmentSize, 0} {
		l = open(t, dir, wal.Options{SegmentSize: size})
		check(l)
		if _, err := l.Append([]byte("more")); err != nil {
			t.Fatal(err)
		}
		want = append(want, []byte("more"))
		check(l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSegmentSize checks that no file is larger than it may be.
func TestSegmentSize(t *testing.T) {
	for _, size := range []int{0, 1, 3, 100, 500} {
		dir := t.TempDir()
		l := open(t, dir, wal.Options{SegmentSize: wal.MinSegmentSize})
		for range 3000 {
			if _, err := l.Append(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if size == 3 {
				if err := l.Flush(); err != nil { // groups of one record
					t.Fatal(err)
				}
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
		if err != nil || len(files) < 2 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > wal.MinSegmentSize {
				t.Errorf("records of %d bytes: %s has %d bytes, want at most %d", size, file, info.Size(), wal.MinSegmentSize)
			}
		}
	}
}

func TestRetention(t *testing.T) {
	t.Run("bytes", func(t *testing.T) {
		l := open(t, t.TempDir(), wal.Options{SegmentSize: wal.MinSegmentSize})
		appendTo(t, l, 500)
		if err := l.Flush(); err != nil { // so that no file grows any more
			t.Fatal(err)
		}
		if err := l.TrimToSize(20 << 10); err != nil {
			t.Fatal(err)
		}
		s := l.Stat()
		if s.Bytes > 20<<10 || s.Segments < 4 || s.First == 0 {
			t.Errorf("after TrimToSize: %+v", s)
		}
		checkRange(t, l, s.First, 500)
	})
	t.Run("age", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, l := openMem(t, wal.Options{SegmentSize: wal.MinSegmentSize, RetainAge: time.Hour})
			defer l.Close()
			for range 10 {
				appendTo(t, l, l.Next()+40)
				if err := l.Sync(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Minute) // the bubble's clock
				synctest.Wait()
			}
			// What is left was full within the last hour before the last append.
			if first := l.First(); first < 180 || first > 260 {
				t.Errorf("First is %d of %d", first, l.Next())
			}
			if err := l.TrimOlderThan(time.Now()); err != nil {
				t.Fatal(err)
			}
			if n := l.Stat().Segments; n != 1 {
				t.Errorf("%d segments are left", n)
			}
		})
	})
	t.Run("options", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, l := openMem(t, wal.Options{SegmentSize: wal.MinSegmentSize, RetainBytes: 30 << 10})
			defer l.Close()
			for range 50 {
				appendTo(t, l, l.Next()+20)
				if err := l.Flush(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if b := l.Stat().Bytes; b > 34<<10 {
					t.Fatalf("%d bytes are kept", b)
				}
			}
		})
	})
}

func TestSyncInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := wal.Open(memDir, on(vfs.NewMem(), wal.Options{SyncInterval: 50 * time.Millisecond}))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for i := range uint64(5) {
			appendTo(t, l, 10*(i+1))
			if l.Durable() != 10*i {
				t.Errorf("Durable is %d before the interval, want %d", l.Durable(), 10*i)
			}
			time.Sleep(51 * time.Millisecond) // the bubble's clock
			synctest.Wait()
			if l.Durable() != 10*(i+1) {
				t.Errorf("Durable is %d after the interval, want %d", l.Durable(), 10*(i+1))
			}
		}
	})
}

func TestSyncEvery(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{SyncEvery: 10})
	for i := range uint64(95) {
		appendTo(t, l, i+1)
		if want := (i + 1) / 10 * 10; l.Durable() != want {
			t.Fatalf("after %d records Durable is %d, want %d", i+1, l.Durable(), want)
		}
	}
}

// TestGroupCommit holds an fsync and checks that all who append meanwhile
// share the next one.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := openMem(t, wal.Options{})
		defer l.Close()
		var syncs atomic.Int32
		hold := make(chan struct{})
		m.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == vfs.OpSync {
				if syncs.Add(1) == 1 {
					<-hold
				}
			}
			return vfs.Fault{}
		})
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if _, err := l.AppendSync(context.Background(), []byte("x")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := syncs.Load(); n != 1 {
			t.Errorf("%d fsyncs were begun while one runs", n)
		}
		if l.Next() != 64 || l.Durable() != 0 {
			t.Errorf("Next %d, Durable %d while the fsync runs", l.Next(), l.Durable())
		}
		// A waiter whose context ends goes, and its record stays.
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := l.AppendSync(ctx, []byte("y"))
			gone <- err
		}()
		synctest.Wait()
		cancel()
		wantIs(t, "cancelled while waiting", <-gone, context.Canceled)
		close(hold)
		wg.Wait()
		if n := syncs.Load(); n != 2 {
			t.Errorf("64 writers took %d fsyncs, want 2", n)
		}
		if l.Durable() != 65 {
			t.Errorf("Durable is %d, want 65", l.Durable())
		}
		m.SetHook(nil)
	})
}

func TestFollow(t *testing.T) {
	for _, upTo := range []wal.Horizon{wal.UpToAppended, wal.UpToDurable} {
		l := open(t, t.TempDir(), wal.Options{SegmentSize: wal.MinSegmentSize})
		const total = 2000
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				want := uint64(0)
				for rec, err := range l.Follow(t.Context(), 0, upTo) {
					if err != nil || rec.Offset != want || !bytes.Equal(rec.Data, record(want)) {
						t.Errorf("follower at %d: offset %d, %d bytes, %v", want, rec.Offset, len(rec.Data), err)
						return
					}
					if upTo == wal.UpToDurable && rec.Offset >= l.Durable() {
						t.Errorf("follower got %d, which is not durable", rec.Offset)
					}
					if want++; want == total {
						return
					}
				}
			})
		}
		for l.Next() < total {
			appendTo(t, l, l.Next()+50)
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		ended := make(chan error)
		for _, stop := range []error{context.Canceled, wal.ErrClosed} {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				for _, err := range l.Follow(ctx, total, upTo) {
					ended <- err
				}
			}()
			if stop == wal.ErrClosed {
				l.Close()
			} else {
				cancel()
			}
			wantIs(t, "follower at the tail", <-ended, stop)
			cancel()
		}
	}
}

// TestReadersInside checks that readers that are inside a segment keep it:
// views, and iterations, through trimming and closing.
func TestReadersInside(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{SegmentSize: wal.MinSegmentSize})
	appendTo(t, l, 300)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	view, err := l.View(1)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for rec, err := range l.Views(0) {
		if errors.Is(err, wal.ErrTrimmed) && n > 5 {
			break
		}
		if err != nil || !bytes.Equal(rec.Data, record(n)) {
			t.Fatalf("record %d: %v", n, err)
		}
		if n++; n == 2 {
			if err := l.TrimBefore(250); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 5 {
		t.Errorf("the iteration got %d records of its segment", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(view.Data, record(1)) {
		t.Error("the view changed")
	}
	view.Release()
	view.Release()
	if view.Data != nil {
		t.Error("a released view has data")
	}
}

// TestManyReaders reads, iterates and views while appends, trims and at last
// Close go on.
func TestManyReaders(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{SegmentSize: 16 << 10, SyncEvery: 64})
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for {
				first, next := l.First(), l.Next()
				if next == first {
					continue
				}
				off := first + r.Uint64N(next-first)
				data, err := l.Read(off, nil)
				if errors.Is(err, wal.ErrClosed) {
					return
				}
				if err != nil && !errors.Is(err, wal.ErrTrimmed) || err == nil && !bytes.Equal(data, record(off)) {
					t.Errorf("Read(%d): %v", off, err)
					return
				}
				n := 0
				for rec, err := range l.Records(off) {
					if err == nil && !bytes.Equal(rec.Data, record(rec.Offset)) {
						t.Errorf("record %d differs", rec.Offset)
					}
					if n++; n > 20 || err != nil {
						break
					}
				}
			}
		})
	}
	for l.Next() < 5000 {
		appendTo(t, l, l.Next()+100)
		if next := l.Next(); next > 1500 {
			if err := l.TrimBefore(next - 1000); err != nil {
				t.Error(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// TestFileCutUnderReaders cuts a file that is mapped: reads report it, and the
// process lives.
func TestFileCutUnderReaders(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{})
	data := make([]byte, 1000)
	for range 100 {
		if _, err := l.Append(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "00000000000000000000.wal"), 4096); err != nil {
		t.Fatal(err)
	}
	_, err := l.Read(90, nil)
	wantIs(t, "Read beyond the cut", err, wal.ErrCorrupt)
	_, err = l.View(90)
	wantIs(t, "View beyond the cut", err, wal.ErrCorrupt)
	if got, err := l.Read(0, nil); err != nil || !bytes.Equal(got, data) {
		t.Errorf("Read before the cut: %d bytes, %v", len(got), err)
	}
}

func TestAllocations(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{SegmentSize: 8 << 20})
	data := make([]byte, 256)
	for range 1000 {
		if _, err := l.Append(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 512)
	offset := uint64(0)
	for name, op := range map[string]func() error{
		"Append": func() error { _, err := l.Append(data); return err },
		"Read":   func() error { offset++; _, err := l.Read(offset%1000, buf); return err },
		"View": func() error {
			v, err := l.View(5)
			v.Release()
			return err
		},
	} {
		if n := testing.AllocsPerRun(2000, func() {
			if err := op(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// TestModel compares the log with a slice, over random operations.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := vfs.NewMem()
		o := on(m, wal.Options{SegmentSize: wal.MinSegmentSize})
		l, err := wal.Open(memDir, o)
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(err)
		var model [][]byte
		var durable int
		data := rapid.SliceOfN(rapid.Byte(), 0, 700)
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				d := data.Draw(t, "data")
				_, err := l.Append(d)
				must(err)
				model = append(model, d)
			},
			"batch": func(t *rapid.T) {
				batch := rapid.SliceOfN(data, 0, 20).Draw(t, "batch")
				first, err := l.AppendBatch(batch)
				must(err)
				if first != uint64(len(model)) {
					t.Fatalf("batch at %d, want %d", first, len(model))
				}
				model = append(model, batch...)
			},
			"sync":  func(*rapid.T) { must(l.Sync()); durable = len(model) },
			"flush": func(*rapid.T) { must(l.Flush()) },
			"trim": func(t *rapid.T) {
				first := l.First()
				to := rapid.Uint64Range(0, uint64(len(model))).Draw(t, "to")
				must(l.TrimBefore(to))
				if l.First() > max(to, first) {
					t.Fatalf("TrimBefore(%d) made First %d, was %d", to, l.First(), first)
				}
			},
			"reopen": func(*rapid.T) {
				must(l.Close())
				durable = len(model)
				l, err = wal.Open(memDir, o)
				must(err)
			},
			"crash": func(*rapid.T) {
				m = m.Crash(vfs.Crash{})
				l.Close()
				o = on(m, o)
				l, err = wal.Open(memDir, o)
				must(err)
				if l.Next() < uint64(durable) || l.Next() > uint64(len(model)) {
					t.Fatalf("%d records after a crash, want %d to %d", l.Next(), durable, len(model))
				}
				model = model[:l.Next()]
				durable = len(model)
			},
			"": func(t *rapid.T) {
				if l.Next() != uint64(len(model)) || l.Durable() < uint64(durable) {
					t.Fatalf("Next %d, Durable %d, want %d and at least %d", l.Next(), l.Durable(), len(model), durable)
				}
				n := l.First()
				for rec, err := range l.Records(n) {
					must(err)
					if rec.Offset != n || !bytes.Equal(rec.Data, model[n]) {
						t.Fatalf("record %d differs", n)
					}
					n++
				}
				if n != l.Next() {
					t.Fatalf("records end at %d, want %d", n, l.Next())
				}
			},
		})
		must(l.Close())
	})
}
