package rules

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/store"
)

// A catalog is put in force in two steps. Prepare numbers what is new, compiles the tables and
// encodes the event: the new names, the stocks that change, and the catalog itself. It takes time in
// proportion to the catalog. Requests go on meanwhile, because names and numbers change only when a
// catalog is put in force. The second step, under the realm's lock, applies the event and calls
// [Rules.Reset].

// ConflictError says why a well-formed catalog does not fit the realm's state.
type ConflictError struct {
	Subject string // the item or pool
	Message string
}

func (e *ConflictError) Error() string { return e.Subject + ": " + e.Message }

// Prepared is a catalog ready to be put in force.
type Prepared struct {
	Tables    *Tables
	Event     []byte // nil: the catalog is already in force
	Unchanged bool
}

// Prepare gets a catalog ready to be put in force over t, or refuses it with a *ConflictError. It
// may run concurrently with commands, but not with another catalog. note may be nil. begin is the
// format level at which a new realm begins with its first catalog; 0: the one it has.
func Prepare(state Names, t *Tables, c *catalog.Catalog, note *Note, begin format.Level) (*Prepared, error) {
	return prepare(state, t, c, begin, func(w *store.Writer) {
		w.Begin(uint8(KindCatalog), "")
		w.BeginAsked()
		note.write(w)
		w.EndAsked()
	})
}

// prepare is Prepare for an event that asked begins.
func prepare(state Names, t *Tables, c *catalog.Catalog, begin format.Level, asked func(w *store.Writer)) (*Prepared, error) {
	canonical := c.AppendCanonical(nil)
	hash := sha256.Sum256(canonical)
	if t.Version > 0 && hash == t.Hash {
		return &Prepared{Tables: t, Unchanged: true}, nil
	}
	c, err := catalog.Decode(canonical) // what a reader of the log will decode
	if err != nil {
		return nil, err
	}
	var w store.Writer
	asked(&w)
	if begin > format.First {
		w.More(store.Level, uint64(begin))
	}
	t, err = newTables(&w, state, c, hash, t.Version+1)
	if err != nil {
		return nil, err
	}
	w.More(store.Window)
	w.Uint(uint64(c.Idempotency.Count))
	w.Uint(uint64(c.Idempotency.Age.Milliseconds()))
	w.More(store.Catalog)
	w.Uint(uint64(len(canonical)))
	w.Buf = append(w.Buf, canonical...)
	return &Prepared{Tables: t, Event: w.End()}, nil
}

// Load returns the tables of the catalog in force.
func Load(state Names, c store.InForce) (t *Tables, err error) {
	if c.Version == 0 {
		return NoTables(), nil
	}
	var w store.Writer
	w.Begin(uint8(KindCatalog), "")
	before := len(w.Buf)
	decoded, err := catalog.Decode(c.Bytes)
	if err == nil {
		t, err = newTables(&w, state, decoded, decoded.Hash(), c.Version)
	}
	if err == nil && len(w.Buf) > before {
		err = fmt.Errorf("it has names or stocks that the state lacks")
	}
	if err != nil {
		return nil, fmt.Errorf("catalog version %d: %w", c.Version, err)
	}
	return t, nil
}

// newTables compiles a checked catalog: it numbers all that the catalog names, and writes the new
// names and the stocks that change.
func newTables(w *store.Writer, state Names, c *catalog.Catalog, hash [32]byte, version uint64) (*Tables, error) {
	t := &Tables{
		Version: version, Catalog: c, Hash: hash, Zone: compileZone(c),
		ItemNum:   make(map[string]uint32, len(c.Items)),
		PoolByID:  make(map[string]*Pool, len(c.Pools)),
		ListNum:   map[string]uint32{},
		limiting:  limiting{tracks: tracks{map[string]*NamedTrack{}, map[uint32]*NamedTrack{}}},
		entering:  entering{starting: starting{waiting: noCounter}},
		goals:     goals{playing: playing{rounds: noCounter}},
		itemRules: itemRules{lasting: lasting{due: noCounter}, capping: capping{mail: noCounter}},
	}
	d := definer{w: w, state: state, t: t, nextPool: uint32(state.Pools()), nextCounter: state.NextCounter(), fresh: map[string]uint32{}, budgets: map[uint32]*Budget{}}
	if err := d.items(c); err != nil {
		return nil, err
	}
	for i := range c.Pools {
		if err := d.pool(&c.Pools[i]); err != nil {
			return nil, err
		}
	}
	if g := c.Guesses; g.Per != 0 {
		t.guesses = Limit{Counter: d.counters("/guesses/"+g.Per.String(), 1), Per: g.Per, Draws: g.Count}
	}
	if _, named := state.CounterNum(startName); named || len(c.Start) > 0 {
		t.waiting = d.counters(startName, 1)
	}
	d.lists(c)
	d.countersOf(c)
	d.quests(c)
	d.prizes()
	d.capping()
	if err := cmp.Or(d.lasting(), d.growing(), d.rounds(c)); err != nil {
		return nil, err
	}
	d.orders()
	for _, of := range []struct {
		what     string
		n, limit int
	}{
		{"pools", int(d.nextPool), store.MaxPools},
		{"lists of codes", state.CodeLists() + d.newLists, store.MaxCodeLists},
		{"counters", int(d.nextCounter), store.MaxCounters},
		{"counters of budgets, moments and refills", d.tallies(), store.MaxTallies},
	} {
		if of.n > of.limit {
			return nil, tooMany(of.what, of.n, of.limit)
		}
	}
	t.PoolByNum = make([]*Pool, d.nextPool)
	for i := range c.Pools {
		pt := t.PoolByID[c.Pools[i].ID]
		t.PoolByNum[pt.Num] = pt
	}
	t.compile()
	return t, openable(t)
}

func tooMany(what string, n, limit int) error {
	return &ConflictError{Subject: what, Message: fmt.Sprintf("%d over all catalogs, including this one; a realm can have at most %d in its life", n, limit)}
}

// definer numbers what a catalog names.
type definer struct {
	w           *store.Writer
	state       Names
	t           *Tables
	nextPool    uint32
	nextCounter uint32
	fresh       map[string]uint32  // counters that this catalog names
	newTallies  int                // counters of the realm among them
	newLists    int                // lists of codes that this catalog names
	budgets     map[uint32]*Budget // by counter
}

// items numbers items. It refuses to change the kind of one.
func (d *definer) items(c *catalog.Catalog) error {
	next := d.state.Items()
	for i := range c.Items {
		it := &c.Items[i]
		num, known := d.state.ItemNum(it.ID)
		if known && d.state.ItemKind(num) == kindFamily {
			return &ConflictError{Subject: "item " + it.ID, Message: "an earlier catalog has a family with this id: use another id for the item"}
		}
		if known && d.state.ItemKind(num) != uint8(it.Kind) {
			return &ConflictError{Subject: "item " + it.ID, Message: "its kind cannot change between item and currency: use another id for the new one"}
		}
		if !known {
			num = uint32(next)
			next++
			d.nameItem(uint8(it.Kind), it.ID)
		}
		if short := int(num) + 1 - len(d.t.ItemAt); short > 0 {
			d.t.ItemAt = append(d.t.ItemAt, make([]uint32, short)...)
		}
		d.t.ItemNum[it.ID], d.t.ItemAt[num] = num, uint32(i)
	}
	next, err := d.families(c, next)
	if next > store.MaxItems {
		return tooMany("items and families", next, store.MaxItems)
	}
	return err
}

// nameItem names the next item, or family.
func (d *definer) nameItem(kind uint8, id string) {
	d.w.More(store.Item)
	d.w.Buf = append(d.w.Buf, kind)
	d.w.Text(id)
}

// pool numbers a pool, its entries and all that it counts.
func (d *definer) pool(p *catalog.Pool) error {
	pt := &Pool{Config: p, Order: make([]uint32, len(p.Entries))}
	d.t.PoolByID[p.ID] = pt
	if err := d.entries(pt); err != nil {
		return err
	}
	for _, c := range p.Limits {
		l := Limit{Per: c.Per, Window: c.Window, Draws: c.Draws}
		l.Counter = d.counters(counterName(p.ID+"/draws", &l), l.width())
		pt.Limits = append(pt.Limits, l)
	}
	if p.Free.Per != 0 {
		pt.Free = &Limit{Per: p.Free.Per, Draws: p.Free.Draws}
		pt.Free.Counter = d.counters(counterName(p.ID+"/free", pt.Free), 1)
	}
	if p.Refill > 0 {
		pt.Refills = d.counters(RefillName(p.ID), 1)
	}
	for i := range p.Budgets {
		b := &p.Budgets[i]
		for _, s := range b.Of {
			counter := d.counters(BudgetName(p.ID, b, s.Item), budgetWidth)
			if d.budgets[counter] == nil {
				d.budgets[counter] = &Budget{counter, b.Per, d.t.ItemNum[s.Item], s.Quantity}
			}
			pt.Budgets = append(pt.Budgets, d.budgets[counter])
		}
	}
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Moments.Count > 0 {
			counter := d.counters(p.ID+"/moments/"+e.ID, momentsWidth)
			pt.Moments = append(pt.Moments, newMoments(p, e, pt.Order[i], counter, d.t.Zone))
		}
	}
	d.tracks(pt)
	d.t.nameTracks(pt)
	return nil
}

// entries numbers a pool and its entries.
func (d *definer) entries(pt *Pool) error {
	p := pt.Config
	num, known := d.state.PoolNum(p.ID)
	entries, begun := 0, false
	if known {
		entries = d.state.Entries(num)
	} else {
		num, begun = d.nextPool, true
		d.nextPool++
		d.w.Name(store.NewPool, p.ID)
	}
	pt.Num = num
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
			entry = uint32(entries)
			entries++
			d.w.Name(store.Entry, e.ID)
		}
		if was != stock {
			d.w.More(store.Stock)
			d.w.Uint(uint64(entry))
			d.w.Uint(stock)
		}
		pt.Order[i] = entry
	}
	if entries > store.MaxEntries {
		return tooMany("entries of pool "+p.ID, entries, store.MaxEntries)
	}
	pt.Entries = make([]Entry, entries)
	return nil
}

// lists numbers the lists of codes: those that rewards give, and those that pay for draws.
func (d *definer) lists(c *catalog.Catalog) {
	add := func(list string) {
		if _, ok := d.t.ListNum[list]; ok {
			return
		}
		num, known := d.state.CodeListNum(list)
		if !known {
			num = uint32(d.state.CodeLists() + d.newLists)
			d.newLists++
			d.w.Name(store.NewList, list)
		}
		d.t.ListNum[list] = num
	}
	rewarded := func(w *catalog.Reward) {
		for _, list := range w.Codes {
			add(list)
		}
	}
	for i := range c.Pools {
		for j := range c.Pools[i].Entries {
			rewarded(&c.Pools[i].Entries[j].Reward)
		}
		for j := range c.Pools[i].Redeem {
			add(c.Pools[i].Redeem[j].List)
		}
	}
	for i := range c.Quests {
		for _, t := range c.Quests[i].Steps() {
			rewarded(&t.Reward)
		}
	}
	for i := range c.Counters {
		for j := range c.Counters[i].Ranked.Rewards {
			rewarded(&c.Counters[i].Ranked.Rewards[j].Reward)
		}
	}
	for i := range c.Rounds {
		rewarded(&c.Rounds[i].Winners.Reward)
	}
}

// counters returns the number of the first of width counters, and names them if they are new.
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

// ofRealm reports whether counters are the realm's own: of a budget, of moments or of refills.
func ofRealm(name string) bool {
	_, what, _ := strings.Cut(name, "/")
	return what == "refills" || strings.HasPrefix(what, "budget/") || strings.HasPrefix(what, "moments/") || strings.HasPrefix(name, "/realm/")
}
