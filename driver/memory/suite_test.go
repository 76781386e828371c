package memory_test

import (
	"testing"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/driver/memory"
)

// TestConformance runs what of the conformance suite a driver can pass that keeps nothing.
func TestConformance(t *testing.T) {
	drivertest.Run(t, func(testing.TB) *drivertest.World {
		return &drivertest.World{
			Open:      func(testing.TB, int) driver.Driver { return &memory.Driver{} },
			Exclusive: true,
			Forgetful: true,
			Patience:  2 * time.Second,
		}
	})
}
