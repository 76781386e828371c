package look

import (
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// MaxEntrants is the most entrants of a round that are shown at a time.
const MaxEntrants = 1000

// Round returns a round with at most some of its entrants, from one on. ok is false if there is none with this number.
func Round(s rules.State, t *rules.Tables, number, from uint64, most int) (v view.Round, ok bool) {
	o, ok := rules.RoundAt(s, t, number)
	if !ok {
		return v, false
	}
	v = round(s, o)
	for e := range rules.EntrantsOf(s, number, from) {
		if len(v.Joined) >= most {
			break
		}
		who := view.Entrant{Player: s.PlayerID(e.Player), Tickets: e.Tickets}
		for _, st := range e.Held {
			who.Held = append(who.Held, view.Held{Item: s.ItemID(st.Item), Quantity: st.Quantity})
		}
		v.Joined = append(v.Joined, who)
	}
	return v, true
}

// Rounds returns at most some of the rounds that are open, from one on, and how many are.
func Rounds(s rules.State, t *rules.Tables, from, most int) (all []view.Round, count int) {
	for number := range rules.OpenRounds(s) {
		if count++; count <= from || len(all) >= most {
			continue
		}
		if o, ok := rules.RoundAt(s, t, number); ok {
			all = append(all, round(s, o))
		}
	}
	return all, count
}

func round(s rules.State, o rules.RoundNow) view.Round {
	v := view.Round{Name: o.Name, Number: o.Number, State: o.State, Entrants: o.Entrants, Tickets: o.Tickets, Opened: int64(o.Opened) - s.Back()}
	if o.Until > 0 {
		v.Until = int64(o.Until) - s.Back()
	}
	if o.ByPlayer {
		v.Opener = s.PlayerID(o.Opener)
	}
	for _, w := range o.Winners {
		v.Winners = append(v.Winners, view.Winner{Player: s.PlayerID(w.Player), Missed: w.Missed})
	}
	return v
}
