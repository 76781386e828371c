package sim_test

import (
	"reflect"
	"testing"

	"github.com/kuji-dev/kuji/internal/sim"
)

// TestTakeover simulates nodes that share a log and take it over from one another.
func TestTakeover(t *testing.T) {
	var total sim.ClusterReport
	from, to := *first, *first+uint64(*seeds)
	if *seed != 0 {
		from, to = *seed, *seed+1
	}
	if s, failure := overSeeds(from, to, sim.RunTakeover, total.Add); failure != nil {
		t.Fatalf("seed %d: %v", s, failure)
	}
	t.Logf("%d seeds: %+v", to-from, total)
	if to-from < 500 { // some things are rare, such as a log that is trimmed
		return
	}
	for v, i := reflect.ValueOf(total), 0; i < v.NumField(); i++ {
		if v.Field(i).Int() == 0 {
			t.Errorf("there were no %s", v.Type().Field(i).Name)
		}
	}
}

// TestTakeoverFollowsFromItsSeed: two runs of a seed do the same.
func TestTakeoverFollowsFromItsSeed(t *testing.T) {
	for seed := range uint64(8) {
		one, err1 := sim.RunTakeover(seed)
		two, err2 := sim.RunTakeover(seed)
		if one != two || err1 != nil || err2 != nil {
			t.Errorf("seed %d did\n%+v, %v\nand then\n%+v, %v", seed, one, err1, two, err2)
		}
	}
}
