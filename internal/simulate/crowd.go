package simulate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// crowd is a realm with some of the players. They draw in turns, one request each.
type crowd struct {
	*plan
	tally
	first   int // index of its first player among all
	players []player
	ids     string // of all players, idLen bytes each
	state   *store.State
	rules   *rules.Rules
	src     *rand.ChaCha8
	out     store.Writer
	event   store.Event
	cmd     rules.Command // the request
	grant   rules.Command // what players buy before it
	applied uint64

	over bool // nobody can draw any more
	book
}

// book is what a crowd keeps until its players are done.
type book struct {
	made  []uint64 // codes, by list
	uses  []budget // those of the plan, with what was spent
	taken []uint64 // by player, then line; in a shared crowd by line
	spent []uint64 // by player, then item in paid; only with Until
	low   []int32  // lines with limited stock that the request has taken from

	step, next uint64 // draws between two samples, and until the next one
	questing
}

type player struct {
	draws   uint32
	asked   uint32 // draws that were asked for, also in vain
	stopped bool
}

const idLen = 8

func newCrowd(p *plan, number, first, players int) (*crowd, error) {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], p.Seed)
	binary.LittleEndian.PutUint64(seed[8:], uint64(number))
	c := &crowd{
		plan: p, tally: *newTally(p), first: first, players: make([]player, players), state: store.New(),
		src: rand.NewChaCha8(seed),
		cmd: rules.Command{Kind: rules.KindDraw, Pool: p.Pool, Count: p.Count, Pay: p.Pay},
	}
	c.grant.Kind, c.makes.Kind, c.claims.Kind, c.collects.Kind = rules.KindGrant, rules.KindProgress, rules.KindClaim, rules.KindCollect
	c.farthest, c.told, c.waits = make([]uint16, players*len(p.c.Quests)), make([][]uint64, players), make([]uint64, players)
	ids := make([]byte, 0, players*idLen)
	for i := range players {
		ids = fmt.Appendf(ids, "%0*d", idLen, first+i)
	}
	c.ids = string(ids)
	c.made, c.uses, c.step = make([]uint64, len(p.lists)), slices.Clone(p.budgets), 1
	c.taken = make([]uint64, len(p.lines))
	if !p.shared {
		c.taken = make([]uint64, players*len(p.lines))
	}
	if p.Until != "" {
		c.spent = make([]uint64, players*len(p.paid))
	}
	c.state.Alone(true)
	c.out.Buf = append(c.out.Buf, p.event...)
	if err := c.apply(p.start); err != nil {
		return nil, err
	}
	if err := c.stockCodes(); err != nil {
		return nil, err
	}
	c.rules = rules.New(c.state, p.tables)
	return c, nil
}

// apply applies the event that was just written.
func (c *crowd) apply(now int64) error {
	if _, err := store.Decode(c.out.Buf, &c.event); err != nil {
		return err
	}
	c.applied++
	return c.state.Apply(&c.event, store.At{Position: c.applied, Time: now}, nil)
}

// do carries out a command as the engine does.
func (c *crowd) do(cmd *rules.Command, now int64) (rules.Status, error) {
	if err := c.stockCodes(); err != nil {
		return 0, err
	}
	if err := c.settle(cmd, now); err != nil {
		return 0, err
	}
	c.out.Buf = c.out.Buf[:0]
	st := c.rules.Decide(cmd, now, c.src, &c.out)
	return st, c.apply(now)
}

// reportEvery is how many requests pass between two reports of what is done.
const reportEvery = 1 << 10

func (c *crowd) run(ctx context.Context) error {
	rounds, asked, done := c.Draws/c.Count, 0, 0
	c.sample(c.start)
	for round := 0; round < rounds && !c.over; round++ {
		c.over = true // until somebody has not stopped
		for i := range c.players {
			if c.players[i].stopped {
				continue
			}
			c.over = false
			select {
			case <-ctx.Done():
				return ctx.Err()
			default:
			}
			if err := c.request(i, c.time(round, i)); err != nil {
				return err
			}
			if asked++; asked%reportEvery == 0 {
				c.Done.Add(reportEvery * int64(c.Count))
				done += reportEvery * c.Count
			}
			if c.over {
				break
			}
		}
	}
	c.sample(c.state.Now())
	c.close()
	c.Done.Add(int64(len(c.players)*c.Draws - done))
	return ctx.Err()
}

// time returns when a player makes a request, in Unix milliseconds.
func (c *crowd) time(round, i int) int64 {
	if c.Rate == 0 {
		return c.start
	}
	before := (float64(round)*float64(c.Players) + float64(c.first+i)) * float64(c.Count)
	return c.start + int64(before/c.Rate*hourMillis)
}

// request makes one request of a player, and buys before it what the player lacks.
func (c *crowd) request(i int, now int64) error {
	c.cmd.Player = c.ids[i*idLen : (i+1)*idLen]
	c.players[i].asked += uint32(c.Count)
	if err := c.advance(i, now); err != nil {
		return err
	}
	if err := collectMail(c, i, now); err != nil {
		return err
	}
	if err := c.claimAll(i, now); err != nil || c.players[i].stopped {
		return err
	}
	st, err := c.do(&c.cmd, now)
	for n := 0; err == nil && st == rules.InsufficientItems && n < len(c.offers); n++ {
		if err = c.buy(i, &c.offers[n], now); err == nil {
			st, err = c.do(&c.cmd, now)
		}
	}
	if err != nil {
		return fmt.Errorf("player %s: %w", c.cmd.Player, err)
	}
	c.requests++
	if st == rules.OK {
		return c.count(i, now)
	}
	refused := c.refused[st]
	refused.Requests++
	permanent := !c.mayChange(st)
	switch {
	case st == rules.SoldOut && c.shared && !c.collect():
		c.soldOut, c.over = c.at(now), true
	case permanent:
		c.players[i].stopped = true
		refused.Stopped++
	}
	c.refused[st] = refused
	return nil
}

// mayChange reports whether a later request of a player who was refused can end otherwise.
func (p *plan) mayChange(st rules.Status) bool {
	switch st {
	case rules.LimitReached, rules.MailboxFull:
		return p.Rate > 0
	case rules.NotEligible:
		w := &p.pool.When
		return (p.Rate > 0 || len(p.Progress) > 0) && (len(w.Counters) > 0 || len(w.Quests) > 0)
	}
	return false
}

// collect reports whether what is left differs between players: every entry has a condition.
func (p *plan) collect() bool {
	return !slices.ContainsFunc(p.pool.Entries, func(e catalog.Entry) bool {
		return e.When.Empty() && !e.Unique && e.Luck.Empty()
	})
}

// buy gives a player what they lack of a price: for one request or, if it makes no difference, for all.
func (c *crowd) buy(i int, o *offer, now int64) error {
	c.grant.Player = c.cmd.Player
	if c.rising {
		var err error
		if c.grant.Items, err = lacking(c.state, &c.event); err != nil {
			return err
		}
		return c.grantItems(i, now)
	}
	times := o.times
	if c.ahead {
		times *= max(1, uint64(c.Draws-int(c.players[i].draws))/uint64(c.Count))
	}
	num, known := c.state.Player(c.cmd.Player)
	c.grant.Items = c.grant.Items[:0]
	for _, st := range o.price {
		have := uint64(0)
		for _, item := range st.items {
			if known {
				have += holding(c, num, item, now)
			}
		}
		most := uint64(catalog.MaxQuantity)
		if need := min(st.Quantity, most/times) * times; need > have {
			c.grant.Items = append(c.grant.Items, catalog.Stack{Item: st.Item, Quantity: need - have})
		}
	}
	return c.grantItems(i, now)
}

func (c *crowd) grantItems(i int, now int64) error {
	if len(c.grant.Items) == 0 {
		return nil
	}
	c.grant.Change()
	if _, err := c.do(&c.grant, now); err != nil {
		return err
	}
	return c.tell(i, now, false)
}

// count counts what a request has given, from its event.
func (c *crowd) count(i int, now int64) error {
	c.players[i].draws += uint32(c.Count)
	c.draws += uint64(c.Count)
	if err := c.tell(i, now, true); err != nil {
		return err
	}
	return c.claimAll(i, now)
}

// tell counts what an event of a player has given: if it is a request for draws, what these have given, and
// what quests have.
func (c *crowd) tell(i int, now int64, drawn bool) error {
	var (
		e     store.Effect
		r     = c.event.Changes()
		mine  = c.taken
		base  int32 // of the pool's lines
		start int   // how many gains to come are starting grants
		found bool
		quest = -1 // whose reward follows; -1: not yet one's
	)
	if !c.shared {
		mine = mine[i*len(c.lines):][:len(c.lines)]
	}
	for r.Next(&e) {
		switch e.Verb {
		case store.Take:
			if base < 0 {
				continue // below quests only
			}
			n := base + int32(e.N)
			if quest < 0 {
				mine[n]++
			}
			if c.shared && c.lines[n].limited() {
				c.low = append(c.low, n)
			}
		case store.Pool:
			base = c.firstLine[e.N]
		case store.Grow:
			c.grown[e.N] += e.Value
		case store.Gain:
			if start > 0 {
				start--
				continue
			}
			if !drawn && quest < 0 {
				continue // what the player has bought
			}
			of := c.gained
			if quest >= 0 {
				of = c.quests.prizes[quest]
			}
			of[e.N] += e.Value
			found = found || e.N == c.untilItem
		case store.Spend:
			c.pay(i, e.N, e.Value)
		case store.GiveCode:
			c.giveCode(e.N)
		case store.Tally:
			c.spend(e.N, e.Value, now)
		case store.Claim:
			quest = c.questAt[e.N]
			c.quests.claimed(c.farthest[i*len(c.c.Quests):], quest, e.Value)
		case store.Beyond:
			isBeyond(c, i, &e)
		case store.Join:
			start = len(c.c.Start)
		}
	}
	if c.shared {
		c.watch(now)
	}
	if found {
		stopWith(c, i, c.untilItem)
	}
	return r.Err()
}

func (c *crowd) pay(i int, item uint32, q uint64) {
	k := slices.Index(c.paid, item)
	if k < 0 {
		return
	}
	c.payments[k] += q
	if c.spent != nil {
		c.spent[i*len(c.paid)+k] += q
	}
}

// reached notes what the item of Until has cost a player.
func (c *crowd) reached(i int) {
	c.costs[0][uint64(c.players[i].draws)]++
	for k := range c.paid {
		c.costs[k+1][c.spent[i*len(c.paid)+k]]++
	}
}

// close adds up what players and entries have at the end.
func (c *crowd) close() {
	if c.shared {
		for i := range c.budgets {
			c.closeSpan(i)
			per := c.uses[i].Per
			c.uses[i].use.Spans = c.tables.Zone.Period(per, max(c.start, c.state.Now())) - c.tables.Zone.Period(per, c.start) + 1
			c.used = append(c.used, c.uses[i].use)
		}
		c.takes = c.taken
		for n := range c.lines {
			c.left = append(c.left, c.state.Left(c.lines[n].in.Num, c.lines[n].number))
		}
		return
	}
	for i := range c.players {
		d := uint64(c.players[i].draws)
		c.drawsSquared.addProduct(d, d)
		for n, x := range c.taken[i*len(c.lines):][:len(c.lines)] {
			c.takes[n] += x
			c.squares[n].addProduct(x, x)
			c.products[n].addProduct(x, d)
		}
	}
}

func (c *crowd) at(now int64) *Moment {
	m := &Moment{Draws: c.draws}
	if c.Rate > 0 {
		m.Days = new(float64(now-c.start) / hourMillis / 24)
	}
	return m
}

// watch looks at the stock that a request has taken from.
func (c *crowd) watch(now int64) {
	for _, n := range c.low {
		l := &c.lines[n]
		c.empty[n] = nil
		if c.state.Left(l.in.Num, l.number) == 0 {
			c.empty[n] = c.at(now)
		}
	}
	c.low = c.low[:0]
	c.watchCodes(now)
	if c.draws >= c.next {
		c.sample(now)
	}
}

// maxSamples bounds the samples of stock. At least half as many are kept, if there are enough requests.
const maxSamples = 400

// sample notes what is left. When there are too many samples, it drops every other one.
func (c *crowd) sample(now int64) {
	n := len(c.samples)
	if !c.shared || n > 0 && c.samples[n-1].Draws == c.draws {
		return
	}
	s := StockSample{Moment: *c.at(now)}
	for _, n := range c.sampled {
		s.Left = append(s.Left, c.state.Left(c.lines[n].in.Num, c.lines[n].number))
	}
	s.Spent, s.Codes = c.supply(now)
	if c.samples = append(c.samples, s); len(c.samples) == maxSamples {
		for i := range maxSamples / 2 {
			c.samples[i] = c.samples[2*i]
		}
		c.samples = c.samples[:maxSamples/2]
		c.step *= 2
	}
	c.next = c.samples[len(c.samples)-1].Draws + c.step
}
