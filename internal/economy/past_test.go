package economy_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/economy"
)

// TestOldAnswersUnderManyCatalogs: however catalogs change, a remembered answer
// reads as it did when it was first given: in the state, in one that replayed
// the log, and in one that was loaded from snapshots on top of one another.
func TestOldAnswersUnderManyCatalogs(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 9))
		m := newMachine(t, seed)
		first := map[string][]economy.Outcome{}
		var snapshots []heldSnapshot
		var mark *economy.Mark
		for version := range 12 {
			m.now += 300_000 // the default age is 10 minutes
			m.apply(nestedCatalog(r))
			for n := range 20 {
				cmd := economy.Command{Kind: economy.KindDraw, ID: fmt.Sprintf("%d-%d", version, n), Player: fmt.Sprint("p", n%4), Pool: fmt.Sprint("p", r.IntN(6)), Count: 1 + r.IntN(3)}
				ev := m.do(cmd)
				if ev.Status == economy.OK {
					first[cmd.ID] = m.s.Outcomes(ev, m.s.Version())
					if len(first[cmd.ID]) != cmd.Count {
						t.Fatalf("%d outcomes of %d draws", len(first[cmd.ID]), cmd.Count)
					}
				}
			}
			if version%3 == 1 {
				c := m.s.Capture(mark)
				c.SetBlockSize(100)
				var snap heldSnapshot
				for kind, data := range c.Blocks(func() {}) {
					snap = append(snap, heldBlock{kind, append([]byte(nil), data...)})
				}
				m.s.Release(c, true)
				made := c.Mark()
				mark = &made
				snapshots = append(snapshots, snap)
				loaded, _ := load(t, snapshots)
				wantAnswers(t, loaded, first)
				if loaded.Hash() != m.s.Hash() {
					t.Fatalf("seed %d, version %d: the loaded state is another", seed, version)
				}
			}
			wantAnswers(t, m.s, first)
		}
		again := m.replay()
		wantAnswers(t, again, first)
		for _, most := range []int{1, 20, 500} {
			s, at, err := some(t, m.log, 1<<20, r, most)
			if err != nil {
				t.Fatalf("%+v: %v", at, err)
			}
			wantAnswers(t, s, first)
			if got, want := s.Superseded(), again.Superseded(); got != want {
				t.Errorf("something is kept of %d catalog versions, want %d", got, want)
			}
		}
	}
}

func wantAnswers(t *testing.T, s *economy.State, first map[string][]economy.Outcome) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	for id, want := range first {
		a, ok := s.Remembered(id)
		if !ok {
			t.Fatalf("%q is forgotten", id)
		}
		var ev economy.Event
		if err := a.Decode(&ev); err != nil {
			t.Fatal(err)
		}
		if got := s.Outcomes(&ev, a.Version); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q of catalog version %d, in version %d: %v, was first %v", id, a.Version, s.Version(), got, want)
		}
	}
}

// TestMemoryOfOldCatalogs: a version that changes little costs little, for as
// long as answers that were given under older ones are remembered.
func TestMemoryOfOldCatalogs(t *testing.T) {
	yaml := func(version int) string {
		var b strings.Builder
		b.WriteString("kuji: 1\nitems: {gem: {}, sword: {}}\npools:\n  p:\n    entries:\n")
		for i := range 20_000 {
			quantity := 1
			if i == version {
				quantity = 2
			}
			fmt.Fprintf(&b, "      - {id: entry%d, weight: %d, stock: 1000, reward: {items: {gem: %d, sword: 1}}}\n", i, 1+i%7, quantity)
		}
		return b.String()
	}
	m := newMachine(t, 1)
	heap := func() uint64 {
		runtime.GC()
		var st runtime.MemStats
		runtime.ReadMemStats(&st)
		return st.HeapAlloc
	}
	apply := func(version int) {
		m.apply(yaml(version))
		m.log = nil // as if the disk had it
		m.do(economy.Command{Kind: economy.KindDraw, ID: fmt.Sprint("id", version), Player: "ann", Pool: "p", Count: 1})
	}
	apply(0)
	before := heap()
	const versions = 5
	for v := range versions {
		apply(v + 1)
	}
	if each := (int64(heap()) - int64(before)) / versions; each > 200_000 {
		t.Errorf("%d bytes for each catalog version of 20 000 entries that differs in one", each)
	}
	if _, ok := m.s.Remembered("id0"); !ok {
		t.Error("the first answer is forgotten")
	}
	runtime.KeepAlive(m)
}
