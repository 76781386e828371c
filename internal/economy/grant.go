package economy

import (
	"encoding/binary"

	"github.com/kuji-dev/kuji/catalog"
)

// A plain grant is one of items that the catalog has, each named once, to a player
// who is known, small enough that no balance comes near the bound whatever the
// player holds. Nothing about it can fail, so that one pass over its items checks
// and resolves them. What is checked, written and changed is what [State.Decide],
// [AppendEvent] and [State.Apply] do, which replay it; tests compare the two.

// GrantPlain carries out a command that is a plain grant: it appends the event to
// b and applies it. It reports false, and has done nothing, for any other command.
// Neither is one whose request id is remembered, nor one that [State.Admit] refuses.
// The hashes are those of its ids. The command must have passed [Command.CheckHead];
// [Command.Check] it need not have passed: one that would not is no plain grant. After
// an error, which says that the build has a defect, the state must not be used again.
func (s *State) GrantPlain(cmd *Command, h IDHashes, at *At, b []byte) (event []byte, ok bool, err error) {
	if cmd.Kind != KindGrant {
		return b, false, nil
	}
	who := s.players.lookupHashed(cmd.Player, h.player)
	if who == nil || s.players.mem.full(s.chunks) {
		return b, false, nil
	}
	player := who.num
	items, ok := s.resolvePlain(cmd.Items)
	if !ok {
		return b, false, nil
	}
	if cmd.ID != "" && !s.isFresh(cmd.ID, h.request, at.Time) {
		return b, false, nil
	}
	event = b
	if cmd.ID != "" || !s.unread {
		event = appendHead(b, KindGrant, OK, cmd.ID)
		event = binary.AppendUvarint(event, uint64(player)<<1)
		event = appendItems(event, items)
	}
	if err := s.advance(*at); err != nil {
		return event, true, err
	}
	s.players.change(player, at.Position)
	err = s.giveItems(player, items)
	s.players.release()
	if err == nil && cmd.ID != "" {
		ev := &s.ev
		ev.reset()
		ev.Kind, ev.ID, ev.Player, ev.Items = KindGrant, cmd.ID, Ref{Num: player, Known: true, ID: cmd.Player}, items
		s.rememberHashed(h.request, s.answer(ev, event[len(b):]), *at)
	}
	return event, true, err
}

// resolvePlain is checkStacks, resolve and fits in one pass for the items of a plain
// grant. It reports false for others.
func (s *State) resolvePlain(items []catalog.Stack) (refs []ItemRef, ok bool) {
	n := len(items)
	if n < 1 || n > MaxStacks {
		return nil, false
	}
	if cap(s.ev.Items) < n {
		s.ev.Items = make([]ItemRef, MaxStacks)
	}
	refs = s.ev.Items[:n]
	nums := s.d.nums[:n]
	if !s.current.item.findAll(items, nums) {
		return nil, false
	}
	seen, gen := s.d.twice.next(len(s.items))
	var most uint64
	for i, num := range nums {
		q, ref := items[i].Quantity, &refs[i]
		if q-1 >= MaxQuantity || seen[num] == gen {
			return nil, false
		}
		seen[num] = gen
		most = max(most, q)
		ref.Num, ref.Known, ref.Quantity = num, true, q // what ID says is of another command
	}
	return refs, s.peak+most <= MaxQuantity
}

// stamps tells which of some small numbers a command has named already. To forget
// them all costs nothing.
type stamps struct {
	at  []uint32 // by number: the generation that named it last
	gen uint32
}

// next forgets what was named: a number below n was named if it has the generation
// that next returns.
func (t *stamps) next(n int) (at []uint32, gen uint32) {
	if len(t.at) < n {
		t.at, t.gen = make([]uint32, n), 0
	}
	if t.gen++; t.gen == 0 { // after 2^32 commands old generations would look new
		clear(t.at)
		t.gen = 1
	}
	return t.at, t.gen
}
