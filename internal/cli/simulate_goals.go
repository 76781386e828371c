package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kuji-dev/kuji/internal/simulate"
)

// parseProgress reads what every simulated player reports: EVENT=N/PER or EVENT=N/PER/KEYS.
func parseProgress(all []string) (out []simulate.Progress, err error) {
	for _, text := range all {
		event, rest, ok := strings.Cut(text, "=")
		parts := strings.Split(rest, "/")
		if !ok || len(parts) < 2 || len(parts) > 3 {
			return nil, usagef("--progress %q: expected EVENT=N/draw or EVENT=N/day, and perhaps /KEYS, such as wins=3/day or boss=0.5/day/20", text)
		}
		p := simulate.Progress{Event: event, Per: parts[1]}
		if p.N, err = strconv.ParseFloat(parts[0], 64); err != nil {
			return nil, usagef("--progress %q: expected a number after =, found %q", text, parts[0])
		}
		if len(parts) == 3 {
			if p.Keys, err = strconv.Atoi(parts[2]); err != nil || p.Keys < 1 {
				return nil, usagef("--progress %q: expected how many keys there are, a whole number above 0, found %q", text, parts[2])
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// progressText says what a player has reported, in words.
func progressText(p *simulate.Progress) string {
	keys := when(p.Keys > 0, fmt.Sprintf(", with one of %s keys", grouped(uint64(p.Keys))))
	return fmt.Sprintf("%s: %s a %s by each player%s", p.Event, strconv.FormatFloat(p.N, 'g', -1, 64), p.Per, keys)
}

// quests are how far the players have come, and what quests have given them.
func (r *simulationJSON) quests() (all []*section) {
	reached := &section{Title: "Quests", Heads: []string{"QUEST", "TIER", "PLAYERS", "OF 100"}, Texts: 1,
		Notes: []string{"Players who have claimed the tier at least once."}}
	given := &section{Title: "Given by quests", Heads: []string{"QUESTS GIVE", "", "TOTAL", "A PLAYER", "A PLAYER AND DAY"}, Texts: 2}
	for i := range r.Quests {
		q := &r.Quests[i]
		for tier, n := range q.Tiers {
			reached.add(q.Quest, strconv.Itoa(tier+1), grouped(n), fmt.Sprintf("%.2f", 100*float64(n)/float64(r.Players)))
		}
		for _, g := range q.Given {
			given.add(prizeRow(q.Quest, &g)...)
		}
	}
	return append(all, reached, given)
}

// prizeRow is a row of how many of an item there were.
func prizeRow(of string, g *simulate.Prize) []string {
	day := unknown
	if g.PerDay != nil {
		day = fmt.Sprintf("%.4g", *g.PerDay)
	}
	return []string{of, g.Item, grouped(g.Total), fmt.Sprintf("%.4g", g.PerPlayer), day}
}

// ranks are rewards by rank, what has grown, and what was beyond the most of an item.
func (r *simulationJSON) ranks() []*section {
	ended := &section{Title: "Ranks", Heads: []string{"RANKS", "PERIODS ENDED", "RANKS PAID", "MISSED"}, Texts: 1,
		Notes: []string{"Missed: the reward was not there, or did not fit. Periods that have not ended are not paid."}}
	given := &section{Title: "Given to ranks", Heads: []string{"RANKS GIVE", "", "TOTAL", "A PLAYER", "A PLAYER AND DAY"}, Texts: 2}
	for i := range r.Ranks {
		k := &r.Ranks[i]
		ended.add(k.Counter, grouped(k.Ended), grouped(k.Paid), grouped(k.Missed))
		for _, g := range k.Given {
			given.add(prizeRow(k.Counter, &g)...)
		}
	}
	grown := &section{Title: "Grown", Heads: []string{"GROWN", "TOTAL", "A PLAYER", "A PLAYER AND DAY"}, Texts: 1}
	for i := range r.Grown {
		grown.add(prizeRow("", &r.Grown[i])[1:]...)
	}
	beyond := &section{Title: "Beyond the most", Heads: []string{"BEYOND THE MOST", "CUT", "MAILED", "COLLECTED", "GONE"}, Texts: 1}
	for _, b := range r.Beyond {
		beyond.add(b.Item, grouped(b.Cut), grouped(b.Mailed), grouped(b.Collected), grouped(b.Gone))
	}
	return []*section{ended, given, grown, beyond}
}
