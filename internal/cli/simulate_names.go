package cli

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/disclosure"
	"github.com/kuji-dev/kuji/internal/simulate"
)

// named returns a report with names in place of ids, the rarest first, for people who do not know the ids. It changes
// nothing of the one that it is given.
func named(r *simulate.Report, c *catalog.Catalog, language string) *simulate.Report {
	l, out := disclosure.NewLabels(c, language), *r
	out.Catalog, out.Pool = l.Catalog(), l.Pool(r.Pool)
	amounts := func(all []simulate.Amount) []simulate.Amount {
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b simulate.Amount) int { return l.RarityOf(b.Item).Rank - l.RarityOf(a.Item).Rank })
		for i := range all {
			all[i].Item = l.Item(all[i].Item)
		}
		return all
	}
	prizes := func(all []simulate.Prize) []simulate.Prize {
		all = slices.Clone(all)
		for i := range all {
			all[i].Item = l.Item(all[i].Item)
		}
		return all
	}
	out.Paid, out.Given, out.Grown = amounts(r.Paid), amounts(r.Given), prizes(r.Grown)
	if r.Pay != "" {
		out.Pay = l.Item(r.Pay)
	}
	out.Odds = slices.Clone(r.Odds)
	slices.SortStableFunc(out.Odds, func(a, b simulate.Odds) int {
		return l.EntryOf(b.Pool, b.Entry).Rank - l.EntryOf(a.Pool, a.Entry).Rank
	})
	for i := range out.Odds {
		o := &out.Odds[i]
		o.Entry, o.Pool = l.EntryOf(o.Pool, o.Entry).Name, l.Pool(o.Pool)
	}
	if r.Until != nil {
		until := *r.Until
		until.Item, until.Costs = l.Item(until.Item), slices.Clone(until.Costs)
		for i := range until.Costs {
			if item := until.Costs[i].Item; item != "" {
				until.Costs[i].Item = l.Item(item)
			}
		}
		out.Until = &until
	}
	out.Quests = slices.Clone(r.Quests)
	for i := range out.Quests {
		out.Quests[i].Quest, out.Quests[i].Given = l.Quest(out.Quests[i].Quest), prizes(out.Quests[i].Given)
	}
	out.Ranks = slices.Clone(r.Ranks)
	for i := range out.Ranks {
		out.Ranks[i].Counter, out.Ranks[i].Given = l.Counter(out.Ranks[i].Counter), prizes(out.Ranks[i].Given)
	}
	out.Beyond = slices.Clone(r.Beyond)
	for i := range out.Beyond {
		out.Beyond[i].Item = l.Item(out.Beyond[i].Item)
	}
	out.Stock = stockNamed(r.Stock, l)
	return &out
}

func stockNamed(s *simulate.Stock, l *disclosure.Labels) *simulate.Stock {
	if s == nil {
		return nil
	}
	out := *s
	out.Entries, out.Budgets = slices.Clone(s.Entries), slices.Clone(s.Budgets)
	for i := range out.Entries {
		e := &out.Entries[i]
		e.Entry, e.Pool = l.EntryOf(e.Pool, e.Entry).Name, l.Pool(e.Pool)
	}
	for i := range out.Budgets {
		out.Budgets[i].Pool, out.Budgets[i].Item = l.Pool(out.Budgets[i].Pool), l.Item(out.Budgets[i].Item)
	}
	return &out
}
