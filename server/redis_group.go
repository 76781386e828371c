package server

import (
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
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
	held    int64  // of Server.memory
	holder  caller // who took it
}

// errExecAbort is the answer to EXEC for a group of which a command was refused.
var errExecAbort = &redisError{"EXECABORT", connect.CodeInvalidArgument, "a command of the group was refused, see its answer; nothing was carried out", nil}

// leave forgets what waits.
func (g *group) leave(s *Server) {
	if g.held > 0 {
		s.memory.give(g.holder, g.held)
	}
	*g = group{}
}

func answerMulti(c *redisConn, a *arguments) {
	if c.group.open {
		a.wrong("", "a group is open, want EXEC or DISCARD first")
		return
	}
	c.group.open = true
	c.simple("OK")
}

func answerDiscard(c *redisConn, a *arguments) {
	if !c.group.open {
		a.wrong("", "no group is open, want MULTI first")
		return
	}
	c.group.leave(c.s)
	c.simple("OK")
}

// exec answers EXEC.
func (g *group) exec(c *redisConn, cmd *redisCommand, size int) {
	switch {
	case !g.open:
		c.reject(cmd, size, &kuji.Error{Code: kuji.CodeInvalid, Message: "no group is open, want MULTI first"})
	case g.broken:
		c.reject(cmd, size, errExecAbort)
	case len(g.members) == 0:
		c.flush()
		before := c.written()
		c.List(0)
		c.count(ended{cmd: cmd, size: size, answered: c.written() - before})
	default:
		m := &kujiv1.AtomicRequest{Realm: c.realm, RequestId: g.id, Members: g.members}
		c.larger = max(c.larger, int(g.held))
		if err := c.ask(cmd, size, m); err != nil {
			c.run.slots = append(c.run.slots, slot{cmd, m, size, err})
		}
	}
	g.leave(c.s)
}

// queue adds a command to the open group.
func (g *group) queue(c *redisConn, cmd *redisCommand, size int, a *arguments) {
	c.flush()
	if a.err == nil && cmd.member == nil {
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
	c.count(ended{cmd: cmd, size: size, answered: c.written() - before})
}

// wait keeps a command until EXEC.
func (g *group) wait(c *redisConn, cmd *redisCommand, size int, a *arguments) {
	m := cmd.request(c, a)
	if a.err != nil {
		return
	}
	id := m.(interface{ GetRequestId() string }).GetRequestId() // every command of a group has one
	cost := int64(size + memberCost)
	switch {
	case len(g.members) == kuji.MaxAtomic:
		a.wrong("", "more than %d commands in a group, want at most that many", kuji.MaxAtomic)
	case g.held+cost > int64(c.s.o.Limits.BatchBytes):
		a.wrong("", "a group of more than %d bytes, want at most that many", c.s.o.Limits.BatchBytes)
	case id != "" && g.id != "":
		a.wrong("ID", "the group has one already, want one command with the ID of the whole group")
	case !c.s.memory.take(c.access.who, cost):
		a.err = c.s.noMemory(c.access.who)
	default:
		if id != "" {
			g.id = id
		}
		g.held, g.holder = g.held+cost, c.access.who
		g.members = append(g.members, cmd.member(m))
	}
}

// memberOf returns a command as a member of a group.
func memberOf(m proto.Message) *kujiv1.Member {
	switch m := m.(type) {
	case *kujiv1.DrawRequest:
		return &kujiv1.Member{Command: &kujiv1.Member_Draw{Draw: &kujiv1.Draw{Player: m.GetPlayer(), Pool: m.GetPool(), Count: m.GetCount(), Pay: m.GetPay()}}}
	case *kujiv1.RegisterRequest:
		return &kujiv1.Member{Command: &kujiv1.Member_Register{Register: &kujiv1.Register{Player: m.GetPlayer()}}}
	case *kujiv1.GrantRequest:
		return &kujiv1.Member{Command: &kujiv1.Member_Grant{Grant: &kujiv1.Grant{Player: m.GetPlayer(), Items: m.GetItems()}}}
	case *kujiv1.ConsumeRequest:
		return &kujiv1.Member{Command: &kujiv1.Member_Consume{Consume: &kujiv1.Consume{Player: m.GetPlayer(), Items: m.GetItems()}}}
	case *kujiv1.TransferRequest:
		return &kujiv1.Member{Command: &kujiv1.Member_Transfer{Transfer: &kujiv1.Transfer{From: m.GetFrom(), To: m.GetTo(), Items: m.GetItems()}}}
	}
	panic(fmt.Sprintf("server: a %T is no member of a group", m)) // no command says that it is
}

// writeGroup writes the answer to EXEC: a result for each command, with the receipt of all.
func writeGroup(c *redisConn, res *kujiv1.Result) {
	c.List(len(res.GetMembers()))
	for _, m := range res.GetMembers() {
		m.Receipt, m.Replayed = res.GetReceipt(), res.GetReplayed()
		c.write(m)
	}
}
