package economy

// warmFrom is how many players or request ids are too many for the nearest caches.
const warmFrom = 1 << 14

// largeDepth is the depth of an index of as many.
const largeDepth = 6

// warmAtOnce is for how many commands or events memory is fetched at a time.
const warmAtOnce = 64

// Large reports whether what a command needs is likely not to be in the nearest caches.
func (s *State) Large() bool { return s.players.count() >= warmFrom || s.ids.count() >= warmFrom }

// Warm looks at the memory that commands will need, all of it at a time, so that
// the processor fetches it for many commands at once instead of stopping at each
// line of each command. It changes nothing and decides nothing. It pays where
// players and request ids are too many for the caches: see [State.Large]. The commands
// are named by the hashes of their ids.
func (s *State) Warm(hashes []IDHashes) {
	for len(hashes) > 0 {
		n := min(len(hashes), warmAtOnce)
		s.warm(hashes[:n])
		hashes = hashes[n:]
	}
}

// Fetch is Warm for the request id and the player of one command. It may be called
// beside the writer: who has looked at them before waiting for the realm's lock keeps
// that for less long. Where glances is false, only the player is looked at. With few players
// and request ids it only returns the hashes.
//
// The place of a request id, if there is one, is looked at first, as the processor does
// not wait for it: it looks for the player meanwhile, which it would not if a lock
// stood between the two.
func (s *State) Fetch(id, player string) IDHashes {
	h := IDHashes{player: s.players.key.hash(player)}
	if id != "" {
		h.request, h.named = s.ids.key.hash(id), true
		if glances && s.ids.index.dir.Load().depth >= largeDepth {
			s.ids.index.glance(h.request)
		}
	}
	if s.players.index.dir.Load().depth >= largeDepth {
		s.fetch(player, h.player)
	}
	return h
}

// IDHashes is the hashes of the request id and the player's id of one command. What is
// looked for begins with them, so that who brings a single command has them before the
// realm's lock is taken.
type IDHashes struct {
	request, player uint32
	named           bool // there is a request id
}

// HashIDs returns the hashes of a request id, if there is one, and of a player's id. It
// may be called beside the writer.
func (s *State) HashIDs(request, player string) (h IDHashes) {
	if request != "" {
		h.request, h.named = s.ids.key.hash(request), true
	}
	h.player = s.players.key.hash(player)
	return h
}

func (s *State) fetch(player string, hash uint32) {
	var v sight
	if s.players.enterHashed(player, hash, &v) {
		v.touch()
	}
	v.quit()
}

// touch looks behind the head of a player, where most of the slots stand.
//
//go:noinline
func (v *sight) touch() (key uint32) {
	if h := v.holdings(); len(h) > 2 {
		key = h[2].key
	}
	return key
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

// warm goes step by step along the way to a player: index, block, what has a place by
// the player's number. A step first finds out where to look, for all commands, and
// then looks.
func (s *State) warm(hashes []IDHashes) {
	var (
		addrs [warmAtOnce]uint32
		at    [3 * warmAtOnce]*uint64 // at most three for each command in a step
		p     = &s.players
		sum   uint64
		n     int
	)
	for i := range hashes {
		if hashes[i].named {
			h := hashes[i].request
			s := s.ids.index.shard(h)
			// Half a line on, for the free slot of an id that is new, which it most often
			// is, may be in the next one.
			at[n], at[n+1] = s.at(first(h)), s.at(first(h)+lineSlots/2)
			n += 2
		}
		h := hashes[i].player
		at[n] = p.index.shard(h).at(first(h))
		n++
	}
	sum += look(at[:n])
	n = 0
	for i := range hashes {
		if addr, ok := p.index.likely(hashes[i].player); ok {
			addrs[n] = addr
			n++
		}
	}
	found := addrs[:n]
	n = 0
	for _, addr := range found {
		at[n], at[n+1] = p.mem.lines(addr)
		n += 2
	}
	sum += look(at[:n])
	n = 0
	for _, addr := range found {
		b := (*block)(p.mem.pointer(addr))
		at[n] = p.dirty.place(b.num)
		n++
		if int(b.slots) == len(b.room()) { // a new item moves it
			at[n] = p.addrs.place(b.num)
			n++
		}
	}
	s.warmed += sum + look(at[:n]) // so that the loads are made
}

// look reads all of some places. It does nothing else, so that many loads are under way.
func look(at []*uint64) (sum uint64) {
	for _, p := range at {
		sum += *p
	}
	return sum
}
