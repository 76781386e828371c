package server

// pass is what a stream may do for as long as its key or token is good.
type pass struct {
	s      *Server
	call   *call
	keys   *keySet // the key file as of the last check
	access *access // what the stream's key may do by it
}

func newPass(s *Server, c *call) pass {
	p := pass{s: s, call: c, access: c.access}
	if s.o.Keys != nil {
		p.keys = s.o.Keys.set.Load()
	}
	return p
}

// stillAllowed reports whether the stream's key or token is still good. It looks again after the key
// file was reloaded. One goroutine at a time may ask.
func (p *pass) stillAllowed() bool {
	keys := p.s.o.Keys
	if keys == nil {
		return true
	}
	if a := p.access; !a.expires.IsZero() && keys.now().After(a.expires) {
		return false
	}
	if set := keys.set.Load(); set != p.keys {
		a := keys.again(p.access)
		if a == nil || !a.may(p.call.endpoint.role) {
			return false
		}
		p.keys, p.access = set, a
	}
	return true
}
