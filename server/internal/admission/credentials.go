package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// To check a player's token takes far longer than to look up a key, and a stranger who
// sends bad ones holds nothing that others could be given. So tokens are checked in turns, a few at a
// time, unless the last credential on their connection was good. The addresses that they come from
// share the turns and the places in front of them as keys share what they hold: whoever sends many
// bad tokens waits behind them alone.

const (
	// checksAtOnce is how many tokens of strangers are checked at a time.
	checksAtOnce = 4
	// checksWaiting is how many may wait for that, with those that are checked.
	checksWaiting = 1024
)

// credentials is the turns in which tokens of strangers are checked. Callers are addresses.
type credentials struct {
	places *budget // one for each that waits or is checked
	turns  *budget // one for each that is checked; they wait
}

func newCredentials() credentials {
	return credentials{places: newBudget(checksWaiting, true), turns: newBudget(checksAtOnce, true)}
}

// find returns what the holder of a key or a token may do, or a refusal that begins with text. c is the
// connection that it came on, nil if it came on none of ours, and peer the address of its other end.
func (s *Server) find(ctx context.Context, c *conn, peer, secret, text string) (*access, *connect.Error) {
	keys := s.o.Keys
	if a := keys.byKey(secret); a != nil {
		return a, nil
	}
	if !keys.mayBeToken(secret) {
		why := "it is no key of the file, and no token that an issuer could have signed"
		if secret == "" {
			why = "there is none"
		}
		return nil, badSecret(text, unsigned("%s", why))
	}
	if !s.conns.trusts(c) {
		from := addressOf(peer)
		if !s.credentials.places.take(from, 1) {
			used, mine, total := s.credentials.places.holdings(from)
			return nil, refused(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED,
				fmt.Errorf("%d tokens wait to be checked, %d of them from this address, and the limit is %d: try again later", used, mine, total))
		}
		defer s.credentials.places.give(from, 1)
		if err := s.credentials.turns.wait(ctx, from, 1); err != nil {
			return nil, refused(connect.CodeCanceled, kujiv1.Reason_REASON_CANCELED, errors.New("the client is gone"))
		}
		defer s.credentials.turns.give(from, 1)
	}
	a, fault := keys.byToken(secret)
	if a == nil {
		s.conns.distrust(c)
		return nil, badSecret(text, fault)
	}
	return a, nil
}

// badSecret refuses somebody whose key or token is not good.
func badSecret(text string, fault *tokenFault) *connect.Error {
	fault.text = text
	return refused(connect.CodeUnauthenticated, kujiv1.Reason_REASON_UNAUTHENTICATED, fault)
}

// addressOf returns the caller that an address is: of IPv6 the network of one customer.
func addressOf(peer string) (who caller) {
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
		copy(who.hash[:], b[:])
	}
	return who
}
