package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// call is what the layers of one request share.
type call struct {
	endpoint *endpoint // nil: it is no RPC
	access   *access.Access
	target   *kuji.Realm    // the realm of a unary request; nil: it is about none, or not known yet
	start    time.Time      // when its header had arrived
	arrived  time.Time      // when its body had arrived, too
	took     time.Duration  // from then on; 0: it was not measured, as of a stream
	reached  bool           // the request was decoded
	ended    bool           // its handler was called, and has returned
	code     connect.Code   // of the answer, if reached or failed; 0 for OK
	failed   *connect.Error // what the answer says instead of a result
	work     int64          // taken from Gate.Work
	answer   answer

	logged
	streaming
	sharing
}

// logged is what only logs say of a call.
type logged struct {
	method   string // see methodOf
	peer     string // the client's address
	key      string // the name of the key, or of the token's issuer; "": none was shown
	realm    string // of the request; of a stream of draws: of its first batch
	status   string // of the result, if the answer has one; only for the access log
	received int64  // bytes of the body
}

// streaming is what only the call of a stream has.
type streaming struct {
	body     *streamBody // nil: the answer is a stream, the request is not
	messages int64       // answers
	units    int64       // draws or events in them
}

// handedOver reports whether another server is to answer, and counts and logs the request.
func (c *call) handedOver() bool { return c.elsewhere != "" }

// redis reports whether it is a command of the Redis protocol.
func (c *call) redis() bool { return strings.HasPrefix(c.method, redisMethods) }

type callKey struct{}

// callOf returns the call of a handler's context: every handler is called by ServeHTTP.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// interceptor wraps every handler. It recovers from panics and turns errors into answers.
type interceptor struct {
	shares  *shares
	gate    *admission.Gate
	journal *journal
}

func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (res connect.AnyResponse, err error) {
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, i.recovered(req.Spec().Procedure, p)
			}
			err = i.finish(ctx, req.Any(), err)
		}()
		if err := i.shares.hold(ctx, req.Any()); err != nil {
			return nil, err
		}
		admitted := ctx // a variable of its own: a deferred function keeps ctx
		if m, ok := req.Any().(proto.Message); ok {
			if admitted, err = i.admit(ctx, m); err != nil {
				return nil, err
			}
		}
		res, err = next(admitted, req)
		if err == nil && i.journal.access != nil {
			noteStatus(ctx, res.Any())
		}
		return res, err
	}
}

// about notes the realm of a request.
func (c *call) about(request any) {
	if realm, ok := contract.RealmOf(request); ok && c.realm == "" {
		c.realm = realm
	}
}

// noteStatus notes how the command of a call ended.
func noteStatus(ctx context.Context, answer any) {
	m, ok := answer.(interface{ GetResult() *kujiv1.Result })
	if ok && m.GetResult() != nil { // GetResult may have found none
		callOf(ctx).status = contract.Word(m.GetResult().GetStatus())
	}
}

// admit checks a request's counts and rights, takes memory for its answer, and finds its realm. It
// returns the context for what the request reads.
func (i *interceptor) admit(ctx context.Context, request proto.Message) (context.Context, error) {
	if err := miscount(request); err != nil {
		return ctx, err
	}
	c := callOf(ctx)
	c.about(request)
	if !c.endpoint.open {
		if err := c.access.Permit(request); err != nil {
			return ctx, err
		}
	}
	i.gate.Rates.Owe(c.access, message.Commands(request)-1)
	var err error
	if c.work, err = i.gate.TakeWork(ctx, c.access.Who, message.Work(request)); err != nil {
		return ctx, err
	}
	if q, ok := request.(interface{ GetStale() bool }); ok && q.GetStale() {
		ctx = kuji.Stale(ctx)
	}
	realm, about := contract.RealmOf(request)
	if _, creates := request.(*kujiv1.CreateRealmRequest); about && !creates {
		c.target, err = i.shares.realms.get(realm)
	}
	return ctx, err
}

func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = i.recovered(conn.Spec().Procedure, p)
			}
			err = i.finish(ctx, nil, err)
		}()
		return next(ctx, conn)
	}
}

func (i *interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (i *interceptor) recovered(procedure string, p any) error {
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares like this
		panic(p)
	}
	i.journal.panicked(procedure, p)
	return message.ErrPanic
}

func (i *interceptor) finish(ctx context.Context, request any, err error) error {
	c := callOf(ctx)
	c.reached = true
	if err == nil {
		return nil
	}
	if c.handOn(err) {
		c.elsewhere = c.held
	}
	if c.elsewhere != "" {
		return errElsewhere
	}
	c.failed = i.journal.answer(err, request)
	c.code = c.failed.Code()
	return c.failed
}

// label returns the metrics label for how a call ended. Connect answers what cannot be decoded.
func (c *call) label() string {
	if !c.reached {
		return labelUnreadable
	}
	return codeLabel(c.code)
}

func codeLabel(code connect.Code) string {
	if code == 0 {
		return "ok"
	}
	return code.String()
}
