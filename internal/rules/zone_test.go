package rules_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/rules"
)

// zoned is a catalog of one pool with limits, in a time zone.
func zoned(zone, limits string) string {
	return "zone: " + zone + "\n" + `
kuji: 1
items: {gem: {}}
pools: {p: {limits: [` + limits + `], entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}}`
}

// at returns a moment in Unix milliseconds, written as clocks with that offset show it.
func at(t *testing.T, text string) int64 {
	t.Helper()
	when, err := time.Parse("2006-01-02 15:04:05.000 -0700", text)
	if err != nil {
		t.Fatal(err)
	}
	return when.UnixMilli()
}

// TestZones: the last millisecond of a day or week, and the first of the next.
func TestZones(t *testing.T) {
	for _, c := range []struct{ zone, per, first, last string }{
		{"UTC", "day", "2026-07-01 00:00:00.000 +0000", "2026-07-01 23:59:59.999 +0000"},
		{"Asia/Tokyo", "day", "2026-07-01 00:00:00.000 +0900", "2026-07-01 23:59:59.999 +0900"},
		{"Asia/Tokyo", "week", "2026-06-29 00:00:00.000 +0900", "2026-07-05 23:59:59.999 +0900"},
		{"Asia/Kathmandu", "day", "2026-07-01 00:00:00.000 +0545", "2026-07-01 23:59:59.999 +0545"},
		{"America/Los_Angeles", "week", "2026-10-26 00:00:00.000 -0700", "2026-11-01 23:59:59.999 -0800"},
		{"Europe/Berlin", "day", "2026-03-29 00:00:00.000 +0100", "2026-03-29 23:59:59.999 +0200"}, // 23 hours
		{"Europe/Berlin", "day", "2026-10-25 00:00:00.000 +0200", "2026-10-25 23:59:59.999 +0100"}, // 25 hours
		{"Africa/Cairo", "day", "2026-04-24 01:00:00.000 +0300", "2026-04-24 23:59:59.999 +0300"},  // no midnight
		{"Pacific/Apia", "day", "2011-12-31 00:00:00.000 +1400", "2011-12-31 23:59:59.999 +1400"},  // a day left out
		// On 2006-10-29 at 00:01 clocks went back to 23:01. That hour is of the day that had begun.
		{"America/St_Johns", "day", "2006-10-29 00:00:00.000 -0230", "2006-10-29 23:59:59.999 -0330"},
		{"America/St_Johns", "day", "2006-10-28 00:00:00.000 -0230", "2006-10-28 23:59:59.999 -0230"},
		{"America/New_York", "day", "2150-12-01 00:00:00.000 -0500", "2150-12-01 23:59:59.999 -0500"},
	} {
		r := newRealm(t, 1)
		r.now = 0
		r.put(zoned(c.zone, "{per: "+c.per+", draws: 1}"))
		draws := func(when int64, status rules.Status) {
			t.Helper()
			r.now = when
			if got, _ := r.decide(&rules.Command{Kind: rules.KindDraw, Player: "ann", Pool: "p", Count: 1}, r.src); got != status {
				t.Errorf("%s, a %s from %s: %v at %d", c.zone, c.per, c.first, got, when)
			}
		}
		r.now = at(t, c.first) - 1
		r.want(draw("ann", "p", 1), rules.OK, "")
		draws(at(t, c.first), rules.OK)
		r.now = at(t, c.first)
		r.want(draw("ann", "p", 1), rules.OK, "")
		draws(at(t, c.last), rules.LimitReached)
		if why := r.stopped(draw("ann", "p", 1)); why.Resets != at(t, c.last)+1 {
			t.Errorf("%s, a %s from %s: resets at %d, want %d", c.zone, c.per, c.first, why.Resets, at(t, c.last)+1)
		}
		draws(at(t, c.last)+1, rules.OK)
		r.replay()
	}
}

// TestZonesAsShown compares days at many moments with those that package time shows.
func TestZonesAsShown(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, zone := range []string{"Asia/Tokyo", "Europe/London", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Tehran"} {
		place, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		r := newRealm(t, 1)
		r.now = 0
		r.put(zoned(zone, "{per: day, draws: 262143}"))
		last, date := int64(1), ""
		n := 0
		for range 2000 {
			r.now = last + rnd.Int64N(6*hour)
			if rnd.IntN(4) == 0 {
				r.now = last + rnd.Int64N(190*day)
			}
			if r.now/1000 >= 4102444800 {
				break
			}
			last = r.now
			if today := time.UnixMilli(r.now).In(place).Format("2006-01-02"); today > date {
				date, n = today, 0
			}
			n++
			r.want(draw("ann", "p", 1), rules.OK, "")
			num, _ := r.state.Player("ann")
			first, _ := r.state.CounterNum("p/draws/day")
			if got := r.state.Counter(num, first) & (1<<18 - 1); got != uint64(n) {
				t.Fatalf("%s, %s: %d draws on the day, want %d", zone, time.UnixMilli(r.now).In(place), got, n)
			}
		}
	}
}

// TestZoneChanges: with another zone, draws count until the day of the last of them is over there.
func TestZoneChanges(t *testing.T) {
	const limit = "{per: day, draws: 1}"
	for _, c := range []struct {
		from, to string
		hour     int64 // UTC, of the draw and the change
		next     int64 // the hour of the next draw
	}{
		{"UTC", "Asia/Tokyo", 14, 15},        // the first of July there too, until 15:00
		{"UTC", "Asia/Tokyo", 16, 39},        // the second there already
		{"Asia/Tokyo", "UTC", 14, 24},        // the first in both
		{"Asia/Tokyo", "UTC", 16, 24},        // the first
		{"Asia/Tokyo", "Asia/Seoul", 14, 15}, // the same clocks
	} {
		r := newRealm(t, 1)
		start := at(t, "2026-07-01 00:00:00.000 +0000")
		r.now = start + c.hour*hour
		r.put(zoned(c.from, limit))
		r.want(draw("ann", "p", 1), rules.OK, "")
		r.put(zoned(c.to, limit))
		what := fmt.Sprintf("from %s to %s at %d:00", c.from, c.to, c.hour)
		if r.now = start + c.next*hour - 1; c.next > c.hour {
			if got := r.do(draw("ann", "p", 1)).Status; got != uint8(rules.LimitReached) {
				t.Errorf("%s: %d just before %d:00", what, got, c.next)
			}
		}
		r.now = max(r.now, start+c.next*hour)
		if got := r.do(draw("ann", "p", 1)).Status; got != uint8(rules.OK) {
			t.Errorf("%s: %d at %d:00", what, got, c.next)
		}
		r.replay()
	}
}
