package rules

// overlay holds values over the state while Decide works: what later parts of a command must see of
// earlier ones. A reset takes no time.
type overlay struct {
	slots []overlaySlot // open addressing; len is a power of two
	gen   uint32        // slots of other generations are free
	n     int
}

type overlaySlot struct {
	key   uint64
	value uint64
	gen   uint32
}

func (o *overlay) init() {
	o.slots = make([]overlaySlot, 64)
	o.gen = 1
}

func (o *overlay) reset() {
	if o.n > 0 {
		o.forget()
	}
}

func (o *overlay) forget() {
	o.n = 0
	if o.gen++; o.gen == 0 { // after 2^32 commands old generations would look new
		clear(o.slots)
		o.gen = 1
	}
}

// slot returns the slot that holds key, or the one for it.
func (o *overlay) slot(key uint64) *overlaySlot {
	mask := uint64(len(o.slots) - 1)
	h := key * 0x9E3779B97F4A7C15 // 2^64 / golden ratio: Knuth, TAOCP vol. 3, 6.4
	for i := h >> 32 & mask; ; i = (i + 1) & mask {
		if s := &o.slots[i]; s.gen != o.gen || s.key == key {
			return s
		}
	}
}

func (o *overlay) get(key uint64) (uint64, bool) {
	if o.n == 0 {
		return 0, false
	}
	return o.find(key)
}

// find is get where there is something.
func (o *overlay) find(key uint64) (uint64, bool) {
	if s := o.slot(key); s.gen == o.gen {
		return s.value, true
	}
	return 0, false
}

func (o *overlay) put(key, value uint64) {
	s := o.slot(key)
	if s.gen == o.gen {
		s.value = value
		return
	}
	*s = overlaySlot{key: key, value: value, gen: o.gen}
	if o.n++; o.n*2 > len(o.slots) {
		o.grow()
	}
}

func (o *overlay) grow() {
	old := o.slots
	o.slots = make([]overlaySlot, 2*len(old))
	for _, s := range old {
		if s.gen == o.gen {
			*o.slot(s.key) = s
		}
	}
}
