// Package proxy stands between TCP clients and a server in tests. It holds what passes one way,
// loses it, delays it, or cuts the connections.
//
// It knows nothing of what passes, and only tests and the tools of tests import it.
package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Way is a direction.
type Way int

// The two ways.
const (
	ToServer Way = iota
	ToClient
)

// Proxy passes connections on to one server.
type Proxy struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	target  string
	changed chan struct{} // closed and made anew when anything below changes
	refuse  bool
	closed  bool
	way     [2]state // by Way
	last    int      // number of the newest connection
	frozen  int      // connections up to this number pass nothing on any more
	conns   map[net.Conn]struct{}
}

// state is what happens to what passes one way.
type state struct {
	held   bool
	delay  time.Duration
	caught chan struct{} // closed when something is held
}

// maxHeld is how much of a connection is held, one way, in bytes. What comes after waits in the
// kernel, as on a real network.
const maxHeld = 1 << 20

// Listen starts a proxy at an address, such as "127.0.0.1:0", for a server at another one.
func Listen(address, target string) (*Proxy, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the proxy's address.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.change(func() { p.closed = true })
	p.Cut()
	p.wg.Wait()
	return err
}

// change changes the proxy's state and wakes whoever waits for it.
func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Cut closes all connections. What was held is lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		reset(c)
	}
}

// reset closes a connection without sending what is left.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

// Target passes connections that come from now on to another server.
func (p *Proxy) Target(target string) { p.change(func() { p.target = target }) }

// Refuse closes every connection that comes, or lets them through again. Those there are stay.
func (p *Proxy) Refuse(refuse bool) { p.change(func() { p.refuse = refuse }) }

// Delay makes everything that passes one way late.
func (p *Proxy) Delay(way Way, d time.Duration) { p.change(func() { p.way[way].delay = d }) }

// Hold holds what passes one way from now on, on all connections. The channel is closed when something
// is held.
func (p *Proxy) Hold(way Way) (caught <-chan struct{}) {
	c := make(chan struct{})
	p.change(func() { p.way[way].held, p.way[way].caught = true, c })
	return c
}

// Release lets what was held pass, in its order.
func (p *Proxy) Release(way Way) {
	p.change(func() { p.way[way].held, p.way[way].caught = false, nil })
}

// Freeze lets nothing pass any more on the connections that there are, without a word to either side, as if
// the other end was gone. Those that come later pass.
func (p *Proxy) Freeze() { p.change(func() { p.frozen = p.last }) }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		p.wg.Go(func() { p.connect(client) })
	}
}

// connect passes on one connection until either side ends it.
func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	refuse, target := p.refuse || p.closed, p.target
	p.mu.Unlock()
	if refuse {
		reset(client)
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		reset(client)
		return
	}
	p.mu.Lock()
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	p.last++
	number := p.last
	closed := p.closed
	p.mu.Unlock()
	if closed {
		reset(client)
	}
	done := make(chan struct{})
	var once sync.Once
	end := func() {
		once.Do(func() {
			close(done)
			reset(client)
			reset(server)
		})
	}
	var both sync.WaitGroup
	both.Go(func() { defer end(); p.pass(ToServer, number, server, client, done) })
	both.Go(func() { defer end(); p.pass(ToClient, number, client, server, done) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mu.Unlock()
}

// pass passes on what comes one way. It reads on while it holds, so that it knows when something is
// held, and that the connection was cut.
func (p *Proxy) pass(way Way, number int, to io.Writer, from net.Conn, done <-chan struct{}) {
	pieces := make(chan []byte, 64)
	p.wg.Go(func() {
		defer close(pieces)
		for {
			buffer := make([]byte, maxHeld/64)
			n, err := from.Read(buffer)
			if n > 0 {
				p.catch(way)
				select {
				case pieces <- buffer[:n]:
				case <-done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	for piece := range pieces {
		if !p.let(way, number, done) {
			return
		}
		if _, err := to.Write(piece); err != nil {
			return
		}
	}
}

// catch notes that something came while it is held.
func (p *Proxy) catch(way Way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := &p.way[way]; s.caught != nil {
		close(s.caught)
		s.caught = nil
	}
}

// let waits until something may pass, and reports whether it still can.
func (p *Proxy) let(way Way, number int, done <-chan struct{}) bool {
	for {
		p.mu.Lock()
		s, changed, frozen, closed := p.way[way], p.changed, number <= p.frozen, p.closed
		p.mu.Unlock()
		if closed {
			return false
		}
		var later <-chan time.Time
		if !s.held && !frozen {
			if s.delay == 0 {
				return true
			}
			later = time.After(s.delay)
		}
		select {
		case <-later:
			return true
		case <-changed:
		case <-done:
			return false
		}
	}
}
