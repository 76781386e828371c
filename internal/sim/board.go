package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kuji-dev/kuji/driver"
)

// board is what nodes wrote on the board that they share. Each update adds a line, so all that anybody
// ever saw is the beginning of what is there at the end.
type board struct {
	posted int      // lines that somebody wanted to add
	acked  []post   // those of which a node was told that they are there
	no     []string // those of changes that failed
	seen   [][]byte // what changes were called with
}

// post is a line on the board.
type post struct {
	line  string
	after int // acknowledged lines when its update began
}

// errNo is the error of a change that fails.
var errNo = errors.New("the change is not wanted")

// post makes a node add lines to the board: one, or in some runs so many that its log is trimmed.
func (c *cluster) post(m *member) {
	if m.posts {
		return
	}
	m.posts = true
	lines := 1
	if c.cfg.Seed%10 == 3 {
		lines = 10
	}
	c.fibers.Go(func() {
		for range lines {
			if !m.dead {
				c.add(m)
			}
		}
		m.posts = false
	})
}

// add makes a node add a line to the board. Some changes fail.
func (c *cluster) add(m *member) {
	c.board.posted++
	p := post{line: fmt.Sprintf("%d by node %d\n", c.board.posted, m.number), after: len(c.board.acked)}
	fails := c.board.posted%8 == 0
	calls := 0
	err := m.kept.Update(context.Background(), func(old []byte) ([]byte, error) {
		if calls++; calls > 1 {
			c.Cluster.Raced++
		}
		c.board.seen = append(c.board.seen, bytes.Clone(old))
		if fails {
			return append(bytes.Clone(old), p.line...), errNo
		}
		return append(bytes.Clone(old), p.line...), nil
	})
	c.note("node %d was to add %q to the board: %v", m.number, p.line, err)
	switch {
	case err == nil && fails:
		c.fail("node %d: a change failed, and its update did not", m.number)
	case err == nil:
		c.board.acked = append(c.board.acked, p)
		c.Cluster.Posts++
	case errors.Is(err, errNo):
		c.board.no = append(c.board.no, p.line)
	case errors.Is(err, driver.ErrUnknown), errors.Is(err, driver.ErrUnavailable): // it may be there
	case errors.Is(err, driver.ErrClosed) && m.dead:
	default:
		c.fail("node %d cannot update the board: %w", m.number, err)
	}
}

// judgeBoard checks what is on the board when all nodes have stopped, as one of them sees it.
func (c *cluster) judgeBoard(m *member) {
	var all []byte
	for err := errNo; err != nil; {
		err = m.kept.Update(context.Background(), func(old []byte) ([]byte, error) {
			all = bytes.Clone(old)
			return append(bytes.Clone(old), "end\n"...), nil
		})
		if err != nil && !errors.Is(err, driver.ErrUnknown) && !errors.Is(err, driver.ErrUnavailable) {
			c.fail("the board cannot be updated at the end: %w", err)
		}
	}
	place := map[string]int{}
	for line := range strings.Lines(string(all)) {
		if place[line] > 0 && line != "end\n" {
			c.fail("the line %q is on the board twice:\n%s", line, all)
		}
		place[line] = len(place) + 1
	}
	newest := make([]int, len(c.board.acked)+1) // of the first lines that were acknowledged
	for i, p := range c.board.acked {
		newest[i+1] = max(newest[i], place[p.line])
		switch {
		case place[p.line] == 0:
			c.fail("the line %q was acknowledged, and is not on the board:\n%s", p.line, all)
		case place[p.line] <= newest[p.after]:
			c.fail("the line %q stands before one that was acknowledged before it was sent:\n%s", p.line, all)
		}
	}
	for _, line := range c.board.no {
		if place[line] > 0 {
			c.fail("the change with line %q failed, and is on the board:\n%s", line, all)
		}
	}
	for _, old := range c.board.seen {
		if !bytes.HasPrefix(all, old) {
			c.fail("a node saw the board\n%s\nand at the end it is\n%s", old, all)
		}
	}
}
