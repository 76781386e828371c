package access

import (
	"maps"
	"slices"
	"strings"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Describe says what an access includes. It has no key, no token, and no hash of them.
func (a *Access) Describe() *kujiv1.Access {
	out := &kujiv1.Access{
		Name: a.Name, Commands: strings.Split(a.can.String(), ","), Realms: a.realms, Pools: a.pools,
		Player: a.Player, Rate: uint32(a.Rate), IdsOptional: a.anyID,
	}
	if !a.expires.IsZero() {
		out.ExpiresUnixMs = a.expires.UnixMilli()
	}
	for _, item := range slices.Sorted(maps.Keys(a.grants)) {
		out.Grants = append(out.Grants, &kujiv1.GrantCap{Item: item, Request: a.grants[item].request, Day: a.grants[item].day})
	}
	return out
}

// List describes all keys and issuers: the keys first, each in the order of the file.
func (k *Keys) List() (all []*kujiv1.Access) {
	set := k.set.Load()
	for i := range set.keys {
		all = append(all, set.keys[i].Describe())
	}
	for _, i := range set.issuers {
		one := i.Describe()
		one.Issuer = true
		all = append(all, one)
	}
	return all
}
