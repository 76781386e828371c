//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/postgres"
	"github.com/kuji-dev/kuji/internal/pgtest"
)

// writeFile writes a file.
func writeFile(t testing.TB, fs driver.Files, name, text string) {
	t.Helper()
	w, err := fs.Create(t.Context())
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = w.Commit(t.Context(), name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copyTo opens a realm's copy whose log begins at a cursor.
func copyTo(t testing.TB, d *postgres.Driver, first driver.Cursor) driver.Copy {
	t.Helper()
	c, err := d.OpenCopy(t.Context(), "main", first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Drop() })
	return c
}

// A copy under way is hidden, and can continue after a crash. When it is finished, it is a realm.
func TestCopy(t *testing.T) {
	s := server(t)
	schema := newSchema()
	d := connect(t, s.URL(), schema)
	begun := func(want bool) {
		t.Helper()
		if got, err := d.CopyBegun(t.Context(), "main"); err != nil || got != want {
			t.Fatalf("a copy has begun: %v, %v; want %v", got, err, want)
		}
	}
	begun(false)
	fs, err := d.CopyFiles(t.Context(), "main", 5)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, "of-another-backup", "old")
	begun(false)
	c := copyTo(t, d, 101) // of another backup
	if list, err := c.List(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("a copy of another backup has the files %v, %v", list, err)
	}
	writeFile(t, c, "file", "content")
	at := fill(t, c, 100, 3)
	begun(true)
	if names, err := d.Realms(t.Context()); err != nil || len(names) != 0 {
		t.Fatalf("realms %v, %v, and one copy under way", names, err)
	}
	if _, err := d.Open(t.Context(), "main", driver.Options{}); !errors.Is(err, driver.ErrLocked) {
		t.Fatalf("open a copy under way: error %v, want ErrLocked", err)
	}
	if r, err := d.Open(t.Context(), "main", driver.Options{Check: true}); err != nil {
		t.Fatal(err)
	} else if e, err := readOne(t, r, 102); err != nil || e.Cursor != at {
		t.Fatalf("the copy's last entry: %v, %v", e, err)
	}
	c = copyTo(t, d, 101) // goes on
	fill(t, c, at, 1)
	for range 2 {
		if err := d.FinishCopy(t.Context(), "main"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.OpenCopy(t.Context(), "main", 101); !errors.Is(err, driver.ErrExist) {
		t.Fatalf("copy to a realm: error %v, want ErrExist", err)
	}
	r := open(t, d)
	_, err = readOne(t, r, 0)
	if e, ok := errors.AsType[*driver.TrimmedError](err); !ok || e.First != 101 {
		t.Fatalf("read before the copy's first entry: error %v, want a TrimmedError at 101", err)
	}
	fill(t, r, 104, 1)
}

// Updates of the board from several nodes have one order, and none is lost.
func TestBoard(t *testing.T) {
	s := server(t)
	schema := newSchema()
	nodes := []*postgres.Driver{connect(t, s.URL(), schema), connect(t, s.URL(), schema), connect(t, s.URL(), schema)}
	const each = 20
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, d := range nodes {
		wg.Go(func() {
			for range each {
				errs[i] = errors.Join(errs[i], d.Update(t.Context(), func(old []byte) ([]byte, error) { return append(old, byte('a'+i)), nil }))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	var got []byte
	err := nodes[0].Update(t.Context(), func(old []byte) ([]byte, error) { got = append(got, old...); return nil, refused })
	if !errors.Is(err, refused) || len(got) != each*len(nodes) {
		t.Fatalf("the board has %q, want %d letters; error %v, want that of change", got, each*len(nodes), err)
	}
	if err := nodes[0].Update(t.Context(), func([]byte) ([]byte, error) { return make([]byte, driver.MaxBoard+1), nil }); err == nil {
		t.Fatal("the board took more than MaxBoard bytes")
	}
	if err := nodes[0].Update(t.Context(), func([]byte) ([]byte, error) { return make([]byte, driver.MaxBoard), nil }); err != nil {
		t.Fatal(err)
	}
}

// An update of the board whose wait for the standby was cancelled is an error, also if it is tried again
// and finds what it has written.
func TestBoardWait(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{TCP: true})
	d := connect(t, s.URL(), newSchema())
	if err := s.SetSync(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ended := make(chan error, 1)
		go func() {
			ended <- d.Update(t.Context(), func([]byte) ([]byte, error) { return []byte("board"), nil })
		}()
		until(t, s, "1", waiting)
		exec(t, s, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
		if err := <-ended; err == nil {
			t.Fatal("the board was updated without the standby")
		}
	}
	// Close does not wait for the standby.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Update(ctx, func([]byte) ([]byte, error) { return []byte("more"), nil }) }()
	until(t, s, "1", waiting)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, driver.ErrClosed) {
		t.Fatalf("update under way when the driver was closed: error %v, want ErrClosed", err)
	}
	cancel()
}

// Nudges wake readers elsewhere, and say what survives.
func TestNudge(t *testing.T) {
	s := server(t)
	schema := newSchema()
	a, b := connect(t, s.URL(), schema), connect(t, s.URL(), schema)
	told := make(chan string, 10)
	a.OnAppend(func(realm string, at driver.Cursor) {
		b.Nudge(realm, at)
		told <- fmt.Sprint(realm, at)
	})
	ra, rb := open(t, a), open(t, b)
	f := follow(t.Context(), rb, 0)
	for i := range 3 {
		at := fill(t, ra, driver.Cursor(i), 1)
		if got := <-told; got != fmt.Sprint("main", at) {
			t.Fatalf("told of %s, want of main %d", got, at)
		}
		if e := f.next(t); e.Cursor != at || rb.Durable() < at {
			t.Fatalf("the reader got the entry at %d, and %d is known to survive, want %d", e.Cursor, rb.Durable(), at)
		}
	}
}
