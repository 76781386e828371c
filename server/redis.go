package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
)

// The Redis protocol, in short. A connection has one goroutine:
//
//	receive   read until there is a whole command; take all whole ones that have come: a pipeline
//	handle    each command in order: it is authorised; draws and the like gather in a run
//	flush     a run is carried out as one batch, and answered when it is durable
//	send      the answers, in the order of the commands
//
// Commands become the API's requests, and what decides about those decides about them: permits,
// rates, budgets, the handlers and requestOf. docs/reference/redis.md is what clients read.

// redisBuffer is the room for commands that each connection has, in bytes. Before AUTH it gets no
// more. The longest token fits.
const redisBuffer = MaxTokenBytes + 512

// keptAnswers is how much memory for answers an idle connection keeps, in bytes.
const keptAnswers = 4 << 10

// maxTries is how many commands that are refused before AUTH, or have no words, end a connection.
const maxTries = 16

// tries counts them.
type tries int

// over counts one more, and reports whether the connection ends.
func (t *tries) over() bool {
	*t++
	return *t >= maxTries
}

// redisConns is the connections of the Redis protocol.
type redisConns struct {
	mu    sync.Mutex
	all   map[*redisConn]struct{}
	gone  chan struct{} // closed when the last is gone; nil before shutdown
	count int64         // of all that there ever were
}

// redisConn is one of them. Its fields are its goroutine's.
type redisConn struct {
	pass            // access is nil before AUTH
	nc     net.Conn // with TLS, if there is any
	place  *conn    // in Server.conns
	ctx    context.Context
	cancel context.CancelFunc
	id     int64
	realm  string
	peer   string // the client's address
	secret string // the key or token that was presented
	resp
	inbox
	pipeline
	group   group
	tries   tries // how many commands were refused before AUTH, or had no words
	leaving bool  // after these answers the connection ends
	failed  error // the answers cannot be sent
}

// inbox is what has arrived on a connection.
type inbox struct {
	first   [redisBuffer]byte
	buf     []byte // first, or larger
	taken   int64  // of Server.memory, for a larger one
	payer   caller // who took it
	from    int    // buf[from:scanned] is whole commands
	scanned int
	to      int // buf[scanned:to] is the beginning of another
	whole   int // how many commands are whole
	words   [][]byte
	broken  error     // why what is behind the whole commands is no command
	began   time.Time // when the beginning of another came; zero: there is none
}

// ServeRedis accepts connections of the Redis protocol on l, until [Server.Shutdown], and closes l at the
// end. They count for Limits.Connections together with those of Serve, speak TLS if Options.TLS says
// so, and have the same keys. Check the address first: see [CheckListen].
func (s *Server) ServeRedis(l net.Listener) error {
	l = s.conns.listen(l)
	defer l.Close()
	defer context.AfterFunc(s.stopping, func() { _ = l.Close() })()
	conf := s.o.TLS
	if conf != nil {
		conf = conf.Clone()
		conf.NextProtos = nil // those of HTTP, if any
	}
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		switch {
		case s.stopping.Err() != nil:
			if err == nil {
				_ = nc.Close()
			}
			return nil
		case err == nil:
			pause = 0
			s.startRedis(nc, conf)
		case slices.ContainsFunc(passing, func(one error) bool { return errors.Is(err, one) }):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-s.stopping.Done():
			}
		default:
			return fmt.Errorf("server: %w", err)
		}
	}
}

// passing are errors of one connection, or of a machine that is short of something for a while.
var passing = []error{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// startRedis serves a connection that was accepted.
func (s *Server) startRedis(nc net.Conn, conf *tls.Config) {
	c := &redisConn{pass: pass{s: s}, nc: nc, realm: DefaultRealm, peer: nc.RemoteAddr().String()}
	c.place, _ = nc.(*conn)
	if conf != nil {
		c.nc = tls.Server(nc, conf)
	}
	if s.o.Keys == nil {
		c.access = anybody
	}
	s.metrics.redis.Inc()
	c.version = 2
	c.buf = c.first[:]
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if !s.redis.add(c) {
		c.close()
		return
	}
	go func() {
		defer s.redis.remove(c)
		defer c.close()
		c.serve()
	}()
}

func (r *redisConns) add(c *redisConn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone != nil {
		return false
	}
	if r.all == nil {
		r.all = make(map[*redisConn]struct{})
	}
	r.count++
	c.id = r.count
	r.all[c] = struct{}{}
	return true
}

func (r *redisConns) remove(c *redisConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.all, c); len(r.all) == 0 && r.gone != nil {
		close(r.gone)
		r.all = nil
	}
}

func (r *redisConns) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// shutdown ends each connection once what it has received whole is answered. Server.stopping has
// ended. If ctx ends first, it cuts them.
func (r *redisConns) shutdown(ctx context.Context) error {
	r.mu.Lock()
	if r.gone == nil {
		r.gone = make(chan struct{})
		if len(r.all) == 0 {
			close(r.gone)
		}
	}
	for c := range r.all {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // it may be closed
	}
	r.mu.Unlock()
	select {
	case <-r.gone:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	for c := range r.all {
		c.cancel()
		_ = c.nc.Close()
	}
	r.mu.Unlock()
	<-r.gone
	return fmt.Errorf("server: shutdown of the Redis protocol: %w", ctx.Err())
}

// close gives back all that the connection has.
func (c *redisConn) close() {
	c.s.metrics.redis.Dec()
	c.cancel()
	c.exit()
	c.group.leave(c.s)
	c.shrink()
	_ = c.nc.Close() // the client may be gone: there is nobody to tell
}

// serve answers pipelines until the connection ends.
func (c *redisConn) serve() {
	defer func() {
		if p := recover(); p != nil {
			// Nobody knows how far the answers are: the client must ask again.
			c.s.logPanic("the Redis protocol", p)
		}
	}()
	if t, ok := c.nc.(*tls.Conn); ok {
		ctx, cancel := context.WithTimeout(c.ctx, c.s.o.Limits.HeaderTimeout)
		err := t.HandshakeContext(ctx)
		if cancel(); err != nil {
			return
		}
	}
	for !c.leaving && c.failed == nil {
		if err := c.receive(); err != nil {
			if tellable(err) {
				c.arrived = time.Now()
				c.reject(nil, c.to-c.from, err)
				c.send()
			}
			return
		}
		c.answer()
	}
}

// tellable reports whether the client is to learn why its connection ends.
func tellable(err error) bool {
	_, broken := errors.AsType[*kuji.Error](err)
	_, overloaded := errors.AsType[*connect.Error](err)
	return broken || overloaded
}

// receive waits for a whole command, and takes with it what has come behind it. A buffer that is full
// and ends within a command is a part of what the client has sent together: receive goes on to its
// end, as far as there is room. Otherwise half a command keeps no whole one waiting.
func (c *redisConn) receive() error {
	c.compact()
	for {
		c.scan()
		full := c.to == len(c.buf)
		switch {
		case c.broken != nil, c.whole > 0 && (!full || c.scanned == c.to || c.whole == kuji.MaxBatch):
			return nil
		case full:
			if err := c.grow(); err != nil {
				if c.whole > 0 {
					return nil
				}
				return err
			}
		}
		if err := c.read(); err != nil {
			if c.whole > 0 {
				return nil
			}
			return err
		}
	}
}

// scan finds the whole commands.
func (c *redisConn) scan() {
	limit := c.s.o.Limits.RequestBytes
	if c.access == nil {
		limit = redisBuffer
	}
	for c.broken == nil && c.whole < kuji.MaxBatch && c.scanned < c.to {
		words, n, err := parseCommand(c.buf[c.scanned:c.to], limit, c.words)
		if err != nil {
			c.broken = err
			return
		}
		if n == 0 {
			return
		}
		c.words = words
		c.scanned += n
		c.whole++
		c.began = time.Time{}
	}
}

// read reads once. A client may be idle between commands, not within one.
func (c *redisConn) read() error {
	l := &c.s.o.Limits
	now := time.Now()
	until := now.Add(l.IdleTimeout)
	if c.scanned < c.to {
		if c.began.IsZero() {
			c.began = now
		}
		if until = c.began.Add(l.ReadTimeout); c.access == nil {
			until = c.began.Add(l.HeaderTimeout)
		}
	}
	if err := c.nc.SetReadDeadline(until); err != nil {
		return err
	}
	if c.s.stopping.Err() != nil { // shutdown may have set its deadline before
		return c.s.stopping.Err()
	}
	n, err := c.nc.Read(c.buf[c.to:])
	c.to += n
	switch {
	case n > 0:
		return nil
	case c.scanned < c.to && errors.Is(err, os.ErrDeadlineExceeded) && c.s.stopping.Err() == nil:
		return &kuji.Error{Code: kuji.CodeInvalid, Field: "protocol", Message: fmt.Sprintf("the command is incomplete: %d bytes arrived in time", c.to-c.scanned)}
	}
	return err
}

// compact makes room for what comes next, and gives back what the last pipeline needed in addition.
func (c *redisConn) compact() {
	if c.whole > 0 || c.from == 0 {
		return
	}
	rest := c.buf[c.from:c.to]
	to := c.buf
	if len(rest) <= len(c.first)/2 {
		to = c.first[:]
	}
	n := copy(to, rest)
	c.from, c.scanned, c.to = 0, 0, n
	if len(to) == len(c.first) {
		c.shrink()
	}
}

// shrink gives back what a larger buffer took.
func (c *redisConn) shrink() {
	if c.taken > 0 {
		c.s.memory.give(c.payer, c.taken)
	}
	c.taken, c.buf = 0, c.first[:]
}

// errFull is why a buffer grows no further.
var errFull = errors.New("the buffer is as large as it may be")

// grow makes the buffer twice as large.
func (c *redisConn) grow() error {
	size := min(2*len(c.buf), max(c.s.o.Limits.BatchBytes, c.s.o.Limits.RequestBytes))
	if c.access == nil || size <= len(c.buf) {
		return errFull // a command that is alone fits: see scan
	}
	if c.taken == 0 {
		c.payer = c.access.who
	}
	// There must be room for the request as well: see enter.
	if !c.s.memory.take(c.payer, int64(size)-c.taken+requestCost) {
		return c.s.noMemory(c.payer)
	}
	c.s.memory.give(c.payer, requestCost)
	c.taken = int64(size)
	buf := make([]byte, size)
	copy(buf, c.buf[:c.to])
	c.buf = buf
	return nil
}

// transmit sends the answers written so far. A client has one WriteTimeout for all those of a pipeline.
func (c *redisConn) transmit() {
	if c.failed == nil && len(c.out) > 0 {
		if c.until.IsZero() {
			c.until = time.Now().Add(c.s.o.Limits.WriteTimeout)
			c.failed = c.nc.SetWriteDeadline(c.until)
		}
		if c.failed == nil {
			_, c.failed = c.nc.Write(c.out)
		}
	}
	c.sent += int64(len(c.out))
	if cap(c.out) > keptAnswers {
		c.out = nil
	}
	c.out = c.out[:0]
}

// send sends the answers written so far, and gives back what they took.
func (c *redisConn) send() {
	c.transmit()
	if c.entered != nil {
		c.s.giveWork(c.entered.who, c.work)
	}
	c.work = 0
}
