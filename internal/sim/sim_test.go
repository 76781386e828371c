package sim_test

import (
	"flag"
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

// TestSeeds simulates many seeds, or the one that is asked for.
func TestSeeds(t *testing.T) {
	if *seed != 0 {
		one(t)
		return
	}
	var total sim.Report
	for s := *first; s < *first+uint64(*seeds); s++ {
		rep, failure := sim.Run(sim.FromSeed(s))
		if failure != nil {
			t.Errorf("seed %d: %v", s, failure)
			small := sim.Shrink(failure, *shrink)
			t.Fatalf("made smaller: %v\n%s", small, small.Tail)
		}
		total.Add(rep)
	}
	t.Logf("%d seeds: %v", *seeds, total)
	if missing := total.Missing(); *seeds >= 1000 && missing != 0 {
		t.Errorf("these faults never happened: %v", missing)
	}
	if *seeds >= 100 && total.Shared == 0 {
		t.Errorf("%d runs with several realms", total.Shared)
	}
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

// TestSameSeedSameTrace: a run is decided by its configuration alone.
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
