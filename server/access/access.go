// Package access knows who a request comes from and what that key or player may do: API keys,
// players' tokens, caps on grants, and the addresses that a server may listen on. How much a caller
// may ask for at a time belongs to admission. What a command does belongs to the engine.
package access

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// commands is a set of commands that a key may send.
type commands uint32

const (
	canRead commands = 1 << iota
	canDraw
	canRedeem
	canRegister
	canGrant
	canConsume
	canTransfer
	canProgress
	canClaim
	canCollect
	canOpenRound
	canJoin
	canSettle
	canReroll
	canCancelRound
	canConfirm
	canCancel
	canLinkCode
	canLink
	canUnlink
	canChat
	canSimulate
	canPropose
	canApprove
	canAdmin

	canWrite = canDraw | canRedeem | canRegister | canGrant | canConsume | canTransfer | canProgress | canClaim | canCollect |
		canOpenRound | canJoin | canSettle | canReroll | canCancelRound | canConfirm | canCancel | canLinkCode | canLink | canUnlink | canChat | canSimulate | canPropose | canApprove
	// notPlayers are what no player's token may, whatever its issuer's line says.
	notPlayers = canGrant | canProgress | canOpenRound | canSettle | canReroll | canCancelRound | canConfirm | canCancel | canUnlink | canChat | canSimulate | canPropose | canApprove | canAdmin
	canAll     = canRead | canWrite | canAdmin
)

var commandNames = []string{"read", "draw", "redeem", "register", "grant", "consume", "transfer", "progress", "claim", "collect",
	"open_round", "join", "settle", "reroll", "cancel_round", "confirm", "cancel", "link_code", "link", "unlink", "chat", "simulate", "propose", "approve", "admin"}

func (c commands) String() string {
	if c&canAdmin != 0 {
		return "admin"
	}
	var names []string
	for i, name := range commandNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// parseCommands reads what String writes. Admin includes all others.
func parseCommands(s string) (c commands, err error) {
	for name := range strings.SplitSeq(s, ",") {
		i := slices.Index(commandNames, name)
		if i < 0 {
			return 0, fmt.Errorf("command %.40q, want some of %s, with commas between them", name, strings.Join(commandNames, ", "))
		}
		c |= 1 << i
	}
	if c&canAdmin != 0 {
		return canAll, nil
	}
	return c, nil
}

// Access is the source of a request and its rights. It is immutable.
type Access struct {
	Who    Caller
	Name   string // of the key; of the issuer, for a player; "": a server without keys
	Rate   int    // commands and reads in a second; 0: no limit
	Player string // not empty: only this player

	can     commands
	realms  []string            // nil: all
	pools   []string            // nil: all; those to draw from and to read
	grants  map[string]grantCap // by item; nil: all, and as many as anybody asks for
	daily   bool                // some of grants are limited by day
	anyID   bool                // grants need no request id
	expires time.Time
	token   string // of a player
}

// Caller identifies a key, or a player, where callers share something. Zero: there are no keys.
type Caller struct {
	Hash     [sha256.Size]byte // of the API key
	Operator bool              // the key is an administrator's
}

// Stranger is the Caller of a connection without a key. No key and no server without keys has it.
var Stranger = Caller{Hash: [sha256.Size]byte{1}}

// Anybody, who asks a server without keys, has every right. Passerby, without a key, has none.
var (
	Anybody  = &Access{can: canAll}
	Passerby = &Access{Who: Stranger}
)

// playerCaller tells players apart where callers have shares.
func playerCaller(issuer, player string) Caller {
	return Caller{Hash: sha256.Sum256([]byte("player\x00" + issuer + "\x00" + player))}
}

// neededFor returns the commands of which a role wants at least one.
func neededFor(r kujiv1.Role) commands {
	switch r {
	case kujiv1.Role_ROLE_READ:
		return canRead
	case kujiv1.Role_ROLE_WRITE:
		return canWrite
	case kujiv1.Role_ROLE_ANY:
		return canAll
	}
	return canAdmin
}

// May reports whether the access includes anything of a role. Permit checks the decoded request.
func (a *Access) May(role kujiv1.Role) bool { return a.can&neededFor(role) != 0 }

// CheckRole refuses an access that includes nothing of a role.
func (a *Access) CheckRole(want kujiv1.Role) *connect.Error {
	if a.May(want) {
		return nil
	}
	return contract.Refused(connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN,
		fmt.Errorf("the key %q may %v, and this is for keys with %v", a.Name, a.can, neededFor(want)))
}

// CheckWhole refuses an access that is restricted to a part of the server.
func (a *Access) CheckWhole() *connect.Error {
	if a.unrestricted() {
		return nil
	}
	return contract.Refused(connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN, errWhole)
}

// MayRepeat reports whether the access may send a draw, or the use of a code, once more to get its
// result. A key with pools may not: a result does not name its pool.
func (a *Access) MayRepeat(code bool) bool {
	needs := canDraw
	if code {
		needs = canRedeem
	}
	return a.can&needs != 0 && a.pools == nil
}

// Pools returns the pools that the access is restricted to; nil: to none. Do not change them.
func (a *Access) Pools() []string { return a.pools }

// unrestricted reports whether the access is to the whole server.
func (a *Access) unrestricted() bool { return a.realms == nil && a.pools == nil && a.Player == "" }
