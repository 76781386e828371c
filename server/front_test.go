package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// rawCase is a request as it stands on the wire.
type rawCase struct {
	name  string
	front bool // the front answers it
	text  string
}

// rawDraw is a draw with a request id, with these header lines in place of
// the usual ones.
func rawDraw(lines ...string) string {
	return "POST " + drawPath + " HTTP/1.1\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n" + rawBody
}

const (
	rawBody = `{"requestId":"raw","player":"ann","pool":"free"}`
	rawHost = "Host: localhost"
	rawType = "Content-Type: application/json"
	rawSize = "Content-Length: 48"
)

func rawCases() []rawCase {
	chunked := "POST " + drawPath + " HTTP/1.1\r\n" + rawHost + "\r\n" + rawType + "\r\nTransfer-Encoding: chunked\r\n\r\n30\r\n" + rawBody + "\r\n0\r\n\r\n"
	cases := []rawCase{
		{"plain", true, rawDraw(rawHost, rawType, rawSize)},
		{"other spellings", true, rawDraw("hOST:\tlocalhost:80 ", "content-type:application/json", "CONTENT-LENGTH:  48\t")},
		{"what clients send", true, rawDraw(rawHost, rawType, rawSize, "Accept: */*", "Accept-Encoding: gzip", "User-Agent: test/1.0 (a, b; c)",
			"Connect-Protocol-Version: 1", "Connect-Timeout-Ms: 60000")},
		{"a key that nobody asks for", true, rawDraw(rawHost, rawType, rawSize, "Authorization: Bearer abc", "X-Api-Key: abc")},
		{"a time-out that has passed", true, rawDraw(rawHost, rawType, rawSize, "Connect-Timeout-Ms: 0")},
		{"no type", false, rawDraw(rawHost, rawSize)},
		{"a type with a parameter", false, rawDraw(rawHost, rawType+"; charset=utf-8", rawSize)},
		{"gRPC", false, rawDraw(rawHost, "Content-Type: application/grpc", rawSize)},
		{"gRPC, in JSON", false, rawDraw(rawHost, "Content-Type: application/grpc+json", rawSize)},
		{"gRPC-Web", false, rawDraw(rawHost, "Content-Type: application/grpc-web", rawSize)},
		{"a stream", false, rawDraw(rawHost, "Content-Type: application/connect+json", rawSize)},
		{"a foreign host", true, rawDraw("Host: evil.example", rawType, rawSize)},
		{"an error", true, strings.Replace(rawDraw(rawHost, rawType, rawSize), "free", "none", 1)},
		{"unusual JSON", true, strings.Replace(rawDraw(rawHost, rawType, "Content-Length: 53"), "ann", `\u0061nn`, 1)},
		{"two", true, rawDraw(rawHost, rawType, rawSize) + rawDraw(rawHost, rawType, rawSize)},
		{"two, one behind the other's end", true, rawDraw(rawHost, rawType, "Content-Length: 47")},
		{"a page of another site", false, rawDraw(rawHost, rawType, rawSize, "Sec-Fetch-Site: cross-site")},
		{"another site", false, rawDraw(rawHost, rawType, rawSize, "Origin: http://evil.example")},
		{"unknown header", false, rawDraw(rawHost, rawType, rawSize, "X-Request-Id: 1")},
		{"to be closed", false, rawDraw(rawHost, rawType, rawSize, "Connection: close")},
		{"to be continued", false, rawDraw(rawHost, rawType, rawSize, "Expect: 100-continue")},
		{"compressed", false, rawDraw(rawHost, rawType, rawSize, "Content-Encoding: gzip")},
		{"no host", false, rawDraw(rawType, rawSize)},
		{"two hosts", false, rawDraw(rawHost, rawHost, rawType, rawSize)},
		{"a host that is none", false, rawDraw("Host: a/b", rawType, rawSize)},
		{"no length", false, rawDraw(rawHost, rawType)},
		{"two lengths", false, rawDraw(rawHost, rawType, rawSize, rawSize)},
		{"lengths that differ", false, rawDraw(rawHost, rawType, rawSize, "Content-Length: 10")},
		{"length 0", false, rawDraw(rawHost, rawType, "Content-Length: 0")},
		{"length with a sign", false, rawDraw(rawHost, rawType, "Content-Length: +48")},
		{"length in hexadecimal", false, rawDraw(rawHost, rawType, "Content-Length: 0x30")},
		{"lengths in one line", false, rawDraw(rawHost, rawType, "Content-Length: 48, 48")},
		{"chunks", false, chunked},
		{"chunks and length", false, strings.Replace(chunked, rawType, rawType+"\r\n"+rawSize, 1)},
		{"a line that goes on", false, rawDraw(rawHost, rawType+";\r\n charset=utf-8", rawSize)},
		{"space before the colon", false, rawDraw(rawHost, "Content-Type : application/json", rawSize)},
		{"no colon", false, rawDraw(rawHost, "Content-Type", rawSize)},
		{"no value", false, rawDraw(rawHost, rawType, rawSize, "Accept:")},
		{"a control character", false, rawDraw(rawHost, rawType, rawSize, "User-Agent: a\x01b")},
		{"a carriage return", false, rawDraw(rawHost, rawType, rawSize, "User-Agent: a\rb")},
		{"line feeds only", false, strings.ReplaceAll(rawDraw(rawHost, rawType, rawSize), "\r\n", "\n")},
		{"an empty header", false, "POST " + drawPath + " HTTP/1.1\r\n\r\n"},
		{"HTTP/1.0", false, strings.Replace(rawDraw(rawHost, rawType, rawSize), "1.1", "1.0", 1)},
		{"a query", false, strings.Replace(rawDraw(rawHost, rawType, rawSize), drawPath, drawPath+"?a=b", 1)},
		{"a whole address", false, strings.Replace(rawDraw(rawHost, rawType, rawSize), drawPath, "http://localhost"+drawPath, 1)},
		{"another RPC", false, strings.Replace(rawDraw(rawHost, rawType, rawSize), "/Draw", "/Grant", 1)},
		{"GET", false, strings.Replace(rawDraw(rawHost, rawType, rawSize), "POST", "GET", 1)},
	}
	return append(cases, rawCase{"long", false, rawDraw(rawHost, rawType, rawSize, "Accept: "+strings.Repeat("x", 4000))})
}

// withoutFront serves on another address with net/http alone, until the test ends.
func withoutFront(t *testing.T, f *fixture) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- f.server.ServeBare(l) }()
	t.Cleanup(func() { _, _ = l.Close(), <-served })
	return l.Addr().String()
}

// TestFront sends each request to the front, and to net/http without it, and
// finds no difference in what is answered. A second request follows in the same
// piece, which the front leaves to net/http.
func TestFront(t *testing.T) {
	f := start(t, server.Options{})
	bare := withoutFront(t, f)
	const last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	for _, tt := range rawCases() {
		t.Run(tt.name, func(t *testing.T) {
			if _, used := server.FrontReads([]byte(tt.text)); used > 0 != tt.front {
				t.Errorf("the front reads %d bytes of it, want some: %v", used, tt.front)
			}
			send := func(address string) string {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conn, tt.text+last); err != nil {
					t.Fatal(err)
				}
				all, err := io.ReadAll(conn)
				if isTimeout(err) {
					t.Fatalf("no end of the answer after %q", all)
				}
				return rawDate.ReplaceAllString(string(all), "Date: now")
			}
			send(f.addr) // from now on request ids give the same answer
			got, want := send(f.addr), send(bare)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the front's answer is not net/http's (-net/http +front):\n%s", d)
			}
			if want == "" {
				t.Error("nothing was answered")
			}
		})
	}
}

// TestFrontPieces: a request that comes in pieces is answered like any other.
func TestFrontPieces(t *testing.T) {
	f := start(t, server.Options{})
	text := rawDraw(rawHost, rawType, rawSize)
	for _, at := range []int{1, len("POST " + drawPath), strings.Index(text, "\r\n\r\n") + 2, len(text) - 1} {
		conn, err := net.Dial("tcp", f.addr)
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		for _, pieces := range [][]string{{text}, {text[:at], text[at:]}, {text}} { // from the second on, net/http's
			for i, piece := range pieces {
				if _, err := io.WriteString(conn, piece); err != nil {
					t.Fatal(err)
				}
				if i == 0 && len(pieces) > 1 {
					f.server.AwaitHanded() // the pieces are two on the other side, too
				}
			}
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("in pieces at %d: HTTP %d %s %v", at, res.StatusCode, body, err)
			}
		}
		conn.Close()
	}
}

// TestFrontShutdown: a shutdown ends connections that wait for a request, and
// lets a draw that is being answered end; its answer says that the connection
// ends. When the time is over, it is cut.
func TestFrontShutdown(t *testing.T) {
	for _, patient := range []bool{true, false} {
		t.Run(fmt.Sprint("patient=", patient), func(t *testing.T) {
			f := start(t, server.Options{})
			entered, release := make(chan struct{}), make(chan struct{})
			f.server.Wrap(kujiv1connect.RewardServiceDrawProcedure, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					close(entered)
					<-release
					h.ServeHTTP(w, r)
				})
			})
			dial := func() (net.Conn, *bufio.Reader) {
				conn, err := net.Dial("tcp", f.addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				return conn, bufio.NewReader(conn)
			}
			idle, idleReader := dial()
			fmt.Fprint(idle, rawDraw(rawHost, rawType, rawSize))
			if res, err := http.ReadResponse(idleReader, nil); err != nil || res.StatusCode != http.StatusOK || res.Close {
				t.Fatalf("%v, %v", res, err)
			} else if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Fatal(err)
			}
			busy, busyReader := dial()
			fmt.Fprint(busy, strings.Replace(rawDraw(rawHost, rawType, "Content-Length: 53"), "ann", `\u0061nn`, 1)) // left to the handler
			<-entered

			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- f.server.Shutdown(ctx) }()
			if n, err := idleReader.ReadByte(); err == nil {
				t.Errorf("%d on a connection that waited, want its end", n)
			}
			if patient {
				close(release)
				res, err := http.ReadResponse(busyReader, nil)
				if err != nil || res.StatusCode != http.StatusOK || !res.Close {
					t.Errorf("%v, %v: want an answer, the last", res, err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				return
			}
			cancel()
			if err := <-ended; err == nil {
				t.Error("no error of a shutdown that was cut short")
			}
			if _, err := busyReader.ReadByte(); err == nil {
				t.Error("an answer on a connection that was cut")
			}
			close(release)
		})
	}
}

// FuzzFront: what the front reads, net/http reads, and as the same request.
func FuzzFront(f *testing.F) {
	for _, tt := range rawCases() {
		f.Add([]byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, used := server.FrontReads(data)
		if used == 0 {
			return
		}
		r := bufio.NewReader(bytes.NewReader(data[:used]))
		want, err := http.ReadRequest(r)
		if err != nil {
			t.Fatalf("the front reads %q, net/http: %v", data[:used], err)
		}
		wantBody, err := io.ReadAll(want.Body)
		gotBody, _ := io.ReadAll(got.Body)
		if err != nil || r.Buffered() > 0 {
			t.Errorf("net/http reads %d bytes less of %q, %v", r.Buffered(), data[:used], err)
		}
		if got.Method != want.Method || got.Host != want.Host || got.ContentLength != want.ContentLength || got.Close != want.Close ||
			got.RequestURI != want.RequestURI || got.Proto != want.Proto || got.ProtoMajor != want.ProtoMajor || got.ProtoMinor != want.ProtoMinor ||
			len(want.TransferEncoding) > 0 || !cmp.Equal(got.URL, want.URL) || !cmp.Equal(got.Header, want.Header) || !bytes.Equal(gotBody, wantBody) {
			t.Errorf("%q:\nfront    %+v %q\nnet/http %+v %q", data[:used], got, gotBody, want, wantBody)
		}
	})
}
