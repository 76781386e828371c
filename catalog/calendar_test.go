package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kuji-dev/kuji/catalog"
)

// calendar is a catalog with these keys at its root.
func calendar(t *testing.T, keys string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte("kuji: 1\nitems: {gem: {}}\n" + keys))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSeasonTimes: times of seasons are those that clocks of the zone show first, or come after a gap.
func TestSeasonTimes(t *testing.T) {
	for _, c := range []struct{ zone, starts, want string }{
		{"UTC", "2027-03-01T00:00", "2027-03-01T00:00:00Z"},
		{"Asia/Tokyo", "2027-03-01T00:00", "2027-02-28T15:00:00Z"},
		{"Asia/Tokyo", "2027-03-01T00:00:00Z", "2027-03-01T00:00:00Z"},
		{"Asia/Tokyo", "2027-03-01T00:00:00.250-05:00", "2027-03-01T05:00:00.25Z"},
		{"Asia/Tokyo", "2027-03-01T00:00:07", "2027-02-28T15:00:07Z"},
		{"America/New_York", "2026-03-08T01:59", "2026-03-08T06:59:00Z"},
		{"America/New_York", "2026-03-08T02:30", "2026-03-08T07:00:00Z"}, // left out: the first moment after the gap
		{"America/New_York", "2026-03-08T03:00", "2026-03-08T07:00:00Z"},
		{"America/New_York", "2026-11-01T01:30", "2026-11-01T05:30:00Z"}, // shown twice: the first time
		{"America/New_York", "2026-11-01T02:00", "2026-11-01T07:00:00Z"},
		{"America/Santiago", "2026-09-06T00:00", "2026-09-06T04:00:00Z"}, // no midnight
		{"America/Santiago", "2026-09-06T00:59:59.999", "2026-09-06T04:00:00Z"},
		{"America/Santiago", "2026-04-04T23:30", "2026-04-05T02:30:00Z"}, // twice
		{"Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:30:00Z"},
		{"Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45:00Z"},
		{"Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00:00Z"}, // a day left out
		{"Africa/Monrovia", "1971-06-01T00:00", "1971-06-01T00:44:30Z"},
		{"America/New_York", "2150-07-01T00:00", "2150-07-01T05:00:00Z"}, // after the last offset
	} {
		for _, keys := range []string{
			"zone: " + c.zone + "\nseasons: {s: {starts: " + c.starts + ", ends: 9999-01-01T00:00}}",
			"seasons: {s: {starts: '" + c.starts + "', ends: 9999-01-01T00:00:00Z}}\nzone: " + c.zone,
		} {
			got := calendar(t, keys)
			if at := time.UnixMilli(got.Seasons[0].Starts).UTC().Format(time.RFC3339Nano); at != c.want {
				t.Errorf("%s in %s is %s, want %s", c.starts, c.zone, at, c.want)
			}
		}
	}
}

// TestCalendarWritten: what is written as YAML reads as the same, and says the same moments in another zone.
func TestCalendarWritten(t *testing.T) {
	want := calendar(t, `
zone: America/New_York
day: {begins: 05:00, week: sunday}
seasons:
  spring: {starts: 2027-03-01T00:00, ends: 2027-06-01T00:00}
  fold: {starts: 2026-11-01T01:30, ends: 2026-11-01T06:30:00.001Z}
`)
	if want.Day != (catalog.Day{Begins: 300, Week: 6}) {
		t.Errorf("day is %+v", want.Day)
	}
	text := want.AppendYAML(nil)
	got, err := catalog.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s\n%s", diff, text)
	}
	moved, err := catalog.Parse([]byte(strings.Replace(string(text), "America/New_York", "Asia/Tokyo", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Seasons, moved.Seasons); diff != "" {
		t.Errorf("in another zone (-want +got)\n%s", diff)
	}
}

// TestBegun: the season that began last is that of a time, running or over.
func TestBegun(t *testing.T) {
	c := &catalog.Catalog{Seasons: []catalog.Season{{"second", 30, 40}, {"first", 10, 20}, {"third", 40, 50}}}
	for _, w := range []struct {
		now  int64
		id   string
		runs bool
	}{{9, "", false}, {10, "first", true}, {19, "first", true}, {20, "first", false}, {29, "first", false}, {30, "second", true}, {40, "third", true}, {50, "third", false}} {
		s := c.Begun(w.now)
		if s == nil {
			s = &catalog.Season{}
		}
		if s.ID != w.id || s.Runs(w.now) != w.runs {
			t.Errorf("at %d: %q, runs %v; want %q, %v", w.now, s.ID, s.Runs(w.now), w.id, w.runs)
		}
	}
}

// TestCalendarWords: a catalog with a word of the calendar has version 4 of the form, names the word to
// realms of older levels, and is read back. One that says what holds anyway has version 3.
func TestCalendarWords(t *testing.T) {
	const version = len("KUJICAT")
	for _, c := range []struct {
		keys, word string
		version    byte
	}{
		{"day: {begins: 05:00}", "day", 4},
		{"day: {week: sunday}", "day", 4},
		{"day: {begins: 00:00, week: monday}", "", 3},
		{"seasons: {s: {starts: 2027-03-01T00:00, ends: 2027-06-01T00:00}}", "seasons", 4},
		{"guesses: {per: month, count: 5}", "per: month", 4},
		{"guesses: {per: week, count: 5}", "", 3},
		{"pools: {p: {limits: [{per: month, draws: 1}], entries: [{id: e, weight: 1}]}}", "per: month", 4},
		{"pools: {p: {limits: [{per: day, draws: 1}], entries: [{id: e, weight: 1}]}}", "", 3},
		{"pools: {p: {price: {gem: 1}, free: {per: month}, entries: [{id: e, weight: 1}]}}", "per: month", 4},
		{"pools: {p: {budget: {per: month, of: {gem: 9}}, entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}, {id: f, weight: 1}]}}", "per: month", 4},
	} {
		want := calendar(t, c.keys)
		form := want.AppendCanonical(nil)
		if form[version] != c.version {
			t.Errorf("%s: version %d, want %d", c.keys, form[version], c.version)
		}
		got, err := catalog.Decode(form)
		if err != nil {
			t.Fatalf("%s: %v", c.keys, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +decoded)\n%s", c.keys, diff)
		}
		if err := want.Allow(4); err != nil {
			t.Errorf("%s: %v", c.keys, err)
		}
		if err := want.Allow(3); c.word == "" && err != nil || c.word != "" && (err == nil || !strings.Contains(err.Error(), c.word)) {
			t.Errorf("%s at level 3: %v, want one that names %q", c.keys, err, c.word)
		}
	}
}
