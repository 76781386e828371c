package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// drawsOf is a batch of n draws for as many of 1000 players, with request ids
// of 16 bytes that start at from unless that is negative.
func drawsOf(n, from int) *kujiv1.StreamDrawsRequest {
	req := &kujiv1.StreamDrawsRequest{Pools: []string{"free"}}
	for i := range n {
		req.Players = append(req.Players, fmt.Sprintf("player-%d", i*7919%1000))
		if from >= 0 {
			req.RequestIds = append(req.RequestIds, fmt.Sprintf("%016x", from+i))
		}
	}
	return req
}

// rawCodec hands messages over as they are: what the transport alone costs.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }
func (rawCodec) Marshal(m any) ([]byte, error) {
	return *m.(*[]byte), nil
}
func (rawCodec) MarshalAppend(dst []byte, m any) ([]byte, error) {
	return append(dst, *m.(*[]byte)...), nil
}
func (rawCodec) Unmarshal(data []byte, m any) error {
	b := m.(*[]byte)
	*b = append((*b)[:0], data...)
	return nil
}

// emptyStream answers each message of a stream with the same bytes.
func emptyStream(b *testing.B, answer []byte) string {
	b.Helper()
	path := kujiv1connect.RewardServiceStreamDrawsProcedure
	mux := http.NewServeMux()
	mux.Handle(path, connect.NewBidiStreamHandler(path, func(_ context.Context, s *connect.BidiStream[[]byte, []byte]) error {
		var req []byte
		for {
			if err := s.Conn().Receive(&req); err != nil {
				return nil
			}
			if err := s.Send(&answer); err != nil {
				return err
			}
		}
	}, connect.WithCodec(rawCodec{}), connect.WithCompressMinBytes(math.MaxInt)))
	return serveBare(b, mux)
}

// BenchmarkStream sends batches of 1000 draws by gRPC, with a few on their way
// in each stream, to a server that only answers bytes ("empty"), and to Kuji
// with the log in the page cache ("none") and fsynced ("always"). An operation
// is one draw; the client, which is the generated one, works on the same cores.
func BenchmarkStream(b *testing.B) {
	const size, ahead = 1000, 4
	f := startWith(b, kuji.Options{Sync: kuji.SyncNone}, server.Options{})
	durable := startWith(b, kuji.Options{}, server.Options{})
	c := newClient("", h2c(b), f.url, connect.WithGRPC()).reward
	answer := answerTo(b, c, drawsOf(size, -1))
	for _, ids := range []bool{false, true} {
		for _, target := range []struct{ name, url string }{{"empty", emptyStream(b, answer)}, {"none", f.url}, {"always", durable.url}} {
			for _, streams := range []int{1, 2, 4} {
				b.Run(fmt.Sprintf("ids=%v/%s/streams=%d", ids, target.name, streams), func(b *testing.B) {
					c := newClient("", h2c(b), target.url, connect.WithGRPC()).reward
					var next atomic.Int64
					var wg sync.WaitGroup
					b.ReportAllocs()
					for range streams {
						wg.Go(func() {
							if err := pump(c, size, ahead, ids, &next, int64(b.N)); err != nil {
								b.Error(err)
							}
						})
					}
					wg.Wait()
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "draws/s")
				})
			}
		}
	}
}

// answerTo returns the bytes of the answer to a batch.
func answerTo(b *testing.B, c kujiv1connect.RewardServiceClient, batch *kujiv1.StreamDrawsRequest) []byte {
	b.Helper()
	s, err := c.StreamDraws(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Send(batch); err != nil {
		b.Fatal(err)
	}
	res, err := s.Receive()
	if err != nil {
		b.Fatal(err)
	}
	answer, err := proto.Marshal(res)
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

// BenchmarkStreamOne is BenchmarkStream with one draw a message: on each of 64 streams, with
// connections of their own, the next one follows the answer.
func BenchmarkStreamOne(b *testing.B) {
	const streams = 64
	f := startWith(b, kuji.Options{Sync: kuji.SyncNone}, server.Options{})
	durable := startWith(b, kuji.Options{}, server.Options{})
	c := newClient("", h2c(b), f.url, connect.WithGRPC()).reward
	empty := emptyStream(b, answerTo(b, c, drawsOf(1, 0)))
	for _, target := range []struct{ name, url string }{{"empty", empty}, {"none", f.url}, {"always", durable.url}} {
		var all []kujiv1connect.RewardServiceClient
		for range streams {
			all = append(all, newClient("", h2c(b), target.url, connect.WithGRPC()).reward)
		}
		b.Run(target.name, func(b *testing.B) {
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ReportAllocs()
			for _, c := range all {
				wg.Go(func() {
					if err := pump(c, 1, 1, true, &next, int64(b.N)); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "draws/s")
		})
	}
}

var idBase atomic.Int64

// pump sends batches until total draws have been taken from next, and reads the answers.
func pump(c kujiv1connect.RewardServiceClient, size, ahead int, ids bool, next *atomic.Int64, total int64) error {
	s, err := c.StreamDraws(context.Background())
	if err != nil {
		return err
	}
	window := make(chan struct{}, ahead)
	received := make(chan error, 1)
	go func() {
		for {
			if _, err := s.Receive(); err != nil {
				received <- err
				return
			}
			<-window
		}
	}()
	req := drawsOf(size, -1)
	if ids {
		req = drawsOf(size, 0)
	}
	for next.Add(int64(size))-int64(size) < total {
		if ids {
			from := idBase.Add(int64(size))
			for i := range req.RequestIds {
				req.RequestIds[i] = "0123456789" + strconv.FormatInt(1<<29+from+int64(i), 36) // 16 bytes
			}
		}
		window <- struct{}{}
		if err := s.Send(req); err != nil {
			return err
		}
	}
	if err := s.CloseRequest(); err != nil {
		return err
	}
	if err := <-received; !errors.Is(err, io.EOF) {
		return err
	}
	return s.CloseResponse()
}
