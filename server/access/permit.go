package access

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// A need is the right that one part of a request asks for.
type need struct {
	field  string // of the request, for messages; may be empty
	can    commands
	pool   string // "": none
	player string // "": none
}

// named refuses a player's token in a request that names no player and so is about all of them.
func (a *Access) named(player string) error {
	if a.Player != "" && player == "" {
		return fmt.Errorf("it acts for player %q alone, and the request does not name them", a.Player)
	}
	return nil
}

// errWhole refuses a request about more than the access includes.
var errWhole = errors.New("it is about the whole server, or the whole catalog, and the key is restricted to a part")

// permits says what each request of the contract needs. A server does not start if one is missing
// here.
var permits = map[protoreflect.FullName]func(*Access, proto.Message) error{}

// Known reports whether permits has a request.
func Known(request protoreflect.FullName) bool { return permits[request] != nil }

func permit[M proto.Message](check func(a *Access, m M) error) {
	var m M
	permits[m.ProtoReflect().Descriptor().FullName()] = func(a *Access, m proto.Message) error { return check(a, m.(M)) }
}

// reading permits a request that reads something of a pool or a player.
func reading[M proto.Message]() {
	permit(func(a *Access, m M) error {
		n := needOf("", m)
		n.can = canRead
		return a.check(n)
	})
}

// whole permits a request about a whole realm: not for keys with pools, and not for players.
func whole[M proto.Message](can commands) {
	permit(func(a *Access, _ M) error { return a.checkWhole(need{can: can}) })
}

func (a *Access) checkWhole(n need) error {
	if a.pools != nil || a.Player != "" {
		return errWhole
	}
	return a.check(n)
}

func init() {
	permit(func(*Access, *kujiv1.GetAccessRequest) error { return nil })
	permit(func(a *Access, m *kujiv1.BatchRequest) error { return a.checkCommands(m.GetCommands()) })
	permit(func(a *Access, m *kujiv1.StreamDrawsRequest) error { return a.checkStream(m) })

	reading[*kujiv1.GetPlayerRequest]()
	reading[*kujiv1.ListQuestsRequest]()
	reading[*kujiv1.GetPoolRequest]()
	reading[*kujiv1.GetOddsRequest]()
	reading[*kujiv1.GetEpochRequest]()

	permit(func(a *Access, m *kujiv1.GetResultRequest) error {
		return cmp.Or(a.named(m.GetPlayer()), a.check(need{"", canRead, "", m.GetPlayer()}))
	})

	permit(func(a *Access, m *kujiv1.StreamEventsRequest) error { return a.checkEvents(m.GetPool(), m.GetPlayer()) })
	permit(func(a *Access, m *kujiv1.GetHistoryRequest) error { return a.checkEvents(m.GetPool(), m.GetPlayer()) })

	// What people see is for everybody who may read. A key with pools gets their displays only: see [Access.Pools].
	permit(func(a *Access, m *kujiv1.ListDisplaysRequest) error { return a.check(need{can: canRead}) })
	permit(func(a *Access, m *kujiv1.GetDisclosureRequest) error {
		if a.pools != nil && m.GetPool() == "" {
			return errors.New("the key is restricted to some pools, and the request names none")
		}
		return a.check(need{can: canRead, pool: m.GetPool()})
	})
	whole[*kujiv1.GetCatalogRequest](canRead)
	whole[*kujiv1.ExportCatalogRequest](canRead)
	whole[*kujiv1.ListCatalogsRequest](canRead)
	whole[*kujiv1.GetCodesRequest](canRead)
	whole[*kujiv1.ListRealmsRequest](canRead)
	whole[*kujiv1.GetStatusRequest](canRead)
	whole[*kujiv1.ListSlowRequest](canRead)
	whole[*kujiv1.ListNodesRequest](canRead)
	whole[*kujiv1.ListPlayersRequest](canRead)
	whole[*kujiv1.ListHoldersRequest](canRead)
	whole[*kujiv1.ListRanksRequest](canRead)
	whole[*kujiv1.GetRoundRequest](canRead)
	whole[*kujiv1.ListRoundsRequest](canRead)
	whole[*kujiv1.SimulateRequest](canSimulate)
	whole[*kujiv1.ProposeCatalogRequest](canPropose)
	whole[*kujiv1.WithdrawProposalRequest](canPropose | canApprove)
	whole[*kujiv1.ApproveCatalogRequest](canApprove)
	whole[*kujiv1.ListProposalsRequest](canRead)
	whole[*kujiv1.GetProposalRequest](canRead)
	whole[*kujiv1.HandleMessageRequest](canChat) // it is for any player, and from any pool
	whole[*kujiv1.GetHoldRequest](canRead)
	permit(func(a *Access, m *kujiv1.ListHoldsRequest) error {
		n := need{can: canRead, player: m.GetPlayer()}
		if n.player == "" {
			return a.checkWhole(n)
		}
		return a.check(n)
	})
	for _, request := range contract.Administrators() {
		permits[request] = func(a *Access, _ proto.Message) error { return a.checkWhole(need{can: canAdmin}) }
	}
	permit(func(a *Access, m *kujiv1.DeleteRealmRequest) error {
		if !a.unrestricted() {
			return errWhole
		}
		return a.check(need{can: canAdmin})
	})
	for _, k := range contract.Commands() {
		if !k.Admin { // it can come alone
			permits[k.Request.Descriptor().FullName()] = func(a *Access, m proto.Message) error {
				return a.checkCommand("", m.(interface{ GetRequestId() string }).GetRequestId(), m)
			}
		}
		can := canAdmin
		if i := slices.Index(commandNames, k.Name); i >= 0 && !k.Admin {
			can = 1 << i
		}
		for _, t := range []protoreflect.MessageType{k.Message, k.Request} {
			rights[reflect.TypeOf(t.Zero().Interface())] = can
		}
	}
}

// rights are what each command needs, by the type of its message: the right with its name, or that
// to everything.
var rights = map[reflect.Type]commands{}

// Permit returns why the access does not allow a request, or nil.
func (a *Access) Permit(m proto.Message) error {
	check := permits[m.ProtoReflect().Descriptor().FullName()]
	if check == nil {
		return a.Forbidden(errors.New("nothing says who may ask for this"))
	}
	if _, own := m.(*kujiv1.GetAccessRequest); !own && a.realms != nil {
		if err := a.checkRealm(m); err != nil {
			return a.Forbidden(err)
		}
	}
	return a.answer(check(a, m))
}

// answer returns the error for what a check found.
func (a *Access) answer(err error) error {
	if ke, ok := errors.AsType[*kuji.Error](err); ok {
		return ke // the request is wrong with any key
	}
	if err != nil {
		return a.Forbidden(err)
	}
	return nil
}

// checkRealm checks a request by a key with realms.
func (a *Access) checkRealm(m proto.Message) error {
	realm, ok := contract.RealmOf(m)
	if !ok {
		return errWhole
	}
	return a.MayEnter(realm)
}

// MayEnter checks that the access includes a realm.
func (a *Access) MayEnter(realm string) error {
	if a.realms != nil && !slices.Contains(a.realms, realm) {
		return fmt.Errorf("realm %.80q is not one of its realms", realm)
	}
	return nil
}

func (a *Access) check(n need) error {
	at := ""
	if n.field != "" {
		at = n.field + ": "
	}
	switch {
	case a.can&n.can == 0:
		return fmt.Errorf("%sit needs the command %v", at, n.can)
	case n.pool != "" && a.pools != nil && !slices.Contains(a.pools, n.pool):
		return fmt.Errorf("%spool %.80q is not one of its pools", at, n.pool)
	case a.Player != "" && n.player != a.Player && (n.player != "" || n.can != canRead):
		return fmt.Errorf("%sit acts for player %q alone", at, a.Player)
	}
	return nil
}

// checkEvents checks a request for events, of a pool, a player or all of them.
func (a *Access) checkEvents(pool, player string) error {
	if err := a.named(player); err != nil {
		return err
	}
	if a.pools != nil && pool == "" {
		return errors.New("the key is restricted to some pools, and the request names none")
	}
	return a.check(need{"", canRead, pool, player})
}

// checkCommand checks a command, alone or of a batch. One of another kind needs the right to
// everything.
func (a *Access) checkCommand(field, id string, m proto.Message) error {
	in := field
	if in != "" {
		in += "."
	}
	if h, ok := m.(interface{ GetRefund() bool }); ok && h.GetRefund() && a.Player != "" {
		return fmt.Errorf("%srefund: a hold with a refund reserves stock and costs nothing, so it is not for players", in)
	}
	switch m := m.(type) {
	case nil:
		return nil // the engine refuses it
	case *kujiv1.LinkCode, *kujiv1.LinkCodeRequest, *kujiv1.Link, *kujiv1.LinkRequest, *kujiv1.Unlink, *kujiv1.UnlinkRequest:
		if err := a.checkNames(m); err != nil {
			return err
		}
	case *kujiv1.Redeem, *kujiv1.RedeemRequest:
		// No request says which pool a code pays for, so it is not for those who have only some.
		if a.pools != nil {
			return errors.New("a code can pay for draws from any pool, and the key is restricted to some")
		}
	case *kujiv1.Confirm, *kujiv1.ConfirmRequest, *kujiv1.Cancel, *kujiv1.CancelRequest:
		if a.pools != nil { // as with codes
			return errors.New("a hold can be about draws from any pool, and the key is restricted to some")
		}
	case *kujiv1.Grant:
		return cmp.Or(a.check(needOf(field, m)), a.checkGrants(in, id, m))
	case *kujiv1.GrantRequest:
		return cmp.Or(a.check(needOf(field, m)), a.checkGrants(in, id, m))
	case *kujiv1.Atomic:
		return a.checkMembers(in, id, m.GetMembers())
	case *kujiv1.AtomicRequest:
		return a.checkMembers(in, id, m.GetMembers())
	}
	n := needOf(field, m)
	if n.can == canAdmin {
		return a.checkWhole(n)
	}
	return a.check(n)
}

// needOf returns what a command needs, groups and grants apart.
func needOf(field string, m proto.Message) need {
	n := need{field: field, can: cmp.Or(rights[reflect.TypeOf(m)], canAdmin)}
	switch m := m.(type) {
	case interface{ GetPlayer() string }:
		n.player = m.GetPlayer()
	case interface{ GetFrom() string }:
		n.player = m.GetFrom()
	}
	if m, ok := m.(interface{ GetPool() string }); ok {
		n.pool = m.GetPool()
	}
	return n
}

// checkNames checks a command about a name of a player, before its right. A name has all that its player has, so it is
// not for those who have only some pools. A player's token proves the name of its player, and the code proves whose name
// that becomes; the name of another player alone would prove nothing.
func (a *Access) checkNames(m proto.Message) error {
	if a.pools != nil {
		return errors.New("a name of a player is good for all pools, and the key is restricted to some")
	}
	if to, ok := m.(interface{ GetTo() string }); ok && a.Player != "" && to.GetTo() != "" {
		return errors.New("it names the player whose name it becomes, which only a key can: send that player's code")
	}
	return nil
}

func (a *Access) checkCommands(all []*kujiv1.Command) error {
	for i, c := range all {
		if err := a.checkCommand(fmt.Sprintf("commands[%d]", i), c.GetRequestId(), contract.CommandOf(c)); err != nil {
			return err
		}
	}
	return nil
}

// PermitCommand is Permit for one command of a realm, with its request id.
func (a *Access) PermitCommand(realm, id string, m proto.Message) error {
	if err := a.MayEnter(realm); err != nil {
		return a.Forbidden(err)
	}
	return a.answer(a.checkCommand("", id, m))
}

func (a *Access) checkMembers(in, id string, all []*kujiv1.Member) error {
	var grants []itemsMessage
	for i, one := range all {
		m := contract.MemberOf(one)
		if m == nil {
			continue // the engine refuses it
		}
		if g, ok := m.(*kujiv1.Grant); ok {
			grants = append(grants, g)
		}
		if err := a.check(needOf(fmt.Sprintf("%smembers[%d]", in, i), m)); err != nil {
			return err
		}
	}
	return a.checkGrants(in, id, grants...)
}

// checkStream checks every pool and player that a batch of draws lists, even if no draw uses it.
func (a *Access) checkStream(m *kujiv1.StreamDrawsRequest) error {
	if err := a.check(need{can: canDraw, player: a.Player}); err != nil || a.unrestricted() {
		return err
	}
	for i, pool := range m.GetPools() {
		if err := a.check(need{field: fmt.Sprintf("pools[%d]", i), can: canDraw, pool: pool, player: a.Player}); err != nil {
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

// Forbidden returns the error for a request that the access does not allow.
func (a *Access) Forbidden(why error) error {
	what := fmt.Sprintf("the key %q", a.Name)
	if a.Player != "" {
		what = "the player's token"
	}
	return contract.Refused(connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN, fmt.Errorf("%s does not allow this: %w", what, why))
}
