package rules

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/store"
)

// A catalog is put in force in two steps. Prepare takes time in proportion to the catalog, and
// runs concurrently with requests: names and their numbers change only when a catalog is put in
// force. It numbers new items, pools, entries and limits, compiles the tables and encodes the
// event: the new names, the stocks that change, and the catalog itself. The second step runs under
// the realm's lock. It applies the event and calls [Rules.Reset].

// ConflictError says why a catalog, well formed by itself, does not fit the realm's state.
type ConflictError struct {
	Subject string // the item or pool
	Message string
}

func (e *ConflictError) Error() string { return e.Subject + ": " + e.Message }

// Prepared is a catalog that is ready to be put in force.
type Prepared struct {
	Tables    *Tables
	Event     []byte // nil: the catalog is already in force
	Unchanged bool
}

// numbers holds the numbers of everything that a catalog names.
type numbers struct {
	item  []uint32 // by index in Catalog.Items
	pool  []poolNumbers
	pools int               // how many the realm will have
	list  map[string]uint32 // lists of codes
	// guesses is the number of the counter of guesses, if there is a limit.
	guesses uint32
	// waiting is the number of the counter of players who wait for starting grants, or noCounter.
	waiting uint32
}

// poolNumbers holds the numbers of a pool.
type poolNumbers struct {
	num     uint32
	entry   []uint32   // by index in Entries
	limit   []uint32   // by index in Limits: number of the first counter
	moments []uint32   // of the entries that have moments: number of the first counter
	track   []uint32   // by index in Tracks: number of the counter
	budget  [][]uint32 // by index in Budgets and Of: number of the first counter
	free    uint32     // number of the counter of free draws, if there are any
	refills uint32     // number of the realm's counter of refills, if there can be any
	entries int        // how many the pool will have
}

// Prepare gets a catalog ready to be put in force over t, or refuses it with a *ConflictError. It
// may run concurrently with commands, but not with another catalog. The note may be nil. The first
// catalog of a new realm also says at which format level it begins; 0: at the one that it has.
func Prepare(state Names, t *Tables, c *catalog.Catalog, note *Note, begin format.Level) (*Prepared, error) {
	canonical := c.AppendCanonical(nil)
	hash := sha256.Sum256(canonical)
	if t.Version > 0 && hash == t.Hash {
		return &Prepared{Tables: t, Unchanged: true}, nil
	}
	c, err := catalog.Decode(canonical) // what a reader of the log will decode
	if err != nil {
		return nil, err
	}
	if err := checkKinds(state, c); err != nil {
		return nil, err
	}
	var w store.Writer
	w.Begin(uint8(KindCatalog), "")
	w.BeginAsked()
	note.write(&w)
	w.EndAsked()
	if begin > format.First {
		w.More(store.Level, uint64(begin))
	}
	n, err := define(&w, state, c)
	if err != nil {
		return nil, err
	}
	w.More(store.Window)
	w.Uint(uint64(c.Idempotency.Count))
	w.Uint(uint64(c.Idempotency.Age.Milliseconds()))
	w.More(store.Catalog)
	w.Uint(uint64(len(canonical)))
	w.Buf = append(w.Buf, canonical...)
	return &Prepared{Tables: compile(c, hash, t.Version+1, n), Event: w.End()}, nil
}

// Load returns the tables of the catalog in force.
func Load(state Names, c store.InForce) (*Tables, error) {
	if c.Version == 0 {
		return NoTables(), nil
	}
	decoded, err := catalog.Decode(c.Bytes)
	if err != nil {
		return nil, fmt.Errorf("catalog version %d: %w", c.Version, err)
	}
	var w store.Writer
	w.Begin(uint8(KindCatalog), "")
	before := len(w.Buf)
	n, err := define(&w, state, decoded)
	if err == nil && len(w.Buf) > before {
		err = fmt.Errorf("it has names or stocks that the state lacks")
	}
	if err != nil {
		return nil, fmt.Errorf("catalog version %d: %w", c.Version, err)
	}
	return compile(decoded, decoded.Hash(), c.Version, n), nil
}

// define numbers everything that a catalog names. It writes the new names and the stocks that
// change.
func define(w *store.Writer, state Names, c *catalog.Catalog) (*numbers, error) {
	n := &numbers{item: make([]uint32, len(c.Items)), pool: make([]poolNumbers, len(c.Pools))}
	next := uint32(state.Items())
	for i := range c.Items {
		num, ok := state.ItemNum(c.Items[i].ID)
		if !ok {
			num = next
			next++
			w.More(store.Item)
			w.Buf = append(w.Buf, byte(c.Items[i].Kind))
			w.Text(c.Items[i].ID)
		}
		n.item[i] = num
	}
	if next > store.MaxItems {
		return nil, tooMany("items", int(next), store.MaxItems)
	}
	d := definer{w: w, state: state, nextPool: uint32(state.Pools()), nextCounter: state.NextCounter(), fresh: map[string]uint32{}}
	for i := range c.Pools {
		if err := d.pool(&c.Pools[i], &n.pool[i]); err != nil {
			return nil, err
		}
	}
	if c.Guesses.Per != 0 {
		n.guesses = d.counters(guessesName(c.Guesses.Per), 1)
	}
	n.waiting = noCounter
	if _, named := state.CounterNum(startName); named || len(c.Start) > 0 {
		n.waiting = d.counters(startName, 1)
	}
	n.list = d.lists(c)
	if n.pools = int(d.nextPool); n.pools > store.MaxPools {
		return nil, tooMany("pools", n.pools, store.MaxPools)
	}
	if lists := state.CodeLists() + d.newLists; lists > store.MaxCodeLists {
		return nil, tooMany("lists of codes", lists, store.MaxCodeLists)
	}
	if d.nextCounter > store.MaxCounters {
		return nil, tooMany("counters", int(d.nextCounter), store.MaxCounters)
	}
	if tallies := d.tallies(); tallies > store.MaxTallies {
		return nil, tooMany("counters of budgets, moments and refills", tallies, store.MaxTallies)
	}
	return n, nil
}

func tooMany(what string, n, limit int) error {
	return &ConflictError{Subject: what, Message: fmt.Sprintf("%d over all catalogs, including this one; a realm can have at most %d in its life", n, limit)}
}

type definer struct {
	w           *store.Writer
	state       Names
	nextPool    uint32
	nextCounter uint32
	fresh       map[string]uint32 // counters that this catalog names
	newTallies  int               // counters of the realm among them
	newLists    int               // lists of codes that this catalog names
}

func (d *definer) pool(p *catalog.Pool, n *poolNumbers) error {
	num, known := d.state.PoolNum(p.ID)
	entries, begun := 0, false
	if known {
		entries = d.state.Entries(num)
	} else {
		num, begun = d.nextPool, true
		d.nextPool++
		d.w.Name(store.NewPool, p.ID)
	}
	n.num, n.entries = num, entries
	n.entry, n.limit = make([]uint32, len(p.Entries)), make([]uint32, len(p.Limits))
	for i := range p.Entries {
		e := &p.Entries[i]
		was, stock := uint64(1), uint64(0) // the encoding of Stock effects; a new entry has no stock
		if !e.Stock.Unlimited {
			stock = e.Stock.Count + 1
		}
		entry, old := uint32(0), false
		if known {
			entry, old = d.state.EntryNum(num, e.ID)
		}
		if old {
			if count, limited := d.state.Stock(num, entry); limited {
				was = count + 1
			} else {
				was = 0
			}
		}
		if !begun && (!old || was != stock) {
			d.w.Effect(store.Pool, num)
			begun = true
		}
		if !old {
			entry = uint32(n.entries)
			n.entries++
			d.w.Name(store.Entry, e.ID)
		}
		if was != stock {
			d.w.More(store.Stock)
			d.w.Uint(uint64(entry))
			d.w.Uint(stock)
		}
		n.entry[i] = entry
	}
	if n.entries > store.MaxEntries {
		return tooMany("entries of pool "+p.ID, n.entries, store.MaxEntries)
	}
	for i := range p.Limits {
		n.limit[i] = d.counters(counterName(p.ID, &p.Limits[i]))
	}
	if p.Free.Per != 0 {
		n.free = d.counters(freeName(p.ID, p.Free), 1)
	}
	if p.Refill > 0 {
		n.refills = d.counters(RefillName(p.ID), 1)
	}
	for i := range p.Budgets {
		b := &p.Budgets[i]
		var first []uint32
		for _, s := range b.Of {
			first = append(first, d.counters(BudgetName(p.ID, b, s.Item), budgetWidth))
		}
		n.budget = append(n.budget, first)
	}
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Moments.Count > 0 {
			n.moments = append(n.moments, d.counters(momentsName(p.ID, e.ID), momentsWidth))
		}
	}
	n.track = make([]uint32, len(p.Tracks))
	for i := range p.Tracks {
		n.track[i] = d.counters(TrackName(p.ID, &p.Tracks[i]), 1)
	}
	return nil
}

// lists numbers the lists of codes that rewards give codes of, and those whose codes pay for draws.
// It names those that are new.
func (d *definer) lists(c *catalog.Catalog) map[string]uint32 {
	all := map[string]uint32{}
	add := func(list string) {
		if _, ok := all[list]; ok {
			return
		}
		num, known := d.state.CodeListNum(list)
		if !known {
			num = uint32(d.state.CodeLists() + d.newLists)
			d.newLists++
			d.w.Name(store.NewList, list)
		}
		all[list] = num
	}
	for i := range c.Pools {
		for j := range c.Pools[i].Entries {
			for _, list := range c.Pools[i].Entries[j].Reward.Codes {
				add(list)
			}
		}
		for j := range c.Pools[i].Redeem {
			add(c.Pools[i].Redeem[j].List)
		}
	}
	return all
}

// counters returns the number of the first of width counters. It names them if they are new.
func (d *definer) counters(name string, width uint32) uint32 {
	if first, ok := d.state.CounterNum(name); ok {
		return first
	}
	if first, ok := d.fresh[name]; ok {
		return first
	}
	first := d.nextCounter
	d.nextCounter += width
	d.w.More(store.Counter)
	d.w.Uint(uint64(width))
	d.w.Text(name)
	d.fresh[name] = first
	if ofRealm(name) {
		d.newTallies += int(width)
	}
	return first
}

// tallies returns how many counters of the realm all catalogs have named, this one included.
func (d *definer) tallies() int {
	n := d.newTallies
	for name, width := range d.state.CounterNames() {
		if ofRealm(name) {
			n += int(width)
		}
	}
	return n
}

// ofRealm reports whether the counters with a name are the realm's own: those of a budget, of moments
// or of refills. Ids have no slash in them.
func ofRealm(name string) bool {
	_, what, _ := strings.Cut(name, "/")
	return what == "refills" || strings.HasPrefix(what, "budget/") || strings.HasPrefix(what, "moments/")
}

// checkKinds refuses a catalog that changes the kind of a known item.
func checkKinds(state Names, c *catalog.Catalog) error {
	for i := range c.Items {
		it := &c.Items[i]
		if num, known := state.ItemNum(it.ID); known && state.ItemKind(num) != uint8(it.Kind) {
			return &ConflictError{Subject: "item " + it.ID, Message: "its kind cannot change between item and currency: use another id for the new one"}
		}
	}
	return nil
}
