package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// conformance is what [vfs.FS] promises, crashes aside: each implementation
// has to pass all of it. dir is an empty directory.
var conformance = []struct {
	name string
	run  func(t *testing.T, fsys vfs.FS, dir string)
}{
	{"create", conformCreate},
	{"open", conformOpen},
	{"read and write", conformReadWrite},
	{"truncate", conformTruncate},
	{"remove", conformRemove},
	{"rename", conformRename},
	{"mkdirall", conformMkdirAll},
	{"list and stat", conformList},
	{"sync", conformSync},
	{"lock", conformLock},
	{"allocate", conformAllocate},
	{"drop cache", conformDropCache},
	{"start write", conformStartWrite},
	{"map", conformMap},
	{"map outlives", conformMapOutlives},
	{"close", conformClose},
	{"concurrent", conformConcurrent},
}

func testConformance(t *testing.T, open func(t *testing.T) (vfs.FS, string)) {
	for _, c := range conformance {
		t.Run(c.name, func(t *testing.T) {
			fsys, dir := open(t)
			c.run(t, fsys, dir)
		})
	}
}

func TestMemConforms(t *testing.T) {
	testConformance(t, func(t *testing.T) (vfs.FS, string) {
		m := vfs.NewMem()
		must(t, m.MkdirAll("/work"))
		return m, "/work"
	})
}

func TestOSConforms(t *testing.T) {
	testConformance(t, func(t *testing.T) (vfs.FS, string) {
		return vfs.OS(), filepath.ToSlash(t.TempDir())
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: got error %v, want %v", what, got, want)
	}
}

// create makes a file with contents and leaves it open.
func create(t *testing.T, fsys vfs.FS, name, contents string) vfs.File {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	write(t, f, contents, 0)
	return f
}

func write(t *testing.T, f vfs.File, s string, off int64) {
	t.Helper()
	n, err := f.WriteAt([]byte(s), off)
	if n != len(s) || err != nil {
		t.Fatalf("WriteAt of %d bytes at %d: got %d, %v", len(s), off, n, err)
	}
}

func contents(t *testing.T, f vfs.File) string {
	t.Helper()
	size, err := f.Size()
	must(t, err)
	p := make([]byte, size)
	n, err := f.ReadAt(p, 0)
	if n != len(p) || err != nil && err != io.EOF {
		t.Fatalf("ReadAt of %d bytes: got %d, %v", len(p), n, err)
	}
	return string(p)
}

func wantContents(t *testing.T, f vfs.File, want string) {
	t.Helper()
	if got := contents(t, f); got != want {
		t.Fatalf("contents: got %q, want %q", clip(got), clip(want))
	}
}

func clip(s string) string {
	if len(s) > 200 {
		return fmt.Sprintf("%s… (%d bytes)", s[:200], len(s))
	}
	return s
}

// wantFile checks the contents of a file by its name.
func wantFile(t *testing.T, fsys vfs.FS, name, want string) {
	t.Helper()
	f, err := fsys.Open(name)
	must(t, err)
	wantContents(t, f, want)
	must(t, f.Close())
}

func wantList(t *testing.T, fsys vfs.FS, dir string, want ...string) {
	t.Helper()
	got, err := fsys.List(dir)
	must(t, err)
	if !slices.Equal(got, want) {
		t.Fatalf("List(%s): got %q, want %q", dir, got, want)
	}
}

func conformCreate(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, path.Join(dir, "a"), "")
	wantContents(t, f, "")
	write(t, f, "hello", 0)
	wantContents(t, f, "hello")
	_, err := fsys.Create(path.Join(dir, "a"))
	wantErr(t, "second create", err, fs.ErrExist)
	wantContents(t, f, "hello")
	must(t, f.Close())
	_, err = fsys.Create(path.Join(dir, "missing", "a"))
	wantErr(t, "create in a missing directory", err, fs.ErrNotExist)
	_, err = fsys.Create(path.Join(dir, "a", "b"))
	wantErr(t, "create below a file", err, syscall.ENOTDIR)
}

func conformOpen(t *testing.T, fsys vfs.FS, dir string) {
	name := path.Join(dir, "a")
	_, err := fsys.Open(name)
	wantErr(t, "Open of nothing", err, fs.ErrNotExist)
	_, err = fsys.OpenWrite(name)
	wantErr(t, "OpenWrite of nothing", err, fs.ErrNotExist)
	must(t, create(t, fsys, name, "0123456789").Close())

	r, err := fsys.Open(name)
	must(t, err)
	if n, err := r.WriteAt([]byte("x"), 0); n != 0 || err == nil {
		t.Fatalf("WriteAt to a file opened for reading: got %d, %v", n, err)
	}
	if err := r.Truncate(0); err == nil {
		t.Fatal("Truncate of a file opened for reading: no error")
	}
	w, err := fsys.OpenWrite(name)
	must(t, err)
	write(t, w, "ab", 3)
	wantContents(t, r, "012ab56789")
	wantContents(t, w, "012ab56789")
	must(t, r.Close())
	must(t, w.Close())
}

func conformReadWrite(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, path.Join(dir, "a"), "0123456789")
	for _, c := range []struct {
		off  int64
		n    int
		want string
		err  error
	}{
		{0, 10, "0123456789", nil},
		{0, 11, "0123456789", io.EOF},
		{9, 1, "9", nil},
		{9, 2, "9", io.EOF},
		{10, 1, "", io.EOF},
		{11, 1, "", io.EOF},
		{1 << 20, 4, "", io.EOF},
		{0, 0, "", nil},
	} {
		p := make([]byte, c.n)
		n, err := f.ReadAt(p, c.off)
		if string(p[:n]) != c.want || err != c.err {
			t.Errorf("ReadAt(%d bytes, %d): got %q, %v, want %q, %v", c.n, c.off, p[:n], err, c.want, c.err)
		}
	}
	if _, err := f.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
		t.Errorf("ReadAt(-1): got %v", err)
	}
	if _, err := f.WriteAt(make([]byte, 1), -1); err == nil {
		t.Error("WriteAt(-1): no error")
	}
	write(t, f, "", 100) // does not extend
	wantContents(t, f, "0123456789")
	write(t, f, "end", 5000) // a hole, over a page's boundary
	want := "0123456789" + string(make([]byte, 4990)) + "end"
	wantContents(t, f, want)
	long := string(bytes.Repeat([]byte("abcdefg"), 3000))
	write(t, f, long, 4000)
	wantContents(t, f, want[:4000]+long)
	must(t, f.Close())
}

func conformTruncate(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, path.Join(dir, "a"), "0123456789")
	must(t, f.Truncate(4))
	wantContents(t, f, "0123")
	must(t, f.Truncate(8))
	wantContents(t, f, "0123\x00\x00\x00\x00")
	must(t, f.Truncate(9000))
	write(t, f, "x", 8999)
	must(t, f.Truncate(8))
	must(t, f.Truncate(10000))
	wantContents(t, f, "0123"+string(make([]byte, 9996)))
	must(t, f.Truncate(0))
	wantContents(t, f, "")
	if err := f.Truncate(-1); err == nil {
		t.Error("Truncate(-1): no error")
	}
	must(t, f.Close())
}

func conformRemove(t *testing.T, fsys vfs.FS, dir string) {
	name := path.Join(dir, "a")
	wantErr(t, "Remove of nothing", fsys.Remove(name), fs.ErrNotExist)
	f := create(t, fsys, name, "still here")
	must(t, fsys.Remove(name))
	_, err := fsys.Stat(name)
	wantErr(t, "Stat after Remove", err, fs.ErrNotExist)
	wantContents(t, f, "still here")
	write(t, f, "S", 0)
	wantContents(t, f, "Still here")
	must(t, f.Sync())
	must(t, create(t, fsys, name, "another").Close())
	wantContents(t, f, "Still here")
	must(t, f.Close())
	wantFile(t, fsys, name, "another")

	sub := path.Join(dir, "sub")
	must(t, fsys.MkdirAll(sub))
	must(t, create(t, fsys, path.Join(sub, "b"), "").Close())
	if err := fsys.Remove(sub); err == nil {
		t.Fatal("Remove of a directory with a file: no error")
	}
	must(t, fsys.Remove(path.Join(sub, "b")))
	must(t, fsys.Remove(sub))
	wantList(t, fsys, dir, "a")
}

func conformRename(t *testing.T, fsys vfs.FS, dir string) {
	a, b, c := path.Join(dir, "a"), path.Join(dir, "b"), path.Join(dir, "sub", "c")
	wantErr(t, "Rename of nothing", fsys.Rename(a, b), fs.ErrNotExist)
	f := create(t, fsys, a, "A")
	old := create(t, fsys, b, "B")
	must(t, fsys.Rename(a, b))
	wantList(t, fsys, dir, "b")
	wantFile(t, fsys, b, "A")
	wantContents(t, f, "A")
	wantContents(t, old, "B") // replaced, and open still
	must(t, fsys.Rename(b, b))
	wantFile(t, fsys, b, "A")
	wantErr(t, "Rename into a missing directory", fsys.Rename(b, c), fs.ErrNotExist)
	must(t, fsys.MkdirAll(path.Dir(c)))
	must(t, fsys.Rename(b, c))
	wantList(t, fsys, dir, "sub")
	wantFile(t, fsys, c, "A")
	must(t, fsys.Rename(path.Dir(c), path.Join(dir, "moved")))
	wantFile(t, fsys, path.Join(dir, "moved", "c"), "A")
	must(t, create(t, fsys, a, "A").Close())
	if err := fsys.Rename(a, path.Join(dir, "moved")); err == nil {
		t.Fatal("Rename of a file over a directory: no error")
	}
	wantFile(t, fsys, a, "A")
	must(t, f.Close())
	must(t, old.Close())
}

func conformMkdirAll(t *testing.T, fsys vfs.FS, dir string) {
	deep := path.Join(dir, "a", "b", "c")
	must(t, fsys.MkdirAll(deep))
	must(t, fsys.MkdirAll(deep))
	must(t, fsys.MkdirAll(dir))
	wantList(t, fsys, path.Join(dir, "a"), "b")
	wantList(t, fsys, deep)
	must(t, create(t, fsys, path.Join(deep, "f"), "").Close())
	wantErr(t, "MkdirAll over a file", fsys.MkdirAll(path.Join(deep, "f")), fs.ErrExist)
	wantErr(t, "MkdirAll below a file", fsys.MkdirAll(path.Join(deep, "f", "g")), syscall.ENOTDIR)
}

func conformList(t *testing.T, fsys vfs.FS, dir string) {
	wantList(t, fsys, dir)
	for _, name := range []string{"b", "a", "c", "10", "9", "B"} {
		must(t, create(t, fsys, path.Join(dir, name), "12345").Close())
	}
	must(t, fsys.MkdirAll(path.Join(dir, "d")))
	wantList(t, fsys, dir, "10", "9", "B", "a", "b", "c", "d")
	_, err := fsys.List(path.Join(dir, "missing"))
	wantErr(t, "List of nothing", err, fs.ErrNotExist)
	_, err = fsys.List(path.Join(dir, "a"))
	wantErr(t, "List of a file", err, syscall.ENOTDIR)

	info, err := fsys.Stat(path.Join(dir, "a"))
	must(t, err)
	if info.Name() != "a" || info.Size() != 5 || info.IsDir() || !info.Mode().IsRegular() {
		t.Errorf("Stat of a file: got %q, %d bytes, %v", info.Name(), info.Size(), info.Mode())
	}
	info, err = fsys.Stat(path.Join(dir, "d"))
	must(t, err)
	if info.Name() != "d" || !info.IsDir() || !info.Mode().IsDir() {
		t.Errorf("Stat of a directory: got %q, %v", info.Name(), info.Mode())
	}
	_, err = fsys.Stat(path.Join(dir, "missing"))
	wantErr(t, "Stat of nothing", err, fs.ErrNotExist)
}

func conformSync(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, path.Join(dir, "a"), "data")
	must(t, f.Sync())
	must(t, f.Sync())
	must(t, fsys.SyncDir(dir))
	wantContents(t, f, "data")
	must(t, f.Close())
	wantErr(t, "SyncDir of nothing", fsys.SyncDir(path.Join(dir, "missing")), fs.ErrNotExist)
}

func conformLock(t *testing.T, fsys vfs.FS, dir string) {
	name := path.Join(dir, "locked")
	must(t, fsys.MkdirAll(name))
	must(t, fsys.MkdirAll(path.Join(dir, "other")))
	l, err := fsys.Lock(name)
	must(t, err)
	_, err = fsys.Lock(name)
	wantErr(t, "second Lock", err, vfs.ErrLocked)
	if runtime.GOOS != "windows" { // where a file stands for the lock, and nobody can remove it
		wantList(t, fsys, name)
		must(t, fsys.Rename(name, name+"2")) // the lock goes with the directory
		_, err = fsys.Lock(name + "2")
		wantErr(t, "Lock under another name", err, vfs.ErrLocked)
		must(t, fsys.Rename(name+"2", name))
	}
	other, err := fsys.Lock(path.Join(dir, "other"))
	must(t, err)
	f := create(t, fsys, path.Join(name, "a"), "data")
	must(t, l.Sync())
	must(t, l.Close())
	l, err = fsys.Lock(name)
	must(t, err)
	must(t, l.Close())
	must(t, other.Close())
	must(t, f.Close())
	_, err = fsys.Lock(path.Join(dir, "missing"))
	wantErr(t, "Lock of nothing", err, fs.ErrNotExist)
	if _, err = fsys.Lock(path.Join(name, "a")); err == nil {
		t.Error("a file was locked as a directory")
	}
}

func conformAllocate(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, path.Join(dir, "a"), "data")
	a, ok := f.(vfs.Allocator)
	if !ok {
		t.Skip("files of this file system cannot allocate")
	}
	if err := a.Allocate(100_000); errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip("the file system below cannot allocate")
	} else if err != nil {
		t.Fatal(err)
	}
	wantContents(t, f, "data")
	write(t, f, "beyond", 10_000)
	wantContents(t, f, "data"+string(make([]byte, 9_996))+"beyond")
	must(t, f.Truncate(2))
	wantContents(t, f, "da")
	must(t, f.Close())
}

func conformDropCache(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, path.Join(dir, "a"), "data")
	d, ok := f.(vfs.CacheDropper)
	if !ok {
		t.Skip("files of this file system cannot drop what is cached")
	}
	must(t, d.DropCache()) // what is not yet written stays
	wantContents(t, f, "data")
	must(t, f.Sync())
	must(t, d.DropCache())
	wantContents(t, f, "data")
	must(t, f.Close())
	if err := d.DropCache(); err == nil {
		t.Error("DropCache of a closed file: no error")
	}
}

func conformStartWrite(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, path.Join(dir, "a"), "data")
	s, ok := f.(vfs.WriteStarter)
	if !ok {
		t.Skip("files of this file system cannot start a write")
	}
	if err := s.StartWrite(0, 100_000); errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		t.Skip("the file system below cannot start a write")
	} else if err != nil {
		t.Fatal(err)
	}
	wantContents(t, f, "data")
	must(t, f.Sync())
	wantContents(t, f, "data")
	must(t, f.Close())
	if err := s.StartWrite(0, 4); err == nil {
		t.Error("StartWrite of a closed file: no error")
	}
}

func conformMap(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, path.Join(dir, "a"), "0123456789")
	for _, length := range []int64{0, -1} {
		if _, err := f.Map(length); err == nil {
			t.Errorf("Map(%d): no error", length)
		}
	}
	m, err := f.Map(100_000) // longer than the file
	must(t, err)
	if n := len(m.Bytes()); n != 100_000 {
		t.Fatalf("Map(100000): got %d bytes", n)
	}
	short, err := f.Map(5)
	must(t, err)
	if got := string(m.Bytes()[:10]); got != "0123456789" {
		t.Fatalf("mapping: got %q", got)
	}
	write(t, f, "ABC", 4)
	if got := string(m.Bytes()[:10]); got != "0123ABC789" {
		t.Fatalf("mapping after a write: got %q", got)
	}
	if got := string(short.Bytes()); got != "0123A" {
		t.Fatalf("short mapping after a write: got %q", got)
	}
	must(t, f.Truncate(50_000))
	write(t, f, "tail", 40_000)
	w, err := fsys.OpenWrite(path.Join(dir, "a"))
	must(t, err)
	write(t, w, "by another handle", 60_000)
	must(t, w.Close())
	want := make([]byte, 60_017)
	copy(want, "0123ABC789")
	copy(want[40_000:], "tail")
	copy(want[60_000:], "by another handle")
	if got := m.Bytes()[:60_017]; !bytes.Equal(got, want) {
		t.Fatal("mapping after the file grew: wrong bytes")
	}
	must(t, f.Truncate(3))
	if got := string(m.Bytes()[:10]); got != "012\x00\x00\x00\x00\x00\x00\x00" {
		t.Fatalf("mapping after a truncate, same page: got %q", got)
	}
	must(t, short.Unmap())
	must(t, m.Unmap())
	must(t, m.Unmap())
	must(t, f.Close())
}

func conformMapOutlives(t *testing.T, fsys vfs.FS, dir string) {
	name := path.Join(dir, "a")
	f := create(t, fsys, name, "0123456789")
	r, err := fsys.Open(name)
	must(t, err)
	m, err := r.Map(10)
	must(t, err)
	must(t, r.Close())
	if got := string(m.Bytes()); got != "0123456789" {
		t.Fatalf("after Close: got %q", got)
	}
	must(t, fsys.Remove(name))
	write(t, f, "X", 9)
	must(t, f.Close())
	must(t, create(t, fsys, name, "another file").Close())
	if got := string(m.Bytes()); got != "012345678X" {
		t.Fatalf("after Remove: got %q", got)
	}
	must(t, m.Unmap())
}

func conformClose(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, path.Join(dir, "a"), "data")
	must(t, f.Close())
	_, err := f.ReadAt(make([]byte, 1), 0)
	wantErr(t, "ReadAt", err, fs.ErrClosed)
	_, err = f.WriteAt(make([]byte, 1), 0)
	wantErr(t, "WriteAt", err, fs.ErrClosed)
	_, err = f.Size()
	wantErr(t, "Size", err, fs.ErrClosed)
	if _, err = f.Map(1); err == nil {
		t.Error("Map: no error")
	}
	if err := f.Sync(); err == nil {
		t.Error("Sync: no error")
	}
	wantErr(t, "Truncate", f.Truncate(0), fs.ErrClosed)
	wantErr(t, "Close", f.Close(), fs.ErrClosed)
	wantFile(t, fsys, path.Join(dir, "a"), "data")
}

func conformConcurrent(t *testing.T, fsys vfs.FS, dir string) {
	const writers, block, blocks = 4, 700, 50
	f := create(t, fsys, path.Join(dir, "a"), "")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			p, back := bytes.Repeat([]byte{byte('a' + w)}, block), make([]byte, block)
			for i := range blocks {
				off := int64((i*writers + w) * block)
				if _, err := f.WriteAt(p, off); err != nil {
					t.Error(err)
				}
				if _, err := f.ReadAt(back, off); err != nil && err != io.EOF || !bytes.Equal(p, back) {
					t.Errorf("writer %d: read %q, %v", w, back[:10], err)
				}
				if err := f.Sync(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := contents(t, f)
	if len(got) != writers*block*blocks {
		t.Fatalf("size: got %d, want %d", len(got), writers*block*blocks)
	}
	for i := range writers * blocks {
		if want := bytes.Repeat([]byte{byte('a' + i%writers)}, block); got[i*block:(i+1)*block] != string(want) {
			t.Fatalf("block %d: got %q…", i, got[i*block:i*block+10])
		}
	}
	must(t, f.Close())
}
