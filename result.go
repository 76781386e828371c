package kuji

import (
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// Status says how a request ended. Every status but OK is an outcome that depends on the
// state: it is logged, it changed nothing, and its request id answers the same from then
// on. Its String is snake_case.
type Status uint8

// The statuses.
const (
	OK                Status = 0   // carried out
	SoldOut           Status = 1   // fewer outcomes in stock than asked for, in the worst case of nested pools; Subject is the pool asked for
	LimitReached      Status = 2   // a player limit of the pool; Subject is the pool
	InsufficientItems Status = 3   // the player holds too few; Subject is the item
	NotStarted        Status = 4   // the pool's start lies ahead; Subject is the pool
	Ended             Status = 5   // the pool's end has passed; Subject is the pool
	UnknownPool       Status = 6   // not in the catalog; Subject is the id asked for
	UnknownItem       Status = 7   // not in the catalog; Subject is the id asked for
	CountTooLarge     Status = 8   // more draws than the pool's max_count; Subject is the pool
	BalanceOverflow   Status = 9   // a balance would pass MaxQuantity, for a Draw by the most that it can give; Subject is the item
	Aborted           Status = 10  // member of an Atomic: undone, or not tried, because another member failed
	Refused           Status = 255 // in DoAll only: not carried out and not logged; Err says why
)

// String returns the status in snake_case.
func (s Status) String() string {
	if s == Refused {
		return "refused"
	}
	return rules.Status(s).String()
}

// Result is the answer to one request.
type Result struct {
	Status Status
	// Replayed reports that the request id had been answered before and this is the first
	// answer again.
	Replayed bool
	Err      error  // in DoAll only, with Refused: the *Error that Do returns for the request
	Subject  string // what a status other than OK is about: an id, as Status says
	// Outcomes of a Draw, in order, as many as its Count; nil otherwise. Read-only: results
	// may share their memory. Who keeps them for long may keep 8 KiB of others with them.
	Outcomes []Outcome
	// Members holds the results of an Atomic, one for each member, in order.
	Members []Result
	Receipt Receipt
}

// Outcome is what one draw gave. Outcomes are read-only: they may share their memory.
type Outcome struct {
	Entry string  `json:"entry"`           // the id of the entry that was drawn, in the pool asked for
	Items []Stack `json:"items,omitempty"` // what the player got; nil for nothing
	// Via names the entries that led to Items when the entry's reward is another pool:
	// "pool/entry" for each nested pool, outermost first.
	Via []string `json:"via,omitempty"`
}

// Receipt is what proves a result: with it and the log anybody can find the batch, see the
// catalog that was in force, and, once the epoch's seed has been revealed, compute the draw
// again.
type Receipt struct {
	Realm          string
	Position       uint64   // of the batch in the realm's log, from 1
	Index          int      // of the event in its batch, from 0
	Time           int64    // the batch's time stamp, Unix milliseconds
	CatalogVersion uint64   // in force when the outcome was chosen; 0: none yet
	Epoch          uint64   // the writer epoch whose seed the outcome was drawn from
	Commitment     [32]byte // SHA-256 commitment to that seed, logged before the epoch's first draw
}

// String of a Result, for logs and tests: the status, and what it is about.
func (r Result) String() string {
	if r.Subject != "" {
		return fmt.Sprintf("%v (%s) at %d", r.Status, r.Subject, r.Receipt.Position)
	}
	return fmt.Sprintf("%v at %d", r.Status, r.Receipt.Position)
}

// describe fills in what an event that was applied says, but for its receipt.
func describe(s *store.State, o *outcomes, ev *store.Event, res *Result) error {
	res.Status = Status(ev.Status)
	if ev.Status != 0 {
		res.Subject = subject(s, ev)
	}
	if rules.Kind(ev.Kind) != rules.KindAtomic {
		res.Outcomes = o.next(s, ev.Changes(), nil)
		return nil
	}
	asked := store.NewReader(ev.Asked)
	failed := -1
	if ev.Status != 0 {
		failed = int(asked.Uint("the failed member", MaxAtomic))
	}
	res.Members = make([]Result, asked.Uint("the number of members", MaxAtomic))
	for i := range res.Members {
		switch {
		case i == failed:
			res.Members[i].Status, res.Members[i].Subject = res.Status, res.Subject
		case failed >= 0:
			res.Members[i].Status = Aborted
		}
	}
	o.next(s, ev.Changes(), res.Members)
	return asked.Err()
}

// subject returns the id that a status other than OK is about.
func subject(s *store.State, ev *store.Event) string {
	switch at := ev.Subject; {
	case at.ID != "":
		return at.ID
	case Status(ev.Status) == InsufficientItems, Status(ev.Status) == BalanceOverflow, Status(ev.Status) == UnknownItem:
		return s.ItemID(at.Num)
	default:
		return s.PoolID(at.Num)
	}
}

// outcomes reads what draws gave from the effects of events. What it has made of an entry is
// kept: most entries give the same each time, and then results share it.
type outcomes struct {
	known [][]*entry // by pool and entry number
	slab  slab

	// Of the command at hand:
	asked uint32    // the pool that was asked for; noPool before its first effect
	all   []Outcome // of the draws that ended
	// Of the draw at hand:
	open  *entry // the last one taken; nil: there is no draw
	draw  Outcome
	gains []gain
	last  *entry // of the last draw that ended, if its outcome is that of the entry
}

// gain is a quantity of an item by number.
type gain struct {
	item     uint32
	quantity uint64
}

// entry is what results say of an entry.
type entry struct {
	via     [1]string // "pool/entry"
	gave    bool      // gains is what it gave the first time
	gains   []gain
	outcome [1]Outcome // then, of a draw that came to it directly
}

const noPool = 1<<32 - 1

// next returns what the draws of an event gave, nil if it made none. Of a group it fills in
// the members instead. A draw begins where one of an entry is taken from the pool that was
// asked for, which is the first; what is taken from others is on its way.
func (o *outcomes) next(s *store.State, effects store.Reader, members []Result) []Outcome {
	var e store.Effect
	pool, member := uint32(noPool), -1
	o.asked = noPool
	for effects.Next(&e) {
		switch e.Verb {
		case store.Member:
			if some := o.end(s); member >= 0 {
				members[member].Outcomes = some
			}
			if member++; member >= len(members) {
				return nil // of a damaged snapshot
			}
			o.asked = noPool
		case store.Pool:
			if pool = e.N; o.asked == noPool {
				o.asked = pool
			}
		case store.Take:
			o.take(s, pool, e.N)
		case store.Gain:
			if o.open != nil {
				o.gains = append(o.gains, gain{e.N, e.Value})
			}
		}
	}
	some := o.end(s)
	if member >= 0 && member < len(members) {
		members[member].Outcomes = some
		return nil
	}
	return some
}

// take goes one step on in a draw, or begins one.
func (o *outcomes) take(s *store.State, pool, num uint32) {
	e := o.entry(s, pool, num)
	if e == nil {
		return // of a damaged snapshot
	}
	switch {
	case pool == o.asked:
		o.endDraw(s)
		o.draw.Entry = e.outcome[0].Entry
	case o.draw.Via == nil:
		o.draw.Via = e.via[:]
	default:
		o.draw.Via = append(o.draw.Via, e.via[0])
	}
	o.open = e
}

// entry returns what is known of an entry, nil for one that there is not.
func (o *outcomes) entry(s *store.State, pool, num uint32) *entry {
	if int(pool) < len(o.known) && int(num) < len(o.known[pool]) && o.known[pool][num] != nil {
		return o.known[pool][num]
	}
	id := s.EntryID(pool, num)
	if id == "" {
		return nil
	}
	for int(pool) >= len(o.known) {
		o.known = append(o.known, nil)
	}
	entries := &o.known[pool]
	for int(num) >= len(*entries) {
		*entries = append(*entries, nil)
	}
	(*entries)[num] = &entry{via: [1]string{s.PoolID(pool) + "/" + id}, outcome: [1]Outcome{{Entry: id}}}
	return (*entries)[num]
}

// endDraw ends the draw at hand, if there is one.
func (o *outcomes) endDraw(s *store.State) {
	e := o.open
	if e == nil {
		return
	}
	if !e.gave {
		e.gave, e.gains, e.outcome[0].Items = true, slices.Clone(o.gains), stacks(s, o.gains)
	}
	o.last = nil
	if slices.Equal(e.gains, o.gains) {
		o.draw.Items = e.outcome[0].Items
		if o.draw.Via == nil {
			o.last = e
		}
	} else {
		o.draw.Items = stacks(s, o.gains)
	}
	o.all = append(o.all, o.draw)
	o.open, o.draw, o.gains = nil, Outcome{}, o.gains[:0]
}

func stacks(s *store.State, gains []gain) []Stack {
	if len(gains) == 0 {
		return nil
	}
	items := make([]Stack, len(gains))
	for i, g := range gains {
		items[i] = Stack{Item: s.ItemID(g.item), Quantity: g.quantity}
	}
	return items
}

// end ends the command at hand and returns what its draws gave.
func (o *outcomes) end(s *store.State) []Outcome {
	o.endDraw(s)
	var some []Outcome
	switch {
	case len(o.all) == 0:
	case len(o.all) == 1 && o.last != nil:
		some = o.last.outcome[:]
	default:
		some = append(o.slab.take(len(o.all)), o.all...)
	}
	clear(o.all)
	o.all = o.all[:0]
	return some
}

// slab hands out memory for outcomes from larger pieces: a piece for each result would take
// longer to make and to collect. Who keeps one part keeps the piece that it is of.
type slab struct{ rest []Outcome }

// slabOutcomes is how many a piece has: 8 KiB, a size of which nothing is wasted.
const slabOutcomes = 128

// take returns an empty slice with room for n outcomes. Many are a piece of their own.
func (s *slab) take(n int) []Outcome {
	if n > slabOutcomes/4 {
		return make([]Outcome, 0, n)
	}
	if len(s.rest) < n {
		s.rest = make([]Outcome, slabOutcomes)
	}
	some := s.rest[:0:n]
	s.rest = s.rest[n:]
	return some
}
