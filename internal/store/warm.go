package store

// Memory is fetched ahead of time, for many commands or events at a time, so that the
// processor waits for all of it once instead of at each line of each command. It is a
// hint: without it, everything is the same but for the time that it takes.

// warmFrom is how many players or request ids are too many for the nearest caches.
const warmFrom = 1 << 14

// warmAtOnce is for how many commands memory is fetched at a time.
const warmAtOnce = 64

// Hashes is the hashes of the request id and the player's id of one command.
type Hashes struct{ request, player uint32 }

// Hashes returns the hashes of a request id and a player's id.
func (s *State) Hashes(request, player string) Hashes {
	return Hashes{request: s.ids.key.hash(request), player: s.players.key.hash(player)}
}

// Large reports whether what a command needs is likely not to be in the nearest caches.
func (s *State) Large() bool { return s.players.count() >= warmFrom || s.ids.count() >= warmFrom }

// Warm fetches the memory that commands will need. It is for the writer.
func (s *State) Warm(hashes []Hashes) {
	for len(hashes) > 0 {
		n := min(len(hashes), warmAtOnce)
		s.warm(hashes[:n])
		hashes = hashes[n:]
	}
}

// warm goes step by step along the way to a player: index, block, what has a place by the
// player's number. A step first finds out where to look, for all commands, and then looks.
func (s *State) warm(hashes []Hashes) {
	var (
		addrs [warmAtOnce]uint32
		at    [3 * warmAtOnce]*uint64 // at most three for each command in a step
		p     = &s.players
		n     int
	)
	for i := range hashes {
		ids := s.ids.index.shard(hashes[i].request)
		// Half a line on, for the free slot of an id that is new, which it most often
		// is, may be in the next one.
		at[n], at[n+1] = ids.at(first(hashes[i].request)), ids.at(first(hashes[i].request)+lineSlots/2)
		h := hashes[i].player
		at[n+2] = p.index.shard(h).at(first(h))
		n += 3
	}
	s.warmed += look(at[:n])
	n = 0
	for i := range hashes {
		if addr, ok := p.index.likely(hashes[i].player); ok {
			addrs[n] = addr
			n++
		}
	}
	s.warmBlocks(addrs[:n])
}

// warmBlocks looks at the first two lines of blocks.
func (s *State) warmBlocks(addrs []uint32) {
	var at [2 * warmAtOnce]*uint64
	for i, addr := range addrs {
		at[2*i], at[2*i+1] = s.players.mem.lines(addr)
	}
	s.warmed += look(at[:2*len(addrs)])
	n := 0
	for _, addr := range addrs {
		b := (*block)(s.players.mem.pointer(addr))
		at[n] = s.players.dirty.place(b.num)
		n++
		if int(b.slots) == len(b.room()) { // a new item moves it
			h := s.players.key.hashBytes(b.id())
			at[n] = s.players.index.shard(h).at(first(h))
			n++
		}
	}
	s.warmed += look(at[:n])
}

// WarmChange fetches the memory that Change of events will need, at most 64.
func (s *State) WarmChange(evs []Event) {
	p := &s.players
	if p.count() < warmFrom {
		return
	}
	var (
		addrs [warmAtOnce]uint32
		at    [warmAtOnce]*uint64
		n, m  int
	)
	for i := range evs[:min(len(evs), warmAtOnce)] {
		switch ev := &evs[i]; {
		case !ev.Named || ev.Status != 0:
		case int(ev.Player.Num) < p.count():
			addrs[m], at[n] = ev.Player.Num, p.addrs.place(ev.Player.Num)
			n, m = n+1, m+1
		default: // who joins by the first effect
			var e Effect
			if r := ev.Changes(); r.Next(&e) && e.Verb == Join {
				h := p.key.hashBytes(e.Bytes)
				at[n] = p.index.shard(h).at(first(h))
				n++
			}
		}
	}
	s.warmed += look(at[:n])
	for i, num := range addrs[:m] {
		addrs[i] = p.addrs.get(num)
	}
	s.warmBlocks(addrs[:m])
}

// WarmRemember is WarmChange for Remember.
func (s *State) WarmRemember(evs []Event) {
	if s.ids.count() < warmFrom {
		return
	}
	var at [2 * warmAtOnce]*uint64
	n := 0
	for i := range evs[:min(len(evs), warmAtOnce)] {
		if id := evs[i].ID; len(id) > 0 {
			h := s.ids.key.hashBytes(id)
			ids := s.ids.index.shard(h)
			at[n], at[n+1] = ids.at(first(h)), ids.at(first(h)+lineSlots/2)
			n += 2
		}
	}
	s.ids.warmed += look(at[:n])
}

// likely returns the first number that stands under a hash near its home.
func (x *index) likely(hash uint32) (number uint32, ok bool) {
	s := x.shard(hash)
	for i, n := first(hash), 0; n < 16; i, n = i+1, n+1 {
		switch slot := *s.at(i); {
		case slot == 0:
			return 0, false
		case uint32(slot>>32) == hash:
			return uint32(slot) - 1, true
		}
	}
	return 0, false
}

// look reads all of some places. It does nothing else, so that many loads are under way.
func look(at []*uint64) (sum uint64) {
	for _, p := range at {
		sum += *p
	}
	return sum
}
