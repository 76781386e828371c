package kuji

import (
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
)

// MaxAliases is the most other names that a player can have, with those of players who were merged into it.
const MaxAliases = 100

// What is documented is what is checked.
var (
	_ [rules.MaxAliases - MaxAliases]struct{}
	_ [MaxAliases - rules.MaxAliases]struct{}
)

// AliasView is another name of a player.
type AliasView struct {
	Name   string `json:"name"`
	Merged bool   `json:"merged,omitempty"` // it is a player who was merged, and stays
}

// LinkCode lets whoever knows the code make another name one of the player's, once, in the next ten minutes: see Link.
// It takes the place of the player's code before. The log has only the start of the code's SHA-256. All requests about
// names need format level 5, and none can be a member of an Atomic.
type LinkCode struct {
	ID     string
	Player string
	Code   string // at most MaxCode bytes: see NewLinkCode. A repeat of the request id must have the same
	Note   Note
}

// Link makes a name another name of a player. From then on every request and every read takes it for the player. Ids
// are compared byte by byte. Whoever sends too many codes that do not exist gets TooManyGuesses for ten minutes. A name
// that is a player who has something gets MergeNeeded.
type Link struct {
	ID     string
	Player string // the name, such as "twitch:1234"
	// One of these: the code that the player has, or the player. The latter is for keys with the right.
	Code string
	To   string
	Note Note
}

// Unlink makes a name that was linked one of nobody. What was done by it stays with the player. As a player of its own
// it gets no starting grants.
type Unlink struct {
	ID     string
	Player string // the name
	Note   Note
}

// Block lets a player do nothing any more, under no name: no request of a player, no grant, no transfer. Rounds that the
// player is in go on. What administrators set by hand, Merge and Forget go on too.
type Block struct {
	ID     string
	Player string
	Ends   bool // the player is no longer blocked
	Note   Note // it must have a Reason, which reads of the player show
}

// Merge makes two players one: all that From has becomes Player's, and From becomes another name of Player. It cannot be
// undone. Balances and lots are summed; what is beyond the most of an item waits in the mailbox. Limits, and sums of
// counters, add up. Of a highest value and a streak, the larger stays; different keys unite; quests stand at their
// furthest. What is staked stays staked. Request ids are answered as before, to the name that asked. It fails with
// BalanceOverflow, TooManyLots or MailboxFull if something does not fit, and then changes nothing.
type Merge struct {
	ID     string
	Player string // who goes on
	From   string // who is merged into Player
	Strict bool   // tracks stay where they are further from their hit; else, where they are nearer
	Note   Note
}

func (q Merge) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.To, cmd.Note = rules.KindMerge, q.ID, q.Player, q.From, q.Note.note()
	if q.Strict {
		cmd.Count = 1
	}
	return nil
}

// Forget takes all that a player has, and then the player's names, out of the realm. What is staked comes back, and goes
// with the rest. Request ids are answered with Forgotten. Snapshots are written again, without the names. The log has
// them until it is trimmed. It cannot be undone. Whoever comes by one of the names later is a new player.
type Forget struct {
	ID     string
	Player string // by whatever name
	Note   Note   // it stays in the log as long as the names
}

func (q Forget) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Note = rules.KindForget, q.ID, q.Player, q.Note.note()
	return nil
}

// String returns whose code it is, and not the code.
func (q LinkCode) String() string { return fmt.Sprintf("link code %s for %s", Redacted, q.Player) }

// GoString is String, for %#v.
func (q LinkCode) GoString() string { return "kuji.LinkCode(" + q.String() + ")" }

// String returns what is linked, and not the code.
func (q Link) String() string { return fmt.Sprintf("link %s to %s by %s", q.Player, q.To, Redacted) }

// GoString is String, for %#v.
func (q Link) GoString() string { return "kuji.Link(" + q.String() + ")" }

// NewLinkCode returns a new random code, such as "K7QM-3XPD-WZ4H": 12 characters of 5 bits.
func NewLinkCode() string {
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	var random [12]byte
	_, _ = rand.Read(random[:]) // it never fails
	code := make([]byte, 0, 14)
	for i, b := range random {
		if i > 0 && i%4 == 0 {
			code = append(code, '-')
		}
		code = append(code, letters[b%32])
	}
	return string(code)
}

func (q LinkCode) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Note = rules.KindLinkCode, q.ID, q.Player, q.Note.note()
	return fillCode(cmd, q.Code)
}

func (q Link) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.To, cmd.Note = rules.KindLink, q.ID, q.Player, q.To, q.Note.note()
	if q.Code == "" {
		return nil
	}
	return fillCode(cmd, q.Code)
}

// fillCode does not repeat the code in an error: errors are logged.
func fillCode(cmd *rules.Command, code string) error {
	if wrong := checkRedeem(code); wrong != "" {
		return errf(CodeInvalid, "code", "%s", wrong)
	}
	cmd.Code = rules.SumCode(code)
	return nil
}

func (q Unlink) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Note = rules.KindUnlink, q.ID, q.Player, q.Note.note()
	return nil
}

func (q Block) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Note = rules.KindBlock, q.ID, q.Player, q.Note.note()
	if q.Ends {
		cmd.Count = 1
	}
	return nil
}

// named fills in who a player is, and returns a position that covers it.
func named(w *writer, name string, v *PlayerView) (last uint64) {
	numbers := w.state.Numbers()
	num, _, ok := numbers.PlayerNum(name)
	if !ok {
		return 0
	}
	v.ID, v.Aliases, v.Blocked = numbers.PlayerID(num), nil, ""
	from, to := rules.AliasRecords(num)
	records, last := w.state.ReadRecords(from, to, MaxAliases)
	for _, rec := range records {
		alias, merged := rules.AliasIn(rec)
		v.Aliases = append(v.Aliases, AliasView{numbers.PlayerID(alias), merged})
	}
	reason, at, _ := w.state.ReadRecord(rules.BlockRecord(num))
	v.Blocked = string(reason)
	v.Aliases = slices.Clip(v.Aliases)
	return max(last, at)
}
