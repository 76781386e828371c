package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/examples"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// startRedis serves Redis clients on a loopback port until the test ends.
func startRedis(t testing.TB, f *fixture) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveRedis(t, f, l)
	return l.Addr().String()
}

func serveRedis(t testing.TB, f *fixture, l net.Listener) {
	served := make(chan error, 1)
	go func() { served <- f.server.ServeRedis(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // whatever a test left open is cut
		_ = f.server.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if n := f.server.RedisConnections(); n != 0 {
			t.Errorf("%d connections behind the end", n)
		}
		if n := f.server.RequestMemory() + int64(f.server.InFlight()) + int64(f.server.InBulk()) + f.server.InWork(); n != 0 {
			t.Errorf("the connections kept something: %d bytes and others in all", n)
		}
	})
}

// pipes is a listener of pipes, on which everything arrives as it is written.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(t testing.TB) *raw {
	t.Helper()
	mine, theirs := net.Pipe()
	p.conns <- theirs
	return newRaw(t, mine)
}

// raw is a client that sends what it is told.
type raw struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func newRaw(t testing.TB, conn net.Conn) *raw {
	t.Cleanup(func() { _ = conn.Close() })
	return &raw{t, conn, bufio.NewReader(conn)}
}

func dialRaw(t testing.TB, addr string) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return newRaw(t, conn)
}

// command is a command as clients send it.
func command(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

// line is a command whose words have no spaces.
func line(text string) string { return command(strings.Fields(text)...) }

func (c *raw) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends commands, a line each, and returns the answer to the last.
func (c *raw) ask(lines ...string) any {
	c.t.Helper()
	var answer any
	for _, l := range lines {
		c.send(line(l))
		answer = c.answer()
	}
	return answer
}

// answer reads a value: string, int64, bool, float64, error, []any, map[any]any or nil.
func (c *raw) answer() any {
	c.t.Helper()
	v, err := c.read()
	if err != nil {
		c.t.Fatalf("reading an answer: %v", err)
	}
	return v
}

func (c *raw) read() (any, error) {
	head, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	text, ok := strings.CutSuffix(head[1:], "\r\n")
	if !ok {
		return nil, fmt.Errorf("a line %q without CR LF", head)
	}
	n, _ := strconv.Atoi(text)
	switch head[0] {
	case '+':
		return text, nil
	case '-':
		return errors.New(text), nil
	case ':':
		return int64(n), nil
	case '#':
		return text == "t", nil
	case ',':
		return strconv.ParseFloat(text, 64)
	case '_':
		return nil, nil
	case '$':
		if n < 0 {
			return nil, nil
		}
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.r, b)
		return string(b[:n]), err
	case '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = c.read(); err != nil {
				return nil, err
			}
		}
		return list, nil
	case '%':
		m := make(map[any]any)
		for range n {
			k, err := c.read()
			if err != nil {
				return nil, err
			}
			if m[k], err = c.read(); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return nil, fmt.Errorf("a line %q", head)
}

// ends checks that the connection ends.
func (c *raw) ends() {
	c.t.Helper()
	if v, err := c.read(); err == nil {
		c.t.Errorf("the connection goes on with %v, want its end", v)
	}
}

// kindOf returns the first word of an error, "" of anything else.
func kindOf(v any) string {
	if err, ok := v.(error); ok {
		return strings.Fields(err.Error())[0]
	}
	return ""
}

// without drops what differs from run to run.
func without(v any) any {
	switch v := v.(type) {
	case map[any]any:
		delete(v, "receipt")
		delete(v, "position")
		for _, at := range []string{"opened_unix_ms", "asked_unix_ms", "until_unix_ms", "ended_unix_ms"} {
			delete(v, at)
		}
		for k := range v {
			v[k] = without(v[k])
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	}
	return v
}

type dict = map[any]any

func catalogOf(t testing.TB, yaml string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// redisSteps is commands with their answers in RESP3.
type redisSteps []struct {
	command string
	want    any // an error: how it begins
}

// questSession is about the catalog questCatalog.
var questSession = redisSteps{
	{"PROGRESS ann boss KEY hydra ID p1", dict{"status": "ok"}},
	{"PROGRESS ann boss ID p1 KEY hydra", dict{"status": "ok", "replayed": true}},
	{"PROGRESS ann boss ID p1 KEY kraken", errors.New("IDREUSED ")},
	{"PROGRESS ann boss N 0", dict{"status": "ok"}},
	{"PROGRESS ann boss N 9007199254740992", errors.New("INVALID n: ")},
	{"PROGRESS ann nothing", errors.New("NOTFOUND event: ")},
	{"PROGRESS ann", errors.New("INVALID 1 arguments, want PROGRESS player event [N n] [KEY key] [ID id]")},
	{"CLAIM ann hunter TIERS 1 ID c1", dict{"status": "ok", "claims": []any{dict{"quest": "hunter", "tier": int64(1), "items": dict{"gold": int64(100)}}}}},
	{"CLAIM ann hunter TIERS 1 ID c1", dict{"status": "ok", "replayed": true, "claims": []any{dict{"quest": "hunter", "tier": int64(1), "items": dict{"gold": int64(100)}}}}},
	{"CLAIM ann winner", dict{"status": "not_reached", "subject": "winner"}},
	{"CLAIM ann nothing", errors.New("NOTFOUND quest: ")},
	{"CLAIM ann hunter TIERS 1001", errors.New("INVALID TIERS: ")},
	{"COLLECT ann", dict{"status": "nothing_to_collect"}},
	{"SETCOUNTER ann wins 4 sorry ID s1", dict{"status": "ok"}},
	{"SETCOUNTER ann raid 4 sorry", errors.New("NOTFOUND player: ")},
	{"MULTI", "OK"},
	{"PROGRESS ann wins", "QUEUED"},
	{"CLAIM ann hunter", "QUEUED"},
	{"SETCOUNTER ann wins 4 sorry", errors.New("INVALID SETCOUNTER in a group, want DRAW, REGISTER, GRANT, CONSUME, TRANSFER, PROGRESS, CLAIM, EXEC or DISCARD")},
	{"DISCARD", "OK"},
	{"MULTI", "OK"},
	{"PROGRESS ann wins", "QUEUED"},
	{"CLAIM ann hunter", "QUEUED"},
	{"DISCARD", "OK"},
	{"QUESTS", errors.New("INVALID 0 arguments, want QUESTS player")},
	{"RANKS wins", errors.New("INVALID counter: ")},
}

// redisSession is about the catalog testCatalog.
var redisSession = redisSteps{
	{"DRAW ann free", dict{"status": "ok", "outcomes": []any{dict{"entry": "sword", "items": dict{"sword": int64(1)}}}}},
	{"draw ann free count 2 id d1", dict{"status": "ok", "outcomes": []any{dict{"entry": "sword", "items": dict{"sword": int64(1)}},
		dict{"entry": "sword", "items": dict{"sword": int64(1)}, "draw": int64(1)}}}},
	{"DRAW ann free ID d1 COUNT 2", dict{"status": "ok", "replayed": true, "outcomes": []any{dict{"entry": "sword", "items": dict{"sword": int64(1)}},
		dict{"entry": "sword", "items": dict{"sword": int64(1)}, "draw": int64(1)}}}},
	{"DRAW ann free ID d1", errors.New(`IDREUSED `)},
	{"DRAW ann choice PAY gem", dict{"status": "ok", "outcomes": []any{dict{"entry": "sword"}}, "paid": dict{"gem": int64(1)}}},
	{"DRAW ann last", dict{"status": "ok", "outcomes": []any{dict{"entry": "only", "items": dict{"sword": int64(1)}}}}},
	{"DRAW ann last", dict{"status": "sold_out", "subject": "last"}},
	{"DRAW ann once COUNT 2", dict{"status": "limit_reached", "subject": "once", "limit": dict{"per": "forever", "draws": int64(1), "left": int64(1)}}},
	{"DRAW ann dear", dict{"status": "insufficient_items", "subject": "gem", "lacks": []any{dict{"item": "gem", "have": int64(99), "need": int64(1000)}}}},
	{"DRAW ann nothing", errors.New(`NOTFOUND pool: `)},
	{"DRAW ann", errors.New(`INVALID 1 arguments, want DRAW player pool [COUNT n] [PAY item] [HOLD_MS n] [REFUND] [ID id]`)},
	{"DRAW ann free COUNT", errors.New(`INVALID COUNT: is missing`)},
	{"DRAW ann free COUNT 0", errors.New(`INVALID COUNT: "0", want a whole number from 1 to 1000`)},
	{"DRAW ann free COUNT 1 COUNT 2", errors.New(`INVALID COUNT: twice`)},
	{"DRAW ann free TIMES 2", errors.New(`INVALID option: "TIMES", want DRAW`)},
	{"DRAW ann\xff free", errors.New(`INVALID player: "ann\xff", want UTF-8`)},
	{"DRAW " + strings.Repeat("x", 65) + " free", errors.New(`INVALID player: `)},
	{"GRANT ann gem 5 shield 2 ID g1", dict{"status": "ok"}},
	{"GRANT ann gem 5 shield 2 ID g1", dict{"status": "ok", "replayed": true}},
	{"GRANT ann gem", errors.New("INVALID 2 arguments")},
	{"GRANT ann gem 1 shield", errors.New("INVALID items[1].quantity: is missing")},
	{"GRANT ann gem -1", errors.New(`INVALID items[0].quantity: "-1", want a whole number`)},
	{"GRANT ann gem 0", errors.New(`INVALID items[0].quantity: `)},
	{"GRANT ann id 1", errors.New(`NOTFOUND items[0].item: `)},
	{"CONSUME ann gem 4", dict{"status": "ok"}},
	{"CONSUME ann gem 4000", dict{"status": "insufficient_items", "subject": "gem", "lacks": []any{dict{"item": "gem", "have": int64(100), "need": int64(4000)}}}},
	{"TRANSFER ann bob gem 1 ID t1", dict{"status": "ok"}},
	{"TRANSFER ann bob", errors.New("INVALID 2 arguments")},
	{"PLAYER ann", dict{"id": "ann", "items": dict{"gem": int64(99), "sword": int64(4), "shield": int64(2)}, "quests": untouched}},
	{"PLAYER nobody", errors.New("NOTFOUND player: ")},
	{"POOL last", dict{"id": "last", "mode": "raffle", "max_count": int64(100), "entry_count": int64(1), "weight_scale": int64(1), "catalog_version": int64(1),
		"rolls": dict{"min": int64(1), "max": int64(1)},
		"entries": []any{dict{"id": "only", "left": int64(0), "drawn": int64(1),
			"reward": dict{"items": []any{dict{"item": "sword", "min": int64(1), "max": int64(1)}}}}}}},
	{"POOL standard OFFSET 2", dict{"id": "standard", "name": "Standard banner", "mode": "weighted", "max_count": int64(10), "entry_count": int64(2),
		"weight_scale": int64(100), "total_weight": int64(100), "catalog_version": int64(1), "rolls": dict{"min": int64(1), "max": int64(1)},
		"prices": []any{dict{"items": dict{"gem": int64(1)}}}}},
	{"REDEEM ann none ID r1", dict{"status": "unknown_code"}},
	{"REDEEM ann", errors.New("INVALID 1 arguments, want REDEEM player code [ID id]")},
	{"REDEEM ann none KEY r1", errors.New("INVALID option: ")},
	{"REGISTER dora ID s1", dict{"status": "ok"}},
	{"REGISTER dora ID s1", dict{"status": "ok", "replayed": true}},
	{"SETLIMIT ann once FOREVER 1 sorry ID l1", dict{"status": "ok"}},
	{"SETLIMIT ann once forever 1 sorry ID l1", dict{"status": "ok", "replayed": true}},
	{"SETLIMIT ann once forever 0 sorry ID l1", errors.New("IDREUSED ")},
	{"DRAW ann once", dict{"status": "limit_reached", "subject": "once", "limit": dict{"per": "forever", "draws": int64(1)}}},
	{"SETLIMIT ann once forever 0 sorry", dict{"status": "ok"}},
	{"SETLIMIT ann once day 1 sorry", errors.New("NOTFOUND per: ")},
	{"SETLIMIT ann once year 1 sorry", errors.New(`INVALID per: "year", want forever, day, week, window, hour, month`)},
	{"SETLIMIT ann once hour 1 sorry", errors.New("INVALID per: hour; want forever, day, week, month or window")},
	{"SETLIMIT ann once window 1 sorry WINDOW_MS 5", errors.New("NOTFOUND window_ms: ")},
	{"SETLIMIT ann once forever 1 sorry WINDOW_MS 5", errors.New("INVALID window_ms: ")},
	{"SETLIMIT ann once forever 9007199254740992 sorry", errors.New("INVALID used: ")},
	{"SETLIMIT ann once forever 18446744073709551616 sorry", errors.New("INVALID used: ")},
	{"SETLIMIT ann once forever 1", errors.New("INVALID 4 arguments")},
	{"EXEC", errors.New("INVALID no group is open, want MULTI first")},
	{"DISCARD", errors.New("INVALID no group is open, want MULTI first")},
	{"MULTI", "OK"},
	{"EXEC", []any{}},
	{"MULTI", "OK"},
	{"GRANT dora gem 5", "QUEUED"},
	{"DISCARD", "OK"},
	{"POOL standard LIMIT 0", errors.New("INVALID LIMIT: ")},
	{"POOL nothing", errors.New("NOTFOUND pool: ")},
	{"ODDS free PLAYER ann", dict{"status": "ok", "catalog_version": int64(1), "count": int64(1),
		"outcomes": []any{dict{"pool": "free", "entry": "sword", "chance": dict{"exact": "1", "value": 1.0}, "expected": dict{"exact": "1", "value": 1.0}}},
		"items":    []any{dict{"item": "sword", "expected": dict{"exact": "1", "value": 1.0}}}}},
	{"ODDS free PLAYER ann PLAYER bob", errors.New("INVALID 5 arguments")},
	{"ODDS free FOR ann", errors.New("INVALID option: ")},
	{"REALM", "default"},
	{"REALM nowhere", errors.New(`NOTFOUND realm: `)},
	{"REALM default", "OK"},
	{"INFO", "# Server\r\nserver:kuji\r\nkuji_version:v1.2.3\r\nredis_mode:standalone\r\n# Persistence\r\nloading:0\r\n# Replication\r\nrole:master\r\n"},
	{"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none", "OK"},
	{"PING", "PONG"},
	{"PING hello", "hello"},
	{"ECHO hello", "hello"},
	{"ECHO", errors.New("INVALID 0 arguments, want ECHO text")},
	{"SELECT 0", "OK"},
	{"SELECT 1", errors.New("INVALID database: ")},
	{"CLIENT SETINFO LIB-NAME x", "OK"},
	{"CLIENT SETNAME x", "OK"},
	{"CLIENT LIST", errors.New("INVALID subcommand: ")},
	{"COMMAND COUNT", int64(len(server.RedisCommands()))},
	{"COMMAND INFO draw nothing", []any{[]any{"draw", int64(-3), []any{"write"}, int64(0), int64(0), int64(0)}, nil}},
	{"COMMAND DOCS quit", dict{"quit": dict{"summary": "- End the connection.", "since": "1.0.0", "group": "generic"}}},
	{"COMMAND GETKEYS", errors.New("INVALID subcommand: ")},
	{"HELLO 4", errors.New(`NOPROTO version "4" of the protocol, want 2 or 3`)},
	{"HELLO x", errors.New(`NOPROTO version "x" of the protocol, want 2 or 3`)},
	{"HELLO 3 SETNAME x", dict{"server": "kuji", "version": "v1.2.3", "mode": "standalone", "role": "master", "proto": int64(3), "id": int64(1), "modules": []any{}}},
	{"HELLO 3 MORE", errors.New("INVALID option: ")},
	{"AUTH x", "OK"}, // there are no keys
	{"GET x", errors.New("ERR unknown command \"GET\"")},
}

// untouched is the quests of testCatalog for a player who has reached nothing.
var untouched = []any{
	dict{"quest": "first", "open": true, "tiers": int64(1), "needs": []any{dict{"counter": "hits", "min": int64(1), "max": int64(kuji.MaxQuantity)}}},
	dict{"quest": "last", "open": true, "tiers": int64(1), "needs": []any{dict{"counter": "misses", "min": int64(9), "max": int64(kuji.MaxQuantity)}}},
}

// TestRedisCommands: every command, as it ends and as it is answered.
func TestRedisCommands(t *testing.T) {
	f := newServer(t, server.Options{Version: "v1.2.3"})
	c := dialRaw(t, startRedis(t, f))
	playSession(t, c)
	questRealm(t, f, "quests")
	c.ask("REALM quests")
	play(t, c, questSession)
	for _, one := range []string{"MULTI", "PROGRESS ann boss KEY kraken", "CLAIM ann hunter"} {
		c.ask(one)
	}
	results, ok := c.ask("EXEC").([]any)
	if !ok || len(results) != 2 || !reflect.DeepEqual(results[1].(dict)["claims"], []any{dict{"quest": "hunter", "tier": int64(2), "items": dict{"medal": int64(1)}, "via": []any{"chest/medal"}}}) {
		t.Errorf("a group ends with %v", results)
	}
	page, ok := c.ask("QUESTS ann").(dict)
	if !ok || page["quest_count"] != int64(3) || len(page["quests"].([]any)) != 3 || len(page["free"].([]any)) != 1 {
		t.Errorf("the quests are %v", page)
	}
	roundRealm(t, f, "rounds", "ann", "bob")
	c.ask("REALM rounds")
	play(t, c, roundSession)
	holdRealm(t, f, "holds", "ann", "bob")
	c.ask("REALM holds")
	play(t, c, holdSession)
	applyTo(t, f, "names", nameCatalog)
	c.ask("REALM names")
	play(t, c, nameSession)
	for name := range server.RedisCommands() {
		if !slices.ContainsFunc(slices.Concat(redisSession, questSession, roundSession, holdSession, nameSession), func(s struct {
			command string
			want    any
		}) bool {
			return strings.HasPrefix(strings.ToUpper(s.command), name)
		}) && name != "QUIT" {
			t.Errorf("%s is not in redisSession", name)
		}
	}
	if got := c.ask("QUIT"); got != "OK" {
		t.Errorf("QUIT: %v", got)
	}
	c.ends()
}

// playSession sends the commands of redisSession one by one, except some.
func playSession(t *testing.T, c *raw, except ...string) {
	t.Helper()
	c.ask("HELLO 3")
	play(t, c, redisSession, except...)
}

func play(t *testing.T, c *raw, session redisSteps, except ...string) {
	t.Helper()
	for _, one := range session {
		if slices.Contains(except, one.command) {
			continue
		}
		got := c.ask(one.command)
		if want, ok := one.want.(error); ok {
			if err, ok := got.(error); !ok || !strings.HasPrefix(err.Error(), want.Error()) {
				t.Errorf("%q: %v, want %v …", one.command, got, want)
			}
			continue
		}
		if diff := cmp.Diff(one.want, without(got)); diff != "" {
			t.Errorf("%q: -want +got\n%s", one.command, diff)
		}
	}
}

// TestRedisReceipt: an answer has the API's receipt, and RESP2 has arrays for maps.
func TestRedisReceipt(t *testing.T) {
	f := newServer(t, server.Options{})
	c := dialRaw(t, startRedis(t, f))
	flat, ok := c.ask("DRAW ann last ID once").([]any)
	if !ok || len(flat) != 6 || flat[0] != "status" || flat[1] != "ok" || flat[4] != "receipt" {
		t.Fatalf("RESP2: %v", flat)
	}
	c.ask("HELLO 3")
	receipt, ok := c.ask("DRAW ann last ID once").(dict)["receipt"].(dict)
	if !ok {
		t.Fatal("no receipt")
	}
	realm, err := f.engine.Realm("default")
	if err != nil {
		t.Fatal(err)
	}
	l, err := realm.Result(t.Context(), "once")
	if err != nil {
		t.Fatal(err)
	}
	r := &l.Result.Receipt
	want := dict{"realm": "default", "position": int64(r.Position), "time_unix_ms": r.Time, "catalog_version": int64(1), "epoch": int64(r.Epoch),
		"commitment": fmt.Sprintf("%x", r.Commitment)}
	if r.Index > 0 {
		want["index"] = int64(r.Index)
	}
	if diff := cmp.Diff(want, receipt); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestGoRedis: the usual client connects, in both versions of the protocol, with a key and a realm, and
// sends commands alone and in pipelines.
func TestGoRedis(t *testing.T) {
	borrowed := httptest.NewTLSServer(http.NotFoundHandler())
	defer borrowed.Close()
	roots := x509.NewCertPool()
	roots.AddCert(borrowed.Certificate())
	for _, tt := range []struct {
		name     string
		protocol int
		tls      bool
	}{{"RESP2", 2, false}, {"RESP3", 3, false}, {"TLS", 3, true}} {
		t.Run(tt.name, func(t *testing.T) {
			o := server.Options{Keys: keyFile(t)}
			ro := &redis.Options{Protocol: tt.protocol, Username: "summer", Password: adminKey, ClientName: "test", MaxRetries: -1}
			if tt.tls {
				o.TLS = &tls.Config{Certificates: borrowed.TLS.Certificates}
				ro.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "example.com"}
			}
			f := newServer(t, o)
			summer, err := f.engine.Realm("summer")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := summer.Apply(t.Context(), catalogOf(t, testCatalog)); err != nil {
				t.Fatal(err)
			}
			ro.Addr = startRedis(t, f)
			c := redis.NewClient(ro)
			defer c.Close()
			ctx := t.Context()
			if err := c.Ping(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			if got, err := c.Do(ctx, "REALM").Text(); got != "summer" || err != nil {
				t.Errorf("the realm is %q, %v", got, err)
			}
			if _, err := c.Do(ctx, "DRAW", "ann", "free", "COUNT", 3, "ID", "d1").Result(); err != nil {
				t.Error(err)
			}
			cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.Do(ctx, "GRANT", "ann", "gem", 5)
				p.Do(ctx, "DRAW", "ann", "nothing")
				p.Do(ctx, "CONSUME", "ann", "gem", 5)
				return nil
			})
			if !strings.HasPrefix(fmt.Sprint(err), "NOTFOUND pool: ") || cmds[0].Err() != nil || cmds[2].Err() != nil {
				t.Errorf("a pipeline: %v, %v", cmds, err)
			}
			v, err := summer.Player(ctx, "ann")
			if err != nil || !slices.Contains(v.Items, kuji.Stack{Item: "sword", Quantity: 3}) {
				t.Errorf("ann has %v, %v", v.Items, err)
			}
			ro.Password = "wrong"
			bad := redis.NewClient(ro)
			defer bad.Close()
			if err := bad.Ping(ctx).Err(); err == nil || !strings.HasPrefix(err.Error(), "WRONGPASS") {
				t.Errorf("with a wrong key: %v", err)
			}
		})
	}
}

// redisNeeds says once more what each command needs. One that is not here fails the test.
var redisNeeds = map[string]struct {
	line         string
	command      string
	pool, player bool
}{
	"DRAW":        {"DRAW ann free", "draw", true, true},
	"REDEEM":      {"REDEEM ann x", "redeem", true, true}, // of any pool
	"REGISTER":    {"REGISTER ann", "register", false, true},
	"GRANT":       {"GRANT ann gem 1", "grant", false, true},
	"CONSUME":     {"CONSUME ann gem 1", "consume", false, true},
	"TRANSFER":    {"TRANSFER ann bob gem 1", "transfer", false, true},
	"PROGRESS":    {"PROGRESS ann wins", "progress", false, true},
	"COLLECT":     {"COLLECT ann", "collect", false, true},
	"CLAIM":       {"CLAIM ann winner", "claim", false, true},
	"SETCOUNTER":  {"SETCOUNTER ann wins 1 x", "admin", true, true},
	"QUESTS":      {"QUESTS ann", "read", false, true},
	"RANKS":       {"RANKS wins", "read", true, true},
	"OPENROUND":   {"OPENROUND prize", "open_round", false, true},
	"JOIN":        {"JOIN ann prize", "join", false, true},
	"SETTLE":      {"SETTLE prize", "settle", false, true},
	"REROLL":      {"REROLL prize 1", "reroll", false, true},
	"CANCELROUND": {"CANCELROUND prize", "cancel_round", false, true},
	"CONFIRM":     {"CONFIRM h", "confirm", true, true},
	"CANCEL":      {"CANCEL h", "cancel", true, true},
	"HOLD":        {"HOLD h", "read", true, true},
	"HOLDS":       {"HOLDS", "read", true, true},
	"LINKCODE":    {"LINKCODE ann x", "link_code", true, true}, // of any pool, as those that follow
	"LINK":        {"LINK ann CODE y", "link", true, true},
	"UNLINK":      {"UNLINK ann", "unlink", true, true},
	"MERGE":       {"MERGE ann bob", "admin", true, true},
	"FORGET":      {"FORGET ann", "admin", true, true},
	"BLOCK":       {"BLOCK ann x ENDS", "admin", true, true},
	"REVERSE":     {"REVERSE r x", "admin", true, true},
	"ROUND":       {"ROUND 1", "read", true, true},
	"ROUNDS":      {"ROUNDS", "read", true, true},
	"SETLIMIT":    {"SETLIMIT ann once forever 1 x", "admin", true, true}, // of no player, and of the whole realm
	"PLAYER":      {"PLAYER ann", "read", false, true},
	"POOL":        {"POOL free", "read", true, false},
	"ODDS":        {"ODDS free PLAYER ann", "read", true, true},
}

// TestRedisWhoMayWhat asks for every command with every kind of credential.
func TestRedisWhoMayWhat(t *testing.T) {
	f, k, _ := accessServer(t)
	addr := startRedis(t, f)
	denied := map[string]bool{"NOAUTH": true, "NOPERM": true, "WRONGPASS": true}
	for name, engine := range server.RedisCommands() {
		c := dialRaw(t, addr)
		n, ok := redisNeeds[name]
		if !engine {
			want := "NOAUTH"
			if name == "QUIT" || name == "AUTH" {
				continue
			}
			if got := kindOf(c.ask(name + map[string]string{"SELECT": " 0", "ECHO": " x", "CLIENT": " ID"}[name])); got != want {
				t.Errorf("%s before AUTH: %q, want %s", name, got, want)
			}
			continue
		}
		if !ok {
			t.Errorf("%s: say in redisNeeds what it needs", name)
			continue
		}
		who := map[string]string{
			"": "NOAUTH", "nobody": "NOAUTH", k.of("ann") + "x": "NOAUTH",
			"admin": "", "admin-here": "", "admin-elsewhere": "NOPERM", "everything": "", "free-pool": "",
			"other-pool": map[bool]string{true: "NOPERM"}[n.pool],
			k.of("ann"):  map[bool]string{true: "NOPERM"}[slices.Contains(notPlayers, n.command)],
			k.of("bob"):  map[bool]string{true: "NOPERM"}[slices.Contains(notPlayers, n.command) || n.player],
		}
		if slices.Contains([]string{"redeem", "confirm", "cancel", "link_code", "link", "unlink"}, n.command) {
			who["free-pool"] = "NOPERM"
		}
		if name == "RANKS" || name == "ROUND" || name == "ROUNDS" || name == "HOLD" || name == "HOLDS" { // of the whole realm
			who["free-pool"], who[k.of("ann")] = "NOPERM", "NOPERM"
		}
		if n.command == "admin" {
			who["everything"], who["free-pool"], who["other-pool"], who[k.of("ann")], who[k.of("bob")] = "NOPERM", "NOPERM", "NOPERM", "NOPERM", "NOPERM"
		}
		for _, c := range allCommands {
			who["only-"+c] = map[bool]string{true: "NOPERM"}[c != n.command]
		}
		for secret, want := range who {
			c := dialRaw(t, addr)
			if secret != "" {
				if got := kindOf(c.ask("AUTH " + secret)); got != map[bool]string{true: "WRONGPASS"}[want == "NOAUTH"] {
					t.Errorf("AUTH %.20q: %q", secret, got)
				}
			}
			if got := kindOf(c.ask(n.line)); got != want && (denied[got] || want != "") {
				t.Errorf("%s with %.20q: %q, want %q", name, secret, got, want)
			}
		}
	}
	// A realm is for those who have it, by AUTH, HELLO and REALM.
	c := dialRaw(t, addr)
	for line, want := range map[string]string{"AUTH other admin-here": "NOPERM", "AUTH nowhere admin": "NOTFOUND", "HELLO 3 AUTH other admin-here": "NOPERM"} {
		if got := kindOf(c.ask(line)); got != want {
			t.Errorf("%s: %q, want %s", line, got, want)
		}
		if got := kindOf(c.ask("PING")); got != "NOAUTH" {
			t.Errorf("%s let somebody in: %q", line, got)
		}
	}
	if got := c.ask("AUTH default admin-here", "REALM other"); kindOf(got) != "NOPERM" {
		t.Errorf("REALM other for a key of another: %v", got)
	}
	if got := c.ask("AUTH nobody"); kindOf(got) != "WRONGPASS" || c.ask("REALM") != "default" {
		t.Errorf("a wrong AUTH changes who is there: %v", got)
	}
}

// TestRedisGroup: what stands between MULTI and EXEC happens whole or not at all.
func TestRedisGroup(t *testing.T) {
	f := newServer(t, server.Options{})
	c := dialRaw(t, startRedis(t, f))
	c.ask("HELLO 3")
	holds := func(want map[string]int64) {
		t.Helper()
		for player, n := range want {
			got, _ := c.ask("PLAYER " + player).(dict)
			items, _ := got["items"].(dict)
			if have, _ := items["gem"].(int64); have != n {
				t.Errorf("%s has %d gems, want %d", player, have, n)
			}
		}
	}
	group := func(lines ...string) any {
		t.Helper()
		if got := c.ask("MULTI"); got != "OK" {
			t.Fatalf("MULTI: %v", got)
		}
		for _, l := range lines {
			if got := c.ask(l); got != "QUEUED" {
				t.Fatalf("%s: %v", l, got)
			}
		}
		return c.ask("EXEC")
	}
	c.ask("REGISTER ann", "REGISTER bob", "REGISTER cid") // who come with 100 gems each
	trade := []string{"TRANSFER ann bob gem 4 ID trade", "GRANT cid gem 1", "DRAW bob free"}
	first, _ := group(trade...).([]any)
	if len(first) != 3 {
		t.Fatalf("the answer to EXEC: %v", first)
	}
	receipt := first[0].(dict)["receipt"]
	for i, one := range first {
		if res := one.(dict); res["status"] != "ok" || !cmp.Equal(res["receipt"], receipt) || res["replayed"] != nil {
			t.Errorf("result %d: %v", i, res)
		}
	}
	holds(map[string]int64{"ann": 96, "bob": 104, "cid": 101})
	for i, one := range group(trade...).([]any) {
		res := one.(dict)
		if res["replayed"] != true {
			t.Errorf("result %d of the same group again: %v", i, res)
		}
		if delete(res, "replayed"); !cmp.Equal(any(res), first[i]) {
			t.Errorf("result %d of the same group again: %v, want %v", i, res, first[i])
		}
	}
	if got := group("CONSUME ann gem 6 ID trade"); kindOf(got) != "IDREUSED" {
		t.Errorf("another group with the same ID: %v", got)
	}
	var ends []any
	for _, one := range group("GRANT bob gem 3", "CONSUME ann gem 97 ID failed", "GRANT cid gem 1").([]any) {
		ends = append(ends, one.(dict)["status"])
	}
	if !cmp.Equal(ends, []any{"aborted", "insufficient_items", "aborted"}) {
		t.Errorf("a group that fails ends with %v", ends)
	}
	if got := group("GRANT bob gem 3", "DRAW ann nothing"); kindOf(got) != "NOTFOUND" {
		t.Errorf("a group with a pool that there is not: %v", got)
	}
	holds(map[string]int64{"ann": 96, "bob": 104, "cid": 101})
	// A command that is refused breaks its group, whatever follows.
	many := strings.Repeat("x", 100)
	for bad, want := range map[string]string{
		"GRANT bob gem x": "INVALID items[0].quantity", "GRANT bob": "INVALID", "GET x": "ERR unknown", "PLAYER ann": "INVALID PLAYER in a group",
		"REDEEM ann x": "INVALID REDEEM in a group", "MULTI": "INVALID MULTI in a group", "EXEC now": "INVALID 1 arguments", "AUTH " + many: "INVALID AUTH in a group",
		"GRANT bob gem 1 ID second": "INVALID ID: the group has one already",
	} {
		got := c.ask("MULTI", "GRANT bob gem 1 ID first", bad)
		if err, ok := got.(error); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40s in a group: %v, want %s", bad, got, want)
		}
		if got := c.ask("GRANT bob gem 1", "EXEC"); kindOf(got) != "EXECABORT" {
			t.Errorf("EXEC behind %.40s: %v", bad, got)
		}
	}
	holds(map[string]int64{"bob": 104})
}

// TestRedisGroupBounds: what waits for EXEC is bounded in number and bytes, is the key's memory, and ends
// with the connection.
func TestRedisGroupBounds(t *testing.T) {
	f := newServer(t, server.Options{Limits: server.Limits{BatchBytes: 64 << 10, RequestBytes: 8 << 10}})
	addr := startRedis(t, f)
	c := dialRaw(t, addr)
	c.ask("MULTI")
	for range kuji.MaxAtomic {
		if got := c.ask("GRANT ann gem 1"); got != "QUEUED" {
			t.Fatal(got)
		}
	}
	if got := c.ask("GRANT ann gem 1"); kindOf(got) != "INVALID" {
		t.Errorf("one command more than a group can have: %v", got)
	}
	if n := f.server.RequestMemory(); n < int64(kuji.MaxAtomic)*512 {
		t.Errorf("a group of %d commands takes %d bytes", kuji.MaxAtomic, n)
	}
	if got := c.ask("EXEC"); kindOf(got) != "EXECABORT" {
		t.Error(got)
	}
	large := command("GRANT", strings.Repeat("x", 7<<10), "gem", "1")
	c.send(line("MULTI") + strings.Repeat(large, 8) + line("QUIT"))
	if got := c.answer(); got != "OK" {
		t.Fatal(got)
	}
	for i := range 8 {
		if got := c.answer(); i < 8 && got != "QUEUED" {
			t.Errorf("command %d: %v", i, got)
		}
	}
	c = dialRaw(t, addr)
	c.send(line("MULTI") + strings.Repeat(large, 9))
	for range 9 {
		c.answer()
	}
	if got := c.answer(); kindOf(got) != "INVALID" {
		t.Errorf("a group of more than 64 KiB: %v", got)
	}
	_ = c.conn.Close() // see serveRedis: nothing is left behind
}

// TestRedisGroupOfGoRedis: the client's own way to send a group.
func TestRedisGroupOfGoRedis(t *testing.T) {
	f := newServer(t, server.Options{})
	c := redis.NewClient(&redis.Options{Addr: startRedis(t, f)})
	defer c.Close()
	ctx := t.Context()
	cmds, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "GRANT", "ann", "gem", 5, "ID", "tx-1")
		p.Do(ctx, "TRANSFER", "ann", "bob", "gem", 2)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range cmds {
		if res, ok := cmd.(*redis.Cmd).Val().(map[any]any); !ok || res["status"] != "ok" {
			t.Errorf("%v", cmd)
		}
	}
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "GRANT", "ann", "gem", 5)
		p.Do(ctx, "DRAW", "ann", "nothing")
		return nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "NOTFOUND members[1].pool: ") {
		t.Errorf("a group that is refused: %v", err)
	}
}

// TestRedisGroupAllowed: a group needs what each of its commands needs.
func TestRedisGroupAllowed(t *testing.T) {
	f, k, _ := accessServer(t)
	addr := startRedis(t, f)
	for secret, want := range map[string]string{"admin": "", "only-draw": "NOPERM", "only-grant": "NOPERM", "other-pool": "NOPERM", k.of("ann"): "NOPERM", "everything": ""} {
		c := dialRaw(t, addr)
		if got := kindOf(c.ask("AUTH "+secret, "MULTI", "GRANT ann gem 1", "DRAW ann free", "EXEC")); got != want {
			t.Errorf("a grant and a draw with %.20q: %q, want %q", secret, got, want)
		}
	}
}

// TestRedisAccessLog: each command has its line, and refused and slow ones stand in the log, too.
func TestRedisAccessLog(t *testing.T) {
	var lines, log text
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	access := server.NewAccessLog(&lines, logger)
	f := startWith(t, kuji.Options{}, server.Options{Keys: keyFile(t), AccessLog: access, Logger: logger, SlowRequests: time.Nanosecond})
	c := dialRaw(t, startRedis(t, f))
	c.ask("PING", "AUTH secret-key", "AUTH "+writeKey, "REDEEM ann secret-code", "GET secret-word")
	c.send(line("DRAW ann last ID a") + line("DRAW ann last") + line("DRAW ann secret") + line("PLAYER ann"))
	for range 4 {
		c.answer()
	}
	c.ask("MULTI", "GRANT ann gem 1", "EXEC", "QUIT")
	f.stop(t, access)
	var got []string
	for _, one := range linesOf(t, lines.String(), "") {
		if one["peer"] != c.conn.LocalAddr().String() || one["seconds"].(float64) <= 0 || one["request_bytes"].(float64) < 14 || one["response_bytes"].(float64) < 5 || one["http"] != nil {
			t.Errorf("a line without peer, time or bytes: %v", one)
		}
		got = append(got, fmt.Sprint(one["method"], " ", one["realm"], " ", one["key"], " ", one["code"], " ", one["status"]))
	}
	key := " default game-server-1 "
	if diff := cmp.Diff([]string{
		"redis/PING default <nil> unauthenticated <nil>", "redis/AUTH default <nil> unauthenticated <nil>", "redis/AUTH" + key + "ok <nil>",
		"redis/REDEEM" + key + "ok unknown_code", "redis/none" + key + "unimplemented <nil>",
		"redis/DRAW" + key + "ok ok", "redis/DRAW" + key + "ok sold_out", "redis/DRAW" + key + "not_found <nil>", "redis/PLAYER" + key + "ok <nil>",
		"redis/MULTI" + key + "ok <nil>", "redis/GRANT" + key + "ok <nil>", "redis/EXEC" + key + "ok ok", "redis/QUIT" + key + "ok <nil>",
	}, got); diff != "" {
		t.Error(diff)
	}
	if refused := linesOf(t, log.String(), "request refused"); len(refused) != 4 {
		t.Errorf("%d refused requests in the log, want 4: %v", len(refused), refused)
	}
	if slow := linesOf(t, log.String(), "slow request"); len(slow) != len(got) {
		t.Errorf("%d slow requests in the log, want %d", len(slow), len(got))
	}
	for _, secret := range []string{"secret-key", "secret-code", "secret-word", writeKey} {
		if strings.Contains(lines.String()+log.String(), secret) {
			t.Errorf("%q is in a log:\n%s%s", secret, lines.String(), log.String())
		}
	}
}

// TestRedisKeyGoes: a key that is taken out of the file lets nobody in, at the next command.
func TestRedisKeyGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, keyLine(t, "admin", adminKey, "ops"), keyLine(t, "write", writeKey, "game"))
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	f := newServerWith(t, kuji.Options{}, server.Options{Keys: keys}) // a feed has only what is durable
	c := dialRaw(t, startRedis(t, f))
	if got := c.ask("AUTH "+writeKey, "GRANT ann gem 1"); kindOf(got) != "" {
		t.Fatal(got)
	}
	// What was granted says by whom, as over the API.
	realm, err := f.engine.Realm("default")
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range realm.Feed().Events(t.Context(), realm.Stats().Position) {
		if err != nil || rec.Kind != "grant" || rec.By != "game" {
			t.Errorf("the event is a %s by %q, %v", rec.Kind, rec.By, err)
		}
		break
	}
	writeKeys(t, path, keyLine(t, "admin", adminKey, "ops"))
	if err := keys.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := kindOf(c.ask("DRAW ann free")); got != "NOAUTH" {
		t.Errorf("a draw with a key that is gone: %q", got)
	}
	if got := kindOf(c.ask("PING")); got != "NOAUTH" {
		t.Errorf("the connection is still let in: %q", got)
	}
}

// TestRedisProtocolBroken: what is no command ends the connection with an error that says where, and
// what came before it is carried out.
func TestRedisProtocolBroken(t *testing.T) {
	keys := keyFile(t)
	f := newServer(t, server.Options{Keys: keys, Limits: server.Limits{RequestBytes: 10_000}})
	addr := startRedis(t, f)
	long := strings.Repeat("x", 9_990)
	for _, tt := range []struct {
		sent  string
		known bool // with a key
		want  string
	}{
		{sent: "PING\r\n", want: `byte 0 of the command: 'P', want '*'`},
		{sent: "POST /kuji HTTP/1.1\r\nHost: x\r\n\r\n" + line("DRAW ann free"), known: true, want: `byte 0 of the command: 'P', want '*'`},
		{sent: "*x\r\n", want: "byte 1 of the command: 'x', want a length"},
		{sent: "*-1\r\n", want: "byte 1 of the command: '-', want a length"},
		{sent: "*\r\n", want: `byte 1 of the command: '\r', want a length`},
		{sent: "*1\rx", want: "byte 3 of the command: 'x', want LF after CR"},
		{sent: "*1000000000\r\n", want: "byte 10 of the command: '0', want a length"},
		{sent: "*999999999\r\n", want: "byte 0 of the command: a command of 999999999 words, want at most 136"},
		{sent: "*137\r\n", known: true, want: "a command of 137 words, want at most 136"},
		{sent: "*1\r\n:1\r\n", want: "byte 4 of the command: ':', want '$'"},
		{sent: "*1\r\n$-1\r\n", want: "byte 5 of the command: '-', want a length"},
		{sent: "*1\r\n$9223372036854775807\r\n", want: "want a length: 1 to 9 digits"},
		{sent: "*1\r\n$999999999\r\n", known: true, want: "byte 4 of the command: a command of more than 10000 bytes"},
		{sent: "*1\r\n$999999999\r\n", want: "byte 4 of the command: a command of more than 4608 bytes"},
		{sent: "*1\r\n$4596\r\n", want: "a command of more than 4608 bytes"},
		{sent: "*2\r\n$4\r\nPING\r\n$9990\r\n", known: true, want: "byte 14 of the command: a command of more than 10000 bytes"},
		{sent: "*1\r\n$4\r\nPINGxx", want: "byte 12 of the command: a bulk string of 4 bytes that goes on"},
		{sent: line("GRANT ann gem 1") + "!", known: true, want: "byte 0 of the command: '!'"},
		{sent: line("ECHO "+long[:9971]) + "*1\r\n", known: true},
	} {
		c := dialRaw(t, addr)
		if tt.known {
			c.ask("AUTH " + adminKey)
		}
		c.send(tt.sent)
		got := c.answer()
		if strings.HasPrefix(tt.sent, line("GRANT ann gem 1")) {
			if kindOf(got) != "" {
				t.Errorf("%.40q: what is in front of it: %v", tt.sent, got)
			}
			got = c.answer()
		}
		if tt.want == "" {
			if kindOf(got) != "" {
				t.Errorf("%.40q: %v", tt.sent, got)
			}
			continue
		}
		if err, ok := got.(error); !ok || !strings.HasPrefix(err.Error(), "INVALID protocol: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want INVALID protocol … %s", tt.sent, got, tt.want)
		}
		c.ends()
	}
	realm, err := f.engine.Realm("default")
	if err != nil {
		t.Fatal(err)
	}
	if st := realm.Stats(); st.Draws != 0 {
		t.Errorf("%d draws, want none", st.Draws)
	}
}

// TestRedisHalfCommand: half a command keeps no whole one waiting, in whatever pieces it comes, and a
// client that never sends the rest is sent away.
func TestRedisHalfCommand(t *testing.T) {
	f := newServer(t, server.Options{Limits: server.Limits{ReadTimeout: 50 * time.Millisecond}})
	p := newPipes()
	serveRedis(t, f, p)
	c := p.dial(t)
	whole := line("GRANT ann gem 1")
	c.send(whole + whole + "*2\r\n$4\r\nEC")
	for range 2 {
		if got := c.answer(); kindOf(got) != "" {
			t.Fatal(got)
		}
	}
	if err, ok := c.answer().(error); !ok || !strings.Contains(err.Error(), "INVALID protocol: the command is incomplete: 10 bytes") {
		t.Errorf("half a command: %v", err)
	}
	c.ends()
}

// TestRedisDawdlers: a stranger has the time of a header for a command, and nobody may stay idle without end.
func TestRedisDawdlers(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t), Limits: server.Limits{HeaderTimeout: 50 * time.Millisecond}})
	p := newPipes()
	serveRedis(t, f, p)
	c := p.dial(t)
	c.send("*2\r\n$4\r\nAU")
	if got := c.answer(); kindOf(got) != "INVALID" {
		t.Errorf("half of AUTH: %v", got)
	}
	c.ends()
	f = newServer(t, server.Options{Limits: server.Limits{IdleTimeout: 50 * time.Millisecond}})
	p = newPipes()
	serveRedis(t, f, p)
	c = p.dial(t)
	c.send(line("PING"))
	if got := c.answer(); got != "PONG" {
		t.Error(got)
	}
	c.ends()
}

// TestRedisByteByByte: a command may come in any pieces.
func TestRedisByteByByte(t *testing.T) {
	f := newServer(t, server.Options{})
	p := newPipes()
	serveRedis(t, f, p)
	c := p.dial(t)
	for _, text := range []string{"hello", "", strings.Repeat("x", 3*server.RedisBuffer)} {
		for sent := command("ECHO", text); sent != ""; {
			n := min(len(sent), 1+len(text)/5000)
			c.send(sent[:n])
			sent = sent[n:]
		}
		if got := c.answer(); got != text {
			t.Errorf("%d bytes come back as %.20q", len(text), got)
		}
	}
}

// TestRedisPipeline: commands that arrive together are one batch, in order. One that is refused does
// not divide it.
func TestRedisPipeline(t *testing.T) {
	f := newServer(t, server.Options{})
	realm, err := f.engine.Realm("default")
	if err != nil {
		t.Fatal(err)
	}
	p := newPipes()
	serveRedis(t, f, p)
	c := p.dial(t)
	c.ask("HELLO 3")
	const n = 1000
	var sent strings.Builder
	for i := range n {
		switch i {
		case 500:
			sent.WriteString(line("DRAW ann free COUNT x"))
		case 501:
			sent.WriteString(line("DRAW ann nothing"))
		default:
			sent.WriteString(line(fmt.Sprintf("GRANT p%d gem %d ID id%d", i, i+1, i)))
		}
	}
	for round, replayed := range []any{nil, true} {
		before := realm.Stats()
		c.send(sent.String())
		for i := range n {
			got := c.answer()
			want := map[int]string{500: "INVALID", 501: "NOTFOUND"}[i]
			if kindOf(got) != want {
				t.Fatalf("command %d: %v", i, got)
			}
			if want == "" && got.(dict)["replayed"] != replayed {
				t.Fatalf("command %d: %v, want replayed: %v", i, got, replayed)
			}
		}
		after := realm.Stats()
		if events, batches := after.Events-before.Events, after.Batches-before.Batches; round == 0 && (events != n-2 || batches != 1) || round == 1 && events != 0 {
			t.Errorf("round %d: %d events in %d batches", round, events, batches)
		}
	}
	for _, i := range []int{0, 499, n - 1} {
		if got := c.ask(fmt.Sprintf("PLAYER p%d", i)).(dict)["items"].(dict)["gem"]; got != int64(i+101) {
			t.Errorf("p%d has %v", i, got)
		}
	}
	// What reads stands in its place, and sees what is in front of it.
	c.send(line("GRANT zoe gem 1") + line("PLAYER zoe") + line("ECHO x") + line("CONSUME zoe gem 1") + line("PLAYER zoe"))
	var got []any
	for range 5 {
		got = append(got, without(c.answer()))
	}
	want := []any{dict{"status": "ok"}, dict{"id": "zoe", "items": dict{"gem": int64(101)}, "quests": untouched}, "x", dict{"status": "ok"}, dict{"id": "zoe", "items": dict{"gem": int64(100)}, "quests": untouched}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestRedisLargePipeline: a pipeline beyond all limits of a batch is several, and takes and returns its
// memory. Where there is none, the pipeline goes in pieces.
func TestRedisLargePipeline(t *testing.T) {
	for _, scarce := range []bool{false, true} {
		f := newServer(t, server.Options{})
		c := dialRaw(t, startRedis(t, f))
		c.ask("HELLO 3")
		if scarce {
			defer f.server.HoldMemory(40 << 10)()
		}
		const n = 12_000
		go func() {
			one := line("DRAW ann free COUNT 9")
			_, _ = io.WriteString(c.conn, strings.Repeat(one, n))
		}()
		for i := range n {
			if got := c.answer(); kindOf(got) != "" {
				t.Fatalf("command %d: %v", i, got)
			}
		}
		if got := c.ask("PLAYER ann").(dict)["items"].(dict)["sword"]; got != int64(9*n) {
			t.Errorf("ann has %v swords, want %d", got, 9*n)
		}
	}
}

// TestRedisOverloaded: a server that is full refuses what is for the engine, and goes on.
func TestRedisOverloaded(t *testing.T) {
	f := newServer(t, server.Options{})
	c := dialRaw(t, startRedis(t, f))
	release := f.server.HoldCalls()
	c.send(line("DRAW ann free") + line("PING") + line("DRAW ann free"))
	if got := []any{kindOf(c.answer()), c.answer(), kindOf(c.answer())}; !cmp.Equal(got, []any{"OVERLOADED", "PONG", "OVERLOADED"}) {
		t.Errorf("%v", got)
	}
	release()
	if got := c.ask("DRAW ann free"); kindOf(got) != "" {
		t.Error(got)
	}
}

// TestRedisDeposed: a client is never told of what did not become durable, because another node has
// taken the realm over.
func TestRedisDeposed(t *testing.T) {
	shared := drivertest.NewShared(drivertest.SharedOptions{})
	open := func(node int) *kuji.Engine {
		engine, err := kuji.Open("", kuji.Options{Driver: shared.Node(node), Key: [32]byte{1}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { engine.Close() }) // the test does not care how
		return engine
	}
	first := open(1)
	f := newServerOn(t, first, server.Options{})
	realm, err := first.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(t.Context(), catalogOf(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	c := dialRaw(t, startRedis(t, f))
	if got := c.ask("DRAW ann free ID before"); kindOf(got) != "" {
		t.Fatal(got)
	}
	if _, err := open(2).Realm(server.DefaultRealm); err != nil {
		t.Fatal(err)
	}
	c.send(line("DRAW ann free ID a") + line("DRAW ann free ID b"))
	if got := []any{kindOf(c.answer()), kindOf(c.answer())}; !cmp.Equal(got, []any{"UNKNOWN", "UNKNOWN"}) {
		t.Errorf("%v", got)
	}
}

// TestRedisRate: a pipeline counts for its key's rate as a batch does.
func TestRedisRate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, keyLine(t, "write", writeKey, "game", "rate=10"))
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	f := newServer(t, server.Options{Keys: keys})
	now := time.Unix(1_700_000_000, 0)
	f.server.SetRateClock(func() time.Time { return now })
	p := newPipes()
	serveRedis(t, f, p)
	c := p.dial(t)
	c.ask("AUTH " + writeKey)
	c.send(strings.Repeat(line("DRAW ann free"), 10))
	for i := range 10 {
		if got := c.answer(); kindOf(got) != "" {
			t.Fatalf("draw %d: %v", i, got)
		}
	}
	if got := c.ask("DRAW ann free"); kindOf(got) != "OVERLOADED" {
		t.Errorf("more than the rate: %v", got)
	}
	if got := c.ask("PING"); got != "PONG" {
		t.Errorf("what is not for the engine: %v", got)
	}
	now = now.Add(100 * time.Millisecond)
	if got := c.ask("DRAW ann free"); kindOf(got) != "" {
		t.Errorf("a tenth of a second later: %v", got)
	}
}

// TestRedisStrangers: before AUTH a connection gets no memory, and a newcomer gets the place of one that
// waits.
func TestRedisStrangers(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t), Limits: server.Limits{Connections: 16}})
	addr := startRedis(t, f)
	known := dialRaw(t, addr)
	known.ask("AUTH " + adminKey)
	var strangers []*raw
	for range 40 {
		c := dialRaw(t, addr)
		c.send("*2\r\n$4\r\nAUTH\r\n$4000\r\n" + strings.Repeat("x", 3999))
		strangers = append(strangers, c)
		if n := f.server.Connections(); n > 16 {
			t.Fatalf("%d connections, want at most 16", n)
		}
	}
	strangers[0].ends()
	if n := f.server.RequestMemory(); n != 0 {
		t.Errorf("strangers hold %d bytes", n)
	}
	if got := known.ask("DRAW ann free"); kindOf(got) != "" {
		t.Errorf("who has a key: %v", got)
	}
}

// TestRedisShutdown: what has arrived whole is answered, idle connections end, and who takes no answers
// is cut.
func TestRedisShutdown(t *testing.T) {
	f := newServer(t, server.Options{})
	p := newPipes()
	serveRedis(t, f, p)
	idle, half, busy := p.dial(t), p.dial(t), p.dial(t)
	half.send("*1\r\n$4\r\nPI")
	busy.send(line("ECHO 1") + line("DRAW ann free")) // its answers wait: nobody reads them
	ctx, cancel := context.WithCancel(t.Context())
	down := make(chan error, 1)
	go func() { down <- f.server.Shutdown(ctx) }()
	idle.ends()
	half.ends()
	for f.server.RedisConnections() > 1 {
		runtime.Gosched()
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown returns (%v) while answers are on their way", err)
	default:
	}
	if got := busy.answer(); got != "1" {
		t.Errorf("the pipeline in flight: %v", got)
	}
	if got := busy.answer(); kindOf(got) != "" {
		t.Errorf("the pipeline in flight: %v", got)
	}
	busy.ends()
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	cancel()

	f = newServer(t, server.Options{})
	p = newPipes()
	serveRedis(t, f, p)
	stuck := p.dial(t)
	stuck.send(line("ECHO 1"))
	ctx, cancel = context.WithCancel(t.Context())
	go func() { down <- f.server.Shutdown(ctx) }()
	cancel()
	if err := <-down; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown with a client that takes no answers: %v", err)
	}
}

// shortOfFiles is a listener that fails for a while.
type shortOfFiles struct {
	net.Listener
	fails []error
}

func (l *shortOfFiles) Accept() (net.Conn, error) {
	if len(l.fails) > 0 {
		err := l.fails[0]
		l.fails = l.fails[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

// TestRedisShortOfFiles: a machine without files to open for a while does not end the listener.
func TestRedisShortOfFiles(t *testing.T) {
	f := newServer(t, server.Options{})
	p := newPipes()
	serveRedis(t, f, &shortOfFiles{p, []error{&net.OpError{Op: "accept", Err: os.NewSyscallError("accept", syscall.EMFILE)}}})
	if got := p.dial(t).ask("PING"); got != "PONG" {
		t.Error(got)
	}
	broken := errors.New("broken")
	if err := f.server.ServeRedis(&shortOfFiles{newPipes(), []error{broken}}); !errors.Is(err, broken) {
		t.Errorf("a listener that is broken: %v", err)
	}
}

// TestRedisMetrics: commands are counted by name and by how they end.
func TestRedisMetrics(t *testing.T) {
	f := newServer(t, server.Options{})
	c := dialRaw(t, startRedis(t, f))
	c.ask("DRAW ann free", "DRAW ann free COUNT x", "DRAW ann last", "DRAW ann last", "PLAYER nobody")
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	f.server.ServeHTTP(w, r)
	for _, want := range []string{
		`kuji_rpc_requests_total{code="ok",rpc="redis/DRAW"} 3`, `kuji_rpc_requests_total{code="invalid_argument",rpc="redis/DRAW"} 1`,
		`kuji_rpc_requests_total{code="not_found",rpc="redis/PLAYER"} 1`, `kuji_results_total{status="sold_out"} 1`, `kuji_redis_connections 1`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("%s is not among the metrics", want)
		}
	}
}

// TestRedisKinds: every reason of the contract has a word, and docs/reference/redis.md names words and commands.
func TestRedisKinds(t *testing.T) {
	doc, err := os.ReadFile("../docs/reference/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for n, name := range kujiv1.Reason_name {
		if kind := server.RedisKind(kujiv1.Reason(n)); n != 0 && !bytes.Contains(doc, []byte("| `"+kind+"` |")) {
			t.Errorf("%s has the word %q, which docs/reference/redis.md does not have", name, kind)
		}
	}
	for name, usage := range server.RedisUsage() {
		if line := "`" + strings.ReplaceAll(strings.TrimSpace(name+" "+usage), "|", `\|`) + "`"; !bytes.Contains(doc, []byte(line)) {
			t.Errorf("docs/reference/redis.md does not have %s", line)
		}
	}
}

// TestRedisExample: the first draw of docs/reference/redis.md is one that the example catalog takes.
func TestRedisExample(t *testing.T) {
	doc, err := os.ReadFile("../docs/reference/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	draw := regexp.MustCompile(`--catalog examples/(\S+) .*\nredis-cli .* DRAW (\S+) (\S+) ID (\S+)\n`).FindSubmatch(doc)
	if draw == nil {
		t.Fatal("docs/reference/redis.md does not begin with a draw")
	}
	source, err := examples.Files.ReadFile(string(draw[1]))
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := kuji.OpenMemory([32]byte{}, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	realm, err := engine.Realm("default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Do(t.Context(), kuji.Draw{ID: string(draw[4]), Player: string(draw[2]), Pool: string(draw[3])}); err != nil {
		t.Errorf("%s: %v", draw[0], err)
	}
}

// FuzzRedisParse: the parser takes the same from a part as from the whole, and nothing beyond its end.
func FuzzRedisParse(f *testing.F) {
	f.Add([]byte(line("DRAW ann free")+line("PING")), 5)
	f.Add([]byte("*1\r\n$9223372036854775807\r\n"), 3)
	f.Add([]byte("*3000000000\r\n"), 0)
	f.Add([]byte("*0\r\n*1\r\n$0\r\n\r\n"), 9)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		words, n, err := server.ParseCommand(b, server.RedisBuffer, nil)
		if n > len(b) || n > server.RedisBuffer || err != nil && n != 0 {
			t.Fatalf("%d of %d bytes, %v", n, len(b), err)
		}
		if n > 0 {
			var again []string
			for _, w := range words {
				again = append(again, string(w))
			}
			if c := command(again...); len(c) > n {
				t.Fatalf("%q was read from %q", again, b[:n])
			}
		}
		if cut = max(0, min(cut, len(b))); n > 0 && cut < n {
			if _, m, err := server.ParseCommand(b[:cut], server.RedisBuffer, nil); m != 0 || err != nil {
				t.Fatalf("%d bytes of a command are %d, %v", cut, m, err)
			}
		}
		if err != nil { // more bytes do not make it good
			if _, m, err := server.ParseCommand(append(bytes.Clone(b), "\r\nx"...), server.RedisBuffer, nil); m != 0 || err == nil {
				t.Fatalf("%q is broken, and longer it is a command", b)
			}
		}
	})
}

// FuzzRedis sends bytes to a connection with a key. Nothing may panic, and each whole command is
// answered.
func FuzzRedis(f *testing.F) {
	log := &lockedBuffer{}
	fx := newServer(f, server.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))})
	p := newPipes()
	serveRedis(f, fx, p)
	for _, s := range redisSession {
		f.Add([]byte(line(s.command)))
	}
	f.Add([]byte(line("HELLO 3") + line("TRANSFER a b gem 1 ID x") + "*1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := p.dial(t)
		go func() {
			_, _ = c.conn.Write(b)
			_, _ = io.WriteString(c.conn, line("QUIT"))
		}()
		for rest := b; ; {
			_, n, err := server.ParseCommand(rest, 64<<10, nil)
			if n == 0 || err != nil {
				break
			}
			if _, n0, _ := server.ParseCommand(rest, 64<<10, nil); n0 > 4 { // *0 has no answer
				if _, err := c.read(); err != nil {
					break // QUIT
				}
			}
			rest = rest[n:]
		}
		_ = c.conn.Close()
		if text := log.String(); text != "" {
			t.Errorf("%q: %s", b, text)
		}
	})
}

// TestRedisUntaken: the server holds few answers for a client that takes none.
func TestRedisUntaken(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t)})
	p := newPipes()
	serveRedis(t, f, p)
	largest := func(c *raw, text string, n int) (most int) {
		go func() { _, _ = io.WriteString(c.conn, strings.Repeat(text, n)) }()
		buf := make([]byte, 32<<20)
		for got := 0; got < n; {
			size, err := c.conn.Read(buf) // what the server wrote at once
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, size)
			got += bytes.Count(buf[:size], []byte("\r\n-")) + bytes.Count(buf[:size], []byte("DRAW player pool"))
			if size > 0 && buf[0] == '-' {
				got++
			}
		}
		return most
	}
	known := p.dial(t)
	known.ask("AUTH " + readKey)
	for _, one := range []string{"COMMAND DOCS", "NO SUCH " + strings.Repeat("x", 900), "ODDS " + strings.Repeat("x", 900)} {
		if most := largest(known, line(one), 1000); most > 80<<10 {
			t.Errorf("1000 times %.20s make the server write %d bytes at once", one, most)
		}
	}
}

// TestRedisTries: a stranger's refused commands end the connection.
func TestRedisTries(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t)})
	addr := startRedis(t, f)
	for _, one := range []string{"AUTH bad", "DRAW ann free", "NONE", "HELLO 3", "HELLO 9"} {
		c := dialRaw(t, addr)
		c.send(strings.Repeat(line(one), 100))
		for range 16 {
			if kind := kindOf(c.answer()); kind == "" {
				t.Fatalf("%s is answered", one)
			}
		}
		c.ends()
	}
	for _, login := range []string{"", "AUTH " + adminKey} { // what has no words is no way around it
		c := dialRaw(t, addr)
		if login != "" {
			c.ask(login)
		}
		c.send(strings.Repeat("*0\r\n", 100))
		c.ends()
	}
	c := dialRaw(t, addr)
	for range 15 {
		c.ask("AUTH bad")
	}
	c.ask("AUTH " + adminKey)
	for range 30 {
		if kind := kindOf(c.ask("NONE")); kind != "ERR" {
			t.Fatalf("no command: %s", kind)
		}
	}
}

// writeDeadlines counts how often the time to take answers begins again.
type writeDeadlines struct {
	net.Conn
	n atomic.Int32
}

func (d *writeDeadlines) SetWriteDeadline(at time.Time) error {
	d.n.Add(1)
	return d.Conn.SetWriteDeadline(at)
}

// TestRedisTimeForAnswers: a client has the time to write once for a pipeline, not for each part of its
// answers.
func TestRedisTimeForAnswers(t *testing.T) {
	f := newServer(t, server.Options{})
	p := newPipes()
	serveRedis(t, f, p)
	mine, theirs := net.Pipe()
	counted := &writeDeadlines{Conn: theirs}
	p.conns <- counted
	c := newRaw(t, mine)
	const n = 2000
	go func() {
		_, _ = io.WriteString(mine, strings.Repeat(line("COMMAND DOCS"), n/2)+strings.Repeat(line("DRAW ann free"), n/2))
	}()
	parts := counted.n.Load()
	for range n {
		if got := c.answer(); kindOf(got) != "" {
			t.Fatal(got)
		}
	}
	c.ask("PING")
	if parts = counted.n.Load() - parts; parts > 20 {
		t.Errorf("the time to take answers began %d times", parts)
	}
}
