package rules

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A catalog can say how many of an item a player can hold at most. What would be more is refused, cut off, or
// goes to the player's mailbox: see mail.go. A catalog that lowers the most takes nothing away: who holds more
// gets no more.
//
// Whether a command succeeds does not depend on what is drawn. So its first half looks at the largest outcome:
// beside the balance without what draws give, it keeps how much more the player can hold at most. Both are at
// most the cap, and every gain raises both, so whatever is drawn lies between them. Draws, grants and rewards are
// cut or mailed in the second half, where what the player holds is known. A transfer is never cut.
//
// What counters and budgets count of a gain is what was given, also what is beyond the cap. So a draw that fills
// up a balance makes no later fact smaller.

// Cap is the most of an item that a player can hold.
type Cap struct {
	Item   uint32
	Most   uint64
	Beyond catalog.Beyond
}

// capping is the caps of a catalog.
type capping struct {
	Capped NumSet
	caps   []Cap
	capOf  map[uint32]int // by item: the place in caps
	mail   uint32         // number of the first counter of mailName; noCounter: nobody ever had a mailbox
}

// capping compiles caps, and numbers the counters of mail.
func (d *definer) capping() {
	t := &d.t.capping
	t.capOf = map[uint32]int{}
	mails := false
	for i := range d.t.Catalog.Items {
		it := &d.t.Catalog.Items[i]
		if it.Most == 0 {
			continue
		}
		num := d.t.ItemNum[it.ID]
		t.Capped.Add(num)
		t.capOf[num] = len(t.caps)
		t.caps = append(t.caps, Cap{num, it.Most, it.Beyond})
		mails = mails || it.Beyond.Do == catalog.BeyondMail
	}
	if _, named := d.state.CounterNum(mailName); named || mails {
		t.mail = d.counters(mailName, mailWidth)
		d.deadlines()
	}
}

// CapOf returns the cap of an item, nil if it has none.
func (t *capping) CapOf(item uint32) *Cap {
	if !t.Capped.Has(item) {
		return nil
	}
	return &t.caps[t.capOf[item]]
}

// cappedOf returns which of some gains have a cap.
func (t *capping) cappedOf(gains []Stack) (some []Stack) {
	for _, st := range gains {
		if t.Capped.Has(st.Item) {
			some = append(some, st)
		}
	}
	return some
}

// room returns how many more a player can hold who holds some.
func (c *Cap) room(have uint64) uint64 { return c.Most - min(have, c.Most) }

// Gained returns what a balance of an item is after a gain, if that does not fail.
func (t *capping) Gained(item uint32, have, q uint64) uint64 {
	if c := t.CapOf(item); c != nil && c.Beyond.Do != catalog.BeyondRefuse {
		q = min(q, c.room(have))
	}
	return have + q
}

// fill adds a gain of a capped item to what a player can hold, in the first half of a command. The gain is sure,
// or it is the most that draws can give.
func (r *accounts) fill(c *Cap, player uint32, q uint64, sure bool) failure {
	key := valueKey(player, c.Item)
	low := r.balance(player, c.Item)
	head, _ := r.heads.get(key)
	held := r.balance(player, store.HeldOf(c.Item))
	if room := c.room(low + head + held); q > room {
		switch {
		case c.Beyond.Do == catalog.BeyondRefuse, c.Beyond.Do == catalog.BeyondCut && r.moves:
			return failure{MostReached, c.Item}
		case c.Beyond.Do == catalog.BeyondMail && !r.reserve(player, c.Item, q-room):
			return failure{MailboxFull, c.Item}
		}
	}
	high := low + head + min(q, c.room(low+head+held))
	if sure {
		low += min(q, c.room(low+held))
		r.values.put(key, low)
		r.given(q)
	}
	r.heads.put(key, high-low)
	return failure{}
}

// mayFill reports whether a player can get the most that a draw can give, after all that the event has given.
func (r *timing) mayFill(pt *Pool, player uint32) bool {
	letters := 0
	for _, g := range pt.capped {
		c := r.t.CapOf(g.Item)
		switch over := g.Quantity > c.room(r.has(player, g.Item)); {
		case over && c.Beyond.Do == catalog.BeyondRefuse:
			return false
		case over && c.Beyond.Do == catalog.BeyondMail:
			letters++
		}
	}
	return letters == 0 || len(r.mailbox(player).all)+letters <= MaxMail
}

// within returns how much of a gain of the current player the cap leaves, and writes what becomes of the rest.
func (r *timing) within(c *Cap, q uint64) uint64 {
	fits := min(q, c.room(r.has(r.player, c.Item)))
	switch rest := q - fits; {
	case rest == 0:
	case c.Beyond.Do == catalog.BeyondCut:
		r.beyond(c.Item, rest, store.Cut)
	case c.Beyond.Do == catalog.BeyondMail:
		r.deliver(c, rest)
		r.beyond(c.Item, rest, store.Mailed)
	default:
		panic("rules: a command gives more than was checked")
	}
	return fits
}

// HowText returns what became of what was beyond a cap, from an effect.
func HowText(how []byte) string {
	switch store.How(how[0]) {
	case store.Cut:
		return "cut"
	case store.Mailed:
		return "mailed"
	case store.Gone:
		return "gone"
	case store.Missing:
		return "missing"
	}
	return fmt.Sprint(how[0])
}

// beyond writes what became of what the current player does not get.
func (r *timing) beyond(item uint32, q uint64, how store.How) {
	r.over++
	r.w.More(store.Beyond, uint64(item), q)
	r.w.Buf = append(r.w.Buf, byte(how))
}
