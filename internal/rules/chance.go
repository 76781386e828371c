package rules

// Facts are what chance depends on, of a realm and of one player. Draws take them from the state and
// from what the command has done so far: see [Sight]. Odds take them from each way that a draw can
// go. So each rule about chance is written once, for both.
type Facts interface {
	Left(p *Pool, entry uint32) uint64          // of the stock; more than 0 if that is unlimited
	Picked(p *Pool, entry uint32) bool          // the current draw, without repetition, has taken it
	Live(p *Pool) bool                          // something can be drawn from the pool: see [Pool.Alive]
	Unfinished(p *Pool) bool                    // the box gives no last reward and is not filled, as tickets of it are held
	Refilled(p *Pool) uint64                    // how often the box was filled again
	CodesLeft(list uint32) uint64               // of a list
	Spent(b *Budget) uint64                     // since it was full
	Moments(m *Moments) (due uint64, p Pending) // how many are due for sure, and what is still to be decided
	Balance(item uint32) uint64                 // that the player holds
	Counter(counter uint32) uint64              // of the player
	Count(c *Counter) uint64                    // where one of the catalog's counters stands
	Room(c *Counter) uint64                     // by how much it can still move; 0: it does not count now
	Keys(c *Counter) []uint64                   // what it has counted, if it is distinct
	Claimed(q *Quest) uint64                    // how many tiers the player has claimed
}

// There reports whether an entry can be taken: stock, codes and budgets suffice.
func (p *Pool) There(f Facts, entry uint32) bool {
	e := &p.Entries[entry]
	if e.Limited && f.Left(p, entry) == 0 {
		return false
	}
	for _, list := range e.Codes {
		if f.CodesLeft(list) == 0 {
			return false
		}
	}
	return e.Afforded(f)
}

// Afforded reports whether the budgets of its pool have what an entry can give.
func (e *Entry) Afforded(f Facts) bool {
	for _, c := range e.Costs {
		if c.Most > c.Left(f.Spent(c.Budget)) {
			return false
		}
	}
	return true
}

// Weigh returns what an entry weighs in the next pick from its pool; in mode each, its chance in the
// next roll. If ask is false, its condition counts as met.
func (p *Pool) Weigh(f Facts, entry uint32, ask bool) uint64 {
	if !p.There(f, entry) || !p.single && f.Picked(p, entry) {
		return 0
	}
	e := &p.Entries[entry]
	if e.Conditional {
		return e.weightFor(f, ask)
	}
	if target := e.Target(); target != nil && !f.Live(target) {
		return 0
	}
	if p.raffle {
		return f.Left(p, entry)
	}
	return e.Weight
}

// Alive reports whether every player can draw something from a pool.
func (p *Pool) Alive(f Facts) bool {
	if p.Endless {
		return true
	}
	for _, num := range p.Order {
		if p.Counts(f, num) {
			return true
		}
	}
	return false
}

// Counts reports whether an entry keeps its pool alive: it is there for everybody.
func (p *Pool) Counts(f Facts, entry uint32) bool {
	return p.Entries[entry].Branch != NoBranch && p.Weigh(f, entry, true) > 0
}
