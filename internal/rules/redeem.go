package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A code that a player sends pays for draws from a pool, instead of its price. The lists whose codes
// pay are searched in the order of the catalog. A command holds only the code's sum, so that no log
// has what was guessed.
//
// A player can use a code once. The catalog says how many players can use it. If rewards give a list's
// codes, a code exists only once it was given. If several players can use such a code, an invitation,
// the player who was given it cannot.
//
// A code that does not exist counts as a guess, in a counter of the player, like a draw in a limit.
// Nothing else is ever changed by a command that fails. So a Redeem cannot be in a group, which
// changes nothing when it fails.

// CodeSum stands for a code: see [SumCode].
type CodeSum = store.CodeSum

// SumCode returns the sum of a code. Codes that differ only in spaces, hyphens and the case of the
// letters a to z have the same sum.
func SumCode(code string) CodeSum { return store.SumCode([]byte(code)) }

// OtherSums returns the sums of a code's other spellings: see [Command].
func OtherSums(code string) []CodeSum { return store.OtherSums(code) }

type redeemTable struct {
	list   uint32
	pool   *Pool
	config *catalog.Redeem
	given  bool // rewards give its codes
}

// redeeming is what codes pay for.
type redeeming struct {
	redeem  []redeemTable // in the order of pools
	guesses Limit
}

// setRedeem compiles what codes pay for. The pools are compiled already.
func (t *Tables) setRedeem() {
	given := map[uint32]bool{}
	for _, pt := range t.BottomUp {
		for i := range pt.Entries {
			for _, list := range pt.Entries[i].Codes {
				given[list] = true
			}
		}
	}
	for i := range t.Catalog.Pools {
		p := &t.Catalog.Pools[i]
		for j := range p.Redeem {
			list := t.ListNum[p.Redeem[j].List]
			t.redeem = append(t.redeem, redeemTable{list, t.PoolByID[p.ID], &p.Redeem[j], given[list]})
		}
	}
}

type redeemKind struct{ plain }

func (redeemKind) alone() string {
	return "an atomic group cannot redeem a code: undoing the group would undo the count of guesses"
}

func (redeemKind) ask(r *effects, c *Command, _ Status) { r.w.Buf = append(r.w.Buf, c.Code[:]...) }

func (redeemKind) asked(a *asked, c *Command) {
	copy(c.Code[:], a.Bytes("a code's sum", uint64(len(c.Code))))
}

// spelled is findCode for a command. If another spelling finds a code, the command gets its sum.
func (r *checks) spelled(cmd *Command) (rt *redeemTable, number uint64) {
	rt, number = r.findCode(cmd.Code)
	for i := 0; rt == nil && i < len(cmd.Others); i++ {
		if rt, number = r.findCode(cmd.Others[i]); rt != nil {
			cmd.Code = cmd.Others[i]
		}
	}
	return rt, number
}

// findCode returns the code with a sum, and what it pays for; nil: there is no such code.
func (r *checks) findCode(sum CodeSum) (rt *redeemTable, number uint64) {
	for i := range r.t.redeem {
		rt := &r.t.redeem[i]
		number, ok := r.state.FindCode(rt.list, sum)
		if ok && (!rt.given || number < r.state.CodesGiven(rt.list)) {
			return rt, number
		}
	}
	return nil, 0
}

// check checks the limit on guesses first: a player who has reached it learns nothing about any code.
func (redeemKind) check(r *checks, cmd *Command) failure {
	player := cmd.who(&r.Sight)
	if g := &r.t.guesses; g.Per != 0 && r.used(g, player) >= g.Draws {
		return failure{TooManyGuesses, 0}
	}
	rt, number := r.spelled(cmd)
	if rt == nil {
		return failure{UnknownCode, 0}
	}
	all, _ := r.state.CodeUses(rt.list)
	switch {
	case rt.config.Until != 0 && r.now >= rt.config.Until:
		return failure{CodeExpired, rt.list}
	case r.anyName(player, func(n uint32) bool {
		return r.state.CodeUsedBy(rt.list, number, n) || !r.old && rt.config.Uses > 1 && r.state.CodeGivenTo(rt.list, number, n)
	}):
		return failure{CodeRedeemed, rt.list}
	case r.state.CodeTimes(rt.list, number) >= rt.config.Uses, all >= store.MaxUses:
		return failure{CodeUsedUp, rt.list}
	}
	if _, f := r.come(cmd); f.status != OK {
		return f
	}
	if f := r.mayDraw(rt.pool, player, uint64(rt.config.Times)); f.status != OK {
		return f
	}
	r.nextCost()
	return r.addDraw(rt.pool, player, uint64(rt.config.Times))
}

func (redeemKind) write(r *drawing, cmd *Command) {
	rt, number := r.findCode(cmd.Code)
	r.arrive(cmd.who(&r.Sight))
	r.w.More(store.UseCode, uint64(rt.list), number)
	r.writeDraw()
}

func writeGuess(r *effects, cmd *Command) {
	g, player := &r.t.guesses, cmd.who(&r.Sight)
	if g.Per == 0 {
		return // no code pays for anything
	}
	r.turn(player)
	r.w.Change(store.Set, g.Counter, g.value(r.used(g, player)+1, r.steady))
}

// Redeemed is what an event of a Redeem that did not fail says.
type Redeemed struct {
	List   uint32
	Number uint64 // of the code
	Draws  uint64 // how many it paid for
	Pool   uint32 // where they were from, if Drew
	Drew   bool   // they took an entry
}

// RedeemedOf reads what an event of a Redeem says.
func RedeemedOf(ev *store.Event) (out Redeemed, err error) {
	taken, pool := uint64(0), uint32(noPool)
	out.Pool = noPool
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		switch e.Verb {
		case store.UseCode:
			out.List, out.Number = e.N, e.Value
		case store.Draw:
			out.Draws++
		case store.Pool:
			if pool = e.N; out.Pool == noPool {
				out.Pool = pool
			}
		case store.Take:
			if pool == out.Pool {
				taken++
			}
		}
	}
	out.Drew = out.Pool != noPool
	if out.Draws == 0 { // then each draw takes one entry
		out.Draws = taken
	}
	return out, effects.Err()
}

// Drawn returns how many single draws the last decided command made, and adds them to by, by pool.
func (r *Rules) Drawn(by []uint64) (n uint64) {
	for i := range r.draws {
		d := &r.draws[i]
		if int(d.pool.Num) >= len(by) { // of a quest
			continue
		}
		n += d.count
		by[d.pool.Num] += d.count
	}
	return n
}
