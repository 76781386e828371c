package memory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/memory"
)

// TestLog: a log in memory orders entries, refuses who is not at its end, and gives an epoch-begin to
// its writer until something follows.
func TestLog(t *testing.T) {
	var d memory.Driver
	r, err := d.Open(t.Context(), "r", driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(t.Context(), "r", driver.Options{}); !errors.Is(err, driver.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := d.Open(t.Context(), "other", driver.Options{MustExist: true}); !errors.Is(err, driver.ErrNotExist) {
		t.Errorf("a realm that is not there: %v", err)
	}
	if _, err := d.Open(t.Context(), "No name", driver.Options{}); err == nil {
		t.Error("any name will do")
	}
	buffer := []byte("begin")
	at, err := r.Begin(t.Context(), buffer)
	if err != nil {
		t.Fatal(err)
	}
	clear(buffer)
	var got []string
	for e, err := range r.Read(t.Context(), 0, at) {
		if err != nil || e.Cursor != at {
			t.Fatal(e, err)
		}
		got = append(got, string(e.Data))
	}
	if len(got) != 1 || got[0] != "begin" {
		t.Errorf("read %q", got)
	}
	if _, err := r.Append(t.Context(), 0, []byte("a")); !errors.Is(err, driver.ErrDeposed) {
		t.Errorf("behind the start: %v", err)
	}
	next, err := r.Append(t.Context(), at, []byte("a"))
	if err != nil || next <= at || r.Durable() != next {
		t.Errorf("appended at %d, durable to %d, %v", next, r.Durable(), err)
	}
	for _, err := range r.Read(t.Context(), 0, next) {
		if trimmed, ok := errors.AsType[*driver.TrimmedError](err); !ok || trimmed.First != next+1 {
			t.Errorf("what is not kept is read: %v", err)
		}
	}
	if _, err := r.Append(t.Context(), next, make([]byte, r.MaxEntry()+1)); err == nil {
		t.Error("an entry that is too large is appended")
	}
	// Readers wait for the next epoch-begin, and end when the realm is closed.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	read := make(chan error)
	go func() {
		for e, err := range r.Read(ctx, next, 0) {
			if string(e.Data) == "again" && err == nil {
				read <- nil
				continue
			}
			read <- err
		}
	}()
	for range 500 { // most find the reader waiting
		if _, err := r.Begin(t.Context(), []byte("again")); err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil {
			t.Fatalf("the next epoch-begin: %v", err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, driver.ErrClosed) {
		t.Errorf("a reader of a closed realm: %v", err)
	}
	if _, err := r.Append(t.Context(), next, nil); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
