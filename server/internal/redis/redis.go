// Package redis speaks the Redis protocol with clients. It reads commands, gathers them in runs and
// writes the replies; a [Backend] carries them out. It does not know what a command does.
package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
)

// The Redis protocol, in short. A connection has one goroutine:
//
//	receive   read until there is a whole command; take all whole ones that have come: a pipeline
//	handle    each command in order: it is authorised; draws and the like gather in a run
//	flush     a run is carried out as one batch, and answered when it is durable
//	send      the answers, in the order of the commands
//
// Commands become messages of the API, and the same permits, rates, budgets and handlers apply.
// docs/reference/redis.md is what clients read.

// Buffer is a connection's room for commands, in bytes, at first and until AUTH. A token fits.
const Buffer = access.MaxTokenBytes + 512

// keptAnswers is how much memory for answers an idle connection keeps, in bytes.
const keptAnswers = 4 << 10

// maxTries is how many commands that are empty, or refused before AUTH, end a connection.
const maxTries = 16

// Backend answers commands.
type Backend interface {
	// Do carries out commands that the client may send: an answer for each, or one error for all.
	Do(ctx context.Context, c *Client, realm string, all []Command, answers []Answer) error
	// Read answers a request that reads: GetPlayer, GetPool or GetOdds.
	Read(ctx context.Context, c *Client, realm string, request proto.Message) (proto.Message, error)
	// CheckRealm fails if it is known that a realm does not exist.
	CheckRealm(realm string) error
	// Error returns the API's form of an error about request: a command, a read, or nil.
	Error(err error, request any) *connect.Error
	// Ended counts and logs a command.
	Ended(c *Client, e *Ended)
	// Panicked logs a panic.
	Panicked(p any)
}

// Client is the sender of commands.
type Client struct {
	access.Pass        // its Access is nil before AUTH
	Peer        string // the client's address
	Secret      string // the key or token that was presented
}

// Command is a command for the engine: a message that can be in a batch.
type Command struct {
	ID      string // of the request
	Reason  string // why; of some commands only
	Message proto.Message
}

// Repeatable reports whether the command can be sent again safely.
func (c Command) Repeatable() bool { return c.ID != "" }

// Answer is how a command ended, or why it was refused.
type Answer struct {
	Result *kujiv1.Result
	Err    error
}

// Ended says how a command ended.
type Ended struct {
	Command  string // its name; "": there is no such command
	Realm    string
	Arrived  time.Time
	Size     int           // of the command in bytes
	Answered int64         // of the answer in bytes
	Status   kujiv1.Status // of its result; 0: it has none
	Failed   *connect.Error
}

// Server serves the connections of the Redis protocol.
type Server struct {
	Backend  Backend
	Gate     *admission.Gate
	Keys     *access.Keys    // nil: it asks for no key
	TLS      *tls.Config     // nil: plain text
	Stopping context.Context // ends when connections must end
	Version  string          // of the program
	Limits   Limits

	byName map[string]*command

	mu    sync.Mutex
	all   map[*conn]struct{}
	ended bool           // there will be no more
	count int64          // of all connections so far
	work  sync.WaitGroup // their goroutines
}

// Limits are the server's limits that hold for this protocol as well.
type Limits struct {
	RequestBytes, BatchBytes                              int
	HeaderTimeout, ReadTimeout, WriteTimeout, IdleTimeout time.Duration
}

// conn is one connection. Only its goroutine changes its fields; Shutdown may end its link.
type conn struct {
	s      *Server
	client Client
	link   link
	id     int64
	realm  string
	resp
	inbox
	pipeline
	atomic  atomic
	tries   int  // see maxTries
	leaving bool // after these answers the connection ends
}

// link is the connection to the client.
type link struct {
	nc     net.Conn        // with TLS, if there is any
	place  *admission.Conn // in Gate.Conns
	ctx    context.Context
	cancel context.CancelFunc
	failed error // why answers can no longer be sent; nil: they can
}

// Serve accepts connections on l until Stopping ends, and closes l at the end.
func (s *Server) Serve(l net.Listener) error {
	l = s.Gate.Conns.Listen(l)
	defer l.Close()
	defer context.AfterFunc(s.Stopping, func() { _ = l.Close() })()
	conf := s.TLS
	if conf != nil {
		conf = conf.Clone()
		conf.NextProtos = nil // those of HTTP, if any
	}
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		switch {
		case s.Stopping.Err() != nil:
			if err == nil {
				_ = nc.Close()
			}
			return nil
		case err == nil:
			pause = 0
			s.start(nc, conf)
		case slices.ContainsFunc(passing, func(one error) bool { return errors.Is(err, one) }):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-s.Stopping.Done():
			}
		default:
			return fmt.Errorf("server: %w", err)
		}
	}
}

// passing are errors that pass: of one connection, or of a machine that is short of something.
var passing = []error{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// start serves a connection that was accepted.
func (s *Server) start(nc net.Conn, conf *tls.Config) {
	c := &conn{s: s, realm: contract.DefaultRealm}
	c.client.Peer, c.link.nc = nc.RemoteAddr().String(), nc
	c.link.place, _ = nc.(*admission.Conn)
	if conf != nil {
		c.link.nc = tls.Server(nc, conf)
	}
	if s.Keys == nil {
		c.client.Access = access.Anybody
	}
	c.version = 2
	c.inbox = inbox{s: s, nc: c.link.nc, client: &c.client}
	c.buf = c.first[:]
	c.link.ctx, c.link.cancel = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		c.close()
		return
	}
	s.count++
	c.id = s.count
	s.all[c] = struct{}{}
	s.work.Go(func() {
		defer s.remove(c)
		defer c.close()
		c.serve()
	})
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
}

// Len returns how many connections there are.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Shutdown ends each connection once all that it received whole is answered, or with ctx's end.
func (s *Server) Shutdown(ctx context.Context) error {
	s.each(func(c *conn) { _ = c.link.nc.SetReadDeadline(time.Unix(1, 0)) }) // it may be closed
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.each(func(c *conn) {
		c.link.cancel()
		_ = c.link.nc.Close()
	})
	<-done
	return fmt.Errorf("server: shutdown of the Redis protocol: %w", ctx.Err())
}

// each lets no more connections in, and calls do for each that there is.
func (s *Server) each(do func(c *conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for c := range s.all {
		do(c)
	}
}

// close gives back everything that the connection holds.
func (c *conn) close() {
	c.link.cancel()
	c.exit()
	c.atomic.leave(c.s.Gate)
	c.shrink()
	_ = c.link.nc.Close() // the client may be gone
}

// serve answers pipelines until the connection ends.
func (c *conn) serve() {
	defer func() {
		if p := recover(); p != nil {
			// How far the answers went is unknown: the client must ask again.
			c.s.Backend.Panicked(p)
		}
	}()
	if t, ok := c.link.nc.(*tls.Conn); ok {
		ctx, cancel := context.WithTimeout(c.link.ctx, c.s.Limits.HeaderTimeout)
		err := t.HandshakeContext(ctx)
		if cancel(); err != nil {
			return
		}
	}
	for !c.leaving && c.link.failed == nil {
		if err := c.receive(); err != nil {
			_, broken := errors.AsType[*kuji.Error](err)
			_, overloaded := errors.AsType[*connect.Error](err)
			if broken || overloaded { // tell the client
				c.arrived = time.Now()
				c.reject(slot{size: c.to - c.from, err: err})
				c.send()
			}
			return
		}
		c.answer()
	}
}

// transmit sends the answers written so far. All those of a pipeline share one WriteTimeout.
func (c *conn) transmit() {
	if c.link.failed == nil && len(c.out) > 0 {
		if c.until.IsZero() {
			c.until = time.Now().Add(c.s.Limits.WriteTimeout)
			c.link.failed = c.link.nc.SetWriteDeadline(c.until)
		}
		if c.link.failed == nil {
			_, c.link.failed = c.link.nc.Write(c.out)
		}
	}
	c.sent += int64(len(c.out))
	if cap(c.out) > keptAnswers {
		c.out = nil
	}
	c.out = c.out[:0]
}

// send sends the answers written so far, and gives back what they took.
func (c *conn) send() {
	c.transmit()
	if c.entered != nil {
		c.s.Gate.GiveWork(c.entered.Who, c.work)
	}
	c.work = 0
}
