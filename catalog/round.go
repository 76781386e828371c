package catalog

import "time"

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

// Winners says who wins a round, and what they get: Everything or what is in a Pot, by place, and Reward each.
type Winners struct {
	Count      uint32   `json:"count"`            // 1 to MaxWinners. Fewer win if there are fewer entrants, and Distinct
	Distinct   bool     `json:"distinct"`         // nobody wins twice
	By         WinBy    `json:"by"`               //
	Values     []Stack  `json:"values,omitempty"` // with ByValue: what each unit counts, 0 to MaxValue; others count 0
	Rank       string   `json:"rank,omitempty"`   // with ByRank: the counter
	Everything bool     `json:"everything,omitempty"`
	Pot        string   `json:"pot,omitempty"`
	Shares     []uint32 `json:"shares,omitempty"` // percent by place, 100 at most in all; none: equal parts
	Reward     Reward   `json:"reward,omitzero"`
	Rerolls    Rerolls  `json:"rerolls,omitzero"`
}

// WinBy is what decides who wins.
type WinBy uint8

const (
	ByTickets WinBy = 1 // each ticket is as likely
	ByChance  WinBy = 2 // each entrant is as likely
	ByValue   WinBy = 3 // the highest sum of the values of what an entrant's stake gave
	ByRank    WinBy = 4 // who stands best in a ranked counter
)

// Rerolls says how often a winner can be drawn again. The zero value: never.
type Rerolls struct {
	Most   uint32 `json:"most"`   // 1 to MaxRerolls, for the round in all
	Within int64  `json:"within"` // milliseconds after it was settled
}

// Opening returns the index of the pool from which an item is opened: the one that is not internal and whose only
// price is one unit of it. -1: none is, or several are.
func (c *Catalog) Opening(item string) int {
	if all := c.openings(item); len(all) == 1 {
		return all[0]
	}
	return -1
}

func (c *Catalog) openings(item string) (all []int) {
	for i := range c.Pools {
		p := &c.Pools[i]
		if !p.Internal && p.PriceBy.Empty() && len(p.Price) == 1 && len(p.Price[0]) == 1 && p.Price[0][0] == (Stack{Item: item, Quantity: 1}) {
			all = append(all, i)
		}
	}
	return all
}
