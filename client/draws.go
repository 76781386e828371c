package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// MaxAhead is how many batches of a [DrawStream] can be without an answer: Send waits for a place.
const MaxAhead = 16

// DrawStream is a stream of draws that goes on after a break: it sends the batches that have no answer
// again, under their request ids, and then the next ones. One goroutine sends while another receives.
type DrawStream struct {
	c      *Client
	ctx    context.Context
	cancel context.CancelFunc
	places chan struct{} // one for each batch without an answer
	conn   *drawConn     // Receive's; nil: to be made

	mu       sync.Mutex
	changed  chan struct{}                // closed, and another made, when one of these changes
	open     []*kujiv1.StreamDrawsRequest // without an answer, the oldest first
	answered int                          // how many batches were answered before them
	closed   bool                         // no more batches come
}

// StreamDraws opens a stream of draws as it is: what fails, fails. See [Client.Draws] for one that goes on.
func (c *Client) StreamDraws(ctx context.Context) (*connect.BidiStreamForClientSimple[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse], error) {
	return c.streams.StreamDraws(ctx)
}

// Draws returns a stream of draws. Close it in the end. It needs HTTP/2.
func (c *Client) Draws(ctx context.Context) *DrawStream {
	s := &DrawStream{c: c, places: make(chan struct{}, MaxAhead), changed: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Send sends a batch. It returns as soon as there is a place for it. Draws without a request id get one,
// so that they can be sent again. The batch belongs to the stream from here on.
func (s *DrawStream) Send(batch *kujiv1.StreamDrawsRequest) error {
	draws := len(batch.GetPlayerIndexes())
	if draws == 0 {
		draws = len(batch.GetPlayers())
	}
	if len(batch.GetRequestIds()) == 0 {
		batch.RequestIds = make([]string, draws)
	}
	for i, id := range batch.GetRequestIds() {
		if id == "" {
			batch.RequestIds[i] = NewID()
		}
	}
	select {
	case s.places <- struct{}{}:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	s.change(func() { s.open = append(s.open, batch) })
	return nil
}

// CloseSend says that no more batches come. Receive then ends with [io.EOF] after the last answer.
func (s *DrawStream) CloseSend() { s.change(func() { s.closed = true }) }

// Close ends the stream at once.
func (s *DrawStream) Close() { s.cancel() }

// Receive returns the answers, in the order of the batches. It ends with an error when the context ends,
// when the server refuses a batch, or when there was no answer for the client's timeout in spite of new
// attempts. If that leaves an outcome open, the error is an [UnknownError]: the request ids are in the
// batches.
func (s *DrawStream) Receive() (*kujiv1.StreamDrawsResponse, error) {
	wait, maybe, began := backoff{}, false, time.Time{} // of new attempts
	for {
		if err := s.something(); err != nil {
			return nil, err
		}
		at := s.c.servers.at.Load()
		if s.conn == nil {
			s.conn = s.connect()
		}
		resp, err := s.conn.receive()
		if err == nil {
			s.change(func() { s.open, s.answered = s.open[1:], s.answered+1 })
			<-s.places
			return resp, nil
		}
		s.conn.hang(nil)
		s.conn = nil
		if !s.isOpen() {
			continue
		}
		how := s.c.judge(err)
		maybe = maybe || how.maybe
		if began.IsZero() {
			began = time.Now()
		}
		if how.again && (s.c.options.Timeout <= 0 || time.Since(began) < s.c.options.Timeout) {
			if wait.fresh() {
				s.c.retry(fmt.Errorf("the stream broke off (%w)", plainError{err}))
			}
			if how.elsewhere {
				s.c.servers.leave(at)
			}
			if ended := wait.next(s.ctx); ended == nil {
				continue
			} else {
				err = ended
			}
		}
		if maybe {
			err = &UnknownError{Err: err}
		}
		return nil, err
	}
}

// something waits until there is a batch without an answer. It returns io.EOF if none comes any more.
func (s *DrawStream) something() error {
	for {
		s.mu.Lock()
		open, closed, changed := len(s.open) > 0, s.closed, s.changed
		s.mu.Unlock()
		switch {
		case open:
			return nil
		case closed:
			return io.EOF
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
}

// isOpen reports whether a batch has no answer.
func (s *DrawStream) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) > 0
}

// change changes what is open, and says so.
func (s *DrawStream) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.changed)
	s.changed = make(chan struct{})
}

// drawConn is one of the streams that a DrawStream goes through.
type drawConn struct {
	stream *connect.BidiStreamForClientSimple[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]
	ctx    context.Context
	hang   context.CancelCauseFunc
	err    error // why there is no stream
}

// connect opens a stream, and sends all that has no answer, and what comes after it.
func (s *DrawStream) connect() *drawConn {
	c := &drawConn{}
	c.ctx, c.hang = context.WithCancelCause(s.ctx)
	if c.stream, c.err = s.c.streams.StreamDraws(c.ctx); c.err == nil {
		go s.send(c)
	}
	return c
}

func (s *DrawStream) send(c *drawConn) {
	s.mu.Lock()
	next := s.answered
	s.mu.Unlock()
	for {
		var batch *kujiv1.StreamDrawsRequest
		s.mu.Lock()
		if i := next - s.answered; i < len(s.open) {
			batch = s.open[i]
		}
		closed, changed := s.closed, s.changed
		s.mu.Unlock()
		switch {
		case batch != nil:
			next++
			if err := c.stream.Send(batch); err != nil {
				if !errors.Is(err, io.EOF) { // that one receive tells
					c.hang(err)
				}
				return
			}
		case closed:
			if err := c.stream.CloseRequest(); err != nil {
				c.hang(err)
			}
			return
		default:
			select {
			case <-changed:
			case <-c.ctx.Done():
				return
			}
		}
	}
}

func (c *drawConn) receive() (*kujiv1.StreamDrawsResponse, error) {
	if c.err != nil {
		return nil, c.err
	}
	resp, err := c.stream.Receive()
	switch {
	case err == nil:
		return resp, nil
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case errors.Is(err, io.EOF):
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("the server ended the stream"))
	}
	return nil, err
}
