package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A round is open until it is settled: by a command, when it is full, or at its deadline. Who joins stakes items, or
// buys tickets. These are held until then. Its settlement is one event: see settle.go.
//
// A round has a number in its realm. While it is open, it follows what the catalog in force says of its name. If the
// catalog has the name no more, everything goes back at its end.

// Limits of rounds.
const (
	MaxOpenRounds   = 10_000 // in a realm
	MaxPlayerRounds = 100    // that a player is in
)

// Round is a catalog.Round by numbers.
type Round struct {
	Config *catalog.Round
	stake  NumSet    // the items that can be staked; of any, all
	price  []Stack   // of a ticket
	values []Stack   // what a unit of an item counts
	rank   *Counter  // by which winners are chosen; nil: they are not
	reward *Pool     // a pool with one entry: what each winner gets; nil: nothing
	pots   []pot     // what its price adds to
	gets   []potItem // of the pot that winners get
	opens  []opening // the pools from which what is staked is opened; none: it is not
}

// opening is the pool from which an item is opened.
type opening struct {
	item uint32
	pool *Pool
}

// pot is a share of an item of the price that goes into a pot.
type pot struct {
	potItem
	share uint64 // millionths
}

// potItem is what a pot has of an item: a counter of the realm has whole units, the next one millionths.
type potItem struct {
	Item    uint32
	Counter uint32
}

const potWidth = 2

// PotName returns the name of the counters of what a pot has of an item.
func PotName(pot, item string) string { return "/realm/pot/" + pot + "/" + item }

// roundsName is the name of the realm's counters of rounds: the number of the last one, and how many are open.
const (
	roundsName   = "/realm/rounds"
	roundsWidth  = 2
	roundsLast   = 0
	roundsOpened = 1
)

// playing is the rounds of a catalog.
type playing struct {
	Rounds    []*Round // in the order of the catalog
	RoundByID map[string]*Round
	rounds    uint32 // number of the first counter of roundsName; noCounter: there never were rounds
}

// rounds numbers what rounds count.
func (d *definer) rounds(c *catalog.Catalog) error {
	t := &d.t.playing
	t.RoundByID = make(map[string]*Round, len(c.Rounds))
	if _, named := d.state.CounterNum(roundsName); named || len(c.Rounds) > 0 {
		t.rounds = d.counters(roundsName, roundsWidth)
		d.deadlines()
	}
	pots := map[string][]potItem{}
	for i := range c.Rounds {
		config := &c.Rounds[i]
		round := &Round{Config: config, price: d.t.stacks(config.Ticket.Price)}
		for _, a := range config.Ticket.Adds {
			for _, st := range config.Ticket.Price {
				at := potItem{d.t.ItemNum[st.Item], d.counters(PotName(a.Pot, st.Item), potWidth)}
				round.pots = append(round.pots, pot{at, a.Share})
				if !slices.Contains(pots[a.Pot], at) {
					pots[a.Pot] = append(pots[a.Pot], at)
				}
			}
		}
		if !config.Winners.Reward.Nothing() {
			round.reward = d.tierPool()
		}
		t.Rounds, t.RoundByID[config.ID] = append(t.Rounds, round), round
		for _, item := range slices.Concat(config.Ticket.Price, []catalog.Stack{{Item: config.Stake.Item}}) {
			if at, ok := d.t.ItemNum[item.Item]; ok && c.Items[d.t.ItemAt[at]].Lasts > 0 {
				return &ConflictError{Subject: "round " + config.ID, Message: fmt.Sprintf("units of %q last for a time, so they cannot be held", item.Item)}
			}
		}
	}
	for _, round := range t.Rounds {
		round.gets = pots[round.Config.Winners.Pot]
	}
	return nil
}

// compileRounds fills in what follows from the catalog and its numbers.
func compileRounds(t *Tables) {
	for _, round := range t.Rounds {
		c := round.Config
		switch {
		case c.Stake.Item != "":
			round.stake.Add(t.ItemNum[c.Stake.Item])
		case c.Stake.Family != "":
			num, _ := named(t, c.Stake.Family)
			for _, item := range itemsOf(&num, t.kin(c.Stake.Family)) {
				round.stake.Add(item)
			}
		}
		round.values = t.stacks(c.Winners.Values)
		if c.Winners.By == catalog.ByRank {
			round.rank = t.CounterByID[c.Winners.Rank]
		}
		if round.reward != nil {
			t.compileTier(round.reward, &c.Winners.Reward)
		}
		for i := range t.Catalog.Items {
			id := t.Catalog.Items[i].ID
			if at := t.Catalog.Opening(id); c.Opens && at >= 0 && round.stake.Has(t.ItemNum[id]) {
				round.opens = append(round.opens, opening{t.ItemNum[id], t.PoolByID[t.Catalog.Pools[at].ID]})
			}
		}
	}
}

// openable reports why a round cannot open what is staked, once it is known what its pools give.
func openable(t *Tables) error {
	for _, round := range t.Rounds {
		for _, o := range round.opens {
			wrong, c := "", round.Config
			switch {
			case len(o.pool.codes) > 0:
				wrong = "gives codes, which nobody can win from another player"
			case len(o.pool.lasting) > 0:
				wrong = "gives items that last for a time, which nobody can win from another player"
			case uint64(c.Entrants.Max)*c.Stake.Max*o.pool.Picks > catalog.MaxRequestPicks:
				wrong = fmt.Sprintf("could take more than %d entries when all open as much as they can", catalog.MaxRequestPicks)
			}
			if wrong != "" {
				return &ConflictError{Subject: "round " + c.ID, Message: fmt.Sprintf("pool %q, which it opens, %s", o.pool.Config.ID, wrong)}
			}
		}
	}
	return nil
}

// openingOf returns the pool from which an item is opened, nil if there is none.
func (p *Round) openingOf(item uint32) *Pool {
	for _, o := range p.opens {
		if o.item == item {
			return o.pool
		}
	}
	return nil
}

// RoundOf says which round a command is about: the one with a number, or if that is 0, the one of this name that was
// opened last of those that are open.
type RoundOf struct {
	Name    string
	Number  uint64
	Tickets uint64 // 0 counts as 1
}

// What has become of a round.
const (
	roundOpen     = 1
	roundSettled  = 2
	roundReturned = 3
)

// round is what the state has of a round.
type round struct {
	number   uint64
	name     string
	is       uint64 // roundOpen, roundSettled or roundReturned
	opener   uint32 // noPlayer: nobody's
	opened   uint64 // steady time
	until    uint64 // its deadline, steady time; 0: none. Of one that is not open, when it is forgotten
	entrants uint64
	tickets  uint64      // of all of them
	dealt    uint64      // entrants with whom steps have dealt
	every    catalog.Per // the calendar opened it for a day, week or month; 0: somebody did
	period   uint64      // for the one with this number
	held     []Stack     // of all entrants, of each item at most maxPeak
	same     []Stack     // what the first entrant has staked
	winners  []winner
}

// winner is an entrant who has won.
type winner struct {
	place  uint64 // as an entrant
	player uint32
	missed bool // the reward was not there or did not fit
}

// entrant is somebody who has joined a round.
type entrant struct {
	player  uint32 // who it is now
	joined  uint32 // who has joined: a name of the player now, if it was merged
	tickets uint64
	upto    uint64  // the tickets of all up to this one
	held    []Stack // a stake, or the price
}

func (o *round) append(b []byte) []byte {
	n := numbers{b}
	n.add(o.is, uint64(len(o.name)))
	n.b = append(n.b, o.name...)
	n.add(uint64(o.opener), o.opened, o.until, o.entrants, o.tickets, o.dealt, uint64(o.every), o.period)
	n.stacks(o.held)
	n.stacks(o.same)
	n.add(uint64(len(o.winners)))
	for _, w := range o.winners {
		missed := uint64(0)
		if w.missed {
			missed = 1
		}
		n.add(w.place, uint64(w.player)<<1|missed)
	}
	return n.b
}

func (o *round) read(b []byte) {
	n := numbers{b}
	o.is = n.next()
	size := n.next()
	o.name, n.b = string(n.b[:size]), n.b[size:]
	o.opener = uint32(n.next())
	o.opened, o.until, o.entrants, o.tickets, o.dealt = n.next(), n.next(), n.next(), n.next(), n.next()
	o.every, o.period = catalog.Per(n.next()), n.next()
	o.held, o.same = n.nextStacks(nil), n.nextStacks(nil)
	for range n.next() {
		w := winner{place: n.next()}
		player := n.next()
		w.player, w.missed = uint32(player>>1), player&1 == 1
		o.winners = append(o.winners, w)
	}
}

func (e *entrant) append(b []byte) []byte {
	n := numbers{b}
	n.add(uint64(e.joined), e.tickets, e.upto)
	n.stacks(e.held)
	return n.b
}

func (e *entrant) read(b []byte) {
	n := numbers{b}
	e.joined, e.tickets, e.upto = uint32(n.next()), n.next(), n.next()
	e.held = n.nextStacks(e.held[:0])
}

// roundOf reads a round. ok is false if there is none with this number.
func (r *noting) roundOf(number uint64) (o round, ok bool) {
	value, ok := r.state.Record(r.newKey(recordRound).num(number))
	if ok {
		o.read(value)
		o.number = number
	}
	return o, ok
}

// entrantOf reads an entrant, who must be there.
func (r *noting) entrantOf(number, place uint64) (e entrant) {
	value, ok := r.state.Record(r.newKey(recordEntrant).num(number).short(uint32(place)))
	if !ok {
		panic(fmt.Sprintf("rules: round %d has no entrant %d", number, place))
	}
	e.read(value)
	e.player = r.state.Whose(e.joined)
	return e
}

// find returns the round that a command is about.
func (r *noting) find(of *RoundOf) (o round, ok bool) {
	if of.Number > 0 {
		o, ok = r.roundOf(of.Number)
		return o, ok && o.name == of.Name
	}
	from := r.newKey(recordOpen).text(of.Name)
	last := uint64(0)
	for k := range r.state.Records(from, from.after()) {
		last = key(k).last()
	}
	return r.roundOf(last)
}

// hosting writes what happens to rounds.
type hosting struct{ *drawing }

// record writes the record of a key that newKey has made.
func (r hosting) record(k key, value []byte) { r.w.Put(k, value) }

// keepRound writes what the state has of a round.
func (r hosting) keepRound(o *round) {
	r.notes.value = o.append(r.notes.value[:0])
	r.record(r.notes.newKey(recordRound).num(o.number), r.notes.value)
}

// openRoundKind opens a round. If it names a player, that player joins it.
type openRoundKind struct{ noted }

// joinKind joins one.
type joinKind struct{ noted }

func (openRoundKind) alone() string { return "an atomic group cannot open a round" }
func (joinKind) alone() string      { return "an atomic group cannot join a round" }

func (of *RoundOf) form() *CommandError {
	switch {
	case of.Name == "":
		return malformed("round", "empty; want the id of a round")
	case of.Tickets > catalog.MaxTickets:
		return malformed("tickets", "%d; at most %d are allowed", of.Tickets, catalog.MaxTickets)
	}
	return checkLength("round", of.Name, catalog.MaxID)
}

func (joinKind) form(c *Command) *CommandError {
	if err := c.Round.form(); err != nil || len(c.Items) == 0 {
		return err
	}
	return ofStake(checkStacks(c.Items))
}

func (openRoundKind) form(c *Command) *CommandError {
	if c.Round.Number != 0 {
		return malformed("number", "%d; a round gets its number when it is opened", c.Round.Number)
	}
	if c.Player == "" && (len(c.Items) > 0 || c.Round.Tickets > 0) {
		return malformed("player", "empty; want the player who stakes or has tickets")
	}
	return joinKind{}.form(c)
}

func (k joinKind) resolve(f *Finder, c *Command) *CommandError {
	if c.round = f.RoundByID[c.Round.Name]; c.round == nil {
		return f.unknown("round", "round", c.Round.Name)
	}
	switch tickets := c.round.Config.Ticket.Is; {
	case tickets && len(c.Items) > 0:
		return malformed("stake", "round %q has tickets, and no stakes", c.Round.Name)
	case !tickets && c.Round.Tickets > 0:
		return malformed("tickets", "round %q has stakes, and no tickets", c.Round.Name)
	case tickets && c.Round.Tickets > c.round.Config.Ticket.Most:
		return malformed("tickets", "%d; a player can have at most %d in round %q", c.Round.Tickets, c.round.Config.Ticket.Most, c.Round.Name)
	}
	return ofStake(itemsKind{}.resolve(f, c))
}

func (openRoundKind) resolve(f *Finder, c *Command) *CommandError {
	if p := f.RoundByID[c.Round.Name]; p != nil && p.Config.Every != 0 {
		return malformed("round", "round %q is opened by the calendar, every %v", c.Round.Name, p.Config.Every)
	}
	return joinKind{}.resolve(f, c)
}

// ask writes the round's name and number, the tickets, and the stake.
func (joinKind) ask(r *effects, c *Command, status Status) {
	writeText(r.w, c.Round.Name)
	r.w.Uint(c.Round.Number)
	r.w.Uint(c.Round.Tickets)
	itemsKind{}.ask(r, c, status)
}

func (joinKind) asked(a *asked, c *Command) {
	c.Round = a.round()
	c.Round.Tickets = a.Uint("the tickets", catalog.MaxTickets)
	itemsKind{}.asked(a, c)
}

func (a *asked) round() *RoundOf {
	return &RoundOf{Name: a.text("the round", catalog.MaxID), Number: a.Uint("the round's number", math.MaxInt64)}
}

func (openRoundKind) ask(r *effects, c *Command, status Status) { joinKind{}.ask(r, c, status) }
func (openRoundKind) asked(a *asked, c *Command)                { joinKind{}.asked(a, c) }

func (joinKind) same(c, o *Command) bool      { return *c.Round == *o.Round }
func (openRoundKind) same(c, o *Command) bool { return *c.Round == *o.Round }

// seat is a player about to join a round.
type seat struct {
	round round
	who   entrant
}

func (openRoundKind) check(r *checks, c *Command) failure {
	e := &r.enters
	config := c.round.Config
	*e = entryOf(round{number: r.tally(r.t.rounds+roundsLast) + 1, name: config.ID, is: roundOpen, opener: noPlayer, opened: uint64(r.steady)})
	if config.Open > 0 {
		e.round.until = uint64(r.steady) + uint64(config.Open)
	}
	if _, open := r.notes.find(&RoundOf{Name: config.ID}); open && config.One {
		return failure{AlreadyOpen, 0}
	}
	if r.tally(r.t.rounds+roundsOpened) >= MaxOpenRounds {
		return failure{TooManyRounds, 0}
	}
	if c.Player == "" {
		return failure{}
	}
	if e.round.opener = c.who(&r.Sight); config.Ticket.Is && c.Round.Tickets == 0 {
		_, f := r.come(c)
		return f
	}
	return r.enter(c)
}

func entryOf(o round) seat { return seat{round: o, who: entrant{player: noPlayer}} }

func (joinKind) check(r *checks, c *Command) failure {
	o, ok := r.notes.find(c.Round)
	switch {
	case !ok:
		return failure{UnknownRound, 0}
	case o.is != roundOpen:
		return failure{RoundClosed, 0}
	}
	r.enters = entryOf(o)
	return r.enter(c)
}

// enter checks whether a player can join the round.
func (r *checks) enter(c *Command) failure {
	o, config := &r.enters.round, c.round.Config
	player, f := r.come(c)
	if f.status != OK {
		return f
	}
	if r.anyName(player, func(n uint32) bool {
		_, in := r.state.Record(r.notes.newKey(recordPlays).short(n).num(o.number))
		return in
	}) {
		return failure{AlreadyJoined, 0}
	}
	if o.entrants >= uint64(config.Entrants.Max) {
		return failure{RoundFull, 0}
	}
	if r.notes.plays(player) >= MaxPlayerRounds {
		return failure{TooManyRounds, 0}
	}
	who := &r.enters.who
	*who = entrant{player: player, joined: player, tickets: 1, held: slices.Clone(c.stacks)}
	if config.Ticket.Is {
		who.tickets = max(c.Round.Tickets, 1)
		for _, st := range c.round.price {
			if st.Quantity > MaxQuantity/who.tickets {
				return failure{InsufficientItems, st.Item}
			}
			who.held = append(who.held, Stack{st.Item, st.Quantity * who.tickets})
		}
	} else if !c.round.stakes(r.t, o, who) {
		return failure{WrongStake, 0}
	}
	for i, st := range who.held {
		if have := r.balance(player, st.Item); have < st.Quantity {
			return r.lacking(len(who.held)-i, func(k int) Lack {
				st := who.held[i+k]
				return Lack{st.Item, r.balance(player, st.Item), st.Quantity}
			})
		}
	}
	who.upto = o.tickets + who.tickets
	return failure{}
}

// plays returns in how many rounds a player is, at most MaxPlayerRounds.
func (r *noting) plays(player uint32) (n int) {
	from := r.newKey(recordPlays).short(player)
	for range r.state.Records(from, from.after()) {
		if n++; n == MaxPlayerRounds {
			break
		}
	}
	return n
}

// stakes reports whether a stake is one that the round takes. Where everyone stakes the same, a player need not
// name it.
func (p *Round) stakes(t *Tables, o *round, who *entrant) bool {
	s := &p.Config.Stake
	if s.Same && o.entrants > 0 {
		if len(who.held) == 0 {
			who.held = slices.Clone(o.same)
		}
		return sameStacks(who.held, o.same)
	}
	units := uint64(0)
	for _, st := range who.held {
		if !s.Any && !p.stake.Has(st.Item) || t.Lasting.Has(st.Item) {
			return false
		}
		units = min(units+st.Quantity, catalog.MaxStakeUnits+1)
	}
	return units >= s.Min && units <= s.Max
}

// sameStacks reports whether two lists have as many of the same items, each once, in any order.
func sameStacks(a, b []Stack) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(st Stack) bool { return !slices.Contains(b, st) })
}

func (openRoundKind) write(d *drawing, c *Command) {
	r := hosting{d}
	o := &r.enters.round
	if c.Player != "" {
		r.arrive(c.who(&r.Sight))
	}
	r.begins(o)
	if r.enters.who.player == noPlayer {
		r.keepRound(o)
		return
	}
	r.takeSeat(c)
}

func (joinKind) write(r *drawing, c *Command) {
	r.arrive(c.who(&r.Sight))
	hosting{r}.takeSeat(c)
}

// begins writes that a round is open.
func (r hosting) begins(o *round) {
	r.setTally(r.t.rounds+roundsLast, o.number)
	r.setTally(r.t.rounds+roundsOpened, r.tally(r.t.rounds+roundsOpened)+1)
	r.record(r.notes.newKey(recordOpen).text(o.name).num(o.number), nil)
	if o.until > 0 {
		r.record(r.notes.newKey(recordDue).num(o.until).num(o.number), nil)
	}
}

// takeSeat writes that the player has joined the round. One that is full is due at once.
func (r hosting) takeSeat(c *Command) {
	o, who := &r.enters.round, &r.enters.who
	for _, st := range who.held {
		r.keep(store.Hold, st.Item, st.Quantity)
		o.hold(st)
	}
	if o.entrants == 0 && !c.round.Config.Ticket.Is {
		o.same = who.held // a later catalog may want all to stake the same
	}
	r.seat(o, o.entrants, who)
	r.record(r.notes.newKey(recordPlays).short(who.player).num(o.number), nil)
	o.entrants, o.tickets = o.entrants+1, who.upto
	if o.entrants == uint64(c.round.Config.Entrants.Max) && o.until != uint64(r.steady) {
		r.due(o, uint64(r.steady))
	}
	r.keepRound(o)
}

// due gives a round another deadline, 0 for none.
func (r hosting) due(o *round, at uint64) {
	if o.until > 0 {
		r.w.Drop(r.notes.newKey(recordDue).num(o.until).num(o.number))
	}
	if o.until = at; at > 0 {
		r.record(r.notes.newKey(recordDue).num(at).num(o.number), nil)
	}
}

// hold adds to what is held in the round.
func (o *round) hold(st Stack) {
	i := indexOf(o.held, st.Item)
	if i < 0 {
		i = len(o.held)
		o.held = append(o.held, Stack{Item: st.Item})
	}
	o.held[i].Quantity = min(o.held[i].Quantity+st.Quantity, maxPeak)
}

// keep writes that some of an item of the current player is held, released or forfeited.
func (r hosting) keep(v store.Verb, item uint32, q uint64) {
	g := r.t.GrowthOf(item)
	if g != nil {
		r.settleGrowth(g)
	}
	before := r.balance(r.player, item)
	have, held := before, r.balance(r.player, store.HeldOf(item))
	switch v {
	case store.Hold:
		have, held = have-q, held+q
	case store.Release:
		have, held = have+q, held-q
	case store.Forfeit:
		held -= q
	}
	r.w.More(v, uint64(item), q)
	r.values.put(valueKey(r.player, item), have)
	r.values.put(valueKey(r.player, store.HeldOf(item)), held)
	if g != nil {
		r.goesOn(g, before)
	}
	for _, quest := range r.t.asking[item] {
		r.reached(quest)
	}
}
