package economy

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/sampler"
)

// poolState is what a realm knows of a pool over all catalog versions. One
// goroutine writes, and others read what mu guards: the writer holds it from an
// event's first change of the pool until the event is applied as a whole. The commonest
// draws open guard instead of taking mu (see takeCommon): who reads what they change,
// beside them, takes mu and goes by guard.
type poolState struct {
	id       string
	entryNum map[string]uint32 // theirs who plan, prepare and apply catalogs
	// sampler has the current weight of every entry by number; nil while the
	// pool is not in the catalog. The writer's alone.
	sampler *sampler.Sampler

	spent atomic.Bool // nothing can be drawn from it: entries that lead to it have no odds

	mu       sync.Mutex
	mine     bool     // the writer holds mu
	entryIDs []string // by entry number
	summed   bool     // there is a sampler

	guard   guard
	drawn   []uint64 // by entry number: over all versions
	left    []uint64 // by entry number: still in stock; 0 when unlimited or not in the catalog
	changed []uint64 // by entry number / drawnChunk: position of the last change of drawn
	last    uint64   // position of the last change
	total   uint64   // the sum of the entries' current weights, when there is a sampler
}

// drawnChunk is how many counters a snapshot copies at a time.
const drawnChunk = 512

// lockPool takes a pool's lock for the writer, until unlockPools.
func (s *State) lockPool(p *poolState) {
	if !p.mine && !s.alone {
		p.mu.Lock()
		p.mine = true
		s.heldPools = append(s.heldPools, p)
	}
}

func (s *State) unlockPools() {
	for _, p := range s.heldPools {
		p.mine = false
		p.mu.Unlock()
	}
	s.heldPools = s.heldPools[:0]
}

// touchPool says that a pool has changed, of which nothing else has that readers see of
// it beside the tables.
func (s *State) touchPool(p *poolState, pos uint64) {
	if !p.mine && !s.alone {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	p.last = pos
}

// countDrawn counts one draw of an entry by an event at a position.
func (s *State) countDrawn(num uint32, p *poolState, entry uint32, pos uint64) {
	s.lockPool(p)
	if c := entry / drawnChunk; p.changed[c] != pos {
		if s.players.capture != nil {
			s.players.capture.keepDrawn(num, p, c)
		}
		p.changed[c] = pos
	}
	p.last = pos
	p.drawn[entry]++
	if s.watch != nil {
		s.putDown(num, entry, p.drawn[entry])
	}
}

// weight returns the weight that an entry with this much left has by itself; see
// [State.weight] for entries that lead to another pool.
func (pt *poolTable) weight(entry uint32, left uint64) uint64 {
	e := &pt.entries[entry]
	switch {
	case !e.present || (e.limited && left == 0):
		return 0
	case pt.config.Mode == catalog.ModeRaffle:
		return left
	}
	return e.weight
}

// buildSampler makes a pool's sampler from its current weights.
func (s *State) buildSampler(p *poolState) error {
	pt := s.current.pool[p.id]
	if pt == nil {
		p.sampler, p.summed = nil, false
		return nil
	}
	weights := make([]uint64, len(pt.entries))
	for i := range weights {
		weights[i] = s.weight(pt, uint32(i), p.left[i])
	}
	smp, err := sampler.New(weights)
	if err != nil {
		return fmt.Errorf("economy: pool %q: %w", p.id, err)
	}
	p.sampler, p.total, p.summed = smp, smp.Total(), true
	return nil
}

// setWeight sets the current weight of an entry of a pool whose lock the writer
// holds, and of which there is a sampler. Decide changes weights, too, but puts them
// back.
func (p *poolState) setWeight(entry uint32, weight uint64) {
	mustSet(p, entry, weight)
	p.total = p.sampler.Total()
}

// restock computes what is left of a pool's entries under the catalog in force.
func (s *State) restock(p *poolState) {
	pt := s.current.pool[p.id]
	for i := range p.left {
		p.left[i] = 0
		if pt != nil && pt.entries[i].present {
			p.left[i] = leftAfter(pt.entries[i].config.Stock, p.drawn[i])
		}
	}
}

// leftAfter returns what is left of an entry's stock in a catalog that gives it
// this stock, when drawn were given already. It is never negative: an entry of
// which more was drawn than the new stock is simply out.
func leftAfter(st catalog.Stock, drawn uint64) uint64 {
	if st.Unlimited || st.Count <= drawn {
		return 0
	}
	return st.Count - drawn
}
