package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// caller makes each call by the rule.
type caller struct{ *Client }

// WrapUnary sends a call again, the very same message, until it has an answer. It tries again after
// lost connections, a busy server and unknown outcomes.
func (c caller) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		a := &attempts{Client: c.Client, id: identify(req)}
		a.effects = req.Spec().IdempotencyLevel != connect.IdempotencyNoSideEffects
		if m, ok := req.Any().(proto.Message); ok { // Connect would send an empty message in its place
			if _, err := proto.Marshal(m); err != nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("cannot encode the request: %w", err))
			}
		}
		if c.options.Key != "" {
			req.Header().Set("Authorization", "Bearer "+c.options.Key)
		}
		timed, cancel := c.within(ctx, c.options.Timeout)
		defer cancel()
		for wait := (backoff{}); ; {
			resp, err := a.once(timed, func(ctx context.Context) (connect.AnyResponse, error) { return next(ctx, req) })
			if err == nil {
				return resp, nil
			}
			if !a.again {
				return nil, a.failed(err)
			}
			if wait.fresh() && ctx.Err() == nil {
				c.retry(fmt.Errorf("no answer yet (%w)", plainError{err}))
			}
			if wait.next(timed) != nil {
				if ctx.Err() != nil {
					err = ctx.Err() // the caller ended it: the time was not up
				} else if !a.reached {
					err = &UnreachableError{err}
				}
				return nil, a.failed(err)
			}
		}
	}
}

// WrapStreamingClient adds the key.
func (c caller) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		if c.options.Key != "" {
			conn.RequestHeader().Set("Authorization", "Bearer "+c.options.Key)
		}
		return conn
	}
}

// WrapStreamingHandler returns next: clients have no handlers.
func (c caller) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// within bounds a context by a timeout, if it is above 0.
func (c *Client) within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

func (c *Client) retry(err error) {
	if c.options.Retry != nil {
		c.options.Retry(err)
	}
}

// attempts are those of one call.
type attempts struct {
	*Client
	id      string
	effects bool // it is not a read
	again   bool // the last one failed, and the same message may be sent again
	unknown bool // one of them may have happened
	reached bool // there was a connection once
}

// once makes an attempt.
func (a *attempts) once(ctx context.Context, call func(context.Context) (connect.AnyResponse, error)) (connect.AnyResponse, error) {
	ctx, cancel := a.within(ctx, a.options.Attempt)
	defer cancel()
	var sent atomic.Bool // a connection was there: this attempt may have arrived
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	at := a.servers.at.Load()
	resp, err := call(ctx)
	if err == nil {
		return resp, nil
	}
	how := a.judge(err)
	a.again = how.again
	a.unknown = a.unknown || how.maybe && sent.Load()
	a.reached = a.reached || sent.Load()
	if how.elsewhere {
		a.servers.leave(at)
	}
	return nil, err
}

// failed returns the error of a call that is given up.
func (a *attempts) failed(err error) error {
	if a.unknown && a.effects && Reason(err) != kujiv1.Reason_REASON_ID_REUSED { // that is the state's own answer
		return &UnknownError{RequestID: a.id, Err: err}
	}
	return err
}

// identify returns the request id of a command. It makes one for a command that has none, and for those
// of a batch.
func identify(req connect.AnyRequest) string {
	if batch, ok := req.Any().(*kujiv1.BatchRequest); ok {
		for _, c := range batch.GetCommands() {
			if c.GetRequestId() == "" {
				c.RequestId = NewID()
			}
		}
		return ""
	}
	m, ok := req.Any().(interface {
		proto.Message
		GetRequestId() string
	})
	if !ok {
		return ""
	}
	if m.GetRequestId() == "" && req.Spec().IdempotencyLevel != connect.IdempotencyNoSideEffects {
		r := m.ProtoReflect()
		r.Set(r.Descriptor().Fields().ByName("request_id"), protoreflect.ValueOfString(NewID()))
	}
	return m.GetRequestId()
}

// The pause between two attempts doubles from the first to the last of these.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// backoff is the pauses between attempts.
type backoff struct{ pause time.Duration }

// fresh reports whether there was no pause yet.
func (b *backoff) fresh() bool { return b.pause == 0 }

// next waits, each time longer. It fails if ctx ends.
func (b *backoff) next(ctx context.Context) error {
	b.pause = min(max(2*b.pause, firstPause), lastPause)
	wait := time.NewTimer(b.pause/2 + rand.N(b.pause/2))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
