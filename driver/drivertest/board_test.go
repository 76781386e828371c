package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/driver"
)

// TestBoardRule: which records count, for who reads the whole log and for who begins in the middle of it.
func TestBoardRule(t *testing.T) {
	log := []struct {
		at, follows driver.Cursor
		counts      bool
	}{
		{2, 0, true}, {3, 0, false}, {5, 2, true}, {6, 2, false}, {7, 2, false}, {9, 5, true}, {10, 3, false}, {12, 9, true}, {13, 9, false},
	}
	for begin := range 6 { // a log keeps two records that count, or more
		s := standing{}
		if begin > 0 {
			first := log[begin-1].at + 1 // perhaps lower than the first that is left
			s = standing{read: first - 1, from: first}
		}
		var want driver.Cursor
		for _, e := range log[begin:] {
			r := record{follows: e.follows, content: fmt.Append(nil, "written at ", e.at)}
			if err := s.take(driver.Entry{Cursor: e.at, Data: r.bytes()}); err != nil {
				t.Fatal(err)
			}
			if e.counts {
				want = e.at
			}
			if s.known() && s.at() != want {
				t.Fatalf("from the entry at %d on: at %d, the last record that counts is the one at %d, want %d", log[begin].at, e.at, s.at(), want)
			}
		}
		if got := string(s.last.content); got != "written at 12" || !s.known() {
			t.Errorf("from the entry at %d on: the board has %q", log[begin].at, got)
		}
	}
	s := standing{}
	var corrupt *driver.CorruptError
	if err := s.take(driver.Entry{Cursor: 4, Data: []byte("short")}); !errors.As(err, &corrupt) || corrupt.At != 4 {
		t.Errorf("an entry that is no record: %v, want a CorruptError at 4", err)
	}
}

// TestBoardStaysSmall: what a board no longer needs is trimmed, and a node that was idle goes on from what is left.
func TestBoardStaysSmall(t *testing.T) {
	for _, unconditional := range []bool{false, true} {
		s := NewShared(SharedOptions{Unconditional: unconditional})
		idle, busy := s.Node(0), s.Node(1)
		add := func(old []byte) ([]byte, error) { return append(bytes.Clone(old), 'x'), nil }
		if err := idle.Update(t.Context(), add); err != nil {
			t.Fatal(err)
		}
		for range 10 * boardKeeps {
			if err := busy.Update(t.Context(), add); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(s.board.entries); n > boardKeeps {
			t.Errorf("unconditional %v: the board's log has %d records, want at most %d", unconditional, n, boardKeeps)
		}
		var got []byte
		if err := idle.Update(t.Context(), func(old []byte) ([]byte, error) { got = old; return add(old) }); err != nil || len(got) != 10*boardKeeps+1 {
			t.Errorf("unconditional %v: a node that was idle updates a board of %d updates, %v, want %d", unconditional, len(got), err, 10*boardKeeps+1)
		}
	}
}

// TestBoardOvertaken: a node whose answer is lost, and which is then overtaken by more updates than are
// kept, does not know what came of its own.
func TestBoardOvertaken(t *testing.T) {
	s := NewShared(SharedOptions{})
	slow, busy := s.Node(0), s.Node(1)
	add := func(old []byte) ([]byte, error) { return append(bytes.Clone(old), 'x'), nil }
	if err := slow.Update(t.Context(), add); err != nil {
		t.Fatal(err)
	}
	calls := 0
	err := slow.Update(t.Context(), func(old []byte) ([]byte, error) {
		for range 2 * boardKeeps {
			if err := busy.Update(context.Background(), add); err != nil {
				t.Error(err)
			}
		}
		calls++
		return add(old)
	})
	if calls != 1 || !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("an update that was overtaken: %d calls, %v, want one and ErrUnknown", calls, err)
	}
}
