package rivals

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// startKuji builds the server, starts it and puts the pool into it. It listens
// for Redis clients at an address, too. history is where it keeps its history.
func startKuji(tb testing.TB, sync, history string) (url, redis string, s setup) {
	tb.Helper()
	dir := scratch(tb)
	binary := filepath.Join(dir, "kuji")
	build := exec.Command("go", "build", "-o", binary, "./cmd/kuji")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(binary, "serve", "--json", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--redis-listen", "127.0.0.1:0", "--sync", sync, "--history", history)
	stdout, err := cmd.StdoutPipe()
	must(tb, err)
	must(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = cmd.Process.Kill() // nothing of it is wanted any more
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	must(tb, err)
	var ready struct{ URL, Redis string }
	must(tb, json.Unmarshal(line, &ready))

	var yaml strings.Builder
	yaml.WriteString("kuji: 1\nitems:\n")
	for i := range entries {
		fmt.Fprintf(&yaml, "  item-%d: {}\n", i)
	}
	yaml.WriteString("pools:\n  pool:\n    entries:\n")
	for i := range entries {
		fmt.Fprintf(&yaml, "      - {id: e%d, weight: %d, stock: %d, reward: {items: {item-%d: 1}}}\n", i, weight(i), stock, i)
	}
	admin := kujiv1connect.NewAdminServiceClient(http.DefaultClient, ready.URL)
	_, err = admin.ApplyCatalog(tb.Context(), &kujiv1.ApplyCatalogRequest{Yaml: []byte(yaml.String())})
	must(tb, err)
	return ready.URL, ready.Redis, setup{drawn: func(tb testing.TB) int64 {
		status, err := admin.GetStatus(context.Background(), &kujiv1.GetStatusRequest{Realm: "default"})
		must(tb, err)
		return int64(status.GetRealms()[0].GetDraws())
	}}
}

// client is a connection of its own.
func client(tb testing.TB, url string) kujiv1connect.RewardServiceClient {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p}
	tb.Cleanup(tr.CloseIdleConnections)
	return kujiv1connect.NewRewardServiceClient(&http.Client{Transport: wholeMessages{tr}}, url, connect.WithGRPC())
}

// wholeMessages hands each message of a stream to the transport with its head
// of five bytes, as one piece and so as one frame, as most gRPC clients do.
// Connect's writes the two apart.
type wholeMessages struct{ http.RoundTripper }

func (w wholeMessages) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.ContentLength < 0 {
		r = r.WithContext(r.Context()) // a copy: the caller's must stay as it is
		r.Body = &messageBody{ReadCloser: r.Body}
	}
	return w.RoundTripper.RoundTrip(r)
}

type messageBody struct {
	io.ReadCloser
	left int // of the message that is being read
}

func (b *messageBody) Read(p []byte) (n int, err error) {
	if b.left == 0 {
		if len(p) < 5 {
			return 0, io.ErrShortBuffer
		}
		if n, err = io.ReadFull(b.ReadCloser, p[:5]); err != nil {
			return 0, err
		}
		b.left = int(binary.BigEndian.Uint32(p[1:5]))
	}
	m, err := io.ReadFull(b.ReadCloser, p[n:min(len(p), n+b.left)])
	if b.left -= m; b.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n + m, err
}

// openConnect makes draws by the generated client as it is without options: the
// Connect protocol, in binary, over a kept HTTP/1.1 connection.
func openConnect(tb testing.TB, url string) connection {
	tr := &http.Transport{}
	tb.Cleanup(tr.CloseIdleConnections)
	return unaryConnection{kujiv1connect.NewRewardServiceClient(&http.Client{Transport: tr}, url)}
}

// unaryConnection makes draws by unary calls of a generated client.
type unaryConnection struct {
	c kujiv1connect.RewardServiceClient
}

func (u unaryConnection) draw(ctx context.Context, ids, players []string) error {
	for i := range ids {
		res, err := u.c.Draw(ctx, &kujiv1.DrawRequest{RequestId: ids[i], Player: players[i], Pool: "pool"})
		if err != nil {
			return err
		}
		if res.GetResult().GetStatus() != kujiv1.Status_STATUS_OK {
			return errors.New(res.GetResult().String())
		}
	}
	return nil
}

// streamConnection makes draws by messages on an open stream, each answered
// before the next is sent.
type streamConnection struct {
	s *connect.BidiStreamForClientSimple[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]
}

func (s streamConnection) draw(_ context.Context, ids, players []string) error {
	if err := s.s.Send(&kujiv1.StreamDrawsRequest{Players: players, Pools: []string{"pool"}, RequestIds: ids}); err != nil {
		return err
	}
	res, err := s.s.Receive()
	if err != nil {
		return err
	}
	done := uint32(0)
	for _, run := range res.GetRuns() {
		if run.GetStatus() == kujiv1.Status_STATUS_OK {
			done += run.GetDraws()
		}
	}
	if int(done) != len(ids) {
		return fmt.Errorf("%d draws made, want %d", done, len(ids))
	}
	return nil
}

func BenchmarkKuji(top *testing.B) {
	// The log has what happened, as the history of the others does. The database that kuji serve keeps by
	// default, for questions about players, is more than they do: it has rows of its own.
	for _, how := range []struct{ name, sync, history string }{
		{"sync=always", "always", "off"}, {"sync=interval", "interval", "off"}, {"sync=always+history", "always", "sqlite"},
	} {
		top.Run(how.name, func(b *testing.B) {
			url, redis, s := startKuji(b, how.sync, how.history)
			grpc := func(tb testing.TB) connection { return unaryConnection{client(tb, url)} }
			usual := func(tb testing.TB) connection { return openConnect(tb, url) }
			json := func(tb testing.TB) connection { return openHTTP(tb, url, "json") }
			binary := func(tb testing.TB) connection { return openHTTP(tb, url, "proto") }
			usualRedis := func(tb testing.TB) connection { return openRedis(tb, redis) }
			leanRedis := func(tb testing.TB) connection { return leanDraw{dialWire(tb, redis)} }
			stream := func(tb testing.TB) connection {
				one, err := client(tb, url).StreamDraws(context.Background())
				must(tb, err)
				tb.Cleanup(func() { _, _ = one.CloseRequest(), one.CloseResponse() })
				return streamConnection{one}
			}
			for _, l := range []struct {
				shape, client     string
				open              func(testing.TB) connection
				connections, each int
			}{
				{"unary", "lean-json", json, 1, 1}, {"unary", "lean-json", json, 16, 1}, {"unary", "lean-json", json, 50, 1},
				{"unary", "lean-proto", binary, 1, 1}, {"unary", "lean-proto", binary, 16, 1}, {"unary", "lean-proto", binary, 50, 1},
				{"unary", "connect", usual, 1, 1}, {"unary", "connect", usual, 16, 1}, {"unary", "connect", usual, 50, 1},
				{"unary", "grpc", grpc, 1, 1}, {"unary", "grpc", grpc, 16, 1}, {"unary", "grpc", grpc, 50, 1},
				{"unary", "lean-redis", leanRedis, 1, 1}, {"unary", "lean-redis", leanRedis, 16, 1}, {"unary", "lean-redis", leanRedis, 50, 1},
				{"unary", "go-redis", usualRedis, 1, 1}, {"unary", "go-redis", usualRedis, 16, 1}, {"unary", "go-redis", usualRedis, 50, 1},
				{"pipeline", "go-redis", usualRedis, 1, 100},
				{"stream", "grpc", stream, 1, 1}, {"stream", "grpc", stream, 16, 1}, {"stream", "grpc", stream, 50, 1},
				{"stream", "grpc", stream, 1, 100}, {"batch", "grpc", stream, 1, batchSize}, {"batch", "grpc", stream, 2, batchSize},
			} {
				s.open = l.open
				b.Run(fmt.Sprintf("shape=%s/client=%s/connections=%d/each=%d", l.shape, l.client, l.connections, l.each), func(b *testing.B) {
					measure(b, s, l.connections, l.each)
				})
			}
		})
	}
}
