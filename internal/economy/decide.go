package economy

import (
	"math/bits"

	"github.com/kuji-dev/kuji/catalog"
)

// Deciding has two halves. The first checks everything that can fail and takes
// no randomness; the second chooses what the draws give, and cannot fail. So
// whether a command succeeds never depends on what is drawn, and nobody
// can draw again for nothing by making the outcomes that they do not want fail:
//
//   - a draw must have stock whatever is chosen: see [State.sure];
//   - the most that its draws can give must fit the player's balances;
//   - what a group's draws give cannot be spent in the same group.

// decision is the scratch of one Decide: everything that a command does
// before it is known to succeed happens here and nowhere else.
type decision struct {
	now    int64
	src    Source
	fresh  []string  // players that this command sees first, in order; numbers follow the state's
	values overlay   // by player number<<32 | slot key: balances without what draws gave, and draws used of a limit
	draws  []drawn   // of a group so far
	extra  uint64    // at least what the command has given of any one item so far, or maxPeak
	left   overlay   // by pool number<<32 | entry number: stock left
	undo   []undoSet // weights to put back, newest last
	// stepwise is set while more draws follow in the command, which must find
	// the samplers as the earlier ones left them.
	stepwise bool
	// direct is set when nothing in the command touches a balance twice: it is
	// then enough to check against the state, and nothing need be remembered.
	direct bool

	sure    []sureMemo // by pool number
	sureGen uint32

	twice stamps // of item numbers: see grant.go
	nums  [MaxStacks]uint32
}

// drawn is a Draw of the group at hand that was found possible.
type drawn struct {
	player uint32
	pool   *poolTable
	count  uint64
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
	d.now, d.src, d.extra = now, src, 0
	d.fresh, d.draws = d.fresh[:0], d.draws[:0]
	d.values.reset()
	d.left.reset()
}

// Decide checks cmd against the state and chooses its outcome. It returns an
// event, valid until the next call, and leaves the state as it was. The
// command must have passed Check and [State.Admit]. It takes values from src
// only for draws, and none for a command that fails.
func (s *State) Decide(cmd *Command, now int64, src Source) *Event {
	d, ev := &s.d, &s.ev
	d.reset(max(now, s.now), src)
	d.direct = cmd.Kind != KindAtomic
	ev.reset()
	ev.Kind, ev.ID = cmd.Kind, cmd.ID
	if cmd.Kind == KindAtomic {
		s.decideAtomic(cmd, ev)
		return ev
	}
	ev.Status, ev.Subject = s.checkBody(cmd, ev)
	switch {
	case ev.Status != OK:
		s.unknowFresh(ev)
	case cmd.Kind == KindDraw:
		s.choose(ev, false)
	}
	return ev
}

// checkBody reports whether a command, or a member of a group after those before
// it, will succeed, and fills in everything but choices.
func (s *State) checkBody(cmd *Command, ev *Event) (Status, uint32) {
	switch cmd.Kind {
	case KindDraw:
		return s.checkDraw(cmd, ev)
	case KindGrant:
		return s.checkGrant(cmd, ev)
	case KindConsume:
		return s.checkConsume(cmd, ev)
	case KindTransfer:
		return s.checkTransfer(cmd, ev)
	}
	panic("economy: Decide of a command that did not pass Check: " + cmd.Kind.String())
}

// unknowFresh makes a failed event name players that it does not create by
// their ids: a failure changes nothing.
func (s *State) unknowFresh(ev *Event) {
	n := uint32(s.players.count())
	ev.Player.Known = ev.Player.Known && ev.Player.Num < n
	ev.To.Known = ev.To.Known && ev.To.Num < n
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
		s.d.given(st.quantity)
	}
	return Ref{Num: n, ID: id}
}

func valueKey(player, key uint32) uint64 { return uint64(player)<<32 | uint64(key) }

// balance returns what a player holds of an item at this point of the command,
// without what its draws give.
func (s *State) balance(player, item uint32) uint64 {
	if v, ok := s.d.values.get(valueKey(player, item)); ok {
		return v
	}
	if player >= uint32(s.players.count()) {
		return 0
	}
	return s.players.get(player, item)
}

// maxPeak bounds sums that only tell whether a balance could come near MaxQuantity.
const maxPeak = 1 << 60

// given notes that the command gives up to q of some item.
func (d *decision) given(q uint64) { d.extra = min(d.extra+min(q, maxPeak), maxPeak) }

// fits reports whether q more of an item fit a player's balance, whatever the
// command's draws give. No balance is above its item's supply, so that the
// balance itself matters only when that comes near the bound.
func (s *State) fits(player, item uint32, q uint64) bool {
	if s.peak+s.d.extra+q <= MaxQuantity {
		return true
	}
	if it := &s.items[item]; it.supply.hi == 0 && it.supply.lo <= MaxQuantity && it.supply.lo+s.d.extra+q <= MaxQuantity {
		return true
	}
	have := s.balance(player, item)
	for i := range s.d.draws {
		if dr := &s.d.draws[i]; dr.player == player {
			have = min(have+dr.count*dr.pool.gainOf(item), maxPeak) // below 2^53 × 1000 each
		}
	}
	return have+q <= MaxQuantity
}

// give adds q to a balance and reports whether it fits.
func (s *State) give(player, item uint32, q uint64) bool {
	if !s.fits(player, item, q) {
		return false
	}
	if !s.d.direct {
		s.d.values.put(valueKey(player, item), s.balance(player, item)+q)
		s.d.given(q)
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
	if cap(ev.Items) < len(items) {
		ev.Items = make([]ItemRef, MaxStacks)
	}
	ev.Items = ev.Items[:len(items)]
	for i := range items {
		it, ref := &items[i], &ev.Items[i]
		n, known := s.current.item.find(it.Item)
		if !known {
			if status == OK {
				status, subject = UnknownItem, uint32(i)
			}
			n, known = s.itemNum[it.Item] // of an earlier catalog
		}
		ref.Num, ref.Known, ref.ID, ref.Quantity = n, known, it.Item, it.Quantity
	}
	return status, subject
}

func (s *State) checkGrant(cmd *Command, ev *Event) (Status, uint32) {
	ev.Player = s.see(cmd.Player)
	if status, subject := s.resolve(cmd.Items, ev); status != OK {
		return status, subject
	}
	if s.d.direct {
		var most uint64
		for i := range ev.Items {
			most = max(most, ev.Items[i].Quantity)
		}
		if s.peak+most <= MaxQuantity {
			return OK, 0 // see fits
		}
	}
	for i := range ev.Items {
		if !s.give(ev.Player.Num, ev.Items[i].Num, ev.Items[i].Quantity) {
			return BalanceOverflow, ev.Items[i].Num
		}
	}
	return OK, 0
}

func (s *State) checkConsume(cmd *Command, ev *Event) (Status, uint32) {
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

func (s *State) checkTransfer(cmd *Command, ev *Event) (Status, uint32) {
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

// decideAtomic checks the members in order and then, when none fails, chooses
// what the draws among them give.
func (s *State) decideAtomic(cmd *Command, ev *Event) {
	last := -1 // the last draw
	for i := range cmd.Members {
		m := ev.member()
		m.Kind = cmd.Members[i].Kind
		if ev.Status != OK { // keep the command's arguments all the same
			s.describe(&cmd.Members[i], m)
			continue
		}
		if m.Kind == KindDraw {
			last = i
		}
		if ev.Status, ev.Subject = s.checkBody(&cmd.Members[i], m); ev.Status != OK {
			ev.Failed = uint32(i)
			s.describe(&cmd.Members[i], m)
		}
	}
	for i := range ev.Members {
		m := &ev.Members[i]
		switch {
		case ev.Status != OK:
			s.unknowFresh(m)
		case m.Kind == KindDraw:
			s.choose(m, i < last)
		}
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
