package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// call sends the same message until it has an answer: after lost connections, a busy server, unknown outcomes.
func (c *Client) call(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		ids := identify(req)
		if m, ok := req.Any().(proto.Message); ok { // Connect would send an empty message in its place
			if _, err := proto.Marshal(m); err != nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("cannot encode the request: %w", err))
			}
		}
		timed, cancel := within(ctx, c.options.Timeout)
		defer cancel()
		for t := (tries{Client: c, ctx: ctx, what: "no answer yet"}); ; {
			resp, err := t.once(timed, func(ctx context.Context) (connect.AnyResponse, error) { return next(ctx, req) })
			if err == nil {
				return resp, nil
			}
			if err = t.again(timed, err); err == nil {
				continue
			}
			if !t.reached && up(timed) && ctx.Err() == nil {
				err = &UnreachableError{err}
			}
			effects := req.Spec().IdempotencyLevel != connect.IdempotencyNoSideEffects
			if t.maybe && effects && Reason(err) != kujiv1.Reason_REASON_ID_REUSED { // that is the state's own answer
				err = newUnknown(err, ids...)
			}
			return nil, err
		}
	}
}

// up reports whether a context's time is up, also when its timer is late.
func up(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(end)
}

// within bounds a context by a timeout, if it is above 0.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// The pause between two attempts doubles from the first to the last of these.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// tries are the attempts at one thing: a call, or what a stream brings next.
type tries struct {
	*Client
	ctx  context.Context // of the call to the client
	what string          // the first failure, for [Options.Retry]

	at      uint32 // the server that the last attempt began with
	began   time.Time
	pause   time.Duration // before the last attempt; 0: it is the first
	asked   time.Duration // the pause that the last answer asked for, with Retry-After
	maybe   bool          // one that failed may have happened
	reached bool          // there was a connection once
}

// once makes one attempt at a call.
func (t *tries) once(ctx context.Context, call func(context.Context) (connect.AnyResponse, error)) (connect.AnyResponse, error) {
	ctx, cancel := within(ctx, t.options.Attempt)
	defer cancel()
	var sent atomic.Bool // a connection was there: this attempt may have arrived
	t.at = t.servers.at.Load()
	var asked atomic.Int64
	ctx = context.WithValue(ctx, pauseAsked{}, &asked)
	resp, err := call(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}))
	if err != nil {
		t.failed(err, sent.Load())
		t.asked = max(t.asked, time.Duration(asked.Load()))
	}
	return resp, err
}

// failed notes a failed attempt. sent: it may have arrived.
func (t *tries) failed(err error, sent bool) {
	t.asked = 0
	if rpc, ok := errors.AsType[*connect.Error](err); ok {
		t.asked = retryAfter(rpc.Meta().Get("Retry-After"), time.Now())
	}
	t.maybe = t.maybe || sent && t.judge(err).maybe
	t.reached = t.reached || sent
}

// again waits before the next attempt, each time longer, and as long as the server asks for. It returns the error
// to end with: the last attempt's if that settles it or timed, which bounds all attempts, is up, or that of the
// caller's context.
func (t *tries) again(timed context.Context, err error) error {
	how := t.judge(err)
	if t.began.IsZero() {
		t.began = time.Now()
	}
	if !how.again {
		return err
	}
	if up(timed) || t.options.Timeout > 0 && time.Since(t.began) >= t.options.Timeout {
		return cmp.Or(t.ctx.Err(), err)
	}
	if t.ctx.Err() == nil {
		if how.elsewhere {
			t.servers.leave(t.at)
		}
		if t.pause == 0 && t.options.Retry != nil {
			t.options.Retry(fmt.Errorf("%s (%w)", t.what, plainError{err}))
		}
	}
	if end, ok := timed.Deadline(); ok && t.asked > 0 && time.Until(end) < t.asked && t.ctx.Err() == nil {
		return err // the server wants nothing before the time is up
	}
	t.pause = min(max(2*t.pause, firstPause), lastPause)
	wait := time.NewTimer(max(t.asked, t.pause/2+rand.N(t.pause/2)))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-timed.Done():
		return cmp.Or(t.ctx.Err(), err)
	}
}

// pauseAsked takes the pause that the answer to an attempt asks for. A load balancer can have given it.
// The context of the attempt has it.
type pauseAsked struct{}

// retryAfter reads a header Retry-After: seconds, or a date. 0: it has none.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// identify returns the request ids of a command or of a batch, and makes those that are missing.
func identify(req connect.AnyRequest) (ids []string) {
	if batch, ok := req.Any().(*kujiv1.BatchRequest); ok {
		for _, c := range batch.GetCommands() {
			if c.GetRequestId() == "" {
				c.RequestId = NewID()
			}
			ids = append(ids, c.GetRequestId())
		}
		return ids
	}
	m, ok := req.Any().(interface {
		proto.Message
		GetRequestId() string
	})
	if !ok {
		return nil
	}
	if m.GetRequestId() == "" && req.Spec().IdempotencyLevel != connect.IdempotencyNoSideEffects {
		r := m.ProtoReflect()
		r.Set(r.Descriptor().Fields().ByName("request_id"), protoreflect.ValueOfString(NewID()))
	}
	return []string{m.GetRequestId()}
}
