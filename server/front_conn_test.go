package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kuji-dev/kuji/server"
)

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
