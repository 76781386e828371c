package catalog

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/kuji-dev/kuji/internal/document"
)

// Limits of rounds.
const (
	MaxRounds         = 256       // the most rounds in a catalog
	MaxPots           = 64        // the most pots of all rounds together
	MaxRoundPots      = 16        // the most pots that one round adds to
	MaxStakeUnits     = 1000      // the most units in one stake
	MaxStakes         = 100       // the most entrants of a round with stakes
	MaxTicketEntrants = 100_000   // the most entrants of a round with tickets
	MaxTickets        = 1_000_000 // the most tickets of one player in a round
	MaxWinners        = 100       // the most winners of a round
	MaxValues         = 1024      // the most items that have a value in one round
	MaxValue          = 1 << 32   // the highest value of an item where values decide who wins
	MaxRerolls        = 100       // the most times that a round is drawn again
	ShareUnit         = 1_000_000 // what Adds.Share is in: of so many, one is the whole price
)

// Bounds of the times of rounds.
const (
	MinOpen     = time.Second
	MaxOpen     = 90 * 24 * time.Hour
	MinRerolls  = time.Minute
	MaxRerolled = 90 * 24 * time.Hour
)

// Round is what players enter, with a stake or with tickets, and what its winners get.
type Round struct {
	ID       string   `json:"id"`
	Name     string   `json:"name,omitempty"`
	Display  Display  `json:"display,omitzero"`
	Stake    Stake    `json:"stake,omitzero"`  // one of Stake and Ticket is there
	Ticket   Ticket   `json:"ticket,omitzero"` //
	Entrants Entrants `json:"entrants"`
	Open     int64    `json:"open,omitempty"`  // milliseconds for which it is open; 0: until it is settled
	Every    Per      `json:"every,omitempty"` // PerDay, PerWeek or PerMonth: the calendar opens it; 0: somebody does
	One      bool     `json:"one,omitempty"`   // at most one of it is open at a time. With Every that is so, and One is false
	Opens    bool     `json:"opens,omitempty"` // what is staked is opened when it is settled: see Catalog.Opening
	Winners  Winners  `json:"winners"`
}

// Stake is what each entrant stakes. The zero value: the round has tickets.
type Stake struct {
	Item   string `json:"item,omitempty"`   // this item,
	Family string `json:"family,omitempty"` // or items of this family,
	Any    bool   `json:"any,omitempty"`    // or any items: one of the three
	Min    uint64 `json:"min"`              // units in all, at least 1
	Max    uint64 `json:"max"`              // at most MaxStakeUnits
	Same   bool   `json:"same,omitempty"`   // everyone stakes what the opener did
}

// Ticket says that the round has tickets, and what they cost. The zero value: it has stakes.
type Ticket struct {
	Is    bool    `json:"is"`
	Price []Stack `json:"price,omitempty"` // of each ticket; none: it is free
	Most  uint64  `json:"most"`            // of one player, 1 to MaxTickets
	Adds  []Adds  `json:"adds,omitempty"`  // shares that add up to ShareUnit at most
}

// Adds is the share of the price of a ticket that goes into a pot.
type Adds struct {
	Pot   string `json:"pot"`
	Share uint64 `json:"share"` // in millionths: 1 to ShareUnit
}

// Entrants bounds how many players enter a round. With fewer, it gives everything back.
type Entrants struct {
	Min uint32 `json:"min"` // at least 1
	Max uint32 `json:"max"` // at most MaxStakes, or MaxTicketEntrants
}

// Opening returns the index of the pool from which an item is opened: the one that is not internal and whose only
// price is one unit of it. -1: none is, or several are.
func (c *Catalog) Opening(item string) int {
	at := -1
	for i := range c.Pools {
		switch opened := c.Pools[i].opened(); {
		case opened == "" || opened != item:
		case at >= 0:
			return -1
		default:
			at = i
		}
	}
	return at
}

// opened returns the item one unit of which is the pool's only price; "": it has another one.
func (p *Pool) opened() string {
	if p.Internal || !p.PriceBy.Empty() || len(p.Price) != 1 || len(p.Price[0]) != 1 || p.Price[0][0].Quantity != 1 {
		return ""
	}
	return p.Price[0][0].Item
}

var roundShape = &object[Round]{
	name: "round",
	doc:  "What players enter, with a stake or with tickets, and what its winners get.",
	fields: displayedAs(func(r *Round) *string { return &r.Name }, func(r *Round) *Display { return &r.Display },
		key("stake", stakeShape, func(r *Round) *Stake { return &r.Stake },
			"What each entrant stakes. One of stake and ticket must be there."),
		key("ticket", ticketShape, func(r *Round) *Ticket { return &r.Ticket },
			"What tickets cost, and how many a player can have. {} is one free ticket each."),
		key("entrants", entrantsShape, func(r *Round) *Entrants { return &r.Entrants },
			"How many players enter it.").writtenIf(func(r *Round) bool { return r.Entrants != r.anyEntrants() }),
		key("open", duration[int64](time.Millisecond, MinOpen, MaxOpen), func(r *Round) *int64 { return &r.Open },
			"How long it is open, such as 2m; from "+document.FormatDuration(MinOpen)+" to "+document.FormatDuration(MaxOpen)+". Without it, until it is settled."),
		key("every", perMonthly, func(r *Round) *Per { return &r.Every },
			"The calendar opens it: there is one round each day, week or month. Without it, somebody opens it.").with("ticket"),
		keyOr("one", boolean, func(r *Round) *bool { return &r.One }, false,
			"Whether at most one of it is open at a time. With every, that is so."),
		key("opens", choiceShape[bool]{{"stakes", true, "What is staked is opened when the round is settled."}},
			func(r *Round) *bool { return &r.Opens },
			"Whether what is staked is opened when the round is settled: each unit is a draw from the pool whose only price is one of it.").with("stake"),
		key[Round, Winners]("winner", winnerShape, func(r *Round) *Winners { return &r.Winners },
			"Who wins, and what. It is short for winners with a count of 1.").unchecked().writtenIf(func(r *Round) bool { return r.Winners.one() }),
		key[Round, Winners]("winners", winnersShape, func(r *Round) *Winners { return &r.Winners },
			"Who wins, and what.").must().unless("winner").writtenIf(func(r *Round) bool { return !r.Winners.one() }),
	),
	end: func(_ *reader, r *Round) { r.complete() },
}

var stakeShape = &object[Stake]{
	name: "stake",
	doc:  "What each entrant stakes. One of item, family and any must be there.",
	some: true,
	fields: []field[Stake]{
		key("item", id("an item"), func(s *Stake) *string { return &s.Item }, "Units of this item."),
		key("family", id("a family"), func(s *Stake) *string { return &s.Family }, "Units of items of this family."),
		keyOr("any", boolean, func(s *Stake) *bool { return &s.Any }, false, "Whether any items can be staked."),
		key[Stake, Stake]("count", stakeCount, func(s *Stake) *Stake { return s },
			"How many units, of all items together. Without it, 1; with any, from 1 to "+strconv.Itoa(MaxStakeUnits)+".").
			writtenIf(func(s *Stake) bool { return s.Min != 1 || s.Max != s.most() }),
		keyOr("same", boolean, func(s *Stake) *bool { return &s.Same }, false,
			"Whether everyone stakes what the opener did: as many of the same items."),
	},
	end: func(_ *reader, s *Stake) {
		if s.Min == 0 && s.Max == 0 {
			s.Min, s.Max = 1, s.most()
		}
	},
}

var stakeCount = newSpan("stake_count", "A number of units from min to max.", "The fewest.", "The most.", MaxStakeUnits,
	func(s *Stake) (low, high *uint64) { return &s.Min, &s.Max })

// most returns how many units can be staked where the source does not say it.
func (s *Stake) most() uint64 {
	if s.Any {
		return MaxStakeUnits
	}
	return 1
}

var ticketShape = &object[Ticket]{
	name: "ticket",
	doc:  "What tickets cost, and how many a player can have.",
	fields: []field[Ticket]{
		key("price", stacksShape, func(t *Ticket) *[]Stack { return &t.Price },
			"What each ticket costs: item ids with quantities. Without it, nothing."),
		keyOr("most", integer[uint64](1, MaxTickets), func(t *Ticket) *uint64 { return &t.Most }, 1,
			"How many tickets a player can have in one round."),
		key("adds", dict[Adds]{
			key:   id("a pot"),
			value: part[Adds, uint64]{share, func(a *Adds) *uint64 { return &a.Share }},
			id:    func(a *Adds) *string { return &a.Pot },
			max:   MaxRoundPots,
		}, func(t *Ticket) *[]Adds { return &t.Adds },
			"Which share of the price goes into which pot, such as 0.9; at most 1 in all. A pot is there when it is named.").with("price"),
	},
	end: func(_ *reader, t *Ticket) { t.Is = true },
}

// share is a part of the whole, in millionths.
var share = &scalar[uint64]{
	text: "a number above 0, at most 1, with at most 6 digits after the point", take: (*reader).number,
	parse: func(text string) (uint64, string, bool) {
		d, wrong := parseDecimal(text)
		switch {
		case wrong != "":
		case d.digits > 6:
			wrong = fmt.Sprintf("it has %d digits after the point", d.digits)
		case d.above(1):
			return 0, "", false
		default:
			v, ok := d.scaleTo(6)
			return v, "", ok
		}
		return 0, wrong, false
	},
	valid:  func(v uint64) bool { return v > 0 && v <= ShareUnit },
	format: func(v uint64) string { return unscaled(v, ShareUnit).String() },
	node:   schemaNode{Type: "number", Minimum: jsonNumber(0), Maximum: jsonNumber(1)},
}

var entrantsShape = mapping("entrants", "How many players enter a round.",
	key("min", integer[uint32](1, MaxTicketEntrants), func(e *Entrants) *uint32 { return &e.Min },
		"The fewest: with fewer, everything goes back. Without it, 2 with stake and 1 with ticket."),
	key("max", integer[uint32](1, MaxTicketEntrants), func(e *Entrants) *uint32 { return &e.Max },
		fmt.Sprintf("The most. Without it, and at most, %d with stake and %d with ticket.", MaxStakes, MaxTicketEntrants)),
)

// staked reports whether the round has stakes.
func (r *Round) staked() bool { return r.Stake != Stake{} }

// anyEntrants returns how many enter where the source does not say it.
func (r *Round) anyEntrants() Entrants {
	if r.staked() {
		return Entrants{2, MaxStakes}
	}
	return Entrants{1, MaxTicketEntrants}
}

// complete sets what a source leaves out.
func (r *Round) complete() {
	any := r.anyEntrants()
	r.Entrants.Min = cmp.Or(r.Entrants.Min, any.Min)
	r.Entrants.Max = cmp.Or(r.Entrants.Max, any.Max)
	by := ByTickets
	if r.staked() {
		by = ByChance
	}
	r.Winners.By = cmp.Or(r.Winners.By, by)
}

// pots returns the pots that rounds add to, each once, in the order of the source.
func (c *Catalog) pots() (all []string) {
	known := map[string]bool{}
	for i := range c.Rounds {
		for _, a := range c.Rounds[i].Ticket.Adds {
			if !known[a.Pot] {
				known[a.Pot] = true
				all = append(all, a.Pot)
			}
		}
	}
	return all
}

// roundCheck is the part of a check that is about one round.
type roundCheck struct {
	*check
	r        *Round
	openings map[string][]string // by item: the pools that open it
}

// checkRounds checks what spans several keys of rounds.
func (k *check) checkRounds() {
	if n := len(k.c.pots()); n > MaxPots {
		k.fault("expected at most %d pots of all rounds together, found %d", MaxPots, n)
	}
	openings := map[string][]string{}
	for i := range k.c.Pools {
		if p := &k.c.Pools[i]; p.opened() != "" {
			openings[p.opened()] = append(openings[p.opened()], p.ID)
		}
	}
	for i := range k.c.Rounds {
		k.enter(k.c.Rounds[i].ID)
		(&roundCheck{k, &k.c.Rounds[i], openings}).run()
		k.leave()
	}
}

func (k *roundCheck) run() {
	r := k.r
	switch {
	case r.staked() && r.Ticket.Is:
		k.fault("expected one of stake and ticket, found both")
	case !r.staked() && !r.Ticket.Is:
		k.fault("expected one of stake and ticket, found none")
	}
	k.at("stake", k.stake)
	k.at("ticket", k.ticket)
	k.at("entrants", func() {
		e, most := r.Entrants, r.anyEntrants().Max
		k.between("min", uint64(e.Min), 1, uint64(most))
		k.between("max", uint64(e.Max), 1, uint64(most))
		if e.Min > e.Max && e.Max > 0 {
			k.faultAt("min", "expected at most %d, the most that can enter, found %d", e.Max, e.Min)
		}
	})
	k.times()
	k.opens()
	k.at("winners", k.winners)
}

func (k *roundCheck) times() {
	switch r := k.r; {
	case r.Every == 0:
	case !r.Ticket.Is:
		k.faultAt("every", "expected none without tickets: nobody would stake anything to open it")
	case r.Open != 0:
		k.faultAt("open", "expected none with every: it is open as long as its day, week or month lasts")
	case r.One:
		k.faultAt("one", "expected none with every: the calendar opens one at a time")
	}
}

func (k *roundCheck) stake() {
	s, of := &k.r.Stake, 0
	for _, is := range []bool{s.Item != "", s.Family != "", s.Any} {
		if is {
			of++
		}
	}
	switch {
	case !k.r.staked():
	case of == 0:
		k.fault("expected one of item, family and any, found none")
	case of > 1:
		k.fault("expected one of item, family and any, found several")
	case s.Family != "" && k.itemsKnown && k.families[s.Family] == nil:
		k.faultAt("family", "there is no family %s%s", quote(s.Family), k.suggest(s.Family, keys(k.families)))
	}
}

func (k *roundCheck) ticket() {
	t := &k.r.Ticket
	if !t.Is {
		if t.Most != 0 || len(t.Price) > 0 || len(t.Adds) > 0 {
			k.fault("expected nothing of a ticket that is not there")
		}
		return
	}
	if len(t.Adds) > 0 && len(t.Price) == 0 && k.line == nil {
		k.faultAt("adds", "expected none: it needs a price")
	}
	sum := uint64(0)
	for _, a := range t.Adds {
		if sum = plus(sum, a.Share); a.Pot == gotAll {
			k.faultUnder([]step{{key: "adds"}, {key: a.Pot}}, "expected the id of a pot, found %s, which gets has for all stakes", quote(a.Pot))
		}
	}
	if sum > ShareUnit {
		k.faultAt("adds", "expected shares of at most 1 in all, found %s", unscaled(sum, ShareUnit))
	}
}

// opens checks that what can be staked can be opened, each item in one pool.
func (k *roundCheck) opens() {
	r := k.r
	switch {
	case !r.Opens || !k.itemsKnown || !k.poolsKnown:
		return
	case !r.staked():
		k.faultAt("opens", "expected none without stakes")
		return
	case r.Stake.Any:
		k.faultAt("opens", "expected an item or a family in stake, found any: most items cannot be opened")
		return
	}
	items := k.families[r.Stake.Family]
	if r.Stake.Item != "" {
		items = []string{r.Stake.Item}
	}
	for _, item := range items {
		if pools := k.openings[item]; len(pools) != 1 {
			found := "none"
			if len(pools) > 1 {
				found = fmt.Sprintf("%d, such as %s and %s", len(pools), quote(pools[0]), quote(pools[1]))
			}
			k.faultAt("opens", "expected one pool, not internal, whose only price is 1 %s, to open it in, found %s", item, found)
			return
		}
	}
}

func (r *Round) code(x *coder) {
	x.ref(&r.ID)
	x.name(&r.Name)
	stake := r.staked()
	if x.flags(&stake, &r.One, &r.Opens); stake {
		r.Stake.code(x)
	} else {
		r.Ticket.code(x)
	}
	span(x, &r.Entrants.Min, &r.Entrants.Max)
	number(x, &r.Open)
	kind(x, &r.Every)
	r.Winners.code(x)
	if x.version >= 6 {
		r.Display.code(x)
	}
}

// What a stake is of.
const (
	stakeItem   = 1
	stakeFamily = 2
	stakeAny    = 3
)

func (s *Stake) code(x *coder) {
	of := byte(stakeAny)
	switch {
	case s.Item != "":
		of = stakeItem
	case s.Family != "":
		of = stakeFamily
	}
	kind(x, &of)
	switch of {
	case stakeItem:
		x.ref(&s.Item)
	case stakeFamily:
		x.ref(&s.Family)
	case stakeAny:
		s.Any = s.Any || x.reading
	default:
		x.fail("expected %d to %d, what is staked, found %d", stakeItem, stakeAny, of)
	}
	span(x, &s.Min, &s.Max)
	x.flags(&s.Same)
}

func (t *Ticket) code(x *coder) {
	t.Is = t.Is || x.reading
	stacks(&t.Price, x)
	number(x, &t.Most)
	many(x, &t.Adds, MaxRoundPots, 3, func(a *Adds, x *coder) {
		x.ref(&a.Pot)
		number(x, &a.Share)
	})
}
