package simulate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
)

// Supply is what all players of a world share besides stock: budgets and lists of codes.

type supplies struct {
	lists     []list
	budgets   []budgetItem
	mostCodes uint64 // that a request can take of a list
}

// list is a list that draws give codes of.
type list struct {
	name  string
	num   uint32
	limit uint64 // how many codes it has; 0: as many as are asked for
}

// budgetUse is what a world has spent of an item of a budget.
type budgetUse struct {
	BudgetUse
	period uint64 // the one that now is for
	now    uint64
}

// budgetItem is an item of a budget.
type budgetItem struct {
	*rules.Budget
	use      BudgetUse // with nothing spent yet
	cheapest uint64    // the least that an entry can ask for; 0: none asks for any
}

// findBudgets finds the items of the budgets of a pool.
func (p *plan) findBudgets(pt *rules.Pool) {
	at := func(b *rules.Budget) int {
		return slices.IndexFunc(p.budgets, func(it budgetItem) bool { return it.Budget == b })
	}
	n := 0
	for i := range pt.Config.Budgets {
		for _, st := range pt.Config.Budgets[i].Of {
			if b := pt.Budgets[n]; at(b) < 0 {
				c := &pt.Config.Budgets[i]
				p.budgets = append(p.budgets, budgetItem{b, BudgetUse{Pool: pt.Config.ID, Per: c.Per.String(), Share: c.Share, Item: st.Item, Limit: st.Quantity}, 0})
			}
			n++
		}
	}
	for _, num := range pt.Order {
		for _, c := range pt.Entries[num].Costs {
			if it := &p.budgets[at(c.Budget)]; it.cheapest == 0 || c.Most < it.cheapest {
				it.cheapest = c.Most
			}
		}
	}
}

// importAtOnce is how many codes are made when a list without a limit comes to its end.
const importAtOnce = 1000

// findSupply finds the budgets and the lists of codes of the pool and those below.
func (p *plan) findSupply() error {
	for n, l := range p.lines {
		if int(p.firstLine[l.in.Num]) == n {
			p.findBudgets(l.in)
		}
		for _, name := range l.entry.Reward.Codes {
			if !slices.ContainsFunc(p.lists, func(l list) bool { return l.name == name }) {
				num := p.tables.ListNum[name]
				p.lists = append(p.lists, list{name, num, 0})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Codes)) {
		i := slices.IndexFunc(p.lists, func(l list) bool { return l.name == name })
		switch n := p.Codes[name]; {
		case i < 0:
			return wrong("codes", "%q: expected a list that draws from the pool %s give codes of", name, p.Pool)
		case n < 1 || n > MaxCodes:
			return wrong("codes", "%s=%d: expected from 1 to %d", name, n, MaxCodes)
		default:
			p.lists[i].limit = uint64(n)
		}
	}
	p.mostCodes = uint64(p.Count) * p.tables.PoolByID[p.Pool].Picks
	return nil
}

// scarce reports whether anything is limited that all players take from.
func (p *plan) scarce() bool {
	return len(p.budgets) > 0 || slices.ContainsFunc(p.lines, func(l line) bool { return l.limited() }) ||
		slices.ContainsFunc(p.lists, func(l list) bool { return l.limit > 0 })
}

// stockCodes makes the codes of lists with a limit.
func (w *world) stockCodes() error {
	for i := range w.lists {
		if w.lists[i].limit > 0 {
			if err := w.makeCodes(i, w.lists[i].limit); err != nil {
				return err
			}
		}
	}
	return nil
}

// refillCodes makes more codes where a list without a limit may not have enough for a request.
func (w *world) refillCodes() error {
	for i := range w.lists {
		if w.lists[i].limit > 0 {
			continue
		}
		if left, _ := w.state.CodesLeft(w.lists[i].num); left < w.mostCodes {
			if err := w.makeCodes(i, max(importAtOnce, w.mostCodes)); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeCodes adds n codes to a list.
func (w *world) makeCodes(list int, n uint64) error {
	for n > 0 {
		some := min(n, rules.MaxImport)
		codes := make([]string, some)
		for i := range codes {
			codes[i] = fmt.Sprintf("%d", w.made[list]+uint64(i))
		}
		event, added, err := rules.Import(w.state, w.lists[list].name, codes)
		if err != nil || added != len(codes) {
			return wrong("codes", "%s: expected at most %d codes in all: %v", w.lists[list].name, MaxCodes, err)
		}
		w.w.Buf = append(w.w.Buf[:0], event...)
		if err := w.apply(max(w.start, w.state.Now())); err != nil {
			return err
		}
		w.made[list] += some
		n -= some
	}
	return nil
}

// spend notes what is spent of a budget by now, if the counter is one of those.
func (w *world) spend(counter uint32, spent uint64, now int64) {
	for i := range w.budgets {
		if b := &w.budgets[i]; b.Counter == counter {
			u := &w.uses[i]
			if period := w.tables.Zone.Period(b.Per, now); period != u.period || u.now == 0 {
				w.closeSpan(i)
				u.period = period
			}
			u.now = spent
		}
	}
}

// closeSpan ends the hour, day or week of a budget.
func (w *world) closeSpan(i int) {
	b, u := &w.budgets[i], &w.uses[i]
	if u.now == 0 {
		return
	}
	u.Spent, u.Most = u.Spent+u.now, max(u.Most, u.now)
	if b.cheapest > 0 && b.Limit-min(b.Limit, u.now) < b.cheapest {
		u.Full++
	}
	u.now = 0
}

// supply returns what is spent of each budget now, and what is left of each list with a limit.
func (w *world) supply(now int64) (spent, codes []uint64) {
	for i := range w.budgets {
		u := &w.uses[i]
		if w.tables.Zone.Period(w.budgets[i].Per, now) == u.period {
			spent = append(spent, u.now)
		} else {
			spent = append(spent, 0)
		}
	}
	for i := range w.lists {
		if w.lists[i].limit > 0 {
			left, _ := w.state.CodesLeft(w.lists[i].num)
			codes = append(codes, left)
		}
	}
	return spent, codes
}

// giveCode notes that a code was given.
func (w *world) giveCode(num uint32) {
	for i := range w.lists {
		if w.lists[i].num == num {
			w.codes[i]++
		}
	}
}

// watchCodes notes which lists are used up.
func (w *world) watchCodes(now int64) {
	for i := range w.lists {
		if l := &w.lists[i]; l.limit > 0 && w.codes[i] == l.limit && w.gone[i] == nil {
			w.gone[i] = w.at(now)
		}
	}
}
