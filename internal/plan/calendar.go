package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/view"
)

// planCalendar says what changes about days, weeks, months and seasons.
func (s *Planner) planCalendar(p *draft, c *catalog.Catalog) {
	old := s.t.Catalog
	if old.Zone.Name != c.Zone.Name || !slices.Equal(old.Zone.Offsets, c.Zone.Offsets) {
		p.add(planZone(&old.Zone, &c.Zone))
	}
	if old.Day != c.Day {
		p.add(planDay(old.Day, c.Day))
	}
	if !slices.Equal(old.Seasons, c.Seasons) {
		s.planSeasons(p, c)
	}
}

func planZone(old, z *catalog.Zone) view.Change {
	was, now := cmp.Or(old.Name, "UTC"), cmp.Or(z.Name, "UTC")
	ch := realmChange("zone", was, now, "zone: %s instead of %s, for days, weeks and months", now, was)
	if z.Name == old.Name {
		ch.Text = fmt.Sprintf("zone: other offsets for %s", z.Name)
		ch.Settings[0].After += ", with other offsets"
		ch.Warning = "this machine's tables of time zones are not those that the catalog in force was read with"
	}
	return ch
}

func planDay(old, d catalog.Day) view.Change {
	ch := realmChange("day", dayText(old), dayText(d), "")
	var parts []string
	if old.Begins != d.Begins {
		parts = append(parts, fmt.Sprintf("days begin at %s instead of %s", d.Time(), old.Time()))
	}
	if old.Week != d.Week {
		parts = append(parts, fmt.Sprintf("weeks begin on %v instead of %v", d.Week, old.Week))
	}
	ch.Text = "day: " + strings.Join(parts, ", ") + "; what was counted so far counts until its day, week or month is over by this"
	return ch
}

func dayText(d catalog.Day) string {
	return fmt.Sprintf("begins: %s, week: %v", d.Time(), d.Week)
}

// seasonText is when a season is.
func seasonText(s *catalog.Season) string {
	var parts []string
	for _, set := range s.Settings() {
		parts = append(parts, set.Key+" "+set.Value)
	}
	return strings.Join(parts, ", ")
}

// planSeasons says what changes about each season.
func (s *Planner) planSeasons(p *draft, c *catalog.Catalog) {
	before, there := len(p.Changes), map[string]*catalog.Season{}
	for i := range s.t.Catalog.Seasons {
		was := &s.t.Catalog.Seasons[i]
		there[was.ID] = was
	}
	for i := range c.Seasons {
		season := &c.Seasons[i]
		was := there[season.ID]
		delete(there, season.ID)
		switch {
		case was == nil:
			p.add(seasonChange(season.ID, nil, season, "added, "+seasonText(season)))
		case *was != *season:
			p.add(s.planSeason(was, season, countsOver(c, season.ID), paidRanks(c, season.ID)))
		}
	}
	for i := range s.t.Catalog.Seasons {
		if was := &s.t.Catalog.Seasons[i]; there[was.ID] != nil {
			ch := seasonChange(was.ID, was, nil, "removed; "+seasonText(was))
			if was.Starts <= s.now && s.now < was.Ends && countsOver(c, was.ID) {
				ch.Warning = "it runs: its counters stand still" + paidRanks(c, was.ID)
			}
			p.add(ch)
		}
	}
	if len(p.Changes) == before {
		p.add(realmChange("seasons", seasonIDs(s.t.Catalog), seasonIDs(c), "seasons: in another order"))
	}
}

// planSeason says what another time of a season does. What counters count over a season has the number of
// its start.
func (s *Planner) planSeason(was, now *catalog.Season, counts bool, ranks string) view.Change {
	var warnings []string
	if counts && was.Starts <= s.now {
		switch {
		case now.Starts > s.now:
			warnings = append(warnings, "it has started already: its counters stand still until it starts again, and then begin at 0"+ranks)
		case now.Starts > was.Starts:
			warnings = append(warnings, "it has started already: its counters begin at 0 again"+ranks)
		}
	}
	if counts && now.Ends <= s.now && was.Ends > s.now {
		warnings = append(warnings, "it is over as soon as this catalog is in force: its counters stand still"+ranks)
	}
	ch := seasonChange(now.ID, was, now, settingsText(differences(was.Settings(), now.Settings())))
	ch.Warning = strings.Join(warnings, "; ")
	return ch
}

func seasonChange(id string, was, now *catalog.Season, text string) view.Change {
	set := view.Setting{Name: "seasons." + id}
	if was != nil {
		set.Before = seasonText(was)
	}
	if now != nil {
		set.After = seasonText(now)
	}
	return view.Change{Kind: ChangeRealm, ID: "seasons", Text: "season " + id + ": " + text, Settings: []view.Setting{set}}
}

// bySeason reports whether a time is a season: by name, or any that runs.
func bySeason(p catalog.Period, season string) bool {
	return p.Per == catalog.PerSeason && (p.Season == "" || p.Season == season)
}

// countsOver reports whether a counter or a quest goes by a season.
func countsOver(c *catalog.Catalog, season string) bool {
	return slices.ContainsFunc(c.Counters, func(ct catalog.Counter) bool { return bySeason(ct.Per, season) }) ||
		slices.ContainsFunc(c.Quests, func(q catalog.Quest) bool { return bySeason(q.Per, season) })
}

// paidRanks says that ranks get their rewards when a season ends, if a counter of it has some.
func paidRanks(c *catalog.Catalog, season string) string {
	if slices.ContainsFunc(c.Counters, func(ct catalog.Counter) bool { return len(ct.Ranked.Rewards) > 0 && bySeason(ct.Per, season) }) {
		return "; ranks get their rewards"
	}
	return ""
}

func seasonIDs(c *catalog.Catalog) string {
	var ids []string
	for i := range c.Seasons {
		ids = append(ids, c.Seasons[i].ID)
	}
	return strings.Join(ids, ", ")
}
