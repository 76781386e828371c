package rules

import (
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// Kind is the type of a command and of its event. The numbers are part of the event format: never
// reuse one.
type Kind uint8

const (
	KindCatalog  Kind = 1
	KindDraw     Kind = 2
	KindGrant    Kind = 3
	KindConsume  Kind = 4
	KindTransfer Kind = 5
	KindAtomic   Kind = 6
	KindClock    Kind = 7
	KindSetTrack Kind = 8
	KindCodes    Kind = 9
	KindRedeem   Kind = 10
	KindRegister Kind = 11
	KindUpgrade  Kind = 12
	KindSetLimit Kind = 13
	KindDue      Kind = 14 // nobody asks for it
	KindProgress Kind = 15
	KindClaim    Kind = 16

	KindSetCounter Kind = 17
	KindCollect    Kind = 18

	KindOpenRound   Kind = 19
	KindJoin        Kind = 20
	KindSettle      Kind = 21
	KindReroll      Kind = 22
	KindCancelRound Kind = 23

	KindHold    Kind = 24 // a command that is held
	KindConfirm Kind = 25
	KindCancel  Kind = 26

	KindLinkCode Kind = 27
	KindLink     Kind = 28
	KindUnlink   Kind = 29
	KindMerge    Kind = 30
	KindForget   Kind = 31
	KindBlock    Kind = 32

	KindReverse Kind = 33

	KindPropose  Kind = 34 // of a catalog that waits
	KindWithdraw Kind = 35
	KindApprove  Kind = 36 // puts a catalog in force
)

func (k Kind) String() string {
	switch k {
	case KindCatalog:
		return "catalog"
	case KindDraw:
		return "draw"
	case KindGrant:
		return "grant"
	case KindConsume:
		return "consume"
	case KindTransfer:
		return "transfer"
	case KindAtomic:
		return "atomic"
	case KindClock:
		return "clock"
	case KindSetTrack:
		return "set_track"
	case KindCodes:
		return "codes"
	case KindRedeem:
		return "redeem"
	case KindRegister:
		return "register"
	case KindUpgrade:
		return "upgrade"
	case KindSetLimit:
		return "set_limit"
	case KindDue:
		return "due"
	case KindProgress:
		return "progress"
	case KindClaim:
		return "claim"
	case KindSetCounter:
		return "set_counter"
	case KindCollect:
		return "collect"
	case KindOpenRound:
		return "open_round"
	case KindJoin:
		return "join"
	case KindSettle:
		return "settle"
	case KindReroll:
		return "reroll"
	case KindCancelRound:
		return "cancel_round"
	case KindHold:
		return "hold"
	case KindConfirm:
		return "confirm"
	case KindCancel:
		return "cancel"
	case KindReverse:
		return "reverse"
	case KindLinkCode:
		return "link_code"
	case KindLink:
		return "link"
	case KindUnlink:
		return "unlink"
	case KindMerge:
		return "merge"
	case KindForget:
		return "forget"
	case KindBlock:
		return "block"
	case KindPropose:
		return "propose"
	case KindWithdraw:
		return "withdraw"
	case KindApprove:
		return "approve"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// of returns the methods of a kind; nil: clients cannot ask for it.
func (k Kind) of() kind {
	switch k {
	case KindDraw:
		return drawKind{}
	case KindGrant:
		return grantKind{}
	case KindConsume:
		return consumeKind{}
	case KindTransfer:
		return transferKind{}
	case KindAtomic:
		return atomicKind{}
	case KindSetTrack:
		return setTrackKind{}
	case KindRedeem:
		return redeemKind{}
	case KindRegister:
		return registerKind{}
	case KindSetLimit:
		return setLimitKind{}
	case KindProgress:
		return progressKind{}
	case KindClaim:
		return claimKind{}
	case KindSetCounter:
		return setCounterKind{}
	case KindCollect:
		return collectKind{}
	case KindOpenRound:
		return openRoundKind{}
	case KindJoin:
		return joinKind{}
	case KindSettle:
		return settleKind{}
	case KindReroll:
		return rerollKind{}
	case KindCancelRound:
		return cancelRoundKind{}
	case KindHold:
		return holdKind{}
	case KindConfirm:
		return confirmKind{}
	case KindCancel:
		return cancelKind{}
	case KindReverse:
		return reverseKind{}
	case KindLinkCode:
		return linkCodeKind{}
	case KindLink:
		return linkKind{}
	case KindUnlink:
		return unlinkKind{}
	case KindMerge:
		return mergeKind{}
	case KindForget:
		return forgetKind{}
	case KindBlock:
		return blockKind{}
	}
	return nil
}

// kind is a kind of command. Each has a file of its own.
type kind interface {
	note() bool    // it can have a note
	alone() string // why an atomic group cannot have it as a member; empty: it can
	barred() bool  // it is refused of players who are blocked
	// form returns what is malformed in a command, its head left aside, or nil.
	form(c *Command) *CommandError
	// resolve looks up what a command names in a catalog. It returns what the catalog does not have, or nil.
	resolve(f *Finder, c *Command) *CommandError
	// check is the first half of a command, write the second.
	check(r *checks, c *Command) failure
	write(r *drawing, c *Command)
	// ask writes a command's arguments into its event, asked reads them.
	ask(r *effects, c *Command, status Status)
	asked(a *asked, c *Command)
	// same compares the fields that [Command.equal] does not.
	same(c, o *Command) bool
}

// plain is a kind of command that names nothing, can be in a group, has no note and cannot fail.
type plain struct{}

func (plain) note() bool                              { return false }
func (plain) barred() bool                            { return true }
func (plain) alone() string                           { return "" }
func (plain) form(*Command) *CommandError             { return nil }
func (plain) resolve(*Finder, *Command) *CommandError { return nil }
func (plain) check(*checks, *Command) failure         { return failure{} }
func (plain) ask(*effects, *Command, Status)          {}
func (plain) asked(*asked, *Command)                  {}
func (plain) same(*Command, *Command) bool            { return true }

// noted is one that can have a note.
type noted struct{ plain }

func (noted) note() bool { return true }

// Limits of a command.
const (
	MaxID          = 64                   // request ids and player ids, bytes
	MaxDrawCount   = catalog.MaxDrawCount // draws in a Draw
	MaxStacks      = catalog.MaxBundle    // items in a Grant, Consume or Transfer
	MaxAtomic      = 100                  // members of an Atomic
	MaxAtomicDraws = 2 * MaxDrawCount     // draws in all members of an Atomic
	MaxQuantity    = catalog.MaxQuantity
	MaxTrackName   = 2*catalog.MaxID + 1 // the name of a track: one that pools share, or pool/track
	MaxBy          = 64                  // who sets a track, bytes
	MaxReason      = 1 << 10             // why, bytes
)

// Command is a request in the form that the rules work on. An Atomic has Members, all others have a
// Player; that of a Transfer is the giver. A Draw has Pool, Count and Pay; a Redeem Code and Others; a
// Grant and a Consume Items; a Transfer To and Items; a SetTrack Set; a SetLimit Pool and Limit; a Progress
// Event, Key and N; a Claim Quest and Count; a SetCounter Counter and N. A SetCounter of the realm's has no Player.
type Command struct {
	Kind    Kind
	ID      string
	Player  string
	To      string
	Pool    string
	Count   int
	Pay     string // the item to pay with; empty: the first price that the player can pay
	Items   []catalog.Stack
	Members []Command
	Hands
	Goal
	Code CodeSum
	// Others are sums of other spellings of the code: see [OtherSums]. One of them replaces Code if it
	// finds a code and Code does not. A command read from an event has none.
	Others []CodeSum
	Note   *Note // of a kind that can have one; nil: none

	resolved
}

// Hands are what an administrator sets by hand, which round a command is about, and how it is held.
type Hands struct {
	Set   *TrackSet
	Limit *LimitSet
	Round *RoundOf
	Hold  *HoldOf
}

// Goal is what counters and quests are about.
type Goal struct {
	Event, Key     string
	Counter, Quest string
	N              uint64
}

// CommandError says which field of a command is malformed, and how.
type CommandError struct {
	Field   string // a path, such as "members[2].items[0].quantity"
	Message string
	Unfit   bool // what it names is there, and cannot be used like this
}

func (e *CommandError) Error() string { return e.Field + ": " + e.Message }

//go:noinline // so that checks which call it are inlined
func malformed(field, format string, args ...any) *CommandError {
	return &CommandError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// checkLength refuses a text of more than most bytes.
func checkLength(field, text string, most int) *CommandError {
	if len(text) <= most {
		return nil
	}
	return malformed(field, "%d bytes long; at most %d are allowed", len(text), most)
}

// CheckHead checks what every kind of command has: the request id and the player.
func (c *Command) CheckHead() *CommandError {
	if err := checkLength("id", c.ID, MaxID); err != nil || !c.one() {
		return err
	}
	return checkPlayer(c.playerField(), c.Player)
}

// one reports whether a command is about one player: not a group, nor a counter or a round of the realm.
func (c *Command) one() bool {
	switch c.Kind {
	case KindAtomic, KindSettle, KindReroll, KindCancelRound, KindHold, KindConfirm, KindCancel, KindReverse:
		return false
	case KindSetCounter, KindOpenRound:
		return c.Player != ""
	}
	return true
}

// ends reports whether a player may end with a command. Then nothing may be under way that still counts on the player.
func (c *Command) ends() bool { return c.Kind == KindMerge || c.Kind == KindForget }

// playerField is how requests call Player.
func (c *Command) playerField() string {
	if c.Kind == KindTransfer {
		return "from"
	}
	return "player"
}

// Check reports what is malformed in c, whatever the state, or nil.
func (c *Command) Check() *CommandError {
	if err := c.CheckHead(); err != nil {
		return err
	}
	if err := c.Note.Check(); err != nil {
		return err
	}
	if k := c.Kind.of(); k != nil {
		return k.form(c)
	}
	return malformed("kind", "%v is not a request", c.Kind)
}

func checkPlayer(field, id string) *CommandError {
	if id == "" {
		return malformed(field, "empty; want a player id of 1 to %d bytes", MaxID)
	}
	return checkLength(field, id, MaxID)
}

func checkPool(id string) *CommandError {
	if id == "" {
		return malformed("pool", "empty; want the id of a pool")
	}
	return checkLength("pool", id, catalog.MaxID)
}

func checkStacks(items []catalog.Stack) *CommandError {
	if n := len(items); n < 1 || n > MaxStacks {
		return malformed("items", "%d items; 1 to %d are allowed", n, MaxStacks)
	}
	var marks [4]uint64 // of the items so far
	for i := range items {
		it := &items[i]
		if it.Item == "" || len(it.Item) > catalog.MaxID {
			return malformed(fmt.Sprintf("items[%d].item", i), "%d bytes long; want an item id of 1 to %d bytes", len(it.Item), catalog.MaxID)
		}
		if it.Quantity < 1 || it.Quantity > MaxQuantity {
			return malformed(fmt.Sprintf("items[%d].quantity", i), "%d; 1 to %d are allowed", it.Quantity, uint64(MaxQuantity))
		}
		m := mark(it.Item)
		if marks[m/64]>>(m%64)&1 == 0 {
			marks[m/64] |= 1 << (m % 64)
		} else if j := slices.IndexFunc(items[:i], func(o catalog.Stack) bool { return o.Item == it.Item }); j >= 0 {
			return malformed(fmt.Sprintf("items[%d].item", i), "%q is already in items[%d]; name each item once", it.Item, j)
		}
	}
	return nil
}

// mark tells most ids of a command apart: only those with the same mark are compared.
func mark(id string) uint8 { return id[len(id)-1] + 33*id[len(id)/2] + 31*id[max(len(id)-2, 0)] }

// Draws returns how many single draws the command asks for. See [RedeemedOf] for those of a code.
func (c *Command) Draws() (n uint64) {
	if c.Kind == KindDraw {
		return uint64(c.Count)
	}
	for i := range c.Members {
		n += c.Members[i].Draws()
	}
	return n
}

// Picks returns the most entries that the draws of a resolved command take. Which pool a code draws from is not
// known yet.
func (c *Command) Picks() (n uint64) {
	switch {
	case c.Kind == KindRedeem:
		return catalog.MaxRequestPicks
	case c.pool != nil:
		return uint64(c.Count) * c.pool.Picks
	case c.quest != nil:
		return c.quest.picks
	}
	for i := range c.Members {
		n += c.Members[i].Picks()
	}
	return n
}

// NewPlayers returns how many players the command would add. It may count a player twice.
func (c *Command) NewPlayers(state State) (n int) {
	for i := range c.Members {
		n += c.Members[i].NewPlayers(state)
	}
	for _, id := range [...]string{c.Player, c.To} {
		if _, ok := state.Player(id); id != "" && !ok {
			n++
		}
	}
	return n
}
