package kuji

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/kuji-dev/kuji/internal/ulid"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// Limits of a request. One beyond them is malformed: it gets CodeInvalid and is not logged.
const (
	// MaxID is the longest request id and the longest player id, in bytes.
	MaxID = 64
	// MaxDrawCount is the most draws in one Draw. A pool may allow fewer.
	MaxDrawCount = catalog.MaxDrawCount
	// MaxStacks is the most different items in one Grant, Consume or Transfer.
	MaxStacks = catalog.MaxBundle
	// MaxAtomic is the most members of an Atomic.
	MaxAtomic = 100
	// MaxAtomicDraws is the most draws in all members of an Atomic.
	MaxAtomicDraws = 2 * MaxDrawCount
	// MaxQuantity is the largest quantity in a request and the largest balance. It is 2^53-1, so
	// that JSON clients read every quantity exactly.
	MaxQuantity = catalog.MaxQuantity
	// MaxMail is the most letters in a player's mailbox.
	MaxMail = 100
	// MaxTrackDraws is the most draws that a SetTrack can set.
	MaxTrackDraws = catalog.MaxTrackDraws
	// MaxRedeemTimes is the most draws that the code of a Redeem pays for.
	MaxRedeemTimes = catalog.MaxRedeemTimes
	// MaxLimitDraws is the most draws that a SetLimit can set of a limit over a day, a week or a window.
	MaxLimitDraws = catalog.MaxTimedDraws
	// MaxBy is the longest By of a Note or a SetTrack, and MaxReason the longest Reason, in bytes.
	MaxBy     = 64
	MaxReason = 1024
	// MaxMetadata is the longest Note.Metadata, in bytes.
	MaxMetadata = 1 << 10
	// MaxBatch is the most requests in one DoAll.
	MaxBatch = 10_000
)

// The limits that are documented are those that the rules check: what differs does not compile.
const (
	_ = uint(MaxID-rules.MaxID) + uint(rules.MaxID-MaxID)
	_ = uint(MaxAtomic-rules.MaxAtomic) + uint(rules.MaxAtomic-MaxAtomic)
	_ = uint(MaxMail-rules.MaxMail) + uint(rules.MaxMail-MaxMail)
	_ = uint(MaxBy-rules.MaxBy) + uint(rules.MaxBy-MaxBy)
	_ = uint(MaxReason-rules.MaxReason) + uint(rules.MaxReason-MaxReason)
	_ = uint(MaxMetadata-rules.MaxMetadata) + uint(rules.MaxMetadata-MaxMetadata)
	_ = uint(MaxClockText-rules.MaxClockText) + uint(rules.MaxClockText-MaxClockText)
	_ = uint(MaxCode-rules.MaxCode) + uint(rules.MaxCode-MaxCode)
	_ = uint(MaxImport-rules.MaxImport) + uint(rules.MaxImport-MaxImport)
	_ = uint(MaxImportBytes-rules.MaxImportBytes) + uint(rules.MaxImportBytes-MaxImportBytes)
)

// Stack is a quantity of one item.
type Stack = catalog.Stack

// Request is one of [Draw], [Redeem], [Register], [Grant], [Consume], [Transfer], [Progress], [Claim], [Collect],
// [Atomic], [SetTrack], [SetLimit], [SetCounter], [OpenRound], [Join], [Settle], [Reroll], [CancelRound], [Confirm],
// [Cancel], [Reverse], [LinkCode], [Link], [Unlink], [Merge], [Forget] and [Block], or a pointer to one. The set is closed. A call reads its request before
// it returns and does not keep it: the caller may reuse the memory.
//
// ID is the request id. The client chooses it; it has at most MaxID bytes. The same id with the
// same arguments returns the first result for as long as the catalog's idempotency window
// remembers it. With other arguments it gets [CodeIDReused]. No id is forgotten before the age
// that the catalog declares: while the window is full, a new id gets [CodeOverloaded]. If the
// catalog wants ids that carry their time, see [NewID], one that may have been forgotten gets
// [CodeTooOld]. A request without an ID is carried out every time it is sent.
type Request interface {
	// fill copies the request into cmd, which is zero. What w holds is memory for members.
	fill(w *work, cmd *rules.Command) error
}

// Draw takes Count outcomes from a pool for a player, with price, limits and grants, or fails whole.
type Draw struct {
	ID     string
	Player string // at most MaxID bytes; with the first of these a player gets the catalog's starting grants
	Pool   string
	Count  int // at most MaxDrawCount; 0 means 1
	// Pay chooses the first price of the pool that has this item, or its family, in it. Then this item alone
	// pays what the price has of its family. Empty: the first price that the player can pay, and of a family
	// its items in the order of the catalog.
	Pay  string
	Hold Holding
}

// Redeem uses a code for a player, once each. It pays for as many draws as the catalog says, from the
// pool that names the code's list, instead of a price; all else is as in a Draw. A code that does not
// exist counts as a guess of the player, and the catalog limits those. So a Redeem cannot be a member
// of an Atomic, which changes nothing when it fails.
//
// Case, spaces, hyphens, dots, underscores and other forms of the same letters (NFKC) make no
// difference in a code. No log has it, only its place in its list and the start of a SHA-256.
type Redeem struct {
	ID     string
	Player string
	Code   string // at most MaxCode bytes
}

// String returns who redeems, and not the code.
func (q Redeem) String() string { return fmt.Sprintf("redeem %s for %s", Redacted, q.Player) }

// GoString is String, for %#v.
func (q Redeem) GoString() string { return "kuji.Redeem(" + q.String() + ")" }

// Register says that a player has come. With the first Register, Draw, Grant or Redeem that succeeds, a
// player gets the catalog's starting grants. A Transfer, a SetTrack, a SetLimit and a code that does
// not exist can name a player before; they bring none. A player who has come already stays as they are.
type Register struct {
	ID     string
	Player string
	Note   Note
}

// Grant gives items to a player.
type Grant struct {
	ID     string
	Player string
	Items  []Stack // 1 to MaxStacks, each item once
	Note   Note
}

// Consume takes items from a player: all of them or none.
type Consume struct {
	ID     string
	Player string
	Items  []Stack
	Note   Note
	Hold   Holding
}

// Transfer moves items between two different players: all of them or none.
type Transfer struct {
	ID    string
	From  string
	To    string
	Items []Stack
	Note  Note
	Hold  Holding
}

// Progress reports an event of a player, which the catalog's counters count. It needs format level 4.
type Progress struct {
	ID     string
	Player string
	Event  string // its name: at least one counter counts it
	Key    string // tells apart what happened, for counters of different keys; at most MaxID bytes, may be empty
	N      uint64 // how much of it, at most MaxQuantity; 0 means 1
	Note   Note
}

// Claim gives a player the rewards of the next tiers of a quest, in order. It needs format level 4.
type Claim struct {
	ID     string
	Player string
	Quest  string
	Tiers  int // how many: all of them or none; 0 means those that are reached, at least one
	Note   Note
}

// Collect gives a player what fits from the mailbox, what goes first first. It needs format level 4.
type Collect struct {
	ID     string
	Player string
	Note   Note
}

// Atomic is a group of requests that happens whole or not at all. Its members are Draw, Register, Grant,
// Consume, Transfer, Progress and Claim, without an ID of their own. They are carried out in order. Each sees the
// effects of those before it, and none of those after it. The same group cannot consume, transfer
// or pay with what its Draws give, and no pool's condition sees that; the conditions and the luck of
// entries do. The first member that fails undoes them all.
//
// Whether a group or a single Draw succeeds does not depend on the outcomes, which are chosen after.
// Nobody can undo an unwelcome draw by making the group around it fail.
type Atomic struct {
	ID      string
	Members []Request // 1 to MaxAtomic
	Note    Note      // members have none of their own
	Hold    Holding   // nor that
}

// Note says who asked for something and why. It stands in the log and changes nothing. A repeat of a
// request id must give the same Reason and Metadata.
type Note struct {
	By       string // who asks, such as the name of an API key; at most MaxBy bytes
	Reason   string // at most MaxReason bytes
	Metadata string // whatever the caller wants to find in the log; at most MaxMetadata bytes
}

// note returns a note as the rules want it.
func (n Note) note() *rules.Note {
	if n == (Note{}) {
		return nil
	}
	out := rules.Note(n)
	return &out
}

// SetTrack gives a player's track a value, by hand: to make good a fault, or to carry a count over.
// It is for administrators. The log keeps who asked and why. It cannot be a member of an Atomic.
type SetTrack struct {
	ID     string
	Player string
	Track  string // its name: the one that pools share it by, or "pool/track"
	Draws  uint64 // since the last hit, at most MaxTrackDraws
	By     string // who asks; at most MaxBy bytes, may be empty; another one when the ID is repeated does not matter
	Reason string // 1 to MaxReason bytes
}

// SetLimit sets by hand how many draws a player has used of a limit of a pool: to make good a fault, or
// to carry a count over. Draws more than before count as made now. Of a window, the latest draws are the
// first that no longer count. Free draws are not limits. It is for administrators. Who asked and why is
// kept in the log. It cannot be a member of an Atomic. It needs format level 3: see [FormatLevel].
type SetLimit struct {
	ID     string
	Player string
	Pool   string
	Per    catalog.Per // the limit: forever, day, week, month or window
	Window int64       // of a limit over a window, milliseconds; else 0
	Used   uint64      // at most MaxLimitDraws, of a limit forever at most MaxQuantity; it may be more than the limit allows
	Note   Note        // it must have a Reason
}

// SetCounter sets by hand where a counter stands, in its present period: to make good a fault, or to carry a
// count over. A counter of different keys can only be set to 0. It is for administrators. The log keeps who
// asked and why. It cannot be a member of an Atomic. It needs format level 4.
type SetCounter struct {
	ID      string
	Player  string // empty for a counter of the realm
	Counter string
	Value   uint64 // at most MaxQuantity
	Note    Note   // it must have a Reason
}

// fill copies a request into cmd, which must be zero.
func (w *work) fill(req Request, cmd *rules.Command) error {
	if req == nil || isNil(req) {
		return noRequest("", req)
	}
	return req.fill(w, cmd)
}

// isNil reports whether a request is a nil pointer.
func isNil(req Request) bool {
	v := reflect.ValueOf(req)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func (q Draw) fill(w *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Pool, cmd.Count, cmd.Pay = rules.KindDraw, q.ID, q.Player, q.Pool, q.Count, q.Pay
	if q.Count == 0 {
		cmd.Count = 1
	}
	if q.Hold != (Holding{}) {
		q.Hold.hold(w, cmd)
	}
	return nil
}

// fill does not repeat the code in an error: errors are logged.
func (q Redeem) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player = rules.KindRedeem, q.ID, q.Player
	if wrong := checkRedeem(q.Code); wrong != "" {
		return errf(CodeInvalid, "code", "%s", wrong)
	}
	cmd.Code, cmd.Others = rules.SumCode(q.Code), rules.OtherSums(q.Code)
	return nil
}

func (q Register) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Note = rules.KindRegister, q.ID, q.Player, q.Note.note()
	return nil
}

func (q Grant) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Items, cmd.Note = rules.KindGrant, q.ID, q.Player, q.Items, q.Note.note()
	return nil
}

func (q Consume) fill(w *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Items, cmd.Note = rules.KindConsume, q.ID, q.Player, q.Items, q.Note.note()
	if q.Hold != (Holding{}) {
		q.Hold.hold(w, cmd)
	}
	return nil
}

func (q Transfer) fill(w *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.To, cmd.Items, cmd.Note = rules.KindTransfer, q.ID, q.From, q.To, q.Items, q.Note.note()
	if q.Hold != (Holding{}) {
		q.Hold.hold(w, cmd)
	}
	return nil
}

func (q SetTrack) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player = rules.KindSetTrack, q.ID, q.Player
	cmd.Set = &rules.TrackSet{Track: q.Track, Draws: q.Draws, By: q.By, Reason: q.Reason}
	return nil
}

func (q SetLimit) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Pool, cmd.Note = rules.KindSetLimit, q.ID, q.Player, q.Pool, q.Note.note()
	cmd.Limit = &rules.LimitSet{Per: q.Per, Window: q.Window, Used: q.Used}
	return nil
}

func (q Progress) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Note = rules.KindProgress, q.ID, q.Player, q.Note.note()
	cmd.Event, cmd.Key, cmd.N = q.Event, q.Key, max(q.N, 1)
	return nil
}

func (q Claim) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Quest, cmd.Count, cmd.Note = rules.KindClaim, q.ID, q.Player, q.Quest, q.Tiers, q.Note.note()
	return nil
}

func (q Collect) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Note = rules.KindCollect, q.ID, q.Player, q.Note.note()
	return nil
}

func (q SetCounter) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Counter, cmd.N, cmd.Note = rules.KindSetCounter, q.ID, q.Player, q.Counter, q.Value, q.Note.note()
	return nil
}

func (q Atomic) fill(w *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Note = rules.KindAtomic, q.ID, q.Note.note()
	if q.Hold != (Holding{}) {
		cmd.Kind, cmd.Hold = rules.KindHold, &rules.HoldOf{For: q.Hold.For.Milliseconds(), Refund: q.Hold.Refund}
	}
	if len(q.Members) > MaxAtomic {
		return invalid(cmp.Or(cmd.CheckHead(), rules.CheckMembers(len(q.Members))))
	}
	from := len(w.members)
	w.members = slices.Grow(w.members, len(q.Members))[:from+len(q.Members)] // what is beyond the length is clear
	cmd.Members = w.members[from:len(w.members):len(w.members)]
	for i, m := range q.Members {
		switch m.(type) {
		case Redeem, *Redeem: // Check refuses it, whatever the code
			cmd.Members[i].Kind = rules.KindRedeem
			continue
		case Atomic, *Atomic: // Check refuses it; do not descend, it may contain itself
			cmd.Members[i].Kind = rules.KindAtomic
			continue
		}
		if err := w.fill(m, &cmd.Members[i]); err != nil {
			return noRequest(fmt.Sprintf("members[%d]", i), m)
		}
	}
	return nil
}

func noRequest(field string, req Request) error {
	if isNil(req) {
		return errf(CodeInvalid, field, "a nil %T; want a request", req)
	}
	return errf(CodeInvalid, field, "%T is not a request; want Draw, Redeem, Register, Grant, Consume, Transfer, Progress, Claim, Collect, Atomic, SetTrack, SetLimit, SetCounter, OpenRound, Join, Settle, Reroll, CancelRound, Confirm, Cancel, Reverse, LinkCode, Link, Unlink, Merge, Forget or Block", req)
}

func invalid(err *rules.CommandError) error {
	if err == nil {
		return nil
	}
	return &Error{Code: CodeInvalid, Field: err.Field, Message: err.Message}
}

// NewID returns a new request id that carries a time: a ULID, 26 characters of 48 bits of Unix
// milliseconds and 80 random bits. A realm whose catalog says "ids: time-ordered" takes such ids,
// or UUIDv7, and no others. Make an id once for each thing that shall happen, and keep it until
// there is an answer: a retry must carry the same id. now should be the current time; it must lie
// between the years 1970 and 10889.
func NewID(now time.Time) string { return ulid.New(now) }
