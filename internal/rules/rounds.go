package rules

import (
	"iter"
	"math"

	"github.com/kuji-dev/kuji/internal/store"
)

// What readers see of rounds.

// RoundNow is a round for readers.
type RoundNow struct {
	Name              string
	Number            uint64
	State             string // open, settled or returned
	Opener            uint32 // number of the player, with ByPlayer
	ByPlayer          bool
	Opened, Until     uint64 // steady times; Until 0: none, or when a period ends: see RoundAt
	Entrants, Tickets uint64
	Winners           []Won
}

// Won is a winner of a round.
type Won struct {
	Player uint32
	Missed bool
}

// EntrantNow is an entrant of a round for readers.
type EntrantNow struct {
	Player  uint32
	Tickets uint64
	Held    []Stack
}

var roundStates = [...]string{roundOpen: "open", roundSettled: "settled", roundReturned: "returned", roundForgotten: "settled"}

func (o *round) now() RoundNow {
	v := RoundNow{Name: o.name, Number: o.number, State: roundStates[o.is], Opener: o.opener, ByPlayer: o.opener != noPlayer,
		Opened: o.opened, Until: o.until, Entrants: o.entrants, Tickets: o.tickets}
	for _, w := range o.winners {
		v.Winners = append(v.Winners, Won{w.player, w.missed})
	}
	return v
}

// RoundAt returns a round. ok is false if there is none with this number. One that the calendar opened is open until
// the end of its period, by the catalog in force.
func RoundAt(s State, t *Tables, number uint64) (v RoundNow, ok bool) {
	value, ok := s.Record(key{recordRound}.num(number))
	if !ok {
		return v, false
	}
	o := round{number: number}
	o.read(value)
	if o.opener != noPlayer {
		o.opener = s.Whose(o.opener)
	}
	for i := range o.winners {
		o.winners[i].player = s.Whose(o.winners[i].player)
	}
	if v = o.now(); o.every != 0 && o.is == roundOpen && o.until == 0 {
		v.Until = uint64(max(t.Zone.endOf(o.every, o.period)+s.Back(), 1))
	}
	return v, true
}

// RoundIn returns the round that an effect writes, without the end of its period. ok is false if it writes none.
func RoundIn(e *store.Effect) (v RoundNow, ok bool) {
	if e.Verb != store.Put || e.N != 9 || e.Bytes[0] != recordRound {
		return v, false
	}
	o := round{number: key(e.Bytes[:e.N]).last()}
	o.read(e.Bytes[e.N:])
	return o.now(), true
}

// LeftIn reports whether after an effect, the player whom the effects are about has nothing more to do with a round:
// what was held has gone back, or is gone.
func LeftIn(e *store.Effect) bool {
	return e.Verb == store.Drop && len(e.Bytes) == 13 && e.Bytes[0] == recordPlays
}

// OpenRounds iterates over the numbers of the rounds that are open, in the order of their names and numbers.
func OpenRounds(s State) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		from := key{recordOpen}
		for k := range s.Records(from, from.after()) {
			if !yield(key(k).last()) {
				return
			}
		}
	}
}

// OpenByName returns how many rounds of each name are open.
func OpenByName(s State) map[string]int {
	all := map[string]int{}
	from := key{recordOpen}
	for k := range s.Records(from, from.after()) {
		all[string(k[1:len(k)-9])]++
	}
	return all
}

// EntrantsOf iterates over the entrants of a round, from one on.
func EntrantsOf(s State, number, from uint64) iter.Seq[EntrantNow] {
	return func(yield func(EntrantNow) bool) {
		first := key{recordEntrant}.num(number)
		end := first.after()
		for _, value := range s.Records(first.short(uint32(min(from, math.MaxUint32))), end) {
			var e entrant
			e.read(value)
			if !yield(EntrantNow{s.Whose(e.joined), e.tickets, e.held}) {
				return
			}
		}
	}
}
