package cli

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Nodes compare their clocks, by the board: each node's post says what its wall clock showed. A post that has
// changed since the last look was written since then, so the other clock is known within that time. It takes
// no other messages, and who can write the board can be compared.
//
// A realm's time stamps never go back. So a node whose clock is ahead would take every later leader with it.
// A node whose clock is off therefore leads nothing, and says so:
//
//	known      the clocks on the board, this one too
//	middle     the one in the middle of them; the earlier one of two
//	off        more than maxApart from the middle, for sure
//
// The node in the middle is never off, so somebody can lead. With two clocks that differ, nobody knows which
// one is right: the later one does not lead, because it does more harm.

const (
	// maxApart is how far a node's clock may be from the others' for it to lead.
	maxApart = 10 * time.Second
	// postTime is how long a post may be on its way to the board.
	postTime = leaseTTL
)

// clocks is what a node knows of the others' clocks.
type clocks struct {
	size  int                // how many nodes the cluster has
	began time.Time          // the first look
	last  time.Time          // the last one that saw the board
	known map[string]between // by node
	off   bool               // this node's own is
}

// between bounds how far another clock is ahead of this node's.
type between struct{ least, most time.Duration }

// compare notes what a board says of the clocks. changed reports whether a node's post is another one than at the
// last look. now is the time by the clock that only runs, wall what the wall clock shows.
func (c *clocks) compare(b board, self string, changed func(node string) bool, now, wall time.Time) {
	if c.began.IsZero() {
		c.began = now
	}
	for name, p := range b.Nodes {
		if name == self || p.Time == 0 || !changed(name) {
			continue
		}
		ahead := time.UnixMilli(p.Time).Sub(wall)
		if c.last.IsZero() { // nobody knows how old it is
			continue
		}
		c.known[name] = between{ahead, ahead + now.Sub(c.last) + postTime}
	}
	c.last = now
}

// judge decides whether this node's clock is off, by the nodes that are still on the board. Near the bound it
// stays as it was.
func (c *clocks) judge(b board) {
	maps.DeleteFunc(c.known, func(name string, _ between) bool { _, there := b.Nodes[name]; return !there })
	bound := maxApart
	if c.off {
		bound /= 2
	}
	earlier, later := 0, 0
	for _, k := range c.known {
		switch {
		case k.most < -bound:
			earlier++
		case k.least > bound:
			later++
		}
	}
	all := len(c.known) + 1
	middle := (all - 1) / 2 // how many clocks come before it
	c.off = earlier > middle || later >= all-middle
}

// compared reports whether enough is known of the others' clocks to lead. A node that does not hear of others in
// the time in which they would have said something is alone, or they do not say it.
func (c *clocks) compared(now time.Time) bool {
	return len(c.known)+1 >= c.size/2+1 || now.Sub(c.began) >= leaseTTL
}

// apart returns about how far this node's clock is ahead of the one in the middle. It is 0 if no other is known.
func (c *clocks) apart() time.Duration {
	all := []time.Duration{0}
	for _, k := range c.known {
		all = append(all, k.least+(k.most-k.least)/2)
	}
	slices.Sort(all)
	return -all[(len(all)-1)/2]
}

// clockText says that a node's clock is off, and by how much.
func clockText(ahead time.Duration) string {
	ahead = ahead.Round(time.Second)
	if ahead < 0 {
		return fmt.Sprintf("its clock is about %v behind the other nodes': it leads no realm until that is less than %v", -ahead, maxApart/2)
	}
	return fmt.Sprintf("its clock is about %v ahead of the other nodes': it leads no realm until that is less than %v", ahead, maxApart/2)
}

// noteClock notes whether this node's clock is off, and says so. The caller holds mu.
func (n *seating) noteClock(c *clocks) {
	was := n.clock
	n.clock = ""
	if c.off {
		n.clock = clockText(c.apart())
	}
	switch {
	case was == "" && n.clock != "":
		n.log.Error("cluster: this node's clock is off, so it leads nothing: set it", "node", n.name, "why", n.clock)
	case was != "" && n.clock == "":
		n.log.Info("cluster: this node's clock is good again", "node", n.name)
	}
}
