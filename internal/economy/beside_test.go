package economy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// movers is players who hold, as of position p, the first so many items, and p of
// each: whoever reads one sees at once whether it is of one moment. Their memory
// grows, shrinks and moves all the time, up to blocks with a chunk of their own.
type movers struct {
	s     *State
	r     *rand.Rand
	ids   [moverCount]string
	acked [moverCount]atomic.Uint64 // position of the last change that was shown
}

const (
	moverCount = 600
	moverItems = 3 * largeUnits * unitBytes / int(slotBytes) / 2
)

func moverItem(n int) string { return fmt.Sprintf("i%05d", n) }

// moverHolds returns how many items a player holds as of a position.
func moverHolds(n int, pos uint64) int {
	x := (pos*0x9e3779b97f4a7c15 + uint64(n)) * 0xd1342543de82ef95 >> 33
	switch {
	case n < 4:
		return int(x) % moverItems // every third with a chunk of its own
	case n < 20:
		return int(x) % 1000
	}
	return int(x) % 12
}

func newMovers(t *testing.T, seed uint64) *movers {
	m := &movers{s: New(), r: rand.New(rand.NewPCG(seed, 1))}
	for n := range m.ids { // so few guards that readers are often disturbed by other players
		for k := 0; m.ids[n] == "" || m.s.players.key.hash(m.ids[n])%playerGuards >= 16; k++ {
			m.ids[n] = fmt.Sprintf("%0*d.%d", n%57, n, k)
		}
	}
	var yaml strings.Builder
	yaml.WriteString("kuji: 1\npools: {p: {entries: [{id: x, weight: 1, reward: nothing}]}}\nitems:\n")
	for i := range moverItems {
		fmt.Fprintf(&yaml, "  %s: {}\n", moverItem(i))
	}
	c, err := catalog.Parse([]byte(yaml.String()))
	if err != nil {
		t.Fatal(err)
	}
	prepared, refused := m.s.Prepare(c)
	if refused != nil {
		t.Fatal(refused)
	}
	ev, refused := m.s.DecideCatalog(prepared)
	if refused != nil {
		t.Fatal(refused)
	}
	if err := m.s.Apply(ev, AppendEvent(nil, ev), At{Position: 1, Time: 1}); err != nil {
		t.Fatal(err)
	}
	return m
}

// change makes a player be as of the next position, in a block that just fits,
// and now and then another in the same event.
func (m *movers) change(n int) {
	s := m.s
	s.applied++
	some := [2]int{n, -1}
	if m.r.IntN(4) == 0 {
		some[1] = (n + 1) % s.players.count()
	}
	for _, n := range some {
		if n >= 0 {
			m.be(uint32(n), moverHolds(n, s.applied))
		}
	}
	s.players.release()
	for _, n := range some {
		if n >= 0 {
			m.acked[n].Store(s.applied)
		}
	}
}

func (m *movers) be(n uint32, holds int) {
	p := &m.s.players
	b := p.change(n, m.s.applied)
	if m.r.IntN(2) > 0 || holds > len(b.room()) {
		b.slots = min(b.slots, uint32(holds))
		b = p.move(b, p.addr(n), unitsFor(int(b.idLen), uint32(holds)))
	}
	b.slots = uint32(holds)
	h := b.holdings()
	for i := range h {
		h[i] = newSlot(uint32(i), m.s.applied)
	}
}

// readPlayer compares a player with what there was at the position that it says.
func (m *movers) readPlayer(n int) error {
	since := m.acked[n].Load()
	h, ok := m.s.Player(m.ids[n])
	if !ok {
		if since > 0 {
			return fmt.Errorf("player %d, changed at %d, is not found", n, since)
		}
		return nil
	}
	if h.Last < since || len(h.Items) != moverHolds(n, h.Last) {
		return fmt.Errorf("player %d holds %d as of %d, want %d, changed at %d", n, len(h.Items), h.Last, moverHolds(n, h.Last), since)
	}
	for i, it := range h.Items {
		if it.Item != moverItem(i) || it.Quantity != h.Last {
			return fmt.Errorf("player %d as of %d: number %d of %d is %v", n, h.Last, i, len(h.Items), it)
		}
	}
	return nil
}

// readBalance does the same for one item.
func (m *movers) readBalance(n, item int) error {
	since := m.acked[n].Load()
	b := m.s.Balance(m.ids[n], moverItem(item))
	if !b.Seen {
		if since > 0 {
			return fmt.Errorf("player %d, changed at %d, is not found", n, since)
		}
		return nil
	}
	want := uint64(0)
	if item < moverHolds(n, b.Last) {
		want = b.Last
	}
	if b.Last < since || b.Quantity != want {
		return fmt.Errorf("player %d holds %d of number %d as of %d, want %d, changed at %d", n, b.Quantity, item, b.Last, want, since)
	}
	return nil
}

// capture takes the state and returns what compares every player with it, beside the writer.
func (m *movers) capture() (*Capture, func() error) {
	c := m.s.Capture(nil)
	var then [moverCount]uint64
	for n := range c.mark.Players {
		then[n] = m.acked[n].Load()
	}
	return c, func() error {
		var got, want []byte
		var h []slot
		for n := range c.mark.Players {
			h = h[:0]
			for i := range moverHolds(int(n), then[n]) {
				h = append(h, newSlot(uint32(i), then[n]))
			}
			want = c.appendPlayer(want[:0], n, then[n], []byte(m.ids[n]), h)
			for range 3 {
				if got = c.player(append(got[:0], "before"...), n); string(got[:6]) != "before" || !bytes.Equal(got[6:], want) {
					return fmt.Errorf("player %d, who held %d as of %d, is captured in %d bytes as %.40x, want %d, %.40x", n, len(h), then[n], len(got)-6, got[6:], len(want), want)
				}
			}
			c.next.Store(n + 1)
		}
		return nil
	}
}

// TestMovingPlayersBesideReaders: who reads a player beside the writer, in a view or
// for a snapshot, sees it as it was at one position, and not before the last one
// that was shown; wherever its memory has moved, and whoever has got the memory.
func TestMovingPlayersBesideReaders(t *testing.T) {
	m := newMovers(t, 1)
	var over atomic.Bool
	var readers sync.WaitGroup
	read := func(seed uint64, f func(r *rand.Rand) error) {
		readers.Go(func() {
			for r := rand.New(rand.NewPCG(seed, 2)); !over.Load(); {
				if err := f(r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	some := func(r *rand.Rand) int { // often one of two large ones; the other two are left alone for long
		switch r.IntN(3) {
		case 0:
			return r.IntN(2)
		case 1:
			return 4 + r.IntN(16)
		}
		return r.IntN(moverCount)
	}
	read(1, func(r *rand.Rand) error { return m.readPlayer(some(r)) })
	read(2, func(r *rand.Rand) error { return m.readBalance(some(r), r.IntN(20)) })
	read(3, func(r *rand.Rand) error { return m.readBalance(some(r), r.IntN(moverItems)) })
	read(4, func(r *rand.Rand) error { m.s.Fetch("", m.ids[some(r)]); return nil })
	p := &m.s.players
	cleaned, givenBack := false, false
	for round := range 10 {
		c, compare := m.capture()
		compared := make(chan error, 1)
		go func() { compared <- compare() }()
		for i := range 2000 {
			if n := p.count(); n < moverCount && i%8 == 0 {
				m.s.applied++
				p.add(m.ids[n], 0)
				m.be(uint32(n), moverHolds(n, m.s.applied))
				p.release()
				m.acked[n].Store(m.s.applied)
				continue
			}
			m.change(min(some(m.r), p.count()-1))
		}
		if err := <-compared; err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		m.s.Release(c, true)
		cleaned, givenBack = cleaned || len(p.mem.empty) > 0, givenBack || len(p.mem.unused) > 0
		if t.Failed() {
			break
		}
	}
	over.Store(true)
	readers.Wait()
	if !t.Failed() && !(cleaned && givenBack) {
		t.Errorf("a chunk was cleaned: %v, and a large one given back: %v; the test is too small", cleaned, givenBack)
	}
}

// TestHeadAndSlotsAgree has a writer do nothing but change one small player, so that
// readers are disturbed in every place.
func TestHeadAndSlotsAgree(t *testing.T) {
	var p players
	p.init()
	n := p.add("somebody", 1)
	change := func(pos uint64) {
		p.set(p.change(n, pos).num, 0, pos)
		p.release()
	}
	change(1)
	var over atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for pos := uint64(2); !over.Load(); pos++ {
			change(pos)
		}
	})
	for by, enter := range map[string]func(v *sight){
		"id":     func(v *sight) { p.enter("somebody", v) },
		"number": func(v *sight) { p.enterNumber(n, v) },
	} {
		for range 400_000 {
			var v sight
			var last, value uint64
			for again := true; again; again = !v.leave() {
				enter(&v)
				last, value = v.head.last, v.holdings()[0].value()
			}
			if last != value {
				t.Errorf("by %s: %d as of position %d", by, value, last)
				break
			}
		}
	}
	over.Store(true)
	writer.Wait()
}
