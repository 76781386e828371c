package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kuji-dev/kuji/internal/format"
)

// The canonical form is how a catalog stands in logs. It is written in one way
// only, so that its SHA-256 names the catalog. A form once written must be
// readable for ever: a change needs a new version, and limits may only rise.
//
//	form       "KUJICAT" version(1 byte: 0x03) name zone items pools start count age ids ahead guesses
//	zone       name [ number { from offset+86399 } ]   ([…] only if name is not empty)
//	items      number { id kind(1 byte) name }
//	guesses    per(1 byte; 0: none, and nothing follows) count
//	pools      number { id name mode(1 byte) flags(1 byte) price bundles free redeem starts ends max_count
//	                    limits when rolls tracks guarantees last refill budgets weight_scale entries }
//	flags      1 internal, 2 memoryless, 4 rolls are distinct
//	price      number { stacks }
//	bundles    number { draws stacks }
//	free       per(1 byte; 0: none, and nothing follows) draws
//	redeem     number { list times uses until }
//	when       stacks names number { track draws }
//	rolls      min max-min
//	tracks     number { name names certain from [ table(1 byte) scale number { by } ] share }
//	                                                  ([…] only if from is not 0)
//	guarantees number { draws at_least names }
//	budgets    number { per(1 byte) stacks share }
//	names      number { text }
//	start      stacks
//	stacks     number { item quantity }
//	limits     number { per(1 byte) window draws }
//	entries    number { id weight stock flags(1 byte) [ group ] [ when ] [ luck ] [ moments ] reward }
//	flags      1 group follows, 2 when follows, 4 unique, 8 luck follows, 16 moments follow
//	stock      0: unlimited; else the stock + 1
//	luck       of(1 byte; 1: an item, 2: a track) name number { from weight }
//	moments    count spread(1 byte) pass(1 byte) number { when weight }
//	reward     number { item min max-min } number { pool-id min max-min } names (lists of codes)
//	last       reward
//
// Text is its length in bytes, then the bytes. Every number but the single
// bytes is an unsigned LEB128 in its shortest form; starts, ends and windows
// count milliseconds, offsets and their times seconds, age nanoseconds. Nothing follows guesses.
const (
	canonicalMagic  = "KUJICAT"
	canonicalOldest = 3
)

// What luck counts.
const (
	luckItem  = 1
	luckTrack = 2
)

// MaxCanonical is the longest canonical form, in bytes. It is shorter than the
// source in practice.
const MaxCanonical = MaxBytes

// AppendCanonical appends the canonical form of c to b. The result has no
// meaning if [Catalog.Check] refuses c.
func (c *Catalog) AppendCanonical(b []byte) []byte {
	b = append(b, canonicalMagic...)
	b = append(b, format.Catalog(c.level()))
	b = appendText(b, c.Name)
	b = c.Zone.append(b)
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
	b = binary.AppendUvarint(b, uint64(c.Idempotency.Age))
	b = append(b, byte(c.Idempotency.IDs))
	b = binary.AppendUvarint(b, uint64(c.Idempotency.Ahead))
	if b = append(b, byte(c.Guesses.Per)); c.Guesses.Per != 0 {
		b = binary.AppendUvarint(b, c.Guesses.Count)
	}
	return b
}

func (p *Pool) append(b []byte) []byte {
	b = appendText(b, p.ID)
	b = appendText(b, p.Name)
	b = append(b, byte(p.Mode), bit(p.Internal, 1)|bit(p.Memoryless, 2)|bit(p.Rolls.Distinct, 4))
	b = appendNumber(b, len(p.Price))
	for _, one := range p.Price {
		b = appendStacks(b, one)
	}
	b = appendNumber(b, len(p.Bundles))
	for i := range p.Bundles {
		b = binary.AppendUvarint(b, uint64(p.Bundles[i].Draws))
		b = appendStacks(b, p.Bundles[i].Price)
	}
	b = append(b, byte(p.Free.Per))
	if p.Free.Per != 0 {
		b = binary.AppendUvarint(b, p.Free.Draws)
	}
	b = appendRedeem(b, p.Redeem)
	b = binary.AppendUvarint(b, uint64(p.StartsAt))
	b = binary.AppendUvarint(b, uint64(p.EndsAt))
	b = binary.AppendUvarint(b, uint64(p.MaxCount))
	b = appendNumber(b, len(p.Limits))
	for _, l := range p.Limits {
		b = append(b, byte(l.Per))
		b = binary.AppendUvarint(b, uint64(l.Window))
		b = binary.AppendUvarint(b, l.Draws)
	}
	b = p.When.append(b)
	b = binary.AppendUvarint(b, uint64(p.Rolls.Min))
	b = binary.AppendUvarint(b, uint64(p.Rolls.Max-p.Rolls.Min))
	b = appendNumber(b, len(p.Tracks))
	for i := range p.Tracks {
		b = p.Tracks[i].append(b)
	}
	b = appendNumber(b, len(p.Guarantees))
	for i := range p.Guarantees {
		g := &p.Guarantees[i]
		b = binary.AppendUvarint(b, uint64(g.Draws))
		b = binary.AppendUvarint(b, uint64(g.AtLeast))
		b = appendNames(b, g.Of)
	}
	b = p.Last.append(b)
	b = binary.AppendUvarint(b, uint64(p.Refill))
	b = appendNumber(b, len(p.Budgets))
	for i := range p.Budgets {
		b = append(b, byte(p.Budgets[i].Per))
		b = appendStacks(b, p.Budgets[i].Of)
		b = appendText(b, p.Budgets[i].Share)
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
		b = append(b, bit(e.Group != "", 1)|bit(!e.When.Empty(), 2)|bit(e.Unique, 4)|bit(!e.Luck.Empty(), 8)|bit(e.Moments.Count > 0, 16))
		if e.Group != "" {
			b = appendText(b, e.Group)
		}
		if !e.When.Empty() {
			b = e.When.append(b)
		}
		if !e.Luck.Empty() {
			b = e.Luck.append(b)
		}
		if e.Moments.Count > 0 {
			b = e.Moments.append(b)
		}
		b = e.Reward.append(b)
	}
	return b
}

func (c *Condition) append(b []byte) []byte {
	b = appendStacks(b, c.Holds)
	b = appendNames(b, c.Lacks)
	b = appendNumber(b, len(c.Tracks))
	for _, t := range c.Tracks {
		b = appendText(b, t.Track)
		b = binary.AppendUvarint(b, t.Draws)
	}
	return b
}

func (l *Luck) append(b []byte) []byte {
	if l.Item != "" {
		b = appendText(append(b, luckItem), l.Item)
	} else {
		b = appendText(append(b, luckTrack), l.Track)
	}
	b = appendNumber(b, len(l.Steps))
	for _, s := range l.Steps {
		b = binary.AppendUvarint(b, s.From)
		b = binary.AppendUvarint(b, s.Weight)
	}
	return b
}

func (t *Track) append(b []byte) []byte {
	b = appendText(b, t.Name)
	b = appendNames(b, t.Of)
	b = binary.AppendUvarint(b, uint64(t.Certain))
	b = binary.AppendUvarint(b, uint64(t.Rising.From))
	if t.Rising.From != 0 {
		b = append(b, bit(t.Rising.Table, 1))
		b = binary.AppendUvarint(b, t.Rising.Scale)
		b = appendNumber(b, len(t.Rising.By))
		for _, by := range t.Rising.By {
			b = binary.AppendUvarint(b, by)
		}
	}
	return appendText(b, t.Share)
}

func appendNames(b []byte, names []string) []byte {
	b = appendNumber(b, len(names))
	for _, name := range names {
		b = appendText(b, name)
	}
	return b
}

// bit returns a flag.
func bit(set bool, flag byte) byte {
	if set {
		return flag
	}
	return 0
}

func (w *Reward) append(b []byte) []byte {
	b = appendNumber(b, len(w.Items))
	for i := range w.Items {
		q := &w.Items[i]
		b = appendText(b, q.Item)
		b = binary.AppendUvarint(b, q.Min)
		b = binary.AppendUvarint(b, q.Max-q.Min)
	}
	b = appendNumber(b, len(w.Draws))
	for i := range w.Draws {
		d := &w.Draws[i]
		b = appendText(b, d.Pool)
		b = binary.AppendUvarint(b, uint64(d.Min))
		b = binary.AppendUvarint(b, uint64(d.Max-d.Min))
	}
	return appendNames(b, w.Codes)
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

// words returns the words of the catalog that not every format level has, each once: see package format.
// A catalog has the form of the version that its newest word needs, so that one without new words has the
// form, and the hash, that it has always had.
func (c *Catalog) words() []format.Word { return probeWords(c) }

// level returns the format level that the catalog needs.
func (c *Catalog) level() format.Level {
	need := format.First
	for _, w := range c.words() {
		need = max(need, format.Need(w.Of, w.Name))
	}
	return need
}

// Allow refuses a catalog with words that a realm of a format level does not have, and names the first.
// Levels are numbers, as in the status of a realm.
func (c *Catalog) Allow(level uint8) error {
	for _, w := range c.words() {
		if err := format.Allow(format.Level(level), w); err != nil {
			return err
		}
	}
	return nil
}

// Hash returns the SHA-256 of the canonical form.
func (c *Catalog) Hash() [sha256.Size]byte { return sha256.Sum256(c.AppendCanonical(nil)) }

// Decode reads a canonical form. It accepts only what AppendCanonical writes
// for a catalog that passes [Catalog.Check], byte for byte, or that an older build
// took though its pity promises what never comes. It keeps nothing of b. Errors wrap [ErrCanonical], and *[Errors] if the form is readable but the
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
	if err := c.check(false); err != nil {
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
	version := d.byte()
	if err := format.Newer("catalog", uint64(version), uint64(format.Catalog(format.Newest))); err != nil && d.err == nil {
		d.err, d.rest = fmt.Errorf("%w: %w", ErrCanonical, err), nil
	}
	if version < canonicalOldest {
		d.fail("expected version %d or later, found %d", canonicalOldest, version)
	}
	c := &Catalog{Name: d.text(MaxName)}
	d.zone(&c.Zone)
	c.Items = some[Item](d.count(MaxItems, 3))
	for i := range c.Items {
		item := &c.Items[i]
		item.ID = d.ref()
		item.Kind = ItemKind(d.byte())
		item.Name = d.text(MaxName)
	}
	c.Pools = some[Pool](d.count(MaxPools, 25))
	left := MaxEntries
	for i := range c.Pools {
		d.pool(&c.Pools[i], left)
		left -= len(c.Pools[i].Entries)
	}
	c.Start = d.stacks()
	c.Idempotency.Count = uint32(d.small("a count of ids", MaxIdempotencyCount))
	c.Idempotency.Age = time.Duration(d.small("an age", uint64(MaxIdempotencyAge)))
	c.Idempotency.IDs = IDForm(d.byte())
	c.Idempotency.Ahead = time.Duration(d.small("how far ids may be ahead", uint64(MaxAhead)))
	if c.Guesses.Per = Per(d.byte()); c.Guesses.Per != 0 {
		c.Guesses.Count = d.number()
	}
	if want := format.Catalog(c.level()); d.err == nil && version != want {
		d.fail("a form of version %d; this catalog has the form of version %d", version, want)
	}
	return c
}

func (d *decoder) stacks() []Stack {
	all := some[Stack](d.count(MaxBundle, 3))
	for i := range all {
		all[i] = Stack{d.ref(), d.number()}
	}
	return all
}

func (d *decoder) pool(p *Pool, maxEntries int) {
	p.ID = d.ref()
	p.Name = d.text(MaxName)
	p.Mode = Mode(d.byte())
	flags := d.flags(7)
	p.Internal, p.Memoryless, p.Rolls.Distinct = flags&1 != 0, flags&2 != 0, flags&4 != 0
	p.Price = some[[]Stack](d.count(MaxPrices, 1))
	for i := range p.Price {
		p.Price[i] = d.stacks()
	}
	p.Bundles = some[Bundle](d.count(MaxPrices, 2))
	for i := range p.Bundles {
		p.Bundles[i].Draws = uint32(d.small("draws", MaxDrawCount))
		p.Bundles[i].Price = d.stacks()
	}
	if p.Free.Per = Per(d.byte()); p.Free.Per != 0 {
		p.Free.Draws = d.number()
	}
	p.Redeem = d.redeem()
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
	d.condition(&p.When)
	p.Rolls.Min, p.Rolls.Max = d.times()
	p.Tracks = some[Track](d.count(MaxTracks, 5))
	for i := range p.Tracks {
		d.track(&p.Tracks[i])
	}
	p.Guarantees = some[Guarantee](d.count(MaxTracks, 3))
	for i := range p.Guarantees {
		g := &p.Guarantees[i]
		g.Draws = uint32(d.small("draws", MaxDrawCount))
		g.AtLeast = uint32(d.small("a number of draws", MaxDrawCount))
		g.Of = d.names(MaxConditions)
	}
	d.reward(&p.Last)
	p.Refill = uint32(d.small("a number of boxes", MaxRefill))
	p.Budgets = some[Budget](d.count(MaxBudgets, 3))
	for i := range p.Budgets {
		p.Budgets[i] = Budget{Per: Per(d.byte()), Of: d.stacks(), Share: d.ref()}
	}
	p.WeightScale = d.number()
	p.Entries = some[Entry](d.count(maxEntries, 7))
	for i := range p.Entries {
		e := &p.Entries[i]
		e.ID = d.text(MaxID)
		e.Weight = d.number()
		if n := d.number(); n == 0 {
			e.Stock.Unlimited = true
		} else {
			e.Stock.Count = n - 1
		}
		flags := d.flags(31)
		if flags&1 != 0 {
			if e.Group = d.ref(); e.Group == "" {
				d.fail("expected the name of a group")
			}
		}
		if flags&2 != 0 {
			if d.condition(&e.When); e.When.Empty() {
				d.fail("expected a condition that asks for something")
			}
		}
		e.Unique = flags&4 != 0
		if flags&8 != 0 {
			d.luck(&e.Luck)
		}
		if flags&16 != 0 {
			d.moments(&e.Moments)
		}
		d.reward(&e.Reward)
	}
}

// flags reads a byte of flags.
func (d *decoder) flags(known byte) byte {
	v := d.byte()
	if v&^known != 0 {
		d.fail("unknown flags %#x", v&^known)
		return 0
	}
	return v
}

// times reads a range of how often something is done.
func (d *decoder) times() (low, high uint32) {
	low = uint32(d.small("a number of times", MaxPicks))
	return low, low + uint32(d.small("a number of times", MaxPicks))
}

func (d *decoder) names(most int) []string {
	all := some[string](d.count(most, 2))
	for i := range all {
		all[i] = d.ref()
	}
	return all
}

func (d *decoder) condition(c *Condition) {
	c.Holds = d.stacks()
	c.Lacks = d.names(MaxConditions)
	c.Tracks = some[Reached](d.count(MaxTracks, 3))
	for i := range c.Tracks {
		c.Tracks[i] = Reached{d.ref(), d.number()}
	}
}

func (d *decoder) luck(l *Luck) {
	switch of := d.byte(); of {
	case luckItem:
		l.Item = d.ref()
	case luckTrack:
		l.Track = d.ref()
	default:
		d.fail("expected %d or %d, what luck counts, found %d", luckItem, luckTrack, of)
	}
	if l.Steps = some[LuckStep](d.count(MaxLuckSteps, 2)); l.Empty() {
		d.fail("expected at least one step of luck")
	}
	for i := range l.Steps {
		l.Steps[i] = LuckStep{d.number(), d.number()}
	}
}

func (d *decoder) track(t *Track) {
	t.Name = d.ref()
	t.Of = d.names(MaxConditions)
	t.Certain = uint32(d.small("a number of draws", MaxTrackDraws))
	if t.Rising.From = uint32(d.small("a number of draws", MaxTrackDraws)); t.Rising.From != 0 {
		t.Rising.Table = d.flags(1) != 0
		t.Rising.Scale = d.number()
		t.Rising.By = some[uint64](d.count(MaxTrackTable, 1))
		for i := range t.Rising.By {
			t.Rising.By[i] = d.number()
		}
	}
	t.Share = d.ref()
}

func (d *decoder) reward(w *Reward) {
	w.Items = some[Quantity](d.count(MaxBundle, 3))
	for i := range w.Items {
		q := &w.Items[i]
		q.Item = d.ref()
		q.Min = d.number()
		q.Max = q.Min + d.number()
	}
	w.Draws = some[Inner](d.count(MaxInner, 3))
	for i := range w.Draws {
		in := &w.Draws[i]
		in.Pool = d.ref()
		in.Min, in.Max = d.times()
	}
	w.Codes = d.names(MaxCodes)
}
