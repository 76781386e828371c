package rules

import (
	"math"
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
)

// An event keeps the arguments of its command, except the player. Those of a SetLimit are in limit.go, those of
// a Progress and a SetCounter in progress.go, those of a Claim in quest.go:
//
//	draw             pool number, count << 1 | 1 if an item to pay with follows, varint; its number
//	grant, consume   number of items, then for each: item number, quantity varint
//	transfer         receiver ref, then as for a grant
//	redeem           the code's sum
//	register         nothing
//	set track        the track's name, draws varint, who asks, why; texts are a varint and so
//	                 many bytes
//	atomic           if it failed, the index of the member that did; number of members, then
//	                 for each: kind (1 byte), player ref, arguments
//
// A note may follow: see [Note].
//
// The verifier decides the command again from them. They also tell a retry of a request id from
// its use for another request.

// writeText writes a text of any length.
func writeText(w *store.Writer, s string) {
	w.Uint(uint64(len(s)))
	w.Buf = append(w.Buf, s...)
}

// asked reads what ask wrote.
type asked struct {
	store.Reader
	state  Numbered
	joins  []string // the players that the event adds
	status Status
	failed int // the member of a group that failed
}

// Numbered gives back the ids of what has numbers.
type Numbered interface {
	Players() uint32            // more than the number of any player that was applied
	PlayerID(num uint32) string // of a number below Players
	ItemID(num uint32) string   // "": nothing has this number
	PoolID(num uint32) string
	CounterName(first uint32) string
}

// CommandOf returns the command of an event. The event must be that of a request; it may have been
// applied or not. The command's strings are copies. If a group failed, failed is the index of the
// member that did.
func CommandOf(state Numbered, ev *store.Event) (cmd Command, failed int, err error) {
	a := asked{Reader: store.NewReader(ev.Asked), state: state, status: Status(ev.Status)}
	var e store.Effect
	for effects := ev.Changes(); effects.Next(&e); {
		if e.Verb == store.Join {
			a.joins = append(a.joins, string(e.Bytes))
		}
	}
	cmd = Command{Kind: Kind(ev.Kind), ID: string(ev.ID)}
	if ev.Named {
		cmd.Player = a.player(ev.Player)
	}
	a.arguments(&cmd)
	if k := cmd.Kind.of(); k != nil && k.note() {
		cmd.Note = a.note()
	}
	if a.More() {
		a.Fail("bytes after the arguments")
	}
	return cmd, a.failed, a.Err()
}

func (a *asked) arguments(c *Command) {
	if k := c.Kind.of(); k != nil {
		k.asked(a, c)
		return
	}
	a.Fail("kind %d is not a request", c.Kind)
}

func (a *asked) text(what string, limit uint64) string {
	return string(a.Bytes(what, a.Uint(what, limit)))
}

// name reads the number of a pool or an item, and returns its id.
func (a *asked) name(what string, idOf func(num uint32) string) string {
	id := idOf(uint32(a.Uint(what, math.MaxUint32)))
	if id == "" {
		a.Fail("%s has a number that nothing has", what)
	}
	return id
}

// player returns the id of a player. The event itself may add the player.
func (a *asked) player(r store.Ref) string {
	n := a.state.Players()
	switch {
	case r.ID != "":
		return r.ID
	case r.Num < n:
		return a.state.PlayerID(r.Num)
	case int(r.Num-n) < len(a.joins):
		return a.joins[r.Num-n]
	}
	a.Fail("player number %d of %d", r.Num, n)
	return ""
}

// Same reports whether an event that was applied came from exactly this command.
func Same(state State, cmd *Command, ev *store.Event) (bool, error) {
	was, _, err := CommandOf(state, ev)
	return err == nil && cmd.equal(&was, func(c, o string) bool { return c == o || sameName(state, c, o) }), err
}

// Forgets reports whether a player of a request was forgotten since it was answered by an event.
func Forgets(state State, ev *store.Event) bool {
	cmd, _, err := CommandOf(state, ev)
	return err == nil && cmd.forgets()
}

func (c *Command) forgets() bool {
	if c.one() && c.Player == "" || c.To == "" && (c.Kind == KindTransfer || c.Kind == KindMerge) {
		return true
	}
	return slices.ContainsFunc(c.Members, func(m Command) bool { return m.forgets() })
}

// equal reports whether o, read from an event, asks for what c asks for.
// named compares names of players: see sameName.
func (c *Command) equal(o *Command, named func(c, o string) bool) bool {
	k := c.Kind.of()
	return c.Kind == o.Kind && c.ID == o.ID && named(c.Player, o.Player) && named(c.To, o.To) &&
		c.Pool == o.Pool && c.Count == o.Count && c.Pay == o.Pay &&
		(c.Code == o.Code || slices.Contains(c.Others, o.Code)) &&
		c.Goal == o.Goal && slices.Equal(c.Items, o.Items) && c.Note.asks() == o.Note.asks() && (k == nil || k.same(c, o)) &&
		slices.EqualFunc(c.Members, o.Members, func(a, b Command) bool { return a.equal(&b, named) })
}
