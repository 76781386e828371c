package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// endpoint is what the server knows of one RPC before it reads a byte of a body.
type endpoint struct {
	procedure string      // "/package.Service/Method", the path
	role      kujiv1.Role // the least role that may call it; ROLE_UNSPECIFIED only if open
	open      bool        // anybody may call it without a key
	exempt    bool        // needs nothing of the engine: answered under any load
	turns     *budget     // its requests or answers can be large, so they take turns; nil if they cannot
	streams   *budget     // of which a stream takes one; nil if it is none
	bidi      bool        // its body is a stream of messages
	types     []string    // that its body can be of; nil: the handler says
	limit     int64       // of a request's body, in bytes; not if bidi
	handler   http.Handler
	metrics   *rpcMetrics
}

// compressFrom is the size in bytes from which the answer to a read is compressed, if the client
// accepts that. Answers to commands never are: compressing one costs more than the draw.
const compressFrom = 32 << 10

// framing is what a request's body may contain in addition to the message, in bytes: gRPC's prefix.
const framing = 16

// handlerOptions are the options of every RPC.
func (s *Server) handlerOptions() connect.HandlerOption {
	l := &s.o.Limits
	return connect.WithHandlerOptions(
		codecs(s.requests),
		connect.WithInterceptors(append(slices.Clone(s.o.Interceptors), &interceptor{s})...),
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
	roles, err := contract.Roles(services)
	if err != nil {
		return fmt.Errorf("server: %w", err)
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
	names, inputs, types := make([]string, 0, len(services)), map[string]protoreflect.FullName{}, map[string][]string{}
	for _, service := range services {
		names = append(names, string(service.FullName()))
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			path := "/" + string(service.FullName()) + "/" + string(m.Name())
			if inputs[path], types[path] = m.Input().FullName(), unaryTypes; m.IsStreamingClient() || m.IsStreamingServer() {
				types[path] = streamTypes
			}
		}
	}
	for path, role := range roles {
		h := handlers[path[:strings.LastIndexByte(path, '/')+1]]
		if h == nil {
			return fmt.Errorf("server: nothing serves %s", path)
		}
		if permits[inputs[path]] == nil {
			return fmt.Errorf("server: nothing says who may call %s: see permits", path)
		}
		e := &endpoint{procedure: path, role: role, handler: h, types: types[path]}
		switch path {
		case kujiv1connect.RewardServiceAtomicProcedure, kujiv1connect.RewardServiceBatchProcedure,
			kujiv1connect.AdminServiceImportCodesProcedure,
			kujiv1connect.RewardServiceExportCatalogProcedure:
			e.turns = s.bulk
		case kujiv1connect.RewardServiceGetOddsProcedure:
			e.turns = s.odds
		case kujiv1connect.AdminServiceApplyCatalogProcedure:
			e.turns = s.catalogs
		case kujiv1connect.RewardServiceGetHistoryProcedure, kujiv1connect.RewardServiceListPlayersProcedure, kujiv1connect.RewardServiceListHoldersProcedure,
			kujiv1connect.RewardServiceListCatalogsProcedure:
			e.turns = s.history
		case kujiv1connect.RewardServiceStreamDrawsProcedure:
			e.streams, e.bidi = s.streams, true
		case kujiv1connect.RewardServiceStreamEventsProcedure, kujiv1connect.AdminServiceBackupProcedure:
			e.streams = s.feeds
		}
		s.endpoints[path] = e
	}

	s.endpoints[eventsPath] = &endpoint{procedure: eventsPath, role: kujiv1.Role_ROLE_READ, streams: s.feeds, handler: http.HandlerFunc(s.serveEvents)}

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
		s.endpoints[path] = &endpoint{procedure: path, role: kujiv1.Role_ROLE_READ, exempt: true, bidi: true, handler: h}
	}
	for _, e := range s.endpoints {
		e.metrics = s.metrics.rpc(e.procedure)
		e.limit = int64(s.o.Limits.message(e.procedure)) + framing
		if e.open {
			e.limit = bodyStep - 1 // in the memory that every request has
		}
	}
	return nil
}

// call is what the layers of one request tell each other.
type call struct {
	endpoint *endpoint // nil: it is no RPC
	access   *access
	method   string         // see methodOf
	peer     string         // the client's address
	key      string         // the name of the key, or of the token's issuer; "": none was shown
	start    time.Time      // when its header had arrived
	arrived  time.Time      // when its body had arrived, too
	took     time.Duration  // from then on; 0: it was not measured, as of a stream
	reached  bool           // the request was decoded
	ended    bool           // its handler was called, and has returned
	code     connect.Code   // of the answer, if reached or failed; 0 for OK
	failed   *connect.Error // what the answer says instead of a result
	work     int64          // taken from Server.work

	logged
	streaming
	sharing
}

// logged is what only logs say of a call.
type logged struct {
	realm    string // of the request; of a stream of draws: of its first batch
	status   string // of the result, if the answer has one; only for the access log
	received int64  // bytes of the body
}

// streaming is what only the call of a stream has.
type streaming struct {
	w        http.ResponseWriter
	messages int64 // answers
	units    int64 // draws or events in them
}

// handedOver reports whether another server is to answer, and counts and logs the request.
func (c *call) handedOver() bool { return c.elsewhere != "" }

// redis reports whether it is a command of the Redis protocol.
func (c *call) redis() bool { return strings.HasPrefix(c.method, redisMethods) }

type callKey struct{}

// unit says what a stream's messages are made of.
func (e *endpoint) unit() string {
	if e.bidi {
		return "draws"
	}
	return "events"
}

// ServeHTTP implements [http.Handler]. A request is admitted if it presents a key, where there are
// keys, and the key's share of memory and connections allows one more. Any other request belongs to
// the crowd.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := s.endpoints[r.URL.Path]
	c := &call{endpoint: e, access: passerby, method: methodOf(e, r.URL.Path), peer: r.RemoteAddr, start: time.Now()}
	if log := s.o.AccessLog; log != nil {
		counted := &countedWriter{ResponseWriter: w}
		w = counted
		defer func() {
			if !c.handedOver() {
				log.call(c, counted.code(), counted.bytes)
			}
		}()
	}
	defer s.logCall(c)
	conn := connOf(r.Context())
	s.crossOrigin(w, r, e)
	var a *access
	var refusal *connect.Error
	asked := s.isPreflight(r)
	if !asked {
		a, refusal = s.admit(c, conn, r)
	}
	if a == nil {
		s.conns.touch(conn)
		defer s.crowd.leave(s.crowd.enter(w))
	} else {
		c.access = a
		defer func() {
			s.memory.give(a.who, requestCost)
			s.conns.end(conn)
		}()
	}
	switch {
	case asked:
		s.preflight(w, r, c)
	case refusal != nil:
		s.hurry(w, r)
		s.refuse(w, r, c, refusal)
	case e == nil:
		s.serveOther(w, r)
	default:
		s.serveEndpoint(w, r, c)
	}
	if r.ProtoMajor == 2 {
		// A client that takes no answers must not make requests pile up behind their
		// handlers, where nobody counts them.
		_ = http.NewResponseController(w).Flush() // the client may be gone
	}
}

// admit finds out who a request comes from, and takes requestCost of memory and a busy connection
// for it. It returns nil if it has taken nothing: the request is for health, or refused.
func (s *Server) admit(c *call, conn *conn, r *http.Request) (*access, *connect.Error) {
	e := c.endpoint
	if s.o.Keys == nil {
		if err := s.checkOrigin(r); err != nil {
			return nil, refused(connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN, err)
		}
	}
	role := kujiv1.Role_ROLE_READ // of /metrics
	switch {
	case e != nil && e.open, e == nil && isHealthPath(r.URL.Path):
		return nil, nil
	case e != nil:
		role = e.role
	case r.URL.Path != metricsPath:
		return nil, refused(connect.CodeUnimplemented, kujiv1.Reason_REASON_NOT_FOUND,
			fmt.Errorf("there is nothing at %.100q", r.URL.Path))
	}
	a, refusal := s.authorize(r, conn, role)
	if a != nil {
		c.key = a.name
	}
	if refusal == nil && e == nil && !a.unrestricted() {
		refusal = refused(connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN, errWhole)
	}
	if refusal == nil {
		refusal = s.checkRate(a)
	}
	if refusal != nil {
		return nil, refusal
	}
	if !s.conns.begin(conn, a.who) {
		return nil, s.overloaded(a.who, s.conns.busy, "connections are busy")
	}
	if !s.memory.take(a.who, requestCost) {
		s.conns.end(conn)
		return nil, s.noMemory(a.who)
	}
	return a, nil
}

// serveEndpoint answers a call. The body of a unary call arrives before the call counts as one: a
// client that sends half of it keeps others from nothing.
func (s *Server) serveEndpoint(w http.ResponseWriter, r *http.Request, c *call) {
	e, who := c.endpoint, c.access.who
	if ce := e.wrongType(r); ce != nil {
		s.hurry(w, r)
		s.refuseType(w, c, ce)
		return
	}
	b := &body{who: who}
	if e.bidi {
		s.hurry(w, r) // Connect refuses it over HTTP/1.1
	} else {
		defer s.free(b)
		if err := s.receive(b, r, e.limit); err != nil {
			if err.Code() != connect.CodeInvalidArgument { // a broken body has no rest
				s.hurry(w, r)
			}
			c.received = int64(len(b.data))
			s.refuse(w, r, c, err)
			return
		}
	}
	c.arrived, c.received = time.Now(), int64(len(b.data))
	if s.o.Cluster != nil && !e.exempt {
		s.serveShared(w, r, c, b)
		return
	}
	s.serveAdmitted(w, received(r, b), c)
}

// serveAdmitted answers a call whose body has arrived, when there is a place for it.
func (s *Server) serveAdmitted(w http.ResponseWriter, r *http.Request, c *call) {
	e, who := c.endpoint, c.access.who
	if !e.exempt {
		if !s.calls.take(who, 1) {
			s.refuse(w, r, c, s.overloaded(who, s.calls, "calls are being answered"))
			return
		}
		defer s.calls.give(who, 1)
	}
	if e.streams != nil {
		if !e.streams.take(who, 1) {
			s.refuse(w, r, c, s.overloaded(who, e.streams, "streams are open"))
			return
		}
		defer e.streams.give(who, 1)
	}
	if e.turns != nil && r.Context().Value(turnKey{}) == nil {
		// A turn ends at the latest when the answer can be sent no more.
		ctx, cancel := context.WithDeadline(r.Context(), c.start.Add(s.o.Limits.WriteTimeout))
		defer cancel()
		r = r.WithContext(ctx)
		if err := e.turns.wait(ctx, who, 1); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				s.refuse(w, r, c, s.overloaded(who, e.turns, "calls of its kind are carried out"))
				return
			}
			c.reached, c.code = true, connect.CodeCanceled // the client is gone
			return
		}
		defer e.turns.give(who, 1)
	}
	s.serveCall(w, r, c)
}

func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, c *call) {
	e := c.endpoint
	defer func() { s.giveWork(c.access.who, c.work) }() // the answer is sent
	defer func() {
		c.ended = true
		if e.streams == nil { // the batches of a stream are measured one by one
			c.took = time.Since(c.arrived)
		}
		if p := recover(); p != nil {
			// The interceptor catches panics of handlers, where the client can still be
			// told. This one was in decoding or encoding.
			if p != http.ErrAbortHandler { //nolint:errorlint // net/http compares like this
				s.logPanic(e.procedure, p)
			}
			c.reached, c.code = true, connect.CodeInternal
			e.metrics.done(c.label(), c.took)
			panic(http.ErrAbortHandler)
		}
		if !c.handedOver() {
			e.metrics.done(c.label(), c.took)
		}
	}()
	if r.Method == http.MethodGet {
		w.Header().Set("Cache-Control", "no-store")
	}
	if e.streams != nil {
		c.w = w
	}
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	if e.bidi && s.o.AccessLog != nil {
		r.Body = countedBody{r.Body, &c.received}
	}
	e.handler.ServeHTTP(w, r)
}

// checkOrigin protects a server that asks for no key from web pages.
func (s *Server) checkOrigin(r *http.Request) error {
	if !s.hostAllowed(r.Host) {
		return fmt.Errorf("host %q: a server without API keys answers to loopback names only", r.Host)
	}
	return s.origin.Check(r)
}

// authorize finds out who a request comes from. It refuses who has no key or token (then the access is
// nil), and who may do nothing of a role.
func (s *Server) authorize(r *http.Request, conn *conn, want kujiv1.Role) (*access, *connect.Error) {
	if s.o.Keys == nil {
		return anybody, nil
	}
	secret, asked := secretOf(r.Header), false
	if secret == "" && r.URL.Path == eventsPath {
		secret, asked = r.URL.Query().Get(tokenParameter), true
	}
	const want401 = "want a valid API key or player token in the header Authorization: Bearer KEY, or X-Api-Key: KEY"
	a, refusal := s.find(r.Context(), conn, r.RemoteAddr, secret, want401)
	switch {
	case refusal != nil:
		return nil, refusal
	case asked && a.player == "":
		return nil, badSecret(want401, unsigned("an API key stands in the URL, where only a player's token may be"))
	}
	if !a.may(want) {
		return a, refused(connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN,
			fmt.Errorf("the key %q may %v, and this is for keys with %v", a.name, a.can, neededFor(want)))
	}
	return a, nil
}

// neededFor returns the commands of which a role wants at least one.
func neededFor(r kujiv1.Role) commands {
	switch r {
	case kujiv1.Role_ROLE_READ:
		return canRead
	case kujiv1.Role_ROLE_WRITE:
		return canWrite
	}
	return canAdmin
}

// refused returns the error of a request that is refused for a reason of the contract.
func refused(code connect.Code, reason kujiv1.Reason, cause error) *connect.Error {
	return withDetail(connect.NewError(code, cause), &kujiv1.ErrorDetail{Reason: reason})
}

// overloaded returns the error of a request that would take more of a budget than is left for its
// caller.
func (s *Server) overloaded(who caller, b *budget, what string) *connect.Error {
	used, mine, total := b.holdings(who)
	text := fmt.Errorf("%d %s and the limit is %d: try again later", used, what, total)
	if mine < used {
		text = fmt.Errorf("%d %s, %d of them for this key, and the limit is %d: try again later", used, what, mine, total)
	}
	return refused(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED, text)
}

func (s *Server) noMemory(who caller) *connect.Error {
	return s.overloaded(who, s.memory, "bytes of memory are in use for requests")
}

// refuse answers a request without its handler, in the client's protocol.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, c *call, ce *connect.Error) {
	metrics := s.metrics.unrouted
	if c.endpoint != nil {
		metrics = c.endpoint.metrics
	}
	c.failed, c.code = ce, ce.Code()
	c.reached = len(ce.Details()) > 0 // otherwise receive could not read it
	metrics.done(c.label(), 0)
	if ce.Code() == connect.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="kuji"`)
	}
	if err := s.errors.Write(w, r, ce); err != nil {
		s.log.Debug("writing an error failed", "error", err)
	}
}

// unaryTypes and streamTypes are what bodies of calls can be.
var (
	unaryTypes  = []string{"application/json", "application/proto", "application/grpc", "application/grpc+proto", "application/grpc+json", "application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json"}
	streamTypes = append([]string{"application/connect+json", "application/connect+proto"}, unaryTypes[2:]...)
)

// wrongType refuses a body of a type that Connect does not take. It would do so without a word.
func (e *endpoint) wrongType(r *http.Request) *connect.Error {
	if e.types == nil || r.Method != http.MethodPost || e.bidi && r.ProtoMajor < 2 { // Connect refuses the latter with HTTP 505
		return nil
	}
	got := r.Header.Get("Content-Type")
	name, _, _ := strings.Cut(got, ";")
	if slices.Contains(e.types, strings.ToLower(strings.TrimSpace(name))) {
		return nil
	}
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the header Content-Type is %.80q, want one of %s", got, strings.Join(e.types, ", ")))
}

// refuseType answers HTTP 415, as Connect does, in JSON: what the client speaks is not known.
func (s *Server) refuseType(w http.ResponseWriter, c *call, ce *connect.Error) {
	c.failed, c.code = ce, ce.Code()
	c.endpoint.metrics.done(c.label(), 0)
	w.Header().Set("Accept-Post", strings.Join(c.endpoint.types, ", "))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnsupportedMediaType)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": ce.Code().String(), "message": ce.Message()}) // the client may be gone
}

func (s *Server) logPanic(procedure string, p any) {
	s.log.Error("panic while answering", "procedure", procedure, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}
