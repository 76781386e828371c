package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServer starts a server for Redis clients. It ends by SIGKILL.
func redisServer(t *testing.T, dir string) (addr string, kill func()) {
	t.Helper()
	path, err := exec.LookPath("kuji")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "serve", "--json", "--data", filepath.Join(dir, "data"), "--catalog", filepath.Join(dir, "catalog.yaml"),
		"--listen", "127.0.0.1:0", "--redis-listen", "127.0.0.1:0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // fails only when it has ended already
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	var ready readyJSON
	if err != nil || json.Unmarshal(line, &ready) != nil || ready.Redis == "" {
		t.Fatalf("the server said %q, %v", line, err)
	}
	return ready.Redis, kill
}

// TestRedisCrash: pipelines of draws and grants go on while the server is killed with SIGKILL and
// started again. Whoever repeats what was not answered, by its ID, has all of it once.
func TestRedisCrash(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(
		"kuji: 1\nitems: {gem: {kind: currency}, hat: {}}\npools: {hats: {entries: [{id: hat, weight: 1, stock: 1000000, reward: {items: {hat: 1}}}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const clients, rounds, each, kills = 4, 40, 50, 4
	var mu sync.Mutex
	addr, kill := redisServer(t, dir)
	where := func() string {
		mu.Lock()
		defer mu.Unlock()
		return addr
	}
	done := make(chan int, clients*rounds) // pipelines that were answered
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for round := range rounds {
				first := map[string]string{} // answers, by ID
				for open := true; open; {
					open = false
					c := redis.NewClient(&redis.Options{Addr: where(), MaxRetries: -1, PoolSize: 1})
					cmds, _ := c.Pipelined(context.Background(), func(p redis.Pipeliner) error {
						for i := range each {
							p.Do(context.Background(), "GRANT", fmt.Sprintf("p%d", client), "gem", i+1, "ID", fmt.Sprintf("g-%d-%d-%d", client, round, i))
							p.Do(context.Background(), "DRAW", fmt.Sprintf("p%d", client), "hats", "ID", fmt.Sprintf("d-%d-%d-%d", client, round, i))
						}
						return nil
					})
					_ = c.Close()
					for _, cmd := range cmds {
						m, ok := cmd.(*redis.Cmd).Val().(map[any]any)
						if cmd.Err() != nil || !ok || m["status"] != "ok" {
							open = true // not answered: again
							continue
						}
						id, receipt := fmt.Sprint(cmd.Args()[len(cmd.Args())-1]), fmt.Sprint(m["receipt"])
						if before, ok := first[id]; ok && before != receipt {
							t.Errorf("%s was answered by %s, and then by %s", id, before, receipt)
						}
						first[id] = receipt
					}
				}
				done <- round
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range kills {
		for range 1 + random.IntN(clients*rounds/kills/2) {
			<-done
		}
		kill()
		next, again := redisServer(t, dir)
		mu.Lock()
		addr, kill = next, again
		mu.Unlock()
	}
	wg.Wait()
	c := redis.NewClient(&redis.Options{Addr: where()})
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for client := range clients {
		m, err := c.Do(ctx, "PLAYER", fmt.Sprintf("p%d", client)).Result()
		if err != nil {
			t.Fatal(err)
		}
		items := m.(map[any]any)["items"].(map[any]any)
		if items["gem"] != int64(rounds*each*(each+1)/2) || items["hat"] != int64(rounds*each) {
			t.Errorf("player %d has %v, want %d gems and %d hats", client, items, rounds*each*(each+1)/2, rounds*each)
		}
	}
}
