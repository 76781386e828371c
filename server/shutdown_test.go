package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestShutdown checks that a call in flight is answered, and that new
// connections are refused.
func TestShutdown(t *testing.T) {
	for _, tt := range []struct {
		name string
		http func(testing.TB) *http.Client
	}{{"h1", h1}, {"h2", h2c}} {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t, server.Options{})
			entered, release := make(chan struct{}), make(chan struct{})
			f.server.Replace(drawPath, server.Intercepted(f.server, drawPath,
				func(*connect.Request[kujiv1.DrawRequest]) (*connect.Response[kujiv1.DrawResponse], error) {
					close(entered)
					<-release
					return connect.NewResponse(&kujiv1.DrawResponse{}), nil
				}))
			c := newClient("", tt.http(t), f.url).reward
			answered := make(chan error, 1)
			go func() {
				_, err := c.Draw(context.Background(), &kujiv1.DrawRequest{})
				answered <- err
			}()
			<-entered
			down := make(chan error, 1)
			go func() { down <- f.server.Shutdown(context.Background()) }()
			// Until the listener is closed, others are still served: health says to go away.
			for {
				if _, err := newClient("", tt.http(t), f.url).reward.GetPool(context.Background(), &kujiv1.GetPoolRequest{Pool: "free"}); err != nil {
					break
				}
			}
			select {
			case err := <-down:
				t.Fatalf("Shutdown returns (%v) while a call is in flight", err)
			default:
			}
			close(release)
			if err := <-answered; err != nil {
				t.Errorf("the call in flight: %v", err)
			}
			if err := <-down; err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		})
	}
}

func TestShutdownGivesUp(t *testing.T) {
	f := start(t, server.Options{})
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	f.server.Replace(drawPath, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-release
	}))
	answered := make(chan error, 1)
	go func() {
		_, err := newClient("", h1(t), f.url).reward.Draw(context.Background(), &kujiv1.DrawRequest{})
		answered <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown with an ended context: %v, want its error", err)
	}
	if err := <-answered; err == nil {
		t.Error("the call that was cut is answered")
	}
}

// TestDrainDelay checks that a server goes on for a while after it has said
// that it goes, and that the caller's context ends the wait.
func TestDrainDelay(t *testing.T) {
	f := start(t, server.Options{DrainDelay: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	down := make(chan error, 1)
	go func() { down <- f.server.Shutdown(ctx) }()
	for {
		code, _ := get(t, h1(t), f.url+"/readyz") // a new connection each time
		if code == http.StatusServiceUnavailable {
			break
		}
	}
	if _, err := newClient("", h1(t), f.url).reward.Draw(context.Background(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"}); err != nil {
		t.Errorf("a draw in the delay: %v", err)
	}
	cancel()
	if err := <-down; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
}

func TestTLS(t *testing.T) {
	borrowed := httptest.NewTLSServer(nil) // for its certificate
	defer borrowed.Close()
	f := start(t, server.Options{TLS: &tls.Config{Certificates: borrowed.TLS.Certificates}})
	trust := borrowed.Client().Transport.(*http.Transport).TLSClientConfig
	for _, want := range []int{1, 2} {
		p := new(http.Protocols)
		p.SetHTTP1(want == 1)
		p.SetHTTP2(want == 2)
		tr := &http.Transport{TLSClientConfig: trust.Clone(), Protocols: p}
		defer tr.CloseIdleConnections()
		h := &http.Client{Transport: tr}
		res, err := h.Get(f.url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.ProtoMajor != want {
			t.Errorf("HTTP/%d, want HTTP/%d", res.ProtoMajor, want)
		}
		if _, err := newClient("", h, f.url).reward.Draw(context.Background(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"}); err != nil {
			t.Errorf("HTTP/%d: %v", want, err)
		}
	}
	if res, err := h1(t).Get("http://" + f.addr + "/healthz"); err == nil {
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("plain text is answered with %d", res.StatusCode)
		}
	}
}

// lockedBuffer collects log lines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestPanics(t *testing.T) {
	ctx := context.Background()
	log := &lockedBuffer{}
	f := start(t, server.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	f.server.Replace(drawPath, server.Intercepted(f.server, drawPath,
		func(*connect.Request[kujiv1.DrawRequest]) (*connect.Response[kujiv1.DrawResponse], error) {
			panic("secret of the handler")
		}))
	const grantPath = "/kuji.v1.RewardService/Grant"
	f.server.Replace(grantPath, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret of the codec") }))
	for _, c := range clients(t, f.url) {
		_, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{})
		if connect.CodeOf(err) != connect.CodeInternal || detail(t, err).GetReason() != kujiv1.Reason_REASON_INTERNAL || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: a panic in the handler: %v, want internal without its text", c.name, err)
		}
		if _, err := c.reward.Grant(ctx, &kujiv1.GrantRequest{}); err == nil {
			t.Errorf("%s: a panic outside of the handler is answered", c.name)
		}
		if _, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "free"}); err != nil {
			t.Errorf("%s: after the panics: %v", c.name, err)
		}
	}
	for _, want := range []string{"secret of the handler", "secret of the codec", "shutdown_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log", want)
		}
	}
	if f.server.InFlight() != 0 {
		t.Errorf("%d calls in flight after all have ended", f.server.InFlight())
	}
}
