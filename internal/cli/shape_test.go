package cli

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
