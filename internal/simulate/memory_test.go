package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/simulate"
)

// TestMemoryIsBounded: what a stranger can ask of a server is refused before it takes memory: players who
// share stock, codes, and catalogs of which a simulation keeps a number for each quest and item. What
// designers ask for is not.
func TestMemoryIsBounded(t *testing.T) {
	const shared = "{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 1, stock: 5, reward: {items: {gem: 1}}}, {id: b, weight: 1}]}}"
	var quests, items strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&quests, "q%d: {needs: {n: 1}, reward: {items: {gem: 1}}}, ", i)
	}
	for i := range 40_000 {
		fmt.Fprintf(&items, "i%d: {}, ", i)
	}
	many := "{kuji: 1, items: {gem: {}, " + items.String() + "}, counters: {n: {of: {progress: e}}}, quests: {" + quests.String() + "}, pools: {p: {entries: [{id: a, weight: 1}]}}}"
	coded := "{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 1, reward: {code: c}}, {id: b, weight: 1}]}}}"
	for _, tt := range []struct {
		name, yaml, field string
		config            simulate.Config
	}{
		{"players", shared + "}", "players", simulate.Config{Players: 1_000_000, Draws: 1, Memory: 64 << 20}},
		{"codes", coded, "codes", simulate.Config{Players: 1, Draws: 1, Codes: map[string]int64{"c": simulate.MaxCodes}, Memory: 512 << 20}},
		{"quests and items", many, "yaml", simulate.Config{Players: 1, Draws: 1, Memory: 512 << 20}},
		{"fits", shared + "}", "", simulate.Config{Players: 1000, Draws: 10, Memory: 64 << 20}},
		{"no bound", shared + "}", "", simulate.Config{Players: 1000, Draws: 10}},
	} {
		tt.config.Pool, tt.config.Count, tt.config.Cores = "p", 1, 1
		_, err := simulate.Run(t.Context(), parse(t, tt.yaml), tt.config)
		bad, refused := errors.AsType[*simulate.ConfigError](err)
		if refused != (tt.field != "") || refused && bad.Field != tt.field || !refused && err != nil {
			t.Errorf("%s: %v, want %q to be refused", tt.name, err, tt.field)
		}
	}
}

// TestCanceledAtOnce: nobody waits for a thousand requests after the context has ended.
func TestCanceledAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	config := simulate.Config{Pool: "banner", Players: 1, Draws: 10, Count: 10, Cores: 1}
	if _, err := simulate.Run(ctx, example(t, "gacha-banner.yaml"), config); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
