package cli

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
)

// skews returns by how much nodes' clocks are ahead, ascending.
func (tb *table) skews(nodes ...string) (all []time.Duration) {
	for _, name := range nodes {
		all = append(all, tb.sitters[name].skew)
	}
	slices.Sort(all)
	return all
}

// leaders returns how many realms each node leads.
func (tb *table) leaders() map[string]int {
	by, _ := tb.led(1)
	return by
}

// TestClockOff: a node whose clock is far ahead of the others' never leads, however the cluster starts, and one
// whose clock is far behind not for long. It says so, and the others lead. Once its clock is right it gets its realms. One that was right gives its realms up.
func TestClockOff(t *testing.T) {
	const realms = 20
	nodes := []string{"n1", "n2", "n3"}
	for _, skew := range []time.Duration{time.Hour, -time.Hour, 15 * time.Second, -15 * time.Second} {
		for first := range nodes {
			tb := newTable(t, 0)
			tb.size = 3
			for i := range nodes { // one a second, in each order
				name := nodes[(first+i)%3]
				tb.start(name, realms)
				if name == "n1" {
					tb.sitters[name].skew = skew
				}
				tb.run(renewEvery)
				if by, _ := tb.led(realms); by["n1"] > 0 && skew > 0 { // next to one other, the earlier one may lead
					t.Fatalf("skew %v: n1 leads %d realms in second %d", skew, by["n1"], i)
				}
			}
			for i := range 60 {
				tb.run(renewEvery)
				if by, _ := tb.led(realms); by["n1"] > 0 && (skew > 0 || i > 2) {
					t.Fatalf("skew %v: n1 leads %d realms", skew, by["n1"])
				}
			}
			if by, none := tb.led(realms); none > 0 || !readBoard(tb.data).Nodes["n1"].Off || by["n2"] == 0 || by["n3"] == 0 {
				t.Errorf("skew %v: nobody leads %d realms, and %v", skew, none, by)
			}
			if text, want := clockText(tb.sitters["n1"].clocks.apart()), map[bool]string{true: "ahead", false: "behind"}[skew > 0]; !strings.Contains(text, want) {
				t.Errorf("skew %v: it says that %s", skew, text)
			}
			tb.sitters["n1"].skew = 0
			tb.run(2 * time.Minute)
			if by, none := tb.led(realms); none > 0 || by["n1"] == 0 {
				t.Errorf("skew %v, until now: nobody leads %d realms, and %v", skew, none, by)
			}
			tb.sitters["n1"].skew = skew
			tb.run(10 * renewEvery)
			if by, none := tb.led(realms); none > 0 || by["n1"] > 0 {
				t.Errorf("skew %v, from now on: nobody leads %d realms, and %v", skew, none, by)
			}
		}
	}
}

// TestClocksNear: clocks that are not far apart change nothing.
func TestClocksNear(t *testing.T) {
	nodes := []string{"n1", "n2", "n3"}
	tb := newTable(t, 20, nodes...)
	tb.sitters["n1"].skew, tb.sitters["n2"].skew = 5*time.Second, -4*time.Second
	tb.run(2 * time.Minute)
	if by, none := tb.led(20); none > 0 || len(by) != 3 {
		t.Errorf("nobody leads %d realms, and %v", none, by)
	}
}

// TestTwoClocks: of two clocks that differ, nobody knows which is right. The earlier one leads: a realm's time
// never goes back. A node that is alone leads, and so does one next to nodes that do not say their time.
func TestTwoClocks(t *testing.T) {
	tb := newTable(t, 4, "n1", "n2")
	tb.size = 3
	for name, s := range tb.sitters {
		s.clocks.size = 3
		s.skew = map[string]time.Duration{"n1": time.Hour}[name]
	}
	tb.run(time.Minute)
	if by, none := tb.led(4); none > 0 || by["n1"] > 0 {
		t.Errorf("nobody leads %d realms, and %v", none, by)
	}
	tb.sitters["n2"].dead = true
	tb.run(time.Minute)
	if by, none := tb.led(4); none > 0 {
		t.Errorf("alone, nobody leads %d realms, and %v", none, by)
	}

	old := newWatcher("n1", "1", 3)
	now := time.Unix(1e9, 0)
	for beat := range uint64(10) {
		b := board{Nodes: map[string]post{"n2": {Life: "x", Beat: beat}, "n3": {Life: "x", Beat: beat}}} // of an older build
		v := old.look(b, map[string]bearing{"r0": {ready: true}}, false, now, now)
		if leads := len(v.taken) > 0; leads != (now.Sub(time.Unix(1e9, 0)) == max(leaseTTL, time.Duration(rankOf([]string{"n1", "n2", "n3"}, "n1", "r0"))*standIn)) {
			t.Errorf("in second %d it takes %v", beat, v.taken)
		}
		if len(v.taken) > 0 {
			return
		}
		now = now.Add(renewEvery)
	}
	t.Error("it never leads next to older nodes")
}

// TestHealth: kuji cluster status compares clocks, and names what is wrong.
func TestHealth(t *testing.T) {
	nodes := []nodeJSON{
		{Node: "n1", Version: "1", Time: 1, apart: time.Hour},
		{Node: "n2", Version: "2", Time: 1, apart: 2 * time.Second, Health: &healthJSON{Stored: 1_500_000_000, Most: 1e10, Groups: 3, Leads: 1, Ill: []string{"stream A has no leader"}, Behind: []string{"stream B: node n1 is away"}}},
		{Node: "n3", Version: "1", Time: 1, apart: time.Second},
		{Node: "n4", State: stateUnreachable},
	}
	setClocks(nodes)
	var out strings.Builder
	columns := newColumns(&out)
	printHealth(columns, nodes)
	if err := columns.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+3598.0 s", "+0.0 s", "-1.0 s", "1.50 GB", "node n2: stream A has no leader\n", "node n2: stream B: node n1 is away\n", "different versions"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if got := few(make([]string, 100)); len(got) != maxIll+1 || got[maxIll] != "and 80 more" {
		t.Errorf("%q", got)
	}
	n := newNode("n1", &clusterFlags{name: "shop", hosts: map[string]peer{"n1": {}}}, clusterKeys{{1}}, slog.New(slog.DiscardHandler))
	n.stopped = t.Context()
	watch := newWatcher("n1", "1", 3)
	watch.clocks.off, watch.clocks.known = true, map[string]between{"n2": {-time.Hour, -time.Hour}, "n3": {-time.Hour, -time.Hour}}
	n.noteClock(&watch.clocks)
	engine, err := kuji.Open(t.TempDir(), kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	if n.view.serves, err = server.New(engine, server.Options{}); err != nil {
		t.Fatal(err)
	}
	n.board.Nodes = map[string]post{"n2": {}}
	n.view.leaders = map[string]string{"default": "n2"}
	if d := n.describe(); d.Why != "its clock is about 1h0m0s ahead of the other nodes': it leads no realm until that is less than 5s" || !d.Ready {
		t.Errorf("a node whose clock is off says %+v", d)
	}
}

// TestDrained: a node that is drained hands over all that it leads, to those who are next in rank, and takes it
// back afterwards.
func TestDrained(t *testing.T) {
	const realms = 40
	tb := newTable(t, realms, "n1", "n2", "n3")
	tb.run(time.Minute)
	if by, none := tb.led(realms); none > 0 || by["n1"] == 0 {
		t.Fatalf("nobody leads %d realms, and %v", none, by)
	}
	tb.sitters["n1"].drained = true
	tb.run(5 * renewEvery)
	if by, none := tb.led(realms); none > 0 || by["n1"] > 0 || by["n2"] == 0 || by["n3"] == 0 {
		t.Errorf("drained: nobody leads %d realms, and %v", none, by)
	}
	tb.sitters["n1"].drained = false
	tb.run(2 * time.Minute)
	if by, none := tb.led(realms); none > 0 || by["n1"] == 0 {
		t.Errorf("not drained any more: nobody leads %d realms, and %v", none, by)
	}
}
