package economy

// SetBlockSize makes a capture's blocks small, at least 64 bytes, so that few players fill many.
func (c *Capture) SetBlockSize(n int) { c.blockSize = n }
