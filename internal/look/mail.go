package look

import (
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// Mail returns the mailbox in a player's counters, ascending: what goes first first. back is a function that
// returns how far the clock has been set back. It may be called concurrently with the writer.
func Mail(t *rules.Tables, counters []store.CounterValue, back func() int64, itemID func(num uint32) string) (all []view.Letter) {
	for _, l := range t.Mail(counters) {
		all = append(all, view.Letter{Item: itemID(l.Item), Quantity: l.Quantity, Until: int64(l.Until) - back()})
	}
	return all
}
