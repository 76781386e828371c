package cli

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/proxy"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// script is a server that answers draws with what was written down for it, one
// after the other, the last for ever.
type script struct {
	kujiv1connect.UnimplementedRewardServiceHandler
	answers []func() (*kujiv1.Result, error)

	mu  sync.Mutex // a client that gave up leaves its handler running
	ids []string
}

// sent returns the ids that arrived so far.
func (s *script) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}

func (s *script) Draw(_ context.Context, req *kujiv1.DrawRequest) (*kujiv1.DrawResponse, error) {
	s.mu.Lock()
	s.ids = append(s.ids, req.GetRequestId())
	answer := s.answers[min(len(s.ids), len(s.answers))-1]
	s.mu.Unlock()
	result, err := answer()
	if err != nil {
		return nil, err
	}
	return &kujiv1.DrawResponse{Result: result}, nil
}

func TestCall(t *testing.T) {
	won := func() (*kujiv1.Result, error) { return &kujiv1.Result{Status: kujiv1.Status_STATUS_OK}, nil }
	says := func(code connect.Code, reason kujiv1.Reason) func() (*kujiv1.Result, error) {
		return func() (*kujiv1.Result, error) { return nil, rpcError(t, code, reason) }
	}
	hangUp := func() (*kujiv1.Result, error) { panic(http.ErrAbortHandler) }
	unknown := says(connect.CodeUnavailable, kujiv1.Reason_REASON_UNKNOWN_OUTCOME)
	failed := says(connect.CodeUnavailable, kujiv1.Reason_REASON_FAILED)
	busy := says(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED)
	soldOut := func() (*kujiv1.Result, error) { return &kujiv1.Result{Status: kujiv1.Status_STATUS_SOLD_OUT}, nil }
	invalid := says(connect.CodeInvalidArgument, kujiv1.Reason_REASON_INVALID)

	type answers = []func() (*kujiv1.Result, error)
	for _, tt := range []struct {
		name     string
		answers  answers
		attempts int // 0: until the time is up
		unknown  bool
		exit     exitCode
	}{
		{"at once", answers{won}, 1, false, exitOK},
		{"lost answer, then found", answers{hangUp, won}, 2, false, exitOK},
		{"unknown, busy, then found", answers{unknown, busy, won}, 3, false, exitOK},
		{"refused by the state", answers{soldOut}, 1, false, exitOK},
		{"unknown, then refused by the state: final", answers{unknown, soldOut}, 2, false, exitOK},
		{"malformed", answers{invalid}, 1, false, exitUsage},
		{"realm stopped, nothing was ever in doubt", answers{failed}, 1, false, exitUnreachable},
		{"unknown, then the realm stopped: still in doubt", answers{unknown, failed}, 2, true, exitUnreachable},
		{"never an answer", answers{hangUp}, 0, true, exitUnreachable},
		{"always busy: nothing happened", answers{busy}, 0, false, exitUnreachable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &script{answers: tt.answers}
			mux := http.NewServeMux()
			mux.Handle(kujiv1connect.NewRewardServiceHandler(s))
			srv := httptest.NewServer(mux)
			defer srv.Close()
			c := newClient(srv.Client(), srv.URL, "")
			c.timeout = 10 * time.Second
			if tt.attempts == 0 {
				c.timeout = 200 * time.Millisecond
			}
			_, err := call(t.Context(), c, "the-id", c.rewards.Draw, &kujiv1.DrawRequest{RequestId: "the-id"})
			if got := exitOf(t, err); got != tt.exit {
				t.Errorf("exit code %d (%v), want %d", got, err, tt.exit)
			}
			var inDoubt unknownError
			if errors.As(err, &inDoubt) != tt.unknown {
				t.Errorf("error %v, in doubt: want %v", err, tt.unknown)
			}
			if tt.unknown {
				if f := classify(t.Context(), err); !strings.Contains(f.Message, "--id the-id") || f.RequestID != "the-id" {
					t.Errorf("message %q, request id %q: want how to find out", f.Message, f.RequestID)
				}
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

func exitOf(t *testing.T, err error) exitCode {
	t.Helper()
	if err == nil {
		return exitOK
	}
	return classify(t.Context(), err).Exit
}

// TestCallNobodyThere: a refused connection carried nothing, so nothing is in doubt.
func TestCallNobodyThere(t *testing.T) {
	nobody, err := proxy.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(http.DefaultClient, "http://"+nobody[0], "")
	c.timeout = 100 * time.Millisecond
	_, err = call(t.Context(), c, "the-id", c.rewards.Draw, &kujiv1.DrawRequest{})
	var inDoubt unknownError
	if err == nil || errors.As(err, &inDoubt) {
		t.Errorf("error %v, want one that is not in doubt", err)
	}
	if got := exitOf(t, err); got != exitUnreachable {
		t.Errorf("exit code %d, want %d", got, exitUnreachable)
	}
}

// TestCallNotUTF8: what cannot be sent at all is said at once, and nothing is in doubt.
func TestCallNotUTF8(t *testing.T) {
	s := &script{}
	mux := http.NewServeMux()
	mux.Handle(kujiv1connect.NewRewardServiceHandler(s))
	srv := httptest.NewServer(mux)
	defer srv.Close()
	c := newClient(srv.Client(), srv.URL, "")
	c.timeout = time.Minute
	c.note = func(format string, args ...any) { t.Errorf(format, args...) }
	_, err := call(t.Context(), c, "the-id", c.rewards.Draw, &kujiv1.DrawRequest{Player: "a\xff"})
	if got := exitOf(t, err); got != exitUsage {
		t.Errorf("exit code %d (%v), want %d", got, err, exitUsage)
	}
	if ids := s.sent(); len(ids) > 0 {
		t.Errorf("sent %d times", len(ids))
	}
}

func TestCallInterrupted(t *testing.T) {
	s := &script{answers: []func() (*kujiv1.Result, error){func() (*kujiv1.Result, error) { panic(http.ErrAbortHandler) }}}
	mux := http.NewServeMux()
	mux.Handle(kujiv1connect.NewRewardServiceHandler(s))
	srv := httptest.NewServer(mux)
	defer srv.Close()
	c := newClient(srv.Client(), srv.URL, "")
	c.timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	c.note = func(string, ...any) { cancel() } // interrupted while it waits for the second attempt
	_, err := call(ctx, c, "the-id", c.rewards.Draw, &kujiv1.DrawRequest{})
	f := classify(ctx, err)
	if f.Exit != exitInterrupted {
		t.Errorf("exit code %d (%v), want %d", f.Exit, err, exitInterrupted)
	}
	if !strings.Contains(f.Message, "--id the-id") || f.RequestID != "the-id" {
		t.Errorf("message %q, request id %q: want how to find out", f.Message, f.RequestID)
	}
}

func TestParseItems(t *testing.T) {
	got, err := parseItems([]string{"gems=100", "a=b=3"})
	if err == nil {
		t.Errorf("got %v, want an error for the second", got)
	}
	got, err = parseItems([]string{"gems=100", "ticket=1"})
	if err != nil || len(got) != 2 || got[0].GetItem() != "gems" || got[0].GetQuantity() != 100 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"gems", "=3", "gems=", "gems=-1", "gems=1.5", "gems=99999999999999999999"} {
		if _, err := parseItems([]string{bad}); exitOf(t, err) != exitUsage {
			t.Errorf("%q: %v, want a usage error", bad, err)
		}
	}
}
