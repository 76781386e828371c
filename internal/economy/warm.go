package economy

// Warm looks at the memory that commands will need, all of it at a time, so that
// the processor fetches it for many commands at once instead of stopping at each
// line of each command. It changes nothing and decides nothing. It pays where
// players and request ids are too many for the caches: with few it returns at once.
func (s *State) Warm(cmds []Command) {
	const few, atOnce = 1 << 14, 64
	if s.players.count() < few && s.ids.count() < few {
		return
	}
	for len(cmds) > 0 {
		n := min(len(cmds), atOnce)
		s.warm(cmds[:n])
		cmds = cmds[n:]
	}
}

// warm goes step by step along the way to a player: index, address, block. Each
// step's loads do not wait for one another.
func (s *State) warm(cmds []Command) {
	var hashes [64]uint32
	var slots [64]uint64
	var sum uint64
	p := &s.players
	for i := range cmds {
		if id := cmds[i].Player; id != "" {
			hashes[i] = p.key.hash(id)
		}
	}
	for i := range cmds {
		if id := cmds[i].ID; id != "" {
			h := s.ids.key.hash(id)
			sum += s.ids.index.slots(h)[h%shardSlots]
		}
		slots[i] = p.index.slots(hashes[i])[hashes[i]%shardSlots]
	}
	var addrs [64]uint32
	known := uint32(p.count())
	for i := range cmds {
		// Where the first slot looked at is another player's, nothing is lost
		// but that player's line.
		if n := uint32(slots[i]) - 1; n < known {
			addrs[i] = p.addrs.get(n) + 1
		}
	}
	for i := range cmds {
		if addrs[i] != 0 {
			b := (*block)(p.mem.pointer(addrs[i] - 1))
			sum += b.last
		}
	}
	for i := range cmds {
		if addrs[i] != 0 {
			// The block's second line, where it has one: most of the slots.
			b := (*block)(p.mem.pointer(addrs[i] - 1))
			if room := b.room(); len(room) > 4 {
				sum += uint64(room[4].lo)
			}
		}
	}
	s.warmed += sum // so that the loads are made
}
