package odds

import (
	"cmp"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
)

// A fact is something that a pick can depend on: what is left of an entry or a list of codes, how many
// of an item the player holds, a counter of the player, or one of the realm.
type fact uint64

const (
	codesFact   fact = 1 << 61 // what is left of a list
	hitsFact    fact = 3 << 61 // how often the request has hit a guarantee of the root
	balanceFact fact = 1 << 62
	counterFact fact = 2 << 62
	tallyFact   fact = 3 << 62
	factKinds   fact = 3 << 62 // 0: what is left of an entry
)

// What is spent of a budget; whether it is still open how many moments have come; how many are due.
func spentOf(b *rules.Budget) fact              { return tallyFact | fact(b.Counter) }
func openOf(m *rules.Moments) fact              { return tallyFact | fact(m.Counter) }
func dueOf(m *rules.Moments) fact               { return tallyFact | fact(m.Counter+2) }
func claimedOf(q *rules.Quest) fact             { return tallyFact | 1<<59 | fact(q.Num) }
func listOf(list uint32) fact                   { return codesFact | fact(list) }
func stockOf(pt *rules.Pool, entry uint32) fact { return fact(pt.Num)<<32 | fact(entry) }

// facts are the facts that have changed on a way, ascending.
type facts []changed

type changed struct {
	fact  fact
	value uint64
}

// value returns the value of a fact on a way.
func (w *scheme) value(at facts, f fact) uint64 {
	w.budget -= 2
	if i, ok := at.search(f); ok {
		return at[i].value
	}
	return w.s.facts[f]
}

func (at facts) search(f fact) (int, bool) {
	return slices.BinarySearchFunc(at, f, func(c changed, f fact) int { return cmp.Compare(c.fact, f) })
}

// set returns facts with one of them changed, if ways keep it.
func (w *scheme) set(at facts, f fact, value uint64) facts {
	if _, kept := w.keeps[f]; !kept {
		return at
	}
	w.budget -= len(at) / 4
	return w.put(slices.Clone(at), f, value)
}

// put is set, but changes facts in place.
func (w *scheme) put(at facts, f fact, value uint64) facts {
	most, kept := w.keeps[f]
	if !kept {
		return at
	}
	i, ok := at.search(f)
	if !ok {
		at = slices.Insert(at, i, changed{fact: f})
	}
	at[i].value = min(value, most)
	return at
}

// onWay is what the rules see on a way: see [rules.Facts].
type onWay struct {
	w      *scheme
	at     facts
	picked []uint32 // the entries of the pool that picks must not take again, ascending
}

func (w *scheme) on(at facts, picked []uint32) *onWay { return &onWay{w, at, picked} }

func (o *onWay) Left(pt *rules.Pool, entry uint32) uint64 {
	if !pt.Entries[entry].Limited {
		return 1
	}
	return o.w.value(o.at, stockOf(pt, entry))
}

func (o *onWay) Picked(_ *rules.Pool, entry uint32) bool { // each pool is weighed with its own picks
	_, found := slices.BinarySearch(o.picked, entry)
	return found
}

func (o *onWay) Live(pt *rules.Pool) bool {
	o.w.budget -= len(pt.Order)
	return pt.Alive(o.w.on(o.at, nil))
}

func (o *onWay) Unfinished(pt *rules.Pool) bool { return slices.Contains(o.w.s.unfinished, pt) }
func (o *onWay) Refilled(pt *rules.Pool) uint64 { return o.w.value(o.at, tallyFact|fact(pt.Refills)) }
func (o *onWay) CodesLeft(list uint32) uint64   { return o.w.value(o.at, listOf(list)) }
func (o *onWay) Spent(b *rules.Budget) uint64   { return o.w.value(o.at, spentOf(b)) }
func (o *onWay) Balance(item uint32) uint64     { return o.w.value(o.at, balanceFact|fact(item)) }
func (o *onWay) Counter(counter uint32) uint64  { return o.w.value(o.at, counterFact|fact(counter)) }
func (o *onWay) Count(c *rules.Counter) uint64  { return o.w.value(o.at, countOf(c)) }
func (o *onWay) Room(c *rules.Counter) uint64   { return o.w.room(o.at, c) }
func (o *onWay) Keys(*rules.Counter) []uint64   { return nil } // ways have a fact for each: see seenOf
func (o *onWay) Claimed(q *rules.Quest) uint64  { return o.w.value(o.at, claimedOf(q)) }
func (o *onWay) Moments(m *rules.Moments) (due uint64, p rules.Pending) {
	if due = o.w.value(o.at, dueOf(m)); o.w.value(o.at, openOf(m)) > 0 {
		p = o.w.s.pending[m]
	}
	return due, p
}
