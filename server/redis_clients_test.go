package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/server"
)

// redisGreetings is what clients send with their own settings before the first command of a program, as
// recorded from TestRedisClients, and what they would not go on without.
var redisGreetings = []struct {
	client string
	lines  []string
}{
	{"ioredis 5.11", []string{"AUTH default KEY", "info"}},
	{"ioredis 6.0", []string{"hello 3 AUTH default KEY", "client SETINFO LIB-VER 6.0.0", "client SETINFO LIB-NAME ioredis", "info"}},
	{"node-redis 6.3", []string{"HELLO 3 AUTH default KEY", "CLIENT SETINFO LIB-VER 6.3.1", "CLIENT SETINFO LIB-NAME node-redis",
		"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type external-ip"}},
	{"redis-py 8.1", []string{"HELLO 3 AUTH default KEY", "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip",
		"CLIENT SETINFO LIB-NAME redis-py", "CLIENT SETINFO LIB-VER 8.1.0"}},
	{"jedis 8.0", []string{"HELLO 3 AUTH default KEY", "CLIENT SETINFO LIB-NAME jedis", "CLIENT SETINFO LIB-VER 8.0.2"}},
	{"lettuce 7.7", []string{"HELLO 3 AUTH default KEY", "CLIENT SETINFO lib-name Lettuce", "CLIENT SETINFO lib-ver 7.7.0.RELEASE/1960d49",
		"CLIENT MAINT_NOTIFICATIONS on moving-endpoint-type internal-ip"}},
	{"maintenance off", []string{"AUTH default KEY", "CLIENT MAINT_NOTIFICATIONS OFF"}},
}

// TestRedisGreetings: no client with its own settings gets an error before its first command.
func TestRedisGreetings(t *testing.T) {
	addr := startRedis(t, newServer(t, server.Options{Keys: keyFile(t)}))
	for _, g := range redisGreetings {
		c := dialRaw(t, addr)
		for _, text := range g.lines {
			if got := c.ask(strings.ReplaceAll(text, "KEY", writeKey)); kindOf(got) != "" {
				t.Errorf("%s: %s: %v", g.client, text, got)
			}
		}
		if got := c.ask("DRAW ann free"); kindOf(got) != "" {
			t.Errorf("%s: a draw: %v", g.client, got)
		}
	}
	c := dialRaw(t, addr)
	if got := kindOf(c.ask("INFO")); got != "NOAUTH" {
		t.Errorf("INFO of a stranger: %q", got)
	}
	c.ask("AUTH " + writeKey)
	for _, text := range []string{"INFO", "INFO server replication", "info everything"} {
		if got := fmt.Sprint(c.ask(text)); !strings.Contains(got, "\r\nloading:0\r\n") || !strings.Contains(got, "\r\nrole:master\r\n") {
			t.Errorf("%s: %q", text, got)
		}
	}
	if got := kindOf(c.ask("CLIENT MAINT_NOTIFICATIONS")); got != "INVALID" {
		t.Errorf("MAINT_NOTIFICATIONS without a word: %q", got)
	}
}

// TestRedisClients runs the clients themselves, with their own settings, from the directory that
// KUJI_REDIS_CLIENTS names: see testdata/redisclients/install.sh. Nothing that they send is refused.
func TestRedisClients(t *testing.T) {
	dir := os.Getenv("KUJI_REDIS_CLIENTS")
	if dir == "" {
		t.Skip("KUJI_REDIS_CLIENTS names no directory with clients")
	}
	scripts, err := filepath.Abs("testdata/redisclients")
	if err != nil {
		t.Fatal(err)
	}
	log := &lockedBuffer{}
	f := newServer(t, server.Options{Keys: keyFile(t), Logger: slog.New(slog.NewTextHandler(log, nil))})
	url := "redis://default:" + writeKey + "@" + startRedis(t, f)
	script := func(name string) string { return filepath.Join(scripts, name) }
	found := 0
	run := func(name, needs, env string, command ...string) {
		if _, err := os.Stat(filepath.Join(dir, needs)); err != nil {
			t.Logf("%s: left out, it is not installed", name)
			return
		}
		found++
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // only stops a hang
		defer cancel()
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env = append(os.Environ(), env)
		before := len(log.String())
		out, err := cmd.CombinedOutput()
		refused := log.String()[before:]
		if err != nil || refused != "" || !strings.Contains(string(out), "draw ") {
			t.Errorf("%s: %v\n%s\nthe server says: %s", name, err, out, refused)
			return
		}
		t.Logf("%s: well", name)
	}
	for _, version := range []string{"5", "6"} {
		module := filepath.Join(dir, "node", "node_modules", "ioredis"+version)
		run("ioredis "+version, "node", "", "node", script("ioredis.js"), module, url, "ioredis-"+version)
		module = filepath.Join(dir, "node", "node_modules", "redis"+version)
		run("node-redis "+version, "node", "", "node", script("node-redis.js"), module, url, "node-redis-"+version)
	}
	for _, version := range []string{"5.2.1", "7.4.1", "8.1.0"} {
		path := "PYTHONPATH=" + filepath.Join(dir, "py", version)
		run("redis-py "+version, "py/"+version, path, "python3", script("redis-py.py"), url, "redis-py-"+version)
		run("redis-py "+version+" with RESP3", "py/"+version, path, "python3", script("redis-py.py"), url, "redis-py-3-"+version, "protocol=3")
	}
	for _, name := range []string{"Jedis", "Lettuce"} {
		run(name, "java", "", "java", "-cp", filepath.Join(dir, "java", "*"), script(name+".java"), url, name)
	}
	if found == 0 {
		t.Skipf("%s has none of the clients", dir)
	}
}
