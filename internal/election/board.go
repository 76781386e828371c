package cli

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/kuji-dev/kuji"
)

// The board says who is there and who leads which realm: docs/internals/decisions/0010. This file
// decides what a node writes on it, from what it finds there. It does nothing else.

const (
	// leaseTTL is how long a node that says nothing is there, by the other nodes' clocks.
	leaseTTL = 3 * time.Second
	// renewEvery is the time between two looks at the board.
	renewEvery = leaseTTL / 3
	// standIn is how long each next one in rank leaves a realm without a leader to those before it.
	standIn = 2 * renewEvery
	// settle is how long the first in rank must want a realm before its leader hands it over.
	settle = 10 * time.Second
	// handAtOnce is how many realms a node hands over at a time.
	handAtOnce = 4
)

// board is what the nodes of a cluster tell each other. A node writes its own post, and leaves those of
// others as they are: a newer build may say what this one does not know.
type board struct {
	Nodes map[string]post `json:"nodes"`
}

// post is what one node says.
type post struct {
	Life  string   `json:"life"`  // of the process: another one of the same name leads nothing of this one's
	Beat  uint64   `json:"beat"`  // another one at each look
	Leads []string `json:"leads"` // the realms that it leads, takes over or hands over
	Wants []string `json:"wants"` // the realms that it would rather lead than who does
	Stops bool     `json:"stops"` // it takes none any more
	Time  int64    `json:"time"`  // what its wall clock shows, Unix milliseconds; 0: an older build does not say
	Off   bool     `json:"off"`   // that is far from what the others show, or it is drained: it leads nothing
	// Level is the newest format level that its build knows; absent: 1. See kuji.FormatLevel.
	Level uint8 `json:"level,omitempty"`

	as json.RawMessage // as it was read; nil: it is this node's own
}

// plainPost is a post without its methods.
type plainPost post

// UnmarshalJSON implements [json.Unmarshaler].
func (p *post) UnmarshalJSON(data []byte) error {
	*p = post{}
	err := json.Unmarshal(data, (*plainPost)(p))
	p.as = bytes.Clone(data)
	return err
}

// MarshalJSON implements [json.Marshaler].
func (p post) MarshalJSON() ([]byte, error) {
	if p.as != nil {
		return p.as, nil
	}
	return json.Marshal(plainPost(p))
}

// takes reports whether a node may take realms.
func (p post) takes() bool { return !p.Stops && !p.Off }

// readBoard reads a board. One that cannot be read is empty: nobody leads anything.
func readBoard(data []byte) board {
	b := board{}
	if json.Unmarshal(data, &b) != nil || b.Nodes == nil {
		b = board{Nodes: map[string]post{}}
	}
	return b
}

func (b board) data() []byte {
	data, err := json.Marshal(b)
	if err != nil {
		panic(err) // names and numbers
	}
	return data
}

// leaders returns who leads each realm that somebody leads.
func (b board) leaders() map[string]string {
	all := map[string]string{}
	for name, p := range b.Nodes {
		for _, realm := range p.Leads {
			all[realm] = name
		}
	}
	return all
}

// living returns the nodes that may take realms, ascending.
func (b board) living() []string {
	var all []string
	for name, p := range b.Nodes {
		if p.takes() {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// level returns the newest format level that all nodes know which are there.
func (b board) level() uint8 {
	level := kuji.FormatLevel()
	for _, p := range b.Nodes {
		level = min(level, max(p.Level, 1))
	}
	return level
}

// rankOf returns how many of the nodes come before one for a realm. The order is another one for each
// realm, and a node that comes or goes changes nothing between the others.
func rankOf(nodes []string, node, realm string) (rank int) {
	weight := func(of string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(of + "\x00" + realm)) // never fails
		x := h.Sum64()                              // of similar names only the last bits differ much
		x = (x ^ x>>33) * 0xff51afd7ed558ccd
		x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
		return x ^ x>>33
	}
	mine := weight(node)
	for _, other := range nodes {
		if w := weight(other); other != node && (w > mine || w == mine && other < node) {
			rank++
		}
	}
	return rank
}

// bearing is what a node is to a realm, as far as it decides what to write.
type bearing struct {
	held  bool // the node's last post says that it leads the realm, and it has not given it up
	leads bool // it does lead it, and answers requests
	ready bool // it could take it over now
	close bool // it is about as far as the leader
}

// verdict is what a look at the board leads to.
type verdict struct {
	board   board
	taken   []string // realms that are the node's from now on
	lost    []string // realms that it had and has no more
	handing []string // realms that it shall hand over
	changed bool     // it has taken realms or given some up, or came or goes: the others should look
}

// watcher remembers what a node has seen on the board, and when.
type watcher struct {
	name, life string
	beat       uint64                  // the last one of its own
	beats      map[string]seen[pulse]  // by node: life and beat
	free       map[string]time.Time    // by realm: since when nobody leads it
	wanted     map[string]seen[string] // by realm that this node leads: who wants it
	blind      bool                    // the last look failed
	clocks     clocks
	drained    bool // somebody has asked the node to lead nothing
}

// away reports whether the node leads nothing, though it does not stop.
func (w *watcher) away() bool { return w.clocks.off || w.drained }

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

func newWatcher(name, life string, size int) *watcher {
	w := &watcher{name: name, life: life, beats: map[string]seen[pulse]{}, free: map[string]time.Time{}, wanted: map[string]seen[string]{}}
	w.clocks = clocks{size: size, known: map[string]between{}}
	return w
}

// look decides what to write instead of a board. now is the time by the clock that only runs, wall what this
// node's wall clock shows.
func (w *watcher) look(b board, realms map[string]bearing, stops bool, now, wall time.Time) verdict {
	was := b.Nodes[w.name]
	if was.Life != w.life {
		was.Leads = nil
	}
	w.clocks.compare(b, w.name, func(node string) bool { return w.beats[node].what != pulse{b.Nodes[node].Life, b.Nodes[node].Beat} }, now, wall)
	w.bury(&b, now)
	w.clocks.judge(b)
	off := w.away()
	w.beat = max(w.beat, was.Beat) + 1 // never one that somebody remembers
	mine := post{Life: w.life, Beat: w.beat, Stops: stops, Level: kuji.FormatLevel(), Leads: []string{}, Wants: []string{}, Time: wall.UnixMilli(), Off: off}
	b.Nodes[w.name] = mine // the others lead what they say, and nobody else does
	leaders, living := b.leaders(), b.living()
	v := verdict{board: b}
	for _, realm := range slices.Sorted(maps.Keys(realms)) {
		r := realms[realm]
		leader, led := leaders[realm]
		if r.held && !led && slices.Contains(was.Leads, realm) {
			mine.Leads = append(mine.Leads, realm)
			continue
		}
		if r.held {
			v.lost = append(v.lost, realm)
			continue
		}
		rank := rankOf(living, w.name, realm)
		switch {
		case stops || off || !r.ready || !w.clocks.compared(now):
		case !led && !now.Before(w.freeSince(realm, now).Add(time.Duration(rank)*standIn)):
			mine.Leads, v.taken = append(mine.Leads, realm), append(v.taken, realm)
		case led && leader != w.name && rank == 0 && r.close:
			mine.Wants = append(mine.Wants, realm)
		}
	}
	maps.DeleteFunc(w.free, func(realm string, _ time.Time) bool {
		_, led := leaders[realm]
		return led || slices.Contains(mine.Leads, realm)
	})
	v.handing = w.handOver(b, realms, mine.Leads, now)
	b.Nodes[w.name] = mine
	v.changed = was.Life != w.life || was.Stops != stops || was.Off != off || !slices.Equal(was.Leads, mine.Leads)
	return v
}

// bury takes away the posts of nodes that have gone. After a look that failed, it gives them the time
// to come first.
func (w *watcher) bury(b *board, now time.Time) {
	for name, p := range b.Nodes {
		beat := pulse{p.Life, p.Beat}
		if s, ok := w.beats[name]; !ok || s.what != beat {
			w.beats[name] = seen[pulse]{beat, now}
		} else if name != w.name && !w.blind && now.Sub(s.since) >= leaseTTL {
			delete(b.Nodes, name)
		}
	}
	maps.DeleteFunc(w.beats, func(name string, _ seen[pulse]) bool { _, there := b.Nodes[name]; return !there })
}

// freeSince returns since when this node has seen nobody lead a realm.
func (w *watcher) freeSince(realm string, now time.Time) time.Time {
	since, ok := w.free[realm]
	if !ok {
		since, w.free[realm] = now, now
	}
	return since
}

// handOver returns the realms that this node is to hand to who is first in rank, and has wanted them for
// long enough.
func (w *watcher) handOver(b board, realms map[string]bearing, led []string, now time.Time) (handing []string) {
	wants := map[string]string{}
	for name, p := range b.Nodes {
		for _, realm := range p.Wants {
			if name != w.name && p.takes() && rankOf(b.living(), name, realm) == 0 {
				wants[realm] = name
			}
		}
	}
	under := 0
	for _, realm := range led {
		if realms[realm].held && !realms[realm].leads { // it takes the realm over, or hands it over
			under++
		}
	}
	wanted := map[string]seen[string]{}
	for _, realm := range led {
		if w.away() && realms[realm].leads { // it hands over all that it leads
			handing = append(handing, realm)
			continue
		}
		name, ok := wants[realm]
		if !ok || !realms[realm].leads {
			continue
		}
		s := w.wanted[realm]
		if s.what != name {
			s = seen[string]{name, now}
		}
		wanted[realm] = s
		if now.Sub(s.since) >= settle && under+len(handing) < handAtOnce {
			handing = append(handing, realm)
		}
	}
	w.wanted = wanted
	return handing
}
