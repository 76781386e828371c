package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/internal/store"
)

// realm is a state and its log.
type realm struct {
	t   rapid.TB
	s   *store.State
	now int64
	log []logged
	w   store.Writer
}

type logged struct {
	raw []byte
	at  store.At
}

func newRealm(t rapid.TB) *realm { return &realm{t: t, s: store.New(), now: 1_700_000_000_000} }

// write returns an event of kind 2 with effects.
func (r *realm) write(id string, effects func(w *store.Writer)) []byte {
	r.w.Buf = r.w.Buf[:0]
	r.w.Begin(2, id)
	r.w.BeginAsked()
	r.w.EndAsked()
	effects(&r.w)
	return r.w.End()
}

// apply decodes and applies an event at the next position.
func (r *realm) apply(raw []byte) error {
	r.t.Helper()
	l := logged{bytes.Clone(raw), store.At{Position: uint64(len(r.log) + 1), Index: uint32(len(r.log) % 300), Time: r.now}}
	var ev store.Event
	if n, err := store.Decode(l.raw, &ev); err != nil || n != len(raw) {
		r.t.Fatalf("%x: %d bytes are decoded: %v", raw, n, err)
	}
	if err := r.s.Apply(&ev, l.at, nil); err != nil {
		return err
	}
	r.log = append(r.log, l)
	return nil
}

// do applies an event that must fit.
func (r *realm) do(id string, effects func(w *store.Writer)) {
	r.t.Helper()
	if err := r.apply(r.write(id, effects)); err != nil {
		r.t.Fatalf("%v", err)
	}
}

// refused checks that an event does not fit.
func refused(t rapid.TB, what string, err error) {
	t.Helper()
	var inconsistent *store.InconsistentError
	var format *store.FormatError
	if !errors.As(err, &inconsistent) && !errors.As(err, &format) {
		t.Errorf("%s: %v, want it refused", what, err)
	}
}

// Parts of events.

func item(w *store.Writer, kind byte, id string) {
	w.More(store.Item)
	w.Buf = append(w.Buf, kind)
	w.Text(id)
}

func counters(w *store.Writer, width uint64, name string) {
	w.More(store.Counter)
	w.Uint(width)
	w.Text(name)
}

// stock sets an entry's stock, -1 for one without a bound.
func stock(w *store.Writer, entry uint64, n int64) {
	w.More(store.Stock)
	w.Uint(entry)
	w.Uint(uint64(n + 1))
}

func window(w *store.Writer, count, age uint64) {
	w.More(store.Window)
	w.Uint(count)
	w.Uint(age)
}

func inForce(w *store.Writer, bytes string) {
	w.More(store.Catalog)
	w.Uint(uint64(len(bytes)))
	w.Buf = append(w.Buf, bytes...)
}

// codes adds codes to a list.
func codes(w *store.Writer, list uint32, all ...string) {
	size := 0
	for _, code := range all {
		size += 1 + len(code)
	}
	w.More(store.AddCodes, uint64(list), uint64(size))
	for _, code := range all {
		w.Text(code)
	}
}

// base names items a, b and c, a pool p with entries x (3), y (without a bound) and z (none),
// a pool q, and three counters.
func base(w *store.Writer) {
	for i, id := range []string{"a", "b", "c"} {
		item(w, byte(i%2), id)
	}
	w.Name(store.NewPool, "p")
	for i, id := range []string{"x", "y", "z"} {
		w.Name(store.Entry, id)
		stock(w, uint64(i), []int64{3, -1, 0}[i])
	}
	w.Name(store.NewPool, "q")
	w.Name(store.Entry, "x")
	counters(w, 1, "one")
	counters(w, 2, "two")
	inForce(w, "catalog")
}

// based is a realm after base, in which ann has joined and got 5 of a.
func based(t rapid.TB) *realm {
	r := newRealm(t)
	r.do("", base)
	r.do("", func(w *store.Writer) {
		w.Join("ann")
		w.Change(store.Gain, 0, 5)
	})
	return r
}

// replay applies the log to a new state.
func (r *realm) replay() *store.State {
	r.t.Helper()
	s := store.New()
	r.follow(s)
	return s
}

// follow applies to a state what was logged after it, and checks that it becomes the same.
func (r *realm) follow(s *store.State) {
	r.t.Helper()
	var ev store.Event
	for _, l := range r.log {
		if l.at.Position <= s.Position() {
			continue
		}
		if _, err := store.Decode(l.raw, &ev); err != nil {
			r.t.Fatalf("%v", err)
		}
		if err := s.Apply(&ev, l.at, nil); err != nil {
			r.t.Fatalf("position %d: %v", l.at.Position, err)
		}
	}
	if err := s.Check(); err != nil {
		r.t.Fatalf("%v", err)
	}
	if s.Hash() != r.s.Hash() {
		r.t.Fatalf("a state that follows the log is another than the one that went on")
	}
}

// left returns what is left of an entry and how often it was drawn, as readers see it.
func left(s *store.State, pool, entry uint32) (left, drawn uint64, limited bool) {
	if _, ok := s.ReadStock(pool, []uint32{entry}, s.Catalog().Version, func(_ int, l, d uint64, lim bool) { left, drawn, limited = l, d, lim }); !ok {
		panic(fmt.Sprint("pool ", pool))
	}
	return left, drawn, limited
}

// TestStory reads as what a store is for.
func TestStory(t *testing.T) {
	r := based(t)
	r.do("draw-1", func(w *store.Writer) { // bob joins, pays with a, and draws x
		w.Join("bob")
		w.Change(store.Gain, 0, 2)
		w.Change(store.Spend, 0, 2)
		w.Effect(store.Pool, 0)
		w.Effect(store.Take, 0)
		w.Change(store.Gain, 1, 7)
		w.Change(store.Set, 2, 99)
	})
	r.do("", func(w *store.Writer) { // ann gives bob 3 of a
		w.Effect(store.Player, 0)
		w.Change(store.Spend, 0, 3)
		w.Effect(store.Player, 1)
		w.Change(store.Gain, 0, 3)
	})
	items, _, last, ok := r.s.Holdings("bob")
	if got := fmt.Sprint(items, last, ok); got != "[{a 3 0} {b 7 0}] 4 true" {
		t.Errorf("bob holds %s", got)
	}
	if l, d, limited := left(r.s, 0, 0); l != 2 || d != 1 || !limited {
		t.Errorf("x: %d left, %d drawn, limited: %v", l, d, limited)
	}
	if v := r.s.Counter(1, 2); v != 99 {
		t.Errorf("the counter is %d", v)
	}
	if text, any := r.s.Supply(0); text != "5" || !any {
		t.Errorf("%s of a, %v", text, any)
	}
	a, ok := r.answer("draw-1")
	if !ok || a.Position != 3 || a.Index != 2 || a.Version != 1 || a.Time != r.now || !bytes.Equal(a.Event, r.log[2].raw) {
		t.Errorf("draw-1 is remembered as %+v, %v", a, ok)
	}
	r.follow(r.replay())
}
