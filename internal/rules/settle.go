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

// settleRound settles a round that is open. p is nil if the catalog does not have it.
func (r hosting) settleRound(o *round, p *Round) {
	if p == nil || o.entrants < uint64(p.Config.Entrants.Min) || p.Config.Opens && !(opens{r}).mayOpen(o, p) {
		r.giveBack(o)
		return
	}
	r.closes(o, roundSettled, p.Config.Winners.Rerolls.Within)
	if p.Config.Opens {
		opens{r}.settle(o, p)
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
	r.due(o, uint64(r.steady+max(within, keepRounds)))
}

// deal writes what becomes of what an entrant has held. With back, what nobody wins goes back; else it is gone.
func (r hosting) deal(o *round, place uint64, back bool, shares *sharing) {
	e := r.notes.entrantOf(o.number, place)
	r.turn(e.player)
	for _, st := range e.held {
		gone := st.Quantity
		if back {
			gone = shares.from(st)
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
	r.w.Drop(r.notes.newKey(recordJoined).num(o.number).short(e.joined))
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
	left  []Stack   // what is not yet taken from those who staked it
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
	for _, st := range s.total {
		given := uint64(0)
		parts := partsOf(config, st.Quantity, len(o.winners))
		for i, w := range o.winners {
			own := uint64(0)
			if e := r.notes.entrantOf(o.number, w.place); config.Everything {
				if k := indexOf(e.held, st.Item); k >= 0 {
					own = e.held[k].Quantity
				}
			}
			before := gets(o.winners[:i], s.of, w.player, st.Item)
			fits := r.room(w.player, st.Item, before+parts[i], own)
			fits -= min(before, fits)
			if fits > 0 {
				s.of[i] = append(s.of[i], Stack{st.Item, fits})
			}
			given += fits
		}
		s.left = append(s.left, Stack{st.Item, given})
		if !config.Everything && given > 0 {
			at := p.gets[slices.IndexFunc(p.gets, func(at potItem) bool { return at.Item == st.Item })]
			r.setTally(at.Counter, st.Quantity-given)
		}
	}
	return s
}

// gets returns how much of an item winners get already who are one player: more than one entrant can be, after a Merge.
func gets(winners []winner, of [][]Stack, player, item uint32) (n uint64) {
	for i, w := range winners {
		if k := indexOf(of[i], item); w.player == player && k >= 0 {
			n += of[i][k].Quantity
		}
	}
	return n
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

// from takes what winners get of a stake, and returns how much that is. s may be nil: nobody gets anything.
func (s *sharing) from(st Stack) uint64 {
	if s == nil {
		return 0
	}
	i := indexOf(s.left, st.Item)
	if i < 0 {
		return 0
	}
	n := min(st.Quantity, s.left[i].Quantity)
	s.left[i].Quantity -= n
	return n
}

// room returns how much of an item a player can get, of what the player has held some of which is given up before.
func (r hosting) room(player, item uint32, q, own uint64) uint64 {
	have := r.balance(player, item)
	q = min(q, MaxQuantity-have)
	c := r.t.CapOf(item)
	if c == nil {
		return q
	}
	held := r.balance(player, store.HeldOf(item))
	fits := min(q, c.room(have+held-min(held, own)))
	if fits < q && c.Beyond.Do == catalog.BeyondMail && len(r.mailbox(player).all) < MaxMail {
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
	w.missed = p.reward != nil && !r.mayGive(p.reward, w.player)
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

// atDeadline writes what happens at the deadline of a round.
func (r hosting) atDeadline(number uint64) {
	if o, _ := r.notes.roundOf(number); o.is == roundOpen {
		r.settleRound(&o, r.t.RoundByID[o.name])
	} else {
		r.forget(&o)
	}
}

// seat writes which place an entrant has.
func (r hosting) seat(o *round, place uint64, e *entrant) {
	r.notes.value = e.append(r.notes.value[:0])
	r.record(r.notes.newKey(recordEntrant).num(o.number).short(uint32(place)), r.notes.value)
	r.notes.value = (&numbers{r.notes.value[:0]}).of(place)
	r.record(r.notes.newKey(recordJoined).num(o.number).short(e.joined), r.notes.value)
}
