package enginetest

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/kuji-dev/kuji"
)

const streakCatalog = `
kuji: 1
zone: %s
items: {gold: {}}
pools: {daily: {entries: [{id: e, weight: 1}]}}
counters:
  visits: {of: {draws: daily}, streak: day}
  kind: {of: {draws: daily}, streak: {per: day, forgive: 1}}
  today: {of: {draws: daily}, per: day}
  weeks: {of: {draws: daily}, streak: week}
  week: {of: {draws: daily}, per: week}
quests:
  weekly: {needs: {week: 1}, reward: {items: {gold: 1}}}
  daily: {claim: automatic, needs: {today: 2}, reward: {items: {gold: 1000}}}
`

// dayBegins returns when a day begins in a place: the first time that its clocks have shown 23:59:59.999 of the day
// before. Then they may show 00:00, leave an hour out, or show an hour again.
func dayBegins(day time.Time, in *time.Location) time.Time {
	eve := day.AddDate(0, 0, -1)
	for at := eve; at.Before(day.AddDate(0, 0, 1)); at = at.Add(time.Minute) { // clocks change at whole minutes
		shown := at.Add(-time.Millisecond).In(in)
		if shown.Hour() == 23 && shown.Minute() == 59 && shown.Day() == eve.Day() {
			return at
		}
	}
	panic("a day that never begins")
}

// TestStreaksOverClockChanges: through a year of days in places whose clocks change, at midnight too, every day counts
// once from its first millisecond to its last, and each week is paid once.
func TestStreaksOverClockChanges(t *testing.T) {
	for _, place := range []string{"Australia/Sydney", "America/Santiago", "America/New_York"} {
		t.Run(place, func(t *testing.T) {
			in, err := time.LoadLocation(place)
			if err != nil {
				t.Fatal(err)
			}
			first := time.Date(2026, 2, 23, 0, 0, 0, 0, time.UTC) // a Monday
			now := handAt(dayBegins(first, in))
			r := realmAt(t, now, fmt.Sprintf(streakCatalog, place))
			ask := func(player string) (paid bool) {
				do(t, r, kuji.Draw{Player: player, Pool: "daily"})
				return do(t, r, kuji.Claim{Player: player, Quest: "weekly"}).Status == kuji.OK
			}
			odd, lengths := 0, map[time.Duration]int{}
			for i := range 365 {
				day := first.AddDate(0, 0, i)
				begins, ends := dayBegins(day, in), dayBegins(day.AddDate(0, 0, 1), in)
				lengths[ends.Sub(begins)]++
				want := map[string]uint64{"visits": uint64(i + 1), "kind": uint64(i + 1), "weeks": uint64(i/7 + 1)}
				for n, at := range []time.Time{begins, ends.Add(-time.Millisecond)} {
					now.Set(at)
					if paid := ask("ann"); paid != (i%7 == 0 && n == 0) {
						t.Errorf("%v, time %d: the week is paid: %v", day, n, paid)
					}
					want["today"], want["week"] = uint64(n+1), uint64(i%7*2+n+1)
					if got := counts(t, r, "ann"); fmt.Sprint(got) != fmt.Sprint(want) {
						t.Fatalf("%v, at %v: %v, want %v", day, at.In(in), got, want)
					}
				}
				if i%2 == 1 { // bob misses every other day
					continue
				}
				odd++
				ask("bob")
				if got, most := counts(t, r, "bob"), uint64(2); got["visits"] != 1 || got["kind"] > most {
					t.Fatalf("%v: bob has %v", day, got)
				}
			}
			if got, err := r.Balance(t.Context(), "ann", "gold"); err != nil || got != 365*1000+53 {
				t.Errorf("ann has %d gold, want one of 53 weeks and 1000 of each day: %v", got, err)
			}
			if lengths[23*time.Hour] != 1 || lengths[25*time.Hour] != 1 || lengths[24*time.Hour] != 363 {
				t.Errorf("days of other lengths than there were: %v", lengths)
			}
		})
	}
}

// TestDayWithoutMidnight: a day that begins at 01:00, and one before which clocks show an hour twice, each count once.
func TestDayWithoutMidnight(t *testing.T) {
	now := new(hand)
	at := func(text string) {
		t.Helper()
		parsed, err := time.Parse("2006-01-02 15:04:05.000 -0700", text)
		if err != nil {
			t.Fatal(err)
		}
		now.Set(parsed)
	}
	for _, days := range []string{
		"2026-09-05 23:59:59.999 -0400 1 1, 2026-09-06 01:00:00.000 -0300 2 1, 2026-09-06 23:59:59.999 -0300 2 2, 2026-09-07 00:00:00.000 -0300 3 1",
		"2026-04-04 23:00:00.000 -0300 1 1, 2026-04-04 23:59:59.999 -0300 1 2, 2026-04-04 23:00:00.000 -0400 2 1, 2026-04-04 23:59:59.999 -0400 2 2, " +
			"2026-04-05 00:00:00.000 -0400 2 3, 2026-04-05 23:59:59.999 -0400 2 4, 2026-04-06 00:00:00.000 -0400 3 1",
	} {
		at(days[:29])
		r := realmAt(t, now, fmt.Sprintf(streakCatalog, "America/Santiago"))
		for _, step := range strings.Split(days, ", ") {
			var visits, today uint64
			at(step[:29])
			if _, err := fmt.Sscan(step[29:], &visits, &today); err != nil {
				t.Fatal(err)
			}
			do(t, r, kuji.Draw{Player: "ann", Pool: "daily"})
			if got := counts(t, r, "ann"); got["visits"] != visits || got["today"] != today {
				t.Errorf("%s: %v", step, got)
			}
		}
	}
}

// TestStreakSetBack: a clock that is set back over midnight ends no day twice, and pays no quest of a day twice.
func TestStreakSetBack(t *testing.T) {
	now := handAt(time.Date(2026, 9, 6, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, fmt.Sprintf(streakCatalog, "America/Santiago"))
	twice := func() {
		for range 2 {
			do(t, r, kuji.Draw{Player: "ann", Pool: "daily"})
		}
	}
	want := func(visits, today, gold uint64) {
		t.Helper()
		c := counts(t, r, "ann")
		g, err := r.Balance(t.Context(), "ann", "gold")
		if c["visits"] != visits || c["today"] != today || g != gold || err != nil {
			t.Errorf("%v and %d gold, want %d, %d and %d: %v", c, g, visits, today, gold, err)
		}
	}
	twice()
	want(1, 2, 1000)
	now.Add(24 * time.Hour)
	twice()
	want(2, 2, 2000)
	now.Add(-20 * time.Hour) // it was wrong
	if _, err := r.SetClock(t.Context(), now.Now(), "ops", "it was ahead"); err != nil {
		t.Fatal(err)
	}
	twice()
	want(2, 4, 2000)
	v, err := r.Goals(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	resets := map[string]int64{"daily": questOf(t, r, "ann", "daily").Resets}
	for _, c := range v.Counters {
		resets[c.ID] = c.Resets
	}
	for id, day := range map[string]int{"daily": 8, "today": 8, "visits": 9, "kind": 10, "week": 14, "weeks": 21} { // the day that had begun goes on
		if want := time.Date(2026, 9, day, 3, 0, 0, 0, time.UTC).UnixMilli(); resets[id] != want {
			t.Errorf("%s resets at %s, want the %dth", id, time.UnixMilli(resets[id]).UTC(), day)
		}
	}
	now.Add(19 * time.Hour)
	twice()
	want(2, 6, 2000)
	now.Add(24 * time.Hour)
	twice()
	want(3, 2, 3000)
}
