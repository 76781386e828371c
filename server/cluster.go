package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// In a cluster each realm is led by one of several servers. A request says which realm it is about. So
// it is decoded first, and then either answered or handed on, as it came:
//
//	held here:             answered. If the realm stopped meanwhile and nothing has happened: handed on
//	a read that says stale: answered from what the realm that follows has; else handed on
//	everything else:       handed on
//
// What is handed on is neither counted nor logged: who answers it does that.

// Cluster says what a server that shares realms with others leads, and reaches the others.
type Cluster interface {
	// Holds reports whether this server leads a realm, and no other can have begun to.
	Holds(realm string) bool
	// Elsewhere answers a request about a realm that this server does not hold, or which stopped
	// before anything happened. GetBody of the request returns its body from the beginning, except of
	// a stream of draws.
	Elsewhere(w http.ResponseWriter, r *http.Request, realm string)
	// Status returns what other servers say of the realms that they lead, as far as they answer. The
	// context is that of a request for the status of all realms.
	Status(ctx context.Context) []*kujiv1.RealmStatus
}

// mayBeStale are the RPCs that a follower can answer, if their requests say stale.
var mayBeStale = map[string]bool{
	kujiv1connect.RewardServiceGetPlayerProcedure: true,
	kujiv1connect.RewardServiceGetPoolProcedure:   true,
	kujiv1connect.RewardServiceGetResultProcedure: true,
}

// errElsewhere ends a request that another server answers. No client sees it.
var errElsewhere = connect.NewError(connect.CodeUnavailable, errors.New("another server answers this"))

type hereKey struct{}

// ServeHere answers a request that [Cluster] was asked to answer: one about a realm that no server leads,
// such as one that is to be created. If it exists by now, Cluster is asked again.
func (s *Server) ServeHere(w http.ResponseWriter, r *http.Request) {
	s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), hereKey{}, true)))
}

// serveShared is serveAdmitted for a server that shares realms with others.
func (s *Server) serveShared(w http.ResponseWriter, r *http.Request, c *call, b *body) {
	mine := received(r, b)
	c.shared = true
	if c.endpoint.bidi {
		c.first = &recorded{body: r.Body}
		whole := *r
		whole.Body = c.first
		mine = &whole
	}
	s.serveAdmitted(&sharedWriter{w, c}, mine, c)
	if c.elsewhere == "" {
		return
	}
	clear(w.Header()) // whoever answers sets them all
	again := *r.WithContext(context.WithValue(r.Context(), hereKey{}, false))
	if c.endpoint.bidi {
		again.Body = c.first.again()
	} else {
		b.first = nil // whoever sends it may still read it when this has returned
		data := b.data
		again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		again.Body, _ = again.GetBody()
		again.ContentLength = int64(len(data))
	}
	s.o.Cluster.Elsewhere(w, &again, c.elsewhere)
}

// hold checks that this server answers a request. It is called as soon as the request is decoded.
func (s *Server) hold(ctx context.Context, request any) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok || !c.shared {
		return nil
	}
	named, ok := request.(interface{ GetRealm() string })
	if _, status := request.(*kujiv1.GetStatusRequest); !ok || status && named.GetRealm() == "" {
		return nil // it is about no realm: each server answers for itself
	}
	realm := cmp.Or(named.GetRealm(), DefaultRealm)
	if s.o.Cluster.Holds(realm) || ctx.Value(hereKey{}) == true {
		c.held = realm
		return nil
	}
	if q, ok := request.(interface{ GetStale() bool }); ok && q.GetStale() && mayBeStale[c.endpoint.procedure] && s.realms.follows(realm) {
		c.held = realm
		c.stale = true
		return nil
	}
	c.elsewhere = realm
	return errElsewhere
}

// sharing is who answers a call, in a cluster.
type sharing struct {
	shared    bool      // other servers may answer, too
	held      string    // the realm, if this one tries to answer
	stale     bool      // it tries with what it has, and does not lead
	elsewhere string    // the realm, if another server is to answer
	first     *recorded // what was read of a stream of draws
}

// handOn reports whether another server is to answer a request that ended with an error here.
func (c *call) handOn(err error) bool {
	if !c.shared || c.held == "" || c.endpoint.streams != nil {
		return false
	}
	if c.stale { // who leads may know better
		return true
	}
	return stoppedBefore(err)
}

// stoppedBefore reports whether an error says that the realm stopped before anything happened.
func stoppedBefore(err error) bool {
	switch kuji.CodeOf(err) {
	case kuji.CodeClosed, kuji.CodeNotLeader, kuji.CodeFailed:
		return true
	}
	return false
}

// sharedWriter passes on what this server answers, unless another one is to.
type sharedWriter struct {
	http.ResponseWriter
	c *call
}

// Write implements [http.ResponseWriter].
func (w *sharedWriter) Write(p []byte) (int, error) {
	if w.c.elsewhere != "" {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// WriteHeader implements [http.ResponseWriter].
func (w *sharedWriter) WriteHeader(status int) {
	if w.c.elsewhere == "" {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Flush implements [http.Flusher].
func (w *sharedWriter) Flush() { _ = w.FlushError() } // the client may be gone

// FlushError flushes for an [http.ResponseController].
func (w *sharedWriter) FlushError() error {
	if w.c.elsewhere != "" {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap gives an [http.ResponseController] what is below.
func (w *sharedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recorded is the body of a stream, of which what was read is kept until somebody answers it.
type recorded struct {
	body    io.ReadCloser
	read    []byte
	decided bool
}

// Read implements [io.Reader].
func (b *recorded) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if !b.decided {
		b.read = append(b.read, p[:n]...)
	}
	return n, err
}

// Close does nothing: net/http closes the body of a request that it received.
func (b *recorded) Close() error { return nil }

// decide forgets what was read.
func (b *recorded) decide() { b.decided, b.read = true, nil }

// again returns the whole body.
func (b *recorded) again() io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(b.read), b.body), b.body}
}

// Open opens a realm that exists, to follow it. One that is open already stays so. It is for a server
// that shares realms with others, which opens none by itself. Errors are those of [kuji.Engine.Lookup].
func (s *Server) Open(realm string) (*kuji.Realm, error) {
	r, err := s.engine.Lookup(realm)
	if err == nil {
		s.realms.add(realm, r)
	}
	return r, err
}

// Lead makes a realm lead, and returns it. One that does not exist is created. Errors are those of
// [kuji.Engine.Realm] and [kuji.Replica.Lead]; the realm must then be closed.
func (s *Server) Lead(ctx context.Context, realm string) (*kuji.Realm, error) {
	r, err := s.engine.Realm(realm)
	if err != nil {
		return nil, err
	}
	s.realms.add(realm, r)
	if err := r.Replica().Lead(ctx); err != nil {
		return nil, err
	}
	if s.o.History != nil {
		s.o.History.Follow(r)
	}
	return r, nil
}

// CloseRealm closes a realm, as [kuji.Engine.CloseRealm] does. Open opens it anew.
func (s *Server) CloseRealm(ctx context.Context, realm string) error {
	s.realms.remove(realm)
	return s.engine.CloseRealm(ctx, realm)
}

// Realms returns the realms that are open, sorted by name.
func (s *Server) Realms() []*kuji.Realm { return s.realms.sorted() }

// Unready returns why the server should get no requests, realms apart; none if it should.
func (s *Server) Unready() []string { return s.busy() }
