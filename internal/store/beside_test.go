package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/internal/store"
)

// beside calls look over and over from two goroutines, until it returns an error or what
// beside returns is called, which waits for them.
func beside(t *testing.T, look func(rnd *rand.Rand) error) (stop func()) {
	var over atomic.Bool
	var readers sync.WaitGroup
	for i := range uint64(2) {
		readers.Go(func() {
			for rnd := rand.New(rand.NewPCG(i, 1)); !over.Load(); {
				if err := look(rnd); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		over.Store(true)
		readers.Wait()
	}
}

// TestReadersSeeEventsWhole reads players and a pool, and captures the state, while events go
// on that keep every player's sum of two items, count in a counter of the player, and what is left of an entry and drawn. Who
// saw half an event would see another sum.
func TestReadersSeeEventsWhole(t *testing.T) {
	const players, sum, inStock = 100, 1000, 1_000_000
	r := newRealm(t)
	r.do("", func(w *store.Writer) {
		base(w)
		w.Effect(store.Pool, 0)
		stock(w, 0, inStock)
		for i := range players {
			w.Join(fmt.Sprint("p", i))
			w.Change(store.Gain, 0, sum)
		}
	})
	id := func(rnd *rand.Rand) string { return fmt.Sprint("p", rnd.IntN(players)) }
	stops := []func(){
		beside(t, func(rnd *rand.Rand) error {
			p := id(rnd)
			items, counters, last, ok := r.s.Holdings(p)
			if last > 1 && (len(counters) != 1 || counters[0] != store.CounterValue{Counter: 1, Value: last}) {
				return fmt.Errorf("%s has the counters %v as of %d", p, counters, last)
			}
			got := uint64(0)
			for _, b := range items {
				if b.Item != "c" {
					got += b.Quantity
				} else if b.Quantity != last {
					return fmt.Errorf("%s holds %v as of %d", p, items, last)
				}
			}
			if !ok || got != sum {
				return fmt.Errorf("%s holds %v, %d in all, want %d", p, items, got, sum)
			}
			return nil
		}),
		beside(t, func(rnd *rand.Rand) error {
			q, last, ok := r.s.HoldingOf(id(rnd), "c")
			if last > 1 && q != last || !ok {
				return fmt.Errorf("%d of c as of %d", q, last)
			}
			return nil
		}),
		beside(t, func(*rand.Rand) error {
			if l, d, limited := left(r.s, 0, 0); l+d != inStock || d%2 != 0 || !limited {
				return fmt.Errorf("%d are left and %d drawn, and every event takes two", l, d)
			}
			return nil
		}),
	}
	rnd := rand.New(rand.NewPCG(9, 9))
	held := map[uint32]uint64{} // of c
	for round := range 10 {
		c := r.s.Capture(nil)
		want := r.s.Hash()
		captured := make(chan error, 1)
		go func() {
			s, _, err := load([]snapshot{taken(c)})
			if err == nil && s.Hash() != want {
				err = fmt.Errorf("round %d: what was captured is another state", round)
			}
			captured <- err
		}()
		from, to := uint32(round%2), uint32(1-round%2)
		for range 200 {
			one, two := rnd.Uint32N(players), rnd.Uint32N(players)
			if one == two {
				continue
			}
			pos := uint64(len(r.log) + 1)
			r.do("", func(w *store.Writer) { // one, two, one again: a lock let go between would show
				for _, p := range []uint32{one, two, one, two} {
					w.Effect(store.Player, p)
					if r.s.Balance(p, from) >= 4 {
						w.Change(store.Spend, from, 2)
						w.Effect(store.Pool, 0)
						w.Effect(store.Take, 1)
						w.Change(store.Gain, to, 2)
					}
				}
				for _, p := range []uint32{one, two} {
					w.Effect(store.Player, p)
					w.Change(store.Gain, 2, pos-held[p])
					w.Change(store.Set, 1, pos)
					held[p] = pos
				}
				w.Effect(store.Pool, 0)
				w.Effect(store.Take, 0)
				w.Effect(store.Take, 0)
			})
		}
		if err := <-captured; err != nil {
			t.Error(err)
		}
		r.s.Release(c, true)
	}
	for _, stop := range stops {
		stop()
	}
	if err := r.s.Check(); err != nil {
		t.Error(err)
	}
}

// TestNewPlayersBesideReaders: who is found has all that the event gave that made the player,
// and of items that the same event named.
func TestNewPlayersBesideReaders(t *testing.T) {
	const players = 6000
	r := newRealm(t)
	r.do("", base)
	var newest atomic.Int64
	stop := beside(t, func(*rand.Rand) error {
		n := newest.Load()
		for _, id := range []string{fmt.Sprint("new", n), fmt.Sprint("new", n+1)} {
			items, _, _, ok := r.s.Holdings(id)
			if ok && (len(items) < 3 || items[0].Item == "") {
				return fmt.Errorf("%s is seen holding %v", id, items)
			}
			if q, last, _ := r.s.HoldingOf(id, fmt.Sprint("item", n+1)); last == uint64(n+3) && n%50 == 49 && q != 9 {
				return fmt.Errorf("%s as of %d holds %d of what was named then", id, last, q)
			}
		}
		return nil
	})
	for n := range int64(players) {
		r.do("", func(w *store.Writer) {
			last := uint32(2)
			if n > 0 && n%50 == 0 {
				item(w, 0, fmt.Sprint("item", n))
				last = uint32(r.s.Items())
			}
			w.Join(fmt.Sprint("new", n))
			w.Change(store.Gain, 0, 1)
			w.Change(store.Gain, 1, 2)
			w.Change(store.Gain, last, 9)
		})
		newest.Store(n)
	}
	stop()
}

// TestMovingPlayersBesideReaders: players whose memory grows, shrinks and moves all the time,
// up to blocks with memory of their own, are read as of one position, and not of one before
// the last that was shown.
func TestMovingPlayersBesideReaders(t *testing.T) {
	const players, items = 60, 12_000
	r := newRealm(t)
	r.do("", func(w *store.Writer) {
		for i := range items {
			item(w, 0, fmt.Sprintf("i%05d", i))
		}
		for i := range players {
			w.Join(fmt.Sprint("p", i))
		}
	})
	var shown [players]atomic.Uint64
	stop := beside(t, func(rnd *rand.Rand) error {
		n := rnd.IntN(players)
		since := shown[n].Load()
		all, _, last, ok := r.s.Holdings(fmt.Sprint("p", n))
		if !ok || last < since {
			return fmt.Errorf("player %d is seen as of %d, after %d (%v)", n, last, since, ok)
		}
		for i, b := range all { // as of position p, all holds are p
			if b.Quantity != last || b.Item != fmt.Sprintf("i%05d", i) {
				return fmt.Errorf("player %d as of %d: number %d of %d is %+v", n, last, i, len(all), b)
			}
		}
		return nil
	})
	rnd := rand.New(rand.NewPCG(3, 3))
	var holds [players]int
	var was [players]uint64
	for range 1500 {
		n := rnd.IntN(players)
		next := 1 + rnd.IntN(40)
		if n < 2 && rnd.IntN(4) == 0 {
			next = 1 + rnd.IntN(items-1)
		}
		pos := uint64(len(r.log) + 1)
		r.do("", func(w *store.Writer) {
			w.Effect(store.Player, uint32(n))
			for i := range max(next, holds[n]) {
				switch {
				case i >= next:
					w.Change(store.Spend, uint32(i), was[n])
				case i >= holds[n]:
					w.Change(store.Gain, uint32(i), pos)
				default:
					w.Change(store.Gain, uint32(i), pos-was[n])
				}
			}
		})
		holds[n], was[n] = next, pos
		shown[n].Store(pos)
	}
	stop()
	if err := r.s.Check(); err != nil {
		t.Error(err)
	}
}

// TestReadStockBesideCatalogs: what is read of a pool is of the catalog that was asked for.
func TestReadStockBesideCatalogs(t *testing.T) {
	r := newRealm(t)
	r.do("", base)
	stop := beside(t, func(*rand.Rand) error {
		version := r.s.Catalog().Version
		var got uint64
		if _, ok := r.s.ReadStock(0, []uint32{0}, version, func(_ int, left, drawn uint64, _ bool) { got = left + drawn }); ok && got != version+2 {
			return fmt.Errorf("a stock of %d under version %d", got, version)
		}
		return nil
	})
	for i := range 3000 {
		r.do("", func(w *store.Writer) {
			w.Effect(store.Pool, 0)
			stock(w, 0, int64(i+4))
			inForce(w, "next")
		})
	}
	stop()
	if _, ok := r.s.ReadStock(0, nil, 1, nil); ok {
		t.Error("stock of another version was read")
	}
	if _, ok := r.s.ReadStock(99, nil, r.s.Catalog().Version, nil); ok {
		t.Error("stock of a pool that there is not was read")
	}
}

// TestAbandonLetsReadersGo: a state that is given up does not hold up those who read it.
func TestAbandonLetsReadersGo(t *testing.T) {
	r := based(t)
	refused(t, "one too many", r.apply(r.write("", func(w *store.Writer) {
		w.Change(store.Gain, 0, 1)
		w.Effect(store.Pool, 0)
		take(w, 0, 2)
	})))
	r.s.Abandon()
	if _, _, _, ok := r.s.Holdings("ann"); !ok {
		t.Error("the player is not seen")
	}
	left(r.s, 0, 0)
}

// TestWarmIsAHint: memory that is asked for ahead changes nothing, for whomever it is asked.
func TestWarmIsAHint(t *testing.T) {
	r := newRealm(t)
	r.do("", base)
	r.do("", func(w *store.Writer) {
		for i := range 20_000 {
			w.Join(fmt.Sprint("p", i))
		}
	})
	if !r.s.Large() {
		t.Error("20,000 players are few")
	}
	was := r.s.Hash()
	var hashes []store.Hashes
	var evs []store.Event
	for i := range 200 {
		hashes = append(hashes, r.s.Hashes(fmt.Sprint("id", i), fmt.Sprint("p", i*150)))
		evs = append(evs, store.Event{Named: true, ID: fmt.Append(nil, "id", i), Player: store.Ref{Num: uint32(i * 150)}})
	}
	r.s.Warm(hashes)
	r.s.Warm(nil)
	r.s.WarmChange(evs[:64])
	r.s.WarmRemember(evs[:64])
	if r.s.Hash() != was {
		t.Error("asking for memory changed the state")
	}
}

// TestApplyAllocatesNothing: not for draws with ids, but for the chunks that ids and players
// fill up now and then.
func TestApplyAllocatesNothing(t *testing.T) {
	r := based(t)
	const runs = 20_000
	var raws [][]byte
	for i := range runs + 1 {
		raws = append(raws, append([]byte(nil), r.write(fmt.Sprintf("%016d", i), func(w *store.Writer) {
			w.Effect(store.Pool, 0)
			w.Effect(store.Take, 1)
			w.Change(store.Gain, 1, 1)
			w.Change(store.Set, 1, uint64(i))
		})...))
	}
	at := store.At{Position: uint64(len(r.log) + 1), Time: r.now}
	var ev store.Event
	if n := testing.AllocsPerRun(runs, func() {
		if _, err := store.Decode(raws[at.Index], &ev); err != nil {
			t.Fatal(err)
		}
		if err := r.s.Apply(&ev, at, nil); err != nil {
			t.Fatal(err)
		}
		at.Index++
	}); n != 0 {
		t.Errorf("%v allocations for each event", n)
	}
	var players []string
	for range 100 {
		players = append(players, "ann")
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, id := range players {
			r.s.HoldingOf(id, "a")
			r.s.Player(id)
		}
	}); n != 0 {
		t.Errorf("%v allocations for looking at players", n)
	}
}
