package message

import (
	"strings"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// DefaultEntrants is how many entrants of a round an answer has if the request does not say it.
const DefaultEntrants = 100

// Round makes the message of a round without its entrants, or nil of none.
func Round(v *kuji.RoundView) *kujiv1.Round {
	if v == nil {
		return nil
	}
	return &kujiv1.Round{
		Round: v.Name, Number: v.Number, State: kujiv1.RoundState(kujiv1.RoundState_value["ROUND_STATE_"+strings.ToUpper(v.State)]),
		Entrants: v.Entrants, Tickets: v.Tickets, Opener: v.Opener, OpenedUnixMs: v.Opened, UntilUnixMs: v.Until,
		Winners: Each(v.Winners, func(w *kuji.WinnerView) *kujiv1.Winner {
			return &kujiv1.Winner{Player: w.Player, Missed: w.Missed}
		}),
	}
}

// Entrant makes the message of a player who has joined a round.
func Entrant(v *kuji.EntrantView) *kujiv1.Entrant {
	return &kujiv1.Entrant{Player: v.Player, Tickets: v.Tickets, Held: Each(v.Held, held)}
}
