package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// A copy begins where it is told to, and can be gone on with. Nobody finds it before it is finished, but
// who verifies it offline. From then on it is a realm like any other.
func TestCopy(t *testing.T) {
	ctx, d, js := oneServer(t)
	// An attempt that had only files, of a backup that begins elsewhere.
	if _, err := d.CopyFiles(ctx, "main", 7); err != nil {
		t.Fatal(err)
	}
	const first = 40
	files, err := d.CopyFiles(ctx, "main", first)
	if err != nil {
		t.Fatal(err)
	}
	w, err := files.Create(ctx)
	if err == nil {
		_, err = w.Write([]byte("snapshot"))
	}
	if err == nil {
		err = w.Commit(ctx, "file")
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	appendTo := func(r driver.Realm, after driver.Cursor, n int) {
		t.Helper()
		for range n {
			entry := fmt.Sprint("entry ", len(want))
			at, err := r.Append(ctx, after, []byte(entry))
			if err != nil || at != after+1 {
				t.Fatalf("append behind %d: %d, %v", after, at, err)
			}
			want, after = append(want, entry), at
		}
	}
	for i := range 2 {
		if begun, err := d.CopyBegun(ctx, "main"); err != nil || begun != (i > 0) {
			t.Fatalf("attempt %d: begun %v, %v", i, begun, err)
		}
		c, err := d.OpenCopy(ctx, "main", first*driver.Cursor(1-i))
		if err != nil {
			t.Fatal(err)
		}
		last, err := c.Last(ctx)
		if err != nil || last != first-1+driver.Cursor(len(want)) {
			t.Fatalf("attempt %d: the copy ends at %d, %v", i, last, err)
		}
		appendTo(c, last, 3)
		if err := c.Drop(); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := d.Realms(ctx); err != nil || len(names) != 0 {
		t.Errorf("realms %q, %v: want none before the copy is finished", names, err)
	}
	for _, o := range []driver.Options{{}, {ReadOnly: true}, {MustExist: true}} {
		if _, err := d.Open(ctx, "main", o); !errors.Is(err, driver.ErrLocked) {
			t.Errorf("open a copy with %+v: %v, want ErrLocked", o, err)
		}
	}
	read := func(o driver.Options) {
		t.Helper()
		r := open(t, d, o)
		begins, err := r.First(ctx)
		if err != nil || begins != first {
			t.Errorf("the log begins at %d, %v, want %d", begins, err, first)
		}
		i := 0
		for e, err := range r.Read(ctx, first-1, first-1+driver.Cursor(len(want))) {
			if err != nil || string(e.Data) != want[i] {
				t.Fatalf("entry %d: %q, %v, want %q", i, e.Data, err, want[i])
			}
			i++
		}
		var trimmed *driver.TrimmedError
		for _, err := range r.Read(ctx, 1, first) {
			if !errors.As(err, &trimmed) || trimmed.First != first {
				t.Errorf("what is before the log: %v", err)
			}
		}
		file, err := r.OpenFile(ctx, "file")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(io.NewSectionReader(file, 0, 100)); err != nil || string(b) != "snapshot" {
			t.Errorf("the file has %q, %v", b, err)
		}
	}
	read(driver.Options{Check: true})
	for range 2 {
		if err := d.FinishCopy(ctx, "main"); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := d.Realms(ctx); err != nil || len(names) != 1 {
		t.Errorf("realms %q, %v: want the one that is finished", names, err)
	}
	appendTo(open(t, d, driver.Options{}), first-1+driver.Cursor(len(want)), 3)
	read(driver.Options{})
	if err := exists(ctx, js); err != nil {
		t.Error(err)
	}
	for _, again := range []func() error{
		func() error { _, err := d.CopyBegun(ctx, "main"); return err },
		func() error { _, err := d.CopyFiles(ctx, "main", 1); return err },
		func() error { _, err := d.OpenCopy(ctx, "main", 1); return err },
	} {
		if err := again(); !errors.Is(err, driver.ErrExist) {
			t.Errorf("a copy over a realm: %v, want ErrExist", err)
		}
	}
}

// exists checks that the log of a copy is kept as any log is.
func exists(ctx context.Context, js natsjs.JetStream) error {
	s, err := js.Stream(ctx, "KUJI_c_LOG_main")
	if err != nil {
		return err
	}
	c := s.CachedInfo().Config
	if c.Discard != natsjs.DiscardNew || c.AllowDirect || c.MaxAge != 0 || c.Storage != natsjs.FileStorage || !c.DenyDelete || c.Subjects[0] != "kuji.c.log.main" {
		return fmt.Errorf("the log is kept so: %+v", c)
	}
	return nil
}
