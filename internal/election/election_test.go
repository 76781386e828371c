package election

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// The tests here play one cluster on one clock, in which everything succeeds at once. internal/sim plays
// many, with all that can go wrong.

// sitter is a node that a test plays.
type sitter struct {
	*Node
	health Health // of all its realms
	dead   bool
	skew   time.Duration // its wall clock is so far ahead
}

// table is a cluster that a test plays.
type table struct {
	now     time.Time
	data    []byte // the board
	sitters map[string]*sitter
	size    int // how many nodes there are
	realms  []string
	moves   int // how often a node began to lead a realm
	lives   int
}

const level = 7

func newTable(realms int, nodes ...string) *table {
	tb := &table{now: time.Unix(1e9, 0), sitters: map[string]*sitter{}, size: len(nodes)}
	for i := range realms {
		tb.realms = append(tb.realms, fmt.Sprint("r", i))
	}
	for _, name := range nodes {
		tb.start(name)
	}
	return tb
}

// start starts a node, which follows all realms.
func (tb *table) start(name string) *sitter {
	tb.lives++
	s := &sitter{Node: New(Config{Node: name, Life: fmt.Sprint(tb.lives), Nodes: tb.size, Level: level, Default: "r0"})}
	s.Find(tb.realms...)
	tb.sitters[name] = s
	tb.tend(s)
	return s
}

// tend does what is due, until nothing is.
func (tb *table) tend(s *sitter) {
	for range 3 { // close, open, follow
		s.Tick(tb.now, func(string) Health { return s.health })
		for todo := s.Todo(); len(todo) > 0; todo = s.Todo() {
			for _, d := range todo {
				if d.Act == Lead {
					tb.moves++
				}
				s.Done(d, tb.now, Fine, nil)
			}
		}
	}
}

// round lets a node look at the board once.
func (tb *table) round(name string) {
	s := tb.sitters[name]
	if s.dead {
		return
	}
	tb.tend(s)
	tb.data = s.Look(tb.data, tb.now, tb.now.Add(s.skew))
	s.Looked(tb.now, nil)
	tb.tend(s)
}

// run lets a time pass, in which every node looks once a second.
func (tb *table) run(d time.Duration) {
	for end := tb.now.Add(d); tb.now.Before(end); tb.now = tb.now.Add(RenewEvery) {
		for _, name := range slices.Sorted(maps.Keys(tb.sitters)) {
			tb.round(name)
		}
	}
}

// led returns how many realms each node leads, and of how many nobody does.
func (tb *table) led() (by map[string]int, none int) {
	by = map[string]int{}
	for _, realm := range tb.realms {
		if leader := tb.leader(realm); leader != "" {
			by[leader]++
		} else {
			none++
		}
	}
	return by, none
}

func (tb *table) leader(realm string) string {
	for name, s := range tb.sitters {
		if !s.dead && s.Holding().Holds(realm, tb.now) {
			return name
		}
	}
	return ""
}

// TestRealmsSpread: 256 realms come to the nodes that are first in rank, and stay there. When a node dies, the
// others share its realms. When it comes back it gets them back, a few at a time, and nothing else moves.
func TestRealmsSpread(t *testing.T) {
	const realms = 256
	nodes := []string{"n1", "n2", "n3"}
	tb := newTable(realms, nodes...)
	settled := func(when string, living ...string) {
		t.Helper()
		by, none := tb.led()
		for _, name := range living {
			if share := realms / len(living); by[name] < share*2/3 || by[name] > share*3/2 {
				t.Errorf("%s: realms are led by %v", when, by)
			}
		}
		for _, realm := range tb.realms {
			if got, want := tb.leader(realm), First(living, realm); got != want {
				t.Fatalf("%s: node %q leads realm %s, want %s; nobody leads %d", when, got, realm, want, none)
			}
		}
	}
	tb.run(30 * time.Second)
	settled("at first", nodes...)
	if size := len(tb.data); size > 8<<10 {
		t.Errorf("the board has %d bytes", size)
	}
	was := tb.moves
	tb.run(time.Minute)
	if tb.moves != was {
		t.Errorf("%d realms move, and nothing has happened", tb.moves-was)
	}

	lost, _ := tb.led()
	tb.sitters["n2"].dead = true
	tb.run(TTL + 2*RenewEvery)
	settled("without n2", "n1", "n3")
	if n := tb.moves - was; n != lost["n2"] {
		t.Errorf("n2 led %d realms, and %d moved", lost["n2"], n)
	}

	was = tb.moves
	tb.start("n2")
	tb.run(settle)
	if tb.moves != was {
		t.Errorf("%d realms move at once to a node that has just come back", tb.moves-was)
	}
	for range 90 {
		before := tb.moves
		tb.run(RenewEvery)
		if n := tb.moves - before; n > 2*handAtOnce { // two nodes hand some over
			t.Errorf("%d realms move in one second", n)
		}
	}
	settled("with n2 again", nodes...)
	if n := tb.moves - was; n != lost["n2"] {
		t.Errorf("n2 led %d realms before, and %d moved back", lost["n2"], n)
	}
}

// TestRealmOfAnother: a realm that the first in rank cannot lead is led by the next one after a while. It is not
// handed to a node that is behind, comes and goes, or stops.
func TestRealmOfAnother(t *testing.T) {
	nodes := []string{"n1", "n2", "n3"}
	tb := newTable(1, nodes...)
	ranked := slices.Clone(nodes)
	slices.SortFunc(ranked, func(a, b string) int { return rankOf(nodes, a, "r0") - rankOf(nodes, b, "r0") })
	first, second := tb.sitters[ranked[0]], ranked[1]
	first.seats["r0"].rest = tb.now.Add(time.Hour) // it could not lead it
	tb.run(standIn)
	if tb.leader("r0") != "" {
		t.Error("the second in rank does not wait for the first")
	}
	tb.run(2 * RenewEvery)
	first.seats["r0"].rest = time.Time{}
	first.health.Behind = closeEnough + 1
	tb.run(time.Minute)
	for range 10 {
		first.health.Behind = 0
		tb.run(settle - RenewEvery)
		first.health.Behind = closeEnough + 1
		tb.run(RenewEvery)
	}
	if got := tb.leader("r0"); got != second {
		t.Errorf("%q leads a realm that the first in rank cannot lead for long, want %s", got, second)
	}
	first.health.Behind = 0
	tb.run(settle + 5*RenewEvery)
	if got := tb.leader("r0"); got != ranked[0] {
		t.Errorf("a realm is not handed back: %q leads it", got)
	}
}

// TestDamagedRealm: a realm that met damage is given up for good, and others lead it.
func TestDamagedRealm(t *testing.T) {
	tb := newTable(1, "n1", "n2", "n3")
	tb.run(20 * time.Second)
	was := tb.leader("r0")
	tb.sitters[was].health = Health{Err: fmt.Errorf("damage"), Damaged: true}
	tb.run(20 * time.Second)
	tb.sitters[was].health = Health{}
	tb.run(time.Minute)
	if got := tb.leader("r0"); got == "" || got == was {
		t.Errorf("%q leads a realm that met damage at %s", got, was)
	}
	if s := tb.sitters[was].Seats()[0]; s.State != Broken || s.Why == nil {
		t.Errorf("its seat is %+v", s)
	}
}

// TestOutage: after an outage of the board, in which nobody could write, nobody is thought to be dead: realms stay
// where they are.
func TestOutage(t *testing.T) {
	nodes := []string{"n1", "n2", "n3"}
	tb := newTable(20, nodes...)
	tb.run(20 * time.Second)
	was, moves := tb.data, tb.moves
	for end := tb.now.Add(TTL); tb.now.Before(end); tb.now = tb.now.Add(RenewEvery) {
		for _, name := range nodes {
			s := tb.sitters[name]
			s.Look(was, tb.now, tb.now)
			s.Looked(tb.now, errors.New("not written"))
		}
	}
	tb.run(20 * time.Second)
	if by, none := tb.led(); none > 0 || tb.moves != moves {
		t.Errorf("%d realms moved; nobody leads %d, and %v", tb.moves-moves, none, by)
	}
}

// TestBeats: a node shows no beat twice, also after its post was taken away: another node may remember it.
func TestBeats(t *testing.T) {
	n := New(Config{Node: "n1", Life: "1", Nodes: 1, Default: "r0"})
	now, last := time.Unix(1e9, 0), uint64(0)
	for i := range 10 {
		var board []byte
		if i%3 > 0 {
			board = n.Board().data()
		}
		beat := ReadBoard(n.Look(board, now, now)).Nodes["n1"].Beat
		n.Looked(now, nil)
		if beat <= last {
			t.Fatalf("after beat %d comes %d", last, beat)
		}
		last, now = beat, now.Add(RenewEvery)
	}
}

// TestOldAct: a realm that was given up while it was being made to lead does not lead when that ends.
func TestOldAct(t *testing.T) {
	tb := newTable(1)
	s := tb.start("n1")
	s.Look(nil, tb.now, tb.now)
	s.Looked(tb.now, nil)
	lead := s.Todo()
	s.Look(nil, tb.now, tb.now) // another node has taken its post away
	s.Looked(tb.now, nil)
	if left := s.Todo(); len(lead) != 1 || lead[0].Act != Lead || len(left) != 1 || left[0].Act != Close {
		t.Fatalf("it is to do %+v, and then %+v", lead, left)
	}
	if s.Done(lead[0], tb.now, Fine, nil) || s.Seats()[0].State != Leaving {
		t.Errorf("its seat is %+v", s.Seats()[0])
	}
}

// TestBadBoard: a board that cannot be read is an empty one.
func TestBadBoard(t *testing.T) {
	for _, data := range []string{"", "x", "null", "[]", `{"nodes": null}`, `{"nodes": 7}`} {
		b := ReadBoard([]byte(data))
		if b.Nodes == nil || len(b.Nodes) > 0 {
			t.Errorf("%q is %+v", data, b)
		}
	}
	b := Board{Nodes: map[string]Post{"n1": {Leads: []string{"a"}}}}
	if got := ReadBoard(b.data()); got.Leaders()["a"] != "n1" || !json.Valid(b.data()) {
		t.Errorf("%+v is read as %+v", b, got)
	}
}

// TestBoardOfTwoBuilds: a node leaves what others say on the board as it is, also what it does not know: a
// newer build may say more. The level that all know is the lowest; a node that says none has the first.
func TestBoardOfTwoBuilds(t *testing.T) {
	now := time.Unix(1e9, 0)
	theirs := `{"life":"x","beat":7,"leads":["far"],"wants":[],"stops":false,"level":99,"mood":{"of":["a","newer"]}}`
	n := New(Config{Node: "n1", Life: "here", Nodes: 3, Level: level})
	look := func(nodes string) (b Board, posts map[string]json.RawMessage) {
		t.Helper()
		data := n.Look([]byte(`{"nodes":{`+nodes+`}}`), now, now)
		n.Looked(now, nil)
		var written struct{ Nodes map[string]json.RawMessage }
		if err := json.Unmarshal(data, &written); err != nil {
			t.Fatal(err)
		}
		return n.Board(), written.Nodes
	}
	b, posts := look(`"n2":` + theirs)
	if string(posts["n2"]) != theirs {
		t.Errorf("the post of a newer build became %s", posts["n2"])
	}
	if b.Level(level) != level || b.Nodes["n1"].Level != level {
		t.Errorf("two nodes know level %d", b.Level(level))
	}
	b, _ = look(`"n2":` + theirs + `,"n3":{"life":"y","beat":1,"leads":[],"wants":[],"stops":false}`)
	if b.Level(level) != 1 {
		t.Errorf("next to a node that names no level, all know level %d", b.Level(level))
	}
}

// TestClockOff: a node whose clock is far ahead of the others' never leads, however the cluster starts, and one
// whose clock is far behind not for long. It says so, and the others lead. Once its clock is right it gets its
// realms. One that was right gives its realms up.
func TestClockOff(t *testing.T) {
	nodes := []string{"n1", "n2", "n3"}
	for _, skew := range []time.Duration{time.Hour, -time.Hour, 15 * time.Second, -15 * time.Second} {
		for first := range nodes {
			tb := newTable(20)
			tb.size = 3
			for i := range nodes { // one a second, in each order
				if name := nodes[(first+i)%3]; name == "n1" {
					tb.start(name).skew = skew
				} else {
					tb.start(name)
				}
				tb.run(RenewEvery)
				if by, _ := tb.led(); by["n1"] > 0 && skew > 0 { // next to one other, the earlier one may lead
					t.Fatalf("skew %v: n1 leads %d realms in second %d", skew, by["n1"], i)
				}
			}
			for i := range 60 {
				tb.run(RenewEvery)
				if by, _ := tb.led(); by["n1"] > 0 && (skew > 0 || i > 2) {
					t.Fatalf("skew %v: n1 leads %d realms", skew, by["n1"])
				}
			}
			if by, none := tb.led(); none > 0 || !ReadBoard(tb.data).Nodes["n1"].Off || by["n2"] == 0 || by["n3"] == 0 {
				t.Errorf("skew %v: nobody leads %d realms, and %v", skew, none, by)
			}
			if ahead, off := tb.sitters["n1"].ClockOff(); !off || ahead.Abs() < skew.Abs()-5*time.Second || (ahead > 0) != (skew > 0) {
				t.Errorf("skew %v: it says that it is %v ahead", skew, ahead)
			}
			tb.sitters["n1"].skew = 0
			tb.run(2 * time.Minute)
			if by, none := tb.led(); none > 0 || by["n1"] == 0 {
				t.Errorf("skew %v, until now: nobody leads %d realms, and %v", skew, none, by)
			}
			tb.sitters["n1"].skew = skew
			tb.run(10 * RenewEvery)
			if by, none := tb.led(); none > 0 || by["n1"] > 0 {
				t.Errorf("skew %v, from now on: nobody leads %d realms, and %v", skew, none, by)
			}
		}
	}
}

// TestClocksNear: clocks that are not far apart change nothing.
func TestClocksNear(t *testing.T) {
	tb := newTable(20, "n1", "n2", "n3")
	tb.sitters["n1"].skew, tb.sitters["n2"].skew = 5*time.Second, -4*time.Second
	tb.run(2 * time.Minute)
	if by, none := tb.led(); none > 0 || len(by) != 3 {
		t.Errorf("nobody leads %d realms, and %v", none, by)
	}
}

// TestTwoClocks: of two clocks that differ, nobody knows which is right. The earlier one leads: a realm's time
// never goes back. A node that is alone leads, and so does one next to nodes that do not say their time.
func TestTwoClocks(t *testing.T) {
	tb := newTable(4)
	tb.size = 3
	tb.start("n1").skew = time.Hour
	tb.start("n2")
	tb.run(time.Minute)
	if by, none := tb.led(); none > 0 || by["n1"] > 0 {
		t.Errorf("nobody leads %d realms, and %v", none, by)
	}
	tb.sitters["n2"].dead = true
	tb.run(time.Minute)
	if by, none := tb.led(); none > 0 {
		t.Errorf("alone, nobody leads %d realms, and %v", none, by)
	}

	tb = newTable(1)
	tb.size = 3
	s := tb.start("n1")
	began := tb.now
	for beat := range 10 {
		old := `"life":"x","beat":` + fmt.Sprint(beat) + `,"leads":[],"wants":[]` // of an older build
		s.Look([]byte(`{"nodes":{"n2":{`+old+`},"n3":{`+old+`}}}`), tb.now, tb.now)
		s.Looked(tb.now, nil)
		tb.tend(s)
		turn := max(TTL, time.Duration(rankOf([]string{"n1", "n2", "n3"}, "n1", "r0"))*standIn)
		if leads := tb.leader("r0") == "n1"; leads != (tb.now.Sub(began) >= turn) {
			t.Fatalf("in second %d it leads: %v, want after %v", beat, leads, turn)
		} else if leads {
			return
		}
		tb.now = tb.now.Add(RenewEvery)
	}
	t.Error("it never leads next to older nodes")
}

// TestDrained: a node that is drained hands over all that it leads, to the next ones in rank, and takes it back
// afterwards. One that stops gives everything up, and then says so.
func TestDrained(t *testing.T) {
	tb := newTable(40, "n1", "n2", "n3")
	tb.run(time.Minute)
	if by, none := tb.led(); none > 0 || by["n1"] == 0 {
		t.Fatalf("nobody leads %d realms, and %v", none, by)
	}
	n1 := tb.sitters["n1"]
	n1.Drain(true)
	tb.run(5 * RenewEvery)
	if by, none := tb.led(); none > 0 || by["n1"] > 0 || by["n2"] == 0 || by["n3"] == 0 || !n1.Drained() {
		t.Errorf("drained: nobody leads %d realms, and %v", none, by)
	}
	n1.Drain(false)
	tb.run(2 * time.Minute)
	if by, none := tb.led(); none > 0 || by["n1"] == 0 {
		t.Errorf("not drained any more: nobody leads %d realms, and %v", none, by)
	}
	n1.Stop()
	if n1.Left() {
		t.Error("a node that stops has given up all at once")
	}
	tb.run(5 * RenewEvery)
	if by, none := tb.led(); none > 0 || by["n1"] > 0 || !n1.Left() {
		t.Errorf("n1 has stopped: %v, nobody leads %d realms, and %v", n1.Left(), none, by)
	}
	tb.data = n1.Leave(tb.data)
	if _, there := ReadBoard(tb.data).Nodes["n1"]; there {
		t.Error("a node that has left is on the board")
	}
}

// TestPatience: the others wait for a silent node for as long as its post asks, and read there where it is.
func TestPatience(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Second, TTL, 4 * TTL} {
		tb := newTable(1, "n2")
		n1 := &sitter{Node: New(Config{Node: "n1", Life: "1", Nodes: 0, Level: level, Default: "r0", Address: "10.0.0.1:6223", TTL: ttl})}
		n1.Find("r0")
		tb.sitters["n2"].Stop() // so that n1 leads
		tb.sitters["n1"] = n1
		tb.tend(n1)
		tb.run(3 * TTL)
		if leader := tb.leader("r0"); leader != "n1" {
			t.Fatalf("%q leads", leader)
		}
		if at := ReadBoard(tb.data).Nodes["n1"].Address; at != "10.0.0.1:6223" {
			t.Errorf("its post says that it is at %q", at)
		}
		n1.dead = true
		tb.start("n2") // it has not seen how long n1 has been silent
		silent := max(ttl, TTL)
		tb.run(silent - RenewEvery)
		if leader := tb.leader("r0"); leader != "" {
			t.Errorf("%q leads before %v are over", leader, silent)
		}
		tb.run(standIn + 2*RenewEvery)
		if leader := tb.leader("r0"); leader != "n2" {
			t.Errorf("after %v of silence %q leads, want n2", silent, leader)
		}
	}
}
