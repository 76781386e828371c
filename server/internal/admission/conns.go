package admission

import (
	"container/list"
	"context"
	"net"
	"sync"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/server/access"
)

// Conns is the server's open connections. A newcomer always finds room: it gets the place of a
// connection that waits for its client. Connections that answer requests with keys keep theirs. At
// most three quarters of all can do so.
//
// A connection belongs to strangers until a request on it presents a key, and then to that key. The
// newcomer takes the place of the owner with the most connections, and there of the one that has
// waited longest. So an owner with few connections loses none to one with many.
type Conns struct {
	limit func() int // the most connections, at the moment

	mu   sync.Mutex
	n    int
	Busy *Budget // connections with requests that are being answered, by the first one's key
	by   map[access.Caller]*owner
}

// owner is the connections of one key, or of strangers.
type owner struct {
	who     access.Caller
	n       int
	waiting list.List // of *Conn, the one that has waited longest first
}

// Conn is one connection.
type Conn struct {
	net.Conn
	all   *Conns
	owner *owner        // nil once it is closed
	calls int           // requests with keys that are being answered, of any key
	payer access.Caller // who holds the part of conns.Busy, if calls > 0
	place *list.Element // in owner.waiting, if calls == 0

	room  []byte // for what is read ahead; nil: nothing was yet
	ahead []byte // the part of it that is still to be read
}

func NewConns(most int, limit func() int, shared bool) *Conns {
	return &Conns{limit: limit, Busy: NewPlaces(int64(most-most/4), shared, "connections are busy"), by: make(map[access.Caller]*owner)}
}

// Listen returns l with the limit on connections.
func (s *Conns) Listen(l net.Listener) net.Listener { return &listener{l, s} }

type listener struct {
	net.Listener
	all *Conns
}

// Accept makes room before anybody else sees the connection: at most one descriptor more than the
// limit is open.
func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.all.add(nc); c != nil {
			return c, nil
		}
		_ = nc.Close() // refused: nobody wants to know how that ends
	}
}

// add makes room for a connection and adds it. It returns nil if there is no room.
func (s *Conns) add(nc net.Conn) *Conn {
	limit := s.limit()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.n >= limit {
		victim := s.victim()
		if victim == nil {
			return nil
		}
		s.remove(victim)
		_ = victim.Conn.Close() // its goroutine notices and closes it again
	}
	c := &Conn{Conn: nc, all: s}
	s.n++
	s.join(c, access.Stranger)
	c.wait()
	return c
}

// victim returns the connection whose place a newcomer gets, or nil. mu must be held.
func (s *Conns) victim() *Conn {
	var from *owner
	for _, o := range s.by {
		if o.waiting.Len() > 0 && (from == nil || o.n > from.n) {
			from = o
		}
	}
	if from == nil {
		return nil
	}
	return from.waiting.Front().Value.(*Conn)
}

// join gives a connection to an owner. mu must be held.
func (s *Conns) join(c *Conn, who access.Caller) {
	o := s.by[who]
	if o == nil {
		o = &owner{who: who}
		s.by[who] = o
	}
	o.n++
	c.owner = o
}

// leave takes a connection from its owner. mu must be held.
func (s *Conns) leave(c *Conn) {
	c.stopWaiting()
	if c.owner.n--; c.owner.n == 0 {
		delete(s.by, c.owner.who)
	}
	c.owner = nil
}

// wait makes a connection one whose place a newcomer may get, unless it is closed. mu must be held.
func (c *Conn) wait() {
	if c.owner != nil {
		c.place = c.owner.waiting.PushBack(c)
	}
}

// stopWaiting keeps the connection's place. mu must be held.
func (c *Conn) stopWaiting() {
	if c.place != nil {
		c.owner.waiting.Remove(c.place)
		c.place = nil
	}
}

// remove forgets a connection. mu must be held.
func (s *Conns) remove(c *Conn) {
	if c.owner == nil {
		return
	}
	s.leave(c)
	s.n--
}

// readAhead is how much a small read takes from the connection, in bytes: the frames of a small
// call fit.
const readAhead = 512

// Read implements [net.Conn]. net/http reads the head of each HTTP/2 frame, and then the rest, from
// the connection: a small call would take eight system calls. A read of one byte takes no more: with
// it, net/http learns that a client of HTTP/1.1 is gone.
func (c *Conn) Read(p []byte) (int, error) {
	if len(c.ahead) == 0 {
		if len(p) < 2 || len(p) >= readAhead {
			return c.Conn.Read(p)
		}
		if c.room == nil {
			c.room = make([]byte, readAhead)
		}
		n, err := c.Conn.Read(c.room)
		if c.ahead = c.room[:n]; n == 0 {
			return 0, err
		}
	}
	n := copy(p, c.ahead)
	c.ahead = c.ahead[n:]
	return n, nil
}

// Close implements [net.Conn].
func (c *Conn) Close() error {
	err := c.Conn.Close() // first, so that its descriptor is free when its place is
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.remove(c)
	return err
}

// CloseWrite ends the writing side. net/http does so before it closes a connection on which the
// client still sends: the client gets to read the answer.
func (c *Conn) CloseWrite() error {
	if under, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return under.CloseWrite()
	}
	return nil
}

// Begin notes that a connection begins to answer a request with a key. It keeps its place until
// End. Begin refuses a key that has used up its share of busy connections.
func (s *Conns) Begin(c *Conn, who access.Caller) (refusal *connect.Error) {
	s.locked(c, func() {
		if c.calls == 0 {
			if refusal = s.Busy.Take(who, 1); refusal != nil {
				return
			}
			c.payer = who
			switch {
			case c.owner == nil: // it lost its place to a newcomer: the request fails soon
			case c.owner.who == who:
				c.stopWaiting()
			default:
				s.leave(c)
				s.join(c, who)
			}
		}
		c.calls++
	})
	return refusal
}

// locked calls do under the lock. If c is nil, no connection of the server, it does nothing.
func (s *Conns) locked(c *Conn, do func()) {
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// End says that a request that began has been answered.
func (s *Conns) End(c *Conn) {
	s.locked(c, func() {
		if c.calls--; c.calls == 0 {
			s.Busy.Give(c.payer, 1)
			c.wait()
		}
	})
}

// Trusts reports whether a connection belongs to a key, and not to strangers.
func (s *Conns) Trusts(c *Conn) (trusted bool) {
	s.locked(c, func() { trusted = c.owner != nil && c.owner.who != access.Stranger })
	return trusted
}

// Distrust says that a bad credential came on a connection: it is strangers' again, unless it
// answers requests.
func (s *Conns) Distrust(c *Conn) {
	s.locked(c, func() {
		if c.calls == 0 && c.owner != nil && c.owner.who != access.Stranger {
			s.leave(c)
			s.join(c, access.Stranger)
			c.wait()
		}
	})
}

// Touch notes a request without a key: its connection now counts as the one that waited least.
func (s *Conns) Touch(c *Conn) {
	s.locked(c, func() {
		if c.place != nil {
			c.owner.waiting.MoveToBack(c.place)
		}
	})
}

type connKey struct{}

// WithConn is [http.Server.ConnContext].
func WithConn(ctx context.Context, nc net.Conn) context.Context {
	if under, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS
		nc = under.NetConn()
	}
	if c, ok := nc.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// ConnOf returns the connection that a request came on, nil if it came on none of ours.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Len returns how many connections are open.
func (s *Conns) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}
