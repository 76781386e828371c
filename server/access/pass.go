package server

import kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"

// pass is what a stream, or a connection, may do for as long as its key or token is good.
type pass struct {
	s      *Server
	keys   *keySet // the key file as of the last check
	access *access // what the key may do by it
}

func newPass(s *Server, a *access) pass {
	p := pass{s: s, access: a}
	if s.o.Keys != nil {
		p.keys = s.o.Keys.set.Load()
	}
	return p
}

// renew reports whether the key or token is still good. It looks again after the key file was
// reloaded. One goroutine at a time may ask.
func (p *pass) renew() bool {
	keys := p.s.o.Keys
	if keys == nil {
		return true
	}
	if a := p.access; !a.expires.IsZero() && keys.now().After(a.expires) {
		return false
	}
	if set := keys.set.Load(); set != p.keys {
		a := keys.again(p.access)
		if a == nil {
			return false
		}
		p.keys, p.access = set, a
	}
	return true
}

// stillAllowed is renew for one who needs a role.
func (p *pass) stillAllowed(role kujiv1.Role) bool { return p.renew() && p.access.may(role) }
