package sim_test

import (
	"flag"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/internal/sim"
)

var (
	seeds    = flag.Int("seeds", 100, "how many seeds TestSeeds tries")
	first    = flag.Uint64("first", 1, "the first seed that TestSeeds tries")
	shrink   = flag.Int("shrink", 2000, "how many simulations TestSeeds spends on making a failure smaller")
	seed     = flag.Uint64("seed", 0, "the one seed that TestSeeds tries; 0: see -seeds")
	realms   = flag.Int("realms", 0, "with -seed: instead of what the seed says")
	clients  = flag.Int("clients", 0, "with -seed: instead of what the seed says")
	requests = flag.Int("requests", 0, "with -seed: instead of what the seed says")
	lives    = flag.Int("lives", 0, "with -seed: instead of what the seed says")
	steps    = flag.Int("steps", 0, "with -seed: instead of what the seed says")
	faults   = flag.String("faults", "all", "with -seed: what may go wrong, see sim.Faults")
)

// kept are seeds outside CI's range that have failed once. TestSeeds always tries them too.
var kept = []uint64{
	90310005265, 90310008850, 90310011889, // an opening refused, closed on a failing disk, and another one
}

// TestSeeds simulates many seeds and the kept ones, or the one that -seed names.
func TestSeeds(t *testing.T) {
	if *seed != 0 {
		one(t)
		return
	}
	for _, s := range kept {
		if _, failure := sim.Run(sim.FromSeed(s)); failure != nil {
			t.Fatalf("seed %d: %v\n%s", s, failure, failure.Tail)
		}
	}
	var total sim.Report
	s, failure := overSeeds(*first, *first+uint64(*seeds), func(s uint64) (sim.Report, *sim.Failure) { return sim.Run(sim.FromSeed(s)) }, total.Add)
	if failure != nil {
		t.Errorf("seed %d: %v", s, failure)
		small := sim.Shrink(failure, *shrink)
		t.Fatalf("made smaller: %v\n%s", small, small.Tail)
	}
	t.Logf("%d seeds: %v", *seeds, total)
	if missing := total.Missing(); *seeds >= 1000 && missing != 0 {
		t.Errorf("these faults never happened: %v", missing)
	}
	if *seeds >= 100 && (total.Due == 0 || total.Swept == 0) {
		t.Errorf("%d events settled what was due before a command, %d swept it", total.Due, total.Swept)
	}
	if *seeds >= 300 && (total.Ended == 0 || total.Paid == 0 || total.Later == 0 || total.Missed == 0) {
		t.Errorf("%d periods ended and were paid in %d steps, %d of them not the first; %d ranks were missed", total.Ended, total.Paid, total.Later, total.Missed)
	}
	if r := total.Rounds; *seeds >= 100 && (r.Turned == 0 || r.Settled == 0) || *seeds >= 1000 && (r.Again == 0 || r.Missed == 0) {
		t.Errorf("of rounds: %+v", r)
	}
	if *seeds >= 100 && total.Shared == 0 {
		t.Errorf("%d runs with several realms", total.Shared)
	}
}

// overSeeds runs seeds on all processors and adds up their reports. It stops when one fails, and returns
// the smallest that failed.
func overSeeds[R any, F comparable](from, to uint64, run func(seed uint64) (R, F), add func(R)) (failed uint64, failure F) {
	var none F
	var mu sync.Mutex
	var next atomic.Uint64
	var workers sync.WaitGroup
	next.Store(from)
	failed = to
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for s := next.Add(1) - 1; s < to; s = next.Add(1) - 1 {
				report, f := run(s)
				mu.Lock()
				switch {
				case f == none:
					add(report)
				case s < failed:
					failed, failure = s, f
					next.Store(to) // smaller ones are running
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return failed, failure
}

// one runs the configuration of the flags.
func one(t *testing.T) {
	cfg := sim.FromSeed(*seed)
	for _, o := range []struct {
		from int
		to   *int
	}{{*realms, &cfg.Realms}, {*clients, &cfg.Clients}, {*requests, &cfg.Requests}, {*lives, &cfg.Lives}, {*steps, &cfg.Steps}} {
		if o.from != 0 {
			*o.to = o.from
		}
	}
	var err error
	if cfg.Faults, err = sim.ParseFaults(*faults); err != nil {
		t.Fatal(err)
	}
	rep, failure := sim.Run(cfg)
	if failure != nil {
		t.Fatalf("%v\n%s", failure, failure.Tail)
	}
	t.Logf("seed %d: %v, trace %x", *seed, rep, rep.Trace)
}

// TestSameSeedSameTrace: the configuration alone decides a run.
func TestSameSeedSameTrace(t *testing.T) {
	for s := range uint64(8) {
		cfg := sim.FromSeed(s + 1)
		a, failure := sim.Run(cfg)
		if failure != nil {
			t.Fatal(failure)
		}
		b, failure := sim.Run(cfg)
		if failure != nil {
			t.Fatal(failure)
		}
		if a.Trace != b.Trace || a != b {
			t.Fatalf("seed %d ran twice:\n%v, trace %x\n%v, trace %x", cfg.Seed, a, a.Trace, b, b.Trace)
		}
		cfg.Seed += 1000
		if c, _ := sim.Run(cfg); c.Trace == a.Trace {
			t.Fatalf("seeds %d and %d have the same trace", s+1, cfg.Seed)
		}
	}
}
