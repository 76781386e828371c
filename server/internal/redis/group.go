package redis

import (
	"cmp"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
)

// MULTI, commands and EXEC are one Atomic of the API: whole or not at all. Until EXEC nothing is
// carried out; the commands wait in the connection. The group's request id is the ID of one of its
// commands, because clients send MULTI and EXEC by themselves, without arguments.

// memberCost is what a command that waits takes in addition to its bytes.
const memberCost = 512

// group is what waits for EXEC.
type group struct {
	open    bool
	broken  bool // a command was refused, so the group will be
	id      string
	members []*kujiv1.Member
	held    int64         // of Gate.Memory
	holder  access.Caller // who took it
}

// errExecAbort is the answer to EXEC for a group of which a command was refused.
var errExecAbort = &namedError{"EXECABORT", connect.CodeInvalidArgument, "a command of the group was refused, see its answer; nothing was carried out", nil}

// leave forgets what waits.
func (g *group) leave(gate *admission.Gate) {
	if g.held > 0 {
		gate.Memory.Give(g.holder, g.held)
	}
	*g = group{}
}

func answerMulti(c *conn, a *arguments) {
	if c.group.open {
		a.wrong("", "a group is open, want EXEC or DISCARD first")
		return
	}
	c.group.open = true
	c.simple("OK")
}

func answerDiscard(c *conn, a *arguments) {
	if !c.group.open {
		a.wrong("", "no group is open, want MULTI first")
		return
	}
	c.group.leave(c.s.Gate)
	c.simple("OK")
}

// exec answers EXEC.
func (g *group) exec(c *conn, cmd *command, size int) {
	switch {
	case !g.open:
		c.reject(cmd, size, &kuji.Error{Code: kuji.CodeInvalid, Message: "no group is open, want MULTI first"})
	case g.broken:
		c.reject(cmd, size, errExecAbort)
	case len(g.members) == 0:
		c.flush()
		before := c.written()
		c.List(0)
		c.count(cmd, Ended{Size: size, Answered: c.written() - before})
	default:
		c.larger = max(c.larger, int(g.held))
		if err := c.ask(cmd, size, Command{ID: g.id, Message: &kujiv1.Atomic{Members: g.members}}); err != nil {
			c.run.slots = append(c.run.slots, slot{cmd, size, err})
		}
	}
	g.leave(c.s.Gate)
}

// queue adds a command to the open group.
func (g *group) queue(c *conn, cmd *command, size int, a *arguments) {
	c.flush()
	if a.err == nil && !cmd.member {
		a.wrong("", "%s in a group, want DRAW, REGISTER, GRANT, CONSUME, TRANSFER, EXEC or DISCARD", cmd.name)
	}
	if a.err == nil {
		g.wait(c, cmd, size, a)
	}
	if a.err != nil {
		g.broken = true
		c.reject(cmd, size, a.err)
		return
	}
	before := c.written()
	c.simple("QUEUED")
	c.count(cmd, Ended{Size: size, Answered: c.written() - before})
}

// wait keeps a command until EXEC.
func (g *group) wait(c *conn, cmd *command, size int, a *arguments) {
	one := cmd.command.read(a)
	if a.err != nil {
		return
	}
	cost := int64(size + memberCost)
	switch {
	case len(g.members) == kuji.MaxAtomic:
		a.wrong("", "more than %d commands in a group, want at most that many", kuji.MaxAtomic)
	case g.held+cost > int64(c.s.Limits.BatchBytes):
		a.wrong("", "a group of more than %d bytes, want at most that many", c.s.Limits.BatchBytes)
	case one.ID != "" && g.id != "":
		a.wrong("ID", "the group has one already, want one command with the ID of the whole group")
	case !c.s.Gate.Memory.Take(c.client.Access.Who, cost):
		a.err = c.s.Gate.NoMemory(c.client.Access.Who)
	default:
		g.id = cmp.Or(one.ID, g.id)
		g.held, g.holder = g.held+cost, c.client.Access.Who
		g.members = append(g.members, contract.AsMember(one.Message))
	}
}

// writeGroup writes the answer to EXEC: a result for each command, with the receipt of all.
func (c *conn) writeGroup(res *kujiv1.Result) {
	c.List(len(res.GetMembers()))
	for _, m := range res.GetMembers() {
		m.Receipt, m.Replayed = res.GetReceipt(), res.GetReplayed()
		c.write(m)
	}
}
