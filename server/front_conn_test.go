package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kuji-dev/kuji/server"
)

// rawDate is what differs between equal answers.
var rawDate = regexp.MustCompile(`Date: [^\r]*`)

// rawConn is a connection on which a test writes bytes.
type rawConn struct {
	net.Conn
	r *bufio.Reader
}

func dialRaw(t testing.TB, addr string) *rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &rawConn{conn, bufio.NewReader(conn)}
}

// ask sends a request and returns what is answered.
func (c *rawConn) ask(t testing.TB, text string) (status int, body string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c.answer(t)
}

func (c *rawConn) answer(t testing.TB) (status int, body string) {
	t.Helper()
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(all)
}

// rawEscaped is a draw that the direct path leaves to Connect's handler.
func rawEscaped(lines ...string) string {
	return strings.Replace(rawDraw(append([]string{rawHost, rawType, "Content-Length: 53"}, lines...)...), "ann", `\u0061nn`, 1)
}

// TestFrontHeaderIsItsOwn: what a handler does to the header of a request
// is not seen by the next request on the same connection, which has the same.
func TestFrontHeaderIsItsOwn(t *testing.T) {
	f := start(t, server.Options{})
	var seen []http.Header
	f.server.Wrap(drawPath, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Header.Clone())
			h.ServeHTTP(w, r) // Connect adds Host
			r.Header["User-Agent"][0] = "changed"
			r.Header.Set("Authorization", "Bearer somebody")
			r.Header.Del("Content-Type")
		})
	})
	c := dialRaw(t, f.addr)
	for range 3 {
		if status, body := c.ask(t, rawEscaped("User-Agent: test")); status != http.StatusOK {
			t.Fatalf("HTTP %d %s", status, body)
		}
	}
	for _, h := range seen {
		want := http.Header{"Content-Type": {"application/json"}, "Content-Length": {"53"}, "User-Agent": {"test"}}
		if d := cmp.Diff(want, h); d != "" {
			t.Errorf("header (-want +got):\n%s", d)
		}
	}
}

// TestFrontMemory: a connection that lies idle does not keep the memory of a
// large answer.
func TestFrontMemory(t *testing.T) {
	f := start(t, server.Options{})
	const size, conns = 100 << 10, 100
	f.server.Replace(drawPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, size))
	}))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range conns {
		if status, body := dialRaw(t, f.addr).ask(t, rawDraw(rawHost, rawType, rawSize)); status != http.StatusOK || len(body) != size {
			t.Fatalf("HTTP %d, %d bytes", status, len(body))
		}
	}
	if each := (int64(heap()) - int64(before)) / conns; each > size/2 {
		t.Errorf("%d bytes for each idle connection after an answer of %d", each, size)
	}
}

// TestFrontLargeAnswer: an answer that is too large to be collected is
// net/http's byte for byte, in one piece or several.
func TestFrontLargeAnswer(t *testing.T) {
	f := start(t, server.Options{})
	bare := withoutFront(t, f)
	for _, sizes := range [][]int{{100 << 10}, {1, 100 << 10}, {16 << 10}, {16<<10 + 1}, {16 << 10, 0, 1}, {5000, 5000, 5000, 5000, 5000}} {
		var want []byte
		for i, n := range sizes {
			want = append(want, bytes.Repeat([]byte{'a' + byte(i)}, n)...)
		}
		f.server.Replace(drawPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for left := want; len(sizes) > 0; sizes = sizes[1:] {
				if n, err := w.Write(left[:sizes[0]]); n != sizes[0] || err != nil {
					t.Errorf("%d bytes are written as %d, %v", sizes[0], n, err)
				}
				left = left[sizes[0]:]
			}
		}))
		given := sizes
		front := dialRaw(t, f.addr)
		if _, body := front.ask(t, rawDraw(rawHost, rawType, rawSize)); body != string(want) {
			t.Errorf("%v: %d bytes that are not what was written", given, len(body))
		}
		sizes = nil
		if status, body := front.ask(t, rawDraw(rawHost, rawType, rawSize)); status != http.StatusOK || body != "" {
			t.Errorf("%v: behind it HTTP %d %.100q, want an empty answer", given, status, body)
		}
		if len(given) > 1 {
			continue // net/http makes other chunks
		}
		var answers []string
		for _, addr := range []string{f.addr, bare} {
			sizes = given
			conn := dialRaw(t, addr)
			fmt.Fprint(conn, rawDraw(rawHost, rawType, rawSize), "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			all, err := io.ReadAll(conn.r)
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, rawDate.ReplaceAllString(string(all), "Date: now"))
		}
		if given[0] > 16<<10 && answers[0] != answers[1] {
			t.Errorf("%v: the front's answer of %d bytes is not net/http's of %d", given, len(answers[0]), len(answers[1]))
		}
	}
}

// TestFrontSlowReader: a large answer that its client does not take counts as a
// call in flight, until WriteTimeout.
func TestFrontSlowReader(t *testing.T) {
	for _, reads := range []bool{true, false} {
		t.Run(fmt.Sprint("reads=", reads), func(t *testing.T) {
			o := server.Options{}
			if !reads {
				o.Limits.WriteTimeout = 50 * time.Millisecond
			}
			f := start(t, o)
			const size = 64 << 20 // more than sockets hold
			wrote := make(chan error, 1)
			f.server.Replace(drawPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := w.Write(make([]byte, size))
				wrote <- err
			}))
			c := dialRaw(t, f.addr)
			fmt.Fprint(c, rawDraw(rawHost, rawType, rawSize))
			if !reads {
				if err := <-wrote; !isTimeout(err) {
					t.Errorf("writing: %v, want a time-out", err)
				}
				f.server.AwaitHanded()
				return
			}
			if _, err := c.r.Peek(1); err != nil {
				t.Fatal(err)
			}
			if n := f.server.InFlight(); n != 1 {
				t.Errorf("%d calls in flight while an answer is being written, want 1", n)
			}
			if status, body := c.answer(t); status != http.StatusOK || len(body) != size {
				t.Errorf("HTTP %d, %d bytes", status, len(body))
			}
		})
	}
}

// TestFrontPanic: a panic beneath the front ends the connection, after nothing
// or a part of an answer, and nothing else.
func TestFrontPanic(t *testing.T) {
	log := &lockedBuffer{}
	f := start(t, server.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	var written int
	f.server.Wrap(drawPath, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(make([]byte, written))
			panic("beneath the front")
		})
	})
	other := dialRaw(t, f.addr)
	for _, n := range []int{0, 10, 100 << 10} {
		written = n
		c := dialRaw(t, f.addr)
		fmt.Fprint(c, rawEscaped(), rawDraw(rawHost, rawType, rawSize))
		if res, err := http.ReadResponse(c.r, nil); err == nil {
			if _, err := io.ReadAll(res.Body); err == nil {
				t.Errorf("after %d bytes and a panic: a whole answer, HTTP %d", n, res.StatusCode)
			}
		}
		if status, body := other.ask(t, rawDraw(rawHost, rawType, rawSize)); status != http.StatusOK {
			t.Errorf("another connection after a panic: HTTP %d %s", status, body)
		}
	}
	if n := strings.Count(log.String(), "beneath the front"); n != 3 {
		t.Errorf("%d panics in the log, want 3: %s", n, log)
	}
	if n := f.server.InFlight(); n != 0 {
		t.Errorf("%d calls in flight after all have ended", n)
	}
}

// TestFrontImpatientShutdown: while one Shutdown waits for a draw, another
// whose time is over cuts it, and what the draw waits for ends.
func TestFrontImpatientShutdown(t *testing.T) {
	f := start(t, server.Options{})
	entered := make(chan struct{})
	f.server.Wrap(drawPath, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
		})
	})
	idle, busy := dialRaw(t, f.addr), dialRaw(t, f.addr)
	idle.ask(t, rawDraw(rawHost, rawType, rawSize))
	fmt.Fprint(busy, rawEscaped())
	<-entered
	patient, impatient := make(chan error, 1), make(chan error, 1)
	go func() { patient <- f.server.Shutdown(context.Background()) }()
	if n, err := idle.r.ReadByte(); err == nil {
		t.Errorf("%d on a connection that waited, want its end", n)
	}
	for range 1000 {
		runtime.Gosched() // so that the first is likely to wait
	}
	go func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		impatient <- f.server.Shutdown(ctx)
	}()
	for _, one := range []struct {
		name    string
		ended   chan error
		cutting bool
	}{{"the one whose time is over", impatient, true}, {"the patient one", patient, false}} {
		select {
		case err := <-one.ended:
			if cut := err != nil; cut != one.cutting {
				t.Errorf("%s: %v", one.name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s goes on waiting", one.name)
		}
	}
}

// watchedListener tells when a connection's deadline is removed, which the
// front does just before it hands the connection on.
type watchedListener struct {
	net.Listener
	removed chan struct{}
}

func (l *watchedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &watchedConn{conn, l.removed}, nil
}

type watchedConn struct {
	net.Conn
	removed chan struct{}
}

func (c *watchedConn) SetDeadline(at time.Time) error {
	err := c.Conn.SetDeadline(at)
	if at.IsZero() {
		c.removed <- struct{}{}
	}
	return err
}

// TestFrontHandedStays: a connection that net/http has been given is not closed
// with the front: net/http may be answering it.
func TestFrontHandedStays(t *testing.T) {
	f := newServer(t, server.Options{})
	for range 50 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		watched := &watchedListener{l, make(chan struct{})}
		front := f.server.NewFront(watched)
		client := dialRaw(t, l.Addr().String())
		if _, err := io.WriteString(client, "GET"); err != nil {
			t.Fatal(err)
		}
		<-watched.removed
		for range 100 {
			runtime.Gosched() // so that the front is likely to wait for Accept
		}
		conn, err := front.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := front.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "answer"); err != nil {
			t.Fatalf("a connection that Accept has returned is closed: %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
