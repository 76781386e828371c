package client

import (
	"cmp"
	"context"
	"errors"
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

// Receive returns the answers, in the order of the batches. It fails when the context ends, the server
// refuses a batch, or no answer came for the client's timeout. If that leaves an outcome open, the error is
// an [UnknownError].
func (s *DrawStream) Receive() (*kujiv1.StreamDrawsResponse, error) {
	var closed bool
	err := s.await(s.ctx, func() bool { closed = len(s.open) == 0; return !closed || s.closed })
	if err == nil && closed {
		err = io.EOF
	}
	if err != nil {
		return nil, err
	}
	for t := (tries{Client: s.c, ctx: s.ctx, what: "the stream broke off", began: time.Now()}); ; {
		t.at = s.c.servers.at.Load()
		if s.conn == nil {
			s.conn, err = s.connect()
		}
		var resp *kujiv1.StreamDrawsResponse
		if err == nil {
			resp, err = s.conn.receive(cmp.Or(s.c.options.Attempt, s.c.options.Timeout))
		}
		if err == nil {
			s.change(func() { s.open, s.answered = s.open[1:], s.answered+1 })
			<-s.places
			return resp, nil
		}
		if s.conn != nil {
			s.conn.hang(nil)
			s.conn = nil
		}
		t.failed(err, true)
		if err = t.again(s.ctx, err); err != nil {
			if t.maybe {
				err = newUnknown(err, s.inDoubt()...)
			}
			return nil, err
		}
	}
}

// await waits until something is so, which it asks with mu locked.
func (s *DrawStream) await(ctx context.Context, so func() bool) error {
	for {
		s.mu.Lock()
		done, changed := so(), s.changed
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change changes what await asks about.
func (s *DrawStream) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.changed)
	s.changed = make(chan struct{})
}

// drawConn is one of the streams that a DrawStream goes through.
type drawConn struct {
	*connect.BidiStreamForClientSimple[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]
	ctx  context.Context
	hang context.CancelCauseFunc
}

// connect opens a stream, and sends all that has no answer, and what comes after it.
func (s *DrawStream) connect() (c *drawConn, err error) {
	c = &drawConn{}
	c.ctx, c.hang = context.WithCancelCause(s.ctx)
	if c.BidiStreamForClientSimple, err = s.c.streams.StreamDraws(c.ctx); err != nil {
		c.hang(nil)
		return nil, err
	}
	go func() {
		if err := s.send(c); err != nil && !errors.Is(err, io.EOF) { // that one receive tells
			c.hang(err)
		}
	}()
	return c, nil
}

func (s *DrawStream) send(c *drawConn) error {
	s.mu.Lock()
	next := s.answered
	s.mu.Unlock()
	for {
		var batch *kujiv1.StreamDrawsRequest
		err := s.await(c.ctx, func() bool {
			batch = nil
			if i := next - s.answered; i < len(s.open) {
				batch = s.open[i]
			}
			return batch != nil || s.closed
		})
		if err != nil {
			return err
		}
		if batch == nil {
			return c.CloseRequest()
		}
		if err := c.Send(batch); err != nil {
			return err
		}
		next++
	}
}

// inDoubt returns the request ids of all draws without an answer.
func (s *DrawStream) inDoubt() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, batch := range s.open {
		ids = append(ids, batch.GetRequestIds()...)
	}
	return ids
}

// errSilent ends a stream on which nothing comes, as on a connection whose other end is gone without a word.
var errSilent = connect.NewError(connect.CodeDeadlineExceeded, errors.New("nothing came in time"))

// receive waits for an answer, for at most a time if that is above 0.
func (c *drawConn) receive(atMost time.Duration) (*kujiv1.StreamDrawsResponse, error) {
	if atMost > 0 {
		defer time.AfterFunc(atMost, func() { c.hang(errSilent) }).Stop()
	}
	resp, err := c.Receive()
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
