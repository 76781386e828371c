package rules

import (
	"cmp"
	"math"
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
)

// A player's mailbox has what was beyond a cap: see most.go. A letter in it is some of an item, and the moment at
// which it goes (steady time, milliseconds). Letters stand in counters of the player, in no order: triples of
// when it goes, 1 + the number of the item, and how many. A free triple is zero three times. What is mailed
// joins the letter with the same item that goes at the same moment.
//
// A mailbox has at most MaxMail letters. A command that could need more fails, whatever it draws: its first half
// reserves one for each item that it might mail. Collect gains what fits, from the letters that go first.

// MaxMail is the most letters in a player's mailbox.
const MaxMail = 100

const (
	mailName    = "/mail"
	letterWidth = 3
	mailWidth   = letterWidth * MaxMail
)

// Letter is some of an item in a mailbox.
type Letter struct {
	Until    uint64 // steady time; 0: reserved
	Item     uint32
	Quantity uint64
	place    uint32 // which triple of counters it stands in
}

// mailbox is a player's letters at this point of the command.
type mailbox struct {
	player uint32
	all    []Letter // ascending by Until, then by place
}

// mailing is the mailboxes that the command at hand has to do with.
type mailing struct {
	heads    overlay   // how much more of a capped item a player can hold than is sure; by valueKey
	opened   int       // how many of boxes there are; the others are memory
	boxes    []mailbox // in the order of the first use
	collects []Letter  // what a Collect takes of letters
}

func (m *mailing) resetMail() { m.opened = 0 }

// mailbox returns a player's mailbox.
func (r *accounts) mailbox(player uint32) *mailbox {
	for i := range r.boxes[:r.opened] {
		if b := &r.boxes[i]; b.player == player {
			return b
		}
	}
	if r.opened == len(r.boxes) {
		r.boxes = append(r.boxes, mailbox{})
	}
	b := &r.boxes[r.opened]
	r.opened++
	b.player, b.all = player, b.all[:0]
	if r.t.mail != noCounter {
		r.pairs = r.state.Counters(player, r.t.mail, r.t.mail+mailWidth-1, r.pairs[:0])
		b.all = r.t.letters(r.pairs, b.all)
	}
	return b
}

// letters appends the letters in some counters of mail, all ascending, to into.
func (t *capping) letters(counters []counterValue, into []Letter) []Letter {
	for i := 0; i+2 < len(counters); i += letterWidth { // all of a triple are there, or none
		into = append(into, Letter{counters[i].Value, uint32(counters[i+1].Value - 1), counters[i+2].Value, (counters[i].Counter - t.mail) / letterWidth})
	}
	slices.SortStableFunc(into, func(a, b Letter) int { return cmp.Compare(a.Until, b.Until) })
	return into
}

// Mail returns the letters in a player's counters, which are ascending: those that go first first.
func (t *capping) Mail(counters []store.CounterValue) []Letter {
	if t.mail == noCounter {
		return nil
	}
	first, _ := searchCounter(counters, t.mail)
	end, _ := searchCounter(counters, t.mail+mailWidth)
	return t.letters(counters[first:end], nil)
}

// reserve makes room for the letter of an item that the command may mail, with the most that may come into it, and
// reports whether there is any. What joins a letter of an earlier command needs no more.
func (r *accounts) reserve(player, item uint32, q uint64) bool {
	b := r.mailbox(player)
	i := slices.IndexFunc(b.all, func(l Letter) bool { return l.Until == 0 && l.Item == item })
	if i < 0 {
		if i = len(b.all); i == MaxMail {
			return false
		}
		b.all = append(b.all, Letter{Item: item})
	}
	b.all[i].Quantity += min(q, MaxQuantity+1)
	return b.all[i].Quantity <= MaxQuantity
}

// deliver writes that some of an item goes to the current player's mailbox.
func (r *timing) deliver(c *Cap, q uint64) {
	r.post(uint64(r.steady)+uint64(c.Beyond.Mail), c.Item, q)
}

// post is deliver for a letter that goes at a moment.
func (r *timing) post(until uint64, item uint32, q uint64) {
	b := r.mailbox(r.player)
	for i := range b.all {
		if l := &b.all[i]; l.Until == until && l.Item == item && l.Quantity+q <= MaxQuantity {
			l.Quantity += q
			r.w.Change(store.Set, r.t.mail+letterWidth*l.place+2, l.Quantity)
			return
		}
	}
	if len(b.all) == MaxMail {
		panic("rules: a command mails more than was checked")
	}
	l := Letter{until, item, q, b.free()}
	i, _ := slices.BinarySearchFunc(b.all, until+1, func(l Letter, until uint64) int { return cmp.Compare(l.Until, until) })
	b.all = slices.Insert(b.all, i, l)
	r.writeLetter(&l)
	r.comes(r.player, until)
}

// free returns the lowest triple that no letter stands in.
func (b *mailbox) free() (place uint32) {
	var taken [(MaxMail + 63) / 64]uint64
	for i := range b.all {
		taken[b.all[i].place/64] |= 1 << (b.all[i].place % 64)
	}
	for taken[place/64]>>(place%64)&1 == 1 {
		place++
	}
	return place
}

// writeLetter writes a letter that came, or one that is empty and goes.
func (r *timing) writeLetter(l *Letter) {
	at, v := r.t.mail+letterWidth*l.place, [letterWidth]uint64{}
	if l.Quantity > 0 {
		v = [letterWidth]uint64{l.Until, uint64(l.Item) + 1, l.Quantity}
	}
	for i := range v {
		r.w.Change(store.Set, at+uint32(i), v[i])
	}
}

// Letters have deadlines: see due.go.

type mailSource struct{}

func (mailSource) earliest(r *effects, player uint32) uint64 {
	if b := r.mailbox(player); len(b.all) > 0 {
		return b.all[0].Until
	}
	return math.MaxUint64
}

func (mailSource) settle(r *effects, player uint32) {
	b, n := r.mailbox(player), 0
	for ; n < len(b.all) && b.all[n].Until <= uint64(r.steady); n++ {
		l := &b.all[n]
		r.beyond(l.Item, l.Quantity, store.Gone)
		l.Quantity = 0
		r.writeLetter(l)
		r.gone(player, l.Until)
	}
	b.all = slices.Delete(b.all, 0, n)
}

// collectKind is a Collect: a player gets what fits from the mailbox.
type collectKind struct{ noted }

func (collectKind) alone() string {
	return "an atomic group cannot collect mail: what fits would depend on what the group draws"
}

// check finds what fits. What the catalog does not have any more stays where it is.
func (collectKind) check(r *checks, c *Command) failure {
	player := c.who(&r.Sight)
	b := r.mailbox(player)
	for i := range b.all {
		l := b.all[i]
		if int(l.Item) >= len(r.t.ItemAt) || !r.t.Has(r.state.ItemID(l.Item)) {
			continue
		}
		have := r.balance(player, l.Item)
		fits := min(l.Quantity, MaxQuantity-r.has(player, l.Item))
		if c := r.t.CapOf(l.Item); c != nil {
			fits = min(fits, c.room(r.has(player, l.Item)))
		}
		if fits == 0 || !r.placeUnits(player, l.Item, fits) {
			continue
		}
		r.values.put(valueKey(player, l.Item), have+fits)
		r.given(fits) // quests that claim themselves may follow
		l.Quantity = fits
		r.collects = append(r.collects, l)
	}
	if len(r.collects) == 0 {
		return failure{NothingToCollect, 0}
	}
	return failure{}
}

func (collectKind) write(r *drawing, c *Command) {
	r.turn(c.who(&r.Sight))
	b := r.mailbox(r.player)
	for _, taken := range r.collects {
		i := slices.IndexFunc(b.all, func(l Letter) bool { return l.place == taken.place })
		l := &b.all[i]
		r.change(store.Gain, l.Item, taken.Quantity)
		if l.Quantity -= taken.Quantity; l.Quantity > 0 {
			r.w.Change(store.Set, r.t.mail+letterWidth*l.place+2, l.Quantity)
			continue
		}
		r.writeLetter(l)
		r.gone(r.player, l.Until)
		b.all = slices.Delete(b.all, i, i+1)
	}
}
