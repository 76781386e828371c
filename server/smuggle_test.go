package server_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

var (
	rawStreams = flag.Int("rawstreams", 400, "how many streams of bytes TestRawStreams sends")
	rawFirst   = flag.Uint64("rawfirst", 1, "the number of the first stream of TestRawStreams, which decides what is in it")
)

const grantPath = "/kuji.v1.RewardService/Grant"

// bareServer is net/http and nothing else, around a handler that does what
// ours does: it looks at path and key first, and then reads the body. It ends
// the same connections, which TestFramedTwice is about.
type bareServer struct {
	addr string
	mu   sync.Mutex
	ran  map[string]int // what was granted, by player
}

func newBare(t *testing.T) *bareServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bareServer{addr: l.Addr().String(), ran: make(map[string]int)}
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: server.EndFramedTwice(b), Protocols: p, MaxHeaderBytes: 16 << 10}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return b
}

func (b *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limit := 4 << 10
	switch r.URL.Path {
	case "/healthz":
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return
	case healthCheck:
	case grantPath:
		limit = 64 << 10
		scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || strings.TrimLeft(key, " ") != writeKey { // RFC 9110, 11.4
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
	default:
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	case len(body) > limit:
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case r.URL.Path != grantPath || r.Method != http.MethodPost:
		return
	}
	var req kujiv1.GrantRequest
	if err := server.Codecs()["json"].Unmarshal(body, &req); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, stack := range req.GetItems() {
		b.ran[req.GetPlayer()] += int(min(stack.GetQuantity(), kuji.MaxQuantity)) // a changed byte can be in the quantity
	}
}

func (b *bareServer) take() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	ran := b.ran
	b.ran = make(map[string]int)
	return ran
}

// rawStream makes the bytes of one connection.
type rawStream struct {
	*rand.Rand
	n       uint64
	players []string
	broken  bool // a server need not answer all of it
}

func pick[T any](r *rawStream, list ...T) T { return list[r.IntN(len(list))] }

// grant is the body of a request that can be told from all others.
func (r *rawStream) grant() string {
	player := fmt.Sprintf("p%d-%d", r.n, len(r.players))
	r.players = append(r.players, player)
	return fmt.Sprintf(`{"player":"%s","items":[{"item":"gem","quantity":"1"}]}`, player)
}

func (r *rawStream) head(path string) string {
	text := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	if r.IntN(8) > 0 {
		text += "Authorization: Bearer " + writeKey + "\r\n"
	}
	return text
}

func (r *rawStream) path() string {
	return pick(r, grantPath, grantPath, grantPath, healthCheck, "/healthz", "/nothing")
}

// chunks is a body in chunks.
func (r *rawStream) chunks(body string) string {
	var text strings.Builder
	for body != "" {
		n := 1 + r.IntN(len(body))
		fmt.Fprintf(&text, pick(r, "%x", "%X", "0%x")+"%s\r\n%s\r\n", n, pick(r, "", "", ";a=b", `;a="b"`, ";"), body[:n])
		body = body[n:]
	}
	return text.String() + "0\r\n" + pick(r, "", "", "X-Sum: 1\r\n") + "\r\n"
}

// sound is a request with nothing wrong.
func (r *rawStream) sound() string {
	switch r.IntN(5) {
	case 0:
		return "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	case 1, 2:
		return r.head(r.path()) + "Transfer-Encoding: chunked\r\n\r\n" + r.chunks(r.grant())
	default:
		body := r.grant()
		return r.head(r.path()) + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
	}
}

// hidden is a request that must not run, where it stands in another one's body.
func (r *rawStream) hidden() string {
	body := r.grant()
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		grantPath, writeKey, len(body), body)
}

// unsound is a request with something wrong, or at least unusual.
func (r *rawStream) unsound() string {
	r.broken = true
	body, head := r.grant(), r.head(r.path())
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	const chunked = "Transfer-Encoding: chunked\r\n"
	switch r.IntN(16) {
	case 0: // what is no size
		size := pick(r, "", "zz", "-1", "+5", "0x5", " 5", "5 ", "5\t", "fffffffffffffffff", "ffffffffffffffff", "7fffffffffffffff", "8000000000000000", "\x00", "5\r", "5;\x00", "5;a\n")
		return head + chunked + "\r\n" + pick(r, "", "2\r\n{}\r\n") + size + "\r\n" + r.hidden()
	case 1: // a size that is not the data's
		return head + chunked + "\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", max(0, len(body)+r.IntN(9)-4), body) + r.hidden()
	case 2: // both ways of saying how long
		return head + pick(r, length+chunked, chunked+length, "Content-Length: 4\r\n"+chunked) + "\r\n" + pick(r, r.chunks(body), body) + r.hidden()
	case 3: // two lengths, odd lengths
		n := len(body)
		length := pick(r, fmt.Sprintf("Content-Length: %d\r\nContent-Length: %d\r\n", n, n), fmt.Sprintf("Content-Length: %d\r\nContent-Length: 0\r\n", n),
			fmt.Sprintf("Content-Length: %d, %d\r\n", n, n), fmt.Sprintf("Content-Length: +%d\r\n", n), fmt.Sprintf("Content-Length : %d\r\n", n),
			fmt.Sprintf("Content-Length: %#x\r\n", n), fmt.Sprintf("Content-Length: 0%d\r\n", n), fmt.Sprintf("Content-Length: %d \r\n", n),
			fmt.Sprintf("content-length:%d\r\n", n), "Content-Length: \r\n")
		return head + length + "\r\n" + body
	case 4: // no length, or far too large
		return head + "Content-Length: " + pick(r, "-1", "-0", "65537", "262145", "10000000", "9223372036854775807", "9223372036854775808", "99999999999999999999", "1e3") + "\r\n\r\n" + body + r.hidden()
	case 5: // other codings
		coding := pick(r, "Chunked", "CHUNKED", "chunked, chunked", "identity", "chunked, identity", "gzip, chunked", "xchunked", "\tchunked", "chunked\t", "", "chunked\r\n ", "\r\n chunked", "\"chunked\"")
		return head + "Transfer-Encoding: " + coding + "\r\n" + pick(r, "", length) + "\r\n" + pick(r, r.chunks(body), body) + r.hidden()
	case 6: // the coding twice
		return head + chunked + pick(r, chunked, "Transfer-Encoding: identity\r\n", "Transfer_Encoding: x\r\n", "transfer-encoding : chunked\r\n") + "\r\n" + r.chunks(body)
	case 7: // less than was said: the next one belongs to the body
		return head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)+1+r.IntN(300)) + body + r.hidden()
	case 8: // more than was said
		return head + fmt.Sprintf("Content-Length: %d\r\n\r\n", r.IntN(len(body))) + body
	case 9: // lines that go on, and lines that are none
		odd := pick(r, "X-Long: a\r\n b\r\n", " X: y\r\n", "X\r\n", "X y: z\r\n", ": z\r\n", "X: \x00\r\n", "X: \x7f\r\n", "X: a\rb\r\n", "X: \xff\r\n", "Host: other\r\n", "X: "+strings.Repeat("y", 30_000)+"\r\n")
		return head + odd + length + "\r\n" + body
	case 10: // lines that end in another way
		text := head + pick(r, length, chunked) + "\r\n"
		return strings.ReplaceAll(text, "\r\n", pick(r, "\n", "\r", "\r\r\n", "\n\r\n")) + pick(r, body, strings.ReplaceAll(r.chunks(body), "\r\n", "\n"))
	case 11: // other protocols
		return strings.Replace(head, "HTTP/1.1", pick(r, "HTTP/1.0", "HTTP/1.0\r\nConnection: keep-alive", "HTTP/0.9", "HTTP/2.0", "HTTP/1.2", "http/1.1", "", "HTTP/1.1 ", "HTTP/1.1\r\nConnection: close"), 1) +
			pick(r, length, chunked) + "\r\n" + pick(r, body, r.chunks(body)) + r.hidden()
	case 12: // chunks that do not end, and odd ends
		text := strings.TrimSuffix(r.chunks(body), "\r\n")
		return head + chunked + "\r\n" + text + pick(r, "", "X\r\n\r\n", "Content-Length: 5\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n", " a: b\r\n\r\n", "\n", "\r") + r.hidden()
	case 13: // who waits to be asked
		return head + "Expect: " + pick(r, "100-continue", "100-Continue", "200-ok") + "\r\n" + pick(r, length, chunked) + "\r\n" + pick(r, body, r.chunks(body)) + pick(r, "", r.hidden())
	case 14: // more than the limit
		large := body + strings.Repeat(" ", pick(r, 5_000, 66_000, 300_000)) + r.hidden()
		if r.IntN(2) == 0 {
			return head + chunked + "\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(large), large) + r.hidden()
		}
		return head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(large)) + large + r.hidden()
	default: // other methods
		return strings.Replace(head, "POST", pick(r, "GET", "HEAD", "PUT", "OPTIONS", "post", "CONNECT", "P@ST", "PO ST"), 1) + pick(r, length, chunked, "") + "\r\n" + pick(r, body, r.chunks(body)) + r.hidden()
	}
}

// bytes is the whole stream: some requests, one of them unsound in most
// streams, and often a change of a few bytes. The last request runs if the
// connection was kept that long.
func (r *rawStream) bytes() []byte {
	var text strings.Builder
	for range r.IntN(4) {
		text.WriteString(r.sound())
	}
	if r.IntN(4) > 0 {
		text.WriteString(r.unsound())
		for range r.IntN(3) {
			text.WriteString(r.sound())
		}
	}
	text.WriteString(r.hidden())
	data := []byte(text.String())
	if r.IntN(4) > 0 {
		return data
	}
	r.broken = true
	for range 1 + r.IntN(3) {
		at := r.IntN(len(data))
		switch r.IntN(3) {
		case 0:
			data[at] = byte(r.IntN(256))
		case 1:
			data = append(data[:at], data[at+1:]...)
		default:
			data = append(data[:at], append([]byte(pick(r, "\r", "\n", "\r\n", " ", "0", ":", "\x00")), data[at:]...)...)
		}
	}
	return data
}

// filler ends any body and any header that a stream has left open, and then the
// connection: it is more than a server reads of either. (To end one side of the
// connection instead would cancel the last request.)
var filler = bytes.Repeat([]byte("X"), 700<<10)

// sendRaw sends all bytes and returns how often the server answered.
func sendRaw(t *testing.T, addr string, data []byte, cuts *rand.Rand) (answers int) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { // a server that has seen enough may close: errors say nothing
		rest := data
		for len(rest) > 0 {
			n := 1 + cuts.IntN(len(rest))
			if _, err := nc.Write(rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
		_, _ = nc.Write(filler)
	}()
	all, err := io.ReadAll(nc)
	if isTimeout(err) {
		t.Fatalf("no end of the connection to %s, got %q after %q", addr, all, data)
	}
	return bytes.Count(all, []byte("HTTP/1.1 ")) - bytes.Count(all, []byte("HTTP/1.1 100 "))
}

// TestRawStreams sends streams of bytes, many of them broken, to this server and
// to one of net/http alone. No request runs here that does not run there, and
// none twice. Where nothing is broken, everything runs and is answered.
func TestRawStreams(t *testing.T) {
	ctx := context.Background()
	bare := newBare(t)
	f := start(t, server.Options{Keys: keyFile(t)})
	realm, err := f.engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	var sound, ran, ended int
	for n := *rawFirst; n < *rawFirst+uint64(*rawStreams); n++ {
		r := &rawStream{Rand: rand.New(rand.NewPCG(n, 1)), n: n}
		data := r.bytes()
		wantAnswers := sendRaw(t, bare.addr, data, rand.New(rand.NewPCG(n, 2)))
		want := bare.take()
		gotAnswers := sendRaw(t, f.addr, data, rand.New(rand.NewPCG(n, 2)))
		got := map[string]int{}
		for _, player := range r.players {
			view, err := realm.Player(ctx, player)
			if kuji.CodeOf(err) == kuji.CodeNotFound {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			got[player] = int(view.Items[0].Quantity) - 100 // of which everybody starts with 100
		}
		for player, granted := range got {
			if granted > want[player] {
				t.Errorf("stream %d: %s was granted %d, by net/http alone %d; repeat with -run TestRawStreams -rawfirst %d -rawstreams 1\n%.2000q",
					n, player, granted, want[player], n, data)
			}
		}
		if !r.broken {
			sound++
			if !maps.Equal(got, want) || gotAnswers != wantAnswers {
				t.Errorf("stream %d, nothing wrong with it: %v ran and %d were answered, by net/http alone %v and %d\n%.2000q",
					n, got, gotAnswers, want, wantAnswers, data)
			}
		}
		ran += len(got)
		if want[r.players[len(r.players)-1]] == 0 {
			ended++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d streams, %d of them sound; %d requests ran; %d connections ended early", *rawStreams, sound, ran, ended)
	if *rawStreams >= 100 && (sound < *rawStreams/10 || ran < *rawStreams/3 || ended < *rawStreams/4) {
		t.Error("the streams say too little: too few are sound, run, or are broken")
	}
}

// TestFramedTwice: a request that says in two ways how long its body is, or could have, is answered
// and ends its connection: what stands behind it may be another client's, by a proxy's count.
func TestFramedTwice(t *testing.T) {
	f := start(t, server.Options{Keys: keyFile(t)})
	const length, chunked, sixteen = "Content-Length: 16\r\n", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"
	for _, tt := range []struct {
		name, proto, header, body string
		answers                   int
	}{
		{"a length", "HTTP/1.1", "Content-Length: 2\r\n", "{}", 2},
		{"a length and chunks", "HTTP/1.1", length + chunked, sixteen, 1},
		{"chunks and a length", "HTTP/1.1", chunked + length, sixteen, 1},
		{"chunks", "HTTP/1.1", chunked, sixteen, 1},
		{"a length and chunks, to be kept", "HTTP/1.1", "Connection: keep-alive\r\n" + length + chunked, sixteen, 1},
		{"HTTP/1.0 that knows no chunks", "HTTP/1.0", "Connection: keep-alive\r\nContent-Length: 2\r\n" + chunked, "{}", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nc := dial(t, f.addr)
			if err := nc.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
				t.Fatal(err)
			}
			request := "POST " + getPool + " " + tt.proto + "\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer " + readKey + "\r\n" + tt.header + "\r\n" + tt.body
			say(t, nc, request+"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			all, err := io.ReadAll(nc)
			if isTimeout(err) {
				t.Fatalf("the connection stays open behind %q", all)
			}
			if n := bytes.Count(all, []byte("HTTP/1.")); n != tt.answers {
				t.Errorf("%d answers, want %d: %q", n, tt.answers, all)
			}
		})
	}
}

// TestUnreadBodies sends requests whose bodies stop in the middle. Each gets one
// answer and the end of its connection, so that nothing can follow.
func TestUnreadBodies(t *testing.T) {
	const short = 100 * time.Millisecond
	f := start(t, server.Options{Keys: keyFile(t), Limits: server.Limits{HeaderTimeout: short, ReadTimeout: short, InFlight: 1}})
	key := "Authorization: Bearer " + writeKey + "\r\n"
	for _, tt := range []struct {
		name, path, header string
		want               int
	}{
		{"half", grantPath, key + "Content-Length: 500\r\n", 400},
		{"half in chunks", grantPath, key + "Transfer-Encoding: chunked\r\n", 400},
		{"a declared length above the limit", grantPath, key + "Content-Length: 100000\r\n", 429},
		{"a declared length far above the limit", grantPath, key + "Content-Length: 1000000000\r\n", 429},
		{"half of health", healthCheck, "Content-Length: 500\r\n", 400},
		{"health above its limit", healthCheck, "Content-Length: 100000\r\n", 429},
		{"no key", grantPath, "Content-Length: 500\r\n", 401},
		{"no key, in chunks", grantPath, "Transfer-Encoding: chunked\r\n", 401},
		{"no role", "/kuji.v1.AdminService/ApplyCatalog", key + "Content-Length: 500\r\n", 403},
		{"no such path", "/nothing", "Content-Length: 500\r\n", 501},
		{"a path that takes no body", "/readyz", "Content-Length: 500\r\n", 405},
		{"a stream", "/kuji.v1.RewardService/StreamDraws", key + "Content-Length: 500\r\n", 505},
		{"reflection", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", key + "Content-Length: 500\r\n", 505},
		{"another type", grantPath, key + "Content-Type: text/plain\r\nContent-Length: 500\r\n", 415},
		{"waits to be asked", grantPath, "Expect: 100-continue\r\nContent-Length: 500\r\n", 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nc := dial(t, f.addr)
			if err := nc.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
				t.Fatal(err)
			}
			kind := "Content-Type: application/json\r\n"
			if strings.Contains(tt.header, "Content-Type") {
				kind = ""
			}
			half := "0{}"
			if strings.Contains(tt.header, "chunked") {
				half = "20\r\n{}"
			}
			say(t, nc, "POST "+tt.path+" HTTP/1.1\r\nHost: localhost\r\n"+kind+tt.header+"\r\n"+half)
			r := bufio.NewReader(nc)
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != tt.want {
				t.Errorf("%d %s, want %d", res.StatusCode, text, tt.want)
			}
			if tt.want == 400 && !bytes.Contains(text, []byte(`"invalid_argument"`)) {
				t.Errorf("%s, want invalid_argument", text)
			}
			if rest, err := io.ReadAll(r); isTimeout(err) || len(rest) > 0 {
				t.Errorf("the connection stays open: %q, %v", rest, err)
			}
		})
	}
	if n := f.server.InFlight(); n != 0 {
		t.Errorf("%d calls in flight at the end", n)
	}
}
