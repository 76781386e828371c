package sim_test

import (
	"reflect"
	"testing"

	"github.com/kuji-dev/kuji/internal/sim"
)

// TestElection simulates nodes that agree on who leads. A run takes some milliseconds, so there are more of them
// than of others.
func TestElection(t *testing.T) {
	var total sim.ElectionReport
	from, to := *first, *first+2*uint64(*seeds)
	if *seed != 0 {
		from, to = *seed, *seed+1
	}
	if s, failure := overSeeds(from, to, sim.RunElection, total.Add); failure != nil {
		t.Fatalf("seed %d: %v", s, failure)
	}
	t.Logf("%d seeds: %+v", to-from, total)
	if to-from < 100 {
		return
	}
	for v, i := reflect.ValueOf(total), 0; i < v.NumField(); i++ {
		if f := v.Field(i); f.CanInt() && f.Int() == 0 {
			t.Errorf("there were no %s", v.Type().Field(i).Name)
		}
	}
}

// TestSameElection: a run is decided by its seed alone.
func TestSameElection(t *testing.T) {
	for s := range uint64(8) {
		a, failure := sim.RunElection(s + 1)
		b, again := sim.RunElection(s + 1)
		if failure != nil || again != nil {
			t.Fatal(failure, again)
		}
		if c, _ := sim.RunElection(s + 1001); a != b || a.Trace == c.Trace {
			t.Fatalf("seed %d gave %+v, then %+v, and seed %d gave %+v", s+1, a, b, s+1001, c)
		}
	}
}
