package simulate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
)

// supplies are what all players of a crowd share in addition to stock: budgets and lists of codes.
type supplies struct {
	lists     []list
	budgets   []budget
	mostCodes uint64 // that a request can take from a list
}

// list is a list whose codes draws give.
type list struct {
	name  string
	num   uint32
	limit uint64 // how many codes it has; 0: no limit
}

// budget is an item of a budget, and what was spent of it.
type budget struct {
	*rules.Budget
	use      BudgetUse
	cheapest uint64 // the least that an entry can ask for; 0: none asks for any
	period   uint64 // the hour, day, week or month
	now      uint64 // what was spent in it
}

// findBudgets finds the items of the budgets of a pool.
func (p *plan) findBudgets(pt *rules.Pool) {
	at := func(b *rules.Budget) int {
		return slices.IndexFunc(p.budgets, func(it budget) bool { return it.Budget == b })
	}
	n := 0
	for i := range pt.Config.Budgets {
		for _, st := range pt.Config.Budgets[i].Of {
			if b := pt.Budgets[n]; at(b) < 0 {
				use := BudgetUse{Pool: pt.Config.ID, Per: b.Per.String(), Share: pt.Config.Budgets[i].Share, Item: st.Item, Limit: b.Limit}
				p.budgets = append(p.budgets, budget{Budget: b, use: use})
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

// importAtOnce is how many codes are made when a list without a limit runs low.
const importAtOnce = 1000

// findSupply finds the budgets and the lists of codes of the pool and those below.
func (p *plan) findSupply() error {
	for n, l := range p.lines {
		if int(p.firstLine[l.in.Num]) == n {
			p.findBudgets(l.in)
		}
		p.addLists(l.entry.Reward.Codes)
	}
	more := p.findGoals()
	for _, name := range slices.Sorted(maps.Keys(p.Codes)) {
		i := slices.IndexFunc(p.lists, func(l list) bool { return l.name == name })
		switch n := p.Codes[name]; {
		case i < 0:
			return wrong("codes", "%q: expected a list that draws from the pool %s or quests give codes of", name, p.Pool)
		case n < 1 || n > MaxCodes:
			return wrong("codes", "%s=%d: expected from 1 to %d", name, n, MaxCodes)
		default:
			p.lists[i].limit = uint64(n)
		}
	}
	p.mostCodes = uint64(p.Count)*p.tables.PoolByID[p.Pool].Picks + more
	return nil
}

// addLists adds the lists of codes that are not there yet.
func (p *plan) addLists(names []string) {
	for _, name := range names {
		if !slices.ContainsFunc(p.lists, func(l list) bool { return l.name == name }) {
			p.lists = append(p.lists, list{name, p.tables.ListNum[name], 0})
		}
	}
}

// scarce reports whether anything that players take is limited.
func (p *plan) scarce() bool {
	return p.scarcer || len(p.budgets) > 0 || slices.ContainsFunc(p.lines, func(l line) bool { return l.limited() }) ||
		slices.ContainsFunc(p.lists, func(l list) bool { return l.limit > 0 })
}

// stockCodes makes all codes of lists with a limit, once, and for other lists enough for a request.
func (c *crowd) stockCodes() error {
	for i, l := range c.lists {
		missing := l.limit - c.made[i]
		if l.limit == 0 {
			missing = 0
			if left, _ := c.state.CodesLeft(l.num); left < c.mostCodes {
				missing = max(importAtOnce, c.mostCodes)
			}
		}
		if err := c.makeCodes(i, missing); err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) makeCodes(list int, n uint64) error {
	for n > 0 {
		some := min(n, rules.MaxImport)
		codes := make([]string, some)
		for i := range codes {
			codes[i] = fmt.Sprintf("%d", c.made[list]+uint64(i))
		}
		event, added, err := rules.Import(c.state, c.lists[list].name, codes)
		if err != nil || added != len(codes) {
			return wrong("codes", "%s: expected at most %d codes in all: %v", c.lists[list].name, MaxCodes, err)
		}
		c.out.Buf = append(c.out.Buf[:0], event...)
		if err := c.apply(max(c.start, c.state.Now())); err != nil {
			return err
		}
		c.made[list] += some
		n -= some
	}
	return nil
}

// spend notes what a budget has spent by now, if the counter is a budget's.
func (c *crowd) spend(counter uint32, spent uint64, now int64) {
	for i := range c.uses {
		if b := &c.uses[i]; b.Counter == counter {
			if period := c.tables.Zone.Period(b.Per, now); period != b.period || b.now == 0 {
				c.closeSpan(i)
				b.period = period
			}
			b.now = spent
		}
	}
}

// closeSpan ends the hour, day, week or month of a budget.
func (c *crowd) closeSpan(i int) {
	b := &c.uses[i]
	if b.now == 0 {
		return
	}
	b.use.Spent, b.use.Most = b.use.Spent+b.now, max(b.use.Most, b.now)
	if b.cheapest > 0 && b.Limit-min(b.Limit, b.now) < b.cheapest {
		b.use.Full++
	}
	b.now = 0
}

// supply returns what each budget has spent now, and what is left of each list with a limit.
func (c *crowd) supply(now int64) (spent, codes []uint64) {
	for _, b := range c.uses {
		if c.tables.Zone.Period(b.Per, now) != b.period {
			b.now = 0
		}
		spent = append(spent, b.now)
	}
	for i := range c.lists {
		if c.lists[i].limit > 0 {
			left, _ := c.state.CodesLeft(c.lists[i].num)
			codes = append(codes, left)
		}
	}
	return spent, codes
}

func (c *crowd) giveCode(num uint32) {
	for i := range c.lists {
		if c.lists[i].num == num {
			c.codes[i]++
		}
	}
}

func (c *crowd) watchCodes(now int64) {
	for i := range c.lists {
		if l := &c.lists[i]; l.limit > 0 && c.codes[i] == l.limit && c.gone[i] == nil {
			c.gone[i] = c.at(now)
		}
	}
}
