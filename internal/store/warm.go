package store

import "slices"

// Memory is fetched ahead for many commands or events together: the processor then waits once for
// all of it, not once for each cache line. This is a hint: without it, only the speed differs.

// warmFrom is the number of players or request ids from which they no longer fit the nearest
// caches.
const warmFrom = 1 << 14

// warmAtOnce is the number of commands whose memory is fetched together.
const warmAtOnce = 64

// Hashes holds the hashes of a command's request id and player id.
type Hashes struct{ request, player uint32 }

// Hashes returns the hashes of a request id and a player id.
func (s *State) Hashes(request, player string) Hashes {
	return Hashes{request: s.ids.key.hash(request), player: s.players.key.hash(player)}
}

// Large reports whether a command's memory is probably not in the nearest caches.
func (s *State) Large() bool { return s.players.count() >= warmFrom || s.ids.count() >= warmFrom }

// Warm fetches the memory that commands will need. For the writer. It follows the way to each
// player step by step: index, block, and what is stored by player number. Each step first computes
// all addresses, then reads them.
func (s *State) Warm(hashes []Hashes) {
	p := &s.players
	for some := range slices.Chunk(hashes, warmAtOnce) {
		var (
			addrs [warmAtOnce]uint32
			at    [3 * warmAtOnce]*uint64 // at most three for each command in a step
			n     int
		)
		for i := range some {
			ids := s.ids.index.shard(some[i].request)
			// Half a line further too: most ids are new, and the free slot for a new one may be in
			// the next line.
			at[n], at[n+1] = ids.at(first(some[i].request)), ids.at(first(some[i].request)+lineSlots/2)
			h := some[i].player
			at[n+2] = p.index.shard(h).at(first(h))
			n += 3
		}
		p.warmed += look(at[:n])
		n = 0
		for i := range some {
			if addr, ok := p.index.likely(some[i].player); ok {
				addrs[n] = addr
				n++
			}
		}
		p.warm(addrs[:n])
	}
}

// warm reads the first two cache lines of blocks, then what changes to them will touch.
func (p *players) warm(addrs []uint32) {
	var at [2 * warmAtOnce]*uint64
	for i, addr := range addrs {
		at[2*i], at[2*i+1] = p.mem.lines(addr)
	}
	p.warmed += look(at[:2*len(addrs)])
	n := 0
	for _, addr := range addrs {
		b := (*block)(p.mem.pointer(addr))
		at[n] = p.dirty.place(b.num)
		n++
		if b.slots == b.room() { // a new item would move it
			h := p.key.hashBytes(b.id())
			at[n] = p.index.shard(h).at(first(h))
			n++
		}
	}
	p.warmed += look(at[:n])
}

// WarmChange fetches the memory that Change will need for at most 64 events.
func (p *players) WarmChange(evs []Event) {
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
		default: // a new player: the first effect is a Join
			var e Effect
			if r := ev.Changes(); r.Next(&e) && e.Verb == Join {
				h := p.key.hashBytes(e.Bytes)
				at[n] = p.index.shard(h).at(first(h))
				n++
			}
		}
	}
	p.warmed += look(at[:n])
	for i, num := range addrs[:m] {
		addrs[i] = p.addrs.get(num)
	}
	p.warm(addrs[:m])
}

// WarmRemember fetches the memory that Remember will need for at most 64 events.
func (r *ids) WarmRemember(evs []Event) {
	if r.count() < warmFrom {
		return
	}
	var at [2 * warmAtOnce]*uint64
	n := 0
	for i := range evs[:min(len(evs), warmAtOnce)] {
		if id := evs[i].ID; len(id) > 0 {
			h := r.key.hashBytes(id)
			s := r.index.shard(h)
			at[n], at[n+1] = s.at(first(h)), s.at(first(h)+lineSlots/2)
			n += 2
		}
	}
	r.warmed += look(at[:n])
}

// likely returns the first number with this hash near its home.
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

// look reads all of some places and does nothing else, so that many loads overlap.
func look(at []*uint64) (sum uint64) {
	for _, p := range at {
		sum += *p
	}
	return sum
}
