package rules

import (
	"fmt"

	"github.com/kuji-dev/kuji/internal/store"
)

// atomicKind is an atomic group: it happens whole or not at all. Its members are checked in order. If
// none fails, their effects are written and the outcomes of their draws chosen.
type atomicKind struct{ noted }

func (atomicKind) alone() string { return "an atomic group cannot contain another" }

func (atomicKind) form(c *Command) *CommandError {
	if err := CheckMembers(len(c.Members)); err != nil {
		return err
	}
	draws := 0
	for i := range c.Members {
		if err := c.Members[i].checkMember(); err != nil {
			return err.in(i)
		}
		draws += c.Members[i].Count
	}
	if draws > MaxAtomicDraws {
		return malformed("members", "%d draws in all members; at most %d are allowed", draws, MaxAtomicDraws)
	}
	return nil
}

func (atomicKind) resolve(f *Finder, c *Command) *CommandError {
	for i := range c.Members {
		if err := f.Resolve(f.Tables, &c.Members[i]); err != nil {
			return err.in(i)
		}
	}
	return nil
}

func (atomicKind) check(r *checks, c *Command) (f failure) {
	for i := range c.Members {
		if f = r.barred(&c.Members[i]); f.status == OK {
			f = c.Members[i].Kind.of().check(r, &c.Members[i])
		}
		if f.status != OK {
			r.failed = i
			break
		}
	}
	return f
}

func (atomicKind) write(r *drawing, c *Command) {
	for i := range c.Members {
		m := &c.Members[i]
		r.w.More(store.Member)
		r.pool = noPool
		m.Kind.of().write(r, m)
		r.writeMoves()
	}
}

func (atomicKind) ask(r *effects, c *Command, status Status) {
	if status != OK {
		r.w.Uint(uint64(r.failed))
	}
	r.w.Uint(uint64(len(c.Members)))
	for i := range c.Members {
		m := &c.Members[i]
		r.w.Buf = append(r.w.Buf, byte(m.Kind))
		r.w.Ref(r.ref(m.who(&r.Sight), m.Player, status))
		m.Kind.of().ask(r, m, status)
	}
}

func (atomicKind) asked(a *asked, c *Command) {
	if a.status != OK {
		a.failed = int(a.Uint("the failed member", MaxAtomic-1))
	}
	for range a.Uint("the number of members", MaxAtomic) {
		m := Command{Kind: Kind(a.Byte("a member's kind"))}
		m.Player = a.player(a.Ref("a member's player"))
		if k := m.Kind.of(); k != nil && k.alone() != "" {
			a.Fail("kind %d is not one of a member", m.Kind)
		}
		a.arguments(&m)
		c.Members = append(c.Members, m)
	}
	if a.status != OK && a.failed >= len(c.Members) {
		a.Fail("member %d of %d failed", a.failed, len(c.Members))
	}
}

// CheckMembers checks the number of members of an atomic group.
func CheckMembers(n int) *CommandError {
	if n < 1 || n > MaxAtomic {
		return malformed("members", "%d members; 1 to %d are allowed", n, MaxAtomic)
	}
	return nil
}

func (c *Command) checkMember() *CommandError {
	switch k := c.Kind.of(); {
	case c.ID != "":
		return malformed("id", "members of an atomic group have no request id: the group's id covers them")
	case c.Note != nil:
		return malformed("note", "members of an atomic group have no note: the group's note is theirs")
	case k != nil && k.alone() != "":
		return malformed("kind", "%s", k.alone())
	}
	return c.Check()
}

// in returns the error with the field as that of a member.
func (e *CommandError) in(member int) *CommandError {
	return malformed(fmt.Sprintf("members[%d].%s", member, e.Field), "%s", e.Message)
}
