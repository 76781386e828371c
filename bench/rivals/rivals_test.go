package rivals

import (
	"context"
	"testing"
)

// TestRivals: each store makes a draw, and the same request id again changes
// nothing; skipped where it is not installed.
func TestRivals(t *testing.T) {
	kuji := func(open func(tb testing.TB, url string) connection) func(testing.TB) setup {
		return func(tb testing.TB) setup {
			url, _, s := startKuji(tb, "always", "off")
			s.open = func(tb testing.TB) connection { return open(tb, url) }
			return s
		}
	}
	overRedis := func(open func(tb testing.TB, address string) connection) func(testing.TB) setup {
		return func(tb testing.TB) setup {
			_, address, s := startKuji(tb, "always", "off")
			s.open = func(tb testing.TB) connection { return open(tb, address) }
			return s
		}
	}
	for name, start := range map[string]func(testing.TB) setup{
		"redis": func(tb testing.TB) setup { return startRedis(tb, "always") },
		"redis, lean client": func(tb testing.TB) setup {
			s := startRedis(tb, "always")
			s.open = s.lean
			return s
		},
		"postgres":         startPostgres,
		"kuji, gRPC":       kuji(func(tb testing.TB, url string) connection { return unaryConnection{client(tb, url)} }),
		"kuji, Connect":    kuji(openConnect),
		"kuji, go-redis":   overRedis(openRedis),
		"kuji, lean Redis": overRedis(func(tb testing.TB, address string) connection { return leanDraw{dialWire(tb, address)} }),
		"kuji, lean JSON":  kuji(func(tb testing.TB, url string) connection { return openHTTP(tb, url, "json") }),
		"kuji, lean proto": kuji(func(tb testing.TB, url string) connection { return openHTTP(tb, url, "proto") }),
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
			must(t, c.draw(context.Background(), []string{"a", "b", "c"}, []string{"ann", "ann", "bob"}))
			if got := s.drawn(t); got != 4 {
				t.Errorf("%d draws after a batch of three more, want 4", got)
			}
		})
	}
}
