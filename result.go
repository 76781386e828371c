package kuji

import (
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// Status says how a request ended. Every status but OK is a refusal that depends on the state. It
// is logged and changes nothing, and its request id gives the same answer from then on.
type Status uint8

// The statuses.
const (
	OK                Status = 0   // carried out
	SoldOut           Status = 1   // too few outcomes in stock, assuming the worst case in nested pools; Subject is the pool of the request
	LimitReached      Status = 2   // the player has reached a limit of the pool; Subject is the pool
	InsufficientItems Status = 3   // the player holds too few; Subject is the item
	NotStarted        Status = 4   // the pool has not started yet; Subject is the pool
	Ended             Status = 5   // the pool has ended; Subject is the pool
	UnknownPool       Status = 6   // the catalog has no such pool; Subject is its id
	UnknownItem       Status = 7   // the catalog has no such item; Subject is its id
	CountTooLarge     Status = 8   // more draws than the pool's max_count; Subject is the pool
	BalanceOverflow   Status = 9   // a balance would exceed MaxQuantity, for a Draw if it gave the most it can; Subject is the item
	Aborted           Status = 10  // this member of an Atomic was undone or not tried because another one failed
	Refused           Status = 255 // in DoAll and StartAll only: not carried out and not logged; Err says why
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
	// Replayed reports that this is the first answer to the request id again.
	Replayed bool
	Err      error  // with Refused only: the *Error that Do would return for the request
	Subject  string // the id that a status other than OK is about: see Status
	// Outcomes of a Draw, in order, as many as its Count; otherwise nil. They are read-only:
	// results may share their memory. To keep one for long may keep 8 KiB of others alive.
	Outcomes []Outcome
	// Members has one result for each member of an Atomic, in order.
	Members []Result
	Receipt Receipt
}

// Outcome is what one draw gave. It is read-only: outcomes may share their memory.
type Outcome struct {
	Entry string  `json:"entry"`           // id of the entry that was drawn from the pool of the request
	Items []Stack `json:"items,omitempty"` // what the player got; nil: nothing
	// Via names the entries that led to Items if the drawn entry's reward is another pool:
	// "pool/entry" for each nested pool, outermost first.
	Via []string `json:"via,omitempty"`
}

// Receipt proves a result. With it and the log anybody can find the batch and see the catalog that
// was in force. Once the epoch's seed is revealed, they can compute the draw again.
type Receipt struct {
	Realm          string
	Position       uint64   // of the batch in the realm's log, from 1
	Index          int      // of the event in its batch, from 0
	Time           int64    // the batch's time stamp, Unix milliseconds
	CatalogVersion uint64   // in force when the outcome was chosen; 0: none yet
	Epoch          uint64   // the writer epoch whose seed chose the outcome
	Commitment     [32]byte // to that seed, by SHA-256; logged before the epoch's first draw
}

// String returns the status, what it is about and the position, for logs and tests.
func (r Result) String() string {
	if r.Subject != "" {
		return fmt.Sprintf("%v (%s) at %d", r.Status, r.Subject, r.Receipt.Position)
	}
	return fmt.Sprintf("%v at %d", r.Status, r.Receipt.Position)
}

// describe fills in the result of an event that was applied, except for its receipt.
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

// outcomes reads the outcomes of draws from the effects of events. It keeps what it built for each
// entry: most entries give the same every time, so results can share it.
type outcomes struct {
	known [][]*entry // by pool and entry number
	slab  slab

	// Of the current command:
	asked uint32    // the pool of the request; noPool before the first effect
	all   []Outcome // of its finished draws
	// Of the current draw:
	open  *entry // the last entry taken; nil: there is no draw
	draw  Outcome
	gains []gain
	last  *entry // of the last finished draw, if its outcome is the entry's
}

// gain is a quantity of an item, by the item's number.
type gain struct {
	item     uint32
	quantity uint64
}

// entry is what results say about an entry.
type entry struct {
	via     [1]string // "pool/entry"
	gave    bool      // gains is set, to what it gave the first time
	gains   []gain
	outcome [1]Outcome // of a draw that gave gains and went through no nested pool
}

const noPool = 1<<32 - 1

// next returns the outcomes of an event's draws, nil if it made none. For a group it fills in the
// members instead. The first pool that an event takes from is the pool of the request. A draw
// begins with each entry taken from that pool; entries taken from other pools are further steps of
// the same draw.
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
				return nil // a damaged snapshot
			}
			o.asked = noPool
		case store.Pool:
			if pool = e.N; o.asked == noPool {
				o.asked = pool
			}
		case store.Take:
			o.step(s, pool, e.N)
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

// step goes one entry further in the current draw, or begins the next one.
func (o *outcomes) step(s *store.State, pool, num uint32) {
	e := o.entry(s, pool, num)
	if e == nil {
		return // a damaged snapshot
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

// entry returns what is known about an entry, nil if there is no such entry.
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

// endDraw ends the current draw, if there is one.
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

// end ends the current command and returns the outcomes of its draws.
func (o *outcomes) end(s *store.State) []Outcome {
	o.endDraw(s)
	var some []Outcome
	switch {
	case len(o.all) == 0:
	case len(o.all) == 1 && o.last != nil:
		some = o.last.outcome[:]
	default:
		some = append(o.slab.get(len(o.all)), o.all...)
	}
	clear(o.all)
	o.all = o.all[:0]
	return some
}

// slab hands out memory for outcomes from larger pieces: allocating for each result costs more
// time, in the collector too. A slice keeps its whole piece alive.
type slab struct{ rest []Outcome }

// slabOutcomes is the number of outcomes in a piece. They take 8 KiB, a size class without waste.
const slabOutcomes = 128

// get returns an empty slice with capacity n. A large one gets memory of its own.
func (s *slab) get(n int) []Outcome {
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
