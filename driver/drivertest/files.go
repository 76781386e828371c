package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/kuji-dev/kuji/driver"
)

// large returns n bytes that do not repeat.
func large(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // never fails
	return data
}

// tryWrite writes a file in pieces.
func (e *env) tryWrite(r driver.Realm, name string, data []byte) error {
	w, err := r.Create(e.ctx)
	if err != nil {
		return err
	}
	defer w.Abort()
	for piece := range slices.Chunk(data, 100_003) {
		if n, err := w.Write(piece); err != nil {
			return err
		} else if n != len(piece) {
			return fmt.Errorf("wrote %d bytes of %d without an error", n, len(piece))
		}
	}
	return w.Commit(e.ctx, name)
}

func (e *env) write(r driver.Realm, name string, data []byte) {
	e.Helper()
	e.ok("write file "+name, e.tryWrite(r, name, data))
}

// content reads a file whole.
func (e *env) content(r driver.Realm, name string) []byte {
	e.Helper()
	f, err := r.OpenFile(e.ctx, name)
	e.ok("open file "+name, err)
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	e.ok("read file "+name, err)
	return data
}

func (e *env) list(r driver.Realm) []driver.FileInfo {
	e.Helper()
	list, err := r.List(e.ctx)
	e.ok("list", err)
	return list
}

// fileOnce: a file larger than an entry is invisible until it is committed, then for everybody, and
// for the next process too.
func fileOnce(e *env) {
	a, stop := e.start(0, realmName)
	b := e.second(a)
	data := large(3*a.MaxEntry() + 1)
	w, err := a.Create(e.ctx)
	e.ok("create", err)
	for piece := range slices.Chunk(data, 54_321) {
		n, err := w.Write(piece)
		e.ok("write", err)
		if n != len(piece) {
			e.Fatalf("wrote %d bytes of %d without an error", n, len(piece))
		}
		clear(piece) // the writer has to have its own copy
	}
	data = large(len(data))
	_, err = b.OpenFile(e.ctx, "f.1")
	e.is("open a file that is not committed", err, driver.ErrNotExist)
	if list := e.list(b); len(list) != 0 {
		e.Fatalf("files %v, before any was committed", list)
	}
	for _, bad := range []string{"", ".f", "a/b", "A", "a b", "é", strings.Repeat("a", driver.MaxFileName+1)} {
		if e.tryWrite(b, bad, []byte("x")) == nil {
			e.Errorf("a file got the name %q", bad)
		}
	}
	e.ok("commit", w.Commit(e.ctx, "f.1"))
	w.Abort() // does nothing
	for _, r := range []driver.Realm{a, b} {
		if !bytes.Equal(e.content(r, "f.1"), data) {
			e.Fatal("the file has other bytes than were written")
		}
	}
	stop()
	if !bytes.Equal(e.content(e.open(0, realmName), "f.1"), data) {
		e.Fatal("the file has other bytes for the next process")
	}
}

// fileReads: ReadAt reads anywhere, from several goroutines.
func fileReads(e *env) {
	r := e.open(0, realmName)
	data := large(2*r.MaxEntry() + 7)
	e.write(r, "large", data)
	e.write(r, "empty", nil)
	if got := e.content(r, "empty"); len(got) != 0 {
		e.Fatalf("an empty file has %d bytes", len(got))
	}
	f, err := r.OpenFile(e.ctx, "large")
	e.ok("open", err)
	defer f.Close()
	size := len(data)
	if f.Size() != int64(size) {
		e.Fatalf("size %d, want %d", f.Size(), size)
	}
	var wg sync.WaitGroup
	for i, place := range []struct{ from, n int }{{0, 1}, {0, size}, {size - 1, 1}, {size / 2, size / 3}, {r.MaxEntry() - 5, 10}, {17, 70_000}} {
		wg.Go(func() {
			got := make([]byte, place.n)
			n, err := f.ReadAt(got, int64(place.from))
			if n != place.n || (err != nil && err != io.EOF) || !bytes.Equal(got, data[place.from:place.from+place.n]) {
				e.Errorf("read %d: %d bytes at %d: got %d, error %v, or other bytes", i, place.n, place.from, n, err)
			}
		})
	}
	wg.Wait()
	for _, from := range []int{size - 3, size, size + 1} {
		got := make([]byte, 10)
		n, err := f.ReadAt(got, int64(from))
		if want := max(0, size-from); n != want || !errors.Is(err, io.EOF) {
			e.Errorf("read at %d of %d bytes: %d bytes, error %v, want %d and io.EOF", from, size, n, err, want)
		}
	}
}

// fileList: files are listed by name, with their sizes.
func fileList(e *env) {
	r := e.open(0, realmName)
	var want []driver.FileInfo
	for i, name := range []string{"b", "a.b", "a-b", "a", "snapshot-0000000000000042." + strings.Repeat("f", 64), "a_b", "0"} {
		e.write(r, name, large(i*1000))
		want = append(want, driver.FileInfo{Name: name, Size: int64(i * 1000)})
	}
	slices.SortFunc(want, func(a, b driver.FileInfo) int { return strings.Compare(a.Name, b.Name) })
	if got := e.list(r); !slices.Equal(got, want) {
		e.Fatalf("files\n%v, want\n%v", got, want)
	}
}

// fileAbort: a file that is dropped leaves nothing.
func fileAbort(e *env) {
	r := e.open(0, realmName)
	w, err := r.Create(e.ctx)
	e.ok("create", err)
	_, err = w.Write(large(r.MaxEntry() + 1))
	e.ok("write", err)
	w.Abort()
	if w.Commit(e.ctx, "aborted") == nil {
		e.Error("a file was committed after it was dropped")
	}
	_, err = r.OpenFile(e.ctx, "aborted")
	e.is("open a file that was dropped", err, driver.ErrNotExist)
	if list := e.list(r); len(list) != 0 {
		e.Fatalf("files %v, after the only one was dropped", list)
	}
}

// fileOfTwoWriters: two writers of one name both succeed, and the file is there once.
func fileOfTwoWriters(e *env) {
	a := e.open(0, realmName)
	realms := []driver.Realm{a, e.second(a), a}
	data := large(a.MaxEntry() + 100)
	errs := make([]error, len(realms))
	var wg sync.WaitGroup
	for i, r := range realms {
		wg.Go(func() { errs[i] = e.tryWrite(r, "same", data) })
	}
	wg.Wait()
	e.ok("write", errors.Join(errs...))
	f, err := a.OpenFile(e.ctx, "same")
	e.ok("open", err)
	defer f.Close()
	e.write(a, "same", data) // under a reader
	got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	e.ok("read", err)
	if !bytes.Equal(got, data) {
		e.Fatal("the file has other bytes than were written")
	}
	if list := e.list(a); len(list) != 1 {
		e.Fatalf("files %v, want one", list)
	}
}

// fileRemoved: a file that was removed is gone; who has it open never sees other bytes; and its
// name can be used again.
func fileRemoved(e *env) {
	a := e.open(0, realmName)
	b := e.second(a)
	data := large(2 * a.MaxEntry())
	e.write(a, "kept", []byte("kept"))
	e.write(a, "gone", data)
	f, err := b.OpenFile(e.ctx, "gone")
	e.ok("open", err)
	defer f.Close()
	e.ok("remove", a.Remove(e.ctx, "gone"))
	e.ok("remove what is not there", a.Remove(e.ctx, "gone"))
	_, err = b.OpenFile(e.ctx, "gone")
	e.is("open a file that was removed", err, driver.ErrNotExist)
	if got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size())); err == nil && !bytes.Equal(got, data) {
		e.Fatal("a file that was removed gives its reader other bytes")
	}
	e.write(a, "gone", data)
	if got := make([]byte, len(data)); true {
		if n, err := f.ReadAt(got, 0); !bytes.Equal(got[:n], data[:n]) || (n < len(data) && err == nil) {
			e.Fatal("a file that was removed and written again gives its first reader other bytes")
		}
	}
	if !bytes.Equal(e.content(b, "gone"), data) {
		e.Fatal("a file that was removed and written again has other bytes")
	}
	if got := e.content(b, "kept"); string(got) != "kept" {
		e.Fatalf("the file next to one that was removed has %q", got)
	}
}
