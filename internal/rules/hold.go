package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A hold is a command that is carried out, but not yet for good: it is confirmed or cancelled by its request id, or
// cancelled by an event of its own at its deadline. Until then, what it gives is held for those who get it: they have
// it, and cannot spend it. See docs/internals/decisions/0014-rounds-holds-and-identities.md.
//
//	               when asked                        confirmed           cancelled
//	draw           the price is spent, limits count, what was drawn      what was drawn goes
//	               the outcome is held               is the player's     back to the pool
//	draw, refund   the price is held, limits count,  the draw is made    price and limits
//	               the stock is reserved                                 come back
//	grant          the items are held                are the player's    are gone
//	consume        the items are held                are gone            come back
//	transfer       the items are held                are the receiver's  come back
//
// Who sees the outcome of a draw has paid for it. So where a group draws and no refund is wanted, its consumes and
// transfers are for good at once, as prices are.

// Limits of holds.
const (
	MinHold        = 1000              // milliseconds
	MaxHold        = 30 * 24 * 3600000 // milliseconds
	MaxOpenHolds   = 1_000_000         // in a realm
	MaxPlayerHolds = 100               // in which something of a player is held
)

// HoldOf says how a command is held, or which hold a command is about.
type HoldOf struct {
	For    int64 // milliseconds
	Refund bool  // everything comes back if it is not confirmed, and nobody sees an outcome before
	One    bool  // the only member was asked for alone
	Of     string
}

// What became of a hold.
const (
	holdOpen      = 1
	holdConfirmed = 2
	holdCancelled = 3
	holdExpired   = 4 // cancelled at its deadline
)

// hold is what the state has of a hold.
type hold struct {
	id     string
	is     uint64 // holdOpen, holdConfirmed …
	refund bool
	one    bool
	asked  uint64 // steady time
	until  uint64 // its deadline, steady time; of one that is not open, when it is forgotten
	by     string // the request id that confirmed or cancelled it
	parts  []part // of one that is open: by member
}

// part is what is held of a member.
type part struct {
	kind     Kind
	player   uint32  // who it is now
	by       uint32  // who asked: a name of the player now, if it was merged
	to       uint32  // of a transfer
	pool     uint32  // of a draw
	draws    uint64  // of a draw that is still to be made
	free     uint64  // of them, those that were free
	takes    []Stack // gone when it is confirmed; else they come back
	gains    []Stack // given when it is confirmed; else they are gone
	more     []Stack // promised, as it is beyond what the player could hold: given when it is confirmed
	promised []Stack // codes: list, how many
	moments  []Stack // used up: the first counter of the moments, how many
	taken    []taking
	budgets  []spending
}

// taking is what was taken from a pool.
type taking struct{ pool, entry, n uint32 }

// spending is what was spent from a budget.
type spending struct {
	counter uint32
	per     catalog.Per
	n       uint64
}

func (h *hold) append(b []byte) []byte {
	n := numbers{b}
	flags := uint64(0)
	for i, set := range [...]bool{h.refund, h.one} {
		if set {
			flags |= 1 << i
		}
	}
	n.add(h.is, flags, h.asked, h.until, uint64(len(h.by)))
	n.b = append(n.b, h.by...)
	n.add(uint64(len(h.parts)))
	for i := range h.parts {
		p := &h.parts[i]
		n.add(uint64(p.kind), uint64(p.by), uint64(p.to), uint64(p.pool), p.draws, p.free)
		for _, all := range [...][]Stack{p.takes, p.gains, p.more, p.promised, p.moments} {
			n.stacks(all)
		}
		n.add(uint64(len(p.taken)))
		for _, t := range p.taken {
			n.add(uint64(t.pool), uint64(t.entry), uint64(t.n))
		}
		n.add(uint64(len(p.budgets)))
		for _, s := range p.budgets {
			n.add(uint64(s.counter), uint64(s.per), s.n)
		}
	}
	return n.b
}

func (h *hold) read(b []byte) {
	n := numbers{b}
	h.is = n.next()
	flags := n.next()
	h.refund, h.one = flags&1 != 0, flags&2 != 0
	h.asked, h.until = n.next(), n.next()
	size := n.next()
	h.by, n.b = string(n.b[:size]), n.b[size:]
	h.parts = make([]part, n.next())
	for i := range h.parts {
		p := &h.parts[i]
		p.kind, p.by, p.to, p.pool = Kind(n.next()), uint32(n.next()), uint32(n.next()), uint32(n.next())
		p.draws, p.free = n.next(), n.next()
		for _, all := range [...]*[]Stack{&p.takes, &p.gains, &p.more, &p.promised, &p.moments} {
			*all = n.nextStacks(nil)
		}
		for range n.next() {
			p.taken = append(p.taken, taking{uint32(n.next()), uint32(n.next()), uint32(n.next())})
		}
		for range n.next() {
			p.budgets = append(p.budgets, spending{uint32(n.next()), catalog.Per(n.next()), n.next()})
		}
	}
}

// empty reports whether nothing of the member is held.
func (p *part) empty() bool {
	return p.draws == 0 && len(p.takes)+len(p.gains)+len(p.more)+len(p.promised)+len(p.moments)+len(p.taken)+len(p.budgets) == 0
}

// names reports whether something is held of a player by a name.
func (h *hold) names(name uint32) bool { return slices.Contains(h.who(), name) }

// who returns by what names something is held of players, each once.
func (h *hold) who() (all []uint32) {
	for i := range h.parts {
		if p := &h.parts[i]; !p.empty() && !slices.Contains(all, p.by) {
			all = append(all, p.by)
		}
	}
	return all
}

// meet finds out who its players are now.
func (h *hold) meet(s State) {
	for i := range h.parts {
		p := &h.parts[i]
		if p.player = s.Whose(p.by); p.kind == KindTransfer {
			p.to = s.Whose(p.to)
		}
	}
}

// holdOf reads the hold of a request id. ok is false if there is none.
func (r *noting) holdOf(id string) (h hold, ok bool) {
	value, ok := r.state.Record(r.newKey(recordHold).bytes(id))
	if ok {
		h.read(value)
		h.id = id
		h.meet(r.state)
	}
	return h, ok
}

// holds returns how many holds have something of a player, at most MaxPlayerHolds.
func (r *noting) holds(player uint32) (n int) {
	from := r.newKey(recordHeld).short(player)
	for range r.state.Records(from, from.after()) {
		if n++; n == MaxPlayerHolds {
			break
		}
	}
	return n
}

// holdKind is a command that is held: its members are carried out as a group.
type holdKind struct{ noted }

func (holdKind) alone() string {
	return "a member is not held by itself; an atomic group is held as a whole, or not at all"
}

func (holdKind) form(c *Command) *CommandError {
	switch h := c.Hold; {
	case c.ID == "":
		return malformed("id", "empty; a hold needs a request id, by which it is confirmed")
	case h.For < MinHold || h.For > MaxHold:
		return malformed("hold_ms", "%d milliseconds; %d to %d are allowed", h.For, MinHold, int64(MaxHold))
	}
	if err := (atomicKind{}).form(c); err != nil {
		return err.alone(c)
	}
	for i := range c.Members {
		switch m := &c.Members[i]; m.Kind {
		case KindDraw, KindGrant, KindConsume, KindTransfer:
		default:
			return malformed("kind", "a %v cannot be held; want draw, grant, consume or transfer", m.Kind).in(i)
		}
	}
	return nil
}

// alone returns the error with the field as that of a request that is no group.
func (e *CommandError) alone(c *Command) *CommandError {
	const member = "members[0]."
	if c.Hold.One && len(e.Field) > len(member) && e.Field[:len(member)] == member {
		return &CommandError{Field: e.Field[len(member):], Message: e.Message, Unfit: e.Unfit}
	}
	return e
}

func (holdKind) resolve(f *Finder, c *Command) *CommandError {
	if err := (atomicKind{}).resolve(f, c); err != nil {
		return err.alone(c)
	}
	for i := range c.Members {
		if err := f.holdable(c, &c.Members[i]); err != nil {
			err = err.in(i)
			err.Unfit = true
			return err.alone(c)
		}
	}
	return nil
}

// holdable returns why a member cannot be held, or nil.
func (f *Finder) holdable(c, m *Command) *CommandError {
	switch {
	case m.Kind == KindDraw:
		return f.holdableDraw(m.pool, c.Hold.Refund)
	case m.Kind != KindGrant && c.atOnce():
		return nil
	}
	for i := range m.Items {
		if num, ok := f.ItemNum[m.Items[i].Item]; ok && f.Lasting.Has(num) {
			return malformed("items", "%q lasts for a time, so it cannot be held", m.Items[i].Item)
		}
	}
	return nil
}

func (f *Finder) holdableDraw(pt *Pool, refund bool) *CommandError {
	if len(pt.lasting) > 0 {
		return malformed("pool", "%q gives items that last for a time, so its draws cannot be held", pt.Config.ID)
	}
	for _, other := range f.BottomUp {
		if (other == pt || pt.reach.Has(other.Num)) && len(other.Last.Inner)+len(other.Last.Codes) > 0 {
			return malformed("pool", "%q draws from the box %q, whose last reward is drawn or has codes, so its draws cannot be held", pt.Config.ID, other.Config.ID)
		}
	}
	switch {
	case !refund:
		return nil
	case pt.steps.Counter != nil:
		return malformed("refund", "the price of pool %q rises with a counter, so its draws cannot be held with a refund", pt.Config.ID)
	case pt.Collect:
		return malformed("refund", "what pool %q has depends on the player, so its stock cannot be reserved for a refund", pt.Config.ID)
	}
	for _, price := range pricesOf(pt) {
		for _, st := range price {
			if f.Lasting.Has(st.Item) || slices.ContainsFunc(f.familyItems(st.Item), f.Lasting.Has) {
				return malformed("refund", "the price of pool %q has items that last for a time, so its draws cannot be held with a refund", pt.Config.ID)
			}
		}
	}
	return nil
}

// pricesOf returns all prices of a pool, also those of bundles.
func pricesOf(pt *Pool) [][]Stack {
	all := slices.Clone(pt.price)
	for i := range pt.bundles {
		all = append(all, pt.bundles[i].price)
	}
	return all
}

// familyItems returns the items of a family, nil of anything else.
func (t *families) familyItems(num uint32) []uint32 {
	if f := t.Family(num); f != nil {
		return f.Items
	}
	return nil
}

// atOnce reports whether the consumes and transfers of a hold are for good at once.
func (c *Command) atOnce() bool {
	return !c.Hold.Refund && slices.ContainsFunc(c.Members, func(m Command) bool { return m.Kind == KindDraw })
}

// ask writes for how long it is held, and how, then what a group's does.
func (holdKind) ask(r *effects, c *Command, status Status) {
	how := uint64(0)
	for i, set := range [...]bool{c.Hold.Refund, c.Hold.One} {
		if set {
			how |= 1 << i
		}
	}
	r.w.Uint(uint64(c.Hold.For))
	r.w.Uint(how)
	atomicKind{}.ask(r, c, status)
}

func (holdKind) asked(a *asked, c *Command) {
	c.Hold = readHold(&a.Reader)
	atomicKind{}.asked(a, c)
}

func readHold(r *store.Reader) *HoldOf {
	h := &HoldOf{For: int64(r.Uint("for how long it is held", MaxHold))}
	how := r.Uint("how it is held", 3)
	h.Refund, h.One = how&1 != 0, how&2 != 0
	return h
}

// MembersOf begins to read the arguments of an event of a group, which may be held: where its members begin. alone
// is true if it was no group, but held alone.
func MembersOf(ev *store.Event) (r store.Reader, alone bool) {
	r = store.NewReader(ev.Asked)
	if Kind(ev.Kind) == KindHold {
		alone = readHold(&r).One
	}
	return r, alone
}

func (holdKind) same(c, o *Command) bool { return *c.Hold == *o.Hold }

func (holdKind) check(r *checks, c *Command) failure {
	if r.kept.open >= MaxOpenHolds {
		return failure{TooManyHolds, 0}
	}
	r.drawsHeld = !c.Hold.Refund
	for i := range c.Members {
		m := &c.Members[i]
		r.failed = i
		if p := m.who(&r.Sight); p < r.base && r.notes.holds(p) >= MaxPlayerHolds {
			return failure{TooManyHolds, 0}
		}
		if f := r.barred(m); f.status != OK {
			return f
		}
		if f := r.checkHeld(c, m); f.status != OK {
			return f
		}
	}
	return failure{}
}

// checkHeld is the check of a member of a hold.
func (r *checks) checkHeld(c, m *Command) failure {
	player := m.who(&r.Sight)
	switch {
	case m.Kind == KindDraw && c.Hold.Refund:
		_, f := r.mayBuy(m)
		if f.status == OK {
			f = r.heldMost(m.pool, player, uint64(m.Count))
		}
		return f
	case m.Kind == KindDraw:
		f := drawKind{}.check(r, m)
		if f.status == OK {
			f = r.heldMost(m.pool, player, uint64(m.Count))
		}
		return f
	case m.Kind == KindGrant:
		if _, f := r.come(m); f.status != OK {
			return f
		}
		return r.mayHold(player, m.stacks)
	case c.atOnce():
		return m.Kind.of().check(r, m)
	}
	if m.Kind == KindTransfer {
		m.whom(&r.Sight) // so that the receiver has a number
	}
	for i, st := range m.stacks {
		if !r.spend(player, st.Item, st.Quantity) {
			return r.lacking(len(m.stacks)-i, func(k int) Lack {
				st := m.stacks[i+k]
				return Lack{st.Item, r.balance(player, st.Item), st.Quantity}
			})
		}
		r.values.put(valueKey(player, store.HeldOf(st.Item)), r.balance(player, store.HeldOf(st.Item))+st.Quantity)
	}
	return failure{}
}

// mayHold checks that a player has room for some items, and notes them as held: no later member can spend them.
func (r *checks) mayHold(player uint32, items []Stack) failure {
	for _, st := range items {
		if r.has(player, st.Item)+st.Quantity > MaxQuantity {
			return failure{BalanceOverflow, st.Item}
		}
		held := store.HeldOf(st.Item)
		if c := r.t.CapOf(st.Item); c != nil {
			if f := r.fill(c, player, st.Quantity, false); f.status != OK {
				return f
			}
			continue // it counts as what draws give at most
		}
		r.values.put(valueKey(player, held), r.balance(player, held)+st.Quantity)
	}
	return failure{}
}

// heldMost checks that what draws can give at most can be held.
func (r *checks) heldMost(pt *Pool, player uint32, count uint64) failure {
	for _, g := range pt.Gains {
		held := store.HeldOf(g.Item)
		if r.has(player, g.Item)+g.Quantity*count > MaxQuantity {
			return failure{BalanceOverflow, g.Item}
		}
		if !r.t.Capped.Has(g.Item) {
			r.values.put(valueKey(player, held), r.balance(player, held)+g.Quantity*count)
		}
	}
	return failure{}
}
