package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// The canonical form is how a catalog stands in logs. It is written in one way
// only, so that its SHA-256 names the catalog. A form once written must be
// readable for ever: a change needs a new version, and limits may only rise.
//
//	form       "KUJICAT" version(1 byte: 0x01) name items pools start count age
//	items      number { id kind(1 byte) name }
//	pools      number { id name mode(1 byte) price starts ends max_count limits weight_scale entries }
//	price      stacks
//	start      stacks
//	stacks     number { item quantity }
//	limits     number { per(1 byte) window draws }
//	entries    number { id weight stock reward }
//	stock      0: unlimited; else the stock + 1
//	reward     1 | 2 bundle | 3 pool-id               (the first is one byte)
//	bundle     number { item min max-min }
//
// Text is its length in bytes, then the bytes. Every number but the single
// bytes is an unsigned LEB128 in its shortest form; starts, ends and windows
// count milliseconds, age nanoseconds. Nothing follows age.
const (
	canonicalMagic   = "KUJICAT"
	canonicalVersion = 1
)

// MaxCanonical is the longest canonical form, in bytes. It is shorter than the
// source in practice.
const MaxCanonical = MaxBytes

// AppendCanonical appends the canonical form of c to b. The result has no
// meaning if [Catalog.Check] refuses c.
func (c *Catalog) AppendCanonical(b []byte) []byte {
	b = append(b, canonicalMagic...)
	b = append(b, canonicalVersion)
	b = appendText(b, c.Name)
	b = appendNumber(b, len(c.Items))
	for i := range c.Items {
		item := &c.Items[i]
		b = appendText(b, item.ID)
		b = append(b, byte(item.Kind))
		b = appendText(b, item.Name)
	}
	b = appendNumber(b, len(c.Pools))
	for i := range c.Pools {
		b = c.Pools[i].append(b)
	}
	b = appendStacks(b, c.Start)
	b = binary.AppendUvarint(b, uint64(c.Idempotency.Count))
	return binary.AppendUvarint(b, uint64(c.Idempotency.Age))
}

func (p *Pool) append(b []byte) []byte {
	b = appendText(b, p.ID)
	b = appendText(b, p.Name)
	b = append(b, byte(p.Mode))
	b = appendStacks(b, p.Price)
	b = binary.AppendUvarint(b, uint64(p.StartsAt))
	b = binary.AppendUvarint(b, uint64(p.EndsAt))
	b = binary.AppendUvarint(b, uint64(p.MaxCount))
	b = appendNumber(b, len(p.Limits))
	for _, l := range p.Limits {
		b = append(b, byte(l.Per))
		b = binary.AppendUvarint(b, uint64(l.Window))
		b = binary.AppendUvarint(b, l.Draws)
	}
	b = binary.AppendUvarint(b, p.WeightScale)
	b = appendNumber(b, len(p.Entries))
	for i := range p.Entries {
		e := &p.Entries[i]
		b = appendText(b, e.ID)
		b = binary.AppendUvarint(b, e.Weight)
		if e.Stock.Unlimited {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, e.Stock.Count+1)
		}
		b = e.Reward.append(b)
	}
	return b
}

func (w *Reward) append(b []byte) []byte {
	b = append(b, byte(w.Kind))
	switch w.Kind {
	case RewardItems:
		b = appendNumber(b, len(w.Items))
		for i := range w.Items {
			q := &w.Items[i]
			b = appendText(b, q.Item)
			b = binary.AppendUvarint(b, q.Min)
			b = binary.AppendUvarint(b, q.Max-q.Min)
		}
	case RewardPool:
		b = appendText(b, w.Pool)
	}
	return b
}

func appendStacks(b []byte, all []Stack) []byte {
	b = appendNumber(b, len(all))
	for i := range all {
		b = appendText(b, all[i].Item)
		b = binary.AppendUvarint(b, all[i].Quantity)
	}
	return b
}

func appendNumber(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

func appendText(b []byte, s string) []byte {
	b = appendNumber(b, len(s))
	return append(b, s...)
}

// Hash returns the SHA-256 of the canonical form.
func (c *Catalog) Hash() [sha256.Size]byte { return sha256.Sum256(c.AppendCanonical(nil)) }

// Decode reads a canonical form. It accepts only what AppendCanonical writes
// for a catalog that passes [Catalog.Check], byte for byte. It keeps nothing of
// b. Errors wrap [ErrCanonical], and *[Errors] if the form is readable but the
// catalog in it is wrong.
func Decode(b []byte) (*Catalog, error) {
	if len(b) > MaxCanonical {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrCanonical, MaxCanonical, len(b))
	}
	d := &decoder{rest: b, size: len(b), seen: map[string]string{}}
	c := d.catalog()
	if d.err == nil && len(d.rest) > 0 {
		d.fail("expected the end, found %d more bytes", len(d.rest))
	}
	if d.err != nil {
		return nil, d.err
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCanonical, err)
	}
	return c, nil
}

// decoder reads a canonical form. After the first error it reads zeros.
type decoder struct {
	rest []byte
	size int
	err  error
	// seen holds one copy of each id that is referred to, so that a million
	// rewards of one item share its id.
	seen map[string]string
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		at := d.size - len(d.rest)
		d.err = fmt.Errorf("%w: at byte %d: %s", ErrCanonical, at, fmt.Sprintf(format, args...))
		d.rest = nil
	}
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail("expected a byte, found the end")
		return 0
	}
	v := d.rest[0]
	d.rest = d.rest[1:]
	return v
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	switch {
	case n <= 0:
		d.fail("expected a number of at most 64 bits, found something else or the end")
		return 0
	case n > 1 && d.rest[n-1] == 0:
		d.fail("expected a number in its shortest form")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// small reads a number that must not be above most.
func (d *decoder) small(what string, most uint64) uint64 {
	v := d.number()
	if v > most {
		d.fail("expected %s of at most %d, found %d", what, most, v)
		return 0
	}
	return v
}

// count reads the number of elements that follow, each at least size bytes
// long: no count makes Decode allocate more than the form is worth.
func (d *decoder) count(most, size int) int {
	n := int(d.small("a count", uint64(most)))
	if n*size > len(d.rest) {
		d.fail("expected %d elements, found only %d bytes", n, len(d.rest))
		return 0
	}
	return n
}

func (d *decoder) bytes(most int) []byte {
	n := d.count(most, 1)
	v := d.rest[:n]
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) text(most int) string { return string(d.bytes(most)) }

// ref reads an id that stands elsewhere too.
func (d *decoder) ref() string {
	b := d.bytes(MaxID)
	if s, ok := d.seen[string(b)]; ok {
		return s
	}
	s := string(b)
	d.seen[s] = s
	return s
}

// some makes a slice of n, or nil of none, as Parse does.
func some[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, n)
}

func (d *decoder) catalog() *Catalog {
	for i := range len(canonicalMagic) {
		if d.byte() != canonicalMagic[i] {
			d.fail("expected %q first", canonicalMagic)
		}
	}
	if v := d.byte(); v != canonicalVersion {
		d.fail("expected version %d, found %d", canonicalVersion, v)
	}
	c := &Catalog{Name: d.text(MaxName)}
	c.Items = some[Item](d.count(MaxItems, 3))
	for i := range c.Items {
		item := &c.Items[i]
		item.ID = d.ref()
		item.Kind = ItemKind(d.byte())
		item.Name = d.text(MaxName)
	}
	c.Pools = some[Pool](d.count(MaxPools, 10))
	left := MaxEntries
	for i := range c.Pools {
		d.pool(&c.Pools[i], left)
		left -= len(c.Pools[i].Entries)
	}
	c.Start = d.stacks()
	c.Idempotency.Count = uint32(d.small("a count of ids", MaxIdempotencyCount))
	c.Idempotency.Age = time.Duration(d.small("an age", uint64(MaxIdempotencyAge)))
	return c
}

func (d *decoder) stacks() []Stack {
	all := some[Stack](d.count(MaxBundle, 2))
	for i := range all {
		all[i] = Stack{d.ref(), d.number()}
	}
	return all
}

func (d *decoder) pool(p *Pool, maxEntries int) {
	p.ID = d.ref()
	p.Name = d.text(MaxName)
	p.Mode = Mode(d.byte())
	p.Price = d.stacks()
	p.StartsAt = int64(d.small("a time", maxInstant))
	p.EndsAt = int64(d.small("a time", maxInstant))
	p.MaxCount = uint32(d.small("max_count", MaxDrawCount))
	p.Limits = some[PlayerLimit](d.count(MaxPlayerLimits, 3))
	for i := range p.Limits {
		l := &p.Limits[i]
		l.Per = Per(d.byte())
		l.Window = int64(d.small("a window", uint64(MaxWindow.Milliseconds())))
		l.Draws = d.number()
	}
	p.WeightScale = d.number()
	p.Entries = some[Entry](d.count(maxEntries, 4))
	for i := range p.Entries {
		e := &p.Entries[i]
		e.ID = d.text(MaxID)
		e.Weight = d.number()
		if n := d.number(); n == 0 {
			e.Stock.Unlimited = true
		} else {
			e.Stock.Count = n - 1
		}
		d.reward(&e.Reward)
	}
}

func (d *decoder) reward(w *Reward) {
	w.Kind = RewardKind(d.byte())
	switch w.Kind {
	case RewardItems:
		w.Items = some[Quantity](d.count(MaxBundle, 3))
		for i := range w.Items {
			q := &w.Items[i]
			q.Item = d.ref()
			q.Min = d.number()
			q.Max = q.Min + d.number()
		}
	case RewardPool:
		w.Pool = d.ref()
	}
}
