package server

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
	"github.com/kuji-dev/kuji/server/internal/feeds"
	"github.com/kuji-dev/kuji/server/internal/redis"
)

// endpoint is what the server knows of an RPC before it reads a byte of a body.
type endpoint struct {
	procedure string            // "/package.Service/Method", the path
	role      kujiv1.Role       // the least role that may call it; ROLE_UNSPECIFIED only if open
	open      bool              // anybody may call it without a key
	exempt    bool              // needs nothing of the engine: answered under any load
	turns     *admission.Budget // its requests or answers can be large, so they take turns; nil if they cannot
	streams   *admission.Budget // of which a stream takes one; nil if it is none
	bidi      bool              // its body is a stream of messages
	types     []string          // that its body can be of; nil: the handler says
	limit     int64             // of a request's body, in bytes; not if bidi
	handler   http.Handler
	metrics   *rpcMetrics
}

// compressFrom is the size in bytes from which the answer to a read is compressed, if the client
// accepts that. Answers to commands never are: compressing one costs more than the draw.
const compressFrom = 32 << 10

// framing is what a request's body may contain in addition to the message, in bytes: gRPC's prefix.
const framing = 16

// routes is what the server answers.
type routes struct {
	endpoints map[string]*endpoint // by path
	errors    *connect.ErrorWriter
}

// handlerOptions are the options of every RPC.
func (s *Server) handlerOptions() connect.HandlerOption {
	l := &s.o.Limits
	return connect.WithHandlerOptions(
		codecs,
		connect.WithInterceptors(append(slices.Clone(s.o.Interceptors), &interceptor{s.shares, s.gate, s.journal})...),
		connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
			compress := connect.WithCompressMinBytes(compressFrom)
			if spec.IdempotencyLevel != connect.IdempotencyNoSideEffects {
				compress = connect.WithCompressMinBytes(math.MaxInt)
			}
			return []connect.HandlerOption{compress, readLimits(l.message(spec.Procedure))}
		}),
	)
}

// turns returns the turns of RPCs whose requests or answers can be large, by path.
func turns(g *admission.Gate) map[string]*admission.Budget {
	return map[string]*admission.Budget{
		kujiv1connect.RewardServiceAtomicProcedure:        g.Bulk,
		kujiv1connect.RewardServiceBatchProcedure:         g.Bulk,
		kujiv1connect.AdminServiceImportCodesProcedure:    g.Bulk,
		kujiv1connect.RewardServiceExportCatalogProcedure: g.Bulk,
		kujiv1connect.RewardServiceGetOddsProcedure:       g.Odds,
		kujiv1connect.AdminServiceApplyCatalogProcedure:   g.Catalogs,
		kujiv1connect.RewardServiceGetHistoryProcedure:    g.History,
		kujiv1connect.RewardServiceListPlayersProcedure:   g.History,
		kujiv1connect.RewardServiceListHoldersProcedure:   g.History,
		kujiv1connect.RewardServiceListCatalogsProcedure:  g.History,
	}
}

// streams returns the places of RPCs that are streams, by path.
func streams(g *admission.Gate) map[string]*admission.Budget {
	return map[string]*admission.Budget{
		kujiv1connect.RewardServiceStreamDrawsProcedure:  g.Streams,
		kujiv1connect.RewardServiceStreamEventsProcedure: g.Feeds,
		kujiv1connect.AdminServiceBackupProcedure:        g.Feeds,
	}
}

// mount makes the table of endpoints: the contract's services with the roles that they declare,
// health, and reflection. Health is open because load balancers have no keys. Reflection needs the
// role read.
func (s *Server) mount(services []protoreflect.ServiceDescriptor) error {
	roles, err := contract.Roles(services)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if err := checkCounts(services); err != nil {
		return err
	}
	options := s.handlerOptions()
	s.routes.errors = connect.NewErrorWriter(codecs)
	rewards, admins, events := s.services()
	handlers := make(map[string]http.Handler) // by "/package.Service/"
	handle := func(path string, h http.Handler) { handlers[path] = h }
	handle(kujiv1connect.NewRewardServiceHandler(rewards, options))
	handle(kujiv1connect.NewAdminServiceHandler(admins, options))

	all := make(map[string]*endpoint)
	s.routes.endpoints = all
	names, turns, streams := make([]string, 0, len(services)), turns(s.gate), streams(s.gate)
	for _, service := range services {
		names = append(names, string(service.FullName()))
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			in := "/" + string(service.FullName()) + "/"
			path := in + string(m.Name())
			switch {
			case handlers[in] == nil:
				return fmt.Errorf("server: nothing serves %s", path)
			case !access.Known(m.Input().FullName()):
				return fmt.Errorf("server: nothing says who may call %s: see package access", path)
			}
			e := &endpoint{role: roles[path], handler: handlers[in], types: unaryTypes, turns: turns[path], streams: streams[path], bidi: m.IsStreamingClient()}
			if m.IsStreamingClient() || m.IsStreamingServer() {
				e.types = streamTypes
			}
			all[path] = e
		}
	}
	all[feeds.Path] = &endpoint{role: kujiv1.Role_ROLE_READ, streams: s.gate.Feeds, handler: events}

	path, h := grpchealth.NewHandler(&health{s: s, services: names}, options)
	for _, method := range []string{"Check", "Watch"} {
		all[path+method] = &endpoint{open: true, exempt: true, handler: h}
	}
	reflector := grpcreflect.NewStaticReflector(append(names, grpchealth.HealthV1ServiceName)...)
	for _, newHandler := range []func(*grpcreflect.Reflector, ...connect.HandlerOption) (string, http.Handler){
		grpcreflect.NewHandlerV1, grpcreflect.NewHandlerV1Alpha,
	} {
		path, h := newHandler(reflector, options)
		all[path+"ServerReflectionInfo"] = &endpoint{role: kujiv1.Role_ROLE_READ, exempt: true, bidi: true, handler: h}
	}
	for path, e := range all {
		e.procedure, e.metrics = path, s.metrics.rpc(path)
		e.limit = int64(s.o.Limits.message(path)) + framing
		if e.open {
			e.limit = admission.BodyStep - 1 // in the memory that every request has
		}
	}
	return nil
}

// unit says what a stream's messages are made of.
func (e *endpoint) unit() string {
	if e.bidi {
		return "draws"
	}
	return "events"
}

// unaryTypes and streamTypes are what bodies of calls can be.
var (
	unaryTypes  = []string{"application/json", "application/proto", "application/grpc", "application/grpc+proto", "application/grpc+json", "application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json"}
	streamTypes = append([]string{"application/connect+json", "application/connect+proto"}, unaryTypes[2:]...)
)

// wrongType refuses a body of a type that Connect does not take, because Connect would not say why.
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

// rewardService implements kujiv1connect.RewardServiceHandler: each noun answers for itself.
type rewardService struct {
	*commands
	reads
	catalogs
	past
	*draws
	*events
}

// adminService implements kujiv1connect.AdminServiceHandler.
type adminService struct {
	*commands
	admin
	catalogs
	codes
	*events
}

// services makes what answers calls: the two services, and what answers browsers that ask for
// events. It also makes what answers Redis clients.
func (s *Server) services() (rewardService, adminService, http.Handler) {
	granted := &access.Granted{Keys: s.o.Keys, Stopping: s.stopping}
	c := &commands{granted, s.metrics}
	cat := catalogs{s.o.Logger}
	e := &events{s.shares, s.feeds, s.journal, &s.routes}
	d := &draws{limits: &s.o.Limits, keys: s.o.Keys, stopping: s.stopping, gate: s.gate, shares: s.shares, metrics: s.metrics, journal: s.journal}
	l := &s.o.Limits
	s.redis = (&redis.Server{
		Backend: newRedisBackend(c, s.shares, s.journal, s.metrics),
		Gate:    s.gate, Keys: s.o.Keys, TLS: s.o.TLS, Stopping: s.stopping, Version: s.o.Version,
		Limits: redis.Limits{RequestBytes: l.RequestBytes, BatchBytes: l.BatchBytes,
			HeaderTimeout: l.HeaderTimeout, ReadTimeout: l.ReadTimeout, WriteTimeout: l.WriteTimeout, IdleTimeout: l.IdleTimeout},
	}).Init()
	return rewardService{c, reads{}, cat, past{s.o.History}, d, e},
		adminService{c, admin{s.realms, s.files, s.o.Logger, s.o.Cluster, s.o.Version, &s.draining}, cat, codes{}, e}, http.HandlerFunc(e.serve)
}
