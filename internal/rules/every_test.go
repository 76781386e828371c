package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
)

const weekly = `
kuji: 1
zone: Europe/Berlin
items: {coin: {kind: currency}}
rounds:
  jackpot: {ticket: {price: {coin: 1}, most: 100, adds: {pot: 1}}, every: week, winner: {gets: pot}}
`

// everyOf returns the catalog with another period of its round; empty: none.
func everyOf(per string) string {
	if per != "" {
		per = "every: " + per + ","
	}
	return strings.Replace(weekly, "every: week,", per, 1)
}

// wantOpen sweeps, and checks which rounds are open: their numbers, each with its end, a date in Berlin.
func (r *realm) wantOpen(want ...string) {
	r.t.Helper()
	r.sweep()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		r.t.Fatal(err)
	}
	var got []string
	all, _ := look.Rounds(r.state, r.rules.Tables(), 0, 100)
	for _, o := range all {
		until := "never"
		if o.Until > 0 {
			until = time.UnixMilli(o.Until).In(zone).Format("2006-01-02 15:04")
		}
		got = append(got, fmt.Sprintf("%d until %s", o.Number, until))
	}
	if !slices.Equal(got, want) {
		r.t.Fatalf("open are %q; want %q", got, want)
	}
}

// berlin returns the time stamp of a moment in Berlin.
func berlin(t *testing.T, moment string) int64 {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04:05", moment, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

// buy lets a player join the jackpot that is open, after what is due.
func (r *realm) buy(player string, tickets uint64, status rules.Status) {
	r.t.Helper()
	cmd := joined(player, "jackpot", 0, tickets)
	r.settleAll(&cmd)
	r.want(cmd, status, "")
}

// TestRoundOfEveryWeek: a round is open as long as its week lasts in the realm's zone, also where that has an hour less.
// Then it is settled, and the next one opens.
func TestRoundOfEveryWeek(t *testing.T) {
	r := newRealm(t, 1)
	r.now = berlin(t, "2026-03-18 12:00:00")
	r.put(weekly)
	r.do(grant("ann", of("coin", 100)))
	r.do(grant("bob", of("coin", 100)))
	r.buy("ann", 60, rules.OK)
	r.buy("ann", 1, rules.AlreadyJoined)
	r.buy("bob", 40, rules.OK)
	r.wantOpen("1 until 2026-03-23 00:00")
	r.now = berlin(t, "2026-03-22 23:59:59")
	if at, ok := r.rules.NextDue(); !ok || int64(at) != r.now+1000 {
		t.Fatalf("next due is %d; want %d", at, r.now+1000)
	}
	r.wantOpen("1 until 2026-03-23 00:00")
	r.now += 999
	r.wantOpen("1 until 2026-03-23 00:00")
	r.now++
	r.wantOpen("2 until 2026-03-30 00:00") // clocks skip an hour on the 29th
	if ann, bob := r.holds("ann", "coin"), r.holds("bob", "coin"); ann+bob != 200 || ann != 40 && bob != 60 {
		t.Fatalf("ann has %d coins, bob %d", ann, bob)
	}
	r.now = berlin(t, "2026-03-30 00:00:00")
	r.now--
	r.wantOpen("2 until 2026-03-30 00:00")
	r.now++
	r.buy("ann", 1, rules.OK) // what is due comes first
	r.wantOpen("3 until 2026-04-06 00:00")
	r.want(opened("ann", "jackpot"), rules.Refused, "round")
	if got := fmt.Sprint(r.refused); !strings.Contains(got, "opened by the calendar, every week") {
		t.Error(got)
	}
	r.check()
	r.replay().wantOpen("3 until 2026-04-06 00:00")
}

// TestRoundAfterAnOutage: what was open is settled once, and only the week that runs has a round.
func TestRoundAfterAnOutage(t *testing.T) {
	r := newRealm(t, 1)
	r.now = berlin(t, "2026-03-18 12:00:00")
	r.put(weekly)
	r.do(grant("ann", of("coin", 10)))
	r.buy("ann", 10, rules.OK)
	r.now = berlin(t, "2026-06-10 12:00:00")
	r.wantOpen("2 until 2026-06-15 00:00")
	r.wantHas("ann", "coin", 10, 0)
	r.replay()
}

// TestRoundWithSetClock: a week that has ended never begins again, and the one that runs goes on.
func TestRoundWithSetClock(t *testing.T) {
	r := newRealm(t, 1)
	r.now = berlin(t, "2026-03-18 12:00:00")
	r.put(weekly)
	r.wantOpen("1 until 2026-03-23 00:00")
	r.now = berlin(t, "2026-03-24 12:00:00")
	r.wantOpen("2 until 2026-03-30 00:00")
	r.setClock(berlin(t, "2026-03-20 12:00:00"))
	r.wantOpen("2 until 2026-03-30 00:00")
	r.now = berlin(t, "2026-03-29 23:59:59")
	r.wantOpen("2 until 2026-03-30 00:00")
	r.want(ofRound(rules.KindCancelRound, "jackpot", 2), rules.OK, "")
	r.setClock(berlin(t, "2026-03-18 12:00:00"))
	r.wantOpen()
	r.now = berlin(t, "2026-03-29 23:59:59")
	r.wantOpen()
	if at, ok := r.rules.NextDue(); !ok || int64(at) != r.now+1000+r.state.Back() {
		t.Fatalf("next due is %d; want %d", at, r.now+1000+r.state.Back())
	}
	r.now += 1000
	r.wantOpen("3 until 2026-04-06 00:00")
	r.replay()
}

// TestRoundEndsEarly: one that is full or settled early ends, and the next one opens with the next period.
func TestRoundEndsEarly(t *testing.T) {
	r := newRealm(t, 1)
	r.now = berlin(t, "2026-03-18 12:00:00")
	r.put(strings.Replace(everyOf("day"), "every:", "entrants: {max: 2}, every:", 1))
	for _, p := range []string{"ann", "bob"} {
		r.do(grant(p, of("coin", 10)))
		r.buy(p, 1, rules.OK)
	}
	r.wantOpen()
	r.now = berlin(t, "2026-03-19 00:00:00")
	r.wantOpen("2 until 2026-03-20 00:00")
	r.want(ofRound(rules.KindSettle, "jackpot", 0), rules.OK, "")
	r.wantOpen()
	r.now = berlin(t, "2026-03-20 00:00:00")
	r.wantOpen("3 until 2026-03-21 00:00")
	r.replay()
}

// TestRoundWhoseCatalogChanges: a round that the calendar has opened ends with the period that it began with, whatever
// the catalog says by then, and none begins twice.
func TestRoundWhoseCatalogChanges(t *testing.T) {
	begin := func(t *testing.T) *realm {
		r := newRealm(t, 1)
		r.now = berlin(t, "2026-03-18 12:00:00")
		r.put(weekly)
		r.do(grant("ann", of("coin", 10)))
		r.buy("ann", 10, rules.OK)
		return r
	}
	t.Run("without every", func(t *testing.T) {
		r := begin(t)
		r.put(everyOf(""))
		r.want(opened("", "jackpot"), rules.OK, "") // beside it
		r.wantOpen("1 until 2026-03-23 00:00", "2 until never")
		r.now = berlin(t, "2026-03-23 00:00:00")
		r.wantOpen("2 until never")
		r.wantHas("ann", "coin", 10, 0)
		r.put(weekly)
		r.wantOpen("2 until never", "3 until 2026-03-30 00:00")
		r.replay()
	})
	t.Run("without the round", func(t *testing.T) {
		r := begin(t)
		r.put("{kuji: 1, zone: Europe/Berlin, items: {coin: {kind: currency}}}")
		r.wantOpen("1 until 2026-03-23 00:00")
		r.wantHas("ann", "coin", 0, 10)
		r.now = berlin(t, "2026-03-23 00:00:00")
		r.wantOpen()
		r.wantHas("ann", "coin", 10, 0)
		r.put(weekly)
		r.wantOpen("2 until 2026-03-30 00:00")
		r.replay()
	})
	t.Run("and back", func(t *testing.T) {
		r := begin(t)
		r.want(ofRound(rules.KindSettle, "jackpot", 1), rules.OK, "")
		r.put(everyOf(""))
		r.put(weekly)
		r.wantOpen()
		r.now = berlin(t, "2026-03-23 00:00:00")
		r.wantOpen("2 until 2026-03-30 00:00")
		r.replay()
	})
	t.Run("another period", func(t *testing.T) {
		r := begin(t)
		r.put(everyOf("month"))
		r.wantOpen("1 until 2026-03-23 00:00") // one at a time
		r.now = berlin(t, "2026-03-23 00:00:00")
		r.wantOpen("2 until 2026-04-01 00:00")
		r.put(everyOf("day"))
		r.now = berlin(t, "2026-03-24 00:00:00")
		r.wantOpen("2 until 2026-04-01 00:00")
		r.now = berlin(t, "2026-04-01 00:00:00")
		r.wantOpen("3 until 2026-04-02 00:00")
		r.replay()
	})
	t.Run("another zone", func(t *testing.T) {
		r := begin(t)
		r.put(strings.Replace(weekly, "Europe/Berlin", "UTC", 1))
		r.wantOpen("1 until 2026-03-23 01:00")
		r.now = berlin(t, "2026-03-23 01:00:00")
		r.wantOpen("2 until 2026-03-30 02:00")
		r.replay()
	})
}
