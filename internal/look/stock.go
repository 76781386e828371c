// Package look tells readers the state of a realm: stock and weights, limits, tracks, budgets and
// moments, and which events a reader wants. It reads the rules' tables. Nothing that decides or
// writes may enter it.
package look

import (
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// StockReader reads stock concurrently with the writer: see store.ReadStock.
type StockReader interface {
	CodesLeft(list uint32) (left, last uint64)
	ReadStock(pool uint32, entries []uint32, version uint64, f func(i int, left, drawn uint64, limited bool)) (last uint64, ok bool)
}

// Items returns the places of items in the catalog, ascending, without those that it does not have.
func Items(t *rules.Tables, ids []string) (at []int) {
	for _, id := range ids {
		if num, ok := t.ItemNum[id]; ok {
			at = append(at, int(t.ItemAt[num]))
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// PoolOf returns a pool with at most n entries, from index from on in the catalog's order. It may be
// called concurrently with the writer. c says which entries budgets rule out; nil: none. known is
// false if the catalog has no such pool. current is false if another one came into force meanwhile.
func PoolOf(t *rules.Tables, state StockReader, id string, from, n int, c *Campaign) (p view.Pool, known, current bool) {
	pt := t.PoolByID[id]
	if pt == nil {
		return p, false, true
	}
	from = min(from, len(pt.Order))
	to := from + min(n, len(pt.Order)-from)
	v := viewer{t: t, state: state, campaign: c, live: map[uint32]bool{}}
	p = view.Pool{ID: id, CatalogVersion: t.Version, Config: *pt.Config, Entries: make([]view.Entry, 0, to-from)}
	v.readBelow(pt)
	ok := v.read(pt, func(i int, left, drawn uint64, limited bool) {
		e := view.Entry{ID: pt.Entries[pt.Order[i]].ID, Unlimited: !limited, Left: left, Drawn: drawn}
		num := pt.Order[i]
		e.Weight, e.OverBudget = pt.Weigh(&v, num, false), c != nil && !pt.Entries[num].Afforded(&v)
		p.TotalWeight += e.Weight
		if i >= from && i < to {
			p.Entries = append(p.Entries, e)
		}
	})
	if pt.Config.Mode == catalog.ModeEach {
		p.TotalWeight = 100 * pt.Config.WeightScale
	}
	if c != nil {
		p.Budgets = c.Budgets
		for i := range c.Moments {
			m := &c.Moments[i]
			if k := slices.IndexFunc(p.Entries, func(e view.Entry) bool { return e.ID == m.Entry }); k >= 0 {
				p.Entries[k].Moments = &m.Moments
			}
		}
	}
	p.Position = v.last
	return p, true, ok && !v.stale
}

// Sums returns the sums of at most n pools, in the catalog's order, without their Draws, and the
// position of the last change to any of them. It may be called concurrently with the writer. current
// is false if another catalog came into force meanwhile.
func Sums(t *rules.Tables, state StockReader, n int) (sums []view.PoolSum, last uint64, current bool) {
	v := viewer{t: t, state: state}
	if t.Catalog == nil {
		return nil, 0, true
	}
	sums = make([]view.PoolSum, 0, min(n, len(t.Catalog.Pools)))
	for i := range cap(sums) {
		pt := t.PoolByID[t.Catalog.Pools[i].ID]
		sum := view.PoolSum{ID: pt.Config.ID}
		v.read(pt, func(_ int, left, drawn uint64, limited bool) {
			sum.Drawn += drawn
			sum.Left += min(left, math.MaxUint64-sum.Left)
			sum.Limited = sum.Limited || limited
		})
		sums = append(sums, sum)
	}
	return sums, v.last, !v.stale
}

// viewer has the facts for nobody in particular: see [rules.Facts].
type viewer struct {
	rules.Facts // nobody asks for the rest
	t           *rules.Tables
	state       StockReader
	campaign    *Campaign
	left        uint64          // of the entry being read
	live        map[uint32]bool // by number of the pool, for pools that were read
	last        uint64          // the newest position seen
	stale       bool            // another catalog came into force
}

// read reads all entries of a pool in catalog order.
func (v *viewer) read(pt *rules.Pool, f func(i int, left, drawn uint64, limited bool)) bool {
	last, ok := v.state.ReadStock(pt.Num, pt.Order, v.t.Version, func(i int, left, drawn uint64, limited bool) {
		v.left = left
		f(i, left, drawn, limited)
	})
	v.last = max(v.last, last)
	v.stale = v.stale || !ok
	return ok
}

// readBelow finds out which of the pools that a pool leads to have something left. It comes before the
// pool itself is read: later some of them may run out. The event that empties a box fills it again.
func (v *viewer) readBelow(pt *rules.Pool) {
	for i := range pt.Branches {
		if target := pt.Branches[i].Target; target != nil {
			v.Live(target)
		}
	}
}

func (v *viewer) Live(pt *rules.Pool) bool {
	live, known := v.live[pt.Num]
	if pt.Endless || known {
		return pt.Endless || live
	}
	v.readBelow(pt)
	v.read(pt, func(i int, _, _ uint64, _ bool) { live = live || pt.Counts(v, pt.Order[i]) })
	v.live[pt.Num] = live
	return live
}

func (v *viewer) Left(*rules.Pool, uint32) uint64 { return v.left }

func (v *viewer) CodesLeft(list uint32) uint64 {
	left, last := v.state.CodesLeft(list)
	v.last = max(v.last, last)
	return left
}

func (v *viewer) Spent(b *rules.Budget) uint64 {
	if v.campaign == nil {
		return 0
	}
	return v.campaign.spent[b]
}

func (v *viewer) Picked(*rules.Pool, uint32) bool { return false }
func (v *viewer) Balance(uint32) uint64           { return 0 }
func (v *viewer) Counter(uint32) uint64           { return 0 }

// Every counter stands at 0 for nobody in particular, one of the realm too: its value would have to wait for the
// writer.
func (v *viewer) Count(*rules.Counter) uint64 { return 0 }
func (v *viewer) Claimed(*rules.Quest) uint64 { return 0 }
