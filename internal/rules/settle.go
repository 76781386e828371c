package rules

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A round is settled by one event. It chooses the winners, gives them what they get, and closes the round. What is
// held of the entrants then goes back, or is gone: of at most catalog.MaxStakes in that event, of more in steps that
// follow, which are due at once.
//
// Tickets are numbered by their entrants' places. To choose a ticket among those of nobody who has won, the tickets
// of winners are skipped. So each of the others is as likely, and no choice is made twice.
//
// A winner gets what fits. Of stakes, the rest goes back to those who staked it; of a pot it stays there; a reward that
// may not fit is not given, and the event says so.

// keepRounds is how long a round can be read after it was closed, milliseconds. If winners can be drawn again, it is
// at least as long as that.
const keepRounds = 24 * 3600 * 1000

// dealStep is the most entrants with whom a step deals.
const dealStep = SweepPlayers

// settleKind settles a round, cancelRoundKind gives everything back.
type (
	settleKind      struct{ noted }
	cancelRoundKind struct{ noted }
	rerollKind      struct{ noted }
)

func (settleKind) alone() string      { return "an atomic group cannot settle a round" }
func (cancelRoundKind) alone() string { return "an atomic group cannot cancel a round" }
func (rerollKind) alone() string      { return "an atomic group cannot draw a winner again" }

func (settleKind) form(c *Command) *CommandError      { return c.Round.form() }
func (cancelRoundKind) form(c *Command) *CommandError { return c.Round.form() }

func (rerollKind) form(c *Command) *CommandError {
	if c.Round.Number == 0 {
		return malformed("number", "0; want the number of a round")
	}
	return c.Round.form()
}

func (settleKind) resolve(f *Finder, c *Command) *CommandError {
	if c.round = f.RoundByID[c.Round.Name]; c.round == nil {
		return f.unknown("round", "round", c.Round.Name)
	}
	return nil
}

// A round can be cancelled that the catalog in force does not have.
func (cancelRoundKind) resolve(f *Finder, c *Command) *CommandError {
	c.round = f.RoundByID[c.Round.Name]
	return nil
}

func (rerollKind) resolve(f *Finder, c *Command) *CommandError { return settleKind{}.resolve(f, c) }

func (settleKind) ask(r *effects, c *Command, _ Status) {
	writeText(r.w, c.Round.Name)
	r.w.Uint(c.Round.Number)
}

func (settleKind) asked(a *asked, c *Command) { c.Round = a.round() }

func (cancelRoundKind) ask(r *effects, c *Command, s Status) { settleKind{}.ask(r, c, s) }
func (cancelRoundKind) asked(a *asked, c *Command)           { settleKind{}.asked(a, c) }
func (rerollKind) ask(r *effects, c *Command, s Status)      { settleKind{}.ask(r, c, s) }
func (rerollKind) asked(a *asked, c *Command)                { settleKind{}.asked(a, c) }

func (settleKind) same(c, o *Command) bool      { return *c.Round == *o.Round }
func (cancelRoundKind) same(c, o *Command) bool { return *c.Round == *o.Round }
func (rerollKind) same(c, o *Command) bool      { return *c.Round == *o.Round }

func (settleKind) check(r *checks, c *Command) failure {
	o, ok := r.notes.find(c.Round)
	switch {
	case !ok:
		return failure{UnknownRound, 0}
	case o.is != roundOpen:
		return failure{RoundClosed, 0}
	}
	r.enters = entryOf(o)
	return failure{}
}

func (cancelRoundKind) check(r *checks, c *Command) failure { return settleKind{}.check(r, c) }

func (rerollKind) check(r *checks, c *Command) failure {
	o, ok := r.notes.find(c.Round)
	more := c.round.Config.Winners.Rerolls
	switch {
	case !ok:
		return failure{UnknownRound, 0}
	case o.is != roundSettled, more.Most == 0, uint64(r.steady) >= o.until-uint64(max(more.Within, keepRounds)-more.Within):
		return failure{RoundClosed, 0}
	case uint64(len(o.winners)) >= o.entrants, len(o.winners) >= int(c.round.Config.Winners.Count+more.Most):
		return failure{NobodyLeft, 0}
	}
	r.enters = entryOf(o)
	return failure{}
}

func (settleKind) write(r *drawing, c *Command)      { hosting{r}.settleRound(&r.enters.round, c.round) }
func (cancelRoundKind) write(r *drawing, _ *Command) { hosting{r}.giveBack(&r.enters.round) }
func (rerollKind) write(r *drawing, c *Command)      { hosting{r}.reroll(&r.enters.round, c.round) }

// settleRound settles a round that is open. p is nil if the catalog does not have it.
func (r hosting) settleRound(o *round, p *Round) {
	all := opens{hosting: r}
	if p == nil || o.entrants < uint64(p.Config.Entrants.Min) || p.Config.Opens && !all.mayOpen(o, p) {
		r.giveBack(o)
		return
	}
	r.closes(o, roundSettled, p.Config.Winners.Rerolls.Within)
	if p.Config.Opens {
		all.settle(o, p)
		r.keepRound(o)
		return
	}
	r.win(o, p, int(p.Config.Winners.Count))
	r.addToPots(o, p)
	shares := r.sharesOf(o, p)
	for place := range o.entrants {
		if o.entrants > catalog.MaxStakes {
			r.record(r.notes.newKey(recordStep).num(o.number), nil)
			break
		}
		r.deal(o, place, p.Config.Winners.Everything, shares)
	}
	for i := range o.winners {
		r.award(o, p, i, shares.of[i], 0)
	}
	r.keepRound(o)
}

// giveBack closes a round, and gives everything back.
func (r hosting) giveBack(o *round) {
	r.closes(o, roundReturned, 0)
	for place := range o.entrants {
		if o.entrants > catalog.MaxStakes {
			r.record(r.notes.newKey(recordStep).num(o.number), nil)
			break
		}
		r.deal(o, place, true, nil)
	}
	r.keepRound(o)
}

// closes writes that a round is open no more. within is for how long winners can be drawn again.
func (r hosting) closes(o *round, is uint64, within int64) {
	o.is = is
	r.w.Drop(r.notes.newKey(recordOpen).text(o.name).num(o.number))
	r.setTally(r.t.rounds+roundsOpened, r.tally(r.t.rounds+roundsOpened)-1)
	if o.every != 0 {
		calling{r}.keepTurn(o, 0)
	}
	r.due(o, uint64(r.steady+max(within, keepRounds)))
}

// deal writes what becomes of what an entrant has held. With back, what nobody wins goes back; else it is gone.
func (r hosting) deal(o *round, place uint64, back bool, shares *sharing) {
	e := r.notes.entrantOf(o.number, place)
	r.turn(e.player)
	for _, st := range e.held {
		gone := st.Quantity
		if back {
			gone = shares.from(place, st)
		}
		if gone > 0 {
			r.keep(store.Forfeit, st.Item, gone)
		}
		if gone < st.Quantity {
			r.keep(store.Release, st.Item, st.Quantity-gone)
		}
	}
	r.leaves(o, place, &e)
}

// leaves writes that an entrant has nothing more to do with a round.
func (r hosting) leaves(o *round, place uint64, e *entrant) {
	r.w.Drop(r.notes.newKey(recordPlays).short(e.joined).num(o.number))
	if !r.again(o) {
		r.w.Drop(r.notes.newKey(recordEntrant).num(o.number).short(uint32(place)))
	}
	o.dealt++
}

// again reports whether winners of a round that was settled can be drawn again, so that its entrants must be kept.
func (r hosting) again(o *round) bool {
	p := r.t.RoundByID[o.name]
	return o.is == roundSettled && p != nil && p.Config.Winners.Rerolls.Most > 0
}

// win chooses more winners, at most n.
func (r hosting) win(o *round, p *Round, n int) {
	if p.rank != nil {
		r.winByRank(o, p, n)
		return
	}
	var passed tickets
	if p.Config.Winners.Distinct {
		for _, w := range o.winners {
			passed.add(r.ticketsOf(o, p, w.place))
		}
	}
	all := o.entrants
	if p.Config.Winners.By == catalog.ByTickets {
		all = o.tickets
	}
	for n > 0 {
		left := all - passed.count()
		if left == 0 {
			break
		}
		place := r.holderOf(o, p, passed.skip(r.below(left)))
		player := r.notes.entrantOf(o.number, place).player
		forgotten := r.state.PlayerID(player) == ""
		if p.Config.Winners.Distinct || forgotten {
			passed.add(r.ticketsOf(o, p, place))
		}
		if !forgotten {
			o.winners = append(o.winners, winner{place: place, player: player})
			n--
		}
	}
}

// ticketsOf returns the tickets of an entrant: one each if these do not count.
func (r hosting) ticketsOf(o *round, p *Round, place uint64) ticketSpan {
	if p.Config.Winners.By != catalog.ByTickets {
		return ticketSpan{place, place + 1}
	}
	e := r.notes.entrantOf(o.number, place)
	return ticketSpan{e.upto - e.tickets, e.upto}
}

// holderOf returns the entrant who has a ticket.
func (r hosting) holderOf(o *round, p *Round, ticket uint64) (place uint64) {
	if p.Config.Winners.By != catalog.ByTickets {
		return ticket
	}
	return uint64(sort.Search(int(o.entrants), func(i int) bool { return r.notes.entrantOf(o.number, uint64(i)).upto > ticket }))
}

// tickets are ranges of tickets, ascending.
type tickets []ticketSpan

type ticketSpan struct{ from, to uint64 }

func (t *tickets) add(s ticketSpan) {
	i, _ := slices.BinarySearchFunc(*t, s, func(a, b ticketSpan) int { return cmp.Compare(a.from, b.from) })
	*t = slices.Insert(*t, i, s)
}

func (t tickets) count() (n uint64) {
	for _, s := range t {
		n += s.to - s.from
	}
	return n
}

// skip returns the ticket with a number among those that are not in t.
func (t tickets) skip(n uint64) uint64 {
	for _, s := range t {
		if n < s.from {
			break
		}
		n += s.to - s.from
	}
	return n
}

// winByRank makes those winners who stand best in a counter.
func (r hosting) winByRank(o *round, p *Round, n int) {
	type ranked struct{ rank, place uint64 }
	var all []ranked
	for place := range o.entrants {
		r.player = r.notes.entrantOf(o.number, place).player
		if rank := p.rank.Rank(&r.Sight); rank > 0 {
			all = append(all, ranked{rank, place})
		}
	}
	r.player = noPlayer
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	for _, at := range all[:min(n, len(all))] {
		o.winners = append(o.winners, winner{place: at.place, player: r.notes.entrantOf(o.number, at.place).player})
	}
}

// addToPots writes what the price of all tickets adds to pots.
func (r hosting) addToPots(o *round, p *Round) {
	for _, to := range p.pots {
		i := indexOf(o.held, to.Item)
		if i < 0 {
			continue
		}
		hi, lo := bits.Mul64(o.held[i].Quantity, to.share)
		units, rest := bits.Div64(hi, lo, catalog.ShareUnit) // the quantity is below 2^61
		if rest += r.tally(to.Counter + 1); rest >= catalog.ShareUnit {
			units, rest = units+1, rest-catalog.ShareUnit
		}
		r.setTally(to.Counter, min(r.tally(to.Counter)+units, MaxQuantity))
		r.setTally(to.Counter+1, rest)
	}
}

// sharing is what winners get of stakes or of a pot.
type sharing struct {
	total []Stack   // what there is
	of    [][]Stack // by place among the winners: what fits
	own   []owned   // what they get of what they have staked themselves
	left  []Stack   // of the rest, what is not yet taken from those who staked it
}

// owned is some of what an entrant has staked.
type owned struct {
	place uint64
	Stack
}

// sharesOf returns who gets how much.
func (r hosting) sharesOf(o *round, p *Round) *sharing {
	s, config := &sharing{}, &p.Config.Winners
	switch {
	case config.Everything:
		s.total = o.held
	default:
		for _, at := range p.gets {
			if have := r.tally(at.Counter); have > 0 {
				s.total = append(s.total, Stack{at.Item, have})
			}
		}
	}
	s.of = make([][]Stack, len(o.winners))
	room := giving{hosting: r}
	for _, st := range s.total {
		given, own := uint64(0), len(s.own)
		for i, part := range partsOf(config, st.Quantity, len(o.winners)) {
			w, mine := &o.winners[i], uint64(0)
			if e := r.notes.entrantOf(o.number, w.place); config.Everything {
				if k := indexOf(e.held, st.Item); k >= 0 {
					mine = e.held[k].Quantity
				}
			}
			fits := room.take(w.player, st.Item, part, mine)
			if fits > 0 {
				s.of[i] = append(s.of[i], Stack{st.Item, fits})
			}
			given += fits
			s.mine(w.place, Stack{st.Item, fits}, mine)
		}
		if !config.Everything && given > 0 {
			at := p.gets[slices.IndexFunc(p.gets, func(at potItem) bool { return at.Item == st.Item })]
			r.setTally(at.Counter, st.Quantity-given)
		}
		for _, mine := range s.own[own:] {
			given -= mine.Quantity
		}
		s.left = append(s.left, Stack{st.Item, given})
	}
	return s
}

// mine notes that a winner who has staked some of an item gets some. That takes their own stake first, so that nobody
// ever has more of it than fits.
func (s *sharing) mine(place uint64, gets Stack, staked uint64) {
	i := slices.IndexFunc(s.own, func(at owned) bool { return at.place == place && at.Item == gets.Item })
	if i < 0 {
		i = len(s.own)
		s.own = append(s.own, owned{place, Stack{Item: gets.Item}})
	}
	s.own[i].Quantity = min(s.own[i].Quantity+gets.Quantity, staked)
}

// partsOf divides a quantity among winners. What stakes leave over is the first one's.
func partsOf(config *catalog.Winners, q uint64, winners int) []uint64 {
	parts, sum := make([]uint64, winners), uint64(0)
	for i := range parts {
		percent, of := uint64(1), uint64(winners)
		if len(config.Shares) > 0 {
			percent, of = 0, 100
			if i < len(config.Shares) {
				percent = uint64(config.Shares[i])
			}
		}
		hi, lo := bits.Mul64(q, percent)
		parts[i], _ = bits.Div64(hi, lo, of)
		sum += parts[i]
	}
	if config.Everything && winners > 0 {
		parts[0] += q - sum
	}
	return parts
}

// from takes what winners get of an entrant's stake, and returns how much that is. s may be nil: nobody gets anything.
func (s *sharing) from(place uint64, st Stack) (n uint64) {
	if s == nil {
		return 0
	}
	for _, own := range s.own {
		if own.place == place && own.Item == st.Item {
			n = own.Quantity
		}
	}
	i := indexOf(s.left, st.Item)
	if i < 0 {
		return n
	}
	more := min(st.Quantity-n, s.left[i].Quantity)
	s.left[i].Quantity -= more
	return n + more
}

// giving is hosting that keeps what winners are about to get.
type giving struct {
	hosting
	gets    []gain
	letters []uint32 // to whom
}

type gain struct {
	player uint32
	Stack
}

// take returns how much a player can get of an item, of what the player has staked some of which is given up before. It
// counts that as got.
func (g *giving) take(player, item uint32, q, own uint64) uint64 {
	i := slices.IndexFunc(g.gets, func(at gain) bool { return at.player == player && at.Item == item })
	if i < 0 {
		i = len(g.gets)
		g.gets = append(g.gets, gain{player, Stack{Item: item}})
	}
	got := &g.gets[i].Quantity
	have := g.has(player, item) - own + *got
	q = min(q, MaxQuantity-min(have+g.extra, MaxQuantity))
	c, letters := g.t.CapOf(item), 0
	if c == nil {
		*got += q
		return q
	}
	fits := min(q, c.room(have))
	*got += fits
	for _, p := range g.letters {
		if p == player {
			letters++
		}
	}
	if fits < q && c.Beyond.Do == catalog.BeyondMail && len(g.mailbox(player).all)+letters < MaxMail {
		g.letters = append(g.letters, player)
		return q
	}
	return fits
}

// award gives a winner what they get: some of the stakes or of a pot, and the reward.
func (r hosting) award(o *round, p *Round, i int, gets []Stack, value uint64) {
	w := &o.winners[i]
	r.turn(w.player)
	if r.t.due != noCounter {
		for _, s := range sources() {
			if at := r.counter(w.player, r.t.due); at != 0 && at <= uint64(r.steady) {
				s.settle(&r.effects, w.player)
			}
		}
	}
	for _, st := range gets {
		r.given(st.Quantity)
	}
	w.missed = p.reward != nil && !r.mayGiveWith(p.reward, w.player, gets)
	missed := uint64(0)
	if w.missed {
		missed = 1
	}
	r.w.More(store.Place, uint64(i)+1, value<<1|missed)
	for _, st := range gets {
		r.change(store.Gain, st.Item, st.Quantity)
	}
	if p.reward == nil || w.missed {
		return
	}
	r.pool = noPool
	r.give(&p.reward.Entries[0].Reward)
	r.endDraw()
	r.writeMoves()
}

// mayGiveWith is mayGive after the player has got some items.
func (r hosting) mayGiveWith(pt *Pool, player uint32, gets []Stack) bool {
	for _, st := range gets {
		r.values.put(valueKey(player, st.Item), r.balance(player, st.Item)+st.Quantity)
	}
	may := r.mayGive(pt, player)
	for _, st := range gets {
		r.values.put(valueKey(player, st.Item), r.balance(player, st.Item)-st.Quantity)
	}
	return may
}

// reroll draws one winner more.
func (r hosting) reroll(o *round, p *Round) {
	n := len(o.winners)
	distinct := *p
	config := *p.Config
	config.Winners.Distinct, distinct.Config = true, &config // never a former winner
	r.win(o, &distinct, 1)
	if len(o.winners) > n {
		r.award(o, p, n, nil, 0)
	}
	r.keepRound(o)
}

// stepOf writes a step of what follows for the entrants of a round.
func (r hosting) stepOf(number uint64) {
	o, _ := r.notes.roundOf(number)
	for range dealStep {
		if o.dealt == o.entrants {
			break
		}
		if o.is == roundForgotten {
			r.w.Drop(r.notes.newKey(recordEntrant).num(o.number).short(uint32(o.dealt)))
			o.dealt++
			continue
		}
		r.deal(&o, o.dealt, o.is == roundReturned, nil)
	}
	done := o.dealt == o.entrants
	if done {
		r.w.Drop(r.notes.newKey(recordStep).num(o.number))
	}
	if done && o.is == roundForgotten {
		r.w.Drop(r.notes.newKey(recordRound).num(o.number))
		return
	}
	r.keepRound(&o)
}

// roundForgotten is a round whose entrants go, after the time in which winners could be drawn again.
const roundForgotten = 4

// forget writes that a closed round can be read no more.
func (r hosting) forget(o *round) {
	r.due(o, 0)
	from := key{recordEntrant}.num(o.number)
	kept := slices.Collect(func(yield func(uint64) bool) {
		for range r.state.Records(from, from.after()) {
			if !yield(0) {
				return
			}
		}
	})
	if len(kept) == 0 {
		r.w.Drop(r.notes.newKey(recordRound).num(o.number))
		return
	}
	o.is, o.dealt = roundForgotten, 0
	r.record(r.notes.newKey(recordStep).num(o.number), nil)
	r.keepRound(o)
}

// atDeadline writes what happens at the deadline of a round, at the end of its period, or when that of the next one
// begins.
func (r hosting) atDeadline(number uint64) {
	switch o, ok := r.notes.roundOf(number); {
	case !ok:
		calling{r}.openNext(number)
	case o.is == roundOpen:
		r.settleRound(&o, r.t.RoundByID[o.name])
	default:
		r.forget(&o)
	}
}

// seat writes which place an entrant has.
func (r hosting) seat(o *round, place uint64, e *entrant) {
	r.notes.value = e.append(r.notes.value[:0])
	r.record(r.notes.newKey(recordEntrant).num(o.number).short(uint32(place)), r.notes.value)
}
