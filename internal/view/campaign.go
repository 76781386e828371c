package view

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// Campaign is how a pool's budgets and moments stand at one time. It says nothing that is not known to
// someone who has the catalog and the results of all draws.
type Campaign struct {
	Budgets []BudgetLeft  // item by item, in the order of the catalog
	Moments []MomentsLeft // entry by entry, in the order of the catalog
	spent   map[*rules.Budget]uint64
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
	Next    int64  // of even moments, the first time stamp of a draw that finds the next one; 0: no more come
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
		left := MomentsLeft{Entry: e.ID, Config: m.Config, Come: s.Come(m)}
		if pt.There(s, m.Entry) {
			due, _ := s.Moments(m)
			left.Waiting = min(due, s.Left(pt, m.Entry))
		}
		if m.Config.Spread == catalog.SpreadEven && left.Come < uint64(m.Config.Count) && m.Total > 0 {
			left.Next = m.Reaches(m.Slot(2*left.Come + 1))
		}
		c.Moments = append(c.Moments, left)
	}
}
