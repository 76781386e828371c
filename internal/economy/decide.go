package economy

import (
	"math/bits"

	"github.com/kuji-dev/kuji/catalog"
)

// decision is the scratch of one Decide: everything that a command does
// before it is known to succeed happens here and nowhere else.
type decision struct {
	now    int64
	src    Source
	fresh  []string  // players that this command sees first, in order; numbers follow the state's
	values overlay   // by player number<<32 | slot key: balances, and draws used of a limit
	left   overlay   // by pool number<<32 | entry number: stock left
	undo   []undoSet // weights to put back, newest last
	// stepwise is set while more draws may follow in the command, which must
	// find the samplers as the earlier ones left them.
	stepwise bool
	// direct is set when nothing in the command touches a balance twice: it is
	// then enough to check against the state, and nothing need be remembered.
	direct bool
}

type undoSet struct {
	pool   *poolState
	entry  uint32
	weight uint64
}

func (d *decision) init() {
	d.values.init()
	d.left.init()
}

func (d *decision) reset(now int64, src Source) {
	d.now, d.src = now, src
	d.fresh = d.fresh[:0]
	d.values.reset()
	d.left.reset()
}

// Decide checks cmd against the state and chooses its outcome. It returns an
// event, valid until the next call, and leaves the state as it was. The
// command must have passed Check, and its request id must not be remembered
// (see [State.Remembered]). It takes values from src only for draws.
func (s *State) Decide(cmd *Command, now int64, src Source) *Event {
	d, ev := &s.d, &s.ev
	d.reset(max(now, s.now), src)
	d.direct = cmd.Kind != KindAtomic
	ev.reset()
	ev.Kind, ev.ID = cmd.Kind, cmd.ID
	if cmd.Kind == KindAtomic {
		s.decideAtomic(cmd, ev)
	} else {
		d.stepwise = false
		ev.Status, ev.Subject = s.decideBody(cmd, ev)
		if ev.Status != OK {
			s.unknowFresh(ev)
		}
	}
	for i := len(d.undo) - 1; i >= 0; i-- {
		u := &d.undo[i]
		mustSet(u.pool, u.entry, u.weight)
	}
	d.undo = d.undo[:0]
	return ev
}

func (s *State) decideBody(cmd *Command, ev *Event) (Status, uint32) {
	switch cmd.Kind {
	case KindDraw:
		return s.decideDraw(cmd, ev)
	case KindGrant:
		return s.decideGrant(cmd, ev)
	case KindConsume:
		return s.decideConsume(cmd, ev)
	case KindTransfer:
		return s.decideTransfer(cmd, ev)
	}
	panic("economy: Decide of a command that did not pass Check: " + cmd.Kind.String())
}

// unknowFresh makes a failed event name players that it does not create by
// their ids, and drops a draw's choices: a failure changes nothing.
func (s *State) unknowFresh(ev *Event) {
	n := uint32(s.players.count())
	ev.Player.Known = ev.Player.Known && ev.Player.Num < n
	ev.To.Known = ev.To.Known && ev.To.Num < n
	ev.Choices, ev.Quantities = ev.Choices[:0], ev.Quantities[:0]
}

// see resolves a player for a command that will succeed or be undone: an
// unknown one is numbered and holds the starting grants from here on.
func (s *State) see(id string) Ref {
	if n, ok := s.players.find(id); ok {
		return Ref{Num: n, Known: true, ID: id}
	}
	base := uint32(s.players.count())
	for i, have := range s.d.fresh {
		if have == id {
			return Ref{Num: base + uint32(i), Known: true, ID: id}
		}
	}
	s.d.fresh, s.d.direct = append(s.d.fresh, id), false
	n := base + uint32(len(s.d.fresh)-1)
	for _, st := range s.current.start {
		s.d.values.put(valueKey(n, st.item), st.quantity)
	}
	return Ref{Num: n, ID: id}
}

func valueKey(player, key uint32) uint64 { return uint64(player)<<32 | uint64(key) }

// balance returns what a player holds of an item at this point of the command.
func (s *State) balance(player, item uint32) uint64 {
	if v, ok := s.d.values.get(valueKey(player, item)); ok {
		return v
	}
	if player >= uint32(s.players.count()) {
		return 0
	}
	return s.players.get(player, item)
}

// give adds q to a balance and reports whether it fits.
func (s *State) give(player, item uint32, q uint64) bool {
	have := s.balance(player, item)
	if q > MaxQuantity-have {
		return false
	}
	if !s.d.direct {
		s.d.values.put(valueKey(player, item), have+q)
	}
	return true
}

// take subtracts q from a balance and reports whether there is enough.
func (s *State) take(player, item uint32, q uint64) bool {
	have := s.balance(player, item)
	if have < q {
		return false
	}
	if !s.d.direct {
		s.d.values.put(valueKey(player, item), have-q)
	}
	return true
}

// resolve fills ev.Items and reports the first unknown one. All are resolved
// in any case, so that the event keeps the whole command.
func (s *State) resolve(items []catalog.Stack, ev *Event) (Status, uint32) {
	status, subject := OK, uint32(0)
	for i, it := range items {
		n, known := s.current.item[it.Item]
		if !known {
			if status == OK {
				status, subject = UnknownItem, uint32(i)
			}
			n, known = s.itemNum[it.Item] // of an earlier catalog
		}
		ev.Items = append(ev.Items, ItemRef{Ref: Ref{Num: n, Known: known, ID: it.Item}, Quantity: it.Quantity})
	}
	return status, subject
}

func (s *State) decideGrant(cmd *Command, ev *Event) (Status, uint32) {
	ev.Player = s.see(cmd.Player)
	if status, subject := s.resolve(cmd.Items, ev); status != OK {
		return status, subject
	}
	for i := range ev.Items {
		if !s.give(ev.Player.Num, ev.Items[i].Num, ev.Items[i].Quantity) {
			return BalanceOverflow, ev.Items[i].Num
		}
	}
	return OK, 0
}

func (s *State) decideConsume(cmd *Command, ev *Event) (Status, uint32) {
	ev.Player = s.see(cmd.Player)
	if status, subject := s.resolve(cmd.Items, ev); status != OK {
		return status, subject
	}
	for i := range ev.Items {
		if !s.take(ev.Player.Num, ev.Items[i].Num, ev.Items[i].Quantity) {
			return InsufficientItems, ev.Items[i].Num
		}
	}
	return OK, 0
}

func (s *State) decideTransfer(cmd *Command, ev *Event) (Status, uint32) {
	ev.Player = s.see(cmd.Player)
	ev.To = s.see(cmd.To)
	if status, subject := s.resolve(cmd.Items, ev); status != OK {
		return status, subject
	}
	for i := range ev.Items {
		item, q := ev.Items[i].Num, ev.Items[i].Quantity
		if !s.take(ev.Player.Num, item, q) {
			return InsufficientItems, item
		}
		if !s.give(ev.To.Num, item, q) {
			return BalanceOverflow, item
		}
	}
	return OK, 0
}

func (s *State) decideAtomic(cmd *Command, ev *Event) {
	s.d.stepwise = true
	for i := range cmd.Members {
		m := ev.member()
		m.Kind = cmd.Members[i].Kind
		if ev.Status != OK { // keep the command's arguments all the same
			s.describe(&cmd.Members[i], m)
			continue
		}
		if ev.Status, ev.Subject = s.decideBody(&cmd.Members[i], m); ev.Status != OK {
			ev.Failed = uint32(i)
			s.describe(&cmd.Members[i], m)
		}
	}
	if ev.Status == OK {
		return
	}
	for i := range ev.Members {
		s.unknowFresh(&ev.Members[i])
	}
}

// describe fills a failed or untried member with its arguments alone.
func (s *State) describe(cmd *Command, ev *Event) {
	ev.reset()
	ev.Kind = cmd.Kind
	ev.Player = s.playerRef(cmd.Player)
	switch cmd.Kind {
	case KindDraw:
		ev.Pool, ev.Count = s.poolRef(cmd.Pool), uint32(cmd.Count)
		return
	case KindTransfer:
		ev.To = s.playerRef(cmd.To)
	}
	s.resolve(cmd.Items, ev)
}

func (s *State) playerRef(id string) Ref {
	n, ok := s.players.find(id)
	return Ref{Num: n, Known: ok, ID: id}
}

func (s *State) poolRef(id string) Ref {
	n, ok := s.poolNum[id]
	return Ref{Num: n, Known: ok, ID: id}
}

// uniform returns an unbiased integer in [0, n), n > 0: Lemire, "Fast Random
// Integer Generation in an Interval", ACM TOMACS 29 (2019).
func uniform(src Source, n uint64) uint64 {
	hi, lo := bits.Mul64(src.Uint64(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(src.Uint64(), n)
		}
	}
	return hi
}
