package server_test

import (
	"context"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// empty answers without an engine: what Connect itself costs.
type empty struct {
	kujiv1connect.UnimplementedRewardServiceHandler
	result *kujiv1.Result
}

func (e empty) Draw(context.Context, *kujiv1.DrawRequest) (*kujiv1.DrawResponse, error) {
	return &kujiv1.DrawResponse{Result: e.result}, nil
}

// BenchmarkUnary compares a draw by 64 clients on 64 connections with an empty
// Connect handler that answers the same message; Kuji with the log in the page
// cache ("none") and fsynced ("always"). By default that handler compresses
// every answer, which Kuji does not: "empty" does without too.
func BenchmarkUnary(b *testing.B) {
	const connections = 64
	f := start(b, server.Options{})
	durable := startWith(b, kuji.Options{}, server.Options{})
	first, err := clients(b, f.url)[4].reward.Draw(context.Background(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"})
	if err != nil {
		b.Fatal(err)
	}
	for _, protocol := range []struct {
		name string
		http func(testing.TB) *http.Client
		o    connect.ClientOption
	}{{"grpc", h2c, connect.WithGRPC()}, {"json", h1, connect.WithProtoJSON()}} {
		for _, target := range []struct{ name, url string }{
			{"empty-default", emptyUnary(b, first.GetResult())},
			{"empty", emptyUnary(b, first.GetResult(), connect.WithCompressMinBytes(math.MaxInt))},
			{"none", f.url}, {"always", durable.url},
		} {
			var all []kujiv1connect.RewardServiceClient
			for range connections {
				all = append(all, kujiv1connect.NewRewardServiceClient(protocol.http(b), target.url, protocol.o))
			}
			b.Run(protocol.name+"/"+target.name, func(b *testing.B) {
				var failed atomic.Int64
				b.ReportAllocs()
				var wg sync.WaitGroup
				for i, c := range all {
					wg.Go(func() {
						for range (b.N + i) / connections {
							if _, err := c.Draw(context.Background(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"}); err != nil {
								failed.Add(1)
							}
						}
					})
				}
				wg.Wait()
				if n := failed.Load(); n > 0 {
					b.Errorf("%d of %d draws failed", n, b.N)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "draws/s")
			})
		}
	}
}

// emptyUnary serves draws that always end with the same result.
func emptyUnary(b *testing.B, result *kujiv1.Result, o ...connect.HandlerOption) (url string) {
	mux := http.NewServeMux()
	mux.Handle(kujiv1connect.NewRewardServiceHandler(empty{result: result}, o...))
	return serveBare(b, mux)
}

// serveBare serves a handler with nothing around it.
func serveBare(b *testing.B, h http.Handler) (url string) {
	b.Helper()
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: h, Protocols: p}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	b.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String()
}

// BenchmarkAccessLog compares a draw without an access log with one that has a line in it.
func BenchmarkAccessLog(b *testing.B) {
	for _, name := range []string{"off", "on"} {
		b.Run(name, func(b *testing.B) {
			var o server.Options
			if name == "on" {
				file, err := os.Create(filepath.Join(b.TempDir(), "access"))
				if err != nil {
					b.Fatal(err)
				}
				defer file.Close() // its content is of no interest
				o.AccessLog = server.NewAccessLog(file, quiet())
				defer o.AccessLog.Close(b.Context()) // the same
			}
			f := newServer(b, o)
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, drawPath, strings.NewReader(`{"player":"ann","pool":"free"}`))
				r.Header.Set("Content-Type", "application/json")
				r.Host = "localhost"
				w := httptest.NewRecorder()
				if f.server.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}

// BenchmarkProgress reports progress that a counter of a quest counts, which claims itself: in batches of 1,000 by 4
// callers, and in single calls by 64 clients on 64 connections. Every answer is durable.
func BenchmarkProgress(b *testing.B) {
	const size, connections = 1000, 64
	f := startWith(b, kuji.Options{}, server.Options{})
	questRealm(b, f, "quests")
	player := func(i int) string { return "player-" + strconv.Itoa(i%100_000) }
	b.Run("batches", func(b *testing.B) {
		c := kujiv1connect.NewRewardServiceClient(h2c(b), f.url, connect.WithGRPC())
		var wg sync.WaitGroup
		var failed atomic.Int64
		for worker := range 4 {
			wg.Go(func() {
				for at := worker * size; at < b.N; at += 4 * size {
					batch := &kujiv1.BatchRequest{Realm: "quests", Commands: make([]*kujiv1.Command, min(size, b.N-at))}
					for i := range batch.Commands {
						batch.Commands[i] = &kujiv1.Command{Command: &kujiv1.Command_Progress{Progress: &kujiv1.Progress{Player: player(at + i), Event: "wins"}}}
					}
					resp, err := c.Batch(context.Background(), batch)
					if err != nil || resp.GetResults()[0].GetStatus() != kujiv1.Status_STATUS_OK {
						failed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := failed.Load(); n > 0 {
			b.Errorf("%d batches failed", n)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "progress/s")
	})
	b.Run("single", func(b *testing.B) {
		var wg sync.WaitGroup
		var failed atomic.Int64
		for worker := range connections {
			c := kujiv1connect.NewRewardServiceClient(h2c(b), f.url, connect.WithGRPC())
			wg.Go(func() {
				for i := range (b.N + worker) / connections {
					req := &kujiv1.ProgressRequest{Realm: "quests", Player: player(i*connections + worker), Event: "wins"}
					if _, err := c.Progress(context.Background(), req); err != nil {
						failed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := failed.Load(); n > 0 {
			b.Errorf("%d of %d calls failed", n, b.N)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "progress/s")
	})
}
