package rules_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// model is the rules once more, from plain maps and with nothing clever: it says how a
// command must end, reads from the event what was drawn, judges whether that was possible,
// and knows what everybody must hold afterwards.
type model struct {
	c       *catalog.Catalog
	items   []string // in the order in which catalogs named them
	players map[string]map[string]uint64
	drawn   map[string]uint64  // "pool/entry"
	counted map[string][]int64 // by player, pool and kind of limit: the time of each draw
}

func newModel() *model {
	return &model{c: &catalog.Catalog{}, players: map[string]map[string]uint64{}, drawn: map[string]uint64{}, counted: map[string][]int64{}}
}

func (m *model) put(c *catalog.Catalog) {
	m.c = c
	for _, it := range c.Items {
		if !slices.Contains(m.items, it.ID) {
			m.items = append(m.items, it.ID)
		}
	}
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

func (m *model) left(p *catalog.Pool, e *catalog.Entry) (left uint64, unlimited bool) {
	if e.Stock.Unlimited {
		return 0, true
	}
	return e.Stock.Count - min(m.drawn[p.ID+"/"+e.ID], e.Stock.Count), false
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
			maps.Copy(all, m.below(m.pool(e.Reward.Pool)))
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

// limitStart returns the time after which draws count.
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

func limitKey(player, pool string, l catalog.PlayerLimit) string {
	return fmt.Sprint(player, "/", pool, "/", l.Per, "/", l.Window)
}

// used returns how much of a limit a player has used.
func (m *model) used(player, pool string, l catalog.PlayerLimit, now int64) (n uint64) {
	for _, t := range m.counted[limitKey(player, pool, l)] {
		if t > limitStart(l, now) {
			n++
		}
	}
	return n
}

// verdict is how a command must end.
type verdict struct {
	status  rules.Status
	subject string
	failed  int // member
}

// trial is what a model knows while it judges a command, member by member.
type trial struct {
	*model
	sure    map[string]map[string]uint64 // what players hold without what the command's draws give
	most    map[string]map[string]uint64 // the most that they can hold with it
	earlier []*rules.Command             // draws
	now     int64
}

// judge says how a command ends.
func (m *model) judge(cmd *rules.Command, now int64) verdict {
	tr := trial{model: m, sure: map[string]map[string]uint64{}, most: map[string]map[string]uint64{}, now: now}
	if cmd.Kind != rules.KindAtomic {
		return tr.member(cmd)
	}
	for i := range cmd.Members {
		if v := tr.member(&cmd.Members[i]); v.status != rules.OK {
			v.failed = i
			return v
		}
	}
	return verdict{}
}

func (t *trial) see(player string) (sure, most map[string]uint64) {
	if t.sure[player] == nil {
		held, known := t.players[player]
		if !known {
			held = map[string]uint64{}
			for _, st := range t.c.Start {
				held[st.Item] = st.Quantity
			}
		}
		t.sure[player], t.most[player] = maps.Clone(held), maps.Clone(held)
	}
	return t.sure[player], t.most[player]
}

func (t *trial) give(player, item string, n uint64) bool {
	sure, most := t.see(player)
	if most[item]+n > rules.MaxQuantity {
		return false
	}
	sure[item] += n
	most[item] += n
	return true
}

func (t *trial) take(player, item string, n uint64) bool {
	sure, most := t.see(player)
	if sure[item] < n {
		return false
	}
	sure[item] -= n
	most[item] -= n
	return true
}

func (t *trial) member(cmd *rules.Command) verdict {
	if cmd.Kind == rules.KindDraw {
		return t.draw(cmd)
	}
	for _, it := range cmd.Items {
		if !t.hasItem(it.Item) {
			return verdict{status: rules.UnknownItem, subject: it.Item}
		}
	}
	for _, it := range cmd.Items {
		if cmd.Kind != rules.KindGrant && !t.take(cmd.Player, it.Item, it.Quantity) {
			return verdict{status: rules.InsufficientItems, subject: it.Item}
		}
		to := cmd.Player
		if cmd.Kind == rules.KindTransfer {
			to = cmd.To
		}
		if cmd.Kind != rules.KindConsume && !t.give(to, it.Item, it.Quantity) {
			return verdict{status: rules.BalanceOverflow, subject: it.Item}
		}
	}
	return verdict{}
}

func (t *trial) draw(cmd *rules.Command) verdict {
	p := t.pool(cmd.Pool)
	switch {
	case p == nil:
		return verdict{status: rules.UnknownPool, subject: cmd.Pool}
	case p.StartsAt != 0 && t.now < p.StartsAt:
		return verdict{status: rules.NotStarted, subject: p.ID}
	case p.EndsAt != 0 && t.now >= p.EndsAt:
		return verdict{status: rules.Ended, subject: p.ID}
	case cmd.Count > int(p.MaxCount):
		return verdict{status: rules.CountTooLarge, subject: p.ID}
	}
	before, need := 0, uint64(cmd.Count)
	for _, e := range t.earlier {
		if e.Player == cmd.Player && e.Pool == cmd.Pool {
			before += e.Count
		}
		if meet(t.below(p), t.below(t.pool(e.Pool))) {
			need += uint64(e.Count)
		}
	}
	for _, l := range p.Limits {
		if used := t.used(cmd.Player, p.ID, l, t.now); used+uint64(before+cmd.Count) > l.Draws {
			return verdict{status: rules.LimitReached, subject: p.ID}
		}
	}
	for _, s := range p.Price {
		if !t.take(cmd.Player, s.Item, s.Quantity*uint64(cmd.Count)) {
			return verdict{status: rules.InsufficientItems, subject: s.Item}
		}
	}
	if t.model.sure(p) < need {
		return verdict{status: rules.SoldOut, subject: p.ID}
	}
	_, most := t.see(cmd.Player)
	for _, item := range t.items {
		n := t.model.most(p, item) * uint64(cmd.Count)
		if n > 0 && most[item]+n > rules.MaxQuantity {
			return verdict{status: rules.BalanceOverflow, subject: item}
		}
		most[item] += n
	}
	t.earlier = append(t.earlier, cmd)
	return verdict{}
}

// effects are an event's, with names in place of numbers, those of counters left out, read
// one by one in the order in which the model expects them.
type effects struct {
	state  *store.State
	r      store.Reader
	e      store.Effect
	player string // of whom the effects at hand are
	pool   string
	num    uint32
}

func (f *effects) next() string {
	for f.r.Next(&f.e) {
		switch e := &f.e; e.Verb {
		case store.Player:
			f.player = f.state.PlayerID(e.N)
		case store.Join:
			f.player = string(e.Bytes)
			return "join " + f.player
		case store.Gain, store.Spend:
			return fmt.Sprint(map[store.Verb]string{store.Gain: "gain ", store.Spend: "spend "}[e.Verb], f.player, " ", f.state.ItemID(e.N), " ", e.Value)
		case store.Pool:
			f.pool, f.num = f.state.PoolID(e.N), e.N
		case store.Take:
			return "take " + f.pool + "/" + f.state.EntryID(f.num, e.N)
		case store.Set:
		case store.Member:
			f.pool = ""
			return "member"
		default:
			return fmt.Sprint("effect ", e.Verb)
		}
	}
	return "end"
}

// run follows the effects of a command that ended OK.
func (m *model) run(state *store.State, cmd *rules.Command, ev *store.Event, now int64) error {
	f := &effects{state: state, r: ev.Changes()}
	if cmd.Kind != rules.KindAtomic {
		f.player = cmd.Player
		if err := m.member(f, cmd, now); err != nil {
			return err
		}
	} else {
		for i := range cmd.Members {
			if err := f.expect("member"); err != nil {
				return err
			}
			if err := m.member(f, &cmd.Members[i], now); err != nil {
				return fmt.Errorf("member %d: %w", i, err)
			}
		}
	}
	if err := f.expect("end"); err != nil {
		return err
	}
	return f.r.Err()
}

func (f *effects) expect(want string) error {
	if got := f.next(); got != want {
		return fmt.Errorf("effect %q, want %q", got, want)
	}
	return nil
}

// see expects a player who is new to join, with the starting grants.
func (m *model) see(f *effects, player string) (map[string]uint64, error) {
	if m.players[player] == nil {
		m.players[player] = map[string]uint64{}
		if err := f.expect("join " + player); err != nil {
			return nil, err
		}
		for _, st := range m.c.Start {
			m.players[player][st.Item] += st.Quantity
			if err := f.expect(fmt.Sprint("gain ", player, " ", st.Item, " ", st.Quantity)); err != nil {
				return nil, err
			}
		}
	}
	return m.players[player], nil
}

func (m *model) member(f *effects, cmd *rules.Command, now int64) error {
	held, err := m.see(f, cmd.Player)
	if err != nil {
		return err
	}
	change := func(verb, player string, it catalog.Stack) {
		if err == nil {
			err = f.expect(fmt.Sprint(verb, " ", player, " ", it.Item, " ", it.Quantity))
		}
		if verb == "spend" {
			m.players[player][it.Item] -= it.Quantity
		} else {
			m.players[player][it.Item] += it.Quantity
		}
	}
	switch cmd.Kind {
	case rules.KindGrant:
		for _, it := range cmd.Items {
			change("gain", cmd.Player, it)
		}
	case rules.KindConsume, rules.KindTransfer:
		for _, it := range cmd.Items {
			change("spend", cmd.Player, it)
		}
		if cmd.Kind == rules.KindConsume || err != nil {
			break
		}
		if _, err = m.see(f, cmd.To); err != nil {
			return err
		}
		for _, it := range cmd.Items {
			change("gain", cmd.To, it)
		}
	case rules.KindDraw:
		p := m.pool(cmd.Pool)
		for _, s := range p.Price {
			change("spend", cmd.Player, catalog.Stack{Item: s.Item, Quantity: s.Quantity * uint64(cmd.Count)})
		}
		for range cmd.Count {
			if err == nil {
				err = m.outcome(f, p, held)
			}
			for _, l := range p.Limits {
				k := limitKey(cmd.Player, p.ID, l)
				m.counted[k] = append(m.counted[k], now)
			}
		}
	}
	for item, n := range held {
		if err == nil && n > rules.MaxQuantity { // below zero, too
			err = fmt.Errorf("%s holds %d of %s", cmd.Player, n, item)
		}
	}
	return err
}

// outcome follows one draw, which must have been possible.
func (m *model) outcome(f *effects, p *catalog.Pool, held map[string]uint64) error {
	for {
		got := f.next()
		i := slices.IndexFunc(p.Entries, func(e catalog.Entry) bool { return got == "take "+p.ID+"/"+e.ID })
		if i < 0 {
			return fmt.Errorf("effect %q, want one that takes from pool %s", got, p.ID)
		}
		e := &p.Entries[i]
		if m.odds(p, e) == 0 {
			return fmt.Errorf("%q, which is out of stock, or has no weight", got)
		}
		m.drawn[p.ID+"/"+e.ID]++
		if e.Reward.Kind == catalog.RewardPool {
			p = m.pool(e.Reward.Pool)
			continue
		}
		for _, q := range e.Reward.Items {
			got := f.next()
			if want := fmt.Sprint("gain ", f.player, " ", q.Item, " ", f.e.Value); got != want || f.e.Value < q.Min || f.e.Value > q.Max {
				return fmt.Errorf("%q, want %d to %d of %s", got, q.Min, q.Max, q.Item)
			}
			held[q.Item] += f.e.Value
		}
		return nil
	}
}

// compare checks that the realm holds what the model holds.
func (m *model) compare(r *realm) {
	r.t.Helper()
	if int(r.state.Players()) != len(m.players) {
		r.t.Fatalf("%d players, the model has %d", r.state.Players(), len(m.players))
	}
	for id, want := range m.players {
		items, _, ok := r.state.Holdings(id)
		got := map[string]uint64{}
		for _, b := range items {
			got[b.Item] = b.Quantity
		}
		want = maps.Clone(want)
		maps.DeleteFunc(want, func(_ string, n uint64) bool { return n == 0 })
		if !ok || !maps.Equal(got, want) {
			r.t.Fatalf("player %q holds %v (known: %v), the model says %v", id, got, ok, want)
		}
	}
	for i := range m.c.Pools {
		p := &m.c.Pools[i]
		v := r.pool(p.ID)
		for j := range p.Entries {
			e := &p.Entries[j]
			left, unlimited := m.left(p, e)
			want := rules.EntryStock{ID: e.ID, Unlimited: unlimited, Left: left, Drawn: m.drawn[p.ID+"/"+e.ID], Weight: m.odds(p, e)}
			if v.Entries[j] != want {
				r.t.Fatalf("pool %s: %+v, the model says %+v", p.ID, v.Entries[j], want)
			}
		}
		if v.Total != m.total(p) {
			r.t.Fatalf("pool %s: total weight %d, the model says %d", p.ID, v.Total, m.total(p))
		}
	}
}

// step carries out a command in both, and compares how it ends and what it gives.
func (m *model) step(r *realm, cmd rules.Command) rules.Status {
	r.t.Helper()
	want := m.judge(&cmd, r.now)
	ev := r.do(cmd)
	got := verdict{rules.Status(ev.Status), r.subject(&ev), r.failed(&ev)}
	if got != want {
		r.t.Fatalf("%+v ends %+v, the model says %+v", cmd, got, want)
	}
	if want.status == rules.OK {
		if err := m.run(r.state, &cmd, &ev, r.now); err != nil {
			r.t.Fatalf("%+v: %v", cmd, err)
		}
	}
	return want.status
}

// TestModelForLong drives a few realms for long, so that pools run dry and limits fill up.
func TestModelForLong(t *testing.T) {
	ended := map[rules.Status]int{}
	for seed := range uint64(60) {
		pick := seeded(seed)
		r, m := newRealm(t, seed), newModel()
		for n := range 300 {
			if n%100 == 0 {
				yaml := randomCatalog(pick)
				r.put(yaml)
				m.put(parse(t, yaml))
			}
			r.now += int64(pick("time", 3_000_000))
			cmd := randomCommand(pick)
			wantNoChoice(r, &cmd, n%16 == 0)
			ended[m.step(r, cmd)]++
		}
		m.compare(r)
		m.compare(r.replay())
	}
	for s := rules.OK; s < rules.Aborted; s++ {
		if ended[s] < 50 {
			t.Errorf("only %d commands ended %v: the test is too small", ended[s], s)
		}
	}
}

// TestModel drives realms and models with random catalogs and commands.
func TestModel(t *testing.T) {
	ended := map[rules.Status]int{}
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, label) }
		r, m := newRealm(rt, rapid.Uint64().Draw(rt, "seed")), newModel()
		for n := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if n == 0 || pick("new catalog", 15) == 0 {
				yaml := randomCatalog(pick)
				r.put(yaml)
				m.put(parse(rt, yaml))
				m.compare(r)
				continue
			}
			if pick("time passes", 3) == 0 {
				r.now += []int64{1, 60_000, 1_799_999, 1_800_000, 43_200_000, 86_400_000}[pick("time", 6)]
			}
			cmd := randomCommand(pick)
			if pick("with an id", 2) == 0 {
				cmd.ID = fmt.Sprint("id-", n)
			}
			wantNoChoice(r, &cmd, pick("sources", 4) == 0)
			ended[m.step(r, cmd)]++
		}
		m.compare(r)
		m.compare(r.replay())
	})
	for s := rules.OK; s < rules.Aborted; s++ {
		if ended[s] < 3 && !testing.Short() {
			t.Errorf("only %d commands ended %v: the test is too small", ended[s], s)
		}
	}
}
