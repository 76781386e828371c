package economy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// model is the rules once more, from plain maps and with nothing clever: it
// says how a command must end, is told what was drawn, judges whether that was
// possible, and knows what everybody must hold afterwards.
type model struct {
	c       *catalog.Catalog
	players map[string]map[string]uint64
	drawn   map[string]uint64  // "pool/entry"
	draws   map[string][]int64 // "player/pool": the time of each draw
}

func newModel() *model {
	return &model{players: map[string]map[string]uint64{}, drawn: map[string]uint64{}, draws: map[string][]int64{}}
}

func (m *model) clone() *model {
	n := newModel()
	n.c = m.c
	for p, held := range m.players {
		n.players[p] = map[string]uint64{}
		for k, v := range held {
			n.players[p][k] = v
		}
	}
	for k, v := range m.drawn {
		n.drawn[k] = v
	}
	for k, v := range m.draws {
		n.draws[k] = slices.Clone(v)
	}
	return n
}

func (m *model) pool(id string) *catalog.Pool {
	for i := range m.c.Pools {
		if m.c.Pools[i].ID == id {
			return &m.c.Pools[i]
		}
	}
	return nil
}

func (m *model) hasItem(id string) bool {
	return slices.ContainsFunc(m.c.Items, func(it catalog.Item) bool { return it.ID == id })
}

func (m *model) see(player string) map[string]uint64 {
	if m.players[player] == nil {
		m.players[player] = map[string]uint64{}
		for _, s := range m.c.Start {
			m.players[player][s.Item] += s.Quantity
		}
	}
	return m.players[player]
}

func (m *model) left(p *catalog.Pool, e *catalog.Entry) (uint64, bool) {
	if e.Stock.Unlimited {
		return 0, true
	}
	d := m.drawn[p.ID+"/"+e.ID]
	if d >= e.Stock.Count {
		return 0, false
	}
	return e.Stock.Count - d, false
}

// odds returns an entry's weight, its own stock and that of what it leads to considered.
func (m *model) odds(p *catalog.Pool, e *catalog.Entry) uint64 {
	left, unlimited := m.left(p, e)
	switch {
	case left == 0 && !unlimited, p.Mode == catalog.ModeWeighted && e.Weight == 0:
		return 0
	case e.Reward.Kind == catalog.RewardPool && m.total(m.pool(e.Reward.Pool)) == 0:
		return 0
	case p.Mode == catalog.ModeRaffle:
		return left
	}
	return e.Weight
}

func (m *model) total(p *catalog.Pool) (sum uint64) {
	for i := range p.Entries {
		sum += m.odds(p, &p.Entries[i])
	}
	return sum
}

// below returns the pools that a draw from p can touch, p included.
func (m *model) below(p *catalog.Pool) map[string]bool {
	all := map[string]bool{p.ID: true}
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Reward.Kind == catalog.RewardPool && (p.Mode == catalog.ModeRaffle || e.Weight > 0) {
			for id := range m.below(m.pool(e.Reward.Pool)) {
				all[id] = true
			}
		}
	}
	return all
}

func meet(a, b map[string]bool) bool {
	for id := range a {
		if b[id] {
			return true
		}
	}
	return false
}

const plenty = 1 << 62

// sure returns how many draws p stands whatever is chosen.
func (m *model) sure(p *catalog.Pool) uint64 {
	stock := map[string]uint64{} // by the pool led to; "": none
	for i := range p.Entries {
		e := &p.Entries[i]
		left, unlimited := m.left(p, e)
		if p.Mode == catalog.ModeWeighted && e.Weight == 0 {
			continue
		}
		if unlimited {
			left = plenty
		}
		stock[e.Reward.Pool] = min(stock[e.Reward.Pool]+left, plenty)
	}
	var sum, shared uint64
	for to, n := range stock {
		alone := true
		if to != "" {
			n = min(n, m.sure(m.pool(to)))
			for other := range stock {
				if other != "" && other != to && meet(m.below(m.pool(to)), m.below(m.pool(other))) {
					alone = false
				}
			}
		}
		if alone {
			sum = min(sum+n, plenty)
		} else {
			shared = max(shared, n)
		}
	}
	return min(sum+shared, plenty)
}

// most returns the largest quantity of an item that one draw from p can give.
func (m *model) most(p *catalog.Pool, item string) (most uint64) {
	for i := range p.Entries {
		e := &p.Entries[i]
		if p.Mode == catalog.ModeWeighted && e.Weight == 0 {
			continue
		}
		if e.Reward.Kind == catalog.RewardPool {
			most = max(most, m.most(m.pool(e.Reward.Pool), item))
		}
		for _, q := range e.Reward.Items {
			if q.Item == item {
				most = max(most, q.Max)
			}
		}
	}
	return most
}

func limitStart(l catalog.PlayerLimit, now int64) int64 {
	const day = 86_400_000
	switch l.Per {
	case catalog.PerForever:
		return -1
	case catalog.PerDay:
		return now/day*day - 1
	case catalog.PerWeek:
		return (now+3*day)/(7*day)*(7*day) - 3*day - 1
	}
	return now - l.Window
}

// group is what a model knows while it judges a command, member by member.
type group struct {
	*model
	sure    map[string]map[string]uint64 // what players hold without what the group's draws give
	most    map[string]map[string]uint64 // the most that they can hold with it
	earlier []*economy.Command           // draws
	now     int64
}

// judge says how a command ends, and for a group which member fails.
func (m *model) judge(cmd *economy.Command, now int64) (economy.Status, int) {
	g := group{model: m, sure: map[string]map[string]uint64{}, most: map[string]map[string]uint64{}, now: now}
	if cmd.Kind != economy.KindAtomic {
		return g.member(cmd), 0
	}
	for i := range cmd.Members {
		if st := g.member(&cmd.Members[i]); st != economy.OK {
			return st, i
		}
	}
	return economy.OK, 0
}

func (g *group) see(player string) (sure, most map[string]uint64) {
	if g.sure[player] == nil {
		g.sure[player], g.most[player] = map[string]uint64{}, map[string]uint64{}
		held, known := g.players[player]
		for item, n := range held {
			g.sure[player][item], g.most[player][item] = n, n
		}
		for _, st := range g.c.Start {
			if !known {
				g.sure[player][st.Item], g.most[player][st.Item] = st.Quantity, st.Quantity
			}
		}
	}
	return g.sure[player], g.most[player]
}

func (g *group) give(player, item string, n uint64) bool {
	sure, most := g.see(player)
	if most[item]+n > economy.MaxQuantity {
		return false
	}
	sure[item] += n
	most[item] += n
	return true
}

func (g *group) take(player, item string, n uint64) bool {
	sure, most := g.see(player)
	if sure[item] < n {
		return false
	}
	sure[item] -= n
	most[item] -= n
	return true
}

func (g *group) member(cmd *economy.Command) economy.Status {
	g.see(cmd.Player)
	if cmd.Kind == economy.KindDraw {
		return g.draw(cmd)
	}
	if cmd.Kind == economy.KindTransfer {
		g.see(cmd.To)
	}
	for _, it := range cmd.Items {
		if !g.hasItem(it.Item) {
			return economy.UnknownItem
		}
	}
	for _, it := range cmd.Items {
		if cmd.Kind != economy.KindGrant && !g.take(cmd.Player, it.Item, it.Quantity) {
			return economy.InsufficientItems
		}
		to := cmd.Player
		if cmd.Kind == economy.KindTransfer {
			to = cmd.To
		}
		if cmd.Kind != economy.KindConsume && !g.give(to, it.Item, it.Quantity) {
			return economy.BalanceOverflow
		}
	}
	return economy.OK
}

func (g *group) draw(cmd *economy.Command) economy.Status {
	p := g.pool(cmd.Pool)
	switch {
	case p == nil:
		return economy.UnknownPool
	case p.StartsAt != 0 && g.now < p.StartsAt:
		return economy.NotStarted
	case p.EndsAt != 0 && g.now >= p.EndsAt:
		return economy.Ended
	case cmd.Count > int(p.MaxCount):
		return economy.CountTooLarge
	}
	before, need := 0, uint64(cmd.Count)
	for _, e := range g.earlier {
		if e.Player == cmd.Player && e.Pool == cmd.Pool {
			before += e.Count
		}
		if meet(g.below(p), g.below(g.pool(e.Pool))) {
			need += uint64(e.Count)
		}
	}
	for _, l := range p.Limits {
		if used := g.used(cmd.Player, p, l, g.now); used+uint64(before+cmd.Count) > l.Draws {
			return economy.LimitReached
		}
	}
	for _, s := range p.Price {
		if !g.take(cmd.Player, s.Item, s.Quantity*uint64(cmd.Count)) {
			return economy.InsufficientItems
		}
	}
	if g.model.sure(p) < need {
		return economy.SoldOut
	}
	_, most := g.see(cmd.Player)
	for _, it := range g.c.Items {
		n := g.model.most(p, it.ID) * uint64(cmd.Count)
		if most[it.ID]+n > economy.MaxQuantity {
			return economy.BalanceOverflow
		}
		most[it.ID] += n
	}
	g.earlier = append(g.earlier, cmd)
	return economy.OK
}

// used returns how much of a limit a player has used.
func (m *model) used(player string, p *catalog.Pool, l catalog.PlayerLimit, now int64) (n uint64) {
	for _, t := range m.draws[player+"/"+p.ID] {
		if t > limitStart(l, now) {
			n++
		}
	}
	return n
}

// run carries out a member of a command that ended OK.
func (m *model) run(cmd *economy.Command, outcomes []economy.Outcome, now int64) error {
	held := m.see(cmd.Player)
	switch cmd.Kind {
	case economy.KindTransfer:
		to := m.see(cmd.To)
		for _, it := range cmd.Items {
			held[it.Item] -= it.Quantity
			to[it.Item] += it.Quantity
		}
	case economy.KindGrant, economy.KindConsume:
		for _, it := range cmd.Items {
			if cmd.Kind == economy.KindGrant {
				held[it.Item] += it.Quantity
			} else {
				held[it.Item] -= it.Quantity
			}
		}
	case economy.KindDraw:
		p := m.pool(cmd.Pool)
		for _, s := range p.Price {
			held[s.Item] -= s.Quantity * uint64(cmd.Count)
		}
		if len(outcomes) != cmd.Count {
			return fmt.Errorf("%d outcomes for %d draws", len(outcomes), cmd.Count)
		}
		for _, o := range outcomes {
			if err := m.outcome(p, o, held); err != nil {
				return err
			}
			m.draws[cmd.Player+"/"+cmd.Pool] = append(m.draws[cmd.Player+"/"+cmd.Pool], now)
		}
	}
	for item, n := range held {
		if n > economy.MaxQuantity { // below zero, too
			return fmt.Errorf("%s holds %d of %s", cmd.Player, n, item)
		}
	}
	return nil
}

func (m *model) outcome(p *catalog.Pool, o economy.Outcome, held map[string]uint64) error {
	via := append([]string{p.ID + "/" + o.Entry}, o.Via...)
	for i, step := range via {
		var e *catalog.Entry
		for j := range p.Entries {
			if p.ID+"/"+p.Entries[j].ID == step {
				e = &p.Entries[j]
			}
		}
		if e == nil {
			return fmt.Errorf("outcome names %s, which pool %s has not", step, p.ID)
		}
		if m.odds(p, e) == 0 {
			return fmt.Errorf("%s was given and is out of stock, or has no weight", step)
		}
		m.drawn[step]++
		if e.Reward.Kind == catalog.RewardPool {
			p = m.pool(e.Reward.Pool)
			continue
		}
		if i != len(via)-1 || len(o.Items) != len(e.Reward.Items) {
			return fmt.Errorf("%s gave %v, wants %v", step, o.Items, e.Reward.Items)
		}
		for k, q := range e.Reward.Items {
			if o.Items[k].Item != q.Item || o.Items[k].Quantity < q.Min || o.Items[k].Quantity > q.Max {
				return fmt.Errorf("%s gave %v, wants %v", step, o.Items, e.Reward.Items)
			}
			held[q.Item] += o.Items[k].Quantity
		}
	}
	return nil
}

// compare checks that the state holds what the model holds.
func (m *model) compare(t *testing.T, s *economy.State) {
	t.Helper()
	if s.Players() != len(m.players) {
		t.Fatalf("%d players, the model has %d", s.Players(), len(m.players))
	}
	for id, want := range m.players {
		h, ok := s.Player(id)
		if !ok {
			t.Fatalf("player %q is missing", id)
		}
		n := 0
		for _, v := range want {
			if v > 0 {
				n++
			}
		}
		if len(h.Items) != n {
			t.Fatalf("player %q holds %v, the model says %v", id, h.Items, want)
		}
		for _, it := range h.Items {
			if want[it.Item] != it.Quantity {
				t.Fatalf("player %q holds %v, the model says %v", id, h.Items, want)
			}
		}
	}
	for i := range m.c.Pools {
		p := &m.c.Pools[i]
		v, ok := s.Pool(p.ID)
		if !ok {
			t.Fatalf("pool %q is missing", p.ID)
		}
		for j := range p.Entries {
			left, unlimited := m.left(p, &p.Entries[j])
			if got := v.Entries[j]; got.Left != left || got.Unlimited != unlimited || got.Drawn != m.drawn[p.ID+"/"+p.Entries[j].ID] {
				t.Fatalf("pool %s entry %s: %+v, the model says left %d, drawn %d", p.ID, p.Entries[j].ID, got, left, m.drawn[p.ID+"/"+p.Entries[j].ID])
			}
		}
		if v.Total != m.total(p) {
			t.Fatalf("pool %s: total weight %d, the model says %d", p.ID, v.Total, m.total(p))
		}
	}
}

// randomCommand makes commands that often collide: few players, little stock.
func randomCommand(r *rand.Rand, n int) economy.Command {
	player := func() string { return fmt.Sprintf("p%d", r.IntN(8)) }
	items := func() []catalog.Stack {
		all := []string{"gem", "gold", "sword", "shield", "nosuch"}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var out []catalog.Stack
		for _, it := range all[:1+r.IntN(3)] {
			if it == "nosuch" && r.IntN(4) > 0 {
				it = "gem2"
			}
			q := 1 + r.Uint64N(20)
			if r.IntN(50) == 0 {
				q = economy.MaxQuantity - r.Uint64N(3)
			}
			out = append(out, catalog.Stack{Item: it, Quantity: q})
		}
		return out
	}
	body := func() economy.Command {
		switch r.IntN(8) {
		case 0:
			return economy.Command{Kind: economy.KindConsume, Player: player(), Items: items()}
		case 1:
			c := economy.Command{Kind: economy.KindTransfer, Player: player(), To: player(), Items: items()}
			if c.Player == c.To {
				c.To = "other"
			}
			return c
		case 2, 3:
			return economy.Command{Kind: economy.KindGrant, Player: player(), Items: items()}
		}
		pools := []string{"weighted", "raffle", "chain", "limited", "nosuch", "weighted", "raffle"}
		return economy.Command{Kind: economy.KindDraw, Player: player(), Pool: pools[r.IntN(len(pools))], Count: 1 + r.IntN(4)}
	}
	c := body()
	if r.IntN(6) == 0 {
		c = economy.Command{Kind: economy.KindAtomic}
		for range 1 + r.IntN(5) {
			c.Members = append(c.Members, body())
		}
	}
	if r.IntN(3) > 0 {
		c.ID = fmt.Sprintf("id-%d", n)
	}
	return c
}
