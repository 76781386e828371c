package store

import (
	"bytes"
	"fmt"
	"math"

	"github.com/kuji-dev/kuji/internal/format"
)

// Loader rebuilds a state from snapshots: one that holds the whole state, then those that build on
// it, in order.
type Loader struct {
	s       *State
	keep    bool   // players and requests; otherwise they are only checked and counted
	seen    uint64 // players, if they are not kept
	want    Extent // of the snapshot being loaded
	head    uint64 // number of its oldest request id
	base    uint32 // number of players in the base
	next    uint64 // the lowest player that may come next: they ascend, across blocks too
	kind    BlockKind
	tallied int      // how many counters the realm has
	last    idRecord // the last request loaded, without its answer
	upto    []byte   // where the last leaf of records ended
	ended   bool     // there are no keys after it

	noting
	slots []slot // scratch memory
}

// noting is what a loader keeps of records and of names.
type noting struct {
	noted     int // how many records there are
	notedSize uint64
	files     int  // snapshots loaded
	nameless  bool // a player's name is erased
}

// NewLoader returns a loader with an empty state.
func NewLoader() *Loader {
	l := &Loader{s: New(), keep: true}
	l.s.Alone(true)
	return l
}

// NewChecker returns a loader that finds out whether snapshots can be loaded, in little memory. It
// keeps codes and records, but neither players nor requests, and does not see that one of these is there twice.
// It has no state to give.
func NewChecker() *Loader {
	l := NewLoader()
	l.keep = false
	return l
}

func (l *Loader) count() uint64 {
	if l.keep {
		return uint64(l.s.players.count())
	}
	return l.seen
}

// Block loads the next block. Errors are *FormatError; the state is then unusable.
func (l *Loader) Block(kind BlockKind, data []byte) error {
	r := Reader{b: data}
	switch {
	case kind == 0 || kind >= blockEnd:
		r.Fail("unknown kind of block %d", kind) // a newer Kuji has another version in the header
	case kind < l.kind || (kind == BlockState) != (l.kind == 0):
		r.Fail("a block of kind %d after one of kind %d", kind, l.kind)
	default:
		l.kind = kind
		loads()[kind](l, &r)
	}
	l.s.release()
	return r.Err()
}

// loads returns what loads each kind of block. What is added after the reader has failed does not
// matter: the state is then unusable.
func loads() [blockEnd]func(*Loader, *Reader) {
	return [blockEnd]func(*Loader, *Reader){
		BlockState: (*Loader).state,
		BlockItems: func(l *Loader, r *Reader) {
			for r.same("the first item", uint64(len(l.s.names.items))); r.More(); {
				kind := r.Byte("an item's kind")
				r.try(l.s.names.addItem(string(r.name("an item", MaxName)), kind))
			}
		},
		BlockCounters: func(l *Loader, r *Reader) {
			for r.same("the first counters", uint64(len(l.s.names.counters))); r.More(); {
				width := uint32(r.Uint("a number of counters", MaxCounters))
				r.try(l.s.names.addCounters(string(r.name("counters", maxCounter)), width))
			}
		},
		BlockPools: func(l *Loader, r *Reader) {
			for r.same("the first pool", uint64(len(l.s.names.pools))); r.More(); {
				_, err := l.s.names.addPool(string(r.name("a pool", MaxName)))
				r.try(err)
			}
		},
		BlockEntries:  (*Loader).entries,
		BlockStock:    (*Loader).stock,
		BlockCatalog:  (*Loader).catalog,
		BlockPlayers:  (*Loader).players,
		BlockRequests: (*Loader).requests,
		BlockTallies:  (*Loader).tallies,
		BlockCodes:    (*Loader).codes,
		BlockGiven:    (*Loader).given,
		BlockUses:     (*Loader).uses,
		BlockLevel:    (*Loader).level,
		BlockOrders:   (*Loader).orders,
		BlockRecords:  (*Loader).records,
	}
}

func (l *Loader) level(r *Reader) {
	v := r.Uint("the format level", math.MaxUint8)
	r.newer("realm", v, uint64(format.Newest))
	if v <= uint64(format.First) || v < uint64(l.s.level) || r.More() {
		r.Fail("format level %d after %d", v, l.s.Level())
	}
	l.s.level = format.Level(v)
}

// orders loads which orders there are. They are filled when loading ends.
func (l *Loader) orders(r *Reader) {
	s := &l.s.orders
	if len(s.list) > 0 {
		r.Fail("a second block of orders")
	}
	for prev := int64(-1); r.More(); {
		counter, by := r.pair(&prev)
		if by > uint64(ByStanding) {
			r.Fail("an order of kind %d; want at most %d", by, ByStanding)
			return
		}
		_, err := s.add(uint32(counter), By(by), l.s.names.next, l.want.Position)
		r.try(err)
	}
}

// records loads leaves of records: each takes the place of what the base has from one key up to another.
func (l *Loader) records(r *Reader) {
	s := &l.s.records
	for r.More() {
		from := r.Bytes("a key", r.Uint("the length of a key", MaxKey))
		to := r.Bytes("a key", r.Uint("the length of a key", MaxKey))
		if l.ended || bytes.Compare(from, l.upto) < 0 || len(to) > 0 && bytes.Compare(from, to) >= 0 {
			r.Fail("records from %q to %q, after %q", from, to, l.upto)
			return
		}
		l.upto = append(l.upto[:0], to...)
		if len(to) == 0 {
			to, l.ended = nil, true
		}
		r.try(s.clear(from, to, l.want.Position))
		prev := []byte(nil)
		for range r.Uint("a number of records", MaxRecords) {
			n, size := r.Uint("the length of a key", MaxKey), r.Uint("the length of a value", MaxRecord)
			b := r.Bytes("a record", n+size)
			if r.err != nil {
				return
			}
			key := b[:n]
			if bytes.Compare(key, prev) <= 0 || bytes.Compare(key, from) < 0 || to != nil && bytes.Compare(key, to) >= 0 {
				r.Fail("the record %q after %q, from %q to %q", key, prev, from, to)
				return
			}
			prev = key
			r.try(s.put(key, b[n:], l.want.Position))
		}
	}
}

func (r *Reader) same(what string, want uint64) {
	if got := r.Uint(what, 1<<63); r.err == nil && got != want {
		r.Fail("%s is %d, want %d", what, got, want)
	}
}

func (r *Reader) try(err error) {
	if err != nil {
		r.Fail("%v", err)
	}
}

func (l *Loader) state(r *Reader) {
	s := l.s
	l.want.Position = r.Uint("the position", 1<<63)
	now := r.Uint("the time", math.MaxInt64-MaxBack)
	back := int64(r.Uint("how far the clock was set back", MaxBack))
	r.same("the base's position", s.applied)
	l.want.Version = r.Uint("the catalog's version", 1<<63)
	l.want.Items = uint32(r.Uint("the number of items", MaxItems))
	l.want.Counters = uint32(r.Uint("the number of counters", MaxCounters))
	l.want.Pools = uint32(r.Uint("the number of pools", MaxPools))
	l.want.Players = uint32(r.Uint("the number of players", MaxPlayers))
	l.head = r.Uint("the oldest request", 1<<63)
	l.want.IDs = r.Uint("the next request", 1<<63)
	w := window{count: uint32(r.Uint("the window", math.MaxUint32)), age: int64(r.Uint("the window's age", math.MaxInt64))}
	floor := int64(r.Uint("the floor of request ids", 1<<48))
	l.tallied = int(r.Uint("the number of the realm's counters", MaxTallies))
	l.codeLists(r)
	l.noted, l.notedSize = 0, 0
	if r.More() { // some records
		l.noted, l.notedSize = int(r.Uint("the number of records", MaxRecords)), r.Uint("the size of records", math.MaxInt64)
	}
	if r.More() {
		r.Fail("bytes after the state's numbers")
	}
	if l.want.Position < s.applied || int64(now)+back < s.now+s.back || back < s.back || l.head > l.want.IDs || l.head < s.ids.head || floor < s.ids.floor {
		r.Fail("position %d, time %d and %d, requests %d to %d do not follow the base's", l.want.Position, now, back, l.head, l.want.IDs)
	}
	if r.err != nil {
		return
	}
	s.tallies = nil // the snapshot has all of them
	s.orders.show(nil)
	l.upto, l.ended = nil, false
	l.base, l.next = uint32(l.count()), 0
	s.applied, s.now, s.back = l.want.Position, int64(now), back
	s.ids.window, s.ids.log = w, logTime{now: s.now + s.back, back: s.back, version: l.want.Version}
	if l.keep {
		s.ids.forgetBefore(l.head)
	} else {
		s.ids.head = max(s.ids.head, min(l.head, s.ids.tail))
	}
	if floor < s.ids.floor {
		r.Fail("the floor of request ids is %d; those that the snapshot forgets make it %d", floor, s.ids.floor)
	}
	s.ids.floor = floor
}

// pair reads the next of ascending keys, as its distance from the one before, and its value, which
// is not 0. prev is -1 before the first.
func (r *Reader) pair(prev *int64) (key, value uint64) {
	key = uint64(max(*prev, 0)) + r.Uint("a key's distance", math.MaxUint32)
	value = r.Uint("a value", math.MaxUint64)
	if key > math.MaxUint32 || int64(key) <= *prev || value == 0 {
		r.Fail("key %d, value %d, after key %d", key, value, *prev)
	}
	*prev = int64(key)
	return key, value
}

func (l *Loader) tallies(r *Reader) {
	t, prev := &l.s.tallies, int64(-1)
	if n := len(*t); n > 0 {
		prev = int64((*t)[n-1].Counter)
	}
	for r.More() {
		counter, v := r.pair(&prev)
		if counter >= uint64(l.s.names.next) || len(*t) >= MaxTallies {
			r.Fail("counter %d of %d of the realm, after %d of them", counter, l.s.names.next, len(*t))
		}
		*t = append(*t, CounterValue{Counter: uint32(counter), Value: v})
	}
}

// codeLists loads what the state's block says of each list of codes.
func (l *Loader) codeLists(r *Reader) {
	l.want.Codes = nil
	codes := &l.s.codes
	n := int(r.Uint("the number of code lists", MaxCodeLists))
	if n < len(codes.lists) {
		r.Fail("%d code lists, the base has %d", n, len(codes.lists))
	}
	for i := 0; i < n && r.err == nil; i++ {
		name, last := string(r.name("a code list", MaxName)), r.Uint("a code list's last change", l.want.Position)
		e := CodesExtent{Codes: r.Uint("a number of codes", maxListCodes)}
		e.Given = r.Uint("a number of given codes", e.Codes)
		e.Uses = r.Uint("a number of uses", MaxUses)
		if i == len(codes.lists) {
			r.try(codes.name(name))
		} else if have := codes.lists[i]; name != have.name || last < have.last.Load() {
			r.Fail("code list %q, changed at %d, follows %q, changed at %d", name, last, have.name, have.last.Load())
		}
		if r.err == nil {
			codes.lists[i].last.Store(last)
		}
		l.want.Codes = append(l.want.Codes, e)
	}
}

// codeList returns the list that a block is about, or nil after an error. The block's first number
// must be that of the next code, given code or use.
func (l *Loader) codeList(r *Reader, next func(*Codes) uint64) *codeList {
	num := r.Uint("a code list", MaxCodeLists)
	if r.err == nil && num >= uint64(len(l.want.Codes)) {
		r.Fail("code list number %d of %d", num, len(l.want.Codes))
	}
	if r.err != nil {
		return nil
	}
	list := l.s.codes.lists[num]
	r.same("the first code", next(&list.codes))
	return list
}

func (l *Loader) codes(r *Reader) {
	for list := l.codeList(r, (*Codes).Count); r.More(); {
		if code := r.name("a code", MaxCode); r.err == nil {
			r.try(l.s.codes.addCode(list, code))
		}
	}
}

func (l *Loader) given(r *Reader) {
	for list := l.codeList(r, (*Codes).Given); r.More(); {
		g := Handed{Code: list.codes.given.n}
		if l.handed(r, list, &g, list.codes.given.last().Position); r.err == nil {
			list.codes.given.push(g)
		}
	}
}

func (l *Loader) uses(r *Reader) {
	for list := l.codeList(r, (*Codes).Uses); r.More(); {
		u := Handed{Code: uint32(r.Uint("a code's number", maxListCodes))}
		l.handed(r, list, &u, list.codes.uses.last().Position)
		if r.err == nil {
			r.try(list.use(u))
		}
	}
}

// handed reads who got or used a code, and when: not before the position of the one before it.
func (l *Loader) handed(r *Reader, list *codeList, h *Handed, prev uint64) {
	h.Player = uint32(r.Uint("a player", MaxPlayers))
	h.Position = r.Uint("a position", list.last.Load())
	h.Time = int64(r.Uint("a time", uint64(l.s.now+l.s.back)))
	if uint64(h.Code) >= list.codes.Count() || uint64(h.Player) >= l.count() || h.Position < prev {
		r.Fail("code number %d of %d for player number %d at %d, after %d", h.Code, list.codes.Count(), h.Player, h.Position, prev)
	}
}

// pool returns the pool that a block is about, locked, or nil after an error.
func (l *Loader) pool(r *Reader) *pool {
	n := r.Uint("a pool", MaxPools)
	if r.err == nil && n >= uint64(len(l.s.names.pools)) {
		r.Fail("pool number %d of %d", n, len(l.s.names.pools))
	}
	if r.err != nil {
		return nil
	}
	p := l.s.names.pools[n]
	l.s.lockPool(p)
	return p
}

func (l *Loader) entries(r *Reader) {
	p := l.pool(r)
	last := r.Uint("a pool's last change", l.want.Position)
	if r.err != nil {
		return
	}
	p.last = last
	for r.same("the first entry", uint64(len(p.entryIDs))); r.More(); {
		r.try(p.grow(string(r.name("an entry", MaxName))))
	}
}

func (l *Loader) stock(r *Reader) {
	p := l.pool(r)
	chunk := r.Uint("a chunk of entries", MaxEntries)
	if r.err != nil {
		return
	}
	if chunk >= uint64(len(p.changed)) {
		r.Fail("chunk %d of %d entries", chunk, len(p.entryIDs))
		return
	}
	p.changed[chunk] = max(l.want.Position, 1)
	stock, drawn := p.entries(uint32(chunk))
	for i := range stock {
		stock[i] = r.Uint("a stock", math.MaxUint64) - 1
		drawn[i] = r.Uint("a number of draws", 1<<63)
	}
	if r.More() {
		r.Fail("more counts than entries")
	}
}

func (l *Loader) catalog(r *Reader) {
	s := l.s
	c := r.catalog(l.want.Version, l.want.Position, uint64(s.now+s.back))
	c.Bytes = bytes.Clone(c.Bytes)
	if c.Version <= s.catalog.Version {
		r.Fail("catalog version %d after %d", c.Version, s.catalog.Version)
	}
	s.catalog = c
}

// catalog reads the catalog in force. Its bytes alias what is read.
func (r *Reader) catalog(version, position, time uint64) (c InForce) {
	c.Version, c.Position = r.Uint("a version", version), r.Uint("a position", position)
	c.Index, c.Time = uint32(r.Uint("an index", math.MaxUint32)), int64(r.Uint("a time", time))
	c.Bytes = r.Bytes("a catalog", uint64(len(r.b)-r.off))
	return c
}

// players loads a block of players: some of the base's, then new ones.
func (l *Loader) players(r *Reader) {
	p := &l.s.players
	for from := uint64(0); r.More(); {
		n := from + r.Uint("a player's distance", MaxPlayers)
		known := l.count()
		switch {
		case r.err != nil:
			return
		case n < l.next || n > known || n < known && n >= uint64(l.base):
			r.Fail("player %d, want %d to %d", n, l.next, known)
			return
		}
		id := ""
		if n == known {
			if size := uint64(r.Byte("a player's id")); size > 0 {
				id = string(r.text("a player's id", size, MaxID))
			}
		}
		last := r.Uint("a player's last change", l.want.Position)
		if l.readSlots(r, n); r.err != nil {
			return
		}
		from, l.next = n+1, n+1
		if !l.keep {
			l.seen = max(l.seen, n+1)
			continue
		}
		if id != "" {
			h := p.key.hash(id)
			if p.lookup(id, h) != nil || n >= MaxPlayers {
				r.Fail("player %q, number %d, is there twice, or there are too many players", id, n)
				return
			}
			p.add(id, h, uint32(len(l.slots)))
		} else if n == known { // the name is erased
			if len(l.slots) > 0 || n >= MaxPlayers {
				r.Fail("player number %d has no name, and %d slots", n, len(l.slots))
				return
			}
			addNameless(p)
			l.nameless = true
		}
		l.place(uint32(n), last)
	}
}

func (l *Loader) readSlots(r *Reader, player uint64) {
	names := &l.s.names
	l.slots = l.slots[:0]
	prev := int64(-1)
	for range r.Uint("a player's holdings", uint64(len(r.b))) {
		key, v := r.pair(&prev)
		if !names.known(newSlot(uint32(key), v)) {
			r.Fail("player %d: a slot with key %d, value %d", player, key, v)
		}
		if r.err != nil {
			return
		}
		l.slots = append(l.slots, newSlot(uint32(key), v))
	}
}

func (l *Loader) place(n uint32, last uint64) {
	items := l.s.names.items
	p := &l.s.players
	b := p.at(n)
	p.lock(b.guard)
	for _, sl := range b.holdings() {
		if sl.key&counterSlot == 0 {
			items[sl.key&^heldSlot].supply.sub(sl.value())
		}
	}
	b = p.resize(n, uint32(len(l.slots)))
	b.last = last
	copy(b.holdings(), l.slots)
	l.s.setIs(b, b.is)
	for _, sl := range l.slots {
		if sl.key&counterSlot == 0 {
			items[sl.key&^heldSlot].supply.add(sl.value())
		}
	}
	p.unlock()
}

func (l *Loader) requests(r *Reader) {
	ids := &l.s.ids
	n := r.Uint("the first request", 1<<63)
	if r.err == nil && n != ids.tail {
		if ids.count() != 0 || n != l.head {
			r.Fail("request number %d after %d", n, ids.tail)
			return
		}
		ids.restart(n)
	}
	var ev Event
	for r.More() {
		rec := idRecord{position: r.Uint("a request's position", l.want.Position), index: uint32(r.Uint("a request's index", math.MaxUint32))}
		rec.time = int64(r.Uint("a request's time", uint64(l.s.now+l.s.back)))
		rec.back = int64(r.Uint("how far the clock had been set back", uint64(min(l.s.back, rec.time))))
		rec.version = r.Uint("a request's catalog version", l.want.Version)
		rec.answer = r.Bytes("an answer", r.Uint("an answer's length", math.MaxInt32))
		if r.err != nil {
			return
		}
		if size, err := Decode(rec.answer, &ev); err != nil || size != len(rec.answer) || len(ev.ID) == 0 {
			r.Fail("an answer is not an event with a request id (%v)", err)
			return
		}
		h, twice := ids.key.hashBytes(ev.ID), false
		if l.keep {
			_, twice = findAs(ids, ev.ID, h, ev.Kind == KindErased)
		}
		if twice || rec.position < l.last.position || rec.time < l.last.time || rec.back < l.last.back || rec.version < l.last.version || ids.atMost(0) {
			r.Fail("request %q is there twice or is older than the one before it, or there are too many requests", ev.ID)
			return
		}
		l.last = idRecord{position: rec.position, time: rec.time, back: rec.back, version: rec.version}
		if !l.keep {
			ids.tail++
			continue
		}
		ids.add(h, rec)
	}
}

// Loaded ends a snapshot. It checks that everything is there that the snapshot announced. Another
// one that builds on it may follow.
func (l *Loader) Loaded() error {
	s := l.s
	if s.ids.count() == 0 && s.ids.tail != l.want.IDs && l.head == l.want.IDs {
		s.ids.restart(l.head)
	}
	got, want := s.extent(), l.want
	got.Players, got.Entries = uint32(l.count()), nil
	fail := func(format string, args ...any) error {
		return &FormatError{Message: "the snapshot is incomplete: it announced " + fmt.Sprintf(format, args...)}
	}
	switch {
	case l.kind == 0 || fmt.Sprint(got) != fmt.Sprint(want):
		return fail("%+v and has %+v", want, got)
	case len(s.tallies) != l.tallied:
		return fail("%d counters of the realm and has %d", l.tallied, len(s.tallies))
	case s.records.n != l.noted || s.records.size != l.notedSize:
		return fail("%d records of %d bytes and has %d of %d", l.noted, l.notedSize, s.records.n, s.records.size)
	case s.ids.head != l.head:
		return fail("number %d as the oldest request, which is number %d", l.head, s.ids.head)
	}
	for _, list := range s.codes.lists {
		list.changed(list.last.Load())
	}
	l.kind = 0
	l.files++
	return nil
}

func (s *State) extent() Extent {
	m := Extent{
		Position: s.applied, Version: s.catalog.Version, Items: uint32(len(s.names.items)), Counters: uint32(len(s.names.counters)),
		Pools: uint32(len(s.names.pools)), Players: uint32(s.players.count()), IDs: s.ids.tail,
	}
	for _, p := range s.names.pools {
		m.Entries = append(m.Entries, uint32(len(p.entryIDs)))
	}
	for _, l := range s.codes.lists {
		m.Codes = append(m.Codes, l.codes.extent())
	}
	return m
}

// State ends loading. It returns the state, the same as the one that was captured, and the extent
// for the next capture.
func (l *Loader) State() (*State, Extent, error) {
	s := l.s
	if l.kind != 0 {
		return nil, Extent{}, &FormatError{Message: "the last snapshot was not ended"}
	}
	for i := range s.names.items {
		s.raisePeak(&s.names.items[i])
	}
	for _, o := range s.orders.list {
		o.build(&s.players)
	}
	if l.nameless && l.files == 1 { // the series before may be from a time with the name
		s.rewrites = 1
	}
	s.names.shared()
	s.show()
	s.players.dirty.reset()
	s.Alone(false)
	return s, s.extent(), nil
}
