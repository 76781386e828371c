package proxy_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/proxy"
)

// echo is a server that sends back what it gets, and tells what that was.
func echo(t *testing.T) (address string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	texts := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 5)
				for {
					if _, err := io.ReadFull(c, b); err != nil {
						return
					}
					texts <- string(b)
					if _, err := c.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), texts
}

func start(t *testing.T) (p *proxy.Proxy, got <-chan string) {
	t.Helper()
	address, got := echo(t)
	p, err := proxy.Listen("127.0.0.1:0", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, got
}

func dial(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("got %q, %v, want %q", b, err, want)
	}
}

func TestPasses(t *testing.T) {
	p, got := start(t)
	for range 2 {
		c := dial(t, p)
		send(t, c, "hello")
		receive(t, c, "hello")
		<-got
		c.Close()
	}
}

// What is held on its way to the server gets there only when it is let go, or never.
func TestHoldsRequests(t *testing.T) {
	p, got := start(t)
	c := dial(t, p)
	send(t, c, "one..")
	receive(t, c, "one..")
	<-got

	caught := p.Hold(proxy.ToServer)
	send(t, c, "two..")
	<-caught
	if len(got) > 0 {
		t.Fatalf("the server got %q, which is held", <-got)
	}
	p.Release(proxy.ToServer)
	receive(t, c, "two..")
	<-got

	caught = p.Hold(proxy.ToServer)
	send(t, c, "lost.")
	<-caught
	p.Cut()
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("read on a connection that was cut: %v, want a reset", err)
	}
	p.Release(proxy.ToServer)
	c = dial(t, p)
	send(t, c, "three")
	receive(t, c, "three")
	if text := <-got; text != "three" {
		t.Errorf("the server got %q, want %q: what was held when the connection was cut is lost", text, "three")
	}
}

// What is held on its way to the client was done all the same.
func TestHoldsAnswers(t *testing.T) {
	p, got := start(t)
	c := dial(t, p)
	caught := p.Hold(proxy.ToClient)
	send(t, c, "hello")
	if text := <-got; text != "hello" {
		t.Fatalf("the server got %q", text)
	}
	<-caught
	p.Release(proxy.ToClient)
	receive(t, c, "hello")
}

func TestRefuses(t *testing.T) {
	p, _ := start(t)
	before := dial(t, p)
	send(t, before, "hello")
	receive(t, before, "hello")
	p.Refuse(true)
	if refused, err := net.Dial("tcp", p.Addr()); err == nil { // or it is reset before it is there
		defer refused.Close()
		if _, err := refused.Read(make([]byte, 1)); err == nil {
			t.Error("a connection that is refused can be read")
		}
	}
	send(t, before, "again")
	receive(t, before, "again")
	p.Refuse(false)
	after := dial(t, p)
	send(t, after, "hello")
	receive(t, after, "hello")
}

// Connections that there are stay where they are when the server moves.
func TestTarget(t *testing.T) {
	p, first := start(t)
	before := dial(t, p)
	send(t, before, "one..")
	receive(t, before, "one..")
	address, second := echo(t)
	p.Target(address)
	after := dial(t, p)
	send(t, after, "two..")
	receive(t, after, "two..")
	send(t, before, "three")
	receive(t, before, "three")
	if a, b, c := <-first, <-second, <-first; a != "one.." || b != "two.." || c != "three" {
		t.Errorf("the first server got %q and %q, the second one %q", a, c, b)
	}
}

func TestDelays(t *testing.T) {
	p, _ := start(t)
	c := dial(t, p)
	const delay = 50 * time.Millisecond
	p.Delay(proxy.ToServer, delay)
	began := time.Now()
	send(t, c, "hello")
	receive(t, c, "hello")
	if took := time.Since(began); took < delay {
		t.Errorf("there and back in %v, want at least %v", took, delay)
	}
}

// Close ends connections, also those that are held.
func TestCloses(t *testing.T) {
	p, _ := start(t)
	c := dial(t, p)
	caught := p.Hold(proxy.ToServer)
	send(t, c, "hello")
	<-caught
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives the proxy")
	}
}
