package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// sitter is a node of a cluster that a test plays, with the board and nothing else.
type sitter struct {
	*watcher
	realms map[string]bearing
	until  time.Time // it answers until then
	stops  bool
	dead   bool
	skew   time.Duration // its wall clock is so far ahead
}

// table is a cluster that a test plays: its clock is the only one.
type table struct {
	t       *testing.T
	now     time.Time
	data    []byte // the board
	sitters map[string]*sitter
	lives   int
	size    int // how many nodes there are
	moves   int // of realms from one node to another
}

func newTable(t *testing.T, realms int, nodes ...string) *table {
	tb := &table{t: t, now: time.Unix(1e9, 0), sitters: map[string]*sitter{}, size: len(nodes)}
	for _, name := range nodes {
		tb.start(name, realms)
	}
	return tb
}

// start starts a node that follows realms.
func (tb *table) start(name string, realms int) {
	tb.lives++
	s := &sitter{watcher: newWatcher(name, fmt.Sprint(tb.lives), tb.size), realms: map[string]bearing{}}
	for i := range realms {
		s.realms[fmt.Sprint("r", i)] = bearing{ready: true, close: true}
	}
	tb.sitters[name] = s
}

// round lets a node look at the board once. What it takes it leads at once, and what it hands over it gives up
// at the next look. A look may fail, before the board is written or after.
func (tb *table) round(name string, fails, late bool) {
	s := tb.sitters[name]
	if s.dead {
		return
	}
	if fails {
		s.blind = true
		return
	}
	v := s.look(readBoard(tb.data), maps.Clone(s.realms), s.stops, tb.now, tb.now.Add(s.skew))
	tb.data = v.board.data()
	s.blind = late
	if late {
		return
	}
	s.until = tb.now.Add(leaseTTL)
	for _, realm := range v.lost {
		s.realms[realm] = bearing{ready: true, close: true}
	}
	for _, realm := range v.taken {
		if s.clocks.off {
			tb.t.Fatalf("%v: node %s takes realm %s, and its clock is %v off", tb.now, name, realm, s.skew)
		}
		s.realms[realm] = bearing{held: true, leads: true}
		tb.moves++
	}
	for _, realm := range v.handing {
		s.realms[realm] = bearing{ready: true, close: true}
	}
	tb.check()
}

// check checks that no two nodes answer about one realm.
func (tb *table) check() {
	tb.t.Helper()
	answers := map[string]string{}
	for name, s := range tb.sitters {
		for realm, b := range s.realms {
			if !b.leads || s.dead || !tb.now.Before(s.until) {
				continue
			}
			if other := answers[realm]; other != "" {
				tb.t.Fatalf("%v: nodes %s and %s answer about realm %s", tb.now, name, other, realm)
			}
			answers[realm] = name
		}
	}
}

// run lets a time pass, in which every node looks once a second.
func (tb *table) run(d time.Duration) {
	for end := tb.now.Add(d); tb.now.Before(end); tb.now = tb.now.Add(renewEvery) {
		for _, name := range slices.Sorted(maps.Keys(tb.sitters)) {
			tb.round(name, false, false)
		}
	}
}

// led returns how many realms each node leads, and of how many nobody does.
func (tb *table) led(realms int) (by map[string]int, none int) {
	by, none = map[string]int{}, realms
	for realm, name := range readBoard(tb.data).leaders() {
		if tb.sitters[name].realms[realm].leads {
			by[name]++
			none--
		}
	}
	return by, none
}

// TestRealmsSpread: 256 realms come to those who are first in rank, and stay there. When a node dies, the others
// share its realms. When it comes back it gets them back, a few at a time, and nothing else moves.
func TestRealmsSpread(t *testing.T) {
	const realms = 256
	nodes := []string{"n1", "n2", "n3"}
	tb := newTable(t, realms, nodes...)
	settled := func(when string, living ...string) {
		t.Helper()
		by, none := tb.led(realms)
		for _, name := range living {
			if share := realms / len(living); by[name] < share*2/3 || by[name] > share*3/2 {
				t.Errorf("%s: realms are led by %v", when, by)
			}
			for realm, b := range tb.sitters[name].realms {
				if b.leads != (rankOf(living, name, realm) == 0) {
					t.Fatalf("%s: node %s is first for realm %s: %v, and leads it: %v", when, name, realm, !b.leads, b.leads)
				}
			}
		}
		if none > 0 {
			t.Errorf("%s: nobody leads %d realms", when, none)
		}
	}
	tb.run(5 * time.Minute)
	settled("at first", nodes...)
	if size := len(tb.data); size > 8<<10 {
		t.Errorf("the board has %d bytes", size)
	}
	was := tb.moves
	tb.run(time.Minute)
	if tb.moves != was {
		t.Errorf("%d realms move, and nothing has happened", tb.moves-was)
	}

	tb.sitters["n2"].dead = true
	lost, _ := tb.led(realms)
	tb.run(leaseTTL + 2*renewEvery)
	settled("without n2", "n1", "n3")
	if n := tb.moves - was; n != lost["n2"] {
		t.Errorf("n2 led %d realms, and %d moved", lost["n2"], n)
	}

	was = tb.moves
	tb.start("n2", realms)
	tb.run(settle)
	if tb.moves != was {
		t.Errorf("%d realms move at once to a node that has just come back", tb.moves-was)
	}
	before := tb.moves
	tb.run(renewEvery)
	if n := tb.moves - before; n > 2*handAtOnce {
		t.Errorf("%d realms move in one second", n)
	}
	tb.run(3 * time.Minute)
	settled("with n2 again", nodes...)
	if n := tb.moves - was; n != lost["n2"] {
		t.Errorf("n2 led %d realms before, and %d moved back", lost["n2"], n)
	}
}

// TestRealmOfAnother: a realm that who is first in rank cannot lead is led by the next one after a while. It is not
// handed to a node that is behind, comes and goes, or stops.
func TestRealmOfAnother(t *testing.T) {
	nodes := []string{"n1", "n2", "n3"}
	tb := newTable(t, 1, nodes...)
	byRank := func(rank int) *sitter {
		for _, name := range nodes {
			if rankOf(nodes, name, "r0") == rank {
				return tb.sitters[name]
			}
		}
		return nil
	}
	first, second := byRank(0), byRank(1)
	first.realms["r0"] = bearing{} // it met damage
	tb.run(standIn)
	if second.realms["r0"].leads {
		t.Error("the second in rank does not wait for the first")
	}
	tb.run(2 * renewEvery)
	if !second.realms["r0"].leads {
		t.Error("the second in rank does not lead what the first cannot")
	}
	tb.run(time.Minute)
	first.realms["r0"] = bearing{ready: true} // far behind
	tb.run(time.Minute)
	for range 10 {
		first.realms["r0"] = bearing{ready: true, close: true}
		tb.run(settle - renewEvery)
		first.realms["r0"] = bearing{ready: true}
		tb.run(renewEvery)
	}
	first.realms["r0"], first.stops = bearing{ready: true, close: true}, true
	tb.run(time.Minute)
	if !second.realms["r0"].leads {
		t.Error("a realm is handed to a node that cannot lead it for long")
	}
	first.stops = false
	tb.run(settle + 5*renewEvery)
	if !first.realms["r0"].leads {
		t.Error("a realm is not handed back")
	}
}

// TestOneAnswers: no two nodes answer about one realm at a time, and in the end each realm has a
// leader whose clock is good. Meanwhile looks at the board fail, are late or come seldom, nodes pause or
// restart, and clocks jump.
func TestOneAnswers(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 0))
		nodes := []string{"n1", "n2", "n3"}
		tb := newTable(t, 1, nodes...)
		for range 400 {
			tb.now = tb.now.Add(time.Duration(rng.Int64N(int64(renewEvery))))
			name := nodes[rng.IntN(3)]
			switch n := rng.IntN(100); {
			case n < 2:
				tb.start(name, 1)
			case n < 4:
				tb.now = tb.now.Add(leaseTTL)
			case n < 6:
				tb.sitters[name].skew = time.Duration(rng.Int64N(5)-2) * 30 * time.Second
			default:
				tb.round(name, n < 12, n > 90)
			}
			tb.check()
		}
		tb.run(time.Minute)
		if by, none := tb.led(1); none > 0 {
			t.Fatalf("seed %d: nobody leads %d realms: %v", seed, none, by)
		}
		skews := tb.skews(nodes...)
		for name := range tb.leaders() {
			if apart := tb.sitters[name].skew - skews[1]; apart.Abs() > maxApart {
				t.Fatalf("seed %d: node %s leads, and the clocks are %v", seed, name, skews)
			}
		}
	}
}

// TestBadBoard: a board that cannot be read is an empty one.
func TestBadBoard(t *testing.T) {
	for _, data := range []string{"", "x", "null", "[]", `{"nodes": null}`, `{"nodes": 7}`} {
		b := readBoard([]byte(data))
		if b.Nodes == nil || len(b.Nodes) > 0 {
			t.Errorf("%q is %+v", data, b)
		}
	}
	b := ledBy("n1", "a")
	if got := readBoard(b.data()); got.leaders()["a"] != "n1" || !json.Valid(b.data()) {
		t.Errorf("%+v is read as %+v", b, got)
	}
}

// TestBoardOfTwoBuilds: a node leaves what others say on the board as it is, also what it does not know: a
// newer build may say more. The level that all know is the lowest; a node that says none has the first.
func TestBoardOfTwoBuilds(t *testing.T) {
	now := time.Unix(1e9, 0)
	theirs := `{"life":"x","beat":7,"leads":["far"],"wants":[],"stops":false,"level":99,"mood":{"of":["a","newer"]}}`
	w := newWatcher("n1", "here", 3)
	v := w.look(readBoard([]byte(`{"nodes":{"n2":`+theirs+`}}`)), nil, false, now, now)
	var written struct {
		Nodes map[string]json.RawMessage `json:"nodes"`
	}
	if err := json.Unmarshal(v.board.data(), &written); err != nil || string(written.Nodes["n2"]) != theirs {
		t.Errorf("the post of a newer build became %s: %v", written.Nodes["n2"], err)
	}
	if got := readBoard(v.board.data()); got.level() != kuji.FormatLevel() || got.Nodes["n1"].Level != kuji.FormatLevel() {
		t.Errorf("two nodes know level %d", got.level())
	}
	v = w.look(readBoard([]byte(`{"nodes":{"n2":`+theirs+`,"n3":{"life":"y","beat":1,"leads":[],"wants":[],"stops":false}}}`)), nil, false, now, now)
	if v.board.level() != 1 {
		t.Errorf("next to a node that names no level, all know level %d", v.board.level())
	}
}
