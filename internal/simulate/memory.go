package simulate

import (
	"math"

	"github.com/kuji-dev/kuji/internal/rules"
)

// What parts of a simulation take, in bytes: about, and rather too many. A tally is kept of all crowds and
// of the one that plays.
const (
	playerBytes  = 400 // in the store and here, without what a player holds
	heldBytes    = 16  // an item that a player holds
	lotBytes     = 48  // one that lasts for a time
	counterBytes = 24
	lineBytes    = 400 // an entry: in the tallies, in the report and in what is made of it
	codeBytes    = 160
	tallies      = 2
)

// checkMemory refuses a simulation that would take more memory than Config.Memory.
func checkMemory(p *plan) error {
	if p.Memory == 0 {
		return nil
	}
	items, players := float64(len(p.c.Items)), float64(p.crowdSize())
	picks := float64(p.Draws) * float64(p.tables.PoolByID[p.Pool].Picks) // of one player, at most
	held, lots := math.Min(picks, items)*heldBytes, 0.0
	for i := range p.c.Items {
		if p.c.Items[i].Lasts > 0 {
			lots = picks * lotBytes
			break
		}
	}
	lines := float64(len(p.lines)) * lineBytes
	if !p.shared {
		lines += float64(len(p.lines)) * players * 8
	}
	each := playerBytes + held + lots + float64(len(p.c.Quests))*2 + float64(len(p.c.Counters))*counterBytes + float64(len(p.Progress))*8 + float64(len(p.paid))*8
	sizes := []struct {
		field string
		bytes float64
	}{
		{"players", players * each},
		{"pool", lines},
		{"yaml", items * float64(len(p.c.Quests)+len(p.c.Counters)) * 8 * tallies},
		{"codes", codesHeld(p) * codeBytes},
	}
	sum, most := 0.0, 0
	for i, s := range sizes {
		if sum += s.bytes; s.bytes > sizes[most].bytes {
			most = i
		}
	}
	if sum > float64(p.Memory) {
		return wrong(sizes[most].field, "the simulation would take about %.0f MiB, at most %d are for it: %.0f MiB are for this", sum/(1<<20), p.Memory>>20, sizes[most].bytes/(1<<20))
	}
	return nil
}

// codesHeld returns how many codes there are at a time.
func codesHeld(p *plan) (n float64) {
	for _, l := range p.lists {
		if n += float64(l.limit); l.limit == 0 {
			n += float64(max(importAtOnce, p.mostCodes)) + float64(min(p.mostCodes, rules.MaxImport))
		}
	}
	return n
}
