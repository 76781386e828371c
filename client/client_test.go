package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/internal/proxy"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// script is a server that answers draws with what was written down for it, one after the other, and then
// always with the last.
type script struct {
	kujiv1connect.UnimplementedRewardServiceHandler
	answers []answer
	events  func(from *uint64, send func(*kujiv1.StreamEventsResponse) error) error
	draws   func(*connect.BidiStream[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]) error

	mu  sync.Mutex // a client that gave up leaves its handler running
	ids []string
}

type answer func(ctx context.Context) (*kujiv1.Result, error)

// sent returns the ids that arrived so far.
func (s *script) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}

func (s *script) Draw(ctx context.Context, req *kujiv1.DrawRequest) (*kujiv1.DrawResponse, error) {
	s.mu.Lock()
	s.ids = append(s.ids, req.GetRequestId())
	answer := s.answers[min(len(s.ids), len(s.answers))-1]
	s.mu.Unlock()
	result, err := answer(ctx)
	if err != nil {
		return nil, err
	}
	return &kujiv1.DrawResponse{Result: result}, nil
}

func (s *script) Batch(_ context.Context, req *kujiv1.BatchRequest) (*kujiv1.BatchResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range req.GetCommands() {
		s.ids = append(s.ids, c.GetRequestId())
	}
	return &kujiv1.BatchResponse{}, nil
}

func (s *script) StreamEvents(_ context.Context, req *kujiv1.StreamEventsRequest, stream *connect.ServerStream[kujiv1.StreamEventsResponse]) error {
	return s.events(req.From, stream.Send)
}

func (s *script) StreamDraws(_ context.Context, stream *connect.BidiStream[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]) error {
	return s.draws(stream)
}

// serve serves the script, and returns its URL.
func (s *script) serve(t *testing.T, wrap ...func(http.Handler) http.Handler) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(kujiv1connect.NewRewardServiceHandler(s))
	h := http.Handler(mux)
	for _, w := range wrap {
		h = w(h)
	}
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func newClient(t *testing.T, o client.Options, urls ...string) *client.Client {
	t.Helper()
	c, err := client.New(urls, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refuses is an answer that is an error of the server.
func refuses(code connect.Code, reason kujiv1.Reason) answer {
	return func(context.Context) (*kujiv1.Result, error) { return nil, serverError(code, reason) }
}

func serverError(code connect.Code, reason kujiv1.Reason) error {
	err := connect.NewError(code, errors.New("said by the server"))
	detail, bad := connect.NewErrorDetail(&kujiv1.ErrorDetail{Reason: reason})
	if bad != nil {
		panic(bad)
	}
	err.AddDetail(detail)
	return err
}

func ends(status kujiv1.Status) answer {
	return func(context.Context) (*kujiv1.Result, error) { return &kujiv1.Result{Status: status}, nil }
}

var (
	won     = ends(kujiv1.Status_STATUS_OK)
	soldOut = ends(kujiv1.Status_STATUS_SOLD_OUT)
	hangUp  = answer(func(context.Context) (*kujiv1.Result, error) { panic(http.ErrAbortHandler) })
	late    = answer(func(ctx context.Context) (*kujiv1.Result, error) { <-ctx.Done(); return nil, ctx.Err() })
	unknown = refuses(connect.CodeUnavailable, kujiv1.Reason_REASON_UNKNOWN_OUTCOME)
	failed  = refuses(connect.CodeUnavailable, kujiv1.Reason_REASON_FAILED)
	busy    = refuses(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED)
	reused  = refuses(connect.CodeAlreadyExists, kujiv1.Reason_REASON_ID_REUSED)
	invalid = refuses(connect.CodeInvalidArgument, kujiv1.Reason_REASON_INVALID)
	broken  = refuses(connect.CodeInternal, kujiv1.Reason_REASON_INTERNAL)
)

// TestCall: the same command goes out under the same id until there is an answer, and what nobody knows
// is said as such.
func TestCall(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answers  []answer
		attempts int // 0: until the time is up
		code     connect.Code
		unknown  bool
	}{
		{"at once", []answer{won}, 1, 0, false},
		{"lost answer, then found", []answer{hangUp, won}, 2, 0, false},
		{"unknown, busy, then found", []answer{unknown, busy, won}, 3, 0, false},
		{"refused by the state", []answer{soldOut}, 1, 0, false},
		{"unknown, then refused by the state: final", []answer{unknown, soldOut}, 2, 0, false},
		{"malformed", []answer{invalid}, 1, connect.CodeInvalidArgument, false},
		{"a lost answer, then another command under the id: no doubt", []answer{hangUp, reused}, 2, connect.CodeAlreadyExists, false},
		{"a fault of the server: in doubt", []answer{broken}, 1, connect.CodeInternal, true},
		{"realm stopped, nothing was ever in doubt", []answer{failed}, 1, connect.CodeUnavailable, false},
		{"unknown, then the realm stopped: still in doubt", []answer{unknown, failed}, 2, connect.CodeUnavailable, true},
		{"never an answer", []answer{hangUp}, 0, connect.CodeUnavailable, true},
		{"an answer that comes too late", []answer{late}, 0, connect.CodeDeadlineExceeded, true},
		{"always busy: nothing happened", []answer{busy}, 0, connect.CodeUnavailable, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &script{answers: tt.answers}
			o := client.Options{Timeout: -1}
			if tt.attempts == 0 {
				o.Timeout = 200 * time.Millisecond
			}
			_, err := newClient(t, o, s.serve(t)).Draw(t.Context(), &kujiv1.DrawRequest{RequestId: "the-id"})
			late := tt.attempts == 0 && connect.CodeOf(err) == connect.CodeDeadlineExceeded // in the middle of an attempt
			if (err != nil) != (tt.code != 0) || err != nil && connect.CodeOf(err) != tt.code && !late {
				t.Errorf("error %v, want code %v", err, tt.code)
			}
			open, ok := errors.AsType[*client.UnknownError](err)
			if ok != tt.unknown && !late || ok && open.RequestID != "the-id" {
				t.Errorf("error %v, in doubt: want %v", err, tt.unknown)
			}
			ids := s.sent()
			if tt.attempts != 0 && len(ids) != tt.attempts || len(ids) == 0 {
				t.Errorf("%d attempts, want %d", len(ids), tt.attempts)
			}
			for _, id := range ids {
				if id != "the-id" {
					t.Errorf("sent again under id %q", id)
				}
			}
		})
	}
}

// TestID: a command without an id gets one, which stays the same in all attempts and carries the time.
func TestID(t *testing.T) {
	s := &script{answers: []answer{hangUp, won, won}}
	c := newClient(t, client.Options{}, s.serve(t))
	req := &kujiv1.DrawRequest{Player: "ann", Pool: "splash"}
	for range 2 {
		if _, err := c.Draw(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	ids := s.sent()
	if len(ids) != 3 || ids[0] != ids[1] || ids[1] != ids[2] || ids[0] != req.GetRequestId() || len(ids[0]) != 26 {
		t.Errorf("sent under %q, the request has %q: want one ULID", ids, req.GetRequestId())
	}
	batch := &kujiv1.BatchRequest{Commands: []*kujiv1.Command{{}, {RequestId: "mine"}, {}}}
	if _, err := c.Batch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if ids = s.sent()[3:]; len(ids) != 3 || len(ids[0]) != 26 || ids[1] != "mine" || len(ids[2]) != 26 || ids[0] == ids[2] {
		t.Errorf("batch sent under %q", ids)
	}
}

// TestServers: the next server is asked when one is away, does not answer in time, or no longer leads.
func TestServers(t *testing.T) {
	nobody, err := proxy.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		first answer // nil: nobody is there
	}{
		{"away", nil},
		{"late", late},
		{"goes down", refuses(connect.CodeUnavailable, kujiv1.Reason_REASON_CLOSED)},
		{"no longer leads", unknown},
		{"its realm has stopped", failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			one, two := &script{answers: []answer{tt.first}}, &script{answers: []answer{won}}
			url := "http://" + nobody[0]
			if tt.first != nil {
				url = one.serve(t)
			}
			told := 0
			o := client.Options{Timeout: -1, Retry: func(error) { told++ }}
			if tt.name == "late" {
				o.Attempt = 300 * time.Millisecond
			}
			c := newClient(t, o, url, two.serve(t))
			for range 2 {
				if _, err := c.Draw(t.Context(), &kujiv1.DrawRequest{}); err != nil {
					t.Fatal(err)
				}
			}
			if a, b := one.sent(), two.sent(); len(b) != 2 || tt.first != nil && (len(a) != 1 || a[0] != b[0]) {
				t.Errorf("the first got %q, the second %q: want one id at both, and then the second alone", a, b)
			}
			if told != 1 {
				t.Errorf("%d calls of Retry, want 1", told)
			}
		})
	}
}

// TestNobodyThere: a refused connection carried nothing, so nothing is in doubt.
func TestNobodyThere(t *testing.T) {
	nobody, err := proxy.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = newClient(t, client.Options{Timeout: 100 * time.Millisecond}, "http://"+nobody[0]).Draw(t.Context(), &kujiv1.DrawRequest{})
	if _, ok := errors.AsType[*client.UnreachableError](err); !ok {
		t.Errorf("error %v, want one that says that nobody was reached", err)
	}
	if open, ok := errors.AsType[*client.UnknownError](err); ok {
		t.Errorf("error %v, want no doubt", open)
	}
}

// TestNotUTF8: what cannot be sent at all is said at once, and nothing is in doubt.
func TestNotUTF8(t *testing.T) {
	s := &script{answers: []answer{won}}
	c := newClient(t, client.Options{Timeout: -1, Retry: func(err error) { t.Error(err) }}, s.serve(t))
	_, err := c.Draw(t.Context(), &kujiv1.DrawRequest{Player: "a\xff"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("error %v, want invalid_argument", err)
	}
	if ids := s.sent(); len(ids) > 0 {
		t.Errorf("sent %d times", len(ids))
	}
}

// TestEnded: a caller who ends the call learns that its outcome is open.
func TestEnded(t *testing.T) {
	s := &script{answers: []answer{hangUp}}
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, client.Options{Timeout: -1, Retry: func(error) { cancel() }}, s.serve(t))
	_, err := c.Draw(ctx, &kujiv1.DrawRequest{RequestId: "the-id"})
	if open, ok := errors.AsType[*client.UnknownError](err); !ok || open.RequestID != "the-id" || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want one that is canceled and in doubt", err)
	}
}

// countedConn counts the writes to a connection.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestOneWrite: a small call over HTTP/1.1 is one write, and a large one arrives, too.
func TestOneWrite(t *testing.T) {
	s := &script{answers: []answer{won}}
	var writes atomic.Int64
	over := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countedConn{conn, &writes}, err
	}}
	t.Cleanup(over.CloseIdleConnections)
	c := newClient(t, client.Options{Transport: over}, s.serve(t))
	const calls = 5
	for i := range calls {
		if _, err := c.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := writes.Load(); n != calls {
		t.Errorf("%d writes for %d calls", n, calls)
	}
	large := strings.Repeat("x", 1<<20)
	if _, err := c.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: large}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"0", "1", "2", "3", "4", large}; !slices.Equal(s.sent(), want) {
		t.Errorf("%d ids arrived, and not those that were sent", len(s.sent()))
	}
}

// TestKey: the key goes with calls and with streams.
func TestKey(t *testing.T) {
	s := &script{answers: []answer{won}}
	s.events = func(_ *uint64, send func(*kujiv1.StreamEventsResponse) error) error {
		return send(&kujiv1.StreamEventsResponse{Next: 1})
	}
	var keys []string
	c := newClient(t, client.Options{Key: "secret"}, s.serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			keys = append(keys, r.Header.Get("Authorization"))
			next.ServeHTTP(w, r)
		})
	}))
	if _, err := c.Draw(t.Context(), &kujiv1.DrawRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Events(t.Context(), &kujiv1.StreamEventsRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if !slices.Equal(keys, []string{"Bearer secret", "Bearer secret"}) {
		t.Errorf("keys %q", keys)
	}
}

func TestNew(t *testing.T) {
	for _, bad := range [][]string{nil, {""}, {"localhost:7700"}, {"ftp://x"}, {"http://good", "http://"}} {
		if c, err := client.New(bad, client.Options{}); err == nil {
			t.Errorf("%q: %v, want an error", bad, c)
		}
	}
}

// TestEvents: a feed goes on where it broke off, and yields nothing twice.
func TestEvents(t *testing.T) {
	message := func(next uint64, events ...string) *kujiv1.StreamEventsResponse {
		m := &kujiv1.StreamEventsResponse{Next: next}
		for _, text := range events {
			e := &kujiv1.Event{}
			if _, err := fmt.Sscanf(text, "%d.%d", &e.Position, &e.Index); err != nil {
				t.Fatal(err)
			}
			m.Events = append(m.Events, e)
		}
		return m
	}
	lost := func() error { panic(http.ErrAbortHandler) }
	var asked []uint64
	s := &script{events: func(from *uint64, send func(*kujiv1.StreamEventsResponse) error) error {
		asked = append(asked, *from)
		switch len(asked) {
		case 1:
			return errors.Join(send(message(1, "1.0")), send(message(2, "2.0", "2.1")), lost())
		case 2:
			return serverError(connect.CodeUnavailable, kujiv1.Reason_REASON_CLOSED)
		case 3:
			return send(message(4, "2.0", "2.1", "2.2", "3.0")) // and ends
		}
		return errors.Join(send(message(5, "4.0")), serverError(connect.CodeNotFound, kujiv1.Reason_REASON_NOT_FOUND))
	}}
	told := 0
	c := newClient(t, client.Options{Timeout: -1, Retry: func(error) { told++ }}, s.serve(t))
	var got []string
	var next uint64
	var failed error
	req := &kujiv1.StreamEventsRequest{From: new(uint64)}
	for m, err := range c.Events(t.Context(), req) {
		if failed = err; err != nil {
			break
		}
		next = m.GetNext()
		for _, e := range m.GetEvents() {
			got = append(got, fmt.Sprintf("%d.%d", e.GetPosition(), e.GetIndex()))
		}
	}
	if want := "1.0 2.0 2.1 2.2 3.0 4.0"; strings.Join(got, " ") != want || next != 5 || told != 2 || *req.From != 0 {
		t.Errorf("events %v, next %d, told %d times, want %s", got, next, told, want)
	}
	if connect.CodeOf(failed) != connect.CodeNotFound || !slices.Equal(asked, []uint64{0, 2, 2, 4}) {
		t.Errorf("ended with %v, asked from %v", failed, asked)
	}
}

// TestSilence: a feed on which nothing comes is asked for again, and one whose reader takes its time is not.
func TestSilence(t *testing.T) {
	ended := make(chan struct{})
	var asked atomic.Int64
	s := &script{events: func(_ *uint64, send func(*kujiv1.StreamEventsResponse) error) error {
		if asked.Add(1) == 1 {
			err := send(&kujiv1.StreamEventsResponse{Next: 1})
			<-ended // without a word more
			return err
		}
		return errors.Join(send(&kujiv1.StreamEventsResponse{Next: 2}), send(&kujiv1.StreamEventsResponse{Next: 3}))
	}}
	c := newClient(t, client.Options{Silence: 100 * time.Millisecond}, s.serve(t))
	t.Cleanup(func() { close(ended) }) // before the server is closed
	var next []uint64
	for m, err := range c.Events(t.Context(), &kujiv1.StreamEventsRequest{From: new(uint64)}) {
		if err != nil {
			t.Fatal(err)
		}
		if next = append(next, m.GetNext()); m.GetNext() == 3 {
			break
		}
		if m.GetNext() == 2 {
			<-time.After(300 * time.Millisecond)
		}
	}
	if !slices.Equal(next, []uint64{1, 2, 3}) || asked.Load() != 2 {
		t.Errorf("got %d in %d streams, want 1, 2, 3 in two", next, asked.Load())
	}
}

// TestDraws: a stream that breaks goes on: each batch has one answer, in order, and is sent again only
// under its own ids.
func TestDraws(t *testing.T) {
	const batches = 50
	seen := map[string]int{}
	count := 0
	s := &script{draws: func(stream *connect.BidiStream[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]) error {
		for {
			req, err := stream.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			count++
			id := req.GetRequestIds()[0]
			seen[id]++
			if count%7 == 3 {
				return serverError(connect.CodeUnavailable, kujiv1.Reason_REASON_UNKNOWN_OUTCOME) // done, and the answer is lost
			}
			if err := stream.Send(&kujiv1.StreamDrawsResponse{Runs: []*kujiv1.DrawRun{{Subject: req.GetPlayers()[0], Replayed: seen[id] > 1}}}); err != nil {
				return err
			}
		}
	}}
	draws := newClient(t, client.Options{Timeout: -1, Connect: []connect.ClientOption{connect.WithGRPC()}}, s.serve(t)).Draws(t.Context())
	defer draws.Close()
	go func() {
		for i := range batches {
			if err := draws.Send(&kujiv1.StreamDrawsRequest{Players: []string{fmt.Sprint(i)}, Pools: []string{"p"}}); err != nil {
				t.Error(err)
			}
		}
		draws.CloseSend()
	}()
	replayed := 0
	for i := range batches {
		resp, err := draws.Receive()
		if err != nil {
			t.Fatal(err)
		}
		run := resp.GetRuns()[0]
		if run.GetSubject() != fmt.Sprint(i) {
			t.Fatalf("answer %d is that of batch %s", i, run.GetSubject())
		}
		if run.GetReplayed() {
			replayed++
		}
	}
	if _, err := draws.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last answer: %v, want EOF", err)
	}
	if len(seen) != batches || replayed == 0 {
		t.Errorf("%d ids for %d batches, %d answered again", len(seen), batches, replayed)
	}
}

// TestDrawsRefused: a stream ends when the server refuses a batch, and says so when outcomes are open.
func TestDrawsRefused(t *testing.T) {
	for reason, open := range map[kujiv1.Reason]bool{kujiv1.Reason_REASON_INVALID: false, kujiv1.Reason_REASON_INTERNAL: true} {
		s := &script{draws: func(*connect.BidiStream[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]) error {
			return serverError(connect.CodeInternal, reason)
		}}
		draws := newClient(t, client.Options{}, s.serve(t)).Draws(t.Context())
		if err := draws.Send(&kujiv1.StreamDrawsRequest{Players: []string{"ann"}, Pools: []string{"p"}}); err != nil {
			t.Fatal(err)
		}
		_, err := draws.Receive()
		if _, ok := errors.AsType[*client.UnknownError](err); ok != open || client.Reason(err) != reason {
			t.Errorf("%v: %v, in doubt: want %v", reason, err, open)
		}
		draws.Close()
		if _, err := draws.Receive(); !errors.Is(err, context.Canceled) {
			t.Errorf("after Close: %v, want canceled", err)
		}
	}
}
