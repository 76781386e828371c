package server

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

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
	procedure string              // "/package.Service/Method", the path
	role      kujiv1.Role         // the least role that may call it; ROLE_UNSPECIFIED only if open
	open      bool                // anybody may call it without a key
	exempt    bool                // needs nothing of the engine: answered under any load
	places    []*admission.Budget // it takes one of each
	turns     *admission.Budget   // its requests or answers can be large, so they take turns; nil if they cannot
	stream    bool                // its body, or its answer, is a stream of messages
	bidi      bool                // its body is
	get       bool                // it also works with GET
	types     []string            // that its body can be of; nil: the handler says
	limit     int64               // of a request's body, in bytes; not if bidi
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
	endpoints    map[string]*endpoint // by path
	errors       *connect.ErrorWriter
	requestBytes int64 // the limit of most messages
}

// limit returns the limit for request messages of an RPC, in bytes.
func (r *routes) limit(path string) int64 {
	if e := r.endpoints[path]; e != nil && e.limit > 0 {
		return e.limit
	}
	return r.requestBytes
}

// handlerOptions are the options of every RPC.
func (s *Server) handlerOptions() connect.HandlerOption {
	return connect.WithHandlerOptions(
		codecs,
		connect.WithInterceptors(append(slices.Clone(s.o.Interceptors), &interceptor{s.shares, s.gate, s.journal})...),
		connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
			compress := connect.WithCompressMinBytes(compressFrom)
			if spec.IdempotencyLevel != connect.IdempotencyNoSideEffects {
				compress = connect.WithCompressMinBytes(math.MaxInt)
			}
			return []connect.HandlerOption{compress, readLimits(s.routes.limit(spec.Procedure))}
		}),
	)
}

// special are the RPCs that need more than a place among the calls. What can be large takes turns.
func special(g *admission.Gate, l *Limits) map[string]*endpoint {
	place := func(b *admission.Budget) []*admission.Budget { return []*admission.Budget{b} }
	batch := int64(l.BatchBytes)
	return map[string]*endpoint{
		kujiv1connect.RewardServiceAtomicProcedure:        {turns: g.Bulk, limit: batch},
		kujiv1connect.RewardServiceBatchProcedure:         {turns: g.Bulk, limit: batch},
		kujiv1connect.AdminServiceImportCodesProcedure:    {turns: g.Bulk, limit: batch},
		kujiv1connect.RewardServiceExportCatalogProcedure: {turns: g.Bulk},
		kujiv1connect.RewardServiceGetOddsProcedure:       {turns: g.Odds},
		kujiv1connect.RewardServiceGetDisclosureProcedure: {turns: g.Odds},
		kujiv1connect.AdminServiceApplyCatalogProcedure:   {turns: g.Catalogs, limit: int64(l.CatalogBytes)},
		kujiv1connect.AdminServiceSimulateProcedure:       {turns: g.Trials, limit: int64(l.CatalogBytes)},
		kujiv1connect.AdminServiceProposeCatalogProcedure: {turns: g.Catalogs, limit: int64(l.CatalogBytes)},
		kujiv1connect.AdminServiceApproveCatalogProcedure: {turns: g.Catalogs},
		kujiv1connect.AdminServiceGetProposalProcedure:    {turns: g.Catalogs},
		kujiv1connect.RewardServiceGetHistoryProcedure:    {turns: g.History},
		kujiv1connect.RewardServiceListPlayersProcedure:   {turns: g.History},
		kujiv1connect.RewardServiceListHoldersProcedure:   {turns: g.History},
		kujiv1connect.RewardServiceListCatalogsProcedure:  {turns: g.History},
		kujiv1connect.RewardServiceGetEpochProcedure:      {turns: g.History},
		kujiv1connect.RewardServiceStreamDrawsProcedure:   {places: place(g.Streams), limit: batch},
		kujiv1connect.RewardServiceStreamEventsProcedure:  {places: place(g.Feeds)},
		kujiv1connect.AdminServiceBackupProcedure:         {places: place(g.Feeds)},
		feeds.Path: {places: place(g.Feeds), stream: true, role: kujiv1.Role_ROLE_READ},
	}
}

// mount makes the table of endpoints: the contract's services with the roles that they declare,
// health, open because load balancers have no keys, and reflection, for the role read.
func (s *Server) mount(services []protoreflect.ServiceDescriptor) error {
	roles, err := contract.Roles(services)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if err := checkCounts(services); err != nil {
		return err
	}
	all := special(s.gate, &s.o.Limits)
	s.routes = routes{endpoints: all, errors: connect.NewErrorWriter(codecs), requestBytes: int64(s.o.Limits.RequestBytes)}
	options := s.handlerOptions()
	rewards, admins, events := s.services()
	all[feeds.Path].handler = events
	handlers := make(map[string]http.Handler) // by "/package.Service/"
	handle := func(path string, h http.Handler) { handlers[path] = h }
	handle(kujiv1connect.NewRewardServiceHandler(rewards, options))
	handle(kujiv1connect.NewAdminServiceHandler(admins, options))
	handle(kujiv1connect.NewChatServiceHandler(s.chats, options))

	names := make([]string, 0, len(services))
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
			case all[path] == nil:
				all[path] = &endpoint{}
			}
			e := all[path]
			e.role, e.handler, e.types, e.bidi = roles[path], handlers[in], unaryTypes, m.IsStreamingClient()
			if e.stream = e.bidi || m.IsStreamingServer(); e.stream {
				e.types = streamTypes
			}
			o, _ := m.Options().(*descriptorpb.MethodOptions)
			e.get = o.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
		}
	}
	path, h := grpchealth.NewHandler(&health{s: s, services: names}, options)
	for _, method := range []string{"Check", "Watch"} {
		all[path+method] = &endpoint{open: true, exempt: true, handler: h, limit: admission.BodyStep - framing - 1} // in the memory that every request has
	}
	reflector := grpcreflect.NewStaticReflector(append(names, grpchealth.HealthV1ServiceName)...)
	for _, newHandler := range []func(*grpcreflect.Reflector, ...connect.HandlerOption) (string, http.Handler){
		grpcreflect.NewHandlerV1, grpcreflect.NewHandlerV1Alpha,
	} {
		path, h := newHandler(reflector, options)
		all[path+"ServerReflectionInfo"] = &endpoint{role: kujiv1.Role_ROLE_READ, exempt: true, bidi: true, handler: h}
	}
	for path, e := range all {
		e.procedure, e.metrics, e.limit = path, s.metrics.rpc(path), s.routes.limit(path)+framing
		if !e.exempt {
			e.places = append([]*admission.Budget{s.gate.Calls}, e.places...)
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
	if e.get && r.Method == http.MethodGet {
		if got := r.URL.Query().Get("encoding"); got != "json" && got != "proto" {
			return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("encoding in the query is %.80q, want json or proto", got))
		}
	}
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
	names
	reads
	catalogs
	past
	*draws
	*events
	rights
}

// adminService implements kujiv1connect.AdminServiceHandler.
type adminService struct {
	*commands
	corrections
	admin
	catalogs
	proposals
	codes
	*events
	rights
}

// DeleteRealm deletes a realm, and what was counted in it.
func (s adminService) DeleteRealm(ctx context.Context, req *kujiv1.DeleteRealmRequest) (*kujiv1.DeleteRealmResponse, error) {
	resp, err := s.admin.DeleteRealm(ctx, req)
	if err == nil {
		s.granted.Forget(req.GetRealm())
	}
	return resp, err
}

// services makes what answers the two services, browsers that ask for events, and Redis clients.
func (s *Server) services() (rewardService, adminService, http.Handler) {
	granted := &access.Granted{Keys: s.o.Keys, Stopping: s.stopping}
	c := &commands{granted, s.metrics}
	cat := catalogs{s.o.Logger, s.o.Simulator, &published{}}
	e := &events{s.shares, s.feeds, s.journal, &s.routes}
	d := &draws{limits: &s.o.Limits, keys: s.o.Keys, stopping: s.stopping, gate: s.gate, shares: s.shares, metrics: s.metrics, journal: s.journal}
	l := &s.o.Limits
	s.redis = (&redis.Server{
		Backend: newRedisBackend(c, s.shares, s.journal, s.metrics),
		Gate:    s.gate, Keys: s.o.Keys, TLS: s.o.TLS, Stopping: s.stopping, Version: s.o.Version,
		Limits: redis.Limits{RequestBytes: l.RequestBytes, BatchBytes: l.BatchBytes,
			HeaderTimeout: l.HeaderTimeout, ReadTimeout: l.ReadTimeout, WriteTimeout: l.WriteTimeout, IdleTimeout: l.IdleTimeout},
	}).Init()
	may := rights{s.o.Keys, s.o.Version, &kujiv1.Features{
		History: s.o.History != nil, Cluster: s.o.Cluster != nil, Chat: len(s.o.Chats) > 0, TestClock: s.o.TestClock != nil,
		Simulate: s.o.Simulator != nil,
	}}
	return rewardService{c, names{c}, reads{}, cat, past{s.o.History}, d, e, may},
		adminService{c, corrections{c}, admin{s.realms, s.files, s.o.Logger, s.o.Cluster, s.o.TestClock, s.o.Version, &s.draining, &s.journal.slowest}, cat, proposals{s.o.Logger}, codes{}, e, may}, http.HandlerFunc(e.serve)
}
