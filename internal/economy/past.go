package economy

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// What remembered answers need of older catalog versions: the rewards that a
// later version changed or removed, and nothing else. Names have numbers that are
// never reused, and every other reward is the one in force.

// superseded is the rewards that were in force up to a catalog version, and no
// longer in the next. It is immutable.
type superseded struct {
	version uint64
	keys    []uint64 // pool<<32 | entry, ascending
	rewards []reward // by index in keys
}

// reward is what an entry gives.
type reward struct {
	kind  catalog.RewardKind
	pool  uint32
	items []quantity
}

func (e *entryTable) reward() reward { return reward{kind: e.kind, pool: e.pool, items: e.items} }

func (r *reward) equal(o *reward) bool {
	return r.kind == o.kind && r.pool == o.pool && slices.Equal(r.items, o.items)
}

// supersede returns what old has and t has no longer, or otherwise.
func (t *tables) supersede(old *tables) superseded {
	out := superseded{version: old.version}
	for _, was := range old.pools {
		if was == nil {
			continue
		}
		is := t.pools[was.num]
		for num := range was.entries {
			e := &was.entries[num]
			if !e.present {
				continue
			}
			before := e.reward()
			if is != nil && is.entries[num].present {
				if now := is.entries[num].reward(); now.equal(&before) {
					continue
				}
			}
			out.keys = append(out.keys, uint64(was.num)<<32|uint64(num))
			out.rewards = append(out.rewards, before)
		}
	}
	return out
}

// forgetPast drops what no remembered id refers to.
func (s *State) forgetPast() {
	if len(s.past) == 0 {
		return
	}
	s.forgetPastBelow(s.ids.needs(s.current.version))
}

// needs returns the oldest catalog version that a remembered id refers to, or that given
// when there is none.
func (r *requestIDs) needs(current uint64) uint64 {
	if old, ok := r.oldest(); ok {
		return old.version
	}
	return current
}

// forgetPastBelow drops what is of catalog versions below one.
func (s *State) forgetPastBelow(needed uint64) {
	for len(s.past) > 0 && s.past[0].version < needed {
		s.past[0] = superseded{}
		s.past = s.past[1:]
	}
}

// rewardAt returns what an entry gave under a catalog version.
func (s *State) rewardAt(version uint64, pool, entry uint32) (reward, bool) {
	key := uint64(pool)<<32 | uint64(entry)
	for i := range s.past {
		if p := &s.past[i]; p.version >= version {
			if at, ok := slices.BinarySearch(p.keys, key); ok {
				return p.rewards[at], true
			}
		}
	}
	if int(pool) >= len(s.current.pools) || s.current.pools[pool] == nil {
		return reward{}, false
	}
	pt := s.current.pools[pool]
	if int(entry) >= len(pt.entries) || !pt.entries[entry].present {
		return reward{}, false
	}
	return pt.entries[entry].reward(), true
}

// writePast writes what was superseded since the base.
func (c *Capture) writePast(w *blockWriter) {
	for i := range c.past {
		p := &c.past[i]
		if p.version < c.baseMark().Version {
			continue
		}
		for n := 0; n < len(p.keys); {
			w.num(p.version)
			for ; n < len(p.keys) && len(w.b) < c.blockSize; n++ {
				w.num(p.keys[n] >> 32)
				w.num(p.keys[n] & (1<<32 - 1))
				w.reward(&p.rewards[n])
			}
			w.end(BlockPast)
		}
	}
}

func (w *blockWriter) reward(r *reward) {
	w.b = append(w.b, byte(r.kind))
	if r.kind == catalog.RewardPool {
		w.num(uint64(r.pool))
		return
	}
	w.num(uint64(len(r.items)))
	for _, q := range r.items {
		w.num(uint64(q.item))
		w.num(q.min)
		w.num(q.max)
	}
}

// past loads a block of superseded rewards.
func (l *Loader) past(d *decoder) {
	s := l.s
	version := d.uvarint("a version", l.want.Version)
	if d.err != nil {
		return
	}
	if n := len(s.past); n == 0 || s.past[n-1].version < version {
		s.past = append(s.past, superseded{version: version})
	}
	p := &s.past[len(s.past)-1]
	if p.version != version {
		d.fail("rewards up to catalog version %d after those up to %d", version, p.version)
	}
	for d.more() {
		pool := d.uvarint("a pool", uint64(len(s.pools)))
		entry := d.uvarint("an entry", maxEntriesEver)
		if d.err == nil && (pool >= uint64(len(s.pools)) || entry >= uint64(len(s.pools[pool].entryIDs))) {
			d.fail("there is no entry number %d of pool number %d", entry, pool)
			return
		}
		key := pool<<32 | entry
		if n := len(p.keys); n > 0 && p.keys[n-1] >= key {
			d.fail("a reward of pool number %d, entry number %d, out of order", pool, entry)
		}
		r := d.reward(len(s.pools), len(s.items))
		if d.err != nil {
			return
		}
		p.keys, p.rewards = append(p.keys, key), append(p.rewards, r)
	}
}

func (d *decoder) reward(pools, items int) (r reward) {
	r.kind = catalog.RewardKind(d.byte("a kind of reward"))
	switch r.kind {
	case catalog.RewardPool:
		if r.pool = uint32(d.uvarint("a pool", maxPoolsEver)); int(r.pool) >= pools {
			d.fail("pool number %d of %d", r.pool, pools)
		}
		return r
	case catalog.RewardNothing, catalog.RewardItems:
	default:
		d.fail("unknown kind of reward %d", r.kind)
	}
	for range d.uvarint("the number of items", catalog.MaxBundle) {
		q := quantity{item: uint32(d.uvarint("an item", maxItemsEver))}
		q.min = d.uvarint("a minimum", MaxQuantity)
		q.max = d.uvarint("a maximum", MaxQuantity)
		if d.err == nil && (int(q.item) >= items || q.min == 0 || q.min > q.max) {
			d.fail("item number %d of %d, quantity %d to %d", q.item, items, q.min, q.max)
		}
		r.items = append(r.items, q)
	}
	return r
}
