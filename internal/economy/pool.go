package economy

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/sampler"
)

// poolState is what a realm knows of a pool over all catalog versions.
type poolState struct {
	id       string
	entryNum map[string]uint32
	entryIDs []string // by entry number
	drawn    []uint64 // by entry number: over all versions
	left     []uint64 // by entry number: still in stock; 0 when unlimited or not in the catalog
	last     uint64   // position of the last change
	// sampler has the current weight of every entry by number; nil while the
	// pool is not in the catalog.
	sampler *sampler.Sampler
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
		p.sampler = nil
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
	p.sampler = smp
	return nil
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
