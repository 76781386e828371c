//go:build !race

package chat_test

import (
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestNothingFoundIsCheap keeps what a message without a match allocates. The race
// detector lets pools forget.
func TestNothingFoundIsCheap(t *testing.T) {
	r := open(t, realmOf(t, "", kuji.Options{}, testCatalog), testConfig())
	for _, text := range []string{"Nothing here for those who search!", "Ничего нет", "何もない 🎁", strings.Repeat("a long text ", 100)} {
		m := r.write("ann", 0, text)
		r.handle(m)
		if n := testing.AllocsPerRun(100, func() { r.handle(m) }); n > 2 {
			t.Errorf("%.20q: %v allocations, want at most 2", text, n)
		}
	}
}
