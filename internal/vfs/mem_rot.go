package vfs

import (
	"fmt"
	"slices"
)

// opRot names Flip and Overwrite in errors. They are not operations.
const opRot = "rot"

// Flip inverts the bits of mask in n bytes of a file from off on, in the page
// cache and on the disk alike. That is bit rot; two calls undo each other. It
// does not count as an operation, does not change the size, and shows in
// mappings. The range must be within the file.
func (m *Mem) Flip(name string, off, n int64, mask byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rot(name, off, n, func(_ int64, old byte) byte { return old ^ mask })
}

// Overwrite replaces bytes of a file by p, as [Mem.Flip] does.
func (m *Mem) Overwrite(name string, off int64, p []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rot(name, off, int64(len(p)), func(i int64, _ byte) byte { return p[i-off] })
}

// rot changes the bytes [off, off+n) of a file wherever a later crash or read
// could find them: in what reads see, on disk, and in the changes between.
func (t *memTree) rot(name string, off, n int64, change func(at int64, old byte) byte) error {
	name = cleanPath(name)
	node, err := t.lookupFile(name)
	if err != nil {
		return fmt.Errorf("vfs: %s %s: %w", opRot, name, err)
	}
	if off < 0 || n < 0 || n > node.live.size-off {
		return fmt.Errorf("vfs: %s %s: bytes [%d, %d) of a file of %d", opRot, name, off, off+n, node.live.size)
	}
	if n == 0 {
		return nil
	}
	// apply changes those bytes of p, which begin at byte base of the file,
	// that are in the range.
	apply := func(p []byte, base int64) {
		for at := max(off, base); at < min(off+n, base+int64(len(p))); at++ {
			p[at-base] = change(at, p[at-base])
		}
	}
	before := node.live.allocated
	buf := make([]byte, n)
	node.live.read(buf, off)
	apply(buf, off)
	node.live.put(buf, off)
	t.used += node.live.allocated - before
	for _, mp := range node.maps {
		mp.write(buf, off)
	}
	if onDisk := min(off+n, node.disk.size) - off; onDisk > 0 {
		node.disk.read(buf[:onDisk], off)
		apply(buf[:onDisk], off)
		node.disk.put(buf[:onDisk], off)
	}
	for i := range node.writes {
		node.writes[i].runs = slices.Clone(node.writes[i].runs)
		for j, r := range node.writes[i].runs {
			base := r.first * sectorSize
			if base < off+n && off < base+int64(len(r.data)) {
				data := slices.Clone(r.data) // clones of the Mem share it
				apply(data, base)
				node.writes[i].runs[j].data = data
			}
		}
	}
	return nil
}
