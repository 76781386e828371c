package economy

import "encoding/binary"

// A plain draw is the commonest command by far: one draw, for a player who is
// known, from a pool without a price whose rewards are fixed. Three numbers are
// its event, and it is decided, encoded and applied in one go. What is checked,
// taken from the source, written and changed is what [State.Decide],
// [AppendEvent] and [State.Apply] do; tests compare the two, and with [State.ApplyGroup], which replays it.

// isFixed reports whether every reward in the pool is fixed.
func (pt *poolTable) isFixed() bool {
	for i := range pt.entries {
		if e := &pt.entries[i]; e.present && e.single == nil {
			return false
		}
	}
	return true
}

// DrawPlain carries out a command that is a plain draw and succeeds: it appends the
// event to b, applies it, and returns what was given, shared and read-only. It
// reports false, and has done nothing, for any other command. The command must
// have passed Check and [State.Admit], and its request id must not be remembered.
// After an error, which says that the build has a defect, the state must not be
// used again.
func (s *State) DrawPlain(cmd *Command, src Source, at At, b []byte) (event []byte, given *[]Outcome, ok bool, err error) {
	if cmd.Kind != KindDraw || cmd.Count != 1 {
		return b, nil, false, nil
	}
	pt := s.findPool(cmd.Pool)
	if pt == nil || !pt.plain || s.peak+pt.maxGain > MaxQuantity || !pt.endless && s.odds[pt.num].live == 0 {
		return b, nil, false, nil
	}
	player, known := s.players.find(cmd.Player)
	if !known {
		return b, nil, false, nil
	}
	s.d.reset(at.Time, src)
	if s.checkPool(pt, player, 1) != OK {
		return b, nil, false, nil
	}
	n, ok := s.pools[pt.num].sampler.Draw(src)
	if !ok {
		return b, nil, true, inconsistent("pool %q ran out in a draw that was found possible", cmd.Pool)
	}
	entry, start := uint32(n), len(b)
	b = appendPlain(b, cmd.ID, player, pt.num, entry)
	err = s.applyPlain(player, pt, entry, at)
	s.unlockPools()
	s.players.release()
	if err == nil && cmd.ID != "" {
		s.remember(cmd.ID, b[start:], at) // short enough to be its own answer: see answer.go
	}
	return b, &pt.entries[entry].single, true, err
}

// appendPlain is AppendEvent for a plain draw.
func appendPlain(b []byte, id string, player, pool, entry uint32) []byte {
	const head = byte(KindDraw)<<3 | eventVersion<<1
	if id == "" {
		b = append(b, head, byte(OK))
	} else {
		b = append(b, head|1, byte(OK), byte(len(id)))
		b = append(b, id...)
	}
	b = binary.AppendUvarint(b, uint64(player)<<1)
	b = binary.AppendUvarint(b, uint64(pool)<<1)
	b = append(b, 1)
	return binary.AppendUvarint(b, uint64(entry)<<2|choicePlain)
}

// applyPlain changes the state by a plain draw. The caller lets the locks go.
func (s *State) applyPlain(player uint32, pt *poolTable, entry uint32, at At) error {
	if err := s.advance(at); err != nil {
		return err
	}
	b := s.players.change(player, at.Position)
	e, err := s.drawEntry(pt, entry, at.Position)
	if err != nil {
		return err
	}
	for i := range e.items {
		if b, err = s.addTo(b, e.items[i].item, e.items[i].min); err != nil {
			return err
		}
	}
	for i := range pt.limits {
		s.countLimit(&pt.limits[i], player, 1)
	}
	return nil
}
