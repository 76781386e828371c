package election

import (
	"maps"
	"slices"
	"time"
)

const (
	// standIn is how long each next node in rank leaves a realm without a leader to those before it.
	standIn = 2 * RenewEvery
	// settle is how long the first in rank must want a realm before its leader hands it over.
	settle = 10 * time.Second
	// handAtOnce is how many realms a node hands over at a time.
	handAtOnce = 4
)

// watcher remembers what a node has seen on the board, and when. It decides what the node writes.
type watcher struct {
	conf    Config
	beat    uint64                  // the last one of its own
	beats   map[string]seen[pulse]  // by node: life and beat
	free    map[string]seen[bool]   // by realm that nobody leads
	wanted  map[string]seen[string] // by realm that this node leads: the node that wants it
	blind   bool                    // the last look failed
	clocks  clocks
	drained bool // an operator has asked the node to lead nothing
}

// pulse is how a node shows that it lives.
type pulse struct {
	life string
	beat uint64
}

// seen is something that has not changed since.
type seen[T comparable] struct {
	what  T
	since time.Time
}

// sinceWhen remembers what is seen of a name, and returns since when that has not changed.
func sinceWhen[T comparable](all map[string]seen[T], name string, what T, now time.Time) time.Time {
	if s, ok := all[name]; ok && s.what == what {
		return s.since
	}
	all[name] = seen[T]{what, now}
	return now
}

// verdict is what a look at the board leads to.
type verdict struct {
	board   Board
	taken   []*Seat // the node leads these from now on
	lost    []*Seat // it led these, and another node may lead them now
	handing []*Seat // it is to hand these over
	changed bool    // the other nodes should look: it took or gave up realms, came, or goes
}

func newWatcher(c Config) watcher {
	return watcher{
		conf: c, beats: map[string]seen[pulse]{}, free: map[string]seen[bool]{}, wanted: map[string]seen[string]{},
		clocks: clocks{size: c.Nodes, ttl: c.TTL, known: map[string]between{}},
	}
}

// away reports whether the node leads nothing, though it does not stop.
func (w *watcher) away() bool { return w.clocks.off || w.drained }

// decideToLead decides which realms the node leads, and returns the board to write, which says so. The node
// leads what it takes once that board is written: see [Node.Looked].
//
//	its last post says that it leads it, and nobody took the post away    it goes on
//	it could lead, nobody does, and those before it in rank had their turn   it takes it
//	it is first in rank, and has caught up with the leader                   it wants it
func (w *watcher) decideToLead(b Board, seats []*Seat, stops bool, now, wall time.Time) verdict {
	self := w.conf.Node
	was := b.Nodes[self]
	if was.Life != w.conf.Life {
		was.Leads = nil
	}
	w.clocks.compare(b, self, func(node string) bool { return w.beats[node].what != b.Nodes[node].pulse() }, now, wall)
	w.bury(&b, now)
	w.clocks.judge(b)
	off := w.away()
	w.beat = max(w.beat, was.Beat) + 1 // one that nobody has seen
	mine := Post{
		Life: w.conf.Life, Beat: w.beat, Stops: stops, Level: w.conf.Level, Leads: []string{}, Wants: []string{},
		Time: wall.UnixMilli(), Off: off, Address: w.conf.Address,
	}
	if w.conf.TTL > TTL {
		mine.Wait = w.conf.TTL.Milliseconds()
	}
	b.Nodes[self] = mine // without what it leads: only the others' posts say who else leads
	leaders, living := b.Leaders(), b.Living()
	may := !stops && !off && w.clocks.compared(now)
	v := verdict{board: b}
	var led []*Seat
	for _, s := range seats {
		_, taken := leaders[s.Realm]
		switch {
		case s.held && !taken && slices.Contains(was.Leads, s.Realm):
			led = append(led, s)
		case s.held:
			v.lost = append(v.lost, s)
		case !may || !s.ready(now):
		case taken:
			if s.close && s.State == Following && First(living, s.Realm) == self {
				mine.Wants = append(mine.Wants, s.Realm)
			}
		case now.Sub(sinceWhen(w.free, s.Realm, true, now)) >= time.Duration(rankOf(living, self, s.Realm))*standIn:
			led, v.taken = append(led, s), append(v.taken, s)
		}
	}
	for _, s := range led {
		mine.Leads = append(mine.Leads, s.Realm)
	}
	maps.DeleteFunc(w.free, func(realm string, _ seen[bool]) bool {
		_, taken := leaders[realm]
		return taken || slices.Contains(mine.Leads, realm)
	})
	v.handing = w.handOver(b, led, now)
	b.Nodes[self] = mine
	v.changed = was.Life != mine.Life || was.Stops != stops || was.Off != off || !slices.Equal(was.Leads, mine.Leads)
	return v
}

// bury drops posts of dead nodes. After a failed look it waits: the others may have failed as well.
func (w *watcher) bury(b *Board, now time.Time) {
	for name, p := range b.Nodes {
		since := sinceWhen(w.beats, name, p.pulse(), now)
		if name != w.conf.Node && !w.blind && now.Sub(since) >= p.ttl() {
			delete(b.Nodes, name)
		}
	}
	maps.DeleteFunc(w.beats, func(name string, _ seen[pulse]) bool { _, there := b.Nodes[name]; return !there })
}

// handOver returns the realms that this node is to hand over, of those that it has: to the first in
// rank, if that node has wanted them for long enough, or to any node if this one is to lead nothing.
func (w *watcher) handOver(b Board, led []*Seat, now time.Time) (handing []*Seat) {
	wants := map[string]string{}
	for name, p := range b.Nodes {
		for _, realm := range p.Wants {
			if name != w.conf.Node && p.takes() && First(b.Living(), realm) == name {
				wants[realm] = name
			}
		}
	}
	moving := 0 // realms that it takes over or hands over
	for _, s := range led {
		if s.held && s.State != Leading {
			moving++
		}
	}
	wanted := map[string]seen[string]{}
	for _, s := range led {
		name, ok := wants[s.Realm]
		switch {
		case s.State != Leading:
		case w.away():
			handing = append(handing, s)
		case ok:
			since := sinceWhen(w.wanted, s.Realm, name, now)
			wanted[s.Realm] = seen[string]{name, since}
			if now.Sub(since) >= settle && moving+len(handing) < handAtOnce {
				handing = append(handing, s)
			}
		}
	}
	w.wanted = wanted
	return handing
}
