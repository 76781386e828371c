package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// interceptor wraps every handler. It recovers from panics, and it is the only place that turns
// errors into answers.
type interceptor struct{ s *Server }

func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (res connect.AnyResponse, err error) {
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, i.recovered(req.Spec().Procedure, p)
			}
			err = i.finish(ctx, req.Any(), err)
		}()
		if err := i.s.hold(ctx, req.Any()); err != nil {
			return nil, err
		}
		if m, ok := req.Any().(proto.Message); ok {
			if err := i.admit(ctx, m); err != nil {
				return nil, err
			}
		}
		res, err = next(ctx, req)
		if err == nil && i.s.o.AccessLog != nil {
			noteStatus(ctx, res.Any())
		}
		return res, err
	}
}

// about notes which realm a request is about.
func (c *call) about(request any) {
	if named, ok := request.(interface{ GetRealm() string }); ok && c.realm == "" {
		c.realm = cmp.Or(named.GetRealm(), DefaultRealm)
	}
}

// noteStatus notes how the command of a call ended.
func noteStatus(ctx context.Context, answer any) {
	c, ok := ctx.Value(callKey{}).(*call)
	m, has := answer.(interface{ GetResult() *kujiv1.Result })
	if ok && has && m.GetResult() != nil { // GetResult may have found none
		c.status = contract.Word(m.GetResult().GetStatus())
	}
}

// admit refuses a request with a wrong count, and takes what the call needs from the budget.
func (i *interceptor) admit(ctx context.Context, request proto.Message) error {
	if err := miscount(request); err != nil {
		return err
	}
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return errors.New("the call did not come through ServeHTTP")
	}
	c.about(request)
	if !c.endpoint.open {
		if err := c.access.permit(request); err != nil {
			return err
		}
	}
	i.s.rates.owe(c.access, commandsIn(request)-1)
	var err error
	c.work, err = i.s.takeWork(ctx, c.access.who, workOf(request))
	return err
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
	i.s.logPanic(procedure, p)
	return errPanic
}

func (i *interceptor) finish(ctx context.Context, request any, err error) error {
	c, _ := ctx.Value(callKey{}).(*call)
	if c != nil {
		c.reached = true
	}
	if err == nil {
		return nil
	}
	if c != nil && c.handOn(err) {
		c.elsewhere = c.held
	}
	if c != nil && c.elsewhere != "" {
		return errElsewhere
	}
	ce := i.s.connectError(err, request)
	if c != nil {
		c.failed, c.code = ce, ce.Code()
	}
	return ce
}

// label returns the metrics label for how a call ended. A request that cannot be decoded never
// reaches a handler: Connect answers it.
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
