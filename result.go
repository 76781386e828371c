package kuji

import (
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
)

// Status says how a request ended. Every status but OK is a refusal that depends on the state: it is
// logged, stays the answer to its request id and changes nothing, except that UnknownCode counts the guess.
type Status = rules.Status

const (
	OK                Status = 0   // carried out
	SoldOut           Status = 1   // too few outcomes in stock, assuming the worst case in nested pools; Subject is the pool of the request
	LimitReached      Status = 2   // the player has reached a limit of the pool; Subject is the pool
	InsufficientItems Status = 3   // the player holds too few; Subject is the item
	NotStarted        Status = 4   // the pool has not started yet; Subject is the pool
	Ended             Status = 5   // the pool has ended, or for a SetCounter the period of a counter that ranks players; Subject is the pool or the counter
	CountTooLarge     Status = 8   // more draws than the pool's max_count, or so many that they could take more than 100 000 entries; Subject is the pool
	BalanceOverflow   Status = 9   // a balance would exceed MaxQuantity, for a Draw if it gave the most it can; Subject is the item
	Aborted           Status = 10  // this member of an Atomic was undone or not tried because another one failed
	NotEligible       Status = 11  // the player does not meet the pool's condition; Subject is the pool
	PriceNotOffered   Status = 12  // the pool has no price in the item of Draw.Pay; Subject is the item
	UnknownCode       Status = 14  // there is no such code, and the guess was counted; no Subject
	CodeExpired       Status = 15  // the deadline of the code's list has passed; Subject is the list
	CodeUsedUp        Status = 16  // others have used the code as often as it can be; Subject is the list
	CodeRedeemed      Status = 17  // the player has used the code before, or was given it to share; Subject is the list
	TooManyGuesses    Status = 18  // the player has sent too many codes that do not exist; no Subject
	NotReached        Status = 20  // the quest's condition or what its next tier needs is not met; Subject is the quest
	AlreadyClaimed    Status = 21  // all tiers of the quest are claimed, in its present period; Subject is the quest
	RewardUnavailable Status = 22  // what the reward of the quest's next tier could give is not there; Subject is the quest
	CodeRequired      Status = 19  // only codes pay for the pool: see Redeem; Subject is the pool
	TooManyLots       Status = 23  // the player's units would go at more than 100 times, for a Draw at worst; Subject is the item
	MostReached       Status = 24  // the player would hold more than the most of an item, for a Draw at worst; Subject is the item
	MailboxFull       Status = 25  // more than MaxMail letters would be in the player's mailbox, for a Draw at worst; Subject is the item
	NothingToCollect  Status = 26  // nothing in the player's mailbox fits; no Subject
	UnknownRound      Status = 27  // there is no such round, or none of this name is open; no Subject, as with those that follow
	RoundClosed       Status = 28  // the round is not open, or for a Reroll, its time is over
	AlreadyJoined     Status = 29  // the player has joined the round
	RoundFull         Status = 30  // the round has as many entrants as it takes
	WrongStake        Status = 31  // the round takes other stakes: see the catalog, and what the first entrant has staked
	AlreadyOpen       Status = 32  // a round of this name is open, and the catalog allows one
	TooManyRounds     Status = 33  // the player is in 100 rounds, or 10 000 are open in the realm
	NobodyLeft        Status = 34  // no more winners can be drawn
	UnknownHold       Status = 35  // nothing is held with this request id, or it was forgotten
	HoldEnded         Status = 36  // the hold was confirmed or cancelled before, or its deadline is over: see Result.Hold
	TooManyHolds      Status = 37  // a player has something in 100 holds, or 1 000 000 are open in the realm
	UnknownRequest    Status = 38  // the request id is not remembered, so what it did cannot be reversed
	NotReversible     Status = 39  // the request was no Grant and no Draw, or changed nothing
	AlreadyReversed   Status = 40  // it was reversed before
	Blocked           Status = 42  // a player of the request is blocked: see Block
	UnknownPlayer     Status = 43  // the realm has never seen the player
	AlreadyLinked     Status = 44  // the name is another name of a player already
	UnknownLinkCode   Status = 45  // there is no such link code, or its time is over, and the guess was counted
	NotLinked         Status = 46  // the name is no other name of anybody, or a player who was merged, which stays
	MergeNeeded       Status = 47  // the name is a player who has something: Merge makes them one
	TooManyAliases    Status = 48  // the player would have more than MaxAliases other names
	LinkCodeTaken     Status = 49  // another player has this link code: take another one
	Forgotten         Status = 50  // the request was carried out, and a player of it was forgotten since
	Refused           Status = 255 // in DoAll and StartAll: not carried out and not logged; Err says why
)

// Result is the answer to one request.
type Result struct {
	Status   Status
	Replayed bool   // it is the first answer to the request id again
	Err      error  // with Refused only: the *Error that Do would return for the request
	Subject  string // the id that a status other than OK is about: see Status
	// Limit is the limit that was reached, as of the request, with LimitReached; otherwise nil.
	Limit *Limit
	// Lacks are what the player held too few of, with InsufficientItems; of several prices, the first's.
	Lacks []Lack
	// Outcomes of a Draw, in order: one for each draw, unless the pool's draws take several entries, or
	// none. Read-only: results may share their memory. One that is kept may keep 8 KiB of others alive.
	Outcomes []Outcome
	// Paid is what a Draw cost, in the order of the pool's price. It is read-only.
	Paid []Stack
	// Redeemed is the list of the code that a Redeem used.
	Redeemed string
	// Members has one result for each member of an Atomic, in order.
	Members []Result
	Receipt Receipt

	rare *rare // what few results have; nil: nothing
}

// rare is apart from the rest of a Result, as batches have many of these.
type rare struct {
	claims    []Claimed
	beyond    []Beyond
	collected []Stack
	round     *RoundView
	hold      *HoldView
	given     Given
}

// Claims are the tiers of quests that a Claim claimed, or that claimed themselves, with what they gave. They are
// read-only.
func (r Result) Claims() []Claimed {
	if r.rare == nil {
		return nil
	}
	return r.rare.claims
}

// Beyond is what the player did not get, as it would be more than the most of an item. It is read-only.
func (r Result) Beyond() []Beyond {
	if r.rare == nil {
		return nil
	}
	return r.rare.beyond
}

// Collected is what a Collect took from the mailbox. It is read-only.
func (r Result) Collected() []Stack {
	if r.rare == nil {
		return nil
	}
	return r.rare.collected
}

// Claimed is a tier of a quest that was claimed, or a rank that was paid, with its reward. It is read-only.
type Claimed struct {
	Quest  string `json:"quest,omitempty"`
	Tier   int    `json:"tier,omitempty"`   // from 1
	Player string `json:"player,omitempty"` // whose; only where a group, a Transfer or what is due claimed it
	// Of a rank: the counter that ranks players. Missed says that the reward was not there or did not fit, so that
	// nothing was given.
	Counter string `json:"counter,omitempty"`
	Rank    uint64 `json:"rank,omitempty"`
	// Of a round: the place of a winner, from 1.
	Place uint64 `json:"place,omitempty"`
	// Value is what the draws of an entrant count, where that decides. Entrants who have not won have a place too.
	Value  uint64 `json:"value,omitempty"`
	Missed bool   `json:"missed,omitempty"`

	Items []Stack      `json:"items,omitempty"`
	Via   []string     `json:"via,omitempty"` // as in an Outcome
	Codes []RewardCode `json:"codes,omitempty"`
}

// Beyond is some of an item that a player did not get, as it would be more than the player can hold, and what
// became of it.
type Beyond struct {
	Item     string `json:"item"`
	Quantity uint64 `json:"quantity"`
	How      string `json:"how"`              // cut; mailed; gone: it was in the mailbox until its time; or missing: it could not be taken back
	Player   string `json:"player,omitempty"` // whose; only where the request does not say it
}

// Lack is an item of which a player had too few.
type Lack struct {
	Item string `json:"item"`
	Have uint64 `json:"have"`
	Need uint64 `json:"need"` // at most 2^53-1 times MaxDrawCount
}

// Outcome is one entry that a draw took from the request's pool, with all that it gave. It is read-only.
type Outcome struct {
	Entry string  `json:"entry"`           // id of the entry
	Items []Stack `json:"items,omitempty"` // what the player got, here and below; nil: nothing
	// Via names the entries that draws from other pools took, as "pool/entry", each before its own draws.
	Via   []string     `json:"via,omitempty"`
	Codes []RewardCode `json:"codes,omitempty"` // secrets of the player: show them to nobody else
	Draw  int          `json:"draw,omitempty"`  // which of the request's draws took it, from 0
}

// Total returns what all outcomes gave together, in the order in which the items first come.
func (r Result) Total() []Stack {
	var all []Stack
	for _, o := range r.Outcomes {
		for _, s := range o.Items {
			k := slices.IndexFunc(all, func(known Stack) bool { return known.Item == s.Item })
			if k < 0 {
				all = append(all, s)
			} else {
				all[k].Quantity += s.Quantity
			}
		}
	}
	return all
}

// String returns the status, what it is about and the position, for logs and tests.
func (r Result) String() string {
	if r.Subject != "" {
		return fmt.Sprintf("%v (%s) at %d", r.Status, r.Subject, r.Receipt.Position)
	}
	return fmt.Sprintf("%v at %d", r.Status, r.Receipt.Position)
}
