package rules

import (
	"fmt"

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

	kindEnd Kind = 13
)

// kind is what there is to say about a kind of command. Each command has a file of its own, with its
// kind in it.
type kind struct {
	name    string
	request bool   // clients ask for it; the other kinds are written by the engine
	note    bool   // it can have a note
	alone   string // why an atomic group cannot have it as a member; empty: it can
	// form says what is malformed in a command besides its head, or nil.
	form func(c *Command) *CommandError
	// unknown says what it names that the catalog in force does not have, or nil; no function: it
	// names nothing.
	unknown func(r *checks, c *Command) *CommandError
	// check is its first half, and write its second; nothing can stand in the way of one without check.
	// n draws of the command are written before it.
	check func(r *checks, c *Command) failure
	write func(r *drawing, c *Command, n int)
	// ask writes its arguments into the event, and asked reads them.
	ask   func(r *effects, c *Command, status Status)
	asked func(a *asked, c *Command)
}

var kinds [kindEnd]kind

func init() { // a group asks kinds for those of its members
	kinds = [kindEnd]kind{
		KindCatalog: {name: "catalog"}, KindClock: {name: "clock"}, KindCodes: {name: "codes"}, KindUpgrade: {name: "upgrade"},
		KindDraw: drawKind, KindGrant: grantKind, KindConsume: consumeKind, KindTransfer: transferKind, KindAtomic: atomicKind,
		KindSetTrack: setTrackKind, KindRedeem: redeemKind, KindRegister: registerKind,
	}
}

// of returns what there is to say about a kind, also about numbers that are none.
func (k Kind) of() *kind {
	if k < kindEnd {
		return &kinds[k]
	}
	return &kinds[0]
}

// String returns the kind's name.
func (k Kind) String() string {
	if name := k.of().name; name != "" {
		return name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Limits of a command.
const (
	MaxID        = 64                   // request ids and player ids, bytes
	MaxDrawCount = catalog.MaxDrawCount // draws in a Draw
	MaxStacks    = catalog.MaxBundle    // items in a Grant, Consume or Transfer
	MaxAtomic    = 100                  // members of an Atomic
	// MaxAtomicDraws is the most draws in all members of an Atomic together.
	MaxAtomicDraws = 2 * MaxDrawCount
	MaxQuantity    = catalog.MaxQuantity
	MaxTrackName   = 2*catalog.MaxID + 1 // the name of a track: one that pools share, or pool/track
	MaxBy          = 64                  // who sets a track, bytes
	MaxReason      = 1 << 10             // why, bytes
)

// Command is a request in the form that the rules work on. Kind says which fields are used: Player,
// Pool, Count and Pay of a Draw; Player, Code and Others of a Redeem; Player of a Register; Player and
// Items of a Grant or Consume; Player (the giver), To and Items of a Transfer; Members of an
// Atomic; Player and Set of a SetTrack.
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
	Set     *TrackSet
	Code    CodeSum
	// Others are sums of the Code under other spellings: see [OtherSums]. One of them replaces Code if
	// it finds a code and Code does not. What is read from an event has none.
	Others []CodeSum
	Note   *Note // of a kind that can have one; nil: none
}

// CommandError says which field of a command is malformed, and how.
type CommandError struct {
	Field   string // a path, such as "members[2].items[0].quantity"
	Message string
}

func (e *CommandError) Error() string { return e.Field + ": " + e.Message }

func malformed(field, format string, args ...any) *CommandError {
	return &CommandError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// CheckHead checks what every kind of command has: the request id and the player.
func (c *Command) CheckHead() *CommandError {
	if len(c.ID) > MaxID {
		return malformed("id", "%d bytes long; at most %d are allowed", len(c.ID), MaxID)
	}
	if c.Kind == KindAtomic {
		return nil
	}
	if err := checkPlayer(c.Player); err != nil {
		err.Field = "player"
		if c.Kind == KindTransfer {
			err.Field = "from"
		}
		return err
	}
	return nil
}

// Check reports what is malformed in c, or nil. It does not look at the state. Decide takes only
// commands that have passed it.
func (c *Command) Check() *CommandError {
	if err := c.CheckHead(); err != nil {
		return err
	}
	if err := c.Note.check(); err != nil {
		return err
	}
	if k := c.Kind.of(); k.request {
		return k.form(c)
	}
	return malformed("kind", "%v is not a request", c.Kind)
}

func checkPlayer(id string) *CommandError {
	if id == "" {
		return malformed("", "empty; want a player id of 1 to %d bytes", MaxID)
	}
	if len(id) > MaxID {
		return malformed("", "%d bytes long; at most %d are allowed", len(id), MaxID)
	}
	return nil
}

func checkStacks(c *Command) *CommandError {
	items := c.Items
	if n := len(items); n < 1 || n > MaxStacks {
		return malformed("items", "%d items; 1 to %d are allowed", n, MaxStacks)
	}
	for i, it := range items {
		if it.Item == "" || len(it.Item) > catalog.MaxID {
			return malformed(fmt.Sprintf("items[%d].item", i), "%d bytes long; want an item id of 1 to %d bytes", len(it.Item), catalog.MaxID)
		}
		if it.Quantity < 1 || it.Quantity > MaxQuantity {
			return malformed(fmt.Sprintf("items[%d].quantity", i), "%d; 1 to %d are allowed", it.Quantity, uint64(MaxQuantity))
		}
	}
	for i := range items {
		for j := range i { // at most 64 items: a map would be slower
			if items[j].Item == items[i].Item {
				return malformed(fmt.Sprintf("items[%d].item", i), "%q is already in items[%d]; name each item once", items[i].Item, j)
			}
		}
	}
	return nil
}

// Draws returns how many single draws the command asks for. A code says by itself what it pays for:
// see [RedeemedOf].
func (c *Command) Draws() (n uint64) {
	if c.Kind == KindDraw {
		return uint64(c.Count)
	}
	for i := range c.Members {
		n += c.Members[i].Draws()
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
