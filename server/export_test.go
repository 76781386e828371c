package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// What the tests of this package see of its inside.
var (
	DeclaredRoles = declaredRoles
	Contract      = contract
	StatusProto   = statusProto
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

func StatusAnswers() map[kuji.Status]connect.Code { return statusAnswers }

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
	s.endpoints[path].handler, s.endpoints[path].direct = h, 0
}

// Indirect makes Connect answer every Draw. It returns what undoes it.
func (s *Server) Indirect() (undo func()) {
	e := s.endpoints[kujiv1connect.RewardServiceDrawProcedure]
	was := e.direct
	e.direct = 0
	return func() { e.direct = was }
}

// Intercepted is a unary handler with the options of the server's own.
func Intercepted[Req, Res any](s *Server, path string, f func(*connect.Request[Req]) (*connect.Response[Res], error)) http.Handler {
	return connect.NewUnaryHandler(path, func(_ context.Context, r *connect.Request[Req]) (*connect.Response[Res], error) { return f(r) }, s.handlerOptions())
}

func (s *Server) InFlight() int { return len(s.inFlight) }
func (s *Server) InBulk() int   { return len(s.bulk) }

// Codecs are the server's codecs by name.
func Codecs() map[string]connect.Codec {
	return map[string]connect.Codec{"proto": protoCodec{}, "json": jsonCodec{"json"}}
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

// DrawBatch is a batch of a stream as the codecs see it.
type DrawBatch = drawBatch

// Decode reads a StreamDrawsRequest and makes requests of it.
func (b *drawBatch) Decode(data []byte) ([]kuji.Draw, error) {
	if err := b.unmarshal(data); err != nil {
		return nil, err
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	return b.draws, nil
}

// Columns are what unmarshal has found, as the message.
func (b *drawBatch) Columns(data []byte) (*kujiv1.StreamDrawsRequest, error) {
	if err := b.unmarshal(data); err != nil {
		return nil, err
	}
	return &kujiv1.StreamDrawsRequest{Realm: b.realm, Players: b.players, PlayerIndexes: b.playerAt, Pools: b.pools,
		PoolIndexes: b.poolAt, Counts: b.counts, RequestIds: b.requestIDs}, nil
}

// Encode writes the answer to what Decode has read.
func (b *drawBatch) Encode(dst []byte, results []kuji.Result) ([]byte, error) {
	return b.appendAnswer(dst, results)
}

// RunStream serves a stream whose messages come from and go to conn.
func (s *Server) RunStream(ctx context.Context, conn connect.StreamingHandlerConn, w http.ResponseWriter) error {
	c := &call{endpoint: s.endpoints[kujiv1connect.RewardServiceStreamDrawsProcedure], w: w, body: &streamBody{}}
	return newDrawStream(s, c, conn).run(ctx)
}

// Fill makes b the batch that data says, as receiving it does.
func (b *drawBatch) Fill(data []byte) error { return b.unmarshal(data) }

// StreamError is err as a stream returns it.
func StreamError(err error, named bool) error { return &streamError{err, named} }

// MaxDirect is the largest message that the direct path reads.
const MaxDirect = maxDirect

// Wrap puts a handler around Connect's.
func (s *Server) Wrap(path string, around func(http.Handler) http.Handler) {
	e := s.endpoints[path]
	e.handler = around(e.handler)
}

// DirectRequest is what the direct path reads.
type DirectRequest struct {
	Realm string
	Draw  kuji.Draw
}

// DecodeDirect is how the direct path reads a message; false: it does not.
func DecodeDirect(data []byte, json bool) (DirectRequest, bool) {
	var d direct
	ok := d.decode(data, json)
	return DirectRequest{d.realm, d.draw}, ok
}

// EncodeDirect is how it writes the answer; false: it does not.
func EncodeDirect(dst []byte, res *kuji.Result, json bool) ([]byte, bool) {
	if json {
		return appendDrawJSON(dst, res)
	}
	return appendDrawProto(dst, res)
}

// DrawResponse is the message that the answer is.
func DrawResponse(res *kuji.Result) *kujiv1.DrawResponse {
	return &kujiv1.DrawResponse{Result: resultProto(res)}
}

// BreakRealm makes a realm panic when it is next called, and never work again.
func (s *Server) BreakRealm(name string) { s.realms.add(name, new(kuji.Realm)) }

// ServeBare serves without a front.
func (s *Server) ServeBare(l net.Listener) error { return s.http.Serve(l) }

// FrontReads is what the front makes of the beginning of data, and how much of
// it that is; 0: it is for net/http.
func FrontReads(data []byte) (*http.Request, int) {
	q := new(frontRequest)
	q.init(context.Background(), "127.0.0.1:1", maxDirect)
	n := q.read(data[:min(len(data), frontBytes)])
	return &q.http, n
}

// AwaitHanded returns when no connection is the front's.
func (s *Server) AwaitHanded() {
	left := func() (n int) {
		s.frontsMu.Lock()
		defer s.frontsMu.Unlock()
		for _, f := range s.fronts {
			f.mu.Lock()
			n += len(f.conns)
			f.mu.Unlock()
		}
		return n
	}
	for left() > 0 {
		runtime.Gosched()
	}
}

// NewFront is the listener that net/http gets.
func (s *Server) NewFront(l net.Listener) net.Listener { return s.newFront(l) }
