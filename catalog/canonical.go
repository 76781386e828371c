package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/internal/format"
)

// The canonical form is how a catalog stands in logs. There is one for each catalog, so that its SHA-256
// names the catalog. docs/internals/formats/catalog.md shows every byte. Every build reads what an older
// one wrote: a change needs a new version, and limits may only rise.
const (
	canonicalMagic  = "KUJICAT"
	canonicalOldest = 3
)

// What luck counts.
const (
	luckItem    = 1
	luckTrack   = 2
	luckCounter = 3 // from version 4 on
)

// MaxCanonical is the longest canonical form, in bytes. It is shorter than the source in practice.
const MaxCanonical = MaxBytes

// AppendCanonical appends the canonical form of c, which [Catalog.Check] must accept, to b.
func (c *Catalog) AppendCanonical(b []byte) []byte {
	size := 0 // about
	for i := range c.Pools {
		size += 32 * len(c.Pools[i].Entries)
	}
	b = append(slices.Grow(b, size), canonicalMagic...)
	version := format.Catalog(c.level())
	x := &coder{version: version, out: append(b, version)}
	c.code(x)
	return x.out
}

// words returns the catalog's words that not every format level has, each once: see package format. The
// form has the version that the newest word needs, so without new words a catalog keeps its hash.
func (c *Catalog) words() []format.Word {
	all := slices.Concat(c.itemWords(), displayWords(c), probeWords(c))
	for _, w := range []struct {
		name string
		used bool
	}{
		{"counters", len(c.Counters) > 0},
		{"quests", len(c.Quests) > 0},
		{"day", c.Day != Day{}},
		{"seasons", len(c.Seasons) > 0},
		{"per: month", c.countsMonths()},
		{"price_by", c.anyPriceBy()},
		{"rounds", len(c.Rounds) > 0},
		{"purchases", c.Idempotency.Purchases != ""},
		{"ranked", slices.ContainsFunc(c.Counters, func(c Counter) bool { return c.Ranked.Is })},
	} {
		if w.used {
			all = append(all, format.Word{Of: "catalog", Name: w.name})
		}
	}
	return all
}

// level returns the format level that the catalog needs.
func (c *Catalog) level() format.Level {
	need := format.First
	for _, w := range c.words() {
		need = max(need, format.Need(w.Of, w.Name))
	}
	return need
}

// Allow refuses a catalog with words that a realm of a format level does not have. The error names one.
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

// Decode reads a canonical form. It accepts only what AppendCanonical writes, byte for byte, for a catalog
// that [Catalog.Check] accepts, or that an older build took though its pity promises what never comes. It
// keeps nothing of b. Errors wrap [ErrCanonical], and *[Errors] if only the catalog in the form is wrong.
func Decode(b []byte) (*Catalog, error) {
	if len(b) > MaxCanonical {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrCanonical, MaxCanonical, len(b))
	}
	x := &coder{reading: true, rest: b, size: len(b), seen: map[string]string{}, entriesLeft: MaxEntries}
	x.version = x.begin()
	c := &Catalog{}
	c.code(x)
	if want := format.Catalog(c.level()); x.err == nil && x.version != want {
		x.fail("a form of version %d; this catalog has the form of version %d", x.version, want)
	}
	if x.err == nil && len(x.rest) > 0 {
		x.fail("expected the end, found %d more bytes", len(x.rest))
	}
	if x.err != nil {
		return nil, x.err
	}
	if err := c.check(false); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCanonical, err)
	}
	return c, nil
}

// coder writes a canonical form, or reads one. The methods named code describe the form once, for both.
type coder struct {
	version byte   // of the form
	out     []byte // the form so far, when writing

	reading     bool
	rest        []byte            // what is still to be read
	size        int               // of the whole form
	err         error             // after the first error, only zeros are read
	seen        map[string]string // one copy of each id that is referred to: a million rewards share it
	entriesLeft int               // how many entries all further pools can have
}

func (x *coder) fail(format string, args ...any) {
	if x.err == nil {
		at := x.size - len(x.rest)
		x.err = fmt.Errorf("%w: at byte %d: %s", ErrCanonical, at, fmt.Sprintf(format, args...))
		x.rest = nil
	}
}

// begin reads the magic and the version.
func (x *coder) begin() (version byte) {
	for i := range len(canonicalMagic) {
		if x.next() != canonicalMagic[i] {
			x.fail("expected %q first", canonicalMagic)
		}
	}
	version = x.next()
	if err := format.Newer("catalog", uint64(version), uint64(format.Catalog(format.Newest))); err != nil && x.err == nil {
		x.err, x.rest = fmt.Errorf("%w: %w", ErrCanonical, err), nil
	}
	if version < canonicalOldest {
		x.fail("expected version %d or later, found %d", canonicalOldest, version)
	}
	return version
}

// next reads a byte.
func (x *coder) next() byte {
	if len(x.rest) == 0 {
		x.fail("expected a byte, found the end")
		return 0
	}
	v := x.rest[0]
	x.rest = x.rest[1:]
	return v
}

// kind is a byte.
func kind[T ~uint8](x *coder, v *T) {
	if x.reading {
		*v = T(x.next())
	} else {
		x.out = append(x.out, byte(*v))
	}
}

// flags are up to eight flags in a byte, the lowest bit first.
func (x *coder) flags(all ...*bool) {
	var bits byte
	if x.reading {
		bits = x.next()
		if unknown := bits >> len(all) << len(all); unknown != 0 {
			x.fail("unknown flags %#x", unknown)
			bits = 0
		}
		for i, set := range all {
			*set = bits>>i&1 != 0
		}
		return
	}
	for i, set := range all {
		if *set {
			bits |= 1 << i
		}
	}
	x.out = append(x.out, bits)
}

// number is a number that fits in a T. What more it must be, the check says.
func number[T ~uint32 | ~int64 | ~uint64](x *coder, v *T) {
	if !x.reading {
		x.put(uint64(*v))
		return
	}
	n := x.nextNumber()
	if *v = T(n); uint64(*v) != n || *v < 0 {
		x.fail("expected a smaller number, found %d", n)
		*v = 0
	}
}

// put writes a number.
func (x *coder) put(v uint64) {
	if v < 0x80 {
		x.out = append(x.out, byte(v))
	} else {
		x.out = binary.AppendUvarint(x.out, v)
	}
}

// nextNumber reads a number.
func (x *coder) nextNumber() uint64 {
	if len(x.rest) > 0 && x.rest[0] < 0x80 {
		return uint64(x.next())
	}
	v, n := binary.Uvarint(x.rest)
	switch {
	case n <= 0:
		x.fail("expected a number of at most 64 bits, found something else or the end")
		return 0
	case n > 1 && x.rest[n-1] == 0:
		x.fail("expected a number in its shortest form")
		return 0
	}
	x.rest = x.rest[n:]
	return v
}

// nextCount reads how many elements follow, each at least size bytes long: Decode allocates no more.
func (x *coder) nextCount(most, size int) int {
	n := x.nextNumber()
	switch {
	case n > uint64(most):
		x.fail("expected a count of at most %d, found %d", most, n)
	case int(n)*size > len(x.rest):
		x.fail("expected %d elements, found only %d bytes", n, len(x.rest))
	default:
		return int(n)
	}
	return 0
}

// many is a list of at most most elements, each at least size bytes long. Read, an empty one is nil.
func many[T any](x *coder, all *[]T, most, size int, one func(v *T, x *coder)) {
	if !x.reading {
		x.put(uint64(len(*all)))
	} else if n := x.nextCount(most, size); n > 0 {
		*all = make([]T, n)
	}
	for i := range *all {
		one(&(*all)[i], x)
	}
}

// bytes reads a text.
func (x *coder) bytes(most int) []byte {
	n := x.nextCount(most, 1)
	v := x.rest[:n]
	x.rest = x.rest[n:]
	return v
}

// text is a text.
func (x *coder) text(s *string, most int) {
	if x.reading {
		*s = string(x.bytes(most))
	} else {
		x.out = append(binary.AppendUvarint(x.out, uint64(len(*s))), *s...)
	}
}

func (x *coder) name(s *string) { x.text(s, MaxName) }

// ref is an id that stands elsewhere too.
func (x *coder) ref(s *string) {
	if !x.reading {
		x.text(s, MaxID)
		return
	}
	b := x.bytes(MaxID)
	known, ok := x.seen[string(b)]
	if !ok {
		known = string(b)
		x.seen[known] = known
	}
	*s = known
}

// refs are at most most of them.
func (x *coder) refs(all *[]string, most int) {
	many(x, all, most, 2, func(s *string, x *coder) { x.ref(s) })
}

// span is a range.
func span[T uint32 | uint64](x *coder, low, high *T) {
	more := *high - *low
	number(x, low)
	if number(x, &more); x.reading {
		*high = *low + more
	}
}

func (c *Catalog) code(x *coder) {
	x.name(&c.Name)
	c.Zone.code(x)
	many(x, &c.Items, MaxItems, 3, (*Item).code)
	many(x, &c.Pools, MaxPools, 25, (*Pool).code)
	stacks(&c.Start, x)
	number(x, &c.Idempotency.Count)
	number(x, &c.Idempotency.Age)
	kind(x, &c.Idempotency.IDs)
	number(x, &c.Idempotency.Ahead)
	if kind(x, &c.Guesses.Per); c.Guesses.Per != 0 {
		number(x, &c.Guesses.Count)
	}
	if x.version >= 4 {
		many(x, &c.Counters, MaxCounters, 15, (*Counter).code)
		many(x, &c.Quests, MaxQuests, 13, (*Quest).code)
		c.Day.code(x)
		many(x, &c.Seasons, MaxSeasons, 4, (*Season).code)
	}
	if x.version >= 5 {
		many(x, &c.Rounds, MaxRounds, 18, (*Round).code)
		x.text(&c.Idempotency.Purchases, MaxPurchases)
	}
	if x.version >= 6 {
		codeTexts(c, x)
	}
}

func (i *Item) code(x *coder) {
	x.ref(&i.ID)
	kind(x, &i.Kind)
	x.name(&i.Name)
	if x.version >= 4 {
		i.codeRules(x)
	}
	if x.version >= 6 {
		i.Display.code(x)
	}
}

// stacks are items with quantities.
func stacks(all *[]Stack, x *coder) { many(x, all, MaxBundle, 3, (*Stack).code) }

func (s *Stack) code(x *coder) {
	x.ref(&s.Item)
	number(x, &s.Quantity)
}

func (p *Pool) code(x *coder) {
	x.ref(&p.ID)
	x.name(&p.Name)
	kind(x, &p.Mode)
	x.flags(&p.Internal, &p.Memoryless, &p.Rolls.Distinct)
	many(x, &p.Price, MaxPrices, 1, stacks)
	many(x, &p.Bundles, MaxPrices, 2, (*Bundle).code)
	if kind(x, &p.Free.Per); p.Free.Per != 0 {
		number(x, &p.Free.Draws)
	}
	many(x, &p.Redeem, MaxRedeem, 4, (*Redeem).code)
	number(x, &p.StartsAt)
	number(x, &p.EndsAt)
	number(x, &p.MaxCount)
	many(x, &p.Limits, MaxPlayerLimits, 3, (*PlayerLimit).code)
	p.When.code(x)
	span(x, &p.Rolls.Min, &p.Rolls.Max)
	many(x, &p.Tracks, MaxTracks, 5, (*Track).code)
	many(x, &p.Guarantees, MaxTracks, 3, (*Guarantee).code)
	p.Last.code(x)
	number(x, &p.Refill)
	many(x, &p.Budgets, MaxBudgets, 3, (*Budget).code)
	number(x, &p.WeightScale)
	many(x, &p.Entries, x.entriesLeft, 7, (*Entry).code)
	x.entriesLeft -= len(p.Entries)
	if x.version >= 4 {
		p.PriceBy.code(x)
	}
	if x.version >= 6 {
		p.Display.code(x)
	}
}

func (b *Bundle) code(x *coder) {
	number(x, &b.Draws)
	stacks(&b.Price, x)
}

func (l *PlayerLimit) code(x *coder) {
	kind(x, &l.Per)
	number(x, &l.Window)
	number(x, &l.Draws)
}

func (g *Guarantee) code(x *coder) {
	number(x, &g.Draws)
	number(x, &g.AtLeast)
	x.refs(&g.Of, MaxConditions)
}

func (b *Budget) code(x *coder) {
	kind(x, &b.Per)
	stacks(&b.Of, x)
	x.ref(&b.Share)
}

func (e *Entry) code(x *coder) {
	x.text(&e.ID, MaxID)
	number(x, &e.Weight)
	stock := e.Stock.Count + 1
	if e.Stock.Unlimited {
		stock = 0
	}
	if number(x, &stock); x.reading && stock == 0 {
		e.Stock.Unlimited = true
	} else if x.reading {
		e.Stock.Count = stock - 1
	}
	group, when, luck, moments := e.Group != "", !e.When.Empty(), !e.Luck.Empty(), e.Moments.Count > 0
	x.flags(&group, &when, &e.Unique, &luck, &moments)
	if group {
		if x.ref(&e.Group); e.Group == "" {
			x.fail("expected the name of a group")
		}
	}
	if when {
		if e.When.code(x); e.When.Empty() {
			x.fail("expected a condition that asks for something")
		}
	}
	if luck {
		e.Luck.code(x)
	}
	if moments {
		e.Moments.code(x)
	}
	e.Reward.code(x)
}

func (c *Condition) code(x *coder) {
	stacks(&c.Holds, x)
	x.refs(&c.Lacks, MaxConditions)
	many(x, &c.Tracks, MaxTracks, 3, (*Reached).code)
	if x.version >= 4 {
		many(x, &c.Counters, MaxConditions, 4, (*Counted).code)
		many(x, &c.Quests, MaxConditions, 3, (*Done).code)
	}
}

func (r *Reached) code(x *coder) {
	x.ref(&r.Track)
	number(x, &r.Draws)
}

func (l *Luck) code(x *coder) {
	of := byte(luckTrack)
	switch {
	case l.Item != "":
		of = luckItem
	case l.Counter != "":
		of = luckCounter
	}
	if kind(x, &of); of == luckCounter && x.version < 4 {
		of = 0
	}
	switch of {
	case luckItem:
		x.ref(&l.Item)
	case luckTrack:
		x.ref(&l.Track)
	case luckCounter:
		x.ref(&l.Counter)
	default:
		x.fail("expected %d to %d, what luck counts, found something else", luckItem, luckCounter)
	}
	if many(x, &l.Steps, MaxLuckSteps, 2, (*LuckStep).code); l.Empty() {
		x.fail("expected at least one step of luck")
	}
}

func (s *LuckStep) code(x *coder) {
	number(x, &s.From)
	number(x, &s.Weight)
}

func (t *Track) code(x *coder) {
	x.ref(&t.Name)
	x.refs(&t.Of, MaxConditions)
	number(x, &t.Certain)
	r := &t.Rising
	if number(x, &r.From); r.From != 0 {
		x.flags(&r.Table)
		number(x, &r.Scale)
		many(x, &r.By, MaxTrackTable, 1, func(by *uint64, x *coder) { number(x, by) })
	}
	x.ref(&t.Share)
}

func (w *Reward) code(x *coder) {
	many(x, &w.Items, MaxBundle, 3, (*Quantity).code)
	many(x, &w.Draws, MaxInner, 3, (*Inner).code)
	x.refs(&w.Codes, MaxCodes)
}

func (q *Quantity) code(x *coder) {
	x.ref(&q.Item)
	span(x, &q.Min, &q.Max)
}

func (in *Inner) code(x *coder) {
	x.ref(&in.Pool)
	span(x, &in.Min, &in.Max)
}
