package economy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// model is the rules once more, from plain maps and with nothing clever: it is
// told what was drawn and judges whether that was possible, and what everybody
// must hold afterwards.
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

func (m *model) available(p *catalog.Pool) (some bool) {
	for i := range p.Entries {
		e := &p.Entries[i]
		left, unlimited := m.left(p, e)
		if (unlimited || left > 0) && (p.Mode == catalog.ModeRaffle || e.Weight > 0) {
			some = true
		}
	}
	return some
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

// run carries out a command as the machine says it went, and returns the
// status that the model wants, given the outcomes drawn.
func (m *model) run(cmd *economy.Command, outcomes []economy.Outcome, now int64, got economy.Status) (economy.Status, error) {
	switch cmd.Kind {
	case economy.KindGrant, economy.KindConsume, economy.KindTransfer:
		return m.move(cmd), nil
	case economy.KindDraw:
		return m.draw(cmd, outcomes, now, got)
	}
	return 0, fmt.Errorf("kind %v", cmd.Kind)
}

func (m *model) move(cmd *economy.Command) economy.Status {
	from := m.see(cmd.Player)
	var to map[string]uint64
	if cmd.Kind == economy.KindTransfer {
		to = m.see(cmd.To)
	}
	for _, it := range cmd.Items {
		if !m.hasItem(it.Item) {
			return economy.UnknownItem
		}
	}
	for _, it := range cmd.Items {
		switch cmd.Kind {
		case economy.KindGrant:
			if from[it.Item]+it.Quantity > economy.MaxQuantity {
				return economy.BalanceOverflow
			}
			from[it.Item] += it.Quantity
		default:
			if from[it.Item] < it.Quantity {
				return economy.InsufficientItems
			}
			from[it.Item] -= it.Quantity
			if to == nil {
				continue
			}
			if to[it.Item]+it.Quantity > economy.MaxQuantity {
				return economy.BalanceOverflow
			}
			to[it.Item] += it.Quantity
		}
	}
	return economy.OK
}

func (m *model) draw(cmd *economy.Command, outcomes []economy.Outcome, now int64, got economy.Status) (economy.Status, error) {
	held := m.see(cmd.Player)
	p := m.pool(cmd.Pool)
	switch {
	case p == nil:
		return economy.UnknownPool, nil
	case p.StartsAt != 0 && now < p.StartsAt:
		return economy.NotStarted, nil
	case p.EndsAt != 0 && now >= p.EndsAt:
		return economy.Ended, nil
	case cmd.Count > int(p.MaxCount):
		return economy.CountTooLarge, nil
	}
	key := cmd.Player + "/" + cmd.Pool
	for _, l := range p.Limits {
		used := 0
		for _, t := range m.draws[key] {
			if t > limitStart(l, now) {
				used++
			}
		}
		if uint64(used+cmd.Count) > l.Draws {
			return economy.LimitReached, nil
		}
	}
	for _, s := range p.Price {
		if held[s.Item] < s.Quantity*uint64(cmd.Count) {
			return economy.InsufficientItems, nil
		}
		held[s.Item] -= s.Quantity * uint64(cmd.Count)
	}
	if got == economy.BalanceOverflow { // which entry would have overflowed is not told
		return got, nil
	}
	if got == economy.SoldOut {
		// With n draws from what is left of p and the pools it leads to, running out must have been possible.
		return got, m.couldRunOut(p, cmd.Count)
	}
	if len(outcomes) != cmd.Count {
		return economy.OK, fmt.Errorf("%d outcomes for %d draws", len(outcomes), cmd.Count)
	}
	for _, o := range outcomes {
		if err := m.outcome(p, o, held); err != nil {
			return economy.OK, err
		}
	}
	for range cmd.Count {
		m.draws[key] = append(m.draws[key], now)
	}
	return economy.OK, nil
}

// couldRunOut errs when p and everything that it leads to has stock for n draws
// along every path.
func (m *model) couldRunOut(p *catalog.Pool, n int) error {
	total, unlimited := uint64(0), false
	for i := range p.Entries {
		e := &p.Entries[i]
		left, un := m.left(p, e)
		if e.Weight == 0 && p.Mode == catalog.ModeWeighted {
			continue
		}
		if e.Reward.Kind == catalog.RewardPool && (un || left > 0) && m.couldRunOut(m.pool(e.Reward.Pool), n) == nil {
			return nil
		}
		total, unlimited = total+left, unlimited || un
	}
	if !unlimited && total < uint64(n) {
		return nil
	}
	return fmt.Errorf("sold out, with stock for %d draws", n)
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
		left, unlimited := m.left(p, e)
		if !unlimited && left == 0 {
			return fmt.Errorf("%s was given beyond its stock", step)
		}
		if p.Mode == catalog.ModeWeighted && e.Weight == 0 {
			return fmt.Errorf("%s was given and has no weight", step)
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
			if held[q.Item] > economy.MaxQuantity {
				return fmt.Errorf("%s made %s overflow", step, q.Item)
			}
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
		if (v.Total > 0) != m.available(p) {
			t.Fatalf("pool %s: total weight %d, the model says available %v", p.ID, v.Total, m.available(p))
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
