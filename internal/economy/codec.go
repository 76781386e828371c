package economy

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/kuji-dev/kuji/catalog"
)

// The codec of events. docs/internals/formats/event.md shows every byte; a change of
// meaning needs a new kind or version, never an old one in another sense.

// eventVersion is the version written for every kind so far.
const eventVersion = 0

// AppendEvent appends the encoded form of ev to b.
func AppendEvent(b []byte, ev *Event) []byte {
	b = appendHead(b, ev.Kind, ev.Status, ev.ID)
	if ev.Status != OK {
		b = binary.AppendUvarint(b, uint64(ev.Subject))
	}
	switch ev.Kind {
	case KindCatalog:
		b = binary.AppendUvarint(b, uint64(len(ev.Catalog)))
		return append(b, ev.Catalog...)
	case KindAtomic:
		if ev.Status != OK {
			b = binary.AppendUvarint(b, uint64(ev.Failed))
		}
		b = binary.AppendUvarint(b, uint64(len(ev.Members)))
		for i := range ev.Members {
			b = append(b, byte(ev.Members[i].Kind)<<3)
			b = appendBody(b, &ev.Members[i], ev.Status)
		}
		return b
	}
	return appendBody(b, ev, ev.Status)
}

func appendHead(b []byte, kind Kind, status Status, id string) []byte {
	head := byte(kind)<<3 | eventVersion<<1
	if id == "" {
		return append(b, head, byte(status))
	}
	return appendString(append(b, head|1, byte(status)), id)
}

func appendBody(b []byte, ev *Event, status Status) []byte {
	b = appendRef(b, ev.Player)
	switch ev.Kind {
	case KindDraw:
		b = appendRef(b, ev.Pool)
		b = binary.AppendUvarint(b, uint64(ev.Count))
		if status == OK {
			b = appendChoices(b, ev)
		}
		return b
	case KindTransfer:
		b = appendRef(b, ev.To)
	}
	return appendItems(b, ev.Items)
}

func appendItems(b []byte, items []ItemRef) []byte {
	b = binary.AppendUvarint(b, uint64(len(items)))
	for i := range items {
		it := &items[i]
		if it.Known && it.Num < 0x80>>1 && it.Quantity < 0x80 { // most are: a byte each
			b = append(b, byte(it.Num<<1), byte(it.Quantity))
			continue
		}
		b = appendRef(b, it.Ref)
		b = binary.AppendUvarint(b, it.Quantity)
	}
	return b
}

// Details of a choice, in its two lowest bits.
const (
	choicePlain  = 0
	choiceNested = 1
	choiceRanged = 2
)

func appendChoices(b []byte, ev *Event) []byte {
	q := ev.Quantities
	for _, c := range ev.Choices {
		switch {
		case c.Nested:
			b = binary.AppendUvarint(b, uint64(c.Entry)<<2|choiceNested)
		case c.Ranged > 0:
			b = binary.AppendUvarint(b, uint64(c.Entry)<<2|choiceRanged)
			b = append(b, c.Ranged)
			for _, v := range q[:c.Ranged] {
				b = binary.AppendUvarint(b, v)
			}
			q = q[c.Ranged:]
		default:
			b = binary.AppendUvarint(b, uint64(c.Entry)<<2|choicePlain)
		}
	}
	return b
}

func appendRef(b []byte, r Ref) []byte {
	if r.Known {
		return binary.AppendUvarint(b, uint64(r.Num)<<1)
	}
	b = binary.AppendUvarint(b, uint64(len(r.ID))<<1|1)
	return append(b, r.ID...)
}

func appendString(b []byte, s string) []byte {
	b = append(b, byte(len(s))) // at most 64, checked before
	return append(b, s...)
}

// FormatError says where in a batch's payload the bytes are not an event that
// this version knows.
type FormatError struct {
	Offset  int // from the start of the buffer that was decoded
	Message string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("event format: byte %d: %s", e.Offset, e.Message)
}

// decoder reads from b; the first error sticks.
type decoder struct {
	b   []byte
	off int
	err *FormatError
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = &FormatError{Offset: d.off, Message: fmt.Sprintf(format, args...)}
	}
}

func (d *decoder) byte(what string) byte {
	if d.err != nil {
		return 0
	}
	if d.off >= len(d.b) {
		d.fail("ends within %s", what)
		return 0
	}
	d.off++
	return d.b[d.off-1]
}

// small returns the next number if it takes one byte; there is none otherwise, or
// uvarint says what is wrong.
func (d *decoder) small() (v uint64, ok bool) {
	if d.off < len(d.b) && d.b[d.off] < 0x80 && d.err == nil {
		d.off++
		return uint64(d.b[d.off-1]), true
	}
	return 0, false
}

func (d *decoder) uvarint(what string, limit uint64) uint64 {
	if d.err != nil {
		return 0
	}
	if d.off < len(d.b) && d.b[d.off] < 0x80 && uint64(d.b[d.off]) <= limit {
		d.off++
		return uint64(d.b[d.off-1])
	}
	v, n := binary.Uvarint(d.b[d.off:])
	if n <= 0 {
		d.fail("%s: not a varint", what)
		return 0
	}
	if n > 1 && d.b[d.off+n-1] == 0 {
		d.fail("%s: a varint of %d bytes, the last of them 0", what, n)
		return 0
	}
	if v > limit {
		d.fail("%s is %d; at most %d is possible", what, v, limit)
		return 0
	}
	d.off += n
	return v
}

// bytes returns the next n bytes without copying.
func (d *decoder) bytes(what string, n uint64) []byte {
	if d.err != nil {
		return nil
	}
	if n > uint64(len(d.b)-d.off) {
		d.fail("%s: %d bytes announced, %d left", what, n, len(d.b)-d.off)
		return nil
	}
	d.off += int(n)
	return d.b[d.off-int(n) : d.off]
}

// str returns the next n bytes as a string that aliases the buffer.
func (d *decoder) str(what string, n, limit uint64) string {
	if n == 0 || n > limit {
		d.fail("%s is %d bytes long; 1 to %d are possible", what, n, limit)
		return ""
	}
	b := d.bytes(what, n)
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

func (d *decoder) ref(what string, limit uint64, maxID uint64) Ref {
	v := d.uvarint(what, 1<<32-1)
	if v&1 == 1 {
		return Ref{ID: d.str(what, v>>1, maxID)}
	}
	if v>>1 >= limit {
		d.fail("%s number is %d; at most %d is possible", what, v>>1, limit-1)
	}
	return Ref{Num: uint32(v >> 1), Known: true}
}

// Decode reads the event at the start of b into ev, reusing its memory, and
// returns how many bytes it took. Errors are *FormatError. The strings and
// slices of ev alias b.
func Decode(b []byte, ev *Event) (int, error) {
	ev.reset()
	d := decoder{b: b}
	head := d.byte("the event's head")
	ev.Kind = Kind(head >> 3)
	if v := head >> 1 & 3; d.err == nil && (ev.Kind == 0 || ev.Kind >= kindEnd || v != eventVersion) {
		d.off = 0
		d.fail("unknown event: kind %d, version %d; this build knows kinds 1 to %d, version %d. A newer Kuji wrote this log", ev.Kind, v, kindEnd-1, eventVersion)
	}
	ev.Status = d.status()
	if head&1 == 1 {
		ev.ID = d.str("the request id", uint64(d.byte("the request id")), MaxID)
	}
	if ev.Status != OK {
		ev.Subject = uint32(d.uvarint("the subject", 1<<32-1))
	}
	switch ev.Kind {
	case KindCatalog:
		ev.Catalog = d.bytes("the catalog", d.uvarint("the catalog's length", 1<<31))
	case KindAtomic:
		d.atomic(ev)
	default:
		d.body(ev, ev.Status)
	}
	if d.err != nil {
		return 0, d.err
	}
	return d.off, nil
}

func (d *decoder) status() Status {
	status := Status(d.byte("the status"))
	if d.err == nil && (status >= statusEnd || status == Aborted) {
		d.off--
		d.fail("status %d; a log holds 0 to %d", uint8(status), Aborted-1)
	}
	return status
}

// members reads the number of members of a group.
func (d *decoder) members(ev *Event) uint64 {
	n := d.uvarint("the number of members", MaxAtomic)
	if d.err == nil && (n == 0 || (ev.Status != OK && uint64(ev.Failed) >= n)) {
		d.fail("a group of %d members, of which number %d failed", n, ev.Failed)
		return 0
	}
	return n
}

func (d *decoder) atomic(ev *Event) {
	if ev.Status != OK {
		ev.Failed = uint32(d.uvarint("the failed member", MaxAtomic-1))
	}
	n := d.members(ev)
	for i := uint64(0); i < n && d.err == nil; i++ {
		m := ev.member()
		head := d.byte("a member's head")
		m.Kind = Kind(head >> 3)
		if head&7 != 0 || m.Kind < KindDraw || m.Kind > KindTransfer {
			d.off--
			d.fail("unknown member: head %#02x", head)
			return
		}
		d.body(m, ev.Status)
	}
}

func (d *decoder) body(ev *Event, status Status) {
	ev.Player = d.ref("the player", MaxPlayers, MaxID)
	if ev.Kind == KindDraw {
		ev.Pool = d.ref("the pool", maxPoolsEver, catalog.MaxID)
		ev.Count = uint32(d.uvarint("the count", MaxDrawCount))
		if ev.Count == 0 {
			d.fail("a draw of nothing")
		}
		if status == OK {
			d.choices(ev)
		}
		return
	}
	if ev.Kind == KindTransfer {
		ev.To = d.ref("the receiver", MaxPlayers, MaxID)
	}
	n := d.uvarint("the number of items", MaxStacks)
	if n == 0 {
		d.fail("no items")
	}
	for i := uint64(0); i < n && d.err == nil; i++ {
		it := ItemRef{Ref: d.ref("an item", maxItemsEver, maxUnknownID)}
		if it.Quantity = d.uvarint("a quantity", MaxQuantity); it.Quantity == 0 {
			d.fail("a quantity of 0")
		}
		ev.Items = append(ev.Items, it)
	}
}

func (d *decoder) choices(ev *Event) {
	for i := uint32(0); i < ev.Count && d.err == nil; {
		v := d.uvarint("a choice", maxEntriesEver<<2-1)
		c := Choice{Entry: uint32(v >> 2)}
		switch v & 3 {
		case choicePlain:
			i++
		case choiceNested:
			c.Nested = true
		case choiceRanged:
			i++
			c.Ranged = d.byte("a choice's quantities")
			if c.Ranged == 0 || c.Ranged > catalog.MaxBundle {
				d.fail("a choice with %d quantities; 1 to %d are possible", c.Ranged, catalog.MaxBundle)
			}
			for range c.Ranged {
				q := d.uvarint("a chosen quantity", MaxQuantity)
				if q == 0 {
					d.fail("a chosen quantity of 0")
				}
				ev.Quantities = append(ev.Quantities, q)
			}
		default:
			d.fail("unknown detail 3 of a choice")
		}
		ev.Choices = append(ev.Choices, c)
	}
}
