package server

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// commands is a set of what a key may do.
type commands uint8

const (
	canRead commands = 1 << iota
	canDraw
	canRedeem
	canRegister
	canGrant
	canConsume
	canTransfer
	canAdmin

	canWrite = canDraw | canRedeem | canRegister | canGrant | canConsume | canTransfer
	canAll   = canRead | canWrite | canAdmin
)

var commandNames = []string{"read", "draw", "redeem", "register", "grant", "consume", "transfer", "admin"}

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

// parseCommands reads what String wrote. Admin is all of them.
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

// access is who a request comes from, and what they may do. It is immutable.
type access struct {
	who     caller
	name    string // of the key; of the issuer, for a player; "": a server without keys
	can     commands
	realms  []string            // nil: all
	pools   []string            // nil: all; those to draw from and to read
	rate    int                 // commands and reads in a second; 0: no limit
	grants  map[string]grantCap // by item; nil: all, and as many as anybody asks for
	daily   bool                // some of grants are limited by day
	anyID   bool                // grants need no request id
	player  string              // not empty: only this player
	expires time.Time
	token   string // of a player
}

// anybody is who calls a server without keys, and passerby who calls one without showing a key.
var (
	anybody  = &access{can: canAll}
	passerby = &access{who: stranger}
)

// playerCaller tells players apart where callers have shares.
func playerCaller(issuer, player string) caller {
	return caller{hash: sha256.Sum256([]byte("player\x00" + issuer + "\x00" + player))}
}

// may reports whether there is anything of a role that the access includes. What a request asks for
// is looked at once it is decoded: see permit.
func (a *access) may(role kujiv1.Role) bool {
	return a.can&neededFor(role) != 0
}

// unrestricted reports whether the access is to the whole server.
func (a *access) unrestricted() bool { return a.realms == nil && a.pools == nil && a.player == "" }

// A need is what one part of a request asks for.
type need struct {
	field  string // of the request, for messages; may be empty
	can    commands
	pool   string // "": none
	player string // "": none
}

// named reports whether a player's token asks for its player, where no player is all of them.
func (a *access) named(player string) error {
	if a.player != "" && player == "" {
		return fmt.Errorf("it acts for player %q alone, and the request does not name them", a.player)
	}
	return nil
}

// errWhole refuses a request that is about more than the access.
var errWhole = errors.New("it is about the whole server, or the whole catalog, and the key is restricted to a part")

// permits says what each request of the contract needs. A request that is not here is refused: the
// server does not start with such an RPC.
var permits = map[protoreflect.FullName]func(*access, proto.Message) error{}

func permit[M proto.Message](check func(a *access, m M) error) {
	var m M
	permits[m.ProtoReflect().Descriptor().FullName()] = func(a *access, m proto.Message) error { return check(a, m.(M)) }
}

// reading permits a request that reads something of a pool or a player.
func reading[M proto.Message](part func(m M) (pool, player string)) {
	permit(func(a *access, m M) error {
		pool, player := part(m)
		return a.check(need{can: canRead, pool: pool, player: player})
	})
}

// whole permits a request about a whole realm, for keys without pools and not for players.
func whole[M proto.Message](can commands) {
	permit(func(a *access, _ M) error {
		if a.pools != nil || a.player != "" {
			return errWhole
		}
		return a.check(need{can: can})
	})
}

func init() {
	permit(func(a *access, m *kujiv1.DrawRequest) error { return a.check(drawNeed("", m)) })
	permit(func(a *access, m *kujiv1.RedeemRequest) error { return a.checkRedeem("", m.GetPlayer()) })
	permit(func(a *access, m *kujiv1.RegisterRequest) error {
		return a.check(need{"", canRegister, "", m.GetPlayer()})
	})
	permit(func(a *access, m *kujiv1.GrantRequest) error {
		return cmp.Or(a.check(need{"", canGrant, "", m.GetPlayer()}), a.checkGrants("", m.GetRequestId(), m))
	})
	permit(func(a *access, m *kujiv1.ConsumeRequest) error {
		return a.check(need{"", canConsume, "", m.GetPlayer()})
	})
	permit(func(a *access, m *kujiv1.TransferRequest) error {
		return a.check(need{"", canTransfer, "", m.GetFrom()})
	})
	permit(func(a *access, m *kujiv1.AtomicRequest) error {
		return a.checkMembers("", m.GetRequestId(), m.GetMembers())
	})
	permit(func(a *access, m *kujiv1.BatchRequest) error { return a.checkCommands(m.GetCommands()) })
	permit(func(a *access, m *kujiv1.StreamDrawsRequest) error { return a.checkStream(m) })

	reading(func(m *kujiv1.GetPlayerRequest) (pool, player string) { return "", m.GetPlayer() })
	reading(func(m *kujiv1.GetPoolRequest) (pool, player string) { return m.GetPool(), m.GetPlayer() })
	reading(func(m *kujiv1.GetOddsRequest) (pool, player string) { return m.GetPool(), m.GetPlayer() })

	permit(func(a *access, m *kujiv1.GetResultRequest) error {
		if err := a.named(m.GetPlayer()); err != nil {
			return err
		}
		return a.check(need{"", canRead, "", m.GetPlayer()})
	})

	permit(func(a *access, m *kujiv1.StreamEventsRequest) error { return a.checkEvents(m.GetPool(), m.GetPlayer()) })
	permit(func(a *access, m *kujiv1.GetHistoryRequest) error { return a.checkEvents(m.GetPool(), m.GetPlayer()) })

	whole[*kujiv1.GetCatalogRequest](canRead)
	whole[*kujiv1.ExportCatalogRequest](canRead)
	whole[*kujiv1.ListCatalogsRequest](canRead)
	whole[*kujiv1.GetCodesRequest](canRead)
	whole[*kujiv1.ListRealmsRequest](canRead)
	whole[*kujiv1.GetStatusRequest](canRead)
	whole[*kujiv1.ListPlayersRequest](canRead)
	whole[*kujiv1.ListHoldersRequest](canRead)
	for _, admin := range []func(commands){
		whole[*kujiv1.ApplyCatalogRequest], whole[*kujiv1.CreateRealmRequest], whole[*kujiv1.SetClockRequest], whole[*kujiv1.FinishUpgradeRequest],
		whole[*kujiv1.SetTrackRequest], whole[*kujiv1.ImportCodesRequest], whole[*kujiv1.ExportCodesRequest], whole[*kujiv1.BackupRequest],
	} {
		admin(canAdmin)
	}
}

// permit returns why a request asks for more than the access, or nil.
func (a *access) permit(m proto.Message) error {
	check := permits[m.ProtoReflect().Descriptor().FullName()]
	if check == nil {
		return a.forbidden(errors.New("nothing says who may ask for this"))
	}
	if a.realms != nil {
		if err := a.checkRealm(m); err != nil {
			return a.forbidden(err)
		}
	}
	err := check(a, m)
	if ke, ok := errors.AsType[*kuji.Error](err); ok {
		return ke // the request is wrong, whoever sends it
	}
	if err != nil {
		return a.forbidden(err)
	}
	return nil
}

// checkRealm checks a request of somebody who has only some realms.
func (a *access) checkRealm(m proto.Message) error {
	named, ok := m.(interface{ GetRealm() string })
	if !ok {
		return errWhole
	}
	realm := named.GetRealm()
	if realm == "" {
		if _, all := m.(*kujiv1.GetStatusRequest); all {
			return errWhole
		}
		realm = DefaultRealm
	}
	return a.mayEnter(realm)
}

// mayEnter checks that a realm is one of those that somebody has.
func (a *access) mayEnter(realm string) error {
	if a.realms != nil && !slices.Contains(a.realms, realm) {
		return fmt.Errorf("realm %.80q is not one of its realms", realm)
	}
	return nil
}

func (a *access) check(n need) error {
	at := ""
	if n.field != "" {
		at = n.field + ": "
	}
	switch {
	case a.can&n.can == 0:
		return fmt.Errorf("%sit needs the command %v", at, n.can)
	case n.pool != "" && a.pools != nil && !slices.Contains(a.pools, n.pool):
		return fmt.Errorf("%spool %.80q is not one of its pools", at, n.pool)
	case a.player != "" && n.player != a.player && (n.player != "" || n.can != canRead):
		return fmt.Errorf("%sit acts for player %q alone", at, a.player)
	}
	return nil
}

// checkEvents checks a request for events, of a pool, a player or all of them.
func (a *access) checkEvents(pool, player string) error {
	if err := a.named(player); err != nil {
		return err
	}
	if a.pools != nil && pool == "" {
		return errors.New("the key is restricted to some pools, and the request names none")
	}
	return a.check(need{"", canRead, pool, player})
}

func drawNeed(field string, m drawMessage) need {
	return need{field, canDraw, m.GetPool(), m.GetPlayer()}
}

// checkRedeem checks the use of a code. No request says which pool a code pays for, so it is not for
// those who have only some pools.
func (a *access) checkRedeem(field, player string) error {
	if a.pools != nil {
		return errors.New("a code can pay for draws from any pool, and the key is restricted to some")
	}
	return a.check(need{field, canRedeem, "", player})
}

func (a *access) checkCommands(all []*kujiv1.Command) error {
	for i, c := range all {
		if err := a.checkCommand(fmt.Sprintf("commands[%d]", i), c); err != nil {
			return err
		}
	}
	return nil
}

// checkCommand checks one command of a batch. One of no kind, or of a kind that is not here, is for
// nobody but those who may do everything.
func (a *access) checkCommand(field string, c *kujiv1.Command) error {
	switch cmd := c.GetCommand().(type) {
	case *kujiv1.Command_Draw:
		return a.check(drawNeed(field, cmd.Draw))
	case *kujiv1.Command_Redeem:
		return a.checkRedeem(field, cmd.Redeem.GetPlayer())
	case *kujiv1.Command_Register:
		return a.check(need{field, canRegister, "", cmd.Register.GetPlayer()})
	case *kujiv1.Command_Grant:
		return cmp.Or(a.check(need{field, canGrant, "", cmd.Grant.GetPlayer()}), a.checkGrants(field+".", c.GetRequestId(), cmd.Grant))
	case *kujiv1.Command_Consume:
		return a.check(need{field, canConsume, "", cmd.Consume.GetPlayer()})
	case *kujiv1.Command_Transfer:
		return a.check(need{field, canTransfer, "", cmd.Transfer.GetFrom()})
	case *kujiv1.Command_Atomic:
		return a.checkMembers(field+".", c.GetRequestId(), cmd.Atomic.GetMembers())
	case nil:
		return nil // the engine refuses it
	}
	return a.check(need{field: field, can: canAdmin})
}

func (a *access) checkMembers(in, id string, all []*kujiv1.Member) error {
	var grants []itemsMessage
	for i, m := range all {
		field := fmt.Sprintf("%smembers[%d]", in, i)
		var n need
		switch cmd := m.GetCommand().(type) {
		case *kujiv1.Member_Draw:
			n = drawNeed(field, cmd.Draw)
		case *kujiv1.Member_Register:
			n = need{field, canRegister, "", cmd.Register.GetPlayer()}
		case *kujiv1.Member_Grant:
			n = need{field, canGrant, "", cmd.Grant.GetPlayer()}
			grants = append(grants, cmd.Grant)
		case *kujiv1.Member_Consume:
			n = need{field, canConsume, "", cmd.Consume.GetPlayer()}
		case *kujiv1.Member_Transfer:
			n = need{field, canTransfer, "", cmd.Transfer.GetFrom()}
		case nil:
			continue // the engine refuses it
		default:
			n = need{field: field, can: canAdmin}
		}
		if err := a.check(n); err != nil {
			return err
		}
	}
	return a.checkGrants(in, id, grants...)
}

// checkStream checks every pool and every player that a batch of draws names, whether or not it
// uses them.
func (a *access) checkStream(m *kujiv1.StreamDrawsRequest) error {
	if err := a.check(need{can: canDraw, player: a.player}); err != nil || a.unrestricted() {
		return err
	}
	for i, pool := range m.GetPools() {
		if err := a.check(need{field: fmt.Sprintf("pools[%d]", i), can: canDraw, pool: pool, player: a.player}); err != nil {
			return err
		}
	}
	for i, player := range m.GetPlayers() {
		if err := a.check(need{field: fmt.Sprintf("players[%d]", i), can: canDraw, player: player}); err != nil {
			return err
		}
	}
	return nil
}

// forbidden returns the error of a request that asks for more than the access.
func (a *access) forbidden(why error) error {
	what := fmt.Sprintf("the key %q", a.name)
	if a.player != "" {
		what = "the player's token"
	}
	return refused(connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN, fmt.Errorf("%s does not allow this: %w", what, why))
}
