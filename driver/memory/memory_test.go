package memory_test

import (
	"errors"
	"testing"

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
	at, err := r.Begin(t.Context(), []byte("begin"))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Append(t.Context(), next, nil); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
