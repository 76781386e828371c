package election

import (
	"maps"
	"slices"
	"time"
)

// Nodes compare their clocks by the board: a node's post says what its wall clock showed. A post that has
// changed since the last look was written since then, so the other clock is known within that time.
//
// A realm's time stamps never go back. A leader whose clock is ahead would take every later leader with
// it. So a node whose clock is off leads nothing, and says so:
//
//	known      the clocks on the board, this node's too
//	middle     the one in the middle of them; of two, the earlier one
//	off        for sure more than MaxApart from the middle
//
// The node in the middle is never off, so there is always a node that can lead. If two clocks differ,
// nobody knows which one is right. Then the later one does not lead, because it does more harm.

const (
	// MaxApart is how far a leader's clock may be from the others'; half, to lead again.
	MaxApart = 10 * time.Second
)

// clocks is what a node knows of the others' clocks.
type clocks struct {
	size  int                // how many nodes the cluster has; 0: those on the board
	there int                // how many are on the board
	ttl   time.Duration      // this node's
	began time.Time          // the first look
	last  time.Time          // the last one that saw the board
	known map[string]between // by node
	off   bool               // this node's own clock is off
}

// between bounds how far another clock is ahead of this node's.
type between struct{ least, most time.Duration }

// compare notes what a board says of the clocks. changed reports whether a node's post has changed since the
// last look. now is by the monotonic clock, wall is what the wall clock shows.
func (c *clocks) compare(b Board, self string, changed func(node string) bool, now, wall time.Time) {
	if c.began.IsZero() {
		c.began = now
	}
	for name, p := range b.Nodes {
		if name == self || p.Time == 0 || c.last.IsZero() || !changed(name) {
			continue // at the first look, nobody knows how old a post is
		}
		ahead := time.UnixMilli(p.Time).Sub(wall)
		c.known[name] = between{ahead, ahead + now.Sub(c.last) + p.ttl()} // for so long it may be on its way
	}
	c.last = now
	c.there = 1
	for name := range b.Nodes {
		if name != self {
			c.there++
		}
	}
}

// judge decides whether this node's clock is off, by the nodes on the board. Near the bound it stays as it was.
func (c *clocks) judge(b Board) {
	maps.DeleteFunc(c.known, func(name string, _ between) bool { _, there := b.Nodes[name]; return !there })
	bound := MaxApart
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

// compared reports whether the node knows enough of the others' clocks to lead. If it hears of none while
// they would have written, it is alone, or they are of an older build.
func (c *clocks) compared(now time.Time) bool {
	size := c.size
	if size == 0 {
		size = c.there
	}
	return len(c.known)+1 >= size/2+1 || now.Sub(c.began) >= c.ttl
}

// apart returns about how far this node's clock is ahead of the one in the middle; 0 if it knows no other.
func (c *clocks) apart() time.Duration {
	all := []time.Duration{0}
	for _, k := range c.known {
		all = append(all, k.least+(k.most-k.least)/2)
	}
	slices.Sort(all)
	return -all[(len(all)-1)/2]
}
