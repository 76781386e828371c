package admission

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
)

// Checking a player's token takes far longer than looking up a key, and a stranger who sends bad
// tokens holds nothing that could be shared out. So tokens are checked in turns, a few at a time,
// unless the last credential on the connection was good. Addresses share the turns, and the places
// in the queue, as keys share what they hold. So an address that sends many bad tokens delays only
// itself.

const (
	// checksAtOnce is how many tokens of strangers are checked at a time.
	checksAtOnce = 4
	// checksWaiting is how many may wait for that, with those that are checked.
	checksWaiting = 1024
)

// Checks is the turns for checking strangers' tokens. Callers are addresses.
type Checks struct {
	Places *Budget // one for each that waits or is checked
	Turns  *Budget // one for each that is checked; they wait
}

func NewChecks() Checks {
	return Checks{Places: NewBudget(checksWaiting, true), Turns: NewBudget(checksAtOnce, true)}
}

// Find returns the access that a key or a token gives, or a refusal that begins with text. c is the
// connection that it came on, nil if that is none of the server's; peer is the client's address.
func (g *Gate) Find(ctx context.Context, keys *access.Keys, c *Conn, peer, secret, text string) (*access.Access, *connect.Error) {
	if a := keys.ByKey(secret); a != nil {
		return a, nil
	}
	if !keys.MayBeToken(secret) {
		why := "it is no key of the file, and no token that an issuer could have signed"
		if secret == "" {
			why = "there is none"
		}
		return nil, access.BadSecret(text, access.Unsigned("%s", why))
	}
	if !g.Conns.Trusts(c) {
		from := AddressOf(peer)
		if !g.Checks.Places.Take(from, 1) {
			used, mine, total := g.Checks.Places.Holdings(from)
			return nil, contract.Refused(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED,
				fmt.Errorf("%d tokens wait to be checked, %d of them from this address, and the limit is %d: try again later", used, mine, total))
		}
		defer g.Checks.Places.Give(from, 1)
		if err := g.Checks.Turns.Wait(ctx, from, 1); err != nil {
			return nil, contract.Refused(connect.CodeCanceled, kujiv1.Reason_REASON_CANCELED, errors.New("the client is gone"))
		}
		defer g.Checks.Turns.Give(from, 1)
	}
	a, fault := keys.ByToken(secret)
	if a == nil {
		g.Conns.Distrust(c)
		return nil, access.BadSecret(text, fault)
	}
	return a, nil
}

// AddressOf returns an address as a caller. An IPv6 address counts as its /64 network.
func AddressOf(peer string) (who access.Caller) {
	at, err := netip.ParseAddrPort(peer)
	if err != nil {
		return who
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	if net, err := ip.Prefix(bits); err == nil {
		b := net.Addr().As16()
		copy(who.Hash[:], b[:])
	}
	return who
}
