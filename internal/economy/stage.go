package economy

import "slices"

// What is left of the entries of the pools that a catalog changes, their odds and their samplers
// take time in proportion to the entries to compute. No draw shall wait for that: it is done
// beside commands, from a copy of the counters, and then for what was drawn meanwhile:
//
//	under the realm's lock:  Watch    from now on, what is drawn from these pools is put down
//	beside commands:         Stage    copy their counters, and compute everything from the copy
//	under the realm's lock:  Lags     take what was put down, unless it is little
//	beside commands:         CatchUp  change by it what was computed; then Lags again
//	under the realm's lock:  Apply    change by the rest what was computed, and put it in force
//
// Weights only fall between two catalogs, and what they are follows from how much was drawn in all,
// so that it makes no difference in how many steps that is learnt, nor in which order. Who does
// without the other steps leaves all of it to Apply.

// staged is the pools that a catalog changes, as they will be.
type staged struct {
	taken watch // what had become of them since, to catch up with
	// next has the tables, what is left, odds and samplers, and nothing else: no pool where the catalog changes
	// nothing, and as the odds of those that others lead to only whether they are live.
	next *State
	err  error
}

// watch is what becomes of pools while a catalog is being made ready.
type watch struct {
	same  []bool       // by number: what is drawn is of no interest
	drawn []drawnSince // the newest of them
	full  [][]drawnSince
	died  []uint32 // numbers of pools, of those that stay the same, that have nothing left any more
}

// drawnSince is how often an entry was drawn in all, with a draw just made.
type drawnSince struct {
	pool, entry uint32
	drawn       uint64
}

// watchChunk is for how many draws there is memory at a time: it never moves, which could take long.
const watchChunk = 1024

// mostChunks is how many chunks are filled, 64 MiB, before the watch is given up, so that Apply computes
// everything: who was to catch up may never come.
const mostChunks = 4096

// fewSince is how much there may be left to catch up with under the realm's lock: some 20 µs.
const fewSince = 256

// putDown puts a draw down that was just counted, while there is a watch.
func (s *State) putDown(pool, entry uint32, drawn uint64) {
	w := s.watch
	if w.same[pool] {
		return
	}
	if len(w.drawn) == cap(w.drawn) {
		if len(w.drawn) > 0 {
			w.full = append(w.full, w.drawn)
		}
		if len(w.full) == mostChunks {
			s.watch = nil
			return
		}
		w.drawn = make([]drawnSince, 0, watchChunk)
	}
	w.drawn = append(w.drawn, drawnSince{pool, entry, drawn})
}

// few reports whether it takes little time to catch up with. A pool's end may, as that depends on how many
// entries lead to it.
func (w *watch) few() bool { return len(w.full) == 0 && len(w.drawn) <= fewSince && len(w.died) == 0 }

// Watch begins to make ready, beside commands, the pools that a prepared catalog changes. It
// reports whether there are any: then Stage follows, and Lags, until Apply or Unwatch. The
// caller holds the realm's lock.
func (s *State) Watch(p *Prepared) bool {
	if p.unchanged || p.base != s.current || !slices.Contains(p.same, false) {
		return false
	}
	s.watch = &watch{same: p.same}
	p.watch = s.watch
	return true
}

// Unwatch ends what Watch began, if Apply has not, and lets go of what DecideCatalog decided. The caller holds
// the realm's lock.
func (s *State) Unwatch() {
	s.watch = nil
	s.ev.prepared, s.ev.Catalog = nil, nil
}

// Stage computes what Apply of a prepared catalog will put in force. It runs beside commands,
// after Watch, but not beside Apply of another catalog.
func (s *State) Stage(p *Prepared) {
	if p.watch != nil {
		p.staged = s.stage(p)
	}
}

// Lags reports whether CatchUp is needed before Apply, which would else take long. The
// caller holds the realm's lock.
func (s *State) Lags(p *Prepared) bool {
	if p == nil || p.staged == nil || p.watch != s.watch || p.watch.few() {
		return false
	}
	p.take()
	return true
}

func (p *Prepared) take() {
	p.staged.taken = *p.watch
	*p.watch = watch{same: p.same}
}

// CatchUp takes account of what Lags found. It runs beside commands.
func (p *Prepared) CatchUp() { p.staged.catchUp(&p.staged.taken) }

// stage computes the pools that a catalog changes from their counters as they are.
func (s *State) stage(p *Prepared) *staged {
	t := p.tables
	next := &State{current: t, pools: make([]*poolState, len(t.pools)), odds: make([]poolOdds, len(t.pools)), alone: true}
	f := &staged{next: next}
	for num := range t.pools {
		switch {
		case !p.same[num]:
			next.pools[num] = s.stagePool(p, uint32(num))
		case num < len(s.pools) && !s.pools[num].spent.Load():
			next.odds[num].live = 1
		}
	}
	for i, ids := range p.names.added {
		if len(ids) > 0 {
			next.pools[p.names.pools[i]].extend(s.pools[p.names.pools[i]], ids)
		}
	}
	for _, ps := range next.pools {
		if ps != nil {
			next.restock(ps)
		}
	}
	next.countOdds(p.same)
	for _, ps := range next.pools {
		if ps != nil && s.live && f.err == nil {
			f.err = next.buildSampler(ps)
		}
	}
	return f
}

// stagePool returns a pool with nothing but a copy of its counters, and room for what is left.
func (s *State) stagePool(p *Prepared, num uint32) *poolState {
	if int(num) >= len(s.pools) {
		ps := p.names.newPools[int(num)-len(s.pools)]
		n := len(ps.entryIDs)
		return &poolState{id: ps.id, drawn: make([]uint64, n), left: make([]uint64, n)}
	}
	ps := s.pools[num]
	n := len(ps.entryIDs)
	if pt := p.tables.pools[num]; pt != nil {
		n = len(pt.entries)
	}
	next := &poolState{id: ps.id, drawn: make([]uint64, n), left: make([]uint64, n)}
	ps.copyCounters(next.drawn, nil)
	return next
}

// extend fills in the names of a pool's entries, with some that are new.
func (p *poolState) extend(was *poolState, added []string) {
	p.entryIDs = slices.Concat(was.entryIDs, added)
	p.entryNum = make(map[string]uint32, len(p.entryIDs))
	for i, id := range p.entryIDs {
		p.entryNum[id] = uint32(i)
	}
}

// catchUp takes account of what has become of the pools since their counters were copied, or
// before: what the copy has already changes nothing.
func (f *staged) catchUp(w *watch) {
	for _, drawn := range append(w.full, w.drawn) {
		for _, d := range drawn {
			f.drew(d)
		}
	}
	for _, num := range w.died {
		if s := f.next; s.odds[num].live > 0 && s.current.pools[num] != nil {
			s.odds[num].live = 0
			s.diedAbove(s.current.pools[num], 0)
		}
	}
	w.drawn, w.full, w.died = nil, nil, nil
}

func (f *staged) drew(d drawnSince) {
	s := f.next
	p, pt := s.pools[d.pool], s.current.pools[d.pool]
	if d.drawn <= p.drawn[d.entry] {
		return
	}
	p.drawn[d.entry] = d.drawn
	if pt == nil || !pt.entries[d.entry].limited {
		return
	}
	e := &pt.entries[d.entry]
	was, left := p.left[d.entry], leftAfter(e.config.Stock, d.drawn)
	if left == was {
		return // it was out already
	}
	p.left[d.entry] = left
	if e.group == noGroup {
		return
	}
	if p.sampler != nil {
		p.setWeight(d.entry, s.weight(pt, d.entry, left))
	}
	s.odds[d.pool].left[e.group] -= min(was, maxCounted) - min(left, maxCounted)
	s.mayDie(pt, e.group, 0)
}

// put puts the pools in force that a catalog changes, whose locks the writer holds.
func (s *State) put(f *staged, pos uint64) {
	odds := make([]poolOdds, len(s.pools))
	copy(odds, s.odds)
	for num, p := range s.pools {
		next := f.next.pools[num]
		if next == nil {
			continue
		}
		p.drawn, p.left, p.last = next.drawn, next.left, pos
		p.sampler, p.total, p.summed = next.sampler, next.total, next.summed
		if next.entryIDs != nil {
			p.entryIDs, p.entryNum = next.entryIDs, next.entryNum
		}
		for len(p.changed)*drawnChunk < len(p.drawn) {
			p.changed = append(p.changed, 0)
		}
		odds[num] = f.next.odds[num]
		p.spent.Store(odds[num].live == 0)
	}
	s.odds = odds
}
