package sim_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/internal/sim"
)

var stocks = flag.Int("stocks", 1, "TestExhaustive takes stocks 3, 2, 1, 0, as many of them")

// TestExhaustive tries every order of three clients' four requests and a crash, with stocks of 0 to 3.
func TestExhaustive(t *testing.T) {
	for i := range *stocks {
		stock := 3 - i
		t.Run(fmt.Sprint("stock ", stock), func(t *testing.T) {
			t.Parallel()
			x, err := sim.Exhaust(stock)
			if err != nil {
				t.Fatal(err)
			}
			if x.Checked < 1000 {
				t.Errorf("only %+v: not every order can have been tried", x)
			}
			t.Logf("%+v", x)
		})
	}
}
