//go:build unix

package console_test

import (
	"flag"
	"syscall"
	"testing"
	"time"
)

var live = flag.Duration("live", 0, "measure for so `long` what the page of pools costs the server, and how smooth it is")

// used returns the processor time that this process, which has the server, has used.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestLiveCost measures; it checks nothing. Draws come at about 1000 a second from 50 pools, and then as
// fast as they can.
func TestLiveCost(t *testing.T) {
	if *live == 0 {
		t.Skip("no -live")
	}
	for _, load := range []struct {
		name  string
		each  int
		pause time.Duration
	}{{"1000 a second", 50, 50 * time.Millisecond}, {"full speed", 1000, 0}} {
		t.Run(load.name, func(t *testing.T) {
			s := open(t, false, fifty())
			drawing(t, s, pools50(), load.each, load.pause)
			during := func(p *page) (cpu float64, draws float64) {
				at, before, from := time.Now(), s.realm().Stats().Draws, used(t)
				if p == nil {
					<-time.After(*live)
				} else {
					got := eval[[]float64](p, `new Promise((done) => {
						let frames = 0, long = 0, on = true;
						new PerformanceObserver((l) => { for (const e of l.getEntries()) long += e.duration; }).observe({type: "longtask"});
						const tick = () => { frames++; if (on) requestAnimationFrame(tick); };
						requestAnimationFrame(tick);
						setTimeout(() => { on = false; done([frames, long]); }, `+quote(live.String())+`.match(/[0-9]+/)[0] * 1000);
					})`)
					t.Logf("the page: %.1f frames a second, %.1f ms a second in tasks of 50 ms or more", got[0]/live.Seconds(), got[1]/live.Seconds())
				}
				took := time.Since(at).Seconds()
				return (used(t) - from).Seconds() / took, float64(s.realm().Stats().Draws-before) / took
			}
			report := func(what string, cpu, draws float64) {
				t.Logf("%-6s %8.0f draws a second, %5.1f %% of a processor", what, draws, 100*cpu)
			}
			for range 5 {
				cpu, draws := during(nil)
				report("closed", cpu, draws)
				p := browse(t, s.address, wide, "/pools")
				p.has("#newest", "Gem")
				cpu, draws = during(p)
				report("open", cpu, draws)
				p.close()
			}
		})
	}
}
