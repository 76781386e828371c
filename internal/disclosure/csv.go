package disclosure

import (
	"slices"
	"strconv"
	"strings"
)

// Table returns the odds as rows of text. The first row names the columns. There are columns about requests only if
// a pool guarantees something within one.
func (d *Disclosure) Table() [][]string {
	head := []string{"catalog_version", "catalog_hash", "pool", "taken_from", "entry", "chance", "chance_exact", "times_a_draw", "times_a_draw_long_run", "moments", "budget"}
	within := slices.ContainsFunc(d.Pools, func(p Pool) bool { return len(p.Counts) > 0 })
	if within {
		head = append(head, "request_draws", "times_in_request", "times_a_draw_in_request")
	}
	rows := [][]string{append(head, "name", "rarity")}
	for i := range d.Pools {
		for _, l := range d.Pools[i].Lines {
			row := []string{strconv.FormatUint(d.Version, 10), d.Hash, d.Pools[i].Pool, l.Pool, l.Entry, l.Chance, l.Exact, l.Expected, l.LongRun, l.Moments, l.Budget}
			if within {
				var draws, times, perDraw []string // of most pools none or one
				for _, q := range l.Requests {
					draws, times, perDraw = append(draws, strconv.Itoa(q.Draws)), append(times, q.Expected), append(perDraw, q.PerDraw)
				}
				row = append(row, strings.Join(draws, ";"), strings.Join(times, ";"), strings.Join(perDraw, ";"))
			}
			rows = append(rows, append(row, l.Name, l.Rarity))
		}
	}
	return rows
}
