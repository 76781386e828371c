package store_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/internal/store"
)

// answer returns what is remembered of a request id.
func (r *realm) answer(id string) (store.Answer, bool) {
	defer r.s.End()
	return r.s.Begin(id)
}

// remember applies an event with a request id.
func (r *realm) remember(id string) {
	r.t.Helper()
	r.do(id, func(w *store.Writer) { w.Change(store.Gain, 0, 1) })
}

// remembered checks which of the ids a to j are, and that all that is said of them agrees.
func (r *realm) remembered(want string) {
	r.t.Helper()
	got := ""
	for _, id := range "abcdefghij" {
		a, ok := r.answer(string(id))
		if !ok {
			continue
		}
		got += string(id)
		if l := r.log[a.Position-1]; !bytes.Equal(a.Event, l.raw) || a.Time != l.at.Time || a.Index != l.at.Index {
			r.t.Fatalf("%c is remembered as %+v, want %+v", id, a, l)
		}
	}
	w := r.s.WindowSize()
	if got != want || int(w.Remembered) != len(want) || r.s.YoungerThan(-1) != len(want) {
		r.t.Fatalf("remembered %q, %+v, want %q", got, w, want)
	}
	if err := r.s.Check(); err != nil {
		r.t.Fatalf("%v", err)
	}
}

func windowed(t testing.TB, count, age uint64) *realm {
	r := based(t)
	r.do("", func(w *store.Writer) { window(w, count, age); inForce(w, "with a window") })
	return r
}

// TestNoIDIsForgottenEarly: while an id is within the age it is remembered; when there is no
// room left, that is said, and events without ids go on.
func TestNoIDIsForgottenEarly(t *testing.T) {
	const age = 600_000
	r := windowed(t, 3, age)
	for _, id := range []string{"a", "b", "c"} {
		if r.s.WindowFull(r.now) {
			t.Fatalf("no room for %s", id)
		}
		r.remember(id)
	}
	r.remembered("abc")
	r.now += age // exactly as old as the age
	if !r.s.WindowFull(r.now) {
		t.Error("there is room for a fourth id within the age")
	}
	r.remember("")
	r.remembered("abc")
	if w := r.s.WindowSize(); w.Limit != 3 || w.Oldest != r.now-age || w.Bytes == 0 || r.s.OldestAnswer() != 4 {
		t.Errorf("window %+v, the oldest of position %d", w, r.s.OldestAnswer())
	}
	r.now++
	if r.s.WindowFull(r.now) {
		t.Error("there is no room although the oldest has aged")
	}
	r.remember("")
	r.remembered("abc") // aged, but there is room
	r.remember("d")
	r.remembered("bcd")
	r.remember("e")
	r.remembered("cde")
	r.do("", func(w *store.Writer) { window(w, 1, age) })
	r.remembered("de") // c was of age
	if !r.s.WindowFull(r.now) {
		t.Error("there is room, with more remembered than there may be")
	}
	if n := r.s.YoungerThan(r.now - 1); n != 2 {
		t.Errorf("%d are younger than a millisecond ago, want 2", n)
	}
	r.follow(r.replay())
}

// TestQuietRealmRemembersLonger: beyond the age ids go only when there are many.
func TestQuietRealmRemembersLonger(t *testing.T) {
	r := windowed(t, 1000, 60_000)
	r.s.SetKept(4)
	for _, id := range "abcdefg" {
		r.remember(string(id))
	}
	r.remembered("abcdefg")
	r.now += 60_001
	r.remember("h")
	r.remembered("efgh")
	r.now += 1_000_000_000
	r.remember("")
	r.remembered("efgh")
}

// TestForgottenIDsAreNew: an id that is forgotten may come again.
func TestForgottenIDsAreNew(t *testing.T) {
	r := windowed(t, 2, 1000)
	for i := range 50 {
		r.now += 600
		r.remember(string("abc"[i%3]))
	}
	r.remembered("bca"[:0] + "ab")
	r.follow(r.replay())
}

// TestHugeAnswers: answers larger than a chunk of memory are remembered, found and forgotten
// as others are.
func TestHugeAnswers(t *testing.T) {
	r := windowed(t, 3, 1000)
	for i, id := range "abcdefghij" {
		r.now += 400
		r.do(string(id), func(w *store.Writer) {
			for range []int{1, 300_000, 10, 200_000}[i%4] {
				w.Effect(store.Player, 0)
			}
		})
		a, ok := r.answer(string(id))
		if !ok || !bytes.Equal(a.Event, r.log[len(r.log)-1].raw) {
			t.Fatalf("%c: %d bytes are remembered, %v", id, len(a.Event), ok)
		}
	}
	r.remembered("hij")
	r.follow(r.replay())
}

// TestManyIDs: of very many ids the newest are remembered, and memory follows.
func TestManyIDs(t *testing.T) {
	const kept = 2000
	r := windowed(t, kept, 1000)
	id := func(i int) string { return fmt.Sprintf("%016d", i) }
	most := uint64(0)
	for i := range 40_000 {
		r.now++
		if i == kept && r.s.WindowFull(r.now) {
			t.Fatal("no room although the oldest has aged")
		}
		r.remember(id(i))
		most = max(most, r.s.WindowSize().Bytes)
		if _, ok := r.answer(id(i - kept)); ok && i >= kept {
			t.Fatalf("%d is remembered after %d", i-kept, i)
		}
		if a, ok := r.answer(id(max(i-kept+1, 0))); !ok || a.Position != uint64(max(i-kept+1, 0)+4) {
			t.Fatalf("%d is remembered as of %d, %v, after %d", max(i-kept+1, 0), a.Position, ok, i)
		}
	}
	for _, ago := range []int64{0, 1, 17, 1999, 2000, 5000} {
		if got, want := r.s.YoungerThan(r.now-ago), min(int(ago), kept); got != want {
			t.Errorf("%d are younger than %d ms, want %d", got, ago, want)
		}
	}
	if most > 1<<20 {
		t.Errorf("%d bytes for %d ids", most, kept)
	}
	if err := r.s.Check(); err != nil {
		t.Error(err)
	}
}

// TestMemoryOfPlayersIsBounded: when players take as much memory as they can, that is said
// before anything breaks.
func TestMemoryOfPlayersIsBounded(t *testing.T) {
	r := based(t)
	r.s.SetMaxChunks(10)
	for i := 0; !r.s.MemoryFull(); i++ {
		if i > 200_000 {
			t.Fatal("never full")
		}
		r.do("", func(w *store.Writer) { w.Join(fmt.Sprint("player", i)); w.Change(store.Gain, 0, 1) })
	}
	if n := r.s.Players(); n < 5_000 {
		t.Errorf("full with %d players", n)
	}
}
