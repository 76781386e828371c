package store

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

var large = flag.Bool("large", false, "benchmark orders of ten million players")

// collect returns at most so many keys from one on.
func (r *ranks) collect(n uint64, most int) []rankKey { return slices.Collect(r.from(n, most)) }

// TestRanksModel: after each of many random changes a set has what a sorted slice has. The phases
// make it grow, shrink, and move; keys come in ascending, descending and random order.
func TestRanksModel(t *testing.T) {
	for _, width := range []bool{false, true} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(width, seed), func(t *testing.T) { ranksModel(t, width, seed, 20_000) })
		}
	}
}

func ranksModel(t *testing.T, b bool, seed uint64, steps int) {
	random := rand.New(rand.NewPCG(seed, 1))
	var want []rankKey
	r := newRanks(newRankNodes(b))
	next := uint64(1 << 40)
	fresh := func() rankKey {
		k := rankKey{a: uint64(random.IntN(500)), player: random.Uint32N(1000)}
		switch seed % 3 {
		case 1:
			next++
			k.a = next
		case 2:
			next--
			k.a = next
		}
		if b {
			k.b = uint64(random.IntN(3))
		}
		return k
	}
	for step := range steps {
		k := fresh()
		at, there := slices.BinarySearchFunc(want, k, rankKey.compare)
		if grow := []int{90, 50, 10, 50}[step*12/steps%4]; random.IntN(100) < grow == (len(want) > 0) || len(want) == 0 {
			if !there {
				r.insert(k)
				want = slices.Insert(want, at, k)
			}
		} else {
			at = random.IntN(len(want))
			if !r.remove(want[at]) {
				t.Fatalf("step %d: %v is not there", step, want[at])
			}
			want = slices.Delete(want, at, at+1)
			if r.remove(k) != slices.Contains(want, k) {
				t.Fatalf("step %d: %v is there, or not", step, k)
			}
			want = slices.DeleteFunc(want, func(o rankKey) bool { return o == k })
		}
		if len(want) > 0 {
			at := random.IntN(len(want))
			if got := r.before(want[at]); got != uint64(at) {
				t.Fatalf("step %d: %d keys before the one at %d", step, got, at)
			}
			if got, want := r.collect(uint64(at), 5), want[at:min(at+5, len(want))]; !slices.Equal(got, want) {
				t.Fatalf("step %d: %v from %d on, want %v", step, got, at, want)
			}
		}
		if step%100 == 0 {
			if err := r.check(); err != nil || !slices.Equal(r.collect(0, len(want)+1), want) {
				t.Fatalf("step %d: %v, or another content", step, err)
			}
		}
	}
}

// TestRanksFill: a filled set is sound, whatever its size, and takes changes.
func TestRanksFill(t *testing.T) {
	for _, n := range []int{0, 1, 43, 44, 74, 75, 1000, 1364, 1365, 1366, 50_000, 200_000} {
		keys := make([]rankKey, n)
		for i := range keys {
			keys[i] = rankKey{a: uint64(i), player: uint32(i)}
		}
		r := newRanks(newRankNodes(n%2 == 0))
		r.fill(keys)
		if err := r.check(); err != nil || !slices.Equal(r.collect(0, n+1), keys) {
			t.Fatalf("%d keys: %v, or another content", n, err)
		}
		for i := n - 1; i >= 0; i -= 2 {
			r.remove(keys[i])
			r.insert(rankKey{a: uint64(i), player: uint32(n)})
		}
		if err := r.check(); err != nil || r.len() != uint64(n) {
			t.Fatalf("%d keys, then %d: %v", n, r.len(), err)
		}
	}
}

// TestSortRanks: keys are sorted, whichever of their bytes differ.
func TestSortRanks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 200 {
		keys := make([]rankKey, random.IntN(3000))
		aBits, bBits, playerBits := random.IntN(65), random.IntN(65), random.IntN(33)
		for i := range keys {
			keys[i] = rankKey{random.Uint64() >> (64 - aBits), random.Uint64() >> (64 - bBits), random.Uint32() >> (32 - playerBits)}
		}
		want := slices.Clone(keys)
		slices.SortFunc(want, rankKey.compare)
		if sortRanks(keys); !slices.Equal(keys, want) {
			t.Fatalf("round %d: %d keys of %d, %d and %d bits are not in order", round, len(keys), aBits, bBits, playerBits)
		}
	}
}

// filledRanks returns a set of n keys with random values, and where each player stands.
func filledRanks(n int, b bool) (ranks, []rankKey) {
	random := rand.New(rand.NewPCG(1, 1))
	keys := make([]rankKey, n)
	for i := range keys {
		keys[i] = rankKey{a: ^random.Uint64N(1 << 30), player: uint32(i)}
		if b {
			keys[i].b = uint64(i)
		}
	}
	sorted := slices.Clone(keys)
	sortRanks(sorted)
	r := newRanks(newRankNodes(b))
	r.fill(sorted)
	return r, keys
}

// BenchmarkRanks moves, ranks and pages players of orders of different sizes.
func BenchmarkRanks(top *testing.B) {
	for _, n := range sizesOfOrders() {
		for _, b := range []bool{false, true} {
			top.Run(fmt.Sprintf("n=%d,move=%t", n, b), func(top *testing.B) { benchmarkRanks(top, n, b) })
		}
	}
}

func benchmarkRanks(top *testing.B, n int, wide bool) {
	r, keys := filledRanks(n, wide)
	runtime.GC()
	random := rand.New(rand.NewPCG(2, 2))
	next := uint64(n)
	move := func() {
		i := random.IntN(n)
		r.remove(keys[i])
		keys[i].a = ^random.Uint64N(1 << 30)
		if next++; wide {
			keys[i].b = next
		}
		r.insert(keys[i])
	}
	top.Run("Move", func(b *testing.B) {
		for b.Loop() {
			move()
		}
	})
	top.Run("Near", func(b *testing.B) { // a little higher, as most moves are
		for b.Loop() {
			i := random.IntN(n)
			r.remove(keys[i])
			keys[i].a -= 10
			if next++; wide {
				keys[i].b = next
			}
			r.insert(keys[i])
		}
	})
	for range n {
		move()
	}
	top.Run("Rank", func(b *testing.B) {
		sum := uint64(0)
		for b.Loop() {
			sum += r.before(keys[random.IntN(n)])
		}
		b.ReportMetric(float64(r.mem.used-r.mem.spare)*nodeWords*4/float64(n), "bytes/player")
	})
	top.Run("Top100", func(b *testing.B) {
		for b.Loop() {
			for range r.from(random.Uint64N(uint64(n)), 100) {
			}
		}
	})
}

// BenchmarkRanksFill sorts and fills.
func BenchmarkRanksFill(b *testing.B) {
	n := int(1e6)
	if *large {
		n = 1e7
	}
	_, keys := filledRanks(n, true)
	for b.Loop() {
		sorted := slices.Clone(keys)
		sortRanks(sorted)
		r := newRanks(newRankNodes(true))
		r.fill(sorted)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/player")
}

// writing writes events and applies them to a state.
type writing struct {
	tb testing.TB
	s  *State
	w  Writer
	ev Event
}

func (a *writing) do(effects func(w *Writer)) {
	a.w.Buf = a.w.Buf[:0]
	a.w.Begin(2, "")
	a.w.BeginAsked()
	a.w.EndAsked()
	effects(&a.w)
	if _, err := Decode(a.w.End(), &a.ev); err != nil {
		a.tb.Fatal(err)
	}
	if err := a.s.Change(&a.ev, At{Position: a.s.applied + 1}, nil); err != nil {
		a.tb.Fatal(err)
	}
}

// rankedState returns a state of n players with six counters: the first three are those of a
// standing, or not, and all players have them; nobody has the others.
func rankedState(tb testing.TB, n int, ranked bool) *writing {
	a, random := &writing{tb: tb, s: New()}, rand.New(rand.NewPCG(1, 1))
	a.s.Alone(true)
	a.do(func(w *Writer) { w.More(Counter, 6); w.Text("rank") })
	for i := range n {
		a.do(func(w *Writer) {
			w.Join(fmt.Sprint("player-", i))
			w.Change(Set, 0, 1+random.Uint64N(1<<30))
			w.Change(Set, 1, uint64(i)+1)
			w.Change(Set, 2, 1)
		})
	}
	if ranked {
		a.do(func(w *Writer) { w.More(Order, 0, uint64(ByStanding)) })
	}
	a.s.Alone(false)
	return a
}

// sizesOfOrders returns the numbers of players that benchmarks have.
func sizesOfOrders() []int {
	if *large {
		return []int{1e4, 1e6, 1e7}
	}
	return []int{1e4, 1e6}
}

// BenchmarkOrder applies events that set the value and the move of a random player, ranked or not.
func BenchmarkOrder(top *testing.B) {
	for _, n := range sizesOfOrders() {
		for _, ranked := range []bool{false, true} {
			top.Run(fmt.Sprintf("n=%d,ranked=%t", n, ranked), func(b *testing.B) {
				a, random := rankedState(b, n, ranked), rand.New(rand.NewPCG(2, 2))
				for moved := uint64(n); b.Loop(); moved++ {
					a.do(func(w *Writer) {
						p := random.Uint32N(uint32(n))
						w.Effect(Player, p)
						w.Change(Set, 0, a.s.Counter(p, 0)+random.Uint64N(1<<20))
						w.Change(Set, 1, moved)
					})
				}
			})
		}
	}
}

// BenchmarkOrderDeclare declares an order in a realm of many players, who all have the counter or of
// whom nobody has it, and drops it again.
func BenchmarkOrderDeclare(top *testing.B) {
	for _, n := range sizesOfOrders() {
		a := rankedState(top, n, false)
		for _, counter := range []uint64{0, 3} {
			top.Run(fmt.Sprintf("n=%d,all=%t", n, counter == 0), func(b *testing.B) {
				for b.Loop() {
					a.do(func(w *Writer) {
						w.More(Order, counter, uint64(ByStanding))
						w.More(Order, counter, uint64(Unordered))
					})
				}
			})
		}
	}
}

// BenchmarkOrderLoad loads a snapshot of ranked players, and one of players who are not.
func BenchmarkOrderLoad(top *testing.B) {
	n := int(1e5)
	if *large {
		n = 1e7
	}
	for _, ranked := range []bool{false, true} {
		top.Run(fmt.Sprintf("n=%d,ranked=%t", n, ranked), func(b *testing.B) {
			type part struct {
				kind BlockKind
				data []byte
			}
			var parts []part
			for kind, data := range rankedState(b, n, ranked).s.Capture(nil).Blocks(func() {}) {
				parts = append(parts, part{kind, slices.Clone(data)})
			}
			runtime.GC()
			for b.Loop() {
				l := NewLoader()
				for _, p := range parts {
					if err := l.Block(p.kind, p.data); err != nil {
						b.Fatal(err)
					}
				}
				if err := l.Loaded(); err != nil {
					b.Fatal(err)
				}
				if _, _, err := l.State(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEarliest(b *testing.B) {
	r, _ := filledRanks(1e6, false)
	s := &orders{list: []*order{{counter: 3, by: ByTime, nodes: r.mem, periods: []*period{{0, r}}}}}
	for b.Loop() {
		s.Earliest(3)
	}
}

// TestRanksCheck: a tree of several levels in which one number is wrong is found out.
func TestRanksCheck(t *testing.T) {
	for name, change := range map[string]func(r *ranks){
		"a count":           func(r *ranks) { r.mem.counts(r.mem.at(r.root))[1]++ },
		"a bound":           func(r *ranks) { r.mem.at(r.root)[r.mem.inner.keys.at+r.mem.inner.keys.width] ^= 1 << 20 },
		"a child":           func(r *ranks) { r.mem.at(r.root)[children] = r.mem.at(r.root).child(1) },
		"a node of no keys": func(r *ranks) { r.mem.at(r.mem.at(r.root).child(0))[0] = 0 },
		"a root of one":     func(r *ranks) { r.mem.at(r.root)[0] = 1 },
		"an end":            func(r *ranks) { x, _ := r.leaf(0); x[1] = 0 },
		"a link":            func(r *ranks) { x, _ := r.leaf(0); x[1]++ },
		"a total":           func(r *ranks) { r.n++ },
	} {
		r, _ := filledRanks(5000, true)
		if err := r.check(); err != nil {
			t.Fatal(err)
		}
		if change(&r); r.check() == nil {
			t.Errorf("%s: nothing is found", name)
		}
	}
}
