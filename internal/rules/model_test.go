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
	"github.com/kuji-dev/kuji/view"
)

// model is the rules once more, from plain maps and with nothing clever: it says how a command must
// end, chooses what draws give from the values that they took, and knows what everybody must hold
// afterwards.
type model struct {
	c       *catalog.Catalog
	order   map[string][]string // by pool: entries by number
	items   []string            // in the order in which catalogs named them
	players map[string]map[string]uint64
	starts  bool               // a catalog had starting grants
	waits   map[string]bool    // who is there and has not come
	drawn   map[string]uint64  // "pool/entry", less what was put back
	counted map[string][]int64 // by player, pool and kind of limit: the time of each draw, or free draw
	since   map[string]uint64  // by player and counter of a track: draws since the last hit
	refills map[string]uint64  // by pool
	back    int64              // how far the clock was set back in all
	purses  map[string]purse   // by the name of the counter
	moments map[string]come    // by the name of the counter
	codes   map[string][]string
	given   map[string]int // codes, by list
	met     map[string]int // how often something rare was met; nil: nobody asks
}

func newModel() *model {
	return &model{
		waits: map[string]bool{},
		c:     &catalog.Catalog{}, order: map[string][]string{}, players: map[string]map[string]uint64{}, drawn: map[string]uint64{},
		counted: map[string][]int64{}, since: map[string]uint64{}, refills: map[string]uint64{},
		purses: map[string]purse{}, moments: map[string]come{}, codes: map[string][]string{}, given: map[string]int{}, met: map[string]int{},
	}
}

func (m *model) put(c *catalog.Catalog) {
	m.c, m.starts = c, m.starts || len(c.Start) > 0
	for _, it := range c.Items {
		if !slices.Contains(m.items, it.ID) {
			m.items = append(m.items, it.ID)
		}
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		for j := range p.Entries {
			if e := p.Entries[j].ID; !slices.Contains(m.order[p.ID], e) {
				m.order[p.ID] = append(m.order[p.ID], e)
			}
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

func limitKey(player, pool string, l catalog.PlayerLimit) string {
	return fmt.Sprint(player, "/", pool, "/", l.Per, "/", l.Window)
}

// used returns how much of a limit a player has used.
func (m *model) used(player, pool string, l catalog.PlayerLimit, now int64) (n uint64) {
	times := m.counted[limitKey(player, pool, l)]
	if l.Per != catalog.PerWindow { // all count until the day, week or month of the last is over
		if n := len(times); n == 0 || m.over(l.Per, times[n-1], now) {
			return 0
		}
		return uint64(len(times))
	}
	for _, t := range times {
		if t > now+m.back-l.Window {
			n++
		}
	}
	return n
}

// count counts draws of a limit.
func (m *model) count(player, pool string, l catalog.PlayerLimit, draws int, now int64) {
	key := limitKey(player, pool, l)
	if draws > 0 && l.Per != catalog.PerWindow && m.used(player, pool, l, now) == 0 {
		m.counted[key] = nil
	}
	for range draws {
		m.counted[key] = append(m.counted[key], now+m.back)
	}
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
	came    map[string]bool              // who got the starting grants in the command
	earlier []paidDraw
	now     int64
}

// paidDraw is a draw that has passed.
type paidDraw struct {
	*rules.Command
	price []catalog.Stack
	free  int
}

// unknown returns the field of a command that names what the catalog does not have.
func (m *model) unknown(cmd *rules.Command) string {
	for i := range cmd.Members {
		if field := m.unknown(&cmd.Members[i]); field != "" {
			return fmt.Sprintf("members[%d].%s", i, field)
		}
	}
	if cmd.Kind == rules.KindDraw {
		if p := m.pool(cmd.Pool); p == nil || p.Internal {
			return "pool"
		}
		if cmd.Pay != "" && !m.hasItem(cmd.Pay) {
			return "pay"
		}
	}
	for i, it := range cmd.Items {
		if !m.hasItem(it.Item) {
			return fmt.Sprintf("items[%d].item", i)
		}
	}
	return ""
}

// judge says how a command ends, and what its draws cost.
func (m *model) judge(cmd *rules.Command, now int64) (verdict, []paidDraw) {
	tr := trial{model: m, sure: map[string]map[string]uint64{}, most: map[string]map[string]uint64{}, came: map[string]bool{}, now: now}
	if field := m.unknown(cmd); field != "" {
		return verdict{status: rules.Refused, subject: field}, nil
	}
	if cmd.Kind != rules.KindAtomic {
		v := tr.member(cmd)
		return v, tr.earlier
	}
	for i := range cmd.Members {
		if v := tr.member(&cmd.Members[i]); v.status != rules.OK {
			v.failed = i
			return v, nil
		}
	}
	return verdict{}, tr.earlier
}

func (t *trial) see(player string) (sure, most map[string]uint64) {
	if t.sure[player] == nil {
		t.sure[player], t.most[player] = map[string]uint64{}, map[string]uint64{}
		maps.Copy(t.sure[player], t.players[player])
		maps.Copy(t.most[player], t.players[player])
	}
	return t.sure[player], t.most[player]
}

// come gives a player the starting grants, once. It returns the item that does not fit.
func (t *trial) come(player string) (full string) {
	if t.came[player] || t.players[player] != nil && !t.waits[player] {
		return ""
	}
	t.came[player] = true
	for _, st := range t.c.Start {
		if !t.give(player, st.Item, st.Quantity) {
			return st.Item
		}
	}
	return ""
}

// comes reports whether a command that succeeds brings its player the starting grants.
func comes(cmd *rules.Command) bool {
	return cmd.Kind == rules.KindDraw || cmd.Kind == rules.KindGrant || cmd.Kind == rules.KindRegister
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
	if comes(cmd) {
		if full := t.come(cmd.Player); full != "" {
			return verdict{status: rules.BalanceOverflow, subject: full}
		}
	}
	if cmd.Kind == rules.KindDraw {
		return t.draw(cmd)
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
	case p.StartsAt != 0 && t.now < p.StartsAt:
		return verdict{status: rules.NotStarted, subject: p.ID}
	case p.EndsAt != 0 && t.now >= p.EndsAt:
		return verdict{status: rules.Ended, subject: p.ID}
	case cmd.Count > int(p.MaxCount):
		return verdict{status: rules.CountTooLarge, subject: p.ID}
	}
	sure, most := t.see(cmd.Player)
	if !t.fulfils(&p.When, p, cmd.Player, sure) {
		return verdict{status: rules.NotEligible, subject: p.ID}
	}
	before, free, need := 0, 0, uint64(cmd.Count)*uint64(p.Rolls.Max)
	for _, e := range t.earlier {
		if e.Player == cmd.Player && e.Pool == cmd.Pool {
			before, free = before+e.Count, free+e.free
		}
		if other := t.pool(e.Pool); meet(t.below(p), t.below(other)) {
			need += uint64(e.Count) * t.leaves(other)
		}
	}
	for _, l := range p.Limits {
		if used := t.used(cmd.Player, p.ID, l, t.now); used+uint64(before+cmd.Count) > l.Draws {
			return verdict{status: rules.LimitReached, subject: p.ID}
		}
	}
	d := paidDraw{Command: cmd}
	if p.Free.Per != 0 {
		free += int(t.used(cmd.Player, p.ID+"/free", catalog.PlayerLimit{Per: p.Free.Per}, t.now))
		d.free = min(cmd.Count, max(0, int(p.Free.Draws)-free))
	}
	v := t.price(p, &d)
	if v.status != rules.OK {
		return v
	}
	for _, s := range d.price {
		t.take(cmd.Player, s.Item, s.Quantity)
	}
	if !t.stocked(p, cmd.Player, sure, need) {
		return verdict{status: rules.SoldOut, subject: p.ID}
	}
	for _, item := range t.items {
		n := t.model.most(p, item) * uint64(cmd.Count)
		if n > 0 && most[item]+n > rules.MaxQuantity {
			return verdict{status: rules.BalanceOverflow, subject: item}
		}
		most[item] += n
	}
	t.earlier = append(t.earlier, d)
	return verdict{}
}

// price says what a draw costs that can have d.free draws for nothing: the first offer with the item
// to pay with that the player can pay, or one with fewer free draws that costs no more.
func (t *trial) price(p *catalog.Pool, d *paidDraw) verdict {
	if d.free == d.Count || len(p.Price) == 0 && d.Pay == "" {
		return verdict{}
	}
	type offer struct {
		price []catalog.Stack
		free  int
	}
	var offers []offer
	for _, b := range p.Bundles {
		if int(b.Draws) == d.Count-d.free {
			offers = append(offers, offer{b.Price, d.free})
		}
	}
	for _, one := range p.Price {
		one = slices.Clone(one)
		for i := range one {
			one[i].Quantity *= uint64(d.Count - d.free)
		}
		offers = append(offers, offer{one, d.free})
	}
	for _, b := range p.Bundles {
		if free := d.Count - int(b.Draws); 0 <= free && free < d.free {
			offers = append(offers, offer{b.Price, free})
		}
	}
	offers = slices.DeleteFunc(offers, func(o offer) bool {
		return d.Pay != "" && !slices.ContainsFunc(o.price, func(s catalog.Stack) bool { return s.Item == d.Pay })
	})
	if len(offers) == 0 {
		return verdict{status: rules.PriceNotOffered, subject: d.Pay}
	}
	sure, _ := t.see(d.Player)
	short := func(s catalog.Stack) bool { return sure[s.Item] < s.Quantity }
	var best *offer
	for i := range offers {
		o := &offers[i]
		switch {
		case slices.ContainsFunc(o.price, short):
		case best == nil, o.free < d.free && atMost(o.price, best.price):
			best = o
		}
	}
	if best == nil {
		return verdict{status: rules.InsufficientItems, subject: offers[0].price[slices.IndexFunc(offers[0].price, short)].Item}
	}
	d.price, d.free = best.price, best.free
	return verdict{}
}

// atMost reports whether one price has no more of any item than another.
func atMost(one, other []catalog.Stack) bool {
	return !slices.ContainsFunc(one, func(s catalog.Stack) bool {
		return !slices.ContainsFunc(other, func(o catalog.Stack) bool { return o.Item == s.Item && o.Quantity >= s.Quantity })
	})
}

// effects are an event's, with names in place of numbers, those of counters left out, read
// one by one in the order in which the model expects them.
type effects struct {
	state  *store.State
	tally  map[uint32]string // names of the realm's counters
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
			if first, ok := f.state.CounterNum("/start"); ok && e.N == first {
				return fmt.Sprint("wait ", f.player, " ", e.Value)
			}
		case store.Draw:
			return "draw"
		case store.Return:
			return fmt.Sprint("return ", f.pool, "/", f.state.EntryID(f.num, e.N), " ", e.Value)
		case store.Tally:
			return fmt.Sprint("tally ", f.tally[e.N], " ", e.Value)
		case store.GiveCode:
			return fmt.Sprint("code ", f.state.CodeListName(e.N), " ", e.Value)
		case store.Member:
			f.pool = ""
			return "member"
		default:
			return fmt.Sprint("effect ", e.Verb)
		}
	}
	return "end"
}

// run follows the effects of a command that ended OK, whose draws took the values of a tape.
func (m *model) run(state *store.State, cmd *rules.Command, ev *store.Event, draws []paidDraw, tape *reader, now int64) error {
	f := &effects{state: state, r: ev.Changes(), tally: m.tallied(state)}
	members := []rules.Command{*cmd}
	if f.player = cmd.Player; cmd.Kind == rules.KindAtomic {
		members = cmd.Members
	}
	k := &chooser{model: m, tape: tape, draws: draws, now: now, before: maps.Clone(m.purses)}
	for i := range members {
		if cmd.Kind == rules.KindAtomic {
			if err := f.expect("member"); err != nil {
				return err
			}
		}
		if err := m.member(f, &members[i], k, now); err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
	}
	if err := f.expect("end"); err != nil {
		return err
	}
	if len(tape.tape) > 0 || tape.short {
		return fmt.Errorf("%d values were taken in vain (or %v: too few)", len(tape.tape), tape.short)
	}
	return f.r.Err()
}

func (f *effects) expect(want string) error {
	if got := f.next(); got != want {
		return fmt.Errorf("effect %q, want %q", got, want)
	}
	return nil
}

// see expects a player who is new to join. They wait for the starting grants, unless they come:
// then they get them, also if they have waited.
func (m *model) see(f *effects, player string, comes bool) (map[string]uint64, error) {
	var want []string
	isNew := m.players[player] == nil
	if isNew {
		m.players[player] = map[string]uint64{}
		want = append(want, "join "+player)
	}
	switch {
	case isNew && !comes && m.starts:
		want, m.waits[player] = append(want, "wait "+player+" 1"), true
	case comes && m.waits[player]:
		want, m.waits[player] = append(want, "wait "+player+" 0"), false
		isNew = true
	}
	for _, st := range m.c.Start {
		if isNew && comes {
			m.players[player][st.Item] += st.Quantity
			want = append(want, fmt.Sprint("gain ", player, " ", st.Item, " ", st.Quantity))
		}
	}
	for _, effect := range want {
		if err := f.expect(effect); err != nil {
			return nil, err
		}
	}
	return m.players[player], nil
}

func (m *model) member(f *effects, cmd *rules.Command, k *chooser, now int64) error {
	held, err := m.see(f, cmd.Player, comes(cmd))
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
		if _, err = m.see(f, cmd.To, false); err != nil {
			return err
		}
		for _, it := range cmd.Items {
			change("gain", cmd.To, it)
		}
	case rules.KindDraw:
		if err == nil {
			err = m.draw(f, held, k, now)
		}
	}
	for item, n := range held {
		if err == nil && n > rules.MaxQuantity { // below zero, too
			err = fmt.Errorf("%s holds %d of %s", cmd.Player, n, item)
		}
	}
	return err
}

// draw follows the next draw of a command.
func (m *model) draw(f *effects, held map[string]uint64, k *chooser, now int64) error {
	d := k.draws[0]
	k.draws = k.draws[1:]
	p := m.pool(d.Pool)
	for _, s := range d.price {
		held[s.Item] -= s.Quantity
		if err := f.expect(fmt.Sprint("spend ", d.Player, " ", s.Item, " ", s.Quantity)); err != nil {
			return err
		}
	}
	k.held = map[string]map[string]uint64{d.Player: maps.Clone(held)}
	for _, want := range k.draw(p, d.Player, d.Count) {
		if err := f.expect(want); err != nil {
			return err
		}
		if f.e.Verb == store.Gain {
			held[f.state.ItemID(f.e.N)] += f.e.Value
		}
	}
	for _, l := range p.Limits {
		m.count(d.Player, p.ID, l, d.Count, now)
	}
	m.count(d.Player, p.ID+"/free", catalog.PlayerLimit{Per: p.Free.Per}, d.free, now)
	return nil
}

// compare checks that the realm holds what the model holds.
func (m *model) compare(r *realm) {
	r.t.Helper()
	if int(r.state.Players()) != len(m.players) {
		r.t.Fatalf("%d players, the model has %d", r.state.Players(), len(m.players))
	}
	for id, want := range m.players {
		items, _, _, ok := r.state.Holdings(id)
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
	m.checkCodes(r)
	for i := range m.c.Pools {
		p := &m.c.Pools[i]
		v, total := r.pool(p.ID), uint64(0)
		for j := range p.Entries {
			e := &p.Entries[j]
			left, unlimited := m.left(p, e)
			want := view.Entry{ID: e.ID, Unlimited: unlimited, Left: left, Drawn: m.drawn[p.ID+"/"+e.ID], Weight: m.view(p, e)}
			total += want.Weight
			if v.Entries[j] != want {
				r.t.Fatalf("pool %s: %+v, the model says %+v", p.ID, v.Entries[j], want)
			}
		}
		if p.Mode == catalog.ModeEach {
			total = 100 * p.WeightScale
		}
		if v.TotalWeight != total {
			r.t.Fatalf("pool %s: total weight %d, the model says %d", p.ID, v.TotalWeight, total)
		}
	}
}

// step carries out a command in both, and compares how it ends and what it gives.
func (m *model) step(r *realm, cmd rules.Command) rules.Status {
	r.t.Helper()
	want, draws := m.judge(&cmd, r.now)
	src := r.src
	seen := &tape{src: src}
	r.src = seen
	ev := r.do(cmd)
	r.src = src
	got := verdict{rules.Status(ev.Status), r.subject(&ev), r.failed(&ev)}
	if got != want {
		r.t.Fatalf("%+v ends %+v, the model says %+v", cmd, got, want)
	}
	if want.status == rules.OK {
		if err := m.run(r.state, &cmd, &ev, draws, &reader{tape: seen.seen}, r.now); err != nil {
			r.t.Fatalf("%+v: %v", cmd, err)
		}
	}
	return want.status
}

// TestModelForLong drives a few realms for long, so that pools run dry and limits fill up.
func TestModelForLong(t *testing.T) {
	ended := map[rules.Status]int{}
	for seed := range uint64(75) {
		pick := seeded(seed)
		r, m := newRealm(t, seed), newModel()
		for n := range 300 {
			if n%100 == 0 {
				yaml := randomCatalog(pick)
				r.put(yaml)
				m.put(parse(t, yaml))
			}
			r.now += int64(pick("time", 3_000_000))
			if pick("codes", 12) == 0 {
				m.imports(r, pick)
			}
			cmd := randomCommand(pick)
			wantNoChoice(r, &cmd, n%16 == 0)
			ended[m.step(r, cmd)]++
		}
		m.compare(r)
		m.compare(r.replay())
	}
	for _, s := range append(ends, rules.Refused) {
		if ended[s] < 50 {
			t.Errorf("only %d commands ended %v: the test is too small", ended[s], s)
		}
	}
}

// ends are the statuses that a command can end with.
var ends = []rules.Status{rules.OK, rules.SoldOut, rules.LimitReached, rules.InsufficientItems, rules.NotStarted, rules.Ended,
	rules.CountTooLarge, rules.BalanceOverflow, rules.NotEligible, rules.PriceNotOffered}

// TestModel drives realms and models with random catalogs and commands.
func TestModel(t *testing.T) {
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
				r.now += []int64{1, 60_000, 1_799_999, 1_800_000, 43_200_000, 86_400_000, 12 * 86_400_000}[pick("time", 7)]
			}
			if pick("codes", 12) == 0 {
				m.imports(r, pick)
			}
			if pick("back", 20) == 0 {
				m.setBackBy(r, []int64{1, 3_600_000, 86_400_000}[pick("back by", 3)])
			}
			cmd := randomCommand(pick)
			if pick("with an id", 2) == 0 {
				cmd.ID = fmt.Sprint("id-", n)
			}
			wantNoChoice(r, &cmd, pick("sources", 4) == 0)
			m.step(r, cmd)
		}
		m.compare(r)
		m.compare(r.replay())
	})
}
