package sim

import (
	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// trial is what the model knows while it judges, member by member, how a command must end. It does
// not know what draws give. It has the least and the most that each player can hold at each point.
type trial struct {
	*model
	sure    map[string]map[string]uint64 // without what the command's draws give
	most    map[string]map[string]uint64 // with the most that they can give
	earlier []kuji.Record                // draws of the command so far
	wrong   string                       // the subject of the failure, from the event
}

// meet returns the least and the most that a player can hold.
func (t *trial) meet(id string) (sure, most map[string]uint64) {
	if t.sure[id] != nil {
		return t.sure[id], t.most[id]
	}
	sure, most = map[string]uint64{}, map[string]uint64{}
	t.sure[id], t.most[id] = sure, most
	if h := t.players[id]; h != nil {
		for item, n := range h.items {
			sure[item], most[item] = n, n
		}
	} else if t.catalog != nil {
		for _, s := range t.catalog.Start {
			sure[s.Item], most[s.Item] = s.Quantity, s.Quantity
		}
	}
	return sure, most
}

func (t *trial) take(player string, it kuji.Stack) bool {
	sure, most := t.meet(player)
	if sure[it.Item] < it.Quantity {
		return false
	}
	sure[it.Item] -= it.Quantity
	most[it.Item] -= it.Quantity
	return true
}

func (t *trial) give(player string, it kuji.Stack) bool {
	sure, most := t.meet(player)
	sure[it.Item] += it.Quantity
	most[it.Item] += it.Quantity
	return most[it.Item] <= kuji.MaxQuantity
}

// member returns how a member must end.
func (t *trial) member(rec kuji.Record) (kuji.Status, string) {
	if rec.Kind == "draw" {
		return t.drawable(rec)
	}
	for _, it := range rec.Items {
		if !t.hasItem(it.Item) {
			return kuji.UnknownItem, it.Item
		}
	}
	for _, it := range rec.Items {
		if rec.Kind != "grant" && !t.take(rec.Player, it) {
			return kuji.InsufficientItems, it.Item
		}
		to := rec.Player
		if rec.Kind == "transfer" {
			to = rec.To
		}
		if rec.Kind != "consume" && !t.give(to, it) {
			return kuji.BalanceOverflow, it.Item
		}
	}
	return kuji.OK, ""
}

func (t *trial) drawable(rec kuji.Record) (kuji.Status, string) {
	p := t.pool(rec.Pool)
	switch {
	case p == nil:
		return kuji.UnknownPool, rec.Pool
	case p.StartsAt != 0 && t.now < p.StartsAt:
		return kuji.NotStarted, p.ID
	case p.EndsAt != 0 && t.now >= p.EndsAt:
		return kuji.Ended, p.ID
	case rec.Count > int(p.MaxCount):
		return kuji.CountTooLarge, p.ID
	}
	before, need := 0, uint64(rec.Count)
	for _, e := range t.earlier {
		if e.Player == rec.Player && e.Pool == rec.Pool {
			before += e.Count
		}
		if intersect(t.below(p), t.below(t.pool(e.Pool))) {
			need += uint64(e.Count)
		}
	}
	for _, l := range p.Limits {
		if uint64(t.used(rec.Player, p, l)+before+rec.Count) > l.Draws {
			return kuji.LimitReached, p.ID
		}
	}
	for _, s := range p.Price {
		if !t.take(rec.Player, kuji.Stack{Item: s.Item, Quantity: s.Quantity * uint64(rec.Count)}) {
			return kuji.InsufficientItems, s.Item
		}
	}
	if t.stands(p) < need {
		return kuji.SoldOut, p.ID
	}
	overflow := ""
	for _, it := range t.catalog.Items {
		_, most := t.meet(rec.Player)
		most[it.ID] += t.best(p, it.ID) * uint64(rec.Count)
		if most[it.ID] > kuji.MaxQuantity && (overflow == "" || it.ID == t.wrong) {
			overflow = it.ID // any of several will do
		}
	}
	if overflow != "" {
		return kuji.BalanceOverflow, overflow
	}
	t.earlier = append(t.earlier, rec)
	return kuji.OK, ""
}

// used returns how much of a limit a player has used before the command.
func (m *model) used(player string, p *catalog.Pool, l catalog.PlayerLimit) (n int) {
	h := m.players[player]
	if h == nil {
		return 0
	}
	for _, at := range h.draws[limit{p.ID, l.Per, l.Window}] {
		if at > m.since(l) {
			n++
		}
	}
	return n
}

// odds returns the weight of an entry, 0 if it is out of stock or leads to a pool with nothing
// left.
func (m *model) odds(p *catalog.Pool, e *catalog.Entry) uint64 {
	left, limited := m.left(p, e)
	weight := e.Weight
	if p.Mode == catalog.ModeRaffle {
		weight = left
	}
	switch {
	case limited && left == 0:
		return 0
	case weight == 0 || e.Reward.Kind != catalog.RewardPool:
		return weight
	}
	to := m.pool(e.Reward.Pool)
	for i := range to.Entries {
		if m.odds(to, &to.Entries[i]) > 0 {
			return weight
		}
	}
	return 0
}

// never reports that an entry has no odds, whatever the stock.
func never(p *catalog.Pool, e *catalog.Entry) bool {
	return p.Mode == catalog.ModeWeighted && e.Weight == 0
}

// below returns the pools that a draw from p can take from, including p.
func (m *model) below(p *catalog.Pool) map[string]bool {
	all := map[string]bool{p.ID: true}
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Reward.Kind == catalog.RewardPool && !never(p, e) {
			for id := range m.below(m.pool(e.Reward.Pool)) {
				all[id] = true
			}
		}
	}
	return all
}

func intersect(a, b map[string]bool) bool {
	for id := range a {
		if b[id] {
			return true
		}
	}
	return false
}

// forever is more draws than any stock.
const forever = 1 << 62

// stands returns how many draws a pool has stock for, whatever is chosen. What entries lead to
// counts once for each target pool. Targets that share a pool further down count together as the
// best of them.
func (m *model) stands(p *catalog.Pool) uint64 {
	stock := map[string]uint64{} // by target pool; "": none
	for i := range p.Entries {
		e := &p.Entries[i]
		n, limited := m.left(p, e)
		if !limited {
			n = forever
		}
		if !never(p, e) {
			stock[e.Reward.Pool] = min(stock[e.Reward.Pool]+n, forever)
		}
	}
	alone, together := stock[""], uint64(0)
	delete(stock, "")
	for id, n := range stock {
		n = min(n, m.stands(m.pool(id)))
		shared := false
		for other := range stock {
			shared = shared || other != id && intersect(m.below(m.pool(id)), m.below(m.pool(other)))
		}
		if shared {
			together = max(together, n)
		} else {
			alone = min(alone+n, forever)
		}
	}
	return min(alone+together, forever)
}

// best returns the most of an item that one draw from p can give.
func (m *model) best(p *catalog.Pool, item string) (most uint64) {
	for i := range p.Entries {
		e := &p.Entries[i]
		if never(p, e) {
			continue
		}
		if e.Reward.Kind == catalog.RewardPool {
			most = max(most, m.best(m.pool(e.Reward.Pool), item))
		}
		for _, q := range e.Reward.Items {
			if q.Item == item {
				most = max(most, q.Max)
			}
		}
	}
	return most
}
