package rivals

import (
	"context"
	"testing"
)

// TestRivals: each store makes a draw, and the same request id again changes
// nothing; skipped where it is not installed.
func TestRivals(t *testing.T) {
	for name, start := range map[string]func(testing.TB) setup{
		"redis":    func(tb testing.TB) setup { return startRedis(tb, "always") },
		"postgres": startPostgres,
		"kuji": func(tb testing.TB) setup {
			url, s := startKuji(tb, "always")
			s.open = func(tb testing.TB) connection { return unaryConnection{client(tb, url)} }
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			c := s.open(t)
			for range 2 {
				must(t, c.draw(context.Background(), []string{"once"}, []string{"ann"}))
			}
			if got := s.drawn(t); got != 1 {
				t.Errorf("one request sent twice made %d draws", got)
			}
			if name == "kuji" {
				return
			}
			must(t, c.draw(context.Background(), []string{"a", "b", "c"}, []string{"ann", "ann", "bob"}))
			if got := s.drawn(t); got != 4 {
				t.Errorf("%d draws after a batch of three more, want 4", got)
			}
		})
	}
}
