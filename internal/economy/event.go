package economy

// Event is the fact that a command produced, outcome included. Applying it
// involves no choice. Strings of a decoded event alias the buffer that it was
// decoded from.
type Event struct {
	Kind    Kind
	Status  Status
	ID      string // request id; empty: none
	Player  Ref    // Draw, Grant, Consume; the giver of a Transfer
	To      Ref    // the receiver of a Transfer
	Pool    Ref    // Draw
	Count   uint32 // Draw: how many
	Items   []ItemRef
	Choices []Choice // OK Draw: the chosen entries, Count chains of them
	// Quantities holds the chosen quantities of ranged rewards, in the order
	// of Choices and, within one, of the reward's ranged items.
	Quantities []uint64
	// Subject is what a status other than OK is about: the pool's number, the
	// item's number or, for UnknownItem, the index in Items.
	Subject uint32
	Failed  uint32  // Atomic with a status other than OK: the index of the member that failed
	Members []Event // Atomic
	Catalog []byte  // Catalog: the canonical form

	prepared *Prepared // Catalog, when decided and not decoded

	// Of an answer that was kept with a digest: see answer.go.
	digested bool
	digest   digest
	name     string // what Subject says of an unknown pool or item
}

// Ref names a player, pool or item: by number when it is known to the state
// before the event, by id when it is not.
type Ref struct {
	Num   uint32
	Known bool
	ID    string // always set by Decide; otherwise only when not Known
}

// ItemRef is a quantity of an item by reference.
type ItemRef struct {
	Ref
	Quantity uint64
}

// Choice is one step of a draw: an entry of the pool at hand.
type Choice struct {
	Entry  uint32
	Nested bool  // the reward is a pool, and the next Choice is an entry of it
	Ranged uint8 // how many of Quantities belong to this entry
}

// reset empties ev for another use, keeping its memory.
func (ev *Event) reset() {
	ev.Kind, ev.Status, ev.ID = 0, OK, ""
	ev.Player, ev.To, ev.Pool, ev.Count = Ref{}, Ref{}, Ref{}, 0
	ev.Items, ev.Choices, ev.Quantities = ev.Items[:0], ev.Choices[:0], ev.Quantities[:0]
	ev.Subject, ev.Failed = 0, 0
	ev.Members, ev.Catalog = ev.Members[:0], nil
	ev.digested, ev.name, ev.prepared = false, "", nil
}

// Draws returns how many single draws an event that ended OK holds.
func (ev *Event) Draws() uint64 {
	if ev.Status != OK {
		return 0
	}
	n := uint64(ev.Count)
	for i := range ev.Members {
		n += uint64(ev.Members[i].Count)
	}
	return n
}

// member returns one more member, emptied, reusing memory.
func (ev *Event) member() *Event {
	n := len(ev.Members)
	if n < cap(ev.Members) {
		ev.Members = ev.Members[:n+1]
	} else {
		ev.Members = append(ev.Members, Event{})
	}
	m := &ev.Members[n]
	m.reset()
	return m
}
