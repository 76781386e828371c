package rules

import "github.com/kuji-dev/kuji/internal/store"

// A hold is confirmed or cancelled once. Whoever comes later is told what became of it.
type (
	confirmKind struct{ noted }
	cancelKind  struct{ noted }
)

func (confirmKind) alone() string { return "an atomic group cannot confirm a hold" }
func (cancelKind) alone() string  { return "an atomic group cannot cancel a hold" }

func (confirmKind) form(c *Command) *CommandError {
	if c.Hold.Of == "" {
		return malformed("hold", "empty; want the request id of what is held")
	}
	return checkLength("hold", c.Hold.Of, MaxID)
}

func (cancelKind) form(c *Command) *CommandError { return confirmKind{}.form(c) }

// ask writes the request id of what is held, after its length.
func (confirmKind) ask(r *effects, c *Command, _ Status) { writeText(r.w, c.Hold.Of) }

func (confirmKind) asked(a *asked, c *Command) { c.Hold = &HoldOf{Of: a.text("a hold", MaxID)} }

func (cancelKind) ask(r *effects, c *Command, s Status) { confirmKind{}.ask(r, c, s) }
func (cancelKind) asked(a *asked, c *Command)           { confirmKind{}.asked(a, c) }

func (confirmKind) same(c, o *Command) bool { return *c.Hold == *o.Hold }
func (cancelKind) same(c, o *Command) bool  { return *c.Hold == *o.Hold }

// ended looks up the hold that a command ends.
func (r *checks) ended(c *Command) failure {
	h, ok := r.notes.holdOf(c.Hold.Of)
	r.ending = h
	switch {
	case !ok:
		return failure{UnknownHold, 0}
	case h.is != holdOpen:
		return failure{HoldEnded, 0}
	}
	return failure{}
}

func (cancelKind) check(r *checks, c *Command) failure { return r.ended(c) }

func (confirmKind) check(r *checks, c *Command) failure {
	if f := r.ended(c); f.status != OK {
		return f
	}
	for _, player := range r.ending.all() {
		switch {
		case r.state.PlayerID(player) == "": // the receiver of a transfer
			return failure{UnknownPlayer, 0}
		case r.state.Blocked(player):
			return failure{Blocked, 0}
		}
	}
	for i := range r.ending.parts {
		if p := &r.ending.parts[i]; p.draws > 0 {
			r.freed = addTo(r.freed, p.pool, p.draws)
		}
	}
	for i := range r.ending.parts {
		if f := r.mayConfirm(&r.ending.parts[i]); f.status != OK {
			return f
		}
	}
	return r.mayFinish(&r.ending)
}

// mayConfirm checks that what a part gives fits, and that its draws can be made.
func (r *checks) mayConfirm(p *part) failure {
	for _, st := range p.takes {
		held := valueKey(p.player, store.HeldOf(st.Item))
		r.values.put(held, r.balance(p.player, store.HeldOf(st.Item))-st.Quantity)
		if p.kind != KindTransfer {
			continue
		}
		r.moves = true
		f := r.gets(p.to, st)
		if r.moves = false; f.status != OK {
			return f
		}
	}
	for _, st := range p.gains {
		have := r.balance(p.player, st.Item)
		if have+st.Quantity > MaxQuantity {
			return failure{BalanceOverflow, st.Item}
		}
		r.values.put(valueKey(p.player, st.Item), have+st.Quantity)
		r.values.put(valueKey(p.player, store.HeldOf(st.Item)), r.balance(p.player, store.HeldOf(st.Item))-st.Quantity)
	}
	for _, st := range p.more {
		if f := r.gets(p.player, st); f.status != OK {
			return f
		}
	}
	if p.draws == 0 {
		return failure{}
	}
	pt := poolOf(r.t, p.pool)
	if pt == nil || len(pt.lasting) > 0 {
		return failure{SoldOut, p.pool}
	}
	r.nextCost()
	f := r.mayGet(pt, p.player, p.draws)
	if f.status == OK {
		r.pend(pt, p.player, p.draws)
	}
	return f
}

// mayFinish checks that the last rewards of the boxes that a hold finishes fit.
func (r *checks) mayFinish(h *hold) failure {
	var of []Stack
	for i := range h.parts {
		p := &h.parts[i]
		for _, t := range p.taken {
			pt := boxOf(r.t, t.pool)
			if pt == nil {
				continue
			}
			of = addTo(of, t.pool, uint64(t.n))
			if r.pools[pt.Num].live > 0 || keptOf(of, t.pool) < keptOf(r.kept.taken, t.pool) {
				continue
			}
			for j := range pt.Last.Items {
				it := &pt.Last.Items[j]
				if f := r.gets(p.player, Stack{it.Item, it.Max}); f.status != OK {
					return f
				}
			}
			for j := range pt.Last.Inner { // the catalog did not have it when the draw was asked for
				in := &pt.Last.Inner[j]
				r.nextCost()
				if f := r.mayGet(in.Pool, p.player, in.Max); f.status != OK {
					return f
				}
				r.pend(in.Pool, p.player, in.Max)
			}
		}
	}
	return failure{}
}

func (confirmKind) write(r *drawing, c *Command) { holding{hosting{r}}.confirm(&r.ending, c.ID) }

func (cancelKind) write(r *drawing, c *Command) {
	holding{hosting{r}}.cancel(&r.ending, holdCancelled, c.ID)
}

// atDeadline writes what happens at the deadline of a hold.
func (r holding) atDeadline(id string) {
	if h, _ := r.notes.holdOf(id); h.is == holdOpen {
		r.cancel(&h, holdExpired, "")
	} else {
		r.forgetHold(&h)
	}
}

// all returns all players whom a hold is about.
func (h *hold) all() (all []uint32) {
	for i := range h.parts {
		if p := &h.parts[i]; !p.empty() {
			if all = append(all, p.player); p.kind == KindTransfer {
				all = append(all, p.to)
			}
		}
	}
	return all
}
