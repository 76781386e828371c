package look

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// Campaign is the state of a pool's budgets and moments at one time. It says only what follows from
// the catalog and the results of all draws.
type Campaign struct {
	Budgets []view.Budget  // item by item, in the order of the catalog
	Moments []EntryMoments // in the order of the entries in the catalog
	spent   map[*rules.Budget]uint64
}

type EntryMoments struct {
	Entry string
	view.Moments
}

// Campaigns reports whether a pool has budgets or moments.
func Campaigns(t *rules.Tables, pool string) bool {
	pt := t.PoolByID[pool]
	return pt != nil && (len(pt.Budgets) > 0 || len(pt.Moments) > 0)
}

// CampaignOf returns the state of the budgets and moments of a pool of the catalog in force.
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
			c.Budgets = append(c.Budgets, view.Budget{Per: config.Per, Share: config.Share, Item: st.Item,
				Limit: st.Quantity, Spent: c.spent[b], ResetsAt: s.Resets(b)})
		}
	}
	for _, m := range pt.Moments {
		e := &pt.Entries[m.Entry]
		left := EntryMoments{e.ID, view.Moments{Come: s.Come(m)}}
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
