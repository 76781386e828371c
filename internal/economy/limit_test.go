package economy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// TestWindowLimits draws at random times and compares with every draw's own time.
func TestWindowLimits(t *testing.T) {
	const window = 3_600_000
	for _, draws := range []int{1, 7, 64, 65, 500, 20_000} {
		w := newWindow(t, fmt.Sprintf(`{kuji: 1, items: {gem: {}}, pools: {p: {max_count: 1000, limits: [{per: window, window: 1h, draws: %d}, {per: forever, draws: 100000000}],
			entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}}}`, draws))
		r := rand.New(rand.NewPCG(uint64(draws), 1))
		type draw struct {
			at int64
			n  int
		}
		var all []draw
		used := func(length int64) (n int) {
			for _, d := range all {
				if d.at > w.at-length {
					n += d.n
				}
			}
			return n
		}
		refused := 0
		for i := range 3000 {
			w.at += r.Int64N(2 * window / int64(min(draws, 200)))
			if i%500 == 0 {
				w.at += 5 * window
			}
			n := 1 + r.IntN(min(1000, max(1, draws/40)))
			ev := w.do(Command{Kind: KindDraw, Player: "ann", Pool: "p", Count: n})
			exact := used(window)+n <= draws
			sure := used(window+(window+steps-1)/steps)+n <= draws
			switch {
			case ev.Status == OK && !exact:
				t.Fatalf("%d draws in a window: %d of them within it, and %d more were let through", draws, used(window), n)
			case ev.Status == LimitReached && (sure || exact && draws <= exactDraws):
				t.Fatalf("%d draws in a window: %d of them within it, and %d more were refused", draws, used(window), n)
			case ev.Status == OK:
				all = append(all, draw{w.at, n})
			default:
				refused++
			}
			if got := len(w.players.holdings(0)); got > steps+4 {
				t.Fatalf("%d draws in a window: a player has %d slots", draws, got)
			}
		}
		if refused < 50 || len(all) < 50 {
			t.Errorf("%d draws in a window: %d let through, %d refused", draws, len(all), refused)
		}
	}
}

// TestNewLimitWarns: a limit over another time starts a counter of its own.
func TestNewLimitWarns(t *testing.T) {
	yaml := func(limits string) string {
		if limits != "" {
			limits = "limits: [" + limits + "], "
		}
		return `{kuji: 1, items: {gem: {}}, pools: {p: {` + limits + `entries: [{id: e, weight: 1}]}}}`
	}
	w := newWindow(t, yaml("{per: window, window: 1h, draws: 3}"))
	w.do(Command{Kind: KindDraw, Player: "ann", Pool: "p", Count: 1})
	for limits, want := range map[string]string{
		"{per: window, window: 1h, draws: 5}": "",
		"":                                    "",
		"{per: window, window: 2h, draws: 3}": "the limit per window of 2h0m0s counts from now on",
		"{per: window, window: 1h, draws: 3}, {per: day, draws: 9}":     "the limit per day counts from now on",
		"{per: forever, draws: 3}, {per: window, window: 1h, draws: 3}": "the limit for ever counts from now on",
	} {
		c, err := catalog.Parse([]byte(yaml(limits)))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := w.Plan(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Changes[0].Warning; want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: warning %q, want %q", limits, got, want)
		}
	}
}

// BenchmarkWindowLimit draws under a limit of many draws in a window.
func BenchmarkWindowLimit(b *testing.B) {
	w := newWindow(b, `{kuji: 1, items: {gem: {}}, pools: {p: {limits: [{per: window, window: 24h, draws: 100000000}], entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}}}`)
	cmd := Command{Kind: KindDraw, Player: "ann", Pool: "p", Count: 1}
	buf := make([]byte, 0, 100)
	for b.Loop() {
		w.at += 10_000
		ev := w.Decide(&cmd, w.at, w.src)
		buf = AppendEvent(buf[:0], ev)
		if err := w.Apply(ev, buf, At{Position: w.pos, Time: w.at}); err != nil {
			b.Fatal(err)
		}
	}
}
