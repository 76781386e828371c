package kuji

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// Limits of a request. A request beyond one of them is malformed: it is
// refused with CodeInvalid and not logged.
const (
	// MaxID is the longest request id and the longest player id, in bytes.
	MaxID = 64
	// MaxDrawCount is the most draws in one Draw; a pool may allow fewer.
	MaxDrawCount = catalog.MaxDrawCount
	// MaxStacks is the most different items in one Grant, Consume or Transfer.
	MaxStacks = catalog.MaxBundle
	// MaxAtomic is the most members of an Atomic.
	MaxAtomic = 100
	// MaxQuantity is the largest quantity in a request and the largest
	// balance: 2^53-1, so that JSON clients read every quantity exactly.
	MaxQuantity = catalog.MaxQuantity
	// MaxBatch is the most requests in one DoAll.
	MaxBatch = 10_000
)

// Stack is a quantity of one item.
type Stack = catalog.Stack

// Request is one of [Draw], [Grant], [Consume], [Transfer] and [Atomic], or a
// pointer to one; the set is closed. A request is read before the call
// returns and not kept: the caller may reuse its memory.
//
// ID is the request id: chosen by the client, at most MaxID bytes. The same id
// with the same arguments returns the first result, for as long as the
// catalog's idempotency window remembers it; with other arguments it is
// refused with [CodeIDReused]. Nothing is forgotten before the age that the
// catalog declares: when the window is full, a new id is refused with [CodeOverloaded]. An empty ID means that the caller gives up this
// protection: the request is carried out every time it is sent.
type Request interface{ isRequest() }

// Draw takes Count outcomes from a pool for a player, atomically with the
// pool's price, its limits and the grants: all of it happens, or nothing.
type Draw struct {
	ID     string
	Player string // at most MaxID bytes; first seen here, the player gets the catalog's starting grants
	Pool   string
	Count  int // 0 means 1; at most MaxDrawCount
}

// Grant gives items to a player.
type Grant struct {
	ID     string
	Player string
	Items  []Stack // 1 to MaxStacks, each item once
}

// Consume takes items from a player, all or none.
type Consume struct {
	ID     string
	Player string
	Items  []Stack
}

// Transfer moves items between two different players, all or none.
type Transfer struct {
	ID    string
	From  string
	To    string
	Items []Stack
}

// Atomic is a group that happens whole or not at all. Members are carried out
// in order, each seeing the effects of those before it, but for what Draws
// give: that cannot be consumed, transferred or paid with in the same group. The
// first member that fails undoes them all. Members are Draw, Grant, Consume or
// Transfer, without an ID of their own.
//
// Whether a group succeeds, as whether a single Draw does, is settled before
// anything is chosen and does not depend on it: a draw that was not to somebody's
// liking cannot be undone, price and all, by making the group around it fail.
type Atomic struct {
	ID      string
	Members []Request // 1 to MaxAtomic
}

func (Draw) isRequest()     {}
func (Grant) isRequest()    {}
func (Consume) isRequest()  {}
func (Transfer) isRequest() {}
func (Atomic) isRequest()   {}

// fill copies a request into cmd, which is zero.
func (w *work) fill(req Request, cmd *rules.Command) error {
	switch q := req.(type) {
	case Draw:
		q.fill(cmd)
	case Grant:
		q.fill(cmd)
	case Consume:
		q.fill(cmd)
	case Transfer:
		q.fill(cmd)
	case Atomic:
		return w.fillAtomic(&q, cmd)
	default:
		return w.fillPointer(req, cmd)
	}
	return nil
}

// fillPointer is fill for pointers.
func (w *work) fillPointer(req Request, cmd *rules.Command) error {
	switch q := req.(type) {
	case *Draw:
		if q != nil {
			q.fill(cmd)
			return nil
		}
	case *Grant:
		if q != nil {
			q.fill(cmd)
			return nil
		}
	case *Consume:
		if q != nil {
			q.fill(cmd)
			return nil
		}
	case *Transfer:
		if q != nil {
			q.fill(cmd)
			return nil
		}
	case *Atomic:
		if q != nil {
			return w.fillAtomic(q, cmd)
		}
	}
	return noRequest("", req)
}

func (q *Draw) fill(cmd *rules.Command) {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Pool, cmd.Count = rules.KindDraw, q.ID, q.Player, q.Pool, q.Count
	if q.Count == 0 {
		cmd.Count = 1
	}
}

func (q *Grant) fill(cmd *rules.Command) {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Items = rules.KindGrant, q.ID, q.Player, q.Items
}

func (q *Consume) fill(cmd *rules.Command) {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Items = rules.KindConsume, q.ID, q.Player, q.Items
}

func (q *Transfer) fill(cmd *rules.Command) {
	cmd.Kind, cmd.ID, cmd.Player, cmd.To, cmd.Items = rules.KindTransfer, q.ID, q.From, q.To, q.Items
}

func noRequest(field string, req Request) error {
	if v := reflect.ValueOf(req); v.Kind() == reflect.Pointer && v.IsNil() {
		return errf(CodeInvalid, field, "a nil %T; want a request", req)
	}
	return errf(CodeInvalid, field, "%T is not a request; want Draw, Grant, Consume, Transfer or Atomic", req)
}

func (w *work) fillAtomic(q *Atomic, cmd *rules.Command) error {
	cmd.Kind, cmd.ID = rules.KindAtomic, q.ID
	if len(q.Members) > MaxAtomic {
		return invalid(cmp.Or(cmd.CheckHead(), rules.CheckMembers(len(q.Members))))
	}
	from := len(w.members)
	w.members = append(w.members, make([]rules.Command, len(q.Members))...)
	cmd.Members = w.members[from:len(w.members):len(w.members)]
	for i, m := range q.Members {
		switch m.(type) {
		case Atomic, *Atomic: // refused by Check; not followed, for it may hold itself
			cmd.Members[i].Kind = rules.KindAtomic
			continue
		}
		if err := w.fill(m, &cmd.Members[i]); err != nil {
			return noRequest(fmt.Sprintf("members[%d]", i), m)
		}
	}
	return nil
}

func invalid(err *rules.CommandError) error {
	if err == nil {
		return nil
	}
	return &Error{Code: CodeInvalid, Field: err.Field, Message: err.Message}
}
