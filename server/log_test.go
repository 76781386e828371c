package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// text is a buffer for several writers.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// linesOf returns the lines of JSON with a message, of a log, or all of them.
func linesOf(t *testing.T, log, message string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if message == "" || one["msg"] == message {
			all = append(all, one)
		}
	}
	return all
}

// stop ends a server, so that every request is logged.
func (f *fixture) stop(t *testing.T, access *server.AccessLog) {
	t.Helper()
	if err := f.server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if access == nil {
		return
	}
	if err := access.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestAccessLog makes one call of each kind, and looks at its line. No secret of any of them is in a
// log.
func TestAccessLog(t *testing.T) {
	var lines, log text
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	access := server.NewAccessLog(&lines, logger)
	f := startWith(t, kuji.Options{}, server.Options{Keys: keyFile(t), AccessLog: access, Logger: logger, SlowRequests: time.Nanosecond})
	c := newClient("", h1(t), f.url, withKey(writeKey))
	g := newClient("", h2c(t), f.url, withKey(writeKey), connect.WithGRPC())
	ctx, n := t.Context(), 0
	want := func(err error, code connect.Code) {
		t.Helper()
		if n++; err != nil && connect.CodeOf(err) != code || err == nil && code != 0 {
			t.Fatalf("call %d: %v, want %v", n, err, code)
		}
	}
	_, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "last"})
	want(err, 0)
	_, err = g.reward.Draw(ctx, &kujiv1.DrawRequest{Realm: "default", Player: "ann", Pool: "last"})
	want(err, 0)
	_, err = c.reward.Draw(ctx, &kujiv1.DrawRequest{Realm: "no\"where\n", Player: "ann", Pool: "last"})
	want(err, connect.CodeInvalidArgument)
	_, err = c.reward.Redeem(ctx, &kujiv1.RedeemRequest{Player: "ann", Code: "secret-code"})
	want(err, 0)
	_, err = c.reward.GetResult(ctx, &kujiv1.GetResultRequest{RequestId: "never"})
	want(err, 0)
	_, err = newClient("", h1(t), f.url, withKey("secret-key")).reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "last"})
	want(err, connect.CodeUnauthenticated)
	_, err = newClient("", h1(t), f.url, withKey(readKey)).reward.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "free"})
	want(err, connect.CodePermissionDenied)
	post(t, h1(t), f.url, drawPath, `{"bad`, "Authorization", "Bearer "+writeKey)
	post(t, h1(t), f.url, "/secret-path", `{}`)
	get(t, h1(t), f.url+"/metrics", "Authorization", "Bearer "+adminKey)
	get(t, h1(t), f.url+"/healthz")
	s := openStream(t, newClient("", keyedClient(t, writeKey), f.url, connect.WithGRPC()))
	for range 2 {
		exchange(t, s, &kujiv1.StreamDrawsRequest{Players: []string{"ann", "bob", "cid"}, Pools: []string{"free"}})
	}
	if err := s.CloseRequest(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	realm, err := f.engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	position := realm.Stats().Position
	events := newClient("", keyedClient(t, writeKey), f.url, connect.WithGRPC())
	if got := readEvents(t, events, &kujiv1.StreamEventsRequest{From: new(uint64(1)), Player: "cid"}, position); len(got) != 2 {
		t.Fatalf("%d events", len(got))
	}
	f.stop(t, access)

	const service = "kuji.v1.RewardService/"
	calls := map[string]bool{}
	for _, one := range linesOf(t, lines.String(), "") {
		if at, err := time.Parse(time.RFC3339Nano, one["time"].(string)); err != nil || time.Since(at) > time.Hour {
			t.Errorf("time %v: %v", one["time"], err)
		}
		if one["seconds"].(float64) <= 0 || !strings.HasPrefix(one["peer"].(string), "127.0.0.1:") || one["response_bytes"].(float64) <= 0 {
			t.Errorf("a line without time, peer or bytes: %v", one)
		}
		call := fmt.Sprint(one["method"], " ", one["realm"], " ", one["key"], " ", one["http"], " ", one["code"], " ", one["status"])
		for _, more := range []string{"messages", "draws", "events"} {
			if v, ok := one[more]; ok {
				call += fmt.Sprint(" ", more, " ", v)
			}
		}
		calls[call] = true
		if one["method"] == service+"StreamDraws" && one["request_bytes"].(float64) < 20 {
			t.Errorf("the body of a stream is not counted: %v", one)
		}
	}
	for _, call := range []string{
		service + "Draw default game-server-1 200 ok ok",
		service + "Draw default game-server-1 200 ok sold_out",
		service + "Draw no\"where\n game-server-1 400 invalid_argument <nil>",
		service + "Redeem default game-server-1 200 ok unknown_code",
		service + "GetResult default game-server-1 200 ok <nil>",
		service + "GetPool <nil> <nil> 401 unauthenticated <nil>",
		service + "Draw <nil> " + readKey + " 403 permission_denied <nil>",
		service + "Draw <nil> game-server-1 400 unreadable <nil>",
		"none <nil> <nil> 501 unimplemented <nil>",
		"/metrics <nil> ops 200 <nil> <nil>",
		"/healthz <nil> <nil> 200 <nil> <nil>",
		service + "StreamDraws default game-server-1 200 ok <nil> messages 2 draws 6",
	} {
		if !calls[call] {
			t.Errorf("no line %q", call)
		}
		delete(calls, call)
	}
	rest := slices.Collect(maps.Keys(calls))
	if len(rest) != 1 || !strings.HasPrefix(rest[0], service+"StreamEvents default game-server-1 200 ") || !strings.HasSuffix(rest[0], " events 2") {
		t.Errorf("more lines than calls: %q", rest)
	}
	refused := linesOf(t, log.String(), "request refused")
	if len(refused) != 5 {
		t.Errorf("%d refused requests in the log, want 5: %v", len(refused), refused)
	}
	if slow := linesOf(t, log.String(), "slow request"); len(slow) < 6 {
		t.Errorf("%d slow requests in the log, want each that was decoded, and each batch: %v", len(slow), slow)
	}
	for _, secret := range []string{"secret", adminKey, writeKey, "Bearer " + readKey} {
		if strings.Contains(lines.String()+log.String(), secret) {
			t.Errorf("%q is in a log:\n%s%s", secret, lines.String(), log.String())
		}
	}
}

// stuck is a writer that waits for its turn.
type stuck struct {
	text
	turns chan error
}

func (s *stuck) Write(p []byte) (int, error) {
	if err := <-s.turns; err != nil {
		return 0, err
	}
	return s.text.Write(p)
}

// TestAccessLogStuck: a log that nobody reads, or that cannot be written, stops no call. What it lacks
// is counted, and said.
func TestAccessLogStuck(t *testing.T) {
	w := &stuck{turns: make(chan error)}
	var log text
	access := server.NewAccessLog(w, slog.New(slog.NewJSONHandler(&log, nil)))
	const n = 30
	line := strings.Repeat("x", 100_000)
	for range n {
		access.Add(line)
	}
	missing := access.LeftOut()
	if missing == 0 || missing == n {
		t.Fatalf("%d of %d lines of 100 kB left out while nothing is written", missing, n)
	}
	w.turns <- errors.New("the disk is full") // of what was taken first, which may be one line or several
	until(t, "the failure is said", func() bool { return strings.Contains(log.String(), "the disk is full") })
	go func() {
		for {
			w.turns <- nil
		}
	}()
	until(t, "there is room again", func() bool { before := access.LeftOut(); access.Add(line); return access.LeftOut() == before })
	if err := access.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	said, written := 0.0, 0
	for _, one := range linesOf(t, w.String(), "") {
		if v, ok := one["left_out"]; ok {
			said += v.(float64)
		} else {
			written++
		}
	}
	if uint64(said) != access.LeftOut() || written == 0 {
		t.Errorf("the log says that %v lines are missing, and %d are", said, access.LeftOut())
	}
	before := access.LeftOut()
	access.Add(line)
	if access.LeftOut() != before+1 {
		t.Error("a line after the end is not counted")
	}

	closing := server.NewAccessLog(&stuck{turns: make(chan error)}, quiet())
	closing.Add(line)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := closing.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("closing a log that nobody reads: %v", err)
	}
}

// TestLogBound: however many requests are refused, the log takes a hundred lines and then one a second,
// and says how many are missing.
func TestLogBound(t *testing.T) {
	var log, lines text
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	access := server.NewAccessLog(&lines, logger)
	f := newServer(t, server.Options{Keys: keyFile(t), Logger: logger, AccessLog: access})
	elapsed := atomic.Int64{}
	begin := time.Now()
	f.server.SetLogClock(func() time.Time { return begin.Add(time.Duration(elapsed.Load())) })
	refuse := func(times int) (seen, leftOut int) {
		t.Helper()
		before := len(linesOf(t, log.String(), "request refused"))
		for range times {
			f.server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, drawPath, strings.NewReader("{}")))
		}
		all := linesOf(t, log.String(), "request refused")[before:]
		for _, one := range all {
			if n, ok := one["left_out"].(float64); ok {
				leftOut += int(n)
			}
		}
		return len(all), leftOut
	}
	if seen, leftOut := refuse(150); seen != 100 || leftOut != 0 {
		t.Errorf("of 150 at once %d are logged, %d said to be left out; want 100 and 0", seen, leftOut)
	}
	elapsed.Add(int64(time.Second))
	if seen, leftOut := refuse(3); seen != 1 || leftOut != 50 {
		t.Errorf("a second later %d are logged, %d said to be left out; want 1 and 50", seen, leftOut)
	}
	elapsed.Add(int64(time.Hour))
	if seen, leftOut := refuse(150); seen != 100 || leftOut != 2 {
		t.Errorf("an hour later %d are logged, %d said to be left out; want 100 and 2", seen, leftOut)
	}
	if text := f.server.MetricsText(); !strings.Contains(text, `kuji_log_lines_left_out_total{log="refused"} 102`) ||
		!strings.Contains(text, `kuji_log_lines_left_out_total{log="access"} 102`) {
		t.Errorf("metrics: %s", grep(text, "kuji_log"))
	}
	f.stop(t, access)
	if n := linesOf(t, log.String(), "lines were left out of this log: there were too many"); len(n) != 1 || n[0]["left_out"] != 50.0 {
		t.Errorf("at the end the log says %v, want that 50 are left out", n)
	}
}

// TestSlowRequests: what is slow is logged, and nothing where the bound is higher, or none.
func TestSlowRequests(t *testing.T) {
	for limit, want := range map[time.Duration]int{0: 0, time.Hour: 0, time.Nanosecond: 1} {
		var log text
		f := start(t, server.Options{SlowRequests: limit, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		if _, err := clients(t, f.url)[0].reward.Draw(t.Context(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"}); err != nil {
			t.Fatal(err)
		}
		f.stop(t, nil)
		all := linesOf(t, log.String(), "slow request")
		if len(all) != want {
			t.Errorf("slow from %v on: %v, want %d", limit, all, want)
		}
		if len(all) == 1 && (all[0]["method"] != "kuji.v1.RewardService/Draw" || all[0]["realm"] != "default" || all[0]["seconds"].(float64) <= 0) {
			t.Errorf("%v", all[0])
		}
	}
	if _, err := server.New(newEngine(t, kuji.Options{Sync: kuji.SyncNone}), server.Options{SlowRequests: -1}); err == nil {
		t.Error("a negative bound is accepted")
	}
}

// TestLogsOffAllocateNothing: a call that is neither slow nor refused costs no allocation for logs.
func TestLogsOffAllocateNothing(t *testing.T) {
	for name, o := range map[string]server.Options{"off": {Logger: quiet()}, "on, and not slow": {SlowRequests: time.Hour, Logger: quiet()},
		"off, and slow": {SlowRequests: 1, Logger: quiet()}} {
		if n := newServer(t, o).server.LogAllocs(); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestInterceptors: those of the options see the calls that are answered, and no others.
func TestInterceptors(t *testing.T) {
	var seen []string
	f := start(t, server.Options{Keys: keyFile(t), Interceptors: []connect.Interceptor{
		connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
				res, err := next(ctx, r)
				seen = append(seen, fmt.Sprint(r.Spec().Procedure, " ", connect.CodeOf(err)))
				return res, err
			}
		})}})
	c := newClient("", h1(t), f.url, withKey(writeKey))
	_, _ = c.reward.Draw(t.Context(), &kujiv1.DrawRequest{Player: "ann", Pool: "nowhere"})
	_, _ = newClient("", h1(t), f.url).reward.Draw(t.Context(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"})
	f.stop(t, nil)
	if want := []string{drawPath + " not_found"}; !slices.Equal(seen, want) {
		t.Errorf("seen: %q, want %q", seen, want)
	}
}

func keyedClient(t *testing.T, key string) *http.Client {
	h := h2c(t)
	h.Transport = keyed{h.Transport, key}
	return h
}
