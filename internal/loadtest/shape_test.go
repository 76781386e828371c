package loadtest

import (
	"testing"
	"time"
)

// TestOneRequestAtLeast: a connection of the bench makes a request even if its time was over before.
func TestOneRequestAtLeast(t *testing.T) {
	c := caller{target: &target{deadline: time.Now().Add(-time.Hour)}}
	if !c.next() || c.next() {
		t.Error("not one request")
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, tt := range []struct {
		of   []float64
		p    int
		want float64
	}{
		{hundred, 500, 50}, {hundred, 990, 99}, {hundred, 991, 100}, {hundred, 999, 100}, {hundred[:10], 990, 10},
		{hundred[:10], 500, 5}, {hundred[:1], 500, 1}, {nil, 500, 0},
	} {
		if got := Percentile(tt.of, tt.p); got != tt.want {
			t.Errorf("percentile %d of %d values is %v, want %v", tt.p, len(tt.of), got, tt.want)
		}
	}
}
