package catalog

import "slices"

// A code that a player sends pays for draws from the pool that names its list. The lists themselves
// are no part of a catalog: they are imported, before it or after it.

// Redeem says what the codes of a list pay for.
type Redeem struct {
	List  string `json:"code"`
	Times uint32 `json:"times"` // draws that a code pays for, at most MaxRedeemTimes and the pool's MaxCount
	// Uses is how often each code can be used, by different players: 1 to MaxUses.
	Uses  uint64 `json:"uses"`
	Until int64  `json:"until,omitempty"` // Unix milliseconds, exclusive; 0: for ever
}

// Guesses bounds how many codes that do not exist a player can send within a time. The zero value is
// for catalogs in which no code pays.
type Guesses struct {
	Per   Per    `json:"per"` // not PerWindow
	Count uint64 `json:"count"`
}

// DefaultGuesses is the Guesses of a catalog whose source declares none, if a code pays in it.
var DefaultGuesses = Guesses{Per: PerDay, Count: 10}

// redeem checks the codes that pay for draws from a pool.
func (k *poolCheck) redeem() {
	p := k.p
	if len(p.Redeem) > MaxRedeem {
		k.fault("expected at most %d lists of codes, found %d", MaxRedeem, len(p.Redeem))
		return
	}
	for i := range p.Redeem {
		r := &p.Redeem[i]
		if len(p.Redeem) > 1 {
			k.enterIndex(i)
		}
		k.at("code", func() {
			pool, taken := k.redeemed[r.List]
			switch {
			case !ValidID(r.List):
				k.fault("expected %s, found %s", idShape{"a list of codes"}.expects(), quote(r.List))
			case taken:
				k.fault("expected a list that pays for one thing, found %s, which pool %s names already", r.List, pool)
			default:
				k.redeemed[r.List] = p.ID
			}
		})
		k.between("times", uint64(r.Times), 1, MaxRedeemTimes)
		if r.Times <= MaxRedeemTimes && r.Times > p.MaxCount {
			k.at("times", func() { k.fault("expected at most %d, the pool's max_count, found %d", p.MaxCount, r.Times) })
		}
		k.between("uses", r.Uses, 1, MaxUses)
		k.instant("until", r.Until)
		if len(p.Redeem) > 1 {
			k.leave()
		}
	}
}

func (k *check) checkGuesses() {
	g := k.c.Guesses
	switch {
	case g == Guesses{} && len(k.redeemed) > 0:
		k.fault("expected a limit, as codes pay for draws, found none")
	case g == Guesses{}:
	case !g.Per.ofBudget():
		k.at("per", func() { k.fault("expected hour, day, week or forever, found %d", g.Per) })
	default:
		k.between("count", g.Count, 1, MaxTimedDraws)
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
	small(x, &r.Times, "times", MaxRedeemTimes)
	x.number(&r.Uses)
	small(x, &r.Until, "a time", maxInstant)
}
