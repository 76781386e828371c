package catalog

import "slices"

// Redeem says what the codes of a list pay for. The codes are imported, before the catalog or after it.
type Redeem struct {
	List  string `json:"code"`
	Times uint32 `json:"times"`           // draws that a code pays for, at most MaxRedeemTimes and the pool's MaxCount
	Uses  uint64 `json:"uses"`            // how many players can use each code: 1 to MaxUses
	Until int64  `json:"until,omitempty"` // Unix milliseconds, exclusive; 0: without end
}

// Guesses bounds how many codes that do not exist a player can send. The zero value: no code pays.
type Guesses struct {
	Per   Per    `json:"per"` // not PerWindow
	Count uint64 `json:"count"`
}

// DefaultGuesses is the Guesses of a catalog whose source declares none, if a code pays in it.
var DefaultGuesses = Guesses{Per: PerDay, Count: 10}

// redeem checks that each list of codes pays for one thing.
func (k *poolCheck) redeem() {
	p := k.p
	for i := range k.oneOrEach(len(p.Redeem)) {
		r := &p.Redeem[i]
		if pool, taken := k.redeemed[r.List]; taken {
			k.faultAt("code", "expected a list that pays for one thing, found %s, which pool %s names already", r.List, pool)
		}
		k.redeemed[r.List] = p.ID
		if r.Times <= MaxRedeemTimes && r.Times > p.MaxCount {
			k.faultAt("times", "expected at most %d, the pool's max_count, found %d", p.MaxCount, r.Times)
		}
	}
}

func (k *check) checkGuesses() {
	if k.c.Guesses == (Guesses{}) && len(k.redeemed) > 0 {
		k.fault("expected a limit, as codes pay for draws, found none")
	}
	if n := len(k.redeemed); n > MaxRedeemLists {
		k.fault("expected codes of at most %d lists to pay for draws, found %d", MaxRedeemLists, n)
	}
}

// redeems reports whether a code pays for draws from a pool.
func (c *Catalog) redeems() bool {
	return slices.ContainsFunc(c.Pools, func(p Pool) bool { return len(p.Redeem) > 0 })
}

func (r *Redeem) code(x *coder) {
	x.ref(&r.List)
	number(x, &r.Times)
	number(x, &r.Uses)
	number(x, &r.Until)
}
