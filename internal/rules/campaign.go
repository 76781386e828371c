package rules

import "github.com/kuji-dev/kuji/catalog"

// Campaign is how a pool's budgets and moments stand at one time. It says nothing that is not known to
// whoever has the catalog and the results of all draws.
type Campaign struct {
	Budgets []BudgetLeft  // item by item, in the order of the catalog
	Moments []MomentsLeft // entry by entry, in the order of the catalog
	over    NumSet        // the entries that a budget rules out
}

// BudgetLeft is what is left of one item of a budget.
type BudgetLeft struct {
	Per    catalog.Per
	Share  string
	Item   string
	Limit  uint64
	Spent  uint64
	Resets int64 // Unix milliseconds; 0: never
}

// MomentsLeft is how the moments of an entry stand.
type MomentsLeft struct {
	Entry   string
	Config  *catalog.Moments
	Come    uint64 // for sure: those that were found by draws, and those whose time is over
	Waiting uint64 // of these, how many the next draws will take: none while budgets or codes rule the entry out
	Next    int64  // of even moments, the first time stamp of a draw that finds the next one; 0: there is none
}

// Campaigns reports whether a pool has budgets or moments.
func (t *Tables) Campaigns(pool string) bool {
	pt := t.PoolByID[pool]
	return pt != nil && (len(pt.Budgets) > 0 || len(pt.Moments) > 0)
}

// Campaign returns how the budgets and moments of a pool of the catalog in force stand.
func (r *Rules) Campaign(pool string, now int64) *Campaign {
	pt, c := r.t.PoolByID[pool], &Campaign{}
	r.begin(now, nil, nil)
	defer r.d.end()
	for i := range pt.Config.Budgets {
		config := &pt.Config.Budgets[i]
		for _, st := range config.Of {
			b := pt.Budgets[len(c.Budgets)]
			c.Budgets = append(c.Budgets, BudgetLeft{config.Per, config.Share, st.Item, st.Quantity, r.spent(b), r.resets(b)})
		}
	}
	for _, m := range pt.Moments {
		e := &pt.Entries[m.Entry]
		due, p := r.expect(m)
		left := MomentsLeft{Entry: e.ID, Config: m.Config, Come: r.tally(m.Counter+1) + p.Sure, Waiting: min(due, r.left(pt, m.Entry))}
		if !r.affords(e) || !r.codesLeft(&e.Reward) {
			left.Waiting = 0
		}
		if m.Config.Spread == catalog.SpreadEven && left.Come < uint64(m.Config.Count) && m.Total > 0 {
			left.Next = m.reaches(m.Slot(2*left.Come + 1))
		}
		c.Moments = append(c.Moments, left)
	}
	for _, num := range pt.Order {
		if !r.affords(&pt.Entries[num]) {
			c.over.Add(num)
		}
	}
	return c
}

// reaches returns the first time stamp at which more than a measure of the pool's time is over.
func (m *Moments) reaches(measure uint64) int64 {
	return FirstTime(m.Starts, m.Ends, func(t int64) bool { return m.Measure(t) > measure })
}

// firstTime returns the first time from one on at which f is true, or the other. Once it is true, it
// stays so.
func FirstTime(from, to int64, f func(int64) bool) int64 {
	for from < to {
		if middle := from + (to-from)/2; f(middle) {
			to = middle
		} else {
			from = middle + 1
		}
	}
	return from
}

// resets returns the first time stamp at which a budget is full again, 0 if it never is.
func (r *Rules) resets(b *Budget) int64 {
	if b.Per == catalog.PerForever {
		return 0
	}
	from := r.d.now
	if when := int64(r.tally(b.Counter+1)) - r.state.Back(); r.spent(b) > 0 {
		from = max(from, when) // of a zone whose clocks are ahead, or before the clock was set back
	}
	return r.t.Zone.Next(b.Per, from)
}

// BudgetItem is an item of a budget, for who counts what is spent of it.
type BudgetItem struct {
	Pool     string // one that has the budget
	Per      catalog.Per
	Share    string
	Item     string
	Limit    uint64
	Counter  uint32 // of the realm: what was spent
	Cheapest uint64 // the least that an entry can ask for; 0: none asks for any
}

// BudgetItems returns the items of the budgets of some pools, each once.
func (t *Tables) BudgetItems(pools []string) (all []BudgetItem) {
	at := map[*Budget]int{}
	for _, id := range pools {
		pt, n := t.PoolByID[id], 0
		for i := range pt.Config.Budgets {
			config := &pt.Config.Budgets[i]
			for _, st := range config.Of {
				b := pt.Budgets[n]
				if n++; at[b] == 0 {
					all = append(all, BudgetItem{id, config.Per, config.Share, st.Item, st.Quantity, b.Counter, 0})
					at[b] = len(all)
				}
			}
		}
		for _, num := range pt.Order {
			for _, c := range pt.Entries[num].Costs {
				if it := &all[at[c.Budget]-1]; it.Cheapest == 0 || c.Most < it.Cheapest {
					it.Cheapest = c.Most
				}
			}
		}
	}
	return all
}

// Period returns the number of the hour, day or week that clocks show at a time stamp; 0 of all time.
func (t *Tables) Period(per catalog.Per, now int64) uint64 { return t.Zone.Period(per, now) }

// List returns the number of a list of codes that the catalog names.
func (t *Tables) List(name string) (num uint32, ok bool) {
	num, ok = t.ListNum[name]
	return num, ok
}

// MostPicks returns how many entries a draw from a pool can at most take, here and below.
func (t *Tables) MostPicks(pool string) uint64 { return t.PoolByID[pool].Picks }
