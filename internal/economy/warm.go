package economy

// warmFrom is how many players or request ids are too many for the nearest caches.
const warmFrom = 1 << 14

// warmAtOnce is for how many commands or events memory is fetched at a time.
const warmAtOnce = 64

// Large reports whether what a command needs is likely not to be in the nearest caches.
func (s *State) Large() bool { return s.players.count() >= warmFrom || s.ids.count() >= warmFrom }

// Warm looks at the memory that commands will need, all of it at a time, so that
// the processor fetches it for many commands at once instead of stopping at each
// line of each command. It changes nothing and decides nothing. It pays where
// players and request ids are too many for the caches: with few it returns at once.
func (s *State) Warm(cmds []Command) {
	if !s.Large() {
		return
	}
	for len(cmds) > 0 {
		n := min(len(cmds), warmAtOnce)
		s.warm(cmds[:n])
		cmds = cmds[n:]
	}
}

// WarmOne is Warm for one command: what its request id needs and what its player
// needs are fetched at the same time. Nothing here waits for what it looks at but
// the next step to the player.
func (s *State) WarmOne(cmd *Command) {
	if !s.Large() {
		return
	}
	p := &s.players
	var sum uint64
	if cmd.ID != "" {
		h := s.ids.key.hash(cmd.ID)
		sum = s.ids.index.slots(h)[first(h)]
	}
	h := p.key.hash(cmd.Player)
	if n, ok := p.index.likely(h); ok {
		b := (*block)(p.mem.pointer(p.addrs.get(n)))
		sum += b.last
		if room := b.room(); len(room) > 4 { // most of the slots, in the next line
			sum += uint64(room[4].lo)
		}
	}
	s.warmed += sum
}

// likely returns the first number that stands under a hash near its home.
func (x *index) likely(hash uint32) (number uint32, ok bool) {
	slots := x.slots(hash)
	for i, n := first(hash), 0; n < 16; i, n = (i+1)%shardSlots, n+1 {
		switch slot := slots[i]; {
		case slot == 0:
			return 0, false
		case uint32(slot>>32) == hash:
			return uint32(slot) - 1, true
		}
	}
	return 0, false
}

// warm goes step by step along the way to a player: index, address, block. Each
// step's loads do not wait for one another.
func (s *State) warm(cmds []Command) {
	var hashes [warmAtOnce]uint32
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
			sum += s.ids.index.slots(h)[first(h)]
		}
		sum += p.index.slots(hashes[i])[first(hashes[i])]
	}
	var numbers [warmAtOnce]uint32 // + 1
	for i := range cmds {
		if n, ok := p.index.likely(hashes[i]); ok {
			numbers[i] = n + 1
		}
	}
	var addrs [warmAtOnce]uint32 // + 1
	for i := range cmds {
		if numbers[i] != 0 {
			addrs[i] = p.addrs.get(numbers[i]-1) + 1
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
