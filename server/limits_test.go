package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

const drawPath = "/kuji.v1.RewardService/Draw"

func TestOptions(t *testing.T) {
	engine := newEngine(t, kuji.Options{})
	for name, o := range map[string]server.Options{
		"DrainDelay":    {DrainDelay: -1},
		"RequestBytes":  {Limits: server.Limits{RequestBytes: -1}},
		"HeaderTimeout": {Limits: server.Limits{HeaderTimeout: -time.Second}},
		"InFlight":      {Limits: server.Limits{InFlight: -1}},
	} {
		if _, err := server.New(engine, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a negative %s: %v, want an error that names it", name, err)
		}
	}
}

// TestMessageSizes sends messages around the limit, plain and compressed.
func TestMessageSizes(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{Limits: server.Limits{RequestBytes: 1000, BatchBytes: 2000}})
	sized := func(n int) *kujiv1.DrawRequest {
		r := &kujiv1.DrawRequest{Player: "ann"}
		r.Pool = strings.Repeat("x", n-proto.Size(r)-3)
		if proto.Size(r) != n {
			t.Fatalf("message of %d bytes, want %d", proto.Size(r), n)
		}
		return r
	}
	for _, c := range clients(t, f.url) {
		if strings.Contains(c.name, "json") {
			continue // sized is about binary
		}
		_, err := c.reward.Draw(ctx, sized(1000))
		if connect.CodeOf(err) != connect.CodeInvalidArgument { // the pool's name is too long
			t.Errorf("%s: at the limit: %v, want it read", c.name, err)
		}
		_, err = c.reward.Draw(ctx, sized(1001))
		if connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("%s: beyond the limit: %v, want resource_exhausted", c.name, err)
		}
		_, err = c.reward.Batch(ctx, &kujiv1.BatchRequest{Realm: strings.Repeat("x", 1500), Commands: []*kujiv1.Command{{}}})
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: batch at its own limit: %v", c.name, err)
		}
		_, err = c.reward.Batch(ctx, &kujiv1.BatchRequest{Realm: strings.Repeat("x", 2000), Commands: []*kujiv1.Command{{}}})
		if connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("%s: batch beyond its own limit: %v", c.name, err)
		}
	}
}

// TestLargestRequests checks that the largest valid requests fit into the
// default limits in the longest encoding: JSON with every character escaped.
func TestLargestRequests(t *testing.T) {
	f := start(t, server.Options{})
	escaped := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\u%04x`, c)
		}
		return b.String()
	}
	id := func(kind string, n int) string { return escaped(fmt.Sprintf("%s%0*d", kind, kuji.MaxID-len(kind), n)) }
	items := make([]string, kuji.MaxStacks)
	for i := range items {
		items[i] = fmt.Sprintf(`{ "item" : "%s" , "quantity" : "%d" }`, id("item", i), uint64(kuji.MaxQuantity))
	}
	stacks := "[ " + strings.Join(items, " , ") + " ]"
	grant := fmt.Sprintf(`{ "realm" : "default" , "requestId" : "%s" , "player" : "%s" , "items" : %s }`, id("req", 1), id("p", 1), stacks)
	member := fmt.Sprintf(`{ "transfer" : { "from" : "%s" , "to" : "%s" , "items" : %s } }`, id("p", 1), id("p", 2), stacks)
	atomic := fmt.Sprintf(`{ "requestId" : "%s" , "members" : [ %s ] }`, id("req", 2), strings.Join(repeat(member, kuji.MaxAtomic), " , "))
	for path, body := range map[string]string{"Grant": grant, "Atomic": atomic} {
		code, text := post(t, h1(t), f.url, "/kuji.v1.RewardService/"+path, body)
		if code != 404 || !strings.Contains(text, "there is no item") { // read and carried out
			t.Errorf("%s of %d bytes: %d %.200s, want it to reach the rules", path, len(body), code, text)
		}
	}
}

func repeat(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// TestBomb sends a small message that would decompress to 1 GiB.
func TestBomb(t *testing.T) {
	f := start(t, server.Options{})
	var bomb bytes.Buffer
	z, err := gzip.NewWriterLevel(&bomb, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 30
	zeros := make([]byte, 1<<20)
	for range size / len(zeros) {
		if _, err := z.Write(zeros); err != nil {
			t.Fatal(err)
		}
		if bomb.Len() > 40<<10 { // all that fits into a request; the stream stays unfinished
			break
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		code, text := post(t, h1(t), f.url, drawPath, bomb.String(), "Content-Encoding", "gzip")
		if code != 429 || !strings.Contains(text, "resource_exhausted") {
			t.Fatalf("%d %.200s, want resource_exhausted", code, text)
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("20 bombs made the server allocate %d MiB", got>>20)
	}
	// No more than the limit and one byte is decompressed, even to be thrown away.
	for range 2 {
		n, err := server.Decompressed(bytes.NewReader(bomb.Bytes()), 1000)
		if n != 1001 || err == nil {
			t.Errorf("%d bytes of a bomb decompressed, %v; want 1001 and an error", n, err)
		}
	}
	// gRPC announces compression in another header.
	frame := append([]byte{1, 0, 0, byte(bomb.Len() >> 8), byte(bomb.Len())}, bomb.Bytes()...)
	req, err := http.NewRequest(http.MethodPost, f.url+drawPath, bytes.NewReader(frame))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc+proto")
	req.Header.Set("Grpc-Encoding", "gzip")
	res, err := h2c(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	if got := res.Trailer.Get("Grpc-Status") + res.Header.Get("Grpc-Status"); got != "8" {
		t.Errorf("gRPC bomb: status %q, want 8 (resource_exhausted)", got)
	}
}

// endless is a body that ends only where the test has failed already; it
// counts what was taken.
type endless struct{ n atomic.Int64 }

const tooMuch = 256 << 20

func (e *endless) Read(p []byte) (int, error) {
	if e.n.Add(int64(len(p))) > tooMuch {
		return 0, io.EOF
	}
	return len(p), nil
}

// TestEndlessBody checks that the server stops reading at the limit, rather
// than at its read timeout.
func TestEndlessBody(t *testing.T) {
	f := start(t, server.Options{Limits: server.Limits{ReadTimeout: time.Hour, WriteTimeout: time.Hour}})
	for _, h := range []*http.Client{h1(t), h2c(t)} {
		body := &endless{}
		req, err := http.NewRequest(http.MethodPost, f.url+drawPath, struct{ io.Reader }{body})
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/proto")
		res, err := h.Do(req)
		if err == nil { // otherwise the server has cut the connection while we still sent
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != 429 {
				t.Errorf("HTTP %d %s, want 429", res.StatusCode, text)
			}
		}
		if body.n.Load() > tooMuch {
			t.Error("the server reads on beyond the limit")
		}
	}
}

// TestBrokenChunk sends a body whose second chunk has no size, and behind it what
// could be read as another request. A server of net/http alone answers once and
// ends the connection; so must this one.
func TestBrokenChunk(t *testing.T) {
	bare := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = bare.Serve(l) }()
	defer bare.Close()
	f := start(t, server.Options{})
	for name, addr := range map[string]string{"bare": l.Addr().String(), "kuji": f.addr} {
		for _, path := range []string{drawPath, "/kuji.v1.RewardService/Batch", "/kuji.v1.RewardService/StreamDraws", "/healthz"} {
			for _, contentType := range []string{"application/json", "application/proto", "application/grpc"} {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				if err := conn.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+contentType+
					"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nno size\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				all, err := io.ReadAll(conn)
				if isTimeout(err) || strings.Count(string(all), "HTTP/1.1 ") != 1 {
					t.Errorf("%s, %s, %s: %v, %q; want one answer and the end", name, path, contentType, err, all)
				}
				_ = conn.Close()
			}
		}
	}
}

func nested(depth int) []byte {
	var b []byte
	for range depth {
		b = protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), b) // Result.members
	}
	return b
}

// TestDepth checks that nesting beyond the limit is refused in both encodings,
// and that the contract's deepest requests are far from it.
func TestDepth(t *testing.T) {
	codec := server.Codecs()
	var wire, text int
	for depth := 1; depth < 100; depth++ {
		data := nested(depth)
		if err := codec["proto"].Unmarshal(data, &kujiv1.Result{}); err == nil {
			wire = depth
		}
		body := strings.Repeat(`{"members":[`, depth) + "{}" + strings.Repeat("]}", depth)
		if err := codec["json"].Unmarshal([]byte(body), &kujiv1.Result{}); err == nil {
			text = depth
		}
	}
	for name, got := range map[string]int{"binary": wire, "json": text} {
		if got < 8 || got > server.MaxDepth {
			t.Errorf("%s: messages up to depth %d are read, want a limit near %d", name, got, server.MaxDepth)
		}
	}
	deep := &kujiv1.BatchRequest{Commands: []*kujiv1.Command{{Command: &kujiv1.Command_Atomic{Atomic: &kujiv1.Atomic{Members: []*kujiv1.Member{
		{Command: &kujiv1.Member_Grant{Grant: &kujiv1.Grant{Player: "ann", Items: []*kujiv1.Stack{{Item: "gem", Quantity: 1}}}}},
	}}}}}}
	deepJSON, err := protojson.Marshal(deep)
	if err != nil {
		t.Fatal(err)
	}
	got := &kujiv1.BatchRequest{}
	if err := codec["json"].Unmarshal(deepJSON, got); err != nil || diff(deep, got) != "" {
		t.Errorf("the contract's deepest request: %v", err)
	}
}

func TestHeaderSize(t *testing.T) {
	f := start(t, server.Options{})
	req, err := http.NewRequest(http.MethodGet, f.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("x", 32<<10))
	res, err := h1(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("HTTP %d, want 431", res.StatusCode)
	}
}

// TestSlowClients opens connections that send nothing, half a header, half a
// body and nothing more, and waits for the server to close each by the one
// time-out that is meant for it: the others are an hour.
func TestSlowClients(t *testing.T) {
	const short, long = 50 * time.Millisecond, time.Hour
	header := server.Limits{HeaderTimeout: short, ReadTimeout: long, IdleTimeout: long}
	read := server.Limits{HeaderTimeout: long, ReadTimeout: short, IdleTimeout: long}
	idle := server.Limits{HeaderTimeout: long, ReadTimeout: long, IdleTimeout: short}
	for _, tt := range []struct {
		name   string
		limits server.Limits
		text   string
	}{
		{"nothing", header, ""},
		{"half a header", header, "POST " + drawPath + " HTTP/1.1\r\nHost: localhost\r\n"},
		{"half a body", read, "POST " + drawPath + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			"Content-Length: 100\r\n\r\n{\"player\":"},
		{"idle", idle, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"idle behind a draw", idle, "POST " + drawPath + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			"Content-Length: 2\r\n\r\n{}"},
		{"half an HTTP/2 preface", header, "PRI * HTTP/2.0\r\n\r\nSM"},
		{"idle HTTP/2", idle, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, server.Options{Limits: tt.limits})
			conn, err := net.Dial("tcp", f.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, tt.text); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
				t.Error("the server keeps the connection")
			}
		})
	}
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// TestInFlight holds as many calls as the limit allows and checks what others get.
func TestInFlight(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{Limits: server.Limits{InFlight: 3, BulkInFlight: 1}})
	entered, release := make(chan string), make(chan struct{})
	hold := func(path string) {
		f.server.Replace(path, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- path
			<-release
		}))
	}
	const batchPath = "/kuji.v1.RewardService/Batch"
	hold(drawPath)
	hold(batchPath)
	h := h1(t)
	call := func(path string) {
		req, err := http.NewRequest(http.MethodPost, f.url+path, strings.NewReader("{}"))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := h.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		res.Body.Close()
	}
	done := make(chan struct{}, 3)
	do := func(path string) {
		go func() {
			call(path)
			done <- struct{}{}
		}()
	}
	do(batchPath)
	<-entered
	do(batchPath) // waits for the first: it counts as in flight, but is not read
	do(drawPath)
	if got := <-entered; got != drawPath {
		t.Errorf("%s is read while another bulk call is", got)
	}
	for f.server.InFlight() < 3 {
		runtime.Gosched()
	}
	if got := f.server.InBulk(); got != 1 {
		t.Errorf("%d bulk calls are read, want 1", got)
	}
	for _, c := range clients(t, f.url) {
		_, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "free"})
		if connect.CodeOf(err) != connect.CodeUnavailable || detail(t, err).GetReason() != kujiv1.Reason_REASON_OVERLOADED {
			t.Errorf("%s: %v, want unavailable because of the load", c.name, err)
		}
	}
	if code, _ := post(t, h, f.url, "/grpc.health.v1.Health/Check", "{}"); code != 200 {
		t.Errorf("health under load: HTTP %d", code)
	}
	close(release)
	if got := <-entered; got != batchPath {
		t.Errorf("after the first, %s is read, want the batch that waited", got)
	}
	for range 3 {
		<-done
	}
	for f.server.InFlight() > 0 {
		runtime.Gosched()
	}
	if _, err := clients(t, f.url)[0].reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "free"}); err != nil {
		t.Errorf("after the load: %v", err)
	}
}

// TestCompression checks what is compressed for clients that accept it: large
// answers to reads, and nothing else.
func TestCompression(t *testing.T) {
	f := newServer(t, server.Options{})
	ask := func(path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/kuji.v1."+path, strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		if w.Code != 200 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return w
	}
	var y strings.Builder
	y.WriteString("kuji: 1\nitems:\n")
	for i := range 900 {
		fmt.Fprintf(&y, "  item-%050d: {name: Item}\n", i)
	}
	c, err := catalog.Parse([]byte(y.String() + "pools:\n  free:\n    max_count: 1000\n    entries: [{id: " + strings.Repeat("e", 60) + ", weight: 1}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	realm, err := f.engine.Realm("default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, body string
		want       string
	}{
		{"RewardService/GetCatalog", `{}`, "gzip"},
		{"RewardService/GetPool", `{"pool":"free"}`, ""},
		{"RewardService/Draw", `{"player":"ann","pool":"free","count":1000}`, ""},
	} {
		if got := ask(tt.path, tt.body); got.Header().Get("Content-Encoding") != tt.want {
			t.Errorf("%s of %d bytes: compression %q, want %q", tt.path, got.Body.Len(), got.Header().Get("Content-Encoding"), tt.want)
		}
	}
}

// TestStreams reads what the server announces on a new HTTP/2 connection.
func TestStreams(t *testing.T) {
	f := start(t, server.Options{Limits: server.Limits{Streams: 7}})
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	var head [9]byte // 3 bytes of length, type, flags, stream
	if _, err := io.ReadFull(conn, head[:]); err != nil || head[3] != 4 {
		t.Fatalf("frame %x, %v; want SETTINGS first", head, err)
	}
	settings := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(conn, settings); err != nil {
		t.Fatal(err)
	}
	const maxConcurrentStreams = 3
	for ; len(settings) >= 6; settings = settings[6:] {
		if binary.BigEndian.Uint16(settings) == maxConcurrentStreams {
			if got := binary.BigEndian.Uint32(settings[2:]); got != 7 {
				t.Errorf("%d calls at a time announced, want 7", got)
			}
			return
		}
	}
	t.Error("no most calls at a time announced")
}
