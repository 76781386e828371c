package economy

// SetBlockSize makes a capture's blocks small, at least 64 bytes, so that few players fill many.
func (c *Capture) SetBlockSize(n int) { c.blockSize = n }

// SetMaxMemory bounds the chunks of players' memory, which are of 1 MiB but for
// the first.
func (s *State) SetMaxMemory(chunks int) { s.chunks = chunks + spareChunks }

// SetKeep sets how many request ids are remembered whatever their age.
func (s *State) SetKeep(n int) { s.keep = n }
