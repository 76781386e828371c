package look

import (
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// HasLots reports whether some of these counters, ascending, hold lots.
func HasLots(t *rules.Tables, counters []store.CounterValue) bool { return len(t.Lots(counters)) > 0 }

// Lots returns the lots in a player's counters, ascending: item by item in the order in which catalogs
// first named them, those that go first first. back is how far the clock has been set back. It may be
// called concurrently with the writer.
func Lots(t *rules.Tables, counters []store.CounterValue, back int64, itemID func(num uint32) string) (all []view.Lot) {
	for _, of := range t.Lots(counters) {
		for _, l := range of.Lots {
			all = append(all, view.Lot{Item: itemID(of.Item), Quantity: l.Quantity, Until: int64(l.Until) - back})
		}
	}
	return all
}
