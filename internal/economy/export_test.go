package economy

// SetBlockSize makes a capture's blocks small, at least 64 bytes, so that few players fill many.
func (c *Capture) SetBlockSize(n int) { c.blockSize = n }

// SetMaxMemory bounds the chunks of players' memory, which are of 1 MiB but for
// the first.
func (s *State) SetMaxMemory(chunks int) { s.chunks = chunks + spareChunks }

// SetKeep sets how many request ids are remembered whatever their age.
func (s *State) SetKeep(n int) { s.ids.keep = n }

// HoldPool takes a pool's lock, as a reader does, until release is called.
func (s *State) HoldPool(id string) (release func()) {
	mu := &s.pools[s.poolNum[id]].mu
	mu.Lock()
	return mu.Unlock
}

// PoolHeld reports whether somebody holds a pool's lock.
func (s *State) PoolHeld(num int) bool {
	mu := &s.pools[num].mu
	free := mu.TryLock()
	if free {
		mu.Unlock()
	}
	return !free
}

// Begin is what an event does before it changes a player and a pool; nobody may read
// them until [State.Abandon].
func (s *State) Begin(player, pool string) {
	n, _ := s.players.find(player)
	s.players.change(n, s.applied+1)
	s.lockPool(s.pools[s.poolNum[pool]])
}

// Superseded returns of how many catalog versions something is kept that they alone have.
func (s *State) Superseded() int { return len(s.past) }
