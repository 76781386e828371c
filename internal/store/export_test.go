package store

// SetBlockSize sets the size from which on a block of a capture is full.
func (c *Capture) SetBlockSize(n int) { c.blockSize = n }

// SetMaxPlayers, SetMaxChunks and SetKept set bounds that tests could not reach.
func (s *State) SetMaxPlayers(n int) { s.most = n }

// SetMaxChunks bounds the memory of players; see SetMaxPlayers.
func (s *State) SetMaxChunks(n int) { s.mostChunks = spareChunks + n }

// SetKept sets how many request ids are kept whatever their age; see SetMaxPlayers.
func (s *State) SetKept(n int) { s.ids.keep = n }

// find returns the number of the player with this id.
func (p *players) find(id string) (uint32, bool) {
	if b := p.lookup(id, p.key.hash(id)); b != nil {
		return b.num, true
	}
	return 0, false
}
