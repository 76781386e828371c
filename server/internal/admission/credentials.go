package admission

import (
	"context"
	"errors"
	"net/netip"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
)

// Checking a player's token takes far longer than looking up a key, and a stranger who sends bad
// tokens has no key by which to limit them. So tokens are checked a few at a time, in turns. A
// connection whose last credential was good need not wait. Each address has a share of the turns
// and of the queue: one that sends many delays only itself.

const (
	// checksAtOnce is how many tokens of strangers are checked at a time.
	checksAtOnce = 4
	// tokensWaiting is how many of them may wait or be checked at a time.
	tokensWaiting = 1024
)

// NewTokens returns the places of tokens that wait to be checked, and NewChecks the turns to check
// them.
func NewTokens() *Budget {
	b := NewPlaces(tokensWaiting, true, "tokens wait to be checked")
	b.kept, b.whose = 0, "from this address" // no address is an operator's
	return b
}

func NewChecks() *Budget { return NewBudget(checksAtOnce, true) }

// Find returns the access of a key or a token, or a refusal, which begins with text if the secret
// is bad. It came on c, nil if that is no connection of the server. peer is the client's address.
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
		if refusal := g.Tokens.Take(from, 1); refusal != nil {
			return nil, refusal
		}
		defer g.Tokens.Give(from, 1)
		if err := g.Checks.Wait(ctx, from, 1); err != nil {
			return nil, contract.Refused(connect.CodeCanceled, kujiv1.Reason_REASON_CANCELED, errors.New("the client is gone"))
		}
		defer g.Checks.Give(from, 1)
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
