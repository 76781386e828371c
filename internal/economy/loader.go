package economy

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
)

// Loader rebuilds a state from snapshots: one that holds all of it, and then
// those that build on it, in order.
type Loader struct {
	s    *State
	want Mark   // of the snapshot being loaded
	head uint64 // of its request ids
	base uint32 // players of the base
	next uint64 // the first player that may come next: they ascend, from block to block, too
	kind BlockKind
	last idRecord // the last one loaded, without its answer

	own    *PlayerBlock   // of Block
	blocks []*PlayerBlock // all that there are
}

// NewLoader returns a loader of an empty state.
func NewLoader() *Loader { return &Loader{s: New()} }

// Block loads the next block. Errors are *FormatError; the state is then of no use.
func (l *Loader) Block(kind BlockKind, data []byte) error {
	d := decoder{b: data}
	if kind == 0 || kind >= blockEnd {
		d.fail("unknown kind of block %d; a newer Kuji wrote this snapshot", kind)
		return d.err
	}
	if kind == BlockPlayers {
		if l.own == nil {
			l.own = l.NewPlayerBlock()
		}
		l.own.Decode(data)
		return l.Join(l.own)
	}
	if l.begin(&d, kind); d.err != nil {
		return d.err
	}
	switch kind {
	case BlockState:
		l.state(&d)
	case BlockItems:
		l.items(&d)
	case BlockLimits:
		l.limits(&d)
	case BlockPools:
		l.pools(&d)
	case BlockEntries:
		l.entries(&d)
	case BlockDrawn:
		l.drawn(&d)
	case BlockCatalog:
		l.catalog(&d)
	case BlockRequests:
		l.requests(&d)
	case BlockPast:
		l.past(&d)
	}
	l.s.unlockPools()
	if d.err != nil {
		return d.err
	}
	return nil
}

// begin fails unless a block of this kind may be the next.
func (l *Loader) begin(d *decoder, kind BlockKind) {
	if kind < l.kind || (kind == BlockState) != (l.kind == 0) {
		d.fail("a block of kind %d after one of kind %d", kind, l.kind)
		return
	}
	l.kind = kind
}

// more reports whether something is left to decode.
func (d *decoder) more() bool { return d.err == nil && d.off < len(d.b) }

// same fails unless a number is the one that must come next.
func (d *decoder) same(what string, want uint64) {
	if got := d.uvarint(what, 1<<63); d.err == nil && got != want {
		d.fail("%s is %d, want %d", what, got, want)
	}
}

// text returns a string of its own, of 1 to limit bytes.
func (d *decoder) text(what string, limit uint64) string {
	return string([]byte(d.str(what, uint64(d.byte(what)), limit)))
}

func (l *Loader) state(d *decoder) {
	s := l.s
	l.want.Position = d.uvarint("the position", 1<<63)
	now := d.uvarint("the time", 1<<63-1)
	d.same("the base's position", s.applied)
	l.want.Version = d.uvarint("the catalog's version", 1<<63)
	l.want.Items = uint32(d.uvarint("the number of items", maxItemsEver))
	l.want.Limits = uint32(d.uvarint("the number of limits", maxLimitsEver))
	l.want.Pools = uint32(d.uvarint("the number of pools", maxPoolsEver))
	l.want.Players = uint32(d.uvarint("the number of players", MaxPlayers))
	l.head = d.uvarint("the oldest request", 1<<63)
	l.want.IDs = d.uvarint("the next request", 1<<63)
	if d.more() {
		d.fail("more than the state's numbers")
	}
	if l.want.Position < s.applied || int64(now) < s.now || l.head > l.want.IDs || l.head < s.ids.head {
		d.fail("position %d, time %d, requests %d to %d do not follow the base's", l.want.Position, now, l.head, l.want.IDs)
	}
	if d.err != nil {
		return
	}
	l.base, l.next = uint32(s.players.count()), 0
	s.applied, s.now = l.want.Position, int64(now)
	s.ids.forgetBefore(l.head)
	s.setAlone(true)
	s.ids.index.deferred = true
}

func (l *Loader) items(d *decoder) {
	s := l.s
	for d.same("the first item", uint64(len(s.items))); d.more(); {
		kind := catalog.ItemKind(d.byte("an item's kind"))
		id := d.text("an item", maxUnknownID)
		if _, ok := s.itemNum[id]; d.err == nil && (ok || kind < catalog.KindItem || kind > catalog.KindCurrency) {
			d.fail("item %q, of kind %d, twice or unknown", id, kind)
		}
		if d.err == nil {
			s.numberItem(&catalog.Item{ID: id, Kind: kind})
		}
	}
}

func (l *Loader) limits(d *decoder) {
	s := l.s
	for d.same("the first limit", uint64(len(s.limits))); d.more(); {
		k := limitKey{pool: uint32(d.uvarint("a limit's pool", maxPoolsEver)), per: catalog.Per(d.uvarint("a limit's period", 255))}
		k.window = int64(d.uvarint("a limit's window", 1<<62))
		if n := len(s.limits); d.err == nil && s.numberLimit(k) != uint32(n) {
			d.fail("limit %v twice", k)
		}
	}
}

func (l *Loader) pools(d *decoder) {
	s := l.s
	for d.same("the first pool", uint64(len(s.pools))); d.more(); {
		id := d.text("a pool", catalog.MaxID)
		if n := len(s.pools); d.err == nil && s.numberPool(id) != uint32(n) {
			d.fail("pool %q twice", id)
		}
	}
}

// pool returns the pool that a block is about, locked.
func (l *Loader) pool(d *decoder) *poolState {
	n := d.uvarint("a pool", maxPoolsEver)
	if d.err == nil && n >= uint64(len(l.s.pools)) {
		d.fail("pool number %d of %d", n, len(l.s.pools))
	}
	if d.err != nil {
		return nil
	}
	p := l.s.pools[n]
	l.s.lockPool(p)
	return p
}

func (l *Loader) entries(d *decoder) {
	p := l.pool(d)
	last := d.uvarint("a pool's last change", l.want.Position)
	if p == nil || d.err != nil {
		return
	}
	p.last = last
	for d.same("the first entry", uint64(len(p.entryIDs))); d.more(); {
		id := d.text("an entry", catalog.MaxID)
		if _, ok := p.entryNum[id]; d.err == nil && ok {
			d.fail("entry %q twice", id)
		}
		if d.err == nil {
			p.addEntry(id)
		}
	}
}

func (l *Loader) drawn(d *decoder) {
	p := l.pool(d)
	chunk := d.uvarint("a chunk of entries", maxEntriesEver)
	if p == nil || d.err != nil {
		return
	}
	if chunk >= uint64(len(p.changed)) {
		d.fail("chunk %d of %d entries", chunk, len(p.entryIDs))
		return
	}
	p.changed[chunk] = max(l.want.Position, 1)
	counters := p.chunk(uint32(chunk))
	for i := range counters {
		counters[i] = d.uvarint("a number of draws", 1<<63)
	}
	if d.more() {
		d.fail("more counters than entries")
	}
}

func (l *Loader) catalog(d *decoder) {
	s := l.s
	version, position := d.uvarint("a version", l.want.Version), d.uvarint("a position", l.want.Position)
	index, time := d.uvarint("an index", 1<<32-1), d.uvarint("a time", uint64(s.now))
	if d.err != nil {
		return
	}
	if version <= s.current.version {
		d.fail("catalog version %d after %d", version, s.current.version)
		return
	}
	c, err := catalog.Decode(d.b[d.off:])
	if err != nil {
		d.fail("catalog version %d: %v", version, err)
		return
	}
	n := s.number(c)
	if n.any() {
		d.fail("catalog version %d names what the snapshot does not", version)
		return
	}
	t := compile(c, c.Hash(), &n)
	t.version, t.position, t.index, t.time = version, position, uint32(index), int64(time)
	s.setCurrent(t)
}

func (l *Loader) requests(d *decoder) {
	ids := &l.s.ids
	n := d.uvarint("the first request", 1<<63)
	if d.err == nil && n != ids.tail {
		if ids.count() != 0 || n != l.head {
			d.fail("request number %d after %d", n, ids.tail)
			return
		}
		ids.restart(n)
	}
	var ev Event
	for d.more() {
		rec := idRecord{position: d.uvarint("a request's position", l.want.Position), index: uint32(d.uvarint("a request's index", 1<<32-1))}
		rec.time = int64(d.uvarint("a request's time", uint64(l.s.now)))
		rec.version = d.uvarint("a request's catalog version", l.want.Version)
		rec.answer = d.bytes("an answer", d.uvarint("an answer's length", 1<<31))
		if d.err != nil {
			return
		}
		if err := decodeAnswer(rec.answer, &ev); err != nil || ev.ID == "" {
			d.fail("an answer does not decode, or has no request id (%v)", err)
			return
		}
		if rec.position < l.last.position || rec.time < l.last.time || rec.version < l.last.version {
			d.fail("request %q is older than the one before it", ev.ID)
			return
		}
		l.last = idRecord{position: rec.position, time: rec.time, version: rec.version}
		if ids.atMost(0) {
			d.fail("too many requests")
			return
		}
		ids.add(ev.ID, rec)
	}
}

// Loaded ends a snapshot: another that builds on it may follow. It checks that
// all is there that the snapshot announced.
func (l *Loader) Loaded() error {
	s := l.s
	for _, b := range l.blocks {
		b.leave(&s.players.mem, false)
		b.tally.count(s.items)
	}
	if err := l.settle(); err != nil {
		return err
	}
	got := Mark{Position: s.applied, Version: s.current.version, Items: uint32(len(s.items)), Limits: uint32(len(s.limits)),
		Pools: uint32(len(s.pools)), Players: uint32(s.players.count()), IDs: s.ids.tail}
	if s.ids.count() == 0 && got.IDs != l.want.IDs && l.head == l.want.IDs {
		s.ids.restart(l.head)
		got.IDs = s.ids.tail
	}
	want := l.want
	if l.kind == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
		return &FormatError{Message: fmt.Sprintf("the snapshot is not complete: it announced %+v and gave %+v", want, got)}
	}
	if s.ids.head != l.head {
		return &FormatError{Message: fmt.Sprintf("the oldest request is number %d, announced was %d", s.ids.head, l.head)}
	}
	for _, pt := range s.current.pools {
		if pt != nil && len(pt.entries) != len(s.pools[pt.num].entryIDs) {
			return &FormatError{Message: fmt.Sprintf("pool %q has %d entries, of which the catalog in force knows %d", pt.config.ID, len(s.pools[pt.num].entryIDs), len(pt.entries))}
		}
	}
	l.kind = 0
	return nil
}

// settle makes players and requests known by their ids, and returns the first that has
// that of another.
func (l *Loader) settle() *FormatError {
	s := l.s
	p := &s.players
	again, player := uint32(MaxPlayers), ""
	p.settle(func(was, is uint32) bool {
		id := p.id(is)
		if id != p.id(was) {
			return false
		}
		if is < again {
			again, player = is, id
		}
		return true
	})
	if player != "" {
		return &FormatError{Message: fmt.Sprintf("player %q twice, the second time as number %d", player, again)}
	}
	s.ids.settle()
	if again := s.ids.again; again != nil {
		at := again.at
		return &FormatError{Message: fmt.Sprintf("position %d, event %d: %v", at.Position, at.Index, again.err)}
	}
	return nil
}

// State ends loading and returns the state, as Apply left the one that was
// captured, and the mark for the next capture.
func (l *Loader) State() (*State, Mark, error) {
	s := l.s
	if l.kind != 0 {
		return nil, Mark{}, &FormatError{Message: "the last snapshot was not ended"}
	}
	mark := l.want
	for _, p := range s.pools {
		s.lockPool(p)
		s.restock(p)
		mark.Entries = append(mark.Entries, uint32(len(p.entryIDs)))
	}
	s.countOdds(nil)
	s.unlockPools()
	for i := range s.items {
		s.raisePeak(&s.items[i])
	}
	s.forgetPast()
	s.setCurrent(s.current)
	s.players.dirty.take()
	s.setAlone(false)
	return s, mark, nil
}
