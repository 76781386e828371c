package simulate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// world is a realm with some of the players. They draw in turns, one request each.
type world struct {
	*plan
	tally
	first   int // place of its first player among all
	players []player
	ids     string // of all players, idLen bytes each
	state   *store.State
	rules   *rules.Rules
	src     *rand.ChaCha8
	w       store.Writer
	event   store.Event
	cmd     rules.Command // the request
	grant   rules.Command // what players buy before it
	applied uint64

	over bool // nobody can draw any more
	book
}

// book is what a world keeps until its players are done.
type book struct {
	made  []uint64    // codes, by list
	uses  []budgetUse // by budget
	taken []uint64    // by player, then line; in a shared world by line
	spent []uint64    // by player, then item in paid; with Until only
	low   []int32     // lines with limited stock that the request has taken from
}

// player is somebody who draws.
type player struct {
	draws   uint32
	stopped bool
}

const idLen = 8

func newWorld(p *plan, number, first, players int) (*world, error) {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], p.Seed)
	binary.LittleEndian.PutUint64(seed[8:], uint64(number))
	w := &world{
		plan: p, tally: *newTally(p), first: first, players: make([]player, players), state: store.New(),
		src: rand.NewChaCha8(seed),
		cmd: rules.Command{Kind: rules.KindDraw, Pool: p.Pool, Count: p.Count, Pay: p.Pay},
	}
	w.grant.Kind = rules.KindGrant
	ids := make([]byte, 0, players*idLen)
	for i := range players {
		ids = fmt.Appendf(ids, "%0*d", idLen, first+i)
	}
	w.ids = string(ids)
	w.made = make([]uint64, len(p.lists))
	for i := range p.budgets {
		w.uses = append(w.uses, budgetUse{BudgetUse: p.budgets[i].use})
	}
	w.taken = make([]uint64, len(p.lines))
	if !p.shared {
		w.taken = make([]uint64, players*len(p.lines))
	}
	if p.Until != "" {
		w.spent = make([]uint64, players*len(p.paid))
	}
	w.state.Alone(true)
	w.w.Buf = append(w.w.Buf, p.event...)
	if err := w.apply(p.start); err != nil {
		return nil, err
	}
	if err := w.stockCodes(); err != nil {
		return nil, err
	}
	w.rules = rules.New(w.state, p.tables)
	return w, nil
}

// apply applies the event that was just written.
func (w *world) apply(now int64) error {
	if _, err := store.Decode(w.w.Buf, &w.event); err != nil {
		return err
	}
	w.applied++
	return w.state.Apply(&w.event, store.At{Position: w.applied, Time: now})
}

// do carries out a command as the engine does.
func (w *world) do(cmd *rules.Command, now int64) (rules.Status, error) {
	w.w.Buf = w.w.Buf[:0]
	st := w.rules.Decide(cmd, now, w.src, &w.w)
	return st, w.apply(now)
}

// reportEvery is how many requests pass between two looks at the context.
const reportEvery = 1 << 10

// run makes every player draw.
func (w *world) run(ctx context.Context) error {
	rounds, asked, done := w.Draws/w.Count, 0, 0
	w.sample(w.start)
	for round := 0; round < rounds && !w.over; round++ {
		w.over = true // until somebody has not stopped
		for i := range w.players {
			if w.players[i].stopped {
				continue
			}
			w.over = false
			if err := w.request(i, w.time(round, i)); err != nil {
				return err
			}
			if asked++; asked%reportEvery == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				w.Done.Add(reportEvery * int64(w.Count))
				done += reportEvery * w.Count
			}
			if w.over {
				break
			}
		}
	}
	w.sample(w.state.Now())
	w.close()
	w.Done.Add(int64(len(w.players)*w.Draws - done))
	return ctx.Err()
}

// time returns when a player makes a request, in Unix milliseconds.
func (w *world) time(round, i int) int64 {
	if w.Rate == 0 {
		return w.start
	}
	before := (float64(round)*float64(w.Players) + float64(w.first+i)) * float64(w.Count)
	return w.start + int64(before/w.Rate*hourMillis)
}

// request makes one request of a player, and buys before it what the player lacks.
func (w *world) request(i int, now int64) error {
	w.cmd.Player = w.ids[i*idLen : (i+1)*idLen]
	if err := w.refillCodes(); err != nil {
		return err
	}
	st, err := w.do(&w.cmd, now)
	for n := 0; err == nil && st == rules.InsufficientItems && n < len(w.offers); n++ {
		if err = w.buy(i, &w.offers[n], now); err == nil {
			st, err = w.do(&w.cmd, now)
		}
	}
	if err != nil {
		return fmt.Errorf("player %s: %w", w.cmd.Player, err)
	}
	w.requests++
	if st == rules.OK {
		return w.count(i, now)
	}
	w.refused[st]++
	permanent := st != rules.LimitReached || w.Rate == 0
	switch {
	case st == rules.SoldOut && w.shared && !w.collect():
		w.soldOut, w.over = w.at(now), true
	case permanent:
		w.players[i].stopped = true
		w.stopped[st]++
	}
	return nil
}

// collect reports whether what is left differs between players: every entry has a condition.
func (w *world) collect() bool {
	for i := range w.pool.Entries {
		if e := &w.pool.Entries[i]; e.When.Empty() && !e.Unique && e.Luck.Empty() {
			return false
		}
	}
	return true
}

// buy gives a player what they lack of a price: for one request, or where that makes no difference
// for all that follow.
func (w *world) buy(i int, o *offer, now int64) error {
	times := o.times
	if w.ahead {
		times *= max(1, uint64(w.Draws-int(w.players[i].draws))/uint64(w.Count))
	}
	num, known := w.state.Player(w.cmd.Player)
	w.grant.Player, w.grant.Items = w.cmd.Player, w.grant.Items[:0]
	for k, st := range o.price {
		have := uint64(0)
		if known {
			have = w.state.Balance(num, o.items[k])
		}
		most := uint64(catalog.MaxQuantity)
		if need := min(st.Quantity, most/times) * times; need > have {
			w.grant.Items = append(w.grant.Items, catalog.Stack{Item: st.Item, Quantity: need - have})
		}
	}
	if len(w.grant.Items) == 0 {
		return nil
	}
	_, err := w.do(&w.grant, now)
	return err
}

// count counts what a request has given, from its event.
func (w *world) count(i int, now int64) error {
	var (
		e     store.Effect
		r     = w.event.Changes()
		mine  = w.taken
		base  int32 // of the pool's lines
		start int   // gains to come that are no draw's
		found bool
	)
	if !w.shared {
		mine = mine[i*len(w.lines):][:len(w.lines)]
	}
	for r.Next(&e) {
		switch e.Verb {
		case store.Take:
			n := base + int32(e.N)
			mine[n]++
			if w.shared && w.lines[n].limited() {
				w.low = append(w.low, n)
			}
		case store.Pool:
			base = w.firstLine[e.N]
		case store.Gain:
			if start > 0 {
				start--
				continue
			}
			w.gained[e.N] += e.Value
			found = found || e.N == w.untilItem
		case store.Spend:
			w.pay(i, e.N, e.Value)
		case store.GiveCode:
			w.giveCode(e.N)
		case store.Tally:
			w.spend(e.N, e.Value, now)
		case store.Join:
			start = len(w.c.Start)
		}
	}
	w.players[i].draws += uint32(w.Count)
	w.draws += uint64(w.Count)
	if w.shared {
		w.watch(now)
	}
	if found {
		w.players[i].stopped = true
		w.reached(i)
	}
	return r.Err()
}

// pay counts what a player has paid.
func (w *world) pay(i int, item uint32, q uint64) {
	for k, n := range w.paid {
		if n == item {
			w.payments[k] += q
			if w.spent != nil {
				w.spent[i*len(w.paid)+k] += q
			}
		}
	}
}

// reached notes what the item has cost a player.
func (w *world) reached(i int) {
	w.costs[0][uint64(w.players[i].draws)]++
	for k := range w.paid {
		w.costs[k+1][w.spent[i*len(w.paid)+k]]++
	}
}

// close adds up what the entries gave to whole players.
func (w *world) close() {
	if w.shared {
		for i := range w.budgets {
			w.closeSpan(i)
			per := w.budgets[i].Per
			w.uses[i].Spans = w.tables.Zone.Period(per, max(w.start, w.state.Now())) - w.tables.Zone.Period(per, w.start) + 1
		}
		w.used = w.uses
		w.takes = w.taken
		for n := range w.lines {
			w.left = append(w.left, w.state.Left(w.lines[n].in.Num, w.lines[n].number))
		}
		return
	}
	for i := range w.players {
		d := uint64(w.players[i].draws)
		w.drawsSquared.addProduct(d, d)
		for n, x := range w.taken[i*len(w.lines):][:len(w.lines)] {
			w.takes[n] += x
			w.squares[n].addProduct(x, x)
			w.products[n].addProduct(x, d)
		}
	}
}

// at says when something happens.
func (w *world) at(now int64) *Moment {
	m := &Moment{Draws: w.draws}
	if w.Rate > 0 {
		days := float64(now-w.start) / hourMillis / 24
		m.Days = &days
	}
	return m
}

// watch looks at the stock that a request has taken from.
func (w *world) watch(now int64) {
	for _, n := range w.low {
		l := &w.lines[n]
		w.empty[n] = nil
		if w.state.Left(l.in.Num, l.number) == 0 {
			w.empty[n] = w.at(now)
		}
	}
	w.low = w.low[:0]
	w.watchCodes(now)
	if w.draws >= w.samples.next {
		w.sample(now)
	}
}

// maxSamples bounds the samples of stock; there are at least half as many, if there are as many
// requests.
const maxSamples = 400

// samples are what was left of the stock at some moments.
type samples struct {
	step, next uint64 // in draws
	all        []StockSample
}

// sample notes what is left. When there are too many samples it drops every other one.
func (w *world) sample(now int64) {
	s := &w.samples
	if n := len(s.all); !w.shared || n > 0 && s.all[n-1].Draws == w.draws {
		return
	}
	one := StockSample{Moment: *w.at(now)}
	for _, n := range w.sampled {
		one.Left = append(one.Left, w.state.Left(w.lines[n].in.Num, w.lines[n].number))
	}
	one.Spent, one.Codes = w.supply(now)
	if s.all = append(s.all, one); len(s.all) == maxSamples {
		for i := range maxSamples / 2 {
			s.all[i] = s.all[2*i]
		}
		s.all = s.all[:maxSamples/2]
		s.step *= 2
	}
	s.next = s.all[len(s.all)-1].Draws + s.step
}
