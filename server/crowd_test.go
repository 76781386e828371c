package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// These tests are about who can crowd out whom: each fills the server with what
// one client can hold, and checks that others are still served.

const (
	getPool     = "/kuji.v1.RewardService/GetPool"
	healthCheck = "/grpc.health.v1.Health/Check"
)

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func say(t testing.TB, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// answer reads one answer and returns its status, 0 if the connection ended.
func answer(t testing.TB, r *bufio.Reader) int {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// halfBody is a request with a key and the first bytes of a body.
func halfBody(path, key string, bytes int) string {
	length := 60_000
	if path == healthCheck {
		length = 100
	}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, length)
	if key != "" {
		head += "Authorization: Bearer " + key + "\r\n"
	}
	return head + "\r\n" + strings.Repeat(" ", bytes)
}

// wellServed checks that a draw with another key and every form of health are
// answered, and well, on new connections.
func wellServed(t *testing.T, f *fixture) {
	t.Helper()
	ctx := context.Background()
	if _, err := newClient("", h1(t), f.url, withKey(writeKey)).reward.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "free"}); err != nil {
		t.Errorf("a draw with another key: %v", err)
	}
	// Strangers who are still coming in can cut off a health check, which is a stranger's too.
	client := h1(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		until(t, path+" is answered", func() bool {
			res, err := client.Get(f.url + path)
			if err != nil {
				return false
			}
			defer res.Body.Close()
			return res.StatusCode == http.StatusOK
		})
	}
	for _, o := range [][]connect.ClientOption{nil, {connect.WithGRPC()}} {
		health := grpchealth.NewClient(h2c(t), f.url, o...)
		until(t, "health is answered", func() bool {
			res, err := health.Check(ctx, &grpchealth.CheckRequest{})
			return err == nil && res.Status == grpchealth.StatusServing
		})
	}
}

// until waits for a condition that only the server's work can bring about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestHalfBodies sends many halves of requests with one key. They hold no call,
// and no more memory than the key's share.
func TestHalfBodies(t *testing.T) {
	f := start(t, server.Options{Keys: keyFile(t), Limits: server.Limits{InFlight: 8, ReadTimeout: time.Hour}})
	for range 200 {
		say(t, dial(t, f.addr), halfBody(getPool, readKey, 100))
	}
	until(t, "200 halves have arrived", func() bool { return f.server.RequestMemory() >= 200*16<<10 })
	if n := f.server.InFlight(); n != 0 {
		t.Errorf("%d calls are in flight, and all that arrived is halves of requests", n)
	}
	wellServed(t, f)
}

// TestMemoryShares has one key hold all the memory that it gets.
func TestMemoryShares(t *testing.T) {
	const total = 4 << 20
	f := start(t, server.Options{Keys: keyFile(t), Limits: server.Limits{
		RequestBytes: 64 << 10, BatchBytes: 1 << 20, CatalogBytes: 1 << 20, RequestMemory: total, ReadTimeout: time.Hour,
		HeaderTimeout: time.Hour}}) // nothing here ends by time
	refusals := func() bool {
		return strings.Contains(f.server.MetricsText(), `kuji_rpc_requests_total{code="unavailable",rpc="kuji.v1.RewardService/GetPool"}`)
	}
	refused := 0
	for range 40 { // each holds 64 KiB and 16 KiB more, until one is refused
		conn := dial(t, f.addr)
		before := f.server.RequestMemory()
		say(t, conn, halfBody(getPool, readKey, 50_000))
		until(t, "a half is held or refused", func() bool { return f.server.RequestMemory() >= before+64<<10 || refusals() })
		if !refusals() {
			continue
		}
		refused++
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil { // otherwise the server waits for the rest
			t.Fatal(err)
		}
		if code := answer(t, bufio.NewReader(conn)); code != http.StatusServiceUnavailable {
			t.Fatalf("a half beyond the share gets %d, want 503", code)
		}
	}
	if used := f.server.RequestMemory(); refused == 0 || used > total*3/4 || used < total/2 {
		t.Errorf("%d of 40 are refused, one key holds %d bytes of %d", refused, used, total)
	}
	wellServed(t, f)
}

// TestMemoryComesBack checks that all memory is given back, whatever becomes of a request.
func TestMemoryComesBack(t *testing.T) {
	f := start(t, server.Options{Keys: keyFile(t), Limits: server.Limits{HeaderTimeout: 50 * time.Millisecond, ReadTimeout: 50 * time.Millisecond}})
	for _, text := range []string{
		halfBody(getPool, readKey, 50_000), halfBody(getPool, writeKey, 10), halfBody(healthCheck, "", 10),
		halfBody(getPool, readKey, 60_000), halfBody("/nothing", readKey, 10), halfBody(drawPath, readKey, 10),
	} {
		conn := dial(t, f.addr)
		say(t, conn, text)
		answer(t, bufio.NewReader(conn))
	}
	until(t, "all memory is given back", func() bool { return f.server.RequestMemory() == 0 && f.server.Crowd() == 0 })
}

// TestCallShares holds as many calls as one key can, and checks another key's.
func TestCallShares(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{Keys: keyFile(t), Limits: server.Limits{InFlight: 8}})
	entered, release := make(chan bool), make(chan struct{})
	t.Cleanup(func() { close(release) })
	f.server.Replace(getPool, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- true
		<-release
	}))
	c := newClient("", h1(t), f.url, withKey(readKey)).reward
	refused := make(chan error, 8)
	for range 8 {
		go func() {
			if _, err := c.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "free"}); connect.CodeOf(err) == connect.CodeUnavailable {
				refused <- err
			}
		}()
	}
	held, got := 0, error(nil)
	for n := range 8 {
		select {
		case <-entered:
			held++
		case got = <-refused:
			if d := detail(t, got); d.GetReason() != kujiv1.Reason_REASON_OVERLOADED {
				t.Fatalf("call %d: %v", n, got)
			}
		}
	}
	if held != 6 || got == nil || !strings.Contains(got.Error(), "6 of them for this key") && !strings.Contains(got.Error(), "6 calls") {
		t.Errorf("one key holds %d of 8 calls, others get %v; want 6 and unavailable", held, got)
	}
	wellServed(t, f)
}

// TestReadyTellsOverload checks that a server that answers nobody's calls does
// not say that it is ready.
func TestReadyTellsOverload(t *testing.T) {
	f := start(t, server.Options{Limits: server.Limits{InFlight: 1}})
	entered, release := make(chan bool), make(chan struct{})
	f.server.Replace(drawPath, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- true
		<-release
	}))
	done := make(chan bool)
	go func() {
		post(t, h1(t), f.url, drawPath, "{}")
		close(done)
	}()
	<-entered
	if code, text := get(t, h1(t), f.url+"/readyz"); code != 503 || !strings.Contains(text, "overloaded") {
		t.Errorf("/readyz with every call taken: %d %q, want 503, overloaded", code, text)
	}
	close(release)
	<-done
	until(t, "ready again", func() bool {
		code, _ := get(t, h1(t), f.url+"/readyz")
		return code == 200
	})
}

// TestStrangers sends more half health checks without a key than the server has
// room for, on two kinds of connections. The oldest ones must go.
func TestStrangers(t *testing.T) {
	f := start(t, server.Options{Keys: keyFile(t), Limits: server.Limits{
		BatchBytes: 64 << 10, CatalogBytes: 64 << 10, RequestMemory: 2 << 20, ReadTimeout: time.Hour, WriteTimeout: time.Hour}})
	const places = 2 << 20 / 16 / (16 << 10)
	first := dial(t, f.addr)
	say(t, first, halfBody(healthCheck, "", 10))
	until(t, "the first is there", func() bool { return f.server.Crowd() == 1 })
	for i := range places * 4 {
		say(t, dial(t, f.addr), halfBody(healthCheck, "", 10))
		until(t, "the next is there", func() bool { return f.server.Crowd() == min(places, i+2) })
	}
	if err := first.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, first); isTimeout(err) {
		t.Error("the oldest of too many half requests stays")
	}
	// The same on streams of HTTP/2 that never end, and on ones whose client takes no answer.
	pr, pw := io.Pipe()
	t.Cleanup(func() { pw.Close() })
	h := h2c(t)
	for range places * 4 {
		req, err := http.NewRequest(http.MethodPost, f.url+healthCheck, struct{ io.Reader }{pr})
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/grpc")
		go func() {
			if res, err := h.Do(req); err == nil {
				res.Body.Close()
			}
		}()
	}
	until(t, "the crowd is full", func() bool { return f.server.Crowd() == places })
	wellServed(t, f)
	if n := f.server.Crowd(); n > places {
		t.Errorf("%d requests of strangers at a time, want at most %d", n, places)
	}
}

// zeroWindow is the beginning of an HTTP/2 connection whose client takes no
// data, and n requests on it.
func zeroWindow(n int, path string) string {
	frame := func(kind, flags byte, stream int, payload string) string {
		return string([]byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags,
			byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
	}
	field := func(name, value string) string { // HPACK, literal without indexing, new name
		return "\x00" + string(rune(len(name))) + name + string(rune(len(value))) + value
	}
	const initialWindowSize = 4
	text := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, string([]byte{0, initialWindowSize, 0, 0, 0, 0}))
	block := field(":method", "GET") + field(":scheme", "http") + field(":path", path) + field(":authority", "localhost")
	for i := range n {
		text += frame(1, 5, 2*i+1, block) // HEADERS, END_STREAM and END_HEADERS
	}
	return text
}

// TestUntakenAnswers has clients that take no answers: what they hold is
// counted, also behind the handler.
func TestUntakenAnswers(t *testing.T) {
	f := start(t, server.Options{Keys: keyFile(t), Limits: server.Limits{
		BatchBytes: 64 << 10, CatalogBytes: 64 << 10, RequestMemory: 2 << 20, WriteTimeout: time.Hour}})
	const places = 2 << 20 / 16 / (16 << 10)
	conn := dial(t, f.addr)
	say(t, conn, zeroWindow(places-1, "/healthz"))
	until(t, "the answers wait", func() bool { return f.server.Crowd() == places-1 })
	conn = dial(t, f.addr)
	say(t, conn, zeroWindow(100, "/healthz"))
	until(t, "the crowd is full", func() bool { return f.server.Crowd() == places })
	wellServed(t, f)
}

// TestWorkShares has one key ask for many large answers and take none of them:
// the others that it asks for wait, and those of another key do not.
func TestWorkShares(t *testing.T) {
	const total, page = 1 << 20, `{"pool":"free","entryLimit":20}`
	f := newServer(t, server.Options{Keys: keyFile(t), Limits: server.Limits{WorkBytes: total}})
	ask := func(w http.ResponseWriter, key string) {
		r := httptest.NewRequest(http.MethodPost, getPool, strings.NewReader(page))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
		f.server.ServeHTTP(w, r)
	}
	release := make(chan struct{})
	var calls sync.WaitGroup
	answering, waiting := 0, 0
	for range 20 {
		slow := &slowClient{httptest.NewRecorder(), make(chan struct{}, 8), release}
		calls.Go(func() { ask(slow, readKey) })
		until(t, "a call is answered or waits", func() bool {
			select {
			case <-slow.answering:
				answering++
				return true
			default:
			}
			more := f.server.Waiting() > waiting
			if more {
				waiting++
			}
			return more
		})
	}
	if used := f.server.InWork(); waiting == 0 || used > total*3/4 || used < total/2 {
		t.Errorf("%d calls are answered and %d wait; one key holds %d bytes of %d", answering, waiting, used, total)
	}
	var ended atomic.Bool
	other := httptest.NewRecorder()
	calls.Go(func() {
		ask(other, writeKey)
		ended.Store(true)
	})
	until(t, "another key's call ends or waits", func() bool { return ended.Load() || f.server.Waiting() > waiting })
	if !ended.Load() {
		t.Error("another key's call waits for the greedy one's")
	}
	close(release)
	calls.Wait()
	if other.Code != http.StatusOK || f.server.InWork() != 0 {
		t.Errorf("another key's call got %d, and then %d bytes are taken", other.Code, f.server.InWork())
	}
}

// TestConnections fills the server with connections that wait for their clients,
// and checks that others are served, and whose connections go.
func TestConnections(t *testing.T) {
	f := start(t, server.Options{Keys: keyFile(t), Limits: server.Limits{Connections: 20, HeaderTimeout: time.Hour, ReadTimeout: time.Hour}})
	game := dial(t, f.addr) // a connection that nothing has happened on for long
	answers := bufio.NewReader(game)
	const body = `{"player":"ann","pool":"free"}`
	draw := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n\r\n%s", drawPath, writeKey, len(body), body)
	say(t, game, draw)
	if got := answer(t, answers); got != 200 {
		t.Fatalf("a draw: %d", got)
	}
	for i := range 60 { // say nothing, half a header, a whole request, half a body
		conn := dial(t, f.addr)
		switch i % 4 {
		case 1:
			say(t, conn, "POST /x HTTP/1.1\r\n")
		case 2:
			say(t, conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if got := answer(t, bufio.NewReader(conn)); got != 200 {
				t.Fatalf("health on connection %d: %d", i, got)
			}
		case 3:
			say(t, conn, halfBody(healthCheck, "", 1))
		}
	}
	wellServed(t, f)
	say(t, game, draw)
	if got := answer(t, answers); got != 200 {
		t.Errorf("60 connections of strangers took the place of one of a key: its next draw gets %d", got)
	}
	// Now one key keeps as many connections busy as it can.
	for range 60 {
		say(t, dial(t, f.addr), halfBody(getPool, readKey, 10))
	}
	wellServed(t, f)
	say(t, game, draw)
	if got := answer(t, answers); got != 200 {
		t.Errorf("60 busy connections of one key took the place of one of another: its next draw gets %d", got)
	}
	if n := f.server.Connections(); n > 20 {
		t.Errorf("%d connections, want at most 20", n)
	}
}

// TestConnectionLimit checks how the limit on open files bounds connections.
func TestConnectionLimit(t *testing.T) {
	for _, tt := range []struct {
		want   int
		files  uint64
		realms int
		got    int
	}{
		{16384, 0, 1, 16384},       // nobody knows
		{16384, 1 << 63, 1, 16384}, // no limit
		{16384, 65536, 100, 16384},
		{16384, 16384 + 72, 1, 16384},
		{16384, 16384 + 71, 1, 16383},
		{16384, 1024, 1, 952},
		{16384, 400, 1, 328},
		{16384, 400, 20, 176},
		{100, 400, 1, 100},
		{16384, 71, 1, 0},
	} {
		if got := server.ConnectionLimit(tt.want, tt.files, tt.realms); got != tt.got {
			t.Errorf("%d connections wanted, %d files, %d realms: %d, want %d", tt.want, tt.files, tt.realms, got, tt.got)
		}
	}
}

// TestBudget checks what greedy callers leave to a newcomer.
func TestBudget(t *testing.T) {
	for greedy := range 6 {
		b := server.NewBudget(10_000, true)
		for more := true; more; {
			more = false
			for who := range greedy {
				more = b.Take(byte(who), 10) || more
			}
		}
		if !b.Take(100, 10) {
			t.Errorf("%d greedy callers leave nothing of %d", greedy, 10_000)
		}
		b.Give(100, 10)
		for who := range greedy {
			for b.Held(byte(who)) > 0 {
				b.Give(byte(who), 10)
			}
		}
		if used := b.Used(); used != 0 {
			t.Errorf("%d are used after all was given back", used)
		}
	}
	alone := server.NewBudget(10, false)
	for range 10 {
		if !alone.Take(0, 1) {
			t.Fatal("a caller without others does not get everything")
		}
	}
	if alone.Take(0, 1) {
		t.Error("more was taken than there is")
	}
}

// TestBudgetWaits: callers wait in the order of arrival. Who has a share already is passed over,
// and who needs much is not.
func TestBudgetWaits(t *testing.T) {
	b := server.NewBudget(100, true)
	got := make(chan byte)
	wait := func(ctx context.Context, who byte, n int64) {
		waiting := b.Waiting()
		go func() {
			if b.Wait(ctx, who, n) == nil {
				got <- who
			}
		}()
		until(t, "it is in the queue", func() bool { return b.Waiting() > waiting })
	}
	b.Take(1, 70)
	ctx, leave := context.WithCancel(t.Context())
	wait(t.Context(), 1, 20) // it has its share
	wait(ctx, 2, 40)         // too much for now
	wait(t.Context(), 3, 20) // behind it
	if b.Used() != 70 {
		t.Fatalf("%d are taken, want 70: nobody may pass who needs much", b.Used())
	}
	leave()
	if who := <-got; who != 3 {
		t.Fatalf("%d got its part, want 3", who)
	}
	b.Give(1, 70)
	if who := <-got; who != 1 || b.Used() != 40 || b.Waiting() != 0 {
		t.Fatalf("%d got its part, %d are taken and %d wait; want 1, 40 and none", who, b.Used(), b.Waiting())
	}
}
