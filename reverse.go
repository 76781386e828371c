package kuji

import "github.com/kuji-dev/kuji/internal/rules"

// Reverse undoes a Grant or a Draw, as long as its request id is remembered, and once. It takes back what the player has
// got, as far as the player still has it. Result.Beyond says what is missing. If nothing is, the price comes back too,
// and what was drawn goes back to the pool. Codes cannot be taken back, so a Draw that gave one is not reversed wholly.
// Limits, tracks, counters and what quests gave stay as they are. It is for administrators. The log keeps who asked and
// why. It cannot be a member of an Atomic. It needs format level 5.
type Reverse struct {
	ID      string
	Request string // the request id of the Grant or the Draw
	Note    Note   // it must have a Reason
}

func (q Reverse) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Note, cmd.Hold = rules.KindReverse, q.ID, q.Note.note(), &rules.HoldOf{Of: q.Request}
	return nil
}
