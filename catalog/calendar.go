package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// A catalog's calendar is its zone, when its days and weeks begin, and its seasons.

// MaxSeasons is the most seasons in a catalog.
const MaxSeasons = 64

// minutesOfDay is how many minutes clocks show in a day.
const minutesOfDay = 24 * 60

// Day says when days, weeks and months begin, by the clocks of the catalog's zone. The zero value: at
// 00:00, and weeks on Monday.
type Day struct {
	Begins uint32  `json:"begins"` // minutes after 00:00, below 1440; weeks and months begin at this time too
	Week   Weekday `json:"week"`   // the first day of the week
}

// Time returns when days begin, as clocks show it.
func (d Day) Time() string { return fmt.Sprintf("%02d:%02d", d.Begins/60, d.Begins%60) }

// Weekday is a day of the week: 0 is Monday.
type Weekday uint8

// weekdays are the days of the week, by number.
var weekdays = [...]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// String returns the day's name.
func (d Weekday) String() string {
	if int(d) < len(weekdays) {
		return weekdays[d]
	}
	return fmt.Sprintf("weekday(%d)", uint8(d))
}

// MarshalText makes JSON name the day.
func (d Weekday) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Weekday) UnmarshalText(text []byte) error {
	i := slices.Index(weekdays[:], string(text))
	if i < 0 {
		return fmt.Errorf("catalog: %.20q is no day of the week", text)
	}
	*d = Weekday(i)
	return nil
}

// Season is a time with a name.
type Season struct {
	ID     string `json:"id"`
	Starts int64  `json:"starts"` // Unix milliseconds, after 0
	Ends   int64  `json:"ends"`   // Unix milliseconds, exclusive; after Starts
}

// Runs reports whether a time, in Unix milliseconds, is in the season.
func (s *Season) Runs(now int64) bool { return s.Starts <= now && now < s.Ends }

// Begun returns the season that began last at a time, in Unix milliseconds, even if it has ended; nil:
// none has begun. While seasons do not overlap, it is the only one that can run.
func (c *Catalog) Begun(now int64) (last *Season) {
	for i := range c.Seasons {
		if s := &c.Seasons[i]; s.Starts <= now && (last == nil || s.Starts > last.Starts) {
			last = s
		}
	}
	return last
}

// Settings returns when the season starts and ends, as UTC.
func (s *Season) Settings() []Setting { return seasonShape.settings(1, s, "") }

var dayShape = &object[Day]{
	name: "day", doc: "When days, weeks and months begin, by the clocks of the catalog's zone.", some: true,
	fields: []field[Day]{
		keyOr("begins", timeOfDay, func(d *Day) *uint32 { return &d.Begins }, 0,
			"The time at which each day begins, such as 05:00; weeks and months too."),
		keyOr("week", weekdayWords(), func(d *Day) *Weekday { return &d.Week }, 0, "The day with which each week begins."),
	},
}

func weekdayWords() (words choiceShape[Weekday]) {
	for i, day := range weekdays {
		words = append(words, choice[Weekday]{day, Weekday(i), "Weeks begin on " + strings.ToUpper(day[:1]) + day[1:] + "."})
	}
	return words
}

// timeOfDay is a time that clocks show, in minutes after 00:00.
var timeOfDay = &scalar[uint32]{
	text: "a time of day from 00:00 to 23:59, such as 05:00", take: (*reader).scalar,
	parse: func(text string) (uint32, string, bool) {
		t, err := time.Parse("15:04", text)
		if err != nil || len(text) != len("15:04") {
			return 0, "write the hour and the minute with two digits each", true
		}
		return uint32(t.Hour()*60 + t.Minute()), "", true
	},
	valid:  func(v uint32) bool { return v < minutesOfDay },
	format: func(v uint32) string { return `"` + Day{Begins: v}.Time() + `"` }, // some YAML readers take 10:30 for 630
	node:   schemaNode{Type: "string", Pattern: `^([01][0-9]|2[0-3]):[0-5][0-9]$`},
}

var seasonShape = mapping("season", "A time with a name, over which counters can count.",
	key[Season, int64]("starts", seasonTime, func(s *Season) *int64 { return &s.Starts },
		"Its first moment: by the clocks of the catalog's zone, such as 2027-03-01T00:00, or with a zone of its own, such as 2027-03-01T00:00:00Z.").must(),
	key[Season, int64]("ends", seasonTime, func(s *Season) *int64 { return &s.Ends },
		"The first moment after it, written in the same way.").must(),
)

// seasonTimeShape is a moment that can also be written as the clocks of the catalog's zone show it.
type seasonTimeShape struct{ *scalar[int64] }

var seasonTime = seasonTimeShape{&scalar[int64]{
	text: "a time such as 2027-03-01T00:00, by the clocks of the catalog's zone, or 2027-03-01T00:00:00Z, after 1970 and before 10000, to the millisecond at most",
	take: (*reader).scalar, valid: instant.valid, format: instant.format,
	node: schemaNode{Type: "string", Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?(Z|[+-][0-9]{2}:[0-9]{2})?)?$`},
}}

func (s seasonTimeShape) read(r *reader, n *yaml.Node, dst *int64) {
	with := *s.scalar
	with.parse = func(text string) (int64, string, bool) {
		v, wrong := parseClockTime(text, &r.clocks)
		return v, wrong, true
	}
	with.read(r, n, dst)
}

// parseClockTime reads what parseInstant reads, and times without a zone, which are those of clocks.
func parseClockTime(s string, clocks *Zone) (int64, string) {
	const minutes = len("2027-03-01T00:00")
	switch {
	case len(s) == len("2027-03-01") && strings.Count(s, "-") == 2:
		return 0, "write the time of day too, as in " + s + "T00:00"
	case len(s) > minutes && strings.ContainsAny(s[minutes:], "Z+-"):
		return parseInstant(s)
	case strings.Contains(s, ","):
		return 0, "write it as in 2027-03-01T00:00"
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if t.Nanosecond()%int(time.Millisecond) != 0 || fractionDigits(s) > 3 {
			return 0, "it is finer than a millisecond"
		}
		return clocks.first(t.UnixMilli()), ""
	}
	return 0, "there is no such date or time; write it as in 2027-03-01T00:00"
}

// first returns the first moment at which clocks show a time, or the first after it if they leave it
// out. Both are in milliseconds, the time as if clocks were those of UTC.
func (z *Zone) first(shown int64) int64 {
	t := shown
	for i, o := range z.Offsets {
		t = max(shown-o.Seconds*1000, o.From*1000)
		if i+1 == len(z.Offsets) || t < z.Offsets[i+1].From*1000 {
			break
		}
	}
	return t
}

// readClocks notes the zone of a catalog, by which its seasons are read, wherever the source has it.
// What is wrong with it is said when it is read in its place.
func (r *reader) readClocks(root *yaml.Node) {
	_, seasons := child(root, step{key: "seasons"})
	if _, n := child(root, step{key: "zone"}); seasons != nil && n != nil {
		zone.read(&reader{}, n, &r.clocks)
	}
}

// checkSeasons checks what the keys of a season say together.
func (k *check) checkSeasons() {
	for i := range k.c.Seasons {
		s := &k.c.Seasons[i]
		if s.Starts > 0 && s.Ends > 0 && s.Ends <= s.Starts {
			k.at(s.ID, func() { k.faultAt("ends", "expected a time after starts, found %s", instant.format(s.Ends)) })
		}
	}
}

// seasonsApart checks that at most one season runs at a time, where something counts over the one that runs.
func (k *check) seasonsApart() {
	if len(k.c.Seasons) == 0 {
		k.fault("expected seasons in the catalog, found none")
		return
	}
	all := slices.Clone(k.c.Seasons)
	slices.SortStableFunc(all, func(a, b Season) int { return cmp.Compare(a.Starts, b.Starts) })
	last := all[0]
	for _, s := range all[1:] {
		if s.Starts < last.Ends {
			k.fault("expected seasons that do not overlap, found %s and %s; say which one with {season: %s}", quote(last.ID), quote(s.ID), last.ID)
			return
		}
		last = s
	}
}

// countsMonths reports whether a limit, free draws, a budget or guesses count over a month.
func (c *Catalog) countsMonths() bool {
	if c.Guesses.Per == PerMonth {
		return true
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		if p.Free.Per == PerMonth ||
			slices.ContainsFunc(p.Limits, func(l PlayerLimit) bool { return l.Per == PerMonth }) ||
			slices.ContainsFunc(p.Budgets, func(b Budget) bool { return b.Per == PerMonth }) {
			return true
		}
	}
	return false
}

func (d *Day) code(x *coder) {
	number(x, &d.Begins)
	kind(x, &d.Week)
}

func (s *Season) code(x *coder) {
	x.ref(&s.ID)
	number(x, &s.Starts)
	number(x, &s.Ends)
}
