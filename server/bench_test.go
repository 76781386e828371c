package server_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

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

// BenchmarkUnary compares a draw, not synced to disk, with an empty Connect
// handler that answers the same message. By default that handler compresses
// every answer, which Kuji does not: "empty" does without too.
func BenchmarkUnary(b *testing.B) {
	f := start(b, server.Options{})
	first, err := clients(b, f.url)[4].reward.Draw(context.Background(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"})
	if err != nil {
		b.Fatal(err)
	}
	bare := func(o ...connect.HandlerOption) string {
		mux := http.NewServeMux()
		mux.Handle(kujiv1connect.NewRewardServiceHandler(empty{result: first.GetResult()}, o...))
		p := new(http.Protocols)
		p.SetHTTP1(true)
		p.SetUnencryptedHTTP2(true)
		s := &http.Server{Handler: mux, Protocols: p}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		go func() { _ = s.Serve(l) }()
		b.Cleanup(func() { _ = s.Close() })
		return "http://" + l.Addr().String()
	}
	for _, server := range []struct{ name, url string }{
		{"empty-default", bare()}, {"empty", bare(connect.WithCompressMinBytes(1 << 62))}, {"kuji", f.url},
	} {
		for _, protocol := range []struct {
			name string
			http *http.Client
			o    connect.ClientOption
		}{
			{"grpc", h2c(b), connect.WithGRPC()},
			{"json", h1(b), connect.WithProtoJSON()},
		} {
			if tr := protocol.http.Transport.(*http.Transport); tr.Protocols == nil {
				tr.MaxIdleConnsPerHost = 64
			}
			c := kujiv1connect.NewRewardServiceClient(protocol.http, server.url, protocol.o)
			b.Run(protocol.name+"/"+server.name, func(b *testing.B) {
				var failed atomic.Int64
				b.ReportAllocs()
				b.SetParallelism(16)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := c.Draw(context.Background(), &kujiv1.DrawRequest{Player: "ann", Pool: "free"}); err != nil {
							failed.Add(1)
						}
					}
				})
				if n := failed.Load(); n > 0 {
					b.Errorf("%d of %d draws failed", n, b.N)
				}
			})
		}
	}
}
