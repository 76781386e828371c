package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

const (
	minute = 60_000
	dates  = "2006-01-02"
)

// zoneOf compiles a zone whose days begin so many minutes after 00:00, and whose weeks with a day.
func zoneOf(t *testing.T, zone string, begins int, week catalog.Weekday) *rules.Zone {
	t.Helper()
	yaml := fmt.Sprintf("{kuji: 1, zone: %s, day: {begins: '%02d:%02d', week: %v}, items: {gem: {}}}", zone, begins/60, begins%60, week)
	p, err := rules.Prepare(store.New(), rules.NoTables(), parse(t, yaml), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &p.Tables.Zone
}

// walker walks through minutes, and knows what package time shows. Clocks that are set back stand still.
type walker struct {
	place  *time.Location
	begins time.Duration
	week   time.Weekday
	latest time.Time // that clocks have shown, as if they were those of UTC
}

// at goes to a moment. It returns the date of the day that runs there, of the first day of its week,
// and its month.
func (w *walker) at(now int64) (all [3]string) {
	for _, by := range []int64{now - 1, now} { // clocks that are set back at midnight have reached it
		_, offset := time.UnixMilli(by).In(w.place).Zone()
		if shown := time.UnixMilli(now).UTC().Add(time.Duration(offset) * time.Second); shown.After(w.latest) {
			w.latest = shown
		}
	}
	day := w.latest.Add(-w.begins)
	all[0], all[2] = day.Format(dates), day.Format("2006-01")
	for day.Weekday() != w.week {
		day = day.AddDate(0, 0, -1)
	}
	all[1] = day.Format(dates)
	return all
}

// TestCalendarAsWalked compares days, weeks and months with those of a walk through every minute around
// changes of clocks: when each begins, that their numbers have no gaps, and what Next says.
func TestCalendarAsWalked(t *testing.T) {
	pers := [3]catalog.Per{catalog.PerDay, catalog.PerWeek, catalog.PerMonth}
	for _, c := range []struct{ zone, from, to string }{
		{"Australia/Sydney", "2026-09-28", "2026-10-09"},
		{"Australia/Sydney", "2026-03-30", "2026-04-09"},
		{"America/Santiago", "2026-08-30", "2026-09-10"}, // a day without midnight
		{"America/Santiago", "2026-03-30", "2026-04-08"}, // midnight twice
		{"America/New_York", "2026-02-26", "2026-03-12"},
		{"America/New_York", "2026-10-28", "2026-11-10"},
		{"Australia/Lord_Howe", "2026-09-28", "2026-10-09"},
		{"Australia/Lord_Howe", "2026-03-30", "2026-04-09"},
		{"America/St_Johns", "2006-10-27", "2006-11-03"}, // from 00:01 to 23:01 of the day before
		{"Pacific/Apia", "2011-12-27", "2012-01-03"},     // a day left out
		{"America/Asuncion", "2024-09-28", "2024-10-08"},
		{"UTC", "2028-02-26", "2028-03-08"},
	} {
		place, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		for i, begins := range []int{0, 150, 300, 1439} {
			week := catalog.Weekday((6 + i) % 7) // from Sunday on
			z := zoneOf(t, c.zone, begins, week)
			w := &walker{place: place, begins: time.Duration(begins) * time.Minute, week: time.Weekday((int(week) + 1) % 7)}
			from, to := at(t, c.from+" 00:00:00.000 +0000"), at(t, c.to+" 00:00:00.000 +0000")
			last, began := w.at(from), [3]int64{from, from, from}
			for now := from + minute; now < to; now += minute {
				is := w.at(now)
				for k, per := range pers {
					more := z.Period(per, now) - z.Period(per, now-1)
					if is[k] == last[k] && more != 0 || is[k] != last[k] && !(more == 1 || c.zone == "Pacific/Apia" && more == 2 && k == 0) {
						t.Fatalf("%s, %d minutes, %v: from %s to %s, and the number by %d, at %v", c.zone, begins, per, last[k], is[k], more, time.UnixMilli(now).In(place))
					}
					if is[k] == last[k] {
						continue
					}
					for _, before := range []int64{began[k], (began[k] + now) / 2, now - 1} {
						if next := z.Next(per, before); next != now {
							t.Fatalf("%s, %d minutes, %v: next after %d is %d, want %d", c.zone, begins, per, before, next, now)
						}
					}
					began[k] = now
				}
				last = is
			}
		}
	}
}

// TestMonths: the number of a month is that of package time, on every day until 2100 and far beyond.
func TestMonths(t *testing.T) {
	z := zoneOf(t, "UTC", 0, 0)
	for day := time.Unix(0, 0).UTC(); day.Year() < 10000; day = day.AddDate(0, 0, 1) {
		want := uint64((day.Year()-1970)*12 + int(day.Month()) - 1)
		first, last := day.UnixMilli(), day.AddDate(0, 0, 1).UnixMilli()-1
		if z.Period(catalog.PerMonth, first) != want || z.Period(catalog.PerMonth, last) != want || z.Number(catalog.PerMonth, first) != want+1 {
			t.Fatalf("%s is of month %d, want %d", day.Format(dates), z.Period(catalog.PerMonth, first), want)
		}
		if day.Year() == 2101 {
			day = time.Date(9990, 1, 1, 0, 0, 0, 0, time.UTC)
		}
	}
}

// turns are times at which days, weeks and months begin, each with the key day.
var turns = []struct{ zone, day, per, first string }{
	{"UTC", "{begins: 05:00}", "day", "2026-07-01 05:00:00.000 +0000"},
	{"Asia/Tokyo", "{begins: 05:00, week: sunday}", "week", "2026-07-05 05:00:00.000 +0900"},
	{"Asia/Tokyo", "{begins: 05:00}", "month", "2026-07-01 05:00:00.000 +0900"},
	{"UTC", "{week: monday}", "month", "2028-03-01 00:00:00.000 +0000"},
	{"UTC", "{begins: 23:59}", "month", "2027-01-01 23:59:00.000 +0000"},
	{"America/New_York", "{begins: 02:30}", "day", "2026-03-08 03:00:00.000 -0400"}, // 02:30 is left out
	{"America/New_York", "{begins: 01:30}", "day", "2026-11-01 01:30:00.000 -0400"}, // the first of two
	{"America/Santiago", "{week: sunday}", "week", "2026-09-06 01:00:00.000 -0300"}, // no midnight
	{"America/Santiago", "{begins: 05:00}", "day", "2026-09-06 05:00:00.000 -0300"},
	{"Australia/Sydney", "{begins: 02:30, week: sunday}", "week", "2026-10-04 03:00:00.000 +1100"},
	{"Australia/Lord_Howe", "{begins: 02:15}", "day", "2026-10-04 02:30:00.000 +1100"},
	{"Australia/Lord_Howe", "{begins: 01:45}", "day", "2026-04-05 01:45:00.000 +1100"},
}

// TestTurns: limits, free draws, budgets and guesses count until the day, week or month is over, and say
// so. A clock that is set back over that moment gives nothing before the moment comes again.
func TestTurns(t *testing.T) {
	for _, c := range turns {
		r := newRealm(t, 1)
		r.now = at(t, c.first) - 3_600_000
		r.put(fmt.Sprintf(`
kuji: 1
zone: %s
day: %s
items: {gem: {}, coin: {}}
guesses: {per: %s, count: 1}
pools:
  limited: {limits: [{per: %[3]s, draws: 1}], entries: [{id: e, weight: 1}]}
  free: {price: {gem: 1}, free: {per: %[3]s}, entries: [{id: e, weight: 1}]}
  fund: {budget: {per: %[3]s, of: {coin: 1}}, entries: [{id: e, weight: 1, reward: {items: {coin: 1}}}, {id: blank, weight: 0.000001}]}
  coded: {redeem: [{code: list}], entries: [{id: e, weight: 1}]}
`, c.zone, c.day, c.per))
		once := func(when int64, more bool) {
			t.Helper()
			r.now = when
			for _, pool := range []string{"limited", "free"} {
				if status := rules.Status(r.do(draw("ann", pool, 1)).Status); (status == rules.OK) != more {
					t.Fatalf("%+v: %v of pool %s at %v", c, status, pool, time.UnixMilli(when).UTC())
				}
			}
			want := rules.TooManyGuesses
			if more {
				want = rules.UnknownCode
			}
			r.wantCode("ann", "guess", want, "")
			coins := r.holds("ann", "coin")
			r.do(draw("ann", "fund", 1))
			if got := r.holds("ann", "coin") > coins; got != more {
				t.Fatalf("%+v: the budget gave %v at %v", c, got, time.UnixMilli(when).UTC())
			}
		}
		first := at(t, c.first)
		once(first-1, true)
		if why := r.stopped(draw("ann", "limited", 1)); why.Resets != first {
			t.Errorf("%+v: resets at %v", c, time.UnixMilli(why.Resets).UTC())
		}
		once(first-1, false)
		once(first, true)
		once(first+1000, false)
		r.setBack(first - 1)
		once(first-1, false)
		once(first, true) // as of old: see docs/internals/decisions/0005-clocks.md
		r.replay()
	}
}
