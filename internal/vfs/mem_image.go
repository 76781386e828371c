package vfs

import "slices"

const (
	// sectorSize is what a simulated disk writes atomically.
	sectorSize = 512
	// pageSize is the unit of allocation and of sharing between images.
	pageSize = 4096
	// maxFileSize bounds a file of a Mem: the table of its pages stays small.
	maxFileSize = 1 << 34
)

// owner marks the pages that an image may write in place. Its size is not
// zero, so that two owners never have the same address.
type owner struct{ _ byte }

type page struct {
	owner *owner
	data  [pageSize]byte
}

var zeroPage [pageSize]byte

// reserved stands for every page that takes space and has not been written to.
// It has no owner: whoever writes, writes to a copy.
var reserved = new(page)

// image is the bytes of a file. Pages are shared between images until one of
// them writes: taking a copy of a disk costs pointers, not bytes.
//
// Bytes beyond size are zero in every page, always.
type image struct {
	pages     []*page // nil entries and missing ones are zeros
	size      int64
	allocated int64 // pages that are not nil
	own       *owner
}

func newImage() image { return image{own: new(owner)} }

// share returns a copy of im. Neither may write the pages of now in place any
// more: both get a new owner.
func (im *image) share() image {
	im.own = new(owner)
	return image{pages: slices.Clone(im.pages), size: im.size, allocated: im.allocated, own: new(owner)}
}

// at returns page i for reading: never nil.
func (im *image) at(i int64) *[pageSize]byte {
	if i < int64(len(im.pages)) && im.pages[i] != nil {
		return &im.pages[i].data
	}
	return &zeroPage
}

// has reports whether page i takes space.
func (im *image) has(i int64) bool {
	return i < int64(len(im.pages)) && im.pages[i] != nil
}

// writable returns page i for writing.
func (im *image) writable(i int64) *[pageSize]byte {
	if i >= int64(len(im.pages)) {
		im.pages = append(im.pages, make([]*page, i+1-int64(len(im.pages)))...)
	}
	p := im.pages[i]
	switch {
	case p == nil:
		p = &page{owner: im.own}
		im.pages[i] = p
		im.allocated++
	case p.owner != im.own:
		p = &page{owner: im.own, data: p.data}
		im.pages[i] = p
	}
	return &p.data
}

// read copies the bytes from off on, zeros beyond the size included.
func (im *image) read(dst []byte, off int64) {
	for len(dst) > 0 {
		n := copy(dst, im.at(off / pageSize)[off%pageSize:])
		dst, off = dst[n:], off+int64(n)
	}
}

// put writes bytes without touching the size; the caller sets it so that the
// rule on bytes beyond it holds.
func (im *image) put(src []byte, off int64) {
	for len(src) > 0 {
		n := copy(im.writable(off / pageSize)[off%pageSize:], src)
		src, off = src[n:], off+int64(n)
	}
}

// resize sets the size and zeroes what is beyond it.
func (im *image) resize(size int64) {
	im.size = size
	whole := (size + pageSize - 1) / pageSize
	if whole < int64(len(im.pages)) {
		for _, p := range im.pages[whole:] {
			if p != nil {
				im.allocated--
			}
		}
		im.pages = slices.Delete(im.pages, int(whole), len(im.pages))
	}
	if size%pageSize != 0 && im.has(size/pageSize) {
		clear(im.writable(size / pageSize)[size%pageSize:])
	}
}

// reserve allocates the pages below size that are not.
func (im *image) reserve(size int64) {
	whole := (size + pageSize - 1) / pageSize
	if missing := whole - int64(len(im.pages)); missing > 0 {
		im.pages = append(im.pages, make([]*page, missing)...)
	}
	for i, p := range im.pages[:whole] {
		if p == nil {
			im.pages[i] = reserved
			im.allocated++
		}
	}
}

// room returns how many of the n bytes at off can be written when at most
// spare more pages may be allocated.
func (im *image) room(off, n, spare int64) int64 {
	for at := off; at < off+n; at = (at/pageSize + 1) * pageSize {
		if im.has(at / pageSize) {
			continue
		}
		if spare <= 0 {
			return at - off
		}
		spare--
	}
	return n
}
