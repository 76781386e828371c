package rules

import "github.com/kuji-dev/kuji/catalog"

// Campaign is how a pool's budgets and moments stand at one time. It says nothing that is not known to
// whoever has the catalog and the results of all draws.
type Campaign struct {
	Budgets []BudgetLeft  // item by item, in the order of the catalog
	Moments []MomentsLeft // entry by entry, in the order of the catalog
	over    bitset        // the entries that a budget rules out
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
	pt := t.pool[pool]
	return pt != nil && (len(pt.budgets) > 0 || len(pt.moments) > 0)
}

// Campaign returns how the budgets and moments of a pool of the catalog in force stand.
func (r *Rules) Campaign(pool string, now int64) *Campaign {
	pt, c := r.t.pool[pool], &Campaign{}
	r.begin(now, nil, nil)
	defer r.d.end()
	for i := range pt.config.Budgets {
		config := &pt.config.Budgets[i]
		for _, st := range config.Of {
			b := pt.budgets[len(c.Budgets)]
			c.Budgets = append(c.Budgets, BudgetLeft{config.Per, config.Share, st.Item, st.Quantity, r.spent(b), r.resets(b)})
		}
	}
	for _, m := range pt.moments {
		e := &pt.entries[m.entry]
		due, p := r.expect(m)
		left := MomentsLeft{Entry: e.id, Config: m.config, Come: r.tally(m.counter+1) + p.sure, Waiting: min(due, r.left(pt, m.entry))}
		if !r.affords(e) || !r.codesLeft(&e.reward) {
			left.Waiting = 0
		}
		if m.config.Spread == catalog.SpreadEven && left.Come < uint64(m.config.Count) && m.total > 0 {
			left.Next = m.reaches(m.slot(2*left.Come + 1))
		}
		c.Moments = append(c.Moments, left)
	}
	for _, num := range pt.order {
		if !r.affords(&pt.entries[num]) {
			c.over.add(num)
		}
	}
	return c
}

// reaches returns the first time stamp at which more than a measure of the pool's time is over.
func (m *moments) reaches(measure uint64) int64 {
	return firstTime(m.starts, m.ends, func(t int64) bool { return m.measure(t) > measure })
}

// firstTime returns the first time from one on at which f is true, or the other. Once it is true, it
// stays so.
func firstTime(from, to int64, f func(int64) bool) int64 {
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
func (r *Rules) resets(b *budget) int64 {
	if b.per == catalog.PerForever {
		return 0
	}
	from := r.d.now
	if when := int64(r.tally(b.counter+1)) - r.state.Back(); r.spent(b) > 0 {
		from = max(from, when) // of a zone whose clocks are ahead, or before the clock was set back
	}
	return r.t.zone.next(b.per, from)
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
	at := map[*budget]int{}
	for _, id := range pools {
		pt, n := t.pool[id], 0
		for i := range pt.config.Budgets {
			config := &pt.config.Budgets[i]
			for _, st := range config.Of {
				b := pt.budgets[n]
				if n++; at[b] == 0 {
					all = append(all, BudgetItem{id, config.Per, config.Share, st.Item, st.Quantity, b.counter, 0})
					at[b] = len(all)
				}
			}
		}
		for _, num := range pt.order {
			for _, c := range pt.entries[num].costs {
				if it := &all[at[c.budget]-1]; it.Cheapest == 0 || c.most < it.Cheapest {
					it.Cheapest = c.most
				}
			}
		}
	}
	return all
}

// Period returns the number of the hour, day or week that clocks show at a time stamp; 0 of all time.
func (t *Tables) Period(per catalog.Per, now int64) uint64 { return t.zone.period(per, now) }

// List returns the number of a list of codes that the catalog names.
func (t *Tables) List(name string) (num uint32, ok bool) {
	num, ok = t.list[name]
	return num, ok
}

// MostPicks returns how many entries a draw from a pool can at most take, here and below.
func (t *Tables) MostPicks(pool string) uint64 { return t.pool[pool].picks }
