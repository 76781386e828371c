package rivals

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
)

//go:embed draw.lua
var drawLua string

var drawScript = redis.NewScript(drawLua)

// startRedis starts a Redis that appends every command to a file, fsynced as
// sync says, with the pool in it.
func startRedis(tb testing.TB, sync string) setup {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		tb.Skip("redis-server is not installed: apt-get install redis-server")
	}
	port := freePort(tb)
	address := "127.0.0.1:" + port
	c := redis.NewClient(&redis.Options{Addr: address})
	tb.Cleanup(func() { must(tb, c.Close()) })
	ctx := tb.Context()
	daemon(tb, exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--dir", scratch(tb),
		"--save", "", "--appendonly", "yes", "--appendfsync", sync), func() error { return c.Ping(ctx).Err() })
	sum := 0
	for i := range entries {
		sum += weight(i)
		must(tb, c.ZAdd(ctx, "pool:sums", redis.Z{Score: float64(sum), Member: i}).Err())
		must(tb, c.HSet(ctx, "pool:stock", i, stock).Err())
		must(tb, c.HSet(ctx, "pool:weight", i, weight(i)).Err())
	}
	must(tb, c.Set(ctx, "pool:total", sum, 0).Err())
	must(tb, drawScript.Load(ctx, c).Err())
	return setup{
		open: func(tb testing.TB) connection {
			c := redis.NewClient(&redis.Options{Addr: address, PoolSize: 1, MinIdleConns: 1})
			tb.Cleanup(func() { must(tb, c.Close()) })
			return redisConnection{c}
		},
		lean: func(tb testing.TB) connection { return leanRedis{dialWire(tb, address), drawScript.Hash()} },
		drawn: func(tb testing.TB) int64 {
			n, err := c.XLen(context.Background(), "history").Result()
			must(tb, err)
			return n
		},
	}
}

type redisConnection struct{ c *redis.Client }

// draw sends several draws as a pipeline.
func (r redisConnection) draw(ctx context.Context, ids, players []string) error {
	if len(ids) == 1 {
		return given(drawScript.EvalSha(ctx, r.c, []string{"pool"}, ids[0], players[0]))
	}
	answers, err := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range ids {
			drawScript.EvalSha(ctx, p, []string{"pool"}, ids[i], players[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, a := range answers {
		if err := given(a.(*redis.Cmd)); err != nil {
			return err
		}
	}
	return nil
}

// openRedis makes draws in Kuji by the usual client of Redis.
func openRedis(tb testing.TB, address string) connection {
	c := redis.NewClient(&redis.Options{Addr: address, PoolSize: 1, MinIdleConns: 1})
	tb.Cleanup(func() { must(tb, c.Close()) })
	return drawConnection{c}
}

type drawConnection struct{ c *redis.Client }

// draw sends several draws as a pipeline.
func (r drawConnection) draw(ctx context.Context, ids, players []string) error {
	if len(ids) == 1 {
		return ended(r.c.Do(ctx, "DRAW", players[0], "pool", "ID", ids[0]))
	}
	answers, err := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range ids {
			p.Do(ctx, "DRAW", players[i], "pool", "ID", ids[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, a := range answers {
		if err := ended(a.(*redis.Cmd)); err != nil {
			return err
		}
	}
	return nil
}

// ended checks that a draw ended well.
func ended(a *redis.Cmd) error {
	v, err := a.Result()
	if err != nil {
		return err
	}
	if m, ok := v.(map[any]any); !ok || m["status"] != "ok" {
		return fmt.Errorf("a draw ended with %v", v)
	}
	return nil
}

// given checks that a draw gave something.
func given(a *redis.Cmd) error {
	entry, err := a.Text()
	if err == nil && entry == "" {
		err = fmt.Errorf("a draw gave nothing")
	}
	return err
}

func BenchmarkRedis(top *testing.B) {
	for _, sync := range []string{"always", "everysec"} {
		top.Run("sync="+sync, func(b *testing.B) {
			s := startRedis(b, sync)
			usual := s.open
			for _, l := range []struct {
				shape, client     string
				open              func(testing.TB) connection
				connections, each int
			}{
				{"unary", "lean", s.lean, 1, 1}, {"unary", "lean", s.lean, 16, 1}, {"unary", "lean", s.lean, 50, 1},
				{"unary", "go-redis", usual, 1, 1}, {"unary", "go-redis", usual, 16, 1}, {"unary", "go-redis", usual, 50, 1},
				{"pipeline", "go-redis", usual, 1, 100},
			} {
				s.open = l.open
				b.Run(fmt.Sprintf("shape=%s/client=%s/connections=%d/each=%d", l.shape, l.client, l.connections, l.each), func(b *testing.B) { measure(b, s, l.connections, l.each) })
			}
		})
	}
}
