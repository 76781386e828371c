package view

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// Campaign is how a pool's budgets and moments stand at one time. It says only what follows from the catalog
// and the results of all draws.
type Campaign struct {
	Budgets []BudgetLeft   // item by item, in the order of the catalog
	Moments []EntryMoments // entry by entry, in the order of the catalog
	spent   map[*rules.Budget]uint64
}

type EntryMoments struct {
	Entry string
	MomentsLeft
}

// BudgetLeft is what is left of an item of a budget.
type BudgetLeft struct {
	Per          catalog.Per
	Share        string // its name, if pools share it
	Item         string
	Limit, Spent uint64
	ResetsAt     int64 // from when on the budget is full again, Unix milliseconds; 0: never
}

// Left returns how much can still be given. Spent can be above Limit after a catalog has lowered it.
func (b *BudgetLeft) Left() uint64 { return b.Limit - min(b.Limit, b.Spent) }

// MomentsLeft is how an entry's winning moments stand: see catalog.Moments. EntryStock.Drawn says how many
// were taken. It tells no future moment but those that follow from the catalog.
type MomentsLeft struct {
	Come    uint64 // those that draws have found, and those whose time is over
	Waiting uint64 // of these, how many the next draws take: none while budgets or codes rule the entry out
	NextAt  int64  // when the next one comes if they are even, Unix milliseconds; 0: not known, or none
}

// Campaigns reports whether a pool has budgets or moments.
func Campaigns(t *rules.Tables, pool string) bool {
	pt := t.PoolByID[pool]
	return pt != nil && (len(pt.Budgets) > 0 || len(pt.Moments) > 0)
}

// CampaignOf returns how the budgets and moments of a pool of the catalog in force stand.
func CampaignOf(r *rules.Rules, pool string, now int64) *Campaign {
	c := &Campaign{spent: map[*rules.Budget]uint64{}}
	r.Look("", now, func(s *rules.Sight) { c.fill(r.Tables().PoolByID[pool], s) })
	return c
}

func (c *Campaign) fill(pt *rules.Pool, s *rules.Sight) {
	for i := range pt.Config.Budgets {
		config := &pt.Config.Budgets[i]
		for _, st := range config.Of {
			b := pt.Budgets[len(c.Budgets)]
			c.spent[b] = s.Spent(b)
			c.Budgets = append(c.Budgets, BudgetLeft{config.Per, config.Share, st.Item, st.Quantity, c.spent[b], s.Resets(b)})
		}
	}
	for _, m := range pt.Moments {
		e := &pt.Entries[m.Entry]
		left := EntryMoments{e.ID, MomentsLeft{Come: s.Come(m)}}
		if pt.There(s, m.Entry) {
			due, _ := s.Moments(m)
			left.Waiting = min(due, s.Left(pt, m.Entry))
		}
		if m.Config.Spread == catalog.SpreadEven && left.Come < uint64(m.Config.Count) && m.Total > 0 {
			left.NextAt = m.Reaches(m.Slot(2*left.Come + 1))
		}
		c.Moments = append(c.Moments, left)
	}
}
