package rules_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// campaign is a pool from the first of July on, in which a console has moments.
func campaign(days int, moments string) string {
	return fmt.Sprintf(`
kuji: 1
zone: Asia/Tokyo
items: {console: {}}
pools:
  splash:
    starts: 2026-07-01T00:00:00+09:00
    ends: 2026-07-%02dT00:00:00+09:00
    pity: {blank: {certain: 1}}
    max_count: 1000
    entries:
      - {id: console, weight: 0, moments: %s, reward: {items: {console: 1}}}
      - {id: blank, weight: 95}
`, days+1, moments)
}

// wins draws every step from a campaign's start to its end. It returns when the console was won, in
// milliseconds since the start.
func (r *realm) wins(days int, step func() int64) (all []int64) {
	r.t.Helper()
	start, _ := time.Parse(time.RFC3339, "2026-07-01T00:00:00+09:00")
	cmd := draw("ann", "splash", 1)
	var e store.Effect
	for at := int64(0); at < int64(days)*day; at += step() {
		r.now = start.UnixMilli() + at
		r.w.Buf = r.w.Buf[:0]
		if status := r.rules.Decide(&cmd, r.now, r.src, &r.w); status != rules.OK {
			r.t.Fatal(status)
		}
		ev := r.apply(r.w.Buf)
		for c := ev.Changes(); c.Next(&e); {
			if e.Verb == store.Gain {
				all = append(all, at)
			}
		}
	}
	return all
}

func every(ms int64) func() int64 { return func() int64 { return ms } }

// chiSquare fails if counts do not fit what is expected. most is the 99.99 % point for the number
// of counts less one.
func chiSquare(t *testing.T, what string, counts, want []float64, most float64) {
	t.Helper()
	sum := 0.0
	for i := range counts {
		sum += (counts[i] - want[i]) * (counts[i] - want[i]) / want[i]
	}
	if sum > most {
		t.Errorf("%s: chi-square %.1f, above %.1f: %v, want %v", what, sum, most, counts, want)
	}
}

// TestMomentsByHour: with enough draws each moment is taken once, and the hours of the day get their
// shares: 1 for most, 3 from 12:00 on, 5 from 19:00 to 23:00.
func TestMomentsByHour(t *testing.T) {
	for _, spread := range []string{"slots", "random"} {
		counts, want := make([]float64, 24), make([]float64, 24)
		const campaigns, moments, days = 10, 200, 10
		for i := range uint64(campaigns) {
			r := newRealm(t, i+1)
			r.put(campaign(days, "{count: 200, spread: "+spread+", weights: {12-13: 3, 19-23: 5}}"))
			all := r.wins(days, every(5*60*second))
			if len(all) < moments-2 || len(all) > moments { // the last ones may come after the last draw
				t.Fatalf("%s: %d of %d moments taken", spread, len(all), moments)
			}
			for _, at := range all {
				counts[at%day/hour]++
			}
			r.check()
			if i == 0 {
				r.replay()
			}
		}
		for h := range want {
			weight := 1.0
			if h == 12 {
				weight = 3
			} else if h >= 19 && h < 23 {
				weight = 5
			}
			want[h] = campaigns * moments * weight / (19 + 3 + 4*5)
		}
		// The 99.99 % point for 23 is 57. Draws five minutes apart shift a few into the next hour.
		chiSquare(t, spread, counts, want, 70)
	}
}

// TestMomentsByDay: days of the week weigh as declared, and hours on them the product.
func TestMomentsByDay(t *testing.T) {
	const campaigns, moments, days = 20, 200, 14
	counts, want := make([]float64, 7*2), make([]float64, 7*2) // by day of the week, its evening apart
	for i := range uint64(campaigns) {
		r := newRealm(t, i+1)
		r.put(campaign(days, "{count: 200, spread: random, weights: {sat: 2, sun: 3, tue-wed: 0, 19-23: 5}}"))
		for _, at := range r.wins(days, every(10*60*second)) {
			n := (at/day + 2) % 7 * 2 // from a Wednesday on
			if h := at % day / hour; h >= 19 && h < 23 {
				n++
			}
			counts[n]++
		}
	}
	for d, weight := range []float64{1, 0, 0, 1, 1, 2, 3} {
		want[2*d] = campaigns * moments * weight / 8 * 20 / 40
		want[2*d+1] = campaigns * moments * weight / 8 * 20 / 40
	}
	// Draws ten minutes apart shift a few into the hour after the evening, and into Tuesday's first one.
	if counts[2] > 10 || counts[3]+counts[4]+counts[5] != 0 {
		t.Errorf("on days that weigh nothing: %v", counts)
	}
	kept := append(counts[:2:2], counts[6:]...)
	chiSquare(t, "days", kept, append(want[:2:2], want[6:]...), 45) // the 99.99 % point for 9 is 34
}

// TestMomentsOfEachHour counts even moments hour by hour, over a change to summer time and one back:
// each hour has as many as it weighs, where clocks leave one out or show one twice too.
func TestMomentsOfEachHour(t *testing.T) {
	place, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		first, end string
		moments    int // Saturdays have 12×3 + 12, Sundays twice that, but for the hour from 2:00 on
	}{
		{"2026-03-23T00:00:00+01:00", "2026-04-06T00:00:00+02:00", 2*48 + 2*96 - 6},
		{"2026-10-19T00:00:00+02:00", "2026-11-02T00:00:00+01:00", 2*48 + 2*96 + 6},
	} {
		r := newRealm(t, 1)
		r.put(fmt.Sprintf(`{kuji: 1, zone: Europe/Berlin, items: {gem: {}}, pools: {p: {starts: %s, ends: %s, max_count: 20, entries: [
  {id: prize, moments: {count: %d, spread: even, weights: {mon-fri: 0, sun: 2, 0-12: 3}}, reward: {items: {gem: 1}}}, {id: blank, weight: 1}]}}}`, c.first, c.end, c.moments))
		first, _ := time.Parse(time.RFC3339, c.first)
		end, _ := time.Parse(time.RFC3339, c.end)
		sum := uint64(0)
		for begin := first; begin.Before(end); begin = begin.Add(time.Hour) {
			shown, want := begin.In(place), uint64(1)
			switch shown.Weekday() {
			case time.Saturday:
			case time.Sunday:
				want = 2
			default:
				want = 0
			}
			if shown.Hour() < 12 {
				want *= 3
			}
			r.now = begin.Add(time.Hour).UnixMilli() - 1
			ev := r.want(draw("ann", "p", 20), rules.OK, "")
			got := r.given(&ev, "gem")
			if got != want {
				t.Errorf("%v: %d moments, want %d", shown, got, want)
			}
			sum += got
		}
		if sum != uint64(c.moments) {
			t.Errorf("%d moments in all, want %d", sum, c.moments)
		}
		r.replay()
	}
}

// TestMomentsUniform: where random moments lie follows from nothing but time, however seldom or
// unevenly people draw. The number in the first part of the time is binomial.
func TestMomentsUniform(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	const campaigns, moments = 2000, 8
	counts := make([]float64, moments+1) // by how many came in the first half
	for i := range uint64(campaigns) {
		r := newRealm(t, i+1)
		r.put(campaign(2, "{count: 8, spread: random}"))
		first := 0
		for _, at := range r.wins(2, func() int64 { return 1 + rnd.Int64N(rnd.Int64N(2*hour)+1) }) {
			if at <= day {
				first++
			}
		}
		counts[first]++
	}
	want := []float64{1, 8, 28, 56, 70, 56, 28, 8, 1}
	for i := range want {
		want[i] *= campaigns / 256.0
	}
	chiSquare(t, "moments in the first half", counts, want, 32)
}

// TestMissedMoments: one that waits is taken later, one that passes is not.
func TestMissedMoments(t *testing.T) {
	for missed, want := range map[string]int{"wait": 10, "pass": 4} {
		for _, spread := range []string{"even", "slots"} {
			r := newRealm(t, 9)
			r.put(campaign(10, "{count: 10, spread: "+spread+", missed: "+missed+"}"))
			n := 0
			step := func() int64 { // on days 3, 6, 9, and twenty times just before the end
				if n++; n <= 3 {
					return 3*day - 1
				}
				if n == 4 {
					return day - 100*second
				}
				return second
			}
			all := r.wins(10, step)
			if len(all) > want || len(all) < want-1 {
				t.Errorf("%s, %s: %d taken (%v), want %d", spread, missed, len(all), all, want)
			}
			r.check()
			r.replay()
		}
	}
}

// TestMomentsChange: what was taken is taken when a catalog has more or fewer moments.
func TestMomentsChange(t *testing.T) {
	r := newRealm(t, 1)
	start, _ := time.Parse(time.RFC3339, "2026-07-01T00:00:00+09:00")
	take := func(want int) {
		t.Helper()
		if got := r.takes(draw("ann", "splash", 100), 1, nil)["splash/console"]; got != want {
			t.Errorf("%d taken, want %d", got, want)
		}
	}
	r.put(campaign(10, "{count: 10, spread: even}"))
	r.now = start.UnixMilli() + 4*day
	take(4)
	take(0)
	r.put(campaign(10, "{count: 20, spread: even}"))
	r.now += 12 * hour
	take(5) // 9 of 20 by half of the fifth day
	r.put(campaign(10, "{count: 5, spread: even}"))
	r.now += 5 * day
	take(0)
	r.replay()
}

// TestMomentsSetBack: moments that came before the clock was set back do not come again.
func TestMomentsSetBack(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}}, pools: {p: {starts: 2026-07-01T00:00:00Z, ends: 2026-07-11T00:00:00Z, entries: [
  {id: prize, weight: 0, moments: {count: 10, spread: even}, reward: {items: {gem: 1}}}, {id: blank, weight: 1}]}}}`)
	draws := func(want uint64) {
		t.Helper()
		ev := r.want(draw("ann", "p", 20), rules.OK, "")
		if got := r.given(&ev, "gem"); got != want {
			t.Errorf("%d given, want %d", got, want)
		}
	}
	start := at(t, "2026-07-01 00:00:00.000 +0000")
	r.now = start + 5*day
	draws(5)
	r.setBack(start + day)
	draws(0)
	r.now = start + 5*day
	draws(0)
	r.now = start + 8*day
	draws(3)
	r.replay()
}

// TestMomentsWithoutCodes: a moment that comes while there is no code waits for one.
func TestMomentsWithoutCodes(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}}, pools: {p: {starts: 2026-07-01T00:00:00Z, ends: 2026-07-11T00:00:00Z, max_count: 9, entries: [
  {id: prize, moments: {count: 10, spread: even}, reward: {code: keys}}, {id: blank, weight: 1}]}}}`)
	r.now = at(t, "2026-07-04 00:00:00.000 +0000")
	takes := func(want int, waiting uint64) {
		t.Helper()
		if m := look.CampaignOf(r.rules, "p", r.now).Moments[0]; m.Waiting != waiting {
			t.Errorf("%+v, want %d to wait", m, waiting)
		}
		if got := r.takes(draw("ann", "p", 5), 1, nil)["p/prize"]; got != want {
			t.Errorf("%d taken, want %d", got, want)
		}
	}
	takes(0, 0)
	r.imports("keys", 2)
	takes(2, 3)
	takes(0, 0)
	r.check()
	r.replay()
}
