package store_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/internal/store"
)

// These tests write events by hand, as nobody would who decides by rules: what the state
// promises, it promises whatever the rules say.

// book is a state with the events that it is given, one batch each.
type book struct {
	t     testing.TB
	state *store.State
	w     store.Writer
	at    store.At
}

func newBook(t testing.TB) *book { return &book{t: t, state: store.New(), at: store.At{Time: 1000}} }

// event writes an event of a request and decodes it; effects may be nil.
func (b *book) event(id string, status uint8, effects func(w *store.Writer)) (ev store.Event, err error) {
	b.w = store.Writer{}
	b.w.Begin(2, id)
	if status != 0 {
		b.w.Fail(status, 7)
		b.w.EndWhy()
	}
	b.w.BeginAsked()
	b.w.EndAsked()
	if effects != nil {
		effects(&b.w)
	}
	raw := b.w.End()
	if _, err = store.Decode(raw, &ev); err == nil && string(ev.Raw) != string(raw) {
		b.t.Fatalf("%x is decoded as %x", raw, ev.Raw)
	}
	return ev, err
}

// try applies an event in a batch of its own.
func (b *book) try(id string, effects func(w *store.Writer)) error {
	b.t.Helper()
	ev, err := b.event(id, 0, effects)
	if err != nil {
		b.t.Fatal(err)
	}
	b.at.Position++
	return b.state.Apply(&ev, b.at, nil)
}

func (b *book) do(id string, effects func(w *store.Writer)) {
	b.t.Helper()
	if err := b.try(id, effects); err != nil {
		b.t.Fatal(err)
	}
}

func takeOne(w *store.Writer, pool, entry uint32) {
	w.Effect(store.Pool, pool)
	w.Effect(store.Take, entry)
}

// nameAll makes items, counters and pools: each of some entries with stocks, where 0 is none
// and math.MaxUint64 is no bound.
func nameAll(w *store.Writer, items, counters int, pools ...[]uint64) {
	for i := range items {
		w.More(store.Item)
		w.Buf = append(w.Buf, 0)
		w.Text(fmt.Sprint("item", i))
	}
	if counters > 0 {
		w.More(store.Counter)
		w.Uint(uint64(counters))
		w.Text("counters")
	}
	for i, stocks := range pools {
		w.Name(store.NewPool, fmt.Sprint("pool", i))
		for k, stock := range stocks {
			w.Name(store.Entry, fmt.Sprint("entry", k))
			w.More(store.Stock)
			w.Uint(uint64(k))
			w.Uint(stock + 1)
		}
	}
	w.More(store.Catalog)
	w.Uint(1)
	w.Buf = append(w.Buf, 'c')
}

// TestRefusesWhatBreaksAPromise: the state refuses an effect that its promises forbid, so
// that no log and no mistake of the rules can break them.
func TestRefusesWhatBreaksAPromise(t *testing.T) {
	for name, effects := range map[string]func(w *store.Writer){
		"a player who is there joins":            func(w *store.Writer) { w.Join("ann") },
		"one player joins twice":                 func(w *store.Writer) { w.Join("cyd"); w.Join("cyd") },
		"effects of a player that there is not":  func(w *store.Writer) { w.Effect(store.Player, 2); w.Change(store.Gain, 0, 1) },
		"more than a balance can be":             func(w *store.Writer) { w.Change(store.Gain, 0, store.MaxQuantity-4) },
		"more in steps":                          func(w *store.Writer) { w.Change(store.Gain, 1, store.MaxQuantity); w.Change(store.Gain, 1, 1) },
		"more than the player holds":             func(w *store.Writer) { w.Change(store.Spend, 0, 6) },
		"of what the player does not hold":       func(w *store.Writer) { w.Change(store.Spend, 1, 1) },
		"of what another holds":                  func(w *store.Writer) { w.Effect(store.Player, 1); w.Change(store.Spend, 0, 1) },
		"an item that there is not":              func(w *store.Writer) { w.Change(store.Gain, 2, 1) },
		"none of an item":                        func(w *store.Writer) { w.Change(store.Gain, 0, 0) },
		"a counter that there is not":            func(w *store.Writer) { w.Change(store.Set, 3, 1) },
		"an entry that is out of stock":          func(w *store.Writer) { takeOne(w, 0, 1) },
		"an entry more often than its stock":     func(w *store.Writer) { takeOne(w, 0, 0); takeOne(w, 0, 0); takeOne(w, 0, 0) },
		"an entry beyond a stock that sinks":     func(w *store.Writer) { takeOne(w, 0, 0); restock(w, 0, 1); takeOne(w, 0, 0) },
		"an entry far beyond a stock that sinks": func(w *store.Writer) { takeOne(w, 0, 0); takeOne(w, 0, 0); restock(w, 0, 1); takeOne(w, 0, 0) },
		"an entry beyond the same stock again":   func(w *store.Writer) { takeOne(w, 0, 0); takeOne(w, 0, 0); restock(w, 0, 2); takeOne(w, 0, 0) },
		"an entry beyond a stock that rises": func(w *store.Writer) {
			takeOne(w, 0, 0)
			takeOne(w, 0, 0)
			restock(w, 0, 3)
			takeOne(w, 0, 0)
			takeOne(w, 0, 0)
		},
		"an entry that there is not": func(w *store.Writer) { takeOne(w, 0, 3) },
		"an entry of no pool":        func(w *store.Writer) { w.Effect(store.Take, 0) },
		"a pool that there is not":   func(w *store.Writer) { takeOne(w, 1, 0) },
		"an item of a known name":    func(w *store.Writer) { w.More(store.Item); w.Buf = append(w.Buf, 0); w.Text("item1") },
		"a pool of a known name":     func(w *store.Writer) { w.Name(store.NewPool, "pool0") },
		"an entry of a known name":   func(w *store.Writer) { w.Effect(store.Pool, 0); w.Name(store.Entry, "entry1") },
		"counters of a known name":   func(w *store.Writer) { w.More(store.Counter); w.Uint(1); w.Text("counters") },
	} {
		b := newBook(t)
		b.do("", func(w *store.Writer) { nameAll(w, 2, 3, []uint64{2, 0, math.MaxUint64}) })
		b.do("", func(w *store.Writer) { w.Join("ann"); w.Change(store.Gain, 0, 5); w.Join("bob") })
		if err := b.state.Check(); err != nil {
			t.Fatal(err)
		}
		var refused *store.InconsistentError
		if err := b.try("", effects); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want an error that says so", name, err)
		}
	}
}

// restock sets the stock of an entry of pool 0.
func restock(w *store.Writer, entry uint32, stock uint64) {
	w.Effect(store.Pool, 0)
	w.More(store.Stock)
	w.Uint(uint64(entry))
	w.Uint(stock + 1)
}

// TestRefusesAnIDTwice: an event whose request id was answered before is refused, also when
// it failed, and an id that was not answered is not.
func TestRefusesAnIDTwice(t *testing.T) {
	for _, status := range []uint8{0, 3} {
		b := newBook(t)
		for _, id := range []string{"a", "b", "", ""} {
			ev, err := b.event(id, status, nil)
			if err == nil {
				b.at.Position++
				err = b.state.Apply(&ev, b.at, nil)
			}
			if err != nil {
				t.Fatalf("id %q: %v", id, err)
			}
		}
		if n := b.state.WindowSize().Remembered; n != 2 {
			t.Errorf("%d ids are remembered, want 2", n)
		}
		ev, err := b.event("a", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		var refused *store.InconsistentError
		if err := b.state.Apply(&ev, b.at, nil); !errors.As(err, &refused) {
			t.Errorf("an id is accepted a second time, behind status %d: %v", status, err)
		}
	}
}

// TestRefusesTimeThatGoesBack: positions and time stamps never decrease.
func TestRefusesTimeThatGoesBack(t *testing.T) {
	for _, at := range []store.At{{Position: 0, Time: 1000}, {Position: 1, Time: 999}} {
		b := newBook(t)
		b.do("", nil)
		ev, err := b.event("", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		var refused *store.InconsistentError
		if err := b.state.Apply(&ev, at, nil); !errors.As(err, &refused) {
			t.Errorf("position %d, time %d behind 1, 1000: %v", at.Position, at.Time, err)
		}
	}
}

// TestRefusesEffectsOfAFailure: an event that failed changes nothing but counts, and makes the
// player whom it counts for.
func TestRefusesEffectsOfAFailure(t *testing.T) {
	b := newBook(t)
	for name, effects := range map[string]func(w *store.Writer){
		"gain":       func(w *store.Writer) { w.Change(store.Gain, 0, 1) },
		"spend":      func(w *store.Writer) { w.Change(store.Set, 0, 1); w.Change(store.Spend, 0, 1) },
		"take":       func(w *store.Writer) { takeOne(w, 0, 0) },
		"group":      func(w *store.Writer) { w.More(store.Member) },
		"give":       func(w *store.Writer) { w.More(store.GiveCode, 0, 0) },
		"use":        func(w *store.Writer) { w.More(store.UseCode, 0, 0) },
		"tally":      func(w *store.Writer) { w.More(store.Tally, 0, 1) },
		"another":    func(w *store.Writer) { w.Effect(store.Player, 0); w.Change(store.Set, 0, 1) },
		"two join":   func(w *store.Writer) { w.Join("bob"); w.Join("cat") },
		"late join":  func(w *store.Writer) { w.Change(store.Set, 0, 1); w.Join("bob") },
		"first gain": func(w *store.Writer) { w.Join("bob"); w.Change(store.Gain, 0, 1) },
		"late gain":  func(w *store.Writer) { w.Join("bob"); w.Change(store.Set, 0, 1); w.Change(store.Gain, 0, 1) },
	} {
		ev, err := b.event("", 1, effects)
		if err != nil {
			t.Fatal(err)
		}
		var malformed *store.FormatError
		changes, e := ev.Changes(), store.Effect{}
		for changes.Next(&e) {
		}
		if err := changes.Err(); !errors.As(err, &malformed) {
			t.Errorf("%s of an event that failed is read: %v, want a FormatError", name, err)
		}
		b := newBook(t)
		b.do("", func(w *store.Writer) { nameAll(w, 1, 1, []uint64{5}); w.Join("ann"); w.Change(store.Gain, 0, 1) })
		b.at.Position++
		if err := b.state.Apply(&ev, b.at, nil); !errors.As(err, &malformed) {
			t.Errorf("%s of an event that failed is applied: %v, want a FormatError", name, err)
		}
	}
	for name, effects := range map[string]func(w *store.Writer){
		"set":  func(w *store.Writer) { w.Change(store.Set, 0, 1) },
		"join": func(w *store.Writer) { w.Join("bob"); w.Change(store.Set, 0, 1); w.Change(store.Set, 0, 2) },
	} {
		b := newBook(t)
		b.do("", func(w *store.Writer) { nameAll(w, 1, 1); w.Join("ann") })
		ev, err := b.event("", 1, effects)
		if err != nil {
			t.Fatal(err)
		}
		b.at.Position++
		if err := b.state.Apply(&ev, b.at, nil); err != nil {
			t.Errorf("%s of an event that failed: %v", name, err)
		}
	}
}

// TestSnapshotIsOfItsMoment: a snapshot holds the state as it was when it was begun, and one
// that builds on it what changed since, whatever changes meanwhile.
func TestSnapshotIsOfItsMoment(t *testing.T) {
	const entries = 1200 // in three chunks of a snapshot
	b := newBook(t)
	b.do("", func(w *store.Writer) {
		stocks := make([]uint64, entries)
		for i := range stocks {
			stocks[i] = uint64(1000 + i)
		}
		nameAll(w, 3, 2, stocks, stocks[:5])
	})
	for n := range 300 {
		b.do(fmt.Sprint("id", n), func(w *store.Writer) {
			w.Join(fmt.Sprint("player", n))
			w.Change(store.Gain, uint32(n%2), uint64(n+1))
			takeOne(w, uint32(n%2), uint32(n%5))
			takeOne(w, 0, uint32(n*4))
		})
	}
	change := func(round int) {
		for n := range 40 {
			b.do(fmt.Sprint("round", round, "id", n), func(w *store.Writer) {
				w.Effect(store.Player, uint32(n*7+round))
				w.Change(store.Gain, 2, uint64(n+1))
				w.Change(store.Set, 1, uint64(n+round))
				takeOne(w, 0, uint32(n*30+round))
				takeOne(w, 1, uint32(n%5))
				w.Join(fmt.Sprint("new", round, ".", n))
			})
		}
		b.do("", func(w *store.Writer) {
			restock(w, uint32(round), uint64(round))
			w.Name(store.Entry, fmt.Sprint("late", round))
			w.Name(store.NewPool, fmt.Sprint("late", round))
			w.Name(store.Entry, "only")
			w.More(store.Catalog)
			w.Uint(1)
			w.Buf = append(w.Buf, 'd')
		})
	}
	loader, base := store.NewLoader(), (*store.Extent)(nil)
	for round := range 4 {
		want := b.state.Hash()
		c := b.state.Capture(base)
		change(round)
		blocks := 0
		for kind, data := range c.Blocks(func() {}) {
			if blocks++; blocks == 3 {
				change(10 + round) // during the snapshot
			}
			if err := loader.Block(kind, data); err != nil {
				t.Fatalf("round %d, block %d: %v", round, blocks, err)
			}
		}
		if err := loader.Loaded(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		extent := c.Extent()
		base = &extent
		b.state.Release(c, true)
		s, _, err := loader.State()
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if s.Hash() != want {
			t.Fatalf("round %d: the snapshot holds another state than that of its moment", round)
		}
	}
}

// TestReadersSeeWholeEvents: who reads next to the writer sees all that an event changes of
// players and of a pool, or nothing of it.
func TestReadersSeeWholeEvents(t *testing.T) {
	const between = 200
	b := newBook(t)
	b.do("", func(w *store.Writer) { nameAll(w, 1, 0, []uint64{math.MaxUint64, 1 << 40}, []uint64{1 << 40}) })
	b.do("", func(w *store.Writer) {
		for n := range between + 2 {
			w.Join(fmt.Sprint("player", n))
			w.Change(store.Gain, 0, 1)
		}
	})
	first, last := "player0", fmt.Sprint("player", between+1)
	var events atomic.Uint64
	var over atomic.Bool
	wrong := make(chan string, 2)
	read := func(look func() string) {
		for !over.Load() {
			if what := look(); what != "" {
				wrong <- what
				return
			}
		}
		wrong <- ""
	}
	holds := func(player string) uint64 {
		q, _, _ := b.state.HoldingOf(player, "item0")
		return q
	}
	go read(func() string {
		since := events.Load()
		was := holds(first)
		if is := holds(last); is < was || was <= since {
			return fmt.Sprintf("%s has %d events, %s then %d, behind %d", first, was, last, is, since)
		}
		return ""
	})
	go read(func() string {
		since, drawn := events.Load(), uint64(0)
		_, ok := b.state.ReadStock(0, []uint32{0, 1}, 1, func(_ int, _, n uint64, _ bool) { drawn += n })
		if !ok || drawn%between != 0 || drawn < since*between {
			return fmt.Sprintf("%d draws (%v) in events of %d, behind %d", drawn, ok, between, since)
		}
		return ""
	})
	var found []string
	for n := range uint64(1000) {
		b.do("", func(w *store.Writer) {
			w.Effect(store.Player, 0)
			w.Change(store.Gain, 0, 1)
			for k := range uint32(between) {
				takeOne(w, 0, k%2)
				takeOne(w, 1, 0)
				w.Effect(store.Player, 1+k)
				w.Change(store.Gain, 0, 1)
			}
			w.Effect(store.Player, between+1)
			w.Change(store.Gain, 0, 1)
		})
		events.Store(n + 1)
		if len(wrong) > 0 {
			break
		}
	}
	over.Store(true)
	for range 2 {
		if what := <-wrong; what != "" {
			found = append(found, what)
		}
	}
	if len(found) > 0 {
		t.Error(strings.Join(found, "; "))
	}
}

// TestOnlyAPlainEventPutsACatalogInForce: Remember looks for windows and catalogs in events
// without a player and a request id, so that no other may hold them.
func TestOnlyAPlainEventPutsACatalogInForce(t *testing.T) {
	for name, effects := range map[string]func(w *store.Writer){
		"a window":  func(w *store.Writer) { w.More(store.Window); w.Uint(1); w.Uint(60_000) },
		"a catalog": func(w *store.Writer) { w.More(store.Catalog); w.Uint(0) },
	} {
		if err := newBook(t).try("", effects); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := newBook(t).try("id", effects); err == nil {
			t.Errorf("%s in an event with a request id is accepted", name)
		}
	}
}
