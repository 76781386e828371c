package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/store"
)

// snapshot is one snapshot's blocks, as a file would hold them.
type snapshot []block

type block struct {
	kind store.BlockKind
	data []byte
}

// taken writes a capture down.
func taken(c *store.Capture) (snap snapshot) {
	for kind, data := range c.Blocks(func() {}) {
		snap = append(snap, block{kind, slices.Clone(data)})
	}
	return snap
}

// load loads snapshots that build on each other.
func load(chain []snapshot) (*store.State, store.Extent, error) {
	l := store.NewLoader()
	for _, snap := range chain {
		for _, b := range snap {
			if err := l.Block(b.kind, b.data); err != nil {
				return nil, store.Extent{}, err
			}
		}
		if err := l.Loaded(); err != nil {
			return nil, store.Extent{}, err
		}
	}
	return l.State()
}

// step applies something to a realm after base: players join and change, stock is taken, ids
// are remembered, and now and then there are new names, another window, and orders that come and go.
func (r *realm) step(rnd *rand.Rand) {
	r.t.Helper()
	n := len(r.log)
	r.now += rnd.Int64N(2000)
	id := ""
	if rnd.IntN(2) == 0 {
		id = fmt.Sprint("request-", n)
	}
	player := rnd.Uint32N(max(r.s.Players(), 1))
	r.do(id, func(w *store.Writer) {
		switch {
		case rnd.IntN(4) == 0 || r.s.Players() == 0:
			w.Join(fmt.Sprintf("%0*d", 1+n%50, n))
		default:
			w.Effect(store.Player, player)
		}
		for range rnd.IntN(4) {
			w.Change(store.Gain, rnd.Uint32N(uint32(r.s.Items())), 1+rnd.Uint64N(1<<rnd.IntN(40)))
		}
		for range rnd.IntN(3) {
			w.Change(store.Set, rnd.Uint32N(r.s.NextCounter()), rnd.Uint64()>>rnd.IntN(64)*uint64(rnd.IntN(3)))
		}
		if rnd.IntN(2) == 0 {
			w.Effect(store.Pool, 0)
			w.Effect(store.Take, 1)
		}
		for list := range uint32(r.s.CodeLists()) {
			left, _ := r.s.CodesLeft(list)
			for i := range min(left, rnd.Uint64N(4)) {
				w.More(store.GiveCode, uint64(list), r.s.CodesGiven(list)+i)
			}
			codes, _ := r.s.Codes(list)
			if n := rnd.Uint64N(1 + codes.Count()); n < codes.Count() && !r.s.CodeUsedBy(list, n, player) {
				w.Effect(store.Player, player)
				w.More(store.UseCode, uint64(list), n)
			}
		}
	})
	r.keep(rnd)
	if rnd.IntN(20) == 0 {
		r.do("", func(w *store.Writer) {
			list := rnd.Uint32N(uint32(r.s.CodeLists()) + 1)
			if int(list) == r.s.CodeLists() {
				w.Name(store.NewList, fmt.Sprint("list", n))
			}
			some := make([]string, rnd.IntN(40))
			for i := range some {
				some[i] = fmt.Sprintf("%d-%d", n, i)
			}
			codes(w, list, some...)
		})
	}
	if rnd.IntN(20) == 0 {
		r.reorder(rnd)
	}
	if rnd.IntN(30) > 0 {
		return
	}
	r.do("", func(w *store.Writer) {
		item(w, byte(n%2), fmt.Sprint("item", n))
		w.Name(store.NewPool, fmt.Sprint("pool", n))
		if pool := rnd.Uint32N(uint32(r.s.Pools())); rnd.IntN(2) == 0 {
			w.Effect(store.Pool, pool)
		}
		for i := range rnd.IntN(700) { // more than a capture copies at a time
			w.Name(store.Entry, fmt.Sprint("entry", n, "-", i))
		}
		w.Effect(store.Pool, 0)
		stock(w, rnd.Uint64N(3), rnd.Int64N(9)-1)
		stock(w, 1, -1)
		counters(w, 1+rnd.Uint64N(9), fmt.Sprint("counters", n))
		window(w, 1+rnd.Uint64N(100), rnd.Uint64N(60_000))
		inForce(w, strings.Repeat("catalog", n%40))
	})
}

// keep holds, releases and forfeits items of a player, and writes and drops records.
func (r *realm) keep(rnd *rand.Rand) {
	player := rnd.Uint32N(r.s.Players())
	r.do("", func(w *store.Writer) {
		w.Effect(store.Player, player)
		for n := range uint32(r.s.Items()) {
			if have := r.s.Balance(player, n); have > 0 && rnd.IntN(3) == 0 {
				w.More(store.Hold, uint64(n), 1+rnd.Uint64N(have))
			}
			if held := r.s.Balance(player, store.HeldOf(n)); held > 1 && rnd.IntN(3) == 0 {
				w.More(store.Release, uint64(n), 1+rnd.Uint64N(held/2))
				w.More(store.Forfeit, uint64(n), 1+rnd.Uint64N(held-held/2))
			}
		}
		for range rnd.IntN(12) {
			key := []byte(fmt.Sprint("record ", rnd.IntN(1000)))
			w.Put(key, make([]byte, rnd.IntN(300)))
		}
		dropped := map[string]bool{}
		for key := range r.s.Records(fmt.Append(nil, "record ", rnd.IntN(1000)), nil) {
			if rnd.IntN(3) == 0 {
				break
			}
			if !bytes.Contains(w.Buf, key) && !dropped[string(key)] { // it was not written just now
				dropped[string(key)] = true
				w.Drop(key)
			}
		}
	})
}

// TestSnapshotOfManyCodes: lists of more codes than one piece of memory holds come out of snapshots
// that build on each other as they went in.
func TestSnapshotOfManyCodes(t *testing.T) {
	r := based(t)
	var chain []snapshot
	var extent *store.Extent
	for round := range 4 {
		r.do("", func(w *store.Writer) {
			if round < 2 {
				w.Name(store.NewList, fmt.Sprint("list", round))
			}
			some := make([]string, 3000)
			for i := range some {
				some[i] = fmt.Sprintf("%0*d-%d", 1+i%100, round, i)
			}
			codes(w, uint32(round%2), some...)
		})
		r.do("", func(w *store.Writer) {
			for i := range uint64(700) {
				w.More(store.GiveCode, 0, uint64(round)*700+i)
			}
			for i := range uint64(700) {
				w.More(store.UseCode, 0, uint64(round)*700+i)
			}
		})
		c := r.s.Capture(extent)
		chain = append(chain, taken(c))
		r.s.Release(c, true)
		m := c.Extent()
		extent = &m
		s, _, err := load(chain)
		if err != nil || s.Hash() != r.s.Hash() {
			t.Fatalf("round %d: %v", round, err)
		}
		wantWhole(t, s)
		if code := s.Code(0, 2999); !s.HasCode(0, code) || len(code) != 105 || s.HasCode(0, code+" ") {
			t.Errorf("the last code of the first import is %q", code)
		}
	}
	r.follow(r.replay())
}

// TestSnapshotBesideTheWriter captures states, whole and on top of one another, while events
// are applied between any two blocks, and loads them again.
func TestSnapshotBesideTheWriter(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() { // the race detector needs only one
		seeds = 1
	}
	for seed := range seeds {
		r, rnd := newRealm(t), rand.New(rand.NewPCG(seed, 2))
		r.do("", base)
		r.s.SetKept(30)
		for range rnd.IntN(300) {
			r.step(rnd)
		}
		var chain []snapshot
		var extent *store.Extent
		for range 6 {
			if rnd.IntN(4) == 0 {
				chain, extent = nil, nil
			}
			c := r.s.Capture(extent)
			c.SetBlockSize(64 + rnd.IntN(300))
			want, failed := r.s.Hash(), rnd.IntN(4) == 0
			var snap snapshot
			next, stop := iter.Pull2(c.Blocks(func() {}))
			for i := 0; ; i++ {
				kind, data, ok := next()
				if !ok || failed && i > 20 {
					break
				}
				snap = append(snap, block{kind, slices.Clone(data)})
				for range rnd.IntN(3) {
					r.step(rnd)
				}
			}
			stop()
			r.s.Release(c, !failed)
			if failed {
				continue // what it covered must be in the next one
			}
			chain = append(chain, snap)
			got, loaded, err := load(chain)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got.Hash() != want {
				t.Fatalf("seed %d: after %d snapshots the loaded state differs from the captured one", seed, len(chain))
			}
			if err := got.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if w := c.Extent(); fmt.Sprint(loaded) != fmt.Sprint(w) {
				t.Fatalf("seed %d: extent %+v after loading, want %+v", seed, loaded, w)
			}
			got.SetKept(30)
			r.follow(got)
			extent = &loaded
			for range rnd.IntN(200) {
				r.step(rnd)
			}
		}
	}
}

// TestSnapshotOfFewChanges: of many players one changes, whichever it is, and request ids are
// forgotten meanwhile, some of those that the base has and all.
func TestSnapshotOfFewChanges(t *testing.T) {
	const players = 200
	r := newRealm(t)
	r.do("", func(w *store.Writer) { item(w, 0, "gem"); window(w, 10, 60_000); inForce(w, "c") })
	n := 0
	gain := func(player uint32, join bool) {
		n++
		r.now += 7_000
		r.do(fmt.Sprint(n), func(w *store.Writer) {
			if join {
				w.Join(fmt.Sprint("p", player))
			} else {
				w.Effect(store.Player, player)
			}
			w.Change(store.Gain, 0, 1)
		})
	}
	for i := range uint32(players) {
		gain(i, true)
	}
	first := r.s.Capture(nil)
	chain := []snapshot{taken(first)}
	r.s.Release(first, true)
	extent := first.Extent()
	for i := range uint32(players) {
		for range 1 + i%15 {
			gain(i, false)
		}
		c := r.s.Capture(&extent)
		chain = append(chain, taken(c))
		r.s.Release(c, true)
		extent = c.Extent()
		if i%20 != 0 {
			continue
		}
		got, _, err := load(chain)
		if err != nil {
			t.Fatal(err)
		}
		if got.Hash() != r.s.Hash() || got.WindowSize().Remembered != r.s.WindowSize().Remembered {
			t.Fatalf("player %d: the loaded state, with %+v, is another than the one captured, with %+v", i, got.WindowSize(), r.s.WindowSize())
		}
	}
}

// TestSnapshotPauses: the writing of a snapshot pauses after every few players, wherever they
// stand, and after fewer if they hold much.
func TestSnapshotPauses(t *testing.T) {
	r := based(t)
	const players, most = 4000, 256
	pauses := func(base *store.Extent) (n int, extent store.Extent) {
		c := r.s.Capture(base)
		for range c.Blocks(func() { n++ }) {
		}
		r.s.Release(c, true)
		return n, c.Extent()
	}
	for i := range players {
		r.do("", func(w *store.Writer) { w.Join(fmt.Sprint("p", i)) })
	}
	n, extent := pauses(nil)
	if n < players/most {
		t.Errorf("%d pauses for all of %d players, want at least %d", n, players, players/most)
	}
	for i := range uint32(players) {
		if i%most != 0 { // a rule that goes by numbers has its multiples
			r.do("", func(w *store.Writer) { w.Effect(store.Player, i); w.Change(store.Gain, 0, 1) })
		}
	}
	if n, _ = pauses(&extent); n < (players-players/most)/most {
		t.Errorf("%d pauses for nearly all of %d players, want at least %d", n, players, (players-players/most)/most)
	}
	rich := based(t)
	rich.do("", func(w *store.Writer) {
		for i := range 500 {
			item(w, 0, fmt.Sprint("item", i))
		}
		for i := range 64 {
			w.Join(fmt.Sprint("p", i))
			for k := range uint32(500) {
				w.Change(store.Gain, k, 1000)
			}
		}
	})
	r = rich
	if n, _ = pauses(nil); n == 0 {
		t.Error("no pause for 64 players of 500 items")
	}
}

// twoSnapshots returns two that build on each other, in small blocks.
func twoSnapshots(t testing.TB) (chain []snapshot, r *realm) {
	r = newRealm(t)
	rnd := rand.New(rand.NewPCG(1, 1))
	r.do("", base)
	var extent *store.Extent
	for range 2 {
		for range 60 {
			r.step(rnd)
		}
		r.do("", func(w *store.Writer) { w.More(store.Tally, 0, 7); w.More(store.Tally, 1, r.s.Tally(1)+1) })
		if len(maps.Collect(r.s.Ordered())) == 0 {
			r.do("", func(w *store.Writer) { order(w, 1, store.ByTime) })
		}
		c := r.s.Capture(extent)
		c.SetBlockSize(300)
		chain = append(chain, taken(c))
		r.s.Release(c, true)
		m := c.Extent()
		extent = &m
	}
	return chain, r
}

func wantRefused(t *testing.T, what string, chain []snapshot) {
	t.Helper()
	var format *store.FormatError
	if _, _, err := load(chain); !errors.As(err, &format) {
		t.Errorf("%s: %v, want a FormatError", what, err)
	}
}

// TestLoaderWantsAll: a snapshot that lacks a block, has one twice or in another place, or
// stands on another base, is refused, unless what it lacks is announced nowhere, which a
// file's checksums are for: counts of entries, orders, and players that the base has, too.
func TestLoaderWantsAll(t *testing.T) {
	chain, r := twoSnapshots(t)
	s, _, err := load(chain)
	if err != nil || s.Hash() != r.s.Hash() {
		t.Fatalf("the whole chain: %v", err)
	}
	kinds := map[store.BlockKind]int{}
	for which := range chain {
		for i, b := range chain[which] {
			kinds[b.kind]++
			with := func(snap snapshot) []snapshot {
				c := slices.Clone(chain)
				c[which] = snap
				return c
			}
			name := fmt.Sprintf("snapshot %d, block %d of kind %d", which, i, b.kind)
			changes := b.kind == store.BlockPlayers && which > 0
			if b.kind != store.BlockStock && b.kind != store.BlockEntries && b.kind != store.BlockOrders && !changes {
				wantRefused(t, name+" is missing", with(slices.Delete(slices.Clone(chain[which]), i, i+1)))
			}
			if b.kind != store.BlockStock && b.kind != store.BlockEntries {
				wantRefused(t, name+" is there twice", with(slices.Insert(slices.Clone(chain[which]), i, b)))
			}
			short := slices.Clone(chain[which])
			if short[i].data = b.data[:len(b.data)-1]; b.kind != store.BlockCatalog {
				wantRefused(t, name+" is cut short", with(short))
			}
			if i > 0 && chain[which][i-1].kind != b.kind {
				swapped := slices.Clone(chain[which])
				swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
				wantRefused(t, name+" stands before the one before it", with(swapped))
			}
		}
	}
	if len(kinds) != int(store.BlockRecords)-1 || kinds[store.BlockOrders] != 2 {
		t.Errorf("blocks of %d kinds: the test is too small", len(kinds))
	}
	wantRefused(t, "a base that is missing", chain[1:])
	wantRefused(t, "the first twice", []snapshot{chain[0], chain[0]})
	wantRefused(t, "the second twice", []snapshot{chain[0], chain[1], chain[1]})
	wantRefused(t, "an unknown kind", []snapshot{append(slices.Clone(chain[0]), block{store.BlockRecords + 1, nil})})
	wantRefused(t, "no kind", []snapshot{append(slices.Clone(chain[0]), block{0, nil})})
	l := store.NewLoader()
	if err := l.Block(chain[0][0].kind, chain[0][0].data); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.State(); err == nil {
		t.Error("a snapshot that was not ended is a state")
	}
	if store.NewLoader().Loaded() == nil {
		t.Error("a snapshot of nothing is loaded")
	}
}

// TestLoaderRefusesTwice: of ids that two players or two requests have, the second is named.
func TestLoaderRefusesTwice(t *testing.T) {
	r := newRealm(t)
	r.do("", base)
	for i := range 300 {
		r.do(fmt.Sprintf("r%03d", i), func(w *store.Writer) { w.Join(fmt.Sprintf("p%03d", i)) })
	}
	for _, size := range []int{300, 1 << 18} {
		for _, pair := range [][2]int{{0, 1}, {3, 63}, {3, 64}, {63, 64}, {3, 200}, {298, 299}, {0, 299}} {
			for kind, letter := range map[store.BlockKind]string{store.BlockPlayers: "p", store.BlockRequests: "r"} {
				c := r.s.Capture(nil)
				c.SetBlockSize(size)
				snap := taken(c)
				r.s.Release(c, false)
				was, is := fmt.Appendf(nil, "%s%03d", letter, pair[1]), fmt.Sprintf("%s%03d", letter, pair[0])
				for i := range snap {
					if snap[i].kind == kind {
						snap[i].data = bytes.Replace(snap[i].data, was, []byte(is), 1)
					}
				}
				if _, _, err := load([]snapshot{snap}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", is)) {
					t.Errorf("%s is there as %s, too, in blocks of %d bytes: %v", was, is, size, err)
				}
			}
		}
	}
}

// pack writes snapshots down as bytes for a fuzzer: each block is its kind, its length in four
// bytes, and its bytes; a block of kind 0 ends a snapshot.
func pack(chain []snapshot) (b []byte) {
	for _, snap := range chain {
		for _, bl := range snap {
			b = append(b, byte(bl.kind))
			b = binary.LittleEndian.AppendUint32(b, uint32(len(bl.data)))
			b = append(b, bl.data...)
		}
		b = append(b, 0, 0, 0, 0, 0)
	}
	return b
}

// FuzzLoader loads any blocks, two real snapshots that build on each other among them. What
// loads without an error is fit for use: nothing panics, the invariants hold, the state goes
// on, and captured again it gives itself.
func FuzzLoader(f *testing.F) {
	chain, _ := twoSnapshots(f)
	whole := pack(chain)
	f.Add(whole)
	f.Add(pack(chain[:1]))
	for at := 0; at < len(whole); at += len(whole)/60 + 1 {
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := store.NewLoader()
		for len(b) >= 5 {
			kind, n := store.BlockKind(b[0]), binary.LittleEndian.Uint32(b[1:])
			b = b[5:]
			if kind == 0 {
				if l.Loaded() != nil {
					return
				}
				continue
			}
			n = min(n, uint32(len(b)))
			if l.Block(kind, b[:n]) != nil {
				return
			}
			b = b[n:]
		}
		s, _, err := l.State()
		if err != nil {
			return
		}
		wantWhole(t, s)
		var w store.Writer
		w.Begin(2, "a new request id")
		w.BeginAsked()
		w.EndAsked()
		w.Join("a new player")
		var ev store.Event
		if _, err := store.Decode(w.End(), &ev); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(&ev, store.At{Position: s.Position() + 1, Time: s.Now()}, nil); err != nil {
			return // they may be in it
		}
		wantWhole(t, s)
		c := s.Capture(nil)
		again, _, err := load([]snapshot{taken(c)})
		if err != nil {
			t.Fatal(err)
		}
		if again.Hash() != s.Hash() {
			t.Fatal("a loaded state, captured and loaded again, is another")
		}
	})
}

// TestChecker: a checker takes two snapshots that build on one another as a loader does, and, when a
// byte of either is changed, refuses what a loader refuses, except for who is there twice.
func TestChecker(t *testing.T) {
	r, rnd := newRealm(t), rand.New(rand.NewPCG(3, 2))
	r.do("", base)
	var chain []snapshot
	var extent *store.Extent
	for range 2 {
		for range 25 {
			r.step(rnd)
		}
		c := r.s.Capture(extent)
		chain = append(chain, taken(c))
		r.s.Release(c, true)
		m := c.Extent()
		extent = &m
	}
	try := func(l *store.Loader) error {
		for _, snap := range chain {
			for _, b := range snap {
				if err := l.Block(b.kind, b.data); err != nil {
					return err
				}
			}
			if err := l.Loaded(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := try(store.NewChecker()); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, snap := range chain {
		for i := range snap {
			b := &snap[i]
			sound := b.data
			for at := 0; at < len(sound); at += 1 + len(sound)/16 { // a loader costs a millisecond
				b.data = bytes.Clone(sound)
				b.data[at] ^= 1 << (at % 8)
				loads, checks := try(store.NewLoader()), try(store.NewChecker())
				if loads != nil {
					refused++
				}
				if (loads == nil) != (checks == nil) && (loads == nil || !strings.Contains(loads.Error(), "twice")) {
					t.Errorf("block %d of kind %d, byte %d: a loader says %v, a checker %v", i, b.kind, at, loads, checks)
				}
			}
			b.data = sound
		}
	}
	if refused < 50 {
		t.Errorf("%d refused", refused)
	}
}
