package server

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
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
)

// What the tests of this package see of its inside.
var (
	Contract = contract.Services

	EndFramedTwice = endFramedTwice
	StatusProto    = statusProto
)

func NewWithContract(e *kuji.Engine, o Options, services []protoreflect.ServiceDescriptor) (*Server, error) {
	return newServer(e, o, services)
}

func CodeAnswers() map[kuji.Code]connect.Code {
	out := make(map[kuji.Code]connect.Code)
	for c, a := range codeAnswers {
		out[c] = a.code
	}
	return out
}

func (s *Server) ConnectError(err error, request any) *connect.Error {
	return s.connectError(err, request)
}

// RoleOf is the role that an endpoint asks for, by path; ROLE_UNSPECIFIED for open ones.
func (s *Server) RoleOf() map[string]kujiv1.Role {
	out := make(map[string]kujiv1.Role)
	for path, e := range s.endpoints {
		out[path] = e.role
		if e.open {
			out[path] = kujiv1.Role_ROLE_UNSPECIFIED
		}
	}
	return out
}

// Replace puts another handler behind an endpoint, inside all of its guards.
func (s *Server) Replace(path string, h http.Handler) {
	s.endpoints[path].handler = h
}

// Intercepted is a unary handler with the options of the server's own.
func Intercepted[Req, Res any](s *Server, path string, f func(*connect.Request[Req]) (*connect.Response[Res], error)) http.Handler {
	return connect.NewUnaryHandler(path, func(_ context.Context, r *connect.Request[Req]) (*connect.Response[Res], error) { return f(r) }, s.handlerOptions())
}

func (s *Server) InFlight() int { return int(used(s.calls)) }
func (s *Server) InBulk() int   { return int(used(s.bulk)) }
func (s *Server) InWork() int64 { return used(s.work) }

// Waiting is how many calls wait for memory of results and answers.
func (s *Server) Waiting() int { return Budget{s.work}.Waiting() }

// WorkOf is what the results and the answer of a unary call may take, in bytes.
func WorkOf(m proto.Message) int64 { return max(smallWork, workOf(m)) }

// RequestMemory is how many bytes requests hold.
func (s *Server) RequestMemory() int64 { return used(s.memory) }

// Crowd is how many requests without a key have a place.
func (s *Server) Crowd() int {
	s.crowd.mu.Lock()
	defer s.crowd.mu.Unlock()
	return s.crowd.list.Len()
}

// Connections is how many connections have a place.
func (s *Server) Connections() int {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return s.conns.n
}

// ConnectionLimit is how many connections a limit on open files leaves.
func ConnectionLimit(want int, files uint64, realms int) int {
	return connectionLimit(want, files, realmDescriptors*realms)
}

// Budget is a budget of callers with numbers.
type Budget struct{ *budget }

func NewBudget(total int64, shared bool) Budget { return Budget{newBudget(total, shared)} }
func (b Budget) Take(who byte, n int64) bool    { return b.take(numbered(who), n) }
func (b Budget) Give(who byte, n int64)         { b.give(numbered(who), n) }
func (b Budget) Held(who byte) int64            { _, mine, _ := b.holdings(numbered(who)); return mine }
func (b Budget) Used() int64                    { return used(b.budget) }

func (b Budget) Wait(ctx context.Context, who byte, n int64) error {
	return b.wait(ctx, numbered(who), n)
}

func numbered(who byte) caller { return caller{hash: [sha256.Size]byte{who}} }

// Waiting is how many wait.
func (b Budget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.Len()
}

func used(b *budget) int64 {
	n, _, _ := b.holdings(caller{})
	return n
}

// Codecs are the server's codecs by name.
func Codecs() map[string]connect.Codec {
	requests, err := requestShapes(contract.Services())
	if err != nil {
		panic(err)
	}
	return map[string]connect.Codec{"proto": protoCodec{requests}, "json": jsonCodec{"json", requests}}
}

// Drain turns readiness off, as Shutdown does first.
func (s *Server) Drain() { s.draining.Store(true) }

func WithDefaults(l Limits) (Limits, error) { return l.withDefaults() }

// FailRealms makes every realm look as if it had stopped. Not for a server in use.
func (s *Server) FailRealms(err error) {
	s.realmErr = func(*kuji.Realm) error { return err }
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
	c := &call{endpoint: s.endpoints[kujiv1connect.RewardServiceStreamDrawsProcedure], streaming: streaming{w: w}, access: anybody}
	return newDrawStream(s, c, conn).run(ctx)
}

// StreamError is err as a stream returns it.
func StreamError(err error, named bool) error { return &streamError{err, named} }

// Miscount is why a codec left a request empty.
var Miscount = miscount

// CountMessages is how many messages within a request are counted.
func CountMessages(json bool, data []byte, m proto.Message) int {
	shapes, err := requestShapes(contract.Services())
	if err != nil {
		panic(err)
	}
	s := shapes[m.ProtoReflect().Descriptor().FullName()]
	c := jsonCounter{data: data}
	if json {
		err = c.json(s)
	} else {
		err = c.binary(data, s)
	}
	if err != nil {
		return -1
	}
	return c.messages
}

// RequestShapes fails if a list of a request has no limit.
func RequestShapes(services []protoreflect.ServiceDescriptor) error {
	_, err := requestShapes(services)
	return err
}

// DrawsOf is what the engine is asked for by a batch of a stream.
func DrawsOf(m *kujiv1.StreamDrawsRequest) ([]kuji.Draw, error) {
	var b drawBatch
	proto.Merge(&b.request, m)
	err := b.build()
	return b.draws, err
}

// DrawsResponse is the answer to a batch of a stream.
var DrawsResponse = drawsResponse

// CheckClocks is what the server does every minute.
func (s *Server) CheckClocks() { s.checkClocks() }

// WindowChecks returns what the server does every five seconds.
func (s *Server) WindowChecks() (check func()) {
	said := windows{}
	return func() { s.checkWindows(said) }
}

// LoadKeysWith is LoadKeys with another network and another clock.
func LoadKeysWith(path string, fetch func(context.Context, string) ([]byte, error), now func() time.Time) (*Keys, error) {
	return loadKeys(path, fetch, now)
}

// Knows reports whether somebody may do something with a secret.
func (k *Keys) Knows(secret string) bool { return k.find(secret) != nil }

// Settle waits until no set of keys is being fetched.
func (k *Keys) Settle() {
	for _, i := range k.set.Load().issuers {
		for i.fetching.Load() {
			runtime.Gosched()
		}
	}
}

// SetRateClock sets the clock of rates, before the first request.
func (s *Server) SetRateClock(now func() time.Time) { s.rates.now = now }

// KeepEvent filters a record as a stream of events does.
func KeepEvent(rec *kuji.Record, player, pool string, bare bool) bool {
	return (&filter{player: player, pool: pool, bare: bare}).keep(rec)
}

// SetLogClock sets the clock that bounds the lines of logs.
func (s *Server) SetLogClock(now func() time.Time) {
	s.slow.now, s.refusals.now = now, now
	if s.o.AccessLog != nil {
		s.o.AccessLog.strangers.now = now
	}
}

// Add adds a line.
func (a *AccessLog) Add(line string) {
	a.add(func(to []byte) []byte { return append(to, line...) })
}

// LogAllocs is how often the logging of an answered call allocates.
func (s *Server) LogAllocs() float64 {
	request := &kujiv1.DrawRequest{Player: "ann"}
	c := &call{endpoint: s.endpoints[kujiv1connect.RewardServiceDrawProcedure], access: anybody, reached: true, ended: true, took: time.Millisecond}
	return testing.AllocsPerRun(100, func() {
		c.realm = ""
		c.about(request)
		c.method = methodOf(c.endpoint, "")
		s.logCall(c)
	})
}

// MetricsText is what a scrape returns.
func (s *Server) MetricsText() string {
	w := httptest.NewRecorder()
	s.metricsH.ServeHTTP(w, httptest.NewRequest(http.MethodGet, metricsPath, nil))
	return w.Body.String()
}

// PoolMetrics returns how many samples each metric of pools has, if so many pools have their own.
func (s *Server) PoolMetrics(most int) (map[string]int, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(&poolCollector{&s.realms, most}); err != nil {
		return nil, err
	}
	families, err := registry.Gather()
	out := map[string]int{}
	for _, f := range families {
		out[f.GetName()] = len(f.GetMetric())
	}
	return out, err
}

// RedisCommands are the commands of the Redis protocol, with their arguments, and whether each is for
// the engine.
func RedisCommands() map[string]bool {
	out := make(map[string]bool)
	for _, cmd := range redisCommands() {
		out[cmd.name] = cmd.request != nil
	}
	return out
}

// RedisUsage is the commands and their arguments.
func RedisUsage() map[string]string {
	out := make(map[string]string)
	for _, cmd := range redisCommands() {
		out[cmd.name] = cmd.usage
	}
	return out
}

// RedisKinds are the first words of errors, by the API's reasons.
func RedisKinds() map[kujiv1.Reason]string { return redisKinds }

// ParseCommand reads a command of the Redis protocol.
var ParseCommand = parseCommand

// RedisBuffer is the room for commands before AUTH.
const RedisBuffer = redisBuffer

// RedisConnections is how many connections of the Redis protocol there are.
func (s *Server) RedisConnections() int { return s.redis.len() }

// HoldCalls takes all calls that there may be, until release is called.
func (s *Server) HoldCalls() (release func()) {
	n := s.calls.most()
	if !s.calls.take(numbered(9), n) {
		panic("calls are being answered")
	}
	return func() { s.calls.give(numbered(9), n) }
}

// HoldMemory takes the memory for requests but for some bytes, until release is called.
func (s *Server) HoldMemory(left int64) (release func()) {
	n := s.memory.most() - left
	if !s.memory.take(numbered(9), n) {
		panic("memory is in use")
	}
	return func() { s.memory.give(numbered(9), n) }
}

// HoldChecks takes all turns in which tokens from an address can be checked, until release is called.
func (s *Server) HoldChecks(address string) (release func()) {
	from, b := addressOf(address), s.credentials.turns
	n := b.most()
	if !b.take(from, n) {
		panic("tokens are being checked")
	}
	return func() { b.give(from, n) }
}

// WaitingChecks is how many tokens of strangers are checked, or wait for it.
func (s *Server) WaitingChecks() int64 { return used(s.credentials.places) }

// hold takes all that one caller can have of a budget, and what is then left.
func hold(b *budget) (release func()) { return holdBy(b, 1) }

// holdBy is hold, by so much at a time.
func holdBy(b *budget, n int64) (release func()) {
	var all []caller
	for one := numbered(9); b.take(one, n); one.hash[1]++ {
		all = append(all, one)
		for b.take(one, n) {
			all = append(all, one)
		}
	}
	return func() {
		for _, one := range all {
			b.give(one, n)
		}
	}
}

// HoldOdds takes all turns of odds, and HoldBulk those of batches, until release is called.
func (s *Server) HoldOdds() (release func()) { return hold(s.odds) }
func (s *Server) HoldBulk() (release func()) { return hold(s.bulk) }

// WaitingOdds is how many odds wait for their turn.
func (s *Server) WaitingOdds() int { return Budget{s.odds}.Waiting() }

// OddsAtOnce is oddsAtOnce.
const OddsAtOnce = oddsAtOnce

// Refusing is the budgets that refuse what is not left, by what they are of.
func (s *Server) Refusing(realm string) map[string]Budget {
	return map[string]Budget{
		"memory": {s.memory}, "calls": {s.calls}, "streams of draws": {s.streams}, "streams of events": {s.feeds},
		"busy connections": {s.conns.busy}, "readers": {s.readers.of(realm, s.o.Keys != nil)},
	}
}

// Part is a small part of a budget.
func (b Budget) Part() int64 { return max(1, b.total/256) }

// FillUp takes all parts that callers who are no operators can have.
func (b Budget) FillUp() (release func()) { return holdBy(b.budget, b.Part()) }

// Total is how much there is.
func (b Budget) Total() int64 { return b.total }

// TakeAsOperator is Take for an operator.
func (b Budget) TakeAsOperator(n int64) bool { return b.take(caller{operator: true}, n) }

// HoldReads takes all turns of readers of old events until release is called.
func (s *Server) HoldReads() (release func()) { return hold(s.reads) }

// WaitingReads is how many of them wait, and InReads how many turns are taken.
func (s *Server) WaitingReads() int { return Budget{s.reads}.Waiting() }
func (s *Server) InReads() int      { return int(used(s.reads)) }
