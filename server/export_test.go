package server

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
	"github.com/kuji-dev/kuji/server/internal/feeds"
	"github.com/kuji-dev/kuji/server/internal/message"
	"github.com/kuji-dev/kuji/server/internal/redis"
)

// What the tests of this package see of its inside.
var (
	Contract = contract.Services

	EndFramedTwice = endFramedTwice
	StatusProto    = message.Status
	EventProto     = message.Event
)

func NewWithContract(e *kuji.Engine, o Options, services []protoreflect.ServiceDescriptor) (*Server, error) {
	return newServer(e, o, services)
}

func CodeAnswers() map[kuji.Code]connect.Code {
	out := make(map[kuji.Code]connect.Code)
	for c, a := range message.Answers {
		out[c] = a.Code
	}
	return out
}

func (s *Server) ConnectError(err error, request any) *connect.Error {
	return s.journal.answer(err, request)
}

// RoleOf is the role that an endpoint asks for, by path; ROLE_UNSPECIFIED for open ones.
func (s *Server) RoleOf() map[string]kujiv1.Role {
	out := make(map[string]kujiv1.Role)
	for path, e := range s.routes.endpoints {
		out[path] = e.role
		if e.open {
			out[path] = kujiv1.Role_ROLE_UNSPECIFIED
		}
	}
	return out
}

// Replace puts another handler behind an endpoint, inside all of its guards.
func (s *Server) Replace(path string, h http.Handler) {
	s.routes.endpoints[path].handler = h
}

// Intercepted is a unary handler with the options of the server's own.
func Intercepted[Req, Res any](s *Server, path string, f func(*connect.Request[Req]) (*connect.Response[Res], error)) http.Handler {
	return connect.NewUnaryHandler(path, func(_ context.Context, r *connect.Request[Req]) (*connect.Response[Res], error) { return f(r) }, s.handlerOptions())
}

func (s *Server) InFlight() int { return int(used(s.gate.Calls)) }
func (s *Server) InBulk() int   { return int(used(s.gate.Bulk)) }
func (s *Server) InWork() int64 { return used(s.gate.Work) }

// Waiting is how many calls wait for memory of results and answers.
func (s *Server) Waiting() int { return Budget{s.gate.Work}.Waiting() }

// WorkOf is what the results and the answer of a unary call may take, in bytes.
func WorkOf(m proto.Message) int64 { return max(admission.SmallWork, message.Work(m)) }

// RequestMemory is how many bytes requests hold.
func (s *Server) RequestMemory() int64 { return used(s.gate.Memory) }

// Crowd is how many requests without a key have a place.
func (s *Server) Crowd() int {
	return s.gate.Crowd.Len()
}

// Connections is how many connections have a place.
func (s *Server) Connections() int {
	return s.gate.Conns.Len()
}

// ConnectionLimit is how many connections a limit on open files leaves.
func ConnectionLimit(want int, files uint64, realms int) int {
	return (&admission.Descriptors{Want: want}).Limit(files, realms)
}

// Budget is a budget of callers with numbers.
type Budget struct{ *admission.Budget }

func NewBudget(total int64, shared bool) Budget { return Budget{admission.NewBudget(total, shared)} }
func (b Budget) Take(who byte, n int64) bool    { return b.Budget.Take(numbered(who), n) == nil }
func (b Budget) Give(who byte, n int64)         { b.Budget.Give(numbered(who), n) }
func (b Budget) Held(who byte) int64            { _, mine, _, _ := b.Budget.Holdings(numbered(who)); return mine }
func (b Budget) Used() int64                    { return used(b.Budget) }
func (b Budget) Waiting() int                   { _, _, _, n := b.Budget.Holdings(numbered(0)); return n }

func (b Budget) Wait(ctx context.Context, who byte, n int64) error {
	return b.Budget.Wait(ctx, numbered(who), n)
}

func numbered(who byte) access.Caller { return access.Caller{Hash: [sha256.Size]byte{who}} }

func used(b *admission.Budget) int64 {
	n, _, _, _ := b.Holdings(access.Caller{})
	return n
}

// Codecs are the server's codecs by name.
func Codecs() map[string]connect.Codec {
	return map[string]connect.Codec{"proto": binary, "json": inJSON("json")}
}

// Drain turns readiness off, as Shutdown does first.
func (s *Server) Drain() { s.draining.Store(true) }

func WithDefaults(l Limits) (Limits, error) { return l.withDefaults() }

// FailRealms makes every realm look as if it had stopped. Not for a server in use.
func (s *Server) FailRealms(err error) {
	s.realms.err = func(*kuji.Realm) error { return err }
}

// Decompressed is how much the server decompresses of data for an RPC that
// allows max bytes.
func Decompressed(data io.Reader, max int64) (int64, error) {
	z := &boundedGzip{max: max}
	if err := z.Reset(data); err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, z)
}

// RunStream serves a stream whose messages come from and go to conn.
func (s *Server) RunStream(ctx context.Context, conn connect.StreamingHandlerConn, w http.ResponseWriter) error {
	c := &call{endpoint: s.routes.endpoints[kujiv1connect.RewardServiceStreamDrawsProcedure], answer: answer{ResponseWriter: w}, access: access.Anybody}
	c.answer.c = c
	rewards, _, _ := s.services()
	return rewards.draws.serve(ctx, c, conn)
}

// StreamError is err as a stream returns it.
func StreamError(err error, named bool) error { return &streamError{err, named} }

// Miscount is why a codec left a request empty.
var Miscount = miscount

// CountMessages is how many messages within a request are counted.
func CountMessages(json bool, data []byte, m proto.Message) int {
	c := jsonCounter{data: data}
	count := c.json
	if !json {
		count = func(desc protoreflect.MessageDescriptor) error { return c.binary(data, desc) }
	}
	if err := count(m.ProtoReflect().Descriptor()); err != nil {
		return -1
	}
	return c.messages
}

// CheckCounts fails if a list of a request has no limit.
var CheckCounts = checkCounts

// DrawsOf is what the engine is asked for by a batch of a stream.
func DrawsOf(m *kujiv1.StreamDrawsRequest) ([]kuji.Draw, error) {
	var b message.Draws
	proto.Merge(&b.Request, m)
	err := b.Build()
	all := make([]kuji.Draw, 0, len(b.Requests))
	for _, r := range b.Requests {
		all = append(all, *r.(*kuji.Draw))
	}
	return all, err
}

// DrawsResponse is the answer to a batch of a stream.
func DrawsResponse(draws []kuji.Draw, results []kuji.Result) *kujiv1.StreamDrawsResponse {
	return message.DrawsResponse(draws, results)
}

// CheckClocks is what the server does every minute.
func (s *Server) CheckClocks() {
	(&watcher{s.realms, s.journal.log, map[string]windowSaid{}}).checkClocks()
}

// WindowChecks returns what the server does every five seconds.
func (s *Server) WindowChecks() (check func()) {
	return (&watcher{s.realms, s.journal.log, map[string]windowSaid{}}).checkWindows
}

// SetRateClock sets the clock of rates, before the first request.
func (s *Server) SetRateClock(now func() time.Time) { s.gate.Rates.Now = now }

// KeepEvent filters a record as a stream of events does.
func KeepEvent(rec *kuji.Record, player, pool string, bare bool) bool {
	return (&feeds.Filter{Player: player, Pool: pool, Bare: bare}).Keep(rec)
}

// SetLogClock sets the clock that bounds the lines of logs.
func (s *Server) SetLogClock(now func() time.Time) {
	s.journal.slow.now, s.journal.refusals.now = now, now
	if s.o.AccessLog != nil {
		s.o.AccessLog.strangers.now = now
	}
}

// Add adds a line with a text.
func (a *AccessLog) Add(line string) {
	a.add(time.Now(), slog.String("x", line))
}

// LogAllocs is how often the logging of an answered call allocates.
func (s *Server) LogAllocs() float64 {
	request := &kujiv1.DrawRequest{Player: "ann"}
	c := &call{endpoint: s.routes.endpoints[kujiv1connect.RewardServiceDrawProcedure], access: access.Anybody, reached: true, ended: true, took: time.Millisecond}
	return testing.AllocsPerRun(100, func() {
		c.realm = ""
		c.about(request)
		c.method = methodOf(c.endpoint, "")
		s.journal.call(c)
	})
}

// MetricsText is what a scrape returns.
func (s *Server) MetricsText() string {
	w := httptest.NewRecorder()
	s.metrics.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, metricsPath, nil))
	return w.Body.String()
}

// PoolMetrics returns how many samples each metric of pools has, if so many pools have their own.
func (s *Server) PoolMetrics(most int) (map[string]int, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(poolSamples(s.realms, most)); err != nil {
		return nil, err
	}
	families, err := registry.Gather()
	out := map[string]int{}
	for _, f := range families {
		out[f.GetName()] = len(f.GetMetric())
	}
	return out, err
}

// RedisCommands are the commands of the Redis protocol, and whether each is for the engine: the
// others say something of the connection.
func RedisCommands() map[string]bool {
	out := make(map[string]bool)
	for name := range redis.Usage() {
		out[name] = !slices.Contains(strings.Fields("MULTI EXEC DISCARD REALM AUTH HELLO PING ECHO SELECT INFO CLIENT COMMAND QUIT"), name)
	}
	return out
}

// RedisUsage is the commands and their arguments.
func RedisUsage() map[string]string { return redis.Usage() }

// RedisKind is the first word of an error with a reason of the API.
var RedisKind = redis.Kind

// ParseCommand reads a command of the Redis protocol.
var ParseCommand = redis.ParseCommand

// RedisBuffer is the room for commands before AUTH.
const RedisBuffer = redis.Buffer

// RedisConnections is how many connections of the Redis protocol there are.
func (s *Server) RedisConnections() int { return s.redis.Len() }

// HoldCalls takes all calls that there may be, until release is called.
func (s *Server) HoldCalls() (release func()) {
	n := s.gate.Calls.Most()
	if s.gate.Calls.Take(numbered(9), n) != nil {
		panic("calls are being answered")
	}
	return func() { s.gate.Calls.Give(numbered(9), n) }
}

// HoldMemory takes the memory for requests but for some bytes, until release is called.
func (s *Server) HoldMemory(left int64) (release func()) {
	n := s.gate.Memory.Most() - left
	if s.gate.Memory.Take(numbered(9), n) != nil {
		panic("memory is in use")
	}
	return func() { s.gate.Memory.Give(numbered(9), n) }
}

// HoldChecks takes all turns in which tokens from an address can be checked, until release is called.
func (s *Server) HoldChecks(address string) (release func()) {
	from, b := admission.AddressOf(address), s.gate.Checks
	n := b.Most()
	if b.Take(from, n) != nil {
		panic("tokens are being checked")
	}
	return func() { b.Give(from, n) }
}

// WaitingChecks is how many tokens of strangers are checked, or wait for it.
func (s *Server) WaitingChecks() int64 { return used(s.gate.Tokens) }

// hold takes all that one caller can have of a budget, and what is then left.
func hold(b *admission.Budget) (release func()) { return holdBy(b, 1) }

// holdBy is hold, by so much at a time.
func holdBy(b *admission.Budget, n int64) (release func()) {
	var all []access.Caller
	for one := numbered(9); b.Take(one, n) == nil; one.Hash[1]++ {
		all = append(all, one)
		for b.Take(one, n) == nil {
			all = append(all, one)
		}
	}
	return func() {
		for _, one := range all {
			b.Give(one, n)
		}
	}
}

// HoldOdds takes all turns of odds, and HoldBulk those of batches, until release is called.
func (s *Server) HoldOdds() (release func()) { return hold(s.gate.Odds) }
func (s *Server) HoldBulk() (release func()) { return hold(s.gate.Bulk) }

// WaitingOdds is how many odds wait for their turn.
func (s *Server) WaitingOdds() int { return Budget{s.gate.Odds}.Waiting() }

// OddsAtOnce is oddsAtOnce.
const OddsAtOnce = oddsAtOnce

// Refusing is the budgets that refuse what is not left, by what they are of.
func (s *Server) Refusing(realm string) map[string]Budget {
	return map[string]Budget{
		"memory": {s.gate.Memory}, "calls": {s.gate.Calls}, "streams of draws": {s.gate.Streams}, "streams of events": {s.gate.Feeds},
		"busy connections": {s.gate.Conns.Busy}, "readers": {s.feeds.Readers(realm)},
	}
}

// Part is a small part of a budget.
func (b Budget) Part() int64 { return max(1, b.Total()/256) }

// FillUp takes all parts that callers who are no operators can have.
func (b Budget) FillUp() (release func()) { return holdBy(b.Budget, b.Part()) }

// Total is how much there is.
func (b Budget) Total() int64 { _, _, n, _ := b.Holdings(access.Caller{Operator: true}); return n }

// TakeAsOperator is Take for an operator.
func (b Budget) TakeAsOperator(n int64) bool {
	return b.Budget.Take(access.Caller{Operator: true}, n) == nil
}

// HoldReads takes all turns of readers of old events until release is called.
func (s *Server) HoldReads() (release func()) { return hold(s.gate.Reads) }

// WaitingReads is how many of them wait, and InReads how many turns are taken.
func (s *Server) WaitingReads() int { return Budget{s.gate.Reads}.Waiting() }
func (s *Server) InReads() int      { return int(used(s.gate.Reads)) }

// Slowest is what remembers slow calls.
type Slowest struct{ s slowest }

// NewSlowest returns one that remembers none yet.
func NewSlowest() *Slowest { return &Slowest{} }

// Note notes a call.
func (s *Slowest) Note(method string, start time.Time, took time.Duration) {
	s.s.note(&call{start: start, took: took, reached: true, logged: logged{method: method}})
}

// List returns the slowest calls.
func (s *Slowest) List(at time.Time) []*kujiv1.SlowCall { return s.s.list(at) }
