package access

import kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"

// Pass is the access of a stream or a connection, for as long as its key or token is good.
type Pass struct {
	*Access       // what the key may do by the key file as of the last check
	keys    *Keys // nil: a server without keys
	set     *keySet
}

// NewPass returns the pass of a key that was just presented, or of Anybody if keys is nil.
func NewPass(keys *Keys, a *Access) Pass {
	p := Pass{Access: a, keys: keys}
	if keys != nil {
		p.set = keys.set.Load()
	}
	return p
}

// Renew reports whether the key or token is still good, and takes new rights after a reload of the
// key file. It is not safe for concurrent use.
func (p *Pass) Renew() bool {
	if p.keys == nil {
		return true
	}
	if !p.expires.IsZero() && p.keys.now().After(p.expires) {
		return false
	}
	if set := p.keys.set.Load(); set != p.set {
		a := p.keys.again(p.Access)
		if a == nil {
			return false
		}
		p.set, p.Access = set, a
	}
	return true
}

// StillMay reports whether the key is still good, and includes anything of a role.
func (p *Pass) StillMay(role kujiv1.Role) bool { return p.Renew() && p.May(role) }
