package store_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/internal/store"
)

// written is an event and what it was written from.
type written struct {
	ev      store.Event // without its bytes
	effects []store.Effect
}

func drawRef(t *rapid.T, what string) store.Ref {
	if rapid.Bool().Draw(t, what+" has no number") {
		return store.Ref{ID: rapid.StringN(1, 16, store.MaxName).Draw(t, what)}
	}
	return store.Ref{Num: rapid.Uint32().Draw(t, what)}
}

func drawEvent(t *rapid.T) (e written) {
	e.ev.Kind = rapid.Uint8Range(1, store.MaxKind).Draw(t, "kind")
	e.ev.ID = []byte(rapid.StringN(0, 16, store.MaxID).Draw(t, "id"))
	if e.ev.Named = rapid.Bool().Draw(t, "named"); e.ev.Named {
		e.ev.Player = drawRef(t, "player")
	}
	if rapid.IntRange(0, 3).Draw(t, "failed") == 0 {
		e.ev.Status = rapid.Uint8Range(1, 255).Draw(t, "status")
		e.ev.Subject = rapid.Uint32().Draw(t, "subject")
	}
	// Lengths on both sides of where they take a byte more.
	n := rapid.SampledFrom([]int{0, 1, 5, 100, 120, 127, 128, 129, 16_383, 16_384, 70_000}).Draw(t, "asked")
	if e.ev.Status != 0 {
		e.ev.Why = bytes.Repeat([]byte{7}, n%130)
	}
	e.ev.Asked = bytes.Repeat([]byte{byte(n)}, n)
	if e.ev.Status != 0 {
		e.effects = drawCount(t)
		return e
	}
	for range rapid.IntRange(0, 40).Draw(t, "effects") {
		e.effects = append(e.effects, drawEffect(t))
	}
	return e
}

// drawCount draws the effects of an event that failed.
func drawCount(t *rapid.T) (all []store.Effect) {
	n := func() uint32 { return rapid.Uint32().Draw(t, "n") }
	if rapid.Bool().Draw(t, "joins") {
		id := []byte(rapid.StringN(1, 16, store.MaxName).Draw(t, "name"))
		all = append(all, store.Effect{Verb: store.Join, N: uint32(len(id)), Bytes: id})
	}
	for range rapid.IntRange(0, 3).Draw(t, "sets") {
		all = append(all, store.Effect{Verb: store.Set, N: n(), Value: rapid.Uint64().Draw(t, "value")})
	}
	return all
}

func drawEffect(t *rapid.T) store.Effect {
	e := store.Effect{Verb: rapid.SampledFrom([]store.Verb{
		store.Player, store.Join, store.Gain, store.Spend, store.Pool, store.Take, store.Set, store.Member,
		store.Item, store.NewPool, store.Entry, store.Stock, store.Counter, store.Window, store.Catalog, store.Draw, store.Tally,
		store.Return, store.NewList, store.AddCodes, store.GiveCode, store.UseCode,
	}).Draw(t, "verb")}
	name := func() []byte { return []byte(rapid.StringN(1, 16, store.MaxName).Draw(t, "name")) }
	switch e.Verb {
	case store.Player, store.Pool, store.Take:
		e.N = rapid.Uint32().Draw(t, "n")
	case store.Gain, store.Spend:
		e.N, e.Value = rapid.Uint32().Draw(t, "n"), rapid.Uint64Range(0, store.MaxQuantity).Draw(t, "quantity")
	case store.Tally:
		e.N, e.Value = rapid.Uint32Range(0, 1<<31-1).Draw(t, "n"), rapid.Uint64().Draw(t, "value")
	case store.Return:
		e.N, e.Value = rapid.Uint32Range(0, 1<<22).Draw(t, "n"), rapid.Uint64Range(0, store.MaxQuantity).Draw(t, "returned")
	case store.GiveCode, store.UseCode:
		e.N, e.Value = rapid.Uint32Range(0, 1<<12).Draw(t, "n"), rapid.Uint64Range(0, 1<<24).Draw(t, "number")
	case store.AddCodes: // the decoder does not look into them
		e.N, e.Bytes = rapid.Uint32Range(0, 1<<12).Draw(t, "n"), rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "codes")
	case store.Set:
		e.N, e.Value = rapid.Uint32().Draw(t, "n"), rapid.Uint64().Draw(t, "value")
	case store.Join:
		e.Bytes = name()
		e.N = uint32(len(e.Bytes))
	case store.Item:
		e.N, e.Bytes = uint32(rapid.Byte().Draw(t, "kind")), name()
	case store.NewPool, store.Entry, store.NewList:
		e.Bytes = name()
	case store.Stock:
		e.N, e.Value = rapid.Uint32Range(0, 1<<22).Draw(t, "n"), rapid.Uint64().Draw(t, "stock")
	case store.Counter:
		e.N, e.Bytes = rapid.Uint32Range(0, 1<<31-1).Draw(t, "width"), name()
	case store.Window:
		e.N, e.Value = rapid.Uint32().Draw(t, "count"), rapid.Uint64Range(0, 1<<63-1).Draw(t, "age")
	case store.Catalog:
		e.Bytes = bytes.Repeat([]byte("c"), rapid.IntRange(0, 300).Draw(t, "catalog"))
	}
	return e
}

// write writes an event behind what the writer holds.
func (e *written) write(w *store.Writer) []byte {
	w.Begin(e.ev.Kind, string(e.ev.ID))
	if e.ev.Named {
		w.Player(e.ev.Player)
	}
	if e.ev.Status != 0 {
		w.Fail(e.ev.Status, e.ev.Subject)
		w.Buf = append(w.Buf, e.ev.Why...)
		w.EndWhy()
	}
	w.BeginAsked()
	w.Buf = append(w.Buf, e.ev.Asked...)
	w.EndAsked()
	for _, f := range e.effects {
		switch f.Verb {
		case store.Player, store.Pool, store.Take:
			w.Effect(f.Verb, f.N)
		case store.Gain, store.Spend, store.Set:
			w.Change(f.Verb, f.N, f.Value)
		case store.Join:
			w.Join(string(f.Bytes))
		case store.Member, store.Draw:
			w.More(f.Verb)
		case store.Item:
			item(w, byte(f.N), string(f.Bytes))
		case store.NewPool, store.Entry, store.NewList:
			w.Name(f.Verb, string(f.Bytes))
		case store.Tally:
			w.More(store.Tally, uint64(f.N), f.Value)
		case store.Return:
			w.More(store.Return, uint64(f.N), f.Value)
		case store.AddCodes:
			w.More(store.AddCodes, uint64(f.N), uint64(len(f.Bytes)))
			w.Buf = append(w.Buf, f.Bytes...)
		case store.GiveCode:
			w.More(store.GiveCode, uint64(f.N), f.Value)
		case store.UseCode:
			w.More(store.UseCode, uint64(f.N), f.Value)
		case store.Stock:
			stock(w, uint64(f.N), int64(f.Value-1))
		case store.Counter:
			counters(w, uint64(f.N), string(f.Bytes))
		case store.Window:
			window(w, uint64(f.N), f.Value)
		case store.Catalog:
			inForce(w, string(f.Bytes))
		}
	}
	return w.End()
}

// TestEventRoundTrip: what is written is what is read, whatever stands before and behind it,
// and no part of it is an event.
func TestEventRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w store.Writer
		before := rapid.SampledFrom([]string{"", "before"}).Draw(t, "before")
		w.Buf = append(w.Buf, before...)
		e := drawEvent(t)
		raw := bytes.Clone(e.write(&w))
		if string(w.Buf[:len(before)]) != before || !bytes.Equal(w.Buf[len(before):], raw) {
			t.Fatalf("the writer holds %.40q, want %q and %.40x", w.Buf, before, raw)
		}
		var got store.Event
		if n, err := store.Decode(append(raw, "behind"...), &got); err != nil || n != len(raw) {
			t.Fatalf("%d of %d bytes are decoded: %v", n, len(raw), err)
		}
		if got.Kind != e.ev.Kind || string(got.ID) != string(e.ev.ID) || got.Named != e.ev.Named || got.Player != e.ev.Player || got.Status != e.ev.Status ||
			got.Subject != e.ev.Subject || !bytes.Equal(got.Asked, e.ev.Asked) || !bytes.Equal(got.Why, e.ev.Why) || !bytes.Equal(got.Raw, raw) {
			t.Fatalf("%+v is decoded as %+v", e.ev, got)
		}
		r, n := got.Changes(), 0
		for f := (store.Effect{}); r.Next(&f); n++ {
			if n >= len(e.effects) {
				t.Fatalf("one effect more: %+v", f)
			}
			want := e.effects[n]
			if f.Verb != want.Verb || f.N != want.N || carries(f.Verb) && f.Value != want.Value || want.Bytes != nil && !bytes.Equal(f.Bytes, want.Bytes) {
				t.Fatalf("effect %d is %+v, want %+v", n, f, want)
			}
		}
		if r.Err() != nil || n != len(e.effects) {
			t.Fatalf("%d effects, want %d: %v", n, len(e.effects), r.Err())
		}
		cut := rapid.IntRange(0, len(raw)-1).Draw(t, "cut")
		wantFormatError(t, raw[:cut])

		w.Begin(1, "other")
		w.Cut()
		if len(w.Buf) != len(before)+len(raw) {
			t.Fatalf("%d bytes after an event that was cut, want %d", len(w.Buf), len(before)+len(raw))
		}
	})
}

// carries reports whether effects of a verb have a value.
func carries(v store.Verb) bool {
	return v == store.Gain || v == store.Spend || v == store.Set || v == store.Stock || v == store.Window
}

func wantFormatError(t rapid.TB, b []byte) {
	t.Helper()
	var ev store.Event
	n, err := store.Decode(b, &ev)
	if err == nil {
		e, r := store.Effect{}, ev.Changes()
		for r.Next(&e) {
		}
		err = r.Err()
	}
	var format *store.FormatError
	if !errors.As(err, &format) || format.Offset < 0 || format.Offset > len(b) || format.Message == "" {
		t.Errorf("%.60x is read, %d bytes of it: %v", b, n, err)
	}
}

// TestMalformedEvents: bytes that no writer writes are refused.
func TestMalformedEvents(t *testing.T) {
	sized := func(s string) string { return string(rune(len(s))) + s }
	id65 := strings.Repeat("i", 65)
	for name, b := range map[string]string{
		"nothing":                       "",
		"a size and nothing":            "\x05",
		"a size of 0":                   "\x00",
		"a size too large":              "\xff\xff\xff\xff\x0f",
		"a size that is no varint":      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"a size in more bytes than due": "\x82\x00\x10\x00",
		"an empty request id":           sized("\x11\x00\x00"),
		"a request id too long":         sized("\x11\x41" + id65 + "\x00"),
		"a request id cut short":        sized("\x11\x05abc"),
		"a player of no bytes":          sized("\x14\x01\x00"),
		"a player too long":             sized("\x14\x83\x01" + id65 + "\x00"),
		"a player in too many bytes":    sized("\x14\x80\x00\x00"),
		"a player beyond 32 bits":       sized("\x14\x80\x80\x80\x80\x20\x00"),
		"a failure with status 0":       sized("\x12\x00\x00\x00\x00"),
		"a failure with effects":        sized("\x12\x01\x00\x00\x00\x05"),
		"why it failed, cut short":      sized("\x12\x01\x00\x02\x00"),
		"no arguments' length":          sized("\x10"),
		"arguments cut short":           sized("\x10\x03ab"),

		"no quantity":                 sized("\x10\x00\x02"),
		"a quantity too large":        sized("\x10\x00\x02\x80\x80\x80\x80\x80\x80\x80\x10"),
		"a quantity in two bytes":     sized("\x10\x00\x02\x81\x00"),
		"a player's id of 0 bytes":    sized("\x10\x00\x01"),
		"a player's id too long":      sized("\x10\x00\x89\x04" + id65),
		"a player's id cut short":     sized("\x10\x00\x29abc"),
		"an unknown verb":             sized("\x10\x00\x7f"),
		"an unknown verb, far":        sized("\x10\x00\xff\x7f"),
		"a verb in two bytes":         sized("\x10\x00\x84\x00"),
		"a number beyond 32 bits":     sized("\x10\x00\x80\x80\x80\x80\x80\x01"),
		"an item of no kind":          sized("\x10\x00\x0f"),
		"an item of no name":          sized("\x10\x00\x0f\x01\x00"),
		"an item's name too long":     sized("\x10\x00\x0f\x01\x41" + id65),
		"a pool's name cut short":     sized("\x10\x00\x17\x05abc"),
		"an entry without a stock":    sized("\x10\x00\x27\x00"),
		"an entry beyond all":         sized("\x10\x00\x27\x81\x80\x80\x02\x00"),
		"counters of a name too long": sized("\x10\x00\x2f\x01\xa1" + strings.Repeat("c", 161)),
		"a window without an age":     sized("\x10\x00\x37\x01"),
		"an age too large":            sized("\x10\x00\x37\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
		"a catalog cut short":         sized("\x10\x00\x3f\x05abc"),
		"a catalog too large":         sized("\x10\x00\x3f\x81\x80\x80\x20"),
	} {
		t.Run(name, func(t *testing.T) { wantFormatError(t, []byte(b)) })
	}
	var ev store.Event
	for _, b := range []string{sized("\x10\x00"), sized("\x11\x40" + id65[:64] + "\x00"), sized("\x14\x81\x01" + id65[:64] + "\x00"), sized("\x10\x00\x0f\x01\x40" + id65[:64])} {
		if n, err := store.Decode([]byte(b), &ev); err != nil || n != len(b) {
			t.Errorf("%x is well formed, and %d bytes of it are decoded: %v", b, n, err)
		}
	}
}

// TestReaderSticks: after the first error a reader reads nothing more, and keeps the error.
func TestReaderSticks(t *testing.T) {
	r := store.NewReader([]byte{1, 2, 3})
	if v := r.Uint("one", 5); v != 1 || !r.More() {
		t.Errorf("read %d", v)
	}
	r.Uint("two", 1)
	err := r.Err()
	if v := r.Uint("three", 9); v != 0 || r.Byte("three") != 0 || r.Bytes("three", 1) != nil || r.More() {
		t.Errorf("read %d after an error", v)
	}
	if r.Fail("another"); r.Err() != err || !strings.Contains(err.Error(), "byte 1: two is 2; want at most 1") {
		t.Errorf("the error is %v, and was %v", r.Err(), err)
	}
}

// FuzzDecode: no bytes make the decoder panic, and what decodes encodes to the bytes it took.
func FuzzDecode(f *testing.F) {
	r := based(f)
	r.do("id", func(w *store.Writer) { w.Name(store.NewPool, "r") })
	for _, l := range r.log {
		f.Add(l.raw)
	}
	f.Add([]byte("\x10\x17\x01a\x07unknown\x03\x05other\x00"))
	for seed := range 30 {
		e := rapid.Custom(drawEvent).Example(seed)
		f.Add(e.write(&store.Writer{}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var ev store.Event
		n, err := store.Decode(b, &ev)
		if err != nil {
			return
		}
		if n > len(b) || !bytes.Equal(ev.Raw, b[:n]) || len(ev.ID) > store.MaxID {
			t.Fatalf("%x: %d bytes of event %+v", b, n, ev)
		}
		var w store.Writer
		again := written{ev: ev}
		w.Buf = append(w.Buf, "before"...)
		w.Begin(ev.Kind, string(ev.ID))
		w.Cut()
		raw := again.write(&w)
		if len(ev.Effects) > 0 { // they are kept as they are
			w.Buf = w.Buf[:len("before")]
			w.Begin(ev.Kind, string(ev.ID))
			if ev.Named {
				w.Player(ev.Player)
			}
			if ev.Status != 0 {
				w.Fail(ev.Status, ev.Subject)
				w.Buf = append(w.Buf, ev.Why...)
				w.EndWhy()
			}
			w.BeginAsked()
			w.Buf = append(w.Buf, ev.Asked...)
			w.EndAsked()
			w.Buf = append(w.Buf, ev.Effects...)
			raw = w.End()
		}
		if !bytes.Equal(raw, b[:n]) {
			t.Fatalf("%x decodes, and encodes to %x", b[:n], raw)
		}
		e, changes := store.Effect{}, ev.Changes()
		for changes.Next(&e) {
			if e.Verb > store.UseCode || (e.Verb == store.Gain || e.Verb == store.Spend) && e.Value > store.MaxQuantity {
				t.Fatalf("effect %+v of %x", e, b[:n])
			}
		}
	})
}
