package economy

import (
	"maps"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// Putting a catalog in force in two steps, of which the first, which takes time
// in proportion to the catalog, does without the realm's lock. It reads names
// and their numbers, and these change only when a catalog is put in force.

// Prepared is a catalog made ready to be put in force. Until it is, it belongs to the goroutine that
// prepares it; then nothing changes any more of what readers see of it.
type Prepared struct {
	canonical []byte
	catalog   *catalog.Catalog // decoded from canonical: as a replay of the log gets it
	hash      [32]byte
	base      *tables // in force when it was prepared
	unchanged bool    // it is the one in force
	names     names
	tables    *tables
	past      superseded
	same      []bool  // by pool number: nothing that odds and stock depend on has changed
	watch     *watch  // what becomes of the pools that are not, from Watch on
	staged    *staged // those pools; nil: left to Apply
}

// Prepare makes a catalog ready to be put in force, or refuses it: with a
// *ConflictError for what the state has, or with the catalog's own faults. It
// may run beside commands, but not beside Apply of another catalog.
func (s *State) Prepare(c *catalog.Catalog) (*Prepared, error) {
	p := &Prepared{canonical: c.AppendCanonical(nil), hash: c.Hash()}
	var err error
	if p.catalog, err = catalog.Decode(p.canonical); err != nil {
		return nil, err
	}
	return p, s.build(p)
}

// build fills in what depends on the catalog in force.
func (s *State) build(p *Prepared) error {
	p.base = s.current
	if p.unchanged = s.current.version > 0 && p.hash == s.current.hash; p.unchanged {
		return nil
	}
	v := s.names()
	if err := v.checkNumbers(p.catalog); err != nil {
		return err
	}
	if err := v.checkKinds(p.catalog); err != nil {
		return err
	}
	p.names = s.number(p.catalog)
	p.tables = compile(p.catalog, p.hash, &p.names)
	p.past = p.tables.supersede(s.current)
	p.same = p.tables.sameAs(s.current)
	return nil
}

// Unchanged reports whether the catalog is the one that was in force.
func (p *Prepared) Unchanged() bool { return p.unchanged }

// Size is no less than what AppendEvent appends, in bytes.
func (p *Prepared) Size() int { return len(p.canonical) + 16 }

// AppendEvent appends to b, encoded, the event that puts the catalog in force. It may be
// called beside commands.
func (p *Prepared) AppendEvent(b []byte) []byte {
	return AppendEvent(b, &Event{Kind: KindCatalog, Catalog: p.canonical})
}

// DecideCatalog returns the event that puts a catalog in force; nil when it is
// in force already. The error is as for Prepare, and possible only when another
// catalog was put in force since.
func (s *State) DecideCatalog(p *Prepared) (*Event, error) {
	if p.base != s.current {
		if err := s.build(p); err != nil {
			return nil, err
		}
	}
	if p.unchanged {
		return nil, nil
	}
	s.ev.reset()
	s.ev.Kind, s.ev.Catalog, s.ev.prepared = KindCatalog, p.canonical, p
	return &s.ev, nil
}

// applyCatalog puts the catalog of an event in force.
func (s *State) applyCatalog(ev *Event, at At) error {
	p := ev.prepared
	if p == nil || p.base != s.current {
		p = &Prepared{}
		var err error
		if p.catalog, err = catalog.Decode(ev.Catalog); err != nil {
			return inconsistent("catalog: %v", err)
		}
		p.hash = p.catalog.Hash()
		if err := s.build(p); err != nil {
			return inconsistent("catalog: %v", err)
		}
		if p.unchanged {
			return inconsistent("catalog: it is in force already")
		}
	}
	if ev.prepared != nil { // which would be kept, and the catalog before it, until the event is used again
		ev.prepared, ev.Catalog = nil, nil
	}
	if p.staged == nil || p.watch != s.watch { // or it may lack what was drawn since
		s.watch, p.staged = nil, s.stage(p)
	}
	if s.watch != nil {
		p.staged.catchUp(&p.staged.taken)
		p.staged.catchUp(s.watch)
		s.watch = nil
	}
	if err := p.staged.err; err != nil {
		return inconsistent("%v", err)
	}
	s.adopt(&p.names)
	old, t := s.current, p.tables
	t.version, t.position, t.index, t.time = old.version+1, at.Position, at.Index, at.Time
	if len(p.past.keys) > 0 && (s.alone || s.ids.count() > 0) { // alone, what is remembered may lag
		s.past = append(s.past, p.past)
	}
	for num, pt := range t.pools { // before anybody can see the catalog
		switch {
		case !p.same[num]:
			s.lockPool(s.pools[num])
		case pt != nil:
			s.touchPool(s.pools[num], at.Position)
		}
	}
	s.setCurrent(t)
	s.put(p.staged, at.Position)
	return nil
}

// sameAs returns of which pools, by number, the odds and the stock are what they are by the
// tables before, whatever was drawn: those pools and all that they lead to have the same
// entries, by everything but what these give. A pool that is in neither is the same.
func (t *tables) sameAs(old *tables) []bool {
	same := make([]bool, len(t.pools))
	for num, pt := range t.pools {
		same[num] = pt == nil && (num >= len(old.pools) || old.pools[num] == nil)
	}
	for _, pt := range t.bottomUp {
		if int(pt.num) >= len(old.pools) || old.pools[pt.num] == nil || !pt.sameOdds(old.pools[pt.num]) {
			continue
		}
		same[pt.num] = !slices.ContainsFunc(pt.groups, func(g group) bool { return g.target != nil && !same[g.target.num] })
	}
	return same
}

// sameOdds reports whether two tables of a pool give each entry the same odds, if
// the pools that they lead to are the same.
func (pt *poolTable) sameOdds(old *poolTable) bool {
	return pt.config.Mode == old.config.Mode && slices.Equal(pt.order, old.order) && slices.EqualFunc(pt.entries, old.entries, func(e, was entryTable) bool {
		return e.present == was.present && e.limited == was.limited && e.weight == was.weight && e.stock == was.stock && e.kind == was.kind && e.pool == was.pool && e.group == was.group
	})
}

// names is the numbers of everything that a catalog names, and what of it is new.
type names struct {
	items  []uint32   // by index in Catalog.Items
	pools  []uint32   // by index in Catalog.Pools
	entry  [][]uint32 // by index in Catalog.Pools, then in Entries
	limits [][]uint32 // by index in Catalog.Pools, then in Limits

	pool      map[string]uint32 // numbers of the pools by id
	entries   []int             // by index in Catalog.Pools: how many the pool has ever named
	poolsEver int
	newItems  []int        // indexes in Catalog.Items
	newPools  []*poolState // with their entries
	added     [][]string   // by index in Catalog.Pools: new entries of a known pool
	newLimits []limitKey

	// What adopt puts in place, if anything is new in it.
	itemStates []itemState // of new items; of the others room
	itemNum    map[string]uint32
	poolNum    map[string]uint32
	limNum     map[limitKey]uint32
}

// any reports whether something is new.
func (n *names) any() bool {
	return len(n.newItems)+len(n.newPools)+len(n.newLimits) > 0 || slices.ContainsFunc(n.added, func(ids []string) bool { return len(ids) > 0 })
}

// number gives numbers to everything that a catalog names: those it has, or the
// next ones. It changes nothing; see adopt.
func (s *State) number(c *catalog.Catalog) names {
	n := names{pool: make(map[string]uint32, len(c.Pools)), items: make([]uint32, len(c.Items))}
	for i := range c.Items {
		num, ok := s.itemNum[c.Items[i].ID]
		if !ok {
			num = uint32(len(s.items) + len(n.newItems))
			n.newItems = append(n.newItems, i)
		}
		n.items[i] = num
	}
	for i := range c.Pools {
		s.numberPoolOf(&n, &c.Pools[i])
	}
	n.poolsEver = len(s.pools) + len(n.newPools)
	s.makeNames(&n, c)
	return n
}

// makeNames makes what adopt puts in place.
func (s *State) makeNames(n *names, c *catalog.Catalog) {
	if len(n.newItems) > 0 {
		n.itemNum, n.itemStates = maps.Clone(s.itemNum), make([]itemState, len(s.items)+len(n.newItems))
		for i, at := range n.newItems {
			it, num := &c.Items[at], len(s.items)+i
			n.itemNum[it.ID], n.itemStates[num] = uint32(num), itemState{id: it.ID, kind: it.Kind}
		}
	}
	if len(n.newPools) > 0 {
		n.poolNum = maps.Clone(s.poolNum)
		for i, p := range n.newPools {
			n.poolNum[p.id] = uint32(len(s.pools) + i)
		}
	}
	if len(n.newLimits) > 0 {
		n.limNum = maps.Clone(s.limNum)
		for i, k := range n.newLimits {
			n.limNum[k] = uint32(len(s.limits) + i)
		}
	}
}

func (s *State) numberPoolOf(n *names, c *catalog.Pool) {
	num, known := s.poolNum[c.ID]
	nums := make([]uint32, len(c.Entries))
	var added []string
	if known {
		p := s.pools[num]
		for i := range c.Entries {
			id := c.Entries[i].ID
			entry, ok := p.entryNum[id]
			if !ok {
				entry = uint32(len(p.entryIDs) + len(added))
				added = append(added, id)
			}
			nums[i] = entry
		}
		n.entries = append(n.entries, len(p.entryIDs)+len(added))
	} else {
		num = uint32(len(s.pools) + len(n.newPools))
		p := &poolState{id: c.ID, entryNum: make(map[string]uint32, len(c.Entries))}
		for i := range c.Entries {
			nums[i] = p.addEntry(c.Entries[i].ID)
		}
		n.newPools = append(n.newPools, p)
		n.entries = append(n.entries, len(p.entryIDs))
	}
	limits := make([]uint32, len(c.Limits))
	for i, l := range c.Limits {
		k := limitKey{pool: num, per: l.Per, window: l.Window}
		limit, ok := s.limNum[k]
		if !ok {
			limit = uint32(len(s.limits) + len(n.newLimits))
			n.newLimits = append(n.newLimits, k)
		}
		limits[i] = limit
	}
	n.pool[c.ID] = num
	n.pools, n.entry, n.limits, n.added = append(n.pools, num), append(n.entry, nums), append(n.limits, limits), append(n.added, added)
}

// adopt makes new names known, but for those of entries of known pools: see staged.
func (s *State) adopt(n *names) {
	if n.itemNum != nil {
		copy(n.itemStates, s.items) // their supplies are as of now
		s.items, s.itemNum = n.itemStates, n.itemNum
	}
	if n.poolNum != nil {
		s.pools, s.poolNum = append(s.pools, n.newPools...), n.poolNum
	}
	if n.limNum != nil {
		s.limits, s.limNum = append(s.limits, n.newLimits...), n.limNum
	}
}
