package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// endpoint is what the server knows of one RPC before it reads a byte of a body.
type endpoint struct {
	procedure string        // "/package.Service/Method", the path
	role      kujiv1.Role   // the least role that may call it; ROLE_UNSPECIFIED only if open
	open      bool          // anybody may call it without a key
	exempt    bool          // answered under any load
	turns     chan struct{} // its requests can be large, so they take turns; nil if they cannot
	stream    bool          // StreamDraws
	limit     int64         // of a request's body, in bytes
	handler   http.Handler
	metrics   *rpcMetrics
}

// compressFrom is the size in bytes from which the answer to a read is compressed, if the client
// accepts that. Answers to commands never are: compressing one costs more than the draw.
const compressFrom = 32 << 10

// framing is what a request's body may contain besides the message, in bytes: gRPC's prefix.
const framing = 16

// handlerOptions are the options of every RPC.
func (s *Server) handlerOptions() connect.HandlerOption {
	l := &s.o.Limits
	return connect.WithHandlerOptions(
		codecs(s.requests),
		connect.WithInterceptors(&interceptor{s}),
		connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
			compress := connect.WithCompressMinBytes(compressFrom)
			if spec.IdempotencyLevel != connect.IdempotencyNoSideEffects {
				compress = connect.WithCompressMinBytes(math.MaxInt)
			}
			return []connect.HandlerOption{compress, readLimits(l.message(spec.Procedure))}
		}),
	)
}

// mount builds the table of endpoints: the contract's services with the roles that they declare,
// health, and reflection. Health is open because load balancers have no keys. Reflection needs the
// role read.
func (s *Server) mount(services []protoreflect.ServiceDescriptor) error {
	roles, err := declaredRoles(services)
	if err != nil {
		return err
	}
	if s.requests, err = requestShapes(services); err != nil {
		return err
	}
	options := s.handlerOptions()
	s.errors = connect.NewErrorWriter(codecs(s.requests))
	handlers := make(map[string]http.Handler) // by "/package.Service/"
	handle := func(path string, h http.Handler) { handlers[path] = h }
	handle(kujiv1connect.NewRewardServiceHandler(rewardService{s}, options))
	handle(kujiv1connect.NewAdminServiceHandler(adminService{s}, options))

	s.endpoints = make(map[string]*endpoint)
	names := make([]string, 0, len(services))
	for _, service := range services {
		names = append(names, string(service.FullName()))
	}
	for path, role := range roles {
		h := handlers[path[:strings.LastIndexByte(path, '/')+1]]
		if h == nil {
			return fmt.Errorf("server: nothing serves %s", path)
		}
		e := &endpoint{procedure: path, role: role, handler: h}
		switch path {
		case kujiv1connect.RewardServiceAtomicProcedure, kujiv1connect.RewardServiceBatchProcedure:
			e.turns = s.bulk
		case kujiv1connect.AdminServiceApplyCatalogProcedure:
			e.turns = s.catalogs
		case kujiv1connect.RewardServiceStreamDrawsProcedure:
			e.stream = true
		}
		s.endpoints[path] = e
	}

	path, h := grpchealth.NewHandler(&health{s: s, services: names}, options)
	for _, method := range []string{"Check", "Watch"} {
		s.endpoints[path+method] = &endpoint{procedure: path + method, open: true, exempt: true, handler: h}
	}
	reflector := grpcreflect.NewStaticReflector(append(names, grpchealth.HealthV1ServiceName)...)
	for _, newHandler := range []func(*grpcreflect.Reflector, ...connect.HandlerOption) (string, http.Handler){
		grpcreflect.NewHandlerV1, grpcreflect.NewHandlerV1Alpha,
	} {
		path, h := newHandler(reflector, options)
		path += "ServerReflectionInfo"
		s.endpoints[path] = &endpoint{procedure: path, role: kujiv1.Role_ROLE_READ, handler: h}
	}
	for _, e := range s.endpoints {
		e.metrics = s.metrics.rpc(e.procedure)
		e.limit = int64(s.o.Limits.message(e.procedure)) + framing
	}
	return nil
}

// call is what the layers of one RPC tell each other.
type call struct {
	endpoint *endpoint
	header   http.Header  // of the request
	reached  bool         // the request was decoded
	code     connect.Code // of the answer, if reached; 0 for OK
	work     int64        // taken from Server.work

	w http.ResponseWriter // only for a stream
}

type callKey struct{}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.o.Keys == nil {
		if err := s.checkOrigin(r); err != nil {
			s.refuse(w, r, nil, connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN, err)
			return
		}
	}
	e := s.endpoints[r.URL.Path]
	if e == nil {
		s.serveOther(w, r)
		return
	}
	if !e.open {
		if code, reason, err := s.authorize(r, e.role); err != nil {
			s.refuse(w, r, e, code, reason, err)
			return
		}
	}
	if !e.exempt {
		select {
		case s.inFlight <- struct{}{}:
			defer func() { <-s.inFlight }()
		default:
			s.refuse(w, r, e, connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED,
				fmt.Errorf("%d calls are being answered, which is the limit: try again later", cap(s.inFlight)))
			return
		}
	}
	if e.stream {
		select {
		case s.streams <- struct{}{}:
			defer func() { <-s.streams }()
		default:
			s.refuse(w, r, e, connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED,
				fmt.Errorf("%d streams are open, which is the limit: try again later", cap(s.streams)))
			return
		}
	}
	if e.turns != nil {
		select {
		case e.turns <- struct{}{}:
			defer func() { <-e.turns }()
		case <-r.Context().Done():
			return // the client is gone
		}
	}
	s.serveCall(w, r, e)
}

func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, e *endpoint) {
	start := time.Now()
	c := &call{endpoint: e, header: r.Header}
	defer func() { s.work.give(c.work) }() // the answer is sent
	defer func() {
		if p := recover(); p != nil {
			// The interceptor catches panics of handlers, where the client can still be
			// told. This one was in decoding or encoding.
			if p != http.ErrAbortHandler { //nolint:errorlint // net/http compares like this
				s.logPanic(e.procedure, p)
			}
			e.metrics.done(codeLabel(connect.CodeInternal), e.took(start))
			panic(http.ErrAbortHandler)
		}
		e.metrics.done(c.label(), e.took(start))
	}()
	if r.Method == http.MethodGet {
		w.Header().Set("Cache-Control", "no-store")
	}
	inner := r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	switch {
	case e.stream:
		c.w = w
	case r.ContentLength < 0 || r.ContentLength > e.limit:
		// Connect keeps no more than the limit but reads to the end. r keeps its own
		// body: net/http looks there to see whether it can reuse the connection.
		inner.Body = http.MaxBytesReader(w, r.Body, e.limit)
	}
	e.handler.ServeHTTP(w, inner)
}

// took returns how long a call took that began at start. It returns 0 for a stream, which is not
// counted: its batches are measured one by one.
func (e *endpoint) took(start time.Time) time.Duration {
	if e.stream {
		return 0
	}
	return time.Since(start)
}

// checkOrigin protects a server that asks for no key from web pages.
func (s *Server) checkOrigin(r *http.Request) error {
	if !s.hostAllowed(r.Host) {
		return fmt.Errorf("host %q: a server without API keys answers to loopback names only", r.Host)
	}
	return s.origin.Check(r)
}

// authorize checks the request's key against a role.
func (s *Server) authorize(r *http.Request, want kujiv1.Role) (connect.Code, kujiv1.Reason, error) {
	if s.o.Keys == nil {
		return 0, 0, nil
	}
	got := s.o.Keys.role(secretOf(r.Header))
	if got == kujiv1.Role_ROLE_UNSPECIFIED {
		return connect.CodeUnauthenticated, kujiv1.Reason_REASON_UNAUTHENTICATED,
			errors.New("want a valid API key in the header Authorization: Bearer KEY, or X-Api-Key: KEY")
	}
	if got < want {
		return connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN,
			fmt.Errorf("the API key's role is %s, want %s", roleName(got), roleName(want))
	}
	return 0, 0, nil
}

// refuse answers a request before its handler sees it, in the client's protocol.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, e *endpoint, code connect.Code, reason kujiv1.Reason, cause error) {
	metrics := s.metrics.unrouted
	if e != nil {
		metrics = e.metrics
	}
	metrics.done(codeLabel(code), 0)
	if code == connect.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="kuji"`)
	}
	ce := withDetail(connect.NewError(code, cause), &kujiv1.ErrorDetail{Reason: reason})
	if err := s.errors.Write(w, r, ce); err != nil {
		s.log.Debug("writing an error failed", "error", err)
	}
}

func (s *Server) logPanic(procedure string, p any) {
	s.log.Error("panic while answering", "procedure", procedure, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}
