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

// MULTI, commands and EXEC are one Atomic of the API. Until EXEC the commands wait in memory.
// Clients send MULTI and EXEC without arguments, so one of the commands brings the request id, and says how the group
// is held.

// memberCost is the memory that a waiting command takes besides its own bytes, in bytes.
const memberCost = 512

// atomic is what waits for EXEC.
type atomic struct {
	open    bool
	broken  bool // a command was refused, so EXEC will be
	id      string
	holdMs  int64
	refund  bool
	members []*kujiv1.Member
	held    int64         // of Gate.Memory
	holder  access.Caller // who took it
}

// errExecAbort is the answer to EXEC if a command before it was refused.
var errExecAbort = &namedError{"EXECABORT", connect.CodeInvalidArgument, "a command of the group was refused, see its answer; nothing was carried out", nil}

// leave forgets what waits.
func (m *atomic) leave(gate *admission.Gate) {
	if m.held > 0 {
		gate.Memory.Give(m.holder, m.held)
	}
	*m = atomic{}
}

func answerMulti(c *conn, a *arguments) {
	if c.atomic.open {
		a.wrong("", "a group is open, want EXEC or DISCARD first")
		return
	}
	c.atomic.open = true
	c.simple("OK")
}

func answerDiscard(c *conn, a *arguments) {
	if !c.atomic.open {
		a.wrong("", "no group is open, want MULTI first")
		return
	}
	c.atomic.leave(c.s.Gate)
	c.simple("OK")
}

// exec answers EXEC.
func (m *atomic) exec(c *conn, a *arguments) {
	switch {
	case !m.open:
		a.wrong("", "no group is open, want MULTI first")
		c.reject(a.slot)
	case m.broken:
		a.err = errExecAbort
		c.reject(a.slot)
	case len(m.members) == 0:
		c.flush()
		c.List(0)
		c.count(a.slot, 0, nil)
	default:
		c.larger = max(c.larger, int(m.held))
		if a.err = c.ask(a, Command{ID: m.id, Message: &kujiv1.Atomic{Members: m.members, HoldMs: m.holdMs, Refund: m.refund}}); a.err != nil {
			c.run.slots = append(c.run.slots, a.slot)
		}
	}
	m.leave(c.s.Gate)
}

// queue adds a command to those that wait for EXEC.
func (m *atomic) queue(c *conn, a *arguments) {
	c.flush()
	if a.err == nil && !a.cmd.member {
		a.wrong("", "%s in a group, want DRAW, REGISTER, GRANT, CONSUME, TRANSFER, PROGRESS, CLAIM, EXEC or DISCARD", a.cmd.name)
	}
	if a.err == nil {
		m.wait(c, a)
	}
	if a.err != nil {
		m.broken = true
		c.reject(a.slot)
		return
	}
	c.simple("QUEUED")
	c.count(a.slot, 0, nil)
}

// wait keeps a command until EXEC.
func (m *atomic) wait(c *conn, a *arguments) {
	one := a.cmd.command.read(a)
	if a.err != nil {
		return
	}
	cost := int64(a.size + memberCost)
	switch {
	case len(m.members) == kuji.MaxAtomic:
		a.wrong("", "more than %d commands in a group, want at most that many", kuji.MaxAtomic)
	case m.held+cost > int64(c.s.Limits.BatchBytes):
		a.wrong("", "a group of more than %d bytes, want at most that many", c.s.Limits.BatchBytes)
	case one.ID != "" && m.id != "":
		a.wrong("ID", "the group has one already, want one command with the ID of the whole group")
	case one.holdMs() > 0 && m.holdMs > 0:
		a.wrong("HOLD_MS", "the group has one already, want one command with that of the whole group")
	default:
		if refusal := c.s.Gate.Memory.Take(c.client.Access.Who, cost); refusal != nil {
			a.err = refusal
			return
		}
		m.id = cmp.Or(one.ID, m.id)
		m.holdMs = cmp.Or(one.holdMs(), m.holdMs)
		m.refund = one.clearHold() || m.refund
		m.held, m.holder = m.held+cost, c.client.Access.Who
		m.members = append(m.members, contract.AsMember(one.Message))
	}
}

// holdMs returns for how long a command is held, 0 if it is not.
func (c *Command) holdMs() int64 {
	if m, ok := c.Message.(interface{ GetHoldMs() int64 }); ok {
		return m.GetHoldMs()
	}
	return 0
}

// clearHold takes off a command how it is held, as its whole group is, and reports whether it was with a refund.
func (c *Command) clearHold() (refund bool) {
	switch m := c.Message.(type) {
	case *kujiv1.Draw:
		refund, m.HoldMs, m.Refund = m.Refund, 0, false
	case *kujiv1.Consume:
		refund, m.HoldMs, m.Refund = m.Refund, 0, false
	case *kujiv1.Transfer:
		refund, m.HoldMs, m.Refund = m.Refund, 0, false
	}
	return refund
}
