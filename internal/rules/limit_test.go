package rules_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
)

// limited is a catalog of one pool with limits.
func limited(limits string) string {
	return `{kuji: 1, items: {gem: {}}, pools: {p: {max_count: 1000, limits: [` + limits + `], entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}}}`
}

const (
	second = 1000
	hour   = 3600 * second
	day    = 24 * hour
)

// TestLimitsAtTheirBounds: the last millisecond in which a draw counts, and the first in
// which it counts no more.
func TestLimitsAtTheirBounds(t *testing.T) {
	for _, c := range []struct {
		limit       string
		first, free int64 // since Monday 00:00 UTC: a draw, and when the next is possible
	}{
		{"per: day, draws: 1", 0, day},
		{"per: day, draws: 1", day - 1, day},
		{"per: day, draws: 1", 6*day + 5, 7 * day},
		{"per: week, draws: 1", 0, 7 * day},
		{"per: week, draws: 1", 7*day - 1, 7 * day},
		{"per: week, draws: 1", 3 * day, 7 * day}, // a Thursday, as 1970-01-01
		{"per: window, window: 1h, draws: 1", 5, 5 + hour},
		{"per: window, window: 1ms, draws: 1", 5, 6},
		{"per: window, window: 366d, draws: 1", 0, 366 * day},
		{"per: forever, draws: 1", 0, -1},
	} {
		r := newRealm(t, 1)
		r.put(limited("{" + c.limit + "}"))
		r.now = monday + c.first
		r.want(draw("ann", "p", 2), rules.LimitReached, "p") // in one request
		r.want(draw("ann", "p", 1), rules.OK, "")
		r.want(draw("bob", "p", 1), rules.OK, "") // everyone has limits of one's own
		why := r.stopped(draw("ann", "p", 1))
		if want := max(0, monday+c.free); c.free < 0 && why.Resets != 0 || c.free >= 0 && why.Resets != want || why.Left != 0 || why.Draws != 1 {
			t.Errorf("%s: %+v, want none left until %d", c.limit, why, want)
		}
		if c.free < 0 {
			r.now += 366 * 10 * day
			r.want(draw("ann", "p", 1), rules.LimitReached, "p")
			continue
		}
		r.now = monday + c.free - 1
		r.want(draw("ann", "p", 1), rules.LimitReached, "p")
		r.now++
		r.want(group(draw("ann", "p", 1), draw("ann", "p", 1)), rules.LimitReached, "p")
		r.want(draw("ann", "p", 1), rules.OK, "")
		r.want(draw("ann", "p", 1), rules.LimitReached, "p")
		r.replay()
	}
}

// TestFailedDrawsDoNotCount: a limit counts draws that happened.
func TestFailedDrawsDoNotCount(t *testing.T) {
	r := newRealm(t, 1)
	r.put(limited("{per: day, draws: 3}, {per: window, window: 1h, draws: 3}, {per: forever, draws: 3}"))
	for range 5 {
		r.want(draw("ann", "p", 4), rules.LimitReached, "p")
		r.want(group(draw("ann", "p", 2), draw("ann", "p", 2)), rules.LimitReached, "p")
		r.want(group(draw("ann", "p", 3), draw("ann", "nosuch", 1)), rules.Refused, "members[1].pool")
	}
	r.want(group(draw("ann", "p", 2), draw("ann", "p", 1)), rules.OK, "")
	r.want(draw("ann", "p", 1), rules.LimitReached, "p")
}

// TestTimeDoesNotGoBack: a command that is stamped before the last event counts as of then.
func TestTimeDoesNotGoBack(t *testing.T) {
	r := newRealm(t, 1)
	r.put(limited("{per: window, window: 1h, draws: 1}"))
	r.now += hour
	r.want(draw("ann", "p", 1), rules.OK, "")
	r.now -= hour
	cmd := draw("ann", "p", 1)
	if status, _ := r.decide(&cmd, r.src); status != rules.LimitReached {
		t.Errorf("an hour before: %v", status)
	}
}

// counters returns how many counters a player has.
func (r *realm) counters(player string) int {
	num, _ := r.state.Player(player)
	return len(r.state.Counters(num, 0, r.state.NextCounter(), nil))
}

// windowWidth is how many counters a window limit may take.
const windowWidth = 72

// TestWindowLimits draws at random times and compares with every draw's own time: no window
// of the declared length ever holds more draws than declared, a limit of up to 64 refuses
// none that it need not, and a larger one at most those of a 64th of the window more.
func TestWindowLimits(t *testing.T) {
	const window = hour
	for _, draws := range []int{1, 7, 64, 65, 500, 20_000} {
		r := newRealm(t, 1)
		r.put(limited(fmt.Sprintf("{per: window, window: 1h, draws: %d}", draws)))
		rnd := rand.New(rand.NewPCG(uint64(draws), 1))
		type drawn struct {
			at int64
			n  int
		}
		var all []drawn
		used := func(length int64) (n int) {
			for _, d := range all {
				if d.at > r.now-length {
					n += d.n
				}
			}
			return n
		}
		refused := 0
		for i := range 2000 {
			r.now += rnd.Int64N(2 * window / int64(min(draws, 200)))
			if i%500 == 0 {
				r.now += 5 * window
			}
			n := 1 + rnd.IntN(min(1000, max(1, draws/40)))
			ev := r.do(draw("ann", "p", n))
			exact := used(window)+n <= draws
			sure := used(window+(window+63)/64)+n <= draws
			switch status := rules.Status(ev.Status); {
			case status == rules.OK && !exact:
				t.Fatalf("%d draws in a window: %d of them within it, and %d more were let through", draws, used(window), n)
			case status == rules.LimitReached && (sure || exact && draws <= 64):
				t.Fatalf("%d draws in a window: %d of them within it, and %d more were refused", draws, used(window), n)
			case status == rules.OK:
				all = append(all, drawn{r.now, n})
			default:
				refused++
			}
			if got := r.counters("ann"); got > min(draws, 67) {
				t.Fatalf("%d draws in a window: a player has %d counters", draws, got)
			}
		}
		if refused < 50 || len(all) < 50 {
			t.Errorf("%d draws in a window: %d let through, %d refused", draws, len(all), refused)
		}
	}
}

// TestWindowLimitChanges: a catalog that changes the draws of a window keeps the count, in
// whichever way they are counted before and after, and counters stay bounded.
func TestWindowLimitChanges(t *testing.T) {
	const window, step = hour, (hour + 63) / 64
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRealm(t, 1)
		var all []int64
		most := 0
		for i := range 1500 {
			if i%150 == 0 {
				most = []int{64, 1000, 3, 65, 40, 200}[(i/150+int(seed))%6]
				r.put(limited(fmt.Sprintf("{per: window, window: 1h, draws: %d}", most)))
			}
			switch rnd.IntN(3) {
			case 0:
				r.now++
			case 1:
				r.now += rnd.Int64N(2 * step)
			}
			used, old := 0, 0
			for _, at := range all {
				if at > r.now-window {
					used++
				}
				if at > r.now-window-step {
					old++
				}
			}
			switch status := rules.Status(r.do(draw("ann", "p", 1)).Status); {
			case status == rules.OK && used >= most:
				t.Fatalf("seed %d, draw %d: %d of %d within the window, and one more was let through", seed, i, used, most)
			case status != rules.OK && old < most:
				t.Fatalf("seed %d, draw %d: %d of %d within the window and a step, and one more: %v", seed, i, old, most, status)
			case status == rules.OK:
				all = append(all, r.now)
			}
			if got := r.counters("ann"); got > windowWidth {
				t.Fatalf("seed %d, draw %d: %d counters, want at most %d", seed, i, got, windowWidth)
			}
		}
	}
}

// TestWindowLimitRises: 64 draws of an exact limit, and then a larger limit that counts in
// steps: there are never more counters than the limit has.
func TestWindowLimitRises(t *testing.T) {
	r := newRealm(t, 1)
	r.put(limited("{per: window, window: 1h, draws: 64}"))
	for range 64 {
		r.want(draw("ann", "p", 1), rules.OK, "")
	}
	r.put(limited("{per: window, window: 1h, draws: 1000}"))
	for i := range 63 {
		r.now += hour / 64
		r.want(draw("ann", "p", 1), rules.OK, "")
		if got := r.counters("ann"); got > windowWidth {
			t.Fatalf("%d draws later: %d counters, want at most %d", i+1, got, windowWidth)
		}
	}
	r.replay()
}

// TestLimitsKeepTheirCounts: a limit over the same time keeps its count from catalog to
// catalog, also while the pool or the limit is away; one over another time begins again.
func TestLimitsKeepTheirCounts(t *testing.T) {
	r := newRealm(t, 1)
	r.put(limited("{per: day, draws: 2}"))
	r.want(draw("ann", "p", 2), rules.OK, "")
	r.put(limited("{per: day, draws: 3}"))
	r.want(draw("ann", "p", 2), rules.LimitReached, "p")
	r.want(draw("ann", "p", 1), rules.OK, "")
	r.put(limited("{per: week, draws: 3}"))
	r.want(draw("ann", "p", 2), rules.OK, "")
	r.put(`{kuji: 1, items: {gem: {}}}`)
	r.put(limited("{per: day, draws: 3}, {per: week, draws: 3}"))
	r.want(draw("ann", "p", 1), rules.LimitReached, "p")
	r.put(limited("{per: day, draws: 4}, {per: week, draws: 3}"))
	r.want(draw("ann", "p", 1), rules.OK, "") // the third of the week, the fourth of the day
	r.replay()
}
