package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// ending is a context that ends when it is looked at for the nth time.
type ending struct {
	context.Context
	looks, ends int
}

func (e *ending) Err() error {
	if e.looks++; e.looks >= e.ends {
		return context.Canceled
	}
	return nil
}

// TestParseContext ends the context at some places of a large catalog, and expects that reading
// takes memory up to there and no more.
func TestParseContext(t *testing.T) {
	var text strings.Builder
	text.WriteString("kuji: 1\nitems: {gem: {}}\npools:\n  box:\n    entries:\n")
	for i := range 20_000 {
		fmt.Fprintf(&text, "    - {id: e%d, weight: 1, reward: {items: {gem: 1}}}\n", i)
	}
	yaml := []byte(text.String())
	taken := func(ends int) (bytes uint64, looks int) {
		ctx := &ending{Context: context.Background(), ends: ends}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := catalog.ParseContext(ctx, yaml)
		runtime.ReadMemStats(&after)
		if ends > 1<<20 {
			if c == nil || err != nil {
				t.Fatalf("a context that does not end: %v", err)
			}
		} else if c != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ends at look %d: %v, want its error", ends, err)
		}
		return after.TotalAlloc - before.TotalAlloc, ctx.looks
	}
	whole, looks := taken(1 << 30)
	if looks < 100 {
		t.Fatalf("reading %d bytes looks at the context %d times, want at least 100", len(yaml), looks)
	}
	for part := range 4 {
		got, _ := taken(1 + looks*part/8)
		if most := whole*uint64(part+1)/8 + 64<<10; got > most {
			t.Errorf("ended after %d eighths: %d bytes, want at most %d of the whole %d", part, got, most, whole)
		}
	}
}
