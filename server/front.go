package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// The front reads plain connections before net/http does. A connection on which
// nothing but whole, plain HTTP/1.1 requests for Draw arrive, each in one piece,
// is answered here, request after request, by the same Server.ServeHTTP. The
// first bytes that are anything else go to net/http, with the connection, which
// is net/http's from then on: HTTP/2, other RPCs, other headers than those in
// front_request.go, bodies in parts. So the front need not know HTTP, but only
// the few forms of it that it is sure of.
//
// It is there because net/http takes two thirds of a draw's time between the
// two system calls: a goroutine that watches the connection during each
// request, contexts, maps, and four deadlines.

// frontBytes is how much of a connection the front looks at: a header, and the
// largest message of the direct path.
const frontBytes = 2048 + maxDirect

// frontKept is the most memory for answers that a connection keeps, in bytes.
const frontKept = 8 << 10

// frontWhole is the largest answer that is collected before it is written, in
// bytes. Larger ones are written as they come, while their call still counts as
// one in flight: so Limits.InFlight bounds how many wait for slow clients.
const frontWhole = 16 << 10

// front is the listener that net/http gets. Its Accept returns the connections
// that net/http is to serve.
type front struct {
	s        *Server
	listener net.Listener
	handed   chan accepted
	done     chan struct{}  // closed by Close
	running  sync.WaitGroup // connections of conns

	mu     sync.Mutex
	closed bool
	conns  map[*frontConn]bool // that are read here; whether one is being answered or handed on
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

func newFront(s *Server, l net.Listener) *front {
	f := &front{s: s, listener: l, handed: make(chan accepted), done: make(chan struct{}), conns: make(map[*frontConn]bool)}
	go f.acceptAll()
	return f
}

// acceptAll takes connections until the listener is closed.
func (f *front) acceptAll() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			select {
			case f.handed <- accepted{err: err}: // net/http waits, and calls Accept again, when it can be tried again
				continue
			case <-f.done:
				return
			}
		}
		c := newFrontConn(f, conn)
		if !f.begin(c) {
			_ = conn.Close()
			continue
		}
		go c.serve()
	}
}

// begin counts a connection; false: no more is taken.
func (f *front) begin(c *frontConn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.conns[c] = false
	f.running.Add(1)
	return true
}

// answering notes whether a connection is being answered or handed on, so that
// Close leaves it. It returns false when the connection must end instead.
func (f *front) answering(c *frontConn, yes bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.conns[c] = yes
	return true
}

// end forgets a connection.
func (f *front) end(c *frontConn) {
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
	f.running.Done()
}

// closing reports whether connections are to end after their answer.
func (f *front) closing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// hand gives a connection to net/http, with what was read of it.
func (f *front) hand(c *frontConn, read []byte) bool {
	if c.Conn.SetDeadline(time.Time{}) != nil {
		return false
	}
	select {
	case f.handed <- accepted{conn: &handedConn{Conn: c.Conn, read: read}}:
		return true
	case <-f.done:
		return false
	}
}

// Accept implements [net.Listener].
func (f *front) Accept() (net.Conn, error) {
	select {
	case a := <-f.handed:
		return a.conn, a.err
	case <-f.done:
		return nil, net.ErrClosed
	}
}

// Addr implements [net.Listener].
func (f *front) Addr() net.Addr { return f.listener.Addr() }

// Close implements [net.Listener]. It also closes the connections that wait for
// a request; those being answered end after their answer.
func (f *front) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	close(f.done)
	for c, answering := range f.conns {
		if !answering {
			_ = c.Conn.Close() // its reader ends
		}
	}
	return f.listener.Close()
}

// drain closes f and waits until all that was being answered is. When ctx ends
// first it cuts the rest and returns ctx's error.
func (f *front) drain(ctx context.Context) error {
	err := f.Close()
	ended := make(chan struct{})
	go func() {
		f.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Conn.Close()
		c.cancel() // net/http would notice that the connection is closed
	}
	return ctx.Err()
}

// handedConn is a connection of which a part has been read.
type handedConn struct {
	net.Conn
	read []byte
}

func (c *handedConn) Read(p []byte) (int, error) {
	if len(c.read) > 0 {
		n := copy(p, c.read)
		c.read = c.read[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// frontConn is a connection that the front reads.
type frontConn struct {
	net.Conn
	front   *front
	cancel  context.CancelFunc // ends what its requests wait for
	request frontRequest
	answer  frontAnswer
}

func newFrontConn(f *front, conn net.Conn) *frontConn {
	c := &frontConn{Conn: conn, front: f}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.request.init(ctx, conn.RemoteAddr().String(), f.s.o.Limits.direct())
	c.answer.init(conn, f.closing)
	return c
}

// serve answers requests until the connection ends or is handed on.
func (c *frontConn) serve() {
	f, l := c.front, &c.front.s.o.Limits
	defer f.end(c)
	defer c.cancel()
	handed := false
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http compares like this
			f.s.log.Error("panic while serving a connection", "panic", p, "stack", string(debug.Stack()))
		}
		if !handed {
			_ = c.Conn.Close()
		}
	}()
	buf := make([]byte, frontBytes)
	n, patience := 0, l.HeaderTimeout // for the first request, as net/http has it
	for {
		if n == 0 {
			var err error
			if err = c.Conn.SetReadDeadline(time.Now().Add(patience)); err == nil {
				n, err = c.Conn.Read(buf)
			}
			if n == 0 {
				if err == nil {
					err = errors.New("nothing read")
				}
				f.s.log.Debug("a connection ended", "error", err)
				return
			}
			patience = l.IdleTimeout
		}
		used := c.request.read(buf[:n])
		if used == 0 {
			handed = f.answering(c, true) && f.hand(c, buf[:n]) // from Accept on, Close is not to end it
			return
		}
		if !f.answering(c, true) || !c.answerOne(l.WriteTimeout) || !f.answering(c, false) {
			return
		}
		n = copy(buf, buf[used:n])
	}
}

// answerOne answers the request that was read, and reports whether the
// connection goes on.
func (c *frontConn) answerOne(timeout time.Duration) bool {
	if c.Conn.SetWriteDeadline(time.Now().Add(timeout)) != nil {
		return false
	}
	c.answer.reset()
	c.front.s.ServeHTTP(&c.answer, &c.request.http)
	err := c.answer.finish()
	c.answer.release() // the connection may lie idle for long
	return err == nil && !c.answer.last
}
