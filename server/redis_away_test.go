package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/server"
)

// awayFromLeader returns a server that leads nothing, and one that leads all.
func awayFromLeader(t *testing.T, o server.Options) (f, leader *fixture, cluster *shared) {
	t.Helper()
	leader = newServer(t, o)
	send := over(t, leader.server)
	cluster = &shared{call: func(out *server.Call) (*http.Response, error) { return send(out.Request) }}
	o.Cluster = cluster
	log := drivertest.NewShared(drivertest.SharedOptions{})
	open := func(node int, follow bool) *kuji.Engine {
		engine, err := kuji.Open("", kuji.Options{Driver: log.Node(node), Key: [32]byte{1}, Follow: follow})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { engine.Close() }) // nothing is kept
		return engine
	}
	if _, err := open(1, false).Realm(server.DefaultRealm); err != nil { // for the other to follow
		t.Fatal(err)
	}
	f = newServerOn(t, open(2, true), o)
	if _, err := f.server.Open(server.DefaultRealm); err != nil {
		t.Fatal(err)
	}
	return f, leader, cluster
}

// TestRedisElsewhere: a server that does not lead a realm answers every command with what the leader says.
func TestRedisElsewhere(t *testing.T) {
	f, _, _ := awayFromLeader(t, server.Options{Version: "v1.2.3"})
	playSession(t, dialRaw(t, startRedis(t, f)), "REALM nowhere") // nobody asks the others whether it exists
}

// TestRedisElsewhereTogether: the same of a pipeline, with groups, refusals and what comes again.
func TestRedisElsewhereTogether(t *testing.T) {
	f, leader, _ := awayFromLeader(t, server.Options{})
	lines := []string{"HELLO 3", "GRANT ann gem 5 ID a", "DRAW ann free COUNT 3 ID b", "DRAW ann nothing", "PLAYER ann",
		"MULTI", "CONSUME ann gem 1 ID c", "GRANT bob gem 1", "EXEC", "TRANSFER ann bob gem 100", "REGISTER cid", "DRAW ann free ID a", "PLAYER bob"}
	together := func(c *raw) (answers []any) {
		var all strings.Builder
		for _, l := range lines {
			all.WriteString(line(l))
		}
		c.send(all.String())
		for range lines {
			answer := c.answer()
			if group, ok := answer.([]any); ok {
				for i := range group {
					group[i] = without(group[i])
				}
			}
			answers = append(answers, without(answer))
		}
		return answers
	}
	away := dialRaw(t, startRedis(t, f))
	first := together(away)
	here := dialRaw(t, startRedis(t, newServer(t, server.Options{})))
	if diff := cmp.Diff(together(here), first, cmp.Comparer(sameKind)); diff != "" {
		t.Errorf("-of a server alone +from elsewhere\n%s", diff)
	}
	again := together(dialRaw(t, startRedis(t, leader)))
	if diff := cmp.Diff(again, together(away), cmp.Comparer(sameKind)); diff != "" {
		t.Errorf("again: -of the leader +from elsewhere\n%s", diff)
	}
}

// TestRedisLeaderLost: what may have happened at a leader that is lost is unknown, and has happened once when
// the client asks again. A realm that stops here before anything happens is asked for elsewhere.
func TestRedisLeaderLost(t *testing.T) {
	f, leader, cluster := awayFromLeader(t, server.Options{})
	c := dialRaw(t, startRedis(t, f))
	call := cluster.call
	cluster.call = func(out *server.Call) (*http.Response, error) {
		if resp, err := call(out); err != nil { // and its answer is lost
			t.Error(err)
		} else {
			resp.Body.Close()
		}
		return nil, errors.New("bad gateway")
	}
	for _, one := range []string{"GRANT ann gem 5 ID a", "PLAYER ann"} {
		if got := c.ask(one); kindOf(got) != "UNKNOWN" {
			t.Errorf("%s: %v, want UNKNOWN", one, got)
		}
	}
	cluster.call = call
	c.ask("HELLO 3")
	if got, ok := c.ask("GRANT ann gem 5 ID a").(map[any]any); !ok || got["replayed"] != true {
		t.Errorf("again: %v, want the first answer", got)
	}
	cluster.holds.Store(server.DefaultRealm, true) // which it does not lead: the realm says so
	if got, ok := c.ask("GRANT ann gem 5 ID b").(map[any]any); !ok || got["status"] != "ok" || got["replayed"] == true {
		t.Errorf("to a realm that does not lead: %v, want it carried out at the leader", got)
	}
	if got, ok := c.ask("PLAYER ann").(map[any]any); !ok || fmt.Sprint(got["items"]) != "map[gem:110]" {
		t.Errorf("ann: %v, want the 100 gems of the start and 10", got)
	}
	if n := leader.server.RequestMemory(); n != 0 {
		t.Errorf("the leader keeps %d bytes", n)
	}
}

// TestRedisKeysElsewhere: the leader sees the client's key, and decides by it, too.
func TestRedisKeysElsewhere(t *testing.T) {
	f, _, cluster := awayFromLeader(t, server.Options{Keys: keyFile(t)})
	var seen atomic.Value
	call := cluster.call
	cluster.call = func(out *server.Call) (*http.Response, error) {
		seen.Store(out.Request.Header.Get("Authorization") + " " + out.Realm)
		return call(out)
	}
	c := dialRaw(t, startRedis(t, f))
	if got := c.ask("DRAW ann free"); kindOf(got) != "NOAUTH" {
		t.Errorf("without a key: %v", got)
	}
	c.ask("HELLO 3 AUTH default " + writeKey)
	if got, ok := c.ask("DRAW ann free").(map[any]any); !ok || got["status"] != "ok" || seen.Load() != "Bearer "+writeKey+" default" {
		t.Errorf("%v, asked for with %q", got, seen.Load())
	}
	c.ask("AUTH " + readKey)
	if got := c.ask("DRAW ann free"); kindOf(got) != "NOPERM" {
		t.Errorf("with a key that reads: %v", got)
	}
	if got, ok := c.ask("POOL free").(map[any]any); !ok || seen.Load() != "Bearer "+readKey+" default" {
		t.Errorf("%v, asked for with %q", got, seen.Load())
	}
}

// TestRedisTurnsElsewhere: commands that wait for a leader have their turns, and need no others when this server
// leads by then.
func TestRedisTurnsElsewhere(t *testing.T) {
	f, _, cluster := awayFromLeader(t, server.Options{Limits: server.Limits{WriteTimeout: 5 * time.Second}})
	realm, err := f.server.Lead(t.Context(), server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup // all that can have a turn
	waiting.Add(server.OddsAtOnce)
	cluster.call = func(out *server.Call) (*http.Response, error) {
		waiting.Done()
		waiting.Wait()
		cluster.holds.Store(out.Realm, true)
		return nil, server.ErrHere
	}
	addr := startRedis(t, f)
	var clients sync.WaitGroup
	for range server.OddsAtOnce {
		rdb := redis.NewClient(&redis.Options{Addr: addr, Protocol: 3, MaxRetries: -1})
		defer rdb.Close()
		clients.Go(func() {
			if got, err := rdb.Do(t.Context(), "ODDS", "free").Result(); err != nil {
				t.Errorf("odds: %v, %v", got, err)
			}
		})
	}
	clients.Wait()
}

func sameKind(a, b error) bool { return kindOf(a) == kindOf(b) }
