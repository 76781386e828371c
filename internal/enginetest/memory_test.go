package enginetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// TestMemory: an engine in memory writes nothing, and with the same seed, clock and
// requests everything comes out the same.
func TestMemory(t *testing.T) {
	run := func(seed byte) (all []kuji.Result) {
		e, err := kuji.OpenMemory([32]byte{seed}, kuji.Options{Now: func() time.Time { return time.UnixMilli(1_800_000_000_000) }})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one", "two"} {
			r, err := e.Realm(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
				t.Fatal(err)
			}
			for i := range 50 {
				res := do(t, r, kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "free"})
				all = append(all, res)
			}
			if res := do(t, r, kuji.Draw{ID: "7", Player: "ann", Pool: "free"}); !res.Replayed {
				t.Error("a request id is not remembered")
			}
			if _, err := r.Snapshot(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		return all
	}
	first := run(1)
	if again := run(1); !reflect.DeepEqual(first, again) {
		t.Error("the same seed gave other draws")
	}
	if other := run(2); reflect.DeepEqual(first, other) {
		t.Error("another seed gave the same draws")
	}
}
